//! HTTP/2: many streams at once on one connection.

use std::{
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::harness::{
    Client, Gate, Gateway, Origin,
    certificates::Authority,
    deadline::LIMIT,
    eventually,
    gateway::without_front,
    http2::{Http2, request},
    peers,
    rules::{secure, site_with_tls},
};

const STREAMS: usize = 100;

fn start(origin: &Origin, frontend: &str) -> (Gateway, Http2) {
    start_with(origin, "", frontend)
}

fn start_with(origin: &Origin, global: &str, frontend: &str) -> (Gateway, Http2) {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let crt = dir.path().join("t.pem");
    authority.write(&crt, &["t.example"]);
    let gateway = Gateway::start_in(dir, &site_with_tls(origin.address, &crt, global, frontend));
    let client = Http2::connect(secure(&gateway), "t.example", &authority.client(&["h2"]));
    (gateway, client)
}

const RULE: &str = "    cache-rule all ttl auto";

#[test]
fn a_hundred_streams_at_once_on_hits() {
    let body = "x".repeat(20_000);
    let copy = body.clone();
    let origin = Origin::start(move |_, wire| wire.reply(200, "Cache-Control: max-age=60", copy.as_bytes()));
    let (gateway, mut client) = start(&origin, RULE);
    client.get("https://t.example/a");
    for answer in client.all((0..STREAMS).map(|_| request("GET", "https://t.example/a")).collect()) {
        let answer = answer.unwrap();
        assert!(answer.is_hit());
        assert_eq!(answer.body, body.as_bytes());
    }
    assert_eq!(origin.count(), 1);
    gateway.assert_law();
    assert_eq!(gateway.metrics().outcome("hit"), STREAMS as u64);
}

#[test]
fn a_hundred_streams_at_once_on_misses() {
    let gate = Arc::new(Gate::default());
    let hold = Arc::clone(&gate);
    let origin = Origin::start(move |seen, wire| {
        wire.hold(&hold);
        wire.reply(200, "Cache-Control: max-age=60", seen.target.repeat(1000).as_bytes())
    });
    let (gateway, mut client) = start(&origin, RULE);
    let requests = (0..STREAMS).map(|number| request("GET", &format!("https://t.example/{number}"))).collect();
    let answers = std::thread::scope(|scope| {
        scope.spawn(|| {
            origin.wait_for(STREAMS);
            gate.open();
        });
        client.all(requests)
    });
    for (number, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.unwrap().body, format!("/{number}").repeat(1000).as_bytes());
    }
    assert_eq!(origin.count(), STREAMS);
    gateway.assert_law();
    assert_eq!(gateway.metrics().outcome("miss"), STREAMS as u64);
}

#[test]
fn bodies_go_up_and_come_back() {
    let origin = Origin::start(|seen, wire| wire.reply(200, "", &seen.body));
    let (gateway, mut client) = start(&origin, RULE);
    let body: Vec<u8> = (0..75_000u32).flat_map(u32::to_le_bytes).collect();
    let answer = client.exchange(request("POST", "https://t.example/a"), &body).unwrap();
    assert_eq!((answer.head.status.as_u16(), answer.body), (200, body));
    gateway.assert_law();
}

#[test]
fn head_conditional_and_absent_pages() {
    let origin = Origin::start(|seen, wire| match seen.path() {
        "/absent" => wire.reply(404, "", b"nothing here"),
        _ => wire.reply(200, "Cache-Control: max-age=60\nETag: \"v1\"", b"hello"),
    });
    let (gateway, mut client) = start(&origin, RULE);
    client.get("https://t.example/a");
    let head = client.exchange(request("HEAD", "https://t.example/a"), b"").unwrap();
    assert_eq!((head.head.status.as_u16(), head.field("content-length"), head.body.len()), (200, Some("5"), 0));
    let mut conditional = request("GET", "https://t.example/a");
    conditional.headers_mut().insert("if-none-match", "\"v1\"".parse().unwrap());
    assert_eq!(client.exchange(conditional, b"").unwrap().head.status.as_u16(), 304);
    let absent = client.get("https://t.example/absent");
    assert_eq!((absent.head.status.as_u16(), &absent.body[..]), (404, &b"nothing here"[..]));
    for name in ["connection", "keep-alive", "transfer-encoding"] {
        assert_eq!(absent.field(name), None, "{name} has no place in HTTP/2");
    }
    gateway.assert_law();
}

#[test]
fn the_origin_sees_authority_as_host_and_cookies_in_one_line() {
    let origin = Origin::fixed("", "x");
    let (_gateway, mut client) = start(&origin, RULE);
    let mut cookies = request("GET", "https://t.example/a?b=c");
    for cookie in ["a=1", "b=2"] {
        cookies.headers_mut().append("cookie", cookie.parse().unwrap());
    }
    client.exchange(cookies, b"").unwrap();
    let seen = origin.last();
    assert_eq!((seen.target.as_str(), seen.field("host")), ("/a?b=c", Some("t.example")));
    assert_eq!(seen.all("cookie"), ["a=1; b=2"]);
}

#[test]
fn a_stream_that_is_reset_disturbs_no_other() {
    let gate = Arc::new(Gate::default());
    let hold = Arc::clone(&gate);
    let origin = Origin::start(move |seen, wire| {
        if seen.path() == "/slow" {
            wire.head(200, "Cache-Control: max-age=60\nContent-Length: 6")?;
            wire.raw("abc")?;
            wire.hold(&hold);
            return wire.raw("def");
        }
        wire.chunked(200, "Cache-Control: max-age=60", &[&[b'x'; 100_000]])
    });
    let (gateway, mut client) = start(&origin, RULE);
    client.abandon("https://t.example/slow");
    let left = || gateway.scrape().sum("tidegate_misses_total", &["reason=\"client-gone\""]);
    eventually("the reset is seen", || left() == 1);
    for number in 0..3 {
        assert_eq!(client.get(&format!("https://t.example/{number}")).body.len(), 100_000);
    }
    gate.open();
    gateway.assert_law();
}

#[test]
fn a_truncated_body_resets_the_stream() {
    let origin = Origin::start(|_, wire| {
        wire.head(200, "Cache-Control: max-age=60\nContent-Length: 100")?;
        wire.raw("some")?;
        wire.close()
    });
    let (gateway, mut client) = start(&origin, RULE);
    let broken = client.exchange(request("GET", "https://t.example/a"), b"");
    assert!(broken.as_ref().map_or(true, |answer| answer.head.status.as_u16() == 502), "{broken:?}");
    origin.follow(|_, wire| wire.reply(200, "", b"whole"));
    assert_eq!(client.get("https://t.example/a").body, b"whole", "the connection goes on");
    gateway.assert_law();
}

#[test]
fn rules_answer_over_http_2() {
    let origin = Origin::fixed("", "x");
    let lines = "    http-request deny deny_status 403 if { path_beg /secret }
    http-request redirect location https://elsewhere.example/ code 302 if { path /moved }
    http-request return status 200 content-type text/plain string hello if { path /hello }
    http-response set-status 204 if { req.hdr(x-want) 204 }
    http-after-response set-header X-After yes";
    let (gateway, mut client) = start(&origin, lines);
    let table = [("/secret/a", 403), ("/moved", 302), ("/hello", 200), ("/else", 200)];
    for (path, status) in table {
        let answer = client.get(&format!("https://t.example{path}"));
        assert_eq!((answer.head.status.as_u16(), answer.field("x-after")), (status, Some("yes")), "{path}");
    }
    for method in ["GET", "POST", "GET"] {
        let mut wanting = request(method, "https://t.example/want");
        wanting.headers_mut().insert("x-want", "204".parse().unwrap());
        let answer = client.exchange(wanting, b"").unwrap();
        assert_eq!((answer.head.status.as_u16(), answer.body.len()), (204, 0), "{method}");
        assert_eq!(answer.field("content-length"), None, "{method}");
    }
    assert_eq!(origin.count(), 4);
    gateway.assert_law();
}

#[test]
fn expectations_are_met_or_refused_as_on_http_1() {
    let origin = Origin::start(|seen, wire| wire.reply(200, "", &seen.body));
    let (gateway, mut client) = start(&origin, RULE);
    for (expectation, status) in [("100-continue", 200), ("100-Continue", 200), ("a-miracle", 417)] {
        let mut post = request("POST", "https://t.example/a");
        post.headers_mut().insert("expect", expectation.parse().unwrap());
        let answer = client.exchange(post, b"body").unwrap();
        assert_eq!(answer.head.status.as_u16(), status, "{expectation}");
    }
    assert_eq!(origin.count(), 2);
    // With the engine, the expectation is met before it gets there.
    assert_eq!(origin.last().field("expect"), (!without_front()).then_some("100-continue"));
    gateway.assert_law();
    assert_eq!(gateway.metrics().outcome("refused"), 1);
}

#[test]
fn a_request_that_cannot_be_handed_to_the_engine_is_answered_and_counted() {
    let origin = Origin::fixed("", "x");
    let (gateway, mut client) =
        start_with(&origin, "    tune.front off", "    http-request set-path %[path]%[path]%[path]");
    let url = format!("https://t.example/{}", "a".repeat(30_000));
    let answer = client.exchange(request("POST", &url), b"body").unwrap();
    assert_eq!(answer.head.status.as_u16(), 500);
    gateway.assert_law();
    assert_eq!(gateway.metrics().outcome("error"), 1);
    assert_eq!(origin.count(), 0);
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A header block: GET of / on t.example, in literals that no table remembers.
fn block() -> Vec<u8> {
    [&[0x82, 0x87, 0x84, 0x01, 9][..], b"t.example"].concat()
}

/// Between what a client sends that is no request: a flood would be another reason to close.
const PACE: Duration = Duration::from_millis(50);

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

#[test]
fn what_is_no_request_keeps_no_connection() {
    let origin = Origin::fixed("Cache-Control: max-age=60", "x");
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let crt = dir.path().join("t.pem");
    authority.write(&crt, &["t.example"]);
    let lines = format!("    timeout http-request 1s\n    timeout http-keep-alive 2s\n{RULE}");
    let long = lines.replace("keep-alive 2s", "keep-alive 60s");
    let (ping, begun) = (frame(6, 0, 0, b"12345678"), frame(1, 0, 3, &block()));
    let (slow, request) = (frame(1, 5, 3, &[0x82; 200]), frame(1, 5, 1, &block()));
    let table = [
        ("pings, and never a request", &lines, vec![], &ping[..]),
        ("pings after a request", &lines, request.clone(), &ping),
        ("a first head that does not end", &long, begun.clone(), b""),
        ("a later head that does not end", &long, [request.clone(), begun].concat(), b""),
        ("a later head byte by byte", &long, [&request, &slow[..12]].concat(), b"\x82"),
    ];
    let gateways =
        [&lines, &long].map(|lines| (lines, Gateway::start(&site_with_tls(origin.address, &crt, "", lines))));
    std::thread::scope(|scope| {
        for (name, lines, first, again) in table {
            let gateway = &gateways.iter().find(|(of, _)| *of == lines).unwrap().1;
            let config = authority.client(&["h2"]);
            scope.spawn(move || {
                let mut client = Client::tls(secure(gateway), "t.example", &config).unwrap();
                client.send(PREFACE).send(first);
                let end = Instant::now() + LIMIT;
                while client.is_open(PACE) {
                    assert!(Instant::now() < end, "{name} keeps the connection");
                    client.send(again);
                    std::thread::sleep(PACE);
                }
            });
        }
    });
    gateways[0].1.assert_law();
}

#[test]
fn h2load_counts_no_failure() {
    let Some([h2load]) = peers::need("h2load", ["h2load"]) else { return };
    let origin = Origin::start(|seen, wire| {
        let fields = if seen.path() == "/hit" { "Cache-Control: max-age=60" } else { "Cache-Control: no-store" };
        wire.reply(200, fields, &[b'x'; 5_000])
    });
    let (gateway, _client) = start(&origin, RULE);
    for (path, requests) in [("hit", "5000"), ("miss", "1000")] {
        let url = format!("https://{}/{path}", secure(&gateway));
        let output =
            Command::new(&h2load).args(["-n", requests, "-c", "4", "-m", "100", "-t", "1", &url]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains(&format!("{requests} succeeded, 0 failed, 0 errored, 0 timeout")), "{said}");
        assert!(said.contains("status codes") && said.contains(&format!("{requests} 2xx")), "{said}");
    }
    gateway.assert_law();
    assert_eq!(gateway.metrics().requests(), 6000);
}

#[test]
fn rules_wait_for_bodies_and_pass_them_on_whole() {
    let origin = Origin::start(|seen, wire| {
        let body = format!("{} {}", seen.field("x-len").unwrap_or_default(), seen.body.len());
        wire.reply(200, "", body.as_bytes())
    });
    let rules = "    http-request wait-for-body time 10s if { path /wait }
    http-request wait-for-body time 200ms if { path /short }
    http-request set-header X-Len %[req.body_len]
    http-request deny if { req.body -m sub attack }";
    let (gateway, mut client) = start_with(&origin, "    tune.bufsize 4096\n", rules);
    let large = b"0123456789".repeat(100_000);
    for (body, expected) in [(&b"body"[..], "4 4"), (&large, "1000000")] {
        let answer = client.exchange(request("POST", "https://t.example/wait"), body).unwrap();
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(answer.head.status == 200 && text.ends_with(expected), "{} {text}", answer.head.status);
    }
    let refused = client.exchange(request("POST", "https://t.example/wait"), b"an attack").unwrap();
    assert_eq!(refused.head.status, 403);
    assert_eq!(origin.count(), 2);
    gateway.assert_law();
}
