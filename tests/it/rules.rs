//! Rules decide: by method, path, header, cookie; what they rewrite, answer and forward.

use crate::harness::{Gateway, Origin, rules::site_with, site};

fn cacheable() -> Origin {
    Origin::fixed("Cache-Control: max-age=60\nX-Origin: yes", "x")
}

#[test]
fn caching_is_decided_by_method_path_header_and_cookie() {
    let origin = cacheable();
    let lines = "    acl reads method GET HEAD
    acl assets path_beg /assets/ /static/
    acl images path_end -i .png .jpg
    acl mobile req.hdr(User-Agent) -m sub -i mobile
    acl loggedin req.cook(session) -m found
    cache-rule assets ttl auto if reads assets !loggedin
    cache-rule images ttl auto if reads images || reads mobile { path /m }";
    let gateway = Gateway::start(&site(origin.address, lines));
    let table = [
        ("/assets/a.css", "", true),
        ("/static/a", "", true),
        ("/other/assets/", "", false),
        ("/assets/b.css", "Cookie: session=1", false),
        ("/assets/c.css", "Cookie: other=1", true),
        ("/pictures/A.PNG", "", true),
        ("/m", "User-Agent: Some Mobile Browser", true),
        ("/m", "User-Agent: desktop", false),
        ("/", "", false),
    ];
    for (path, fields, cached) in table {
        gateway.client().get_with(path, fields);
        let again = gateway.client().get_with(path, fields);
        assert_eq!(again.is_hit(), cached, "{path} {fields}");
    }
    gateway.assert_law();
}

#[test]
fn a_caching_rule_may_ask_the_response() {
    let origin = Origin::start(|seen, wire| {
        let kind = if seen.path().contains("page") { "text/html" } else { "image/png" };
        wire.reply(200, &format!("Content-Type: {kind}"), b"x")
    });
    let lines =
        "    cache-rule pictures ttl 1h if { path_beg /a } { res.hdr(Content-Type) -m beg image/ } { status 200 }";
    let gateway = Gateway::start(&site(origin.address, lines));
    for (path, cached) in [("/a/page", false), ("/a/picture", true), ("/b/picture", false)] {
        gateway.get(path);
        assert_eq!(gateway.get(path).is_hit(), cached, "{path}");
    }
    gateway.assert_law();
}

#[test]
fn keys_are_made_of_what_a_rule_names() {
    let origin = cacheable();
    let lines = "    cache-rule by_tenant ttl auto key host path hdr(X-Tenant) cookie(lang) if { path_beg /tenant }
    cache-rule without_query ttl auto key host path if { path_beg /plain }
    cache-rule rest ttl auto";
    let gateway = Gateway::start(&site(origin.address, lines));
    let table = [
        ("/tenant", "X-Tenant: a\nCookie: lang=fi", false),
        ("/tenant?x=1", "X-Tenant: a\nCookie: other=1; lang=fi", true),
        ("/tenant", "X-Tenant: a\nCookie: lang=de", false),
        ("/tenant", "X-Tenant: b\nCookie: lang=fi", false),
        ("/plain?a=1", "", false),
        ("/plain?a=2", "", true),
        ("/rest?a=1", "", false),
        ("/rest?a=2", "", false),
        ("/rest", "", false),
        ("/rest?", "", false),
        ("/rest", "Host: other.example", false),
        ("/rest", "Host: T.EXAMPLE:80", true),
        ("/rest", "Host: t.example.", true),
    ];
    for (path, fields, hit) in table {
        assert_eq!(gateway.client().get_with(path, fields).is_hit(), hit, "{path} {fields}");
    }
}

#[test]
fn the_server_gets_what_the_key_says() {
    let origin = cacheable();
    let lines = "    cache-rule chosen ttl 1m key host path query(b,a) strip cookies except lang if { path /chosen }
    cache-rule pages ttl 1m strip query @tracking normalise query-order strip cookies";
    let gateway = Gateway::start(&site(origin.address, lines));
    let table = [
        ("/p?b=1&utm_source=x&a=2", "Cookie: id=1", Some(("/p?a=2&b=1", None))),
        ("/p?a=2&b=1&gclid=5", "Cookie: id=2", None),
        ("/p?gclid=5", "", Some(("/p", None))),
        ("/p", "", None),
        ("/chosen?x=1&b=2&a=1", "Cookie: id=1; lang=fi", Some(("/chosen?a=1&b=2", Some("lang=fi")))),
        ("/chosen?a=1&b=2&evil", "Cookie: lang=fi", Some(("/chosen?a=1&b=2", Some("lang=fi")))),
        ("/chosen?x=1", "", Some(("/chosen", None))),
        ("/chosen?x=2", "Cookie: id=1", None),
    ];
    for (target, fields, seen) in table {
        let before = origin.count();
        let response = gateway.client().get_with(target, fields);
        assert_eq!(response.is_hit(), seen.is_none(), "{target} {fields}");
        let Some((sent, cookie)) = seen else { continue };
        let requests = origin.seen();
        assert_eq!(requests.len(), before + 1, "{target}");
        assert_eq!((&*requests[before].target, requests[before].field("cookie")), (sent, cookie), "{target}");
    }
}

#[test]
fn requests_are_rewritten_before_key_and_server() {
    let origin = cacheable();
    let lines = "    http-request set-var(txn.first) path,field(2,/)
    http-request set-header X-First %[var(txn.first)]
    http-request add-header X-List one
    http-request add-header X-List two
    http-request del-header X-Secret
    http-request replace-header X-Replace (.*)old(.*) \\1new\\2
    http-request replace-path /v[0-9]+/(.*) /\\1
    http-request set-query a=1 if { path /sort }
    http-request set-header X-Lower %[req.hdr(X-Case),lower]
    cache-rule all ttl auto";
    let gateway = Gateway::start(&site(origin.address, lines));
    let fields = "X-Secret: s\nX-Replace: an old one\nX-Case: ABC\nX-List: zero";
    assert!(!gateway.client().get_with("/v1/page", fields).is_hit());
    let sent = origin.last();
    assert_eq!(sent.target, "/page");
    assert_eq!((sent.field("x-first"), sent.field("x-secret")), (Some("v1"), None));
    assert_eq!((sent.field("x-replace"), sent.field("x-lower")), (Some("an new one"), Some("abc")));
    assert_eq!(sent.all("x-list"), ["zero", "one", "two"]);
    assert!(gateway.client().get_with("/v2/page", "").is_hit(), "the key is of the rewritten request");
    gateway.get("/sort?z=9");
    assert_eq!(origin.last().target, "/sort?a=1");
}

#[test]
fn response_rules_run_on_hits_too() {
    let origin = cacheable();
    let lines = "    http-request set-var(txn.origin) req.hdr(Origin)
    http-response set-header Access-Control-Allow-Origin %[var(txn.origin)]
    http-response del-header X-Origin
    http-response add-header X-Status %[status]
    http-after-response set-header X-After always
    cache-rule all ttl auto";
    let gateway = Gateway::start(&site(origin.address, lines));
    for (asked, hit) in [("http://one.example", false), ("http://one.example", true), ("http://two.example", true)] {
        let response = gateway.client().get_with("/a", &format!("Origin: {asked}"));
        assert_eq!((response.is_hit(), response.field("access-control-allow-origin")), (hit, Some(asked)));
        assert_eq!((response.field("x-origin"), response.field("x-status")), (None, Some("200")));
        assert_eq!(response.field("x-after"), Some("always"));
    }
    gateway.assert_law();
}

#[test]
fn constant_response_rules_are_on_hits_once() {
    let origin = cacheable();
    let lines = "    http-response add-header X-Added one
    http-response set-header Server tidegate
    cache-rule all ttl auto";
    let gateway = Gateway::start(&site(origin.address, lines));
    for _ in 0..3 {
        let response = gateway.get("/a");
        assert_eq!((response.all("x-added"), response.field("server")), (vec!["one"], Some("tidegate")));
    }
}

#[test]
fn cache_response_edits_what_is_stored() {
    let origin = cacheable();
    let lines = "    cache-response set-header Cache-Control max-age=600 if { path_beg /long }
    cache-response del-header X-Origin
    cache-response set-header Cache-Control no-store if { path_beg /never }
    cache-rule all ttl auto";
    let gateway = Gateway::start(&site(origin.address, lines));
    for (path, hit) in [("/long", true), ("/never", false), ("/plain", true)] {
        gateway.get(path);
        let response = gateway.get(path);
        assert_eq!(response.is_hit(), hit, "{path}");
        if hit {
            assert_eq!(response.field("x-origin"), None, "{path}");
        }
    }
    assert_eq!(gateway.get("/long").field("cache-control"), Some("max-age=600"));
}

#[test]
fn rules_answer_themselves() {
    let origin = cacheable();
    let lines = "    http-request deny if { path /deny }
    http-request deny deny_status 429 if { path /many }
    http-request redirect location https://t.example%[path] code 301 if { path_beg /moved }
    http-request redirect prefix https://p.example if { path_beg /prefix }
    http-request redirect scheme https code 302 if { path_beg /scheme }
    http-request return status 200 content-type text/plain string \"hello there\" if { path /hello }
    http-request return status 404 if { path /gone }
    http-after-response set-header X-After yes
    cache-rule all ttl auto";
    let gateway = Gateway::start(&site(origin.address, lines));
    let table = [
        ("/deny", 403, None, None),
        ("/many", 429, None, None),
        ("/moved/x", 301, Some("https://t.example/moved/x"), None),
        ("/prefix/x?y=1", 302, Some("https://p.example/prefix/x?y=1"), None),
        ("/scheme/x", 302, Some("https://t.example/scheme/x"), None),
        ("/hello", 200, None, Some("hello there")),
        ("/gone", 404, None, None),
    ];
    for (path, status, location, body) in table {
        for _ in 0..2 {
            let mut client = gateway.client();
            let response = client.get(path);
            assert_eq!((response.status, response.field("location")), (status, location), "{path}");
            assert_eq!(response.field("x-after"), Some("yes"), "{path}");
            assert!(!response.is_hit(), "{path}");
            if let Some(body) = body {
                assert_eq!((response.text().as_str(), response.field("content-type")), (body, Some("text/plain")));
            }
            if !response.closes() {
                assert_eq!(client.get("/else").status, 200, "{path}: the connection goes on");
            }
        }
    }
    assert_eq!(origin.count(), 1);
    gateway.assert_law();
}

#[test]
fn requests_are_sent_to_the_backend_that_rules_name() {
    let (main, api) = (Origin::fixed("", "main"), Origin::fixed("", "api"));
    let (one, two) = (Origin::fixed("", "one"), Origin::fixed("", "two"));
    let lines = "    use_backend api if { path_beg /api/ }
    use_backend both if { hdr(host) -i both.example }
    use_backend api unless { method GET }
    use_backend %[req.hdr(x-backend)] if { req.hdr(x-backend) -m found }
    use_backend both if { path /after }";
    let more = format!(
        "backend api\n    server a {}\nbackend both\n    balance roundrobin\n    server one {}\n    server two {}\n",
        api.address, one.address, two.address
    );
    let gateway = Gateway::start(&(site(main.address, lines) + &more));
    assert_eq!(gateway.get("/").text(), "main");
    assert_eq!(gateway.get("/api/x").text(), "api");
    assert_eq!(gateway.client().request("POST", "/", "", b"x").text(), "api");
    assert_eq!(gateway.client().get_with("/", "X-Backend: api").text(), "api");
    // As HAProxy has it: a name that is none's ends the search.
    assert_eq!(gateway.client().get_with("/after", "X-Backend: nobody").text(), "main");
    let mut turns: Vec<String> = (0..4).map(|_| gateway.client().get_with("/", "Host: both.example").text()).collect();
    turns.sort();
    assert_eq!(turns, ["one", "one", "two", "two"]);
    gateway.assert_law();
}

#[test]
fn servers_learn_the_clients_address() {
    let origin = Origin::fixed("", "x");
    let gateway = Gateway::start(&site_with(
        origin.address,
        "",
        "    option forwardfor\n    http-request set-header X-Src %[src]:%[dst_port]",
        "",
    ));
    gateway.get("/a");
    let port = gateway.address().port();
    assert_eq!(
        (origin.last().field("x-forwarded-for"), origin.last().field("x-src")),
        (Some("127.0.0.1"), Some(&*format!("127.0.0.1:{port}")))
    );
    gateway.client().request("POST", "/a", "", b"body");
    assert_eq!(origin.last().field("x-forwarded-for"), Some("127.0.0.1"));
}

#[test]
fn nuster_rules_work_as_they_stand() {
    let origin = Origin::fixed("", "x");
    let rules = format!(
        "global
    nuster cache on data-size 10m
admin
    bind 127.0.0.1:0
defaults
    mode http
    timeout connect 2s
    timeout client 10s
    timeout server 10s
frontend web
    bind 127.0.0.1:0
    default_backend origin
backend origin
    nuster cache on
    acl pathA path /a.html
    nuster rule r1 ttl 10s if pathA
    acl pathB path_beg /b
    nuster rule r2 key method.scheme.host.path.header_X-Asdf.cookie_user.param_type ttl 1m code 200,404 if pathB
    server o1 {}
",
        origin.address
    );
    let gateway = Gateway::start(&rules);
    let table = [
        ("/a.html", "", false),
        ("/a.html", "", true),
        ("/b?type=1", "X-Asdf: 1\nCookie: user=u", false),
        ("/b?type=1&z=2", "X-Asdf: 1\nCookie: user=u", true),
        ("/b?type=2", "X-Asdf: 1\nCookie: user=u", false),
        ("/c", "", false),
        ("/c", "", false),
    ];
    for (path, fields, hit) in table {
        let before = origin.count();
        gateway.client().get_with(path, fields);
        assert_eq!(origin.count() == before, hit, "{path} {fields}");
    }
    gateway.assert_law();
}

/// What files for HAProxy 1 and nuster have: whole lines of heads are edited, and decide.
#[test]
fn words_before_haproxy_2_edit_whole_lines() {
    let origin = Origin::start(|seen, wire| {
        let status = if seen.path() == "/files/missing" { 404 } else { 200 };
        wire.reply(status, "Server: old\nX-Kind: page", b"x")
    });
    let lines = r"    timeout tarpit 100ms
    block if { path /blocked }
    reqadd X-Added:\ one\ two if { path_beg /static/ }
    reqidel ^x-secret:
    reqrep ^([^\ :]*)\ /static/(.*) \1\ /files/\2
    reqirep ^host:\ .* Host:\ b.example
    reqideny ^User-Agent:.*bad
    reqitarpit ^get\ /slow
    rspadd X-R:\ 1
    rspidel ^server:
    rspirep ^(x-kind):\ p(.*)$ \1:\ P\2
    rsprep ^HTTP/1\.1\ 404.* HTTP/1.1\ 410\ Away";
    let gateway = Gateway::start(&site(origin.address, lines));
    let answer = gateway.client().get_with("/static/a?b=c", "X-Secret: 1\nX-SECRET: 2\nX-Kept: secret");
    let seen = origin.last();
    assert_eq!((seen.line().as_str(), seen.field("host")), ("GET /files/a?b=c", Some("b.example")));
    assert_eq!((seen.field("x-added"), seen.field("x-secret")), (Some("one two"), None));
    assert_eq!(seen.field("x-kept"), Some("secret"));
    assert_eq!((answer.field("x-r"), answer.field("server"), answer.field("x-kind")), (Some("1"), None, Some("Page")));
    let away = gateway.get("/static/missing");
    assert_eq!((away.status, away.reason.as_str()), (410, "Away"));
    assert_eq!(gateway.get("/blocked").status, 403);
    assert_eq!(gateway.client().get_with("/", "User-Agent: very bad").status, 403);
    assert_eq!(gateway.get("/slow").status, 500);
    // Where a body ends is not theirs to say.
    let body = gateway.client().request("POST", "/post", "", b"body");
    assert_eq!((body.status, origin.last().body.as_slice()), (200, &b"body"[..]));
    assert!(gateway.stderr().contains("`reqrep` is HAProxy's before 2.1"));
    gateway.assert_law();
}
