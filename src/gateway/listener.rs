//! Listening sockets and the loops that accept on them.
//!
//! A TCP bind has one socket for each worker (`SO_REUSEPORT`), so that the kernel spreads connections
//! and workers share nothing; the workers share the one socket of a unix bind.

use std::{
    collections::HashMap,
    future::Future,
    io,
    net::SocketAddr,
    os::unix::{fs::FileTypeExt, net::UnixListener as StdUnixListener},
    path::Path,
    pin::pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use socket2::{Domain, Protocol, Type};
use tokio::{
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    sync::{Notify, oneshot},
    task::AbortHandle,
};

use super::{
    clock,
    counted::Counted,
    entrance::{self, Admission, Door as Entrance, Stay},
    front::{Front, View},
    h1::{
        connection::{self, Life},
        link::Socket,
    },
    h2,
    limit::{Limit, Limits, Permit},
    listening,
    snapshot::Snapshot,
    streams::Streams,
    worker::Context,
};
use crate::{
    config::{Bind, BindAddress, Frontend, Id},
    metrics::FrontendMetrics,
    rule::Client,
};

/// Connections the kernel keeps for us until they are accepted.
const BACKLOG: i32 = 4096;

/// Bytes that the kernel takes for a client beyond what the client's window has room for.
#[cfg(target_os = "linux")]
const UNSENT: u32 = 32 * 1024;

/// How long accepting waits when a frontend has had its connections of this second.
const PAUSE: Duration = Duration::from_millis(10);

/// How long accepting rests when the process has no descriptor or memory left.
const REST: Duration = Duration::from_millis(100);

/// A bind across configurations.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Its address as configured.
    pub address: BindAddress,
    /// The frontend, where the system chooses the port: such binds are their frontend's. A fixed
    /// address may go from one frontend to another and keeps its socket.
    owner: Option<String>,
    /// Which of several it is.
    nth: usize,
}

/// A bind in its configuration.
#[derive(Debug)]
pub struct Listed<'c> {
    /// What it is found again by.
    pub key: Key,
    /// Its frontend.
    pub frontend: &'c Frontend,
    /// The bind.
    pub bind: &'c Bind,
    at: (Id<Frontend>, usize),
}

/// A bind's sockets, one for each worker.
#[derive(Debug)]
pub struct Bound {
    /// The frontend it was opened for.
    pub frontend: String,
    /// Where it listens, the port chosen by the system included.
    pub address: BindAddress,
    /// The sockets.
    pub sockets: Vec<RawListener>,
}

/// A listening socket that no worker has yet.
#[derive(Debug)]
pub enum RawListener {
    /// TCP.
    Tcp(std::net::TcpListener),
    /// A unix socket.
    Unix(StdUnixListener),
}

/// The binds of a configuration, in its order.
pub fn binds(frontends: &[Frontend]) -> Vec<Listed<'_>> {
    let mut seen: HashMap<(&BindAddress, Option<&str>), usize> = HashMap::new();
    let mut listed = Vec::new();
    for (at, frontend) in frontends.iter().enumerate() {
        for (nth_bind, bind) in frontend.binds.iter().enumerate() {
            let chosen = matches!(&bind.address, BindAddress::Tcp(address) if address.port() == 0);
            let owner = chosen.then_some(frontend.name.as_str());
            let count = seen.entry((&bind.address, owner)).or_default();
            let key = Key { address: bind.address.clone(), owner: owner.map(str::to_owned), nth: *count };
            *count += 1;
            listed.push(Listed { key, frontend, bind, at: (Id::new(at), nth_bind) });
        }
    }
    listed
}

/// Opens a bind. `only_v6`: another bind has the IPv4 wildcard of this port.
///
/// # Errors
/// One line that names the bind, its place in the files and the reason.
pub fn bind(frontend: &str, bind: &Bind, only_v6: bool, workers: usize) -> Result<Bound, String> {
    let Bind { address, place, .. } = bind;
    let opened = match address {
        BindAddress::Tcp(address) => bind_tcp(*address, only_v6, workers),
        BindAddress::Unix(path) => bind_unix(path, workers),
    };
    let (address, sockets) = opened
        .map_err(|error| format!("{place}: cannot listen on {address}: {}", listening::reason(&error, address)))?;
    Ok(Bound { frontend: frontend.to_owned(), address, sockets })
}

fn bind_tcp(address: SocketAddr, only_v6: bool, workers: usize) -> io::Result<(BindAddress, Vec<RawListener>)> {
    if address.port() != 0 {
        // Sockets that share a port would also share it with another process of the same user: one
        // that does not share finds out whether somebody is there.
        drop(tcp_socket(address, only_v6, false)?);
    }
    let mut actual = address;
    let mut sockets = Vec::with_capacity(workers);
    for _ in 0..workers {
        let socket = tcp_socket(actual, only_v6, true)?;
        socket.listen(BACKLOG)?;
        // Connections inherit it: a slow client then shows its progress in small steps, and holds
        // little of the kernel's memory.
        #[cfg(target_os = "linux")]
        socket.set_tcp_notsent_lowat(UNSENT)?;
        let listener = std::net::TcpListener::from(socket);
        actual = listener.local_addr()?;
        sockets.push(RawListener::Tcp(listener));
    }
    Ok((BindAddress::Tcp(actual), sockets))
}

fn tcp_socket(address: SocketAddr, only_v6: bool, share: bool) -> io::Result<socket2::Socket> {
    let socket = socket2::Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(share)?;
    if address.is_ipv6() {
        socket.set_only_v6(only_v6)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

fn bind_unix(path: &Path, workers: usize) -> io::Result<(BindAddress, Vec<RawListener>)> {
    // A socket file outlives its process; when nobody answers there, it is stale. No other file is touched.
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    match std::os::unix::net::UnixStream::connect(path) {
        Ok(_) => return Err(io::ErrorKind::AddrInUse.into()),
        Err(error) if is_socket && error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path)?,
        Err(_) => {}
    }
    let listener = StdUnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    let sockets = (0..workers).map(|_| listener.try_clone().map(RawListener::Unix)).collect::<io::Result<Vec<_>>>()?;
    Ok((BindAddress::Unix(path.to_path_buf()), sockets))
}

/// Removes what a bind leaves behind: the file of a unix socket.
pub fn remove(address: &BindAddress) {
    if let BindAddress::Unix(path) = address {
        // Somebody else may have cleaned up.
        let _ = std::fs::remove_file(path);
    }
}

/// The connections of one worker. All of it happens on the worker's own thread.
#[derive(Debug, Default)]
pub struct Connections {
    live: Mutex<Live>,
    draining: Arc<AtomicBool>,
    gone: Notify,
}

#[derive(Debug, Default)]
struct Live {
    next: u64,
    tasks: HashMap<u64, (Arc<Life>, AbortHandle)>,
}

impl Connections {
    /// Runs a connection to its end.
    fn start(self: &Arc<Self>, connection: impl Future<Output = ()> + Send + 'static, life: Arc<Life>) {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let number = live.next;
        live.next += 1;
        let place = Entry { connections: self.clone(), number };
        let task = tokio::spawn(async move {
            let _place = place;
            connection.await;
        });
        live.tasks.insert(number, (life, task.abort_handle()));
    }

    /// Closes what waits for a request; lets every other connection end with the request it has, one that
    /// has come and was not read yet included.
    pub async fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
        // The runtime looks at its sockets meanwhile, and whoever has something to read reads it. A task of
        // its own comes behind all of them; the worker's own future would come before.
        let _ = tokio::spawn(tokio::task::yield_now()).await;
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.tasks.values().filter(|(life, _)| life.is_idle()).for_each(|(_, task)| task.abort());
    }

    /// Waits until no connection is left.
    pub async fn emptied(&self) {
        loop {
            let mut gone = pin!(self.gone.notified());
            gone.as_mut().enable();
            if self.live.lock().unwrap_or_else(PoisonError::into_inner).tasks.is_empty() {
                return;
            }
            gone.await;
        }
    }
}

/// A connection's entry; it goes with the task, however that ends.
struct Entry {
    connections: Arc<Connections>,
    number: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.connections.live.lock().unwrap_or_else(PoisonError::into_inner).tasks.remove(&self.number);
        self.connections.gone.notify_waiters();
    }
}

/// A listening socket of one worker.
pub struct Listener {
    socket: AnyListener,
    door: Door,
}

/// Where accepted connections get their place and begin.
struct Door {
    key: Key,
    context: Context,
    limits: Arc<Limits>,
    connections: Arc<Connections>,
    target: Option<Target>,
}

enum AnyListener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

enum Accepted {
    Tcp(TcpStream, SocketAddr),
    Unix(UnixStream),
}

/// What a bind belongs to in the current configuration.
#[derive(Clone)]
struct Target {
    snapshot: Arc<Snapshot>,
    frontend: Id<Frontend>,
    bind: usize,
    limit: Arc<Limit>,
}

impl Listener {
    /// Takes a socket over that was opened for `snapshot`; only within a worker's runtime.
    ///
    /// # Errors
    /// The runtime does not take the socket.
    pub fn new(
        socket: RawListener,
        key: Key,
        snapshot: Arc<Snapshot>,
        context: Context,
        limits: Arc<Limits>,
        connections: Arc<Connections>,
    ) -> io::Result<Self> {
        let socket = match socket {
            RawListener::Tcp(listener) => AnyListener::Tcp(TcpListener::from_std(listener)?),
            RawListener::Unix(listener) => AnyListener::Unix(UnixListener::from_std(listener)?),
        };
        let mut door = Door { key, context, limits, connections, target: None };
        // The bind may be gone from the current configuration by now; its connections are served all the same.
        door.target = door.find(snapshot);
        Ok(Self { socket, door })
    }

    /// Accepts until `stop` resolves, and closes the socket then; what the kernel has accepted by that
    /// time is served as well.
    pub async fn run(self, mut stop: oneshot::Receiver<()>) {
        let Self { socket, mut door } = self;
        let mut left = Vec::new();
        loop {
            let accepted = tokio::select! {
                biased;
                _ = &mut stop => break,
                accepted = socket.accept() => accepted,
            };
            match accepted {
                Ok(accepted) => {
                    // While there is no place nothing more is accepted, so clients wait in the kernel's
                    // queue rather than being turned away.
                    let places = tokio::select! {
                        places = door.places() => Some(places),
                        _ = &mut stop => None,
                    };
                    let Some(places) = places else {
                        left.push(accepted);
                        break;
                    };
                    door.admit(accepted, places);
                }
                Err(error) if is_exhausted(&error) => {
                    tracing::error!(%error, "cannot accept on {}", door.key.address);
                    tokio::time::sleep(REST).await;
                }
                // The client left before it was accepted.
                Err(_) => {}
            }
        }
        left.extend(socket.rest());
        for accepted in left {
            let places = door.places().await;
            door.admit(accepted, places);
        }
    }
}

impl AnyListener {
    async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Tcp(listener) => listener.accept().await.map(|(stream, peer)| Accepted::Tcp(stream, peer)),
            Self::Unix(listener) => listener.accept().await.map(|(stream, _)| Accepted::Unix(stream)),
        }
    }

    /// Closes the socket; gives the connections that the kernel has by now. The runtime may not have heard of
    /// them yet, so the kernel is asked.
    fn rest(self) -> Vec<Accepted> {
        let mut rest = Vec::new();
        match self {
            Self::Tcp(listener) => {
                let Ok(listener) = listener.into_std() else { return rest };
                while let Ok((stream, peer)) = listener.accept() {
                    let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
                    rest.extend(stream.map(|stream| Accepted::Tcp(stream, peer)));
                }
            }
            Self::Unix(listener) => {
                let Ok(listener) = listener.into_std() else { return rest };
                while let Ok((stream, _)) = listener.accept() {
                    let stream = stream.set_nonblocking(true).and_then(|()| UnixStream::from_std(stream));
                    rest.extend(stream.map(Accepted::Unix));
                }
            }
        }
        rest
    }
}

/// A place under the `maxconn` of the process and of the frontend.
type Places = (Permit, Permit);

impl Door {
    /// Waits for a place; `None` when the bind belongs to nothing.
    async fn places(&mut self) -> Option<Places> {
        self.rate().await;
        // The frontend's place first: one that is full must not hold places that others could use.
        let frontend = self.target()?.limit.take().await;
        Some((self.limits.global().take().await, frontend))
    }

    /// Counts a connection; waits before that while `rate-limit sessions` asks for it.
    async fn rate(&mut self) {
        loop {
            let Some(target) = self.target() else { return };
            let Some(state) = target.snapshot.frontend_state(target.frontend) else { return };
            let most = target.snapshot.frontend(target.frontend).and_then(|frontend| frontend.rate_limit);
            let (rate, now) = (&state.metrics.connection_rate, clock::now().as_millis());
            if most.is_none_or(|most| rate.get(now) < most) {
                return rate.count(now);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Starts a connection.
    fn admit(&mut self, accepted: Accepted, places: Option<Places>) {
        let (Some(permits), Some(target)) = (places, self.target()) else { return };
        let life = Arc::new(Life::new(self.connections.draining.clone()));
        let context = self.context.clone();
        let serving = life.clone();
        match accepted {
            Accepted::Tcp(stream, peer) => {
                // Without it small answers would wait for acknowledgements; a socket that is gone tells soon.
                let _ = stream.set_nodelay(true);
                let dst = stream.local_addr().ok().map(canonical);
                let client = Client { src: Some(canonical(peer)), dst, ..target.client() };
                if let Admission::Closed { silent } = target.admit(&client) {
                    if silent {
                        entrance::drop_silently(&stream);
                    }
                    return;
                }
                self.connections.start(target.serve(stream, client, context, serving, permits), life);
            }
            Accepted::Unix(stream) => {
                let client = target.client();
                if target.admit(&client) != Admission::Welcome {
                    return;
                }
                self.connections.start(target.serve(stream, client, context, serving, permits), life);
            }
        }
    }

    /// What the bind belongs to: now, or before a reload took it away.
    fn target(&mut self) -> Option<Target> {
        let generation = self.context.worker.shared.generation();
        if self.target.as_ref().is_none_or(|target| target.snapshot.generation != generation) {
            self.target = self.find(self.context.worker.shared.snapshot()).or(self.target.take());
        }
        self.target.clone()
    }

    /// What the bind belongs to in a configuration.
    fn find(&self, snapshot: Arc<Snapshot>) -> Option<Target> {
        let listed = binds(&snapshot.config.frontends).into_iter().find(|listed| listed.key == self.key)?;
        let ((frontend, bind), limit) = (listed.at, self.limits.of(&listed.frontend.name));
        Some(Target { frontend, bind, limit, snapshot })
    }
}

impl Target {
    /// A client whose connection was accepted now.
    fn client(&self) -> Client {
        let bind = self.snapshot.frontend(self.frontend).and_then(|frontend| frontend.binds.get(self.bind));
        Client { bind: bind.map(|bind| bind.name.clone()), accepted: clock::now(), ..Client::default() }
    }

    /// Runs `tcp-request connection`.
    fn admit(&self, client: &Client) -> Admission {
        if self.snapshot.keeps_sessions() {
            client.session();
        }
        let admission = entrance::admit(&self.snapshot, self.frontend, Entrance::Connection, client, None);
        if admission != Admission::Welcome {
            self.count_denied();
        }
        admission
    }

    fn count_denied(&self) {
        if let Some(state) = self.snapshot.frontend_state(self.frontend) {
            state.metrics.denied.add(1);
        }
    }

    /// Whether `tcp-request session` lets the client in, who is counted then.
    fn lets_in(&self, client: &Client) -> bool {
        let admission = entrance::admit(&self.snapshot, self.frontend, Entrance::Session, client, None);
        if admission == Admission::Welcome {
            entrance::let_in(client);
        } else {
            self.count_denied();
        }
        admission == Admission::Welcome
    }

    /// Serves one connection: the handshake where there is one, then the protocol agreed on.
    async fn serve<S: Socket>(
        self,
        socket: S,
        mut client: Client,
        context: Context,
        life: Arc<Life>,
        _permits: Places,
    ) {
        let _stay = Stay::new(&client);
        let state = self.snapshot.frontend_state(self.frontend);
        let acceptor = state.and_then(|state| state.acceptors.get(self.bind)?.clone());
        let shutdown = context.draining.clone();
        let Some(view) = View::new(context, self.snapshot.clone(), self.frontend) else { return };
        let metrics = view.metrics().cloned();
        let _open = metrics.clone().map(Open::new);
        let Some(acceptor) = acceptor else {
            if !self.lets_in(&client) {
                return;
            }
            return connection::serve(socket, client, Front::new(view), life).await;
        };
        let handshake = tokio::time::timeout(view.timeouts().http_request, acceptor.accept(socket));
        let Ok(Ok((stream, tls, is_h2))) = handshake.await else { return };
        client.tls = Some(tls);
        client.handshake = u32::try_from(clock::now().since(client.accepted).as_millis()).unwrap_or(u32::MAX);
        if !self.lets_in(&client) {
            return;
        }
        if is_h2 {
            let timeouts = view.timeouts();
            h2::serve(Counted::new(stream, metrics), Streams::new(view), Arc::new(client), timeouts, shutdown).await;
        } else {
            connection::serve(stream, client, Front::new(view), life).await;
        }
    }
}

/// A connection among those counted as open.
struct Open(Arc<FrontendMetrics>);

impl Open {
    fn new(metrics: Arc<FrontendMetrics>) -> Self {
        metrics.connections.add(1);
        metrics.active.add(1);
        Self(metrics)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.active.add(-1);
    }
}

/// IPv4 clients of a bind that takes both families have IPv4 addresses.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// No descriptors or no memory: trying again at once would only burn the processor.
fn is_exhausted(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}
