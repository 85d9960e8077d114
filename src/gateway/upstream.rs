//! The beginning of an exchange with a backend, whoever asks for it.

use std::time::Instant;

use super::{
    clock,
    exchange::{Exchange, Pool},
    snapshot::Snapshot,
};
use crate::{
    cache::fill::{Failure, FailureKind},
    config::{Backend, Id},
    message::Request,
    time::Timestamp,
};

/// Servers tried for one request that none of them has seen.
const MAX_TRIES: usize = 3;

/// Sends `head` to a server of `backend` whose turn it is; to the next when one cannot be reached. `begins` is
/// told the time of each attempt. Failures are counted and logged. Returns the server's place in its backend, too.
///
/// # Errors
/// The last failure; `Connect` when the backend has no server.
pub async fn open(
    pool: &Pool,
    snapshot: &Snapshot,
    backend: Option<Id<Backend>>,
    head: &Request,
    mut begins: impl FnMut((Timestamp, Instant)),
) -> Result<(u32, Exchange), Failure> {
    let no_server = || Failure { kind: FailureKind::Connect, text: "the backend has no server".into() };
    let id = backend.ok_or_else(no_server)?;
    let settings = snapshot.backend(id).ok_or_else(no_server)?;
    let mut failure = no_server();
    for _ in 0..settings.servers.len().clamp(1, MAX_TRIES) {
        let Some((place, server)) = snapshot.pick(id) else { break };
        begins(clock::both());
        if let Some(state) = snapshot.backend_state(id) {
            state.metrics.requests.add(1);
        }
        match Exchange::open(pool, &server.address, &settings.timeouts, head).await {
            Ok(exchange) => return Ok((u32::try_from(place).unwrap_or(u32::MAX), exchange)),
            Err(error) => failure = error,
        }
        failed(snapshot, backend, &failure);
        if failure.kind != FailureKind::Connect {
            break;
        }
    }
    Err(failure)
}

/// Counts and logs what a server did wrong.
pub fn failed(snapshot: &Snapshot, backend: Option<Id<Backend>>, failure: &Failure) {
    let Some(id) = backend else { return };
    if let Some(state) = snapshot.backend_state(id) {
        state.metrics.error(failure.kind.as_str());
    }
    let name = snapshot.backend(id).map_or("-", |backend| &backend.name);
    tracing::error!(backend = name, kind = failure.kind.as_str(), "{}", failure.text);
}
