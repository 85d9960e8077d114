//! The harness against itself, without a gateway between.

use crate::harness::{Client, Origin};

#[test]
fn a_client_reads_every_framing_and_an_origin_remembers() {
    let origin = Origin::start(|seen, wire| match seen.path() {
        "/length" => wire.reply(200, "A: b", b"five5"),
        "/chunked" => wire.chunked(200, "", &[b"one", b"two"]),
        _ => wire.until_close(200, "", b"till the end"),
    });
    let mut client = Client::connect(origin.address);
    let response = client.get("/length");
    assert_eq!((response.status, response.field("a"), response.text()), (200, Some("b"), "five5".to_owned()));
    assert_eq!(client.request("POST", "/chunked", "", b"body").text(), "onetwo");
    let response = client.get("/close");
    assert!(response.until_close && response.closes());
    assert_eq!(response.text(), "till the end");
    assert_eq!((origin.count(), origin.connections(), origin.count_of("/chunked")), (3, 1, 1));
    assert_eq!(origin.seen()[1].body, b"body");
}

#[test]
fn a_client_sees_a_break_in_every_framing() {
    let origin = Origin::start(|seen, wire| {
        match seen.path() {
            "/length" => wire.raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")?,
            "/chunked" => wire.raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n")?,
            _ => wire.raw("HTTP/1.1 200 OK\r\nContent-")?,
        }
        wire.close()
    });
    for path in ["/length", "/chunked"] {
        let broken =
            Client::connect(origin.address).send(crate::harness::client::request("GET", path, "", b"")).try_read("GET");
        let broken = broken.expect_err("the response is incomplete");
        assert_eq!((broken.head.map(|head| head.status), &broken.body[..]), (Some(200), &b"12345"[..]));
    }
    let broken = Client::connect(origin.address).send("GET / HTTP/1.1\r\nHost: t\r\n\r\n").try_read("GET");
    assert!(broken.expect_err("the head is incomplete").head.is_none());
}

#[test]
fn a_reset_is_seen() {
    let origin = Origin::start(|_, wire| wire.reset());
    let mut client = Client::connect(origin.address);
    assert!(client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n").is_closed());
}
