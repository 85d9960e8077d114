//! Rules decide once, in steps; a decision that has to wait for the request's body goes on where it stood.

use std::{sync::Arc, time::Duration};

use bumpalo::Bump;

use super::{
    fault, forward,
    h1::parse::Refusal,
    pages,
    plan::{Arrival, Bypass, Candidates, Plan, Route, Scratch},
    snapshot::Snapshot,
    stats,
};
use crate::{
    config::{Backend, CacheRule, Frontend, Id, StatsPage, Switch, SwitchTarget},
    message::{BodyWait, Framing, Request},
    metrics::Outcome,
    rule::{
        Client, Notes, RuleSet, Tri, Txn, Verdict, action::answer::Given, fetch::auth, progress::Progress, track::Event,
    },
};

/// What running the rules came to.
#[derive(Debug)]
pub enum Decided<P> {
    /// The plan.
    Made(P),
    /// What there is of it, until the request's body is there.
    Paused(P, Pause),
}

impl<P> Decided<P> {
    /// With another kind of plan.
    pub fn map<Q>(self, change: impl FnOnce(P) -> Q) -> Decided<Q> {
        match self {
            Self::Made(plan) => Decided::Made(change(plan)),
            Self::Paused(plan, pause) => Decided::Paused(change(plan), pause),
        }
    }
}

/// Where a decision stood when it had to wait.
#[derive(Clone, Copy, Debug)]
pub struct Pause {
    /// What it waits for.
    pub wait: BodyWait,
    step: Step,
    /// The rule to go on with.
    rule: usize,
}

/// The steps of a decision, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// `tcp-request content` of the frontend.
    Content,
    /// `monitor-uri`.
    Monitor,
    /// `option http-buffer-request` of the frontend.
    Buffer,
    /// `http-request` of the frontend.
    Request,
    /// `stats` of the frontend.
    Stats,
    /// `use_backend`, `default_backend`.
    Choose,
    /// `option http-buffer-request` of the backend.
    BackendBuffer,
    /// `tcp-request content` of the backend.
    BackendContent,
    /// `http-request` of the backend.
    BackendRequest,
    /// `stats` of the backend.
    BackendStats,
    /// What the server gets, and which caching rules are for it.
    Settle,
}

/// What follows a step.
enum Flow {
    Next,
    Wait(BodyWait, usize),
    End(Route),
}

/// One request being decided.
struct Deciding<'d> {
    snapshot: &'d Snapshot,
    frontend: &'d Frontend,
    backend: Option<&'d Backend>,
    client: &'d Client,
    request: &'d mut Request,
    arena: &'d Bump,
    plan: &'d mut Plan,
}

impl Plan {
    /// Runs the rules on `request`, which they edit, and decides.
    pub fn decide(
        snapshot: &Snapshot,
        frontend: Id<Frontend>,
        client: &Client,
        request: &mut Request,
        arrival: impl Into<Arrival>,
        scratch: &mut Scratch,
    ) -> Decided<Self> {
        let Arrival { now, received, handshake, idle, head } = arrival.into();
        request.remember_host();
        scratch.arena.reset();
        scratch.vars.clear();
        scratch.captured.clear();
        if snapshot.keeps_sessions() {
            client.session();
        }
        let mut plan = Self {
            frontend,
            backend: None,
            now,
            started: received,
            vars: std::mem::take(&mut scratch.vars),
            notes: Notes {
                progress: Progress { handshake, idle, head, ..Progress::default() },
                captured: std::mem::take(&mut scratch.captured),
                trace: scratch.trace.clone(),
                ..Notes::default()
            },
            hit: None,
            unlogged: false,
            route: Route::Pass(Bypass::NoRule),
        };
        plan.notes.tracks = Self::tracks_of_connection(client);
        if let Some(frontend) = snapshot.frontend(frontend) {
            plan.notes.captured.request(&frontend.captures, &request.fields);
        }
        plan.go_on(snapshot, client, request, &scratch.arena, (Step::Content, 0))
    }

    /// Goes on with a decision, now that there is more of the body in `request`.
    pub fn resume(
        self,
        pause: Pause,
        snapshot: &Snapshot,
        client: &Client,
        request: &mut Request,
        scratch: &mut Scratch,
    ) -> Decided<Self> {
        self.go_on(snapshot, client, request, &scratch.arena, (pause.step, pause.rule))
    }

    fn go_on(
        mut self,
        snapshot: &Snapshot,
        client: &Client,
        request: &mut Request,
        arena: &Bump,
        from: (Step, usize),
    ) -> Decided<Self> {
        let Some(frontend) = snapshot.frontend(self.frontend) else {
            self.route = self.unavailable(snapshot);
            return Decided::Made(self);
        };
        let backend = self.backend.and_then(|id| snapshot.backend(id));
        let mut deciding = Deciding { snapshot, frontend, backend, client, request, arena, plan: &mut self };
        match deciding.steps(from) {
            Ok(route) => {
                self.route = route;
                Decided::Made(self)
            }
            Err(pause) => Decided::Paused(self, pause),
        }
    }

    /// Ends a decision whose request turns out to be none.
    pub fn refuse(mut self, snapshot: &Snapshot, refusal: &Refusal) -> Self {
        if refusal.status != 408 {
            self.count(Event::ClientError, self.now);
        }
        let page = fault::page(refusal.status, refusal.reason);
        let page = pages::instead_of(snapshot, self.frontend, self.backend, page);
        self.route =
            page.map_or(Route::Close { silent: false }, |page| Route::Answer(Arc::new(page), Outcome::Refused));
        self
    }

    /// No backend for the request: 503, as HAProxy answers.
    fn unavailable(&self, snapshot: &Snapshot) -> Route {
        let ours = fault::page(503, "no backend is for this request");
        match pages::instead_of(snapshot, self.frontend, None, ours) {
            Some(answer) => Route::Answer(Arc::new(answer), Outcome::Error),
            None => Route::Close { silent: false },
        }
    }
}

impl Step {
    const fn next(self) -> Self {
        match self {
            Self::Content => Self::Monitor,
            Self::Monitor => Self::Buffer,
            Self::Buffer => Self::Request,
            Self::Request => Self::Stats,
            Self::Stats => Self::Choose,
            Self::Choose => Self::BackendBuffer,
            Self::BackendBuffer => Self::BackendContent,
            Self::BackendContent => Self::BackendRequest,
            Self::BackendRequest => Self::BackendStats,
            Self::BackendStats | Self::Settle => Self::Settle,
        }
    }
}

impl Deciding<'_> {
    /// Takes one step after the other until there is a route, or something to wait for.
    fn steps(&mut self, (mut step, mut rule): (Step, usize)) -> Result<Route, Pause> {
        loop {
            let flow = match (step, self.backend) {
                (Step::Content, _) => self.rules(&self.frontend.content, rule),
                (Step::Monitor, _) => self.monitor(),
                (Step::Buffer, _) => self.buffer(self.frontend.buffers, rule),
                (Step::Request, _) => self.rules(&self.frontend.request, rule),
                (Step::Stats, _) => self.stats(self.frontend.stats.as_ref()),
                (Step::Choose, _) => self.choose(),
                (Step::BackendBuffer, Some(backend)) => self.buffer(backend.buffers, rule),
                (Step::BackendContent, Some(backend)) => self.rules(&backend.content, rule),
                (Step::BackendRequest, Some(backend)) => self.rules(&backend.request, rule),
                (Step::BackendStats, Some(backend)) => self.stats(backend.stats.as_ref()),
                (Step::Settle, Some(backend)) => return Ok(self.settle(backend)),
                (_, None) => return Ok(self.plan.unavailable(self.snapshot)),
            };
            match flow {
                Flow::Next => (step, rule) = (step.next(), 0),
                Flow::Wait(wait, rule) => return Err(Pause { wait, step, rule }),
                Flow::End(route) => return Ok(route),
            }
        }
    }

    /// Runs one rule set from its rule at `from` on.
    fn rules(&mut self, rules: &RuleSet, from: usize) -> Flow {
        if rules.is_empty() {
            return Flow::Next;
        }
        let verdict = self.with_txn(|txn| rules.resume(txn, from));
        self.plan.notes.progress.decided = !matches!(verdict, Verdict::Continue | Verdict::Wait { .. });
        Flow::End(match verdict {
            Verdict::Continue => return Flow::Next,
            Verdict::Wait { wait, next } => return Flow::Wait(wait, next),
            Verdict::Deny(given) => {
                self.plan.count(Event::ClientError, self.plan.now);
                self.answered(given, Outcome::Refused)
            }
            Verdict::Tarpit(given) => {
                self.plan.count(Event::ClientError, self.plan.now);
                let answer = pages::given(self.snapshot, self.plan, given).map(Arc::new);
                Route::Tarpit { answer, time: self.tarpit_time() }
            }
            Verdict::Close { silent } => Route::Close { silent },
            Verdict::Answer(given) => self.answered(given, Outcome::Answered),
            Verdict::Purge { soft } => Route::Purge { soft },
        })
    }

    /// Waits once for the body, where the proxy at hand says so (`rule` is 0 before).
    fn buffer(&self, buffers: bool, rule: usize) -> Flow {
        let wait = BodyWait { time: self.frontend.timeouts.http_request, at_least: None };
        if buffers && rule == 0 && !wait.is_met(self.request) { Flow::Wait(wait, 1) } else { Flow::Next }
    }

    /// Counts the request, and answers one that asks whether the gateway is at work (HAProxy manual §4.2
    /// `monitor-uri`).
    fn monitor(&mut self) -> Flow {
        self.plan.count(Event::Request, self.plan.now);
        let asked = self.frontend.monitor.as_ref().filter(|monitor| monitor.is_asked(self.request));
        let Some(monitor) = asked else { return Flow::Next };
        let fails = self.with_txn(|txn| monitor.fail.iter().any(|cond| cond.holds(txn)));
        self.plan.unlogged = true;
        let status = if fails { 503 } else { 200 };
        Flow::End(self.answered(Given::Page { status, challenge: None }, Outcome::Answered))
    }

    /// Shows a page of statistics to those who may see it.
    fn stats(&mut self, page: Option<&StatsPage>) -> Flow {
        let Some(page) = page.filter(|page| page.is_asked(self.request)) else { return Flow::Next };
        match self.rules(&page.rules, 0) {
            Flow::Next => {}
            end => return end,
        }
        if let Some((users, challenge)) = &page.users
            && self.with_txn(|txn| auth::user_of(users, txn).is_none())
        {
            self.plan.count(Event::ClientError, self.plan.now);
            let given = Given::Page { status: 401, challenge: Some(challenge.clone()) };
            return Flow::End(self.answered(given, Outcome::Refused));
        }
        Flow::End(Route::Answer(Arc::new(stats::answer(self.snapshot, page, self.request)), Outcome::Answered))
    }

    /// Takes `use_backend` in order, then `default_backend`.
    fn choose(&mut self) -> Flow {
        self.plan.backend = match self.frontend.switches.as_slice() {
            [] => self.frontend.default_backend,
            switches => self.switched(switches).or(self.frontend.default_backend),
        };
        self.backend = self.plan.backend.and_then(|id| self.snapshot.backend(id));
        let state = self.plan.backend.and_then(|id| self.snapshot.backend_state(id));
        if let Some(state) = state {
            state.metrics.entered.add(1);
            state.metrics.rate.count(self.plan.now.as_millis());
        }
        // What response rules may track: the plan is copied before they run, and its copies share it.
        let of_frontend = self.snapshot.frontend_state(self.plan.frontend);
        if of_frontend.is_some_and(|state| state.tracks_responses) || state.is_some_and(|state| state.tracks_responses)
        {
            self.plan.expect_tracks(self.client);
        }
        Flow::Next
    }

    fn switched(&mut self, switches: &[Switch]) -> Option<Id<Backend>> {
        let snapshot = self.snapshot;
        self.with_txn(|txn| {
            let holds = |switch: &&Switch| {
                let holds = switch.cond.as_ref().is_none_or(|cond| cond.holds(txn));
                if let Some(trace) = &txn.notes.trace {
                    trace.tried(Some(switch.place), if holds { Tri::True } else { Tri::False });
                }
                holds
            };
            // The first that holds decides: a name that no backend has leads to the default one, as in HAProxy.
            match &switches.iter().find(holds)?.target {
                SwitchTarget::Backend(id) => Some(*id),
                SwitchTarget::Named(format) => {
                    let name = format.text_in(txn);
                    snapshot.backend_named(std::str::from_utf8(name).ok()?)
                }
            }
        })
    }

    /// The request as a server gets it, and what caching rules say of it.
    fn settle(&mut self, backend: &Backend) -> Route {
        let frontend = self.frontend;
        self.plan.notes.progress.decided = true;
        self.plan.notes.captured.request_cookie(&frontend.captures, &self.request.fields);
        if frontend.unique_id_header.is_some() {
            // Whoever fetches for it gets a copy of the plan: all of them have one id.
            self.plan.unique_id(self.snapshot, self.client, self.request, self.arena);
        }
        // From here on the request is the one that a server gets: keys and `Vary` read it so. What is new with each
        // request is no part of it (see `forward`).
        forward::add_forwarded_for(frontend, backend, self.client, &mut self.request.fields);
        if let Some(bypass) = never_cached(self.request) {
            return Route::Pass(bypass);
        }
        let candidates = self.candidates([&frontend.cache_rules, &backend.cache_rules]);
        for rule in candidates.iter().filter_map(|id| self.snapshot.cache_rule(*id)) {
            rule.rewrites.iter().for_each(|rewrite| rewrite.apply(self.request));
        }
        if candidates.is_empty() { Route::Pass(Bypass::NoRule) } else { Route::Fetch(candidates) }
    }

    /// The enabled rules whose request part is not false, up to the first that is decided.
    fn candidates(&mut self, rules: [&[Id<CacheRule>]; 2]) -> Candidates {
        let (snapshot, mut candidates) = (self.snapshot, Candidates::new());
        self.with_txn(|txn| {
            for &id in rules.into_iter().flatten() {
                let Some(rule) = snapshot.cache_rule(id) else { continue };
                let outcome = rule.cond.as_ref().map_or(Tri::True, |cond| cond.so_far(txn));
                if let Some(trace) = &txn.notes.trace {
                    trace.tried(Some(rule.place), outcome);
                }
                match outcome {
                    Tri::False => {}
                    Tri::Unknown => candidates.push(id),
                    Tri::True => {
                        candidates.push(id);
                        return;
                    }
                }
            }
        });
        candidates
    }

    fn answered(&self, given: Given, outcome: Outcome) -> Route {
        match pages::given(self.snapshot, self.plan, given) {
            Some(answer) => Route::Answer(Arc::new(answer), outcome),
            None => Route::Close { silent: false },
        }
    }

    fn tarpit_time(&self) -> Duration {
        self.backend.map_or(self.frontend.tarpit, |backend| backend.tarpit)
    }

    fn with_txn<T>(&mut self, read: impl FnOnce(&mut Txn<'_>) -> T) -> T {
        self.plan.with_txn(self.snapshot, self.client, self.request, self.arena, read)
    }
}

/// What no caching rule can change (CACHE rules: GET and HEAD without a body).
fn never_cached(request: &Request) -> Option<Bypass> {
    if !request.is_get_or_head() {
        return Some(Bypass::Method);
    }
    if request.framing != Framing::None {
        return Some(Bypass::Body);
    }
    if request.fields.has("upgrade") {
        return Some(Bypass::Upgrade);
    }
    if request.fields.has("if-match") || request.fields.has("if-unmodified-since") {
        return Some(Bypass::Precondition);
    }
    None
}
