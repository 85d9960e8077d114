//! Passing without the proxy engine: a request goes through our own exchange, which reads responses strictly, its
//! body up and the response down to its one reader without a task or channel between.

use std::{io, time::Duration};

use tokio::time::{Instant, sleep_until};

use super::{Delivery, Flow};
use crate::{
    cache::fill::{Failure, FailureKind, Head, Piece},
    gateway::{
        exchange::{Exchange, Trouble},
        fault, forward, hop,
        log::Ending,
        plan::{Bypass, Route},
        reply::Reply,
        respond,
        upload::{Broken, Upload},
        upstream,
    },
    message::{Framing, Request, Response},
    metrics::Outcome,
};

/// How long a client that waits for a 100 is left to a server that says nothing; some never do (RFC 9110 §10.1.1).
const PATIENCE: Duration = Duration::from_secs(1);

impl<R: Reply, U: Upload> Delivery<'_, R, U> {
    /// Whether the request can be passed here; what asks for another protocol is the proxy engine's, and everything is
    /// with `tune.front off`.
    pub(super) fn relays(&self) -> bool {
        self.snapshot.config.global.front && self.request.method() != b"CONNECT" && !self.request.fields.has("upgrade")
    }

    /// Passes the request to a server and the response to the client.
    pub(super) async fn relay(&mut self, bypass: Bypass) -> io::Result<Flow> {
        self.plan.route = Route::Pass(bypass);
        self.ending = Ending::client_gone(&self.plan);
        let mut head = outgoing(&self.request);
        forward::add_unique_id(self.snapshot, &mut self.plan, self.client, &mut self.request, &mut head);
        if self.upload.awaits_continue() {
            // The server may refuse before the body comes.
            head.fields.set(b"Expect", b"100-continue");
        }
        let opened = tokio::select! {
            opened = upstream::open(&self.worker.pool, self.snapshot, self.plan.backend, &head, |_| {}) => opened,
            () = self.upload.gone(false) => return Ok(Flow::Left),
        };
        let (server, mut exchange) = match opened {
            Ok(opened) => opened,
            Err(failure) => return self.refuse(&failure).await,
        };
        let connect = u32::try_from(self.plan.started.elapsed().as_millis()).unwrap_or(u32::MAX);
        let progress = &mut self.plan.notes.progress;
        (progress.server, progress.queue, progress.connect) = (Some(server), Some(0), Some(connect));
        let patience = Instant::now() + PATIENCE;
        let mut continued = false;
        loop {
            let impatient = self.upload.awaits_continue();
            let head = tokio::select! {
                head = exchange.head_beside(self.upload) => head,
                () = sleep_until(patience), if impatient => Ok(Head::Interim(Response::new(100))),
            };
            match head {
                Ok(Head::Interim(interim)) if interim.status == 100 && continued => {}
                Ok(Head::Interim(interim)) if interim.status != 101 => {
                    if interim.status == 100 {
                        self.upload.continued();
                        continued = true;
                    }
                    self.reply.interim(&interim).await?;
                }
                Ok(Head::Final(response)) => {
                    self.plan.notes.progress.answered_after(connect, self.plan.started);
                    return self.pass_on(response, exchange, bypass).await;
                }
                Ok(Head::Interim(_)) => {
                    let failure = Failure::new(FailureKind::Protocol, "101 to a request that asked for no upgrade");
                    return self.fail(&failure).await;
                }
                Err(Trouble::Server(failure)) => return self.fail(&failure).await,
                Err(Trouble::Client(broken)) => return self.give_up(&broken).await,
            }
        }
    }

    /// Sends what the server answered.
    async fn pass_on(&mut self, mut response: Response, mut exchange: Exchange, bypass: Bypass) -> io::Result<Flow> {
        hop::strip(&mut response.fields);
        let head_only = self.request.method() == b"HEAD";
        let was_bodyless = head_only || response.is_bodyless();
        let shared = &self.worker.shared;
        let (plan, request) = (&mut self.plan, &mut self.request);
        if let Some(instead) = respond::passed(shared, self.snapshot, plan, self.client, request, &mut response)? {
            self.reply.persist(self.upload.is_drainable());
            self.instead_of_response(response, instead).await?;
            return Ok(Flow::Done);
        }
        let (status, reason) = (response.status, Some(bypass.as_str()));
        self.ending = Ending { status, outcome: Outcome::Pass, reason, rule: self.plan.rule() };
        let bodyless = head_only || response.is_bodyless();
        if was_bodyless && !bodyless {
            // `set-status` has made it a response with a body: an empty one.
            response.fields.remove(b"Content-Length");
            response.framing = Framing::None;
        }
        self.upload.notice_end().await;
        self.reply.persist(self.upload.is_drainable());
        self.reply.head(&response, bodyless).await?;
        let flow = if bodyless { Flow::Done } else { self.pass_body(&mut exchange).await? };
        // A body that a rule has taken away stays with the server, whose connection ends.
        if matches!(flow, Flow::Done) && (was_bodyless || !bodyless) {
            exchange.conclude(self.upload).await;
        }
        Ok(flow)
    }

    /// Sends a body as the server does, while the request's goes up.
    async fn pass_body(&mut self, exchange: &mut Exchange) -> io::Result<Flow> {
        loop {
            match exchange.body_beside(self.upload).await {
                Ok(Piece::Data(data)) => exchange.beside(self.upload, self.reply.data(data)).await?,
                Ok(Piece::End(trailers)) => {
                    self.reply.end(trailers.as_ref()).await?;
                    return Ok(Flow::Done);
                }
                Err(Trouble::Server(failure)) => {
                    upstream::failed(self.snapshot, self.plan.backend, &failure);
                    return Ok(self.broken_off(&failure));
                }
                Err(Trouble::Client(_)) => return Ok(Flow::Left),
            }
        }
    }

    /// The client's body does not come.
    async fn give_up(&mut self, broken: &Broken) -> io::Result<Flow> {
        let (status, sentence, reason) = match broken {
            Broken::Malformed(refusal) => (refusal.status, refusal.reason, "bad-request"),
            Broken::Client(error) if error.kind() == io::ErrorKind::TimedOut => {
                (408, "the body took too long", "client-timeout")
            }
            Broken::Client(_) => return Ok(Flow::Left),
        };
        self.reply.persist(false);
        let answer = fault::page(status, sentence);
        let said = respond::passed_status(&self.plan, Some(reason));
        self.fault(answer, Outcome::Refused, Some(reason), said).await
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
        self.reply.persist(self.upload.is_drainable());
        self.fault(answer, Outcome::Error, reason, status).await
    }
}

/// The head that a server gets, with the framing of the body that follows (RFC 9112 §6).
fn outgoing(request: &Request) -> Request {
    let mut head = forward::for_pass(request);
    match head.framing {
        Framing::None => {}
        Framing::Length(length) => head.fields.set(b"Content-Length", length.to_string().as_bytes()),
        Framing::Chunked | Framing::UntilClose | Framing::Stream => {
            head.fields.remove(b"Content-Length");
            head.fields.set(b"Transfer-Encoding", b"chunked");
        }
    }
    head
}
