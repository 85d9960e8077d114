//! Where a frontend listens, for how long it waits, what it logs.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    time::{Duration, Instant},
};

use crate::harness::{
    Client, Gateway, Origin,
    client::request,
    eventually,
    rules::{one_worker, site_with},
    site,
};

const RULE: &str = "    cache-rule all ttl auto";

#[test]
fn a_frontend_has_several_binds_of_every_kind() {
    let origin = Origin::fixed("Cache-Control: max-age=60", "hello");
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("web.sock");
    let lines = format!("    bind [::1]:0\n    bind {}\n{RULE}", socket.display());
    let gateway = Gateway::start_in(dir, &site(origin.address, &lines));
    let [four, six] = gateway.frontends("web")[..] else { panic!("two TCP listeners: {}", gateway.stderr()) };
    assert!(four.is_ipv4() && six.is_ipv6());
    assert_eq!(crate::harness::get(four, "/a").text(), "hello");
    assert!(crate::harness::get(six, "/a").is_hit(), "one store for all");
    let mut stream = UnixStream::connect(&socket).unwrap();
    stream.write_all(&request("GET", "/a", "Connection: close", b"")).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("hello"), "{answer}");
    assert_eq!(origin.count(), 1);
    gateway.assert_law();
}

#[test]
fn an_idle_connection_is_closed_after_its_time() {
    let origin = Origin::fixed("Cache-Control: max-age=60", "x");
    let gateway = Gateway::start(&site(origin.address, &format!("    timeout http-keep-alive 500ms\n{RULE}")));
    let mut client = gateway.client();
    let begun = Instant::now();
    client.get("/a");
    assert!(client.is_closed());
    assert!((Duration::from_millis(400)..Duration::from_secs(5)).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    gateway.assert_law();
}

#[test]
fn a_body_that_does_not_come_is_given_up() {
    let origin = Origin::fixed("", "x");
    let gateway = Gateway::start(&site(origin.address, &format!("    timeout client 500ms\n{RULE}")));
    let mut client = gateway.client();
    client.send("POST /a HTTP/1.1\r\nHost: t.example\r\nContent-Length: 10\r\n\r\n0123");
    match client.try_read("POST") {
        Ok(response) => assert!([400, 408].contains(&response.status), "{}", response.status),
        Err(broken) => assert!(!broken.why.contains("TimedOut"), "{broken:#?}"),
    }
    assert!(client.is_closed());
    assert_eq!(origin.count(), 0);
    gateway.assert_law();
}

#[test]
fn connections_beyond_maxconn_wait() {
    let origin = Origin::fixed("Cache-Control: max-age=60", "x");
    let gateway = Gateway::start(&one_worker(&site_with(origin.address, "    maxconn 2", RULE, "")));
    let mut first = gateway.client();
    let mut second = gateway.client();
    first.get("/a");
    second.get("/a");
    let mut third = gateway.client();
    third.send(request("GET", "/a", "", b""));
    after_what_has_come(&mut second);
    assert_eq!(begun(&gateway), 2, "there is no room yet");
    drop(first);
    assert_eq!(third.read("GET").text(), "x");
    assert_eq!(begun(&gateway), 3);
    gateway.assert_law();
}

#[test]
fn a_connection_beyond_its_frontends_maxconn_takes_no_place_of_the_others() {
    let origin = Origin::fixed("Cache-Control: max-age=60", "x");
    let rules = site_with(origin.address, "    maxconn 2", &format!("    maxconn 1\n{RULE}"), "");
    let other = "frontend other\n    bind 127.0.0.1:0\n    default_backend origin\n";
    let gateway = Gateway::start(&one_worker(&(rules + other)));
    let mut first = gateway.client();
    first.get("/a");
    let mut waiting = gateway.client();
    waiting.send(request("GET", "/a", "", b""));
    after_what_has_come(&mut first);
    for _ in 0..3 {
        assert_eq!(crate::harness::get(gateway.frontend("other"), "/a").text(), "x", "a place is left for it");
    }
    assert_eq!(begun(&gateway), 1, "its frontend is full");
    drop(first);
    assert_eq!(waiting.read("GET").text(), "x");
    assert_eq!(begun(&gateway), 2);
    gateway.assert_law();
}

/// Connections to the frontend `web` that have had a place.
fn begun(gateway: &Gateway) -> u64 {
    gateway.scrape().sum("tidegate_connections_total", &["frontend=\"web\""])
}

/// Two exchanges on a connection that is served: whatever had come before them to [`one_worker`] has been
/// dealt with then, new connections included.
fn after_what_has_come(client: &mut Client) {
    for _ in 0..2 {
        assert_eq!(client.get("/a").text(), "x");
    }
}

#[test]
fn descriptors_are_left_for_servers_when_clients_are_many() {
    let origin = Origin::fixed("", "x");
    let gateway = Gateway::start_limited("-n 64", &one_worker(&site(origin.address, RULE)));
    let said = gateway.stderr().lines().filter(|line| line.contains("INFO") && line.contains("maxconn")).count();
    assert_eq!(said, 1, "{}", gateway.stderr());
    let mut clients: Vec<_> = (0..100).map(|_| gateway.client()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(request("GET", &format!("/{number}"), "", b""));
    }
    for mut client in clients {
        assert_eq!(client.read("GET").status, 200, "{}", gateway.stderr());
    }
    gateway.assert_law();
}

#[test]
fn the_limit_of_descriptors_is_raised_as_far_as_it_goes() {
    let origin = Origin::fixed("", "x");
    let gateway = Gateway::start_limited("-Sn 64", &site(origin.address, RULE));
    let mut clients: Vec<_> = (0..100).map(|_| gateway.client()).collect();
    assert!(clients.iter_mut().all(|client| client.get("/a").status == 200), "{}", gateway.stderr());
    let chosen = Gateway::start(&site_with(origin.address, "    maxconn 10", RULE, ""));
    assert!(!chosen.stderr().contains("maxconn"), "{}", chosen.stderr());
}

#[test]
fn each_request_is_a_log_line() {
    let origin = Origin::fixed("Cache-Control: max-age=60", "x");
    let rules = site_with(origin.address, "    log stderr", &format!("    log global\n{RULE}"), "");
    let gateway = Gateway::start(&rules);
    let mut client = Client::connect(gateway.address());
    client.get("/logged?a=1");
    client.get("/logged?a=1");
    let lines = || gateway.stderr().lines().filter(|line| line.contains("/logged?a=1")).count();
    eventually("two lines", || lines() == 2);
    assert!(gateway.stderr().contains("127.0.0.1"), "{}", gateway.stderr());
}
