//! What a client sends while it is answered: the body of its request, one trait, a reader for each protocol.

use std::{
    future::{Future, poll_fn},
    io,
    task::{Context, Poll},
};

use bytes::Bytes;

use super::h1::parse::Refusal;

/// Takes one request's body from one client. Polled beside the answer, of which the client may hear before it
/// has said everything.
pub trait Upload: Send {
    /// Whether the client waits for a 100 before it sends the body (RFC 9110 §10.1.1).
    fn awaits_continue(&self) -> bool;
    /// Says that it has been told to go on.
    fn continued(&mut self);
    /// Whether all of the body has been taken.
    fn is_done(&self) -> bool;
    /// Whether what is left may be read over, as far as one can say, so that the connection can go on.
    fn is_drainable(&self) -> bool;
    /// The next piece, never empty; `None` at the end. That the piece before is done with is said by asking.
    ///
    /// # Errors
    /// The client leaves or is silent for its timeout; what it sends is no body.
    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Broken>>;
    /// Ready when the client is known to have left; never before the body has been taken. A client that has said
    /// everything before it heard anything (`begun` is false) may close its sending side.
    fn poll_gone(&mut self, context: &mut Context<'_>, begun: bool) -> Poll<()>;

    /// As [`Upload::poll_gone`]; wait for it beside whatever the answer waits for.
    fn gone(&mut self, begun: bool) -> impl Future<Output = ()> + Send {
        poll_fn(move |context| self.poll_gone(context, begun))
    }

    /// Takes notice of an end that has come already, before an answer begins.
    fn notice_end(&mut self) -> impl Future<Output = ()> + Send {
        poll_fn(|context| {
            // A client that has left is found again by the write that follows.
            let _ = self.poll_gone(context, false);
            Poll::Ready(())
        })
    }
}

/// Why a request's body did not come.
#[derive(Debug)]
pub enum Broken {
    /// The client left or, `TimedOut`, fell silent.
    Client(io::Error),
    /// It is not framed as HTTP says.
    Malformed(Refusal),
}

/// Of a request whose body is nobody's concern, and whose client is not watched.
#[derive(Clone, Copy, Debug)]
pub struct NoUpload;

impl Upload for NoUpload {
    fn awaits_continue(&self) -> bool {
        false
    }

    fn continued(&mut self) {}

    fn is_done(&self) -> bool {
        true
    }

    fn is_drainable(&self) -> bool {
        true
    }

    fn poll_data(&mut self, _: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Broken>> {
        Poll::Ready(Ok(None))
    }

    fn poll_gone(&mut self, _: &mut Context<'_>, _: bool) -> Poll<()> {
        Poll::Pending
    }
}
