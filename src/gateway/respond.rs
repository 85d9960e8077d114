//! Response rules: what a client gets of what a server, a store or a rule said.

use std::{io, iter};

use bumpalo::Bump;
use bytes::Bytes;

use super::{
    clock, hop, pages,
    plan::{Bypass, Plan, Route},
    snapshot::{Shared, Snapshot},
    surrogate,
};
use crate::{
    message::{Framing, Request, Response},
    metrics::Outcome,
    ops::PurgeRequest,
    policy::{
        invalidate::{invalidates, named_with},
        status::{Forward, Status},
    },
    rule::{Client, RuleSet, Verdict, track::Event},
};

/// The rule sets that a delivered response runs through, in order: `tcp-response content`, then `http-response`, then
/// `http-after-response`, of the latter two the backend's before the frontend's (HAProxy manual §4.2).
#[derive(Clone, Copy, Debug)]
pub struct Rules<'s> {
    snapshot: &'s Snapshot,
    sets: [Option<&'s RuleSet>; 5],
    reads_only_response: bool,
    may_end: bool,
    /// Whether the response was not made here.
    received: bool,
}

impl<'s> Rules<'s> {
    /// Those of a response from a server or a store.
    pub fn of(snapshot: &'s Snapshot, plan: &Plan) -> Self {
        let frontend = snapshot.frontend(plan.frontend);
        let backend = plan.backend.and_then(|id| snapshot.backend(id));
        let sets = [
            backend.map(|backend| &backend.response_content),
            backend.map(|backend| &backend.response),
            frontend.map(|frontend| &frontend.response),
            backend.map(|backend| &backend.after_response),
            frontend.map(|frontend| &frontend.after_response),
        ];
        let of_backend = plan.backend.and_then(|id| snapshot.backend_state(id));
        let of_frontend = snapshot.frontend_state(plan.frontend);
        let reads_only_response = of_backend.is_none_or(|state| state.reads_only_response)
            && of_frontend.is_none_or(|state| state.reads_only_response);
        let may_end = of_backend.is_some_and(|state| state.ends_responses)
            || of_frontend.is_some_and(|state| state.ends_responses);
        Self { reads_only_response, may_end, received: true, ..Self::filled(snapshot, sets) }
    }

    /// Those of a response of our own: `http-after-response` alone.
    pub fn of_answer(snapshot: &'s Snapshot, plan: &Plan) -> Self {
        let frontend = snapshot.frontend(plan.frontend);
        let backend = plan.backend.and_then(|id| snapshot.backend(id));
        let after = [
            None,
            None,
            None,
            backend.map(|backend| &backend.after_response),
            frontend.map(|frontend| &frontend.after_response),
        ];
        Self::filled(snapshot, after)
    }

    fn filled(snapshot: &'s Snapshot, sets: [Option<&'s RuleSet>; 5]) -> Self {
        let sets = sets.map(|set| set.filter(|set| !set.is_empty()));
        Self { snapshot, sets, reads_only_response: false, may_end: false, received: false }
    }

    /// Whether there is nothing to run.
    pub fn is_empty(&self) -> bool {
        self.sets.iter().all(Option::is_none)
    }

    /// Whether one of them may close the connection, put another response in the place of this one, or take its body.
    pub const fn may_end(&self) -> bool {
        self.may_end
    }

    /// Whether the outcome is known to depend on the response alone.
    pub const fn read_only_response(&self) -> bool {
        self.reads_only_response
    }
}

/// A rule has closed the connection instead of letting a response through.
#[derive(Debug, thiserror::Error)]
#[error("a rule closes the connection")]
pub struct Closed;

impl From<Closed> for io::Error {
    fn from(closed: Closed) -> Self {
        Self::new(io::ErrorKind::ConnectionAborted, closed)
    }
}

/// Whether an error is that a rule closed the connection.
pub fn is_closed(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Closed>())
}

/// What a rule has put in the place of a response whose head this was.
#[derive(Debug)]
pub struct Instead {
    /// The body that belongs to the head now.
    pub body: Bytes,
    /// How the exchange is counted.
    pub outcome: Outcome,
}

/// Counts a response for what its exchange is tracked by.
pub fn count(plan: &Plan, status: u16) {
    if let Some(tracks) = &plan.notes.tracks
        && let Some(event) = Event::of_status(status)
    {
        tracks.count(event, clock::now().as_millis());
    }
}

/// Notes what the log may ask of a response that was not made here.
pub fn note(snapshot: &Snapshot, plan: &mut Plan, response: &Response) {
    if plan.hit.is_none() {
        plan.notes.server_status = Some(response.status);
    }
    plan.notes.response_version = Some(response.version);
    if let Some(captures) = snapshot.frontend(plan.frontend).map(|frontend| &frontend.captures) {
        plan.notes.captured.response(captures, &response.fields);
        plan.notes.captured.response_cookie(captures, &response.fields);
    }
}

/// Runs response rules, and takes back what they did to what is this hop's own. Counts the response when it was received.
/// What it returns goes before the response's own body; `None`: it is still that response.
///
/// # Errors
/// A rule closes the connection; nothing is to be sent.
pub fn apply(
    rules: &Rules<'_>,
    plan: &mut Plan,
    client: &Client,
    request: &mut Request,
    response: &mut Response,
    arena: &Bump,
) -> Result<Option<Instead>, Closed> {
    if rules.received {
        note(rules.snapshot, plan, response);
    }
    if rules.is_empty() {
        if rules.received {
            count(plan, response.status);
        }
        return Ok(None);
    }
    let date = response.fields.first("date").map(|date| &*arena.alloc_slice_copy(date));
    let [below, of_backend, of_frontend, after @ ..] = rules.sets;
    if let Some(below) = below {
        let verdict = plan.with_response(rules.snapshot, client, request, response, arena, |txn| below.run(txn));
        if matches!(verdict, Verdict::Close { .. }) {
            return Err(Closed);
        }
    }
    if rules.received {
        count(plan, response.status);
    }
    let mut instead = None;
    for set in [of_backend, of_frontend].into_iter().flatten() {
        let (given, outcome) =
            match plan.with_response(rules.snapshot, client, request, response, arena, |txn| set.run(txn)) {
                Verdict::Deny(given) => (given, Outcome::Refused),
                Verdict::Answer(given) => (given, Outcome::Answered),
                Verdict::Close { .. } => return Err(Closed),
                Verdict::Continue | Verdict::Tarpit(_) | Verdict::Purge { .. } | Verdict::Wait { .. } => continue,
            };
        let answer = pages::given(rules.snapshot, plan, given).ok_or(Closed)?;
        *response = answer.head;
        instead = Some(Instead { body: answer.body, outcome });
        break;
    }
    // How these end is of no matter: no action of theirs replaces a response.
    for set in after.into_iter().flatten() {
        let _ = plan.with_response(rules.snapshot, client, request, response, arena, |txn| set.run(txn));
    }
    if response.status == 204 {
        // `set-status` (RFC 9110 §8.6).
        response.fields.remove(b"Content-Length");
        response.framing = Framing::None;
    }
    // Whether the connection stays is not a rule's to say, nor is when the response was made (RFC 9110 §6.6.1, §7.6.1).
    response.fields.retain(|field| !hop::is_connection(field.name));
    if let Some(date) = date.filter(|_| instead.is_none() && !response.fields.has("date")) {
        response.fields.append(b"Date", date);
    }
    Ok(instead)
}

/// As [`apply`], for a response out of the cache: leaves it without `Age`, which is made for each answer
/// (RFC 9111 §5.1) whatever rules say.
///
/// # Errors
/// As [`apply`].
pub fn apply_cached(
    rules: &Rules<'_>,
    plan: &mut Plan,
    client: &Client,
    request: &mut Request,
    response: &mut Response,
    arena: &Bump,
) -> Result<Option<Instead>, Closed> {
    let instead = apply(rules, plan, client, request, response, arena)?;
    response.fields.remove(b"Age");
    Ok(instead)
}

/// Finishes the head of a response that passed the cache by: what it makes invalid (RFC 9111 §4.4),
/// surrogate keys, response rules, `Cache-Status`.
///
/// # Errors
/// As [`apply`].
pub fn passed(
    shared: &Shared,
    snapshot: &Snapshot,
    plan: &mut Plan,
    client: &Client,
    request: &mut Request,
    response: &mut Response,
) -> Result<Option<Instead>, Closed> {
    if invalidates(request, response) {
        invalidate(shared, client, request, response);
    }
    surrogate::strip(snapshot, plan, &mut response.fields);
    let instead = apply(&Rules::of(snapshot, plan), plan, client, request, response, &Bump::new())?;
    if instead.is_none() {
        say_passed(plan, None, response);
    }
    Ok(instead)
}

/// Removes what the target and the response to an unsafe request name.
fn invalidate(shared: &Shared, client: &Client, request: &Request, response: &Response) {
    let mut url = Vec::new();
    request.write_url(client.tls.is_some(), &mut url);
    let url = String::from_utf8_lossy(&url).into_owned();
    let named = named_with(&url, &response.fields);
    for target in iter::once(&url).chain(&named).filter_map(|url| PurgeRequest::url(url).ok()) {
        shared.ops().invalidate(&target);
    }
}

/// Says in `Cache-Status` why the request passed the cache by, and what went wrong then if anything did.
pub fn say_passed(plan: &Plan, fault: Option<&'static str>, response: &mut Response) {
    if let Some(status) = passed_status(plan, fault) {
        say(&status, response);
    }
}

/// Why a request passed the cache by, or what went wrong then; `None` when it did not pass.
pub fn passed_status(plan: &Plan, fault: Option<&'static str>) -> Option<Status<'static>> {
    let Route::Pass(bypass) = plan.route else { return None };
    let forward = if bypass == Bypass::Method { Forward::Method } else { Forward::Bypass };
    Some(Status { forward: Some(forward), detail: fault.or(Some(bypass.as_str())), ..Status::default() })
}

/// Adds our member of `Cache-Status`, behind those of caches nearer to the origin (RFC 9211 §2).
pub fn say(status: &Status<'_>, response: &mut Response) {
    let mut text = Vec::new();
    status.write(&mut text);
    response.fields.append(b"Cache-Status", &text);
}
