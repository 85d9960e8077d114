//! Counters of tables: the same requests to both, and after each of them what their tables say.

use std::net::{SocketAddr, TcpStream};

use super::{Haproxy, peers};
use crate::harness::{Client, Gateway, Origin, client::request};

/// Lines of a frontend; `/show` answers with everything that is counted.
const LINES: &str = r#"
    stick-table type ip size 100 expire 1h store conn_cnt,conn_cur,conn_rate(1h),sess_cnt,sess_rate(1h),http_req_cnt,http_req_rate(1h),http_err_cnt,http_err_rate(1h),http_fail_cnt,http_fail_rate(1h),gpc0,gpc0_rate(1h),gpc1,gpc1_rate(1h),gpt0
    tcp-request inspect-delay 1s
    tcp-request connection track-sc0 src
    tcp-request connection sc-set-gpt0(0) 7 if { src 127.0.0.5 }
    tcp-request session track-sc0 src table words
    tcp-request session sc-inc-gpc1(0) if { src 127.0.0.5 }
    tcp-request content accept if { path /accept }
    tcp-request content track-sc1 req.hdr(x-a) table words
    tcp-request content reject if { path /low }
    http-request track-sc1 req.hdr(x-b) table words
    http-request track-sc2 req.hdr(x-c) table little if !{ path /accept }
    http-request set-var(txn.path) path
    http-request sc-inc-gpc0(0) if { path /inc }
    http-request sc-inc-gpc1 if { path /inc }
    http-request sc-inc-gpc(1,1) if { path /inc }
    http-request sc-set-gpt0(0) 9 if { path /tag }
    http-request sc-set-gpt0 req.hdr(x-n),add(1) if { path /tagged }
    http-request deny if { path /deny }
    http-request deny deny_status 500 if { path /deny5 }
    http-request return status 404 if { path /ret4 }
    http-request redirect location /x if { path /redir }
    http-request reject if { path /high }
    http-request deny deny_status 429 if { sc0_http_req_rate gt 60 } { path /limited }
    http-request deny deny_status 429 if { src_http_req_cnt(web) ge 70 } !{ src_inc_gpc0(web) lt 0 } { path /limited/too }
    http-response set-header x-r-err "%[sc0_http_err_cnt] %[sc0_http_fail_cnt]"
    http-response track-sc2 var(txn.path) table words if { var(txn.path) -m beg /r }
    http-response set-header x-r-two "<%[sc2_http_err_cnt]> <%[sc2_http_req_cnt]>"
"#;

/// What `/show` answers with, in this order.
const SHOWN: &[&str] = &[
    "sc0_conn_cnt",
    "sc0_conn_cur",
    "sc0_conn_rate",
    "sc0_sess_cnt",
    "sc0_sess_rate",
    "sc_http_req_cnt(0)",
    "sc0_http_req_rate",
    "src_http_err_cnt",
    "sc0_http_err_rate",
    "sc0_http_fail_cnt",
    "src,table_http_fail_rate",
    "sc0_get_gpc0",
    "sc0_gpc0_rate",
    "sc0_get_gpc1",
    "sc_gpc1_rate(0)",
    "sc0_get_gpt0",
    "sc0_trackers",
    "sc1_tracked",
    "sc1_conn_cnt",
    "sc1_http_req_cnt",
    "sc1_http_err_cnt",
    "sc2_tracked",
    "sc2_http_req_cnt",
    "sc_get_gpc(1,1)",
    "sc_gpc_rate(1,1)",
    "sc1_get_gpc0",
    "sc0_http_req_cnt(words)",
    "sc0_get_gpc0(other)",
    "src_get_gpc0(other)",
    "src_inc_gpc0(other)",
    "src_clr_gpc0(other)",
    "src,table_gpc0(other)",
    "src,in_table(other)",
    "src,in_table(little)",
    "req.hdr(x-a),in_table(words)",
    "req.hdr(x-a),table_http_req_cnt(words)",
    "str(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa),table_http_req_cnt(words)",
    "str(x),table_conn_cur(words)",
    "table_cnt(words)",
    "table_avl(words)",
    "table_cnt(little)",
    "table_cnt(web)",
    "sc1_get_gpt0",
    "src_updt_conn_cnt(web)",
];

// Nothing is ever full: which entry then goes differs in HAProxy itself with the millisecond.
const BACKENDS: &str = "backend words\n    stick-table type string size 50 store conn_cnt,conn_cur,http_req_cnt,http_err_cnt,gpc(2),gpc_rate(2,1h)\n\
    backend little\n    stick-table type string len 3 size 4 store http_req_cnt\n\
    backend other\n    stick-table type ip size 10 store gpc0\n";

/// A request: on a new connection or the one before, from which address, for what.
struct Step {
    new: bool,
    from: u8,
    path: &'static str,
    fields: &'static str,
}

fn steps() -> Vec<Step> {
    let paths = [
        "/",
        "/deny",
        "/deny5",
        "/ret4",
        "/redir",
        "/404",
        "/500",
        "/501",
        "/503",
        "/inc",
        "/tag",
        "/tagged",
        "/r404",
        "/accept",
        "/r200",
        "/inc",
        "/limited",
        "/limited/too",
    ];
    let fields = [
        "",
        "X-A: one\nX-N: 41",
        "X-A: one\nX-B: two\nX-C: abcd",
        "X-B: two\nX-C: abce",
        "X-A: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\nX-C: xyz",
        "X-C: pqr\nX-N: -5",
        "X-C: stu\nX-B: 5",
    ];
    let mut steps = Vec::new();
    for (round, fields) in fields.into_iter().enumerate() {
        for (at, path) in paths.into_iter().enumerate() {
            let from = if (round + at) % 5 == 0 { 5 } else { 2 };
            steps.push(Step { new: (round + at) % 3 == 0, from, path, fields });
        }
        for path in ["/low", "/high"] {
            steps.push(Step { new: true, from: 2, path, fields });
        }
    }
    steps
}

/// One side of the comparison, with the connection that goes on.
struct Side {
    address: SocketAddr,
    client: Option<(u8, Client)>,
}

impl Side {
    fn new(address: SocketAddr) -> Self {
        Self { address, client: None }
    }

    /// What becomes of the request; `None`: the connection was closed instead.
    fn ask(&mut self, step: &Step) -> Option<Vec<String>> {
        let same = self.client.take().filter(|(from, _)| !step.new && *from == step.from);
        let mut client =
            same.map_or_else(|| Client::connect_from([127, 0, 0, step.from], self.address), |(_, client)| client);
        client.send(request("GET", step.path, step.fields, b""));
        let response = client.try_read("GET").ok()?;
        let closes = response.closes();
        let fields = response.fields.iter().filter(|(name, _)| name.to_ascii_lowercase().starts_with("x-r-"));
        let mut seen = vec![response.status.to_string()];
        seen.extend(fields.map(|(name, value)| format!("{}: {value}", name.to_ascii_lowercase())));
        if step.path == "/show" {
            seen.extend(response.text().lines().map(str::to_owned));
        }
        self.client = (!closes).then_some((step.from, client));
        Some(seen)
    }
}

#[test]
fn the_same_is_counted_as_in_haproxy() {
    let Some([haproxy]) = peers::need("differential test of counters", ["haproxy"]) else { return };
    let origin = Origin::start(|seen, wire| {
        let digits: String = seen.path().chars().filter(char::is_ascii_digit).collect();
        wire.reply(digits.parse().unwrap_or(200), "", b"x")
    });
    let shown: String = SHOWN.iter().map(|text| format!("{text} <%[{text}]>\\n")).collect();
    let shared = |text: &str| {
        format!(
            "{text}defaults\n    mode http\n    timeout connect 2s\n    timeout client 10s\n    timeout server 10s\n\
             frontend web\n    bind 127.0.0.1:0\n{LINES}    \
             http-request return status 200 content-type text/plain lf-string \"{shown}\" if {{ path /show }}\n    \
             default_backend origin\nbackend origin\n    server o1 {}\n{BACKENDS}",
            origin.address
        )
    };
    let dir = tempfile::tempdir().unwrap();
    let peer = Haproxy::start(&haproxy, dir.path(), &shared("global\n    maxconn 100\n    nbthread 1\n"));
    let gateway = Gateway::start(&shared("global\n    nbthread 1\n"));
    // Who asked the peer whether it listens has an entry there.
    drop(TcpStream::connect(gateway.address()));
    let (mut theirs, mut ours) = (Side::new(peer.address), Side::new(gateway.address()));
    let mut differing = Vec::new();
    for step in steps() {
        let (there, here) = (theirs.ask(&step), ours.ask(&step));
        let show = Step { new: false, path: "/show", ..step };
        let (there, here) = ((there, theirs.ask(&show)), (here, ours.ask(&show)));
        if there != here {
            differing.push(format!(
                "{} from {} [{}]:\n  theirs {:?}\n  ours   {:?}",
                step.path,
                step.from,
                step.fields.escape_debug(),
                only(&there, &here),
                only(&here, &there)
            ));
        }
    }
    let count = differing.len();
    differing.truncate(8);
    assert!(count == 0, "{count} exchanges are counted differently:\n{}", differing.join("\n"));
}

type Seen = (Option<Vec<String>>, Option<Vec<String>>);

fn only(one: &Seen, other: &Seen) -> Vec<String> {
    let lines = |seen: &Seen| {
        let mut all = vec![format!("{:?}", seen.0)];
        all.extend(seen.1.clone().unwrap_or_else(|| vec!["closed".to_owned()]));
        all
    };
    let other = lines(other);
    lines(one).into_iter().filter(|line| !other.contains(line)).collect()
}
