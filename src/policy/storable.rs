//! Whether a response may be stored by a shared cache (RFC 9111 §3).

use std::time::Duration;

use super::{
    date::date,
    directive::{CacheControl, Scope, fields_to_drop, pragma_no_cache},
    freshness::{Freshness, explicit_lifetime, heuristic_lifetime, initial_age},
    terms::{Statuses, Terms, Ttl},
    variant::Vary,
};
use crate::{
    message::{Fields, Request, Response},
    time::Timestamp,
};

/// The decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storable {
    /// It may, with these times.
    Yes(Freshness),
    /// It may not.
    No(Reason),
}

/// Why a response is not stored. `as_str` is the word in `Cache-Status`, logs and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The method is not GET or HEAD.
    Method,
    /// A status outside the rule's list or HTTP's.
    Status,
    /// `no-store`.
    NoStore,
    /// `no-store` of the request, where the rule honours the client.
    RequestNoStore,
    /// `private`.
    Private,
    /// `Set-Cookie`.
    SetCookie,
    /// The request had `Authorization` and the response does not allow sharing (§3.5).
    Authorization,
    /// The request had `Cookie` and the rule has a fixed lifetime (see CacheRule).
    Cookie,
    /// `Vary: *`.
    VaryAny,
    /// `no-cache`, and no validator to ask with.
    NoCache,
    /// No freshness and no validator: nothing a store could use.
    NoFreshness,
    /// Partial content.
    Partial,
    /// `must-understand` with a status that HTTP does not define (§5.2.2.3).
    MustUnderstand,
}

impl Reason {
    /// Whether it lies in what the request carries, not in the response: another client's may be stored.
    pub const fn is_of_the_request(self) -> bool {
        matches!(self, Self::Authorization | Self::Cookie | Self::RequestNoStore)
    }

    /// The word for it, lower case with hyphens.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Status => "status",
            Self::NoStore => "no-store",
            Self::RequestNoStore => "request-no-store",
            Self::Private => "private",
            Self::SetCookie => "set-cookie",
            Self::Authorization => "authorization",
            Self::Cookie => "cookie",
            Self::VaryAny => "vary-any",
            Self::NoCache => "no-cache",
            Self::NoFreshness => "no-freshness",
            Self::Partial => "partial",
            Self::MustUnderstand => "must-understand",
        }
    }
}

/// Whether `response` to `request` (as sent upstream) may be stored under `terms`.
/// `requested`: when the request was sent; `received`: when the response's head arrived.
/// A head freshened by a 304 is asked about in the same way, with the times of the 304.
pub fn storable(
    request: &Request,
    response: &Response,
    terms: &Terms,
    requested: Timestamp,
    received: Timestamp,
) -> Storable {
    let control = CacheControl::of_response(&response.fields);
    if let Some(reason) = message_forbids(request, response, terms, &control)
        .or_else(|| sharing_forbidden(request, response, terms, &control))
    {
        return Storable::No(reason);
    }
    times(response, terms, &control, requested, received)
}

/// What method, status and directives forbid (§3, first list).
fn message_forbids(request: &Request, response: &Response, terms: &Terms, control: &CacheControl) -> Option<Reason> {
    if !request.is_get_or_head() {
        return Some(Reason::Method);
    }
    // On another status `Content-Range` says nothing (RFC 9110 §14.4).
    if response.status == 206 {
        return Some(Reason::Partial);
    }
    if !status_allowed(response.status, terms) {
        return Some(Reason::Status);
    }
    if control.must_understand {
        // A status that is understood sets the accompanying no-store aside (§5.2.2.3).
        if crate::message::reason(response.status).is_empty() {
            return Some(Reason::MustUnderstand);
        }
    } else if control.no_store && !terms.ignore.no_store {
        return Some(Reason::NoStore);
    }
    if terms.honour_client && CacheControl::of(&request.fields).no_store {
        return Some(Reason::RequestNoStore);
    }
    None
}

/// What keeps a response from being shared (§3, §3.5; `Cookie` and `Set-Cookie` by our own rules).
fn sharing_forbidden(request: &Request, response: &Response, terms: &Terms, control: &CacheControl) -> Option<Reason> {
    let ignore = &terms.ignore;
    if control.private == Scope::Whole && !ignore.private {
        return Some(Reason::Private);
    }
    let shared = control.public || control.s_maxage.is_some();
    if request.fields.has("authorization") && !shared && !control.must_revalidate && !ignore.authorization {
        return Some(Reason::Authorization);
    }
    if !ignore.set_cookie && keeps_cookie(response, terms) {
        return Some(Reason::SetCookie);
    }
    // A fixed lifetime would store what the origin never said to be for everyone.
    let at_risk = fixed_lifetime(response.status, terms).is_some() && !shared;
    if at_risk && request.fields.has("cookie") && !terms.cookie_in_key && !ignore.cookie {
        return Some(Reason::Cookie);
    }
    if !ignore.vary && Vary::of(&response.fields) == Vary::Any {
        return Some(Reason::VaryAny);
    }
    None
}

/// Whether the request's `Cookie` may have shaped a response that a fixed lifetime would share: nothing but the
/// response's own word (`public`, `s-maxage`) makes it everyone's then.
pub fn cookie_at_risk(request: &Request, terms: &Terms) -> bool {
    !matches!(terms.ttl, Ttl::Auto { .. })
        && !terms.cookie_in_key
        && !terms.ignore.cookie
        && request.fields.has("cookie")
}

/// Whether a response to `request` without such a risk may answer it all the same (see [`cookie_at_risk`]).
pub fn answers_cookie(request: &Request, response: &Response, terms: &Terms) -> bool {
    if !cookie_at_risk(request, terms) || fixed_lifetime(response.status, terms).is_none() {
        return true;
    }
    let control = CacheControl::of_response(&response.fields);
    control.public || control.s_maxage.is_some()
}

/// Whether a `Set-Cookie` would be stored: there is one, and no qualified directive drops it.
fn keeps_cookie(response: &Response, terms: &Terms) -> bool {
    let has = |name| response.fields.has(name);
    (has("set-cookie") || has("set-cookie2"))
        && !fields_to_drop(&response.fields, &terms.ignore).iter().any(|name| name == b"set-cookie")
}

fn status_allowed(status: u16, terms: &Terms) -> bool {
    if status < 200 || status == 304 {
        return false;
    }
    match (&terms.statuses, &terms.ttl) {
        (Statuses::All, _) => true,
        (Statuses::Only(list), _) => list.contains(&status),
        (Statuses::Default, Ttl::Fixed(_)) => status == 200,
        (Statuses::Default, Ttl::PerStatus(list)) if list.iter().any(|(listed, _)| *listed == status) => true,
        // The request's own fields caused these; one client's mistake is no answer for another.
        (Statuses::Default, _) => !matches!(status, 400 | 413 | 414 | 431),
    }
}

/// The lifetime the rule gives, whatever the origin says; `None` where it leaves it to the origin.
fn fixed_lifetime(status: u16, terms: &Terms) -> Option<Duration> {
    match &terms.ttl {
        Ttl::Auto { .. } => None,
        Ttl::Fixed(lifetime) => Some(*lifetime),
        Ttl::PerStatus(list) => list.iter().find(|(listed, _)| *listed == status).map(|(_, lifetime)| *lifetime),
    }
}

fn times(
    response: &Response,
    terms: &Terms,
    control: &CacheControl,
    requested: Timestamp,
    received: Timestamp,
) -> Storable {
    let fields = &response.fields;
    let ignore = &terms.ignore;
    let initial_age = initial_age(fields, requested, received);
    let no_cache = (control.no_cache == Scope::Whole && !ignore.no_cache)
        || (!control.targeted && pragma_no_cache(fields) && !ignore.pragma && !ignore.no_cache);
    // A fixed lifetime counts from reception: what the origin says about age is part of its freshness.
    let lifetime = match fixed_lifetime(response.status, terms) {
        Some(lifetime) => Some(lifetime.saturating_add(initial_age)),
        None if ignore.max_age => None,
        None => explicit_lifetime(fields, control, received)
            .or_else(|| heuristic(response, terms, control, received))
            .map(|lifetime| clamped(lifetime, &terms.ttl)),
    };
    let validated = has_validator(fields);
    if no_cache && !validated {
        return Storable::No(Reason::NoCache);
    }
    let Some(lifetime) = lifetime.or(no_cache.then_some(Duration::ZERO)) else {
        return Storable::No(Reason::NoFreshness);
    };
    // s-maxage forbids serving stale (§5.2.2.10) where it is what counts.
    let s_maxage = control.s_maxage.is_some() && !ignore.max_age;
    let freshness = Freshness {
        received,
        initial_age,
        lifetime,
        grace: terms.grace.or(control.stale_while_revalidate).unwrap_or_default(),
        stale_if_error: terms.stale_if_error.or(control.stale_if_error).unwrap_or_default(),
        must_revalidate: no_cache
            || (!ignore.must_revalidate && (control.must_revalidate || control.proxy_revalidate || s_maxage)),
        no_cache,
    };
    if !freshness.is_fresh(received) && !validated && !freshness.has_stale_use() {
        return Storable::No(Reason::NoFreshness);
    }
    Storable::Yes(freshness)
}

/// The lifetime that the rule's `heuristic` gives, where HTTP lets it (RFC 9111 §4.2.2).
fn heuristic(response: &Response, terms: &Terms, control: &CacheControl, received: Timestamp) -> Option<Duration> {
    let heuristic = terms.heuristic?;
    (control.public || heuristically_cacheable(response.status))
        .then(|| heuristic_lifetime(&response.fields, heuristic, received))
        .flatten()
}

/// The statuses of RFC 9110 §15.1.
const fn heuristically_cacheable(status: u16) -> bool {
    matches!(status, 200 | 203 | 204 | 206 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

fn clamped(lifetime: Duration, ttl: &Ttl) -> Duration {
    match ttl {
        Ttl::Auto { min, max } => {
            let lifetime = min.map_or(lifetime, |min| lifetime.max(min));
            max.map_or(lifetime, |max| lifetime.min(max))
        }
        Ttl::Fixed(_) | Ttl::PerStatus(_) => lifetime,
    }
}

/// Whether there is something to revalidate with (RFC 9110 §8.8).
fn has_validator(fields: &Fields) -> bool {
    fields.first("etag").is_some_and(|tag| !tag.is_empty()) || fields.first("last-modified").and_then(date).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::terms::{Heuristic, Ignore};

    type Lines<'a> = &'a [(&'a str, &'a str)];

    fn request(lines: Lines<'_>) -> Request {
        let mut request = Request::new(b"GET", b"/");
        for (name, value) in lines {
            request.fields.append(name.as_bytes(), value.as_bytes());
        }
        request
    }

    fn response(status: u16, lines: Lines<'_>) -> Response {
        Response { fields: lines.iter().copied().collect(), ..Response::new(status) }
    }

    fn decide(asked: Lines<'_>, status: u16, answered: Lines<'_>, terms: &Terms) -> Storable {
        let now = Timestamp::from_secs(784_123_200);
        storable(&request(asked), &response(status, answered), terms, now, now)
    }

    fn plain(answered: Lines<'_>) -> Storable {
        decide(&[], 200, answered, &Terms::default())
    }

    fn times_of(decision: Storable) -> Freshness {
        match decision {
            Storable::Yes(freshness) => freshness,
            Storable::No(reason) => panic!("not stored: {}", reason.as_str()),
        }
    }

    fn control(value: &str) -> Storable {
        plain(&[("Cache-Control", value)])
    }

    fn fixed(seconds: u64) -> Terms {
        Terms { ttl: Ttl::Fixed(Duration::from_secs(seconds)), ..Terms::default() }
    }

    fn ignoring(ignore: Ignore) -> Terms {
        Terms { ignore, ..Terms::default() }
    }

    const MAX_AGE: (&str, &str) = ("Cache-Control", "max-age=10");

    #[test]
    fn explicit_freshness_is_stored() {
        assert_eq!(times_of(plain(&[MAX_AGE])).lifetime, Duration::from_secs(10));
        assert_eq!(times_of(plain(&[MAX_AGE, ("Age", "4")])).initial_age, Duration::from_secs(4));
        for status in [203, 204, 301, 302, 307, 404, 410, 500, 599] {
            assert!(matches!(decide(&[], status, &[MAX_AGE], &Terms::default()), Storable::Yes(_)), "{status}");
        }
    }

    #[test]
    fn nothing_a_store_could_use_is_not_stored() {
        assert_eq!(plain(&[]), Storable::No(Reason::NoFreshness));
        assert_eq!(plain(&[("ETag", "\"a\"")]), Storable::No(Reason::NoFreshness));
        assert_eq!(control("max-age=0, public"), Storable::No(Reason::NoFreshness));
        assert_eq!(control("max-age=banana"), Storable::No(Reason::NoFreshness));
        assert_eq!(control("no-cache, max-age=10"), Storable::No(Reason::NoCache));
    }

    #[test]
    fn stale_from_the_start_is_stored_where_it_can_be_revalidated_or_served_stale() {
        let tag = ("ETag", "\"a\"");
        assert!(times_of(plain(&[("Cache-Control", "max-age=0"), tag])).lifetime.is_zero());
        let asked_first = times_of(plain(&[("Cache-Control", "no-cache"), tag]));
        assert!(asked_first.no_cache && asked_first.must_revalidate);
        assert!(matches!(control("max-age=0, stale-while-revalidate=5"), Storable::Yes(_)));
        assert!(matches!(control("max-age=0, stale-if-error=5"), Storable::Yes(_)));
        assert_eq!(control("max-age=0, must-revalidate, stale-if-error=5"), Storable::No(Reason::NoFreshness));
    }

    #[test]
    fn no_store_and_private_forbid_unless_ignored() {
        assert_eq!(control("no-store, max-age=10"), Storable::No(Reason::NoStore));
        assert_eq!(control("private, max-age=10"), Storable::No(Reason::Private));
        let both = [("Cache-Control", "private, no-store, max-age=10")];
        let terms = ignoring(Ignore { no_store: true, private: true, ..Ignore::default() });
        assert!(matches!(decide(&[], 200, &both, &terms), Storable::Yes(_)));
        assert_eq!(decide(&[], 200, &both, &fixed(60)), Storable::No(Reason::NoStore));
    }

    #[test]
    fn a_malformed_field_is_read_with_care() {
        assert_eq!(control("max-age=60; private"), Storable::No(Reason::Private));
        assert_eq!(control("foo=\"no-store, x, max-age=60, private"), Storable::No(Reason::NoStore));
        let answered = [("Cache-Control", "max-age=60; private")];
        assert_eq!(decide(&[], 200, &answered, &fixed(60)), Storable::No(Reason::Private));
    }

    #[test]
    fn qualified_private_and_no_cache_are_stored() {
        let cookie = ("Set-Cookie", "a=b");
        let named = ("Cache-Control", "max-age=10, private=\"set-cookie\", no-cache=\"x-a\"");
        let freshness = times_of(plain(&[named, cookie]));
        assert!(!freshness.no_cache && !freshness.must_revalidate);
        assert_eq!(plain(&[MAX_AGE, cookie]), Storable::No(Reason::SetCookie));
        let terms = ignoring(Ignore { set_cookie: true, ..Ignore::default() });
        assert!(matches!(decide(&[], 200, &[MAX_AGE, cookie], &terms), Storable::Yes(_)));
    }

    #[test]
    fn authorization_needs_a_directive_that_allows_sharing() {
        let asked = [("Authorization", "Basic x")];
        let of = |value| decide(&asked, 200, &[("Cache-Control", value)], &Terms::default());
        assert_eq!(of("max-age=10"), Storable::No(Reason::Authorization));
        for value in ["max-age=10, public", "s-maxage=10", "max-age=10, must-revalidate"] {
            assert!(matches!(of(value), Storable::Yes(_)), "{value}");
        }
        assert_eq!(of("max-age=10, proxy-revalidate"), Storable::No(Reason::Authorization));
    }

    #[test]
    fn a_fixed_lifetime_does_not_store_what_a_cookie_asked_for() {
        let asked = [("Cookie", "session=1")];
        assert_eq!(decide(&asked, 200, &[], &fixed(60)), Storable::No(Reason::Cookie));
        assert_eq!(decide(&asked, 200, &[MAX_AGE], &fixed(60)), Storable::No(Reason::Cookie));
        assert!(matches!(decide(&asked, 200, &[("Cache-Control", "public")], &fixed(60)), Storable::Yes(_)));
        assert!(matches!(decide(&asked, 200, &[("Cache-Control", "s-maxage=1")], &fixed(60)), Storable::Yes(_)));
        assert!(matches!(decide(&asked, 200, &[MAX_AGE], &Terms::default()), Storable::Yes(_)));
        let keyed = Terms { cookie_in_key: true, ..fixed(60) };
        assert!(matches!(decide(&asked, 200, &[], &keyed), Storable::Yes(_)));
    }

    #[test]
    fn a_fixed_lifetime_counts_from_reception() {
        let freshness = times_of(decide(&[], 200, &[("Cache-Control", "max-age=1"), ("Age", "500")], &fixed(60)));
        assert_eq!(freshness.lifetime - freshness.initial_age, Duration::from_secs(60));
        assert_eq!(decide(&[], 404, &[], &fixed(60)), Storable::No(Reason::Status));
    }

    #[test]
    fn a_lifetime_per_status_leaves_the_others_to_the_origin() {
        let list = vec![(200, Duration::from_secs(5)), (404, Duration::from_secs(1))];
        let terms = Terms { ttl: Ttl::PerStatus(list), ..Terms::default() };
        assert_eq!(times_of(decide(&[], 404, &[MAX_AGE], &terms)).lifetime, Duration::from_secs(1));
        assert_eq!(times_of(decide(&[], 301, &[MAX_AGE], &terms)).lifetime, Duration::from_secs(10));
        assert_eq!(decide(&[], 301, &[], &terms), Storable::No(Reason::NoFreshness));
    }

    #[test]
    fn auto_clamps_what_the_origin_says() {
        let ttl = Ttl::Auto { min: Some(Duration::from_secs(20)), max: Some(Duration::from_secs(30)) };
        let terms = Terms { ttl, ..Terms::default() };
        let of = |value| times_of(decide(&[], 200, &[("Cache-Control", value)], &terms)).lifetime.as_secs();
        assert_eq!([of("max-age=1"), of("max-age=25"), of("max-age=99")], [20, 25, 30]);
        assert_eq!(decide(&[], 200, &[], &terms), Storable::No(Reason::NoFreshness));
    }

    #[test]
    fn errors_of_the_request_are_stored_only_when_listed() {
        for status in [400, 413, 414, 431] {
            assert_eq!(decide(&[], status, &[MAX_AGE], &Terms::default()), Storable::No(Reason::Status), "{status}");
            for statuses in [Statuses::All, Statuses::Only(vec![status])] {
                let terms = Terms { statuses, ..Terms::default() };
                assert!(matches!(decide(&[], status, &[MAX_AGE], &terms), Storable::Yes(_)), "{status}");
            }
        }
    }

    #[test]
    fn partial_content_interim_and_304_are_never_stored() {
        let all = Terms { statuses: Statuses::All, ..Terms::default() };
        assert_eq!(decide(&[], 206, &[MAX_AGE], &all), Storable::No(Reason::Partial));
        let range = ("Content-Range", "bytes 0-1/10");
        assert!(matches!(decide(&[], 200, &[MAX_AGE, range], &all), Storable::Yes(_)), "it says nothing there");
        assert_eq!(decide(&[], 304, &[MAX_AGE], &all), Storable::No(Reason::Status));
        assert_eq!(decide(&[], 103, &[MAX_AGE], &all), Storable::No(Reason::Status));
    }

    #[test]
    fn directives_for_caches_like_this_stand_in_for_the_others() {
        let cdn = |value| ("CDN-Cache-Control", value);
        let others = [("Cache-Control", "no-store, max-age=1"), ("Expires", "0"), ("Pragma", "no-cache")];
        let with = |value| [others[0], others[1], others[2], cdn(value)];
        assert_eq!(times_of(plain(&with("max-age=60"))).lifetime, Duration::from_secs(60));
        assert_eq!(plain(&with("foo")), Storable::No(Reason::NoFreshness), "nothing else counts");
        assert_eq!(plain(&with("MAX-AGE=60")), Storable::No(Reason::NoStore), "no such field");
        assert_eq!(plain(&[MAX_AGE, cdn("private")]), Storable::No(Reason::Private));
        assert_eq!(plain(&[MAX_AGE, cdn("no-store")]), Storable::No(Reason::NoStore));
        assert_eq!(plain(&[MAX_AGE, cdn("no-cache")]), Storable::No(Reason::NoCache));
        let cookie = [MAX_AGE, cdn("max-age=9, private=\"set-cookie\""), ("Set-Cookie", "a=b")];
        assert_eq!(times_of(plain(&cookie)).lifetime, Duration::from_secs(9));
    }

    #[test]
    fn a_heuristic_is_for_responses_that_state_nothing() {
        let heuristic = Some(Heuristic { percent: 10, max: Duration::from_secs(86_400) });
        let terms = Terms { heuristic, ..Terms::default() };
        let modified = ("Last-Modified", "Sun, 06 Nov 1994 11:00:00 GMT");
        let lifetime = |status, lines: Lines<'_>| times_of(decide(&[], status, lines, &terms)).lifetime.as_secs();
        assert_eq!(lifetime(200, &[modified]), 360);
        assert_eq!(lifetime(200, &[modified, MAX_AGE]), 10);
        assert_eq!(lifetime(599, &[modified, ("Cache-Control", "public")]), 360);
        assert_eq!(decide(&[], 599, &[modified], &terms), Storable::No(Reason::NoFreshness));
        assert_eq!(decide(&[], 200, &[], &terms), Storable::No(Reason::NoFreshness));
        assert_eq!(plain(&[modified]), Storable::No(Reason::NoFreshness), "off by default");
    }

    #[test]
    fn a_rules_stale_if_error_outweighs_the_responses() {
        let terms = Terms { stale_if_error: Some(Duration::from_secs(7)), ..Terms::default() };
        let of = |value| times_of(decide(&[], 200, &[("Cache-Control", value)], &terms)).stale_if_error.as_secs();
        assert_eq!((of("max-age=1"), of("max-age=1, stale-if-error=60")), (7, 7));
    }

    #[test]
    fn vary_any_is_not_stored_unless_ignored() {
        for value in ["*", ", *", "foo, *"] {
            assert_eq!(plain(&[MAX_AGE, ("Vary", value)]), Storable::No(Reason::VaryAny), "{value}");
        }
        let terms = ignoring(Ignore { vary: true, ..Ignore::default() });
        assert!(matches!(decide(&[], 200, &[MAX_AGE, ("Vary", "*")], &terms), Storable::Yes(_)));
    }

    #[test]
    fn must_understand_sets_no_store_aside_for_known_statuses() {
        let value = [("Cache-Control", "max-age=10, no-store, must-understand")];
        assert!(matches!(decide(&[], 200, &value, &Terms::default()), Storable::Yes(_)));
        assert_eq!(decide(&[], 299, &value, &Terms::default()), Storable::No(Reason::MustUnderstand));
    }

    #[test]
    fn methods_other_than_get_and_head_are_not_stored() {
        let mut post = request(&[]);
        post.set_method(b"POST");
        let now = Timestamp::from_secs(1);
        let decision = storable(&post, &response(200, &[MAX_AGE]), &Terms::default(), now, now);
        assert_eq!(decision, Storable::No(Reason::Method));
    }

    #[test]
    fn the_requests_no_store_counts_when_the_client_is_honoured() {
        let asked = [("Cache-Control", "no-store")];
        assert!(matches!(decide(&asked, 200, &[MAX_AGE], &Terms::default()), Storable::Yes(_)));
        let terms = Terms { honour_client: true, ..Terms::default() };
        assert_eq!(decide(&asked, 200, &[MAX_AGE], &terms), Storable::No(Reason::RequestNoStore));
    }

    #[test]
    fn directives_against_stale_are_kept_unless_ignored() {
        for value in ["max-age=1, must-revalidate", "max-age=1, proxy-revalidate", "s-maxage=1"] {
            assert!(times_of(control(value)).must_revalidate, "{value}");
            let terms = ignoring(Ignore { must_revalidate: true, ..Ignore::default() });
            assert!(!times_of(decide(&[], 200, &[("Cache-Control", value)], &terms)).must_revalidate, "{value}");
        }
        assert!(!times_of(control("max-age=1")).must_revalidate);
    }

    #[test]
    fn grace_of_the_rule_beats_the_responses() {
        let answered = [("Cache-Control", "max-age=1, stale-while-revalidate=7, stale-if-error=9")];
        let freshness = times_of(decide(&[], 200, &answered, &Terms::default()));
        assert_eq!((freshness.grace.as_secs(), freshness.stale_if_error.as_secs()), (7, 9));
        let terms = Terms { grace: Some(Duration::from_secs(3)), ..Terms::default() };
        assert_eq!(times_of(decide(&[], 200, &answered, &terms)).grace.as_secs(), 3);
    }

    #[test]
    fn pragma_of_a_response_counts_without_cache_control() {
        let answered = [("Pragma", "no-cache")];
        assert_eq!(decide(&[], 200, &answered, &fixed(60)), Storable::No(Reason::NoCache));
        let ignore = Ignore { pragma: true, ..Ignore::default() };
        assert!(matches!(decide(&[], 200, &answered, &Terms { ignore, ..fixed(60) }), Storable::Yes(_)));
    }
}
