//! HEAD and GET share an object.

use crate::harness::{Gateway, Origin, site};

const RULE: &str = "    cache-rule all ttl auto";

#[test]
fn head_is_answered_from_gets_object() {
    let origin = Origin::fixed("Cache-Control: max-age=60\nX-Own: 1", "hello");
    let gateway = Gateway::start(&site(origin.address, RULE));
    let mut client = gateway.client();
    client.get("/a");
    let head = client.request("HEAD", "/a", "", b"");
    assert_eq!((head.status, head.field("content-length"), head.field("x-own")), (200, Some("5"), Some("1")));
    assert!(head.is_hit() && head.body.is_empty());
    assert_eq!(client.get("/a").text(), "hello", "the connection goes on after HEAD");
    assert_eq!(origin.count(), 1);
    gateway.assert_law();
}

#[test]
fn a_head_miss_never_makes_an_empty_object() {
    let origin = Origin::fixed("Cache-Control: max-age=60", "hello");
    let gateway = Gateway::start(&site(origin.address, RULE));
    let mut client = gateway.client();
    let head = client.request("HEAD", "/a", "", b"");
    assert_eq!((head.status, head.field("content-length")), (200, Some("5")));
    assert_eq!(client.get("/a").text(), "hello");
    assert_eq!(client.request("HEAD", "/a", "", b"").field("content-length"), Some("5"));
    gateway.assert_law();
}

#[test]
fn head_of_a_chunked_object_ends_at_its_head() {
    let origin = Origin::start(|seen, wire| match seen.method.as_str() {
        "HEAD" => wire.head(200, "Cache-Control: max-age=60\nTransfer-Encoding: chunked"),
        _ => wire.chunked(200, "Cache-Control: max-age=60", &[b"one", b"two"]),
    });
    let gateway = Gateway::start(&site(origin.address, RULE));
    let mut client = gateway.client();
    for _ in 0..2 {
        assert_eq!(client.request("HEAD", "/a", "", b"").status, 200);
        assert_eq!(client.get("/a").text(), "onetwo");
    }
}
