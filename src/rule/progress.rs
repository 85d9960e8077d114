//! How far an exchange has come, in the measures of HAProxy's log (manual §8.4, §8.5).

use std::{net::SocketAddr, time::Instant};

use super::sample::Sample;

/// Times in milliseconds, and what else is known only bit by bit. What is not known yet is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The handshake of the connection; 0 in clear and for all but its first request.
    pub handshake: u32,
    /// From then, or from the last response, to the request's first byte.
    pub idle: u32,
    /// From that byte to the end of the request's head.
    pub head: u32,
    /// Whether the request has been decided.
    pub decided: bool,
    /// Waiting for a place at a server.
    pub queue: Option<u32>,
    /// Reaching the server.
    pub connect: Option<u32>,
    /// From there to the end of the response's head.
    pub response: Option<u32>,
    /// Servers tried before the last one.
    pub retries: u32,
    /// The server, by its place in its backend.
    pub server: Option<u32>,
    /// The address that the server sees.
    pub source: Option<SocketAddr>,
    /// How it ended.
    pub end: Option<End>,
}

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The status sent; 0 when there was none.
    pub status: u16,
    /// Who ended it and when, as HAProxy writes it: `--` when nobody did before its time.
    pub state: [u8; 2],
    /// Milliseconds from the request's head to the response's last byte.
    pub active: u32,
    /// Bytes received.
    pub received: u64,
    /// Bytes sent.
    pub sent: u64,
    /// The outcome of Tidegate's own counters.
    pub outcome: &'static str,
    /// Why it was no hit.
    pub reason: Option<&'static str>,
}

impl Progress {
    /// Notes that the response's head has come: `connect` milliseconds after the request was decided at `started` the
    /// server was reached.
    pub fn answered_after(&mut self, connect: u32, started: Instant) {
        let all = u32::try_from(started.elapsed().as_millis()).unwrap_or(u32::MAX);
        (self.queue, self.connect, self.response) = (Some(0), Some(connect), Some(all.saturating_sub(connect)));
    }

    /// From accept, or from the last response, to the end of the head; `None` until the request is decided.
    pub fn request(&self) -> Option<u32> {
        self.decided.then(|| self.before() + self.head)
    }

    /// From accept, or from the last response, to the request's first byte.
    pub const fn before(&self) -> u32 {
        self.handshake + self.idle
    }

    /// From the request's first byte to the response's last; 0 until it ended.
    pub fn active(&self) -> u32 {
        self.end.map_or(0, |end| self.head + end.active)
    }

    /// From accept, or from the last response, to the response's last byte; 0 until it ended.
    pub fn total(&self) -> u32 {
        self.end.map_or(0, |end| self.before() + self.head + end.active)
    }

    /// From the response's head to its last byte.
    pub fn data(&self) -> Option<u32> {
        let before = self.queue? + self.connect? + self.response?;
        Some(self.end?.active.saturating_sub(before))
    }
}

/// A time as HAProxy writes it: -1 when it is not known.
pub fn or_none(time: Option<u32>) -> i64 {
    time.map_or(-1, i64::from)
}

/// As [`or_none`], as a sample.
pub fn sample<'s>(time: Option<u32>) -> Sample<'s> {
    Sample::Int(or_none(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_add_up() {
        let end = End { status: 200, state: *b"--", active: 100, received: 0, sent: 0, outcome: "miss", reason: None };
        let before = Progress { handshake: 5, idle: 10, head: 20, ..Progress::default() };
        assert_eq!((before.request(), before.total(), before.active(), before.data()), (None, 0, 0, None));
        let served =
            Progress { decided: true, queue: Some(0), connect: Some(3), response: Some(40), end: Some(end), ..before };
        assert_eq!(served.request(), Some(35));
        assert_eq!((served.active(), served.total(), served.data()), (120, 135, Some(57)));
    }
}
