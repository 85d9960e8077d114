//! SIGHUP: a new snapshot, or the old one with the reason.

use std::{net::TcpStream, sync::Arc, thread, time::Instant};

use crate::harness::{
    Client, Gate, Gateway, Origin, client::request, deadline::LIMIT, eventually, gateway::without_front, site,
};

const RULE: &str = "    cache-rule all ttl auto";

fn with_mark(origin: &Origin, mark: &str, more: &str) -> String {
    site(origin.address, &format!("    http-response set-header X-Mark {mark}\n{RULE}")) + more
}

#[test]
fn rules_change_and_store_counters_and_connections_stay() {
    let origin = Origin::fixed("Cache-Control: max-age=600", "x");
    let gateway = Gateway::start(&with_mark(&origin, "old", ""));
    let mut kept = gateway.client();
    assert_eq!(kept.get("/a").field("x-mark"), Some("old"));
    let before = gateway.metrics().requests();
    gateway.reload(&with_mark(&origin, "new", ""));
    eventually("a new connection meets the new rules", || gateway.get("/a").field("x-mark") == Some("new"));
    let hit = kept.get("/a");
    assert_eq!((hit.field("x-mark"), hit.is_hit()), (Some("new"), true), "the old connection meets them too");
    assert_eq!(origin.count(), 1, "the store is kept");
    assert!(gateway.metrics().requests() > before, "counters go on");
    gateway.assert_law();
}

#[test]
fn a_request_keeps_its_rules_to_its_end() {
    let gate = Arc::new(Gate::default());
    let hold = Arc::clone(&gate);
    let origin = Origin::start(move |seen, wire| {
        if seen.path() == "/slow" {
            wire.hold(&hold);
        }
        wire.reply(200, "", b"slow")
    });
    let gateway = Gateway::start(&with_mark(&origin, "old", ""));
    let mut client = gateway.client();
    client.send(request("GET", "/slow", "", b""));
    origin.wait_for(1);
    gateway.reload(&with_mark(&origin, "new", ""));
    eventually("the new rules are there", || gateway.get("/other").field("x-mark") == Some("new"));
    gate.open();
    let response = client.read("GET");
    assert_eq!((response.status, response.field("x-mark")), (200, Some("old")));
}

#[test]
fn listeners_are_added_and_removed() {
    let origin = Origin::fixed("Cache-Control: max-age=600", "x");
    let gateway = Gateway::start(&with_mark(&origin, "1", ""));
    let web = gateway.address();
    let more = "frontend more\n    bind 127.0.0.1:0\n    default_backend origin\n";
    gateway.reload(&with_mark(&origin, "2", more));
    gateway.wait_stderr("(frontend more)");
    let added = gateway.frontend("more");
    assert_eq!(crate::harness::get(added, "/a").status, 200);
    assert_eq!(crate::harness::get(web, "/a").status, 200, "the first listener is where it was");
    gateway.reload(&with_mark(&origin, "3", ""));
    eventually("the removed listener is gone", || TcpStream::connect(added).is_err());
    assert_eq!(crate::harness::get(web, "/a").field("x-mark"), Some("3"));
    gateway.assert_law();
}

#[test]
fn a_bad_file_changes_nothing_and_says_why() {
    let origin = Origin::fixed("Cache-Control: max-age=600", "x");
    let gateway = Gateway::start(&with_mark(&origin, "good", ""));
    gateway.get("/a");
    gateway.reload(&with_mark(&origin, "bad", "frontend broken\n    bindd 127.0.0.1:0\n"));
    gateway.wait_stderr("bindd");
    let hit = gateway.get("/a");
    assert_eq!((hit.field("x-mark"), hit.is_hit()), (Some("good"), true));
    gateway.reload(&with_mark(&origin, "better", ""));
    eventually("a good file is taken", || gateway.get("/a").field("x-mark") == Some("better"));
}

#[test]
fn a_refused_file_leaves_the_stores_as_they_are() {
    let origin = Origin::fixed("Cache-Control: max-age=600", "x");
    let gateway = Gateway::start(&with_mark(&origin, "good", ""));
    gateway.get("/a");
    let budget = gateway.metrics().sum("tidegate_store_budget_bytes", &[]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let more = format!("frontend more\n    bind {}\ncache second\n    memory 2m\n", taken.local_addr().unwrap());
    let bad = with_mark(&origin, "bad", &more).replace("memory 64m", "memory 1m");
    gateway.reload(&bad);
    gateway.wait_stderr("refused");
    for series in ["store=\"second\"", "frontend=\"more\""] {
        assert!(!gateway.metrics().text.contains(series), "{series} was made for a refused file");
    }
    assert_eq!(gateway.metrics().sum("tidegate_store_budget_bytes", &[]), budget);
    let hit = gateway.get("/a");
    assert_eq!((hit.field("x-mark"), hit.is_hit()), (Some("good"), true));
    gateway.reload(&with_mark(&origin, "better", "").replace("memory 64m", "memory 1m"));
    eventually("a good file's limits are taken", || {
        gateway.scrape().sum("tidegate_store_budget_bytes", &[]) == 1 << 20
    });
}

#[test]
fn a_refused_file_leaves_no_socket_behind() {
    let origin = Origin::fixed("Cache-Control: max-age=600", "x");
    let gateway = Gateway::start(&with_mark(&origin, "good", ""));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (web, admin) = (gateway.dir().join("web.sock"), gateway.dir().join("admin.sock"));
    let more = format!("frontend more\n    bind {}\n    bind {}\n", web.display(), taken.local_addr().unwrap());
    let admin_line = format!("admin\n    bind {}\n", admin.display());
    gateway.reload(&with_mark(&origin, "bad", &more).replacen("admin\n", &admin_line, 1));
    gateway.wait_stderr("refused");
    assert!(!web.exists() && !admin.exists(), "{web:?} {admin:?}");
    assert!(gateway.get("/a").field("x-mark") == Some("good"));
}

#[test]
fn what_old_rules_kept_beside_an_object_goes_with_them() {
    let origin = Origin::fixed("Cache-Control: max-age=600", "x");
    let gateway = Gateway::start(&with_mark(&origin, &"m".repeat(5000), ""));
    let used = || gateway.metrics().sum("tidegate_store_bytes", &[]);
    gateway.get("/a");
    let before = used();
    assert!(gateway.get("/a").is_hit());
    if without_front() {
        return;
    }
    eventually("the head of hits is charged", || used() > before + 5000);
    gateway.reload(&site(origin.address, RULE));
    eventually("it is given back", || used() == before);
    assert!(gateway.get("/a").is_hit());
}

#[test]
fn a_bind_that_goes_while_its_places_are_taken_is_closed_and_leaves_nobody_unanswered() {
    let origin = Origin::fixed("Cache-Control: max-age=600", "x");
    let gateway = Gateway::start(&with_mark(&origin, "1", ""));
    let more = "frontend more\n    bind 127.0.0.1:0\n    maxconn 1\n    default_backend origin\n";
    gateway.reload(&with_mark(&origin, "2", more));
    gateway.wait_stderr("(frontend more)");
    let added = gateway.frontend("more");
    let mut holder = Client::connect(added);
    assert_eq!(holder.get("/a").status, 200);
    let mut queued: Vec<_> = (0..6).map(|_| Client::connect(added)).collect();
    for client in &mut queued {
        client.send(request("GET", "/a", "", b""));
    }
    gateway.reload(&with_mark(&origin, "3", ""));
    eventually("the removed listener is gone", || TcpStream::connect(added).is_err());
    drop(holder);
    for mut client in queued {
        assert_eq!(client.read("GET").status, 200);
    }
    gateway.reload(&with_mark(&origin, "4", &more.replace("127.0.0.1:0", &added.to_string())));
    eventually("the address can be taken again", || TcpStream::connect(added).is_ok());
    gateway.assert_law();
}

#[test]
fn a_rule_that_changed_its_key_does_not_use_old_objects() {
    let origin = Origin::fixed("Cache-Control: max-age=600", "x");
    let rules = |key: &str| {
        site(
            origin.address,
            &format!("    http-response set-header X-Key \"{key}\"\n    cache-rule all ttl auto key {key}"),
        )
    };
    let gateway = Gateway::start(&rules("host path"));
    gateway.get("/a");
    gateway.reload(&rules("host path hdr(X-A)"));
    eventually("the new rules are there", || gateway.get("/other").field("x-key") == Some("host path hdr(X-A)"));
    assert!(!gateway.get("/a").is_hit());
}

#[test]
fn nothing_is_lost_while_rules_are_reloaded_again_and_again() {
    let origin = Origin::start(|seen, wire| {
        let fields = if seen.path() == "/hit" { "Cache-Control: max-age=600" } else { "" };
        wire.reply(200, fields, seen.target.as_bytes())
    });
    let gateway = Gateway::start(&with_mark(&origin, "0", ""));
    let address = gateway.address();
    // Clients go on until they meet the last rules, so every reload finds them under way.
    let clients: Vec<_> = (0..4)
        .map(|_| {
            thread::spawn(move || {
                let (mut client, end) = (Client::connect(address), Instant::now() + LIMIT);
                for number in 0.. {
                    let path = if number % 3 == 0 { "/miss" } else { "/hit" };
                    let response = client.get(path);
                    assert_eq!(response.text(), path);
                    if response.field("x-mark") == Some("5") {
                        break;
                    }
                    assert!(Instant::now() < end, "the last rules have not come");
                }
            })
        })
        .collect();
    for mark in 1..6 {
        let mark = mark.to_string();
        gateway.reload(&with_mark(&origin, &mark, ""));
        eventually("the new rules are there", || gateway.get("/hit").field("x-mark") == Some(&*mark));
    }
    for client in clients {
        client.join().unwrap();
    }
    eventually("the last rules are there", || gateway.get("/hit").field("x-mark") == Some("5"));
    gateway.assert_law();
}

#[test]
fn a_reload_by_command_says_there_and_in_the_log_how_it_ended() {
    let origin = Origin::fixed("Cache-Control: max-age=600", "x");
    let gateway = Gateway::start(&with_mark(&origin, "old", ""));
    let done = gateway.reload_command(&with_mark(&origin, "new", ""));
    assert!(done.status.success(), "{done:?}");
    assert_eq!(String::from_utf8_lossy(&done.stdout), "configuration reloaded, 0 binds added, 0 removed\n");
    assert_eq!(gateway.get("/a").field("x-mark"), Some("new"));
    gateway.wait_stderr("INFO configuration reloaded");
    let refused = gateway.reload_command(&with_mark(&origin, "bad", "nonsense here\n"));
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("`nonsense`"), "{refused:?}");
    gateway.wait_stderr("ERROR reload refused, the old configuration goes on: ");
    assert_eq!(gateway.get("/a").field("x-mark"), Some("new"));
}
