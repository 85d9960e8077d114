//! Places for connections. When all are taken, the one whose client has been waited for longest is closed, so that
//! clients who say nothing keep nobody out.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    task::AbortHandle,
    time::Instant,
};

/// The places.
#[derive(Debug)]
pub(super) struct Room {
    places: Arc<Semaphore>,
    guests: Mutex<HashMap<u64, Guest>>,
    last: AtomicU64,
    /// A guest has become one that is waited for.
    rests: Notify,
}

#[derive(Debug)]
struct Guest {
    task: Option<AbortHandle>,
    /// Since when its client is waited for; `None` while it is served.
    waiting: Option<Instant>,
}

/// A connection's place, which is given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    room: Arc<Room>,
    number: u64,
    _permit: OwnedSemaphorePermit,
}

impl Room {
    pub(super) fn new(places: usize) -> Arc<Self> {
        Arc::new(Self {
            places: Arc::new(Semaphore::new(places)),
            guests: Mutex::default(),
            last: AtomicU64::new(0),
            rests: Notify::new(),
        })
    }

    /// A place; waits only while every connection is being served.
    pub(super) async fn enter(self: &Arc<Self>) -> Place {
        loop {
            if let Ok(permit) = Arc::clone(&self.places).try_acquire_owned() {
                return self.place(permit);
            }
            let acquired = Arc::clone(&self.places).acquire_owned();
            let permit = if self.close_one() {
                acquired.await
            } else {
                tokio::select! {
                    permit = acquired => permit,
                    () = self.rests.notified() => continue,
                }
            };
            // The semaphore is never closed.
            if let Ok(permit) = permit {
                return self.place(permit);
            }
        }
    }

    fn place(self: &Arc<Self>, permit: OwnedSemaphorePermit) -> Place {
        let number = self.last.fetch_add(1, Relaxed);
        self.guests().insert(number, Guest { task: None, waiting: Some(Instant::now()) });
        Place { room: Arc::clone(self), number, _permit: permit }
    }

    /// Closes the one that is waited for longest; its place comes free soon. False when all are served.
    fn close_one(&self) -> bool {
        let mut guests = self.guests();
        let waited_for = guests.iter_mut().filter(|(_, guest)| guest.waiting.is_some() && guest.task.is_some());
        let Some((_, guest)) = waited_for.min_by_key(|(number, guest)| (guest.waiting, **number)) else {
            return false;
        };
        guest.waiting = None;
        guest.task.take().inspect(AbortHandle::abort);
        true
    }

    /// Says which task serves the connection in place `number`.
    pub(super) fn served_by(&self, number: u64, task: AbortHandle) {
        if let Some(guest) = self.guests().get_mut(&number) {
            guest.task = Some(task);
        }
    }

    fn guests(&self) -> MutexGuard<'_, HashMap<u64, Guest>> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// Serves: the connection is not closed for others until `work` is done.
    pub(super) async fn serving<T>(&self, work: impl Future<Output = T>) -> T {
        self.wait_since(None);
        let done = work.await;
        self.wait_since(Some(Instant::now()));
        self.room.rests.notify_one();
        done
    }

    fn wait_since(&self, waiting: Option<Instant>) {
        if let Some(guest) = self.room.guests().get_mut(&self.number) {
            guest.waiting = waiting;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.guests().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::{future::pending, time::Duration};

    use super::*;

    async fn fill(room: &Arc<Room>, served: bool) -> tokio::task::JoinHandle<()> {
        let place = room.enter().await;
        let number = place.number();
        let task = tokio::spawn(async move {
            if served {
                place.serving(tokio::time::sleep(Duration::from_secs(5))).await;
            }
            pending::<()>().await;
            drop(place);
        });
        room.served_by(number, task.abort_handle());
        tokio::task::yield_now().await;
        task
    }

    #[tokio::test(start_paused = true)]
    async fn the_one_that_is_waited_for_longest_makes_room() {
        let room = Room::new(3);
        let served = fill(&room, true).await;
        let (oldest, younger) = (fill(&room, false).await, fill(&room, false).await);
        let _place = room.enter().await;
        assert!(oldest.await.is_err_and(|error| error.is_cancelled()));
        assert!(!served.is_finished() && !younger.is_finished());
    }

    #[tokio::test(start_paused = true)]
    async fn while_all_are_served_the_next_waits() {
        let room = Room::new(2);
        let (one, two) = (fill(&room, true).await, fill(&room, true).await);
        let begun = Instant::now();
        let _place = room.enter().await;
        assert_eq!(begun.elapsed(), Duration::from_secs(5));
        assert_eq!(usize::from(one.is_finished()) + usize::from(two.is_finished()), 1);
    }
}
