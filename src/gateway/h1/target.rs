//! The request target (RFC 9112 §3.2).

use std::borrow::Cow;

use super::parse::Refusal;
use crate::message;

/// Longest request target read, in bytes.
pub const MAX_TARGET: usize = 32 * 1024;

/// What a request target says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target<'t> {
    /// The authority of an absolute form; it replaces `Host` (RFC 9112 §3.2.2).
    pub authority: Option<&'t [u8]>,
    /// Path and query; `*` for a server-wide OPTIONS.
    pub origin_form: Cow<'t, [u8]>,
}

const BAD_TARGET: Refusal = Refusal::new(400, "bad request target");

/// Reads the target of a request with this method.
///
/// # Errors
/// 414 beyond [`MAX_TARGET`]; 501 for CONNECT; 400 for a byte that no URI has, a fragment, userinfo,
/// or a form that does not go with the method.
pub fn target<'t>(method: &[u8], received: &'t [u8]) -> Result<Target<'t>, Refusal> {
    if received.len() > MAX_TARGET {
        return Err(Refusal::new(414, "request target too long"));
    }
    if method == b"CONNECT" {
        return Err(Refusal::new(501, "tunnels are not made here"));
    }
    if !received.iter().all(|&byte| message::is_target_byte(byte)) {
        return Err(BAD_TARGET);
    }
    match received {
        [b'/', ..] => Ok(Target { authority: None, origin_form: received.into() }),
        b"*" if method == b"OPTIONS" => Ok(Target { authority: None, origin_form: received.into() }),
        _ => absolute(method, received),
    }
}

/// Absolute form with the schemes `http` and `https`.
fn absolute<'t>(method: &[u8], received: &'t [u8]) -> Result<Target<'t>, Refusal> {
    let rest = after_scheme(received, b"http://").or_else(|| after_scheme(received, b"https://")).ok_or(BAD_TARGET)?;
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at_checked(end).ok_or(BAD_TARGET)?;
    let origin_form = match tail {
        // RFC 9112 §3.2.4: the last proxy turns an OPTIONS without a path into `*`.
        [] if method == b"OPTIONS" => Cow::Borrowed(&b"*"[..]),
        [] => Cow::Borrowed(&b"/"[..]),
        [b'?', ..] => Cow::Owned([b"/", tail].concat()),
        _ => Cow::Borrowed(tail),
    };
    Ok(Target { authority: Some(authority), origin_form })
}

fn after_scheme<'t>(received: &'t [u8], scheme: &[u8]) -> Option<&'t [u8]> {
    let (start, rest) = received.split_at_checked(scheme.len())?;
    start.eq_ignore_ascii_case(scheme).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_by_form() {
        for (method, received, expected) in [
            ("GET", "/", Ok((None, "/"))),
            ("GET", "/a?b=/c?d", Ok((None, "/a?b=/c?d"))),
            ("GET", "//a", Ok((None, "//a"))),
            ("OPTIONS", "*", Ok((None, "*"))),
            ("GET", "*", Err(400)),
            ("GET", "http://a.example/x?y", Ok((Some("a.example"), "/x?y"))),
            ("GET", "HTTP://a.example:81", Ok((Some("a.example:81"), "/"))),
            ("GET", "https://a.example/", Ok((Some("a.example"), "/"))),
            ("OPTIONS", "http://a.example", Ok((Some("a.example"), "*"))),
            ("GET", "http://a.example?x", Ok((Some("a.example"), "/?x"))),
            ("GET", "ftp://a.example/", Err(400)),
            ("GET", "a.example:80", Err(400)),
            ("GET", "a", Err(400)),
            ("GET", "?x", Err(400)),
            ("CONNECT", "127.0.0.1:22", Err(501)),
            ("GET", "/public.png#/../admin", Err(400)),
            ("GET", "/a?x=<", Err(400)),
            ("GET", "/a\\b", Err(400)),
            ("GET", "/a?b=c|d", Ok((None, "/a?b=c|d"))),
            ("GET", "/a\\b", Err(400)),
            ("GET", "/\u{e9}", Err(400)),
            ("GET", "/\u{7f}", Err(400)),
        ] {
            let got = target(method.as_bytes(), received.as_bytes())
                .map(|found| {
                    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                    (found.authority.map(text), text(&found.origin_form))
                })
                .map_err(|refusal| refusal.status);
            let got =
                got.as_ref().map(|(authority, form)| (authority.as_deref(), form.as_str())).map_err(|status| *status);
            assert_eq!(got, expected, "{method} {received}");
        }
        let long = vec![b'/'; MAX_TARGET + 1];
        assert_eq!(target(b"GET", &long).map_err(|refusal| refusal.status), Err(414));
    }
}
