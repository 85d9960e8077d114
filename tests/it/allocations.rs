//! A hit allocates nothing: parsing its head, running its rules, looking it up, making its answer,
//! counting it.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    sync::Arc,
};

use tidegate::{
    cache::{
        fill::{Failure, FillOptions, Head, Judgement, Piece, Source},
        object::Draft,
    },
    config::{Frontend, Id},
    gateway::{
        clock,
        h1::{parse, write::Wire},
        lookup::write_key,
        plan::{Plan, Route, Scratch},
        shortcut::from_memory,
        snapshot::{Shared, Snapshot},
    },
    lang::{self, Outside},
    message::{Framing, Request, Response},
    metrics::Metrics,
    ops::Ops,
    policy::{
        storable::{Storable, storable},
        terms::Terms,
        variant::Vary,
    },
    rule::Client,
};

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

/// The rules of a small site: methods, paths, headers and cookies decide, a field is set on hits.
const RULES: &str = "\
cache edge
    memory 8m
frontend web
    bind 127.0.0.1:0
    acl static path_beg /static/ /assets/
    acl picture path_end -i .jpg .png
    acl signed_in req.cook(session) -m found
    acl odd hdr(user-agent) -m reg -i ^bad(bot)?$
    http-request deny if { path_beg /private } || odd
    http-request deny unless { method GET HEAD }
    http-response set-header X-Served-By tidegate
    use_backend other if { hdr(host) -m dom never.example }
    cache-rule assets ttl 1h if static || picture
    cache-rule pages ttl auto if !signed_in
    default_backend site
backend site
    server s1 127.0.0.1:1
backend other
    server s1 127.0.0.1:1
";

const HEAD: &[u8] =
    b"GET /a/page?x=1 HTTP/1.1\r\nHost: Site.Example:8080\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n\
    Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8\r\nAccept-Language: de,en;q=0.5\r\n\
    Accept-Encoding: gzip, deflate, br\r\nCookie: theme=dark; lang=de\r\nConnection: keep-alive\r\n\r\n";

/// A server whose response is fresh for an hour, and what a fill for `RULES` makes of it.
struct Stored {
    request: Request,
    rule: u64,
    sent: bool,
}

impl Source for Stored {
    async fn head(&mut self) -> Result<Head, Failure> {
        let lines = [("Cache-Control", "max-age=3600"), ("Vary", "Accept-Encoding"), ("Content-Length", "5")];
        let fields = lines.into_iter().collect();
        Ok(Head::Final(Response { framing: Framing::Length(5), fields, ..Response::new(200) }))
    }

    fn judge(&mut self, response: Response) -> Judgement {
        let now = clock::now();
        let Storable::Yes(freshness) = storable(&self.request, &response, &Terms::default(), now, now) else {
            panic!("not storable");
        };
        Judgement::Store(Box::new(Draft {
            request: self.request.clone(),
            url: b"http://site.example:8080/a/page?x=1".to_vec(),
            vary: Vary::of(&response.fields),
            head: response,
            freshness,
            tags: Vec::new(),
            rule: self.rule,
            key: None,
        }))
    }

    async fn body(&mut self) -> Result<Piece, Failure> {
        match std::mem::replace(&mut self.sent, true) {
            false => Ok(Piece::Data("hello".into())),
            true => Ok(Piece::End(None)),
        }
    }
}

/// Stores the response to `HEAD` as a fill would.
async fn store(snapshot: &Snapshot, frontend: Id<Frontend>, client: &Client, scratch: &mut Scratch) {
    let mut request = Request::default();
    parse::parse(HEAD, false, &mut request).unwrap().unwrap();
    let mut plan = Plan::decide(snapshot, frontend, client, &mut request, clock::both(), scratch);
    let Route::Fetch(candidates) = plan.route.clone() else { panic!("{:?}", plan.route) };
    let rule = snapshot.cache_rule(candidates[0]).unwrap();
    write_key(rule, &mut plan, client, &mut request, scratch);
    let options =
        FillOptions { wait: None, finish_percent: 0, finish_bytes: 0, abandon: false, max_object_size: 1 << 20 };
    let source = || Stored { request: request.clone(), rule: rule.fingerprint, sent: false };
    let (mut reader, _) = snapshot.store_of(rule).unwrap().fetch(&scratch.key, &request, options, source);
    while !matches!(reader.body().await.unwrap(), Piece::End(_)) {}
}

#[test]
fn a_hit_allocates_nothing() {
    let loaded = lang::load(vec![("site.cfg".to_owned(), RULES.into())], &Nothing, false);
    let config = loaded.config.unwrap_or_else(|| panic!("{:#?}", loaded.diagnostics));
    let shared = Shared::new(config, Arc::new(Ops::new(Arc::new(Metrics::new())))).unwrap();
    let (snapshot, frontend, client) = (shared.snapshot(), Id::new(0), Client::default());
    let (mut scratch, mut request, mut wire) = (Scratch::default(), Request::default(), Wire::default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(store(&snapshot, frontend, &client, &mut scratch));
    let mut hit = || {
        wire.clear();
        parse::parse(HEAD, false, &mut request).unwrap().unwrap();
        let mut plan = Plan::decide(&snapshot, frontend, &client, &mut request, clock::both(), &mut scratch);
        let ending = from_memory(&snapshot, &mut plan, &client, &mut request, &mut scratch, b"", &mut wire).unwrap();
        let series = snapshot.frontend_state(frontend).unwrap().requests(ending.rule);
        series.count(ending.outcome, ending.reason);
        assert_eq!(ending.status, 200);
    };
    // The first hits make the room that later ones reuse, and the head as the rules deliver it.
    (0..3).for_each(|_| hit());
    assert_eq!(count(|| (0..100).for_each(|_| hit())), 0);
    let text = String::from_utf8(wire.head.clone()).unwrap();
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\nhello"), "{text}");
    assert!(text.contains("X-Served-By: tidegate\r\n"), "{text}");
}

/// An outside without files and variables.
struct Nothing;

impl Outside for Nothing {
    fn read(&self, _: &str) -> std::io::Result<Vec<u8>> {
        Err(std::io::ErrorKind::NotFound.into())
    }

    fn var(&self, _: &str) -> Option<String> {
        None
    }
}
