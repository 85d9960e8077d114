//! Hit, miss, stale, grace: how long an answer is used.

use std::sync::Arc;

use crate::harness::{Gate, Gateway, Origin, Response, eventually, site};

const RULE: &str = "    cache-rule all ttl auto";

#[test]
fn a_fresh_response_is_a_hit_with_age_and_the_origins_date() {
    let origin =
        Origin::fixed("Date: Tue, 04 Mar 2025 10:00:00 GMT\nCache-Control: max-age=9999999999\nX-Own: 1", "hello");
    let gateway = Gateway::start(&site(origin.address, RULE));
    let mut client = gateway.client();
    let miss = client.get("/a");
    assert_eq!((miss.status, miss.text()), (200, "hello".to_owned()));
    assert_eq!(miss.cache().forward(), Some("uri-miss"));
    assert!(miss.cache().has("stored"));
    let hit = client.get("/a");
    assert_eq!((hit.status, hit.text(), hit.is_hit()), (200, "hello".to_owned(), true));
    assert_eq!(hit.field("date"), Some("Tue, 04 Mar 2025 10:00:00 GMT"));
    assert_eq!(hit.field("x-own"), Some("1"));
    assert!(hit.age().is_some_and(|age| age > 1_000_000), "Age counts from the origin's Date: {hit:#?}");
    assert_eq!(origin.count(), 1);
    gateway.assert_law();
    assert_eq!((gateway.metrics().outcome("miss"), gateway.metrics().outcome("hit")), (1, 1));
}

#[test]
fn an_upstream_age_counts() {
    let origin = Origin::fixed("Cache-Control: max-age=60\nAge: 30", "old");
    let gateway = Gateway::start(&site(origin.address, RULE));
    gateway.get("/a");
    let hit = gateway.get("/a");
    assert!(hit.is_hit());
    assert!((30..40).contains(&hit.age().unwrap()), "{hit:#?}");
    let ttl: i64 = hit.cache().value("ttl").unwrap().parse().unwrap();
    assert!((20..=30).contains(&ttl), "{hit:#?}");
}

#[test]
fn a_response_older_than_its_lifetime_is_no_hit() {
    let origin = Origin::fixed("Cache-Control: max-age=60\nAge: 60", "old");
    let gateway = Gateway::start(&site(origin.address, RULE));
    gateway.get("/a");
    assert!(!gateway.get("/a").is_hit());
    assert_eq!(origin.count(), 2);
}

#[test]
fn s_maxage_beats_max_age_and_max_age_beats_expires() {
    let origin = Origin::start(|seen, wire| {
        let fields = match seen.path() {
            "/shared" => "Cache-Control: max-age=60, s-maxage=0",
            "/age" => "Cache-Control: max-age=60\nExpires: Thu, 01 Jan 1970 00:00:00 GMT",
            "/expires" => "Date: Tue, 04 Mar 2025 10:00:00 GMT\nExpires: Fri, 04 Mar 2095 10:00:00 GMT",
            _ => "Expires: 0",
        };
        wire.reply(200, fields, b"x")
    });
    let gateway = Gateway::start(&site(origin.address, RULE));
    for (path, hit) in [("/shared", false), ("/age", true), ("/expires", true), ("/zero", false)] {
        gateway.get(path);
        assert_eq!(gateway.get(path).is_hit(), hit, "{path}");
    }
}

#[test]
fn what_must_not_be_stored_is_not() {
    let origin = Origin::start(|seen, wire| {
        let fields = match seen.path() {
            "/no-store" => "Cache-Control: no-store, max-age=60",
            "/private" => "Cache-Control: private, max-age=60",
            "/cookie" => "Cache-Control: max-age=60\nSet-Cookie: a=b",
            "/nothing" => "",
            "/star" => "Cache-Control: max-age=60\nVary: , *",
            _ => "Cache-Control: max-age=60",
        };
        wire.reply(200, fields, b"x")
    });
    let gateway = Gateway::start(&site(origin.address, RULE));
    for path in ["/no-store", "/private", "/cookie", "/nothing", "/star"] {
        for _ in 0..2 {
            let response = gateway.get(path);
            assert!(!response.is_hit() && response.status == 200, "{path}: {response:#?}");
        }
        assert_eq!(origin.count_of(path), 2, "{path}");
    }
    for _ in 0..2 {
        assert!(!gateway.client().get_with("/authorized", "Authorization: Basic abc").is_hit());
    }
    assert_eq!(origin.count_of("/authorized"), 2);
    gateway.assert_law();
}

#[test]
fn public_lets_an_authorized_answer_be_shared() {
    let origin = Origin::fixed("Cache-Control: public, max-age=60", "x");
    let gateway = Gateway::start(&site(origin.address, RULE));
    gateway.client().get_with("/a", "Authorization: Basic abc");
    assert!(gateway.client().get_with("/a", "Authorization: Basic other").is_hit());
    assert_eq!(origin.count(), 1);
}

/// Asks for `/a` until the answer is no fresh hit.
fn once_stale(gateway: &Gateway) -> Response {
    let mut last = None;
    eventually("it is stale", || {
        let response = gateway.get("/a");
        let fresh = response.is_hit() && !response.field("cache-status").unwrap_or_default().contains("grace");
        last = Some(response);
        !fresh
    });
    last.unwrap()
}

#[test]
fn a_stale_response_with_a_validator_is_revalidated() {
    let origin = Origin::start(|seen, wire| match seen.field("if-none-match") {
        Some("\"v1\"") => {
            wire.raw("HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=60\r\nETag: \"v1\"\r\nX-New: yes\r\n\r\n")
        }
        _ => wire.reply(200, "Cache-Control: max-age=60\nAge: 59\nETag: \"v1\"", b"body"),
    });
    let gateway = Gateway::start(&site(origin.address, RULE));
    gateway.get("/a");
    let confirmed = once_stale(&gateway);
    assert_eq!((confirmed.status, confirmed.text()), (200, "body".to_owned()));
    assert_eq!(confirmed.field("x-new"), Some("yes"));
    assert_eq!(confirmed.cache().forward(), Some("stale"));
    let hit = gateway.get("/a");
    assert!(hit.is_hit() && hit.field("x-new") == Some("yes"), "{hit:#?}");
    assert_eq!(origin.count(), 2);
    gateway.assert_law();
    assert_eq!(gateway.metrics().outcome("revalidated"), 1);
}

#[test]
fn a_stale_response_without_a_validator_is_fetched_again() {
    let origin = Origin::fixed("Cache-Control: max-age=60\nAge: 59", "body");
    let gateway = Gateway::start(&site(origin.address, RULE));
    gateway.get("/a");
    let again = once_stale(&gateway);
    assert!(!again.is_hit());
    assert_eq!((origin.count(), origin.last().field("if-none-match")), (2, None));
}

#[test]
fn within_grace_stale_is_served_at_once_and_one_fill_refreshes() {
    let origin = Origin::start(|_, wire| wire.reply(200, "Cache-Control: max-age=60\nAge: 59", b"first"));
    let gateway = Gateway::start(&site(origin.address, "    cache-rule all ttl auto grace 1h"));
    gateway.get("/a");
    let gate = Arc::new(Gate::default());
    let hold = Arc::clone(&gate);
    origin.follow(move |_, wire| {
        wire.hold(&hold);
        wire.reply(200, "Cache-Control: max-age=60", b"second")
    });
    assert_eq!(once_stale(&gateway).text(), "first");
    origin.wait_for(2);
    for _ in 0..3 {
        assert_eq!(gateway.get("/a").text(), "first");
    }
    gate.open();
    eventually("the refreshed object is served", || gateway.get("/a").text() == "second");
    assert_eq!(origin.count(), 2);
    gateway.assert_law();
    assert!(gateway.metrics().outcome("stale") >= 3);
}

#[test]
fn a_request_that_may_get_its_own_answer_refreshes_nothing_for_others() {
    // Public: those who send credentials or cookies may be served from it.
    let fields = "Cache-Control: public, max-age=60";
    for (rule, own) in [("ttl auto", "Authorization: Basic abc"), ("ttl 1m", "Cookie: session=1")] {
        let origin = Origin::fixed(fields, "first");
        let gateway = Gateway::start(&site(origin.address, &format!("    cache-rule all {rule} grace 1h")));
        gateway.get("/a");
        assert_eq!(gateway.purge(r#"{"all":true,"mode":"soft"}"#), 1, "it is stale from now on");
        let gate = Arc::new(Gate::default());
        let hold = Arc::clone(&gate);
        origin.follow(move |_, wire| {
            wire.hold(&hold);
            wire.reply(200, fields, b"second")
        });
        for fields in [own, own, "X-Own: nothing"] {
            let stale = gateway.client().get_with("/a", fields);
            assert_eq!((stale.text(), stale.cache().value("detail")), ("first".into(), Some("grace")), "{fields}");
        }
        // A refresh that the first ones had started would be under way still, and the only one.
        origin.wait_for(2);
        assert_eq!(origin.last().field("x-own"), Some("nothing"), "{own}");
        gate.open();
        eventually("the refreshed object is served", || gateway.client().get_with("/a", own).text() == "second");
        let seen = origin.seen();
        let owned = |name: &str| seen.iter().any(|seen| seen.field(name).is_some());
        assert_eq!((seen.len(), owned("authorization"), owned("cookie")), (2, false, false), "{own}");
        gateway.assert_law();
    }
}

#[test]
fn stale_while_revalidate_is_grace_that_the_origin_gives() {
    let origin = Origin::fixed("Cache-Control: max-age=60, stale-while-revalidate=60\nAge: 59", "first");
    let gateway = Gateway::start(&site(origin.address, RULE));
    gateway.get("/a");
    origin.follow(|_, wire| wire.reply(200, "Cache-Control: max-age=60", b"second"));
    assert_eq!(once_stale(&gateway).text(), "first");
    eventually("the refreshed object is served", || gateway.get("/a").text() == "second");
}

#[test]
fn must_revalidate_beats_grace() {
    let origin = Origin::fixed("Cache-Control: max-age=60, must-revalidate\nAge: 59", "first");
    let gateway = Gateway::start(&site(origin.address, "    cache-rule all ttl auto grace 1h"));
    gateway.get("/a");
    origin.follow(|_, wire| wire.reply(200, "Cache-Control: max-age=60", b"second"));
    assert_eq!(once_stale(&gateway).text(), "second");
}

#[test]
fn a_fixed_ttl_needs_no_word_from_the_origin() {
    let origin = Origin::fixed("", "x");
    let gateway = Gateway::start(&site(origin.address, "    cache-rule all ttl 1s"));
    gateway.get("/a");
    assert!(gateway.get("/a").is_hit());
    assert!(!once_stale(&gateway).is_hit());
}

#[test]
fn a_fixed_ttl_does_not_store_an_account_page() {
    let origin = Origin::fixed("", "account");
    let gateway = Gateway::start(&site(origin.address, "    cache-rule all ttl 1h"));
    for _ in 0..2 {
        assert!(!gateway.client().get_with("/account.css", "Cookie: session=1").is_hit());
    }
    assert_eq!(origin.count(), 2);
    assert!(!gateway.get("/account.css").is_hit(), "what a cookie brought is nobody else's");
}

#[test]
fn an_unsafe_method_invalidates_what_it_may_have_changed() {
    let origin = Origin::fixed("Cache-Control: max-age=60", "x");
    let gateway = Gateway::start(&site(origin.address, RULE));
    gateway.get("/a");
    assert!(gateway.get("/a").is_hit());
    assert_eq!(gateway.client().request("POST", "/a", "", b"change").status, 200);
    assert!(!gateway.get("/a").is_hit());
}

#[test]
fn what_the_response_to_an_unsafe_method_names_is_invalid_too() {
    let origin = Origin::start(|seen, wire| match seen.path() {
        "/form" => wire.reply(303, "Location: ../list?all\r\nContent-Location: http://other.example/kept", b""),
        _ => wire.reply(200, "Cache-Control: max-age=60", b"x"),
    });
    let gateway = Gateway::start(&site(origin.address, RULE));
    let mut other = gateway.client();
    let mut kept = || other.request("GET", "http://other.example/kept", "", b"").is_hit();
    kept();
    for _ in 0..2 {
        gateway.get("/list?all");
    }
    assert!(kept() && gateway.get("/list?all").is_hit());
    assert_eq!(gateway.client().request("POST", "/form", "", b"change").status, 303);
    assert!(!gateway.get("/list?all").is_hit());
    assert!(kept(), "it is another origin's");
}

#[test]
fn only_if_cached_never_goes_to_the_origin() {
    let origin = Origin::fixed("Cache-Control: max-age=60", "x");
    let gateway = Gateway::start(&site(origin.address, RULE));
    assert_eq!(gateway.client().get_with("/a", "Cache-Control: only-if-cached").status, 504);
    assert_eq!(origin.count(), 0);
    gateway.get("/a");
    assert!(gateway.client().get_with("/a", "Cache-Control: only-if-cached").is_hit());
    gateway.assert_law();
}

#[test]
fn the_memory_budget_is_hard() {
    let origin = Origin::start(|_, wire| wire.reply(200, "Cache-Control: max-age=600", &[b'x'; 20_000]));
    // Response rules that give every hit the same have their head kept beside the object.
    let rules = format!("    http-response set-header X-Constant {}\n{RULE}", "c".repeat(500));
    let rules = site(origin.address, &rules).replace("memory 64m", "memory 1m");
    let gateway = Gateway::start(&rules);
    let mut client = gateway.client();
    for number in 0..200 {
        for _ in 0..2 {
            assert_eq!(client.get(&format!("/{number}")).body.len(), 20_000);
        }
        let used = gateway.metrics().sum("tidegate_store_bytes", &[]);
        assert!(used <= 1 << 20, "{used} bytes after {number} objects");
    }
    let stats = gateway.api("GET", "/v1/stats", "");
    assert_eq!(stats.status, 200);
    assert!(gateway.metrics().evictions() >= 100, "{}", gateway.metrics().text);
    gateway.assert_law();
}
