//! Stick tables and the rules below HTTP, as clients meet them.

use std::thread;

use crate::harness::{
    Client, Gateway, Origin,
    client::request,
    eventually,
    gateway::without_front,
    rules::{one_worker, site_with},
};

/// What `/show` says of the client.
const SHOW: &str = "    http-request return status 200 content-type text/plain lf-string \"%[sc0_conn_cnt] %[sc0_conn_cur] %[sc0_http_req_cnt] %[sc0_http_err_cnt]\" if { path /show }";

fn tracking(origin: &Origin, workers: usize, rules: &str) -> String {
    let frontend = format!(
        "    stick-table type ip size 1k expire 1h store conn_cnt,conn_cur,http_req_cnt,http_err_cnt,gpc0\n{rules}\n{SHOW}\n"
    );
    site_with(origin.address, &format!("    nbthread {workers}\n"), &frontend, "")
}

/// connections, connections now, requests, errors
fn shown(gateway: &Gateway) -> Vec<u64> {
    let answer = gateway.get("/show");
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text().split(' ').map(|number| number.parse().unwrap()).collect()
}

#[test]
fn connections_and_requests_are_counted_by_address() {
    let origin = Origin::fixed("", "x");
    let gateway = Gateway::start(&tracking(
        &origin,
        2,
        "    tcp-request connection track-sc0 src\n    http-request deny if { path /no }",
    ));
    assert_eq!(shown(&gateway), [1, 1, 1, 0]);
    let mut other = Client::connect_from([127, 0, 0, 9], gateway.address());
    let mut client = gateway.client();
    for path in ["/", "/no", "/"] {
        client.get(path);
        other.get(path);
    }
    eventually("the last connection is seen to be closed", || shown(&gateway)[1] == 2);
    let before = shown(&gateway);
    assert_eq!(
        [before[2] - before[0] + 4, before[3]],
        [6, 1],
        "three requests on one connection, one on each other: {before:?}"
    );
    drop(client);
    eventually("a connection that closes is not counted any more", || shown(&gateway)[1] == 1);
    assert_eq!(other.get("/show").text(), "1 1 4 1");
}

#[test]
fn no_count_is_lost_between_workers_and_connections() {
    let origin = Origin::fixed("", "x");
    let gateway = Gateway::start(&tracking(&origin, 2, "    tcp-request connection track-sc0 src"));
    let (threads, connections, requests) = (4_u64, 5, 20);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..connections {
                    let mut client = gateway.client();
                    (0..requests).for_each(|_| drop(client.get("/")));
                }
            });
        }
    });
    eventually("every connection is closed", || shown(&gateway)[1] == 1);
    let seen = shown(&gateway);
    let own = seen[0] - threads * connections;
    assert_eq!(seen[2], threads * connections * requests + own, "{seen:?}");
}

#[test]
fn a_connection_is_rejected_before_it_says_anything() {
    let origin = Origin::fixed("", "x");
    let gateway = Gateway::start(&tracking(
        &origin,
        1,
        "    tcp-request connection track-sc0 src\n    tcp-request connection reject if { src 127.0.0.7 }\n    \
         tcp-request connection silent-drop if { src 127.0.0.8 }\n    tcp-request session reject if { src 127.0.0.9 }",
    ));
    for last in [7, 8, 9] {
        let mut client = Client::connect_from([127, 0, 0, last], gateway.address());
        assert!(client.is_closed(), "127.0.0.{last}");
    }
    assert_eq!(gateway.get("/").status, 200);
    let metrics = gateway.scrape();
    assert_eq!(metrics.sum("tidegate_connections_denied_total", &[]), 3);
    assert_eq!(metrics.requests(), 1, "nobody asked for anything there");
    eventually("nobody who was turned away counts as there", || shown(&gateway)[1] == 1);
}

#[test]
fn a_request_is_rejected_with_its_connection() {
    let origin = Origin::fixed("", "x");
    let gateway = Gateway::start(&tracking(
        &origin,
        1,
        "    tcp-request connection track-sc0 src\n    tcp-request content reject if { path /low }\n    \
         http-request reject if { path /high }\n    http-request silent-drop if { path /silent }",
    ));
    for path in ["/low", "/high", "/silent"] {
        let mut client = gateway.client();
        client.get("/");
        client.send(request("GET", path, "", b""));
        assert!(client.is_closed(), "{path}");
    }
    // The one that content rules reject was not counted as a request, as in HAProxy.
    eventually("all are gone", || shown(&gateway)[1] == 1);
    let seen = shown(&gateway);
    assert_eq!(seen[2], seen[0] + 2, "{seen:?}");
    assert_eq!(origin.count_of("/low") + origin.count_of("/high") + origin.count_of("/silent"), 0);
    gateway.assert_law();
}

#[test]
fn a_response_is_rejected_with_its_connection() {
    let origin = Origin::fixed("Cache-Control: max-age=60", "x");
    let backend = "    tcp-response content reject if { res.hdr(cache-control) -m found } { path_beg /no }\n";
    let gateway = Gateway::start(&site_with(origin.address, "", "    cache-rule all ttl auto\n", backend));
    assert_eq!(gateway.get("/yes").status, 200);
    // From the server, from the store, and past the cache.
    for (method, body) in [("GET", ""), ("GET", ""), ("POST", "x")] {
        let mut client = gateway.client();
        client.send(request(method, "/no", "", body.as_bytes()));
        assert!(client.is_closed(), "{method}");
    }
    assert!(gateway.get("/yes").is_hit() || without_front());
    gateway.assert_law();
}

#[test]
fn a_table_keeps_its_entries_over_a_reload_when_it_still_means_the_same() {
    let origin = Origin::fixed("", "x");
    let with = |stored: &str, size: &str| {
        site_with(
            origin.address,
            "",
            &format!(
                "    stick-table type ip size {size} expire 1h store {stored}\n    tcp-request connection track-sc0 src\n    \
                 http-request return status 200 content-type text/plain lf-string %[sc0_http_req_cnt] if {{ path /show }}\n"
            ),
            "",
        )
    };
    let gateway = Gateway::start(&one_worker(&with("http_req_cnt", "1k")));
    let mut kept = gateway.client();
    assert_eq!([kept.get("/show").text(), kept.get("/show").text()], ["1", "2"]);
    gateway.reload(&one_worker(&with("http_req_cnt", "2k")));
    gateway.wait_stderr("keeps its 1 entries");
    eventually("the new configuration serves", || gateway.client().get("/show").text() != "");
    let before: u64 = kept.get("/show").text().parse().unwrap();
    assert!(before >= 4, "{before}");
    gateway.reload(&one_worker(&with("http_req_cnt,conn_cnt", "2k")));
    gateway.wait_stderr("has other keys or data");
    // Connections that were tracked go on in the table they were tracked in; a new one begins anew, once it is accepted
    // under the new configuration.
    eventually("a new connection begins anew", || gateway.get("/show").text() == "1");
}

#[test]
fn nothing_is_accepted_beyond_the_rate_of_a_second() {
    let origin = Origin::fixed("", "x");
    let gateway = Gateway::start(&one_worker(&site_with(origin.address, "", "    rate-limit sessions 5\n", "")));
    let start = std::time::Instant::now();
    for _ in 0..11 {
        assert_eq!(gateway.get("/").status, 200);
    }
    // Five in the first second, and then as the first ones are forgotten.
    assert!(start.elapsed() > std::time::Duration::from_millis(900), "{:?}", start.elapsed());
}

#[test]
fn the_shipped_rate_limit_answers_429_and_then_nothing() {
    let origin = Origin::fixed("", "x");
    let rules = include_str!("../../rules/rate-limit.cfg")
        .replace("bind :8080", "bind 127.0.0.1:0")
        .replace("bind 127.0.0.1:9180", "bind 127.0.0.1:0")
        .replace("src 10.0.0.0/8", "src 127.0.0.2")
        .replace("\"${ORIGIN-127.0.0.1:3000}\"", &origin.address.to_string());
    let gateway = Gateway::start(&rules);
    let statuses = |client: &mut Client, path: &str, count: usize| {
        let mut seen: Vec<_> = (0..count).map(|_| client.get(path).status).collect();
        seen.dedup();
        seen
    };
    let mut client = Client::connect_from([127, 0, 0, 3], gateway.address());
    assert_eq!(statuses(&mut client, "/static/a", 30), [200], "what is cheap is not counted");
    assert_eq!(statuses(&mut client, "/page", 20), [200]);
    assert_eq!(statuses(&mut client, "/health", 1), [200]);
    let refused = client.get("/page");
    assert_eq!((refused.status, refused.field("retry-after")), (429, Some("10")));
    // Another client, and the house, are served meanwhile.
    assert_eq!(statuses(&mut Client::connect_from([127, 0, 0, 4], gateway.address()), "/page", 5), [200]);
    assert_eq!(statuses(&mut Client::connect_from([127, 0, 0, 2], gateway.address()), "/page", 200), [200]);
    assert_eq!(statuses(&mut client, "/page", 101), [429]);
    let mut again = Client::connect_from([127, 0, 0, 3], gateway.address());
    assert!(again.is_closed(), "who goes on is not let in any more");
    gateway.assert_law();
}
