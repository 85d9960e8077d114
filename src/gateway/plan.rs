//! Rules decide once: what becomes of a request, written down for everything that comes after.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bumpalo::Bump;
use smallvec::SmallVec;

use super::{fault, forward, pages, snapshot::Snapshot, world::World};
use crate::{
    config::{Backend, CacheRule, Frontend, Id, Switch, SwitchTarget},
    message::{Framing, Request},
    metrics::Outcome,
    rule::{
        Answer, Client, Notes, RuleSet, Trace, Tri, Txn, Vars, Verdict,
        action::answer::Given,
        capture::Captured,
        progress::Progress,
        track::{Event, Tracks},
    },
    time::Timestamp,
};

/// What becomes of a request. Cheap to clone; travels with the request to its end.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where the request came in.
    pub frontend: Id<Frontend>,
    /// The backend chosen; `None` when it was decided before one was.
    pub backend: Option<Id<Backend>>,
    /// When the request was decided, by the clock on the wall.
    pub now: Timestamp,
    /// When the request was decided, by the clock that only goes forward.
    pub started: Instant,
    /// Variables that rules have set.
    pub vars: Vars,
    /// What rules have noted.
    pub notes: Notes,
    /// The caching rule whose store has the response; `None` when the response comes from elsewhere.
    pub hit: Option<Id<CacheRule>>,
    /// Whether it leaves no line in the log (`monitor-uri`).
    pub unlogged: bool,
    /// The decision.
    pub route: Route,
}

/// The decision about a request.
#[derive(Clone, Debug)]
pub enum Route {
    /// A rule answers it, or it is refused.
    Answer(Arc<Answer>, Outcome),
    /// A rule refuses it, and its client waits for that.
    Tarpit {
        /// What it gets then; `None`: the end of its connection.
        answer: Option<Arc<Answer>>,
        /// How long it waits.
        time: Duration,
    },
    /// Its URL is purged.
    Purge {
        /// Leaves stale objects.
        soft: bool,
    },
    /// It is looked up under these rules, in order, and fetched for them on a miss.
    Fetch(Candidates),
    /// It goes to a server without the cache; the word says why.
    Pass(Bypass),
    /// Its connection is closed without an answer.
    Close {
        /// Whether the client is not to hear of it.
        silent: bool,
    },
}

/// Caching rules a request may be answered or stored by, in order.
pub type Candidates = SmallVec<[Id<CacheRule>; 4]>;

/// Why a request passes the cache by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bypass {
    /// No caching rule is for it.
    NoRule,
    /// Its method is neither GET nor HEAD.
    Method,
    /// It has a body, which a key does not hold.
    Body,
    /// It asks for another protocol.
    Upgrade,
    /// It asks for a part (`Range`) of something that is not stored.
    Range,
    /// It has a precondition that only the origin can judge (RFC 9111 §4.3.2).
    Precondition,
    /// The response it waited for is not for it; the word is the policy's.
    NotShared(&'static str),
}

impl Bypass {
    /// The word for `Cache-Status`, logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoRule => "no-rule",
            Self::Method => "method",
            Self::Body => "body",
            Self::Upgrade => "upgrade",
            Self::Range => "range",
            Self::Precondition => "precondition",
            Self::NotShared(reason) => reason,
        }
    }
}

/// When a request came.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When its head was complete, by the clock on the wall.
    pub now: Timestamp,
    /// The same, by the clock that only goes forward.
    pub received: Instant,
    /// Milliseconds of the connection's handshake; 0 for all but its first request.
    pub handshake: u32,
    /// Milliseconds without a request before its first byte.
    pub idle: u32,
    /// Milliseconds from its first byte to the end of its head.
    pub head: u32,
}

impl From<(Timestamp, Instant)> for Arrival {
    fn from((now, received): (Timestamp, Instant)) -> Self {
        Self { now, received, handshake: 0, idle: 0, head: 0 }
    }
}

/// Room that a connection keeps for its requests' decisions.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Samples that had to be made.
    pub arena: Bump,
    /// Room for the variables; in the plan while it is needed there.
    pub vars: Vars,
    /// Room for what the frontend captures; in the plan while it is needed there.
    pub captured: Captured,
    /// The cache key.
    pub key: Vec<u8>,
    /// The variant key.
    pub variant: Vec<u8>,
    /// Who asks why the requests are decided as they are; `None`: nobody.
    pub trace: Option<Arc<Trace>>,
}

impl Scratch {
    /// Takes back the room that a decision held, when nothing reads it any more.
    pub fn take_back(&mut self, plan: &mut Plan) {
        self.vars = std::mem::take(&mut plan.vars);
        self.captured = std::mem::take(&mut plan.notes.captured);
    }
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
    ) -> Self {
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
        plan.route = plan.route(snapshot, client, request, &scratch.arena);
        plan
    }

    /// What a request of this connection is tracked by before its rules have run.
    pub fn tracks_of_connection(client: &Client) -> Option<Arc<Tracks>> {
        let session = client.known_session().filter(|session| !session.tracks.is_empty())?;
        Some(Arc::new(Tracks::new(Some(session.clone()))))
    }

    /// Counts for what the request is tracked by.
    pub fn count(&self, event: Event, now: Timestamp) {
        if let Some(tracks) = &self.notes.tracks {
            tracks.count(event, now.as_millis());
        }
    }

    fn route(&mut self, snapshot: &Snapshot, client: &Client, request: &mut Request, arena: &Bump) -> Route {
        let Some(frontend) = snapshot.frontend(self.frontend) else { return self.unavailable(snapshot) };
        self.notes.captured.request(&frontend.captures, &request.fields);
        if let Some(route) = self.ended_by(snapshot, &frontend.content, client, request, arena) {
            return route;
        }
        self.count(Event::Request, self.now);
        if let Some(route) = self.monitored(snapshot, frontend, client, request, arena) {
            return route;
        }
        if let Some(route) = self.ended_by(snapshot, &frontend.request, client, request, arena) {
            return route;
        }
        self.backend = self.choose(snapshot, frontend, client, request, arena);
        let Some(backend) = self.backend.and_then(|id| snapshot.backend(id)) else {
            return self.unavailable(snapshot);
        };
        if let Some(state) = self.backend.and_then(|id| snapshot.backend_state(id)) {
            state.metrics.entered.add(1);
            state.metrics.rate.count(self.now.as_millis());
        }
        self.expect_tracks(snapshot, client);
        if let Some(route) = self.ended_by(snapshot, &backend.content, client, request, arena) {
            return route;
        }
        if let Some(route) = self.ended_by(snapshot, &backend.request, client, request, arena) {
            return route;
        }
        self.notes.progress.decided = true;
        self.notes.captured.request_cookie(&frontend.captures, &request.fields);
        if frontend.unique_id_header.is_some() {
            // Whoever fetches for it gets a copy of the plan: all of them have one id.
            self.unique_id(snapshot, client, request, arena);
        }
        // From here on the request is the one that a server gets: keys and `Vary` read it so. What is new with each
        // request is no part of it (see `forward`).
        forward::add_forwarded_for(frontend, backend, client, &mut request.fields);
        if let Some(bypass) = never_cached(request) {
            return Route::Pass(bypass);
        }
        let candidates =
            self.candidates(snapshot, [&frontend.cache_rules, &backend.cache_rules], client, request, arena);
        for rule in candidates.iter().filter_map(|id| snapshot.cache_rule(*id)) {
            rule.rewrites.iter().for_each(|rewrite| rewrite.apply(request));
        }
        if candidates.is_empty() { Route::Pass(Bypass::NoRule) } else { Route::Fetch(candidates) }
    }

    /// Makes room for what response rules may track: the plan is copied before they run, and its copies share it.
    fn expect_tracks(&mut self, snapshot: &Snapshot, client: &Client) {
        let in_frontend = snapshot.frontend_state(self.frontend).is_some_and(|state| state.tracks_responses);
        let in_backend =
            self.backend.and_then(|id| snapshot.backend_state(id)).is_some_and(|state| state.tracks_responses);
        if in_frontend || in_backend {
            let session = || client.known_session().cloned();
            self.notes.tracks.get_or_insert_with(|| Arc::new(Tracks::new(session())));
        }
    }

    /// Runs one rule set; the route when that ends the request.
    fn ended_by(
        &mut self,
        snapshot: &Snapshot,
        rules: &RuleSet,
        client: &Client,
        request: &mut Request,
        arena: &Bump,
    ) -> Option<Route> {
        if rules.is_empty() {
            return None;
        }
        let verdict = self.with_txn(snapshot, client, request, arena, |txn| rules.run(txn));
        self.notes.progress.decided = !matches!(verdict, Verdict::Continue);
        match verdict {
            Verdict::Continue => None,
            Verdict::Deny(given) => {
                self.count(Event::ClientError, self.now);
                Some(self.answered(snapshot, given, Outcome::Refused))
            }
            Verdict::Tarpit(given) => {
                self.count(Event::ClientError, self.now);
                let answer = pages::given(snapshot, self, given).map(Arc::new);
                Some(Route::Tarpit { answer, time: self.tarpit_time(snapshot) })
            }
            Verdict::Close { silent } => Some(Route::Close { silent }),
            Verdict::Answer(given) => Some(self.answered(snapshot, given, Outcome::Answered)),
            Verdict::Purge { soft } => Some(Route::Purge { soft }),
        }
    }

    /// The answer to a request that asks whether the gateway is at work (HAProxy manual §4.2 `monitor-uri`).
    fn monitored(
        &mut self,
        snapshot: &Snapshot,
        frontend: &Frontend,
        client: &Client,
        request: &mut Request,
        arena: &Bump,
    ) -> Option<Route> {
        let monitor = frontend.monitor.as_ref().filter(|monitor| monitor.is_asked(request))?;
        let fails =
            self.with_txn(snapshot, client, request, arena, |txn| monitor.fail.iter().any(|cond| cond.holds(txn)));
        self.unlogged = true;
        let status = if fails { 503 } else { 200 };
        Some(self.answered(snapshot, Given::Page { status, challenge: None }, Outcome::Answered))
    }

    fn answered(&self, snapshot: &Snapshot, given: Given, outcome: Outcome) -> Route {
        match pages::given(snapshot, self, given) {
            Some(answer) => Route::Answer(Arc::new(answer), outcome),
            None => Route::Close { silent: false },
        }
    }

    /// No backend for the request: 503, as HAProxy answers.
    fn unavailable(&self, snapshot: &Snapshot) -> Route {
        let ours = fault::page(503, "no backend is for this request");
        match pages::instead_of(snapshot, self.frontend, None, ours) {
            Some(answer) => Route::Answer(Arc::new(answer), Outcome::Error),
            None => Route::Close { silent: false },
        }
    }

    fn tarpit_time(&self, snapshot: &Snapshot) -> Duration {
        let of_frontend = || snapshot.frontend(self.frontend).map(|frontend| frontend.tarpit);
        self.backend
            .and_then(|id| snapshot.backend(id))
            .map(|backend| backend.tarpit)
            .or_else(of_frontend)
            .unwrap_or_default()
    }

    /// `use_backend` in order, then `default_backend`.
    fn choose(
        &mut self,
        snapshot: &Snapshot,
        frontend: &Frontend,
        client: &Client,
        request: &mut Request,
        arena: &Bump,
    ) -> Option<Id<Backend>> {
        if frontend.switches.is_empty() {
            return frontend.default_backend;
        }
        self.with_txn(snapshot, client, request, arena, |txn| {
            let holds = |switch: &&Switch| {
                let holds = switch.cond.as_ref().is_none_or(|cond| cond.holds(txn));
                if let Some(trace) = &txn.notes.trace {
                    trace.tried(Some(switch.place), if holds { Tri::True } else { Tri::False });
                }
                holds
            };
            // The first that holds decides: a name that no backend has leads to the default one, as in HAProxy.
            match &frontend.switches.iter().find(holds)?.target {
                SwitchTarget::Backend(id) => Some(*id),
                SwitchTarget::Named(format) => {
                    let name = format.text_in(txn);
                    snapshot.backend_named(std::str::from_utf8(name).ok()?)
                }
            }
        })
        .or(frontend.default_backend)
    }

    /// The enabled rules whose request part is not false, up to the first that is decided.
    fn candidates(
        &mut self,
        snapshot: &Snapshot,
        rules: [&[Id<CacheRule>]; 2],
        client: &Client,
        request: &mut Request,
        arena: &Bump,
    ) -> Candidates {
        let mut candidates = Candidates::new();
        self.with_txn(snapshot, client, request, arena, |txn| {
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

    /// Runs `read` on this exchange as rules see it at request time.
    pub fn with_txn<T>(
        &mut self,
        snapshot: &Snapshot,
        client: &Client,
        request: &mut Request,
        arena: &Bump,
        read: impl FnOnce(&mut Txn<'_>) -> T,
    ) -> T {
        let env = self.world(snapshot);
        let (vars, notes) = (&mut self.vars, &mut self.notes);
        read(&mut Txn { client, request, response: None, vars, notes, env: &env, arena })
    }

    /// Runs `read` on this exchange as rules see it once there is a response.
    pub fn with_response<T>(
        &mut self,
        snapshot: &Snapshot,
        client: &Client,
        request: &mut Request,
        response: &mut crate::message::Response,
        arena: &Bump,
        read: impl FnOnce(&mut Txn<'_>) -> T,
    ) -> T {
        let env = self.world(snapshot);
        let (vars, notes) = (&mut self.vars, &mut self.notes);
        read(&mut Txn { client, request, response: Some(response), vars, notes, env: &env, arena })
    }

    fn world<'s>(&self, snapshot: &'s Snapshot) -> World<'s> {
        let (frontend, backend, hit, server) = (self.frontend, self.backend, self.hit, self.notes.progress.server);
        World { now: self.now, snapshot, frontend, backend, hit, server }
    }

    /// The request's unique id, made when it is first asked for; `None` when the frontend makes none.
    pub fn unique_id(
        &mut self,
        snapshot: &Snapshot,
        client: &Client,
        request: &mut Request,
        arena: &Bump,
    ) -> Option<&[u8]> {
        snapshot.frontend(self.frontend)?.unique_id.as_ref()?;
        self.with_txn(snapshot, client, request, arena, |txn| txn.unique_id().map(drop));
        self.notes.unique_id.get().map(|id| &**id)
    }

    /// The caching rule that a request without a better answer is counted under.
    pub fn rule(&self) -> Option<Id<CacheRule>> {
        match &self.route {
            Route::Fetch(candidates) => candidates.first().copied(),
            _ => None,
        }
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
