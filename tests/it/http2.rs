//! HTTP/2: many streams at once on one connection.

use std::{process::Command, sync::Arc};

use crate::harness::{
    Gate, Gateway, Origin,
    certificates::Authority,
    http2::{Http2, request},
    peers,
    rules::{secure, site_with_tls},
};

const STREAMS: usize = 100;

fn start(origin: &Origin, frontend: &str) -> (Gateway, Http2) {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let crt = dir.path().join("t.pem");
    authority.write(&crt, &["t.example"]);
    let gateway = Gateway::start_in(dir, &site_with_tls(origin.address, &crt, "", frontend));
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
            wire.hold(&hold);
        }
        wire.chunked(200, "Cache-Control: max-age=60", &[&[b'x'; 100_000]])
    });
    let (gateway, mut client) = start(&origin, RULE);
    client.abandon("https://t.example/slow");
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
    http-after-response set-header X-After yes";
    let (gateway, mut client) = start(&origin, lines);
    let table = [("/secret/a", 403), ("/moved", 302), ("/hello", 200), ("/else", 200)];
    for (path, status) in table {
        let answer = client.get(&format!("https://t.example{path}"));
        assert_eq!((answer.head.status.as_u16(), answer.field("x-after")), (status, Some("yes")), "{path}");
    }
    assert_eq!(origin.count(), 1);
    gateway.assert_law();
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
