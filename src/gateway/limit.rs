//! `maxconn`: how many connections there may be, over all workers and configurations. Without it, as many as the
//! process has descriptors for.

use std::{
    collections::HashMap,
    fs,
    pin::pin,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::Notify;

use super::snapshot::Snapshot;

/// Descriptors kept beside those that are open at the start: for the admin API, files and binds of a reload.
const SPARE: usize = 16;

/// A number of connections that is not exceeded.
#[derive(Debug)]
pub struct Limit {
    most: AtomicUsize,
    held: AtomicUsize,
    freed: Notify,
}

impl Limit {
    /// A limit; `None`: none.
    pub fn new(most: Option<usize>) -> Arc<Self> {
        Arc::new(Self {
            most: AtomicUsize::new(most.unwrap_or(usize::MAX)),
            held: AtomicUsize::new(0),
            freed: Notify::new(),
        })
    }

    /// Changes the limit; connections beyond it stay.
    pub fn set(&self, most: Option<usize>) {
        self.most.store(most.unwrap_or(usize::MAX), Ordering::Relaxed);
        self.freed.notify_waiters();
    }

    /// Waits for a place.
    pub async fn take(self: &Arc<Self>) -> Permit {
        loop {
            let mut freed = pin!(self.freed.notified());
            freed.as_mut().enable();
            let most = self.most.load(Ordering::Relaxed);
            let taken =
                self.held.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |held| (held < most).then_some(held + 1));
            if taken.is_ok() {
                return Permit(self.clone());
            }
            freed.await;
        }
    }
}

/// A place under a [`Limit`].
#[derive(Debug)]
pub struct Permit(Arc<Limit>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.held.fetch_sub(1, Ordering::AcqRel);
        self.0.freed.notify_one();
    }
}

/// `maxconn` of the process and of each frontend, over all workers and configurations.
#[derive(Debug)]
pub struct Limits {
    global: Arc<Limit>,
    /// The process's without `maxconn`; none as long as nothing is known of descriptors.
    by_default: OnceLock<usize>,
    frontends: Mutex<HashMap<String, Arc<Limit>>>,
}

impl Limits {
    /// The limits of a configuration.
    pub fn new(snapshot: &Snapshot) -> Arc<Self> {
        let limits = Self { global: Limit::new(None), by_default: OnceLock::new(), frontends: Mutex::default() };
        limits.set(snapshot);
        Arc::new(limits)
    }

    /// Takes over the limits of another configuration.
    pub fn set(&self, snapshot: &Snapshot) {
        self.global.set(snapshot.config.global.maxconn.or_else(|| self.by_default.get().copied()));
        for frontend in &snapshot.config.frontends {
            self.of(&frontend.name).set(frontend.maxconn);
        }
    }

    /// Raises the limit of descriptors as far as that goes and derives the default of `maxconn` from it: a client
    /// takes one and, while it is served, a server another. Called once, when all is open but clients.
    pub fn fit_descriptors(&self, snapshot: &Snapshot) {
        let Some(all) = raise_descriptors() else { return };
        let reserve = open_descriptors().saturating_add(SPARE);
        let most = (all.saturating_sub(reserve) / 2).max(1);
        let _ = self.by_default.set(most);
        self.set(snapshot);
        match snapshot.config.global.maxconn {
            None => tracing::info!(
                "at most {most} clients at a time, unless `maxconn` in `global` says otherwise: \
                 of {all} descriptors {reserve} are kept, and each client may need two"
            ),
            Some(wanted) if wanted > most => tracing::warn!(
                "`maxconn {wanted}` is more than the limit of descriptors has room for: {all} are enough for {most} clients"
            ),
            Some(_) => {}
        }
    }

    /// The process's.
    pub const fn global(&self) -> &Arc<Limit> {
        &self.global
    }

    /// The frontend's, which outlives its configurations.
    pub fn of(&self, frontend: &str) -> Arc<Limit> {
        let mut frontends = self.frontends.lock().unwrap_or_else(PoisonError::into_inner);
        frontends.entry(frontend.to_owned()).or_insert_with(|| Limit::new(None)).clone()
    }
}

/// Raises the soft limit of open files to the hard one; gives what holds then, `None` for no limit.
fn raise_descriptors() -> Option<usize> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        // Where the system does not allow as much, what was there stays.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    }
    getrlimit(Resource::Nofile).current.map(|most| usize::try_from(most).unwrap_or(usize::MAX))
}

/// Descriptors that are open; a guess where the system does not tell.
fn open_descriptors() -> usize {
    fs::read_dir("/dev/fd").map_or(32, Iterator::count)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_place_is_waited_for() {
        let limit = Limit::new(Some(1));
        let first = limit.take().await;
        let wait = |limit: Arc<Limit>| async move { tokio::time::timeout(Duration::from_secs(1), limit.take()).await };
        assert!(wait(limit.clone()).await.is_err());
        let waiting = tokio::spawn(wait(limit.clone()));
        tokio::task::yield_now().await;
        drop(first);
        let second = waiting.await.unwrap().unwrap();
        assert!(wait(limit.clone()).await.is_err());
        limit.set(Some(2));
        assert!(wait(limit.clone()).await.is_ok());
        drop(second);
    }
}
