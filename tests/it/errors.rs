//! What goes wrong, and what is said about it.

use std::{net::TcpListener, sync::Arc};

use crate::harness::{Client, Gate, Gateway, Origin, Place, gateway::run, rules::site_with, site};

const RULE: &str = "    cache-rule all ttl auto";

/// Runs with this rule file; exit code and stderr.
fn fails(rules: &str) -> (Option<i32>, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("site.cfg");
    std::fs::write(&path, rules).unwrap();
    let output = run(&["run", "-f", path.to_str().unwrap()]);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_port_in_use_is_one_clear_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let rules = site(Place::hold().address, RULE).replacen(
        "frontend web\n    bind 127.0.0.1:0",
        &format!("frontend web\n    bind {address}"),
        1,
    );
    let (code, error) = fails(&rules);
    assert_eq!(code, Some(1), "{error}");
    let says = ["in use", "listens there already"].iter().any(|words| error.contains(words));
    assert!(error.contains(&address) && says, "{error}");
    assert_eq!(error.lines().filter(|line| !line.contains(" INFO ")).count(), 1, "{error}");
    assert!(!error.contains("panicked"), "{error}");
}

#[test]
fn a_file_that_cannot_be_read_is_one_clear_line() {
    for path in ["/nonexistent/site.cfg", "/proc/self/mem"] {
        let output = run(&["run", "-f", path]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains(path) && !error.contains("panicked"), "{error}");
        assert!(error.trim().lines().count() <= 2, "{error}");
    }
}

#[test]
fn an_admin_listener_for_the_world_needs_a_token() {
    let rules = site(Place::hold().address, RULE).replace("admin\n    bind 127.0.0.1:0", "admin\n    bind 0.0.0.0:0");
    let (code, error) = fails(&rules);
    assert_eq!(code, Some(1), "{error}");
    assert!(error.contains("token-file"), "{error}");
}

#[test]
fn an_origin_that_is_down_is_503_with_a_body() {
    let place = Place::hold();
    let origin = place.address;
    let gateway = Gateway::start(&site(origin, RULE));
    for (method, body) in [("GET", &b""[..]), ("POST", b"body")] {
        let response = gateway.client().request(method, "/a", "", body);
        assert_eq!(response.status, 503, "{method}");
        assert!(!response.body.is_empty(), "{method}");
    }
    gateway.assert_law();
    let metrics = gateway.metrics();
    assert_eq!(metrics.outcome("error"), 2);
    assert!(metrics.backend_errors() >= 2);
    assert!(gateway.stderr().contains(&origin.to_string()) || gateway.stderr().contains("o1"), "{}", gateway.stderr());
}

#[test]
fn an_origin_that_is_silent_is_504() {
    let gate = Arc::new(Gate::default());
    let hold = Arc::clone(&gate);
    let origin = Origin::start(move |_, wire| {
        wire.hold(&hold);
        wire.close()
    });
    let rules = site_with(origin.address, "", RULE, "    timeout server 300ms");
    let gateway = Gateway::start(&rules);
    for (method, body) in [("GET", &b""[..]), ("POST", b"body")] {
        let response = gateway.client().request(method, "/a", "", body);
        assert_eq!((response.status, response.body.is_empty()), (504, false), "{method}");
    }
    gateway.assert_law();
}

#[test]
fn an_origin_that_talks_nonsense_is_502() {
    let nonsense: [&[u8]; 9] = [
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nNo colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nName : space\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\r\n folded\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\0c\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    ];
    let origin = Origin::fixed("", "");
    let gateway = Gateway::start(&site(origin.address, RULE));
    for bytes in nonsense {
        origin.follow(move |_, wire| {
            wire.raw(bytes)?;
            wire.close()
        });
        assert_eq!(gateway.get("/a").status, 502, "{}", bytes.escape_ascii());
    }
    origin.follow(|_, wire| wire.reply(200, "", b"sane"));
    assert_eq!(gateway.get("/a").text(), "sane");
    gateway.assert_law();
}

#[test]
fn a_head_without_end_from_the_origin_is_bounded() {
    let origin = Origin::start(|_, wire| {
        wire.raw("HTTP/1.1 200 OK\r\n")?;
        for number in 0..50_000 {
            wire.raw(format!("X-{number}: {}\r\n", "y".repeat(40)))?;
        }
        wire.raw("\r\n")
    });
    let gateway = Gateway::start(&site(origin.address, RULE));
    assert_eq!(gateway.get("/a").status, 502);
}

#[test]
fn a_malformed_request_is_400_and_the_end() {
    let origin = Origin::fixed("", "x");
    let gateway = Gateway::start(&site(origin.address, RULE));
    for bytes in [
        "nonsense\r\n\r\n",
        "GET /\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/9.9\r\nHost: t\r\n\r\n",
        "G\0T / HTTP/1.1\r\nHost: t\r\n\r\n",
    ] {
        let mut client = gateway.client();
        let response = client.send(bytes).read("GET");
        assert!([400, 505].contains(&response.status), "{}: {}", bytes.escape_debug(), response.status);
        assert!(client.is_closed());
    }
    assert_eq!(origin.connections(), 0);
    gateway.assert_law();
    assert_eq!(gateway.metrics().outcome("refused"), 5);
}

#[test]
fn a_request_head_too_large_is_431() {
    let origin = Origin::fixed("", "x");
    let gateway = Gateway::start(&site(origin.address, RULE));
    let mut client = gateway.client();
    client.send("GET / HTTP/1.1\r\nHost: t\r\n");
    for number in 0..20_000 {
        client.send(format!("X-{number}: {}\r\n", "y".repeat(50)));
    }
    if let Ok(response) = client.send("\r\n").try_read("GET") {
        assert!([400, 414, 431].contains(&response.status), "{}", response.status);
    }
    assert_eq!(origin.count(), 0);
    assert_eq!(gateway.get("/a").status, 200);
}

#[test]
fn a_request_that_never_ends_is_given_up() {
    let origin = Origin::fixed("", "x");
    let gateway = Gateway::start(&site(origin.address, &format!("    timeout http-request 500ms\n{RULE}")));
    let mut client = gateway.client();
    client.send("GET / HTTP/1.1\r\nHost: t");
    match client.try_read("GET") {
        Ok(response) => assert_eq!(response.status, 408),
        Err(broken) => assert!(!broken.why.contains("TimedOut"), "{broken:#?}"),
    }
    assert!(client.is_closed());
}

#[test]
fn a_frontend_without_a_backend_is_503() {
    let rules = site(Place::hold().address, "").replace("    default_backend origin\n", "");
    let gateway = Gateway::start(&rules);
    assert_eq!(gateway.get("/a").status, 503);
    gateway.assert_law();
}

#[test]
fn a_data_listener_does_not_show_the_admin_api() {
    let origin = Origin::fixed("", "origin");
    let gateway = Gateway::start(&site(origin.address, RULE));
    for path in ["/metrics", "/v1/stats", "/v1/purge", "/healthz"] {
        assert_eq!(gateway.get(path).text(), "origin", "{path}");
    }
    let mut admin = Client::connect(gateway.admin());
    assert_eq!(admin.request("GET", "/healthz", "Host: 127.0.0.1", b"").status, 200);
}

#[test]
fn a_server_that_cannot_be_reached_reads_alike_with_and_without_the_cache() {
    let place = Place::hold();
    let nobody = place.address;
    let gateway = Gateway::start(&site(nobody, RULE));
    let line = format!("server {nobody}: connection refused backend=\"origin\" kind=\"connect\"");
    for (count, (method, body)) in [("GET", ""), ("POST", "x"), ("DELETE", "")].into_iter().enumerate() {
        assert_eq!(gateway.client().request(method, "/a", "", body.as_bytes()).status, 503, "{method}");
        let said = || gateway.stderr().matches(&line).count();
        crate::harness::eventually("the error is in the log", || said() > count);
        assert_eq!(said(), count + 1, "{method}: {}", gateway.stderr());
    }
    assert!(!gateway.stderr().contains("BasicPeer"), "{}", gateway.stderr());
}

#[test]
fn every_broken_certificate_is_a_finding_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("empty.pem"), "").unwrap();
    let rules = "frontend web\n    bind 127.0.0.1:0 ssl crt missing.pem crt empty.pem\n    mod http\n    \
                 http-request return status 200\n";
    std::fs::write(dir.path().join("site.cfg"), rules).unwrap();
    let output = crate::harness::gateway::run_in(dir.path(), &["check", "-f", "site.cfg"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for place in [
        "missing.pem: no such file or directory\n --> site.cfg:2:30",
        "empty.pem: this file is empty\n --> site.cfg:2:46",
        "--> site.cfg:3:5",
        "3 errors",
    ] {
        assert!(said.contains(place), "{place:?} in\n{said}");
    }
}
