//! From key and variant to object.

use std::sync::Arc;

use ahash::RandomState;
use dashmap::DashMap;
use smallvec::SmallVec;

use super::{object::Object, store::Lookup};
use crate::{message::Request, policy::variant::Vary};

/// The index, sharded. Keys are compared in full; the seed is random and kept for life.
#[derive(Debug)]
pub(super) struct Index {
    entries: DashMap<Arc<[u8]>, Entry, RandomState>,
    hasher: RandomState,
}

/// The variants of one key.
type Entry = SmallVec<[Slot; 1]>;

#[derive(Debug)]
struct Slot {
    /// Hash of the object's variant, so that most others are told apart without looking at them.
    variant: u64,
    object: Arc<Object>,
}

/// What an insertion pushed out.
#[derive(Debug, Default)]
pub(super) struct Displaced {
    /// The former object of the same variant.
    pub(super) replaced: Option<Arc<Object>>,
    /// The least used variants, beyond the cap.
    pub(super) evicted: Vec<Arc<Object>>,
}

impl Index {
    pub(super) fn new() -> Self {
        let hasher = RandomState::new();
        Self { entries: DashMap::with_hasher(hasher.clone()), hasher }
    }

    /// The object of `key` that answers `request` (RFC 9111 §4.1), the latest if several do.
    pub(super) fn find(&self, key: &[u8], request: &Request, scratch: &mut Vec<u8>) -> Lookup {
        let Some(entry) = self.entries.get(key) else { return Lookup::Miss };
        let mut found: Option<&Arc<Object>> = None;
        let mut asked: Option<(&Vary, u64)> = None;
        for slot in entry.iter() {
            let vary = slot.object.vary();
            let matches = match vary {
                Vary::None => true,
                Vary::Any => false,
                Vary::On(_) => {
                    let hash = match asked {
                        Some((same, hash)) if same == vary => hash,
                        _ => {
                            scratch.clear();
                            vary.write_key(request, scratch);
                            self.hasher.hash_one(scratch.as_slice())
                        }
                    };
                    asked = Some((vary, hash));
                    slot.variant == hash && slot.object.variant() == scratch.as_slice()
                }
            };
            if matches && found.is_none_or(|other| other.stamp() < slot.object.stamp()) {
                found = Some(&slot.object);
            }
        }
        found.map_or(Lookup::VaryMiss, |object| Lookup::Found(Arc::clone(object)))
    }

    /// Whether two requests get the same variant, by what is stored under `key` now.
    pub(super) fn same_variant(&self, key: &[u8], one: &Request, other: &Request) -> bool {
        let Some(entry) = self.entries.get(key) else { return true };
        let mut last: Option<&Vary> = None;
        entry.iter().all(|slot| {
            let vary = slot.object.vary();
            last.replace(vary) == Some(vary) || variant_of(vary, one) == variant_of(vary, other)
        })
    }

    /// Puts an object in, in place of the one of the same variant, and keeps the key to `max_variants`.
    /// `None`, and nothing changed, when that one comes from a later fill.
    pub(super) fn insert(&self, object: Arc<Object>, max_variants: usize) -> Option<Displaced> {
        let slot = Slot { variant: self.hasher.hash_one(object.variant()), object };
        let mut displaced = Displaced::default();
        let mut entry = self.entries.entry(Arc::clone(slot.object.key())).or_default();
        let same = |other: &Slot| {
            other.variant == slot.variant
                && other.object.variant() == slot.object.variant()
                && other.object.vary() == slot.object.vary()
        };
        if let Some(at) = entry.iter().position(same) {
            if entry.get(at).is_some_and(|other| other.object.stamp() > slot.object.stamp()) {
                return None;
            }
            displaced.replaced = Some(entry.swap_remove(at).object);
        }
        while entry.len() >= max_variants.max(1) {
            let least = entry.iter().enumerate().min_by_key(|(_, slot)| (slot.object.frequency(), slot.object.stamp()));
            let Some((at, _)) = least else { break };
            displaced.evicted.push(entry.swap_remove(at).object);
        }
        entry.push(slot);
        Some(displaced)
    }

    /// Takes this very object out; false when it was not there any more.
    pub(super) fn remove(&self, object: &Arc<Object>) -> bool {
        let mut removed = false;
        self.entries.remove_if_mut(object.key(), |_, entry| {
            if let Some(at) = entry.iter().position(|slot| Arc::ptr_eq(&slot.object, object)) {
                entry.swap_remove(at);
                removed = true;
            }
            entry.is_empty()
        });
        removed
    }

    /// Puts `new` where `old`, of the same key and variant, stands; false when that was not there any more.
    pub(super) fn replace(&self, old: &Arc<Object>, new: &Arc<Object>) -> bool {
        let Some(mut entry) = self.entries.get_mut(old.key()) else { return false };
        let Some(slot) = entry.iter_mut().find(|slot| Arc::ptr_eq(&slot.object, old)) else { return false };
        slot.object = Arc::clone(new);
        true
    }

    /// The objects under `key`.
    pub(super) fn of_key(&self, key: &[u8]) -> Vec<Arc<Object>> {
        self.entries.get(key).map_or_else(Vec::new, |entry| objects(&entry).collect())
    }

    /// Every object of the entries that have one for which `wanted` holds. Looks at all of them.
    pub(super) fn of_entries_with(&self, wanted: impl Fn(&Object) -> bool) -> Vec<Arc<Object>> {
        let mut found = Vec::new();
        for entry in &self.entries {
            if entry.iter().any(|slot| wanted(&slot.object)) {
                found.extend(objects(&entry));
            }
        }
        found
    }

    /// Shows every object.
    pub(super) fn each(&self, mut show: impl FnMut(&Object)) {
        for entry in &self.entries {
            entry.iter().for_each(|slot| show(&slot.object));
        }
    }

    /// What stands for a key and variant in the list of departed objects.
    pub(super) fn fingerprint(&self, object: &Object) -> u64 {
        self.hasher.hash_one((object.key(), object.variant()))
    }
}

fn objects(entry: &Entry) -> impl Iterator<Item = Arc<Object>> {
    entry.iter().map(|slot| Arc::clone(&slot.object))
}

/// What tells `request`'s variant from others.
pub(super) fn variant_of(vary: &Vary, request: &Request) -> Vec<u8> {
    let mut key = Vec::new();
    vary.write_key(request, &mut key);
    key
}
