//! Purging: by the admin API, by a rule, from the command line.

use crate::harness::{Client, Gateway, Origin, gateway::run, site};

const RULE: &str = "    cache-rule all ttl auto";

fn warm(gateway: &Gateway, paths: &[&str]) {
    for path in paths {
        gateway.get(path);
        assert!(gateway.get(path).is_hit(), "{path}");
    }
}

fn hits(gateway: &Gateway, paths: &[&str]) -> Vec<bool> {
    paths.iter().map(|path| gateway.client().get_with(path, "Cache-Control: only-if-cached").is_hit()).collect()
}

#[test]
fn the_api_purges_by_url_prefix_tag_and_all() {
    let origin = Origin::start(|seen, wire| {
        let fields =
            format!("Cache-Control: max-age=60\nSurrogate-Key: all p{} last{}", seen.path().len(), &seen.path()[1..2]);
        wire.reply(200, &fields, b"x")
    });
    let gateway = Gateway::start(&site(origin.address, RULE));
    let paths = ["/a", "/a?q=1", "/ab", "/b"];
    let table = [
        (r#"{"url":"http://t.example/a"}"#, 1, [false, true, true, true]),
        (r#"{"url":"HTTP://T.example:80/a?q=1"}"#, 1, [true, false, true, true]),
        (r#"{"prefix":"http://t.example/a"}"#, 3, [false, false, false, true]),
        (r#"{"tag":"p3"}"#, 1, [true, true, false, true]),
        (r#"{"tag":"all"}"#, 4, [false; 4]),
        (r#"{"tag":"nobody"}"#, 0, [true; 4]),
        (r#"{"url":"http://other.example/a"}"#, 0, [true; 4]),
        (r#"[{"url":"http://t.example/a"},{"url":"http://t.example/b"}]"#, 2, [false, true, true, false]),
        (r#"{"all":true}"#, 4, [false; 4]),
    ];
    for (json, purged, left) in table {
        warm(&gateway, &paths);
        assert_eq!(gateway.purge(json), purged, "{json}");
        assert_eq!(hits(&gateway, &paths), left, "{json}");
    }
    gateway.assert_law();
}

#[test]
fn tags_are_not_shown_to_clients() {
    let origin = Origin::fixed("Cache-Control: max-age=60\nSurrogate-Key: a b\nCache-Tag: c, d\nxkey: e", "x");
    let gateway = Gateway::start(&site(origin.address, RULE));
    for tag in ["a", "b", "c", "d", "e"] {
        for _ in 0..2 {
            let response = gateway.get("/a");
            let shown = ["surrogate-key", "cache-tag", "xkey"].map(|name| response.field(name).is_some());
            assert_eq!(shown, [false; 3]);
        }
        assert_eq!(gateway.purge(&format!(r#"{{"tag":"{tag}"}}"#)), 1, "{tag}");
    }
}

#[test]
fn a_soft_purge_makes_stale_and_a_validator_confirms() {
    let origin = Origin::start(|seen, wire| match seen.field("if-none-match") {
        Some("\"v1\"") => wire.raw("HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nCache-Control: max-age=60\r\n\r\n"),
        _ => wire.reply(200, "Cache-Control: max-age=60\nETag: \"v1\"", b"x"),
    });
    let gateway = Gateway::start(&site(origin.address, RULE));
    gateway.get("/a");
    assert_eq!(gateway.purge(r#"{"url":"http://t.example/a","mode":"soft"}"#), 1);
    let confirmed = gateway.get("/a");
    assert!(!confirmed.is_hit() && confirmed.text() == "x");
    assert_eq!(origin.last().field("if-none-match"), Some("\"v1\""));
    assert!(gateway.get("/a").is_hit());
}

#[test]
fn a_purge_beats_a_fill_in_flight() {
    let gate = std::sync::Arc::new(crate::harness::Gate::default());
    let hold = std::sync::Arc::clone(&gate);
    let origin = Origin::start(move |_, wire| {
        wire.head(200, "Cache-Control: max-age=60\nContent-Length: 3")?;
        wire.hold(&hold);
        wire.raw("old")
    });
    let gateway = Gateway::start(&site(origin.address, RULE));
    let mut client = gateway.client();
    client.send(crate::harness::client::request("GET", "/a", "", b""));
    assert_eq!(client.read_head().unwrap().status, 200);
    gateway.purge(r#"{"url":"http://t.example/a"}"#);
    gate.open();
    assert_eq!(client.take(3), b"old");
    assert!(!gateway.get("/a").is_hit());
}

#[test]
fn a_rule_lets_purge_come_in_by_the_data_listener() {
    let origin = Origin::fixed("Cache-Control: max-age=60", "x");
    let lines = "    http-request purge if { method PURGE } { src 127.0.0.0/8 } { hdr(X-Secret) -m str yes }
    cache-rule all ttl auto";
    let gateway = Gateway::start(&site(origin.address, lines));
    warm(&gateway, &["/a", "/b"]);
    let reply = gateway.client().request("PURGE", "/a", "X-Secret: yes", b"");
    assert_eq!(reply.status, 200);
    assert_eq!(hits(&gateway, &["/a", "/b"]), [false, true]);
    assert!(origin.seen().iter().all(|seen| seen.method == "GET"));
    gateway.assert_law();
    assert_eq!(gateway.metrics().outcome("purge"), 1);
}

#[test]
fn purge_without_a_rule_removes_nothing() {
    let origin = Origin::start(|seen, wire| match seen.method.as_str() {
        "GET" => wire.reply(200, "Cache-Control: max-age=60", b"x"),
        _ => wire.reply(405, "", b""),
    });
    let gateway = Gateway::start(&site(origin.address, RULE));
    warm(&gateway, &["/a"]);
    assert_eq!(gateway.client().request("PURGE", "/a", "", b"").status, 405);
    assert_eq!(hits(&gateway, &["/a"]), [true]);
}

#[test]
fn the_command_line_purges() {
    let origin = Origin::fixed("Cache-Control: max-age=60", "x");
    let gateway = Gateway::start(&site(origin.address, RULE));
    warm(&gateway, &["/a", "/b"]);
    let admin = gateway.admin().to_string();
    let output = run(&["purge", "--admin", &admin, "http://t.example/a"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains('1'));
    assert_eq!(hits(&gateway, &["/a", "/b"]), [false, true]);
    gateway.wait_stderr("INFO purge of http://t.example/a: 1 matched, 1 purged");
}

#[test]
fn custom_keys_are_purged_by_the_url_that_the_client_wrote() {
    let origin = Origin::fixed("Cache-Control: max-age=60", "x");
    let lines = "    http-request set-path /rewritten%[path]\n    cache-rule all ttl auto key host path hdr(X-Tenant)";
    let gateway = Gateway::start(&site(origin.address, lines));
    for tenant in ["X-Tenant: 1", "X-Tenant: 2"] {
        gateway.client().get_with("/a", tenant);
        assert!(gateway.client().get_with("/a", tenant).is_hit());
    }
    assert_eq!(origin.last().target, "/rewritten/a");
    assert_eq!(gateway.purge(r#"{"url":"http://t.example/a"}"#), 2);
}

#[test]
fn a_browser_cannot_be_made_to_purge() {
    let origin = Origin::fixed("Cache-Control: max-age=60", "x");
    let gateway = Gateway::start(&site(origin.address, RULE));
    warm(&gateway, &["/a"]);
    for fields in ["Origin: http://evil.example", "Sec-Fetch-Site: cross-site"] {
        let fields = format!("Content-Type: application/json\n{fields}");
        let reply = Client::connect(gateway.admin()).request("POST", "/v1/purge", &fields, br#"{"all":true}"#);
        assert_eq!(reply.status, 403, "{fields}");
    }
    assert_eq!(hits(&gateway, &["/a"]), [true]);
}

#[test]
fn what_is_no_purge_is_refused() {
    let origin = Origin::fixed("Cache-Control: max-age=60", "x");
    let gateway = Gateway::start(&site(origin.address, RULE));
    warm(&gateway, &["/a"]);
    for json in ["", "{", "{}", r#"{"urll":"http://t.example/a"}"#, r#"{"all":false}"#, r#"{"url":1}"#] {
        assert_eq!(gateway.api("POST", "/v1/purge", json).status, 400, "{json}");
    }
    assert_eq!(gateway.api("GET", "/v1/purge", "").status, 405);
    assert_eq!(gateway.api("GET", "/nowhere", "").status, 404);
    assert_eq!(gateway.api("GET", "/healthz", "").status, 200);
    assert_eq!(hits(&gateway, &["/a"]), [true]);
}
