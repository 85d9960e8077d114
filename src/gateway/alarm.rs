//! A timer that is set again and again, and seldom rings.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};

/// One timer for the life of whatever it watches. Moving it to a later time costs nothing until it rings.
#[derive(Debug)]
pub struct Alarm {
    sleep: Option<Pin<Box<Sleep>>>,
    at: Instant,
}

impl Alarm {
    /// An alarm that has not been set.
    pub fn new() -> Self {
        Self { sleep: None, at: Instant::now() }
    }

    /// Sets it.
    pub const fn set(&mut self, at: Instant) {
        self.at = at;
    }

    /// Ready at the time last set.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let at = self.at;
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(at)));
        if sleep.deadline() > at {
            sleep.as_mut().reset(at);
        }
        while sleep.as_mut().poll(context).is_ready() {
            if sleep.deadline() >= at {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(at);
        }
        Poll::Pending
    }

    /// For a write that is pending: ready with an error when that lasts for `stall`.
    pub fn stalled<T>(&mut self, armed: &mut bool, stall: Duration, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if !std::mem::replace(armed, true) {
            self.set(Instant::now() + stall);
        }
        self.poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Default for Alarm {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_rings_at_the_time_last_set() {
        let mut alarm = Alarm::new();
        let start = Instant::now();
        for (set, now) in [(10, 10), (12, 12), (30, 30)] {
            alarm.set(start + Duration::from_secs(60));
            let rings = poll_fn(|context| Poll::Ready(alarm.poll(context).is_ready())).await;
            assert!(!rings);
            alarm.set(start + Duration::from_secs(set));
            poll_fn(|context| alarm.poll(context)).await;
            assert_eq!(start.elapsed().as_secs(), now);
        }
    }
}
