//! A request's caching rules against their stores: keys, lookup, and what may be done with what is found.

use std::{sync::Arc, time::Duration};

use super::{
    host,
    plan::{Candidates, Plan, Scratch},
    snapshot::Snapshot,
};
use crate::{
    cache::{Lookup, Object},
    config::{CacheRule, Id, KeyPart},
    message::Request,
    policy::{
        key::{self, HostRule},
        reuse::{Reuse, Why, reuse},
        status::Forward,
        storable::answers_cookie,
    },
    rule::{Client, Sample, Txn},
};

/// What memory has for a request.
#[derive(Debug)]
pub enum Found {
    /// A fresh response.
    Fresh(Stored, Remaining),
    /// A stale one that may be served while it is refreshed.
    Grace(Stored, Remaining),
    /// One that the origin must confirm first.
    Stale(Stored, Why),
    /// None that this request may use. [`Forward::Bypass`]: there is one, but its cookies keep it from that.
    Nothing(Forward),
}

/// A stored response and the rule that it is used under.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The response.
    pub object: Arc<Object>,
    /// The rule.
    pub rule: Id<CacheRule>,
}

/// The times of a response when it was found.
#[derive(Clone, Copy, Debug)]
pub struct Remaining {
    /// Its age.
    pub age: Duration,
    /// What is left of its lifetime, in seconds; negative when it is stale.
    pub ttl: i64,
}

/// Looks the distinct keys of `candidates` up, in order. Allocates nothing.
pub fn lookup(
    snapshot: &Snapshot,
    plan: &mut Plan,
    candidates: &Candidates,
    client: &Client,
    request: &mut Request,
    scratch: &mut Scratch,
) -> Found {
    let mut forward = Forward::UriMiss;
    for (at, &id) in candidates.iter().enumerate() {
        let Some(rule) = snapshot.cache_rule(id) else { continue };
        let repeated = candidates.iter().take(at).any(|&earlier| same_key(snapshot, earlier, rule));
        let Some(store) = snapshot.store_of(rule).filter(|_| !repeated) else { continue };
        write_key(snapshot, rule, plan, client, request, scratch);
        match store.lookup(&scratch.key, request, &mut scratch.variant) {
            Lookup::Found(object) => match judge(snapshot, plan, candidates, request, object) {
                Ok(found) => return found,
                Err(why) => forward = why,
            },
            Lookup::VaryMiss => forward = Forward::VaryMiss,
            Lookup::Miss => {}
        }
    }
    Found::Nothing(forward)
}

/// What may be done with `object`.
///
/// # Errors
/// Why nothing: none of the request's rules stored it, or the request's cookies keep it from a response that was
/// stored for clients without.
fn judge(
    snapshot: &Snapshot,
    plan: &Plan,
    candidates: &Candidates,
    request: &Request,
    object: Arc<Object>,
) -> Result<Found, Forward> {
    let stored_by = candidates
        .iter()
        .copied()
        .find_map(|id| Some((id, snapshot.cache_rule(id).filter(|rule| rule.fingerprint == object.rule)?)));
    let (id, rule) = stored_by.ok_or(Forward::UriMiss)?;
    if !answers_cookie(request, &object.head, &rule.terms) {
        return Err(Forward::Bypass);
    }
    let stored = |object| Stored { object, rule: id };
    Ok(match reuse(&object.freshness, request, &rule.terms, plan.now) {
        Reuse::Fresh { age, ttl } => Found::Fresh(stored(object), Remaining { age, ttl: seconds(ttl) }),
        Reuse::Grace { age } => {
            let over = age.saturating_sub(object.freshness.lifetime);
            Found::Grace(stored(object), Remaining { age, ttl: -seconds(over) })
        }
        Reuse::Revalidate(why) => Found::Stale(stored(object), why),
    })
}

/// Whether two rules make one key of every request, in one store.
fn same_key(snapshot: &Snapshot, earlier: Id<CacheRule>, rule: &CacheRule) -> bool {
    snapshot
        .cache_rule(earlier)
        .is_some_and(|earlier| earlier.key_print == rule.key_print && earlier.store == rule.store)
}

/// Makes the key of `rule` for this request in `scratch.key`.
pub fn write_key(
    snapshot: &Snapshot,
    rule: &CacheRule,
    plan: &mut Plan,
    client: &Client,
    request: &mut Request,
    scratch: &mut Scratch,
) {
    let Scratch { arena, key, .. } = scratch;
    key.clear();
    plan.with_txn(snapshot, client, request, arena, |txn| {
        for part in &rule.key {
            write_part(part, txn, key);
        }
    });
}

fn write_part(part: &KeyPart, txn: &Txn<'_>, out: &mut Vec<u8>) {
    let request = &*txn.request;
    let https = txn.client.tls.is_some();
    match part {
        // HEAD shares GET's objects.
        KeyPart::Method if request.method() == b"HEAD" => key::component(b"GET", out),
        KeyPart::Method => key::component(request.method(), out),
        KeyPart::Scheme => key::component(if https { b"https" } else { b"http" }, out),
        KeyPart::Host(HostRule::WithPort) => key::component(request.host(), out),
        KeyPart::Host(HostRule::NameOnly) => key::component(host::split_port(request.host()).0, out),
        KeyPart::Port => {
            let default: &[u8] = if https { b"443" } else { b"80" };
            key::component(host::split_port(request.host()).1.unwrap_or(default), out);
        }
        KeyPart::Path => key::component(request.path(), out),
        KeyPart::Query => optional(request.query(), out),
        KeyPart::Delimiter => optional(request.query().filter(|query| !query.is_empty()).map(|_| &b"?"[..]), out),
        KeyPart::Uri => {
            key::component(request.path(), out);
            optional(request.query(), out);
        }
        KeyPart::Sample(expr) => match expr.eval(txn) {
            Some(Sample::Str(text) | Sample::Bin(text) | Sample::Method(text)) => key::component(text, out),
            Some(Sample::Bool(value)) => key::component(if value { b"1" } else { b"0" }, out),
            Some(Sample::Int(value)) => key::component(&value.to_be_bytes(), out),
            Some(Sample::Ip(std::net::IpAddr::V4(address))) => key::component(&address.octets(), out),
            Some(Sample::Ip(std::net::IpAddr::V6(address))) => key::component(&address.octets(), out),
            None => key::absent(out),
        },
    }
}

fn optional(value: Option<&[u8]>, out: &mut Vec<u8>) {
    match value {
        Some(value) => key::component(value, out),
        None => key::absent(out),
    }
}

fn seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}
