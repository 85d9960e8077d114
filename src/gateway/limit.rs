//! `maxconn`: how many connections there may be, over all workers and configurations.

use std::{
    collections::HashMap,
    pin::pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::Notify;

use super::snapshot::Snapshot;

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
    frontends: Mutex<HashMap<String, Arc<Limit>>>,
}

impl Limits {
    /// The limits of a configuration.
    pub fn new(snapshot: &Snapshot) -> Arc<Self> {
        let limits = Self { global: Limit::new(None), frontends: Mutex::default() };
        limits.set(snapshot);
        Arc::new(limits)
    }

    /// Takes over the limits of another configuration.
    pub fn set(&self, snapshot: &Snapshot) {
        self.global.set(snapshot.config.global.maxconn);
        for frontend in &snapshot.config.frontends {
            self.of(&frontend.name).set(frontend.maxconn);
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
