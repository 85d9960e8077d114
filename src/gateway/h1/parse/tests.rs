use super::*;

fn read(head: &[u8]) -> Result<Option<(Request, Terms, usize)>, u16> {
    let mut request = Request::default();
    parse(head, false, &mut request)
        .map(|found| found.map(|(terms, size)| (request, terms, size)))
        .map_err(|refusal| refusal.status)
}

/// The status that a head with these lines after the request line gets; 200 when it parses.
fn status(line: &str, fields: &str) -> u16 {
    match read(format!("{line}\r\n{fields}\r\n").as_bytes()) {
        Ok(Some(_)) => 200,
        Ok(None) => 0,
        Err(status) => status,
    }
}

fn good(text: &str) -> (Request, Terms) {
    let (request, terms, size) = read(text.as_bytes()).unwrap().unwrap();
    assert_eq!(size, text.len());
    (request, terms)
}

fn lines(request: &Request) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    request.fields.iter().map(|field| format!("{}: {}", text(field.name), text(field.value))).collect()
}

#[test]
fn a_plain_head() {
    let (request, terms) = good("GET /a?b HTTP/1.1\r\nHost: T.example:80\r\nX-A:  1 \r\nx-a:\t2\r\n\r\n");
    assert_eq!(request.method(), b"GET");
    assert_eq!(request.path(), b"/a");
    assert_eq!(request.query(), Some(&b"b"[..]));
    assert_eq!(request.framing, Framing::None);
    assert_eq!(lines(&request), ["Host: t.example", "X-A: 1", "x-a: 2"]);
    assert!(terms.keep_alive && !terms.expects_continue && !terms.upgrade && !terms.head_only);
}

#[test]
fn every_prefix_asks_for_more() {
    let head = b"POST /a HTTP/1.1\r\nHost: t.example\r\nContent-Length: 3\r\n\r\n";
    for end in 0..head.len() {
        assert!(matches!(read(&head[..end]), Ok(None)), "{end}");
    }
}

#[test]
fn bytes_after_the_head_stay() {
    let (_, _, size) = read(b"GET / HTTP/1.1\r\nHost: t\r\n\r\nGET /next").unwrap().unwrap();
    assert_eq!(size, 27);
}

#[test]
fn a_reused_request_forgets_the_last_one() {
    let mut request = Request::default();
    parse(b"POST /a?b HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\nA: 1\r\n\r\n", false, &mut request).unwrap();
    parse(b"GET /c HTTP/1.1\r\nHost: u\r\n\r\n", false, &mut request).unwrap();
    assert_eq!(request.framing, Framing::None);
    assert_eq!(request.query(), None);
    assert_eq!(lines(&request), ["Host: u"]);
}

#[test]
fn request_lines() {
    for (line, expected) in [
        ("GET / HTTP/1.1", 200),
        ("GET / HTTP/1.0", 200),
        ("PURGE / HTTP/1.1", 200),
        ("X-y!#$%&'*+.^_`|~1 / HTTP/1.1", 200),
        ("OPTIONS * HTTP/1.1", 200),
        ("GET * HTTP/1.1", 400),
        ("GET / HTTP/2.0", 505),
        ("GET / HTTP/1.2", 505),
        ("GET / HTTP/0.9", 505),
        ("GET / HTTP/1.10", 400),
        ("GET / HTP/1.1", 400),
        ("GET / http/1.1", 400),
        ("GET /", 400),
        ("GET", 400),
        ("GET  / HTTP/1.1", 400),
        ("GET /  HTTP/1.1", 400),
        ("GET / HTTP/1.1 ", 400),
        (" GET / HTTP/1.1", 400),
        ("G@T / HTTP/1.1", 400),
        ("GET\t/ HTTP/1.1", 400),
        ("GET /a\u{b}b HTTP/1.1", 400),
        ("GET /a\u{0}b HTTP/1.1", 400),
        ("GET /a?x=<\"1 2\"> HTTP/1.1", 400),
        ("GET /public.png#/../admin HTTP/1.1", 400),
        ("GET /\u{e9} HTTP/1.1", 400),
        ("CONNECT 127.0.0.1:22 HTTP/1.1", 501),
        ("GET 127.0.0.1:22 HTTP/1.1", 400),
        ("GET http://u:p@t/ HTTP/1.1", 400),
        ("GET http:/// HTTP/1.1", 400),
        ("GET http://t,u/ HTTP/1.1", 400),
    ] {
        assert_eq!(status(line, "Host: t\r\n"), expected, "{line:?}");
    }
    assert_eq!(status("PRI * HTTP/2.0", ""), 505);
}

#[test]
fn hosts() {
    for (fields, expected) in [
        ("Host: t\r\n", 200),
        ("", 400),
        ("Host: t\r\nHost: t\r\n", 400),
        ("Host: t\r\nhost: u\r\n", 400),
        ("Host:\r\n", 400),
        ("Host: a.example, b.example\r\n", 400),
        ("Host: a.example/x\r\n", 400),
        ("Host: a b\r\n", 400),
        ("Host: u@a\r\n", 400),
        ("Host: t.example\u{0}.bad\r\n", 400),
    ] {
        assert_eq!(status("GET / HTTP/1.1", fields), expected, "{fields:?}");
    }
    assert_eq!(status("GET / HTTP/1.0", ""), 200);
    assert_eq!(status("GET / HTTP/1.0", "Host: a, b\r\n"), 400);
    assert_eq!(lines(&good("GET / HTTP/1.0\r\nA: 1\r\n\r\n").0), ["A: 1", "Host: "]);
}

#[test]
fn the_authority_of_an_absolute_target_replaces_host() {
    let (request, _) = good("GET http://A.example:80/x HTTP/1.1\r\nX: 1\r\nHost: b.example\r\n\r\n");
    assert_eq!(request.host(), b"a.example");
    assert_eq!(request.path(), b"/x");
    assert_eq!(request.received_target(), b"http://A.example:80/x");
    let (request, _) = good("GET http://a.example?y HTTP/1.0\r\n\r\n");
    assert_eq!((request.host(), request.path(), request.query()), (&b"a.example"[..], &b"/"[..], Some(&b"y"[..])));
}

#[test]
fn fields() {
    for (fields, expected) in [
        ("X-A: a\tb\r\n", 200),
        ("X-A: \u{e9}\r\n", 200),
        ("X-A:\r\n", 200),
        ("X-A: p\rq\r\n", 400),
        ("X-A: p\nq: r\n\r\n", 400),
        ("X-A: p\n", 400),
        ("X-A: p\u{0}q\r\n", 400),
        ("X-A: p\u{7f}q\r\n", 400),
        ("X-A: p\r\n q\r\n", 400),
        (" X-A: p\r\n", 400),
        ("X-A : p\r\n", 400),
        (": v\r\nX-Drop: 1\r\n", 400),
        ("X-\u{ff}: 1\r\n", 400),
        ("X(1): 1\r\n", 400),
        ("X-A\r\n", 400),
        ("X A: 1\r\n", 400),
    ] {
        assert_eq!(status("GET / HTTP/1.1", &format!("Host: t\r\n{fields}")), expected, "{fields:?}");
    }
    assert_eq!(read(b"GET / HTTP/1.1\nHost: t\n\n").err(), Some(400));
    assert_eq!(read(b"GET / HTTP/1.1\r\nHost: t\r\n\n").err(), Some(400));
    assert_eq!(read(b"\nGET / HTTP/1.1\r\nHost: t\r\n\r\n").err(), Some(400));
    assert_eq!(read(b"GET / HTTP/1.1\r\nHost: t\r\nX-\xff: 1\r\n\r\n").err(), Some(400));
}

#[test]
fn lengths() {
    for (fields, expected) in [
        ("Content-Length: 0\r\n", Ok(Framing::Length(0))),
        ("Content-Length:   6  \r\n", Ok(Framing::Length(6))),
        ("Content-Length: 007\r\n", Ok(Framing::Length(7))),
        ("Content-Length: 6\r\nContent-Length: 6\r\n", Ok(Framing::Length(6))),
        ("Content-Length: 6\r\nContent-Length: 7\r\n", Err(400)),
        ("Content-Length: 6, 6\r\n", Err(400)),
        ("Content-Length:\r\n", Err(400)),
        ("Content-Length:\r\nContent-Length: 40\r\n", Err(400)),
        ("Content-Length: +7\r\n", Err(400)),
        ("Content-Length: -0\r\n", Err(400)),
        ("Content-Length: 0x7\r\n", Err(400)),
        ("Content-Length: 7_0\r\n", Err(400)),
        ("Content-Length: 7 0\r\n", Err(400)),
        ("Content-Length: 18446744073709551615\r\n", Ok(Framing::Length(u64::MAX))),
        ("Content-Length: 18446744073709551617\r\n", Err(400)),
    ] {
        let head = format!("POST / HTTP/1.1\r\nHost: t\r\n{fields}\r\n");
        let got = read(head.as_bytes()).map(|found| found.unwrap().0.framing);
        assert_eq!(got, expected, "{fields:?}");
    }
    let (request, _) = good("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 007\r\nContent-Length: 7\r\n\r\n");
    assert_eq!(lines(&request), ["Host: t", "Content-Length: 7"]);
    let (request, _) = good("GET / HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\n\r\n");
    assert_eq!((request.framing, lines(&request)), (Framing::None, vec!["Host: t".to_owned()]));
    let (request, _) = good("GET / HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\n\r\n");
    assert_eq!(request.framing, Framing::Length(9));
}

#[test]
fn transfer_codings() {
    for (fields, expected) in [
        ("Transfer-Encoding: chunked\r\n", Ok(Framing::Chunked)),
        ("transfer-encoding: CHUNKED\r\n", Ok(Framing::Chunked)),
        ("Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", Err(400)),
        ("Transfer-Encoding: chunked\r\nContent-Length: 6\r\n", Err(400)),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", Err(400)),
        ("Transfer-Encoding: chunked, chunked\r\n", Err(400)),
        ("Transfer-Encoding: chunked, gzip\r\n", Err(400)),
        ("Transfer-Encoding: gzip, chunked\r\n", Err(501)),
        ("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", Err(501)),
        ("Transfer-Encoding: gzip\r\n", Err(400)),
        ("Transfer-Encoding: identity\r\n", Err(400)),
        ("Transfer-Encoding:\r\n", Err(400)),
        ("Transfer-Encoding: ,\r\n", Err(400)),
        ("Transfer-Encoding: xchunked\r\n", Err(400)),
        ("Transfer-Encoding: chunked;q=1\r\n", Err(400)),
        ("Transfer-Encoding: \"chunked\"\r\n", Err(400)),
        ("Transfer-Encoding: \u{b}chunked\r\n", Err(400)),
        ("Transfer-Encoding : chunked\r\n", Err(400)),
    ] {
        let head = format!("POST / HTTP/1.1\r\nHost: t\r\n{fields}\r\n");
        let got = read(head.as_bytes()).map(|found| found.unwrap().0.framing);
        assert_eq!(got, expected, "{fields:?}");
    }
    assert_eq!(status("POST / HTTP/1.0", "Host: t\r\nTransfer-Encoding: chunked\r\n"), 400);
}

#[test]
fn keep_alive() {
    for (version, connection, expected) in [
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "Connection: x, Close\r\n", false),
        ("1.1", "Connection: keep-alive, close\r\n", false),
        ("1.1", "Connection: keep-alive\r\nConnection: close\r\n", false),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.0", "Connection: keep-alive, close\r\n", false),
    ] {
        let (_, terms) = good(&format!("GET / HTTP/{version}\r\nHost: t\r\n{connection}\r\n"));
        assert_eq!(terms.keep_alive, expected, "{version} {connection}");
    }
}

#[test]
fn nominated_fields_go_and_what_gives_meaning_stays() {
    let (request, _) = good(
        "POST / HTTP/1.1\r\nHost: t\r\nConnection: X-Real-IP, Host, Content-Length, Authorization, cache-control\r\n\
         X-Real-IP: 1\r\nContent-Length: 1\r\nAuthorization: a\r\nCache-Control: no-cache\r\nX-B: 1\r\n\r\n",
    );
    let names: Vec<_> = lines(&request).iter().map(|line| line.split(':').next().unwrap().to_owned()).collect();
    assert_eq!(names, ["Host", "Content-Length", "Authorization", "Cache-Control", "X-B"]);
    assert_eq!(request.framing, Framing::Length(1));
    let (request, terms) = good("GET / HTTP/1.1\r\nHost: t\r\nConnection: X-A, close\r\nX-A: 1\r\n\r\n");
    assert_eq!(
        (lines(&request), terms.keep_alive),
        (vec!["Host: t".to_owned(), "Connection: close".to_owned()], false)
    );
}

#[test]
fn only_websocket_is_an_upgrade() {
    for (line, fields, expected) in [
        ("GET / HTTP/1.1", "Connection: Upgrade\r\nUpgrade: websocket\r\n", true),
        ("GET / HTTP/1.1", "Connection: keep-alive, upgrade\r\nUpgrade: WebSocket\r\n", true),
        ("GET / HTTP/1.1", "Upgrade: websocket\r\n", false),
        ("GET / HTTP/1.1", "Connection: Upgrade\r\nUpgrade: foo\r\n", false),
        ("GET / HTTP/1.1", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\n", false),
        ("GET / HTTP/1.0", "Connection: Upgrade\r\nUpgrade: websocket\r\n", false),
        ("POST / HTTP/1.1", "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n", false),
        ("GET / HTTP/1.1", "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n", false),
    ] {
        let (request, terms) = good(&format!("{line}\r\nHost: t\r\n{fields}\r\n"));
        assert_eq!(terms.upgrade, expected, "{line} {fields}");
        assert_eq!(request.fields.has("upgrade"), expected, "{line} {fields}");
        assert!(!request.fields.has("http2-settings"));
    }
}

#[test]
fn expectations() {
    let post = "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\n";
    assert!(good(&format!("{post}Expect: 100-Continue\r\n\r\n")).1.expects_continue);
    assert!(!good(&format!("{post}Expect: 100-continue\r\n\r\n")).0.fields.has("expect"));
    assert_eq!(read(format!("{post}Expect: 200-ok\r\n\r\n").as_bytes()).err(), Some(417));
    assert_eq!(read(format!("{post}Expect: 100-continue\r\nExpect: x\r\n\r\n").as_bytes()).err(), Some(417));
    assert!(!good("GET / HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\n\r\n").1.expects_continue);
    assert!(!good("POST / HTTP/1.0\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n").1.expects_continue);
}

#[test]
fn limits() {
    let many = |count: usize| "X: 1\r\n".repeat(count);
    assert_eq!(status("GET / HTTP/1.1", &format!("Host: t\r\n{}", many(MAX_FIELDS - 1))), 200);
    assert_eq!(status("GET / HTTP/1.1", &format!("Host: t\r\n{}", many(MAX_FIELDS))), 431);
    let long = |size: usize| format!("Host: t\r\nX: {}\r\n", "a".repeat(size));
    assert_eq!(status("GET / HTTP/1.1", &long(60_000)), 200);
    assert_eq!(status("GET / HTTP/1.1", &long(MAX_HEAD)), 431);
    let target = |size: usize| format!("GET /{} HTTP/1.1", "a".repeat(size));
    assert_eq!(status(&target(target::MAX_TARGET - 1), "Host: t\r\n"), 200);
    assert_eq!(status(&target(target::MAX_TARGET), "Host: t\r\n"), 414);
    assert_eq!(read(target(40_000).as_bytes()).err(), Some(414));
    assert_eq!(read(format!("GET / HTTP/1.1\r\nX: {}", "a".repeat(MAX_HEAD)).as_bytes()).err(), Some(431));
}

/// `Error::Version` and its kin come before the head is complete, so a refusal needs no more bytes.
#[test]
fn an_early_mistake_is_refused_early() {
    assert_eq!(read(b"GET / HTTP/3").err(), Some(400));
    assert_eq!(read(b"\x16\x03\x01\x02").err(), Some(400));
}
