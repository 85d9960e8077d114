//! `normalize-uri` (HAProxy manual §4.2): one kind of normalization a rule (RFC 3986 §6.2.2).

use crate::rule::txn::Txn;

/// One kind of normalization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normalizer {
    /// `fragment-encode`: `#` becomes `%23`.
    FragmentEncode,
    /// `fragment-strip`: `#` and what follows it goes.
    FragmentStrip,
    /// `path-merge-slashes`: slashes side by side become one.
    MergeSlashes,
    /// `path-strip-dot`: segments that are `.` go.
    StripDot,
    /// `path-strip-dotdot`: segments that are `..` go, each with the one before it.
    StripDotdot {
        /// Those at the beginning go as well.
        full: bool,
    },
    /// `percent-decode-unreserved`: escapes of letters, digits, `-`, `.`, `_` and `~` become what they stand for.
    DecodeUnreserved {
        /// An escape that is none is an error.
        strict: bool,
    },
    /// `percent-to-uppercase`: the digits of escapes become upper case.
    UppercaseEscapes {
        /// An escape that is none is an error.
        strict: bool,
    },
    /// `query-sort-by-name`: parameters in the order of their names, those of one name as they are.
    SortQuery,
}

impl Normalizer {
    /// Normalizes the request's target; `false` when it has to be refused.
    pub(super) fn apply(self, txn: &mut Txn<'_>) -> bool {
        let request = &mut *txn.request;
        let (path, query) = (request.path().to_vec(), request.query().map(<[u8]>::to_vec));
        let Some((new_path, new_query)) = self.normalized(&path, query.as_deref()) else { return false };
        if new_path != path {
            request.set_path(&new_path);
        }
        if new_query != query {
            request.set_query(new_query.as_deref());
        }
        true
    }

    /// Path and query as they should be; `None`: an escape is none.
    fn normalized(self, path: &[u8], query: Option<&[u8]>) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
        let of_path = |path: Vec<u8>| Some((path, query.map(<[u8]>::to_vec)));
        let both = |edit: &dyn Fn(&[u8]) -> Option<Vec<u8>>| {
            let query = match query {
                Some(query) => Some(edit(query)?),
                None => None,
            };
            Some((edit(path)?, query))
        };
        match self {
            Self::FragmentEncode => both(&|text| Some(encoded(text))),
            Self::FragmentStrip => Some(stripped(path, query)),
            Self::MergeSlashes => of_path(merged(path)),
            Self::StripDot => of_path(without_dot(path)),
            Self::StripDotdot { full } => of_path(without_dotdot(path, full)),
            Self::DecodeUnreserved { strict } => both(&|text| {
                escapes(text, strict, |value, raw, out| match is_unreserved(value) {
                    true => out.push(value),
                    false => out.extend_from_slice(raw),
                })
            }),
            Self::UppercaseEscapes { strict } => {
                both(&|text| escapes(text, strict, |_, raw, out| out.extend(raw.iter().map(u8::to_ascii_uppercase))))
            }
            Self::SortQuery => Some((path.to_vec(), query.map(sorted))),
        }
    }
}

fn encoded(text: &[u8]) -> Vec<u8> {
    text.split(|&byte| byte == b'#').collect::<Vec<_>>().join(&b"%23"[..])
}

fn stripped(path: &[u8], query: Option<&[u8]>) -> (Vec<u8>, Option<Vec<u8>>) {
    match memchr::memchr(b'#', path) {
        Some(at) => (path.get(..at).unwrap_or_default().to_vec(), None),
        None => {
            let before = |query: &[u8]| query.split(|&byte| byte == b'#').next().unwrap_or_default().to_vec();
            (path.to_vec(), query.map(before))
        }
    }
}

fn merged(path: &[u8]) -> Vec<u8> {
    let mut merged = path.to_vec();
    merged.dedup_by(|next, before| *next == b'/' && *before == b'/');
    merged
}

/// The segments of a path behind its first slash; `None` for what has none (`*`).
fn segments(path: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    Some(path.strip_prefix(b"/")?.split(|&byte| byte == b'/'))
}

fn without_dot(path: &[u8]) -> Vec<u8> {
    let Some(segments) = segments(path) else { return path.to_vec() };
    let mut kept = Vec::with_capacity(path.len());
    let (mut first, mut ends_in_dot) = (true, false);
    for segment in segments {
        ends_in_dot = segment == b".";
        if ends_in_dot {
            continue;
        }
        kept.push(b'/');
        kept.extend_from_slice(segment);
        first = false;
    }
    if ends_in_dot || first {
        kept.push(b'/');
    }
    kept
}

fn without_dotdot(path: &[u8], full: bool) -> Vec<u8> {
    let Some(all) = segments(path) else { return path.to_vec() };
    let mut kept: Vec<&[u8]> = Vec::new();
    let mut ends_in_dots = false;
    for segment in all {
        ends_in_dots = segment == b"..";
        match kept.last() {
            _ if !ends_in_dots => kept.push(segment),
            Some(last) if *last != b".." => {
                kept.pop();
            }
            _ if full => {}
            _ => kept.push(segment),
        }
    }
    if ends_in_dots || kept.is_empty() {
        kept.push(b"");
    }
    [&b"/"[..], &kept.join(&b'/')].concat()
}

/// RFC 3986 §2.3.
const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// The text with each escape as `edit` writes it; it gets the byte and the escape. `None`: `strict`, and a `%` begins
/// no escape.
fn escapes(text: &[u8], strict: bool, edit: impl Fn(u8, &[u8], &mut Vec<u8>)) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'%', rest) {
        let (before, from) = rest.split_at_checked(at)?;
        out.extend_from_slice(before);
        let raw = from.get(..3).filter(|raw| raw.iter().skip(1).all(u8::is_ascii_hexdigit));
        let value =
            raw.and_then(|raw| std::str::from_utf8(raw.get(1..)?).ok()).map(|digits| u8::from_str_radix(digits, 16));
        rest = match (raw, value) {
            (Some(raw), Some(Ok(value))) => {
                edit(value, raw, &mut out);
                from.get(3..)?
            }
            _ if strict => return None,
            _ => {
                out.push(b'%');
                from.get(1..)?
            }
        };
    }
    out.extend_from_slice(rest);
    Some(out)
}

fn sorted(query: &[u8]) -> Vec<u8> {
    let name = |parameter: &&[u8]| parameter.split(|&byte| byte == b'=').next().unwrap_or_default().to_vec();
    let mut parameters: Vec<&[u8]> = query.split(|&byte| byte == b'&').collect();
    // Nothing behind the last `&` is no parameter.
    parameters.pop_if(|last| last.is_empty());
    parameters.sort_by_key(name);
    parameters.join(&b'&')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(normalizer: Normalizer, target: &str) -> String {
        let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let Some((path, query)) = normalizer.normalized(path.as_bytes(), query.map(str::as_bytes)) else {
            return "refused".to_owned();
        };
        let query = query.map(|query| format!("?{}", String::from_utf8(query).unwrap())).unwrap_or_default();
        String::from_utf8(path).unwrap() + &query
    }

    /// The examples of HAProxy's manual, and what HAProxy 2.6 was seen to do.
    #[test]
    fn targets_are_normalized() {
        use Normalizer::*;
        let (dots, all_dots) = (StripDotdot { full: false }, StripDotdot { full: true });
        let (decode, upper) = (DecodeUnreserved { strict: false }, UppercaseEscapes { strict: false });
        for (normalizer, target, expected) in [
            (FragmentEncode, "/#foo", "/%23foo"),
            (FragmentEncode, "/a?b#c#d", "/a?b%23c%23d"),
            (FragmentStrip, "/#foo", "/"),
            (FragmentStrip, "/a?b#c", "/a?b"),
            (FragmentStrip, "/a#b?c", "/a"),
            (MergeSlashes, "//", "/"),
            (MergeSlashes, "/foo//bar", "/foo/bar"),
            (MergeSlashes, "/nms//a///b?x//y", "/nms/a/b?x//y"),
            (StripDot, "/.", "/"),
            (StripDot, "/./bar/", "/bar/"),
            (StripDot, "/a/./a", "/a/a"),
            (StripDot, "/.well-known/", "/.well-known/"),
            (StripDot, "/nsd/./a/.", "/nsd/a/"),
            (StripDot, "/nsd/..", "/nsd/.."),
            (StripDot, "/nsd/.?a/./b", "/nsd/?a/./b"),
            (StripDot, "*", "*"),
            (dots, "/foo/../", "/"),
            (dots, "/foo/../bar/", "/bar/"),
            (dots, "/foo/bar/../", "/foo/"),
            (dots, "/foo/bar/..", "/foo/"),
            (dots, "/../bar/", "/../bar/"),
            (dots, "/bar/../../", "/../"),
            (dots, "/foo//../", "/foo/"),
            (dots, "/foo/%2E%2E/", "/foo/%2E%2E/"),
            (dots, "/..", "/../"),
            (dots, "/a/..", "/"),
            (all_dots, "/../bar/", "/bar/"),
            (all_dots, "/bar/../../", "/"),
            (all_dots, "/nfull/..?../", "/?../"),
            (all_dots, "/..", "/"),
            (decode, "/%61dmin", "/admin"),
            (decode, "/foo%3Fbar=baz", "/foo%3Fbar=baz"),
            (decode, "/%%36%36", "/%66"),
            (decode, "/%ZZ?%7e%", "/%ZZ?~%"),
            (DecodeUnreserved { strict: true }, "/%%36%36", "refused"),
            (DecodeUnreserved { strict: true }, "/%61?%ZZ", "refused"),
            (DecodeUnreserved { strict: true }, "/%61%2e%2F%7e?%61", "/a.%2F~?a"),
            (upper, "/%6f", "/%6F"),
            (upper, "/%zz", "/%zz"),
            (UppercaseEscapes { strict: true }, "/%zz", "refused"),
            (UppercaseEscapes { strict: true }, "/a?%ab", "/a?%AB"),
            (SortQuery, "/?c=3&a=1&b=2", "/?a=1&b=2&c=3"),
            (SortQuery, "/?aaa=3&a=1&aa=2", "/?a=1&aa=2&aaa=3"),
            (SortQuery, "/?a=3&b=4&a=1&b=5&a=2", "/?a=3&a=1&a=2&b=4&b=5"),
            (SortQuery, "/nqs?aaa=3&a=1&aa=2&&=1&b", "/nqs?&=1&a=1&aa=2&aaa=3&b"),
            (SortQuery, "/nqs?", "/nqs?"),
            (SortQuery, "/nqs", "/nqs"),
        ] {
            assert_eq!(normal(normalizer, target), expected, "{normalizer:?} {target}");
        }
    }
}
