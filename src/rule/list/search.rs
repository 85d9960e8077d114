//! Pieces of texts and regular expressions: one automaton for all of them.

use aho_corasick::AhoCorasick;
use regex::bytes::{Regex, RegexSet};

use super::block::{Block, Number};
use crate::rule::{
    matcher::substring::Within,
    pattern::{self, BadPattern},
};

/// Pieces that a text may contain.
#[derive(Debug)]
pub(super) struct Pieces {
    automaton: AhoCorasick,
    /// The entries of the automaton's patterns: empty ones never match and are left out.
    numbers: Box<[Number]>,
    within: Within,
}

impl Pieces {
    pub(super) fn new(block: &Block, within: Within, fold: bool) -> Result<Self, BadPattern> {
        let piece = |number: &Number| within.stripped(block.key(*number));
        let numbers: Vec<Number> = block.numbers().filter(|number| !piece(number).is_empty()).collect();
        let built = AhoCorasick::builder().ascii_case_insensitive(fold).build(numbers.iter().map(piece));
        let automaton = built.map_err(|error| BadPattern::whole(0, error.to_string()))?;
        Ok(Self { automaton, numbers: numbers.into(), within })
    }

    /// The first entry that counts and is in `text`; any of them when `any`.
    pub(super) fn find(&self, block: &Block, text: &[u8], any: bool) -> Option<Number> {
        let mut best: Option<Number> = None;
        for found in self.automaton.find_overlapping_iter(text) {
            let number = *self.numbers.get(found.pattern().as_usize())?;
            if best.is_none_or(|best| number < best)
                && self.within.allows(text, found.start(), found.end())
                && block.is_live(number)
            {
                best = Some(number);
                if any {
                    break;
                }
            }
        }
        best
    }
}

/// Regular expressions.
#[derive(Debug)]
pub(super) struct Regexes {
    set: RegexSet,
    /// Each alone, where their groups are asked for.
    each: Box<[Regex]>,
}

impl Regexes {
    pub(super) fn new(block: &Block, fold: bool, groups: bool) -> Result<Self, BadPattern> {
        let patterns: Vec<Vec<u8>> = block.numbers().map(|number| block.key(number).to_vec()).collect();
        let set = pattern::set(&patterns, fold)?;
        let each = if groups {
            patterns.iter().map(|pattern| pattern::regex(pattern, fold)).collect::<Result<_, _>>()?
        } else {
            Box::default()
        };
        Ok(Self { set, each })
    }

    /// The first entry that counts and matches `text`. Allocates when one matches, unless `any` of them will do and all
    /// count.
    pub(super) fn find(&self, block: &Block, text: &[u8], any: bool) -> Option<Number> {
        if !self.set.is_match(text) {
            return None;
        }
        if self.set.len() == 1 || (any && block.numbers().all(|number| block.is_live(number))) {
            return block.numbers().find(|number| block.is_live(*number));
        }
        let mut found = self.set.matches(text).into_iter().filter_map(|at| Number::try_from(at).ok());
        found.find(|number| block.is_live(*number))
    }

    /// An entry's expression, where their groups are asked for.
    pub(super) fn regex(&self, number: Number) -> Option<&Regex> {
        self.each.get(number as usize)
    }
}
