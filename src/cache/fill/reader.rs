//! A reader's side of a fill.

use std::sync::Arc;

use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

use super::{Arrival, Failure, FailureKind, Fill, Piece};
use crate::cache::Object;

/// One reader of a fill. Dropping it leaves the fill.
#[derive(Debug)]
pub struct Reader {
    fill: Arc<Fill>,
    seat: u64,
    changed: watch::Receiver<()>,
    /// When a follower stops waiting for the head.
    deadline: Option<Instant>,
    interims: usize,
}

impl Reader {
    pub(super) fn new(fill: Arc<Fill>, seat: u64, changed: watch::Receiver<()>, deadline: Option<Instant>) -> Self {
        Self { fill, seat, changed, deadline, interims: 0 }
    }

    /// Waits for the head. After [`Arrival::NotForYou`] the reader is of no more use.
    ///
    /// # Errors
    /// The fill's failure, also one that came after the head but before this reader asked for it.
    pub async fn head(&mut self) -> Result<Arrival, Failure> {
        loop {
            // Seen before looking, so that a change after the look wakes.
            self.changed.mark_unchanged();
            if let Some(arrival) = self.fill.arrival(self.seat, &mut self.interims) {
                if let Ok(Arrival::NotForYou(_)) = arrival {
                    self.fill.leave(self.seat);
                }
                return arrival;
            }
            let waited = match self.deadline {
                Some(deadline) => timeout_at(deadline, self.changed.changed()).await,
                None => Ok(self.changed.changed().await),
            };
            match waited {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(gone()),
                Err(_) => {
                    self.fill.leave(self.seat);
                    return Ok(Arrival::NotForYou("wait"));
                }
            }
        }
    }

    /// The next piece of the body. After the end or a failure it says the same again.
    ///
    /// # Errors
    /// The fill's failure: the body is incomplete and the client must see it.
    pub async fn body(&mut self) -> Result<Piece, Failure> {
        loop {
            self.changed.mark_unchanged();
            if let Some(piece) = self.fill.piece(self.seat) {
                return piece;
            }
            if self.changed.changed().await.is_err() {
                return Err(gone());
            }
        }
    }

    /// The stored object, once the fill is complete and what it brought was kept.
    pub fn object(&self) -> Option<Arc<Object>> {
        self.fill.object()
    }

    /// Leaves the fill and lets it go on to its end whatever its options say: for a refresh in the background.
    /// It still stops when the response turns out not to be kept, or too many fills go on without readers.
    pub fn detach(self) {
        self.fill.detach();
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.fill.leave(self.seat);
    }
}

fn gone() -> Failure {
    Failure::new(FailureKind::Truncated, "the fetch is gone")
}
