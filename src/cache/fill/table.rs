//! The fills under way, by key, and the keys that are not worth waiting for.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ahash::RandomState;
use dashmap::{DashMap, Entry};
use smallvec::SmallVec;
use tokio::time::Instant;

use super::{Fill, Reader};
use crate::cache::purge::Target;

/// How long requests for a key whose response was private go on their own instead of waiting for each other.
const APART: Duration = Duration::from_secs(2);
/// At most so many such keys are remembered, the latest.
const MAX_APART: usize = 4096;

/// The fills that others may join.
#[derive(Debug)]
pub(in crate::cache) struct Table {
    fills: DashMap<Arc<[u8]>, Fills, RandomState>,
    hasher: RandomState,
    apart: Mutex<Apart>,
}

/// The fills of one key: one for each variant as far as that is known.
type Fills = SmallVec<[Arc<Fill>; 1]>;

/// Hashes of keys, with the time they were remembered; the order is that of first coming.
#[derive(Debug, Default)]
struct Apart {
    since: HashMap<u64, Instant, RandomState>,
    order: VecDeque<u64>,
}

impl Table {
    pub(in crate::cache) fn new() -> Self {
        let hasher = RandomState::new();
        Self { fills: DashMap::with_hasher(hasher.clone()), hasher, apart: Mutex::default() }
    }

    /// Joins one of the fills of `key`, or enters the one that `start` makes, if it makes one. Nobody else
    /// comes between, and no fill of `key` ends.
    pub(in crate::cache) fn join_or_start<S>(
        &self,
        key: &Arc<[u8]>,
        join: impl Fn(&Arc<Fill>) -> Option<Reader>,
        start: impl FnOnce() -> Option<(Arc<Fill>, S)>,
    ) -> Result<Reader, Option<(Arc<Fill>, S)>> {
        match self.fills.entry(Arc::clone(key)) {
            Entry::Occupied(mut fills) => {
                if let Some(reader) = fills.get().iter().find_map(join) {
                    return Ok(reader);
                }
                let started = start();
                fills.get_mut().extend(started.as_ref().map(|(fill, _)| Arc::clone(fill)));
                Err(started)
            }
            Entry::Vacant(place) => {
                let started = start();
                if let Some((fill, _)) = &started {
                    place.insert(Fills::from_iter([Arc::clone(fill)]));
                }
                Err(started)
            }
        }
    }

    /// Takes a fill out, if it is in.
    pub(in crate::cache) fn remove(&self, fill: &Fill) {
        self.fills.remove_if_mut(&fill.key, |_, fills| {
            fills.retain(|other| !std::ptr::eq(Arc::as_ptr(other), fill));
            fills.is_empty()
        });
    }

    /// Parts later requests from the fills that a purge may be about.
    pub(in crate::cache) fn overtake(&self, purge: u64, target: &Target, keys: &[Arc<[u8]>]) {
        self.fills.retain(|_, fills| {
            fills.retain(|fill| !fill.overtaken(purge, target, keys));
            !fills.is_empty()
        });
    }

    /// Remembers that a response of `key` was private.
    pub(in crate::cache) fn set_apart(&self, key: &[u8]) {
        let hash = self.hasher.hash_one(key);
        let mut apart = self.lock();
        apart.forget_old();
        if apart.since.insert(hash, Instant::now()).is_none() {
            apart.order.push_back(hash);
        }
    }

    /// A response of `key` is shared after all.
    pub(in crate::cache) fn set_together(&self, key: &[u8]) {
        let hash = self.hasher.hash_one(key);
        let mut apart = self.lock();
        if apart.since.remove(&hash).is_some() {
            apart.order.retain(|&other| other != hash);
        }
    }

    /// Whether a response of `key` was private a short while ago.
    pub(in crate::cache) fn is_apart(&self, key: &[u8]) -> bool {
        let hash = self.hasher.hash_one(key);
        self.lock().since.get(&hash).is_some_and(|since| since.elapsed() < APART)
    }

    fn lock(&self) -> MutexGuard<'_, Apart> {
        self.apart.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Apart {
    /// Forgets what is too old and, so that one more fits, the oldest beyond the limit.
    fn forget_old(&mut self) {
        while let Some(hash) = self.order.front() {
            let live = self.since.get(hash).is_some_and(|since| since.elapsed() < APART);
            if live && self.order.len() < MAX_APART {
                return;
            }
            self.since.remove(hash);
            self.order.pop_front();
        }
    }
}
