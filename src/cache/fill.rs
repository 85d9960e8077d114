//! Fills: fetches that belong to no request. One fill per key and variant; everyone who wants its
//! response, the first included, is a [`Reader`] and streams as it grows.
//!
//! A fill is a task of its own. It reserves what it receives from the store's budget and waits for nobody;
//! readers that are behind read from what is there. When the response may not be kept, is too large, or the
//! budget refuses, the fill turns *windowed*: it holds a small window, goes at the pace of its slowest
//! reader and takes no new ones.

mod flight;
mod pieces;
mod reader;
mod table;
mod task;

use std::{future::Future, sync::Arc, time::Duration};

use bytes::Bytes;

use super::object::{Draft, Object};
use crate::{
    message::{Fields, Response},
    policy::freshness::Freshness,
};

pub(super) use flight::Fill;
pub use reader::Reader;
pub(super) use table::Table;
pub(super) use task::{Ending, run};

/// Why a fetch failed; shared by everyone who waited for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind of failure.
    pub kind: FailureKind,
    /// One line for the log.
    pub text: Arc<str>,
}

impl Failure {
    /// A failure of this kind.
    pub fn new(kind: FailureKind, text: impl Into<Arc<str>>) -> Self {
        Self { kind, text: text.into() }
    }
}

/// Kinds of failure, as they decide the status a client gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// No server could be reached: 503.
    Connect,
    /// A server was silent too long: 504.
    Timeout,
    /// What a server sent is not HTTP, or beyond the limits: 502.
    Protocol,
    /// The connection broke before the message was complete: 502, or a visible break once the head is out.
    Truncated,
}

impl FailureKind {
    /// The word for it in logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Timeout => "timeout",
            Self::Protocol => "protocol",
            Self::Truncated => "truncated",
        }
    }
}

/// What comes before a body.
#[derive(Debug)]
pub enum Head {
    /// A 1xx response (RFC 9110 §15.2).
    Interim(Response),
    /// The final response's head.
    Final(Response),
}

/// What a body is made of.
#[derive(Debug)]
pub enum Piece {
    /// Some bytes.
    Data(Bytes),
    /// The end, with the trailers if there were any.
    End(Option<Fields>),
}

/// What is to become of a response.
#[derive(Debug)]
pub enum Judgement {
    /// It is stored and shared.
    Store(Box<Draft>),
    /// The stored object was confirmed; this is its freshened head (the body is kept).
    Freshen(Box<Draft>, Arc<Object>),
    /// The stored object was confirmed, for the first reader alone: this is the head it gets, with the stored
    /// body; nothing is stored. The others as with `Private`.
    Confirmed(Box<Response>, Arc<Object>, &'static str),
    /// It is the first reader's alone because of what that one's request carries: it says nothing of the key.
    Alone(Box<Response>, &'static str),
    /// It is the first reader's alone; the others go on their own, and so does for a while whoever asks for
    /// the same key.
    Private(Box<Response>, &'static str),
    /// It failed in a way that lets stale objects be served (5xx with stale-if-error): the first reader
    /// decides. The others get [`Arrival::NotForYou`] with the reason `server-error`.
    ServerError(Box<Response>),
}

/// A server's side of one exchange, as a fill needs it. `gateway::exchange` implements it.
pub trait Source: Send + 'static {
    /// Sends the request (once) and gives the next head.
    fn head(&mut self) -> impl Future<Output = Result<Head, Failure>> + Send;
    /// Decides on a final head.
    fn judge(&mut self, response: Response) -> Judgement;
    /// The next piece of the body.
    fn body(&mut self) -> impl Future<Output = Result<Piece, Failure>> + Send;
    /// What [`Draft::url`] will be, where that is known from the start. A purge parts later requests from the
    /// fills it may be about; without this it parts them from every fill whose head has not arrived.
    fn url(&self) -> Option<&[u8]> {
        None
    }
}

/// What a rule says about fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillOptions {
    /// How long followers wait for the head; `None`: they don't join at all.
    pub wait: Option<Duration>,
    /// The request carries what may make its response its own (credentials, cookies): it leads no refresh, and
    /// what becomes of it is not remembered for the key.
    pub alone: bool,
    /// Goes on to the end without readers when this share of an announced length has arrived (percent; 0 always) …
    pub finish_percent: u8,
    /// … or when at most this many bytes are missing.
    pub finish_bytes: u64,
    /// Never goes on without readers.
    pub abandon: bool,
    /// Largest body stored; a longer one is streamed (windowed) and not kept.
    pub max_object_size: u64,
}

/// How a reader came to its fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    /// It started it.
    Leader,
    /// It was under way.
    Follower,
}

/// What a reader finds at the head of a fill.
#[derive(Clone, Debug)]
pub enum Arrival {
    /// A 1xx response, for the leader only; ask again.
    Interim(Arc<Response>),
    /// The response; `stored` says whether it is kept, else `reason` why not.
    Head {
        /// As delivered: without hop-by-hop fields.
        head: Arc<Response>,
        /// Its times; `None` when it is not shared.
        freshness: Option<Freshness>,
        /// Whether it is being stored.
        stored: bool,
        /// Why not.
        reason: Option<&'static str>,
        /// Whether a 304 confirmed a stored object.
        revalidated: bool,
    },
    /// It is not for this request: go alone. The reason is that of `Private`, `server-error`, `vary` when the
    /// response turned out to be another variant, or `wait` when the head took longer than followers wait.
    NotForYou(&'static str),
}
