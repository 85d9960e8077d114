//! A request of ours as pingora's proxy engine sees it: its header built from our parse, its body read
//! with our framing, its responses written by our writer. So no byte of a client ever meets another
//! parser, `Date` stays the origin's, and trailers and 1xx pass.
//!
//! The trait is hidden from pingora's documentation; the version is pinned, and nothing outside this
//! file knows it.

use std::{io, time::Duration};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use pingora::{
    Error, ErrorType, Result,
    http::{RequestHeader, ResponseHeader},
    protocols::{
        Digest,
        http::{HttpTask, custom::CustomMessageWrite, custom::server::Session},
        l4::socket::SocketAddr,
    },
};
use tokio::sync::oneshot;

use super::{link::Socket, parse::Terms, service::Carrier, write::Wire};
use crate::{
    gateway::upload::Broken,
    message::{Fields, Framing, Response},
};

/// Most bytes of a request body kept for a second try.
const RETRY_LIMIT: usize = 64 * 1024;

/// One request in the hands of the proxy engine.
pub struct Downstream<S: Socket> {
    /// `None` once the connection has been given back or up.
    carrier: Option<Carrier<S>>,
    back: Option<oneshot::Sender<Carrier<S>>>,
    header: Box<RequestHeader>,
    upgrade: bool,
    upgraded: bool,
    had_body: bool,
    body_done: bool,
    response: Option<Box<ResponseHeader>>,
    wire: Wire,
    read_timeout: Duration,
    write_timeout: Duration,
    body_read: usize,
    body_sent: usize,
    retry: Retry,
}

/// What was read of the body, for a second try.
#[derive(Debug, Default)]
struct Retry {
    enabled: bool,
    truncated: bool,
    kept: BytesMut,
}

/// The place where a connection comes back to, once the engine is done with it.
pub type Returned<S> = oneshot::Receiver<Carrier<S>>;

impl<S: Socket> Downstream<S> {
    /// Lends a connection out. `header` is what the engine sees of the request, `stall` how long the
    /// client may be silent.
    pub fn new(
        carrier: Carrier<S>,
        header: RequestHeader,
        terms: Terms,
        framing: Framing,
        stall: Duration,
    ) -> (Self, Returned<S>) {
        let (back, returned) = oneshot::channel();
        let session = Self {
            body_done: carrier.incoming.body.is_done(),
            carrier: Some(carrier),
            back: Some(back),
            header: Box::new(header),
            upgrade: terms.upgrade,
            upgraded: false,
            had_body: !matches!(framing, Framing::None | Framing::Length(0)),
            response: None,
            wire: Wire::default(),
            read_timeout: stall,
            write_timeout: stall,
            body_read: 0,
            body_sent: 0,
            retry: Retry::default(),
        };
        (session, returned)
    }

    fn carrier(&mut self) -> Result<&mut Carrier<S>> {
        self.carrier
            .as_mut()
            .ok_or_else(|| Error::explain(ErrorType::ConnectionClosed, "the exchange is over").into_down())
    }

    /// Sends what was built.
    async fn send(&mut self) -> Result<()> {
        let stall = self.write_timeout;
        let Some(carrier) = self.carrier.as_mut() else { return Ok(()) };
        let written = carrier.link.write(&self.wire.head, &self.wire.body, stall).await;
        self.wire.clear();
        written.map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => Error::because(ErrorType::WriteTimedout, "to the client", error).into_down(),
            _ => Error::because(ErrorType::WriteError, "to the client", error).into_down(),
        })
    }

    /// Adds a head to what is to be sent. A 100 is not passed on: the body's first reader sends it.
    fn head(&mut self, header: Box<ResponseHeader>, end: bool) -> Result<()> {
        let status = header.status.as_u16();
        let mut response = response_of(&header, end);
        // The header is made from a response of ours, which may have a phrase of its own.
        response.set_phrase(header.get_reason_phrase().unwrap_or_default().as_bytes());
        let upgrade = self.upgrade;
        let Self { carrier: Some(carrier), wire, .. } = self else { return Ok(()) };
        match status {
            100 => return Ok(()),
            101 if !upgrade => {
                return Err(Error::explain(ErrorType::InvalidHTTPHeader, "101 that nobody asked for").into_up());
            }
            101 => {}
            102..=199 => {
                carrier.outgoing.interim(&response, wire);
                return Ok(());
            }
            _ if !carrier.incoming.is_drainable() => carrier.outgoing.close(),
            _ => {}
        }
        carrier.outgoing.head(&response, response.framing, false, wire);
        if carrier.outgoing.is_raw() {
            self.upgraded = true;
            self.body_done = false;
        }
        self.response = Some(header);
        if end { self.end(None) } else { Ok(()) }
    }

    fn data(&mut self, data: Bytes) -> Result<()> {
        let size = data.len();
        let Self { carrier: Some(carrier), wire, .. } = self else { return Ok(()) };
        if !carrier.outgoing.data(data, wire) {
            return Err(Error::explain(ErrorType::InvalidHTTPHeader, "more body than announced").into_up());
        }
        self.body_sent += size;
        Ok(())
    }

    fn end(&mut self, trailers: Option<&Fields>) -> Result<()> {
        let Self { carrier: Some(carrier), wire, .. } = self else { return Ok(()) };
        if self.upgraded {
            // Whoever ends an upgraded connection ends both directions of it.
            self.body_done = true;
        }
        if carrier.outgoing.is_complete() || carrier.outgoing.end(trailers, wire) {
            return Ok(());
        }
        Err(Error::explain(ErrorType::ConnectionClosed, "less body than announced").into_up())
    }

    /// Adds one task; whether it ends the response.
    fn task(&mut self, task: HttpTask) -> Result<bool> {
        let end = task.is_end();
        match task {
            HttpTask::Header(header, end) => self.head(header, end)?,
            HttpTask::Body(data, end) | HttpTask::UpgradedBody(data, end) => {
                data.map_or(Ok(()), |data| self.data(data))?;
                if end {
                    self.end(None)?;
                }
            }
            HttpTask::Trailer(trailers) => {
                let trailers = trailers.map(|trailers| fields_of(&trailers));
                self.end(trailers.as_ref())?;
            }
            HttpTask::Done => self.end(None)?,
            HttpTask::Failed(error) => return Err(error),
        }
        Ok(end)
    }

    /// The next piece of the body; asks for it first where the client waits to be asked.
    async fn body(&mut self) -> Result<Option<Bytes>> {
        let (read, write) = (self.read_timeout, self.write_timeout);
        if self.upgraded {
            let data = self.carrier()?.link.raw().await.map_err(left)?;
            self.body_done = data.is_none();
            return Ok(data);
        }
        let carrier = self.carrier()?;
        let waits = !carrier.incoming.body.is_done() && std::mem::take(&mut carrier.incoming.awaits_continue);
        if waits && carrier.outgoing.is_unsent() {
            carrier.link.write(b"HTTP/1.1 100 Continue\r\n\r\n", &[], write).await.map_err(left)?;
        }
        let data = carrier.link.body(&mut carrier.incoming.body, read).await.map_err(|broken| match broken {
            Broken::Client(error) => left(error),
            Broken::Malformed(refusal) => {
                carrier.outgoing.close();
                Error::explain(ErrorType::HTTPStatus(refusal.status), refusal.reason).into_down()
            }
        })?;
        self.body_done = carrier.incoming.body.is_done();
        if let Some(data) = &data {
            self.body_read += data.len();
            self.retry.keep(data);
        }
        Ok(data)
    }

    /// Gives the connection back when the response is complete, up when it is not.
    fn release(&mut self) {
        let Some(mut carrier) = self.carrier.take() else { return };
        if carrier.outgoing.is_complete() && !self.upgraded {
            if let Some(back) = self.back.take() {
                // Nobody waits for it when the connection's task is gone.
                let _ = back.send(carrier);
            }
        } else if carrier.outgoing.ends_with_connection() {
            carrier.link.cut();
        }
    }
}

impl Retry {
    fn keep(&mut self, data: &Bytes) {
        if self.enabled && !self.truncated {
            self.truncated = self.kept.len() + data.len() > RETRY_LIMIT;
            if self.truncated {
                self.kept = BytesMut::new();
            } else {
                self.kept.extend_from_slice(data);
            }
        }
    }
}

impl<S: Socket> Drop for Downstream<S> {
    fn drop(&mut self) {
        self.release();
    }
}

fn left(error: io::Error) -> Box<Error> {
    let kind = match error.kind() {
        io::ErrorKind::TimedOut => ErrorType::ReadTimedout,
        io::ErrorKind::UnexpectedEof => ErrorType::ConnectionClosed,
        _ => ErrorType::ReadError,
    };
    Error::because(kind, "from the client", error).into_down()
}

/// A response of the engine as one of ours, without its phrase. `end`: nothing follows the head.
pub fn response_of(header: &ResponseHeader, end: bool) -> Response {
    let mut response = Response::new(header.status.as_u16());
    for (name, value) in header.case_header_iter() {
        response.fields.append(name.as_slice(), value.as_bytes());
    }
    let length =
        response.fields.first("content-length").and_then(|value| std::str::from_utf8(value).ok()?.parse().ok());
    response.framing = match length {
        Some(length) => Framing::Length(length),
        None if end => Framing::None,
        None => Framing::UntilClose,
    };
    response
}

fn fields_of(headers: &HeaderMap) -> Fields {
    headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect()
}

#[async_trait]
impl<S: Socket> Session for Downstream<S> {
    fn req_header(&self) -> &RequestHeader {
        &self.header
    }

    fn req_header_mut(&mut self) -> &mut RequestHeader {
        &mut self.header
    }

    async fn read_body_bytes(&mut self) -> Result<Option<Bytes>> {
        self.body().await
    }

    async fn drain_request_body(&mut self) -> Result<()> {
        // Done by the connection, within its limits, once the response is out.
        Ok(())
    }

    async fn write_response_header(&mut self, resp: Box<ResponseHeader>, end: bool) -> Result<()> {
        self.head(resp, end)?;
        self.send().await
    }

    async fn write_response_header_ref(&mut self, resp: &ResponseHeader, end: bool) -> Result<()> {
        self.head(Box::new(resp.clone()), end)?;
        self.send().await
    }

    async fn write_body(&mut self, data: Bytes, end: bool) -> Result<()> {
        self.data(data)?;
        if end {
            self.end(None)?;
        }
        self.send().await
    }

    async fn write_trailers(&mut self, trailers: HeaderMap) -> Result<()> {
        self.end(Some(&fields_of(&trailers)))?;
        self.send().await
    }

    async fn response_duplex_vec(&mut self, tasks: Vec<HttpTask>) -> Result<bool> {
        if let Some(carrier) = self.carrier.as_mut().filter(|carrier| carrier.outgoing.is_unsent()) {
            carrier.link.notice_end().await;
        }
        let mut end = false;
        for task in tasks {
            match self.task(task) {
                Ok(last) => end |= last,
                Err(error) => {
                    self.send().await?;
                    return Err(error);
                }
            }
        }
        self.send().await?;
        Ok(end)
    }

    fn set_read_timeout(&mut self, timeout: Option<Duration>) {
        self.read_timeout = timeout.unwrap_or(self.read_timeout);
    }

    fn get_read_timeout(&self) -> Option<Duration> {
        Some(self.read_timeout)
    }

    fn set_write_timeout(&mut self, timeout: Option<Duration>) {
        self.write_timeout = timeout.unwrap_or(self.write_timeout);
    }

    fn get_write_timeout(&self) -> Option<Duration> {
        Some(self.write_timeout)
    }

    fn set_total_drain_timeout(&mut self, _timeout: Option<Duration>) {}

    fn get_total_drain_timeout(&self) -> Option<Duration> {
        None
    }

    fn request_summary(&self) -> String {
        format!("{} {}", self.header.method, self.header.uri)
    }

    fn response_written(&self) -> Option<&ResponseHeader> {
        self.response.as_deref()
    }

    async fn shutdown(&mut self, _code: u32, _ctx: &str) {
        self.release();
    }

    fn is_body_done(&mut self) -> bool {
        self.body_done
    }

    async fn finish(&mut self) -> Result<()> {
        self.release();
        Ok(())
    }

    fn is_body_empty(&mut self) -> bool {
        !self.had_body
    }

    async fn read_body_or_idle(&mut self, no_body_expected: bool) -> Result<Option<Bytes>> {
        if self.upgraded || !(no_body_expected || self.body_done) {
            return self.body().await;
        }
        let carrier = self.carrier()?;
        let begun = !carrier.outgoing.is_unsent();
        Err(left(carrier.link.departure(begun).await))
    }

    fn body_bytes_sent(&self) -> usize {
        self.body_sent
    }

    fn body_bytes_read(&self) -> usize {
        self.body_read
    }

    fn digest(&self) -> Option<&Digest> {
        None
    }

    fn digest_mut(&mut self) -> Option<&mut Digest> {
        None
    }

    fn client_addr(&self) -> Option<&SocketAddr> {
        None
    }

    fn server_addr(&self) -> Option<&SocketAddr> {
        None
    }

    fn pseudo_raw_h1_request_header(&self) -> Bytes {
        Bytes::new()
    }

    fn enable_retry_buffering(&mut self) {
        self.retry.enabled = true;
    }

    fn retry_buffer_truncated(&self) -> bool {
        self.retry.truncated
    }

    fn get_retry_buffer(&self) -> Option<Bytes> {
        (!self.retry.truncated && !self.retry.kept.is_empty()).then(|| self.retry.kept.clone().freeze())
    }

    async fn finish_custom(&mut self) -> Result<()> {
        Ok(())
    }

    fn take_custom_message_reader(
        &mut self,
    ) -> Option<Box<dyn futures_core::Stream<Item = Result<Bytes>> + Unpin + Send + Sync + 'static>> {
        None
    }

    fn restore_custom_message_reader(
        &mut self,
        _reader: Box<dyn futures_core::Stream<Item = Result<Bytes>> + Unpin + Send + Sync + 'static>,
    ) -> Result<()> {
        Ok(())
    }

    fn take_custom_message_writer(&mut self) -> Option<Box<dyn CustomMessageWrite>> {
        None
    }

    fn restore_custom_message_writer(&mut self, _writer: Box<dyn CustomMessageWrite>) -> Result<()> {
        Ok(())
    }

    fn is_upgrade_req(&self) -> bool {
        self.upgrade
    }

    fn was_upgraded(&self) -> bool {
        self.upgraded
    }
}
