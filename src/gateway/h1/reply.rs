//! The HTTP/1 writer of replies.

use std::{io, sync::Mutex, time::Duration};

use bytes::Bytes;

use super::{
    half::Writer,
    link::Socket,
    write::{Outgoing, Wire},
};
use crate::{
    gateway::reply::Reply,
    message::{Fields, Framing, Response},
};

/// Writes one response over a client's connection.
#[derive(Debug)]
pub struct Http1Reply<'c, S> {
    link: Writer<'c, &'c Mutex<S>>,
    wire: &'c mut Wire,
    outgoing: Outgoing,
    /// Whether the connection would like to serve another request.
    keep_alive: bool,
    stall: Duration,
}

impl<'c, S: Socket> Http1Reply<'c, S> {
    /// A writer over `link`; `wire` is room to build in, `stall` how long the client may take nothing.
    pub fn new(link: Writer<'c, &'c Mutex<S>>, wire: &'c mut Wire, outgoing: Outgoing, stall: Duration) -> Self {
        wire.clear();
        Self { link, wire, keep_alive: outgoing.keeps_alive(), outgoing, stall }
    }

    /// Ends the writer after a response that was to come to its end.
    pub fn finish(self) -> Outgoing {
        if self.outgoing.is_complete() { self.outgoing } else { self.break_off() }
    }

    /// Ends the writer in the middle of a response.
    pub fn break_off(mut self) -> Outgoing {
        self.abort();
        self.outgoing
    }

    async fn send(&mut self) -> io::Result<()> {
        let written = self.link.write(&self.wire.head, &self.wire.body, self.stall).await;
        self.wire.clear();
        written
    }
}

fn wrong_length() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the body is not as long as its head says")
}

impl<S: Socket> Reply for Http1Reply<'_, S> {
    async fn interim(&mut self, head: &Response) -> io::Result<()> {
        self.outgoing.interim(head, self.wire);
        self.send().await
    }

    async fn head(&mut self, head: &Response, bodyless: bool) -> io::Result<()> {
        self.outgoing.head(head, head.framing, bodyless, self.wire);
        self.send().await
    }

    async fn data(&mut self, data: Bytes) -> io::Result<()> {
        if !self.outgoing.data(data, self.wire) {
            self.abort();
            return Err(wrong_length());
        }
        self.send().await
    }

    async fn end(&mut self, trailers: Option<&Fields>) -> io::Result<()> {
        if !self.outgoing.end(trailers, self.wire) {
            self.abort();
            return Err(wrong_length());
        }
        self.send().await
    }

    async fn whole(&mut self, head: &Response, body: Bytes) -> io::Result<()> {
        self.outgoing.head(head, Framing::Length(body.len() as u64), false, self.wire);
        if !(self.outgoing.data(body, self.wire) && self.outgoing.end(None, self.wire)) {
            self.abort();
            return Err(wrong_length());
        }
        self.send().await
    }

    fn persist(&mut self, can: bool) {
        if self.outgoing.is_unsent() {
            self.outgoing.persist(self.keep_alive && can);
        }
    }

    fn abort(&mut self) {
        if self.outgoing.ends_with_connection() {
            self.link.cut();
        }
        self.outgoing.close();
    }
}
