//! Surrogate keys are for caches: no client gets them, whatever becomes of the response.

use crate::harness::{Gateway, Origin, Response, site};

const KEYS: &str = "Surrogate-Key: one\nCache-Tag: two\nxkey: three\nX-Group: four";

fn origin() -> Origin {
    Origin::start(|seen, wire| {
        let control = match seen.path() {
            "/private" => "Cache-Control: private",
            "/stale" => "Cache-Control: max-age=0, stale-if-error=1\nETag: \"a\"",
            "/failing" => return wire.reply(503, KEYS, b"down"),
            _ => "Cache-Control: max-age=60",
        };
        wire.reply(200, &format!("{control}\n{KEYS}"), b"hello")
    })
}

fn keys(response: &Response) -> Vec<&str> {
    ["surrogate-key", "cache-tag", "xkey", "x-group"].iter().flat_map(|name| response.all(name)).collect()
}

#[test]
fn no_client_gets_them() {
    let origin = origin();
    let rules = "    cache-rule grouped ttl auto tags res.hdr(X-Group) if { path_beg /grouped }
    cache-rule rest ttl auto if !{ path /unruled }";
    let gateway = Gateway::start(&site(origin.address, rules));
    for (method, path, fields) in [
        ("GET", "/a", ""),
        ("GET", "/a", ""),
        ("HEAD", "/b", ""),
        ("GET", "/private", ""),
        ("GET", "/private", ""),
        ("GET", "/a", "Authorization: Basic abc"),
        ("GET", "/ranged", "Range: bytes=0-1"),
        ("GET", "/unruled", ""),
        ("GET", "/failing", ""),
        ("POST", "/a", ""),
        ("POST", "/grouped", ""),
        ("GET", "/grouped", ""),
        ("GET", "/grouped", ""),
    ] {
        let response = gateway.client().request(method, path, fields, b"");
        assert_eq!(keys(&response), [""; 0], "{method} {path} {fields}");
    }
    assert_eq!(gateway.purge("{\"tag\":\"four\"}"), 1, "the rule's own field names groups");
    assert_eq!(gateway.purge("{\"tag\":\"one\"}"), 1, "and the usual ones do elsewhere (/b; /a was invalidated)");
    gateway.assert_law();
}

#[test]
fn a_proxy_without_caching_rules_leaves_them() {
    let origin = origin();
    let gateway = Gateway::start(&site(origin.address, ""));
    assert_eq!(keys(&gateway.get("/a")), ["one", "two", "three", "four"]);
}
