//! The HTTP/1 reader of request bodies.

use std::{
    io,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::Instant;

use super::{
    body::Step,
    half::Reader,
    link::{HEAD_ROOM, Socket},
    write::Incoming,
};
use crate::gateway::upload::{Broken, Upload};

/// Room for one read.
const ROOM: usize = 64 * 1024;

/// Reads one request's body off a client's connection.
#[derive(Debug)]
pub struct Http1Upload<'c, S> {
    link: Reader<'c, S>,
    incoming: &'c mut Incoming,
    stall: Duration,
    /// When the client must have sent something; `None` while nothing is waited for.
    until: Option<Instant>,
}

impl<'c, S: Socket> Http1Upload<'c, S> {
    /// A reader of what `incoming` has left; `stall` is how long the client may be silent.
    pub const fn new(link: Reader<'c, S>, incoming: &'c mut Incoming, stall: Duration) -> Self {
        Self { link, incoming, stall, until: None }
    }
}

impl<S: Socket> Upload for Http1Upload<'_, S> {
    fn awaits_continue(&self) -> bool {
        self.incoming.awaits_continue
    }

    fn continued(&mut self) {
        self.incoming.awaits_continue = false;
    }

    fn is_done(&self) -> bool {
        self.incoming.body.is_done()
    }

    fn is_drainable(&self) -> bool {
        self.incoming.is_drainable()
    }

    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Broken>> {
        loop {
            match self.incoming.body.gather(&mut self.link.reading.inbox) {
                Ok(Step::Data(data)) => {
                    (self.until, self.incoming.awaits_continue) = (None, false);
                    return Poll::Ready(Ok(Some(data)));
                }
                Ok(Step::End) => return Poll::Ready(Ok(None)),
                Ok(Step::More) => {}
                Err(refusal) => return Poll::Ready(Err(Broken::Malformed(refusal))),
            }
            let until = *self.until.get_or_insert_with(|| Instant::now() + self.stall);
            let room = self.incoming.body.room(ROOM).max(HEAD_ROOM);
            match ready!(self.link.poll_fill(context, room, until)) {
                Ok(0) => return Poll::Ready(Err(Broken::Client(io::ErrorKind::UnexpectedEof.into()))),
                Ok(_) => self.until = None,
                Err(error) => return Poll::Ready(Err(Broken::Client(error))),
            }
        }
    }

    fn poll_gone(&mut self, context: &mut Context<'_>, begun: bool) -> Poll<()> {
        if !self.is_done() {
            return Poll::Pending;
        }
        self.link.poll_departure(context, begun).map(|_| ())
    }
}
