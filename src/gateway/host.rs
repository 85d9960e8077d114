//! The host that a request names, in its one normal form: what rules, keys and servers see.

use std::net::Ipv6Addr;

/// Longest `host[:port]`, in bytes: a domain name's 253 and room for a port.
const MAX_BYTES: usize = 260;

/// What was received is no `host[:port]`: 400 (RFC 9110 §7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bad host")]
pub struct BadHost;

/// Appends the normal form of the Host field or authority `raw`: in lower case, without a dot at the
/// end, without the scheme's own port, a port without leading zeros.
///
/// # Errors
/// Anything but `host[:port]` (RFC 3986 §3.2): an empty host, userinfo, a list, an IPv6 address that
/// is none, a port beyond 16 bits. A comma is refused although a reg-name may hold it, because list
/// syntax would split there.
pub fn normalise(raw: &[u8], https: bool, out: &mut impl Extend<u8>) -> Result<(), BadHost> {
    if raw.len() > MAX_BYTES {
        return Err(BadHost);
    }
    let (name, port) = split(raw)?;
    if !name.starts_with(b"[") && (name.is_empty() || !name.iter().all(|&byte| is_name_byte(byte))) {
        return Err(BadHost);
    }
    let port = port.map(decimal).transpose()?.flatten();
    out.extend(name.iter().map(u8::to_ascii_lowercase));
    if let Some(port) = port.filter(|&port| port != if https { 443 } else { 80 }) {
        out.extend([b':']);
        push_decimal(port, out);
    }
    Ok(())
}

/// A normal host without its port, and the port; the brackets of an IPv6 address stay.
pub fn split_port(host: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memrchr(b':', host).filter(|_| !host.ends_with(b"]")) {
        Some(at) => (host.get(..at).unwrap_or_default(), host.get(at + 1..)),
        None => (host, None),
    }
}

/// Appends a port without allocating: clients on another port than the default send one each time.
fn push_decimal(port: u16, out: &mut impl Extend<u8>) {
    let digit = |power: u16| b'0' + u8::try_from(port / power % 10).unwrap_or_default();
    out.extend([10_000, 1_000, 100, 10, 1].into_iter().filter(|&power| port >= power || power == 1).map(digit));
}

/// The name without its final dot, and what follows its colon.
fn split(raw: &[u8]) -> Result<(&[u8], Option<&[u8]>), BadHost> {
    if raw.starts_with(b"[") {
        let end = memchr::memchr(b']', raw).ok_or(BadHost)?;
        let literal = raw.get(1..end).and_then(|text| std::str::from_utf8(text).ok()).ok_or(BadHost)?;
        literal.parse::<Ipv6Addr>().map_err(|_| BadHost)?;
        let (name, rest) = raw.split_at_checked(end + 1).ok_or(BadHost)?;
        return match rest.strip_prefix(b":") {
            Some(port) => Ok((name, Some(port))),
            None if rest.is_empty() => Ok((name, None)),
            None => Err(BadHost),
        };
    }
    let (name, port) = match memchr::memchr(b':', raw) {
        Some(at) => raw.split_at_checked(at).map(|(name, rest)| (name, rest.strip_prefix(b":"))).ok_or(BadHost)?,
        None => (raw, None),
    };
    Ok((name.strip_suffix(b".").unwrap_or(name), port))
}

/// A port; an empty one is none (RFC 3986 §3.2.3).
fn decimal(digits: &[u8]) -> Result<Option<u16>, BadHost> {
    if digits.is_empty() {
        return Ok(None);
    }
    let add = |port: u16, digit: &u8| {
        let digit = digit.is_ascii_digit().then(|| u16::from(digit - b'0'))?;
        port.checked_mul(10)?.checked_add(digit)
    };
    digits.iter().try_fold(0_u16, add).map(Some).ok_or(BadHost)
}

/// `reg-name` (RFC 3986 §3.2.2) without the comma.
const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'.' | b'_' | b'~' | b'%' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b';' | b'='
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(raw: &str, https: bool) -> Result<String, BadHost> {
        let mut out = Vec::new();
        normalise(raw.as_bytes(), https, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn one_host_has_one_form() {
        let table = [
            ("A.Example", false, "a.example"),
            ("a.example.", false, "a.example"),
            ("a.example.:080", false, "a.example"),
            ("a.example:443", false, "a.example:443"),
            ("a.example:443", true, "a.example"),
            ("a.example:80", true, "a.example:80"),
            ("a.example:", false, "a.example"),
            ("a.example:08080", false, "a.example:8080"),
            ("[2001:DB8::1]", false, "[2001:db8::1]"),
            ("[::1]:81", false, "[::1]:81"),
            ("127.0.0.1:80", false, "127.0.0.1"),
            ("a:65535", false, "a:65535"),
            ("a:1000", false, "a:1000"),
            ("a:0", false, "a:0"),
        ];
        for (raw, https, expected) in table {
            assert_eq!(normal(raw, https).as_deref(), Ok(expected), "{raw}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        let long = "a".repeat(MAX_BYTES + 1);
        let table = [
            "",
            ".",
            ":80",
            "a b",
            "a/x",
            "a?x",
            "a#x",
            "a,b",
            "a, b",
            "u@a",
            "u:p@a",
            "a:x",
            "a:1:2",
            "a:65536",
            "a:-1",
            "a\\b",
            "a\"",
            "a\0",
            "a\r",
            "[::1",
            "[x]",
            "[]",
            "[::1]x",
            "[::1]:x",
            "::1",
            "\u{e9}.example",
            &long,
        ];
        for raw in table {
            assert_eq!(normal(raw, false), Err(BadHost), "{raw:?}");
        }
    }
}
