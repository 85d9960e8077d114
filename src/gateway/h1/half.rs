//! The two directions of a client's connection, which one task drives at once: a body may still come while its
//! answer is written.

use std::{
    future::{Future, poll_fn},
    io::{self, IoSlice},
    pin::{Pin, pin},
    sync::{Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite},
    time::Instant,
};

use super::link::{HEAD_ROOM, READ_AHEAD, Socket};
use crate::{gateway::alarm::Alarm, metrics::FrontendMetrics};

/// Most slices in one write.
const SLICES: usize = 16;

/// A socket at hand: one's own, or shared by both directions. The lock is never waited for, as both are in
/// one task.
pub(super) trait Hold {
    type Socket: Socket;
    fn with<T>(&mut self, act: impl FnOnce(&mut Self::Socket) -> T) -> T;
}

impl<S: Socket> Hold for &mut S {
    type Socket = S;
    fn with<T>(&mut self, act: impl FnOnce(&mut S) -> T) -> T {
        act(self)
    }
}

impl<S: Socket> Hold for &Mutex<S> {
    type Socket = S;
    fn with<T>(&mut self, act: impl FnOnce(&mut S) -> T) -> T {
        act(&mut self.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What is known of the client's direction.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// What was read and not yet used.
    pub(super) inbox: BytesMut,
    alarm: Alarm,
    /// The client has closed its sending side.
    pub(super) ended: bool,
    pub(super) received: u64,
    settled: u64,
}

impl Reading {
    /// Reads once into the inbox; 0 when the client sends nothing more.
    pub(super) fn poll_fill<S: AsyncRead + Unpin>(
        &mut self,
        socket: &mut S,
        context: &mut Context<'_>,
        room: usize,
        until: Option<Instant>,
    ) -> Poll<io::Result<usize>> {
        if self.ended {
            return Poll::Ready(Ok(0));
        }
        self.inbox.reserve(room);
        let read = pin!(socket.read_buf(&mut self.inbox)).poll(context);
        match (read, until) {
            (Poll::Ready(Ok(size)), _) => {
                self.ended = size == 0;
                self.received += size as u64;
                Poll::Ready(Ok(size))
            }
            (Poll::Ready(Err(error)), _) => Poll::Ready(Err(error)),
            (Poll::Pending, None) => Poll::Pending,
            (Poll::Pending, Some(until)) => {
                self.alarm.set(until);
                self.alarm.poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }

    /// Ready when the client has left; reads ahead what it sends meanwhile.
    ///
    /// A client that has said everything before it heard anything (`begun` is false) may close its
    /// sending side and still wants its answer; one that closes it in the middle of an answer has left.
    /// The two look alike on the wire (RFC 9112 §9.6).
    pub(super) fn poll_departure<S: AsyncRead + Unpin>(
        &mut self,
        socket: &mut S,
        context: &mut Context<'_>,
        begun: bool,
    ) -> Poll<io::Error> {
        loop {
            if self.ended || self.inbox.len() >= READ_AHEAD {
                return Poll::Pending;
            }
            match self.poll_fill(socket, context, HEAD_ROOM, None) {
                Poll::Ready(Ok(0)) if begun => return Poll::Ready(io::ErrorKind::UnexpectedEof.into()),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(error),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Counts the bytes since the last time.
    pub(super) fn settle(&mut self, metrics: &FrontendMetrics) {
        if self.received > self.settled {
            let settled = std::mem::replace(&mut self.settled, self.received);
            metrics.bytes_in.add(self.received - settled);
        }
    }
}

/// What is known of our direction.
#[derive(Debug, Default)]
pub(super) struct Writing {
    alarm: Alarm,
    /// A write did not come to its end; nothing may follow it.
    pub(super) spoiled: bool,
    pub(super) sent: u64,
    settled: u64,
}

impl Writing {
    /// Counts the bytes since the last time.
    pub(super) fn settle(&mut self, metrics: &FrontendMetrics) {
        if self.sent > self.settled {
            let settled = std::mem::replace(&mut self.settled, self.sent);
            metrics.bytes_out.add(self.sent - settled);
        }
    }
}

/// The client's direction, while the other one is somebody else's.
#[derive(Debug)]
pub struct Reader<'l, S> {
    pub(super) socket: &'l Mutex<S>,
    pub(super) reading: &'l mut Reading,
}

impl<S: Socket> Reader<'_, S> {
    /// Reads once into the inbox; 0 when the client sends nothing more.
    ///
    /// # Errors
    /// `TimedOut` at `until`; what the socket says.
    pub(super) fn poll_fill(
        &mut self,
        context: &mut Context<'_>,
        room: usize,
        until: Instant,
    ) -> Poll<io::Result<usize>> {
        let Self { socket, reading } = self;
        socket.with(|socket| reading.poll_fill(socket, context, room, Some(until)))
    }

    /// As [`Reading::poll_departure`].
    pub(super) fn poll_departure(&mut self, context: &mut Context<'_>, begun: bool) -> Poll<io::Error> {
        let Self { socket, reading } = self;
        socket.with(|socket| reading.poll_departure(socket, context, begun))
    }
}

/// Our direction.
#[derive(Debug)]
pub struct Writer<'l, H> {
    pub(super) socket: H,
    pub(super) writing: &'l mut Writing,
    pub(super) metrics: Option<&'l FrontendMetrics>,
}

#[expect(private_bounds, reason = "what a socket may be held by is this module's affair")]
impl<H: Hold> Writer<'_, H> {
    /// Writes `head` and then every piece of `body`, in as few writes as the socket takes.
    ///
    /// # Errors
    /// `TimedOut` when the client takes nothing for `stall`; what the socket says. The connection is
    /// not sound any more then, nor when the future is dropped.
    pub async fn write(&mut self, head: &[u8], body: &[Bytes], stall: Duration) -> io::Result<()> {
        if self.writing.spoiled {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let total = head.len() + body.iter().map(Bytes::len).sum::<usize>();
        let mut done = 0;
        self.writing.spoiled = true;
        while done < total {
            let size = self.write_some(head, body, done, stall).await?;
            if size == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            done += size;
            self.writing.sent += size as u64;
            if let Some(metrics) = self.metrics {
                self.writing.settle(metrics);
            }
        }
        self.flush(stall).await?;
        self.writing.spoiled = false;
        Ok(())
    }

    async fn write_some(&mut self, head: &[u8], body: &[Bytes], done: usize, stall: Duration) -> io::Result<usize> {
        let mut armed = false;
        poll_fn(|context| {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = gather(head, body, done, &mut slices);
            let slices = slices.get(..count).unwrap_or_default();
            match self.socket.with(|socket| Pin::new(socket).poll_write_vectored(context, slices)) {
                Poll::Ready(size) => Poll::Ready(size),
                Poll::Pending => self.writing.alarm.stalled(&mut armed, stall, context),
            }
        })
        .await
    }

    async fn flush(&mut self, stall: Duration) -> io::Result<()> {
        let mut armed = false;
        poll_fn(|context| match self.socket.with(|socket| Pin::new(socket).poll_flush(context)) {
            Poll::Ready(done) => Poll::Ready(done),
            Poll::Pending => self.writing.alarm.stalled(&mut armed, stall, context),
        })
        .await
    }

    /// Makes the coming close a visible break.
    pub fn cut(&mut self) {
        self.writing.spoiled = true;
        self.socket.with(Socket::cut);
    }
}

/// What is left of `head` and `body` after `done` bytes, as far as the slices reach.
fn gather<'b>(head: &'b [u8], body: &'b [Bytes], done: usize, slices: &mut [IoSlice<'b>]) -> usize {
    let mut skip = done;
    let mut count = 0;
    for piece in std::iter::once(head).chain(body.iter().map(|piece| &**piece)) {
        match piece.get(skip..) {
            Some(rest) => {
                skip = 0;
                if !rest.is_empty() {
                    let Some(slot) = slices.get_mut(count) else { break };
                    *slot = IoSlice::new(rest);
                    count += 1;
                }
            }
            None => skip -= piece.len(),
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_after_a_short_write() {
        let body = [Bytes::from_static(b"cd"), Bytes::new(), Bytes::from_static(b"ef")];
        for done in 0..=6 {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = gather(b"ab", &body, done, &mut slices);
            assert_eq!(slices[..count].iter().flat_map(|slice| slice.to_vec()).collect::<Vec<_>>(), b"abcdef"[done..]);
        }
    }
}
