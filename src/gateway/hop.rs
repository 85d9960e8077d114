//! Fields that are for one connection only (RFC 9110 §7.6.1).

use smallvec::SmallVec;

use crate::message::Fields;

/// Fields that are for one hop, whether `Connection` names them or not.
const HOP_BY_HOP: [&str; 7] =
    ["connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade", "http2-settings"];

/// Fields that `Connection` cannot take away: routing, framing, access and caching hang on them.
const NOT_NOMINATED: [&[u8]; 18] = [
    b"host",
    b"content-length",
    b"transfer-encoding",
    b"content-type",
    b"content-encoding",
    b"content-range",
    b"cache-control",
    b"pragma",
    b"vary",
    b"range",
    b"authorization",
    b"cookie",
    b"set-cookie",
    b"connection",
    b"upgrade",
    b"expect",
    b"te",
    b"date",
];

/// Options of `Connection` that name no field (RFC 9112 §9.3, RFC 9110 §7.8).
const OPTIONS: [&[u8]; 3] = [b"close", b"keep-alive", b"upgrade"];

/// Whether a field is about a connection alone; each side writes its own.
pub fn is_connection(name: &[u8]) -> bool {
    [&b"connection"[..], b"transfer-encoding", b"keep-alive", b"proxy-connection"]
        .iter()
        .any(|field| name.eq_ignore_ascii_case(field))
}

/// Takes off what is for one hop: the fixed list and what `Connection` nominates.
pub fn strip(fields: &mut Fields) {
    if !HOP_BY_HOP.iter().any(|name| fields.has(name)) {
        return;
    }
    strip_nominated(fields);
    fields.retain(|field| !HOP_BY_HOP.iter().any(|name| field.is(name)));
}

/// Takes off what `Connection` nominates, and the nominations with it: a field of that name that a rule
/// adds later is not the sender's.
pub fn strip_nominated(fields: &mut Fields) {
    let mut nominated = SmallVec::<[Vec<u8>; 4]>::new();
    let mut kept = Vec::new();
    for option in fields.members("connection") {
        if OPTIONS.iter().any(|known| option.eq_ignore_ascii_case(known)) {
            kept.extend_from_slice(if kept.is_empty() { b"" } else { b", " });
            kept.extend_from_slice(option);
        } else if !NOT_NOMINATED.iter().any(|name| option.eq_ignore_ascii_case(name)) {
            nominated.push(option.to_vec());
        }
    }
    fields.retain(|field| !nominated.iter().any(|name| field.name.eq_ignore_ascii_case(name)));
    if kept.is_empty() {
        fields.remove(b"connection");
    } else {
        fields.set(b"Connection", &kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nominated_fields_go_but_not_those_that_requests_hang_on() {
        let mut fields: Fields = [
            ("Connection", "close, X-Hop, Host, Authorization"),
            ("Host", "a"),
            ("X-Hop", "1"),
            ("Keep-Alive", "5"),
            ("Authorization", "2"),
        ]
        .into_iter()
        .collect();
        strip(&mut fields);
        let names: Vec<_> = fields.iter().map(|field| field.name).collect();
        assert_eq!(names, [&b"Host"[..], b"Authorization"]);
    }
}
