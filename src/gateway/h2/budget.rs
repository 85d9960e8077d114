//! What the responses of one connection may have waiting for its socket.
//!
//! The h2 crate bounds that for each stream only, and a client opens a hundred. Here every piece holds a
//! part of one budget until the crate lets go of it: written, or thrown away with its stream.

use std::{
    io,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::{Buf, Bytes};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

use super::meter::Gauge;

/// Most bytes of a piece: what a frame holds unless the client says otherwise (RFC 9113 §6.5.2), so that
/// streams take turns.
const PIECE: usize = 16 << 10;
/// Bytes that a client whose streams wait for the budget has to take within `timeout client`.
const LEAST: u64 = 16 << 10;

/// A number of bytes that the streams of a connection share.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    left: Arc<Semaphore>,
    gauge: Arc<Gauge>,
    queue: Arc<Mutex<Queue>>,
}

/// The streams that wait for the budget, and how far the client has come meanwhile.
#[derive(Debug)]
struct Queue {
    waiting: usize,
    /// When the client had last taken enough, and what it had taken in all by then.
    moved: (Instant, u64),
}

impl Budget {
    /// A budget of `bytes`, at least a piece of 16 KiB; `gauge` says what the client takes.
    pub(super) fn new(bytes: u32, gauge: Arc<Gauge>) -> Self {
        let bytes = usize::try_from(bytes).unwrap_or(PIECE).max(PIECE);
        let queue = Arc::new(Mutex::new(Queue { waiting: 0, moved: (Instant::now(), 0) }));
        Self { left: Arc::new(Semaphore::new(bytes)), gauge, queue }
    }

    /// Takes the first bytes off `data`, at most `room`, as soon as the budget has them.
    ///
    /// # Errors
    /// `TimedOut` when the client takes next to nothing of what waits before for `limit`.
    pub(super) async fn piece(&self, data: &mut Bytes, room: usize, limit: Duration) -> io::Result<Portion> {
        let size = data.len().min(room).min(PIECE);
        let permit = self.take(u32::try_from(size).unwrap_or_default(), limit).await?;
        Ok(Portion { bytes: data.split_to(size), _permit: Some(permit) })
    }

    async fn take(&self, size: u32, limit: Duration) -> io::Result<OwnedSemaphorePermit> {
        if let Ok(permit) = Arc::clone(&self.left).try_acquire_many_owned(size) {
            return Ok(permit);
        }
        let mut turn = pin!(Arc::clone(&self.left).acquire_many_owned(size));
        let place = Place::new(self);
        loop {
            let until = place.moved() + limit;
            if until <= Instant::now() {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes next to nothing"));
            }
            if let Ok(permit) = timeout_at(until, turn.as_mut()).await {
                return permit.map_err(io::Error::other);
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the queue.
struct Place<'b>(&'b Budget);

impl<'b> Place<'b> {
    fn new(budget: &'b Budget) -> Self {
        let mut queue = budget.queue();
        if queue.waiting == 0 {
            queue.moved = (Instant::now(), budget.gauge.written());
        }
        queue.waiting += 1;
        drop(queue);
        Self(budget)
    }

    /// When the client had last taken enough. What streams that were given up leave behind is none of it.
    fn moved(&self) -> Instant {
        let mut queue = self.0.queue();
        let written = self.0.gauge.written();
        if written - queue.moved.1 >= LEAST {
            queue.moved = (Instant::now(), written);
        }
        queue.moved.0
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.queue().waiting -= 1;
    }
}

/// A piece of a body with its part of the budget.
#[derive(Debug, Default)]
pub(super) struct Portion {
    bytes: Bytes,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Buf for Portion {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn a_piece_waits_for_what_others_hold() {
        let budget = Budget::new(0, Gauge::new());
        let mut data = Bytes::from(vec![1; 2 * PIECE]);
        let first = budget.piece(&mut data, usize::MAX, LIMIT).await.unwrap();
        assert_eq!((first.remaining(), data.len()), (PIECE, PIECE));
        let error = budget.piece(&mut data, 10, LIMIT).await.unwrap_err();
        assert_eq!((error.kind(), data.len()), (io::ErrorKind::TimedOut, PIECE));
        drop(first);
        assert_eq!(budget.piece(&mut data, 10, LIMIT).await.unwrap().remaining(), 10);
    }
}
