//! Pages of statistics: who gets them, and the table for programs.

use std::{collections::BTreeMap, net::SocketAddr};

use super::{Haproxy, peers};
use crate::harness::{Client, Gateway, Origin, Response};

const CONFIGURATION: &str = r#"
defaults
    mode http
    timeout connect 1s
    timeout client 10s
    timeout server 10s
frontend web
    bind 127.0.0.1:0
    maxconn 50
    stats uri /stats
    stats realm My\ "Stats"
    stats auth ann:secret
    stats auth bob:x:y
    stats refresh 10s
    stats hide-version
    stats show-node here
    stats show-desc a <page>
    stats show-legends
    http-request deny if { path /stats/denied }
    http-request set-path /stats if { path /other }
    use_backend ruled if { path_beg /ruled }
    use_backend plain if { path_beg /haproxy }
    default_backend origin
backend origin
    server o1 @ORIGIN@
backend ruled
    stats uri /ruled
    stats scope web
    stats scope .
    stats http-request deny if { req.hdr(x-deny) 1 }
    stats http-request auth realm other if { req.hdr(x-auth) 1 }
    stats http-request allow
    server o1 @ORIGIN@
backend plain
    stats enable
    server o1 @ORIGIN@
    server o2 @ORIGIN@
"#;

const ANN: &str = "Authorization: Basic YW5uOnNlY3JldA==";

const REQUESTS: &[(&str, &str, &str)] = &[
    ("GET", "/stats", ""),
    ("GET", "/stats", ANN),
    ("GET", "/stats", "Authorization: Basic YW5uOndyb25n"),
    ("GET", "/stats", "Authorization: Basic Ym9iOng6eQ=="),
    ("GET", "/stats/denied", ANN),
    ("GET", "/statsx", ANN),
    ("GET", "/stat", ANN),
    ("GET", "/other", ANN),
    ("GET", "/stats?a", ANN),
    ("GET", "/stats;csv", ANN),
    ("GET", "/stats;norefresh", ANN),
    ("GET", "/stats;csv;norefresh", ANN),
    ("POST", "/stats", ANN),
    ("PUT", "/stats", ANN),
    ("HEAD", "/stats", ANN),
    ("GET", "/ruled", ""),
    ("GET", "/ruled;csv", ""),
    ("GET", "/ruled", "X-Deny: 1"),
    ("GET", "/ruled", "X-Auth: 1"),
    ("GET", "/haproxy?stats", ""),
    ("GET", "/haproxy?stats;csv", ""),
    ("GET", "/haproxy", ""),
];

fn seen(address: SocketAddr, (method, path, fields): (&str, &str, &str)) -> Vec<String> {
    let body: &[u8] = if method == "POST" { b"a=b" } else { b"" };
    let response = Client::connect(address).request(method, path, fields, body);
    let mut seen = vec![response.status.to_string()];
    for name in ["www-authenticate", "refresh", "content-type", "location", "cache-control"] {
        // The type of pages is HAProxy's or ours.
        let kept = response.field(name).filter(|_| response.status < 400 || name == "www-authenticate");
        seen.extend(kept.map(|value| format!("{name}: {value}")));
    }
    if path.contains(";csv") {
        seen.extend(rows(&response).iter().map(|row| format!("{}/{} {}", row["# pxname"], row["svname"], row["type"])));
    }
    seen
}

/// The lines of a table, by column.
fn rows(response: &Response) -> Vec<BTreeMap<String, String>> {
    let text = response.text();
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let columns = lines.next().unwrap();
    lines.filter(|line| line.len() > 1).map(|line| columns.iter().cloned().zip(line).collect()).collect()
}

fn start() -> (Origin, String) {
    let origin = Origin::fixed("", "x");
    let text = CONFIGURATION.replace("@ORIGIN@", &origin.address.to_string());
    (origin, text)
}

#[test]
fn statistics_are_for_whom_they_are_in_haproxy() {
    let Some([haproxy]) = peers::need("differential test of statistics", ["haproxy"]) else { return };
    let (_origin, text) = start();
    let dir = tempfile::tempdir().unwrap();
    let peer = Haproxy::start(&haproxy, dir.path(), &format!("global\n    maxconn 100\n{text}"));
    let gateway = Gateway::start(&text);
    let mut differing = Vec::new();
    for request in REQUESTS {
        let (theirs, ours) = (seen(peer.address, *request), seen(gateway.address(), *request));
        if theirs != ours {
            differing.push(format!("{request:?}\n  theirs {theirs:?}\n  ours   {ours:?}"));
        }
    }
    assert!(differing.is_empty(), "{} answers differ:\n{}", differing.len(), differing.join("\n"));
    let columns = |address| rows(&Client::connect(address).get_with("/stats;csv", ANN))[0].keys().cloned().collect();
    let (theirs, ours): (Vec<String>, Vec<String>) = (columns(peer.address), columns(gateway.address()));
    let unknown: Vec<_> = ours.iter().filter(|column| !theirs.contains(column)).collect();
    assert!(unknown.is_empty() && ours.len() > 90, "{unknown:?}");
}

#[test]
fn statistics_say_what_was_counted() {
    let (origin, text) = start();
    let gateway = Gateway::start(&text);
    let mut client = gateway.client();
    (0..3).for_each(|_| assert_eq!(client.get("/a").status, 200));
    assert_eq!(client.get("/stats/denied").status, 403);
    assert_eq!(origin.count(), 3);
    let table = rows(&client.get_with("/stats;csv", ANN));
    let row =
        |name: &str, server: &str| table.iter().find(|row| row["# pxname"] == name && row["svname"] == server).unwrap();
    let web = row("web", "FRONTEND");
    for (column, expected) in [
        ("req_tot", "5"),
        ("hrsp_2xx", "3"),
        ("hrsp_4xx", "1"),
        ("dreq", "1"),
        ("stot", "1"),
        ("scur", "1"),
        ("slim", "50"),
        ("status", "OPEN"),
        ("addr", "127.0.0.1:0"),
    ] {
        assert_eq!(web[column], expected, "{column}");
    }
    assert_eq!(row("origin", "BACKEND")["stot"], "3");
    assert_eq!(row("origin", "o1")["addr"], origin.address.to_string());
    let page = client.get_with("/stats", ANN).text();
    for part in ["<title>Tidegate on here</title>", "a &lt;page&gt;", "<caption>web</caption>", "FRONTEND", "o1"] {
        assert!(page.contains(part), "no {part} in {page}");
    }
    assert!(!page.contains(env!("CARGO_PKG_VERSION")));
}
