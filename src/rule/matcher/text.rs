//! Whole texts, prefixes and suffixes.

use std::{cmp::Ordering, collections::HashSet};

use bumpalo::Bump;

/// The text in lower case when `fold`; borrowed when it is already.
pub(in crate::rule) fn folded<'s>(text: &'s [u8], fold: bool, arena: &'s Bump) -> &'s [u8] {
    if !fold || !text.iter().any(u8::is_ascii_uppercase) {
        return text;
    }
    let lower = arena.alloc_slice_copy(text);
    lower.make_ascii_lowercase();
    lower
}

fn stored(pattern: &[u8], fold: bool) -> Box<[u8]> {
    if fold { pattern.to_ascii_lowercase().into() } else { pattern.into() }
}

/// Texts that a sample may be equal to.
#[derive(Clone, Debug)]
pub(super) struct Exact {
    patterns: Patterns,
    fold: bool,
}

#[derive(Clone, Debug)]
enum Patterns {
    /// So few that comparing is quicker than hashing.
    Few(Box<[Box<[u8]>]>),
    Many(HashSet<Box<[u8]>>),
}

const FEW: usize = 8;

impl Exact {
    pub(super) fn new(patterns: &[Vec<u8>], fold: bool) -> Self {
        let patterns: HashSet<_> = patterns.iter().map(|pattern| stored(pattern, fold)).collect();
        let patterns = if patterns.len() <= FEW {
            Patterns::Few(patterns.into_iter().collect())
        } else {
            Patterns::Many(patterns)
        };
        Self { patterns, fold }
    }

    pub(super) fn contain(&self, text: &[u8], arena: &Bump) -> bool {
        match &self.patterns {
            Patterns::Few(few) if self.fold => few.iter().any(|pattern| pattern.eq_ignore_ascii_case(text)),
            Patterns::Few(few) => few.iter().any(|pattern| **pattern == *text),
            Patterns::Many(patterns) => patterns.contains(folded(text, self.fold, arena)),
        }
    }
}

/// Prefixes, sorted, none of them a prefix of another: the one that may match is the greatest one not
/// greater than the text.
#[derive(Clone, Debug)]
pub(super) struct Prefixes {
    sorted: Box<[Box<[u8]>]>,
    fold: bool,
}

impl Prefixes {
    pub(super) fn new(patterns: &[Vec<u8>], fold: bool) -> Self {
        let mut sorted: Vec<_> = patterns.iter().map(|pattern| stored(pattern, fold)).collect();
        sorted.sort_unstable();
        sorted.dedup_by(|longer, shorter| longer.starts_with(shorter));
        Self { sorted: sorted.into(), fold }
    }

    pub(super) fn begin(&self, text: &[u8], arena: &Bump) -> bool {
        if let [only] = &*self.sorted {
            let start = text.get(..only.len());
            return start
                .is_some_and(|start| if self.fold { start.eq_ignore_ascii_case(only) } else { *start == **only });
        }
        let text = folded(text, self.fold, arena);
        let after = self.sorted.partition_point(|pattern| **pattern <= *text);
        let candidate = after.checked_sub(1).and_then(|index| self.sorted.get(index));
        candidate.is_some_and(|pattern| text.starts_with(pattern))
    }
}

/// Suffixes: prefixes of texts read backwards.
#[derive(Clone, Debug)]
pub(super) struct Suffixes {
    sorted: Box<[Box<[u8]>]>,
    fold: bool,
}

impl Suffixes {
    pub(super) fn new(patterns: &[Vec<u8>], fold: bool) -> Self {
        let mut sorted: Vec<_> = patterns.iter().map(|pattern| stored(pattern, fold)).collect();
        sorted.sort_unstable_by(|one, other| backwards(one, other));
        sorted.dedup_by(|longer, shorter| longer.ends_with(shorter));
        Self { sorted: sorted.into(), fold }
    }

    pub(super) fn end(&self, text: &[u8], arena: &Bump) -> bool {
        if let [only] = &*self.sorted {
            let end = text.len().checked_sub(only.len()).and_then(|start| text.get(start..));
            return end.is_some_and(|end| if self.fold { end.eq_ignore_ascii_case(only) } else { *end == **only });
        }
        let text = folded(text, self.fold, arena);
        let after = self.sorted.partition_point(|pattern| backwards(pattern, text) != Ordering::Greater);
        let candidate = after.checked_sub(1).and_then(|index| self.sorted.get(index));
        candidate.is_some_and(|pattern| text.ends_with(pattern))
    }
}

fn backwards(one: &[u8], other: &[u8]) -> Ordering {
    one.iter().rev().cmp(other.iter().rev())
}
