//! Answers that rules make in the place of others, and what reaches the client before them.

use std::time::{Duration, Instant};

use crate::harness::{Client, Gateway, Origin, Place, eventually, site};

fn origin() -> Origin {
    Origin::fixed("Cache-Control: max-age=60", "from the origin")
}

#[test]
fn response_rules_answer_in_the_place_of_hits_misses_and_passed_responses() {
    let origin = origin();
    let lines = "    http-response deny if { res.hdr(X-Deny) -m found } || { req.hdr(X-Want) deny }
    http-response return status 200 content-type text/plain string instead if { req.hdr(X-Want) return }
    http-response redirect location /else code 303 if { req.hdr(X-Want) redirect }
    http-response set-status 299 reason Odd if { req.hdr(X-Want) status }
    http-after-response set-header X-After %[status]
    cache-rule all ttl auto if METH_GET";
    let gateway = Gateway::start(&site(origin.address, lines));
    let mut client = gateway.client();
    // The first is a miss, whose answer is stored for those who get another.
    for round in 0..3 {
        for (want, status, body) in
            [("deny", 502, ""), ("return", 200, "instead"), ("redirect", 303, ""), ("status", 299, "from the origin")]
        {
            for method in ["GET", "HEAD", "OPTIONS"] {
                let answer = client.request(method, "/", &format!("X-Want: {want}"), b"");
                assert_eq!(answer.status, status, "{round} {method} {want}");
                assert_eq!(answer.field("x-after"), Some(status.to_string().as_str()), "{round} {method} {want}");
                if method == "HEAD" {
                    assert_eq!(answer.text(), "");
                } else if want != "deny" {
                    assert_eq!(answer.text(), body, "{round} {method} {want}");
                }
            }
        }
        let plain = client.get("/");
        assert_eq!((plain.status, plain.text().as_str()), (200, "from the origin"));
        assert!(plain.is_hit() || round == 0);
    }
    gateway.assert_law();
}

/// What a rule gives a status with a body has an empty one, and its connections carry the next request all the same.
#[test]
fn a_status_with_a_body_gives_an_empty_one() {
    let origin = Origin::start(|seen, wire| match seen.path() {
        "/empty" => wire.reply(204, "Cache-Control: max-age=60", b""),
        "/same" => wire.reply(304, "ETag: \"a\"", b""),
        _ => wire.reply(200, "Cache-Control: max-age=60\nETag: \"a\"", b"whole"),
    });
    let lines = "    http-response set-status 299 if { status 204 304 }
    cache-rule all ttl auto if METH_GET !{ path /same }";
    let gateway = Gateway::start(&site(origin.address, lines));
    let mut client = gateway.client();
    for path in ["/empty", "/empty", "/same", "/whole", "/whole", "/empty"] {
        for method in ["GET", "OPTIONS", "HEAD"] {
            let answer = client.request(method, path, "If-None-Match: \"a\"", b"");
            let (status, body) = match (path, method) {
                ("/whole", "OPTIONS") => (200, "whole"),
                ("/whole", "HEAD") if answer.status == 200 => (200, ""),
                _ => (299, ""),
            };
            assert_eq!((answer.status, answer.text().as_str()), (status, body), "{method} {path}");
        }
    }
    gateway.assert_law();
}

/// What a rule makes a 204 or 304 has no body, and its connections carry the next request all the same.
#[test]
fn a_status_without_a_body_takes_the_body_away() {
    let origin = origin();
    let lines = "    http-response set-status 204 if { req.hdr(X-Want) 204 }
    http-after-response set-status 304 if { req.hdr(X-Want) 304 }
    cache-rule all ttl auto if METH_GET { path /cached }";
    let gateway = Gateway::start(&site(origin.address, lines));
    let mut client = gateway.client();
    for path in ["/cached", "/passed"] {
        for want in ["204", "304", "204", "no", "304", "no"] {
            for method in ["GET", "HEAD", "OPTIONS"] {
                let answer = client.request(method, path, &format!("X-Want: {want}"), b"");
                let (status, body) = match (want, method) {
                    ("no", "HEAD") => (200, ""),
                    ("no", _) => (200, "from the origin"),
                    _ => (want.parse().unwrap(), ""),
                };
                assert_eq!((answer.status, answer.text().as_str()), (status, body), "{method} {path} {want}");
                assert!(status != 204 || answer.field("content-length").is_none(), "{method} {path}");
            }
        }
    }
    gateway.assert_law();
}

#[test]
fn a_client_in_the_tarpit_waits_and_is_noticed_when_it_leaves() {
    let origin = origin();
    let lines = "    timeout tarpit 400ms\n    http-request tarpit deny_status 429 if { path_beg /tar }";
    let gateway = Gateway::start(&site(origin.address, lines));
    let started = Instant::now();
    assert_eq!(gateway.get("/tar").status, 429);
    assert!(started.elapsed() >= Duration::from_millis(400));
    let mut client = gateway.client();
    client.send("GET /tar HTTP/1.1\r\nHost: a\r\n\r\n");
    // One that only ends its side still gets its answer.
    client.reset_on_drop();
    drop(client);
    let left = || gateway.scrape().sum("tidegate_misses_total", &["reason=\"client-gone\""]);
    eventually("its departure is seen", || left() == 1);
    assert_eq!(origin.count(), 0);
    gateway.assert_law();
}

#[test]
fn hints_come_before_the_answer_hit_or_not() {
    let origin = origin();
    let lines = "    http-request early-hint Link \"</a.css>; rel=preload\" if { path_beg /page }
    http-request early-hint X-Path %[path] if { path_beg /page }
    cache-rule all ttl auto if METH_GET";
    let gateway = Gateway::start(&site(origin.address, lines));
    for method in ["GET", "GET", "POST"] {
        let answer = gateway.client().request(method, "/page", "", b"");
        assert_eq!((answer.status, answer.text().as_str()), (200, "from the origin"), "{method}");
        let [hint] = &answer.interim[..] else { panic!("{method}: {:?}", answer.interim) };
        assert_eq!((hint.status, hint.field("link")), (103, Some("</a.css>; rel=preload")), "{method}");
        assert_eq!(hint.field("x-path"), Some("/page"), "{method}");
    }
    assert!(gateway.get("/other").interim.is_empty());
    let old = Client::connect(gateway.address()).send("GET /page HTTP/1.0\r\nHost: a\r\n\r\n").read("GET");
    assert!(old.interim.is_empty(), "HTTP/1.0 knows none");
    gateway.assert_law();
}

#[test]
fn the_monitor_is_answered_before_rules_and_leaves_no_line() {
    let origin = origin();
    let lines = "    log stderr\n    monitor-uri /alive\n    http-request deny if { path_beg /alive }";
    let gateway = Gateway::start(&site(origin.address, lines));
    assert_eq!(gateway.get("/alive").status, 200);
    assert_eq!(gateway.get("/alive/x").status, 403);
    gateway.wait_stderr("/alive/x");
    assert!(!gateway.stderr().contains("/alive "), "{}", gateway.stderr());
    assert_eq!(origin.count(), 0);
    gateway.assert_law();
}

/// A page of ours never takes the place of a server's own answer.
#[test]
fn pages_stand_for_faults_and_not_for_what_servers_answer() {
    let origin = Origin::start(|_, wire| wire.reply(503, "", b"the server's"));
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("503.http");
    std::fs::write(&page, "HTTP/1.1 503 Soon\r\nRetry-After: 9\r\n\r\nours").unwrap();
    let lines = format!(
        "    errorfile 503 {}\n    cache-rule all ttl auto\n    use_backend down if {{ path /x }}",
        page.display()
    );
    let down = Place::hold();
    let rules = site(origin.address, &lines) + &format!("\nbackend down\n    server d {}\n", down.address);
    let gateway = Gateway::start(&rules);
    assert_eq!(gateway.get("/").text(), "the server's");
    for method in ["GET", "POST"] {
        let answer = gateway.client().request(method, "/x", "", b"");
        assert_eq!((answer.status, answer.reason.as_str(), answer.text().as_str()), (503, "Soon", "ours"), "{method}");
        assert_eq!(answer.field("retry-after"), Some("9"));
    }
    gateway.assert_law();
}
