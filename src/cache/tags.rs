//! Groups of keys under a name: by surrogate key, and by URL. Both are derived from the objects: whatever
//! enters or leaves the index is linked or unlinked here.

use std::{collections::HashMap, sync::Arc};

use ahash::RandomState;
use dashmap::{DashMap, Entry};

/// Adds the surrogate keys in one field value: words between blanks and commas, none twice, no empty ones.
pub fn split(value: &[u8], tags: &mut Vec<Box<str>>) {
    for word in value.split(|byte| byte.is_ascii_whitespace() || *byte == b',') {
        let word = String::from_utf8_lossy(word);
        if !word.is_empty() && !tags.iter().any(|tag| **tag == *word) {
            tags.push(word.into());
        }
    }
}

/// Which keys have objects under a name.
#[derive(Debug)]
pub(super) struct Groups(DashMap<Box<[u8]>, Keys, RandomState>);

/// Keys with the number of their objects that carry the name.
#[derive(Debug)]
enum Keys {
    One(Arc<[u8]>, u32),
    Many(HashMap<Arc<[u8]>, u32, RandomState>),
}

impl Groups {
    pub(super) fn new() -> Self {
        Self(DashMap::with_hasher(RandomState::new()))
    }

    /// One more object under `key` carries `name`.
    pub(super) fn link(&self, name: &[u8], key: &Arc<[u8]>) {
        match self.0.entry(name.into()) {
            Entry::Vacant(vacant) => drop(vacant.insert(Keys::One(Arc::clone(key), 1))),
            Entry::Occupied(mut occupied) => occupied.get_mut().add(key),
        }
    }

    /// One object less under `key` carries `name`.
    pub(super) fn unlink(&self, name: &[u8], key: &Arc<[u8]>) {
        self.0.remove_if_mut(name, |_, keys| keys.take(key));
    }

    /// The keys that have objects under `name`.
    pub(super) fn keys(&self, name: &[u8]) -> Vec<Arc<[u8]>> {
        self.0.get(name).map_or_else(Vec::new, |keys| match &*keys {
            Keys::One(key, _) => vec![Arc::clone(key)],
            Keys::Many(keys) => keys.keys().cloned().collect(),
        })
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Keys {
    fn add(&mut self, key: &Arc<[u8]>) {
        match self {
            Self::One(own, count) if own == key => *count += 1,
            Self::One(own, count) => {
                let both = [(Arc::clone(own), *count), (Arc::clone(key), 1)];
                *self = Self::Many(both.into_iter().collect());
            }
            Self::Many(keys) => *keys.entry(Arc::clone(key)).or_default() += 1,
        }
    }

    /// Returns whether nothing is left.
    fn take(&mut self, key: &Arc<[u8]>) -> bool {
        match self {
            Self::One(own, count) if own == key => {
                *count = count.saturating_sub(1);
                *count == 0
            }
            Self::One(..) => false,
            Self::Many(keys) => {
                if let Some(count) = keys.get_mut(key) {
                    *count = count.saturating_sub(1);
                    if *count == 0 {
                        keys.remove(key);
                    }
                }
                keys.is_empty()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_split_at_blanks_and_commas() {
        let mut tags = Vec::new();
        split(b" a,b  c,,\td ", &mut tags);
        split(b"a e", &mut tags);
        split(b" , ", &mut tags);
        assert_eq!(tags, ["a", "b", "c", "d", "e"].map(Box::from));
    }

    #[test]
    fn a_name_lives_as_long_as_an_object_carries_it() {
        let groups = Groups::new();
        let [a, b] = [b"a", b"b"].map(|key| Arc::from(&key[..]));
        groups.link(b"t", &a);
        groups.link(b"t", &a);
        groups.link(b"t", &b);
        groups.unlink(b"t", &a);
        assert_eq!(groups.keys(b"t").len(), 2);
        groups.unlink(b"t", &a);
        assert_eq!(groups.keys(b"t"), [Arc::clone(&b)]);
        groups.unlink(b"t", &b);
        groups.unlink(b"t", &b);
        assert!(groups.is_empty());
    }
}
