//! What is read of a request's body before it is sent on, for rules that look into it.

use std::time::Duration;

use bytes::Bytes;

use super::{Framing, Request};

/// The beginning of a request's body.
#[derive(Clone, Debug, Default)]
pub struct Ahead {
    /// What was read; empty when nothing was.
    pub bytes: Bytes,
    /// Whether that is all of it.
    pub is_whole: bool,
}

/// How long a decision waits for a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyWait {
    /// When it is not there by then, the request is refused.
    pub time: Duration,
    /// How many bytes are enough; `None`: all that there are, or that fit into `tune.bufsize`.
    pub at_least: Option<usize>,
}

impl BodyWait {
    /// Whether there is nothing to wait for.
    pub fn is_met(self, request: &Request) -> bool {
        request.framing == Framing::None || self.is_met_by(request.ahead.bytes.len(), request.ahead.is_whole)
    }

    /// As [`BodyWait::is_met`], when so many bytes of a body are there.
    pub fn is_met_by(self, bytes: usize, is_whole: bool) -> bool {
        is_whole || self.at_least.is_some_and(|least| bytes >= least)
    }
}
