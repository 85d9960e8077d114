//! Pieces of a text, perhaps between delimiters.

use aho_corasick::AhoCorasick;
use memchr::memmem::Finder;

use crate::rule::pattern::BadPattern;

/// Where a piece may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::rule) enum Within {
    /// `sub`.
    Anywhere,
    /// `dir`: between `/`, `?` or the ends.
    Directories,
    /// `dom`: between `/`, `?`, `.`, `:` or the ends.
    Domains,
}

impl Within {
    fn delimits(self, byte: u8) -> bool {
        match self {
            Self::Anywhere => false,
            Self::Directories => matches!(byte, b'/' | b'?'),
            Self::Domains => matches!(byte, b'/' | b'?' | b'.' | b':'),
        }
    }

    /// The pattern without delimiters at its ends.
    pub(in crate::rule) fn stripped(self, pattern: &[u8]) -> &[u8] {
        let Some(start) = pattern.iter().position(|&byte| !self.delimits(byte)) else { return b"" };
        let end = pattern.iter().rposition(|&byte| !self.delimits(byte)).map_or(0, |last| last + 1);
        pattern.get(start..end).unwrap_or_default()
    }

    /// Whether what stands at `start..end` of `text` is bounded.
    pub(in crate::rule) fn allows(self, text: &[u8], start: usize, end: usize) -> bool {
        let bounds = |byte: Option<&u8>| byte.is_none_or(|&byte| self.delimits(byte));
        self == Self::Anywhere
            || (bounds(start.checked_sub(1).and_then(|before| text.get(before))) && bounds(text.get(end)))
    }
}

/// Pieces that a text may contain.
#[derive(Clone, Debug)]
pub(super) struct Substrings {
    search: Search,
    within: Within,
}

#[derive(Clone, Debug)]
enum Search {
    One(Box<Finder<'static>>),
    Many(AhoCorasick),
}

impl Substrings {
    /// `None` when no pattern is left: an empty one never matches.
    pub(super) fn new(patterns: &[Vec<u8>], fold: bool, within: Within) -> Result<Option<Self>, BadPattern> {
        let pieces: Vec<_> =
            patterns.iter().map(|pattern| within.stripped(pattern)).filter(|piece| !piece.is_empty()).collect();
        let search = match pieces.as_slice() {
            [] => return Ok(None),
            [one] if !fold => Search::One(Box::new(Finder::new(one).into_owned())),
            many => {
                let built = AhoCorasick::builder().ascii_case_insensitive(fold).build(many);
                Search::Many(built.map_err(|error| BadPattern {
                    index: 0,
                    at: 0,
                    message: error.to_string(),
                    help: "",
                })?)
            }
        };
        Ok(Some(Self { search, within }))
    }

    pub(super) fn found_in(&self, text: &[u8]) -> bool {
        match &self.search {
            Search::One(finder) if self.within == Within::Anywhere => finder.find(text).is_some(),
            Search::One(finder) => {
                let mut from = 0;
                while let Some(at) = text.get(from..).and_then(|rest| finder.find(rest)) {
                    let start = from + at;
                    if self.within.allows(text, start, start + finder.needle().len()) {
                        return true;
                    }
                    from = start + 1;
                }
                false
            }
            Search::Many(patterns) if self.within == Within::Anywhere => patterns.is_match(text),
            Search::Many(patterns) => {
                patterns.find_overlapping_iter(text).any(|found| self.within.allows(text, found.start(), found.end()))
            }
        }
    }
}
