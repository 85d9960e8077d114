//! What rules decided about a request, written down for everything that comes after.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bumpalo::Bump;
use smallvec::SmallVec;

use super::{snapshot::Snapshot, world::World};
use crate::{
    config::{Backend, CacheRule, Frontend, Id},
    message::Request,
    metrics::Outcome,
    rule::{
        Answer, Client, Notes, Trace, Txn, Vars,
        capture::Captured,
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

    /// Makes room for what is tracked later.
    pub fn expect_tracks(&mut self, client: &Client) {
        let session = || client.known_session().cloned();
        self.notes.tracks.get_or_insert_with(|| Arc::new(Tracks::new(session())));
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
