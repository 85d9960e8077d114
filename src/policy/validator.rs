//! Validators and conditional requests (RFC 9110 §8.8, §13).

use super::{
    date::date,
    head::{is_not_stored, nominated},
};
use crate::{
    message::{Field, Fields, Request, Response},
    time::Timestamp,
};

/// What a conditional GET or HEAD gets from a stored response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// The stored response itself.
    Send,
    /// 304 (§15.4.5).
    NotModified,
    /// The origin must decide (If-Match, If-Unmodified-Since: RFC 9111 §4.3.2).
    Forward,
}

/// Evaluates `If-None-Match` (weak comparison), else `If-Modified-Since`, against a stored 200.
/// Allocates nothing.
pub fn precondition(request: &Request, stored: &Response) -> Precondition {
    let fields = &request.fields;
    if fields.has("if-match") || fields.has("if-unmodified-since") {
        return Precondition::Forward;
    }
    if stored.status != 200 {
        return Precondition::Send;
    }
    // If-Modified-Since is ignored beside If-None-Match (§13.1.3).
    let holds = if fields.has("if-none-match") {
        let tag = stored.fields.first("etag");
        fields.all("if-none-match").any(|list| lists(list, tag))
    } else {
        unmodified_since(request, stored)
    };
    if holds { Precondition::NotModified } else { Precondition::Send }
}

/// Whether a line of `If-None-Match` names `tag`, or anything at all by `*`.
fn lists(list: &[u8], tag: Option<&[u8]>) -> bool {
    list.trim_ascii() == b"*" || tag.is_some_and(|tag| entity_tags(list).any(|listed| opaque(listed) == opaque(tag)))
}

/// The members of a list of entity tags: commas inside quotes belong to the tag, and unlike in a quoted
/// string a backslash means nothing (§8.8.3).
fn entity_tags(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut quoted = false;
    list.split(move |byte| {
        quoted ^= *byte == b'"';
        *byte == b',' && !quoted
    })
    .map(<[u8]>::trim_ascii)
    .filter(|tag| !tag.is_empty())
}

/// The opaque part of a tag, quotes included: what weak comparison looks at (§8.8.3.2).
fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

fn unmodified_since(request: &Request, stored: &Response) -> bool {
    let mut lines = request.fields.all("if-modified-since");
    let (Some(line), None) = (lines.next(), lines.next()) else { return false };
    // Without Last-Modified, Date stands in for it (RFC 9111 §4.3.2).
    let modified = match stored.fields.first("last-modified") {
        Some(value) => date(value),
        None => stored.fields.first("date").and_then(date),
    };
    let since: Option<Timestamp> = date(line);
    modified.zip(since).is_some_and(|(modified, since)| modified <= since)
}

/// Whether `If-Range` holds for what is stored: the strong comparison of RFC 9110 §13.1.5, or the very date.
pub fn if_range(condition: &[u8], stored: &Fields) -> bool {
    let condition = condition.trim_ascii();
    let validator = if condition.starts_with(b"\"") { "etag" } else { "last-modified" };
    stored.first(validator) == Some(condition) && !condition.starts_with(b"W/")
}

/// Puts the stored validators on an upstream request (`If-None-Match`, `If-Modified-Since`), in place of any
/// condition and range of the client's; false when there are none.
pub fn make_conditional(request: &mut Request, stored: &Response) -> bool {
    const CLIENTS: [&str; 6] =
        ["if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "if-range", "range"];
    request.fields.retain(|field| !CLIENTS.iter().any(|name| field.is(name)));
    let tag = stored.fields.first("etag").filter(|tag| !tag.is_empty());
    let modified = stored.fields.first("last-modified").filter(|value| date(value).is_some());
    if let Some(tag) = tag {
        request.fields.append(b"If-None-Match", tag);
    }
    if let Some(modified) = modified {
        request.fields.append(b"If-Modified-Since", modified);
    }
    tag.is_some() || modified.is_some()
}

/// Whether a 304 speaks of this stored response (RFC 9111 §4.3.4). One without any validator answers the
/// request it was asked with, which named this response.
pub fn selects(not_modified: &Response, stored: &Response) -> bool {
    let (new, old) = (&not_modified.fields, &stored.fields);
    if let Some(tag) = new.first("etag") {
        let strong = !tag.starts_with(b"W/");
        return old.first("etag").is_some_and(|own| if strong { own == tag } else { opaque(own) == opaque(tag) });
    }
    match new.first("last-modified").and_then(date) {
        Some(modified) => old.first("last-modified").and_then(date) == Some(modified),
        None => true,
    }
}

/// The stored head updated from a 304: every field of it replaces its namesake, but for those of §3.2.
///
/// `Age` is that of the 304, so that [`storable`](super::storable::storable) can be asked about the result;
/// [`stored_head`](super::head::stored_head) then drops it. A 304 without `Date` leaves none. `Set-Cookie`
/// of a 304 was meant for one client and is not taken over.
///
/// `edit` is what is done to every head before it is stored. It sees the whole updated one, and counts for the
/// fields that the 304 brought: the others were edited when they were stored.
pub fn freshen(stored: &Response, not_modified: &Response, edit: impl FnOnce(&mut Response)) -> Response {
    let mut head = stored.clone();
    let new = &not_modified.fields;
    let nominated = nominated(new);
    let taken = |name: &[u8]| {
        !is_not_stored(name) && !is_of_the_body(name) && !nominated.iter().any(|own| name.eq_ignore_ascii_case(own))
    };
    head.fields.retain(|field| {
        let replaced = taken(field.name) && new.iter().any(|other| other.name.eq_ignore_ascii_case(field.name));
        !replaced && !field.is("date") && !field.is("age")
    });
    let mut kept = head.fields.clone();
    for field in new.iter().filter(|field| taken(field.name) || field.is("age")) {
        head.fields.append(field.name, field.value);
    }
    edit(&mut head);
    let is_kept = |name: &[u8]| kept.iter().any(|own| own.name.eq_ignore_ascii_case(name));
    head.fields.retain(|field| !is_kept(field.name));
    for field in head.fields.iter() {
        kept.append(field.name, field.value);
    }
    head.fields = kept;
    head
}

/// What the stored body depends on (RFC 9111 §3.2), and what is one client's.
fn is_of_the_body(name: &[u8]) -> bool {
    const FIELDS: [&str; 5] = ["content-length", "content-encoding", "content-range", "set-cookie", "set-cookie2"];
    FIELDS.iter().any(|field| name.eq_ignore_ascii_case(field.as_bytes()))
}

/// The head of a 304 made from a stored response (§15.4.5 names the fields it carries): those that guide a
/// cache, and what is not about the representation. `Last-Modified` only where there is no `ETag`.
pub fn not_modified(stored: &Fields) -> Response {
    let tagged = stored.has("etag");
    let left_out = |field: &Field<'_>| {
        let representation = field.name.get(..8).is_some_and(|start| start.eq_ignore_ascii_case(b"content-"));
        if representation {
            return !field.is("content-location") && !field.is("content-security-policy");
        }
        is_not_stored(field.name) || field.is("accept-ranges") || (tagged && field.is("last-modified"))
    };
    let mut head = Response::new(304);
    for field in stored.iter().filter(|field| !left_out(field)) {
        head.fields.append(field.name, field.value);
    }
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: &str = "Sun, 06 Nov 1994 12:00:00 GMT";
    const LATER: &str = "Sun, 06 Nov 1994 13:00:00 GMT";

    fn response(status: u16, lines: &[(&str, &str)]) -> Response {
        Response { fields: lines.iter().copied().collect(), ..Response::new(status) }
    }

    fn asked(name: &str, value: &str, stored: &[(&str, &str)]) -> Precondition {
        let mut request = Request::new(b"GET", b"/");
        request.fields.append(name.as_bytes(), value.as_bytes());
        precondition(&request, &response(200, stored))
    }

    fn lines(head: &Response) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        head.fields.iter().map(|field| (text(field.name), text(field.value))).collect()
    }

    #[test]
    fn if_none_match_compares_weakly_and_respects_quotes() {
        for (list, tag) in [
            ("\"a\"", "\"a\""),
            ("W/\"a\"", "\"a\""),
            ("\"a\"", "W/\"a\""),
            ("\"x\", W/\"a\" ,\"y\"", "\"a\""),
            ("\"a,b\"", "\"a,b\""),
            ("\"\\\", \"a\"", "\"a\""),
            ("*", "\"a\""),
        ] {
            assert_eq!(asked("If-None-Match", list, &[("ETag", tag)]), Precondition::NotModified, "{list}");
        }
        for (list, tag) in
            [("\"a,b\"", "\"a\""), ("a", "\"a\""), ("\"A\"", "\"a\""), ("", "\"a\""), ("w/\"a\"", "\"a\"")]
        {
            assert_eq!(asked("If-None-Match", list, &[("ETag", tag)]), Precondition::Send, "{list}");
        }
        assert_eq!(asked("If-None-Match", "\"a\"", &[]), Precondition::Send);
    }

    #[test]
    fn if_modified_since_compares_dates() {
        let stored = [("Last-Modified", NOON)];
        assert_eq!(asked("If-Modified-Since", NOON, &stored), Precondition::NotModified);
        assert_eq!(asked("If-Modified-Since", LATER, &stored), Precondition::NotModified);
        assert_eq!(asked("If-Modified-Since", NOON, &[("Last-Modified", LATER)]), Precondition::Send);
        assert_eq!(asked("If-Modified-Since", "yesterday", &stored), Precondition::Send);
        assert_eq!(asked("If-Modified-Since", LATER, &[("Date", NOON)]), Precondition::NotModified);
        assert_eq!(asked("If-Modified-Since", LATER, &[]), Precondition::Send);
    }

    #[test]
    fn if_none_match_silences_if_modified_since() {
        let mut request = Request::new(b"GET", b"/");
        request.fields.append(b"If-None-Match", b"\"b\"");
        request.fields.append(b"If-Modified-Since", LATER.as_bytes());
        let stored = response(200, &[("ETag", "\"a\""), ("Last-Modified", NOON)]);
        assert_eq!(precondition(&request, &stored), Precondition::Send);
    }

    #[test]
    fn only_a_200_becomes_a_304_and_other_conditions_go_to_the_origin() {
        let mut request = Request::new(b"GET", b"/");
        request.fields.append(b"If-None-Match", b"*");
        assert_eq!(precondition(&request, &response(404, &[("ETag", "\"a\"")])), Precondition::Send);
        assert_eq!(asked("If-Match", "\"a\"", &[("ETag", "\"a\"")]), Precondition::Forward);
        assert_eq!(asked("If-Unmodified-Since", NOON, &[]), Precondition::Forward);
    }

    #[test]
    fn the_stored_validators_replace_the_clients() {
        let mut request = Request::new(b"GET", b"/");
        request.fields.append(b"If-None-Match", b"\"theirs\"");
        request.fields.append(b"Range", b"bytes=0-1");
        let stored = response(200, &[("ETag", "W/\"ours\""), ("Last-Modified", NOON)]);
        assert!(make_conditional(&mut request, &stored));
        assert_eq!(request.fields.first("if-none-match"), Some(&b"W/\"ours\""[..]));
        assert_eq!(request.fields.first("if-modified-since"), Some(NOON.as_bytes()));
        assert!(!request.fields.has("range"));
        assert!(!make_conditional(&mut request, &response(200, &[("Last-Modified", "never")])));
        assert!(!request.fields.has("if-none-match"));
    }

    #[test]
    fn a_304_selects_by_its_validator() {
        let stored = response(200, &[("ETag", "\"a\""), ("Last-Modified", NOON)]);
        let of = |lines: &[(&str, &str)]| selects(&response(304, lines), &stored);
        assert!(of(&[("ETag", "\"a\"")]) && of(&[("ETag", "W/\"a\"")]) && of(&[]));
        assert!(of(&[("Last-Modified", NOON)]) && of(&[("ETag", "\"a\""), ("Last-Modified", LATER)]));
        assert!(!of(&[("ETag", "\"b\"")]) && !of(&[("Last-Modified", LATER)]));
        assert!(!selects(&response(304, &[("ETag", "\"a\"")]), &response(200, &[("ETag", "W/\"a\"")])));
    }

    #[test]
    fn freshening_replaces_all_fields_but_those_of_the_body() {
        let stored = response(
            200,
            &[
                ("ETag", "\"a\""),
                ("X-Old", "1"),
                ("X-Both", "1"),
                ("x-both", "2"),
                ("Content-Length", "9"),
                ("Content-Encoding", "gzip"),
                ("Date", NOON),
            ],
        );
        let new = response(
            304,
            &[
                ("X-Both", "3"),
                ("Cache-Control", "max-age=3600"),
                ("Content-Length", "0"),
                ("Content-Encoding", "br"),
                ("Set-Cookie", "a=b"),
                ("Connection", "X-Hop"),
                ("X-Hop", "1"),
                ("Age", "7"),
            ],
        );
        let expected = [
            ("ETag", "\"a\""),
            ("X-Old", "1"),
            ("Content-Length", "9"),
            ("Content-Encoding", "gzip"),
            ("X-Both", "3"),
            ("Cache-Control", "max-age=3600"),
            ("Age", "7"),
        ];
        let found = lines(&freshen(&stored, &new, |_| {}));
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(freshen(&stored, &new, |_| {}).status, 200);
    }

    #[test]
    fn a_304_carries_what_guides_a_cache() {
        let stored = [
            ("ETag", "\"a\""),
            ("Last-Modified", NOON),
            ("Content-Type", "text/html"),
            ("Content-Length", "9"),
            ("Content-Location", "/x"),
            ("Cache-Control", "max-age=9"),
            ("Vary", "foo"),
            ("Date", NOON),
        ];
        let head = not_modified(&stored.into_iter().collect());
        let names: Vec<_> = lines(&head).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["ETag", "Content-Location", "Cache-Control", "Vary", "Date"]);
        assert_eq!(head.status, 304);
        let head = not_modified(&[("Last-Modified", NOON)].into_iter().collect());
        assert!(head.fields.has("last-modified"));
    }

    #[test]
    fn an_edit_sees_the_whole_head_and_counts_for_what_the_304_brought() {
        let stored =
            response(200, &[("Content-Type", "text/html"), ("X-Edit", "1"), ("X-Old", "<a>"), ("Server", "s")]);
        let new = response(304, &[("Cache-Control", "max-age=0"), ("Server", "s"), ("X-New", "one")]);
        let head = freshen(&stored, &new, |head| {
            assert_eq!((head.status, head.fields.has("content-type")), (200, true));
            head.fields.set(b"Cache-Control", b"max-age=60");
            head.fields.append(b"X-Edit", b"2");
            head.fields.append(b"X-New", b"two");
            head.fields.append(b"X-Made", b"3");
            head.fields.set(b"X-Old", b"<<a>>");
            head.fields.remove(b"Server");
        });
        let pairs = lines(&head);
        let found: Vec<_> = pairs.iter().map(|(name, value)| (&**name, &**value)).collect();
        let kept = [("Content-Type", "text/html"), ("X-Edit", "1"), ("X-Old", "<a>")];
        let brought = [("Cache-Control", "max-age=60"), ("X-New", "one"), ("X-New", "two"), ("X-Made", "3")];
        assert_eq!(found, [&kept[..], &brought[..]].concat());
    }
}
