//! Upgrades: rules first, bytes only after the 101.

use std::sync::Arc;

use crate::harness::{Client, Gate, Gateway, Origin, Wire, eventually, rules::one_worker, site};

const ASK: &str = "GET /chat HTTP/1.1\r\nHost: t.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

fn echo(wire: &mut Wire<'_>) -> std::io::Result<()> {
    wire.raw(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
    )?;
    while let Some(bytes) = wire.read() {
        wire.raw(bytes)?;
    }
    wire.close()
}

fn upgrade(gateway: &Gateway) -> Client {
    let mut client = gateway.client();
    let switched = client.send(ASK).read("GET");
    assert_eq!((switched.status, switched.field("upgrade")), (101, Some("websocket")));
    assert_eq!(switched.field("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    client
}

#[test]
fn a_websocket_carries_bytes_both_ways() {
    let origin = Origin::start(|_, wire| echo(wire));
    let gateway = Gateway::start(&site(origin.address, "    cache-rule all ttl auto"));
    let mut client = upgrade(&gateway);
    for size in [1usize, 5, 70_000] {
        let bytes: Vec<u8> = (0..size).map(|at| at.to_le_bytes()[0]).collect();
        client.send(&bytes);
        assert_eq!(client.take(size), bytes);
    }
    assert_eq!(origin.last().field("upgrade"), Some("websocket"));
    drop(client);
    eventually("the origin's side ends with the client", || origin.open_connections() == 0);
    gateway.assert_law();
}

#[test]
fn bytes_behind_the_request_wait_for_the_101() {
    let gate = Arc::new(Gate::default());
    let hold = Arc::clone(&gate);
    let origin = Origin::start(move |seen, wire| {
        if seen.path() != "/chat" {
            return wire.reply(200, "", b"other");
        }
        wire.hold(&hold);
        if wire.has_more()? { wire.reply(500, "", b"early bytes are here") } else { echo(wire) }
    });
    let gateway = Gateway::start(&one_worker(&site(origin.address, "")));
    let mut client = gateway.client();
    client.send([ASK, "early"].concat());
    origin.wait_for(1);
    // The gateway has the bytes and does other things: nothing is left that would make it send them later.
    for _ in 0..2 {
        assert_eq!(gateway.get("/other").text(), "other");
    }
    gate.open();
    assert_eq!(client.read("GET").status, 101);
    assert_eq!(client.take(5), b"early");
}

#[test]
fn rules_come_first() {
    let origin = Origin::start(|_, wire| echo(wire));
    let gateway = Gateway::start(&site(origin.address, "    http-request deny if { path /chat }"));
    assert_eq!(gateway.client().send(ASK).read("GET").status, 403);
    assert_eq!(origin.count(), 0);
}

#[test]
fn a_refused_upgrade_leaves_an_ordinary_connection() {
    let origin = Origin::fixed("Cache-Control: max-age=60", "no");
    let gateway = Gateway::start(&site(origin.address, "    cache-rule all ttl auto"));
    let mut client = gateway.client();
    for _ in 0..2 {
        let response = client.send(ASK).read("GET");
        assert_eq!((response.status, response.text()), (200, "no".to_owned()));
    }
    assert_eq!(client.get("/plain").status, 200);
    gateway.assert_law();
}
