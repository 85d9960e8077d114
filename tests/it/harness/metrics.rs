//! What `/metrics` says, and the law that its counters obey.

/// Names of the series, in one place.
const REQUESTS: &str = "tidegate_requests_total";
const OUTCOMES: &str = "tidegate_request_outcomes_total";
const BACKEND_REQUESTS: &str = "tidegate_upstream_requests_total";
const BACKEND_ERRORS: &str = "tidegate_upstream_errors_total";
const EVICTIONS: &str = "tidegate_evictions_total";

/// Every outcome that a request can have (the law of the counters: their sum is the requests).
const ALL: [&str; 10] =
    ["hit", "stale", "revalidated", "collapsed", "miss", "pass", "answered", "purge", "refused", "error"];

/// A scrape.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// The Prometheus text.
    pub text: String,
}

impl Metrics {
    /// The sum over all series of this name whose labels contain all of `labels` (`name="value"`).
    pub fn sum(&self, name: &str, labels: &[&str]) -> u64 {
        let mut sum = 0.0;
        for line in self.text.lines().filter(|line| !line.starts_with('#')) {
            let Some((series, value)) = line.rsplit_once(' ') else { continue };
            let (have, of) = series.split_once('{').unwrap_or((series, ""));
            if have == name && labels.iter().all(|label| of.contains(label)) {
                sum += value.parse::<f64>().unwrap_or_else(|_| panic!("a value: {line}"));
            }
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "counters are small and not negative"
        )]
        let sum = sum as u64;
        sum
    }

    /// Requests parsed.
    pub fn requests(&self) -> u64 {
        self.sum(REQUESTS, &[])
    }

    /// Requests that ended so.
    pub fn outcome(&self, outcome: &str) -> u64 {
        assert!(ALL.contains(&outcome), "{outcome} is an outcome");
        self.sum(OUTCOMES, &[&format!("outcome=\"{outcome}\"")])
    }

    /// Exchanges begun with servers.
    pub fn backend_requests(&self) -> u64 {
        self.sum(BACKEND_REQUESTS, &[])
    }

    /// Exchanges that failed.
    pub fn backend_errors(&self) -> u64 {
        self.sum(BACKEND_ERRORS, &[])
    }

    /// Objects evicted for room.
    pub fn evictions(&self) -> u64 {
        self.sum(EVICTIONS, &[])
    }

    /// `Ok` when requests = the sum of all outcomes, else both sides.
    pub fn law(&self) -> Result<(), String> {
        let parts: Vec<(&str, u64)> = ALL.iter().map(|&outcome| (outcome, self.outcome(outcome))).collect();
        let sum: u64 = parts.iter().map(|(_, count)| count).sum();
        let all = self.sum(OUTCOMES, &[]);
        if sum == self.requests() && all == sum {
            return Ok(());
        }
        Err(format!("{} requests, but {sum} outcomes {parts:?} ({all} with unknown ones)", self.requests()))
    }
}
