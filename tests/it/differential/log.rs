//! Log lines: the same formats of the same exchanges, sent to a log server.

use std::net::{SocketAddr, UdpSocket};

use super::{Haproxy, peers};
use crate::harness::{Client, Gateway, Origin, deadline::LIMIT};

/// Formats whose every piece is the same for both.
const FORMATS: &[&str] = &[
    "%HM %HP %HPO %HQ %HU %HV %ST %r",
    "%{+Q}r %{+Q}HU %{+Q,+X}ST %{+X}ci %ci",
    "%ft %b %s %tsc %ts %CC %CS",
    "%hr %hs",
    "%{+Q}hr %{+Q}hs",
    "%hrl %hsl",
    "%{+Q}o %HM %[var(txn.a)] %{-Q}HV",
    "%{+E}[var(txn.a)] <%[var(txn.none)]> %[var(txn.a),upper] %{+Q}[var(txn.none)]",
    "  a   %HM  %%   b%HV c ",
    "%[capture.req.hdr(0)] %[capture.req.hdr(1)] %[capture.res.hdr(0)] %[capture.req.method] %[capture.req.uri] %[capture.req.ver]",
    "%[src] %[fe_name] %[be_name] %[int(5),add(3)] %[str(a b)]",
    "%ID %{+X}[src]",
];

/// Requests as they are sent.
const REQUESTS: &[&str] = &[
    "GET / HTTP/1.1\r\nHost: t.example\r\n\r\n",
    "GET /a/b?c=d&e HTTP/1.1\r\nHost: t.example\r\nX-A: one\r\nUser-Agent: curl/8.0 long\r\nCookie: sid=abcdefgh; b=1\r\n\r\n",
    "GET http://u.example/x?y HTTP/1.1\r\nHost: u.example\r\nX-A: q\"uo\\te]\r\n\r\n",
    "POST /post HTTP/1.1\r\nHost: t.example\r\nX-A: tab\there\r\nContent-Length: 2\r\n\r\nhi",
    "GET /deny HTTP/1.1\r\nHost: t.example\r\nX-A: a|b{c}\r\n\r\n",
    "HEAD /?? HTTP/1.1\r\nHost: t.example\r\nUser-Agent: \r\n\r\n",
    "GET /deny HTTP/1.0\r\nHost: t.example\r\n\r\n",
    "GET /set HTTP/1.1\r\nHost: t.example\r\nX-A: \u{e4}\r\n\r\n",
];

fn line(socket: &UdpSocket) -> String {
    let mut room = [0; 8192];
    let len = socket.recv(&mut room).expect("a log line");
    String::from_utf8_lossy(&room[..len]).trim_end_matches(['\n', '\0']).to_owned()
}

fn ask(address: SocketAddr, request: &str) {
    let method = request.split(' ').next().unwrap();
    Client::connect(address).send(request).try_read(method).unwrap_or_else(|broken| panic!("{request}: {broken:?}"));
}

#[test]
fn lines_are_written_as_by_haproxy() {
    let Some([haproxy]) = peers::need("differential test of log lines", ["haproxy"]) else { return };
    let origin = Origin::start(|seen, wire| {
        let fields = if seen.path() == "/set" { "X-Kind: set\nSet-Cookie: sid=new; path=/" } else { "X-Kind: page" };
        wire.reply(200, fields, b"x")
    });
    let mut differing = Vec::new();
    for format in FORMATS {
        let servers = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        servers.iter().for_each(|server| server.set_read_timeout(Some(LIMIT)).unwrap());
        let rules = |server: &UdpSocket, global: &str| {
            format!(
                "global\n{global}defaults\n    mode http\n    timeout connect 2s\n    timeout client 10s\n    \
                 timeout server 10s\nfrontend web\n    bind 127.0.0.1:0\n    log {} format raw daemon\n    \
                 option dontlognull\n    capture request header X-A len 12\n    capture request header User-Agent len 6\n    \
                 capture response header X-Kind len 3\n    capture cookie sid= len 7\n    \
                 unique-id-format id-%ci-%[src_port,mul(0)]\n    http-request set-var(txn.a) req.hdr(x-a)\n    \
                 http-request deny if {{ path /deny }}\n    log-format '{format}'\n    default_backend app\n\
                 backend app\n    server s1 {}\n",
                server.local_addr().unwrap(),
                origin.address
            )
        };
        let dir = tempfile::tempdir().unwrap();
        let peer = Haproxy::start(&haproxy, dir.path(), &rules(&servers[0], "    maxconn 100\n"));
        let gateway = Gateway::start(&rules(&servers[1], "    nbthread 1\n"));
        for request in REQUESTS {
            ask(peer.address, request);
            ask(gateway.address(), request);
            let (theirs, ours) = (line(&servers[0]), line(&servers[1]));
            if theirs != ours {
                differing
                    .push(format!("{format} [{}]\n  theirs {theirs:?}\n  ours   {ours:?}", request.escape_debug()));
            }
        }
    }
    assert!(differing.is_empty(), "{} lines differ:\n{}", differing.len(), differing.join("\n"));
}
