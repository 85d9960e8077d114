//! What a checked configuration says: frontends, backends, stores, rules, each with its final value.
//! Defaults are applied, names are indices, nothing here can be wrong any more.

mod log;
mod stats;

use std::{
    borrow::Cow,
    fmt,
    hash::{Hash, Hasher},
    marker::PhantomData,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use crate::{
    message::Request,
    policy::{key::HostRule, keyed::Keyed, rewrite::Rewrite, terms::Terms},
    rule::{
        BindName, Cond, Expr, Format, RulePlace, RuleSet, VarId, action::answer::Pages, capture::Captures, table::Spec,
    },
};

pub use self::{
    log::{Log, LogHeader, LogSample, LogTarget, Logger},
    stats::StatsPage,
};

/// The place of a `T` in its table of a [`Config`].
pub struct Id<T>(u32, PhantomData<fn() -> T>);

impl<T> Id<T> {
    /// The id of the entry at `index`.
    pub fn new(index: usize) -> Self {
        Self(u32::try_from(index).unwrap_or(u32::MAX), PhantomData)
    }

    /// Where the entry stands.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl<T> Clone for Id<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Id<T> {}
impl<T> PartialEq for Id<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<T> Eq for Id<T> {}
impl<T> Hash for Id<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}
impl<T> fmt::Debug for Id<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// A whole configuration.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The paths of its files, as given.
    pub files: Vec<String>,
    /// Process-wide settings.
    pub global: Global,
    /// `frontend` sections and the front halves of `listen` sections, in file order.
    pub frontends: Vec<Frontend>,
    /// `backend` sections and the back halves of `listen` sections, in file order. The rules of a `listen`
    /// are those of its front half; when another frontend leads to it, a second backend of its name, at the
    /// end, carries them too.
    pub backends: Vec<Backend>,
    /// `cache` sections; when caching rules exist without one, the 64 MiB store `default`.
    pub stores: Vec<Store>,
    /// Tables of counters, in file order; rules refer to them.
    pub tables: Vec<Spec>,
    /// Every caching rule; frontends and backends refer to them. One that is inherited is there once for
    /// each heir, with one name and one place.
    pub cache_rules: Vec<CacheRule>,
    /// The admin listener; `None` when no `admin` section exists.
    pub admin: Option<Admin>,
}

/// Settings of the `global` section.
#[derive(Clone, Debug)]
pub struct Global {
    /// `nbthread`: worker threads; `None`: one a core.
    pub threads: Option<usize>,
    /// `maxconn`: client connections at a time over all frontends; `None`: half of the descriptors there are.
    pub maxconn: Option<usize>,
    /// `hard-stop-after`: how long a drain may last before connections are cut.
    pub hard_stop_after: Duration,
    /// `tune.front`: whether memory hits may be answered before the proxy engine. Off is for comparison.
    pub front: bool,
    /// Variables of the process that are set when the configuration is taken up, in order.
    pub set_vars: Vec<(VarId, SetVar)>,
    /// `tune.bufsize`: most bytes of a request's body that are read before the rules run.
    pub buffer: usize,
    /// `tune.misdirected`: 421 when Host and SNI name different hosts. Off by default.
    pub misdirected: bool,
}

impl Default for Global {
    fn default() -> Self {
        Self {
            threads: None,
            maxconn: None,
            hard_stop_after: Duration::from_secs(30),
            front: true,
            buffer: 16 << 10,
            set_vars: Vec::new(),
            misdirected: false,
        }
    }
}

/// What a variable of the process is set to.
#[derive(Clone, Debug)]
pub enum SetVar {
    /// `set-var NAME EXPRESSION`.
    To(Expr),
    /// `set-var-fmt NAME FORMAT`.
    Written(Format),
}

/// A place in a configuration file, for messages about things found wrong after loading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The file's path as given.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A listening side.
#[derive(Clone, Debug)]
pub struct Frontend {
    /// The section's name.
    pub name: String,
    /// `id`, or its place among all proxies from 1.
    pub number: u32,
    /// Where it listens.
    pub binds: Vec<Bind>,
    /// `maxconn`: client connections at a time; `None`: no limit of its own.
    pub maxconn: Option<usize>,
    /// `rate-limit sessions`: client connections that it takes in a second; `None`: no limit.
    pub rate_limit: Option<u64>,
    /// Timeouts towards clients.
    pub timeouts: ClientTimeouts,
    /// `option forwardfor`.
    pub forwardfor: Option<ForwardFor>,
    /// `tcp-request connection` rules.
    pub connection: RuleSet,
    /// `tcp-request session` rules.
    pub session: RuleSet,
    /// `tcp-request content` rules.
    pub content: RuleSet,
    /// `timeout tarpit`: how long a client waits for what a `tarpit` of this side answers.
    pub tarpit: Duration,
    /// `option http-buffer-request`: rules run when the body is there.
    pub buffers: bool,
    /// Its pages for the answers that are made here.
    pub pages: Pages,
    /// `stats`; `None`: there is no page of statistics.
    pub stats: Option<StatsPage>,
    /// `monitor-uri`; `None`: no request asks whether the gateway is at work.
    pub monitor: Option<Monitor>,
    /// `http-request` rules.
    pub request: RuleSet,
    /// `http-response` rules.
    pub response: RuleSet,
    /// `http-after-response` rules.
    pub after_response: RuleSet,
    /// `cache-response` rules.
    pub cache_response: RuleSet,
    /// `use_backend` lines, in order.
    pub switches: Vec<Switch>,
    /// `default_backend`, or the back half of a `listen`; `None`: 503 when no switch matches.
    pub default_backend: Option<Id<Backend>>,
    /// Whether `default_backend` is written down.
    pub names_default: bool,
    /// Its caching rules, in order.
    pub cache_rules: Vec<Id<CacheRule>>,
    /// `capture …`: what is kept of messages for the log.
    pub captures: Captures,
    /// `unique-id-format`; `None`: requests have no ids.
    pub unique_id: Option<Format>,
    /// `unique-id-header`: the field that tells servers the id; only with a format.
    pub unique_id_header: Option<String>,
    /// How requests are logged.
    pub log: Log,
}

/// `monitor-uri`: the request that asks whether the gateway is at work. It is answered before all rules, and not logged.
#[derive(Clone, Debug)]
pub struct Monitor {
    /// The target it has: path and query, or the whole of it when this does not begin with `/`.
    pub uri: Box<[u8]>,
    /// `monitor fail`: when one of these holds, the answer is 503.
    pub fail: Vec<Cond>,
}

impl Monitor {
    /// Whether `request`, which no rule has edited, is the one.
    pub fn is_asked(&self, request: &Request) -> bool {
        if !self.uri.starts_with(b"/") {
            return request.received_target() == &*self.uri;
        }
        let Some(rest) = self.uri.strip_prefix(request.path()) else { return false };
        match (rest.strip_prefix(b"?"), request.query()) {
            (Some(wanted), Some(query)) => wanted == query,
            (None, None) => rest.is_empty(),
            _ => false,
        }
    }
}

/// Timeouts towards clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientTimeouts {
    /// `timeout client`: silence while a body is read or a response written.
    pub client: Duration,
    /// `timeout http-request`: a whole head, from its first byte (from accept for the first one).
    pub http_request: Duration,
    /// `timeout http-keep-alive`: silence between requests.
    pub keep_alive: Duration,
}

impl Default for ClientTimeouts {
    fn default() -> Self {
        Self {
            client: Duration::from_secs(60),
            http_request: Duration::from_secs(10),
            keep_alive: Duration::from_secs(60),
        }
    }
}

/// `option forwardfor`: tells servers the client's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardFor {
    /// `header`: the field's name.
    pub header: String,
    /// `except`: networks whose clients get no field.
    pub except: Vec<(IpAddr, u8)>,
    /// `if-none`: only when the request has no such field.
    pub if_none: bool,
}

/// One `bind`.
#[derive(Clone, Debug)]
pub struct Bind {
    /// Where it listens.
    pub address: BindAddress,
    /// How rules call it.
    pub name: BindName,
    /// TLS; `None`: clear text.
    pub tls: Option<BindTls>,
    /// Where the line stands.
    pub place: Place,
}

/// A listening address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum BindAddress {
    /// A TCP address; port 0 lets the system choose.
    Tcp(SocketAddr),
    /// A unix socket's path.
    Unix(PathBuf),
}

impl fmt::Display for BindAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

/// `ssl …` of a bind. The files are read when the gateway builds its snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindTls {
    /// `crt`: PEM files or directories of them, in order; the first certificate is the default one.
    pub certificates: Vec<PathBuf>,
    /// `alpn`: protocols offered, in order.
    pub alpn: Vec<String>,
    /// `strict-sni`: no default certificate; an unknown name ends the handshake.
    pub strict_sni: bool,
}

/// One `use_backend`.
#[derive(Clone, Debug)]
pub struct Switch {
    /// `None`: always.
    pub cond: Option<Cond>,
    /// Where it leads.
    pub target: SwitchTarget,
    /// Where the line stands.
    pub place: RulePlace,
}

/// Where a `use_backend` leads.
#[derive(Clone, Debug)]
pub enum SwitchTarget {
    /// A backend.
    Backend(Id<Backend>),
    /// The backend whose name the format gives; the frontend's default one when there is none.
    Named(Format),
}

/// A serving side.
#[derive(Clone, Debug)]
pub struct Backend {
    /// The section's name.
    pub name: String,
    /// `id`, or its place among all proxies from 1.
    pub number: u32,
    /// Its servers, in order.
    pub servers: Vec<Server>,
    /// How one is chosen.
    pub balance: Balance,
    /// Timeouts towards servers.
    pub timeouts: ServerTimeouts,
    /// `option forwardfor`; a frontend's wins.
    pub forwardfor: Option<ForwardFor>,
    /// `tcp-request content` rules.
    pub content: RuleSet,
    /// `timeout tarpit`: how long a client waits for what a `tarpit` of this side answers.
    pub tarpit: Duration,
    /// `option http-buffer-request`: rules run when the body is there.
    pub buffers: bool,
    /// Its pages for the answers that are made here; they go before those of the frontend.
    pub pages: Pages,
    /// `stats`; `None`: there is no page of statistics.
    pub stats: Option<StatsPage>,
    /// `http-request` rules.
    pub request: RuleSet,
    /// `tcp-response content` rules.
    pub response_content: RuleSet,
    /// `http-response` rules.
    pub response: RuleSet,
    /// `http-after-response` rules.
    pub after_response: RuleSet,
    /// `cache-response` rules.
    pub cache_response: RuleSet,
    /// Its caching rules, in order.
    pub cache_rules: Vec<Id<CacheRule>>,
}

/// `balance`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Balance {
    /// Each server in turn.
    #[default]
    RoundRobin,
}

/// One `server`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: ServerAddress,
}

/// A server's address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ServerAddress {
    /// A TCP address, resolved at load.
    Tcp(SocketAddr),
    /// A unix socket's path.
    Unix(PathBuf),
}

/// Timeouts towards servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerTimeouts {
    /// `timeout connect`.
    pub connect: Duration,
    /// `timeout server`: silence of the server.
    pub server: Duration,
}

impl Default for ServerTimeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(5), server: Duration::from_secs(60) }
    }
}

/// A `cache` section: a store of responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// The section's name.
    pub name: String,
    /// `memory` / `total-max-size`: hard budget in bytes: bodies, heads, keys, index.
    pub memory: u64,
    /// `max-object-size`: largest body kept, in bytes.
    pub max_object_size: u64,
    /// `max-variants`: variants kept under one key.
    pub max_variants: usize,
}

/// One `cache-rule` or `nuster rule`.
#[derive(Clone, Debug)]
pub struct CacheRule {
    /// Its name, unique over the configuration.
    pub name: String,
    /// Which requests and responses it is for; `None`: all. Request and response samples may be mixed.
    pub cond: Option<Cond>,
    /// Where it stores.
    pub store: Id<Store>,
    /// What its key is made of.
    pub key: Vec<KeyPart>,
    /// What of a request the key holds.
    pub keyed: Keyed,
    /// `forward keyed`: a server gets nothing else of a request that may be stored.
    pub forward_keyed: bool,
    /// `strip`, `normalise`, `key query(…)`: what is done to a request that it may be for, in this order, before keys are
    /// made and a server sees it.
    pub rewrites: Vec<Rewrite>,
    /// What it asks of the caching policy.
    pub terms: Terms,
    /// `wait`: how long others wait for a fill under way; `None`: they don't.
    pub wait: Option<Duration>,
    /// `fill`: what a fill does when its last reader leaves.
    pub fill: FillMode,
    /// `tags`: where surrogate keys come from.
    pub tags: Vec<Expr>,
    /// A hash of what shapes stored objects (key, ignore, vary): an object of another one is no hit.
    pub fingerprint: u64,
    /// A hash of what the key is made of: rules with the same one make the same key of a request.
    pub key_print: u64,
    /// Where the line stands.
    pub place: RulePlace,
}

/// One component of a cache key.
#[derive(Clone, Debug)]
pub enum KeyPart {
    /// `method`.
    Method,
    /// `scheme`.
    Scheme,
    /// `host`, without its port when `host_rule` says so.
    Host(HostRule),
    /// `port`: the port of Host, or the scheme's.
    Port,
    /// `path`.
    Path,
    /// `query`, its `?` included, so that `/a` and `/a?` differ.
    Query,
    /// nuster's `delimiter`: `?` when there is a non-empty query.
    Delimiter,
    /// nuster's `uri`: path and query.
    Uri,
    /// Any sample: `hdr(N)`, `cookie(N)`, `sni`, `src`, `str(…)`, `%[…]`.
    Sample(Expr),
}

impl KeyPart {
    /// How rules call it.
    pub fn word(&self) -> Cow<'_, str> {
        Cow::Borrowed(match self {
            Self::Method => "method",
            Self::Scheme => "scheme",
            Self::Host(_) => "host",
            Self::Port => "port",
            Self::Path => "path",
            Self::Query => "query",
            Self::Delimiter => "delimiter",
            Self::Uri => "uri",
            Self::Sample(expr) => return String::from_utf8_lossy(expr.text()),
        })
    }
}

/// What a fill does when every reader has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillMode {
    /// Goes on to the end.
    Finish,
    /// Stops at once.
    Abandon,
    /// Goes on when `percent` of an announced length has arrived or at most `bytes` are missing.
    FinishIf {
        /// Percent of the announced length, 0 to 100.
        percent: u8,
        /// Bytes.
        bytes: u64,
    },
}

impl Default for FillMode {
    fn default() -> Self {
        Self::FinishIf { percent: 50, bytes: 1 << 20 }
    }
}

/// The `admin` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admin {
    /// Where it listens.
    pub binds: Vec<(BindAddress, Place)>,
    /// `token-file`, already read: what `Authorization: Bearer` must carry; `None`: loopback binds only.
    pub token: Option<String>,
}
