//! Surrogate keys: what origins tell caches of which responses are purged together. Clients get none of it.

use bumpalo::Bump;

use super::{plan::Plan, snapshot::Snapshot};
use crate::{
    cache::tags,
    config::CacheRule,
    message::{Fields, Request, Response},
    rule::{Client, Expr, Sample, Source},
};

/// Where origins put them, whatever a rule's `tags` says.
const FIELDS: [&str; 3] = ["surrogate-key", "cache-tag", "xkey"];

/// The keys that the `tags` of `rule` find on a response, none twice.
pub fn keys(
    rule: &CacheRule,
    snapshot: &Snapshot,
    plan: &mut Plan,
    client: &Client,
    request: &mut Request,
    response: &mut Response,
    arena: &Bump,
) -> Vec<Box<str>> {
    let mut found = Vec::new();
    plan.with_response(snapshot, client, request, response, arena, |txn| {
        for expr in &rule.tags {
            expr.any(txn, |sample| {
                if let Sample::Str(text) | Sample::Bin(text) = sample {
                    tags::split(text, &mut found);
                }
                false
            });
        }
    });
    found
}

/// Takes the fields that hold surrogate keys off a response: the usual ones, and those that the caching rules of
/// the request's frontend and backend name. Leaves everything where there are no such rules.
pub fn strip(snapshot: &Snapshot, plan: &Plan, fields: &mut Fields) {
    let frontend = snapshot.frontend(plan.frontend).map(|frontend| &frontend.cache_rules);
    let backend = plan.backend.and_then(|id| snapshot.backend(id)).map(|backend| &backend.cache_rules);
    let mut rules = frontend.into_iter().chain(backend).flatten().filter_map(|&id| snapshot.cache_rule(id)).peekable();
    if rules.peek().is_none() {
        return;
    }
    let named = rules.flat_map(|rule| &rule.tags).filter_map(named);
    fields.retain(|field| !FIELDS.into_iter().chain(named.clone()).any(|name| field.is(name)));
}

/// The field that an expression of `tags` reads as it is. What describes the body is not for caches alone, though
/// a rule may group by it (`res.hdr(Content-Language)`).
fn named(expr: &Expr) -> Option<&str> {
    let whole = expr.source() == Source::Response && expr.steps().is_empty();
    let of_body = |name: &str| name.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("content-"));
    expr.args().field(0).filter(|name| whole && !of_body(name))
}
