//! What an HTTP/1 connection needs of the gateway, and what passes between the two.

use std::{future::Future, sync::Arc};

use tokio::time::Instant;

use super::{
    link::{Link, Socket},
    parse::{Refusal, Terms},
    write::{Incoming, Outgoing, Wire},
};
use crate::{
    config::ClientTimeouts,
    gateway::{
        decide::{Decided, Pause},
        log::{Ending, Line, Traffic},
        reply::Reply,
        upload::Upload,
    },
    message::Request,
    metrics::FrontendMetrics,
    rule::{Answer, Client},
};

/// The gateway as a connection sees it. One value serves one connection, one request at a time.
pub trait Service: Send {
    /// What rules decided about a request.
    type Plan: Clone + Send + Sync;

    /// Where the connection's bytes are counted.
    fn metrics(&self) -> Option<Arc<FrontendMetrics>>;
    /// The timeouts in force.
    fn timeouts(&self) -> ClientTimeouts;
    /// Takes up the current configuration; `false` when it has no place for this connection any more,
    /// which then serves the request at hand and ends.
    fn refresh(&mut self) -> bool;
    /// Decides what becomes of `request`, which rules may edit.
    fn decide(
        &mut self,
        client: &Client,
        request: &mut Request,
        received: Instant,
        waited: Waited,
    ) -> Decided<Self::Plan>;
    /// Goes on with a decision, now that there is more of the body in `request`.
    fn resume(&mut self, plan: Self::Plan, pause: Pause, client: &Client, request: &mut Request)
    -> Decided<Self::Plan>;
    /// Ends a decision whose request turns out to be none.
    fn give_up(&self, plan: Self::Plan, refusal: &Refusal) -> Self::Plan;
    /// Most bytes of a body that are read before the decision.
    fn buffer(&self) -> usize;
    /// Whether requests are answered before the proxy engine (`tune.front`).
    fn is_front(&self) -> bool;
    /// Appends the answer that memory has to `wire`, with the field line `connection` (or nothing) in
    /// its head. `None`: memory has none; nothing was appended.
    fn answer_from_memory(
        &mut self,
        plan: &mut Self::Plan,
        client: &Client,
        request: &mut Request,
        connection: &[u8],
        wire: &mut Wire,
    ) -> Option<Ending>;
    /// Answers the request, or says that the proxy engine must; nothing of the body has been taken then.
    fn serve<R: Reply, U: Upload>(
        &mut self,
        plan: Self::Plan,
        client: &Client,
        request: Request,
        reply: &mut R,
        upload: &mut U,
    ) -> impl Future<Output = Served<Self::Plan>> + Send;
    /// Has the proxy engine answer; counts and logs the request. `None`: the connection is used up.
    fn pass<S: Socket>(&mut self, passed: Passed<Self::Plan, S>) -> impl Future<Output = Option<Carrier<S>>> + Send;
    /// What a log line is to be about, if there is to be one.
    fn line(&self, request: &Request) -> Line;
    /// Whether requests are logged: who waits for what is measured then.
    fn logs(&self) -> bool;
    /// Counts and logs a request that ended here.
    fn ended(&mut self, plan: &mut Self::Plan, client: &Client, line: Line, ending: &Ending, traffic: Traffic);
    /// Counts and logs a request whose client left before anything was done for it.
    fn left(&mut self, plan: &mut Self::Plan, client: &Client, line: Line, traffic: Traffic);
    /// What is said to a client whose request cannot be read; `None`: nothing, the connection just ends.
    fn page(&self, refusal: &Refusal) -> Option<Answer>;
    /// Counts and logs a request that could not be read.
    fn refused(&mut self, client: &Client, refusal: &Refusal, traffic: Traffic);
}

/// How long a head was waited for, in milliseconds; nothing where requests are not logged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waited {
    /// From the end of the last response, or of the handshake, to the first byte.
    pub idle: u32,
    /// From then to the end of the head.
    pub head: u32,
}

/// What became of a request that was to be answered here.
#[derive(Debug)]
pub enum Served<P> {
    /// It was answered.
    Done(P, Ending),
    /// The answer broke off, or the client left.
    Broken(P, Ending),
    /// Nothing was sent; the proxy engine must answer it.
    Pass(P, Request),
}

/// A connection in the middle of an exchange, as it is lent to the proxy engine and comes back.
#[derive(Debug)]
pub struct Carrier<S> {
    /// The connection.
    pub link: Link<S>,
    /// What is left of the request.
    pub incoming: Incoming,
    /// Where the response stands.
    pub outgoing: Outgoing,
}

/// A request on its way to the proxy engine.
#[derive(Debug)]
pub struct Passed<P, S> {
    /// What rules decided.
    pub plan: P,
    /// The client.
    pub client: Client,
    /// The request, edited.
    pub request: Request,
    /// What its head said about the connection.
    pub terms: Terms,
    /// What its log line is to be about.
    pub line: Line,
    /// When its head was complete.
    pub received: Instant,
    /// The connection.
    pub carrier: Carrier<S>,
}
