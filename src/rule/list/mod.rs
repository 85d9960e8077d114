//! Pattern files and maps (HAProxy manual §7.1.3, §7.3.1 `map`): read once however often they are named, looked up in
//! the ways that rules ask for, changed by rules while others read.
//!
//! A [`List`] is the entries of a file; a [`View`] is what they are compiled to for one way of matching. Who looks up
//! takes no lock: a view is layers that are swapped whole. A removed entry or a new value is a mark on the entry
//! itself; a new entry is a layer of its own, and layers of like size are merged, so that there are few of them and
//! each entry is compiled a number of times that grows with the logarithm of how many there are.

mod block;
mod exact;
mod index;
mod number;
mod search;
mod tree;

use std::{
    net::IpAddr,
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use arc_swap::ArcSwap;
use bumpalo::Bump;
use regex::bytes::Regex;

use self::{
    block::{Block, Number, Value},
    exact::Exact,
    index::Index,
};
use super::{
    matcher::Method,
    sample::{Sample, Type},
};

/// How a list is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// The match method; one that takes patterns.
    pub method: Method,
    /// Whether case (ASCII) is ignored.
    pub fold: bool,
    /// Whether the groups of regular expressions are asked for.
    pub groups: bool,
}

/// Addresses of a host name; none when names are not asked for or it has none.
pub type Hosts<'h> = &'h dyn Fn(&str) -> Vec<IpAddr>;

/// What is wrong with an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where in the bytes of the file.
    pub at: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What to write instead; may be empty.
    pub help: &'static str,
}

/// How many entries rules may add to a list; further ones are not taken.
const MOST_ADDED: usize = 1 << 20;

/// The entries of a file.
#[derive(Debug)]
pub struct List {
    name: Box<str>,
    /// Whether rules change it.
    changes: Arc<AtomicBool>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Whether entries have a value; `None`: nobody has read the file.
    columns: Option<bool>,
    blocks: Vec<Arc<Block>>,
    /// One for each block, when rules change the list: its keys are found by their text then.
    texts: Vec<Exact>,
    views: Vec<Arc<View>>,
    /// How many entries the file has.
    read: usize,
}

/// A list as it is looked up.
#[derive(Debug)]
pub struct View {
    look: Look,
    changes: Arc<AtomicBool>,
    layers: ArcSwap<Vec<Arc<Layer>>>,
}

#[derive(Debug)]
struct Layer {
    block: Arc<Block>,
    index: Index,
}

/// An entry that was found.
pub struct Found<'l> {
    layer: &'l Layer,
    number: Number,
}

impl Found<'_> {
    /// Its key as written.
    pub fn key(&self) -> &[u8] {
        self.layer.block.key(self.number)
    }

    /// Hands its value on.
    pub fn value<R>(&self, take: impl FnOnce(&[u8]) -> R) -> R {
        let value: Value<'_> = self.layer.block.value(self.number);
        take(value.bytes())
    }

    /// Its regular expression, where groups are asked for.
    pub fn regex(&self) -> Option<&Regex> {
        self.layer.index.regex(self.number)
    }
}

impl List {
    /// A list that nothing has been read for yet.
    pub fn new(name: &str) -> Arc<Self> {
        Arc::new(Self { name: name.into(), changes: Arc::default(), inner: Mutex::default() })
    }

    /// The name of its file, as rules give it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether its entries have values; `None` while nobody has read it.
    pub fn columns(&self) -> Option<bool> {
        self.inner().columns
    }

    /// Takes what is in the file in. `columns`: the first word of a line is the key, the rest its value.
    pub fn fill(&self, bytes: Vec<u8>, columns: bool) {
        let mut inner = self.inner();
        inner.columns = Some(columns);
        let block = Arc::new(Block::read(bytes, columns));
        inner.read = block.len();
        if self.changes.load(Ordering::Relaxed) {
            inner.texts.push(Exact::new(&block, false));
        }
        inner.blocks.push(block);
    }

    /// What was in the file, for messages.
    pub fn text(&self) -> Vec<u8> {
        self.inner().blocks.first().map(|block| block.bytes().to_vec()).unwrap_or_default()
    }

    /// From now on rules change it.
    pub fn change(&self) {
        let mut inner = self.inner();
        if !self.changes.swap(true, Ordering::Relaxed) {
            inner.texts = inner.blocks.iter().map(|block| Exact::new(block, false)).collect();
        }
    }

    /// The list as it is looked up; made once for each way of it.
    ///
    /// # Errors
    /// The entries that cannot be patterns of this method, at most 20 of them.
    pub fn view(&self, look: Look, hosts: Hosts<'_>) -> Result<Arc<View>, Vec<Fault>> {
        let mut inner = self.inner();
        if let Some(view) = inner.views.iter().find(|view| view.look == look) {
            return Ok(Arc::clone(view));
        }
        let layers: Vec<_> =
            inner.blocks.iter().map(|block| Layer::new(block, look, hosts)).collect::<Result<_, _>>()?;
        let view = Arc::new(View { look, changes: Arc::clone(&self.changes), layers: ArcSwap::from_pointee(layers) });
        inner.views.push(Arc::clone(&view));
        Ok(view)
    }

    /// What of the values is not of a type, and which keys have none; at most 20 of each.
    pub fn values(&self, kind: Type) -> (Vec<Fault>, Vec<Fault>) {
        let inner = self.inner();
        let (mut wrong, mut missing) = (Vec::new(), Vec::new());
        for (block, number) in inner.blocks.iter().flat_map(|block| block.numbers().map(move |number| (block, number)))
        {
            let (key, at) = block.places(number);
            let value = block.value(number);
            let text = String::from_utf8_lossy(value.bytes()).into_owned();
            if !is_of(kind, value.bytes()) {
                let message = if text.is_empty() {
                    "this key has no value"
                } else {
                    &format!("`{text}` is not of type {}", kind.name())
                };
                let at = if text.is_empty() { key } else { at };
                wrong.push(Fault { at, message: message.to_owned(), help: "" });
            } else if text.is_empty() {
                missing.push(Fault { at: key, message: "this key has no value".to_owned(), help: "" });
            }
            if wrong.len() >= MOST_FAULTS {
                break;
            }
        }
        missing.truncate(MOST_FAULTS);
        (wrong, missing)
    }

    /// Gives a key a value (`set-map`); adds it where it is not there. What cannot be a pattern is left out.
    pub fn set(&self, key: &[u8], value: &[u8]) {
        let mut inner = self.inner();
        let places = inner.places(key);
        let live = |(block, number): &&(Arc<Block>, Number)| block.is_live(*number);
        if places.iter().any(|place| live(&place)) {
            places.iter().filter(live).for_each(|(block, number)| block.set_value(*number, value));
        } else if let Some((block, number)) = places.first() {
            block.set_value(*number, value);
            block.set_live(*number, true);
        } else {
            inner.add(key, value);
        }
    }

    /// Adds a key unless it is there (`add-acl`). What cannot be a pattern is left out.
    pub fn add(&self, key: &[u8]) {
        let mut inner = self.inner();
        let places = inner.places(key);
        if places.iter().any(|(block, number)| block.is_live(*number)) {
            return;
        }
        match places.first() {
            Some((block, number)) => {
                block.set_value(*number, b"");
                block.set_live(*number, true);
            }
            None => inner.add(key, b""),
        }
    }

    /// Takes a key out (`del-map`, `del-acl`), as it is written.
    pub fn remove(&self, key: &[u8]) {
        for (block, number) in self.inner().places(key) {
            block.set_live(number, false);
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many faults of one file are told.
const MOST_FAULTS: usize = 20;

/// Whether a value is one of a type.
fn is_of(kind: Type, value: &[u8]) -> bool {
    match kind {
        Type::Int => value.is_empty() || super::matcher::number::integer(value).is_some(),
        Type::Ip => std::str::from_utf8(value).is_ok_and(|text| text.parse::<IpAddr>().is_ok()),
        _ => true,
    }
}

impl Inner {
    /// The entries whose key is written so, one for each block.
    fn places(&self, key: &[u8]) -> Vec<(Arc<Block>, Number)> {
        let both = self.blocks.iter().zip(&self.texts);
        both.filter_map(|(block, texts)| Some((Arc::clone(block), texts.find_any(block, key)?))).collect()
    }

    fn add(&mut self, key: &[u8], value: &[u8]) {
        if key.is_empty() {
            return;
        }
        let mut block = Block::of(key, value);
        let mut keep = self.blocks.len();
        let full = self.blocks.iter().map(|block| block.len()).sum::<usize>() >= self.read.saturating_add(MOST_ADDED);
        while let Some(last) = keep.checked_sub(1).and_then(|last| self.blocks.get(last)) {
            let fits = last.size().saturating_add(block.size()) < Number::MAX as usize;
            if (last.len() > 2 * block.len() && !full) || !fits {
                break;
            }
            block = Block::merged(last, &block);
            keep -= 1;
        }
        // What rules have taken out again has gone now.
        if block.len() <= self.read.saturating_add(MOST_ADDED) {
            self.replace(keep, Arc::new(block));
        }
    }

    /// Puts a block in the place of those from `keep` on, in every view; nowhere when one of its keys cannot be a pattern.
    fn replace(&mut self, keep: usize, block: Arc<Block>) {
        let layer = |view: &Arc<View>| Layer::new(&block, view.look, &|_| Vec::new());
        let Ok(layers) = self.views.iter().map(layer).collect::<Result<Vec<_>, _>>() else { return };
        for (view, layer) in self.views.iter().zip(layers) {
            let before = view.layers.load();
            let after = before.iter().take(keep).cloned().chain([layer]).collect();
            view.layers.store(Arc::new(after));
        }
        self.blocks.truncate(keep);
        self.texts.truncate(keep);
        self.texts.push(Exact::new(&block, false));
        self.blocks.push(block);
    }
}

impl Layer {
    fn new(block: &Arc<Block>, look: Look, hosts: Hosts<'_>) -> Result<Arc<Self>, Vec<Fault>> {
        Index::new(block, look, hosts).map(|index| Arc::new(Self { block: Arc::clone(block), index }))
    }
}

impl View {
    /// Whether rules change what is found.
    pub fn changes(&self) -> bool {
        self.changes.load(Ordering::Relaxed)
    }

    /// Whether an entry matches the sample. Allocates nothing beyond the arena.
    pub fn matches(&self, sample: Sample<'_>, arena: &Bump) -> bool {
        let Some(input) = index::Input::of(sample, self.look, arena) else { return false };
        self.layers.load().iter().any(|layer| layer.index.find(&layer.block, input, true).is_some())
    }

    /// Hands on what is found for the sample: the longest prefix or network, else the first entry that matches;
    /// `None` when none does.
    pub fn look_up<R>(&self, sample: Sample<'_>, arena: &Bump, take: impl FnOnce(Found<'_>) -> R) -> Option<R> {
        let input = index::Input::of(sample, self.look, arena)?;
        let layers = self.layers.load();
        let mut best: Option<(&Layer, (Number, usize))> = None;
        for layer in layers.iter() {
            if let Some(hit) = layer.index.find(&layer.block, input, false)
                && best.is_none_or(|(_, best)| hit.1 > best.1)
            {
                best = Some((layer, hit));
            }
        }
        best.map(|(layer, (number, _))| take(Found { layer, number }))
    }
}

#[cfg(test)]
mod tests;
