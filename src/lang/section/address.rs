//! Addresses as HAProxy writes them (manual §11): `*:80`, `:80`, `[::1]:80`, `:::80`, `name:80`,
//! `/path`, with a family in front (`ipv4@`, `unix@`).

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    ops::{Range, RangeInclusive},
    path::PathBuf,
};

use super::Loader;
use crate::lang::{ast::Word, code, diag::Diagnostic, in_words, source::Span};

/// An address as written.
pub(super) enum Address {
    /// A host, as far as it can be said without its port, and ports.
    Tcp(Vec<IpAddr>, RangeInclusive<u16>),
    /// A unix socket's path.
    Unix(PathBuf),
}

/// What an empty host or `*` means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wildcard {
    /// Every address of this machine.
    Allowed,
    /// Nothing: a server has an address.
    Refused,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Any,
    V4,
    V6,
    Unix,
}

const FAMILIES: [(&str, Family); 8] = [
    ("ipv4@", Family::V4),
    ("ipv6@", Family::V6),
    ("tcp@", Family::Any),
    ("tcp4@", Family::V4),
    ("tcp6@", Family::V6),
    ("unix@", Family::Unix),
    ("ipv4:", Family::V4),
    ("ipv6:", Family::V6),
];

/// What the system has room for: `sun_path` without the byte that ends it (`man 7 unix`).
const LONGEST_SOCKET_PATH: usize = 107;

const UNBUILT: [&str; 12] = [
    "abns@",
    "abnsz@",
    "fd@",
    "quic4@",
    "quic6@",
    "quic@",
    "rhttp@",
    "sockpair@",
    "stream+",
    "dgram+",
    "udp@",
    "mptcp@",
];

/// Reads the bytes `range` of a word as one address. What is wrong with it is reported.
pub(super) fn read(loader: &mut Loader<'_>, word: &Word, range: Range<usize>, wildcard: Wildcard) -> Option<Address> {
    let span = word.part(range.clone());
    let bytes = word.text.get(range).unwrap_or_default();
    let Ok(text) = std::str::from_utf8(bytes) else {
        loader.error(code::BAD_ADDRESS, span, "this address is no text");
        return None;
    };
    if let Some(family) = UNBUILT.iter().find(|family| text.starts_with(**family)) {
        loader.refuse(family, span, "write an IP address with a port, or the path of a unix socket");
        return None;
    }
    if let Some((scheme, rest)) = text.split_once("://") {
        let found = Diagnostic::error(code::BAD_ADDRESS, span, format!("`{text}` is a URL; an address stands here"));
        let address = rest.split('/').next().unwrap_or_default();
        loader.report(match scheme {
            "https" => found.help(format!("leave out `https://`: `{address}`; TLS to servers is not built yet")),
            _ => found.help(format!("leave out `{scheme}://`: `{address}`")),
        });
        return None;
    }
    let found = FAMILIES.iter().find_map(|(name, family)| Some((*family, text.strip_prefix(name)?)));
    let (family, rest) = found.unwrap_or((Family::Any, text));
    if family == Family::Unix || (family == Family::Any && rest.starts_with('/')) {
        if rest.is_empty() {
            loader.error(code::BAD_ADDRESS, span, "a unix socket needs a path");
            return None;
        }
        if rest.len() > LONGEST_SOCKET_PATH {
            let message =
                format!("the path of a unix socket has at most {LONGEST_SOCKET_PATH} bytes, this one {}", rest.len());
            loader.report(
                Diagnostic::error(code::BAD_ADDRESS, span, message)
                    .help("put the socket into a directory nearer to `/`, such as `/run`"),
            );
            return None;
        }
        return Some(Address::Unix(PathBuf::from(rest)));
    }
    let Some((host, port)) = rest.rsplit_once(':') else {
        loader.report(
            Diagnostic::error(code::BAD_ADDRESS, span, format!("`{text}` has no port"))
                .help("write it as `127.0.0.1:80`, `[::1]:80`, `*:80` or `/path/of/socket`"),
        );
        return None;
    };
    let Some(ports) = ports(port) else {
        let help = match port.strip_suffix(';').is_some_and(|port| ports(port).is_some()) {
            true => "leave out the `;`: a statement ends with its line",
            false => "ports go from 0 to 65535",
        };
        loader.report(Diagnostic::error(code::BAD_ADDRESS, span, format!("`{port}` is no port")).help(help));
        return None;
    };
    let addresses = hosts(loader, host, *ports.start(), family, span, wildcard)?;
    Some(Address::Tcp(addresses, ports))
}

/// `80` or `8000-8010`.
fn ports(text: &str) -> Option<RangeInclusive<u16>> {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten();
    match text.split_once('-') {
        Some((first, last)) => Some(digits(first)?..=digits(last)?).filter(|ports| !ports.is_empty()),
        None => digits(text).map(|port| port..=port),
    }
}

fn hosts(
    loader: &mut Loader<'_>,
    host: &str,
    port: u16,
    family: Family,
    span: Span,
    wildcard: Wildcard,
) -> Option<Vec<IpAddr>> {
    if host.is_empty() || host == "*" {
        if wildcard == Wildcard::Refused {
            loader.error(code::BAD_ADDRESS, span, "a server needs an address: where is it?");
            return None;
        }
        return Some(vec![match family {
            Family::V6 => Ipv6Addr::UNSPECIFIED.into(),
            _ => Ipv4Addr::UNSPECIFIED.into(),
        }]);
    }
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let fits = |address: &IpAddr| match family {
        Family::V4 => address.is_ipv4(),
        Family::V6 => address.is_ipv6(),
        Family::Any | Family::Unix => true,
    };
    let found = match bare.parse::<IpAddr>() {
        Ok(address) => Ok(vec![address]),
        Err(_) => loader.outside.resolve(bare, port).map(|found| found.iter().map(SocketAddr::ip).collect()),
    };
    let (message, help) = match found.map(|found: Vec<IpAddr>| found.into_iter().filter(fits).collect::<Vec<_>>()) {
        Ok(found) if !found.is_empty() => return Some(found),
        Ok(_) => (format!("`{bare}` has no address of this family"), "write an address of the family in front of it"),
        Err(error) => (
            format!("`{bare}` is no address and cannot be resolved: {}", in_words(&error)),
            "names are resolved once, when the file is loaded; write an IP address to do without",
        ),
    };
    loader.report(Diagnostic::error(code::BAD_ADDRESS, span, message).help(help));
    None
}

/// The pieces of a list with commas, each with its place in the word.
pub(super) fn pieces(word: &Word) -> Vec<Range<usize>> {
    let ends = memchr::memchr_iter(b',', &word.text).chain([word.text.len()]);
    let mut start = 0;
    ends.map(|end| std::mem::replace(&mut start, end + 1)..end).collect()
}
