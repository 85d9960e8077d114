//! What a client sends of a request's body on one stream: what was read before the request was decided, then what
//! follows.

use std::{
    collections::VecDeque,
    io,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use h2::RecvStream;
use tokio::time::{Instant, timeout_at};

use crate::{
    gateway::upload::Broken,
    message::{Ahead, BodyWait},
};

/// A request's body.
pub(super) struct H2Body {
    stream: RecvStream,
    /// Read and not taken yet.
    ahead: VecDeque<Bytes>,
    /// Bytes that the client has been given room for before whoever takes them says so.
    early: usize,
    /// The stream has ended.
    ended: bool,
}

impl H2Body {
    pub(super) fn new(stream: RecvStream) -> Self {
        Self { ended: stream.is_end_stream(), stream, ahead: VecDeque::new(), early: 0 }
    }

    /// Whether all of it has been taken.
    pub(super) fn is_done(&self) -> bool {
        self.ahead.is_empty() && (self.ended || self.stream.is_end_stream())
    }

    /// The next piece; `None` at the end. It takes of the client's window until it is released.
    pub(super) fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, h2::Error>>> {
        if let Some(data) = self.ahead.pop_front() {
            return Poll::Ready(Some(Ok(data)));
        }
        self.poll_stream(context)
    }

    fn poll_stream(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, h2::Error>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let data = ready!(self.stream.poll_data(context));
        self.ended = data.is_none();
        Poll::Ready(data)
    }

    /// Gives the client room for so many bytes more.
    pub(super) fn release(&mut self, bytes: usize) {
        let early = bytes.min(self.early);
        self.early -= early;
        // An error would mean that the stream is gone, which reading says.
        let _ = self.stream.flow_control().release_capacity(bytes - early);
    }

    /// Waits for the body, or for `most` bytes of it.
    ///
    /// # Errors
    /// The client left or, `TimedOut`, the time is over.
    pub(super) async fn read_ahead(&mut self, wait: BodyWait, most: usize) -> Result<Ahead, Broken> {
        let until = Instant::now() + wait.time;
        loop {
            let read: usize = self.ahead.iter().map(Bytes::len).sum();
            if wait.is_met_by(read, self.ended || self.stream.is_end_stream()) || read >= most {
                return Ok(self.seen());
            }
            let data = std::future::poll_fn(|context| self.poll_stream(context));
            match timeout_at(until, data).await {
                Ok(Some(Ok(data))) if data.is_empty() => {}
                Ok(Some(Ok(data))) => {
                    // What waits here is bounded; the window is for what is still to come.
                    let _ = self.stream.flow_control().release_capacity(data.len());
                    self.early += data.len();
                    self.ahead.push_back(data);
                }
                Ok(Some(Err(error))) => return Err(Broken::Client(io::Error::other(error))),
                Ok(None) => {}
                Err(_) => return Err(Broken::Client(io::ErrorKind::TimedOut.into())),
            }
        }
    }

    /// What has come of it, without waiting for more.
    pub(super) async fn peek(&mut self, most: usize) -> Ahead {
        let now = BodyWait { time: Duration::ZERO, at_least: None };
        match self.read_ahead(now, most).await {
            Ok(ahead) => ahead,
            // What is wrong with it is found again by whoever takes it.
            Err(_) => self.seen(),
        }
    }

    fn seen(&self) -> Ahead {
        let is_whole = self.ended || self.stream.is_end_stream();
        let mut pieces = self.ahead.iter();
        let bytes = match (pieces.next(), self.ahead.len()) {
            (Some(only), 1) => only.clone(),
            _ => self
                .ahead
                .iter()
                .fold(BytesMut::new(), |mut all, piece| {
                    all.extend_from_slice(piece);
                    all
                })
                .freeze(),
        };
        Ahead { bytes, is_whole }
    }
}
