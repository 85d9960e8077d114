//! Variants of one key (RFC 9111 §4.1, RFC 9110 §12.5.5).

use smallvec::SmallVec;

use super::key::{absent, close, open};
use crate::message::{Fields, Request, members};

/// What `Vary` says.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Vary {
    /// No `Vary`: one response for all.
    #[default]
    None,
    /// Depends on these request fields: lower case, sorted, no doubles.
    On(Box<[Box<str>]>),
    /// `*` in any spelling: never reused without validation.
    Any,
}

impl Vary {
    /// Reads every `Vary` line.
    pub fn of(fields: &Fields) -> Self {
        let mut names: Vec<Box<str>> = Vec::new();
        for member in fields.members("vary") {
            if member == b"*" {
                return Self::Any;
            }
            names.push(String::from_utf8_lossy(member).to_ascii_lowercase().into());
        }
        names.sort_unstable();
        names.dedup();
        if names.is_empty() { Self::None } else { Self::On(names.into()) }
    }

    /// Appends what tells this request's variant from others: for each field its presence and its value
    /// normalised as far as §4.1 allows (whitespace, line joining; `Accept-Encoding` by its codings),
    /// length-prefixed. Allocates nothing but room in `out`.
    pub fn write_key(&self, request: &Request, out: &mut Vec<u8>) {
        let Self::On(names) = self else { return };
        for name in names {
            let mut lines = request.fields.all(name).peekable();
            if lines.peek().is_none() {
                absent(out);
                continue;
            }
            let start = open(out);
            match &**name {
                "accept-encoding" => codings(lines, out),
                // Lists whose blanks and case say nothing; their order may.
                "accept" | "accept-charset" | "accept-language" => {
                    join(lines.flat_map(members), out, |byte| {
                        (!byte.is_ascii_whitespace()).then(|| byte.to_ascii_lowercase())
                    });
                }
                // Blanks around commas say nothing in any list.
                _ => join(lines.flat_map(members), out, Some),
            }
            close(start, out);
        }
    }

    /// The fields, in lower case.
    pub fn names(&self) -> &[Box<str>] {
        match self {
            Self::On(names) => names,
            Self::None | Self::Any => &[],
        }
    }

    /// Bytes of heap it holds.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::On(names) => names.iter().map(|name| name.len() + size_of::<Box<str>>()).sum(),
            Self::None | Self::Any => 0,
        }
    }
}

fn join<'a>(pieces: impl Iterator<Item = &'a [u8]>, out: &mut Vec<u8>, keep: impl Fn(u8) -> Option<u8>) {
    for (index, piece) in pieces.enumerate() {
        if index > 0 {
            out.extend_from_slice(b", ");
        }
        out.extend(piece.iter().filter_map(|byte| keep(*byte)));
    }
}

/// One member of `Accept-Encoding`: a coding and whether it is acceptable at all (`q` above 0).
#[derive(Clone, Copy)]
struct Coding<'a> {
    name: &'a [u8],
    accepted: bool,
}

/// `Accept-Encoding` as the set of codings it accepts, sorted: which of them it likes better is not told
/// apart. A refusal is kept where it changes that set: of `identity`, of `*`, or beside an accepted `*`.
fn codings<'a>(lines: impl Iterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    let mut list: SmallVec<[Coding<'a>; 16]> = lines.flat_map(members).map(coding).collect();
    list.sort_by(|a, b| lower(a.name).cmp(lower(b.name)));
    list.dedup_by(|later, first| {
        let same = later.name.eq_ignore_ascii_case(first.name);
        first.accepted |= same && later.accepted;
        same
    });
    let any = list.iter().find(|coding| coding.name == b"*").map(|coding| coding.accepted);
    for coding in list {
        let identity = coding.name.eq_ignore_ascii_case(b"identity");
        let says_something = match coding.accepted {
            true => !identity || any == Some(false),
            false => identity || coding.name == b"*" || any == Some(true),
        };
        if says_something {
            out.extend(lower(coding.name));
            out.extend_from_slice(if coding.accepted { b"," } else { b";q=0," });
        }
    }
}

fn coding(member: &[u8]) -> Coding<'_> {
    let mut parts = member.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let name: &[u8] = match parts.next().unwrap_or_default() {
        name if name.eq_ignore_ascii_case(b"x-gzip") => b"gzip",
        name if name.eq_ignore_ascii_case(b"x-compress") => b"compress",
        name => name,
    };
    Coding { name, accepted: !parts.any(is_zero_weight) }
}

/// `q=0`, `q=0.0`, `q=0.00`, `q=0.000` (RFC 9110 §12.4.2).
fn is_zero_weight(parameter: &[u8]) -> bool {
    let Some(value) = parameter.strip_prefix(b"q=").or_else(|| parameter.strip_prefix(b"Q=")) else { return false };
    value.first() == Some(&b'0') && value.iter().all(|byte| matches!(byte, b'0' | b'.'))
}

fn lower(name: &[u8]) -> impl Iterator<Item = u8> {
    name.iter().map(u8::to_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vary(lines: &[&str]) -> Vary {
        Vary::of(&lines.iter().map(|line| ("Vary", *line)).collect())
    }

    fn key(vary: &Vary, lines: &[(&str, &str)]) -> Vec<u8> {
        let mut request = Request::new(b"GET", b"/");
        for (name, value) in lines {
            request.fields.append(name.as_bytes(), value.as_bytes());
        }
        let mut out = Vec::new();
        vary.write_key(&request, &mut out);
        out
    }

    fn same_encoding(a: &str, b: &str) -> bool {
        let vary = vary(&["Accept-Encoding"]);
        key(&vary, &[("Accept-Encoding", a)]) == key(&vary, &[("accept-encoding", b)])
    }

    #[test]
    fn a_star_anywhere_is_any() {
        for lines in [&["*"][..], &[", *"], &["foo, *"], &["foo", "*"], &[" * "]] {
            assert_eq!(vary(lines), Vary::Any, "{lines:?}");
        }
        assert_eq!(vary(&[]), Vary::None);
        assert_eq!(vary(&[", ,"]), Vary::None);
    }

    #[test]
    fn names_are_lower_case_sorted_and_single() {
        assert_eq!(vary(&["Foo, bar", "FOO"]), Vary::On(["bar", "foo"].map(Box::from).into()));
    }

    #[test]
    fn absent_empty_and_other_values_differ() {
        let vary = vary(&["foo"]);
        let keys =
            [key(&vary, &[]), key(&vary, &[("Foo", "")]), key(&vary, &[("Foo", "a")]), key(&vary, &[("Foo", "A")])];
        for (index, one) in keys.iter().enumerate() {
            assert!(keys.iter().skip(index + 1).all(|other| other != one), "{index}");
        }
    }

    #[test]
    fn values_do_not_run_into_the_next_field() {
        let vary = vary(&["a, b"]);
        assert_ne!(key(&vary, &[("a", "xy"), ("b", "z")]), key(&vary, &[("a", "x"), ("b", "yz")]));
        assert_ne!(key(&vary, &[("a", "x")]), key(&vary, &[("b", "x")]));
    }

    #[test]
    fn lines_are_joined() {
        let vary = vary(&["foo"]);
        assert_eq!(key(&vary, &[("Foo", "1, 2")]), key(&vary, &[("Foo", "1"), ("foo", "2")]));
    }

    #[test]
    fn languages_differ_by_neither_case_nor_blanks() {
        let vary = vary(&["Accept-Language"]);
        let of = |value| key(&vary, &[("Accept-Language", value)]);
        assert_eq!(of("en-US,de;q=0.5"), of("EN-us,  de; q=0.5"));
        assert_ne!(of("en, de"), of("de, en"));
    }

    #[test]
    fn encodings_are_a_set() {
        assert!(same_encoding("gzip, deflate, br", "br;q=1.0, gzip;q=0.8,DEFLATE"));
        assert!(same_encoding("gzip, identity", "x-gzip"));
        assert!(same_encoding("gzip;q=0, br", "br"));
        assert!(same_encoding("gzip;q=0, gzip", "gzip"));
        assert!(same_encoding("", "identity"));
        assert!(!same_encoding("gzip", "br"));
        assert!(!same_encoding("gzip", "gzip, foo"));
        assert!(!same_encoding("*", "gzip;q=0, *"));
        assert!(!same_encoding("gzip", "gzip, identity;q=0"));
        assert!(!same_encoding("gzip, *;q=0", "gzip, identity, *;q=0"));
        assert!(!same_encoding("gzip;q=0.001", ""));
    }
}
