//! What rules may ask of the running gateway.

use std::{
    net::{IpAddr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::{log::Outlets, snapshot::Snapshot, worker};
use crate::{
    config::{Backend, CacheRule, Frontend, Id, Server, ServerAddress},
    metrics::{BackendMetrics, FrontendMetrics},
    rule::{Env, Fact, Format, Sample, Table, capture::Captures, fact::Timeout, vars::SharedVars},
    time::Timestamp,
};

/// The gateway as the rules of one request see it.
pub struct World<'s> {
    /// The time that all of them see.
    pub now: Timestamp,
    /// The configuration the request runs under.
    pub snapshot: &'s Snapshot,
    /// Where it came in.
    pub frontend: Id<Frontend>,
    /// The backend chosen; `None` before one is.
    pub backend: Option<Id<Backend>>,
    /// The caching rule whose store has the response; `None` when the response comes from elsewhere.
    pub hit: Option<Id<CacheRule>>,
    /// The server, by its place in its backend; `None` before one is chosen.
    pub server: Option<u32>,
}

/// What is the same for every request of the process.
#[derive(Debug)]
pub struct Process {
    started: Instant,
    hostname: String,
    stopping: AtomicBool,
    /// Requests that have asked for their number.
    requests: AtomicU64,
    /// Variables of the scope `proc`.
    vars: SharedVars,
    /// Where log lines go.
    outlets: Arc<Outlets>,
}

impl Default for Process {
    fn default() -> Self {
        let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim_end().to_owned();
        Self {
            started: Instant::now(),
            hostname,
            stopping: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            vars: SharedVars::default(),
            outlets: Arc::default(),
        }
    }
}

impl Process {
    /// Where log lines go.
    pub const fn outlets(&self) -> &Arc<Outlets> {
        &self.outlets
    }

    /// When it began.
    pub const fn started(&self) -> Instant {
        self.started
    }

    /// The machine's name.
    pub fn hostname(&self) -> &str {
        &self.hostname
    }

    /// From now on, the gateway is about to end.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }
}

impl Env for World<'_> {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn random(&self) -> u64 {
        fastrand::u64(..)
    }

    fn table(&self, place: usize) -> Option<&Arc<Table>> {
        self.snapshot.table(place)
    }

    fn fact(&self, fact: Fact) -> Option<Sample<'_>> {
        let now = self.now.as_millis();
        Some(match fact {
            Fact::FrontendName => Sample::Str(self.own_frontend()?.name.as_bytes()),
            Fact::FrontendNumber => Sample::Int(self.own_frontend()?.number.into()),
            Fact::BackendName => Sample::Str(self.own_backend()?.name.as_bytes()),
            Fact::BackendNumber => Sample::Int(self.own_backend()?.number.into()),
            Fact::DefaultBackend => {
                let frontend = self.own_frontend().filter(|frontend| frontend.names_default)?;
                Sample::Str(self.snapshot.backend(frontend.default_backend?)?.name.as_bytes())
            }
            Fact::FrontendConnections(place) => Sample::Int(self.frontend(place)?.active.get()),
            Fact::FrontendSessionRate(place) => count(self.frontend(place)?.connection_rate.get(now)),
            Fact::FrontendRequestRate(place) => count(self.frontend(place)?.request_rate.get(now)),
            Fact::BackendConnections(place) => count(self.backend(place)?.active()),
            Fact::BackendSessionRate(place) => count(self.backend(place)?.rate.get(now)),
            Fact::OwnConnections => Sample::Int(self.snapshot.frontend_state(self.frontend)?.metrics.active.get()),
            Fact::OwnExchanges => count(self.snapshot.backend_state(self.backend?)?.metrics.active()),
            Fact::ServerName => Sample::Str(self.own_server()?.name.as_bytes()),
            Fact::ServerAddress => match self.own_server()?.address {
                ServerAddress::Tcp(address) => Sample::Ip(address.ip()),
                ServerAddress::Unix(_) => return None,
            },
            Fact::ServerPort => match self.own_server()?.address {
                ServerAddress::Tcp(address) => Sample::Int(address.port().into()),
                ServerAddress::Unix(_) => return None,
            },
            Fact::LogLines => count(self.snapshot.frontend_state(self.frontend)?.logged.load(Ordering::Relaxed)),
            Fact::NextNumber => count(self.snapshot.process.requests.fetch_add(1, Ordering::Relaxed) + 1),
            Fact::Connections => Sample::Int(self.snapshot.connections()),
            Fact::Timeout(timeout) => Sample::Int(self.timeout(timeout)?),
            Fact::CacheHit => Sample::Bool(self.hit.is_some()),
            Fact::CacheName => {
                let rule = self.snapshot.cache_rule(self.hit?)?;
                Sample::Str(self.snapshot.config.stores.get(rule.store.index())?.name.as_bytes())
            }
            Fact::FileName(file) => Sample::Str(self.snapshot.config.files.get(file as usize)?.as_bytes()),
            Fact::Hostname => Sample::Str(self.snapshot.process.hostname.as_bytes()),
            Fact::Process => Sample::Int(std::process::id().into()),
            Fact::Thread => count(worker::number() as u64),
            Fact::Stopping => Sample::Bool(self.snapshot.process.stopping.load(Ordering::Relaxed)),
            Fact::Uptime => count(self.snapshot.process.started.elapsed().as_secs()),
            Fact::IsLocal(address) => Sample::Bool(is_local(address)),
        })
    }

    fn process_vars(&self) -> Option<&SharedVars> {
        Some(&self.snapshot.process.vars)
    }

    fn captures(&self) -> Option<&Captures> {
        self.own_frontend().map(|frontend| &frontend.captures)
    }

    fn unique_id(&self) -> Option<&Format> {
        self.own_frontend()?.unique_id.as_ref()
    }
}

impl World<'_> {
    fn own_frontend(&self) -> Option<&Frontend> {
        self.snapshot.frontend(self.frontend)
    }

    fn own_backend(&self) -> Option<&Backend> {
        self.snapshot.backend(self.backend?)
    }

    fn own_server(&self) -> Option<&Server> {
        self.own_backend()?.servers.get(self.server? as usize)
    }

    /// The counters of the frontend at a place.
    fn frontend(&self, place: usize) -> Option<&FrontendMetrics> {
        self.snapshot.frontend_state(Id::new(place)).map(|state| &*state.metrics)
    }

    /// The counters of the backend at a place.
    fn backend(&self, place: usize) -> Option<&BackendMetrics> {
        self.snapshot.backend_state(Id::new(place)).map(|state| &*state.metrics)
    }

    /// A timeout in milliseconds; 0 when it never runs out.
    fn timeout(&self, timeout: Timeout) -> Option<i64> {
        let time = match timeout {
            Timeout::Client => self.own_frontend()?.timeouts.client,
            Timeout::Connect => self.own_backend()?.timeouts.connect,
            Timeout::Server => self.own_backend()?.timeouts.server,
            // The word is refused, so there is none.
            Timeout::Tunnel => self.own_backend().map(|_| Duration::ZERO)?,
        };
        i64::try_from(time.as_millis()).ok().map(|millis| if millis >= i32::MAX.into() { 0 } else { millis })
    }
}

fn count<'s>(value: u64) -> Sample<'s> {
    Sample::Int(i64::try_from(value).unwrap_or(i64::MAX))
}

/// Only an address of this machine can be bound.
fn is_local(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}
