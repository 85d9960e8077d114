//! Passing without the proxy engine: a request without a body goes through our own exchange, which reads
//! responses strictly, and the response streams to its one reader without a task or channel between.

use std::io;

use super::{Body, Delivery, Flow};
use crate::{
    cache::fill::{Failure, FailureKind, Head, Piece},
    config::{Backend, Id},
    gateway::{
        exchange::Exchange,
        fault, forward, hop,
        log::Ending,
        plan::{Bypass, Route},
        reply::Reply,
        respond,
        snapshot::Snapshot,
        upstream,
    },
    message::{Framing, Response},
    metrics::Outcome,
};

impl<R: Reply> Delivery<'_, R> {
    /// Whether the request can be passed here; what has bytes of a body or asks for another protocol is the proxy
    /// engine's, and everything is with `tune.front off`.
    pub(super) fn relays(&self) -> bool {
        self.snapshot.config.global.front
            && matches!(self.request.framing, Framing::None | Framing::Length(0))
            && self.request.method() != b"CONNECT"
            && !self.request.fields.has("upgrade")
    }

    /// Passes the request to a server and the response to the client.
    pub(super) async fn relay(&mut self, bypass: Bypass) -> io::Result<Flow> {
        self.plan.route = Route::Pass(bypass);
        self.ending = Ending::client_gone(&self.plan);
        let mut head = forward::for_pass(&self.request);
        if self.request.framing == Framing::Length(0) {
            head.fields.set(b"Content-Length", b"0");
        }
        let opened = tokio::select! {
            opened = upstream::open(&self.worker.pool, self.snapshot, self.plan.backend, &head, |_| {}) => opened,
            () = self.reply.gone() => return Ok(Flow::Left),
        };
        let mut exchange = match opened {
            Ok(exchange) => exchange,
            Err(failure) => return self.refuse(&failure).await,
        };
        loop {
            let head = tokio::select! {
                head = exchange.head() => head,
                () = self.reply.gone() => return Ok(Flow::Left),
            };
            match head {
                Ok(Head::Interim(interim)) if interim.status != 101 => self.reply.interim(&interim).await?,
                Ok(Head::Final(response)) => return self.pass_on(response, exchange, bypass).await,
                Ok(Head::Interim(_)) => {
                    let failure = Failure::new(FailureKind::Protocol, "101 to a request that asked for no upgrade");
                    return self.fail(&failure).await;
                }
                Err(failure) => return self.fail(&failure).await,
            }
        }
    }

    /// Sends what the server answered.
    async fn pass_on(&mut self, mut response: Response, exchange: Exchange, bypass: Bypass) -> io::Result<Flow> {
        hop::strip(&mut response.fields);
        let shared = &self.worker.shared;
        respond::passed(shared, self.snapshot, &mut self.plan, self.client, &mut self.request, &mut response)?;
        let (status, reason) = (response.status, Some(bypass.as_str()));
        self.ending = Ending { status, outcome: Outcome::Pass, reason, rule: self.plan.rule() };
        let bodyless = self.request.method() == b"HEAD" || response.is_bodyless();
        self.reply.head(&response, bodyless).await?;
        if bodyless {
            return Ok(Flow::Done);
        }
        self.body(Relayed { exchange, snapshot: self.snapshot, backend: self.plan.backend }).await
    }

    /// The server has failed before it answered.
    async fn fail(&mut self, failure: &Failure) -> io::Result<Flow> {
        upstream::failed(self.snapshot, self.plan.backend, failure);
        self.refuse(failure).await
    }

    /// Says that no answer is to be had.
    async fn refuse(&mut self, failure: &Failure) -> io::Result<Flow> {
        let answer = fault::of_failure(failure);
        let reason = Some(failure.kind.as_str());
        let status = respond::passed_status(&self.plan, reason);
        self.own(answer.head, answer.body, Outcome::Error, reason, status).await
    }
}

/// The body of an exchange that one client waits for.
struct Relayed<'s> {
    exchange: Exchange,
    snapshot: &'s Snapshot,
    backend: Option<Id<Backend>>,
}

impl Body for Relayed<'_> {
    async fn piece(&mut self) -> Result<Piece, Failure> {
        let piece = self.exchange.body().await;
        piece.inspect_err(|failure| upstream::failed(self.snapshot, self.backend, failure))
    }
}
