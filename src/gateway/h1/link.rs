//! A client's connection: its socket, what was read ahead, and its timers.

use std::{
    future::poll_fn,
    io,
    sync::{Arc, Mutex, PoisonError},
    task::Poll,
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    net::{TcpStream, UnixStream},
    time::Instant,
};

use super::{
    body::{Body, Step},
    half::{Reader, Reading, Writer, Writing},
};
use crate::{gateway::upload::Broken, metrics::FrontendMetrics};

/// Room for one read of a head.
pub const HEAD_ROOM: usize = 4 * 1024;

/// Room for one read of a body.
const BODY_ROOM: usize = 16 * 1024;

/// Most bytes read ahead while a response is on its way.
pub(super) const READ_AHEAD: usize = 64 * 1024;

/// A stream that a client speaks on.
pub trait Socket: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static {
    /// Makes the coming close a visible break (a reset), where the stream knows one: for responses
    /// that end with the connection and must not look complete (RFC 9112 §8).
    fn cut(&mut self) {}
}

impl Socket for TcpStream {
    fn cut(&mut self) {
        // A socket that is gone already needs no reset.
        let _ = self.set_zero_linger();
    }
}

impl Socket for UnixStream {}

/// A close without `close_notify` is the break.
impl<S: Socket> Socket for tokio_rustls::server::TlsStream<S> {}

#[cfg(test)]
impl Socket for tokio::io::DuplexStream {}

/// One client connection. Owned by its loop, lent to whoever answers the current request.
#[derive(Debug)]
pub struct Link<S> {
    /// Locked only while the two directions are apart.
    socket: Mutex<S>,
    reading: Reading,
    writing: Writing,
    metrics: Option<Arc<FrontendMetrics>>,
}

impl<S: Socket> Link<S> {
    /// A connection; its bytes are counted in `metrics`.
    pub fn new(socket: S, metrics: Option<Arc<FrontendMetrics>>) -> Self {
        Self { socket: Mutex::new(socket), reading: Reading::default(), writing: Writing::default(), metrics }
    }

    /// Bytes received so far.
    pub const fn received(&self) -> u64 {
        self.reading.received
    }

    /// Bytes sent so far.
    pub const fn sent(&self) -> u64 {
        self.writing.sent
    }

    /// What was read and not yet used.
    pub(super) const fn inbox(&self) -> &BytesMut {
        &self.reading.inbox
    }

    /// As [`Link::inbox`], to take from it.
    pub(super) const fn inbox_mut(&mut self) -> &mut BytesMut {
        &mut self.reading.inbox
    }

    /// Whether nothing was cut short and the connection can carry another message.
    pub const fn is_sound(&self) -> bool {
        !self.writing.spoiled
    }

    /// Whether the client has closed its sending side.
    pub const fn has_ended(&self) -> bool {
        self.reading.ended
    }

    /// The two directions, for as long as both are used at once.
    pub fn split(&mut self) -> (Reader<'_, S>, Writer<'_, &Mutex<S>>) {
        let Self { socket, reading, writing, metrics } = self;
        let socket = &*socket;
        (Reader { socket, reading }, Writer { socket, writing, metrics: metrics.as_deref() })
    }

    /// Reads once into the inbox; 0 when the client sends nothing more. Dropping the future loses nothing.
    ///
    /// # Errors
    /// `TimedOut` at `until`; what the socket says.
    pub async fn fill(&mut self, room: usize, until: Option<Instant>) -> io::Result<usize> {
        let socket = self.socket.get_mut().unwrap_or_else(PoisonError::into_inner);
        poll_fn(|context| self.reading.poll_fill(socket, context, room, until)).await
    }

    /// Writes `head` and then every piece of `body`, in as few writes as the socket takes.
    ///
    /// # Errors
    /// `TimedOut` when the client takes nothing for `stall`; what the socket says. The connection is
    /// not sound any more then, nor when the future is dropped.
    pub async fn write(&mut self, head: &[u8], body: &[Bytes], stall: Duration) -> io::Result<()> {
        let written = self.writer().write(head, body, stall).await;
        self.settle();
        written
    }

    /// The next piece of a request body; `None` at its end.
    ///
    /// # Errors
    /// [`Broken::Client`] when the client left, was silent for `stall`, or sent no body as announced.
    pub async fn body(&mut self, body: &mut Body, stall: Duration) -> Result<Option<Bytes>, Broken> {
        loop {
            match body.step(&mut self.reading.inbox).map_err(Broken::Malformed)? {
                Step::Data(data) => return Ok(Some(data)),
                Step::End => return Ok(None),
                Step::More => {
                    let until = Instant::now() + stall;
                    if self.fill(BODY_ROOM, Some(until)).await.map_err(Broken::Client)? == 0 {
                        return Err(Broken::Client(io::ErrorKind::UnexpectedEof.into()));
                    }
                }
            }
        }
    }

    /// The next bytes of an upgraded connection; `None` when the client has ended it.
    ///
    /// # Errors
    /// What the socket says.
    pub async fn raw(&mut self) -> io::Result<Option<Bytes>> {
        if self.reading.inbox.is_empty() && self.fill(BODY_ROOM, None).await? == 0 {
            return Ok(None);
        }
        Ok(Some(self.reading.inbox.split().freeze()))
    }

    /// Waits for the client to leave, reading ahead what it sends meanwhile. As long as nothing has `begun`
    /// to be answered, a client may close its sending side and still wants its answer.
    pub async fn departure(&mut self, begun: bool) -> io::Error {
        let socket = self.socket.get_mut().unwrap_or_else(PoisonError::into_inner);
        poll_fn(|context| self.reading.poll_departure(socket, context, begun)).await
    }

    /// Takes notice of an end that has come already, before an answer begins.
    pub async fn notice_end(&mut self) {
        let socket = self.socket.get_mut().unwrap_or_else(PoisonError::into_inner);
        // An error is found again by the write that follows.
        poll_fn(|context| Poll::Ready(self.reading.poll_departure(socket, context, false).is_ready())).await;
    }

    /// Reads the rest of a body that nobody wants, at most `limit` bytes of it and for at most
    /// `within`; whether it is gone.
    pub async fn drain(&mut self, body: &mut Body, limit: usize, within: Duration) -> bool {
        let until = Instant::now() + within;
        let mut seen = 0;
        while seen <= limit {
            match body.step(&mut self.reading.inbox) {
                Ok(Step::End) => return true,
                Ok(Step::Data(data)) => seen += data.len(),
                Ok(Step::More) => match self.fill(BODY_ROOM, Some(until)).await {
                    Ok(1..) => {}
                    _ => return false,
                },
                Err(_) => return false,
            }
        }
        false
    }

    /// Closes the sending side and reads a little on, so that the last response is not lost to a
    /// reset that unread bytes would provoke (RFC 9112 §9.6).
    pub async fn linger(&mut self, limit: usize, within: Duration) {
        let until = Instant::now() + within;
        if self.socket.get_mut().unwrap_or_else(PoisonError::into_inner).shutdown().await.is_err() {
            return;
        }
        let mut seen = 0;
        while seen < limit {
            self.reading.inbox.clear();
            match self.fill(BODY_ROOM, Some(until)).await {
                Ok(size @ 1..) => seen += size,
                _ => return,
            }
        }
    }

    /// Makes the coming close a visible break.
    pub fn cut(&mut self) {
        self.writer().cut();
    }

    /// Gives back room that a large message took.
    pub fn shrink(&mut self) {
        if self.reading.inbox.is_empty() && self.reading.inbox.capacity() > 2 * HEAD_ROOM {
            self.reading.inbox = BytesMut::new();
        }
    }

    fn writer(&mut self) -> Writer<'_, &mut S> {
        let socket = self.socket.get_mut().unwrap_or_else(PoisonError::into_inner);
        Writer { socket, writing: &mut self.writing, metrics: self.metrics.as_deref() }
    }
}

impl<S> Link<S> {
    /// Counts the bytes since the last time.
    pub fn settle(&mut self) {
        if let Some(metrics) = &self.metrics {
            self.reading.settle(metrics);
            self.writing.settle(metrics);
        }
    }
}

impl<S> Drop for Link<S> {
    fn drop(&mut self) {
        self.settle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_given_up() {
        let (near, _far) = tokio::io::duplex(4);
        let mut link = Link::new(near, None);
        let start = Instant::now();
        let error = link.write(b"abcdefgh", &[], Duration::from_secs(3)).await.unwrap_err();
        assert_eq!((error.kind(), start.elapsed().as_secs()), (io::ErrorKind::TimedOut, 3));
        assert!(!link.is_sound());
    }
}
