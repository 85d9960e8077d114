//! What the requests of one worker thread share.

use std::{cell::Cell, sync::Arc};

use pingora::{apps::HttpServerApp, protocols::http::ServerSession, server::ShutdownWatch};

use super::{
    exchange::Pool,
    log::AccessLog,
    proxy::{self, Engine},
    snapshot::Shared,
};

thread_local!(static NUMBER: Cell<usize> = const { Cell::new(0) });

/// Says which worker the present thread is, from 0.
pub fn set_number(number: usize) {
    NUMBER.set(number);
}

/// The worker that the present thread is; 0 in a thread that is none.
pub fn number() -> usize {
    NUMBER.get()
}

/// A worker as the delivery of a request sees it.
#[derive(Clone)]
pub struct Worker {
    /// The state of the process.
    pub shared: Arc<Shared>,
    /// Its idle connections to servers.
    pub pool: Pool,
    /// The access log.
    pub log: AccessLog,
}

/// A worker as its connections see it. Made in its own thread.
#[derive(Clone)]
pub struct Context {
    /// The worker.
    pub worker: Worker,
    /// Its proxy engine.
    pub engine: Arc<Engine>,
    /// Turns true when connections are to end.
    pub draining: ShutdownWatch,
}

impl Context {
    /// A worker without connections.
    pub fn new(shared: Arc<Shared>, log: AccessLog, draining: ShutdownWatch) -> Self {
        let worker = Worker { shared, pool: Pool::new(), log };
        let engine = proxy::engine(worker.clone());
        Self { worker, engine, draining }
    }

    /// Has the proxy engine answer over any session; the engine's filters count and log the request.
    pub async fn proxy(&self, session: ServerSession) {
        // What comes back of a connection comes through the session itself.
        let _ = self.engine.process_new_http(session, &self.draining).await;
    }
}
