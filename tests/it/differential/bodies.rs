//! Rules that look into the bodies of requests, and wait for them.

use std::{
    net::SocketAddr,
    thread::sleep,
    time::{Duration, Instant},
};

use super::{Haproxy, peers};
use crate::harness::{Client, Gateway, Origin};

/// Both understand this; `@ORIGIN@` is a server.
const CONFIGURATION: &str = r#"
defaults
    mode http
    timeout connect 1s
    timeout client 10s
    timeout server 10s
    timeout http-request 500ms
frontend web
    bind 127.0.0.1:0
    http-request wait-for-body time 10s if { path_beg /wait }
    http-request wait-for-body time 10s at-least 4 if { path_beg /some }
    http-request wait-for-body time 300ms if { path_beg /short }
    http-request set-header X-S-Body "<%[req.body,hex]>" unless { path /long }
    http-request set-header X-S-Len "%[req.body_len]" unless { path /arriving }
    http-request set-header X-S-Size "%[req.body_size]"
    http-request set-header X-S-Param "<%[req.body_param(b)]>"
    http-request set-header X-S-First "<%[req.body_param]>"
    http-request set-header X-S-Expect "<%[req.hdr(expect)]>"
    http-request set-header X-T-Sub 1 if { req.body -m sub secret }
    http-request set-header X-T-Param 1 if { req.body_param(a) -m str 2 3 }
    http-request set-header X-T-Any 1 if { req.body_param -m beg v }
    http-request set-header X-T-Int 1 if { req.body_len gt 10 }
    http-request deny deny_status 403 if { req.body -m sub attack }
    use_backend buffered if { path_beg /buffer }
    use_backend other if { req.body_param(to) -m str other }
    default_backend origin
backend origin
    server o1 @ORIGIN@
backend other
    http-request set-header X-S-Backend other
    server o1 @ORIGIN@
backend buffered
    option http-buffer-request
    http-request set-header X-S-After "<%[req.body,hex]> %[req.body_len]"
    server o1 @ORIGIN@
listen all
    bind 127.0.0.1:0
    option http-buffer-request
    http-request return status 200 content-type text/plain lf-string "%[req.body_len] %[req.body_size] <%[req.body]>" if { path /own }
    http-request set-header X-S-Body "<%[req.body,hex]>"
    server o1 @ORIGIN@
"#;

const ADMIN: &str = "admin\n    bind 127.0.0.1:0\n";

/// What is sent, piece after piece.
struct Sent {
    name: &'static str,
    frontend: usize,
    pieces: Vec<Vec<u8>>,
}

fn sent(name: &'static str, path: &str, fields: &str, pieces: &[&str]) -> Sent {
    let length: usize = pieces.iter().map(|piece| piece.len()).sum();
    let fields =
        if fields.contains("hunked") { fields.to_owned() } else { format!("{fields}Content-Length: {length}\r\n") };
    let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n").into_bytes();
    Sent {
        name,
        frontend: 0,
        pieces: [head].into_iter().chain(pieces.iter().map(|piece| piece.as_bytes().to_vec())).collect(),
    }
}

fn exchanges() -> Vec<Sent> {
    let chunked = "Transfer-Encoding: chunked\r\n";
    let mut all = vec![
        sent("whole", "/wait", "", &["a=2&b=x"]),
        sent("in pieces", "/wait", "", &["a=2", "&b=", "x&", "to=other"]),
        sent("a form's second value", "/wait", "", &["a=1&a=3&b=&b=5"]),
        sent("no form", "/wait", "", &["a;b=9;=v;c"]),
        sent("secret", "/wait", "", &["sec", "ret"]),
        sent("refused for what it says", "/wait", "", &["att", "ack"]),
        sent("empty", "/wait", "", &[]),
        sent("chunks", "/wait", chunked, &["4\r\na=2&\r\n", "5;x=y\r\nb=abc\r\n0\r\n\r\n"]),
        sent("chunks in halves", "/wait", chunked, &["4\r\na=", "2&\r", "\n1\r\nb\r\n0\r", "\nX: y\r\n\r\n"]),
        sent("bad chunks", "/wait", chunked, &["4\r\na=2&\r\n", "zz\r\n"]),
        sent("awaited", "/wait", "Expect: 100-continue\r\n", &["a=2&b=awaited"]),
        sent("some of it", "/some", "", &["abcd", "efgh"]),
        sent("in time", "/short", "", &["abcd", "efgh"]),
        sent("buffered by the backend", "/buffer", "", &["ab", "cd"]),
        sent("both", "/wait/buffer", "", &["ab", "cd"]),
    ];
    let mut late = sent("too late", "/short", "", &["abcd", "efgh"]);
    late.pieces.pop();
    all.push(late);
    let mut late = sent("too late for the backend", "/buffer", "", &["abcd", "efgh"]);
    late.pieces.pop();
    all.push(late);
    for (name, path, pieces) in [
        ("buffered by the frontend", "/", &["ab", "cd"][..]),
        ("answered", "/own", &["ab", "cd"]),
        ("nothing to wait for", "/own", &[]),
    ] {
        all.push(Sent { frontend: 1, ..sent(name, path, "", pieces) });
    }
    all
}

/// The status that a client gets, after which interim ones, and the text.
fn exchange(address: SocketAddr, sent: &Sent) -> (Vec<u16>, String) {
    let mut client = Client::connect(address);
    let mut interim = Vec::new();
    for (at, piece) in sent.pieces.iter().enumerate() {
        if at > 0 {
            sleep(Duration::from_millis(40));
        }
        client.send(piece);
        if at == 0 && sent.pieces[0].windows(6).any(|window| window == b"Expect") {
            interim.push(client.read_head().unwrap().status);
        }
    }
    let response = client.read("POST");
    interim.push(response.status);
    (interim, if response.status == 200 { response.text() } else { String::new() })
}

fn echo() -> Origin {
    Origin::start(|seen, wire| {
        let mut lines: Vec<_> = seen
            .fields
            .iter()
            .filter(|(name, _)| {
                let name = name.to_ascii_lowercase();
                name.starts_with("x-") || name == "expect"
            })
            .map(|(name, value)| format!("{}: {value}", name.to_ascii_lowercase()))
            .collect();
        lines.sort();
        let body = format!("{}\n{}\n{}", seen.line(), lines.join("\n"), seen.body.escape_ascii());
        wire.reply(200, "", body.as_bytes())
    })
}

#[test]
fn bodies_are_waited_for_and_read_as_in_haproxy() {
    let Some([haproxy]) = peers::need("differential test of bodies", ["haproxy"]) else { return };
    let origin = echo();
    let dir = tempfile::tempdir().unwrap();
    let text = CONFIGURATION.replace("@ORIGIN@", &origin.address.to_string());
    let gateway = Gateway::start(&format!("global\n    nbthread 1\n{ADMIN}{text}"));
    let mut differing = Vec::new();
    for frontend in [0, 1] {
        // HAProxy's place is known for one frontend at a time.
        let other = if frontend == 0 { "listen all" } else { "frontend web" };
        let theirs = text.split_inclusive('\n').fold((String::new(), false), |(mut kept, mut skips), line| {
            if !line.starts_with(' ') {
                skips = line.starts_with(other);
            }
            if !skips {
                kept.push_str(line);
            }
            (kept, skips)
        });
        let peer = Haproxy::start(&haproxy, dir.path(), &format!("global\n    maxconn 100\n{}", theirs.0));
        let ours = gateway.frontend(if frontend == 0 { "web" } else { "all" });
        for sent in exchanges().iter().filter(|sent| sent.frontend == frontend) {
            let (theirs, ours) = (exchange(peer.address, sent), exchange(ours, sent));
            if theirs != ours {
                differing.push(format!("{}\n  theirs {theirs:?}\n  ours   {ours:?}", sent.name));
            }
        }
    }
    assert!(differing.is_empty(), "{} exchanges differ:\n{}", differing.len(), differing.join("\n"));
    gateway.assert_law();
}

#[test]
fn what_does_not_fit_is_passed_on_unread() {
    let origin = echo();
    let text = CONFIGURATION.replace("@ORIGIN@", &origin.address.to_string());
    let gateway = Gateway::start(&format!("global\n    tune.bufsize 2048\n{ADMIN}{text}"));
    let body = "0123456789".repeat(50_000);
    let length = format!("Content-Length: {}\r\n", body.len());
    let chunks = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    for (fields, wire) in [(length.as_str(), &body), ("Transfer-Encoding: chunked\r\n", &chunks)] {
        let started = Instant::now();
        let response = Client::connect(gateway.frontend("all"))
            .send(format!("POST /long HTTP/1.1\r\nHost: a\r\n{fields}\r\n{wire}"))
            .read("POST");
        assert_eq!(response.status, 200, "{}", response.text());
        assert!(response.text().ends_with(&body) && started.elapsed() < Duration::from_millis(450));
        let seen = origin.last().field("x-s-body").unwrap().len();
        assert!((2 * 1000..2 * 2048 + 8).contains(&seen), "{seen} digits were seen");
    }
    let small = Client::connect(gateway.frontend("all")).request("POST", "/", "", b"next");
    assert!(small.text().ends_with("next"));
    gateway.assert_law();
}

#[test]
fn a_client_that_leaves_before_its_body_is_there_is_counted() {
    let origin = echo();
    let gateway = Gateway::start(&format!("{ADMIN}{}", CONFIGURATION.replace("@ORIGIN@", &origin.address.to_string())));
    let mut client = Client::connect(gateway.frontend("web"));
    client.send("POST /wait HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf");
    crate::harness::eventually("it is begun", || gateway.scrape().requests() == 1);
    drop(client);
    gateway.assert_law();
    assert_eq!(origin.count(), 0);
}
