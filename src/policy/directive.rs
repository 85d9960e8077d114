//! `Cache-Control` and `Pragma` (RFC 9111 §5.2, §5.4), read once into a flat record.

use std::time::Duration;

use super::{targeted, terms::Ignore};
use crate::message::{Fields, members};

/// The longest delta-seconds a directive can say; more counts as this (RFC 9111 §1.2.2).
pub const MAX_SECONDS: u64 = 1 << 31;

/// How far `no-cache` or `private` reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// The directive is absent.
    #[default]
    None,
    /// It names fields: the response counts without them (§5.2.2.4, §5.2.2.7).
    Fields,
    /// It is about the whole response.
    Whole,
}

impl Scope {
    /// `private=x` names one field, `private="x, y"` two; a form that names none is about the whole.
    fn widened(self, value: Option<&[u8]>) -> Self {
        match (self, value) {
            (Self::Whole, _) | (_, None) => Self::Whole,
            (_, Some(value)) if members(unquoted(value)).next().is_none() => Self::Whole,
            _ => Self::Fields,
        }
    }
}

/// The directives of one message, of a request as well as of a response. The first one of a kind
/// counts; a number that is none counts as zero, which means stale (§4.2.1). In a field that is malformed, whatever
/// restricts counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheControl {
    /// `max-age` (§5.2.1.1, §5.2.2.1).
    pub max_age: Option<Duration>,
    /// `s-maxage` (§5.2.2.10).
    pub s_maxage: Option<Duration>,
    /// `stale-while-revalidate` (RFC 5861 §3).
    pub stale_while_revalidate: Option<Duration>,
    /// `stale-if-error` (RFC 5861 §4).
    pub stale_if_error: Option<Duration>,
    /// `max-stale` (§5.2.1.2); without a value any staleness: [`Duration::MAX`].
    pub max_stale: Option<Duration>,
    /// `min-fresh` (§5.2.1.3).
    pub min_fresh: Option<Duration>,
    /// `no-cache` (§5.2.1.4, §5.2.2.4).
    pub no_cache: Scope,
    /// `private` (§5.2.2.7).
    pub private: Scope,
    /// `no-store` (§5.2.1.5, §5.2.2.5).
    pub no_store: bool,
    /// `public` (§5.2.2.9).
    pub public: bool,
    /// `must-revalidate` (§5.2.2.2).
    pub must_revalidate: bool,
    /// `proxy-revalidate` (§5.2.2.8).
    pub proxy_revalidate: bool,
    /// `must-understand` (§5.2.2.3).
    pub must_understand: bool,
    /// `immutable` (RFC 8246 §2).
    pub immutable: bool,
    /// `only-if-cached` (§5.2.1.7).
    pub only_if_cached: bool,
    /// Whether they stand in a field that is for caches like this one (RFC 9213): `Expires` and `Pragma` say
    /// nothing then.
    pub targeted: bool,
}

impl CacheControl {
    /// Reads every `Cache-Control` line of `fields`. Allocates nothing.
    pub fn of(fields: &Fields) -> Self {
        let mut found = Self::default();
        for member in fields.members("cache-control") {
            let (name, value) = split(member);
            found.take(name, value);
        }
        if !fields.members("cache-control").all(is_directive) {
            found.be_careful(fields);
        }
        found
    }

    /// Those of a response: of the field that is for caches like this one if there is one, else of `Cache-Control`
    /// (RFC 9213 §2.2).
    pub fn of_response(fields: &Fields) -> Self {
        targeted::of(fields).unwrap_or_else(|| Self::of(fields))
    }

    /// What a field means that is not written as §5.2 says, its sender alone knows: every word in it that restricts
    /// counts, wherever it stands, and nothing sets it aside.
    fn be_careful(&mut self, fields: &Fields) {
        self.must_understand = false;
        for word in fields.all("cache-control").flat_map(|line| line.split(|&byte| !is_token_byte(byte))) {
            let is = |directive: &str| word.eq_ignore_ascii_case(directive.as_bytes());
            self.no_store |= is("no-store");
            self.must_revalidate |= is("must-revalidate");
            self.proxy_revalidate |= is("proxy-revalidate");
            if is("private") {
                self.private = Scope::Whole;
            } else if is("no-cache") {
                self.no_cache = Scope::Whole;
            }
        }
    }

    pub(super) fn take(&mut self, name: &[u8], value: Option<&[u8]>) {
        let is = |word: &str| name.eq_ignore_ascii_case(word.as_bytes());
        if is("max-age") {
            self.max_age.get_or_insert(seconds(value));
        } else if is("s-maxage") {
            self.s_maxage.get_or_insert(seconds(value));
        } else if is("stale-while-revalidate") {
            self.stale_while_revalidate.get_or_insert(seconds(value));
        } else if is("stale-if-error") {
            self.stale_if_error.get_or_insert(seconds(value));
        } else if is("max-stale") {
            self.max_stale.get_or_insert(if value.is_none() { Duration::MAX } else { seconds(value) });
        } else if is("min-fresh") {
            self.min_fresh.get_or_insert(seconds(value));
        } else if is("no-cache") {
            self.no_cache = self.no_cache.widened(value);
        } else if is("private") {
            self.private = self.private.widened(value);
        } else if let Some(flag) = self.flag(name) {
            *flag = true;
        }
    }

    /// The directives that have no argument; one that has got one all the same still counts (§5.2).
    fn flag(&mut self, name: &[u8]) -> Option<&mut bool> {
        let is = |word: &str| name.eq_ignore_ascii_case(word.as_bytes());
        Some(match name.first()?.to_ascii_lowercase() {
            b'n' if is("no-store") => &mut self.no_store,
            b'p' if is("public") => &mut self.public,
            b'p' if is("proxy-revalidate") => &mut self.proxy_revalidate,
            b'm' if is("must-revalidate") => &mut self.must_revalidate,
            b'm' if is("must-understand") => &mut self.must_understand,
            b'i' if is("immutable") => &mut self.immutable,
            b'o' if is("only-if-cached") => &mut self.only_if_cached,
            _ => return None,
        })
    }
}

/// Whether `Pragma: no-cache` stands in for an absent `Cache-Control` (§5.4).
pub fn pragma_no_cache(fields: &Fields) -> bool {
    !fields.has("cache-control") && fields.members("pragma").any(|member| member.eq_ignore_ascii_case(b"no-cache"))
}

/// The names, in lower case, of the fields that `no-cache="…"` and `private="…"` keep from being reused:
/// a store drops them and may then keep the rest (§5.2.2.4, §5.2.2.7). Empty when there are none.
pub fn fields_to_drop(fields: &Fields, ignore: &Ignore) -> Vec<Vec<u8>> {
    let mut names = Vec::new();
    let mut take = |name: &[u8], value: Option<&[u8]>| {
        let applies = (name.eq_ignore_ascii_case(b"no-cache") && !ignore.no_cache)
            || (name.eq_ignore_ascii_case(b"private") && !ignore.private);
        if applies && let Some(value) = value {
            names.extend(members(unquoted(value)).map(<[u8]>::to_ascii_lowercase));
        }
    };
    if !targeted::each(fields, &mut take) {
        for (name, value) in fields.members("cache-control").map(split) {
            take(name, value);
        }
    }
    names
}

/// Name and argument of one directive. Blanks around `=` stay with the argument and make it malformed.
fn split(member: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'=', member) {
        Some(at) => {
            let name = member.get(..at).unwrap_or_default();
            let trimmed = name.trim_ascii_end();
            let value = if trimmed.len() == name.len() { member.get(at + 1..).unwrap_or_default() } else { b" " };
            (trimmed, Some(value))
        }
        None => (member, None),
    }
}

/// Whether a member is `token [ "=" ( token / quoted-string ) ]` (§5.2).
fn is_directive(member: &[u8]) -> bool {
    let is_token = |text: &[u8]| !text.is_empty() && text.iter().all(|&byte| is_token_byte(byte));
    match memchr::memchr(b'=', member) {
        Some(at) => {
            let (name, value) = (member.get(..at).unwrap_or_default(), member.get(at + 1..).unwrap_or_default());
            is_token(name) && (is_token(value) || is_quoted(value))
        }
        None => is_token(member),
    }
}

/// Whether this is one quoted string and nothing behind it (RFC 9110 §5.6.4).
fn is_quoted(text: &[u8]) -> bool {
    let Some(inner) = text.strip_prefix(b"\"") else { return false };
    let mut escaped = false;
    let end = inner.iter().position(|&byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.is_some_and(|at| at + 1 == inner.len())
}

/// RFC 9110 §5.6.2.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// The inside of a quoted string; anything else as it is.
fn unquoted(value: &[u8]) -> &[u8] {
    value.strip_prefix(b"\"").and_then(|inner| inner.strip_suffix(b"\"")).unwrap_or(value)
}

fn seconds(value: Option<&[u8]>) -> Duration {
    delta_seconds(unquoted(value.unwrap_or_default())).unwrap_or_default()
}

/// Reads delta-seconds (§1.2.2): digits only, clamped to [`MAX_SECONDS`]; `None` when it is no such number.
pub fn delta_seconds(text: &[u8]) -> Option<Duration> {
    if text.is_empty() {
        return None;
    }
    let mut seconds = 0u64;
    for digit in text {
        if !digit.is_ascii_digit() {
            return None;
        }
        seconds = seconds.saturating_mul(10).saturating_add(u64::from(digit - b'0')).min(MAX_SECONDS);
    }
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str]) -> CacheControl {
        CacheControl::of(&lines.iter().map(|line| ("Cache-Control", *line)).collect())
    }

    fn max_age(line: &str) -> Option<u64> {
        of(&[line]).max_age.map(|age| age.as_secs())
    }

    #[test]
    fn names_are_read_in_any_case_and_unknown_ones_are_left_out() {
        let found = of(&["MAX-AGE=10, foo, bar=\"a, no-store\"", "Public"]);
        assert_eq!(
            found,
            CacheControl { max_age: Some(Duration::from_secs(10)), public: true, ..CacheControl::default() }
        );
    }

    #[test]
    fn a_malformed_number_means_stale() {
        for line in ["max-age", "max-age=", "max-age=-1", "max-age=1.5", "max-age='5'", "max-age =5", "max-age= 5"] {
            assert_eq!(max_age(line), Some(0), "{line}");
        }
        assert_eq!(max_age("max-age=\"5\""), Some(5));
        assert_eq!(max_age("max-age=005"), Some(5));
    }

    #[test]
    fn a_huge_number_is_clamped() {
        assert_eq!(max_age("max-age=99999999999999999999999"), Some(MAX_SECONDS));
        assert_eq!(max_age("max-age=2147483649"), Some(MAX_SECONDS));
    }

    #[test]
    fn the_first_of_two_counts() {
        assert_eq!(max_age("max-age=1, max-age=9"), Some(1));
        assert_eq!(of(&["s-maxage=9", "s-maxage=1"]).s_maxage, Some(Duration::from_secs(9)));
    }

    #[test]
    fn qualified_forms_name_fields() {
        assert_eq!(of(&["private=\"set-cookie\""]).private, Scope::Fields);
        assert_eq!(of(&["no-cache=x-a"]).no_cache, Scope::Fields);
        assert_eq!(of(&["private=\"\""]).private, Scope::Whole);
        assert_eq!(of(&["private=\"a\", private"]).private, Scope::Whole);
        assert_eq!(of(&["private, private=\"a\""]).private, Scope::Whole);
        let fields: Fields = [("cache-control", "private=\"Set-Cookie, a\", no-cache=\"x-b\"")].into_iter().collect();
        assert_eq!(fields_to_drop(&fields, &Ignore::default()), [&b"set-cookie"[..], b"a", b"x-b"]);
        let ignore = Ignore { private: true, ..Ignore::default() };
        assert_eq!(fields_to_drop(&fields, &ignore), [&b"x-b"[..]]);
    }

    #[test]
    fn what_restricts_counts_anywhere_in_a_malformed_field() {
        for line in
            ["max-age=60; private", "max-age=60 private", "foo=\"a, PRIVATE", "private =\"x\"", "x=a\"b, private=\"c\""]
        {
            assert_eq!(of(&[line]).private, Scope::Whole, "{line}");
        }
        assert!(of(&["foo=\"no-store, x, private"]).no_store);
        assert!(of(&["max-age=60", "foo=\"x", "a, no-store"]).no_store, "the quote goes on in the next line");
        assert_eq!(of(&["max-age=60;no-cache=\"x\""]).no_cache, Scope::Whole);
        let aside = of(&["must-understand, no-store; x"]);
        assert!(aside.no_store && !aside.must_understand);
        assert!(of(&["max-age=60; must-revalidate"]).must_revalidate);
        assert!(of(&["max-age=60; proxy-revalidate"]).proxy_revalidate);
    }

    #[test]
    fn words_in_a_well_formed_field_count_where_they_are_directives() {
        for line in
            ["foo=\"no-store, \\\"private\"", "x-private, no-storex", "private=\"set-cookie\", max-age=5", "a=no-store"]
        {
            let found = of(&[line]);
            assert!(!found.no_store && found.private != Scope::Whole, "{line}");
        }
        assert!(!of(&["x-private; my-no-store"]).no_store, "whole words only");
    }

    #[test]
    fn pragma_counts_only_without_cache_control() {
        assert!(pragma_no_cache(&[("Pragma", "foo, No-Cache")].into_iter().collect()));
        assert!(!pragma_no_cache(&[("Pragma", "no-cache"), ("Cache-Control", "max-age=1")].into_iter().collect()));
    }

    #[test]
    fn max_stale_without_a_value_is_any() {
        assert_eq!(of(&["max-stale"]).max_stale, Some(Duration::MAX));
        assert_eq!(of(&["max-stale=5"]).max_stale, Some(Duration::from_secs(5)));
    }
}
