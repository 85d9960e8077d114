//! What counts: each thread has a cell of its own on a cache line of its own.

use std::{
    cell::Cell,
    sync::{
        OnceLock,
        atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

/// At most this many cells; threads beyond share them.
const MAX_CELLS: usize = 64;

/// The cells of a counter: a power of two, at least one for each processor up to [`MAX_CELLS`].
fn cells() -> usize {
    static CELLS: OnceLock<usize> = OnceLock::new();
    *CELLS.get_or_init(|| {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        processors.next_power_of_two().min(MAX_CELLS)
    })
}

/// The present thread's number, given out in order of first use.
fn thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static OWN: Cell<usize> = const { Cell::new(usize::MAX) });
    OWN.with(|own| {
        if own.get() == usize::MAX {
            own.set(NEXT.fetch_add(1, Relaxed));
        }
        own.get()
    })
}

/// One `T` for each thread, none on another's cache line.
#[derive(Debug)]
struct PerThread<T>(Box<[Padded<T>]>);

#[derive(Debug, Default)]
#[repr(align(64))]
struct Padded<T>(T);

impl<T: Default> Default for PerThread<T> {
    fn default() -> Self {
        Self((0..cells()).map(|_| Padded::default()).collect())
    }
}

impl<T> PerThread<T> {
    fn own(&self) -> Option<&T> {
        self.0.get(thread() & (self.0.len().wrapping_sub(1))).map(|padded| &padded.0)
    }

    fn sum(&self, of: impl Fn(&T) -> u64) -> u64 {
        self.0.iter().map(|padded| of(&padded.0)).fold(0, u64::wrapping_add)
    }
}

/// A counter with a cell for each thread.
#[derive(Debug, Default)]
pub struct Counter(PerThread<AtomicU64>);

impl Counter {
    /// Adds `n`. Allocates nothing.
    pub fn add(&self, n: u64) {
        if let Some(cell) = self.0.own() {
            cell.fetch_add(n, Relaxed);
        }
    }

    /// The sum of all cells.
    pub fn get(&self) -> u64 {
        self.0.sum(|cell| cell.load(Relaxed))
    }
}

/// A number that goes up and down.
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    /// Adds `n`, which may be negative.
    pub fn add(&self, n: i64) {
        self.0.fetch_add(n, Relaxed);
    }

    /// Takes the value `n`.
    pub fn set(&self, n: i64) {
        self.0.store(n, Relaxed);
    }

    /// The present value.
    pub fn get(&self) -> i64 {
        self.0.load(Relaxed)
    }
}

/// How often something happens in a second, with cells for each thread. What happened in this second counts whole, what
/// happened in the one before counts for the part of it that is less than a second ago.
#[derive(Debug, Default)]
pub struct Rate(PerThread<Second>);

/// Threads beyond [`MAX_CELLS`] share cells and may then lose a count where a second begins.
#[derive(Debug, Default)]
struct Second {
    /// Which one, from 1970.
    number: AtomicU64,
    count: AtomicU64,
    before: AtomicU64,
}

impl Rate {
    /// Counts one; `millis` is the present time since 1970. Allocates nothing.
    pub fn count(&self, millis: u64) {
        let Some(cell) = self.0.own() else { return };
        let (second, last) = (millis / 1000, cell.number.load(Relaxed));
        if second > last {
            let count = cell.count.swap(0, Relaxed);
            cell.before.store(if second == last + 1 { count } else { 0 }, Relaxed);
            cell.number.store(second, Relaxed);
        }
        cell.count.fetch_add(1, Relaxed);
    }

    /// How many in the second that ends at `millis` since 1970.
    pub fn get(&self, millis: u64) -> u64 {
        let (second, rest) = (millis / 1000, 1000 - millis % 1000);
        let now = self.0.sum(|cell| if cell.number.load(Relaxed) >= second { cell.count.load(Relaxed) } else { 0 });
        let before = self.0.sum(|cell| match cell.number.load(Relaxed) {
            number if number >= second => cell.before.load(Relaxed),
            number if number + 1 == second => cell.count.load(Relaxed),
            _ => 0,
        });
        // As in HAProxy: a lone event does not flicker.
        if now == 0 && before <= 1 { before } else { now + before * rest / 1000 }
    }
}

/// Upper bounds of a histogram's buckets, in microseconds: what memory answers in the low ones, what
/// servers answer from half a millisecond to half a minute.
pub(super) const BOUNDS: [u64; 17] = [
    10, 50, 100, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    10_000_000, 30_000_000,
];

#[derive(Debug, Default)]
struct Buckets {
    /// One for each bound, not cumulative; the last takes what is beyond.
    counts: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

/// A histogram of durations with cells for each thread.
#[derive(Debug, Default)]
pub struct Histogram(PerThread<Buckets>);

impl Histogram {
    /// Counts one duration. Allocates nothing.
    pub fn observe(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        // Rounded up, so that a duration just above a bound is not counted below it.
        let exact = u64::from(!duration.subsec_nanos().is_multiple_of(1000));
        let bucket = BOUNDS.partition_point(|bound| *bound < micros.saturating_add(exact));
        if let Some(own) = self.0.own() {
            if let Some(count) = own.counts.get(bucket) {
                count.fetch_add(1, Relaxed);
            }
            own.micros.fetch_add(micros, Relaxed);
        }
    }

    /// How many durations were counted in each bucket, the last for those beyond every bound.
    pub(super) fn counts(&self) -> [u64; BOUNDS.len() + 1] {
        std::array::from_fn(|bucket| self.0.sum(|cell| cell.counts.get(bucket).map_or(0, |count| count.load(Relaxed))))
    }

    /// The sum of all durations.
    pub(super) fn sum(&self) -> Duration {
        Duration::from_micros(self.0.sum(|cell| cell.micros.load(Relaxed)))
    }
}

/// Counters by a label whose values are words of the program, found without a lock.
#[derive(Debug)]
pub struct Labelled(Box<[OnceLock<(&'static str, Counter)>]>);

/// More words than any label has; what is beyond counts as [`OTHER`].
const WORDS: usize = 64;
const OTHER: &str = "other";

impl Default for Labelled {
    fn default() -> Self {
        Self((0..=WORDS).map(|_| OnceLock::new()).collect())
    }
}

impl Labelled {
    /// Adds `n` under `word`. Allocates only when the word is new.
    pub fn add(&self, word: &'static str, n: u64) {
        let Some((last, cells)) = self.0.split_last() else { return };
        for cell in cells {
            let (taken, counter) = cell.get_or_init(|| (word, Counter::default()));
            if *taken == word {
                return counter.add(n);
            }
        }
        last.get_or_init(|| (OTHER, Counter::default())).1.add(n);
    }

    /// Each word met so far with its count.
    pub fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().filter_map(OnceLock::get).map(|(word, counter)| (*word, counter.get()))
    }

    /// The sum over all words.
    pub fn total(&self) -> u64 {
        self.each().map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_falls_into_the_first_bucket_that_holds_it() {
        let histogram = Histogram::default();
        for duration in [Duration::ZERO, Duration::from_micros(10), Duration::from_nanos(10_001), Duration::MAX] {
            histogram.observe(duration);
        }
        let counts = histogram.counts();
        assert_eq!((counts[0], counts[1], counts[BOUNDS.len()]), (2, 1, 1));
    }

    #[test]
    fn a_rate_forgets_the_last_second_bit_by_bit() {
        let rate = Rate::default();
        (0..10).for_each(|_| rate.count(5_900));
        assert_eq!(rate.get(5_999), 10);
        assert_eq!((rate.get(6_000), rate.get(6_500), rate.get(6_999)), (10, 5, 0));
        assert_eq!(rate.get(7_000), 0);
        rate.count(6_500);
        assert_eq!(rate.get(6_500), 6);
        assert_eq!(rate.get(7_999), 1);
        rate.count(60_000);
        assert_eq!(rate.get(60_000), 1);
    }

    #[test]
    fn words_beyond_the_table_count_as_other() {
        let labelled = Labelled::default();
        for index in 0..WORDS + 5 {
            labelled.add(Box::leak(format!("w{index}").into_boxed_str()), 1);
        }
        assert_eq!(labelled.each().find(|(word, _)| *word == OTHER), Some((OTHER, 5)));
        labelled.add("w0", 1);
        assert_eq!(labelled.each().next(), Some(("w0", 2)));
        assert_eq!(labelled.total(), 70);
    }
}
