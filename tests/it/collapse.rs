//! Many clients, one request to the origin.

use std::{sync::Arc, thread};

use crate::harness::{Client, Gate, Gateway, Origin, client::request, eventually, site};

const RULE: &str = "    cache-rule all ttl auto";
const CLIENTS: usize = 50;

/// Starts so many clients that each GET `/a`.
fn crowd(gateway: &Gateway) -> Vec<thread::JoinHandle<crate::harness::Response>> {
    let address = gateway.address();
    (0..CLIENTS).map(|_| thread::spawn(move || crate::harness::get(address, "/a"))).collect()
}

#[test]
fn fifty_clients_are_one_request_to_the_origin() {
    let gate = Arc::new(Gate::default());
    let hold = Arc::clone(&gate);
    let origin = Origin::start(move |_, wire| {
        wire.hold(&hold);
        wire.reply(200, "Cache-Control: max-age=60", b"one for all")
    });
    let gateway = Gateway::start(&site(origin.address, RULE));
    let clients = crowd(&gateway);
    eventually("everyone is there", || gateway.scrape().requests() == clients.len() as u64);
    gate.open();
    let mut collapsed = 0;
    for client in clients {
        let response = client.join().unwrap();
        assert_eq!((response.status, response.text()), (200, "one for all".to_owned()));
        collapsed += usize::from(response.cache().has("collapsed"));
    }
    assert_eq!(origin.count(), 1);
    gateway.assert_law();
    let metrics = gateway.metrics();
    assert_eq!(metrics.outcome("miss"), 1);
    assert_eq!(metrics.outcome("collapsed") + metrics.outcome("hit"), CLIENTS as u64 - 1);
    assert_eq!(metrics.outcome("collapsed"), collapsed as u64);
    assert!(collapsed > 0);
}

#[test]
fn everyone_streams_while_the_object_grows() {
    let (first, second) = (Arc::new(Gate::default()), Arc::new(Gate::default()));
    let (hold_first, hold_second) = (Arc::clone(&first), Arc::clone(&second));
    let origin = Origin::start(move |_, wire| {
        wire.head(200, "Cache-Control: max-age=60\nContent-Length: 10")?;
        wire.raw("01234")?;
        wire.hold(&hold_first);
        wire.raw("567")?;
        wire.hold(&hold_second);
        wire.raw("89")
    });
    let gateway = Gateway::start(&site(origin.address, RULE));
    let mut early = gateway.client();
    early.send(request("GET", "/a", "", b""));
    assert_eq!(early.read_head().unwrap().status, 200);
    assert_eq!(early.take(5), b"01234");
    let mut late = gateway.client();
    late.send(request("GET", "/a", "", b""));
    assert_eq!(late.read_head().unwrap().status, 200);
    assert_eq!(late.take(5), b"01234", "a late reader gets what is there before the rest has come");
    first.open();
    assert_eq!((early.take(3), late.take(3)), (b"567".to_vec(), b"567".to_vec()));
    second.open();
    assert_eq!((early.take(2), late.take(2)), (b"89".to_vec(), b"89".to_vec()));
    assert!(gateway.get("/a").is_hit());
    assert_eq!(origin.count(), 1);
}

#[test]
fn a_private_answer_is_the_first_readers_alone_and_nobody_queues_again() {
    let gate = Arc::new(Gate::default());
    let hold = Arc::clone(&gate);
    let origin = Origin::start(move |_, wire| {
        wire.hold(&hold);
        wire.reply(200, "Cache-Control: private", b"mine")
    });
    let gateway = Gateway::start(&site(origin.address, RULE));
    let clients = crowd(&gateway);
    eventually("everyone is there", || gateway.scrape().requests() == clients.len() as u64);
    gate.open();
    for client in clients {
        assert_eq!(client.join().unwrap().text(), "mine");
    }
    assert_eq!(origin.count(), CLIENTS);
    gateway.assert_law();
}

#[test]
fn waiters_of_another_variant_go_on_their_own() {
    let gate = Arc::new(Gate::default());
    let hold = Arc::clone(&gate);
    let origin = Origin::start(move |seen, wire| {
        wire.hold(&hold);
        let language = seen.field("accept-language").unwrap_or("none").to_owned();
        wire.reply(200, "Cache-Control: max-age=60\nVary: Accept-Language", language.as_bytes())
    });
    let gateway = Gateway::start(&site(origin.address, RULE));
    let address = gateway.address();
    let clients: Vec<_> = (0..10)
        .map(|number| {
            let language = if number % 2 == 0 { "fi" } else { "de" };
            let fields = format!("Accept-Language: {language}");
            thread::spawn(move || (language, Client::connect(address).get_with("/a", &fields)))
        })
        .collect();
    eventually("everyone is there", || gateway.scrape().requests() == clients.len() as u64);
    gate.open();
    for client in clients {
        let (language, response) = client.join().unwrap();
        assert_eq!(response.text(), language);
    }
    assert!(origin.count() <= 6, "one for each variant and few more: {}", origin.count());
}

#[test]
fn a_fill_that_dies_before_its_head_is_tried_once_more_for_all() {
    let first = std::sync::atomic::AtomicBool::new(true);
    let gate = Arc::new(Gate::default());
    let hold = Arc::clone(&gate);
    let origin = Origin::start(move |_, wire| {
        wire.hold(&hold);
        if first.swap(false, std::sync::atomic::Ordering::SeqCst) {
            return wire.reset();
        }
        wire.reply(200, "Cache-Control: max-age=60", b"second")
    });
    let gateway = Gateway::start(&site(origin.address, RULE));
    let clients = crowd(&gateway);
    eventually("everyone is there", || gateway.scrape().requests() == clients.len() as u64);
    gate.open();
    for client in clients {
        assert_eq!(client.join().unwrap().text(), "second");
    }
    assert_eq!(origin.count(), 2);
    gateway.assert_law();
}

#[test]
fn an_origin_that_always_dies_is_asked_twice() {
    let gate = Arc::new(Gate::default());
    let hold = Arc::clone(&gate);
    let origin = Origin::start(move |_, wire| {
        wire.hold(&hold);
        wire.reset()
    });
    let gateway = Gateway::start(&site(origin.address, RULE));
    let clients = crowd(&gateway);
    eventually("everyone is there", || gateway.scrape().requests() == clients.len() as u64);
    gate.open();
    for client in clients {
        assert_eq!(client.join().unwrap().status, 502);
    }
    assert_eq!(origin.count(), 2);
    gateway.assert_law();
}

#[test]
fn wait_off_lets_everyone_fetch() {
    let gate = Arc::new(Gate::default());
    let hold = Arc::clone(&gate);
    let origin = Origin::start(move |_, wire| {
        wire.hold(&hold);
        wire.reply(200, "Cache-Control: max-age=60", b"x")
    });
    let gateway = Gateway::start(&site(origin.address, "    cache-rule all ttl auto wait off"));
    let address = gateway.address();
    let clients: Vec<_> = (0..5).map(|_| thread::spawn(move || crate::harness::get(address, "/a").status)).collect();
    origin.wait_for(5);
    gate.open();
    assert!(clients.into_iter().all(|client| client.join().unwrap() == 200));
    assert!(gateway.get("/a").is_hit());
    gateway.assert_law();
}
