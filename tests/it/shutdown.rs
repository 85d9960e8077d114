//! SIGTERM drains, SIGINT stops.

use std::{
    net::TcpStream,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::harness::{Gate, Gateway, Origin, client::request, eventually, rules::site_with, site};

const RULE: &str = "    cache-rule all ttl auto";

#[test]
fn sigterm_lets_a_request_under_way_finish() {
    let gate = Arc::new(Gate::default());
    let hold = Arc::clone(&gate);
    let origin = Origin::start(move |_, wire| {
        wire.hold(&hold);
        wire.reply(200, "Cache-Control: max-age=60", b"finished")
    });
    let mut gateway = Gateway::start(&site(origin.address, RULE));
    let address = gateway.address();
    let mut client = gateway.client();
    client.send(request("GET", "/a", "", b""));
    origin.wait_for(1);
    gateway.signal(libc::SIGTERM);
    eventually("no new connection is taken", || TcpStream::connect(address).is_err());
    assert!(gateway.is_running());
    gate.open();
    assert_eq!(client.read("GET").text(), "finished");
    assert!(client.is_closed());
    assert!(gateway.wait_exit().success());
}

#[test]
fn sigterm_does_not_wait_for_idle_connections() {
    let origin = Origin::fixed("Cache-Control: max-age=60", "x");
    let mut gateway = Gateway::start(&site(origin.address, RULE));
    let mut idle = gateway.client();
    idle.get("/a");
    let begun = Instant::now();
    gateway.signal(libc::SIGTERM);
    assert!(gateway.wait_exit().success());
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(idle.is_closed());
}

#[test]
fn who_waits_for_a_place_at_sigterm_is_answered() {
    let gate = Arc::new(Gate::default());
    let hold = Arc::clone(&gate);
    let origin = Origin::start(move |_, wire| {
        wire.hold(&hold);
        wire.reply(200, "", b"answered")
    });
    let rules = site_with(origin.address, "", &format!("    maxconn 1\n{RULE}"), "");
    let mut gateway = Gateway::start(&rules);
    let address = gateway.address();
    let mut holder = gateway.client();
    holder.send(request("GET", "/a", "", b""));
    origin.wait_for(1);
    let mut waiting: Vec<_> = (0..6).map(|_| gateway.client()).collect();
    for client in &mut waiting {
        client.send(request("GET", "/b", "", b""));
    }
    gateway.signal(libc::SIGTERM);
    eventually("no new connection is taken", || TcpStream::connect(address).is_err());
    gate.open();
    assert_eq!(holder.read("GET").text(), "answered");
    drop(holder);
    for mut client in waiting {
        let response = client.read("GET");
        assert_eq!((response.text().as_str(), response.closes()), ("answered", true));
    }
    assert!(gateway.wait_exit().success());
}

#[test]
fn what_has_come_before_sigterm_is_answered() {
    let origin = Origin::fixed("Cache-Control: max-age=60", "answered");
    let mut gateway = Gateway::start(&site(origin.address, RULE));
    gateway.get("/a");
    // A process that stands still while clients come has read nothing of theirs when it learns of its end.
    gateway.signal(libc::SIGSTOP);
    let mut clients: Vec<_> = (0..50).map(|_| gateway.client()).collect();
    for client in &mut clients {
        client.send(request("GET", "/a", "", b""));
    }
    gateway.signal(libc::SIGTERM);
    gateway.signal(libc::SIGCONT);
    for mut client in clients {
        assert_eq!(client.read("GET").text(), "answered");
    }
    assert!(gateway.wait_exit().success());
}

#[test]
fn hard_stop_after_ends_a_drain() {
    let gate = Arc::new(Gate::default());
    let hold = Arc::clone(&gate);
    let origin = Origin::start(move |_, wire| {
        wire.hold(&hold);
        wire.reply(200, "", b"too late")
    });
    let mut gateway = Gateway::start(&site_with(origin.address, "    hard-stop-after 1s", RULE, ""));
    let mut client = gateway.client();
    client.send(request("GET", "/a", "", b""));
    origin.wait_for(1);
    let begun = Instant::now();
    gateway.signal(libc::SIGTERM);
    gateway.wait_exit();
    assert!((Duration::from_millis(800)..Duration::from_secs(6)).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    gate.open();
}

#[test]
fn sigint_stops_at_once() {
    let gate = Arc::new(Gate::default());
    let hold = Arc::clone(&gate);
    let origin = Origin::start(move |_, wire| {
        wire.hold(&hold);
        wire.reply(200, "", b"")
    });
    let mut gateway = Gateway::start(&site(origin.address, RULE));
    let mut client = gateway.client();
    client.send(request("GET", "/a", "", b""));
    origin.wait_for(1);
    let begun = Instant::now();
    gateway.signal(libc::SIGINT);
    gateway.wait_exit();
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    gate.open();
}
