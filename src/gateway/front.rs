//! One connection's way into the gateway: the configuration it runs under, and the two ways a
//! request is answered, here or by the proxy engine.

use std::{sync::Arc, time::Duration};

use pingora::protocols::http::ServerSession;
use tokio::time::Instant;

use super::{
    clock,
    decide::{Decided, Pause},
    deliver,
    fault::{self, Fault},
    h1::{
        downstream::Downstream,
        link::Socket,
        parse::Refusal,
        reply::Http1Reply,
        service::{Carrier, Passed, Served, Service, Waited},
        write::Wire,
    },
    host,
    job::Job,
    log::{self, Ending, Line, Traffic},
    pages,
    plan::{Arrival, Plan, Route, Scratch},
    proxy,
    reply::Reply,
    shortcut,
    snapshot::Snapshot,
    upload::Upload,
    worker::Context,
};
use crate::{
    config::{ClientTimeouts, Frontend, Id},
    message::Request,
    metrics::{FrontendMetrics, Outcome},
    rule::{Answer, Client, Notes, Vars, track::Event},
    time::Timestamp,
};

/// A frontend as one connection sees it.
#[derive(Clone)]
pub struct View {
    /// The worker that the connection belongs to.
    pub context: Context,
    /// The configuration it runs under.
    pub snapshot: Arc<Snapshot>,
    frontend: Id<Frontend>,
    metrics: Option<Arc<FrontendMetrics>>,
    timeouts: ClientTimeouts,
    logs: bool,
}

impl View {
    /// A connection accepted for `frontend` under `snapshot`; `None` when there is no such frontend.
    pub fn new(context: Context, snapshot: Arc<Snapshot>, frontend: Id<Frontend>) -> Option<Self> {
        let timeouts = ClientTimeouts::default();
        let mut view = Self { context, snapshot, frontend, metrics: None, timeouts, logs: false };
        view.adopt().then_some(view)
    }

    /// Takes over what the frontend says; `false` when there is none.
    fn adopt(&mut self) -> bool {
        let Some(frontend) = self.snapshot.frontend(self.frontend) else { return false };
        self.timeouts = frontend.timeouts;
        self.logs = !frontend.log.loggers.is_empty();
        self.metrics = self.snapshot.frontend_state(self.frontend).map(|state| state.metrics.clone());
        true
    }

    /// Takes up the current configuration; `false` when the frontend is not in it any more.
    pub fn refresh(&mut self) -> bool {
        if self.context.worker.shared.generation() == self.snapshot.generation {
            return true;
        }
        let current = self.context.worker.shared.snapshot();
        let name = self.snapshot.frontend(self.frontend).map(|frontend| frontend.name.as_str());
        let Some(at) = current.config.frontends.iter().position(|frontend| Some(frontend.name.as_str()) == name) else {
            return false;
        };
        (self.snapshot, self.frontend) = (current, Id::new(at));
        self.adopt()
    }

    /// The frontend's counters.
    pub const fn metrics(&self) -> Option<&Arc<FrontendMetrics>> {
        self.metrics.as_ref()
    }

    /// The frontend's timeouts.
    pub const fn timeouts(&self) -> ClientTimeouts {
        self.timeouts
    }

    /// Whether requests are answered before the proxy engine (`tune.front`).
    pub fn is_front(&self) -> bool {
        self.snapshot.config.global.front
    }

    /// Counts a request and decides what becomes of it.
    pub fn decide(
        &self,
        client: &Client,
        request: &mut Request,
        arrival: Arrival,
        scratch: &mut Scratch,
    ) -> Decided<Plan> {
        if let Some(metrics) = &self.metrics {
            metrics.requests.add(1);
            metrics.request_rate.count(arrival.now.as_millis());
        }
        if self.is_misdirected(client, request) {
            let refusal = Refusal::new(421, "this host is not served on this connection");
            return Decided::Made(self.refusal(client, &refusal, (arrival.now, arrival.received)));
        }
        Plan::decide(&self.snapshot, self.frontend, client, request, arrival, scratch)
    }

    /// RFC 9110 §15.5.20, where the configuration asks for it: Host is not the name of the handshake.
    fn is_misdirected(&self, client: &Client, request: &Request) -> bool {
        let sni = client.tls.as_ref().and_then(|tls| tls.sni.as_deref());
        self.snapshot.config.global.misdirected
            && sni.is_some_and(|sni| !host::split_port(request.host()).0.eq_ignore_ascii_case(sni.as_bytes()))
    }

    /// What is said to a client whose request cannot be read; `None`: nothing.
    fn page(&self, refusal: &Refusal) -> Option<Answer> {
        pages::instead_of(&self.snapshot, self.frontend, None, fault::page(refusal.status, refusal.reason))
    }

    /// What becomes of a request that cannot be read; it is the client's fault where it says so.
    fn refusal(&self, client: &Client, refusal: &Refusal, (now, started): (Timestamp, std::time::Instant)) -> Plan {
        let tracks = Plan::tracks_of_connection(client);
        if let Some(tracks) = &tracks {
            tracks.count(Event::Request, now.as_millis());
            if !matches!(refusal.status, 408 | 501) {
                tracks.count(Event::ClientError, now.as_millis());
            }
        }
        let route = self
            .page(refusal)
            .map_or(Route::Close { silent: false }, |page| Route::Answer(Arc::new(page), Outcome::Refused));
        Plan {
            frontend: self.frontend,
            backend: None,
            now,
            started,
            vars: Vars::default(),
            notes: Notes { tracks, ..Notes::default() },
            hit: None,
            unlogged: false,
            route,
        }
    }

    /// What a log line is to be about, if there is to be one.
    pub fn line(&self, request: &Request) -> Line {
        self.logs.then(|| Box::new(request.clone()))
    }

    /// Whether requests are logged.
    pub const fn logs(&self) -> bool {
        self.logs
    }

    /// Counts and logs a request that could not be read.
    pub fn refused(&self, client: &Client, refusal: &Refusal, traffic: Traffic) {
        if let Some(metrics) = &self.metrics {
            metrics.requests.add(1);
        }
        let mut plan = self.refusal(client, refusal, clock::both());
        let line = self.line(&Request::default());
        let (status, reason) = (refusal.status, Some(refusal.word()));
        let ending = Ending { status, outcome: Outcome::Refused, reason, rule: None };
        log::settle(&self.snapshot, &mut plan, client, line, &ending, traffic, &self.context.worker.log);
    }
}

/// The wall clock, read once in a while and carried on by the steady clock in between.
#[derive(Clone, Copy, Debug)]
struct Clock {
    steady: Instant,
    wall: Timestamp,
}

impl Clock {
    /// How long the wall clock is trusted not to be set.
    const TRUST: Duration = Duration::from_millis(500);

    fn read() -> Self {
        let (wall, steady) = clock::both();
        Self { steady: steady.into(), wall }
    }

    /// The wall clock's time of a moment that was just read.
    fn wall(&mut self, steady: Instant) -> Timestamp {
        if steady.saturating_duration_since(self.steady) > Self::TRUST {
            *self = Self::read();
        }
        self.wall.plus(steady.saturating_duration_since(self.steady))
    }
}

/// The gateway behind an HTTP/1 connection.
pub struct Front {
    view: View,
    clock: Clock,
    scratch: Scratch,
}

impl Front {
    /// The gateway as `view` has it.
    pub fn new(view: View) -> Self {
        Self { view, clock: Clock::read(), scratch: Scratch::default() }
    }
}

impl Service for Front {
    type Plan = Plan;

    fn metrics(&self) -> Option<Arc<FrontendMetrics>> {
        self.view.metrics.clone()
    }

    fn timeouts(&self) -> ClientTimeouts {
        self.view.timeouts
    }

    fn refresh(&mut self) -> bool {
        self.view.refresh()
    }

    fn decide(&mut self, client: &Client, request: &mut Request, received: Instant, waited: Waited) -> Decided<Plan> {
        let handshake = if request.is_first { client.handshake } else { 0 };
        let Waited { idle, head } = waited;
        let now = self.clock.wall(received);
        let arrival = Arrival { now, received: received.into_std(), handshake, idle, head };
        self.view.decide(client, request, arrival, &mut self.scratch)
    }

    fn resume(&mut self, plan: Plan, pause: Pause, client: &Client, request: &mut Request) -> Decided<Plan> {
        plan.resume(pause, &self.view.snapshot, client, request, &mut self.scratch)
    }

    fn give_up(&self, plan: Plan, refusal: &Refusal) -> Plan {
        plan.refuse(&self.view.snapshot, refusal)
    }

    fn buffer(&self) -> usize {
        self.view.snapshot.config.global.buffer
    }

    fn is_front(&self) -> bool {
        self.view.is_front()
    }

    fn answer_from_memory(
        &mut self,
        plan: &mut Plan,
        client: &Client,
        request: &mut Request,
        connection: &[u8],
        wire: &mut Wire,
    ) -> Option<Ending> {
        shortcut::from_memory(&self.view.snapshot, plan, client, request, &mut self.scratch, connection, wire)
    }

    async fn serve<R: Reply, U: Upload>(
        &mut self,
        plan: Plan,
        client: &Client,
        request: Request,
        reply: &mut R,
        upload: &mut U,
    ) -> Served<Plan> {
        let View { context, snapshot, .. } = &self.view;
        match deliver::serve(&context.worker, snapshot, client, plan, request, reply, upload).await {
            deliver::Served::Done(plan, ending) => Served::Done(*plan, ending),
            deliver::Served::Broken(plan, ending) => Served::Broken(*plan, ending),
            deliver::Served::Pass(passed) => Served::Pass(passed.0, passed.1),
        }
    }

    async fn pass<S: Socket>(&mut self, passed: Passed<Plan, S>) -> Option<Carrier<S>> {
        let Passed { plan, client, request, terms, line, received, carrier } = passed;
        let (framing, snapshot) = (request.framing, self.view.snapshot.clone());
        let (client, upgrade, log) = (Arc::new(client), terms.upgrade, Some(self.view.context.worker.log.clone()));
        let job = Job { snapshot, plan, client, request, upgrade, line, received, log };
        let header = match proxy::header(job) {
            Ok(header) => header,
            Err(job) => return Some(refuse_to_pass(*job, carrier, self.view.timeouts.client).await),
        };
        let (session, mut returned) = Downstream::new(carrier, header, terms, framing, self.view.timeouts.client);
        self.view.context.proxy(ServerSession::new_custom(Box::new(session))).await;
        returned.try_recv().ok()
    }

    fn line(&self, request: &Request) -> Line {
        self.view.line(request)
    }

    fn logs(&self) -> bool {
        self.view.logs()
    }

    fn ended(&mut self, plan: &mut Plan, client: &Client, line: Line, ending: &Ending, traffic: Traffic) {
        log::settle(&self.view.snapshot, plan, client, line, ending, traffic, &self.view.context.worker.log);
        self.scratch.take_back(plan);
    }

    fn left(&mut self, plan: &mut Plan, client: &Client, line: Line, traffic: Traffic) {
        let ending = Ending::client_gone(plan);
        self.ended(plan, client, line, &ending, traffic);
    }

    fn page(&self, refusal: &Refusal) -> Option<Answer> {
        self.view.page(refusal)
    }

    fn refused(&mut self, client: &Client, refusal: &Refusal, traffic: Traffic) {
        self.view.refused(client, refusal, traffic);
    }
}

/// Answers a request that the proxy engine cannot represent; the connection ends with it.
async fn refuse_to_pass<S: Socket>(job: Job, carrier: Carrier<S>, stall: Duration) -> Carrier<S> {
    let Carrier { mut link, incoming, mut outgoing } = carrier;
    outgoing.close();
    let fault = Fault::INTERNAL;
    let page = fault::page(fault.status, fault.sentence());
    let (sent, mut wire) = (link.sent(), Wire::default());
    let mut reply = Http1Reply::new(link.split().1, &mut wire, outgoing, stall);
    // A failure is the client's departure, which the link remembers.
    let _ = reply.whole(&page.head, page.body).await;
    let outgoing = reply.finish();
    let traffic = Traffic { sent: link.sent() - sent, duration: job.received.elapsed(), ..Traffic::default() };
    job.failed(&fault, traffic);
    Carrier { link, incoming, outgoing }
}
