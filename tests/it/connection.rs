//! What one connection carries: keep-alive, pipelining, slow readers.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use crate::harness::{
    Client, Gate, Gateway, Origin,
    certificates::Authority,
    client::request,
    gateway::without_front,
    rules::one_worker,
    rules::{secure, site_with_tls},
    site,
};

const RULE: &str = "    cache-rule all ttl auto";

/// Cacheable but for POST, whose body comes back.
fn echo_origin() -> Origin {
    Origin::start(|seen, wire| match seen.method.as_str() {
        "POST" => wire.reply(200, "", &seen.body),
        _ => wire.reply(200, "Cache-Control: max-age=60", seen.target.as_bytes()),
    })
}

/// hit → miss → hit → POST → hit, all on this connection.
fn mixed_exchanges(mut client: Client) {
    for (path, hit) in [("/warm", true), ("/cold", false), ("/warm", true), ("/cold", true)] {
        let response = client.get(path);
        assert_eq!((response.status, response.text(), response.is_hit()), (200, path.to_owned(), hit), "{path}");
    }
    let body = vec![b'p'; 100_000];
    assert_eq!(client.request("POST", "/other", "", &body).body, body);
    assert!(client.get("/warm").is_hit());
    let chunked = "POST /other HTTP/1.1\r\nHost: t.example\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n\
        3\r\ntwo\r\n0\r\n\r\n";
    assert_eq!(client.send(chunked).read("POST").text(), "onetwo");
    assert!(client.get("/warm").is_hit());
}

#[test]
fn hits_misses_and_posts_share_a_connection() {
    let origin = echo_origin();
    let gateway = Gateway::start(&site(origin.address, RULE));
    gateway.get("/warm");
    mixed_exchanges(gateway.client());
    assert_eq!(origin.count_of("/warm"), 1);
    gateway.assert_law();
}

#[test]
fn hits_misses_and_posts_share_a_tls_connection() {
    let origin = echo_origin();
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let crt = dir.path().join("t.pem");
    authority.write(&crt, &["t.example"]);
    let gateway = Gateway::start_in(dir, &site_with_tls(origin.address, &crt, "", RULE));
    let connect = || Client::tls(secure(&gateway), "t.example", &authority.client(&["http/1.1"])).unwrap();
    connect().get("/warm");
    mixed_exchanges(connect());
    assert_eq!(origin.count_of("/warm"), 1);
    gateway.assert_law();
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let origin = echo_origin();
    let gateway = Gateway::start(&site(origin.address, RULE));
    gateway.get("/hit");
    let mut client = gateway.client();
    let batch = [
        ("GET", "/hit", &b""[..]),
        ("GET", "/miss1", b""),
        ("POST", "/post", b"some body"),
        ("HEAD", "/hit", b""),
        ("GET", "/hit", b""),
        ("GET", "/miss2", b""),
        ("GET", "/miss1", b""),
    ];
    let bytes: Vec<u8> = batch.iter().flat_map(|(method, path, body)| request(method, path, "", body)).collect();
    client.send(&bytes);
    for (method, path, body) in batch {
        let response = client.read(method);
        let expected = match method {
            "POST" => String::from_utf8_lossy(body).into_owned(),
            "HEAD" => String::new(),
            _ => path.to_owned(),
        };
        assert_eq!((response.status, response.text()), (200, expected), "{method} {path}");
    }
    assert!(client.get("/miss2").is_hit());
    gateway.assert_law();
}

#[test]
fn requests_that_come_a_byte_at_a_time_are_requests() {
    let origin = echo_origin();
    let gateway = Gateway::start(&site(origin.address, RULE));
    let mut client = gateway.client();
    for _ in 0..2 {
        let mut bytes = request("GET", "/a", "X-Long: abcdefghijklmnopqrstuvwxyz", b"");
        bytes.extend(request("POST", "/b", "", b"body"));
        for byte in bytes {
            client.send([byte]);
        }
        assert_eq!(client.read("GET").text(), "/a");
        assert_eq!(client.read("POST").text(), "body");
    }
}

#[test]
fn a_pipelined_request_waits_for_a_slow_one() {
    let gate = Arc::new(Gate::default());
    let hold = Arc::clone(&gate);
    let origin = Origin::start(move |seen, wire| {
        if seen.path() == "/slow" {
            wire.hold(&hold);
        }
        wire.reply(200, "Cache-Control: max-age=60", seen.target.as_bytes())
    });
    let gateway = Gateway::start(&one_worker(&site(origin.address, RULE)));
    gateway.get("/hit");
    let mut client = gateway.client();
    client.send([request("GET", "/slow", "", b""), request("GET", "/hit", "", b"")].concat());
    origin.wait_for(2);
    for _ in 0..2 {
        assert!(gateway.get("/hit").is_hit(), "others are served meanwhile");
    }
    gate.open();
    assert_eq!(client.read("GET").text(), "/slow", "the hit must not overtake");
    assert_eq!(client.read("GET").text(), "/hit");
}

#[test]
fn a_slow_reader_holds_nobody_up() {
    let size = 8 << 20;
    let origin = Origin::start(move |seen, wire| match seen.path() {
        "/big" => wire.reply(200, "Cache-Control: max-age=60", &vec![b'x'; size]),
        _ => wire.reply(200, "Cache-Control: max-age=60", b"small"),
    });
    let gateway = Gateway::start(&site(origin.address, RULE));
    let mut slow = gateway.client();
    slow.window(64 << 10);
    slow.send(request("GET", "/big", "", b""));
    assert_eq!(slow.read_head().unwrap().status, 200);
    slow.take(1000);
    let begun = Instant::now();
    let address = gateway.address();
    let fast: Vec<_> = (0..4)
        .map(|_| {
            thread::spawn(move || {
                assert_eq!(crate::harness::get(address, "/big").body.len(), size);
                assert_eq!(crate::harness::get(address, "/small").text(), "small");
            })
        })
        .collect();
    for reader in fast {
        reader.join().unwrap();
    }
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    assert_eq!(origin.count_of("/big"), 1);
    slow.window(4 << 20);
    assert_eq!(slow.take(size - 1000).len(), size - 1000, "the slow reader loses nothing");
}

#[test]
fn a_reader_that_is_slow_but_not_silent_is_not_cut() {
    // Fast enough that the system's send buffer shows its progress within the timeout, and much slower
    // than the timeout in all. The pace is the client's own: nobody is waited for.
    let (size, piece, pace) = (8 << 20, 100_000, Duration::from_millis(50));
    let origin = Origin::start(move |_, wire| wire.reply(200, "Cache-Control: max-age=60", &vec![b'x'; size]));
    let gateway = Gateway::start(&site(origin.address, &format!("    timeout client 2s\n{RULE}")));
    gateway.get("/hit");
    let read = |path: &str| {
        let mut slow = gateway.client();
        slow.window(64 << 10);
        slow.send(request("GET", path, "", b""));
        assert_eq!(slow.read_head().unwrap().is_hit(), path == "/hit");
        let begun = Instant::now();
        for number in 1..=size / piece {
            thread::sleep((pace * u32::try_from(number).unwrap()).saturating_sub(begun.elapsed()));
            slow.take(piece);
        }
        slow.take(size % piece);
        assert!(begun.elapsed() > Duration::from_secs(4), "{:?}", begun.elapsed());
    };
    thread::scope(|scope| {
        scope.spawn(|| read("/miss"));
        read("/hit");
    });
}

#[test]
fn a_purge_does_not_touch_a_reader_under_way() {
    let size = 8 << 20;
    let origin = Origin::start(move |_, wire| wire.reply(200, "Cache-Control: max-age=60", &vec![b'x'; size]));
    let gateway = Gateway::start(&site(origin.address, RULE));
    gateway.get("/big");
    let mut slow = gateway.client();
    slow.window(64 << 10);
    slow.send(request("GET", "/big", "", b""));
    assert_eq!(slow.read_head().unwrap().status, 200);
    slow.take(1000);
    assert_eq!(gateway.purge(r#"{"all":true}"#), 1);
    slow.window(4 << 20);
    assert_eq!(slow.take(size - 1000).len(), size - 1000);
    assert!(!slow.get("/big").is_hit());
}

#[test]
fn connection_close_and_http_1_0_are_honoured() {
    let origin = echo_origin();
    let gateway = Gateway::start(&site(origin.address, RULE));
    for path in ["/miss", "/miss", "/other"] {
        let mut client = gateway.client();
        assert!(client.get_with(path, "Connection: close").closes());
        assert!(client.is_closed());
        let mut client = gateway.client();
        let response = client.send(format!("GET {path} HTTP/1.0\r\nHost: t.example\r\n\r\n")).read("GET");
        assert_eq!((response.status, response.text()), (200, path.to_owned()));
        assert!(client.is_closed());
    }
    let mut client = gateway.client();
    for _ in 0..2 {
        client.send("GET /miss HTTP/1.0\r\nHost: t.example\r\nConnection: keep-alive\r\n\r\n");
        assert_eq!(client.read("GET").text(), "/miss");
    }
}

#[test]
fn a_client_that_has_said_everything_still_gets_its_answers() {
    let origin = echo_origin();
    let gateway = Gateway::start(&site(origin.address, RULE));
    for bytes in
        [request("GET", "/miss", "", b""), request("GET", "/miss", "", b""), request("POST", "/a", "", b"/miss")]
    {
        let mut client = gateway.client();
        client.send(bytes).half_close();
        assert_eq!(client.read("GET").text(), "/miss");
        assert!(client.is_closed());
    }
    gateway.assert_law();
}

#[test]
fn hop_by_hop_fields_stay_on_their_hop() {
    let fields = "Cache-Control: max-age=60\nConnection: X-Hop, keep-alive\nX-Hop: 1\nKeep-Alive: timeout=5\n\
        Proxy-Authenticate: Basic";
    let origin = Origin::fixed(fields, "x");
    let gateway = Gateway::start(&site(origin.address, RULE));
    for hit in [false, true] {
        let response = gateway
            .client()
            .get_with("/a", "Connection: X-Mine\nX-Mine: 1\nX-Kept: 1\nTE: trailers\nKeep-Alive: timeout=1");
        assert_eq!((response.is_hit(), response.field("x-hop"), response.field("keep-alive")), (hit, None, None));
    }
    let sent = origin.last();
    assert_eq!((sent.field("x-mine"), sent.field("x-kept"), sent.field("keep-alive")), (None, Some("1"), None));
}

#[test]
fn an_expecting_client_is_told_to_continue() {
    let origin = echo_origin();
    let gateway = Gateway::start(&site(origin.address, RULE));
    let mut client = gateway.client();
    client.send("POST /a HTTP/1.1\r\nHost: t.example\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(client.read_head().unwrap().status, 100);
    client.send("body");
    assert_eq!(client.read("POST").text(), "body");
}

#[test]
fn a_server_decides_whether_an_expecting_client_goes_on() {
    if without_front() {
        return;
    }
    let origin = Origin::start(|seen, wire| {
        assert_eq!(seen.field("expect"), Some("100-continue"));
        match seen.path() {
            "/early" => wire.reply(413, "Connection: close", b"no"),
            _ => {
                wire.raw("HTTP/1.1 100 Continue\r\n\r\n")?;
                let body = wire.read().unwrap_or_default();
                wire.reply(200, "Connection: close", &body)?;
                wire.close()
            }
        }
    });
    origin.answer_early(true);
    let gateway = Gateway::start(&site(origin.address, RULE));
    let ask = |path: &str| {
        let mut client = gateway.client();
        client.send(format!(
            "POST {path} HTTP/1.1\r\nHost: t.example\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
        ));
        client
    };
    let mut refused = ask("/early");
    let head = refused.read("POST");
    assert_eq!((head.status, head.interim.len(), head.text(), head.closes()), (413, 0, "no".to_owned(), true));
    let mut welcome = ask("/go");
    assert_eq!(welcome.read_head().unwrap().status, 100);
    welcome.send("body");
    let answer = welcome.read("POST");
    assert_eq!((answer.status, answer.interim.len(), answer.text()), (200, 0, "body".to_owned()));
    gateway.assert_law();
}

#[test]
fn trailers_pass() {
    let origin = Origin::start(|_, wire| {
        wire.raw(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\
            Cache-Control: max-age=60\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\n",
        )
    });
    let gateway = Gateway::start(&site(origin.address, RULE));
    let mut client = gateway.client();
    let response = client.get("/a");
    assert_eq!(response.text(), "abc");
    assert_eq!(response.field("x-sum"), None, "a trailer is no field");
    let [(name, value)] = &response.trailers[..] else { panic!("one trailer: {response:#?}") };
    assert_eq!((name.to_ascii_lowercase().as_str(), value.as_str()), ("x-sum", "7"));
    assert_eq!(client.get("/a").text(), "abc", "the next answer on the connection can be read");
}
