//! Conditional requests, answered from the stored validator.

use crate::harness::{Gateway, Origin, site};

const RULE: &str = "    cache-rule all ttl auto";
const FIELDS: &str = "Cache-Control: max-age=60\nETag: \"v1\"\nLast-Modified: Tue, 04 Mar 2025 10:00:00 GMT";

#[test]
fn a_client_that_has_it_gets_304() {
    let origin = Origin::fixed(FIELDS, "hello");
    let gateway = Gateway::start(&site(origin.address, RULE));
    let mut client = gateway.client();
    client.get("/a");
    let table = [
        ("If-None-Match: \"v1\"", 304),
        ("If-None-Match: W/\"v1\"", 304),
        ("If-None-Match: \"v0\", W/\"v1\"", 304),
        ("If-None-Match: \"v0\"\nIf-None-Match: \"v1\"", 304),
        ("If-None-Match: *", 304),
        ("If-None-Match: \"v0\"", 200),
        ("If-None-Match: \"v0,v1\"", 200),
        ("If-None-Match: v1", 200),
        ("If-Modified-Since: Tue, 04 Mar 2025 10:00:00 GMT", 304),
        ("If-Modified-Since: Tue, 04 Mar 2025 09:59:59 GMT", 200),
        ("If-Modified-Since: whenever", 200),
        ("If-None-Match: \"v0\"\nIf-Modified-Since: Tue, 04 Mar 2025 10:00:00 GMT", 200),
    ];
    for (fields, status) in table {
        let response = client.get_with("/a", fields);
        assert_eq!(response.status, status, "{fields}");
        assert!(response.is_hit(), "{fields}: {response:#?}");
        assert_eq!(response.field("etag"), Some("\"v1\""), "{fields}");
        assert_eq!(response.body.is_empty(), status == 304, "{fields}");
    }
    assert_eq!(origin.count(), 1);
    gateway.assert_law();
}

#[test]
fn a_miss_goes_to_the_origin_without_the_clients_condition() {
    let origin = Origin::fixed(FIELDS, "hello");
    let gateway = Gateway::start(&site(origin.address, RULE));
    let response = gateway.client().get_with("/a", "If-None-Match: \"v1\"");
    assert_eq!(origin.last().field("if-none-match"), None);
    assert!([200, 304].contains(&response.status));
    assert_eq!(gateway.get("/a").text(), "hello");
    assert_eq!(origin.count(), 1);
}

#[test]
fn if_match_is_the_origins_to_answer() {
    let origin = Origin::fixed(FIELDS, "hello");
    let gateway = Gateway::start(&site(origin.address, RULE));
    gateway.get("/a");
    gateway.client().get_with("/a", "If-Match: \"v0\"");
    assert_eq!((origin.count(), origin.last().field("if-match")), (2, Some("\"v0\"")));
    gateway.assert_law();
}
