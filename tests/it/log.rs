//! The log: what lines say, where they go, and what is kept of messages for them.

use std::{net::UdpSocket, os::unix::net::UnixDatagram};

use crate::harness::{Gateway, Origin, deadline::LIMIT, rules::site_with, site};

fn origin() -> Origin {
    Origin::start(|seen, wire| {
        let fields = if seen.path() == "/hit" { "Cache-Control: max-age=60\nX-Kind: page" } else { "X-Kind: page" };
        wire.reply(200, fields, b"hello")
    })
}

struct Server(UdpSocket);

impl Server {
    fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(LIMIT)).unwrap();
        Self(socket)
    }

    fn line(&self) -> String {
        let mut room = [0; 4096];
        let len = self.0.recv(&mut room).expect("a line");
        String::from_utf8_lossy(&room[..len]).trim_end_matches('\n').to_owned()
    }
}

#[test]
fn lines_go_to_a_syslog_server_as_haproxy_writes_them() {
    let (origin, server) = (origin(), Server::start());
    let global = format!("    log {} len 900 local0\n", server.0.local_addr().unwrap());
    let lines = "    log global\n    option httplog\n    capture request header User-Agent len 6\n    \
                 capture response header X-Kind len 20\n    cache-rule all ttl auto if { path /hit }\n    \
                 http-request deny if { path /no }";
    let gateway = Gateway::start(&site_with(origin.address, &global, lines, ""));
    let mut client = gateway.client();
    for (path, fields, state, tail) in [
        ("/a", "User-Agent: curl/8", "----", "{curl/8} {page} \"GET /a HTTP/1.1\""),
        ("/hit", "", "----", "{} {page} \"GET /hit HTTP/1.1\""),
        ("/hit", "", "LR--", "{} {page} \"GET /hit HTTP/1.1\""),
        ("/no?q=x", "User-Agent: x", "PR--", "{x} {} \"GET /no?q="),
    ] {
        client.get_with(path, fields);
        let line = server.line();
        assert!(line.starts_with("<134>") && line.contains(" tidegate["), "{line}");
        assert!(line.contains(" web ") && line.contains(&format!(" {state} ")), "{state} is not in {line}");
        assert!(line.contains(tail), "{tail} is not in {line}");
    }
    gateway.assert_law();
}

#[test]
fn formats_captures_variables_and_ids_reach_the_log_and_the_server() {
    let (origin, server) = (origin(), Server::start());
    let lines = format!(
        "    log {} format raw daemon info\n    unique-id-format %{{+X}}o-%ci-%rt\n    unique-id-header X-Id\n    \
         declare capture request len 9\n    http-request capture path id 0\n    \
         http-request set-var(txn.who) req.hdr(x-who)\n    http-request set-var(proc.last) path\n    \
         http-response set-var(txn.kind) res.hdr(x-kind)\n    cache-rule all ttl auto if {{ path /hit }}\n    \
         log-format \"%HM %HP %ST %[var(txn.who)] %[var(txn.kind)] %[capture.req.hdr(0)] %{{+Q}}[txn.outcome] %ID %[var(proc.greeting)] %[var(sess.n)] %B\"\n    \
         http-request set-var(sess.n) str(first) if !{{ var(sess.n) -m found }}",
        server.0.local_addr().unwrap()
    );
    let global = "    set-var proc.greeting str(hello)\n";
    let gateway = Gateway::start(&site_with(origin.address, global, &lines, ""));
    let mut client = gateway.client();
    for (path, outcome) in [("/a", "pass"), ("/hit", "miss"), ("/hit", "hit")] {
        client.get_with(path, "X-Who: me");
        let line = server.line();
        let words: Vec<_> = line.split(' ').collect();
        let [method, logged, status, who, kind, captured, counted, id, greeting, session, bytes] = words[..] else {
            panic!("{line}")
        };
        assert_eq!([method, logged, status, who], ["GET", path, "200", "me"], "{line}");
        assert_eq!([kind, captured, greeting, session], ["page", path, "hello", "first"], "{line}");
        assert_eq!(counted, format!("\"{outcome}\""), "{line}");
        // Without the memory shortcut bodies alone are counted.
        assert!(bytes.parse::<u64>().unwrap() >= 5, "{line}");
        assert!(id.starts_with("-7F000001-") && id.len() > 10, "{line}");
        if outcome != "hit" {
            assert_eq!(origin.last().fields.iter().find(|(name, _)| name == "X-Id").unwrap().1, id, "{line}");
        }
    }
    gateway.assert_law();
}

#[test]
fn errors_and_levels_decide_who_hears_of_a_request() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(LIMIT)).unwrap();
    let lines = format!(
        "    log {} format rfc5424 local3 notice\n    option log-separate-errors\n    log-format %HP\n    \
         http-request set-log-level silent if {{ path /silent }}\n    http-request set-log-level notice if {{ path /said }}\n    \
         http-request deny if {{ path_beg /no }}",
        path.display()
    );
    let gateway = Gateway::start(&site(origin.address, &lines));
    // On one connection, so that lines come in the order of their requests: what is not to be said would be between.
    let mut client = gateway.client();
    for path in ["/quiet", "/no", "/silent", "/said"] {
        client.get(path);
    }
    let line = || {
        let mut room = [0; 4096];
        let len = socket.recv(&mut room).expect("a line");
        String::from_utf8_lossy(&room[..len]).trim_end().to_owned()
    };
    // local3 is 19: 19 × 8 + 3 for what went wrong, + 5 for what is said to be a notice.
    let (first, second) = (line(), line());
    assert!(first.starts_with("<155>1 ") && first.ends_with(" - /no"), "{first}");
    assert!(second.starts_with("<157>1 ") && second.ends_with(" - /said"), "{second}");
    gateway.assert_law();
}
