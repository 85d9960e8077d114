//! One loaded configuration with everything it needs at run time, immutable, swapped as a whole.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use arc_swap::ArcSwap;

use crate::{
    cache::{Store, store::Limits},
    config::{Backend, Bind, CacheRule, Config, Frontend, Id, Server},
    gateway::{
        clock, entrance,
        log::{Outlet, Outlets},
        tls::TlsAcceptor,
        world::Process,
    },
    metrics::{BackendMetrics, FrontendMetrics, Metrics, RequestMetrics},
    ops::Ops,
    rule::{RuleSet, Table, table::Spec},
};

/// A loaded configuration. A request keeps the one it began with to its end.
#[derive(Debug)]
pub struct Snapshot {
    /// Counts loads; a connection compares it to know whether its snapshot is still the current one.
    pub generation: u64,
    /// What the files say.
    pub config: Config,
    /// What is the same for every snapshot.
    pub process: Arc<Process>,
    frontends: Vec<FrontendState>,
    backends: Vec<BackendState>,
    stores: Vec<Arc<Store>>,
    tables: Vec<Arc<Table>>,
    backend_names: HashMap<String, Id<Backend>>,
    keeps_sessions: bool,
}

/// What a frontend needs at run time beside its configuration.
#[derive(Debug)]
pub struct FrontendState {
    /// Its counters.
    pub metrics: Arc<FrontendMetrics>,
    /// Whether its response rules read the response alone.
    pub reads_only_response: bool,
    /// Whether its response rules track exchanges.
    pub tracks_responses: bool,
    /// Whether its response rules may close the connection, answer in the place of the server, or take the body away.
    pub ends_responses: bool,
    /// Where its log lines go, in the order of its `log` lines.
    pub outlets: Vec<Outlet>,
    /// Log lines written under this configuration.
    pub logged: AtomicU64,
    /// One TLS acceptor a bind, in the order of the binds; `None`: clear text.
    pub acceptors: Vec<Option<TlsAcceptor>>,
    /// Counters of requests that no caching rule was for.
    unruled: Arc<RequestMetrics>,
    /// Counters by caching rule.
    ruled: Vec<Arc<RequestMetrics>>,
}

/// What a backend needs at run time beside its configuration.
#[derive(Debug)]
pub struct BackendState {
    /// Its counters.
    pub metrics: Arc<BackendMetrics>,
    /// Whether its response rules read the response alone.
    pub reads_only_response: bool,
    /// Whether its response rules track exchanges.
    pub tracks_responses: bool,
    /// Whether its response rules may close the connection, answer in the place of the server, or take the body away.
    pub ends_responses: bool,
    /// The turn of `balance roundrobin`.
    turn: AtomicUsize,
}

impl Snapshot {
    /// Builds what `config` needs. Stores and counters of the same name are found again, and so are tables of `last`, the
    /// snapshot before, whose keys and data are the same.
    ///
    /// # Errors
    /// A certificate that cannot be used, with its file and the line that names it.
    fn new(
        generation: u64,
        config: Config,
        ops: &Ops,
        process: Arc<Process>,
        last: Option<&Self>,
    ) -> Result<Self, String> {
        if config.frontends.iter().all(|frontend| frontend.binds.is_empty()) {
            return Err("there is nothing to listen on: no frontend with a bind".to_owned());
        }
        // What can fail comes first: the process gets no store and no series for a configuration that is refused.
        let acceptors: Vec<_> = config.frontends.iter().map(acceptors).collect::<Result<_, _>>()?;
        let metrics = ops.metrics();
        let with_acceptors = config.frontends.iter().zip(acceptors);
        let frontends = with_acceptors
            .map(|(frontend, acceptors)| {
                FrontendState::new(frontend, acceptors, &config.cache_rules, metrics, process.outlets())
            })
            .collect();
        let backends = config
            .backends
            .iter()
            .map(|backend| BackendState {
                metrics: metrics.backend(&backend.name),
                reads_only_response: read_only_response([&backend.response, &backend.after_response]),
                tracks_responses: backend.response.tracks(),
                ends_responses: !backend.response_content.is_empty()
                    || ends([&backend.response, &backend.after_response]),
                turn: AtomicUsize::new(0),
            })
            .collect();
        let stores = config.stores.iter().map(|store| ops.stores().open(&store.name, limits(store))).collect();
        let backend_names =
            config.backends.iter().enumerate().map(|(at, backend)| (backend.name.clone(), Id::new(at))).collect();
        let keeps_sessions = keeps_sessions(&config);
        let tables =
            config.tables.iter().map(|spec| last.and_then(|last| last.kept(spec)).unwrap_or_else(|| made(spec)));
        let tables = tables.collect();
        Ok(Self { generation, process, frontends, backends, stores, tables, backend_names, keeps_sessions, config })
    }

    /// The table of a spec's name, when its entries can stay.
    fn kept(&self, spec: &Spec) -> Option<Arc<Table>> {
        self.tables.iter().find(|table| table.spec().name == spec.name && table.spec().agrees(spec)).cloned()
    }

    /// The table at a place of the configuration's list.
    pub fn table(&self, place: usize) -> Option<&Arc<Table>> {
        self.tables.get(place)
    }

    /// Its tables.
    pub fn tables(&self) -> &[Arc<Table>] {
        &self.tables
    }

    /// Whether any rule keeps something for the connection of a client.
    pub const fn keeps_sessions(&self) -> bool {
        self.keeps_sessions
    }

    /// A frontend as configured.
    pub fn frontend(&self, id: Id<Frontend>) -> Option<&Frontend> {
        self.config.frontends.get(id.index())
    }

    /// A frontend at run time.
    pub fn frontend_state(&self, id: Id<Frontend>) -> Option<&FrontendState> {
        self.frontends.get(id.index())
    }

    /// Client connections of all frontends now.
    pub fn connections(&self) -> i64 {
        self.frontends.iter().map(|state| state.metrics.active.get()).sum()
    }

    /// A backend as configured.
    pub fn backend(&self, id: Id<Backend>) -> Option<&Backend> {
        self.config.backends.get(id.index())
    }

    /// The backend of this name; `None` when there is none.
    pub fn backend_named(&self, name: &str) -> Option<Id<Backend>> {
        self.backend_names.get(name).copied()
    }

    /// A backend at run time.
    pub fn backend_state(&self, id: Id<Backend>) -> Option<&BackendState> {
        self.backends.get(id.index())
    }

    /// A caching rule.
    pub fn cache_rule(&self, id: Id<CacheRule>) -> Option<&CacheRule> {
        self.config.cache_rules.get(id.index())
    }

    /// The store of a caching rule.
    pub fn store_of(&self, rule: &CacheRule) -> Option<&Arc<Store>> {
        self.stores.get(rule.store.index())
    }

    /// The server whose turn it is; `None` when the backend has none.
    pub fn pick(&self, id: Id<Backend>) -> Option<(usize, &Server)> {
        let servers = &self.backend(id)?.servers;
        let turn = match servers.len() {
            0 | 1 => 0,
            count => self.backend_state(id)?.turn.fetch_add(1, Ordering::Relaxed) % count,
        };
        Some((turn, servers.get(turn)?))
    }
}

impl FrontendState {
    fn new(
        frontend: &Frontend,
        acceptors: Vec<Option<TlsAcceptor>>,
        rules: &[CacheRule],
        metrics: &Metrics,
        outlets: &Outlets,
    ) -> Self {
        let loggers = frontend.log.loggers.iter();
        Self {
            metrics: metrics.frontend(&frontend.name),
            reads_only_response: read_only_response([&frontend.response, &frontend.after_response]),
            tracks_responses: frontend.response.tracks(),
            ends_responses: ends([&frontend.response, &frontend.after_response]),
            outlets: loggers.map(|logger| Outlet::new(outlets.number(&logger.target))).collect(),
            logged: AtomicU64::new(0),
            acceptors,
            unruled: metrics.requests(&frontend.name, "-"),
            ruled: rules.iter().map(|rule| metrics.requests(&frontend.name, &rule.name)).collect(),
        }
    }

    /// The counters of all requests, by what rule was for them.
    pub fn every_request(&self) -> impl Iterator<Item = &RequestMetrics> {
        self.ruled.iter().map(|requests| &**requests).chain([&*self.unruled])
    }

    /// The counters of requests that `rule` was for; of those that no rule was for when `None`.
    pub fn requests(&self, rule: Option<Id<CacheRule>>) -> &RequestMetrics {
        rule.and_then(|rule| self.ruled.get(rule.index())).unwrap_or(&self.unruled)
    }
}

/// One for each bind, in their order.
fn acceptors(frontend: &Frontend) -> Result<Vec<Option<TlsAcceptor>>, String> {
    let load = |bind: &Bind| bind.tls.as_ref().map(|tls| TlsAcceptor::load(tls, &bind.place)).transpose();
    frontend.binds.iter().map(load).collect()
}

fn keeps_sessions(config: &Config) -> bool {
    let of_frontend = |frontend: &Frontend| {
        let Frontend { connection, session, content, request, response, after_response, .. } = frontend;
        [connection, session, content, request, response, after_response].into_iter().any(RuleSet::keeps_session)
    };
    let of_backend = |backend: &Backend| {
        let Backend { content, request, response_content, response, after_response, .. } = backend;
        [content, request, response_content, response, after_response].into_iter().any(RuleSet::keeps_session)
    };
    config.frontends.iter().any(of_frontend) || config.backends.iter().any(of_backend)
}

fn made(spec: &Spec) -> Arc<Table> {
    Arc::new(Table::new(spec.clone()))
}

fn ends(sets: [&RuleSet; 2]) -> bool {
    sets.iter().any(|set| set.answers())
}

fn read_only_response(sets: [&RuleSet; 2]) -> bool {
    sets.iter().all(|set| set.reads_only_response())
}

fn limits(store: &crate::config::Store) -> Limits {
    Limits { memory: store.memory, max_object_size: store.max_object_size, max_variants: store.max_variants }
}

/// What the whole process shares: the current snapshot, and what outlives snapshots.
#[derive(Debug)]
pub struct Shared {
    current: ArcSwap<Snapshot>,
    generation: AtomicU64,
    process: Arc<Process>,
    ops: Arc<Ops>,
}

impl Shared {
    /// Starts with `config`.
    ///
    /// # Errors
    /// As [`Shared::prepare`].
    pub fn new(config: Config, ops: Arc<Ops>) -> Result<Arc<Self>, String> {
        let process = Arc::<Process>::default();
        let first = Snapshot::new(1, config, &ops, process.clone(), None)?;
        entrance::set_process_variables(&first);
        Ok(Arc::new(Self { current: ArcSwap::from_pointee(first), generation: AtomicU64::new(1), process, ops }))
    }

    /// Builds a snapshot of `config` that [`Shared::install`] can make the current one.
    ///
    /// # Errors
    /// What keeps the configuration from running, with its place; nothing has changed then.
    pub fn prepare(&self, config: Config) -> Result<Snapshot, String> {
        Snapshot::new(self.generation() + 1, config, &self.ops, self.process.clone(), Some(&self.snapshot()))
    }

    /// Makes `snapshot` the one that new requests run under, and its limits those of the stores, which let go of
    /// what earlier ones kept beside their objects.
    pub fn install(&self, snapshot: Snapshot) {
        for (store, configured) in snapshot.stores.iter().zip(&snapshot.config.stores) {
            store.set_limits(limits(configured));
        }
        self.take_over_tables(&snapshot);
        entrance::set_process_variables(&snapshot);
        let generation = snapshot.generation;
        let stores = snapshot.stores.clone();
        self.current.store(Arc::new(snapshot));
        self.generation.store(generation, Ordering::Release);
        stores.iter().for_each(|store| store.forget_delivered(generation));
    }

    /// Says which tables keep their entries, and gives those their new limits.
    fn take_over_tables(&self, next: &Snapshot) {
        for (table, spec) in next.tables.iter().zip(&next.config.tables) {
            table.set_limits(spec);
        }
        let now = clock::now().as_millis();
        for table in self.snapshot().tables() {
            let (name, (entries, _)) = (&table.spec().name, table.fill(now));
            if next.tables.iter().any(|other| Arc::ptr_eq(other, table)) {
                tracing::info!("table {name} keeps its {entries} entries");
            } else {
                let gone = !next.config.tables.iter().any(|spec| spec.name == *name);
                let why = if gone { "is gone" } else { "has other keys or data" };
                tracing::info!("table {name} {why}: its {entries} entries are forgotten");
            }
        }
    }

    /// The current snapshot.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// The current snapshot's number; compare it with one that is held.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// What is the same for every request.
    pub const fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// Stores, counters and what an operator can do with them.
    pub fn ops(&self) -> &Arc<Ops> {
        &self.ops
    }
}
