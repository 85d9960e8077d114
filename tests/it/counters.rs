//! The law of the counters: requests = hit + stale + revalidated + collapsed + miss + pass + answered +
//! purge + refused + error, and each of them agrees with what clients and the origin counted.

use std::{
    collections::BTreeMap,
    env,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use crate::harness::{
    Client, Gate, Gateway, Origin, client::request, eventually, metrics::Metrics, rules::site_with, site,
};

const RULES: &str = "    http-request deny if { path_beg /denied }
    http-request return status 200 content-type text/plain string here if { path_beg /here }
    http-request redirect location /elsewhere code 302 if { path_beg /moved }
    http-request purge if { method PURGE }
    cache-rule all ttl auto";

/// A small generator of numbers, the same for the same seed everywhere.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % n as u64).unwrap()
    }
}

/// `TIDEGATE_TEST_SEED`, or a new one; printed, so that a failure can be run again.
pub(crate) fn seed() -> u64 {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos();
    let seed = env::var("TIDEGATE_TEST_SEED").map_or_else(|_| u64::from(now()) | 1, |seed| seed.parse().unwrap());
    eprintln!("TIDEGATE_TEST_SEED={seed}");
    seed
}

fn origin() -> Origin {
    Origin::start(|seen, wire| match seen.path() {
        path if path.starts_with("/cached") => wire.reply(200, "Cache-Control: max-age=600", path.as_bytes()),
        path if path.starts_with("/validated") => match seen.field("if-none-match") {
            Some(_) => wire.raw("HTTP/1.1 304 Not Modified\r\nETag: \"v\"\r\nCache-Control: max-age=0\r\n\r\n"),
            None => wire.reply(200, "Cache-Control: max-age=0\nETag: \"v\"", path.as_bytes()),
        },
        path if path.starts_with("/private") => wire.reply(200, "Cache-Control: private", b"private"),
        path if path.starts_with("/broken") => {
            wire.raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")?;
            wire.close()
        }
        path if path.starts_with("/nonsense") => {
            wire.raw("nonsense\r\n\r\n")?;
            wire.close()
        }
        path => wire.reply(200, "", path.as_bytes()),
    })
}

/// What a request looks like: its bytes, and the outcomes that it may have.
fn draw(random: &mut Random) -> (&'static str, Vec<u8>, &'static [&'static str]) {
    let number = random.below(5);
    match random.below(14) {
        0..4 => ("GET", request("GET", &format!("/cached{number}"), "", b""), &["hit", "miss"]),
        4 => ("HEAD", request("HEAD", &format!("/cached{number}"), "", b""), &["hit", "miss", "pass"]),
        5 | 6 => ("GET", request("GET", &format!("/validated{number}"), "", b""), &["revalidated", "miss"]),
        7 => ("GET", request("GET", &format!("/private{number}"), "", b""), &["miss", "pass"]),
        8 => ("POST", request("POST", "/post", "", b"some body"), &["pass"]),
        9 => ("GET", request("GET", "/denied", "", b""), &["refused"]),
        10 => ("GET", request("GET", "/here", "", b""), &["answered"]),
        11 => ("GET", request("GET", "/moved", "", b""), &["answered"]),
        12 => ("PURGE", request("PURGE", &format!("/cached{number}"), "", b""), &["purge"]),
        _ => match number {
            0 => ("GET", request("GET", "/broken", "", b""), &["error"]),
            1 => ("GET", request("GET", "/nonsense", "", b""), &["error"]),
            2 => ("GET", b"GET /x HTTP/1.1\r\n: nothing\r\n\r\n".to_vec(), &["refused"]),
            3 => (
                "GET",
                request("GET", "/none", "Cache-Control: only-if-cached", b""),
                &["error", "miss", "answered", "refused"],
            ),
            _ => ("CONNECT", b"CONNECT t.example:1 HTTP/1.1\r\nHost: t.example:1\r\n\r\n".to_vec(), &["refused"]),
        },
    }
}

#[test]
fn the_law_holds_over_a_random_mix() {
    let origin = origin();
    let gateway = Gateway::start(&site(origin.address, RULES));
    let mut random = Random(seed());
    let mut possible: BTreeMap<&str, u64> = BTreeMap::new();
    let mut certain: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut hits, mut client) = (0, None);
    let all = 600;
    for _ in 0..all {
        let (method, bytes, outcomes) = draw(&mut random);
        for outcome in outcomes {
            *possible.entry(outcome).or_default() += 1;
        }
        if let [outcome] = outcomes {
            *certain.entry(outcome).or_default() += 1;
        }
        let mut connection = client.take().unwrap_or_else(|| gateway.client());
        match connection.send(&bytes).try_read(method) {
            Ok(response) => {
                hits += u64::from(response.is_hit());
                if !response.closes() && random.below(20) > 0 {
                    client = Some(connection);
                }
            }
            Err(broken) => assert!(String::from_utf8_lossy(&bytes).contains("/broken"), "{broken:#?}"),
        }
    }
    gateway.assert_law();
    let metrics = gateway.metrics();
    assert_eq!(metrics.requests(), all, "every request that a client sent is counted");
    assert_eq!(metrics.outcome("hit"), hits, "hits are what clients were told");
    for outcome in ["hit", "revalidated", "miss", "pass", "answered", "purge", "refused", "error"] {
        let (least, most) = (certain.get(outcome).copied().unwrap_or(0), possible.get(outcome).copied().unwrap_or(0));
        let counted = metrics.outcome(outcome);
        assert!((least..=most).contains(&counted), "{outcome}: {counted} is not within {least}..={most}");
    }
    assert_eq!(metrics.outcome("stale") + metrics.outcome("collapsed"), 0);
    let seen = u64::try_from(origin.count()).unwrap();
    assert_eq!(metrics.backend_requests(), seen, "the origin counted the same");
    assert!(metrics.backend_errors() >= metrics.sum("tidegate_request_outcomes_total", &["outcome=\"error\""]) / 2);
}

#[test]
fn bytes_and_durations_are_counted() {
    let origin = Origin::start(|_, wire| wire.reply(200, "Cache-Control: max-age=60", &[b'x'; 100_000]));
    let gateway = Gateway::start(&site(origin.address, RULES));
    for _ in 0..3 {
        gateway.get("/cached");
    }
    let holds = |metrics: &Metrics| {
        (300_000..310_000).contains(&metrics.sum("tidegate_sent_bytes_total", &[]))
            && metrics.sum("tidegate_received_bytes_total", &[]) > 100
            && metrics.sum("tidegate_request_duration_seconds_count", &[]) == 3
            && metrics.sum("tidegate_store_bytes", &[]) > 100_000
            && metrics.sum("tidegate_store_objects", &[]) == 1
    };
    eventually("bytes, durations and objects are counted", || holds(&gateway.scrape()));
}

#[test]
fn clients_that_leave_behind_pipelined_hits_break_no_law() {
    let origin = Origin::start(|seen, wire| {
        wire.reply(200, if seen.path() == "/keep" { "Cache-Control: max-age=60" } else { "" }, &[b'x'; 8_000])
    });
    let gateway = Gateway::start(&site(origin.address, RULES));
    gateway.get("/keep");
    let last = [
        request("POST", "/a", "", b"a body"),
        request("GET", "/miss", "", b""),
        request("GET", "/denied", "", b""),
        request("GET", "/keep", "", b""),
    ];
    for round in 0..20 {
        for (hits, last) in (1..=5).flat_map(|hits| last.iter().map(move |last| (hits, last))) {
            let mut client = Client::connect(gateway.address());
            client.send([request("GET", "/keep", "", b"").repeat(hits), last.clone()].concat());
            if round % 2 == 0 {
                // Some leave before anything was sent, some while it is.
                client.take(1);
            }
            client.reset_on_drop();
        }
    }
    gateway.assert_law();
}

#[test]
fn clients_that_leave_anywhere_break_no_law() {
    let gate = Arc::new(Gate::default());
    let hold = Arc::clone(&gate);
    let origin = Origin::start(move |seen, wire| {
        wire.hold(&hold);
        wire.reply(200, if seen.path() == "/keep" { "Cache-Control: max-age=60" } else { "" }, &[b'x'; 50_000])
    });
    let gateway = Gateway::start(&site(origin.address, RULES));
    let whole = [request("POST", "/a", "", b"a body"), request("GET", "/keep", "", b""), request("GET", "/b", "", b"")];
    for bytes in whole {
        for cut in (1..=bytes.len()).step_by(5).chain([bytes.len()]) {
            let mut client = Client::connect(gateway.address());
            client.send(&bytes[..cut]);
            client.reset_on_drop();
        }
    }
    gate.open();
    assert_eq!(gateway.get("/keep").body.len(), 50_000);
    gateway.assert_law();
}

#[test]
fn a_client_that_leaves_is_one_word_and_no_servers_error() {
    let gate = Arc::new(Gate::default());
    let hold = Arc::clone(&gate);
    let origin = Origin::start(move |seen, wire| {
        if seen.path().ends_with("/head") {
            wire.head(200, "Cache-Control: max-age=60\nContent-Length: 10")?;
            wire.raw("half")?;
        }
        wire.hold(&hold);
        wire.close()
    });
    // Without the front the proxy engine has the reply, and learns of a departure only when it writes.
    let rules = "    cache-rule all ttl auto if { method GET }";
    let gateway = Gateway::start(&site_with(origin.address, "    tune.front on", rules, ""));
    let table = [
        ("GET", "/fill", ""),
        ("GET", "/fill/head", ""),
        ("POST", "/pass", ""),
        ("POST", "/pass/head", ""),
        ("POST", "/engine", "body"),
        ("POST", "/engine/head", "body"),
    ];
    for (number, (method, path, body)) in table.into_iter().enumerate() {
        let mut client = gateway.client();
        client.send(request(method, path, "", body.as_bytes()));
        origin.wait_for(number + 1);
        if path.ends_with("/head") {
            client.read_head().unwrap();
        }
        client.reset_on_drop();
        drop(client);
        let reason = ["reason=\"client-gone\""];
        eventually(path, || gateway.scrape().sum("tidegate_misses_total", &reason) == number as u64 + 1);
    }
    gateway.assert_law();
    let metrics = gateway.metrics();
    assert_eq!((metrics.outcome("miss"), metrics.outcome("pass"), metrics.outcome("error")), (2, 4, 0));
    gate.open();
}

#[test]
fn a_request_that_cannot_be_handed_to_the_engine_is_answered_and_counted() {
    let origin = Origin::fixed("", "x");
    // What asks for another protocol is the engine's in any case.
    for (front, method, fields) in [("on", "GET", "Connection: upgrade\nUpgrade: websocket"), ("off", "POST", "")] {
        let lines = "    http-request set-path %[path]%[path]%[path]";
        let gateway = Gateway::start(&site_with(origin.address, &format!("    tune.front {front}"), lines, ""));
        let path = format!("/{}", "a".repeat(30_000));
        let mut client = gateway.client();
        let response = client.request(method, &path, fields, if method == "POST" { b"body" } else { b"" });
        assert_eq!((response.status, response.closes()), (500, true));
        assert!(client.is_closed());
        gateway.assert_law();
        assert_eq!(gateway.metrics().outcome("error"), 1);
    }
    assert_eq!(origin.count(), 0);
}
