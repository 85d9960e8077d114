//! One exchange as rules see it.

use std::net::SocketAddr;

use bumpalo::Bump;

use super::vars::Vars;
use crate::{
    message::{Request, Response},
    time::Timestamp,
};

/// What is known of the client's connection.
#[derive(Clone, Debug, Default)]
pub struct Client {
    /// The client's address; `None` on a unix socket.
    pub src: Option<SocketAddr>,
    /// The address the client connected to; `None` on a unix socket.
    pub dst: Option<SocketAddr>,
    /// The TLS session; `None` in clear.
    pub tls: Option<Tls>,
}

/// What is known of a TLS session.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// The server name the client asked for, in lower case; `None` when it sent none (RFC 6066 §3).
    pub sni: Option<Box<str>>,
}

/// What rules need of the outside world, so that evaluation itself stays pure.
pub trait Env {
    /// The time of this request; the same for all of its rules.
    fn now(&self) -> Timestamp;
}

/// One exchange under evaluation: everything a fetch may read and an action may change.
pub struct Txn<'t> {
    /// The client's connection.
    pub client: &'t Client,
    /// The request, as edited so far.
    pub request: &'t mut Request,
    /// The response, as edited so far; `None` at request time.
    pub response: Option<&'t mut Response>,
    /// Variables set so far.
    pub vars: &'t mut Vars,
    /// Clock and tables.
    pub env: &'t dyn Env,
    /// Room for samples that had to be made; emptied after each request.
    pub arena: &'t Bump,
}
