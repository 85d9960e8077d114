//! A store as the gateway uses it: lookup, fetch, purge.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use super::{
    budget::{Budget, Charge},
    fill::{self, Ending, Fill, FillOptions, Joined, Reader, Source, Table},
    index::Index,
    memory::Memory,
    object::{Body, Delivered, Draft, Object, count},
    purge::{Mark, Purged, Sequence, Target},
    tags::Groups,
};
use crate::{message::Request, metrics::StoreMetrics, time::Timestamp};

/// What a lookup found.
#[derive(Debug)]
pub enum Lookup {
    /// An object of the right variant, fresh or not.
    Found(Arc<Object>),
    /// Objects under the key, none for this request's fields.
    VaryMiss,
    /// Nothing.
    Miss,
}

/// What whoever fetches has found before.
#[derive(Clone, Copy, Debug)]
pub enum Seen<'a> {
    /// Whatever is stored, it is to be fetched.
    Whatever,
    /// This, by a lookup; only if it is still so, it is to be fetched.
    This(Option<&'a Arc<Object>>),
}

/// Limits of a store, from its `cache` section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Hard budget in bytes, overhead included.
    pub memory: u64,
    /// Largest body kept.
    pub max_object_size: u64,
    /// Variants under one key.
    pub max_variants: usize,
}

/// Numbers for `/v1/stats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Objects.
    pub objects: u64,
    /// Bytes charged.
    pub used: u64,
    /// The budget.
    pub budget: u64,
    /// Fills under way.
    pub fills: u64,
}

/// Fills that may go on without readers at the same time.
const MAX_ORPHANS: usize = 128;

/// A store of responses. Outlives snapshots; found again by name.
pub struct Store {
    name: String,
    budget: Arc<Budget>,
    max_object_size: AtomicU64,
    max_variants: AtomicUsize,
    index: Index,
    memory: Memory,
    by_tag: Groups,
    by_url: Groups,
    sequence: Sequence,
    table: Table,
    orphans: AtomicUsize,
    metrics: Arc<StoreMetrics>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("name", &self.name).field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl Store {
    /// An empty store.
    pub fn new(name: &str, limits: Limits, metrics: Arc<StoreMetrics>) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            budget: Budget::new(limits.memory, Arc::clone(&metrics)),
            max_object_size: AtomicU64::new(limits.max_object_size),
            max_variants: AtomicUsize::new(limits.max_variants),
            index: Index::new(),
            memory: Memory::default(),
            by_tag: Groups::new(),
            by_url: Groups::new(),
            sequence: Sequence::default(),
            table: Table::new(),
            orphans: AtomicUsize::new(0),
            metrics,
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes new limits, after a reload; evicts down to them. A lower cap on variants is reached as variants come.
    pub fn set_limits(&self, limits: Limits) {
        self.max_object_size.store(limits.max_object_size, Relaxed);
        self.max_variants.store(limits.max_variants, Relaxed);
        self.budget.set_limit(limits.memory);
        while !self.budget.fits(0)
            && let Some(victim) = self.victim()
        {
            self.evict(&victim, "limit");
        }
    }

    /// Looks `key` and the request's variant up. Allocates nothing; `scratch` is room for the variant key.
    pub fn lookup(&self, key: &[u8], request: &Request, scratch: &mut Vec<u8>) -> Lookup {
        let found = self.index.find(key, request, scratch);
        if let Lookup::Found(object) = &found {
            object.touch();
        }
        found
    }

    /// The request fields, in lower case, that what is stored under `key` depends on.
    pub fn vary_of(&self, key: &[u8]) -> Vec<Box<str>> {
        let objects = self.index.of_key(key);
        let mut names: Vec<Box<str>> = objects.iter().flat_map(|object| object.vary().names().to_vec()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Joins the fill under way for this key and variant, or starts one on the current tokio runtime from
    /// what `source` makes. Remembered private keys (hit-for-miss) always lead a fill of their own.
    /// `source` is called under a lock: it must not call the store.
    /// `None`: what `seen` says is not true any more, a fill that ended in between has stored something; look
    /// again. Never with [`Seen::Whatever`].
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn fetch<S: Source>(
        self: &Arc<Self>,
        key: &[u8],
        request: &Request,
        options: FillOptions,
        seen: Seen<'_>,
        source: impl FnOnce() -> S,
    ) -> Option<(Reader, Joined)> {
        let Some(wait) = options.wait.filter(|_| !self.table.is_apart(key)) else {
            let source = source();
            let fill = self.new_fill(&Arc::from(key), request, options, &source);
            return Some((self.start(fill, source), Joined::Leader));
        };
        self.join_or_lead(key, request, options, wait, seen, source)
    }

    /// Starts a fill that goes on in the background until what it brings is stored, unless one for this key
    /// and variant is under way, a response of the key was private just now, or too many fills go on without
    /// readers. Returns whether it started one.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn refresh<S: Source>(
        self: &Arc<Self>,
        key: &[u8],
        request: &Request,
        options: FillOptions,
        source: impl FnOnce() -> S,
    ) -> bool {
        if self.table.is_apart(key) || self.orphans.load(Relaxed) >= MAX_ORPHANS {
            return false;
        }
        match self.join_or_lead(key, request, options, Duration::ZERO, Seen::Whatever, source) {
            Some((reader, Joined::Leader)) => {
                reader.detach();
                true
            }
            Some((_, Joined::Follower)) | None => false,
        }
    }

    /// Purges; effective for every lookup and every fill that began before it returns.
    pub fn purge(&self, target: &Target, soft: bool, now: Timestamp) -> Purged {
        let mark = if soft { Mark::Stale(now) } else { Mark::Gone };
        let (number, keys) = self.sequence.purge(target, mark, || match target {
            Target::Url(url) => self.by_url.keys(url.as_bytes()),
            Target::Tag(_) | Target::Prefix(_) | Target::All => Vec::new(),
        });
        self.table.overtake(number, target, &keys);
        let mut purged = Purged::default();
        for object in self.named(target, &keys).iter().filter(|object| object.stamp() < number) {
            purged.matched += 1;
            purged.purged += u64::from(self.apply(object, mark));
        }
        self.metrics.purged.add(purged.purged);
        purged
    }

    /// Present numbers.
    pub fn stats(&self) -> StoreStats {
        let gauge = |value: i64| u64::try_from(value).unwrap_or_default();
        StoreStats {
            objects: gauge(self.metrics.objects.get()),
            used: self.budget.used(),
            budget: self.budget.limit(),
            fills: gauge(self.metrics.fills.get()),
        }
    }

    fn join_or_lead<S: Source>(
        self: &Arc<Self>,
        key: &[u8],
        request: &Request,
        options: FillOptions,
        wait: Duration,
        seen: Seen<'_>,
        source: impl FnOnce() -> S,
    ) -> Option<(Reader, Joined)> {
        let key: Arc<[u8]> = Arc::from(key);
        let start = || {
            self.still(seen, &key, request).then(|| {
                let source = source();
                (self.new_fill(&key, request, options, &source), source)
            })
        };
        match self.table.join_or_start(&key, |fill| fill.join(request, wait), start) {
            Ok(reader) => Some((reader, Joined::Follower)),
            Err(started) => started.map(|(fill, source)| (self.start(fill, source), Joined::Leader)),
        }
    }

    fn still(&self, seen: Seen<'_>, key: &[u8], request: &Request) -> bool {
        let Seen::This(seen) = seen else { return true };
        match self.index.find(key, request, &mut Vec::new()) {
            Lookup::Found(object) => seen.is_some_and(|seen| Arc::ptr_eq(seen, &object)),
            Lookup::VaryMiss | Lookup::Miss => true,
        }
    }

    fn new_fill<S: Source>(
        self: &Arc<Self>,
        key: &Arc<[u8]>,
        request: &Request,
        options: FillOptions,
        source: &S,
    ) -> Arc<Fill> {
        let stamp = self.sequence.begin_fill();
        self.metrics.fills.add(1);
        Arc::new(Fill::new(self, Arc::clone(key), stamp, request, options, source.url()))
    }

    fn start<S: Source>(&self, fill: Arc<Fill>, source: S) -> Reader {
        let reader = fill.lead();
        tokio::spawn(fill::run(Ending(fill), source));
        reader
    }

    /// The objects a purge is about. One URL's entry goes as a whole: the other variants answer it as well.
    fn named(&self, target: &Target, keys: &[Arc<[u8]>]) -> Vec<Arc<Object>> {
        match target {
            Target::Url(_) => keys.iter().flat_map(|key| self.index.of_key(key)).collect(),
            Target::Tag(tag) => {
                let of_keys = self.by_tag.keys(tag.as_bytes());
                let objects = of_keys.iter().flat_map(|key| self.index.of_key(key));
                objects.filter(|object| object.tags().any(|own| own == tag)).collect()
            }
            Target::Prefix(_) => self.index.of_entries_with(|object| target.names(object.url(), object.tags())),
            Target::All => self.index.of_entries_with(|_| true),
        }
    }

    /// Does to an object what a purge wants; false when somebody else took it first.
    fn apply(&self, object: &Arc<Object>, mark: Mark) -> bool {
        let expired = match mark {
            Mark::Gone => None,
            Mark::Stale(now) => self.charged(object.expired(now), object.body_charge()).map(Arc::new),
        };
        let Some(expired) = expired else {
            let removed = self.index.remove(object);
            if removed {
                self.removed(object);
            }
            return removed;
        };
        if !self.index.replace(object, &expired) {
            return false;
        }
        let proved = self.memory.forget(object);
        self.memory.admit(&expired, self.index.fingerprint(&expired), proved);
        true
    }
}

/// What fills ask of their store.
impl Store {
    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    /// The largest body kept: what the limits say, and half of the budget at most, since a larger one would
    /// empty the store for itself.
    pub(super) fn max_object_size(&self) -> u64 {
        self.max_object_size.load(Relaxed).min(self.budget.limit() / 2)
    }

    pub(super) fn same_variant(&self, key: &[u8], one: &Request, other: &Request) -> bool {
        self.index.same_variant(key, one, other)
    }

    pub(super) fn no_charge(&self) -> Charge {
        Charge::none(&self.budget)
    }

    /// Charges `bytes` more, evicting what has to go for them; false when there is no room to be had.
    pub(super) fn reserve(&self, charge: &mut Charge, bytes: u64) -> bool {
        // Others may take the room that was made; a few attempts are enough or the store is in a bad way.
        (0..4).any(|_| charge.grow(bytes) || (self.make_room(bytes) && charge.grow(bytes)))
    }

    /// Keeps the head that hits of one snapshot get beside its object, charged to the budget. Without room
    /// for it, it is made again for each hit.
    pub fn keep_delivered(
        &self,
        object: &Object,
        (generation, route): (u64, (usize, usize)),
        status: u16,
        wire: &[u8],
    ) {
        let mut charge = self.no_charge();
        if self.reserve(&mut charge, count(wire.len() + size_of::<Delivered>())) {
            let made = Delivered { generation, route, status, wire: wire.into(), _charge: charge };
            object.delivered.store(Some(Arc::new(made)));
        }
    }

    /// Lets go of the heads that snapshots other than `generation` had kept. Looks at every object. A request that
    /// began under one of them may still keep one: the next hit replaces it.
    pub fn forget_delivered(&self, generation: u64) {
        self.index.each(|object| {
            if object.delivered.load().as_ref().is_some_and(|kept| kept.generation != generation) {
                object.delivered.store(None);
            }
        });
    }

    /// Stores a finished body that was charged as it grew. What is not stored gives the charge back.
    pub(super) fn keep_charged(
        &self,
        draft: &Draft,
        key: &Arc<[u8]>,
        stamp: u64,
        body: Body,
        mut charge: Charge,
    ) -> (Option<Arc<Object>>, Option<Charge>) {
        if !self.reserve(&mut charge, body.handles()) {
            self.refused("no-room");
            return (None, Some(charge));
        }
        let charge = Arc::new(charge);
        match self.keep(draft, key, stamp, body, Some(Arc::clone(&charge))) {
            Ok(object) => (Some(object), None),
            Err(_) => (None, Arc::into_inner(charge)),
        }
    }

    /// Stores an object, unless there is no room for it or a purge or a later fill has overtaken its fill.
    pub(super) fn keep(
        &self,
        draft: &Draft,
        key: &Arc<[u8]>,
        stamp: u64,
        body: Body,
        body_charge: Option<Arc<Charge>>,
    ) -> Result<Arc<Object>, &'static str> {
        let object = Object::new(draft, Arc::clone(key), stamp, body);
        let Some(mut object) = self.charged(object, body_charge) else {
            self.refused("no-room");
            return Err("no-room");
        };
        let tags = || draft.tags.iter().map(|tag| &**tag);
        let placed = self.sequence.settle(stamp, key, &draft.url, tags, |mark| {
            match mark {
                Some(Mark::Gone) => return None,
                Some(Mark::Stale(now)) => object.freshness.expire(now),
                None => {}
            }
            let object = Arc::new(object);
            self.link(&object);
            let displaced = self.index.insert(Arc::clone(&object), self.max_variants.load(Relaxed));
            if displaced.is_none() {
                self.unlink(&object);
            }
            displaced.map(|displaced| (object, displaced))
        });
        let Some((object, displaced)) = placed else {
            self.refused("overtaken");
            return Err("overtaken");
        };
        self.metrics.objects.add(1);
        self.metrics.inserts.add(1);
        let proved = displaced.replaced.as_ref().is_some_and(|old| self.removed(old));
        for variant in &displaced.evicted {
            self.removed(variant);
            self.metrics.evictions.add("variants", 1);
        }
        self.memory.admit(&object, self.index.fingerprint(&object), proved);
        Ok(object)
    }

    /// Counts a response that may be stored and was not.
    pub(super) fn refused(&self, reason: &'static str) {
        self.metrics.refusals.add(reason, 1);
    }

    pub(super) fn fill_ended(&self, stamp: u64) {
        self.sequence.end_fill(stamp);
        self.metrics.fills.add(-1);
    }

    pub(super) fn adopt_orphan(&self) -> bool {
        let one_more = |orphans: usize| (orphans < MAX_ORPHANS).then_some(orphans + 1);
        self.orphans.fetch_update(Relaxed, Relaxed, one_more).is_ok()
    }

    pub(super) fn release_orphan(&self) {
        self.orphans.fetch_sub(1, Relaxed);
    }
}

/// Room.
impl Store {
    /// Charges what an object costs beside its body; `None` when there is no room.
    fn charged(&self, object: Object, body: Option<Arc<Charge>>) -> Option<Object> {
        let mut own = self.no_charge();
        self.reserve(&mut own, object.overhead()).then(|| object.charged(own, body))
    }

    /// Evicts until `bytes` fit; false when that is not to be had.
    fn make_room(&self, bytes: u64) -> bool {
        while !self.budget.fits(bytes) {
            if bytes > self.budget.limit() {
                return false;
            }
            let Some(victim) = self.victim() else { return false };
            self.evict(&victim, "room");
        }
        true
    }

    fn victim(&self) -> Option<Arc<Object>> {
        self.memory.victim(self.budget.limit(), |object| self.index.fingerprint(object))
    }

    fn evict(&self, object: &Arc<Object>, reason: &'static str) {
        if self.index.remove(object) {
            self.unlink(object);
            self.metrics.objects.add(-1);
            self.metrics.evictions.add(reason, 1);
        }
    }

    /// Follows up on an object that was taken out of the index; returns whether it had proved itself.
    fn removed(&self, object: &Arc<Object>) -> bool {
        self.unlink(object);
        self.metrics.objects.add(-1);
        self.memory.forget(object)
    }

    fn link(&self, object: &Object) {
        self.by_url.link(object.url(), object.key());
        object.tags().for_each(|tag| self.by_tag.link(tag.as_bytes(), object.key()));
    }

    fn unlink(&self, object: &Object) {
        self.by_url.unlink(object.url(), object.key());
        object.tags().for_each(|tag| self.by_tag.unlink(tag.as_bytes(), object.key()));
    }
}
