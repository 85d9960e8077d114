//! The memory tier: what leaves when the budget is used up.
//!
//! Two queues of the S3-FIFO kind: what is new waits in the small one and is soon gone unless it was asked
//! for again; what was asked for circulates in the main one and leaves when it no longer is. A list of
//! those that left the small queue lets them into the main one when they come back, so one pass over many
//! objects does not wash out the ones in use. A hit touches none of this: it only counts in the object.

use std::{
    collections::{HashSet, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU8, Ordering::Relaxed},
    },
};

use ahash::RandomState;

use super::object::Object;

/// Which queue an object is in; changed under the queues' lock only.
#[derive(Debug, Default)]
pub(super) struct Seat(AtomicU8);

impl Seat {
    const NONE: u8 = 0;
    const SMALL: u8 = 1;
    const MAIN: u8 = 2;
    const GONE: u8 = 3;

    fn get(&self) -> u8 {
        self.0.load(Relaxed)
    }

    fn set(&self, seat: u8) {
        self.0.store(seat, Relaxed);
    }
}

/// The small queue's share of the budget is one in so many bytes.
const SMALL_SHARE: u64 = 10;
/// Hits that carry an object from the small queue to the main one.
const PROMOTED: u8 = 2;
/// Objects passed over before one victim is taken; bounds the time under the lock.
const CHANCES: usize = 256;
/// The counts of an object that nobody reads: the index's, and that of who looks.
const INDEX_AND_OURS: usize = 2;
/// The least number of departed objects that are remembered; else as many as there are objects.
const GHOSTS: usize = 1024;

/// The queues.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<Queues>);

#[derive(Debug, Default)]
struct Queues {
    small: Queue,
    main: Queue,
    ghosts: Ghosts,
    /// Tickets of objects that were removed by others; an estimate.
    dead: usize,
}

#[derive(Debug, Default)]
struct Queue {
    /// Oldest first. An object that is gone from the index leaves its ticket behind until its turn.
    tickets: VecDeque<Weak<Object>>,
    bytes: u64,
}

/// Fingerprints of what left the small queue.
#[derive(Debug, Default)]
struct Ghosts {
    order: VecDeque<u64>,
    present: HashSet<u64, RandomState>,
}

impl Memory {
    /// Takes in an object that is in the index. `known`: it replaces one that had proved itself.
    pub(super) fn admit(&self, object: &Arc<Object>, fingerprint: u64, known: bool) {
        let mut queues = self.lock();
        // Whoever took it out of the index in the meantime came first.
        if object.seat.get() != Seat::NONE {
            return;
        }
        let known = queues.ghosts.forget(fingerprint) || known;
        queues.push(object, if known { Seat::MAIN } else { Seat::SMALL });
        queues.sweep();
    }

    /// Forgets an object that was taken out of the index; returns whether it was in the main queue.
    pub(super) fn forget(&self, object: &Object) -> bool {
        let mut queues = self.lock();
        let seat = object.seat.get();
        object.seat.set(Seat::GONE);
        match seat {
            Seat::SMALL => queues.small.bytes = queues.small.bytes.saturating_sub(object.cost()),
            Seat::MAIN => queues.main.bytes = queues.main.bytes.saturating_sub(object.cost()),
            _ => return false,
        }
        queues.dead += 1;
        seat == Seat::MAIN
    }

    /// Chooses what has to go, out of a budget of `limit` bytes; `None` when there is nothing to be had. The
    /// caller takes it out of the index.
    pub(super) fn victim(&self, limit: u64, fingerprint: impl Fn(&Object) -> u64) -> Option<Arc<Object>> {
        let mut queues = self.lock();
        let mut chances = CHANCES;
        loop {
            let small_first = queues.small.bytes > limit / SMALL_SHARE;
            let (object, seat) = queues.pop(small_first)?;
            // What a reader holds would stay in memory and charged: to evict it frees nothing.
            if Arc::strong_count(&object) > INDEX_AND_OURS {
                queues.push(&object, seat);
                chances = chances.checked_sub(1)?;
                continue;
            }
            let frequency = object.frequency();
            let spared = match seat {
                Seat::SMALL => frequency >= PROMOTED,
                _ => frequency > 0,
            };
            if spared && chances > 0 {
                chances -= 1;
                object.set_frequency(if seat == Seat::SMALL { 0 } else { frequency.saturating_sub(1) });
                queues.push(&object, Seat::MAIN);
                continue;
            }
            object.seat.set(Seat::GONE);
            if seat == Seat::SMALL {
                let room = (queues.small.tickets.len() + queues.main.tickets.len()).max(GHOSTS);
                queues.ghosts.remember(fingerprint(&object), room);
            }
            return Some(object);
        }
    }

    /// No panic leaves the queues half changed in a way that matters.
    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queues {
    fn push(&mut self, object: &Arc<Object>, seat: u8) {
        let queue = if seat == Seat::MAIN { &mut self.main } else { &mut self.small };
        object.seat.set(seat);
        queue.bytes += object.cost();
        queue.tickets.push_back(Arc::downgrade(object));
    }

    /// The oldest object of the preferred queue, or of the other if that is empty.
    fn pop(&mut self, small_first: bool) -> Option<(Arc<Object>, u8)> {
        let order = if small_first { [Seat::SMALL, Seat::MAIN] } else { [Seat::MAIN, Seat::SMALL] };
        for seat in order {
            let queue = if seat == Seat::MAIN { &mut self.main } else { &mut self.small };
            while let Some(ticket) = queue.tickets.pop_front() {
                match ticket.upgrade() {
                    Some(object) if object.seat.get() == seat => {
                        queue.bytes = queue.bytes.saturating_sub(object.cost());
                        return Some((object, seat));
                    }
                    _ => self.dead = self.dead.saturating_sub(1),
                }
            }
        }
        None
    }

    /// Throws dead tickets out once they are the greater part.
    fn sweep(&mut self) {
        if self.dead < GHOSTS || self.dead < (self.small.tickets.len() + self.main.tickets.len()) / 2 {
            return;
        }
        for (queue, seat) in [(&mut self.small, Seat::SMALL), (&mut self.main, Seat::MAIN)] {
            queue.tickets.retain(|ticket| ticket.upgrade().is_some_and(|object| object.seat.get() == seat));
            queue.tickets.shrink_to_fit();
        }
        self.dead = 0;
    }
}

impl Ghosts {
    fn remember(&mut self, fingerprint: u64, room: usize) {
        if self.present.insert(fingerprint) {
            self.order.push_back(fingerprint);
        }
        while self.order.len() > room
            && let Some(oldest) = self.order.pop_front()
        {
            self.present.remove(&oldest);
        }
    }

    fn forget(&mut self, fingerprint: u64) -> bool {
        self.present.remove(&fingerprint)
    }
}
