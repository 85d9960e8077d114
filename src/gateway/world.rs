//! What rules may ask of the running gateway.

use super::snapshot::Snapshot;
use crate::{
    config::{Backend, Frontend, Id},
    rule::{Env, Fact, Sample},
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
}

impl Env for World<'_> {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn random(&self) -> u64 {
        fastrand::u64(..)
    }

    fn fact(&self, fact: Fact<'_>) -> Option<Sample<'_>> {
        match fact {
            Fact::FrontendName => Some(Sample::Str(self.snapshot.frontend(self.frontend)?.name.as_bytes())),
            Fact::BackendName => Some(Sample::Str(self.snapshot.backend(self.backend?)?.name.as_bytes())),
            Fact::FrontendConnections(name) => {
                let id = match name {
                    Some(name) => self.snapshot.frontend_named(std::str::from_utf8(name).ok()?)?,
                    None => self.frontend,
                };
                Some(Sample::Int(self.snapshot.frontend_state(id)?.metrics.active.get()))
            }
        }
    }
}
