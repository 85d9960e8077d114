//! Idle connections to servers. Each worker thread has a pool of its own, so its lock is never
//! waited for, and streams stay with the runtime whose reactor they are registered with.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use ahash::AHashMap;
use pingora::{
    connectors::TransportConnector,
    protocols::{Stream, l4::socket::SocketAddr},
    upstreams::peer::{BasicPeer, PeerOptions},
};
use tokio::io::{AsyncRead, ReadBuf};

use crate::{config::ServerAddress, gateway::fault};

/// Idle streams kept for one server and thread; more are closed.
const MAX_IDLE: usize = 64;
/// How long an idle stream stays usable.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// How often streams that expired, or that servers closed, are looked for.
const SWEEP: Duration = Duration::from_secs(5);

/// One connector for all threads: it is asked for new streams only, and holds the system's roots.
static CONNECTOR: LazyLock<TransportConnector> = LazyLock::new(|| TransportConnector::new(None));

/// A worker thread's idle connections. A clone is a handle to the same pool.
#[derive(Clone)]
pub struct Pool(Arc<Mutex<Shelf>>);

struct Shelf {
    idle: AHashMap<ServerAddress, Vec<Idle>>,
    timeout: Duration,
    sweeping: bool,
}

struct Idle {
    stream: Stream,
    since: Instant,
}

impl Pool {
    /// An empty pool. Make one in each worker thread and use it there only.
    pub fn new() -> Self {
        LazyLock::force(&CONNECTOR);
        Self::with_timeout(IDLE_TIMEOUT)
    }

    pub(super) fn with_timeout(timeout: Duration) -> Self {
        Self(Arc::new(Mutex::new(Shelf { idle: AHashMap::new(), timeout, sweeping: false })))
    }

    /// An idle stream to `server` on which nothing has arrived, the youngest first.
    pub(super) fn take(&self, server: &ServerAddress) -> Option<Stream> {
        let mut shelf = self.shelf();
        let timeout = shelf.timeout;
        let streams = shelf.idle.get_mut(server)?;
        while let Some(mut idle) = streams.pop() {
            if idle.since.elapsed() >= timeout {
                streams.clear();
                return None;
            }
            if idle.is_quiet() {
                return Some(idle.stream);
            }
        }
        None
    }

    /// Keeps `stream` for the next request to `server`; closes it when there are enough.
    pub(super) fn put(&self, server: &ServerAddress, stream: Stream) {
        let mut shelf = self.shelf();
        let idle = Idle { stream, since: Instant::now() };
        match shelf.idle.get_mut(server) {
            Some(streams) if streams.len() >= MAX_IDLE => {}
            Some(streams) => streams.push(idle),
            None => {
                shelf.idle.insert(server.clone(), vec![idle]);
            }
        }
        if !std::mem::replace(&mut shelf.sweeping, true) {
            tokio::spawn(sweep(Arc::downgrade(&self.0)));
        }
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Pool {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let idle: usize = self.shelf().idle.values().map(Vec::len).sum();
        f.debug_struct("Pool").field("idle", &idle).finish()
    }
}

impl Idle {
    /// Whether the connection is open and silent. A server has nothing to say between two messages:
    /// bytes here are as bad as an end (RFC 9112 §9.5, §11.1).
    fn is_quiet(&mut self) -> bool {
        let mut byte = [0];
        let mut room = ReadBuf::new(&mut byte);
        let mut context = Context::from_waker(Waker::noop());
        matches!(Pin::new(&mut self.stream).poll_read(&mut context, &mut room), Poll::Pending)
    }
}

/// Closes what expired, until nothing is left.
async fn sweep(shelf: Weak<Mutex<Shelf>>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let Some(shelf) = shelf.upgrade() else { return };
        let mut shelf = shelf.lock().unwrap_or_else(PoisonError::into_inner);
        let timeout = shelf.timeout;
        shelf.idle.retain(|_, streams| {
            streams.retain_mut(|idle| idle.since.elapsed() < timeout && idle.is_quiet());
            !streams.is_empty()
        });
        if shelf.idle.is_empty() {
            shelf.sweeping = false;
            return;
        }
    }
}

/// A new stream to `server`; the text says why there is none.
pub(super) async fn connect(server: &ServerAddress, limit: Duration) -> Result<Stream, String> {
    let peer = match server {
        ServerAddress::Tcp(address) => {
            BasicPeer { _address: SocketAddr::Inet(*address), sni: String::new(), options: PeerOptions::new() }
        }
        ServerAddress::Unix(path) => BasicPeer::new_uds(path).map_err(|error| error.to_string())?,
    };
    match tokio::time::timeout(limit, CONNECTOR.new_stream(&peer)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(fault::of_connection(&error)),
        Err(_) => Err(format!("no connection within {limit:?}")),
    }
}
