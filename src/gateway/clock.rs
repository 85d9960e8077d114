//! The one place where clocks are read.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::time::Timestamp;

/// The time on the wall.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// The time on the wall and the one that only goes forward.
pub fn both() -> (Timestamp, Instant) {
    (now(), Instant::now())
}
