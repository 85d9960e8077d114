//! The body of a request on one stream of HTTP/2.

use std::{
    io,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::Instant;

use super::{body::H2Body, reply::Outlet};
use crate::gateway::{
    alarm::Alarm,
    upload::{Broken, Upload},
};

/// Reads one request's body off a stream.
pub(super) struct H2Upload {
    body: H2Body,
    outlet: Outlet,
    continues: bool,
    done: bool,
    limit: Duration,
    alarm: Alarm,
    /// When the client must have sent something; `None` while nothing is waited for.
    until: Option<Instant>,
    /// What was handed out last and still takes of the client's window.
    held: usize,
}

impl H2Upload {
    /// A reader of `body`; `continues`: the client waits for a 100, `limit` is how long it may be silent.
    pub(super) fn new(body: H2Body, outlet: Outlet, continues: bool, limit: Duration) -> Self {
        let done = body.is_done();
        Self { body, outlet, continues, done, limit, alarm: Alarm::new(), until: None, held: 0 }
    }

    /// The body and whether a 100 is waited for, when none of it was taken.
    pub(super) fn into_body(self) -> (H2Body, bool) {
        (self.body, self.continues)
    }
}

impl Upload for H2Upload {
    fn awaits_continue(&self) -> bool {
        self.continues && !self.done
    }

    fn continued(&mut self) {
        self.continues = false;
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn is_drainable(&self) -> bool {
        true
    }

    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Broken>> {
        self.body.release(std::mem::take(&mut self.held));
        while !self.done {
            match self.body.poll_data(context) {
                Poll::Ready(Some(Ok(data))) => {
                    (self.until, self.continues) = (None, false);
                    if data.is_empty() {
                        continue;
                    }
                    self.held = data.len();
                    return Poll::Ready(Ok(Some(data)));
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(Broken::Client(io::Error::other(error)))),
                Poll::Ready(None) => self.done = true,
                Poll::Pending => {
                    self.alarm.set(*self.until.get_or_insert_with(|| Instant::now() + self.limit));
                    return self.alarm.poll(context).map(|()| Err(Broken::Client(io::ErrorKind::TimedOut.into())));
                }
            }
        }
        Poll::Ready(Ok(None))
    }

    fn poll_gone(&mut self, context: &mut Context<'_>, _begun: bool) -> Poll<()> {
        if !self.done {
            return Poll::Pending;
        }
        self.outlet.poll_closed(context).map(|_| ())
    }
}
