//! A request on its way through the proxy engine, counted wherever it ends.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use super::{
    fault::Fault,
    log::{self, AccessLog, Ending, Line, Traffic},
    plan::Plan,
    snapshot::Snapshot,
};
use crate::{message::Request, rule::Client};

/// A request with everything that has been decided about it. One that is dropped before its end was
/// counted is counted as left by its client.
#[derive(Debug)]
pub struct Job {
    /// The configuration that it began under.
    pub snapshot: Arc<Snapshot>,
    /// What rules decided.
    pub plan: Plan,
    /// The client.
    pub client: Arc<Client>,
    /// The request, edited by rules.
    pub request: Request,
    /// Whether the client asked for WebSocket.
    pub upgrade: bool,
    /// Its part of the log line.
    pub line: Line,
    /// When its head was complete.
    pub received: Instant,
    /// Where its line goes; `None` once it has been counted.
    pub log: Option<AccessLog>,
}

impl Job {
    /// Counts the request's end and logs it.
    pub fn ended(mut self, ending: &Ending, traffic: Traffic) {
        self.settle(ending, traffic);
    }

    /// As [`Job::ended`], for a request whose bytes nobody counted.
    pub fn ended_here(self, ending: &Ending) {
        let duration = self.received.elapsed();
        self.ended(ending, Traffic { duration, ..Traffic::default() });
    }

    /// Counts a request that was answered with a fault.
    pub fn failed(self, fault: &Fault, traffic: Traffic) {
        let Fault { status, outcome, reason } = *fault;
        let ending = Ending { status, outcome, reason: Some(reason), rule: self.plan.rule() };
        self.ended(&ending, traffic);
    }

    fn settle(&mut self, ending: &Ending, traffic: Traffic) {
        if let Some(log) = self.log.take() {
            log::settle(&self.snapshot, &mut self.plan, &self.client, self.line.take(), ending, traffic, &log);
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let traffic = Traffic { duration: self.received.elapsed(), ..Traffic::default() };
        self.settle(&Ending::client_gone(&self.plan), traffic);
    }
}

/// A job in a request's extensions, which are cloned with every header: it is shared until it is taken.
#[derive(Clone, Debug)]
pub struct Handover(Arc<Mutex<Option<Job>>>);

impl Handover {
    /// Hands `job` over.
    pub fn new(job: Job) -> Self {
        Self(Arc::new(Mutex::new(Some(job))))
    }

    /// Takes the job out; `None` when it has been taken.
    pub fn take(&self) -> Option<Job> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Puts a job back that was taken out.
    pub fn put(&self, job: Job) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(job);
    }
}
