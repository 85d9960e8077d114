//! Waiting for something to become true, and no longer.

use std::{
    sync::{Condvar, Mutex},
    thread,
    time::{Duration, Instant},
};

/// How long a test waits for anything before it fails.
pub const LIMIT: Duration = Duration::from_secs(20);

/// Asks `holds` again and again until it is true.
///
/// # Panics
/// When it is still false after [`LIMIT`].
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < end, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Closed at first; whoever waits goes on once it is open.
#[derive(Debug, Default)]
pub struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    /// Lets everyone through, from now on.
    pub fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.changed.notify_all();
    }

    /// Waits until the gate is open. Gives up after [`LIMIT`], so that a failed test ends.
    pub fn wait(&self) {
        let open = self.open.lock().unwrap();
        drop(self.changed.wait_timeout_while(open, LIMIT, |open| !*open).unwrap());
    }
}
