//! What of a response's head is stored (RFC 9111 §3.1).

use super::{date::write_date, directive::fields_to_drop, terms::Ignore};
use crate::{
    message::{Fields, Response},
    time::Timestamp,
};

/// Fields that concern one connection, whether `Connection` names them or not (RFC 9110 §7.6.1), and those
/// that §3.1 keeps out of a store.
const NOT_STORED: [&str; 11] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "age",
];

/// The head of `response` as it is stored: without hop-by-hop fields, those that `Connection` names, `Age`
/// and the fields that `no-cache="…"` and `private="…"` name; with a `Date`, that of reception if it came without.
pub fn stored_head(response: &Response, ignore: &Ignore, received: Timestamp) -> Response {
    let mut head = response.clone();
    let dropped = fields_to_drop(&head.fields, ignore);
    let nominated = nominated(&head.fields);
    head.fields.retain(|field| {
        !is_not_stored(field.name)
            && !nominated.iter().any(|name| field.name.eq_ignore_ascii_case(name))
            && !dropped.iter().any(|name| field.name.eq_ignore_ascii_case(name))
    });
    if !head.fields.has("date") {
        head.fields.append(b"Date", write_date(received).as_bytes());
    }
    head
}

/// Whether a field of this name is never stored and never taken over from a 304.
pub(super) fn is_not_stored(name: &[u8]) -> bool {
    NOT_STORED.iter().any(|word| name.eq_ignore_ascii_case(word.as_bytes()))
}

/// The field names that `Connection` lists, in lower case.
pub(super) fn nominated(fields: &Fields) -> Vec<Vec<u8>> {
    fields.members("connection").map(<[u8]>::to_ascii_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_for_everyone_is_left_out() {
        let lines = [
            ("Connection", "close, X-Hop"),
            ("X-Hop", "1"),
            ("Transfer-Encoding", "chunked"),
            ("Age", "5"),
            ("Cache-Control", "private=\"set-cookie\", no-cache=\"X-A\""),
            ("Set-Cookie", "a=b"),
            ("x-a", "1"),
            ("Date", "Sun, 06 Nov 1994 12:00:00 GMT"),
            ("X-Kept", "1"),
        ];
        let response = Response { fields: lines.into_iter().collect(), ..Response::new(200) };
        let head = stored_head(&response, &Ignore::default(), Timestamp::default());
        let names: Vec<_> = head.fields.iter().map(|field| field.name.to_vec()).collect();
        assert_eq!(names, [&b"Cache-Control"[..], b"Date", b"X-Kept"]);
    }

    #[test]
    fn a_missing_date_is_the_time_of_reception() {
        let head = stored_head(&Response::new(200), &Ignore::default(), Timestamp::from_secs(784_123_200));
        assert_eq!(head.fields.first("date"), Some(&b"Sun, 06 Nov 1994 12:00:00 GMT"[..]));
    }
}
