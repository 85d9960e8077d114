//! The task of a fill: asks the source, judges, and lets the response grow.

use std::{pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;

use super::{Failure, FailureKind, Fill, Head, Judgement, Piece, Source};
use crate::{
    cache::{
        Object,
        budget::Charge,
        object::{Draft, complete_head, count},
    },
    message::{Fields, Framing, Response},
};

/// Bytes that a windowed fill holds ahead of its slowest reader, one piece more or less.
pub(super) const WINDOW: u64 = 32 << 10;
/// How long the end of a 304 is waited for, so that its connection can be used again.
const DRAIN: Duration = Duration::from_secs(1);

/// Ends a fill when dropped: with its task, whether that returned, panicked, or was never run.
#[derive(Debug)]
pub(in crate::cache) struct Ending(pub(in crate::cache) Arc<Fill>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Runs a fill to its end.
pub(in crate::cache) async fn run<S: Source>(ending: Ending, mut source: S) {
    let fill = &*ending.0;
    let judgement = match final_head(fill, &mut source).await {
        Ok(response) => source.judge(response),
        Err(failure) => return fill.fail(failure, None),
    };
    match judgement {
        Judgement::Store(draft) => grow(fill, &mut source, Arc::from(draft)).await,
        Judgement::Freshen(draft, old) => {
            confirm(fill, &Arc::from(draft), &old);
            fill.close();
            // Nobody waits for this; what comes of it is the source's affair.
            let _ = tokio::time::timeout(DRAIN, source.body()).await;
        }
        Judgement::Confirmed(response, old, reason) => {
            let mut body = Stored(old.body.chunks.clone().into_iter());
            relay(fill, &mut body, *response, reason).await;
        }
        Judgement::Private(response, reason) => {
            set_apart(fill);
            relay(fill, &mut source, *response, reason).await;
        }
        Judgement::Alone(response, reason) => relay(fill, &mut source, *response, reason).await,
        Judgement::ServerError(response) => relay(fill, &mut source, *response, "server-error").await,
    }
}

async fn final_head<S: Source>(fill: &Fill, source: &mut S) -> Result<Response, Failure> {
    loop {
        match attended(fill, 0, source.head()).await? {
            Head::Interim(interim) => fill.announce(interim),
            Head::Final(response) => return Ok(response),
        }
    }
}

/// Whoever asks for the key next shall not wait for something that cannot be shared; what one request's own
/// credentials brought about says nothing of the key.
fn set_apart(fill: &Fill) {
    if !fill.options.alone {
        fill.store.table().set_apart(&fill.key);
    }
}

/// The key an object is stored under.
fn place(fill: &Fill, draft: &Draft) -> Arc<[u8]> {
    draft.key.as_deref().map_or_else(|| Arc::clone(&fill.key), Arc::from)
}

fn confirm(fill: &Fill, draft: &Arc<Draft>, old: &Arc<Object>) {
    let kept = fill.store.keep(draft, &place(fill, draft), fill.stamp, old.body.clone(), old.body_charge());
    fill.confirm(draft, complete_head(&draft.head, old.body.len), &old.body, kept);
}

/// Streams and stores.
async fn grow<S: Source>(fill: &Fill, source: &mut S, draft: Arc<Draft>) {
    let mut growth = Growth::new(fill, &draft.head);
    growth.kept = true;
    growth.limit = fill.options.max_object_size.min(fill.store.max_object_size());
    let too_large = growth.expected.is_some_and(|expected| expected > growth.limit);
    if too_large {
        growth.too_large();
    } else {
        fill.store.table().set_together(&fill.key);
    }
    fill.open(&draft, too_large.then_some("too-large"));
    match growth.body(source).await {
        Ok((trailers, last)) => {
            let body = fill.complete(last);
            let Growth { kept, charge, .. } = growth;
            if !kept {
                return fill.finish(trailers, None, Some(charge));
            }
            let (object, charge) = fill.store.keep_charged(&draft, &place(fill, &draft), fill.stamp, body, charge);
            fill.finish(trailers, object, charge);
        }
        Err(failure) => fill.fail(failure, Some(growth.charge)),
    }
}

/// Streams to the leader alone.
async fn relay<S: Source>(fill: &Fill, source: &mut S, response: Response, reason: &'static str) {
    let mut growth = Growth::new(fill, &response);
    fill.keep_apart(response, reason);
    match growth.body(source).await {
        Ok((trailers, _)) => fill.finish(trailers, None, None),
        Err(failure) => fill.fail(failure, None),
    }
}

/// A stored body in the place of a server's.
struct Stored(std::vec::IntoIter<Bytes>);

impl Source for Stored {
    async fn head(&mut self) -> Result<Head, Failure> {
        Err(Failure::new(FailureKind::Protocol, "a stored body has no head"))
    }

    fn judge(&mut self, response: Response) -> Judgement {
        Judgement::Private(Box::new(response), "stored")
    }

    async fn body(&mut self) -> Result<Piece, Failure> {
        Ok(self.0.next().map_or(Piece::End(None), Piece::Data))
    }
}

/// A body as its task sees it.
struct Growth<'a> {
    fill: &'a Fill,
    charge: Charge,
    received: u64,
    /// The announced length.
    expected: Option<u64>,
    /// Whether it is still to be stored; else the fill is windowed.
    kept: bool,
    limit: u64,
}

impl<'a> Growth<'a> {
    fn new(fill: &'a Fill, head: &Response) -> Self {
        let expected = match head.framing {
            Framing::None => Some(0),
            Framing::Length(length) => Some(length),
            Framing::Chunked | Framing::UntilClose | Framing::Stream => None,
        };
        Self { fill, charge: fill.store.no_charge(), received: 0, expected, kept: false, limit: 0 }
    }

    /// Receives the whole body; gives the trailers, and the last piece if it was held back: while the object
    /// is being stored, who has the announced length must find it stored with the next request.
    async fn body<S: Source>(&mut self, source: &mut S) -> Result<(Option<Fields>, Option<Bytes>), Failure> {
        let mut last = None;
        loop {
            match attended(self.fill, self.received, source.body()).await? {
                Piece::Data(data) if data.is_empty() => {}
                Piece::Data(data) => {
                    self.admit(count(data.len()))?;
                    if self.kept && self.expected == Some(self.received) {
                        last = Some(data);
                    } else {
                        self.fill.push(data);
                        self.wait_for_readers().await?;
                    }
                }
                Piece::End(_) if self.expected.is_some_and(|expected| expected != self.received) => {
                    return Err(Failure::new(FailureKind::Truncated, "the body is shorter than its Content-Length"));
                }
                Piece::End(trailers) => return Ok((trailers, last)),
            }
        }
    }

    /// Takes `len` bytes more into account, and turns windowed when they cannot be kept.
    fn admit(&mut self, len: u64) -> Result<(), Failure> {
        self.received = self.received.saturating_add(len);
        if self.expected.is_some_and(|expected| expected < self.received) {
            return Err(Failure::new(FailureKind::Protocol, "the body is longer than its Content-Length"));
        }
        if self.kept && self.received > self.limit {
            self.too_large();
        } else if self.kept && !self.fill.store.reserve(&mut self.charge, len) {
            self.refuse("no-room");
        }
        Ok(())
    }

    fn too_large(&mut self) {
        set_apart(self.fill);
        self.refuse("too-large");
    }

    /// Keeps it no longer. That there is no room now says nothing of the key.
    fn refuse(&mut self, reason: &'static str) {
        self.kept = false;
        self.fill.store.refused(reason);
        self.fill.turn_windowed();
    }

    /// When windowed, waits until the slowest reader is near.
    async fn wait_for_readers(&mut self) -> Result<(), Failure> {
        while let Some(held) = self.fill.trim() {
            // The window itself is bounded and not charged.
            self.charge.shrink_to(held.saturating_sub(WINDOW));
            if held < WINDOW {
                break;
            }
            if self.fill.forsaken(self.received) {
                return Err(abandoned());
            }
            self.fill.progress.notified().await;
        }
        Ok(())
    }
}

/// Waits for the source as long as anybody wants what it gives.
async fn attended<T>(fill: &Fill, received: u64, step: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let mut step = pin!(step);
    loop {
        if fill.forsaken(received) {
            return Err(abandoned());
        }
        tokio::select! {
            biased;
            done = &mut step => return done,
            () = fill.progress.notified() => {}
        }
    }
}

fn abandoned() -> Failure {
    Failure::new(FailureKind::Truncated, "abandoned: nobody reads it")
}
