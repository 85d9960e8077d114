//! Tests on a sample: one method, many patterns (HAProxy manual §7.1).
//!
//! Patterns are compiled together, so that the cost of a request does not grow with their number.

pub mod address;
pub mod number;
pub(in crate::rule) mod substring;
pub(in crate::rule) mod text;

use std::sync::Arc;

use bumpalo::Bump;
use regex::bytes::{Regex, RegexSet};

#[cfg(test)]
use self::number::Operator;
use self::{
    address::Networks,
    number::{Range, Ranges},
    substring::{Substrings, Within},
    text::{Exact, Prefixes, Suffixes},
};
use super::{
    list::View,
    pattern::{self, BadPattern},
    sample::{Sample, Type},
};

/// How a sample is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// The sample exists.
    Found,
    /// It is true.
    Bool,
    /// It lies in a range.
    Int,
    /// It lies in a network.
    Ip,
    /// Its length lies in a range.
    Len,
    /// The same text.
    Str,
    /// A prefix.
    Beg,
    /// A suffix.
    End,
    /// A piece.
    Sub,
    /// A piece between `/` or `?` or the ends.
    Dir,
    /// A piece between `/`, `?`, `.`, `:` or the ends.
    Dom,
    /// The same bytes, written as hexadecimal digits.
    Bin,
    /// A regular expression, anywhere.
    Reg,
    /// The name of an HTTP method (RFC 9110 §9.1: case counts).
    Method,
}

impl Method {
    /// The words of `-m`.
    pub const WORDS: [(&'static str, Self); 13] = [
        ("found", Self::Found),
        ("bool", Self::Bool),
        ("int", Self::Int),
        ("ip", Self::Ip),
        ("len", Self::Len),
        ("str", Self::Str),
        ("beg", Self::Beg),
        ("end", Self::End),
        ("sub", Self::Sub),
        ("dir", Self::Dir),
        ("dom", Self::Dom),
        ("bin", Self::Bin),
        ("reg", Self::Reg),
    ];

    /// The suffixes that ACL keywords may have (`path_beg`).
    pub const SUFFIXES: [(&'static str, Self); 7] = [
        ("_beg", Self::Beg),
        ("_end", Self::End),
        ("_sub", Self::Sub),
        ("_dir", Self::Dir),
        ("_dom", Self::Dom),
        ("_reg", Self::Reg),
        ("_len", Self::Len),
    ];

    /// What an ACL uses when it names none; `None` when it has to name one.
    pub const fn for_type(kind: Type) -> Option<Self> {
        match kind {
            Type::Bool => Some(Self::Bool),
            Type::Int => Some(Self::Int),
            Type::Ip => Some(Self::Ip),
            Type::Str => Some(Self::Str),
            Type::Bin | Type::Method | Type::Any => None,
        }
    }

    /// The type that samples are cast to.
    pub const fn input(self) -> Type {
        match self {
            Self::Found => Type::Any,
            Self::Bool => Type::Bool,
            Self::Int => Type::Int,
            Self::Ip => Type::Ip,
            Self::Bin => Type::Bin,
            _ => Type::Str,
        }
    }

    /// Whether samples of a type can be tested so.
    pub fn tests(self, kind: Type) -> bool {
        kind.casts_to(self.input()) && !(self == Self::Ip && kind == Type::Int)
    }

    /// Whether it takes patterns.
    pub const fn takes_patterns(self) -> bool {
        !matches!(self, Self::Found | Self::Bool)
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, method)| *method == self).map_or("method", |(word, _)| *word)
    }
}

/// The bytes that pairs of hexadecimal digits are; `None` when they are none.
pub fn hexadecimal(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    digits.chunks(2).map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect()
}

/// A compiled test.
#[derive(Clone, Debug)]
pub struct Matcher(Test);

#[derive(Clone, Debug)]
enum Test {
    Found,
    Bool,
    /// No pattern.
    Never,
    Int(Ranges),
    Len(Ranges),
    Ip(Networks),
    Exact(Exact),
    Binary(Exact),
    Prefix(Prefixes),
    Suffix(Suffixes),
    Within(Substrings),
    Regex(Regex),
    Regexes(RegexSet),
    /// The patterns of a file.
    List(Arc<View>),
    /// Patterns with and without `-i`, or of several files.
    Either(Box<[Matcher; 2]>),
}

impl Matcher {
    /// The sample exists.
    pub const fn found() -> Self {
        Self(Test::Found)
    }

    /// Nothing passes.
    pub const fn never() -> Self {
        Self(Test::Never)
    }

    /// The sample is true.
    pub const fn bool() -> Self {
        Self(Test::Bool)
    }

    /// The integer lies in one of the ranges.
    pub fn int(ranges: Vec<Range>) -> Self {
        if ranges.is_empty() { Self(Test::Never) } else { Self(Test::Int(Ranges::new(ranges))) }
    }

    /// The length lies in one of the ranges.
    pub fn len(ranges: Vec<Range>) -> Self {
        if ranges.is_empty() { Self(Test::Never) } else { Self(Test::Len(Ranges::new(ranges))) }
    }

    /// The address lies in one of the networks.
    pub const fn ip(networks: Networks) -> Self {
        Self(Test::Ip(networks))
    }

    /// One of the patterns matches the text; `fold` ignores ASCII case. For the methods `str beg end sub dir dom reg`,
    /// method names, and `bin`, whose patterns are the bytes themselves.
    ///
    /// # Errors
    /// A malformed regular expression.
    pub fn text(method: Method, patterns: &[Vec<u8>], fold: bool) -> Result<Self, BadPattern> {
        if patterns.is_empty() {
            return Ok(Self(Test::Never));
        }
        Ok(Self(match method {
            Method::Bin => Test::Binary(Exact::new(patterns, false)),
            Method::Beg => Test::Prefix(Prefixes::new(patterns, fold)),
            Method::End => Test::Suffix(Suffixes::new(patterns, fold)),
            Method::Sub => substring(patterns, fold, Within::Anywhere)?,
            Method::Dir => substring(patterns, fold, Within::Directories)?,
            Method::Dom => substring(patterns, fold, Within::Domains)?,
            Method::Reg => match patterns {
                [pattern] => Test::Regex(pattern::regex(pattern, fold)?),
                _ => Test::Regexes(pattern::set(patterns, fold)?),
            },
            _ => Test::Exact(Exact::new(patterns, fold)),
        }))
    }

    /// One of the entries of a list matches.
    pub const fn list(view: Arc<View>) -> Self {
        Self(Test::List(view))
    }

    /// Whether rules change nothing of what it matches.
    pub fn is_settled(&self) -> bool {
        match &self.0 {
            Test::List(view) => !view.changes(),
            Test::Either(both) => both.iter().all(Self::is_settled),
            _ => true,
        }
    }

    /// Either of two tests.
    pub fn either(one: Self, other: Self) -> Self {
        match (&one.0, &other.0) {
            (Test::Never, _) => other,
            (_, Test::Never) => one,
            _ => Self(Test::Either(Box::new([one, other]))),
        }
    }

    /// Whether the sample passes. One that cannot be cast does not.
    pub fn matches(&self, sample: Sample<'_>, arena: &Bump) -> bool {
        let text = || sample.text(arena);
        match &self.0 {
            Test::Found => true,
            Test::Never => false,
            Test::Bool => sample.bool().unwrap_or_default(),
            Test::Int(ranges) => sample.int().is_some_and(|value| ranges.contain(value)),
            Test::Len(ranges) => {
                text().is_some_and(|text| ranges.contain(i64::try_from(text.len()).unwrap_or(i64::MAX)))
            }
            Test::Ip(networks) => sample.ip().is_some_and(|address| networks.find(address).is_some()),
            Test::Exact(patterns) => text().is_some_and(|text| patterns.contain(text, arena)),
            Test::Binary(patterns) => sample.bytes(arena).is_some_and(|bytes| patterns.contain(bytes, arena)),
            Test::Prefix(patterns) => text().is_some_and(|text| patterns.begin(text, arena)),
            Test::Suffix(patterns) => text().is_some_and(|text| patterns.end(text, arena)),
            Test::Within(patterns) => text().is_some_and(|text| patterns.found_in(text)),
            Test::Regex(pattern) => text().is_some_and(|text| pattern.is_match(text)),
            Test::Regexes(patterns) => text().is_some_and(|text| patterns.is_match(text)),
            Test::List(view) => view.matches(sample, arena),
            Test::Either(both) => both.iter().any(|one| one.matches(sample, arena)),
        }
    }
}

fn substring(patterns: &[Vec<u8>], fold: bool, within: Within) -> Result<Test, BadPattern> {
    let found = Substrings::new(patterns, fold, within)?;
    Ok(found.map_or(Test::Never, Test::Within))
}

#[cfg(test)]
mod tests;
