//! Entries that came together: those of a file, or one that a rule added.

use std::{
    ops::Range,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use arc_swap::{ArcSwap, Guard};

/// The number of an entry in its block.
pub(super) type Number = u32;

/// Stands for no entry.
pub(super) const NONE: Number = Number::MAX;

/// Entries in the order in which they were written. Keys never change; whether an entry counts and what its value
/// is, does, for all who look at once.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// Keys and values lie in here.
    bytes: Box<[u8]>,
    entries: Box<[Entry]>,
}

#[derive(Debug)]
struct Entry {
    key: Range<u32>,
    value: Range<u32>,
    /// A value that a rule gave it, in place of the written one.
    changed: OnceLock<Box<ArcSwap<Box<[u8]>>>>,
    live: AtomicBool,
}

impl Entry {
    const fn new(key: Range<u32>, value: Range<u32>) -> Self {
        Self { key, value, changed: OnceLock::new(), live: AtomicBool::new(true) }
    }
}

/// A value: as written, or as a rule changed it.
pub(super) enum Value<'b> {
    Written(&'b [u8]),
    Changed(Guard<Arc<Box<[u8]>>>),
}

impl Value<'_> {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Written(bytes) => bytes,
            Self::Changed(bytes) => bytes,
        }
    }
}

impl Block {
    /// The entries of a file (HAProxy manual §7.1.3): one a line, `#` in the first column for comments, leading blanks
    /// taken off. `columns`: the first word is the key, the rest the value; else the whole line is the key.
    pub(super) fn read(bytes: Vec<u8>, columns: bool) -> Self {
        let mut entries = Vec::with_capacity(memchr::memchr_iter(b'\n', &bytes).count() + 1);
        let mut start = 0;
        while start < bytes.len() {
            let rest = bytes.get(start..).unwrap_or_default();
            let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let line = rest.get(..length).unwrap_or_default();
            entries.extend(entry(line, start, columns));
            start += length + 1;
        }
        Self { bytes: bytes.into(), entries: entries.into() }
    }

    /// One entry.
    pub(super) fn of(key: &[u8], value: &[u8]) -> Self {
        Self::collect(std::iter::once((key, value)))
    }

    /// The entries of two blocks that count, as they are now.
    pub(super) fn merged(one: &Self, other: &Self) -> Self {
        let entries = [one, other].into_iter().flat_map(|block| block.live().map(move |number| (block, number)));
        let (mut bytes, mut made) = (Vec::with_capacity(one.size().saturating_add(other.size())), Vec::new());
        for (block, number) in entries {
            let key = place(&mut bytes, block.key(number));
            let value = place(&mut bytes, block.value(number).bytes());
            made.push(Entry::new(key, value));
        }
        Self { bytes: bytes.into(), entries: made.into() }
    }

    /// These keys and values.
    pub(super) fn collect<'e>(entries: impl Iterator<Item = (&'e [u8], &'e [u8])>) -> Self {
        let (mut bytes, mut made) = (Vec::new(), Vec::new());
        for (key, value) in entries {
            let key = place(&mut bytes, key);
            let value = place(&mut bytes, value);
            made.push(Entry::new(key, value));
        }
        Self { bytes: bytes.into(), entries: made.into() }
    }

    /// How many entries there are, those that do not count included.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many bytes keys and values take.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The numbers of the entries, in order.
    pub(super) fn numbers(&self) -> Range<Number> {
        0..Number::try_from(self.entries.len()).unwrap_or(NONE)
    }

    fn live(&self) -> impl Iterator<Item = Number> {
        self.numbers().filter(|number| self.is_live(*number))
    }

    /// The key of an entry.
    pub(super) fn key(&self, number: Number) -> &[u8] {
        self.entry(number).map(|entry| self.slice(&entry.key)).unwrap_or_default()
    }

    /// The key as it stands in other bytes of the same layout, such as these in lower case.
    pub(super) fn key_in<'b>(&'b self, number: Number, folded: Option<&'b [u8]>) -> &'b [u8] {
        let Some(folded) = folded else { return self.key(number) };
        let range = self.entry(number).map(|entry| entry.key.start as usize..entry.key.end as usize);
        range.and_then(|range| folded.get(range)).unwrap_or_default()
    }

    /// The bytes in lower case (ASCII).
    pub(super) fn folded(&self) -> Box<[u8]> {
        self.bytes.to_ascii_lowercase().into()
    }

    /// The value of an entry.
    pub(super) fn value(&self, number: Number) -> Value<'_> {
        let Some(entry) = self.entry(number) else { return Value::Written(b"") };
        match entry.changed.get() {
            Some(changed) => Value::Changed(changed.load()),
            None => Value::Written(self.slice(&entry.value)),
        }
    }

    /// Where key and value of an entry stand in the bytes.
    pub(super) fn places(&self, number: Number) -> (Range<usize>, Range<usize>) {
        let wide = |range: &Range<u32>| range.start as usize..range.end as usize;
        self.entry(number).map(|entry| (wide(&entry.key), wide(&entry.value))).unwrap_or_default()
    }

    /// All of the bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether an entry counts.
    pub(super) fn is_live(&self, number: Number) -> bool {
        self.entry(number).is_some_and(|entry| entry.live.load(Ordering::Acquire))
    }

    /// Makes an entry count or not.
    pub(super) fn set_live(&self, number: Number, live: bool) {
        if let Some(entry) = self.entry(number) {
            entry.live.store(live, Ordering::Release);
        }
    }

    /// Gives an entry another value.
    pub(super) fn set_value(&self, number: Number, value: &[u8]) {
        let Some(entry) = self.entry(number) else { return };
        let value: Arc<Box<[u8]>> = Arc::new(value.into());
        let place = entry.changed.get_or_init(|| Box::new(ArcSwap::new(Arc::clone(&value))));
        place.store(value);
    }

    fn entry(&self, number: Number) -> Option<&Entry> {
        self.entries.get(number as usize)
    }

    fn slice(&self, range: &Range<u32>) -> &[u8] {
        self.bytes.get(range.start as usize..range.end as usize).unwrap_or_default()
    }
}

/// The entry on a line that begins at `start`, if there is any.
fn entry(line: &[u8], start: usize, columns: bool) -> Option<Entry> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.first() == Some(&b'#') {
        return None;
    }
    let from = line.iter().position(|byte| !byte.is_ascii_whitespace())?;
    let text = line.get(from..)?;
    let begin = start + from;
    if !columns {
        return Some(Entry::new(narrow(begin, text.len())?, narrow(begin + text.len(), 0)?));
    }
    let length = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    let rest = text.get(length..)?;
    let value = rest.trim_ascii();
    let blanks = rest.len() - rest.trim_ascii_start().len();
    Some(Entry::new(narrow(begin, length)?, narrow(begin + length + blanks, value.len())?))
}

fn narrow(start: usize, length: usize) -> Option<Range<u32>> {
    Some(u32::try_from(start).ok()?..u32::try_from(start + length).ok()?)
}

fn place(bytes: &mut Vec<u8>, piece: &[u8]) -> Range<u32> {
    let range = narrow(bytes.len(), piece.len());
    bytes.extend_from_slice(piece);
    range.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(block: &Block) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        block.live().map(|number| (text(block.key(number)), text(block.value(number).bytes()))).collect()
    }

    #[test]
    fn comments_stand_in_the_first_column_only() {
        let text = b"# comment\r\n\n  a b \n #c\n \t\r\nlast";
        let one = Block::read(text.to_vec(), false);
        let own = |list: &[(&str, &str)]| -> Vec<(String, String)> {
            list.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        assert_eq!(entries(&one), own(&[("a b ", ""), ("#c", ""), ("last", "")]));
        let two = Block::read(b"key  a value \r\nkey\n\tk\tv".to_vec(), true);
        assert_eq!(entries(&two), own(&[("key", "a value"), ("key", ""), ("k", "v")]));
        assert_eq!(two.places(0), (0..3, 5..12));
    }

    #[test]
    fn what_is_changed_is_taken_along() {
        let one = Block::read(b"a 1\nb 2\nc 3\n".to_vec(), true);
        one.set_live(1, false);
        one.set_value(2, b"new");
        let merged = Block::merged(&one, &Block::of(b"d", b"4"));
        let found = entries(&merged);
        assert_eq!(
            found.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>(),
            ["a=1", "c=new", "d=4"]
        );
    }
}
