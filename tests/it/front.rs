//! One suite, with the memory shortcut and without: the answers are the same.

use crate::harness::{Broken, Client, Gateway, Origin, Response, client::request, rules::site_with};

const RULES: &str = "    http-request deny if { path_beg /denied }
    http-request redirect location /else code 302 if { path_beg /moved }
    http-request set-var(txn.who) req.hdr(X-Who)
    http-response set-header X-Who %[var(txn.who)] if { var(txn.who) -m found }
    http-response set-header X-Constant yes
    http-response del-header content- -m beg
    http-response del-header Date
    http-response set-header Age 7
    http-response set-header Connection close
    http-after-response set-header X-After yes
    cache-rule tenant ttl auto key host path hdr(X-Tenant) if { path_beg /tenant }
    cache-rule all ttl auto";

/// Edits of what belongs to the framing and to the cache, made of the response alone …
const OWNED: &str = "    http-response del-header content- -m beg
    http-response del-header ^(date|age|connection)$ -m reg
    http-response set-header Age 7
    http-response set-header Connection close
    http-response add-header Keep-Alive timeout=1
    cache-rule all ttl auto";

/// … and with the request asked.
const OWNED_BY_REQUEST: &str = "    http-request set-var(txn.edit) str(yes)
    http-response del-header CONTENT-LEN -m beg if { var(txn.edit) -m found }
    http-response del-header Date if { var(txn.edit) -m found }
    http-response add-header Age 7 if { var(txn.edit) -m found }
    http-after-response set-header Connection close if { var(txn.edit) -m found }
    cache-rule all ttl auto";

fn origin() -> Origin {
    Origin::start(|seen, wire| {
        let body = format!("{} {} {:?}", seen.method, seen.target, seen.field("x-tenant"));
        match seen.path() {
            "/chunked" => wire.chunked(200, "Cache-Control: max-age=600", &[b"one ", b"two"]),
            "/close" => wire.until_close(200, "Cache-Control: max-age=600", b"until close"),
            "/vary" => wire.reply(200, "Cache-Control: max-age=600\nVary: X-Who", body.as_bytes()),
            "/private" => wire.reply(200, "Cache-Control: private\nSet-Cookie: a=b", body.as_bytes()),
            "/absent" => wire.reply(404, "Cache-Control: max-age=600", body.as_bytes()),
            "/empty" => wire.head(204, "Cache-Control: max-age=600"),
            "/stale" if seen.field("if-none-match").is_some() => {
                wire.head(304, "ETag: \"s\"\nCache-Control: max-age=0")
            }
            "/stale" => wire.reply(200, "ETag: \"s\"\nCache-Control: max-age=0", body.as_bytes()),
            "/big" => wire.reply(200, "Cache-Control: max-age=600", &[b'x'; 300_000]),
            "/broken" => {
                wire.raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")?;
                wire.close()
            }
            _ => {
                let fields = "Cache-Control: max-age=600\nETag: \"v1\"\n\
                    Last-Modified: Tue, 04 Mar 2025 10:00:00 GMT\nX-Two: 1\nX-Two: 2";
                wire.reply(200, fields, body.as_bytes())
            }
        }
    })
}

/// Every exchange of the suite, in order: method and bytes.
fn exchanges() -> Vec<(&'static str, Vec<u8>)> {
    let mut all = Vec::new();
    let mut add = |method: &'static str, path: &str, fields: &str, body: &[u8]| {
        all.push((method, request(method, path, fields, body)))
    };
    for path in
        ["/a", "/a?q=1", "/chunked", "/close", "/vary", "/private", "/absent", "/empty", "/stale", "/big", "/broken"]
    {
        for fields in ["", "X-Who: me", "If-None-Match: \"v1\"", "Cookie: a=b"] {
            add("GET", path, fields, b"");
        }
        if path != "/broken" {
            add("HEAD", path, "", b"");
        }
    }
    for fields in ["X-Tenant: 1", "X-Tenant: 2", "X-Tenant: 1"] {
        add("GET", "/tenant", fields, b"");
    }
    for path in ["/denied/x", "/moved/x"] {
        add("GET", path, "", b"");
        add("POST", path, "", b"a body");
    }
    add("GET", "/a", "If-Modified-Since: Tue, 04 Mar 2025 10:00:00 GMT", b"");
    add("GET", "/a", "If-Match: \"other\"", b"");
    add("GET", "/a", "Range: bytes=0-3", b"");
    add("GET", "/a", "Authorization: Basic abc", b"");
    add("GET", "/a", "Cache-Control: no-cache", b"");
    add("GET", "/nowhere", "Cache-Control: only-if-cached", b"");
    add("GET", "http://t.example/a", "Host: other.example", b"");
    add("GET", "/a", "Host: T.Example:80", b"");
    add("POST", "/a", "", b"this invalidates");
    add("GET", "/a", "", b"");
    add("GET", "/a", "Connection: close", b"");
    add("OPTIONS", "/a", "", b"");
    all.push(("GET", b"GET /a HTTP/1.0\r\nHost: t.example\r\n\r\n".to_vec()));
    all.push(("GET", b"GET /a HTTP/1.0\r\nHost: t.example\r\nConnection: keep-alive\r\n\r\n".to_vec()));
    all.push(("GET", b"GET /a b HTTP/1.1\r\nHost: t.example\r\n\r\n".to_vec()));
    all
}

/// An answer without what may differ from one run to the next.
fn plain(answer: Result<Response, Broken>) -> String {
    let response = match answer {
        Ok(response) => response,
        Err(_) => return "broken".to_owned(),
    };
    if response.status == 502 {
        // Whether the head was out when the origin broke off is a matter of time.
        return "broken".to_owned();
    }
    let moving = |name: &str| ["date", "age"].iter().any(|moving| name.eq_ignore_ascii_case(moving));
    let mut text = format!("{} {}\n", response.version, response.status);
    for (name, value) in &response.fields {
        let shown = if moving(name) { "…" } else { value.as_str() };
        let shown = if name.eq_ignore_ascii_case("cache-status") { without_ttl(shown) } else { shown.to_owned() };
        text += &format!("{name}: {shown}\n");
    }
    text + &response.body.escape_ascii().to_string()
}

fn without_ttl(status: &str) -> String {
    status.split(';').filter(|part| !part.trim().starts_with("ttl=")).collect::<Vec<_>>().join(";")
}

fn answers(front: &str, rules: &str) -> (Vec<String>, usize) {
    let origin = origin();
    let gateway = Gateway::start(&site_with(origin.address, &format!("    tune.front {front}"), rules, ""));
    let mut kept: Option<Client> = None;
    let mut answers = Vec::new();
    for (method, bytes) in exchanges() {
        let mut client = kept.take().unwrap_or_else(|| gateway.client());
        let answer = client.send(&bytes).try_read(method);
        if answer.as_ref().is_ok_and(|response| !response.closes()) {
            kept = Some(client);
        }
        answers.push(plain(answer));
    }
    gateway.assert_law();
    (answers, origin.count())
}

fn assert_same(rules: &str) {
    let ((on, asked_on), (off, asked_off)) = (answers("on", rules), answers("off", rules));
    let mut differing = Vec::new();
    for (((_, bytes), on), off) in exchanges().iter().zip(&on).zip(&off) {
        if on != off {
            differing.push(format!("{}\n--- on\n{on}\n--- off\n{off}", bytes.escape_ascii()));
        }
    }
    assert!(differing.is_empty(), "{} answers differ:\n{}", differing.len(), differing.join("\n\n"));
    assert_eq!(asked_on, asked_off, "the origin is asked as often");
}

#[test]
fn answers_are_the_same_with_the_front_and_without() {
    assert_same(RULES);
}

#[test]
fn answers_are_the_same_when_rules_edit_what_is_not_theirs() {
    assert_same(OWNED);
    assert_same(OWNED_BY_REQUEST);
}

#[test]
fn rules_cannot_take_framing_date_and_age_off() {
    const DATE: &str = "Tue, 04 Mar 2025 10:00:00 GMT";
    for rules in [OWNED, OWNED_BY_REQUEST] {
        for front in ["on", "off"] {
            let origin = Origin::start(|_, wire| {
                wire.reply(
                    200,
                    &format!("Cache-Control: max-age=999999999\nDate: {DATE}\nAge: 50\nETag: \"v1\""),
                    b"body",
                )
            });
            let gateway = Gateway::start(&site_with(origin.address, &format!("    tune.front {front}"), rules, ""));
            let mut client = gateway.client();
            for (fields, status) in [("", 200), ("", 200), ("If-None-Match: \"v1\"", 304), ("", 200)] {
                let response = client.get_with("/a", fields);
                assert_eq!((response.status, response.field("date")), (status, Some(DATE)), "{response:#?}");
                assert!(response.age().is_some_and(|age| age >= 50), "{response:#?}");
                assert_eq!(response.field("content-length"), (status == 200).then_some("4"), "{response:#?}");
                assert_eq!((response.field("connection"), response.field("keep-alive")), (None, None), "{response:#?}");
            }
            let head = client.request("HEAD", "/a", "", b"");
            assert_eq!((head.field("content-length"), head.is_hit()), (Some("4"), true), "{head:#?}");
            let passed = client.request("POST", "/b", "", b"body");
            assert_eq!((passed.text(), passed.field("content-length")), ("body".to_owned(), Some("4")), "{passed:#?}");
            gateway.assert_law();
        }
    }
}
