//! The process: workers, the sockets they serve, and the signals that steer them.
//!
//! Each worker is a thread with a runtime of its own; a connection stays where it was accepted, and
//! so do the engine's connections to servers. pingora's `Server` is not used: it gives a service one
//! runtime and picks a thread at random for every task; it sleeps its whole grace period (300 s unless
//! told otherwise) however soon a drain is done; it ends the process itself and keeps the sockets it
//! would hand over in a table of one per address. Its proxy engine needs none of that.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

#[cfg(test)]
mod tests;

use tokio::{
    runtime::Builder,
    signal::unix::{Signal, SignalKind, signal},
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
};

use super::{
    clock,
    limit::Limits,
    listener::{self, Bound, Connections, Key, Listed, Listener, RawListener},
    log::{AccessLog, LogWriter},
    snapshot::{Shared, Snapshot},
    worker::{self, Context},
};
use crate::{
    config::{BindAddress, Config, Frontend},
    metrics::Metrics,
    ops::Ops,
};

/// How often what has expired in tables of counters is looked for. Nobody sees it meanwhile; it only takes room.
const SWEEP: Duration = Duration::from_secs(1);

/// Runs `config` until a signal ends it: SIGHUP reloads what `load` gives, SIGTERM drains, SIGINT stops.
/// Returns when the last connection is closed or cut.
///
/// # Errors
/// One line: what could not be loaded, opened or started, where it is configured, and why.
pub fn run(
    config: Config,
    ops: Arc<Ops>,
    load: impl Fn() -> Result<Config, String> + Send + Sync + 'static,
) -> Result<(), String> {
    // Whoever sees that it listens may send a signal.
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let signals = {
        let _context = runtime.enter();
        Signals::new().map_err(|error| format!("cannot receive signals: {error}"))?
    };
    runtime.block_on(Gateway::start(Shared::new(config, ops)?, load)?.run(signals));
    Ok(())
}

/// Whether `config` could be run, as far as that shows without opening sockets: certificates load.
///
/// # Errors
/// The first thing that keeps it from running, with its place.
pub fn check(config: &Config) -> Result<(), String> {
    Shared::new(config.clone(), Arc::new(Ops::new(Arc::new(Metrics::new())))).map(drop)
}

/// A running gateway.
pub struct Gateway {
    crew: Arc<Crew>,
    threads: Vec<Thread>,
    orders: mpsc::UnboundedReceiver<Order>,
    control: Control,
    log: LogWriter,
}

/// What a reload works on: the workers and what they listen on.
pub(super) struct Crew {
    pub(super) shared: Arc<Shared>,
    pub(super) limits: Arc<Limits>,
    pub(super) bound: Mutex<HashMap<Key, BindAddress>>,
    workers: Vec<mpsc::UnboundedSender<WorkerOrder>>,
}

/// Steers a running gateway from anywhere in the process; reloads go through [`Ops::reload`].
#[derive(Clone, Debug)]
pub struct Control {
    orders: mpsc::UnboundedSender<Order>,
}

/// How a gateway's run is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Drain,
    Stop,
}

impl Control {
    /// Ends the gateway once its requests are served, as SIGTERM does.
    pub fn drain(&self) {
        // A gateway that has ended needs no order.
        let _ = self.orders.send(Order::Drain);
    }

    /// Ends the gateway at once, as SIGINT does.
    pub fn stop(&self) {
        let _ = self.orders.send(Order::Stop);
    }
}

impl Crew {
    /// Number of workers.
    pub(super) fn size(&self) -> usize {
        self.workers.len()
    }

    /// Tells every worker.
    pub(super) fn order(&self, order: impl Fn() -> WorkerOrder) {
        for worker in &self.workers {
            // A worker that has ended needs no order.
            let _ = worker.send(order());
        }
    }

    /// Hands sockets that were opened for the current configuration to the workers.
    pub(super) fn serve(&self, opened: Vec<(Key, Bound)>) {
        let snapshot = self.shared.snapshot();
        let mut all = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, bound) in opened {
            tracing::info!("listening on {} (frontend {})", bound.address, bound.frontend);
            for (worker, socket) in self.workers.iter().zip(bound.sockets) {
                let _ = worker.send(WorkerOrder::Open(key.clone(), socket, snapshot.clone()));
            }
            all.insert(key, bound.address);
        }
    }
}

impl Gateway {
    /// Opens every bind of the current configuration and starts the workers. Reloads take what `load` gives.
    ///
    /// # Errors
    /// One line: what could not be opened or started, where it is configured, and why.
    pub fn start(
        shared: Arc<Shared>,
        load: impl Fn() -> Result<Config, String> + Send + Sync + 'static,
    ) -> Result<Self, String> {
        let snapshot = shared.snapshot();
        let threads = snapshot.config.global.threads;
        let count = threads.or_else(|| thread::available_parallelism().ok().map(Into::into)).unwrap_or(1).max(1);
        let opened = open(&snapshot.config.frontends, |_| true, count)?;
        let (log, writer) =
            AccessLog::start(std::io::stderr(), shared.process().outlets().clone(), shared.ops().metrics().clone())
                .map_err(|error| format!("cannot start the log: {error}"))?;
        let limits = Limits::new(&snapshot);
        let mut threads = Vec::with_capacity(count);
        let mut workers = Vec::with_capacity(count);
        for number in 0..count {
            let (orders, received) = mpsc::unbounded_channel();
            threads.push(Thread::start(number, shared.clone(), log.another(), limits.clone(), received)?);
            workers.push(orders);
        }
        limits.fit_descriptors(&snapshot);
        let crew = Arc::new(Crew { shared, limits, bound: Mutex::default(), workers });
        crew.serve(opened);
        let weak = Arc::downgrade(&crew);
        crew.shared.ops().set_reload(Box::new(move || {
            let crew = weak.upgrade().ok_or("the gateway is stopping")?;
            crew.reload(&load)
        }));
        crew.shared.ops().set_ready(true);
        let (sender, orders) = mpsc::unbounded_channel();
        Ok(Self { crew, threads, orders, control: Control { orders: sender }, log: writer })
    }

    /// Where it listens, ports chosen by the system included, in the order of the configuration's binds.
    pub fn addresses(&self) -> Vec<BindAddress> {
        let snapshot = self.crew.shared.snapshot();
        let bound = self.crew.bound.lock().unwrap_or_else(PoisonError::into_inner);
        let binds = listener::binds(&snapshot.config.frontends);
        binds.iter().filter_map(|listed| bound.get(&listed.key).cloned()).collect()
    }

    /// A handle that steers it.
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Runs until a signal or [`Control`] ends it, and the last connection is closed or cut.
    pub async fn run(mut self, mut signals: Signals) {
        let end = self.wait(&mut signals).await;
        self.end(end, &mut signals).await;
    }

    async fn wait(&mut self, signals: &mut Signals) -> Order {
        let mut sweep = tokio::time::interval(SWEEP);
        sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = sweep.tick() => {
                    let now = clock::now().as_millis();
                    self.crew.shared.snapshot().tables().iter().for_each(|table| {
                        table.sweep(now);
                    });
                }
                signal = signals.next() => match signal {
                    Signalled::End(order) => return order,
                    // What came of it is in the log.
                    Signalled::Reload => drop(self.crew.shared.ops().reload()),
                },
                order = self.orders.recv() => return order.unwrap_or(Order::Stop),
            }
        }
    }

    /// Ends the workers: at once, or when they are done, at the latest after `hard-stop-after`.
    async fn end(mut self, order: Order, signals: &mut Signals) {
        self.crew.shared.ops().set_ready(false);
        if order == Order::Drain {
            let limit = self.crew.shared.snapshot().config.global.hard_stop_after;
            tracing::info!("draining, for {} s at most", limit.as_secs());
            self.crew.shared.process().stop();
            self.crew.order(|| WorkerOrder::Drain);
            self.drained(limit, signals).await;
        }
        self.crew.order(|| WorkerOrder::Stop);
        for thread in self.threads.drain(..) {
            // A worker that panicked has ended, too.
            let _ = thread.handle.join();
        }
        for key in self.crew.bound.lock().unwrap_or_else(PoisonError::into_inner).keys() {
            listener::remove(&key.address);
        }
        self.log.join();
    }

    async fn drained(&mut self, limit: Duration, signals: &mut Signals) {
        let ended = async {
            for thread in &mut self.threads {
                // The sender goes with the worker.
                let _ = (&mut thread.ended).await;
            }
        };
        let told = async { while !matches!(signals.next().await, Signalled::End(_)) {} };
        let stopped = async { while self.orders.recv().await != Some(Order::Stop) {} };
        tokio::select! {
            () = ended => {}
            () = tokio::time::sleep(limit) => tracing::warn!("connections cut after {} s", limit.as_secs()),
            () = told => {}
            () = stopped => {}
        }
    }
}

/// Opens the binds that `wanted` picks, each once for every worker; all or none.
pub(super) fn open(
    frontends: &[Frontend],
    wanted: impl Fn(&Key) -> bool,
    workers: usize,
) -> Result<Vec<(Key, Bound)>, String> {
    let binds = listener::binds(frontends);
    let v4_wildcards: Vec<u16> = binds
        .iter()
        .filter_map(|listed| match &listed.key.address {
            BindAddress::Tcp(address) if address.ip() == std::net::Ipv4Addr::UNSPECIFIED => Some(address.port()),
            _ => None,
        })
        .collect();
    let mut opened = Vec::new();
    for Listed { key, frontend, bind, .. } in binds.iter().filter(|listed| wanted(&listed.key)) {
        let only_v6 = matches!(&key.address, BindAddress::Tcp(address) if v4_wildcards.contains(&address.port()));
        match listener::bind(&frontend.name, bind, only_v6, workers) {
            Ok(bound) => opened.push((key.clone(), bound)),
            Err(why) => {
                abandon(&opened);
                return Err(why);
            }
        }
    }
    Ok(opened)
}

/// Removes what binds that are not served after all would leave behind.
pub(super) fn abandon(opened: &[(Key, Bound)]) {
    opened.iter().for_each(|(_, bound)| listener::remove(&bound.address));
}

/// The signals that steer the process; by default none.
#[derive(Default)]
pub struct Signals {
    hangup: Option<Signal>,
    terminate: Option<Signal>,
    interrupt: Option<Signal>,
}

/// What a signal asks for.
enum Signalled {
    Reload,
    End(Order),
}

impl Signals {
    /// SIGHUP, SIGTERM and SIGINT; only within a runtime.
    ///
    /// # Errors
    /// The system does not deliver them.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self {
            hangup: Some(signal(SignalKind::hangup())?),
            terminate: Some(signal(SignalKind::terminate())?),
            interrupt: Some(signal(SignalKind::interrupt())?),
        })
    }

    async fn next(&mut self) -> Signalled {
        tokio::select! {
            () = received(&mut self.hangup) => Signalled::Reload,
            () = received(&mut self.terminate) => Signalled::End(Order::Drain),
            () = received(&mut self.interrupt) => Signalled::End(Order::Stop),
        }
    }
}

/// Resolves when the signal comes; never when it is not listened to.
async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => signal.recv().await,
        None => std::future::pending().await,
    };
}

/// A thread that serves connections.
struct Thread {
    ended: oneshot::Receiver<()>,
    handle: JoinHandle<()>,
}

/// What a worker is told.
#[derive(Debug)]
pub(super) enum WorkerOrder {
    /// A bind's socket, and the configuration it was opened for.
    Open(Key, RawListener, Arc<Snapshot>),
    Close(Key),
    Drain,
    Stop,
}

impl Thread {
    fn start(
        number: usize,
        shared: Arc<Shared>,
        log: AccessLog,
        limits: Arc<Limits>,
        orders: mpsc::UnboundedReceiver<WorkerOrder>,
    ) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("cannot start worker {number}: {error}");
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (ending, ended) = oneshot::channel();
        let work = move || {
            worker::set_number(number);
            runtime.block_on(work(shared, log, limits, orders));
            // Connections that are left are cut, and what blocks elsewhere is not waited for.
            runtime.shutdown_background();
            drop(ending);
        };
        let handle = thread::Builder::new().name(format!("worker-{number}")).spawn(work).map_err(failed)?;
        Ok(Self { ended, handle })
    }
}

/// A worker's life.
async fn work(
    shared: Arc<Shared>,
    log: AccessLog,
    limits: Arc<Limits>,
    mut orders: mpsc::UnboundedReceiver<WorkerOrder>,
) {
    let (drain, draining) = watch::channel(false);
    let context = Context::new(shared, log, draining);
    let connections = Arc::new(Connections::default());
    let mut listeners = JoinSet::new();
    let mut stops = HashMap::new();
    while let Some(order) = orders.recv().await {
        match order {
            WorkerOrder::Open(key, socket, snapshot) => {
                let (context, limits, connections) = (context.clone(), limits.clone(), connections.clone());
                match Listener::new(socket, key.clone(), snapshot, context, limits, connections) {
                    Ok(listener) => {
                        let (stop, stopped) = oneshot::channel();
                        listeners.spawn(listener.run(stopped));
                        stops.insert(key, stop);
                    }
                    Err(error) => tracing::error!(%error, "cannot listen on {}", key.address),
                }
            }
            WorkerOrder::Close(key) => drop(stops.remove(&key)),
            WorkerOrder::Drain => break,
            WorkerOrder::Stop => return,
        }
    }
    stops.clear();
    // Whoever listens has gone with the last connection.
    let _ = drain.send(true);
    connections.drain().await;
    let done = async {
        while listeners.join_next().await.is_some() {}
        connections.emptied().await;
    };
    tokio::select! {
        () = done => {}
        () = stopped(&mut orders) => {}
    }
}

/// Resolves with the order to stop, or when nobody can give it any more.
async fn stopped(orders: &mut mpsc::UnboundedReceiver<WorkerOrder>) {
    while let Some(order) = orders.recv().await {
        if matches!(order, WorkerOrder::Stop) {
            return;
        }
    }
}
