//! A request's body, read before the request is decided: it stays in the connection's inbox, for whoever takes it
//! then, and rules get a copy.

use std::{io, time::Duration};

use bytes::BytesMut;
use tokio::time::Instant;

use super::{
    body::{Body, Step},
    link::{Link, Socket},
    parse::{Refusal, Terms},
};
use crate::{
    gateway::upload::Broken,
    message::{Ahead, BodyWait, Framing},
};

/// Room for one read.
const ROOM: usize = 16 * 1024;

/// What tells a client to go on (RFC 9110 §15.2.1).
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Decodes a copy of what is in an inbox.
struct Copy {
    body: Body,
    /// Bytes of the inbox that are looked at. Framing counts, too: a body in chunks of a byte each does not take
    /// more room than another.
    most: usize,
    /// Bytes of the inbox that were copied.
    copied: usize,
    raw: BytesMut,
    decoded: BytesMut,
}

impl Copy {
    fn new(framing: Framing, most: usize) -> Self {
        Self { body: Body::new(framing), most, copied: 0, raw: BytesMut::new(), decoded: BytesMut::new() }
    }

    fn catch_up(&mut self, inbox: &[u8]) -> Result<(), Refusal> {
        let end = inbox.len().min(self.most);
        self.raw.extend_from_slice(inbox.get(self.copied..end).unwrap_or_default());
        self.copied = end;
        while let Step::Data(data) = self.body.step(&mut self.raw)? {
            self.decoded.extend_from_slice(&data);
        }
        Ok(())
    }

    fn ahead(self) -> Ahead {
        Ahead { is_whole: self.body.is_done(), bytes: self.decoded.freeze() }
    }

    fn is_enough(&self, wait: BodyWait) -> bool {
        wait.is_met_by(self.decoded.len(), self.body.is_done())
    }
}

impl<S: Socket> Link<S> {
    /// What has come of a body, at most `most` bytes, without waiting for more.
    ///
    /// # Errors
    /// 400 when it is not framed as it says.
    pub(super) fn peek(&self, framing: Framing, most: usize) -> Result<Ahead, Refusal> {
        let mut copy = Copy::new(framing, most);
        copy.catch_up(self.inbox())?;
        Ok(copy.ahead())
    }

    /// Waits for a body, or for `most` bytes of it, and tells a client that awaits it to go on; `stall` is how long
    /// that may take it.
    ///
    /// # Errors
    /// [`Broken::Client`] when the client left or, `TimedOut`, the time is over; 400 when it is not framed as it says.
    pub(super) async fn read_ahead(
        &mut self,
        (framing, terms): (Framing, &mut Terms),
        wait: BodyWait,
        most: usize,
        stall: Duration,
    ) -> Result<Ahead, Broken> {
        let until = Instant::now() + wait.time;
        let mut copy = Copy::new(framing, most);
        loop {
            copy.catch_up(self.inbox()).map_err(Broken::Malformed)?;
            if copy.is_enough(wait) || self.inbox().len() >= most {
                return Ok(copy.ahead());
            }
            if std::mem::take(&mut terms.expects_continue) {
                self.write(CONTINUE, &[], stall).await.map_err(Broken::Client)?;
            }
            let room = copy.body.room(most - self.inbox().len()).clamp(1, ROOM);
            if self.fill(room, Some(until)).await.map_err(Broken::Client)? == 0 {
                return Err(Broken::Client(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }
}
