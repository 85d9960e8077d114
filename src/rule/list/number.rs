//! Ranges of integers: the line of numbers cut where a range begins or ends, each piece with the first range over it.

use std::collections::BTreeSet;

use super::block::{Block, NONE, Number};
use crate::rule::matcher::number::Range;

/// See the module.
#[derive(Debug)]
pub(super) struct Ranges {
    /// Where the pieces begin; the first one is behind all that is not covered.
    starts: Box<[i64]>,
    first: Box<[Number]>,
    all: Box<[(Range, Number)]>,
}

impl Ranges {
    /// The ranges, in the order of their entries.
    pub(super) fn new(all: Vec<(Range, Number)>) -> Self {
        let mut begins: Vec<_> = all.iter().map(|(range, number)| (range.min, *number)).collect();
        let mut ends: Vec<_> =
            all.iter().filter_map(|(range, number)| Some((range.max.checked_add(1)?, *number))).collect();
        begins.sort_unstable();
        ends.sort_unstable();
        let mut cuts: Vec<i64> = begins.iter().chain(&ends).map(|(at, _)| *at).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let (mut begins, mut ends) = (begins.into_iter().peekable(), ends.into_iter().peekable());
        let mut over = BTreeSet::new();
        let mut first = Vec::with_capacity(cuts.len());
        for cut in &cuts {
            while let Some((_, number)) = ends.next_if(|(at, _)| at == cut) {
                over.remove(&number);
            }
            while let Some((_, number)) = begins.next_if(|(at, _)| at == cut) {
                over.insert(number);
            }
            first.push(over.first().copied().unwrap_or(NONE));
        }
        Self { starts: cuts.into(), first: first.into(), all: all.into() }
    }

    /// The first entry that counts and holds the value.
    pub(super) fn find(&self, block: &Block, value: i64) -> Option<Number> {
        let piece = self.starts.partition_point(|start| *start <= value).checked_sub(1)?;
        let first = *self.first.get(piece)?;
        if first == NONE || block.is_live(first) {
            return Some(first).filter(|first| *first != NONE);
        }
        let live = |(range, number): &(Range, Number)| range.contains(value) && block.is_live(*number);
        self.all.iter().find(|one| live(one)).map(|(_, number)| *number)
    }
}
