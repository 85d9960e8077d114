//! What is written down about a request that has ended: its counters and its line in the log.
//!
//! A line is a format like any other, evaluated once when the exchange is over. It is written into room that the worker
//! keeps, and a thread of its own takes it from there to where it goes: nothing that a log server does is waited for.

mod desk;
mod header;
mod outlet;

use std::{sync::atomic::Ordering, time::Duration};

use self::{desk::Room, header::Stamp};
pub use self::{
    desk::{AccessLog, LogWriter},
    outlet::{Outlet, Outlets},
};
use super::{
    clock,
    plan::{Plan, Route},
    snapshot::{FrontendState, Snapshot},
};
use crate::{
    config::{CacheRule, Id, Log, LogHeader},
    message::Request,
    metrics::Outcome,
    rule::{
        Client, Txn,
        notes::LogLevel,
        progress::End,
        track::{Event, Tracks},
    },
};

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The status sent; 0 when the client left before any.
    pub status: u16,
    /// How it is counted.
    pub outcome: Outcome,
    /// Why it was no hit, when it was none.
    pub reason: Option<&'static str>,
    /// The caching rule it is counted under; `None`: no rule was for it.
    pub rule: Option<Id<CacheRule>>,
}

/// The reason of a request whose connection a rule closed.
pub const CLOSED: &str = "closed-by-rule";

/// The reason of a request that a response rule answered.
pub const RESPONSE_RULE: &str = "response-rule";

/// The reason of a request whose client did not wait for the end.
pub const CLIENT_GONE: &str = "client-gone";

impl Ending {
    /// The client left before it got a status: the request counts as what it was to be.
    pub fn client_gone(plan: &Plan) -> Self {
        let outcome = match &plan.route {
            Route::Answer(_, outcome) => *outcome,
            Route::Purge { .. } => Outcome::Purge,
            Route::Fetch(_) => Outcome::Miss,
            Route::Pass(_) => Outcome::Pass,
            Route::Tarpit { .. } | Route::Close { .. } => Outcome::Refused,
        };
        Self { status: 0, outcome, reason: Some(CLIENT_GONE), rule: plan.rule() }
    }

    /// Who ended the exchange before its time, and when: HAProxy's first two flags of termination (manual §8.5).
    fn state(&self, plan: &Plan) -> [u8; 2] {
        let progress = &plan.notes.progress;
        let by_whom = match (self.reason, self.outcome) {
            (Some(CLIENT_GONE), _) => b'C',
            (Some("head-timeout"), _) => b'c',
            (_, Outcome::Hit | Outcome::Stale | Outcome::Answered | Outcome::Purge) => b'L',
            (Some("protocol" | "internal"), Outcome::Error) | (_, Outcome::Refused) => b'P',
            (Some("timeout"), Outcome::Error) => b's',
            (_, Outcome::Error) => b'S',
            (_, Outcome::Revalidated | Outcome::Collapsed | Outcome::Miss | Outcome::Pass) => return *b"--",
        };
        let answered = progress.response.is_some();
        let when = match by_whom {
            b'L' | b'c' => b'R',
            b'P' if self.outcome == Outcome::Refused => b'R',
            _ if answered => b'D',
            b'S' if progress.connect.is_none() => b'C',
            b'C' if progress.connect.is_none() && progress.queue.is_some() => b'C',
            _ => b'H',
        };
        [by_whom, when]
    }

    /// Whether HAProxy would call it an error (`option log-separate-errors`, `option dontlog-normal`).
    fn is_error(&self, state: [u8; 2]) -> bool {
        self.status >= 500 || !matches!(state, [b'-' | b'L', _])
    }
}

/// What a request took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes received for it, framing included.
    pub received: u64,
    /// Bytes sent for it, framing included.
    pub sent: u64,
    /// From its head's last byte to its response's last byte.
    pub duration: Duration,
}

/// The request that a line is to be about; `None`: there is to be none.
pub type Line = Option<Box<Request>>;

/// Counts a request's end, and writes its line if there is to be one.
pub fn settle(
    snapshot: &Snapshot,
    plan: &mut Plan,
    client: &Client,
    line: Line,
    ending: &Ending,
    traffic: Traffic,
    log: &AccessLog,
) {
    let state = snapshot.frontend_state(plan.frontend);
    if let Some(state) = state {
        state.requests(ending.rule).count(ending.outcome, ending.reason);
        state.metrics.duration.observe(traffic.duration);
        state.metrics.responded(ending.status);
    }
    if let Some(state) = plan.backend.and_then(|id| snapshot.backend_state(id)) {
        state.metrics.left.add(1);
    }
    if let Some(tracks) = &plan.notes.tracks {
        count(tracks, ending, traffic);
    }
    if let (Some(mut request), Some(frontend), Some(state)) = (line, snapshot.frontend(plan.frontend), state)
        && !plan.unlogged
    {
        write(&frontend.log, state, snapshot, plan, client, &mut request, (ending, traffic), log);
    }
}

/// Counts a request's end for what it is tracked by; its own tracking ends.
fn count(tracks: &Tracks, ending: &Ending, traffic: Traffic) {
    let now = clock::now().as_millis();
    // What servers answer was counted when it came; that none could be reached is no failure of one (HAProxy manual
    // §7.3.2, `http_fail_cnt`).
    if ending.outcome == Outcome::Error && matches!(ending.reason, Some("timeout" | "protocol" | "truncated")) {
        tracks.count(Event::Failure, now);
    }
    for event in [Event::Received(traffic.received), Event::Sent(traffic.sent)] {
        tracks.count(event, now);
    }
    tracks.end(now);
}

#[expect(clippy::too_many_arguments, reason = "as `settle`")]
fn write(
    to: &Log,
    frontend: &FrontendState,
    snapshot: &Snapshot,
    plan: &mut Plan,
    client: &Client,
    request: &mut Request,
    (ending, traffic): (&Ending, Traffic),
    log: &AccessLog,
) {
    let state = ending.state(plan);
    let is_error = ending.is_error(state);
    let level = match plan.notes.log_level {
        Some(LogLevel::Silent) => return,
        _ if to.errors_only && !is_error => return,
        Some(LogLevel::At(level)) => level,
        None if to.separate_errors && is_error => ERR,
        None => INFO,
    };
    let progress = &mut plan.notes.progress;
    if plan.hit.is_some() {
        (progress.queue, progress.connect) = (Some(0), Some(0));
        progress.response = progress.response.or(Some(0));
    }
    progress.end = Some(End {
        status: ending.status,
        state,
        active: u32::try_from(traffic.duration.as_millis()).unwrap_or(u32::MAX),
        received: traffic.received,
        sent: traffic.sent,
        outcome: ending.outcome.as_str(),
        reason: ending.reason,
    });
    log.with_room(|room| {
        let mut arena = std::mem::take(&mut room.arena);
        arena.reset();
        plan.with_txn(snapshot, client, request, &arena, |txn| {
            // A request that was answered before its id was needed has one all the same.
            txn.unique_id();
            emit(to, frontend, level, txn, room);
        });
        room.arena = arena;
    });
    frontend.logged.fetch_add(1, Ordering::Relaxed);
}

const ERR: u8 = 3;
const INFO: u8 = 6;

fn emit(to: &Log, frontend: &FrontendState, level: u8, txn: &Txn<'_>, room: &mut Room) {
    room.line.clear();
    to.line.write(txn, &mut room.line);
    room.structured.clear();
    if let Some(structured) = to.structured.as_ref().filter(|_| has(to, LogHeader::Rfc5424)) {
        structured.write(txn, &mut room.structured);
    }
    let stamp = Stamp::now(to, txn.env);
    for (logger, outlet) in to.loggers.iter().zip(&frontend.outlets) {
        if level <= logger.level && outlet.takes(logger.sample.as_ref()) {
            let level = level.max(logger.min_level);
            room.put(outlet.number, |line, structured, out| {
                let start = out.len();
                header::write(logger, level, &stamp, structured, out);
                out.extend_from_slice(line);
                if let Some(len) = logger.len {
                    out.truncate(start + len);
                }
                out.push(b'\n');
            });
        }
    }
}

fn has(to: &Log, header: LogHeader) -> bool {
    to.loggers.iter().any(|logger| logger.header == header)
}

#[cfg(test)]
mod tests;
