//! What came of a load, counted and shown.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};

use super::latency::Latencies;

/// What came of it.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) answers: u64,
    pub(super) bytes: u64,
    pub(super) statuses: BTreeMap<u16, u64>,
    /// Answers whose `Cache-Status` says hit.
    pub(super) hits: u64,
    /// Connections that could not be made.
    pub(super) refused: u64,
    /// Answers that broke off or did not come in time.
    pub(super) broken: u64,
    /// Bodies that don't add up to what `x-checksum` says, or are another target's.
    pub(super) wrong: u64,
    pub(super) latencies: Latencies,
}

impl Tally {
    pub(super) fn new() -> Self {
        let latencies = Latencies::new();
        Self { answers: 0, bytes: 0, statuses: BTreeMap::new(), hits: 0, refused: 0, broken: 0, wrong: 0, latencies }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.answers += other.answers;
        self.bytes += other.bytes;
        self.hits += other.hits;
        self.refused += other.refused;
        self.broken += other.broken;
        self.wrong += other.wrong;
        other.statuses.iter().for_each(|(&status, count)| *self.statuses.entry(status).or_default() += count);
        self.latencies.merge(&other.latencies);
    }

    /// Whether there were answers and every one had an error's status.
    pub(super) fn all_errors(&self) -> bool {
        !self.statuses.is_empty() && self.statuses.keys().all(|&status| status >= 400)
    }

    pub(super) fn report(&self, took: Duration) -> Value {
        let rate = u128::from(self.answers) * 1_000_000 / took.as_micros().max(1);
        let micros = |permille| u64::try_from(self.latencies.at(permille).as_micros()).unwrap_or(u64::MAX);
        let statuses: serde_json::Map<String, Value> =
            self.statuses.iter().map(|(status, count)| (status.to_string(), json!(count))).collect();
        json!({
            "seconds": (took.as_secs_f64() * 100.0).round() / 100.0, "answers": self.answers, "per_second": u64::try_from(rate).unwrap_or(u64::MAX),
            "bytes": self.bytes, "p50_us": micros(500), "p99_us": micros(990), "max_us": micros(1000),
            "statuses": statuses, "hits": self.hits, "connections_refused": self.refused,
            "broken": self.broken, "wrong": self.wrong,
        })
    }
}

/// What is shown, in this order.
const SHOWN: [&str; 12] = [
    "seconds",
    "answers",
    "per_second",
    "bytes",
    "p50_us",
    "p99_us",
    "max_us",
    "statuses",
    "hits",
    "connections_refused",
    "broken",
    "wrong",
];

/// A report as lines.
pub(super) fn lines(report: &Value) -> String {
    let line = |name: &str| Some(format!("{:<20} {}\n", name.replace('_', " "), report.get(name)?));
    SHOWN.into_iter().filter_map(line).collect()
}
