//! The counters as values, for `/v1/stats`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{All, Outcome, locked};

/// Requests by how they ended, under the outcome's word.
type Outcomes = BTreeMap<&'static str, u64>;

/// What was counted since the process began.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// Requests of all frontends.
    pub requests: u64,
    /// How they ended.
    pub outcomes: Outcomes,
    /// Reloads that took effect, and that did not.
    pub reloads: BTreeMap<&'static str, u64>,
    /// By frontend.
    pub frontends: BTreeMap<String, FrontendSummary>,
    /// By backend.
    pub backends: BTreeMap<String, BackendSummary>,
    /// By store.
    pub stores: BTreeMap<String, StoreSummary>,
}

/// What one frontend counted.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FrontendSummary {
    /// Requests received.
    pub requests: u64,
    /// Connections open now.
    pub connections: i64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// How its requests ended, over all caching rules.
    pub outcomes: Outcomes,
    /// The same by caching rule; `-`: none.
    pub rules: BTreeMap<String, Outcomes>,
}

/// What one backend counted.
#[derive(Clone, Debug, Default, Serialize)]
pub struct BackendSummary {
    /// Exchanges begun.
    pub requests: u64,
    /// Exchanges that failed.
    pub errors: u64,
}

/// What one store holds and counted.
#[derive(Clone, Debug, Default, Serialize)]
pub struct StoreSummary {
    /// Objects.
    pub objects: i64,
    /// Bytes charged.
    pub bytes: i64,
    /// The budget in bytes.
    pub budget: i64,
    /// Fills under way.
    pub fills: i64,
    /// Objects stored since the start.
    pub inserts: u64,
    /// Objects evicted.
    pub evictions: u64,
    /// Objects purged.
    pub purged: u64,
}

impl Summary {
    pub(super) fn of(all: &All) -> Self {
        let mut summary = Self::default();
        for (name, of) in locked(&all.frontends).iter() {
            summary.requests += of.requests.get();
            let frontend = summary.frontends.entry(name.clone()).or_default();
            frontend.requests = of.requests.get();
            frontend.connections = of.active.get();
            frontend.bytes_in = of.bytes_in.get();
            frontend.bytes_out = of.bytes_out.get();
        }
        for ((frontend, rule), of) in locked(&all.requests).iter() {
            let frontend = summary.frontends.entry(frontend.clone()).or_default();
            for outcome in Outcome::ALL {
                let count = of.get(outcome);
                *summary.outcomes.entry(outcome.as_str()).or_default() += count;
                *frontend.outcomes.entry(outcome.as_str()).or_default() += count;
                frontend.rules.entry(rule.clone()).or_default().insert(outcome.as_str(), count);
            }
        }
        for (name, of) in locked(&all.backends).iter() {
            let backend = BackendSummary { requests: of.requests.get(), errors: of.errors() };
            summary.backends.insert(name.clone(), backend);
        }
        for (name, of) in locked(&all.stores).iter() {
            let store = StoreSummary {
                objects: of.objects.get(),
                bytes: of.used.get(),
                budget: of.budget.get(),
                fills: of.fills.get(),
                inserts: of.inserts.get(),
                evictions: of.evictions.total(),
                purged: of.purged.get(),
            };
            summary.stores.insert(name.clone(), store);
        }
        summary.reloads.insert("ok", all.process.reloads_ok.get());
        summary.reloads.insert("failed", all.process.reloads_failed.get());
        summary
    }
}
