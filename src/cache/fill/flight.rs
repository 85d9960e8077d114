//! One fill under way: its state, shared by its task and its readers.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

use super::{Arrival, Failure, FailureKind, FillOptions, Piece, Reader, pieces::Pieces};
use crate::{
    cache::{
        Body, Object, Store,
        budget::Charge,
        index::variant_of,
        object::{Draft, count},
        purge::Target,
    },
    message::{Fields, Framing, Request, Response},
};

/// 1xx responses kept for a leader that does not read them.
const MAX_INTERIMS: usize = 16;

/// A fetch, and everyone who reads it.
pub(in crate::cache) struct Fill {
    pub(super) store: Arc<Store>,
    pub(super) key: Arc<[u8]>,
    /// Its place in the sequence of fills and purges.
    pub(super) stamp: u64,
    pub(super) options: FillOptions,
    url: Option<Box<[u8]>>,
    state: Mutex<State>,
    /// Wakes readers.
    changed: watch::Sender<()>,
    /// Wakes the task: a reader has moved or left.
    pub(super) progress: Notify,
}

struct State {
    /// The leader's request.
    request: Request,
    seats: BTreeMap<u64, Seat>,
    last_seat: u64,
    interims: Vec<Arc<Response>>,
    /// [`Arrival::Head`], once it is there.
    head: Option<Arrival>,
    /// What is being stored, and its variant.
    draft: Option<(Arc<Draft>, Vec<u8>)>,
    pieces: Pieces,
    trailers: Option<Fields>,
    end: Option<Result<(), Failure>>,
    object: Option<Arc<Object>>,
    /// What the pieces are charged once the task is gone and no object holds them.
    charge: Option<Charge>,
    windowed: bool,
    /// Takes no more readers.
    closed: bool,
    /// Goes on without readers whatever the options say.
    detached: bool,
    /// Counted among the store's fills without readers.
    orphan: bool,
    /// The task has ended.
    over: bool,
}

/// One reader's place.
struct Seat {
    leader: bool,
    /// A follower's request, until the response's variant is known.
    request: Option<Request>,
    offset: u64,
    /// The response is not for it.
    refused: Option<&'static str>,
}

impl fmt::Debug for Fill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fill").field("stamp", &self.stamp).finish_non_exhaustive()
    }
}

impl Fill {
    pub(in crate::cache) fn new(
        store: &Arc<Store>,
        key: Arc<[u8]>,
        stamp: u64,
        request: &Request,
        options: FillOptions,
        url: Option<&[u8]>,
    ) -> Self {
        let state = State {
            request: request.clone(),
            seats: BTreeMap::new(),
            last_seat: 0,
            interims: Vec::new(),
            head: None,
            draft: None,
            pieces: Pieces::default(),
            trailers: None,
            end: None,
            object: None,
            charge: None,
            windowed: false,
            closed: false,
            detached: false,
            orphan: false,
            over: false,
        };
        Self {
            store: Arc::clone(store),
            key,
            stamp,
            options,
            url: url.map(Box::from),
            state: Mutex::new(state),
            changed: watch::Sender::new(()),
            progress: Notify::new(),
        }
    }

    /// The leader's reader.
    pub(in crate::cache) fn lead(self: &Arc<Self>) -> Reader {
        let seat = self.lock().sit(Seat { leader: true, request: None, offset: 0, refused: None });
        Reader::new(Arc::clone(self), seat, self.changed.subscribe(), None)
    }

    /// A follower's reader; `None` when the fill takes no more or is for another variant.
    pub(in crate::cache) fn join(self: &Arc<Self>, request: &Request, wait: Duration) -> Option<Reader> {
        let mut state = self.lock();
        if state.closed {
            return None;
        }
        let same = match &state.draft {
            Some((draft, variant)) => variant_of(&draft.vary, request) == *variant,
            None => self.store.same_variant(&self.key, &state.request, request),
        };
        if !same {
            return None;
        }
        let request = state.draft.is_none().then(|| request.clone());
        let seat = state.sit(Seat { leader: false, request, offset: 0, refused: None });
        self.settle_orphan(&mut state, false);
        Some(Reader::new(Arc::clone(self), seat, self.changed.subscribe(), Instant::now().checked_add(wait)))
    }

    /// Takes no more readers if a purge may be about it; returns whether that is so.
    pub(in crate::cache) fn overtaken(&self, purge: u64, target: &Target, keys: &[Arc<[u8]>]) -> bool {
        if self.stamp > purge {
            return false;
        }
        let mut state = self.lock();
        let named = match (&state.draft, &self.url, target) {
            _ if keys.contains(&self.key) => true,
            (Some((draft, _)), ..) => target.names(&draft.url, draft.tags.iter().map(|tag| &**tag)),
            (None, Some(url), Target::Url(_) | Target::Prefix(_)) => target.names(url, std::iter::empty()),
            (None, ..) => true,
        };
        state.closed |= named;
        named
    }

    pub(super) fn announce(&self, interim: Response) {
        let mut state = self.lock();
        if state.interims.len() < MAX_INTERIMS {
            state.interims.push(Arc::new(interim));
        }
        drop(state);
        self.wake();
    }

    /// The head of a response that is shared. `reason`: why it is not kept, if it is not.
    pub(super) fn open(&self, draft: &Arc<Draft>, reason: Option<&'static str>) {
        self.show(draft, Arc::new(draft.head.clone()), reason, false, Body::default());
        if reason.is_some() {
            self.turn_windowed();
        }
        self.wake();
    }

    /// The head and body of a stored object that a 304 confirmed.
    pub(super) fn confirm(
        &self,
        draft: &Arc<Draft>,
        head: Response,
        body: &Body,
        kept: Result<Arc<Object>, &'static str>,
    ) {
        self.show(draft, Arc::new(head), kept.as_ref().err().copied(), true, body.clone());
        self.finish(None, kept.ok(), None);
    }

    fn show(
        &self,
        draft: &Arc<Draft>,
        head: Arc<Response>,
        reason: Option<&'static str>,
        revalidated: bool,
        body: Body,
    ) {
        let mut state = self.lock();
        let variant = variant_of(&draft.vary, &draft.request);
        for seat in state.seats.values_mut() {
            let request = seat.request.take();
            if request.is_some_and(|request| variant_of(&draft.vary, &request) != variant) {
                seat.refused = Some("vary");
            }
        }
        let freshness = Some(draft.freshness);
        state.head = Some(Arrival::Head { head, freshness, stored: reason.is_none(), reason, revalidated });
        state.draft = Some((Arc::clone(draft), variant));
        state.pieces = Pieces::of(&body);
    }

    /// The head of a response that is the leader's alone.
    pub(super) fn keep_apart(&self, response: Response, reason: &'static str) {
        let mut state = self.lock();
        for seat in state.seats.values_mut().filter(|seat| !seat.leader) {
            seat.refused = Some(reason);
        }
        let head = Arc::new(response);
        state.head =
            Some(Arrival::Head { head, freshness: None, stored: false, reason: Some(reason), revalidated: false });
        drop(state);
        self.turn_windowed();
        self.wake();
    }

    /// From now on only a window is held, and nobody else may join.
    pub(super) fn turn_windowed(&self) {
        let mut state = self.lock();
        state.windowed = true;
        state.closed = true;
        drop(state);
        self.store.table().remove(self);
    }

    pub(super) fn push(&self, data: Bytes) {
        let mut state = self.lock();
        state.pieces.push(data);
        if !state.windowed {
            state.pieces.settle();
        }
        drop(state);
        self.wake();
    }

    /// Adds the last piece, which nobody sees before the end, and gives the whole body.
    pub(super) fn complete(&self, last: Option<Bytes>) -> Body {
        let mut state = self.lock();
        // Readers are not woken; one that looks by itself sees a complete body a moment early.
        last.into_iter().for_each(|data| state.pieces.push(data));
        state.pieces.seal();
        state.pieces.body()
    }

    /// The end of the body. `object`: what it was stored as; `charge`: what the pieces cost where it was not.
    pub(super) fn finish(&self, trailers: Option<Fields>, object: Option<Arc<Object>>, charge: Option<Charge>) {
        self.end(Ok(()), trailers, object, charge);
    }

    pub(super) fn fail(&self, failure: Failure, charge: Option<Charge>) {
        self.end(Err(failure), None, None, charge);
    }

    fn end(
        &self,
        end: Result<(), Failure>,
        trailers: Option<Fields>,
        object: Option<Arc<Object>>,
        charge: Option<Charge>,
    ) {
        let mut state = self.lock();
        if state.end.is_none() {
            state.end = Some(end);
            state.trailers = trailers;
            state.object = object;
            state.charge = charge;
            state.closed = true;
        }
        drop(state);
        self.wake();
    }

    /// The task is over, however it ended. Whoever still waits learns that nothing more comes.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        if std::mem::replace(&mut state.over, true) {
            return;
        }
        state.closed = true;
        self.settle_orphan(&mut state, false);
        drop(state);
        self.fail(Failure::new(FailureKind::Truncated, "the fetch was broken off"), None);
        self.store.table().remove(self);
        self.store.fill_ended(self.stamp);
    }

    /// Lets go of what every reader has had, when windowed; returns what is held. Else `None`.
    pub(super) fn trim(&self) -> Option<u64> {
        let mut state = self.lock();
        if !state.windowed {
            return None;
        }
        let slowest = state.seats.values().filter(|seat| seat.refused.is_none()).map(|seat| seat.offset).min();
        Some(state.pieces.trim(slowest.unwrap_or(u64::MAX)))
    }

    /// Whether nobody reads it and it is not to go on alone; it is closed then. `received`: of the body.
    pub(super) fn forsaken(&self, received: u64) -> bool {
        let mut state = self.lock();
        if state.seats.values().any(|seat| seat.refused.is_none()) {
            self.settle_orphan(&mut state, false);
            return false;
        }
        let goes_on = state.goes_on_alone(&self.options, received) && self.settle_orphan(&mut state, true);
        state.closed |= !goes_on;
        !goes_on
    }

    /// Counts it among the store's fills without readers, or no longer; false when there are too many.
    fn settle_orphan(&self, state: &mut State, orphan: bool) -> bool {
        if state.orphan != orphan {
            if orphan && !self.store.adopt_orphan() {
                return false;
            }
            if !orphan {
                self.store.release_orphan();
            }
            state.orphan = orphan;
        }
        true
    }

    /// Readers are many and sleep; they look again whenever anything changes.
    fn wake(&self) {
        self.changed.send_replace(());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What readers ask.
impl Fill {
    /// The arrival for this seat; `interims` counts those it has had.
    pub(super) fn arrival(&self, seat: u64, interims: &mut usize) -> Option<Result<Arrival, Failure>> {
        let state = self.lock();
        let own = state.seats.get(&seat)?;
        if let Some(reason) = own.refused {
            return Some(Ok(Arrival::NotForYou(reason)));
        }
        if own.leader
            && let Some(interim) = state.interims.get(*interims)
        {
            *interims += 1;
            return Some(Ok(Arrival::Interim(Arc::clone(interim))));
        }
        // A failure that is known before the head was read lets the reader answer otherwise.
        if let Some(Err(failure)) = &state.end {
            return Some(Err(failure.clone()));
        }
        state.head.clone().map(Ok)
    }

    /// The next piece for this seat.
    pub(super) fn piece(&self, seat: u64) -> Option<Result<Piece, Failure>> {
        let mut guard = self.lock();
        let state = &mut *guard;
        let Some(own) = state.seats.get_mut(&seat).filter(|own| own.refused.is_none()) else {
            return Some(Err(Failure::new(FailureKind::Protocol, "the response is not for this request")));
        };
        if let Some(data) = state.pieces.at(own.offset) {
            own.offset = own.offset.saturating_add(count(data.len()));
            if state.windowed {
                self.progress.notify_one();
            }
            return Some(Ok(Piece::Data(data)));
        }
        // Trailers are not shared (CACHE.md, what always holds, 7).
        let trailers = || if own.leader { state.trailers.clone() } else { None };
        state.end.as_ref().map(|end| end.clone().map(|()| Piece::End(trailers())))
    }

    pub(super) fn object(&self) -> Option<Arc<Object>> {
        self.lock().object.clone()
    }

    pub(super) fn leave(&self, seat: u64) {
        self.lock().seats.remove(&seat);
        self.progress.notify_one();
    }

    pub(super) fn detach(&self) {
        self.lock().detached = true;
    }
}

impl State {
    fn sit(&mut self, seat: Seat) -> u64 {
        self.last_seat += 1;
        self.seats.insert(self.last_seat, seat);
        self.last_seat
    }

    fn goes_on_alone(&self, options: &FillOptions, received: u64) -> bool {
        if self.windowed || (options.abandon && !self.detached) {
            return false;
        }
        // Before the head nothing is known of the rest; it will tell.
        let Some((draft, _)) = &self.draft else { return true };
        if self.detached || options.finish_percent == 0 {
            return true;
        }
        match draft.head.framing {
            Framing::None => true,
            Framing::Length(length) => {
                let share = u128::from(length) * u128::from(options.finish_percent);
                u128::from(received) * 100 >= share || length.saturating_sub(received) <= options.finish_bytes
            }
            Framing::Chunked | Framing::UntilClose | Framing::Stream => false,
        }
    }
}
