//! One stream of HTTP/2 as pingora's `HttpProxy` sees it: a custom session.
//!
//! The trait is hidden in pingora's documentation; this file is what depends on it here.

use std::{future::poll_fn, net::SocketAddr, time::Duration};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use h2::Reason;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, Version};
use pingora::{
    BError, Error, ErrorSource, ErrorType, Result,
    http::{RequestHeader, ResponseHeader},
    protocols::{
        Digest,
        http::{
            HttpTask,
            custom::{CustomMessageWrite, server::Session},
        },
        l4::socket::SocketAddr as Address,
    },
};

use super::{
    body::H2Body,
    reply::{Outlet, is_connection_specific},
};
use crate::{message::Request, rule::Client};

/// How much of a request's body is kept for another attempt.
const MAX_RETRY: usize = 64 << 10;

/// The session; dropped before its end, the stream is reset.
pub(super) struct Downstream {
    request: RequestHeader,
    body: H2Body,
    outlet: Outlet,
    written: Option<Box<ResponseHeader>>,
    addresses: (Option<Address>, Option<Address>),
    received: usize,
    sent: usize,
    /// The body has been read to its end.
    drained: bool,
    retry: Option<BytesMut>,
    retry_truncated: bool,
    read_limit: Option<Duration>,
    write_limit: Option<Duration>,
    drain_limit: Option<Duration>,
    silence: Duration,
    /// The client waits for a 100 (RFC 9110 §10.1.1).
    continues: bool,
}

impl Downstream {
    /// A session for `request` as the rules have left it, `plan` in its extensions; `silence` is what
    /// the client may take for its next byte, `continues` that it waits for a 100 before its body.
    ///
    /// # Errors
    /// `plan`, when the request cannot be put in pingora's form: its target has 64 KiB or more.
    pub(super) fn new<P>(
        plan: P,
        request: &Request,
        body: H2Body,
        outlet: Outlet,
        client: &Client,
        silence: Duration,
        continues: bool,
    ) -> Result<Self, P>
    where
        P: Clone + Send + Sync + 'static,
    {
        let Some(mut header) = header(request) else { return Err(plan) };
        header.extensions_mut().insert(plan);
        let address = |address: Option<SocketAddr>| address.map(Address::Inet);
        Ok(Self {
            request: header,
            drained: body.is_done(),
            body,
            outlet,
            written: None,
            addresses: (address(client.src), address(client.dst)),
            received: 0,
            sent: 0,
            retry: None,
            retry_truncated: false,
            read_limit: None,
            write_limit: None,
            drain_limit: None,
            silence,
            continues,
        })
    }

    fn write_head(&mut self, head: Box<ResponseHeader>, end: bool) -> Result<()> {
        let mut response = http::Response::new(());
        *response.status_mut() = head.status;
        for (name, value) in &head.headers {
            if !is_connection_specific(name) {
                response.headers_mut().append(name, value.clone());
            }
        }
        if head.status == StatusCode::CONTINUE {
            // The body's first reader says so.
            return Ok(());
        }
        if head.status.is_informational() {
            return self.outlet.interim(response).map_err(gone);
        }
        if self.written.is_none() {
            self.written = Some(head);
            self.outlet.head(response, end || self.is_bodyless()).map_err(gone)?;
        }
        Ok(())
    }

    /// Whether the response has a status without a body, whatever comes for it.
    fn is_bodyless(&self) -> bool {
        self.written
            .as_ref()
            .is_some_and(|head| matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED))
    }

    async fn write_data(&mut self, data: Bytes, end: bool) -> Result<()> {
        if self.is_bodyless() {
            return Ok(());
        }
        let length = data.len();
        let limit = self.write_limit.unwrap_or(self.silence);
        self.outlet.data(data, end, limit).await.map_err(gone)?;
        self.sent += length;
        if end { self.outlet.end(None).map_err(gone) } else { Ok(()) }
    }

    async fn write_task(&mut self, task: HttpTask) -> Result<bool> {
        match task {
            HttpTask::Header(head, end) => self.write_head(head, end).map(|()| end),
            HttpTask::Body(data, end) => {
                self.write_data(data.unwrap_or_default(), end).await?;
                Ok(end)
            }
            HttpTask::UpgradedBody(..) => {
                Err(Error::explain(ErrorType::InternalError, "an upgraded body on a stream of HTTP/2"))
            }
            HttpTask::Trailer(_) if self.is_bodyless() => Ok(true),
            HttpTask::Trailer(trailers) => {
                self.outlet.end(trailers.map(|trailers| *trailers)).map_err(gone)?;
                Ok(true)
            }
            HttpTask::Done => Ok(true),
            HttpTask::Failed(error) => Err(error),
        }
    }

    /// Keeps what was read, as long as it is little.
    fn remember(&mut self, data: &Bytes) {
        let Some(buffer) = self.retry.as_mut().filter(|_| !self.retry_truncated) else { return };
        if buffer.len() + data.len() <= MAX_RETRY {
            buffer.extend_from_slice(data);
        } else {
            *buffer = BytesMut::new();
            self.retry_truncated = true;
        }
    }
}

#[async_trait]
impl Session for Downstream {
    fn req_header(&self) -> &RequestHeader {
        &self.request
    }

    fn req_header_mut(&mut self) -> &mut RequestHeader {
        &mut self.request
    }

    async fn read_body_bytes(&mut self) -> Result<Option<Bytes>> {
        if self.drained {
            return Ok(None);
        }
        if std::mem::take(&mut self.continues) && self.written.is_none() {
            let mut head = http::Response::new(());
            *head.status_mut() = StatusCode::CONTINUE;
            self.outlet.interim(head).map_err(gone)?;
        }
        let limit = self.read_limit.unwrap_or(self.silence);
        let Ok(data) = tokio::time::timeout(limit, poll_fn(|context| self.body.poll_data(context))).await else {
            return Err(downstream(ErrorType::ReadTimedout, format!("no more of the body within {limit:?}")));
        };
        let Some(data) = data else {
            self.drained = true;
            return Ok(None);
        };
        let data = data.map_err(|error| downstream(ErrorType::ReadError, error.to_string()))?;
        self.received += data.len();
        self.remember(&data);
        self.body.release(data.len());
        Ok(Some(data))
    }

    async fn drain_request_body(&mut self) -> Result<()> {
        let limit = self.drain_limit.unwrap_or(self.silence);
        let drain = async {
            while self.read_body_bytes().await?.is_some() {}
            Ok(())
        };
        let late = |_| downstream(ErrorType::ReadTimedout, format!("the body is not over within {limit:?}"));
        tokio::time::timeout(limit, drain).await.map_err(late)?
    }

    async fn write_response_header(&mut self, head: Box<ResponseHeader>, end: bool) -> Result<()> {
        self.write_head(head, end)
    }

    async fn write_response_header_ref(&mut self, head: &ResponseHeader, end: bool) -> Result<()> {
        self.write_head(Box::new(head.clone()), end)
    }

    async fn write_body(&mut self, data: Bytes, end: bool) -> Result<()> {
        self.write_data(data, end).await
    }

    async fn write_trailers(&mut self, trailers: HeaderMap) -> Result<()> {
        self.outlet.end(Some(trailers)).map_err(gone)
    }

    async fn response_duplex_vec(&mut self, tasks: Vec<HttpTask>) -> Result<bool> {
        let mut end = false;
        for task in tasks {
            end |= self.write_task(task).await?;
        }
        if end {
            self.outlet.end(None).map_err(gone)?;
        }
        Ok(end)
    }

    fn set_read_timeout(&mut self, timeout: Option<Duration>) {
        self.read_limit = timeout;
    }

    fn get_read_timeout(&self) -> Option<Duration> {
        self.read_limit
    }

    fn set_write_timeout(&mut self, timeout: Option<Duration>) {
        self.write_limit = timeout;
    }

    fn get_write_timeout(&self) -> Option<Duration> {
        self.write_limit
    }

    fn set_total_drain_timeout(&mut self, timeout: Option<Duration>) {
        self.drain_limit = timeout;
    }

    fn get_total_drain_timeout(&self) -> Option<Duration> {
        self.drain_limit
    }

    fn request_summary(&self) -> String {
        let host = self.request.headers.get(http::header::HOST).and_then(|host| host.to_str().ok());
        format!("{} {}, Host: {}", self.request.method, self.request.uri, host.unwrap_or_default())
    }

    fn response_written(&self) -> Option<&ResponseHeader> {
        self.written.as_deref()
    }

    async fn shutdown(&mut self, _code: u32, _context: &str) {
        self.outlet.reset(Reason::INTERNAL_ERROR);
    }

    fn is_body_done(&mut self) -> bool {
        self.drained || self.body.is_done()
    }

    async fn finish(&mut self) -> Result<()> {
        match self.written {
            Some(_) => self.outlet.end(None).map_err(gone),
            // Without a head there is nothing to end: the stream is reset when the session goes.
            None => Ok(()),
        }
    }

    fn is_body_empty(&mut self) -> bool {
        self.received == 0 && self.is_body_done()
    }

    async fn read_body_or_idle(&mut self, no_body_expected: bool) -> Result<Option<Bytes>> {
        if !no_body_expected && !self.is_body_done() {
            return self.read_body_bytes().await;
        }
        let reason = self.outlet.closed().await;
        Err(downstream(ErrorType::ConnectionClosed, format!("the client has left: {reason}")))
    }

    fn body_bytes_sent(&self) -> usize {
        self.sent
    }

    fn body_bytes_read(&self) -> usize {
        self.received
    }

    fn digest(&self) -> Option<&Digest> {
        None
    }

    fn digest_mut(&mut self) -> Option<&mut Digest> {
        None
    }

    fn client_addr(&self) -> Option<&Address> {
        self.addresses.0.as_ref()
    }

    fn server_addr(&self) -> Option<&Address> {
        self.addresses.1.as_ref()
    }

    fn pseudo_raw_h1_request_header(&self) -> Bytes {
        // Asked for by subrequests only, of which there are none.
        Bytes::new()
    }

    fn enable_retry_buffering(&mut self) {
        self.retry.get_or_insert_default();
    }

    fn retry_buffer_truncated(&self) -> bool {
        self.retry_truncated
    }

    fn get_retry_buffer(&self) -> Option<Bytes> {
        let buffer = self.retry.as_ref().filter(|buffer| !self.retry_truncated && !buffer.is_empty())?;
        Some(buffer.clone().freeze())
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
}

/// The request in pingora's form.
fn header(request: &Request) -> Option<RequestHeader> {
    let (mut parts, ()) = http::Request::new(()).into_parts();
    parts.version = Version::HTTP_2;
    parts.method = Method::from_bytes(request.method()).ok()?;
    let mut target = Vec::with_capacity(request.path().len() + 16);
    request.write_target(&mut target);
    parts.uri = Uri::try_from(target).ok()?;
    parts.headers.reserve(request.fields.len());
    for field in request.fields.iter() {
        let name = HeaderName::from_bytes(field.name).ok()?;
        parts.headers.append(name, HeaderValue::from_bytes(field.value).ok()?);
    }
    Some(RequestHeader::from(parts))
}

fn downstream(kind: ErrorType, text: String) -> BError {
    let mut error = Error::explain(kind, text);
    error.esource = ErrorSource::Downstream;
    error
}

fn gone(error: std::io::Error) -> BError {
    let kind = match error.kind() {
        std::io::ErrorKind::TimedOut => ErrorType::WriteTimedout,
        _ => ErrorType::WriteError,
    };
    downstream(kind, error.to_string())
}
