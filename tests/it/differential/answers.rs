//! Answers that rules and proxies make: pages, refusals, redirects, users, and what rewrites the target.

use std::{net::SocketAddr, time::Duration};

use super::{Haproxy, peers};
use crate::harness::{Client, Gateway, Origin, Place};

/// Both understand this; `@DIR@` has the files, `@ORIGIN@` is a server and `@DOWN@` is none.
const CONFIGURATION: &str = r#"
defaults
    mode http
    timeout connect 1s
    timeout client 10s
    timeout server 10s
    timeout tarpit 300ms
    errorfile 503 @DIR@/503.http
http-errors pages
    errorfile 404 @DIR@/404.http
    errorfile 403 @DIR@/403.http
userlist people
    group admins users ann
    group staff
    user ann insecure-password secret
    user bob password $5$saltstring$C3o4O1TC6aRHF4FI.QSZMXtHbaj2gSXr4sUc/3NcUi. groups staff
frontend web
    bind 127.0.0.1:0
    monitor-uri /alive
    monitor fail if { req.hdr(x-sick) -m found }
    errorfile 400 @DIR@/400.http
    errorfile 408 /dev/null
    errorloc302 500 /sorry
    errorloc303 429 http://else.example/slow
    errorfiles pages 403
    http-request set-var(txn.path) path
    acl ann http_auth_group(people) admins
    http-request auth if { path_beg /private } !{ http_auth(people) }
    http-request auth realm "the \"inner\" rooms" if { path_beg /private/admin } !ann
    http-request deny if { path /deny }
    http-request deny status 418 if { path /deny/status }
    http-request deny status 404 errorfiles pages if { path /deny/pages }
    http-request deny deny_status 429 if { path /deny/location }
    http-request deny deny_status 500 if { path /deny/500 }
    http-request deny status 410 content-type text/plain lf-string "gone: %[path]" hdr X-R-Why "%[method]" if { path /deny/made }
    http-request deny errorfile @DIR@/404.http if { path /deny/file }
    http-request deny default-errorfiles if { path /deny/default }
    http-request deny deny_status 408 if { path /deny/silent }
    http-request tarpit if { path /tarpit }
    http-request tarpit deny_status 403 if { path /tarpit/page }
    http-request silent-drop if { path /drop }
    http-request return status 503 default-errorfiles if { path /return/page }
    http-request return errorfiles pages status 404 if { path /return/pages }
    http-request return status 200 hdr X-R-A b if { path /return/empty }
    http-request redirect location "/to?%[query]" code 302 if { path /redirect/keep }
    http-request redirect location "/to%[req.hdr(x-to)]" ignore-empty if { path /redirect/empty }
    http-request redirect prefix /p set-cookie a=b if { path /redirect/cookie }
    http-request redirect prefix /p append-slash drop-query if { path /redirect/slash }
    http-request redirect prefix /p clear-cookie a= if { path /redirect/clear }
    http-request replace-value X-List ^o(.*)$ 0\1
    http-request set-uri /u%[path]?%[query] if { path_beg /seturi }
    http-request set-pathq /pq%[pathq] if { path_beg /setpathq }
    http-request replace-uri ^/ru/(.*) /replaced/\1 if { path_beg /ru }
    http-request replace-pathq ^/rp/([^?]*)(\?.*)? /\1/x\2 if { path_beg /rp }
    http-response set-status 202 if { var(txn.path) -m str /status }
    http-response set-status 503 reason "Slow Down" if { var(txn.path) -m str /status/reason }
    http-response deny if { var(txn.path) -m str /response/deny }
    http-response deny status 403 default-errorfiles if { var(txn.path) -m str /response/page }
    http-response return status 200 content-type text/plain string instead hdr X-R-B c if { var(txn.path) -m str /response/return }
    http-response redirect location /elsewhere if { var(txn.path) -m str /response/redirect }
    http-response replace-value X-R-List b+ B
    http-response replace-header X-R-Line b+ B
    http-after-response set-status 299 reason Odd if { var(txn.path) -m str /after }
    http-after-response set-header X-R-After "%[status]"
    use_backend %[req.hdr(x-n)] if { req.hdr(x-n) -m found }
    use_backend down if { path_beg /down }
    default_backend origin
backend origin
    http-request deny deny_status 404 if { path /deny/backend }
    errorfile 404 @DIR@/403.http
    server o1 @ORIGIN@
# With `if` behind them, HAProxy 2.6 leaves out those that may be `full` or `strict`.
backend merge
    http-request normalize-uri path-merge-slashes
    server o1 @ORIGIN@
backend dot
    http-request normalize-uri path-strip-dot
    server o1 @ORIGIN@
backend up
    http-request normalize-uri path-strip-dotdot
    server o1 @ORIGIN@
backend full
    http-request normalize-uri path-strip-dotdot full
    server o1 @ORIGIN@
backend case
    http-request normalize-uri percent-to-uppercase
    server o1 @ORIGIN@
backend case-strict
    http-request normalize-uri percent-to-uppercase strict
    server o1 @ORIGIN@
backend free
    http-request normalize-uri percent-decode-unreserved
    server o1 @ORIGIN@
backend free-strict
    http-request normalize-uri percent-decode-unreserved strict
    server o1 @ORIGIN@
backend sort
    http-request normalize-uri query-sort-by-name
    server o1 @ORIGIN@
backend fragment
    http-request normalize-uri fragment-strip
    server o1 @ORIGIN@
backend encode
    http-request normalize-uri fragment-encode
    server o1 @ORIGIN@
backend all
    http-request normalize-uri path-merge-slashes
    http-request normalize-uri path-strip-dot
    http-request normalize-uri percent-decode-unreserved
    http-request normalize-uri path-strip-dotdot full
    http-request normalize-uri percent-to-uppercase
    http-request normalize-uri query-sort-by-name
    server o1 @ORIGIN@
backend down
    errorfile 503 @DIR@/404.http
    server o1 @DOWN@
"#;

const FILES: [(&str, &str); 4] = [
    ("400.http", "HTTP/1.0 400 No\r\nX-R-Page: 400\r\n\r\nbad\n"),
    ("403.http", "HTTP/1.1 403 Not You\nX-R-Page: 403\nContent-Type: text/plain\n\nnot you\n"),
    ("404.http", "HTTP/1.1 404 Lost\r\nX-R-Page: 404\r\nContent-Length: 5\r\nConnection: close\r\n\r\nlost\n"),
    ("503.http", "HTTP/1.1 503 Later\r\nX-R-Page: 503\r\nRetry-After: 3\r\n\r\nlater\n"),
];

/// Paths with fields.
const REQUESTS: &[(&str, &str)] = &[
    ("/", ""),
    ("/", "X-List: one, two, ooo\nX-List: o"),
    ("/alive", ""),
    ("/alive", "X-Sick: 1"),
    ("/alive?x", ""),
    ("/alive/", ""),
    ("/private", ""),
    ("/private", "Authorization: Basic YW5uOnNlY3JldA=="),
    ("/private", "Authorization: Basic YW5uOndyb25n"),
    ("/private", "Authorization: Basic Ym9iOkhlbGxvIHdvcmxkIQ=="),
    ("/private", "Authorization: Basic Ym9iOkhlbGxvIHdvcmxk"),
    ("/private", "Authorization: Basic Y2FybDo="),
    ("/private/admin", "Authorization: Basic YW5uOnNlY3JldA=="),
    ("/private/admin", "Authorization: Basic Ym9iOkhlbGxvIHdvcmxkIQ=="),
    ("/deny", ""),
    ("/deny/status", ""),
    ("/deny/pages", ""),
    ("/deny/location", ""),
    ("/deny/500", ""),
    ("/deny/made", ""),
    ("/deny/file", ""),
    ("/deny/default", ""),
    ("/deny/backend", ""),
    ("/return/page", ""),
    ("/return/pages", ""),
    ("/return/empty", ""),
    ("/redirect/keep?a=b", ""),
    ("/redirect/keep", ""),
    ("/redirect/empty", ""),
    ("/redirect/empty", "X-To: /x"),
    ("/redirect/cookie?a", ""),
    ("/redirect/slash?a", ""),
    ("/redirect/clear", ""),
    ("/seturi/a?b=c", ""),
    ("/setpathq/a?b=c", ""),
    ("/ru/a?b", ""),
    ("/rp/a?b", ""),
    ("/rp/a", ""),
    ("/a//b///c/?x=//", "X-N: merge"),
    ("/a//b///c/?x=//", "X-N: all"),
    ("//", "X-N: merge"),
    ("//", "X-N: all"),
    ("/./a/./b/.", "X-N: dot"),
    ("/./a/./b/.", "X-N: all"),
    ("/a/.b/./", "X-N: dot"),
    ("/a/../b/../../c", "X-N: up"),
    ("/a/../b/../../c", "X-N: full"),
    ("/a/../b/../../c", "X-N: all"),
    ("/../a/b/..", "X-N: up"),
    ("/../a/b/..", "X-N: full"),
    ("/..", "X-N: up"),
    ("/../..", "X-N: up"),
    ("/a/../../b/..", "X-N: up"),
    ("/../../", "X-N: up"),
    ("/../..", "X-N: full"),
    ("/..", "X-N: full"),
    ("/a/b/../..", "X-N: up"),
    ("/%aa%3f%zz?%ab=%1", "X-N: case"),
    ("/%aa%3f%zz?%ab=%1", "X-N: case-strict"),
    ("/%aa?%ab=%1f", "X-N: case-strict"),
    ("/%41%2e%7e%2f%zz?%61=%20", "X-N: free"),
    ("/%41%2e%7e%2f%zz?%61=%20", "X-N: free-strict"),
    ("/%41%2e%7e%2f?%61=%20", "X-N: free-strict"),
    ("/%41%2e%7e%2f?%61=%20", "X-N: all"),
    ("/?c=1&a=2&b&a=1&", "X-N: sort"),
    ("/?", "X-N: sort"),
    ("/?&&b&a", "X-N: sort"),
    ("/?a=1&a&A=2&a-=3", "X-N: sort"),
    ("/a/./%2e%2e/b//?b=%7a&a", "X-N: all"),
    ("/status", ""),
    ("/status/reason", ""),
    ("/response/deny", ""),
    ("/response/page", ""),
    ("/response/return", ""),
    ("/response/redirect", ""),
    ("/after", ""),
    ("/down", ""),
    ("/tarpit", ""),
    ("/tarpit/page", ""),
];

/// What a client sees of an answer. The text of pages that are not the configuration's is HAProxy's or ours.
fn answer(address: SocketAddr, path: &str, fields: &str) -> Vec<String> {
    let response = Client::connect(address).get_with(path, fields);
    let kept = |name: &str| {
        name.starts_with("x-")
            || ["location", "set-cookie", "www-authenticate", "retry-after", "content-type"].contains(&name)
    };
    let shown = response.fields.iter().map(|(name, value)| (name.to_ascii_lowercase(), value));
    let own = response.fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("x-r-page"));
    let builtin = !own && response.text().contains("<h1>");
    let mut seen: Vec<_> = shown
        .filter(|(name, _)| kept(name) && !(builtin && name == "content-type"))
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    seen.sort();
    // What servers call their statuses is not kept.
    let reason = response.reason.replace("Scripted", "OK");
    seen.insert(0, format!("{} {reason}", response.status));
    if !builtin {
        seen.push(response.text());
    }
    seen
}

fn silent(address: SocketAddr, path: &str) -> bool {
    let mut client = Client::connect(address);
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
    client.try_read("GET").is_err() && client.is_closed()
}

#[test]
fn rules_and_proxies_answer_as_in_haproxy() {
    let Some([haproxy]) = peers::need("differential test of answers", ["haproxy"]) else { return };
    let origin = Origin::start(|seen, wire| {
        let lists = seen.fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("x-list"));
        let lists: Vec<_> = lists.map(|(_, value)| value.as_str()).collect();
        let body = format!("{} {}", seen.line(), lists.join("|"));
        wire.reply(200, "X-R-List: abb, b, c\nX-R-Line: abb, b, c", body.as_bytes())
    });
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in FILES {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let down = Place::hold();
    let text = CONFIGURATION
        .replace("@DIR@", dir.path().to_str().unwrap())
        .replace("@ORIGIN@", &origin.address.to_string())
        .replace("@DOWN@", &down.address.to_string());
    let experimental = "global\n    maxconn 100\n    expose-experimental-directives\n";
    let peer = Haproxy::start(&haproxy, dir.path(), &format!("{experimental}{text}"));
    let gateway = Gateway::start(&format!("global\n    nbthread 1\n    expose-experimental-directives\n{text}"));
    let mut differing = Vec::new();
    for (path, fields) in REQUESTS {
        let (theirs, ours) = (answer(peer.address, path, fields), answer(gateway.address(), path, fields));
        if theirs != ours {
            differing.push(format!("{path} [{}]\n  theirs {theirs:?}\n  ours   {ours:?}", fields.escape_debug()));
        }
    }
    assert!(differing.is_empty(), "{} answers differ:\n{}", differing.len(), differing.join("\n"));
    assert!(silent(peer.address, "/deny/silent"));
    // What HAProxy drops silently, its client waits for.
    assert!(["/deny/silent", "/drop"].iter().all(|path| silent(gateway.address(), path)));
    // HAProxy 2.6 says its own to what it cannot parse, whatever the manual lets one expect.
    let malformed = Client::connect(gateway.address()).send("GET / HTTP/1.1\r\nHost : a\r\n\r\n").read("GET");
    assert_eq!((malformed.status, malformed.reason.as_str(), malformed.text().as_str()), (400, "No", "bad\n"));
    let started = std::time::Instant::now();
    gateway.get("/tarpit");
    assert!(started.elapsed() >= Duration::from_millis(300));
}
