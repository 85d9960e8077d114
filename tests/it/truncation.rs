//! An origin that breaks off: clients see the break, nothing is stored.

use std::sync::Arc;

use crate::harness::{Broken, Gate, Gateway, Origin, Response, client::request, eventually, site};

const RULE: &str = "    cache-rule all ttl auto";
const BODY: &[u8] = b"0123456789abcdef";

/// Fetches `/a` and gives what a client sees.
fn fetch(gateway: &Gateway) -> Result<Response, Broken> {
    gateway.client().send(request("GET", "/a", "", b"")).try_read("GET")
}

/// For every proper prefix of `whole`: the origin sends it and closes (or resets).
fn breaks_at_every_byte(whole: &'static [u8], reset: bool) {
    let head = whole.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let origin = Origin::fixed("", "");
    let gateway = Gateway::start(&site(origin.address, RULE));
    for cut in 0..whole.len() {
        origin.follow(move |_, wire| {
            wire.raw(&whole[..cut])?;
            if reset { wire.reset() } else { wire.close() }
        });
        match fetch(&gateway) {
            Ok(response) => assert_eq!(response.status, 502, "cut at {cut}: {response:#?}"),
            Err(broken) => {
                assert!(cut >= head, "cut at {cut}: {broken:#?}");
                assert!(BODY.starts_with(&broken.body), "cut at {cut}: {broken:#?}");
            }
        }
        let before = origin.count();
        origin.follow(|_, wire| wire.reply(200, "Cache-Control: no-store", BODY));
        let next = fetch(&gateway).expect("the next request is answered");
        assert_eq!((next.status, &next.body[..], next.is_hit()), (200, BODY, false), "cut at {cut}");
        assert_eq!(origin.count(), before + 1, "cut at {cut}: the next request goes to the origin");
        // A private answer may be remembered; it must not hide what is stored.
        gateway.purge(r#"{"all":true}"#);
    }
    gateway.assert_law();
}

#[test]
fn a_body_with_a_length_that_ends_early_is_a_break() {
    breaks_at_every_byte(
        b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 16\r\n\r\n0123456789abcdef",
        false,
    );
}

#[test]
fn a_body_with_a_length_that_is_reset_is_a_break() {
    breaks_at_every_byte(
        b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 16\r\n\r\n0123456789abcdef",
        true,
    );
}

#[test]
fn a_chunked_body_that_ends_early_is_a_break() {
    breaks_at_every_byte(
        b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n\
          4\r\n0123\r\nc;a=b\r\n456789abcdef\r\n0\r\nX-Trailer: 1\r\n\r\n",
        false,
    );
}

#[test]
fn a_body_that_ends_with_the_connection_reaches_the_client_whole() {
    let origin = Origin::start(|_, wire| wire.until_close(200, "Cache-Control: max-age=60", BODY));
    let gateway = Gateway::start(&site(origin.address, RULE));
    for _ in 0..2 {
        let response = fetch(&gateway).unwrap();
        assert_eq!((response.status, &response.body[..]), (200, BODY));
    }
}

#[test]
fn a_body_that_should_end_with_the_connection_and_is_reset_is_a_break() {
    let gate = Arc::new(Gate::default());
    let hold = Arc::clone(&gate);
    let origin = Origin::start(move |_, wire| {
        wire.head(200, "Cache-Control: max-age=60")?;
        wire.raw(BODY)?;
        wire.hold(&hold);
        wire.reset()
    });
    let gateway = Gateway::start(&site(origin.address, RULE));
    let mut client = gateway.client();
    let head = client.send(request("GET", "/a", "", b"")).read_head().unwrap();
    assert_eq!(head.status, 200);
    gate.open();
    let broken = client.finish("GET", head).expect_err("the body is incomplete");
    assert!(BODY.starts_with(&broken.body), "{broken:#?}");
    origin.follow(|_, wire| wire.reply(200, "", b"whole"));
    assert_eq!(fetch(&gateway).unwrap().text(), "whole");
}

#[test]
fn bytes_beyond_the_length_are_not_the_next_response() {
    let origin = Origin::start(|seen, wire| match seen.path() {
        "/a" => wire.raw(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\n\
                okHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
        ),
        _ => wire.reply(200, "", b"clean"),
    });
    let gateway = Gateway::start(&site(origin.address, RULE));
    let mut client = gateway.client();
    for round in 0..2 {
        assert_eq!(client.get("/a").text(), "ok");
        if round > 0 {
            eventually("their connection is given up", || origin.open_connections() == 0);
        }
        for number in 0..5 {
            assert_eq!(client.get(&format!("/clean{number}")).text(), "clean");
        }
        gateway.purge(r#"{"all":true}"#);
    }
}

#[test]
fn a_break_in_a_passed_response_is_seen_too() {
    let origin = Origin::start(|_, wire| {
        wire.raw("HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n01234")?;
        wire.close()
    });
    let gateway = Gateway::start(&site(origin.address, RULE));
    let broken = gateway.client().send(request("POST", "/a", "", b"body")).try_read("POST");
    assert!(broken.is_err(), "{broken:#?}");
    gateway.assert_law();
}
