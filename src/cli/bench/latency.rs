//! Latencies in buckets: constant room however many, and at most 3 % off.

use std::time::Duration;

/// Buckets for each doubling.
const STEPS: u64 = 32;
/// 32 exact ones, then 32 a doubling up to 2^40 µs.
const BUCKETS: usize = 32 * 37;

/// How many requests took how long, in microseconds.
#[derive(Clone, Debug)]
pub(super) struct Latencies {
    counts: Vec<u64>,
    total: u64,
}

impl Latencies {
    pub(super) fn new() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0 }
    }

    pub(super) fn add(&mut self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        if let Some(count) = self.counts.get_mut(bucket(micros).min(BUCKETS - 1)) {
            *count += 1;
        }
        self.total += 1;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.total += other.total;
    }

    /// The latency that `permille` of 1000 requests stayed at or below; zero when there were none.
    pub(super) fn at(&self, permille: u64) -> Duration {
        let wanted = self.total.saturating_mul(permille).div_ceil(1000).max(1);
        let mut seen = 0;
        let index = self.counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        Duration::from_micros(index.map_or(0, upper))
    }
}

/// The bucket of a latency: its highest bit says which doubling, the five bits below it which step.
fn bucket(micros: u64) -> usize {
    let shift = (64 - micros.leading_zeros()).saturating_sub(6);
    let index = u64::from(shift) * STEPS + (micros >> shift);
    usize::try_from(index).unwrap_or(usize::MAX)
}

/// The largest latency of a bucket.
fn upper(bucket: usize) -> u64 {
    let bucket = u64::try_from(bucket).unwrap_or(u64::MAX);
    let shift = (bucket / STEPS).saturating_sub(1);
    ((bucket - shift * STEPS + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_at_most_three_percent_wide() {
        let mut last = 0;
        for micros in (0..200).chain([1_000, 12_345, 1_000_000, 3_600_000_000]) {
            let top = upper(bucket(micros));
            assert!(top >= micros && top <= micros + micros / 31, "{micros} in a bucket up to {top}");
            assert!(top >= last);
            last = top;
        }
    }

    #[test]
    fn percentiles() {
        let mut latencies = Latencies::new();
        assert_eq!(latencies.at(500), Duration::ZERO);
        (1..=1000).for_each(|micros| latencies.add(Duration::from_micros(micros)));
        let half = latencies.at(500).as_micros();
        assert!((500..516).contains(&half), "{half}");
        assert!(latencies.at(990).as_micros() >= 990);
    }
}
