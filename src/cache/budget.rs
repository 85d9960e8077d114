//! The hard byte budget of a store: what is charged to it stays so until the last reader lets go.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use crate::metrics::StoreMetrics;

/// A number of bytes, and how many of them are in use. `used` never exceeds the limit, except after the
/// limit was lowered.
#[derive(Debug)]
pub(super) struct Budget {
    used: AtomicU64,
    limit: AtomicU64,
    metrics: Arc<StoreMetrics>,
}

impl Budget {
    pub(super) fn new(limit: u64, metrics: Arc<StoreMetrics>) -> Arc<Self> {
        let budget = Self { used: AtomicU64::new(0), limit: AtomicU64::new(0), metrics };
        budget.set_limit(limit);
        Arc::new(budget)
    }

    pub(super) fn used(&self) -> u64 {
        self.used.load(Relaxed)
    }

    pub(super) fn limit(&self) -> u64 {
        self.limit.load(Relaxed)
    }

    pub(super) fn set_limit(&self, limit: u64) {
        self.limit.store(limit, Relaxed);
        self.metrics.budget.set(signed(limit));
    }

    /// Whether `bytes` more would fit now.
    pub(super) fn fits(&self, bytes: u64) -> bool {
        self.used().saturating_add(bytes) <= self.limit()
    }

    fn take(&self, bytes: u64) -> bool {
        let limit = self.limit();
        let sum = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= limit);
        let taken = self.used.fetch_update(Relaxed, Relaxed, sum).is_ok();
        if taken {
            self.metrics.used.add(signed(bytes));
        }
        taken
    }

    fn give(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Relaxed);
        self.metrics.used.add(signed(bytes).saturating_neg());
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Bytes taken from a budget; dropping it gives them back.
#[derive(Debug)]
pub(super) struct Charge {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Charge {
    /// Nothing yet.
    pub(super) fn none(budget: &Arc<Budget>) -> Self {
        Self { budget: Arc::clone(budget), bytes: 0 }
    }

    /// Takes `bytes` more; false, and nothing changed, when they do not fit.
    pub(super) fn grow(&mut self, bytes: u64) -> bool {
        let taken = self.budget.take(bytes);
        if taken {
            self.bytes += bytes;
        }
        taken
    }

    /// Gives back what exceeds `bytes`.
    pub(super) fn shrink_to(&mut self, bytes: u64) {
        let surplus = self.bytes.saturating_sub(bytes);
        if surplus > 0 {
            self.budget.give(surplus);
            self.bytes -= surplus;
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_is_given_back_when_dropped() {
        let budget = Budget::new(10, Arc::default());
        let mut charge = Charge::none(&budget);
        assert!(charge.grow(6) && charge.grow(4) && !charge.grow(1) && !charge.grow(u64::MAX));
        charge.shrink_to(7);
        assert_eq!((budget.used(), budget.metrics.used.get()), (7, 7));
        drop(charge);
        assert_eq!((budget.used(), budget.metrics.used.get()), (0, 0));
    }
}
