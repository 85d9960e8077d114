//! Clients that leave while a fill is under way.

use std::sync::Arc;

use crate::harness::{Gate, Gateway, Origin, client::request, eventually, gateway::without_front, site};

const HALF: usize = 512 * 1024;

/// An origin that sends `before` bytes of `length`, waits, and sends the rest.
fn slow_origin(length: usize, before: usize) -> (Origin, Arc<Gate>) {
    let gate = Arc::new(Gate::default());
    let hold = Arc::clone(&gate);
    let origin = Origin::start(move |_, wire| {
        wire.head(200, &format!("Cache-Control: max-age=60\nContent-Length: {length}"))?;
        wire.raw(vec![b'a'; before])?;
        wire.hold(&hold);
        wire.raw(vec![b'b'; length - before])
    });
    (origin, gate)
}

/// An origin that sends `before` bytes of `length`, and of the rest a little now and then until the gateway
/// ends the connection: it never comes to the end.
fn dripping_origin(length: usize, before: usize) -> Origin {
    Origin::start(move |_, wire| {
        wire.head(200, &format!("Cache-Control: max-age=60\nContent-Length: {length}"))?;
        wire.raw(vec![b'a'; before])?;
        wire.drip(&[b'b'; 100])
    })
}

/// Waits until the gateway has given up the fill, and asserts that nothing of it is left.
fn assert_given_up(origin: &Origin, gateway: &Gateway) {
    eventually("the origin's connection is given up", || origin.open_connections() == 0);
    origin.follow(|_, wire| wire.reply(200, "", b"another"));
    let again = gateway.get("/a");
    assert_eq!((again.is_hit(), again.text(), origin.count()), (false, "another".to_owned(), 2));
    gateway.assert_law();
}

/// Waits until the fill, which nobody reads, is stored, and asserts that it is used.
fn assert_stored(origin: &Origin, gateway: &Gateway, length: usize) {
    eventually("the object is stored", || gateway.scrape().sum("tidegate_store_objects", &[]) == 1);
    let hit = gateway.get("/a");
    assert_eq!((hit.is_hit(), hit.body.len(), origin.count()), (true, length, 1));
    gateway.assert_law();
}

/// GETs `/a`, takes `taken` bytes of the body and leaves.
fn leave_after(gateway: &Gateway, taken: usize, reset: bool) {
    let mut client = gateway.client();
    client.send(request("GET", "/a", "", b""));
    assert_eq!(client.read_head().unwrap().status, 200);
    client.take(taken);
    if reset {
        client.reset_on_drop();
    }
}

/// Waits until the gateway knows that its client left: that request has its outcome then. The proxy engine
/// learns of it only when it writes, which the gate's opening leads to.
fn departed(gateway: &Gateway) {
    if !without_front() {
        let metrics = || gateway.scrape();
        eventually("the departure is seen", || metrics().outcome("miss") + metrics().outcome("collapsed") > 0);
    }
}

#[test]
fn fill_finish_completes_without_readers() {
    for reset in [false, true] {
        let (origin, gate) = slow_origin(4 * HALF, 1000);
        let gateway = Gateway::start(&site(origin.address, "    cache-rule all ttl auto fill finish"));
        leave_after(&gateway, 10, reset);
        departed(&gateway);
        gate.open();
        assert_stored(&origin, &gateway, 4 * HALF);
    }
}

#[test]
fn fill_abandon_stops_when_the_last_reader_leaves() {
    let origin = dripping_origin(32 * HALF, 100);
    let gateway = Gateway::start(&site(origin.address, "    cache-rule all ttl auto fill abandon"));
    leave_after(&gateway, 10, true);
    assert_given_up(&origin, &gateway);
}

#[test]
fn fill_abandon_does_not_wait_for_a_silent_origin() {
    let origin = Origin::start(|_, wire| {
        wire.head(200, "Cache-Control: max-age=60\nContent-Length: 10000000")?;
        wire.raw([b'a'; 990])?;
        // The proxy engine learns that a client has left only when it writes to it.
        if without_front() { wire.drip(b"b") } else { wire.silence() }
    });
    let gateway = Gateway::start(&site(origin.address, "    cache-rule all ttl auto fill abandon"));
    leave_after(&gateway, 10, true);
    eventually("the end of the fetch is counted", || {
        gateway.scrape().sum("tidegate_fill_duration_seconds_count", &[]) == 1
    });
    assert_given_up(&origin, &gateway);
}

#[test]
fn by_default_a_fill_goes_on_when_little_is_missing() {
    // 10 % of it has come, and less than 1 MiB is missing.
    let (origin, gate) = slow_origin(HALF, HALF / 10);
    let gateway = Gateway::start(&site(origin.address, "    cache-rule all ttl auto"));
    leave_after(&gateway, 10, false);
    departed(&gateway);
    gate.open();
    assert_stored(&origin, &gateway, HALF);
}

#[test]
fn by_default_a_fill_goes_on_when_half_of_it_is_there() {
    let (origin, gate) = slow_origin(16 * HALF, 9 * HALF);
    let gateway = Gateway::start(&site(origin.address, "    cache-rule all ttl auto"));
    leave_after(&gateway, 9 * HALF - 100_000, false);
    departed(&gateway);
    gate.open();
    assert_stored(&origin, &gateway, 16 * HALF);
}

#[test]
fn by_default_a_fill_stops_when_much_is_missing() {
    let origin = dripping_origin(16 * HALF, 1000);
    let gateway = Gateway::start(&site(origin.address, "    cache-rule all ttl auto"));
    leave_after(&gateway, 10, false);
    assert_given_up(&origin, &gateway);
}

#[test]
fn a_reader_that_stays_keeps_the_fill_whoever_leaves() {
    let (origin, gate) = slow_origin(16 * HALF, 1000);
    let gateway = Gateway::start(&site(origin.address, "    cache-rule all ttl auto fill abandon"));
    let mut first = gateway.client();
    first.send(request("GET", "/a", "", b""));
    first.read_head().unwrap();
    let mut second = gateway.client();
    second.send(request("GET", "/a", "", b""));
    second.read_head().unwrap();
    drop(first);
    departed(&gateway);
    gate.open();
    assert_eq!(second.take(16 * HALF).len(), 16 * HALF);
    assert!(gateway.get("/a").is_hit());
    assert_eq!(origin.count(), 1);
}

#[test]
fn a_client_that_closes_at_any_byte_leaves_the_object_complete_or_absent() {
    let body: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
    let copy = body.clone();
    let origin = Origin::start(move |_, wire| wire.reply(200, "Cache-Control: max-age=60", &copy));
    let gateway = Gateway::start(&site(origin.address, "    cache-rule all ttl auto"));
    for cut in [0, 1, 100, 5_000, 70_000, 300_000, 799_999] {
        let path = format!("/{cut}");
        let mut client = gateway.client();
        client.send(request("GET", &path, "", b""));
        client.read_head().unwrap();
        client.take(cut);
        client.reset_on_drop();
        drop(client);
        assert_eq!(gateway.get(&path).body, body, "{path}");
        assert_eq!(gateway.get(&path).body, body, "{path}");
    }
    gateway.assert_law();
}
