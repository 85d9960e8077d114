//! How long a stored response is fresh, and how old it is (RFC 9111 §4.2).

use std::time::Duration;

use super::{
    date::date,
    directive::{CacheControl, delta_seconds},
    terms::Heuristic,
};
use crate::{message::Fields, time::Timestamp};

/// The times of a stored response, fixed when it is stored or freshened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freshness {
    /// When its head was received.
    pub received: Timestamp,
    /// Its age then (§4.2.3: from `Age`, `Date` and the time the exchange took).
    pub initial_age: Duration,
    /// How long it is fresh, counted by age (§4.2.1).
    pub lifetime: Duration,
    /// How long past that it may be served while it is refreshed (RFC 5861 §3, `grace`).
    pub grace: Duration,
    /// How long past that it may be served when the origin fails (RFC 5861 §4).
    pub stale_if_error: Duration,
    /// Never served stale (`must-revalidate`, `proxy-revalidate`, `no-cache`, `s-maxage`).
    pub must_revalidate: bool,
    /// Never served without asking (`no-cache`).
    pub no_cache: bool,
}

impl Freshness {
    /// Its age at `now` (§4.2.3).
    pub fn age(&self, now: Timestamp) -> Duration {
        self.initial_age.saturating_add(now.since(self.received))
    }

    /// Whether it is fresh at `now` (§4.2).
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        self.lifetime > self.age(now)
    }

    /// Makes it stale from `now` on; its grace and error windows begin then.
    pub fn expire(&mut self, now: Timestamp) {
        self.lifetime = self.lifetime.min(self.age(now));
    }

    /// Whether it can be of any use once it is stale, a validator apart.
    pub(super) fn has_stale_use(&self) -> bool {
        !self.must_revalidate && !self.no_cache && !self.grace.max(self.stale_if_error).is_zero()
    }
}

/// The lifetime a response states for a shared cache: `s-maxage`, else `max-age`, else `Expires` less
/// `Date` (§4.2.1). `None` when it states none; zero when what it states is malformed.
pub fn explicit_lifetime(fields: &Fields, control: &CacheControl, received: Timestamp) -> Option<Duration> {
    control.s_maxage.or(control.max_age).or_else(|| {
        let expires = fields.first("expires").filter(|_| !control.targeted)?;
        // An invalid date lies in the past, `0` before all (§5.3).
        Some(date(expires).map_or(Duration::ZERO, |expires| expires.since(made(fields, received))))
    })
}

/// The lifetime that `heuristic` gives a response which states none (§4.2.2): a part of the time since it was last
/// modified. `None` when it does not say when that was.
pub fn heuristic_lifetime(fields: &Fields, heuristic: Heuristic, received: Timestamp) -> Option<Duration> {
    let modified = fields.first("last-modified").and_then(date)?;
    let unchanged = made(fields, received).since(modified);
    Some((unchanged / 100 * u32::from(heuristic.percent)).min(heuristic.max))
}

/// The age of a response when its head arrives (§4.2.3, `corrected_initial_age`).
pub fn initial_age(fields: &Fields, requested: Timestamp, received: Timestamp) -> Duration {
    let apparent = received.since(made(fields, received));
    let delay = received.since(requested);
    apparent.max(age_field(fields).saturating_add(delay))
}

/// `Age`: the first member counts, a malformed one counts as absent (§5.1).
fn age_field(fields: &Fields) -> Duration {
    fields.members("age").next().and_then(delta_seconds).unwrap_or_default()
}

/// `Date`, or the time of reception when there is none that can be read (RFC 9110 §6.6.1).
fn made(fields: &Fields, received: Timestamp) -> Timestamp {
    fields.first("date").and_then(date).unwrap_or(received)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: &str = "Sun, 06 Nov 1994 12:00:00 GMT";

    fn noon() -> Timestamp {
        date(NOON.as_bytes()).expect("a date")
    }

    fn lifetime(lines: &[(&str, &str)]) -> Option<u64> {
        let fields = lines.iter().copied().collect();
        explicit_lifetime(&fields, &CacheControl::of(&fields), noon()).map(|lifetime| lifetime.as_secs())
    }

    fn age(lines: &[(&str, &str)]) -> u64 {
        initial_age(&lines.iter().copied().collect(), noon(), noon()).as_secs()
    }

    #[test]
    fn s_maxage_beats_max_age_beats_expires() {
        let expires = ("Expires", "Sun, 06 Nov 1994 12:00:09 GMT");
        assert_eq!(lifetime(&[("Cache-Control", "max-age=2, s-maxage=1"), expires]), Some(1));
        assert_eq!(lifetime(&[("Cache-Control", "max-age=2"), expires]), Some(2));
        assert_eq!(lifetime(&[expires]), Some(9));
        assert_eq!(lifetime(&[("Date", "Sun, 06 Nov 1994 11:59:59 GMT"), expires]), Some(10));
        assert_eq!(lifetime(&[]), None);
    }

    #[test]
    fn a_heuristic_lifetime_is_a_part_of_the_time_unchanged() {
        let heuristic = Heuristic { percent: 10, max: Duration::from_secs(3600) };
        let of = |lines: &[(&str, &str)]| heuristic_lifetime(&lines.iter().copied().collect(), heuristic, noon());
        assert_eq!(of(&[("Last-Modified", "Sun, 06 Nov 1994 11:00:00 GMT")]), Some(Duration::from_secs(360)));
        assert_eq!(of(&[("Last-Modified", "Tue, 06 Nov 1990 11:00:00 GMT")]), Some(Duration::from_secs(3600)));
        let future = [("Last-Modified", "Sun, 06 Nov 1994 13:00:00 GMT")];
        assert_eq!(of(&future), Some(Duration::ZERO));
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn an_invalid_or_past_expires_is_stale() {
        for value in ["0", "", "-1", "tomorrow", "Sun, 06 Nov 1994 11:00:00 GMT", "Sun, 06 Nov 1994 12:00:09 UTC"] {
            assert_eq!(lifetime(&[("Expires", value)]), Some(0), "{value}");
        }
    }

    #[test]
    fn the_first_expires_counts() {
        let lines = [("Expires", "Sun, 06 Nov 1994 12:00:05 GMT"), ("Expires", "0")];
        assert_eq!(lifetime(&lines), Some(5));
    }

    #[test]
    fn age_counts_the_field_the_date_and_the_delay() {
        assert_eq!(age(&[("Age", "9")]), 9);
        assert_eq!(age(&[("Date", "Sun, 06 Nov 1994 11:59:00 GMT"), ("Age", "9")]), 60);
        let fields = [("Age", "9")].into_iter().collect();
        let late = noon().plus(Duration::from_secs(3));
        assert_eq!(initial_age(&fields, noon(), late), Duration::from_secs(12));
    }

    #[test]
    fn a_malformed_age_is_ignored_and_a_huge_one_is_very_old() {
        for value in ["-1", "1.5", "x", "7a"] {
            assert_eq!(age(&[("Age", value)]), 0, "{value}");
        }
        assert_eq!(age(&[("Age", "4294967296")]), super::super::directive::MAX_SECONDS);
        assert_eq!(age(&[("Age", "7, 9")]), 7);
        assert_eq!(age(&[("Age", "7"), ("Age", "9")]), 7);
    }

    #[test]
    fn a_date_in_the_future_is_no_negative_age() {
        assert_eq!(age(&[("Date", "Sun, 06 Nov 2094 12:00:00 GMT")]), 0);
    }
}
