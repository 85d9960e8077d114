//! What a caching rule takes from a request, or orders, before its key is made: the server sees the same, so that
//! nothing outside the key shapes what is stored.

use smallvec::SmallVec;

use crate::message::Request;

/// Names as a rule lists them: exactly, or by what they begin with (`utm_*`). Letters count as written.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Names(Box<[Box<str>]>);

impl Names {
    /// Those of `list`.
    pub fn new<'a>(list: impl IntoIterator<Item = &'a str>) -> Self {
        Self(list.into_iter().map(Box::from).collect())
    }

    /// Whether `name` is among them.
    pub fn has(&self, name: &[u8]) -> bool {
        self.0.iter().any(|own| match own.strip_suffix('*') {
            Some(start) => name.starts_with(start.as_bytes()),
            None => name == own.as_bytes(),
        })
    }
}

/// One such edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// `strip query …`: these parameters go, and the `?` with the last of them.
    StripQuery(Names),
    /// `key query(…)`: only these parameters stay.
    KeepQuery(Names),
    /// `normalise query-order`: parameters by name; those of one name keep their order.
    SortQuery,
    /// `strip cookies [except …]`: all cookies but these go.
    StripCookies(Names),
    /// `normalise case`: the path in lower case.
    LowerPath,
    /// `normalise accept-language`: languages in lower case, those liked best first, then by name (RFC 9110 §12.5.4).
    SortLanguages,
}

impl Rewrite {
    /// Edits `request`, if there is anything to edit.
    pub fn apply(&self, request: &mut Request) {
        match self {
            Self::StripQuery(names) => query(request, |params| params.retain(|param| !names.has(name(param)))),
            Self::KeepQuery(names) => query(request, |params| params.retain(|param| names.has(name(param)))),
            Self::SortQuery => query(request, |params| params.sort_by_key(|param| name(param))),
            Self::StripCookies(except) => cookies(request, except),
            Self::LowerPath => {
                if request.path().iter().any(u8::is_ascii_uppercase) {
                    let path = request.path().to_ascii_lowercase();
                    request.set_path(&path);
                }
            }
            Self::SortLanguages => languages(request),
        }
    }
}

type Pieces<'a> = SmallVec<[&'a [u8]; 16]>;

fn query(request: &mut Request, edit: impl FnOnce(&mut Pieces<'_>)) {
    let Some(whole) = request.query().filter(|query| !query.is_empty()) else { return };
    let mut params: Pieces<'_> = whole.split(|byte| *byte == b'&').collect();
    edit(&mut params);
    let edited = (!params.is_empty()).then(|| params.join(&b'&'));
    drop(params);
    if edited.as_deref() != Some(whole) {
        request.set_query(edited.as_deref());
    }
}

/// The name of `name=value`.
fn name(pair: &[u8]) -> &[u8] {
    pair.split(|byte| *byte == b'=').next().unwrap_or_default().trim_ascii()
}

fn cookies(request: &mut Request, except: &Names) {
    let kept: Vec<Vec<u8>> = request
        .fields
        .all("cookie")
        .map(|line| {
            let pairs = line.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
            pairs.filter(|pair| except.has(name(pair))).collect::<Pieces<'_>>().join(&b"; "[..])
        })
        .filter(|line| !line.is_empty())
        .collect();
    request.fields.remove(b"Cookie");
    for line in kept {
        request.fields.append(b"Cookie", &line);
    }
}

fn languages(request: &mut Request) {
    if !request.fields.has("accept-language") {
        return;
    }
    let mut ranges: Vec<Vec<u8>> = request.fields.members("accept-language").map(in_lower_case).collect();
    ranges.sort_by(|a, b| weight(b).total_cmp(&weight(a)).then_with(|| a.cmp(b)));
    ranges.dedup();
    request.fields.set(b"Accept-Language", &ranges.join(&b", "[..]));
}

fn in_lower_case(member: &[u8]) -> Vec<u8> {
    member.iter().filter(|byte| !byte.is_ascii_whitespace()).map(u8::to_ascii_lowercase).collect()
}

/// A weight (RFC 9110 §12.4.2): 1 when there is none, and nothing for what is no number.
fn weight(range: &[u8]) -> f32 {
    let value = range.split(|byte| *byte == b';').find_map(|parameter| parameter.strip_prefix(b"q="));
    let weight = |value| std::str::from_utf8(value).ok()?.parse::<f32>().ok();
    value.map_or(1.0, |value| weight(value).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &str) -> Names {
        Names::new(list.split(','))
    }

    fn query(rewrite: &Rewrite, query: Option<&str>) -> Option<String> {
        let mut request = Request::new(b"GET", b"/");
        request.set_query(query.map(str::as_bytes));
        rewrite.apply(&mut request);
        request.query().map(|query| String::from_utf8_lossy(query).into_owned())
    }

    #[test]
    fn parameters_go_by_name() {
        let strip = Rewrite::StripQuery(names("a,utm_*"));
        let keep = Rewrite::KeepQuery(names("a,utm_*"));
        for (before, without, only) in [
            ("a=1&b=2&utm_x=3&utm_=4", Some("b=2"), Some("a=1&utm_x=3&utm_=4")),
            ("a=1", None, Some("a=1")),
            ("b&a&c=a", Some("b&c=a"), Some("a")),
            ("aa=1&A=2", Some("aa=1&A=2"), None),
            ("", Some(""), Some("")),
            ("b=2&&c", Some("b=2&&c"), None),
        ] {
            assert_eq!(query(&strip, Some(before)).as_deref(), without, "{before}");
            assert_eq!(query(&keep, Some(before)).as_deref(), only, "{before}");
        }
        assert_eq!(query(&strip, None), None);
    }

    #[test]
    fn parameters_are_ordered_by_name_alone() {
        let sorted = |text| query(&Rewrite::SortQuery, Some(text)).unwrap();
        assert_eq!(sorted("b=1&a=2&b=0&a=1"), "a=2&a=1&b=1&b=0");
        assert_eq!(sorted("a[]=2&a[]=1"), "a[]=2&a[]=1");
    }

    #[test]
    fn cookies_go_but_for_those_named() {
        let left = |lines: &[&str], except| {
            let mut request = Request::new(b"GET", b"/");
            for line in lines {
                request.fields.append(b"Cookie", line.as_bytes());
            }
            Rewrite::StripCookies(except).apply(&mut request);
            request.fields.all("cookie").map(|line| String::from_utf8_lossy(line).into_owned()).collect::<Vec<_>>()
        };
        let lines = ["a=1; session=2;session_b=3 ; c", "_ga=1"];
        assert_eq!(left(&lines, Names::default()), Vec::<String>::new());
        assert_eq!(left(&lines, names("session*,c")), ["session=2; session_b=3; c"]);
        assert_eq!(left(&lines, names("_ga,a")), ["a=1", "_ga=1"]);
    }

    #[test]
    fn languages_are_in_the_order_of_liking() {
        let mut request = Request::new(b"GET", b"/");
        Rewrite::SortLanguages.apply(&mut request);
        assert!(!request.fields.has("accept-language"));
        for (before, after) in [
            ("en, de", "de, en"),
            ("de,EN", "de, en"),
            ("fr;q=0.5, de;q=0.9 ,en", "en, de;q=0.9, fr;q=0.5"),
            ("de, *;q=0.1, de", "de, *;q=0.1"),
            ("de;q=x, en", "en, de;q=x"),
        ] {
            request.fields.set(b"Accept-Language", before.as_bytes());
            Rewrite::SortLanguages.apply(&mut request);
            assert_eq!(request.fields.first("accept-language"), Some(after.as_bytes()), "{before}");
        }
    }

    #[test]
    fn a_path_can_be_lowered() {
        let mut request = Request::new(b"GET", b"/A/b%2F?Q=1");
        Rewrite::LowerPath.apply(&mut request);
        assert_eq!((request.path(), request.query()), (&b"/a/b%2f"[..], Some(&b"Q=1"[..])));
    }
}
