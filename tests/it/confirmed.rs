//! What a 304 confirms: whole bodies, tags that stay, edits made once; and whose request it was.

use std::{fs, thread};

use crate::harness::{Gateway, Origin, eventually, gateway::run_in, site};

/// An origin whose response is stale at once and confirmed by 304 with these fields.
fn confirming(again: &'static str) -> Origin {
    Origin::start(move |seen, wire| match seen.field("if-none-match") {
        Some(_) => wire.raw(format!("HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n{again}\r\n")),
        None => {
            wire.reply(200, "Cache-Control: public, max-age=0\nETag: \"v1\"\nSurrogate-Key: k1\nX-Own: 1", b"hello")
        }
    })
}

#[test]
fn a_confirmation_that_may_not_be_stored_still_has_its_body() {
    for again in
        ["Cache-Control: private\r\n", "Cache-Control: no-store\r\n", "Vary: *\r\nCache-Control: max-age=5\r\n"]
    {
        let origin = confirming(again);
        let gateway = Gateway::start(&site(origin.address, "    cache-rule all ttl auto"));
        for _ in 0..3 {
            let response = gateway.client().get_with("/a", "Authorization: Basic abc");
            assert_eq!((response.status, response.text()), (200, "hello".to_owned()), "{again}");
        }
        gateway.assert_law();
    }
}

#[test]
fn a_confirmed_object_keeps_its_tags_and_is_edited_once() {
    let origin = confirming("Cache-Control: max-age=60\r\n");
    let rules = "    cache-response add-header X-Edit 1\n    cache-rule all ttl auto";
    let gateway = Gateway::start(&site(origin.address, rules));
    gateway.get("/a");
    gateway.get("/a");
    let hit = gateway.get("/a");
    assert!(hit.is_hit());
    assert_eq!(hit.all("x-edit").iter().filter(|value| value.contains('1')).count(), 1, "{hit:#?}");
    assert_eq!(gateway.purge("{\"tag\":\"k1\"}"), 1);
    assert!(!gateway.get("/a").is_hit());
}

#[test]
fn edits_of_what_is_stored_hold_for_what_a_confirmation_brings() {
    let origin = Origin::start(|seen, wire| match seen.field("if-none-match") {
        Some(_) => wire.raw("HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nCache-Control: max-age=1\r\n\r\n"),
        None => wire.reply(200, "Cache-Control: max-age=0\nContent-Type: image/png\nETag: \"v1\"", b"hello"),
    });
    let rules = "    cache-response set-header Cache-Control max-age=0,public if { status 200 }
    cache-response set-header X-Kind picture if { res.hdr(content-type) -m beg image/ }
    cache-rule all ttl auto";
    let gateway = Gateway::start(&site(origin.address, rules));
    for outcome in ["miss", "revalidated", "revalidated"] {
        let response = gateway.get("/a");
        let fields = (response.field("cache-control"), response.field("x-kind"));
        assert_eq!(fields, (Some("max-age=0,public"), Some("picture")), "{outcome}: {response:#?}");
    }
    eventually("both were confirmed", || gateway.scrape().outcome("revalidated") == 2);
}

#[test]
fn edits_of_a_confirmation_see_what_it_confirms() {
    let origin = confirming("Cache-Control: max-age=0\r\nServer: raw\r\nX-New: one\r\n");
    let rules = "    cache-response set-header Cache-Control \"public, max-age=60\" if { status 200 } { res.hdr(X-Own) -m found }
    cache-response del-header Server if { status 200 }
    cache-response add-header X-New two unless { status 304 }
    cache-response replace-header X-Own (.*) <\\1>
    cache-rule all ttl auto if { status 200 }";
    let gateway = Gateway::start(&site(origin.address, rules));
    gateway.get("/a");
    assert_eq!(gateway.purge(r#"{"url":"http://t.example/a","mode":"soft"}"#), 1);
    let confirmed = gateway.get("/a");
    assert_eq!(confirmed.cache().value("fwd-status"), Some("304"), "{confirmed:#?}");
    let hit = gateway.get("/a");
    assert!(hit.is_hit(), "{hit:#?}");
    for response in [confirmed, hit] {
        assert_eq!(response.field("cache-control"), Some("public, max-age=60"), "{response:#?}");
        assert_eq!((response.field("server"), response.all("x-new")), (None, vec!["one", "two"]), "{response:#?}");
        assert_eq!(response.field("x-own"), Some("<1>"), "what it did not bring was edited before: {response:#?}");
    }
    assert_eq!(origin.count(), 2);
}

#[test]
fn a_304_that_nobody_asked_for_is_not_passed_on() {
    let origin = Origin::start(|_, wire| wire.head(304, "ETag: \"v1\"\nCache-Control: max-age=60"));
    let gateway = Gateway::start(&site(origin.address, "    cache-rule all ttl auto"));
    for fields in ["", "If-None-Match: \"v1\""] {
        let response = gateway.client().get_with("/a", fields);
        assert_eq!((response.status, response.cache().value("detail")), (502, Some("protocol")), "{response:#?}");
    }
    gateway.assert_law();
}

#[test]
fn one_clients_credentials_do_not_part_the_others() {
    for (rule, field) in [("ttl auto", "Authorization: Basic abc"), ("ttl 1m", "Cookie: a=b")] {
        let origin = Origin::fixed(if rule == "ttl auto" { "Cache-Control: max-age=60" } else { "" }, "x");
        let gateway = Gateway::start(&site(origin.address, &format!("    cache-rule all {rule}")));
        gateway.client().get_with("/a", field);
        let address = gateway.address();
        let others: Vec<_> = (0..20).map(|_| thread::spawn(move || crate::harness::get(address, "/a"))).collect();
        for other in others {
            assert_eq!(other.join().unwrap().text(), "x");
        }
        assert_eq!(origin.count(), 2, "{field}");
        assert!(!gateway.client().get_with("/a", field).is_hit() || rule == "ttl auto", "{field}");
    }
}

#[test]
fn a_servers_error_leaves_stale_to_be_served() {
    let origin = Origin::fixed("Cache-Control: max-age=0, stale-if-error=60\nETag: \"v1\"", "hello");
    let gateway = Gateway::start(&site(origin.address, "    cache-rule all ttl auto"));
    gateway.get("/a");
    origin.follow(|_, wire| wire.reply(503, "", b"down"));
    let response = gateway.get("/a");
    assert_eq!((response.status, response.text()), (200, "hello".to_owned()), "{response:#?}");
    // Counted once its last byte has been sent.
    eventually("it is counted as stale", || gateway.scrape().outcome("stale") == 1);
    gateway.assert_law();
}

#[test]
fn an_error_after_a_304_about_something_else_leaves_stale_to_be_served() {
    let origin = Origin::start(|seen, wire| match (seen.field("if-none-match"), seen.path()) {
        (Some(_), _) => wire.raw("HTTP/1.1 304 Not Modified\r\nETag: \"v2\"\r\n\r\n"),
        (None, "/a") => wire.reply(200, "Cache-Control: max-age=0, stale-if-error=60\nETag: \"v1\"", b"hello"),
        _ => wire.reply(404, "", b""),
    });
    let gateway = Gateway::start(&site(origin.address, "    cache-rule all ttl auto"));
    gateway.get("/a");
    origin.follow(|seen, wire| match seen.field("if-none-match") {
        Some(_) => wire.raw("HTTP/1.1 304 Not Modified\r\nETag: \"v2\"\r\n\r\n"),
        None => wire.reply(503, "", b"down"),
    });
    let response = gateway.get("/a");
    assert_eq!((response.status, response.text()), (200, "hello".to_owned()), "{response:#?}");
    assert_eq!(origin.count(), 3, "the whole was asked for, once");
    gateway.assert_law();
}

#[test]
fn a_bind_touches_no_file_that_is_no_socket() {
    let dir = tempfile::tempdir().unwrap();
    let precious = dir.path().join("precious");
    fs::write(&precious, "text").unwrap();
    let rules = format!("frontend web\n    bind {}\n    http-request deny\n", precious.display());
    fs::write(dir.path().join("site.cfg"), rules).unwrap();
    let output = run_in(dir.path(), &["run", "-f", "site.cfg"]);
    assert!(!output.status.success());
    assert_eq!(fs::read_to_string(&precious).unwrap(), "text");
}

#[test]
fn rules_without_a_listener_are_refused_and_keep_the_old_ones() {
    let origin = Origin::fixed("", "x");
    let gateway = Gateway::start(&site(origin.address, ""));
    gateway.reload("");
    gateway.wait_stderr("nothing to listen on");
    assert_eq!(gateway.get("/a").text(), "x");
}
