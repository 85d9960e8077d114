//! The answer on one stream of HTTP/2.

use std::{
    future::poll_fn,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use bytes::{Buf, Bytes};
use h2::{Reason, SendStream, server::SendResponse};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use tokio::time::Instant;

use super::budget::{Budget, Portion};
use crate::{
    gateway::reply::Reply,
    message::{Fields, Framing, Response},
};

/// Bytes that a client has to take of a longer body within `timeout client`.
const LEAST: usize = 4 << 10;

/// The sending half of a stream, shared by whoever writes the answer and whoever watches for the
/// client's reset. Both run in the stream's one task, so the lock is never waited for.
#[derive(Clone)]
pub(super) struct Outlet {
    half: Arc<Mutex<Half>>,
    budget: Budget,
}

struct Half {
    respond: SendResponse<Portion>,
    body: Option<SendStream<Portion>>,
    ended: bool,
    /// The client had reset the stream before we did.
    left: bool,
}

impl Outlet {
    pub(super) fn new(respond: SendResponse<Portion>, budget: Budget) -> Self {
        let half = Half { respond, body: None, ended: false, left: false };
        Self { half: Arc::new(Mutex::new(half)), budget }
    }

    fn half(&self) -> MutexGuard<'_, Half> {
        self.half.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a 1xx response.
    pub(super) fn interim(&self, head: http::Response<()>) -> io::Result<()> {
        self.half().respond.send_informational(head).map_err(io::Error::other)
    }

    /// Sends the final head; `end`: nothing follows.
    pub(super) fn head(&self, head: http::Response<()>, end: bool) -> io::Result<()> {
        let mut half = self.half();
        half.body = Some(half.respond.send_response(head, end).map_err(io::Error::other)?);
        half.ended = end;
        Ok(())
    }

    /// Sends `data` at the pace of the client's windows and of its socket; fails when it takes next to nothing
    /// for `limit`.
    pub(super) async fn data(&self, mut data: Bytes, end: bool, limit: Duration) -> io::Result<()> {
        let (mut deadline, mut taken) = (Instant::now() + limit, 0);
        while !data.is_empty() {
            let room = poll_fn(|context| self.poll_room(context, data.len()));
            let Ok(room) = tokio::time::timeout_at(deadline, room).await else {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the client's window stays closed"));
            };
            let (room, asked) = (room?, Instant::now());
            let piece = tokio::select! {
                biased;
                piece = self.budget.piece(&mut data, room, limit) => piece?,
                _ = self.closed() => return Err(io::ErrorKind::BrokenPipe.into()),
            };
            // This stream did not keep anybody waiting.
            deadline += asked.elapsed();
            taken += piece.remaining();
            if taken >= LEAST {
                (deadline, taken) = (Instant::now() + limit, 0);
            }
            self.send(piece, end && data.is_empty())?;
        }
        Ok(())
    }

    /// Ends the stream, with trailers if there are any; does nothing when it has ended.
    pub(super) fn end(&self, trailers: Option<HeaderMap>) -> io::Result<()> {
        if self.half().ended {
            return Ok(());
        }
        let Some(trailers) = trailers else { return self.send(Portion::default(), true) };
        let mut half = self.half();
        half.ended = true;
        let body = half.body.as_mut().ok_or_else(no_head)?;
        body.send_trailers(trailers).map_err(io::Error::other)
    }

    fn send(&self, piece: Portion, end: bool) -> io::Result<()> {
        let mut half = self.half();
        half.ended |= end;
        half.body.as_mut().ok_or_else(no_head)?.send_data(piece, end).map_err(io::Error::other)
    }

    /// Resets the stream, unless it has ended.
    pub(super) fn reset(&self, reason: Reason) {
        let left = self.is_reset();
        let mut half = self.half();
        half.left = left;
        if !std::mem::replace(&mut half.ended, true) {
            half.respond.send_reset(reason);
        }
    }

    /// Waits until the client resets the stream, or the connection ends.
    pub(super) async fn closed(&self) -> String {
        match poll_fn(|context| self.poll_closed(context)).await {
            Ok(reason) => reason.to_string(),
            Err(error) => error.to_string(),
        }
    }

    /// Whether the client has reset the stream before its end.
    pub(super) fn is_reset(&self) -> bool {
        let half = self.half();
        if half.left || half.ended {
            return half.left;
        }
        drop(half);
        matches!(self.poll_closed(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(_)))
    }

    pub(super) fn poll_closed(&self, context: &mut Context<'_>) -> Poll<Result<Reason, h2::Error>> {
        let mut half = self.half();
        match &mut half.body {
            Some(body) => body.poll_reset(context),
            None => half.respond.poll_reset(context),
        }
    }

    fn poll_room(&self, context: &mut Context<'_>, want: usize) -> Poll<io::Result<usize>> {
        let mut half = self.half();
        let body = half.body.as_mut().ok_or_else(no_head)?;
        body.reserve_capacity(want);
        loop {
            match body.capacity() {
                0 => match ready!(body.poll_capacity(context)) {
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error))),
                    None => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
                },
                room => return Poll::Ready(Ok(room)),
            }
        }
    }
}

/// Writes one response to one stream. Dropped before its end, the stream is reset.
pub struct H2Reply {
    outlet: Outlet,
    limit: Duration,
    /// Bytes of an announced body still to come.
    left: Option<u64>,
}

impl H2Reply {
    pub(super) const fn new(outlet: Outlet, limit: Duration) -> Self {
        Self { outlet, limit, left: None }
    }
}

impl Reply for H2Reply {
    async fn interim(&mut self, head: &Response) -> io::Result<()> {
        self.outlet.interim(convert(head)?)
    }

    async fn head(&mut self, head: &Response, bodyless: bool) -> io::Result<()> {
        let mut response = convert(head)?;
        if let Framing::Length(length) = head.framing {
            self.left = Some(length);
            if !bodyless && !response.headers().contains_key(header::CONTENT_LENGTH) {
                response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
            }
        }
        self.outlet.head(response, bodyless || matches!(head.framing, Framing::None | Framing::Length(0)))
    }

    async fn data(&mut self, data: Bytes) -> io::Result<()> {
        let left = self.left.map(|left| left.checked_sub(data.len() as u64));
        if left == Some(None) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a body longer than announced"));
        }
        self.left = left.flatten();
        self.outlet.data(data, self.left == Some(0), self.limit).await
    }

    async fn end(&mut self, trailers: Option<&Fields>) -> io::Result<()> {
        if self.left.is_some_and(|left| left > 0) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a body shorter than announced"));
        }
        self.outlet.end(trailers.map(headers))
    }

    fn abort(&mut self) {
        self.outlet.reset(Reason::INTERNAL_ERROR);
    }
}

fn convert(head: &Response) -> io::Result<http::Response<()>> {
    let mut response = http::Response::new(());
    *response.status_mut() = StatusCode::from_u16(head.status).map_err(io::Error::other)?;
    *response.headers_mut() = headers(&head.fields);
    Ok(response)
}

/// The fields that HTTP/2 may carry; what is no field at all is left out (RFC 9113 §8.2).
fn headers(fields: &Fields) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(fields.len());
    for field in fields.iter() {
        let (name, value) = (HeaderName::from_bytes(field.name), HeaderValue::from_bytes(field.value));
        if let (Ok(name), Ok(value)) = (name, value)
            && !is_connection_specific(&name)
        {
            headers.append(name, value);
        }
    }
    headers
}

/// Fields that HTTP/2 has no place for (RFC 9113 §8.2.2).
pub(super) fn is_connection_specific(name: &HeaderName) -> bool {
    matches!(name.as_str(), "connection" | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade" | "te")
}

fn no_head() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "a body before its head")
}
