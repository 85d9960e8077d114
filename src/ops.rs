//! What an operator can do, for the admin API, the command line and rules alike.
//!
//! [`Ops`] lives as long as the process: reloads come and go, stores and counters stay with it.

use std::{
    fmt,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use dashmap::DashMap;
use serde::Serialize;

use crate::{
    cache::{Store, purge::Target, store::Limits},
    metrics::{Metrics, Summary},
    time::Timestamp,
};

/// The stores of the process by name. They outlive configurations and are found again by name.
#[derive(Debug)]
pub struct Stores {
    open: DashMap<String, Arc<Store>>,
    metrics: Arc<Metrics>,
}

impl Stores {
    fn new(metrics: Arc<Metrics>) -> Self {
        Self { open: DashMap::new(), metrics }
    }

    /// The store named `name`, made with `limits` if there is none. One that is there keeps its own.
    pub fn open(&self, name: &str, limits: Limits) -> Arc<Store> {
        let made = || Store::new(name, limits, self.metrics.store(name));
        self.open.entry(name.to_owned()).or_insert_with(made).clone()
    }

    /// The store named `name`; `None` when it was never opened.
    pub fn find(&self, name: &str) -> Option<Arc<Store>> {
        self.open.get(name).map(|store| Arc::clone(&store))
    }

    /// Forgets the stores for which `keep` is false: those that a new configuration does not name any more.
    /// They are freed when the last request that uses them has ended.
    pub fn retain(&self, keep: impl Fn(&str) -> bool) {
        self.open.retain(|name, _| keep(name));
    }

    fn all(&self) -> Vec<(String, Arc<Store>)> {
        let mut all: Vec<_> = self.open.iter().map(|entry| (entry.key().clone(), Arc::clone(&entry))).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }
}

/// What is to be purged, in the form that stores keep URLs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeRequest {
    targets: Vec<Target>,
    soft: bool,
}

impl PurgeRequest {
    /// One URL with every key and variant of it: `http://host/path?query` as clients write it.
    /// `//host/path` names it for http and https. A fragment is left out, the host's case and a default port don't matter.
    ///
    /// # Errors
    /// The text is not such a URL.
    pub fn url(url: &str) -> Result<Self, BadTarget> {
        Ok(Self::hard(absolute(url)?.into_iter().map(Target::Url).collect()))
    }

    /// Every URL that begins so. The prefix holds at least the whole host: `http://host` means `http://host/`.
    ///
    /// # Errors
    /// The text is not the beginning of a URL.
    pub fn prefix(prefix: &str) -> Result<Self, BadTarget> {
        Ok(Self::hard(absolute(prefix)?.into_iter().map(Target::Prefix).collect()))
    }

    /// Every object with this surrogate key.
    ///
    /// # Errors
    /// No object can have it: it is empty or holds a space or comma.
    pub fn tag(tag: &str) -> Result<Self, BadTarget> {
        if tag.is_empty() || tag.contains(|c: char| c == ',' || c.is_whitespace() || c.is_control()) {
            return Err(BadTarget::Tag(tag.to_owned()));
        }
        Ok(Self::hard(vec![Target::Tag(tag.to_owned())]))
    }

    /// Everything in every store.
    pub fn all() -> Self {
        Self::hard(vec![Target::All])
    }

    /// Makes the purge soft (objects become stale instead of going away) or hard.
    #[must_use]
    pub fn soft(mut self, soft: bool) -> Self {
        self.soft = soft;
        self
    }

    /// What it names; a URL without a scheme gives two.
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    fn hard(targets: Vec<Target>) -> Self {
        Self { targets, soft: false }
    }
}

/// For the log: one line, without blanks or control characters in what came from outside.
impl fmt::Display for PurgeRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, target) in self.targets.iter().enumerate() {
            let between = if at > 0 { " and " } else { "" };
            match target {
                Target::Url(url) => write!(f, "{between}{url}")?,
                Target::Prefix(prefix) => write!(f, "{between}everything under {prefix}")?,
                Target::Tag(tag) => write!(f, "{between}tag {tag}")?,
                Target::All => write!(f, "{between}everything")?,
            }
        }
        if self.soft { f.write_str(" (soft)") } else { Ok(()) }
    }
}

/// A purge that cannot be meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTarget {
    /// Not a whole URL.
    #[error(
        "`{0}` lacks a scheme or a host: write `http://example.com/path`, or `//example.com/path` for http and https alike"
    )]
    NotAbsolute(String),
    /// A URL of another scheme.
    #[error("`{0}`: only http and https URLs are cached")]
    Scheme(String),
    /// The host part cannot be one.
    #[error("`{0}`: the part between `//` and the path is no `host` or `host:port`")]
    Host(String),
    /// Something that no request target holds.
    #[error("`{0}`: a URL holds no space and no control character; write them as %20 and the like")]
    Space(String),
    /// Not a surrogate key.
    #[error("`{0}`: a tag is one word without spaces and commas")]
    Tag(String),
}

/// What a purge did, over all stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PurgeReply {
    /// Objects that the target names.
    pub matched: u64,
    /// Objects removed, or made stale by a soft purge.
    pub purged: u64,
}

/// The state of the process.
#[derive(Clone, Debug, Serialize)]
pub struct Stats {
    /// The program's version.
    pub version: &'static str,
    /// Whole seconds since the start.
    pub uptime_seconds: u64,
    /// Whether it takes requests: listening, and not draining.
    pub ready: bool,
    /// What was counted, and what the stores hold.
    #[serde(flatten)]
    pub counted: Summary,
}

/// Loads the configuration again; the text says what happened, in one line or several.
pub type Reload = Box<dyn Fn() -> Result<String, String> + Send + Sync>;

/// Is told after each reload whether it took effect.
pub type AfterReload = Box<dyn Fn(bool) + Send + Sync>;

/// What an operator can do.
pub struct Ops {
    stores: Stores,
    metrics: Arc<Metrics>,
    started: Instant,
    ready: AtomicBool,
    reload: OnceLock<Reload>,
    after_reload: OnceLock<AfterReload>,
    reloading: Mutex<()>,
}

impl Ops {
    /// Nothing stored, nothing counted, not ready.
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self {
            stores: Stores::new(Arc::clone(&metrics)),
            metrics,
            started: Instant::now(),
            ready: AtomicBool::new(false),
            reload: OnceLock::new(),
            after_reload: OnceLock::new(),
            reloading: Mutex::new(()),
        }
    }

    /// The stores.
    pub fn stores(&self) -> &Stores {
        &self.stores
    }

    /// The counters.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Purges in every store, and says so in the log. When it returns, no request is answered any more with what
    /// it named, and no fill that was under way stores it.
    pub fn purge(&self, request: &PurgeRequest) -> PurgeReply {
        let reply = self.remove(request);
        tracing::info!("purge of {request}: {} matched, {} purged", reply.matched, reply.purged);
        reply
    }

    /// Removes what a response to an unsafe request made invalid (RFC 9111 §4.4): as a purge, without a word.
    pub fn invalidate(&self, request: &PurgeRequest) {
        self.remove(request);
    }

    fn remove(&self, request: &PurgeRequest) -> PurgeReply {
        let now = now();
        let mut reply = PurgeReply::default();
        for (_, store) in self.stores.all() {
            for target in &request.targets {
                let done = store.purge(target, request.soft, now);
                reply.matched = reply.matched.saturating_add(done.matched);
                reply.purged = reply.purged.saturating_add(done.purged);
            }
        }
        reply
    }

    /// The state of the process.
    pub fn stats(&self) -> Stats {
        Stats {
            version: env!("CARGO_PKG_VERSION"),
            uptime_seconds: self.started.elapsed().as_secs(),
            ready: self.is_ready(),
            counted: self.metrics.summary(),
        }
    }

    /// Says whether the process takes requests. The gateway sets it once it listens and clears it to drain.
    pub fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Release);
    }

    /// Whether the process takes requests.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Says how a reload is done; the gateway does it once, at its start. Later calls change nothing.
    pub fn set_reload(&self, reload: Reload) {
        let _ = self.reload.set(reload);
    }

    /// Says who wants to know how a reload ended. Later calls change nothing.
    pub fn set_after_reload(&self, after: AfterReload) {
        let _ = self.after_reload.set(after);
    }

    /// Loads the configuration again, after any reload under way. Blocks while files are read: call it from a
    /// thread that may. Every reload comes through here, whoever asked (signal, API, command line), and is logged.
    ///
    /// # Errors
    /// Why the new configuration was refused; the old one goes on.
    pub fn reload(&self) -> Result<String, String> {
        let Some(reload) = self.reload.get() else {
            return Err("there is nothing to reload yet".to_owned());
        };
        let _one_at_a_time = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        let result = reload();
        let process = self.metrics.process();
        let counter = if result.is_ok() { &process.reloads_ok } else { &process.reloads_failed };
        counter.add(1);
        if let Some(after) = self.after_reload.get() {
            after(result.is_ok());
        }
        match &result {
            Ok(said) => tracing::info!("{said}"),
            Err(reason) => tracing::error!("reload refused, the old configuration goes on: {}", reason.trim_end()),
        }
        result
    }
}

impl fmt::Debug for Ops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ops").field("stores", &self.stores).field("ready", &self.ready).finish_non_exhaustive()
    }
}

/// The system's time.
fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Timestamp::from_millis(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
}

/// `url` as stores write it: scheme and host in lower case, no default port, no fragment, at least the path `/`.
fn absolute(url: &str) -> Result<Vec<String>, BadTarget> {
    if url.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(BadTarget::Space(url.to_owned()));
    }
    let (scheme, rest) = match (url.strip_prefix("//"), url.split_once("://")) {
        (Some(rest), _) => (None, rest),
        (None, Some((scheme, rest))) => (Some(scheme.to_ascii_lowercase()), rest),
        (None, None) => return Err(BadTarget::NotAbsolute(url.to_owned())),
    };
    let schemes: &[&str] = match scheme.as_deref() {
        None => &["http", "https"],
        Some("http") => &["http"],
        Some("https") => &["https"],
        Some(_) => return Err(BadTarget::Scheme(url.to_owned())),
    };
    let rest = rest.split('#').next().unwrap_or_default();
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if authority.is_empty() {
        return Err(BadTarget::NotAbsolute(url.to_owned()));
    }
    let (host, port) = host_and_port(authority).ok_or_else(|| BadTarget::Host(url.to_owned()))?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    Ok(schemes
        .iter()
        .map(|scheme| {
            let default = if *scheme == "http" { 80 } else { 443 };
            let port = port.filter(|&port| port != default).map(|port| format!(":{port}")).unwrap_or_default();
            format!("{scheme}://{host}{port}{slash}{path}")
        })
        .collect())
}

/// Splits `host[:port]`; `None` when it is not that. The host loses its case and a last dot.
fn host_and_port(authority: &str) -> Option<(String, Option<u16>)> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (authority, ""),
    };
    let bracketed = host.starts_with('[') && host.ends_with(']');
    if host.contains(['@', '\\']) || (host.contains([':', '[', ']']) && !bracketed) {
        return None;
    }
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    if host.is_empty() {
        return None;
    }
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    match port {
        "" => Some((host, None)),
        _ if digits => Some((host, Some(port.parse().ok()?))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn purged_urls_are_written_as_stores_write_them() {
        for (given, want) in [
            ("http://Example.COM/a?B=1#top", "http://example.com/a?B=1"),
            ("HTTP://example.com:80", "http://example.com/"),
            ("https://example.com.:443/Ä%2f", "https://example.com/Ä%2f"),
            ("https://example.com:80?x", "https://example.com:80/?x"),
            ("http://[::1]:8080/", "http://[::1]:8080/"),
            ("http://[::1]/x:y@z", "http://[::1]/x:y@z"),
            ("http://example.com:/", "http://example.com/"),
        ] {
            assert_eq!(absolute(given), Ok(vec![want.to_owned()]), "{given}");
        }
    }

    #[test]
    fn a_url_without_a_scheme_means_both() {
        let both = PurgeRequest::url("//h:80/").unwrap();
        assert_eq!(both.targets(), [Target::Url("http://h/".to_owned()), Target::Url("https://h:80/".to_owned())]);
    }

    #[test]
    fn a_purge_is_named_in_the_log() {
        assert_eq!(PurgeRequest::url("//h/a").unwrap().to_string(), "http://h/a and https://h/a");
        assert_eq!(PurgeRequest::tag("t").unwrap().soft(true).to_string(), "tag t (soft)");
        assert_eq!(PurgeRequest::prefix("http://h").unwrap().to_string(), "everything under http://h/");
        assert_eq!(PurgeRequest::all().to_string(), "everything");
    }

    #[test]
    fn what_is_no_url_is_refused_with_the_way_out() {
        for (given, want) in [
            ("/path", BadTarget::NotAbsolute as fn(String) -> BadTarget),
            ("example.com/path", BadTarget::NotAbsolute),
            ("http:///path", BadTarget::NotAbsolute),
            ("ftp://h/", BadTarget::Scheme),
            ("http://u@h/", BadTarget::Host),
            ("http://h:http/", BadTarget::Host),
            ("http://h:70000/", BadTarget::Host),
            ("http://a:b:80/", BadTarget::Host),
            ("http://h/a b", BadTarget::Space),
        ] {
            assert_eq!(absolute(given), Err(want(given.to_owned())), "{given}");
        }
        assert!(PurgeRequest::tag("a,b").is_err());
        assert!(PurgeRequest::tag("").is_err());
    }

    #[test]
    fn reloads_are_counted_and_told_on() {
        let ops = Ops::new(Arc::new(Metrics::new()));
        assert!(ops.reload().is_err(), "nothing to reload yet");
        let told = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&told);
        ops.set_after_reload(Box::new(move |done| {
            seen.fetch_add(if done { 1 } else { 10 }, Ordering::Relaxed);
        }));
        let turn = AtomicU64::new(0);
        ops.set_reload(Box::new(move || match turn.fetch_add(1, Ordering::Relaxed) {
            0 => Ok("loaded".to_owned()),
            _ => Err("refused".to_owned()),
        }));
        assert_eq!(ops.reload(), Ok("loaded".to_owned()));
        assert_eq!(ops.reload(), Err("refused".to_owned()));
        assert_eq!(told.load(Ordering::Relaxed), 11);
        let process = ops.metrics().process();
        assert_eq!((process.reloads_ok.get(), process.reloads_failed.get()), (1, 1));
    }
}
