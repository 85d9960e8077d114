//! Counters, their names and labels, and how they are read. Imports nothing of the crate.
//!
//! A series is found once, when a snapshot is built, and outlives it: reloads keep counting. Each
//! thread counts in a cell of its own, so a hit writes no cache line that another thread writes.

mod cell;
mod collect;
mod summary;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use prometheus::{Registry, TextEncoder};

pub use cell::{Counter, Gauge, Histogram, Labelled, Rate};
pub use summary::{BackendSummary, FrontendSummary, StoreSummary, Summary};

/// How a request ended. Every request has exactly one:
/// requests = hit + stale + revalidated + collapsed + miss + pass + answered + purge + refused + error.
/// A request whose client did not wait for the end counts as what it was to be, with the reason
/// `client-gone`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// A fresh stored response.
    Hit,
    /// A stale stored response, within grace or because the origin failed.
    Stale,
    /// A stored response that the origin confirmed (304).
    Revalidated,
    /// The response of a fill that another request had started.
    Collapsed,
    /// The response of a fill that this request started.
    Miss,
    /// Passed to a server without the cache.
    Pass,
    /// Answered by a rule (`redirect`, `return`).
    Answered,
    /// A purge.
    Purge,
    /// Refused: malformed, or denied by a rule.
    Refused,
    /// A server could not be reached or broke off, or something went wrong here; never a client.
    Error,
}

impl Outcome {
    /// All of them, in the order they are counted and printed.
    pub const ALL: [Self; 10] = [
        Self::Hit,
        Self::Stale,
        Self::Revalidated,
        Self::Collapsed,
        Self::Miss,
        Self::Pass,
        Self::Answered,
        Self::Purge,
        Self::Refused,
        Self::Error,
    ];

    /// The label's value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Stale => "stale",
            Self::Revalidated => "revalidated",
            Self::Collapsed => "collapsed",
            Self::Miss => "miss",
            Self::Pass => "pass",
            Self::Answered => "answered",
            Self::Purge => "purge",
            Self::Refused => "refused",
            Self::Error => "error",
        }
    }
}

/// What a frontend counts.
#[derive(Debug, Default)]
pub struct FrontendMetrics {
    /// Requests parsed (malformed ones included).
    pub requests: Counter,
    /// Connections accepted.
    pub connections: Counter,
    /// Connections that a rule closed before any request.
    pub denied: Counter,
    /// Connections that are open now.
    pub active: Gauge,
    /// Requests by the second.
    pub request_rate: Rate,
    /// Connections by the second.
    pub connection_rate: Rate,
    /// Bytes received from clients.
    pub bytes_in: Counter,
    /// Bytes sent to clients.
    pub bytes_out: Counter,
    /// From a head's last byte to the reply's last byte.
    pub duration: Histogram,
    responses: [Counter; CLASSES.len()],
}

/// The classes of statuses (RFC 9110 §15); `other`: no response was sent.
pub const CLASSES: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", "other"];

impl FrontendMetrics {
    /// Counts a response by its status; 0: none was sent.
    pub fn responded(&self, status: u16) {
        let class = usize::from(status / 100).wrapping_sub(1).min(CLASSES.len() - 1);
        if let Some(counter) = self.responses.get(class) {
            counter.add(1);
        }
    }

    /// Responses by class, in the order of [`CLASSES`].
    pub fn responses(&self) -> [u64; CLASSES.len()] {
        self.responses.each_ref().map(Counter::get)
    }
}

/// What one caching rule (or `-`, none) counts in one frontend.
#[derive(Debug, Default)]
pub struct RequestMetrics {
    outcomes: [Counter; Outcome::ALL.len()],
    reasons: Labelled,
}

impl RequestMetrics {
    /// Counts a request's end; `reason` says why it was not a hit, when it was not. Reasons are words from a
    /// closed list: a process that meets more than a few dozen counts the rest as `other`.
    pub fn count(&self, outcome: Outcome, reason: Option<&'static str>) {
        if let Some(counter) = self.outcomes.get(outcome as usize) {
            counter.add(1);
        }
        if let Some(reason) = reason.filter(|_| outcome != Outcome::Hit) {
            self.reasons.add(reason, 1);
        }
    }

    /// How many requests ended so.
    pub fn get(&self, outcome: Outcome) -> u64 {
        self.outcomes.get(outcome as usize).map_or(0, Counter::get)
    }
}

/// What a backend counts.
#[derive(Debug)]
pub struct BackendMetrics {
    /// Exchanges begun with its servers.
    pub requests: Counter,
    /// Requests that were led to it, answered from the cache or not.
    pub entered: Counter,
    /// Those of them that have ended.
    pub left: Counter,
    /// Requests that were led to it, by the second.
    pub rate: Rate,
    /// From the request's first byte to the response's last.
    pub fill_duration: Histogram,
    errors: Labelled,
}

/// Every series is there from the start, so that rates can be taken of it.
impl Default for BackendMetrics {
    fn default() -> Self {
        let errors = Labelled::default();
        ["connect", "timeout", "protocol", "truncated"].into_iter().for_each(|kind| errors.add(kind, 0));
        Self {
            requests: Counter::default(),
            entered: Counter::default(),
            left: Counter::default(),
            rate: Rate::default(),
            fill_duration: Histogram::default(),
            errors,
        }
    }
}

impl BackendMetrics {
    /// Counts an exchange that failed; `kind` is a word from a closed list (`connect`, `timeout`, …).
    pub fn error(&self, kind: &'static str) {
        self.errors.add(kind, 1);
    }

    /// Requests that are at it now.
    pub fn active(&self) -> u64 {
        // In this order a request that moves meanwhile is not counted as less than none.
        let left = self.left.get();
        self.entered.get().saturating_sub(left)
    }

    /// Exchanges that failed so.
    pub fn errors_of(&self, kind: &str) -> u64 {
        self.errors.each().find(|(of, _)| *of == kind).map_or(0, |(_, count)| count)
    }

    /// Exchanges that failed, of every kind.
    pub fn errors(&self) -> u64 {
        self.errors.total()
    }
}

/// What a store counts; the store keeps the gauges.
#[derive(Debug)]
pub struct StoreMetrics {
    /// Objects stored.
    pub inserts: Counter,
    /// Objects evicted, by what asked for the room.
    pub evictions: Labelled,
    /// Objects purged.
    pub purged: Counter,
    /// Responses that were to be stored and were not, by what was in the way.
    pub refusals: Labelled,
    /// Bytes charged.
    pub used: Gauge,
    /// The budget.
    pub budget: Gauge,
    /// Objects.
    pub objects: Gauge,
    /// Fills under way.
    pub fills: Gauge,
}

/// As with [`BackendMetrics`].
impl Default for StoreMetrics {
    fn default() -> Self {
        let evictions = Labelled::default();
        ["room", "variants"].into_iter().for_each(|reason| evictions.add(reason, 0));
        Self {
            inserts: Counter::default(),
            evictions,
            purged: Counter::default(),
            refusals: Labelled::default(),
            used: Gauge::default(),
            budget: Gauge::default(),
            objects: Gauge::default(),
            fills: Gauge::default(),
        }
    }
}

/// What the process counts as a whole.
#[derive(Debug, Default)]
pub struct ProcessMetrics {
    /// Log lines that were dropped because their reader was slow.
    pub log_lines_dropped: Counter,
    /// Reloads that took effect.
    pub reloads_ok: Counter,
    /// Reloads that changed nothing because the configuration does not load.
    pub reloads_failed: Counter,
}

/// Series by their labels, in the order they are printed.
type Series<L, S> = Mutex<BTreeMap<L, Arc<S>>>;

#[derive(Debug, Default)]
struct All {
    frontends: Series<String, FrontendMetrics>,
    /// By frontend and rule.
    requests: Series<(String, String), RequestMetrics>,
    backends: Series<String, BackendMetrics>,
    stores: Series<String, StoreMetrics>,
    process: ProcessMetrics,
}

/// Every series of the process.
#[derive(Debug)]
pub struct Metrics {
    all: Arc<All>,
    registry: Registry,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// No series yet.
    pub fn new() -> Self {
        let all = Arc::new(All::default());
        let registry = Registry::new();
        // One collector without descriptors of its own in an empty registry cannot collide with another.
        let _ = registry.register(Box::new(collect::Collected::new(Arc::clone(&all))));
        Self { all, registry }
    }

    /// The series of a frontend.
    pub fn frontend(&self, frontend: &str) -> Arc<FrontendMetrics> {
        series(&self.all.frontends, frontend.to_owned())
    }

    /// The series of a caching rule in a frontend; rule `-` for requests that no rule was for.
    pub fn requests(&self, frontend: &str, rule: &str) -> Arc<RequestMetrics> {
        series(&self.all.requests, (frontend.to_owned(), rule.to_owned()))
    }

    /// The series of a backend.
    pub fn backend(&self, backend: &str) -> Arc<BackendMetrics> {
        series(&self.all.backends, backend.to_owned())
    }

    /// The series of a store.
    pub fn store(&self, store: &str) -> Arc<StoreMetrics> {
        series(&self.all.stores, store.to_owned())
    }

    /// What the process counts as a whole.
    pub fn process(&self) -> &ProcessMetrics {
        &self.all.process
    }

    /// Where other collectors may join the exposition.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The Prometheus text format of everything.
    pub fn render(&self) -> String {
        // Encoding fails only on families without series, which are never gathered.
        TextEncoder::new().encode_to_string(&self.registry.gather()).unwrap_or_default()
    }

    /// The same numbers as values, for `/v1/stats`.
    pub fn summary(&self) -> Summary {
        Summary::of(&self.all)
    }
}

fn series<L: Ord, S: Default>(of: &Series<L, S>, labels: L) -> Arc<S> {
    Arc::clone(locked(of).entry(labels).or_default())
}

/// A counting thread that panicked leaves the series as they were.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn has(text: &str, line: &str) {
        assert!(text.lines().any(|found| found == line), "no line {line:?} in\n{text}");
    }

    #[test]
    fn series_are_found_again_by_name() {
        let metrics = Metrics::new();
        metrics.frontend("www").requests.add(2);
        metrics.frontend("www").requests.add(1);
        assert_eq!(metrics.frontend("www").requests.get(), 3);
    }

    #[test]
    fn everything_is_rendered_with_its_labels() {
        let metrics = Metrics::new();
        metrics.frontend("www").requests.add(3);
        metrics.frontend("www").active.add(1);
        metrics.frontend("www").duration.observe(Duration::from_micros(700));
        metrics.requests("www", "img").count(Outcome::Hit, None);
        metrics.requests("www", "img").count(Outcome::Miss, Some("uri-miss"));
        metrics.requests("www", "-").count(Outcome::Pass, Some("method"));
        metrics.backend("app").error("timeout");
        metrics.store("edge").budget.set(1 << 20);
        metrics.store("edge").evictions.add("room", 4);
        let text = metrics.render();
        has(&text, "tidegate_requests_total{frontend=\"www\"} 3");
        has(&text, "tidegate_connections_active{frontend=\"www\"} 1");
        has(&text, "tidegate_request_outcomes_total{frontend=\"www\",rule=\"img\",outcome=\"hit\"} 1");
        has(&text, "tidegate_request_outcomes_total{frontend=\"www\",rule=\"img\",outcome=\"stale\"} 0");
        has(&text, "tidegate_misses_total{frontend=\"www\",rule=\"-\",reason=\"method\"} 1");
        has(&text, "tidegate_upstream_errors_total{backend=\"app\",kind=\"timeout\"} 1");
        has(&text, "tidegate_store_budget_bytes{store=\"edge\"} 1048576");
        has(&text, "tidegate_evictions_total{store=\"edge\",reason=\"room\"} 4");
        has(&text, "tidegate_request_duration_seconds_bucket{frontend=\"www\",le=\"0.0005\"} 0");
        has(&text, "tidegate_request_duration_seconds_bucket{frontend=\"www\",le=\"0.001\"} 1");
        has(&text, "tidegate_request_duration_seconds_bucket{frontend=\"www\",le=\"+Inf\"} 1");
        has(&text, "tidegate_request_duration_seconds_count{frontend=\"www\"} 1");
        has(&text, "# TYPE tidegate_requests_total counter");
        has(&text, "# TYPE tidegate_request_duration_seconds histogram");
        assert!(text.contains("tidegate_build_info{version="));
    }

    #[test]
    fn threads_add_up() {
        let metrics = Metrics::new();
        let counting = metrics.requests("www", "img");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..1000).for_each(|_| counting.count(Outcome::Miss, Some("uri-miss"))));
            }
        });
        assert_eq!(counting.get(Outcome::Miss), 8000);
        assert_eq!(metrics.summary().outcomes.get("miss"), Some(&8000));
    }

    #[test]
    fn the_summary_adds_rules_up_by_frontend() {
        let metrics = Metrics::new();
        metrics.frontend("www").requests.add(2);
        metrics.requests("www", "a").count(Outcome::Hit, None);
        metrics.requests("www", "b").count(Outcome::Hit, None);
        let summary = metrics.summary();
        assert_eq!(summary.requests, 2);
        assert_eq!(summary.frontends.get("www").and_then(|www| www.outcomes.get("hit")), Some(&2));
        let json = serde_json::to_string(&summary).expect("json");
        assert!(json.contains("\"hit\":2"), "{json}");
    }
}
