//! One HTTP/1.1 request and its response with a server, over streams of pingora's connector.
//!
//! Fills and what passes use this and not pingora's own client: it reads strictly (RFC 9112 §11: what is doubtful is
//! refused), tells a clean end from a broken one, and keeps trailers apart from the head.

mod chunked;
mod head;
mod pool;
mod uplink;

use std::{
    fmt,
    future::{Future, poll_fn},
    io,
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Buf, Bytes, BytesMut};
use pingora::protocols::Stream;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::{Instant, timeout},
};

pub use self::pool::Pool;
use self::{
    chunked::{Decoder, Step},
    head::{Parsed, Scan},
    uplink::Uplink,
};
use crate::{
    cache::fill::{Failure, FailureKind, Head, Piece},
    config::{ServerAddress, ServerTimeouts},
    gateway::{
        alarm::Alarm,
        upload::{Broken, NoUpload, Upload},
    },
    lang::in_words,
    message::{Fields, Framing, Request},
};

/// Room for a head's first read; most responses of an API fit whole.
const HEAD_READ: usize = 16 << 10;
/// The most that one read of a body takes.
const BODY_READ: usize = 64 << 10;
/// Pieces below this are copied, so that a stored one does not keep a whole read buffer alive.
const COPY_BELOW: usize = 16 << 10;
/// 1xx responses taken before one exchange is given up (RFC 9110 §15.2 sets no limit).
const MAX_INTERIM: u8 = 64;

/// One request under way with a server. Call [`Exchange::head`] until it is final, then
/// [`Exchange::body`] until its end. Dropping it earlier closes the connection.
///
/// A request with a body has its client's [`Upload`] beside: [`Exchange::head_beside`] and the others send what comes
/// of it while they wait for the server.
pub struct Exchange {
    pool: Pool,
    server: ServerAddress,
    timeouts: ServerTimeouts,
    stream: Option<Stream>,
    buffer: BytesMut,
    request: Vec<u8>,
    to_head: bool,
    /// The stream was reused and nothing has come back yet: a break is a closed idle connection.
    stale_possible: bool,
    persistent: bool,
    interims: u8,
    body: Body,
    uplink: Uplink,
    alarm: Alarm,
}

/// Who ended an exchange.
#[derive(Debug)]
pub enum Trouble {
    /// The server.
    Server(Failure),
    /// The client, with its body or by leaving.
    Client(Broken),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Server(failure)
    }
}

/// Why a read came to nothing.
enum Received {
    Client(Broken),
    Broken(io::Error),
    Silent,
}

enum Body {
    Unknown,
    Length(u64),
    Chunked(Decoder),
    UntilClose,
    Ended(Option<Fields>),
}

impl Exchange {
    /// Connects to `server`, or takes an idle connection of `pool`, and sends `head` as it is: its
    /// fields are the caller's business (RFC 9110 §7.6.1). Its `framing` says how the body is written that follows.
    ///
    /// # Errors
    /// `Connect` when no connection comes about within `timeouts.connect`, `Protocol` when the head
    /// cannot be written as one request, `Timeout` or `Truncated` when it cannot be sent.
    pub async fn open(
        pool: &Pool,
        server: &ServerAddress,
        timeouts: &ServerTimeouts,
        head: &Request,
    ) -> Result<Self, Failure> {
        let request = head::write(head).map_err(|reason| failure(server, FailureKind::Protocol, reason))?;
        let repeatable = is_idempotent(head.method());
        let uplink = Uplink::new(head.framing, repeatable);
        let idle = if repeatable || !head.is_first { pool.take(server) } else { None };
        let mut exchange = Self {
            pool: pool.clone(),
            server: server.clone(),
            timeouts: *timeouts,
            stale_possible: idle.is_some(),
            stream: idle,
            buffer: BytesMut::with_capacity(HEAD_READ),
            request,
            to_head: head.method() == b"HEAD",
            persistent: !head.fields.members("connection").any(|member| member.eq_ignore_ascii_case(b"close")),
            interims: 0,
            body: Body::Unknown,
            uplink,
            alarm: Alarm::new(),
        };
        if exchange.stale_possible {
            match exchange.send().await {
                Ok(()) => return Ok(exchange),
                Err(failure) if failure.kind != FailureKind::Truncated => return Err(failure),
                // Not all of the head has gone out, so nobody has acted on it.
                Err(_) => {}
            }
        }
        exchange.connect().await?;
        Ok(exchange)
    }

    /// The next head: any number of 1xx responses up to a limit, then the final one, whose `framing`
    /// says what [`Exchange::body`] will read.
    ///
    /// # Errors
    /// `Timeout` when the server is silent, `Truncated` when it closes, `Protocol` when what it sends
    /// is no response that one may rely on.
    pub async fn head(&mut self) -> Result<Head, Failure> {
        self.head_beside(&mut NoUpload).await.map_err(|trouble| self.servers(trouble))
    }

    /// As [`Exchange::head`], while the body goes up. Dropping the future loses nothing but a second connection that
    /// is being made.
    ///
    /// # Errors
    /// As [`Exchange::head`]; the client's.
    pub async fn head_beside<U: Upload>(&mut self, upload: &mut U) -> Result<Head, Trouble> {
        let end = self.read_head(upload).await?;
        let parsed = head::parse(self.buffer.get(..end).unwrap_or_default(), self.to_head);
        let Parsed { response, persistent } = parsed.map_err(|reason| self.failure(FailureKind::Protocol, reason))?;
        self.buffer.advance(end);
        if response.status < 200 {
            self.interims += 1;
            if self.interims > MAX_INTERIM {
                return Err(self.failure(FailureKind::Protocol, "too many 1xx responses").into());
            }
            return Ok(Head::Interim(response));
        }
        self.persistent &= persistent;
        match response.framing {
            Framing::None | Framing::Length(0) => self.finish(None),
            Framing::Length(length) => self.body = Body::Length(length),
            Framing::Chunked => self.body = Body::Chunked(Decoder::new()),
            Framing::UntilClose | Framing::Stream => self.body = Body::UntilClose,
        }
        Ok(Head::Final(response))
    }

    /// The next piece of the body, at most 64 KiB, or its end. The connection is given back to the
    /// pool with the body's last byte when it can carry another request.
    ///
    /// # Errors
    /// `Timeout` when the server is silent, `Truncated` when the connection ends before the body does,
    /// `Protocol` when the body's framing is wrong.
    pub async fn body(&mut self) -> Result<Piece, Failure> {
        self.body_beside(&mut NoUpload).await.map_err(|trouble| self.servers(trouble))
    }

    /// As [`Exchange::body`], while the rest of the request's body goes up. Dropping the future loses nothing.
    ///
    /// # Errors
    /// As [`Exchange::body`]; the client's.
    pub async fn body_beside<U: Upload>(&mut self, upload: &mut U) -> Result<Piece, Trouble> {
        loop {
            if let Some(piece) = self.decode()? {
                return Ok(piece);
            }
            let want = match self.body {
                Body::Length(left) => usize::try_from(left).unwrap_or(BODY_READ).min(BODY_READ),
                _ => BODY_READ,
            };
            if self.receive(want, upload, true).await? == 0 {
                if !matches!(self.body, Body::UntilClose) {
                    return Err(self.failure(FailureKind::Truncated, "closed before the end of the body").into());
                }
                self.finish(None);
            }
        }
    }

    /// Lets the body go up while `act` is under way.
    pub async fn beside<U: Upload, T>(&mut self, upload: &mut U, act: impl Future<Output = T>) -> T {
        let mut act = pin!(act);
        poll_fn(|context| {
            let done = act.as_mut().poll(context);
            if let Some(stream) = self.stream.as_mut().filter(|_| done.is_pending() && !self.uplink.is_over()) {
                // How that goes is seen when the server is next waited for.
                let _ = self.uplink.poll(stream, upload, context);
            }
            done
        })
        .await
    }

    /// After the response: lets the rest of the body go up, for as long as server and client go on with it.
    pub async fn conclude<U: Upload>(&mut self, upload: &mut U) {
        let Self { stream: Some(stream), buffer, uplink, alarm, timeouts, .. } = self else { return };
        if !uplink.is_over() && upload.awaits_continue() {
            // It waits for a word that will not come.
            uplink.cut();
        }
        let mut until = None;
        poll_fn(|context| {
            let up = uplink.poll(stream, upload, context);
            // What comes from the server now was not asked for.
            if up.is_ready() || pin!(stream.read_buf(buffer)).poll(context).is_ready() {
                return Poll::Ready(());
            }
            turn(uplink, alarm, &mut until, timeouts.server, context)
        })
        .await;
        self.release();
    }

    async fn connect(&mut self) -> Result<(), Failure> {
        self.stale_possible = false;
        self.uplink.settle();
        self.stream = None;
        let stream = pool::connect(&self.server, self.timeouts.connect).await;
        self.stream = Some(stream.map_err(|reason| self.failure(FailureKind::Connect, reason))?);
        self.send().await
    }

    /// Whether the connection was closed before the request came, which is nobody's fault, and the request can go over
    /// another: it may be sent twice (RFC 9110 §9.2.2) and all of it is at hand.
    fn is_stale(&mut self) -> bool {
        self.stale_possible && self.uplink.again()
    }

    async fn send(&mut self) -> Result<(), Failure> {
        let Some(stream) = &mut self.stream else { return Err(self.over()) };
        let sending = async {
            stream.write_all(&self.request).await?;
            stream.flush().await
        };
        match timeout(self.timeouts.server, sending).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(self.broken(&error)),
            Err(_) => Err(self.silent()),
        }
    }

    /// Reads until the buffer holds a whole head; returns where it ends.
    async fn read_head<U: Upload>(&mut self, upload: &mut U) -> Result<usize, Trouble> {
        let mut scan = Scan::default();
        loop {
            match scan.end(&self.buffer) {
                Ok(Some(end)) if end <= head::MAX_BYTES => return Ok(end),
                Ok(None) if self.buffer.len() < head::MAX_BYTES => {}
                Ok(_) => return Err(self.failure(FailureKind::Protocol, "a head of more than 64 KiB").into()),
                Err(reason) => return Err(self.failure(FailureKind::Protocol, reason).into()),
            }
            match self.receive(HEAD_READ, upload, false).await {
                Ok(0) if !self.is_stale() => {
                    return Err(self.failure(FailureKind::Truncated, "closed before the end of the head").into());
                }
                Ok(0) => self.connect().await?,
                Ok(_) => {
                    self.stale_possible = false;
                    self.uplink.settle();
                }
                Err(Trouble::Server(failure)) if failure.kind == FailureKind::Truncated && self.is_stale() => {
                    self.connect().await?;
                }
                Err(trouble) => return Err(trouble),
            }
        }
    }

    /// What the buffer holds of the body; `None` when more must be read.
    fn decode(&mut self) -> Result<Option<Piece>, Failure> {
        match &mut self.body {
            Body::Unknown => Err(self.over()),
            Body::Ended(trailers) => Ok(Some(Piece::End(trailers.take()))),
            _ if self.buffer.is_empty() => Ok(None),
            Body::Length(left) => {
                let length = usize::try_from(*left).unwrap_or(BODY_READ).min(self.buffer.len()).min(BODY_READ);
                *left = left.saturating_sub(length as u64);
                let last = *left == 0;
                let piece = take(&mut self.buffer, length);
                if last {
                    self.finish(None);
                }
                Ok(Some(Piece::Data(piece)))
            }
            Body::UntilClose => {
                let length = self.buffer.len().min(BODY_READ);
                Ok(Some(Piece::Data(take(&mut self.buffer, length))))
            }
            Body::Chunked(_) => self.decode_chunks(),
        }
    }

    /// A large chunk is handed out as it lies; small ones that arrived together are put together.
    fn decode_chunks(&mut self) -> Result<Option<Piece>, Failure> {
        let mut gathered = BytesMut::new();
        let mut end = None;
        while let Body::Chunked(decoder) = &mut self.body {
            let step = decoder.step(&mut self.buffer, if gathered.is_empty() { BODY_READ } else { COPY_BELOW });
            match step.map_err(|reason| failure(&self.server, FailureKind::Protocol, reason))? {
                Step::Data(length) if gathered.is_empty() && length >= COPY_BELOW => {
                    return Ok(Some(Piece::Data(take(&mut self.buffer, length))));
                }
                Step::Data(length) => {
                    gathered.extend_from_slice(self.buffer.get(..length).unwrap_or_default());
                    self.buffer.advance(length);
                    if gathered.len() >= COPY_BELOW {
                        break;
                    }
                }
                Step::More => break,
                Step::End(trailers) => {
                    end = Some(trailers);
                    break;
                }
            }
        }
        if let Some(trailers) = end {
            self.finish(trailers);
        }
        if !gathered.is_empty() {
            return Ok(Some(Piece::Data(gathered.freeze())));
        }
        match &mut self.body {
            Body::Ended(trailers) => Ok(Some(Piece::End(trailers.take()))),
            _ => Ok(None),
        }
    }

    /// Reads once, while the body goes up; 0 is a clean end of the connection. The client may leave once all of it
    /// is up; when its answer has not `begun`, it may only have closed its sending side.
    ///
    /// The server's time runs while it is the server's turn, and anew with each piece that it takes.
    async fn receive<U: Upload>(&mut self, want: usize, upload: &mut U, begun: bool) -> Result<usize, Trouble> {
        let Self { stream: Some(stream), buffer, uplink, alarm, timeouts, .. } = self else {
            return Err(self.over().into());
        };
        if buffer.capacity() - buffer.len() < want.min(COPY_BELOW) {
            buffer.reserve(want);
        }
        let mut until = None;
        let received = poll_fn(|context| {
            let up = uplink.poll(stream, upload, context);
            if let Some(broken) = uplink.take_broken() {
                return Poll::Ready(Err(Received::Client(broken)));
            }
            if let Poll::Ready(read) = pin!(stream.read_buf(buffer)).poll(context) {
                return Poll::Ready(read.map_err(Received::Broken));
            }
            if up.is_ready() && upload.poll_gone(context, begun).is_ready() {
                return Poll::Ready(Err(Received::Client(Broken::Client(io::ErrorKind::UnexpectedEof.into()))));
            }
            turn(uplink, alarm, &mut until, timeouts.server, context).map(|()| Err(Received::Silent))
        })
        .await;
        received.map_err(|why| match why {
            Received::Client(broken) => Trouble::Client(broken),
            Received::Broken(error) => self.broken(&error).into(),
            Received::Silent => self.silent().into(),
        })
    }

    /// The message is complete. What came after it was not asked for: such a connection is not kept.
    fn finish(&mut self, trailers: Option<Fields>) {
        self.body = Body::Ended(trailers);
        if self.uplink.is_over() {
            self.release();
        }
    }

    /// Gives the connection back if it can carry another request, else up.
    fn release(&mut self) {
        let sound = self.persistent && self.buffer.is_empty() && self.uplink.is_whole();
        if let Some(stream) = self.stream.take().filter(|_| sound) {
            self.pool.put(&self.server, stream);
        }
    }

    /// A trouble without a client.
    fn servers(&self, trouble: Trouble) -> Failure {
        match trouble {
            Trouble::Server(failure) => failure,
            Trouble::Client(_) => self.over(),
        }
    }

    fn failure(&self, kind: FailureKind, reason: impl fmt::Display) -> Failure {
        failure(&self.server, kind, reason)
    }

    fn broken(&self, error: &io::Error) -> Failure {
        self.failure(FailureKind::Truncated, in_words(error))
    }

    fn silent(&self) -> Failure {
        self.failure(FailureKind::Timeout, format_args!("silent for {:?}", self.timeouts.server))
    }

    /// The answer to a call out of order.
    fn over(&self) -> Failure {
        self.failure(FailureKind::Protocol, "the exchange is over or has not begun")
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("server", &self.server).finish_non_exhaustive()
    }
}

fn take(buffer: &mut BytesMut, length: usize) -> Bytes {
    if length >= COPY_BELOW {
        return buffer.split_to(length).freeze();
    }
    let piece = Bytes::copy_from_slice(buffer.get(..length).unwrap_or_default());
    buffer.advance(length);
    piece
}

/// Ready when the server has had its turn for `limit` and nothing has moved; `until` is when that will be.
fn turn(
    uplink: &mut Uplink,
    alarm: &mut Alarm,
    until: &mut Option<Instant>,
    limit: Duration,
    context: &mut Context<'_>,
) -> Poll<()> {
    if uplink.has_moved() || uplink.waits_for_client() {
        *until = None;
    }
    if uplink.waits_for_client() {
        return Poll::Pending;
    }
    alarm.set(*until.get_or_insert_with(|| Instant::now() + limit));
    alarm.poll(context)
}

/// RFC 9110 §9.2.2.
fn is_idempotent(method: &[u8]) -> bool {
    matches!(method, b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE" | b"PUT" | b"DELETE")
}

fn failure(server: &ServerAddress, kind: FailureKind, reason: impl fmt::Display) -> Failure {
    let text: Arc<str> = match server {
        ServerAddress::Tcp(address) => format!("server {address}: {reason}").into(),
        ServerAddress::Unix(path) => format!("server {}: {reason}", path.display()).into(),
    };
    Failure { kind, text }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod upload_tests;
