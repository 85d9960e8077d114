//! Whether a stored response may answer a request (RFC 9111 §4).

use std::time::Duration;

use super::{
    directive::{CacheControl, Scope, pragma_no_cache},
    freshness::Freshness,
    terms::Terms,
};
use crate::{message::Request, time::Timestamp};

/// The decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// Fresh: serve it. `ttl` is what is left.
    Fresh {
        /// Its age now.
        age: Duration,
        /// Remaining lifetime.
        ttl: Duration,
    },
    /// Stale within its grace: serve it and refresh it in the background.
    Grace {
        /// Its age now.
        age: Duration,
    },
    /// Ask the origin first.
    Revalidate(Why),
}

/// Why a stored response is not used as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// Its lifetime and grace are over.
    Stale,
    /// `no-cache` in the response.
    NoCache,
    /// A directive of the request that is honoured.
    Request,
}

impl Why {
    /// The word for it, lower case with hyphens.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stale => "stale",
            Self::NoCache => "no-cache",
            Self::Request => "request",
        }
    }
}

/// Whether a response with these times answers `request` at `now`. Allocates nothing.
pub fn reuse(freshness: &Freshness, request: &Request, terms: &Terms, now: Timestamp) -> Reuse {
    if freshness.no_cache {
        return Reuse::Revalidate(Why::NoCache);
    }
    let age = freshness.age(now);
    let mut grace = freshness.grace;
    if terms.honour_client {
        let control = CacheControl::of(&request.fields);
        if refused_by_client(&control, request, terms, age, freshness.lifetime) {
            return Reuse::Revalidate(Why::Request);
        }
        // max-age and min-fresh ask for a fresh response unless max-stale says otherwise (§5.2.1.1, §5.2.1.3).
        if control.max_age.is_some() || control.min_fresh.is_some() {
            grace = Duration::ZERO;
        }
        grace = control.max_stale.map_or(grace, |stale| grace.max(stale));
    }
    if freshness.lifetime > age {
        Reuse::Fresh { age, ttl: freshness.lifetime.saturating_sub(age) }
    } else if !freshness.must_revalidate && freshness.lifetime.saturating_add(grace) > age {
        Reuse::Grace { age }
    } else {
        Reuse::Revalidate(Why::Stale)
    }
}

/// What §5.2.1 lets a client ask for, `max-stale` apart.
fn refused_by_client(
    control: &CacheControl,
    request: &Request,
    terms: &Terms,
    age: Duration,
    lifetime: Duration,
) -> bool {
    control.no_cache != Scope::None
        || (!terms.ignore.pragma && pragma_no_cache(&request.fields))
        || control.max_age.is_some_and(|limit| age > limit || limit.is_zero())
        || control.min_fresh.is_some_and(|wanted| lifetime > age && lifetime.saturating_sub(age) < wanted)
}

/// Whether a stale response may be served because the origin failed (RFC 5861 §4, RFC 9111 §4.2.4).
/// A fresh one may, whatever made the request go forward.
pub fn usable_on_error(freshness: &Freshness, now: Timestamp) -> bool {
    if freshness.no_cache {
        return false;
    }
    let window = freshness.grace.max(freshness.stale_if_error);
    let age = freshness.age(now);
    freshness.lifetime > age || (!freshness.must_revalidate && freshness.lifetime.saturating_add(window) > age)
}

/// `only-if-cached` (§5.2.1.7): without a usable stored response the answer is 504.
pub fn only_if_cached(request: &Request) -> bool {
    CacheControl::of(&request.fields).only_if_cached
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn stored() -> Freshness {
        Freshness { received: Timestamp::from_secs(1000), lifetime: seconds(10), ..Freshness::default() }
    }

    fn asked(lines: &[(&str, &str)]) -> Request {
        let mut request = Request::new(b"GET", b"/");
        for (name, value) in lines {
            request.fields.append(name.as_bytes(), value.as_bytes());
        }
        request
    }

    fn at(freshness: &Freshness, after: u64) -> Reuse {
        reuse(freshness, &asked(&[]), &Terms::default(), Timestamp::from_secs(1000 + after))
    }

    fn client(freshness: &Freshness, after: u64, control: &str) -> Reuse {
        let terms = Terms { honour_client: true, ..Terms::default() };
        reuse(freshness, &asked(&[("Cache-Control", control)]), &terms, Timestamp::from_secs(1000 + after))
    }

    #[test]
    fn fresh_until_its_age_reaches_its_lifetime() {
        assert_eq!(at(&stored(), 4), Reuse::Fresh { age: seconds(4), ttl: seconds(6) });
        assert_eq!(at(&stored(), 10), Reuse::Revalidate(Why::Stale));
        let aged = Freshness { initial_age: seconds(9), ..stored() };
        assert_eq!(at(&aged, 2), Reuse::Revalidate(Why::Stale));
    }

    #[test]
    fn stale_is_served_within_grace_unless_it_must_revalidate() {
        let graced = Freshness { grace: seconds(5), ..stored() };
        assert_eq!(at(&graced, 12), Reuse::Grace { age: seconds(12) });
        assert_eq!(at(&graced, 15), Reuse::Revalidate(Why::Stale));
        assert_eq!(at(&Freshness { must_revalidate: true, ..graced }, 12), Reuse::Revalidate(Why::Stale));
        assert_eq!(at(&Freshness { no_cache: true, ..graced }, 1), Reuse::Revalidate(Why::NoCache));
    }

    #[test]
    fn request_directives_count_only_when_honoured() {
        let request = asked(&[("Cache-Control", "no-cache, max-age=0"), ("Pragma", "no-cache")]);
        let now = Timestamp::from_secs(1001);
        assert!(matches!(reuse(&stored(), &request, &Terms::default(), now), Reuse::Fresh { .. }));
        assert_eq!(client(&stored(), 1, "no-cache"), Reuse::Revalidate(Why::Request));
        assert_eq!(client(&stored(), 0, "max-age=0"), Reuse::Revalidate(Why::Request));
        assert_eq!(client(&stored(), 5, "max-age=4"), Reuse::Revalidate(Why::Request));
        assert!(matches!(client(&stored(), 4, "max-age=4"), Reuse::Fresh { .. }));
        assert_eq!(client(&stored(), 6, "min-fresh=5"), Reuse::Revalidate(Why::Request));
        assert!(matches!(client(&stored(), 5, "min-fresh=5"), Reuse::Fresh { .. }));
        let terms = Terms { honour_client: true, ..Terms::default() };
        let pragma = asked(&[("Pragma", "no-cache")]);
        assert_eq!(reuse(&stored(), &pragma, &terms, now), Reuse::Revalidate(Why::Request));
    }

    #[test]
    fn max_stale_accepts_stale_but_not_against_must_revalidate() {
        assert_eq!(client(&stored(), 14, "max-stale=5"), Reuse::Grace { age: seconds(14) });
        assert_eq!(client(&stored(), 15, "max-stale=5"), Reuse::Revalidate(Why::Stale));
        assert_eq!(client(&stored(), 9999, "max-stale"), Reuse::Grace { age: seconds(9999) });
        let strict = Freshness { must_revalidate: true, ..stored() };
        assert_eq!(client(&strict, 14, "max-stale"), Reuse::Revalidate(Why::Stale));
    }

    #[test]
    fn a_client_that_wants_it_young_gets_no_grace() {
        let graced = Freshness { grace: seconds(5), ..stored() };
        assert_eq!(client(&graced, 12, "max-age=60"), Reuse::Revalidate(Why::Stale));
    }

    #[test]
    fn errors_let_stale_be_served_within_its_window() {
        let now = |after: u64| Timestamp::from_secs(1000 + after);
        let window = Freshness { stale_if_error: seconds(60), ..stored() };
        assert!(usable_on_error(&window, now(69)) && !usable_on_error(&window, now(70)));
        assert!(usable_on_error(&stored(), now(5)) && !usable_on_error(&stored(), now(11)));
        assert!(!usable_on_error(&Freshness { must_revalidate: true, ..window }, now(11)));
        assert!(!usable_on_error(&Freshness { no_cache: true, ..window }, now(1)));
    }

    #[test]
    fn only_if_cached_is_always_seen() {
        assert!(only_if_cached(&asked(&[("Cache-Control", "Only-If-Cached")])));
        assert!(!only_if_cached(&asked(&[])));
    }
}
