//! Whole texts: a hash table over the keys of a block.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::block::{Block, NONE, Number};

/// Open addressing, at most half full; each place holds the upper half of the hash and the number of an entry.
#[derive(Debug)]
pub(super) struct Exact {
    places: Box<[(u32, Number)]>,
    /// Nobody else knows it, so nobody can choose keys that collide.
    seed: u64,
    folded: Option<Box<[u8]>>,
    /// Further entries that differ from one in the table by case alone.
    same: HashMap<Number, Vec<Number>>,
}

impl Exact {
    pub(super) fn new(block: &Block, fold: bool) -> Self {
        let size = (block.len() * 2).next_power_of_two().max(2);
        let mut table = Self {
            places: vec![(0, NONE); size].into(),
            seed: RandomState::new().hash_one(size),
            folded: fold.then(|| block.folded()),
            same: HashMap::new(),
        };
        for number in block.numbers() {
            table.insert(block, number);
        }
        table
    }

    fn insert(&mut self, block: &Block, number: Number) {
        let key = block.key_in(number, self.folded.as_deref());
        let (tag, mut at) = self.start(key);
        while let Some(place) = self.places.get_mut(at) {
            if place.1 == NONE {
                *place = (tag, number);
                return;
            }
            if place.0 == tag && block.key_in(place.1, self.folded.as_deref()) == key {
                // The same text again never counts alone: whoever takes the first one out means both.
                if block.key(place.1) == block.key(number) {
                    block.set_live(number, false);
                } else {
                    self.same.entry(place.1).or_default().push(number);
                }
                return;
            }
            at = (at + 1) & (self.places.len() - 1);
        }
    }

    /// The first entry that counts and is equal to `text`, which is in lower case when case does not matter.
    pub(super) fn find(&self, block: &Block, text: &[u8]) -> Option<Number> {
        let first = self.find_any(block, text)?;
        if block.is_live(first) {
            return Some(first);
        }
        self.same.get(&first)?.iter().copied().find(|number| block.is_live(*number))
    }

    /// The first entry that is equal to `text`, whether it counts or not.
    pub(super) fn find_any(&self, block: &Block, text: &[u8]) -> Option<Number> {
        let (tag, mut at) = self.start(text);
        loop {
            let place = self.places.get(at)?;
            if place.1 == NONE {
                return None;
            }
            if place.0 == tag && block.key_in(place.1, self.folded.as_deref()) == text {
                return Some(place.1);
            }
            at = (at + 1) & (self.places.len() - 1);
        }
    }

    /// The tag of a key, and where the search for it starts.
    fn start(&self, key: &[u8]) -> (u32, usize) {
        let hash = xxh3_64_with_seed(key, self.seed);
        let tag = u32::try_from(hash >> 32).unwrap_or_default();
        (tag, usize::try_from(hash & 0xffff_ffff).unwrap_or_default() & (self.places.len() - 1))
    }
}
