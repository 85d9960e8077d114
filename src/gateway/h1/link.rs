//! A client's connection: its socket, what was read ahead, and its one timer.

use std::{
    future::{Future, poll_fn},
    io::{self, IoSlice},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpStream, UnixStream},
    time::{Instant, Sleep, sleep_until},
};

use super::{
    body::{Body, Step},
    parse::Refusal,
};
use crate::metrics::FrontendMetrics;

/// Room for one read of a head.
pub const HEAD_ROOM: usize = 4 * 1024;

/// Room for one read of a body.
const BODY_ROOM: usize = 16 * 1024;

/// Most bytes read ahead while a response is on its way.
const READ_AHEAD: usize = 64 * 1024;

/// Most slices in one write.
const SLICES: usize = 16;

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
    socket: S,
    /// What was read and not yet used.
    pub(super) inbox: BytesMut,
    alarm: Alarm,
    /// The client has closed its sending side.
    ended: bool,
    /// A write did not come to its end; nothing may follow it.
    spoiled: bool,
    received: u64,
    sent: u64,
    settled: (u64, u64),
    metrics: Option<Arc<FrontendMetrics>>,
}

impl<S: Socket> Link<S> {
    /// A connection; its bytes are counted in `metrics`.
    pub fn new(socket: S, metrics: Option<Arc<FrontendMetrics>>) -> Self {
        Self {
            socket,
            inbox: BytesMut::new(),
            alarm: Alarm::new(),
            ended: false,
            spoiled: false,
            received: 0,
            sent: 0,
            settled: (0, 0),
            metrics,
        }
    }

    /// Bytes received so far.
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Bytes sent so far.
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether nothing was cut short and the connection can carry another message.
    pub const fn is_sound(&self) -> bool {
        !self.spoiled
    }

    /// Whether the client has closed its sending side.
    pub const fn has_ended(&self) -> bool {
        self.ended
    }

    /// Reads once into the inbox; 0 when the client sends nothing more. Dropping the future loses nothing.
    ///
    /// # Errors
    /// `TimedOut` at `until`; what the socket says.
    pub async fn fill(&mut self, room: usize, until: Option<Instant>) -> io::Result<usize> {
        if self.ended {
            return Ok(0);
        }
        self.inbox.reserve(room);
        if let Some(until) = until {
            self.alarm.set(until);
        }
        let Self { socket, inbox, alarm, .. } = self;
        let mut read = pin!(socket.read_buf(inbox));
        let size = poll_fn(|context| match read.as_mut().poll(context) {
            Poll::Ready(size) => Poll::Ready(size),
            Poll::Pending if until.is_some() => alarm.poll(context).map(|()| Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        })
        .await?;
        self.ended = size == 0;
        self.received += size as u64;
        Ok(size)
    }

    /// Writes `head` and then every piece of `body`, in as few writes as the socket takes.
    ///
    /// # Errors
    /// `TimedOut` when the client takes nothing for `stall`; what the socket says. The connection is
    /// not sound any more then, nor when the future is dropped.
    pub async fn write(&mut self, head: &[u8], body: &[Bytes], stall: Duration) -> io::Result<()> {
        if self.spoiled {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let total = head.len() + body.iter().map(Bytes::len).sum::<usize>();
        let mut done = 0;
        self.spoiled = true;
        while done < total {
            let size = self.write_some(head, body, done, stall).await?;
            if size == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            done += size;
            self.sent += size as u64;
            self.settle();
        }
        self.flush(stall).await?;
        self.spoiled = false;
        Ok(())
    }

    async fn write_some(&mut self, head: &[u8], body: &[Bytes], done: usize, stall: Duration) -> io::Result<usize> {
        let mut armed = false;
        poll_fn(|context| {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = gather(head, body, done, &mut slices);
            let slices = slices.get(..count).unwrap_or_default();
            match Pin::new(&mut self.socket).poll_write_vectored(context, slices) {
                Poll::Ready(size) => Poll::Ready(size),
                Poll::Pending => self.alarm.stalled(&mut armed, stall, context),
            }
        })
        .await
    }

    async fn flush(&mut self, stall: Duration) -> io::Result<()> {
        let mut armed = false;
        poll_fn(|context| match Pin::new(&mut self.socket).poll_flush(context) {
            Poll::Ready(done) => Poll::Ready(done),
            Poll::Pending => self.alarm.stalled(&mut armed, stall, context),
        })
        .await
    }

    /// The next piece of a request body; `None` at its end.
    ///
    /// # Errors
    /// [`Broken::Client`] when the client left, was silent for `stall`, or sent no body as announced.
    pub async fn body(&mut self, body: &mut Body, stall: Duration) -> Result<Option<Bytes>, Broken> {
        loop {
            match body.step(&mut self.inbox).map_err(Broken::Malformed)? {
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
        if self.inbox.is_empty() && self.fill(BODY_ROOM, None).await? == 0 {
            return Ok(None);
        }
        Ok(Some(self.inbox.split().freeze()))
    }

    /// Waits for the client to leave, reading ahead what it sends meanwhile.
    ///
    /// A client that has said everything before it heard anything (`begun` is false) may close its
    /// sending side and still wants its answer; one that closes it in the middle of an answer has left.
    /// The two look alike on the wire (RFC 9112 §9.6).
    pub async fn departure(&mut self, begun: bool) -> io::Error {
        loop {
            if self.ended || self.inbox.len() >= READ_AHEAD {
                std::future::pending::<()>().await;
            }
            match self.fill(HEAD_ROOM, None).await {
                Ok(0) if begun => return io::ErrorKind::UnexpectedEof.into(),
                Ok(_) => {}
                Err(error) => return error,
            }
        }
    }

    /// Takes notice of an end that has come already, before an answer begins.
    pub async fn notice_end(&mut self) {
        if self.ended || self.inbox.len() >= READ_AHEAD {
            return;
        }
        let mut fill = pin!(self.fill(HEAD_ROOM, None));
        // An error is found again by the write that follows.
        poll_fn(|context| Poll::Ready(fill.as_mut().poll(context).is_ready())).await;
    }

    /// Reads the rest of a body that nobody wants, at most `limit` bytes of it and for at most
    /// `within`; whether it is gone.
    pub async fn drain(&mut self, body: &mut Body, limit: usize, within: Duration) -> bool {
        let until = Instant::now() + within;
        let mut seen = 0;
        while seen <= limit {
            match body.step(&mut self.inbox) {
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
        if self.socket.shutdown().await.is_err() {
            return;
        }
        let mut seen = 0;
        while seen < limit {
            self.inbox.clear();
            match self.fill(BODY_ROOM, Some(until)).await {
                Ok(size @ 1..) => seen += size,
                _ => return,
            }
        }
    }

    /// Makes the coming close a visible break.
    pub fn cut(&mut self) {
        self.spoiled = true;
        self.socket.cut();
    }

    /// Gives back room that a large message took.
    pub fn shrink(&mut self) {
        if self.inbox.is_empty() && self.inbox.capacity() > 2 * HEAD_ROOM {
            self.inbox = BytesMut::new();
        }
    }
}

impl<S> Link<S> {
    /// Counts the bytes since the last time.
    pub fn settle(&mut self) {
        let (received, sent) = std::mem::replace(&mut self.settled, (self.received, self.sent));
        if let Some(metrics) = &self.metrics {
            metrics.bytes_in.add(self.received - received);
            metrics.bytes_out.add(self.sent - sent);
        }
    }
}

impl<S> Drop for Link<S> {
    fn drop(&mut self) {
        self.settle();
    }
}

/// Why a request's body did not come.
#[derive(Debug)]
pub enum Broken {
    /// The client left or fell silent.
    Client(io::Error),
    /// It is not framed as HTTP says.
    Malformed(Refusal),
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

/// One timer for the connection's life. Moving it to a later time costs nothing until it rings.
#[derive(Debug)]
struct Alarm {
    sleep: Option<Pin<Box<Sleep>>>,
    at: Instant,
}

impl Alarm {
    fn new() -> Self {
        Self { sleep: None, at: Instant::now() }
    }

    fn set(&mut self, at: Instant) {
        self.at = at;
    }

    /// Ready at the time last set.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let at = self.at;
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(at)));
        if sleep.deadline() > at {
            sleep.as_mut().reset(at);
        }
        while sleep.as_mut().poll(context).is_ready() {
            if sleep.deadline() >= at {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(at);
        }
        Poll::Pending
    }

    /// For a write that is pending: ready with an error when that lasts for `stall`.
    fn stalled<T>(&mut self, armed: &mut bool, stall: Duration, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if !std::mem::replace(armed, true) {
            self.set(Instant::now() + stall);
        }
        self.poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
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

    #[tokio::test(start_paused = true)]
    async fn the_alarm_rings_at_the_time_last_set() {
        let mut alarm = Alarm::new();
        let start = Instant::now();
        for (set, now) in [(10, 10), (12, 12), (30, 30)] {
            alarm.set(start + Duration::from_secs(60));
            let rings = poll_fn(|context| Poll::Ready(alarm.poll(context).is_ready())).await;
            assert!(!rings);
            alarm.set(start + Duration::from_secs(set));
            poll_fn(|context| alarm.poll(context)).await;
            assert_eq!(start.elapsed().as_secs(), now);
        }
    }

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
