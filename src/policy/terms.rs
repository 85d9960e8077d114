//! What a caching rule asks of the policy.

use std::time::Duration;

/// `ttl`: where a freshness lifetime comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ttl {
    /// `auto [MIN..MAX]`: RFC 9111 §4.2, clamped.
    Auto {
        /// Shortest lifetime of a storable response.
        min: Option<Duration>,
        /// Longest.
        max: Option<Duration>,
    },
    /// `T`: this long, whatever the origin said about freshness.
    Fixed(Duration),
    /// `200=1h 404=10s`: by status; statuses without an entry as `auto`.
    PerStatus(Vec<(u16, Duration)>),
}

impl Default for Ttl {
    fn default() -> Self {
        Self::Auto { min: None, max: None }
    }
}

/// `heuristic`: a lifetime where the origin states none (RFC 9111 §4.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heuristic {
    /// This part of the time since the response was last modified, in percent.
    pub percent: u8,
    /// The most it comes to.
    pub max: Duration,
}

/// `status`: which responses may be stored.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Statuses {
    /// What HTTP allows: any final status with explicit freshness; 200 with a fixed `ttl`.
    #[default]
    Default,
    /// `all`.
    All,
    /// These.
    Only(Vec<u16>),
}

/// `ignore`: requirements an operator sets aside by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct Ignore {
    /// `no-store` of the response.
    pub no_store: bool,
    /// `no-cache` of the response.
    pub no_cache: bool,
    /// `private` of the response.
    pub private: bool,
    /// `max-age`, `s-maxage` and `Expires`.
    pub max_age: bool,
    /// `must-revalidate` and its kin.
    pub must_revalidate: bool,
    /// `Set-Cookie`.
    pub set_cookie: bool,
    /// The request's `Cookie`.
    pub cookie: bool,
    /// The request's `Authorization`.
    pub authorization: bool,
    /// `Vary`.
    pub vary: bool,
    /// `Pragma`.
    pub pragma: bool,
}

/// What a rule asks of the policy; `Default` is a bare `cache-rule NAME`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Terms {
    /// `ttl`.
    pub ttl: Ttl,
    /// `status`, nuster's `code`.
    pub statuses: Statuses,
    /// `grace`; `None`: what `stale-while-revalidate` says.
    pub grace: Option<Duration>,
    /// `stale-if-error`; `None`: what the response says.
    pub stale_if_error: Option<Duration>,
    /// `heuristic`; `None`: off.
    pub heuristic: Option<Heuristic>,
    /// `honour client`: request directives (§5.2.1) count. `only-if-cached` always does.
    pub honour_client: bool,
    /// `ignore …`.
    pub ignore: Ignore,
    /// Whether a cookie is part of the rule's key (see CACHE rules on `Cookie`).
    pub cookie_in_key: bool,
}
