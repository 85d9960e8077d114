//! What memory can answer at once: no task, no allocation, one write.

use std::io::Write;

use super::{
    h1::write::Wire,
    log::Ending,
    lookup::{Found, Remaining, Stored, lookup},
    plan::{Plan, Route, Scratch},
    respond::{self, Rules},
    snapshot::Snapshot,
};
use crate::{
    message::{Request, Response},
    metrics::Outcome,
    policy::{
        status::Status,
        validator::{Precondition, not_modified, precondition},
    },
    rule::Client,
};

/// Largest body that is copied behind its head: cheaper than to count one more reader of it.
const COPIED_BODY: u64 = 8 * 1024;

/// Answers from memory when a fresh object is there: appends head (with `connection`, a field line with
/// its end, or nothing) and body to `wire`. `None` leaves everything as it was.
pub fn from_memory(
    snapshot: &Snapshot,
    plan: &mut Plan,
    client: &Client,
    request: &mut Request,
    scratch: &mut Scratch,
    connection: &[u8],
    wire: &mut Wire,
) -> Option<Ending> {
    let Route::Fetch(candidates) = &plan.route else { return None };
    if request.fields.has("range") || !plan.notes.hints.is_empty() {
        return None;
    }
    let candidates = candidates.clone();
    let Found::Fresh(stored, remaining) = lookup(snapshot, plan, &candidates, client, request, scratch) else {
        return None;
    };
    let (object, rule) = (&stored.object, stored.rule);
    let out = &mut wire.head;
    let rules = Rules::of(snapshot, plan);
    if rules.may_end() {
        return None;
    }
    let whole = match precondition(request, &object.head) {
        Precondition::Forward => return None,
        Precondition::NotModified => false,
        Precondition::Send => true,
    };
    plan.hit = Some(rule);
    let status = if !whole {
        edited(&rules, plan, client, request, not_modified(&object.head.fields), scratch, out)
    } else if rules.is_empty() {
        respond::note(snapshot, plan, &object.head);
        respond::count(plan, object.head.status);
        out.extend_from_slice(&object.wire);
        object.head.status
    } else if rules.read_only_response() {
        delivered(snapshot, &rules, plan, client, request, &stored, scratch, out)
    } else {
        edited(&rules, plan, client, request, object.head.clone(), scratch, out)
    };
    write_hit(remaining, out);
    out.extend_from_slice(connection);
    out.extend_from_slice(b"\r\n");
    if whole && request.method() != b"HEAD" {
        if object.body.len <= COPIED_BODY {
            object.body.chunks.iter().for_each(|chunk| out.extend_from_slice(chunk));
        } else {
            wire.body.extend(object.body.chunks.iter().cloned());
        }
    }
    Some(Ending { status, outcome: Outcome::Hit, reason: None, rule: Some(rule) })
}

/// Appends `head` as response rules leave it; returns its status.
fn edited(
    rules: &Rules<'_>,
    plan: &mut Plan,
    client: &Client,
    request: &mut Request,
    mut head: Response,
    scratch: &Scratch,
    out: &mut Vec<u8>,
) -> u16 {
    // Rules that could end the exchange otherwise do not run here.
    let _ = respond::apply_cached(rules, plan, client, request, &mut head, &scratch.arena);
    head.write_lines(out);
    head.status
}

/// The lines that are made for each hit: `Age` (RFC 9111 §5.1) and `Cache-Status` (RFC 9211).
fn write_hit(remaining: Remaining, out: &mut Vec<u8>) {
    // Writing to a Vec cannot fail.
    let _ = write!(out, "Age: {}\r\nCache-Status: ", remaining.age.as_secs());
    Status { hit: true, ttl: Some(remaining.ttl), ..Status::default() }.write(out);
    out.extend_from_slice(b"\r\n");
}

/// Appends the head as this snapshot's rules deliver it, which is made once and kept beside the object; returns its status.
#[expect(clippy::too_many_arguments, reason = "one exchange and the room to answer it")]
fn delivered(
    snapshot: &Snapshot,
    rules: &Rules<'_>,
    plan: &mut Plan,
    client: &Client,
    request: &mut Request,
    stored: &Stored,
    scratch: &Scratch,
    out: &mut Vec<u8>,
) -> u16 {
    let route = (plan.frontend.index(), plan.backend.map_or(usize::MAX, |id| id.index()));
    let object = &stored.object;
    let kept = object.delivered.load();
    if let Some(kept) = kept.as_ref().filter(|kept| kept.generation == snapshot.generation && kept.route == route) {
        respond::note(snapshot, plan, &object.head);
        respond::count(plan, object.head.status);
        out.extend_from_slice(&kept.wire);
        return kept.status;
    }
    let mut wire = Vec::with_capacity(object.wire.len() + 64);
    let status = edited(rules, plan, client, request, object.head.clone(), scratch, &mut wire);
    out.extend_from_slice(&wire);
    if let Some(store) = snapshot.cache_rule(stored.rule).and_then(|rule| snapshot.store_of(rule)) {
        store.keep_delivered(object, (snapshot.generation, route), status, &wire);
    }
    status
}
