//! `Cache-Status` (RFC 9211) on what went to a server in vain, on what may not be shared, and on our own answers.

use std::{sync::Arc, thread};

use crate::harness::{Gate, Gateway, Origin, Place, Response, eventually, get, rules::site_with, site};

const STALE: &str = "Cache-Control: max-age=0, stale-if-error=60\nETag: \"v1\"";

fn says(response: &Response) -> (Option<String>, Option<String>, Option<String>) {
    let status = response.cache();
    assert!(!status.has("hit"), "{response:#?}");
    let of = |name| status.value(name).map(str::to_owned);
    (of("fwd"), of("fwd-status"), of("detail"))
}

fn said(forward: &str, status: Option<&str>, detail: &str) -> (Option<String>, Option<String>, Option<String>) {
    (Some(forward.to_owned()), status.map(str::to_owned), Some(detail.to_owned()))
}

#[test]
fn stale_in_the_place_of_an_error_was_forwarded() {
    let origin = Origin::fixed(STALE, "hello");
    let gateway =
        Gateway::start(&site_with(origin.address, "", "    cache-rule all ttl auto", "    timeout server 500ms"));
    gateway.get("/a");
    origin.follow(|_, wire| wire.reply(503, "", b"down"));
    let stale = gateway.get("/a");
    assert_eq!((stale.text(), says(&stale)), ("hello".to_owned(), said("stale", Some("503"), "server-error")));
    assert!(stale.cache().value("ttl").is_some_and(|ttl| ttl.parse::<i64>().is_ok_and(|ttl| ttl <= 0)), "{stale:#?}");
    for (script, detail) in [("close", "truncated"), ("silence", "timeout"), ("garbage", "protocol")] {
        origin.follow(move |_, wire| match script {
            "close" => wire.close(),
            "garbage" => wire.raw("this is no HTTP\r\n\r\n"),
            _ => wire.read().map_or(Ok(()), |_| wire.close()),
        });
        let stale = gateway.get("/a");
        assert_eq!((stale.text(), says(&stale)), ("hello".to_owned(), said("stale", None, detail)), "{stale:#?}");
    }
    gateway.assert_law();
    assert_eq!(gateway.metrics().outcome("stale"), 4);
}

#[test]
fn who_waited_for_an_error_gets_stale_too() {
    let origin = Origin::fixed(STALE, "hello");
    let gateway = Gateway::start(&site(origin.address, "    cache-rule all ttl auto"));
    gateway.get("/a");
    let gate = Arc::new(Gate::default());
    let hold = Arc::clone(&gate);
    origin.follow(move |_, wire| {
        wire.hold(&hold);
        wire.reply(503, "", b"down")
    });
    let address = gateway.address();
    let waiting: Vec<_> = (0..5).map(|_| thread::spawn(move || get(address, "/a"))).collect();
    eventually("all have come", || gateway.scrape().requests() == 6);
    gate.open();
    let answers: Vec<_> = waiting.into_iter().map(|client| client.join().unwrap()).collect();
    for answer in &answers {
        let collapsed = answer.cache().has("collapsed");
        let status = if collapsed { None } else { Some("503") };
        assert_eq!((answer.text(), says(answer)), ("hello".to_owned(), said("stale", status, "server-error")));
    }
    assert!(answers.iter().any(|answer| !answer.cache().has("collapsed")));
    gateway.assert_law();
    assert_eq!(gateway.metrics().outcome("stale"), 5);
}

#[test]
fn a_server_that_cannot_be_reached_leaves_stale() {
    let origin = Origin::fixed(STALE, "hello");
    let rules = site(origin.address, "    cache-rule all ttl auto");
    let gateway = Gateway::start(&rules);
    gateway.get("/a");
    let nowhere = Place::hold();
    gateway.reload(&site(nowhere.address, "    http-response set-header X-Reloaded yes\n    cache-rule all ttl auto"));
    eventually("the reload", || gateway.get("/a").field("x-reloaded").is_some());
    let stale = gateway.get("/a");
    assert_eq!((stale.text(), says(&stale)), ("hello".to_owned(), said("stale", None, "connect")));
}

#[test]
fn a_cookie_that_keeps_from_what_is_stored_is_a_bypass() {
    let origin = Origin::fixed("", "x");
    let gateway = Gateway::start(&site(origin.address, "    cache-rule all ttl 1m"));
    let first = gateway.client().get_with("/a", "Cookie: a=b");
    assert_eq!(says(&first), said("uri-miss", None, "cookie"), "nothing is stored yet");
    gateway.get("/a");
    let barred = gateway.client().get_with("/a", "Cookie: a=b");
    assert_eq!(says(&barred), said("bypass", None, "cookie"));
    assert!(gateway.get("/a").is_hit());
}

#[test]
fn errors_of_ours_say_what_was_tried() {
    let origin = Origin::start(|_, wire| wire.close());
    for front in ["on", "off"] {
        let rules = "    http-request deny if { path /denied }\n    cache-rule all ttl auto if { method GET HEAD }";
        let gateway = Gateway::start(&site_with(origin.address, &format!("    tune.front {front}"), rules, ""));
        let missed = gateway.get("/a");
        assert_eq!((missed.status, says(&missed)), (502, said("uri-miss", None, "truncated")));
        let passed = gateway.client().request("POST", "/a", "", b"body");
        assert_eq!((passed.status, says(&passed)), (502, said("method", None, "truncated")));
        let ranged = gateway.client().get_with("/a", "Range: bytes=0-1");
        assert_eq!((ranged.status, says(&ranged)), (502, said("bypass", None, "truncated")));
        let wanted = gateway.client().get_with("/a", "Cache-Control: only-if-cached");
        assert_eq!((wanted.status, says(&wanted)), (504, (None, None, Some("only-if-cached".to_owned()))));
        assert!(gateway.get("/denied").all("cache-status").is_empty(), "no cache was asked");
        gateway.assert_law();
    }
}
