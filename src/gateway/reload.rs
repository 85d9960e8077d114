//! Changing the configuration of a running gateway: all of it or nothing.
//!
//! New binds are opened before anything changes, so that a port in use leaves the old configuration in
//! place. Binds that stay keep their sockets and connections. Removed ones are closed after the new
//! configuration is in force; what the kernel has accepted for them by then is still served.

use std::{collections::HashSet, sync::PoisonError};

use super::{
    listener::{self, Key},
    server::{Crew, WorkerOrder, abandon, open},
};
use crate::config::Config;

impl Crew {
    /// Takes over what `load` reads; the text says what changed.
    ///
    /// # Errors
    /// Why it cannot be read, does not load, or cannot listen; nothing has changed then.
    pub(super) fn reload(&self, load: &dyn Fn() -> Result<Config, String>) -> Result<String, String> {
        let config = load()?;
        let before: HashSet<Key> = self.bound.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect();
        let after: HashSet<Key> = listener::binds(&config.frontends).into_iter().map(|listed| listed.key).collect();
        let opened = open(&config.frontends, |key| !before.contains(key), self.size())?;
        let snapshot = self.shared.prepare(config).inspect_err(|_| abandon(&opened))?;
        let config = &snapshot.config;
        if config.global.threads.is_some_and(|threads| threads != self.size()) {
            tracing::warn!("nbthread is taken over at the next start");
        }
        let names: HashSet<String> = config.stores.iter().map(|store| store.name.clone()).collect();
        self.limits.set(&snapshot);
        self.shared.install(snapshot);
        self.shared.ops().stores().retain(|name| names.contains(name));
        let added = opened.len();
        self.serve(opened);
        let removed: Vec<&Key> = before.difference(&after).collect();
        for key in &removed {
            self.close(key);
        }
        let binds = if added == 1 { "bind" } else { "binds" };
        Ok(format!("configuration reloaded, {added} {binds} added, {} removed", removed.len()))
    }

    fn close(&self, key: &Key) {
        tracing::info!("no longer listening on {}", key.address);
        self.order(|| WorkerOrder::Close(key.clone()));
        self.bound.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        listener::remove(&key.address);
    }
}
