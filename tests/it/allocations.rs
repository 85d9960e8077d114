//! A hit allocates nothing: parsing its head, running its rules, looking it up, writing its answer, counting it.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use tidegate::{
    cache::{Seen, fill::FillOptions, fill::Piece},
    config::{Config, Id},
    gateway::{
        clock,
        decide::Decided,
        exchange::Pool,
        fetch,
        h1::{parse::parse, write::Wire},
        log::Ending,
        lookup::write_key,
        plan::{Plan, Route, Scratch},
        shortcut,
        snapshot::{Shared, Snapshot},
    },
    lang::{self, Outside},
    message::Request,
    metrics::{Metrics, Outcome},
    ops::Ops,
    rule::Client,
};

use crate::harness::{Origin, site};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, with a count for each thread.
struct Counting;

fn note() {
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

#[expect(unsafe_code, reason = "an allocator cannot be had without")]
// SAFETY: every call is the system allocator's, with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note();
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// How often this thread allocates while `work` runs.
fn count(work: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

#[test]
fn allocations_are_counted() {
    assert_eq!(count(|| drop(std::hint::black_box(Box::new(1)))), 1);
    assert_eq!(count(|| assert_eq!(std::hint::black_box(1), 1)), 0);
}

/// Rules that decide by everything a request has, and edit what is delivered.
const RULES: &str = "    option forwardfor
    acl static path_beg /static/ /assets/
    acl picture path_end -i .jpg .png .webp
    acl page path_reg ^/[a-z]+$
    acl loggedin req.cook(session) -m found
    acl local src 127.0.0.0/8 ::1
    acl mobile req.hdr(User-Agent) -m sub -i mobile
    http-request deny if { path_beg /private } !local
    http-request set-var(txn.kind) str(page) if page
    http-request deny if { req.hdr(X-Bad) -m found }
    http-request del-header X-Secret
    http-response set-header X-Served-By tidegate
    http-response del-header X-Powered-By
    cache-rule assets ttl 1h if static or picture
    cache-rule mobile ttl 1m key host path hdr(X-Device) if mobile
    cache-rule rest ttl auto if !loggedin";

/// What a browser sends.
const HIT: &[u8] = b"GET /page?id=12 HTTP/1.1\r\nHost: t.example\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n\
    Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
    Accept-Language: en-GB,en;q=0.5\r\nAccept-Encoding: gzip, deflate, br\r\nCookie: theme=dark; seen=1\r\n\
    Upgrade-Insecure-Requests: 1\r\nSec-Fetch-Dest: document\r\nConnection: keep-alive\r\n\r\n";

/// Nothing that these rules ask for.
struct Nowhere;

impl Outside for Nowhere {
    fn read(&self, _: &str) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn var(&self, _: &str) -> Option<String> {
        None
    }
}

fn load(text: String) -> Config {
    let loaded = lang::load(vec![("site.cfg".to_owned(), text.into_bytes())], &Nowhere, false);
    let found = lang::render(&loaded, false);
    loaded.config.unwrap_or_else(|| panic!("{found}"))
}

/// A connection's room, and what it sees.
struct Connection {
    snapshot: Arc<Snapshot>,
    client: Client,
    request: Request,
    scratch: Scratch,
    wire: Wire,
}

impl Connection {
    /// Parses the head and runs the rules.
    fn decide(&mut self, head: &[u8]) -> Plan {
        let parsed = parse(head, false, &mut self.request);
        assert!(matches!(parsed, Ok(Some((_, size))) if size == head.len()));
        let clock = (clock::now(), Instant::now());
        let Self { snapshot, client, request, scratch, .. } = self;
        match Plan::decide(snapshot, Id::new(0), client, request, clock, scratch) {
            Decided::Made(plan) => plan,
            Decided::Paused(..) => panic!("there is no body to wait for"),
        }
    }

    /// Answers from memory and counts it.
    fn hit(&mut self, head: &[u8]) -> Option<Ending> {
        let mut plan = self.decide(head);
        let Self { snapshot, client, request, scratch, wire, .. } = self;
        wire.clear();
        let ending = shortcut::from_memory(snapshot, &mut plan, client, request, scratch, b"", wire)?;
        let state = snapshot.frontend_state(Id::new(0)).expect("a frontend");
        state.metrics.requests.add(1);
        state.metrics.duration.observe(Duration::from_micros(5));
        state.requests(ending.rule).count(ending.outcome, ending.reason);
        scratch.take_back(&mut plan);
        Some(ending)
    }

    /// Has the origin's answer stored.
    async fn fill(&mut self, head: &[u8]) {
        let mut plan = self.decide(head);
        let Route::Fetch(candidates) = plan.route.clone() else { panic!("not to be fetched: {:?}", plan.route) };
        let rule = self.snapshot.cache_rule(candidates[0]).expect("a rule");
        let store = self.snapshot.store_of(rule).expect("a store").clone();
        write_key(&self.snapshot, rule, &mut plan, &self.client, &mut self.request, &mut self.scratch);
        let options = FillOptions {
            wait: Some(Duration::from_secs(5)),
            alone: false,
            finish_percent: 0,
            finish_bytes: 0,
            abandon: false,
            max_object_size: 1 << 20,
        };
        let (snapshot, client) = (self.snapshot.clone(), Arc::new(self.client.clone()));
        let request = self.request.clone();
        let source = || fetch::Origin::new(Pool::new(), snapshot, plan, candidates, client, request, None);
        let fetched = store.fetch(&self.scratch.key, &self.request, options, Seen::Whatever, source);
        let (mut reader, _) = fetched.expect("a fill");
        reader.head().await.expect("a head");
        while !matches!(reader.body().await.expect("a body"), Piece::End(_)) {}
    }
}

#[test]
fn a_hit_allocates_nothing() {
    let fields = "Cache-Control: max-age=600\nVary: Accept-Encoding\nX-Powered-By: old\nETag: \"v1\"";
    let origin = Origin::fixed(fields, "hello");
    let config = load(site(origin.address, RULES));
    let shared = Shared::new(config, Arc::new(Ops::new(Arc::new(Metrics::new())))).unwrap();
    let mut connection = Connection {
        snapshot: shared.snapshot(),
        client: Client { src: Some("127.0.0.1:5".parse().unwrap()), ..Client::default() },
        request: Request::default(),
        scratch: Scratch::default(),
        wire: Wire::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(connection.fill(HIT));
    for _ in 0..3 {
        let ending = connection.hit(HIT).expect("a hit");
        assert_eq!((ending.status, ending.outcome), (200, Outcome::Hit));
    }
    let answer = String::from_utf8_lossy(&connection.wire.head).into_owned();
    assert!(answer.contains("X-Served-By: tidegate") && answer.ends_with("\r\n\r\nhello"), "{answer}");
    assert!(!answer.contains("X-Powered-By"), "{answer}");
    for _ in 0..10 {
        assert_eq!(count(|| assert!(connection.hit(HIT).is_some())), 0);
    }
    assert_eq!(origin.count(), 1);
}
