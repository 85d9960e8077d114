//! The answer's way out: one trait, a writer for each protocol.
use crate::message::{Fields, Framing, Response};
use bytes::Bytes;
use std::{future::Future, io};

/// Writes one response to one client. HTTP/1, HTTP/2 and pingora's session each have a writer.
///
/// Order: `interim`*, `head` once, then `data`* and `end`, unless `head` said that there is no body.
/// Every method fails when the client is gone; the caller then drops the writer.
pub trait Reply: Send {
    /// Sends a 1xx response; a client of HTTP/1.0 gets none (RFC 9110 §15.2).
    fn interim(&mut self, head: &Response) -> impl Future<Output = io::Result<()>> + Send;
    /// Sends the head. `head.framing` says how the body's end will be known: `Length` and `None` as they
    /// are; `Chunked`, `UntilClose` and `Stream` become what the client's protocol has for an unknown length.
    /// The fields carry no `Connection`, `Keep-Alive`, `Transfer-Encoding`; `Content-Length` agrees with `Length`.
    /// `bodyless`: nothing follows (HEAD, 204, 304), whatever the fields say.
    fn head(&mut self, head: &Response, bodyless: bool) -> impl Future<Output = io::Result<()>> + Send;
    /// Sends a piece of the body.
    fn data(&mut self, data: Bytes) -> impl Future<Output = io::Result<()>> + Send;
    /// Ends the body.
    fn end(&mut self, trailers: Option<&Fields>) -> impl Future<Output = io::Result<()>> + Send;
    /// Sends head and body together, in one write where the protocol can. The length is `body`'s,
    /// whatever `head.framing` says; for HEAD the writer leaves the body out.
    fn whole(&mut self, head: &Response, body: Bytes) -> impl Future<Output = io::Result<()>> + Send {
        let mut head = head.clone();
        head.framing = Framing::Length(body.len() as u64);
        async move {
            self.head(&head, false).await?;
            self.data(body).await?;
            self.end(None).await
        }
    }
    /// Says, before the head, whether the connection can serve another request after this one: whether the
    /// request's body is out of the way by then (RFC 9112 §9.3). Of no meaning where requests share a connection.
    fn persist(&mut self, _can: bool) {}
    /// Breaks the response off so that the client sees that it is incomplete (RFC 9112 §8): the
    /// connection or stream ends without the body's end.
    fn abort(&mut self);
}
