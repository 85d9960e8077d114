//! What an exchange and its connection are tracked by (`track-sc0`, HAProxy manual §4.2), and what is counted for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{
    session::Session,
    table::{Datum, Tracked},
};

/// Keys that a request can be tracked by at a time: `sc0`, `sc1`, `sc2`.
pub const SLOTS: usize = 3;

/// Keys that something is tracked by, each in its slot. The first that is put in a slot stays there.
#[derive(Debug, Default)]
pub struct Slots(Mutex<[Option<Tracked>; SLOTS]>);

impl Slots {
    /// Puts what `make` makes into the slot when that is free.
    pub fn fill(&self, slot: usize, make: impl FnOnce() -> Option<Tracked>) {
        if let Some(slot) = self.lock().get_mut(slot).filter(|slot| slot.is_none()) {
            *slot = make();
        }
    }

    /// Reads what is in the slot; `None` when it is free.
    pub fn with<T>(&self, slot: usize, read: impl FnOnce(&Tracked) -> T) -> Option<T> {
        self.lock().get(slot)?.as_ref().map(read)
    }

    /// Whether every slot is free.
    pub fn is_empty(&self) -> bool {
        self.lock().iter().all(Option::is_none)
    }

    /// Counts for every key, at a time in milliseconds.
    pub fn count(&self, event: Event, now: u64) {
        self.lock().iter().flatten().for_each(|tracked| event.count(tracked, now));
    }

    /// Ends the tracking by every key, at a time in milliseconds.
    pub fn end(&self, now: u64) {
        let all = std::mem::take(&mut *self.lock());
        all.into_iter().flatten().for_each(|tracked| tracked.end(now));
    }

    fn lock(&self) -> MutexGuard<'_, [Option<Tracked>; SLOTS]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one exchange is tracked by: by rules of its own, and by those of its connection.
#[derive(Debug, Default)]
pub struct Tracks {
    session: Option<Arc<Session>>,
    own: Slots,
}

/// What is counted for an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A connection was let in.
    Session,
    /// A request has come.
    Request,
    /// The client did wrong: a response of 4xx, a refusal.
    ClientError,
    /// The server did wrong: a response of 5xx but 501 and 505, or none.
    Failure,
    /// So many bytes came from the client.
    Received(u64),
    /// So many bytes were sent to it.
    Sent(u64),
}

impl Event {
    /// What a response of this status is; `None` when it is nothing of the kind.
    pub const fn of_status(status: u16) -> Option<Self> {
        match status {
            400..=499 => Some(Self::ClientError),
            501 | 505 => None,
            500..=599 => Some(Self::Failure),
            _ => None,
        }
    }

    const fn parts(self) -> ([Datum; 2], u64) {
        match self {
            Self::Session => ([Datum::SessCnt, Datum::SessRate], 1),
            Self::Request => ([Datum::HttpReqCnt, Datum::HttpReqRate], 1),
            Self::ClientError => ([Datum::HttpErrCnt, Datum::HttpErrRate], 1),
            Self::Failure => ([Datum::HttpFailCnt, Datum::HttpFailRate], 1),
            Self::Received(bytes) => ([Datum::BytesInCnt, Datum::BytesInRate], bytes),
            Self::Sent(bytes) => ([Datum::BytesOutCnt, Datum::BytesOutRate], bytes),
        }
    }

    /// Counts for one key, at a time in milliseconds.
    pub fn count(self, tracked: &Tracked, now: u64) {
        let (data, number) = self.parts();
        for datum in data {
            tracked.entry(now).add(datum, 0, number);
        }
    }
}

impl Tracks {
    /// Those of an exchange of this connection, which may keep nothing.
    pub fn new(session: Option<Arc<Session>>) -> Self {
        Self { session, own: Slots::default() }
    }

    /// Puts what `make` makes into a slot that is free for the exchange and for its connection.
    pub fn fill(&self, slot: usize, make: impl FnOnce() -> Option<Tracked>) {
        let taken = self.session.as_ref().is_some_and(|session| session.tracks.with(slot, |_| ()).is_some());
        if !taken {
            self.own.fill(slot, make);
        }
    }

    /// Reads what is in a slot; `None` when it is free.
    pub fn with<T>(&self, slot: usize, read: impl FnOnce(&Tracked) -> T) -> Option<T> {
        let mut read = Some(read);
        let own = self.own.with(slot, |tracked| read.take().map(|read| read(tracked)));
        match (own, read) {
            (Some(value), _) => value,
            (None, Some(read)) => self.session.as_ref()?.tracks.with(slot, read),
            (None, None) => None,
        }
    }

    /// Counts for every key that the exchange is tracked by, at a time in milliseconds.
    pub fn count(&self, event: Event, now: u64) {
        for slot in 0..SLOTS {
            self.with(slot, |tracked| event.count(tracked, now));
        }
    }

    /// Ends what rules of the exchange began, at a time in milliseconds.
    pub fn end(&self, now: u64) {
        self.own.end(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::table::{Column, Key, KeyKind, Spec, Table};

    fn table() -> Arc<Table> {
        let count = |datum| Column { datum, count: 1, period: 0 };
        let stored = [Datum::ConnCur, Datum::SessCnt, Datum::HttpReqCnt, Datum::HttpErrCnt, Datum::BytesOutCnt];
        Arc::new(Table::new(Spec {
            name: "t".to_owned(),
            key: KeyKind::Int,
            size: 10,
            expire: None,
            nopurge: false,
            stored: stored.map(count).into(),
        }))
    }

    fn seen(table: &Table, key: u32) -> Option<Vec<u64>> {
        let data = [Datum::ConnCur, Datum::SessCnt, Datum::HttpReqCnt, Datum::HttpErrCnt, Datum::BytesOutCnt];
        table.with(&Key::Int(key), 0, |entry| data.iter().filter_map(|datum| entry.get(*datum, 0)).collect())
    }

    #[test]
    fn the_first_key_of_a_slot_counts_the_connections_before_the_exchanges() {
        let (table, session) = (table(), Arc::<Session>::default());
        session.tracks.fill(0, || table.track(&Key::Int(1), 0));
        session.tracks.fill(0, || table.track(&Key::Int(2), 0));
        session.tracks.count(Event::Session, 0);
        let tracks = Tracks::new(Some(session.clone()));
        tracks.fill(0, || table.track(&Key::Int(3), 0));
        tracks.fill(1, || table.track(&Key::Int(4), 0));
        for event in [Event::Request, Event::ClientError, Event::Sent(70_000)] {
            tracks.count(event, 0);
        }
        assert_eq!(seen(&table, 1), Some(vec![1, 1, 1, 1, 70_000]));
        assert_eq!([seen(&table, 2), seen(&table, 3)], [None, None]);
        assert_eq!(seen(&table, 4), Some(vec![1, 0, 1, 1, 70_000]));
        tracks.end(0);
        assert_eq!(seen(&table, 4), Some(vec![0, 0, 1, 1, 70_000]));
        assert_eq!(seen(&table, 1), Some(vec![1, 1, 1, 1, 70_000]));
        drop((tracks, session));
        assert_eq!(seen(&table, 1), Some(vec![0, 1, 1, 1, 70_000]));
    }

    #[test]
    fn statuses_are_the_fault_of_one_side_or_of_none() {
        let of = |status| Event::of_status(status);
        assert_eq!([of(399), of(400), of(499)], [None, Some(Event::ClientError), Some(Event::ClientError)]);
        assert_eq!([of(500), of(501), of(505), of(599)], [Some(Event::Failure), None, None, Some(Event::Failure)]);
        assert_eq!([of(200), of(304), of(600)], [None, None, None]);
    }
}
