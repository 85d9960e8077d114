//! Tables of counters (`stick-table`, HAProxy manual §4.2): what clients did, by address, cookie or whatever else a
//! rule tracks them by. Time comes as an argument; all threads share a table.
//!
//! A key is found in a sharded map; its row has a lock of its own, held for a few additions. Rows are also in the order
//! of their last use, which only making and removing rows looks at: a row that was used since goes back in.
//!
//! An entry takes some 250 bytes (both maps with their slack, the row and its lock) plus the text of its key, 8 for each
//! counter and 24 for each rate that is stored.

pub mod key;
pub mod rate;
pub mod stored;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
};

use dashmap::{DashMap, Entry as Slot};

use self::stored::{Layout, Place};
pub use self::{
    key::{Key, KeyKind},
    stored::{Column, Datum},
};

/// What a table is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Its name: that of its proxy.
    pub name: String,
    /// What its keys are.
    pub key: KeyKind,
    /// Most entries, more than 0.
    pub size: usize,
    /// How long an entry stays after its last use, in milliseconds; `None`: until the room is needed.
    pub expire: Option<u64>,
    /// Whether a full table takes no more rather than forgetting what is oldest.
    pub nopurge: bool,
    /// What is stored with each key.
    pub stored: Vec<Column>,
}

impl Spec {
    /// Whether entries of a table like this can stay in one like `other`.
    pub fn agrees(&self, other: &Self) -> bool {
        self.key == other.key && self.stored == other.stored
    }

    /// Whether this is stored, by itself or in an array.
    pub fn stores(&self, datum: Datum) -> bool {
        Layout::new(&self.stored).find(datum, 0).is_some()
    }
}

/// A table.
#[derive(Debug)]
pub struct Table {
    spec: Spec,
    limits: Limits,
    layout: Layout,
    rows: DashMap<Key, Arc<Row>>,
    /// Rows, or promises of them.
    count: AtomicUsize,
    /// The rows by when they were used, as far as is known here; the second number only tells them apart.
    ages: Mutex<BTreeMap<(u64, u64), Arc<Row>>>,
    made: AtomicU64,
}

/// What of a spec may change while a table lives.
#[derive(Debug)]
struct Limits {
    size: AtomicUsize,
    /// `u64::MAX`: never.
    expire: AtomicU64,
    nopurge: AtomicBool,
}

impl Limits {
    fn new(spec: &Spec) -> Self {
        Self {
            size: AtomicUsize::new(spec.size),
            expire: AtomicU64::new(spec.expire.unwrap_or(u64::MAX)),
            nopurge: AtomicBool::new(spec.nopurge),
        }
    }

    fn size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }

    fn expire(&self) -> Option<u64> {
        Some(self.expire.load(Ordering::Relaxed)).filter(|expire| *expire < u64::MAX)
    }
}

#[derive(Debug)]
struct Row {
    key: Key,
    used: AtomicU64,
    trackers: AtomicU32,
    cells: Mutex<Box<[u64]>>,
}

/// Rows that one sweep looks at, at the most.
const SWEPT: usize = 1024;

impl Table {
    /// An empty table.
    pub fn new(spec: Spec) -> Self {
        Self {
            layout: Layout::new(&spec.stored),
            limits: Limits::new(&spec),
            rows: DashMap::new(),
            count: AtomicUsize::new(0),
            ages: Mutex::default(),
            made: AtomicU64::new(0),
            spec,
        }
    }

    /// Takes size, expiry and `nopurge` over from a spec that agrees with its own.
    pub fn set_limits(&self, spec: &Spec) {
        self.limits.size.store(spec.size, Ordering::Relaxed);
        self.limits.expire.store(spec.expire.unwrap_or(u64::MAX), Ordering::Relaxed);
        self.limits.nopurge.store(spec.nopurge, Ordering::Relaxed);
    }

    /// What it was made as; see [`Table::set_limits`].
    pub const fn spec(&self) -> &Spec {
        &self.spec
    }

    /// How many entries it has, and how many more it has room for.
    pub fn fill(&self, now: u64) -> (usize, usize) {
        self.sweep(now);
        let count = self.count.load(Ordering::Relaxed);
        (count, self.limits.size().saturating_sub(count))
    }

    /// Reads the entry of a key; `None` when there is none. That is no use of it.
    pub fn with<T>(&self, key: &Key, now: u64, read: impl FnOnce(Entry<'_>) -> T) -> Option<T> {
        // Whoever removes a row takes the shard for himself, so that none goes while it is looked at.
        let row = self.rows.get(key)?;
        self.is_alive(&row, now).then(|| read(self.entry(&row, now)))
    }

    /// Uses the entry of a key, made when there is none; `None` when the table is full.
    pub fn with_made<T>(&self, key: &Key, now: u64, read: impl FnOnce(Entry<'_>) -> T) -> Option<T> {
        let mut read = Some(read);
        if let Some(read) = self.with(key, now, |entry| read.take().map(|read| read(entry))) {
            return read;
        }
        let promised = self.promise(now);
        let (value, new) = match self.rows.entry(key.clone()) {
            Slot::Occupied(mut slot) => {
                let mut new = None;
                if !self.is_alive(slot.get(), now) {
                    new = Some(slot.insert(self.row(key, now))).map(|_| slot.get().clone());
                }
                if promised {
                    self.count.fetch_sub(1, Ordering::Relaxed);
                }
                (read.take().map(|read| read(self.entry(slot.get(), now))), new)
            }
            Slot::Vacant(_) if !promised => return None,
            Slot::Vacant(slot) => {
                let row = slot.insert(self.row(key, now));
                (read.take().map(|read| read(self.entry(&row, now))), Some(row.clone()))
            }
        };
        if let Some(row) = new {
            self.remember(&mut self.ages(), now, row);
        }
        value
    }

    /// Tracks a key from now on; `None` when the table is full.
    pub fn track(self: &Arc<Self>, key: &Key, now: u64) -> Option<Tracked> {
        self.with_made(key, now, |entry| {
            entry.row.trackers.fetch_add(1, Ordering::Relaxed);
            entry.touch();
            for datum in [Datum::ConnCur, Datum::ConnCnt, Datum::ConnRate] {
                entry.add(datum, 0, 1);
            }
            Tracked { table: self.clone(), row: entry.row.clone() }
        })
    }

    /// Forgets what has expired, so much of it as is cheap; gives how many entries that were.
    pub fn sweep(&self, now: u64) -> usize {
        let over = self.count.load(Ordering::Relaxed).saturating_sub(self.limits.size());
        let mut forgotten = 0;
        if over > 0 {
            // The table was made smaller.
            forgotten += self.forget(&mut self.ages(), now, over, SWEPT, |_| true);
        }
        if let Some(expire) = self.limits.expire() {
            let old = |used: u64| used.saturating_add(expire) <= now;
            forgotten += self.forget(&mut self.ages(), now, usize::MAX, SWEPT, old);
        }
        forgotten
    }

    /// Promises room for a row; `false` when there is none.
    fn promise(&self, now: u64) -> bool {
        let promise = || {
            let more = |count| (count < self.limits.size()).then_some(count + 1);
            self.count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
        };
        if promise() {
            return true;
        }
        if self.limits.nopurge.load(Ordering::Relaxed) {
            self.sweep(now);
        } else {
            // A few more than the one that is needed, so that not each new row looks for an old one.
            let wanted = self.limits.size() / 256 + 1;
            let mut ages = self.ages();
            self.forget(&mut ages, now, wanted, wanted * 2 + SWEPT, |_| true);
        }
        promise()
    }

    /// Removes rows nobody tracks, those first that were not used for longest, as long as their time of use is `old`.
    fn forget(
        &self,
        ages: &mut BTreeMap<(u64, u64), Arc<Row>>,
        now: u64,
        most: usize,
        looks: usize,
        old: impl Fn(u64) -> bool,
    ) -> usize {
        let mut forgotten = 0;
        for _ in 0..looks {
            let Some(first) = ages.first_entry().filter(|first| forgotten < most && old(first.key().0)) else { break };
            let ((stamp, _), row) = first.remove_entry();
            let used = row.used.load(Ordering::Relaxed);
            if row.trackers.load(Ordering::Relaxed) > 0 || used > stamp {
                let used = if used > stamp { used } else { now.max(stamp + 1) };
                self.remember(ages, used, row);
                continue;
            }
            let unused = |_: &Key, now: &Arc<Row>| {
                Arc::ptr_eq(now, &row)
                    && row.trackers.load(Ordering::Relaxed) == 0
                    && row.used.load(Ordering::Relaxed) == used
            };
            if self.rows.remove_if(&row.key, unused).is_some() {
                self.count.fetch_sub(1, Ordering::Relaxed);
                forgotten += 1;
            } else if self.rows.get(&row.key).is_some_and(|now| Arc::ptr_eq(&now, &row)) {
                self.remember(ages, now.max(stamp + 1), row);
            }
        }
        forgotten
    }

    fn remember(&self, ages: &mut BTreeMap<(u64, u64), Arc<Row>>, used: u64, row: Arc<Row>) {
        ages.insert((used, self.made.fetch_add(1, Ordering::Relaxed)), row);
    }

    fn ages(&self) -> MutexGuard<'_, BTreeMap<(u64, u64), Arc<Row>>> {
        self.ages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn row(&self, key: &Key, now: u64) -> Arc<Row> {
        Arc::new(Row {
            key: key.clone(),
            used: AtomicU64::new(now),
            trackers: AtomicU32::new(0),
            cells: Mutex::new(vec![0; self.layout.cells].into()),
        })
    }

    fn is_alive(&self, row: &Row, now: u64) -> bool {
        let expired = |expire: u64| row.used.load(Ordering::Relaxed).saturating_add(expire) <= now;
        row.trackers.load(Ordering::Relaxed) > 0 || !self.limits.expire().is_some_and(expired)
    }

    const fn entry<'e>(&'e self, row: &'e Arc<Row>, now: u64) -> Entry<'e> {
        Entry { table: self, row, now }
    }
}

/// The entry of a key at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'e> {
    table: &'e Table,
    row: &'e Arc<Row>,
    now: u64,
}

impl Entry<'_> {
    /// The value, of a rate the events of the last period; `None` when it is not stored. `index` is that of an array's
    /// element, 0 otherwise.
    pub fn get(&self, datum: Datum, index: usize) -> Option<u64> {
        let place = self.place(datum, index)?;
        Some(place.get(&self.cells(), self.now))
    }

    /// Counts; gives the value then, of a rate the events of the running period; `None` when it is not stored.
    pub fn add(&self, datum: Datum, index: usize, number: u64) -> Option<u64> {
        let place = self.place(datum, index)?;
        self.touch();
        Some(place.add(&mut self.cells(), number, self.now))
    }

    /// Sets the value; gives the one before; `None` when it is not stored.
    pub fn set(&self, datum: Datum, index: usize, value: u64) -> Option<u64> {
        let place = self.place(datum, index)?;
        self.touch();
        Some(place.set(&mut self.cells(), value))
    }

    /// How many track it now.
    pub fn trackers(&self) -> u32 {
        self.row.trackers.load(Ordering::Relaxed)
    }

    /// Milliseconds since it was last used.
    pub fn idle(&self) -> u64 {
        self.now.saturating_sub(self.row.used.load(Ordering::Relaxed))
    }

    /// Milliseconds until it expires; 0 when it does not.
    pub fn expires_in(&self) -> u64 {
        self.table.limits.expire().map_or(0, |expire| expire.saturating_sub(self.idle()))
    }

    fn touch(&self) {
        self.row.used.fetch_max(self.now, Ordering::Relaxed);
    }

    fn place(&self, datum: Datum, index: usize) -> Option<Place> {
        self.table.layout.find(datum, index)
    }

    fn cells(&self) -> MutexGuard<'_, Box<[u64]>> {
        self.row.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An entry that is tracked. It stays in its table as long as this lives, and is not counted as current any more
/// when this is dropped.
#[derive(Debug)]
pub struct Tracked {
    table: Arc<Table>,
    row: Arc<Row>,
}

impl Tracked {
    /// The entry now.
    pub fn entry(&self, now: u64) -> Entry<'_> {
        self.table.entry(&self.row, now)
    }

    /// Its key.
    pub fn key(&self) -> &Key {
        &self.row.key
    }

    /// Ends the tracking; the entry has been used until now.
    pub fn end(self, now: u64) {
        self.entry(now).touch();
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        if let Some(place) = self.table.layout.find(Datum::ConnCur, 0) {
            place.decrease(&mut self.row.cells.lock().unwrap_or_else(PoisonError::into_inner));
        }
        self.row.trackers.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
