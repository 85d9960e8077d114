//! Purges: what they name, and how they beat fills in flight.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::time::Timestamp;

/// What a purge names. URLs are normalised like keys' hosts: scheme and host in lower case, no default port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// `scheme://host/path?query`, as the client wrote it: every key and variant of it.
    Url(String),
    /// Every URL that begins so.
    Prefix(String),
    /// Every object with this surrogate key.
    Tag(String),
    /// Everything.
    All,
}

impl Target {
    /// Whether it names an object with this URL and these tags.
    pub(super) fn names<'a>(&self, url: &[u8], mut tags: impl Iterator<Item = &'a str>) -> bool {
        match self {
            Self::Url(named) => named.as_bytes() == url,
            Self::Prefix(prefix) => url.starts_with(prefix.as_bytes()),
            Self::Tag(named) => tags.any(|tag| tag == named),
            Self::All => true,
        }
    }
}

/// What a purge did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    /// Objects that the target names.
    pub matched: u64,
    /// Objects removed, or made stale by a soft purge.
    pub purged: u64,
}

/// What a purge makes of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// It is gone.
    Gone,
    /// It is stale from then on.
    Stale(Timestamp),
}

/// The sequence of fills and purges. A fill takes its number when it starts; a purge with a higher number is
/// about what that fill brings. Purges are remembered only while a fill older than they are lives.
#[derive(Debug, Default)]
pub(super) struct Sequence(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    last: u64,
    /// Numbers of the fills under way.
    fills: BTreeSet<u64>,
    purges: VecDeque<Purge>,
}

#[derive(Debug)]
struct Purge {
    number: u64,
    target: Target,
    /// The keys that had objects of a purged URL: other URLs may share them.
    keys: Vec<Arc<[u8]>>,
    mark: Mark,
}

/// Purges remembered at most. Beyond, the oldest ones become one that names everything, which costs the fills
/// older than it their objects and nobody else anything.
const MAX_PURGES: usize = 4096;

impl Sequence {
    /// The number of a fill that starts now.
    pub(super) fn begin_fill(&self) -> u64 {
        let mut state = self.lock();
        state.last += 1;
        let number = state.last;
        state.fills.insert(number);
        number
    }

    /// The fill with this number has ended.
    pub(super) fn end_fill(&self, number: u64) {
        let mut state = self.lock();
        state.fills.remove(&number);
        let oldest = state.fills.first().copied().unwrap_or(u64::MAX);
        while state.purges.front().is_some_and(|purge| purge.number < oldest) {
            state.purges.pop_front();
        }
    }

    /// Records a purge; returns its number and what `keys` found, under the lock that [`Sequence::settle`] takes:
    /// whatever is settled before is found by the caller afterwards, whatever comes later knows of the purge.
    pub(super) fn purge(
        &self,
        target: &Target,
        mark: Mark,
        keys: impl FnOnce() -> Vec<Arc<[u8]>>,
    ) -> (u64, Vec<Arc<[u8]>>) {
        let mut state = self.lock();
        state.last += 1;
        let number = state.last;
        let keys = keys();
        if !state.fills.is_empty() {
            state.purges.push_back(Purge { number, target: target.clone(), keys: keys.clone(), mark });
        }
        if state.purges.len() > MAX_PURGES {
            let newest_half = state.purges.split_off(MAX_PURGES / 2);
            let number = state.purges.back().map_or(0, |purge| purge.number);
            state.purges = newest_half;
            state.purges.push_front(Purge { number, target: Target::All, keys: Vec::new(), mark: Mark::Gone });
        }
        (number, keys)
    }

    /// Runs `place` with what the purges since `number` say about an object. No purge comes between.
    pub(super) fn settle<'a, I: Iterator<Item = &'a str>, R>(
        &self,
        number: u64,
        key: &Arc<[u8]>,
        url: &[u8],
        tags: impl Fn() -> I,
        place: impl FnOnce(Option<Mark>) -> R,
    ) -> R {
        let state = self.lock();
        let mut mark = None;
        for purge in state.purges.iter().rev().take_while(|purge| purge.number > number) {
            if purge.keys.contains(key) || purge.target.names(url, tags()) {
                mark = Some(purge.mark);
                if purge.mark == Mark::Gone {
                    break;
                }
            }
        }
        place(mark)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    fn remembered(&self) -> usize {
        self.lock().purges.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn purge(sequence: &Sequence, target: Target) {
        sequence.purge(&target, Mark::Gone, Vec::new);
    }

    fn mark(sequence: &Sequence, number: u64, url: &str) -> Option<Mark> {
        sequence.settle(number, &Arc::from(&b"k"[..]), url.as_bytes(), || ["t"].into_iter(), |mark| mark)
    }

    #[test]
    fn a_purge_is_about_older_fills_only() {
        let sequence = Sequence::default();
        let old = sequence.begin_fill();
        purge(&sequence, Target::Prefix("http://a/".into()));
        let new = sequence.begin_fill();
        assert_eq!(mark(&sequence, old, "http://a/x"), Some(Mark::Gone));
        assert_eq!(mark(&sequence, old, "http://b/x"), None);
        assert_eq!(mark(&sequence, new, "http://a/x"), None);
        purge(&sequence, Target::Tag("t".into()));
        assert_eq!(mark(&sequence, new, "http://b/"), Some(Mark::Gone));
    }

    #[test]
    fn purges_are_forgotten_with_the_last_older_fill() {
        let sequence = Sequence::default();
        purge(&sequence, Target::All);
        assert_eq!(sequence.remembered(), 0);
        let first = sequence.begin_fill();
        purge(&sequence, Target::All);
        let second = sequence.begin_fill();
        purge(&sequence, Target::All);
        sequence.end_fill(first);
        assert_eq!(sequence.remembered(), 1);
        sequence.end_fill(second);
        assert_eq!(sequence.remembered(), 0);
    }

    #[test]
    fn too_many_purges_become_one_of_everything() {
        let sequence = Sequence::default();
        let fill = sequence.begin_fill();
        for index in 0..MAX_PURGES + 10 {
            purge(&sequence, Target::Url(format!("http://a/{index}")));
        }
        assert!(sequence.remembered() <= MAX_PURGES);
        assert_eq!(mark(&sequence, fill, "http://elsewhere/"), Some(Mark::Gone));
    }
}
