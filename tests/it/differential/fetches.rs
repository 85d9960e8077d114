//! What HAProxy reads from requests and responses is what the gateway reads: every fetch on odd input, side by side.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use super::{
    Haproxy,
    exchange::{Case, VALUES, case},
};
use crate::{
    counters::{Random, seed},
    harness::{Client, Gateway, Origin, peers},
};

/// Fetches of the request that HAProxy 2.6 has.
const REQUEST: &[&str] = &[
    "method,lower",
    "path",
    "pathq",
    "url",
    "query",
    "base",
    "baseq",
    "base32",
    "base32+src,hex",
    "url32",
    "url32+src,hex",
    "url_ip",
    "url_port",
    "req.ver",
    "req_ver",
    "req.len",
    "req_len",
    "req.hdr_names",
    "req.hdr_names(;)",
    "req.hdrs,hex",
    "http_first_req",
    "capture.req.method",
    "capture.req.uri",
    "capture.req.ver",
    "hdr(x)",
    "hdr(x,1)",
    "hdr(x,2)",
    "hdr(x,-1)",
    "hdr(x,-2)",
    "hdr(x,9)",
    "hdr(x,-9)",
    "req.hdr(x,0)",
    "hdr_cnt(x)",
    "req.hdr_cnt",
    "req.fhdr(x)",
    "req.fhdr(x,1)",
    "req.fhdr(x,-2)",
    "req.fhdr_cnt(x)",
    "req.fhdr_cnt",
    "hdr_val(x)",
    "hdr_val(x,1)",
    "req.hdr_val(x,-2)",
    "hdr_ip(x)",
    "hdr_ip(x,1)",
    "req.hdr_ip(x,-2)",
    "cook(a)",
    "cook(b)",
    "cook",
    "req.cook(a)",
    "cookie(a)",
    "cook_cnt(a)",
    "cook_cnt",
    "cook_val(a)",
    "req.cook_val(b)",
    "urlp(a)",
    "urlp(b)",
    "urlp",
    "url_param(a,;)",
    "urlp(a,/)",
    "urlp(a,&)",
    "urlp_val(a)",
    "urlp_val(n)",
    "http_auth_type",
    "http_auth_user",
    "http_auth_pass",
    "http_auth_bearer",
    "http_auth_bearer(X-Auth)",
    "src",
    "src_is_local",
    "dst",
    "dst_is_local",
    "fc_src",
    "fc_dst",
    "fc_dst_is_local",
    "fc_src_is_local",
    "fc_rcvd_proxy",
    "fc_http_major",
    "fe_id",
    "fe_name",
    "fe_defbe",
    "be_sess_rate(idle)",
    "be_conn(idle)",
    "fe_client_timeout",
    "so_id",
    "so_name",
    "ssl_fc",
    "ssl_fc_has_sni",
    "ssl_fc_is_resumed",
    "always_true",
    "always_false",
    "int(-5)",
    "str(a b)",
    "bool(true)",
    "ipv4(10.0.0.1)",
    "ipv6(::1)",
    "meth(PUT)",
    "bin(48656C),hex",
    "env(TIDEGATE_NOT_SET)",
    "nbproc",
    "proc",
    "stopping",
    "wait_end",
    "req.proto_http",
    "req_proto_http",
    "last_rule_line",
    "rand(1)",
];

/// Fetches of a TLS session, which a connection in clear has not.
const OF_SESSION: &[&str] = &[
    "ssl_fc_sni",
    "ssl_fc_protocol",
    "ssl_c_used",
    "ssl_c_verify",
    "ssl_fc_has_crt",
    "ssl_fc_alpn",
    "ssl_fc_cipher",
    "ssl_fc_use_keysize",
];

/// Fetches of the response that HAProxy 2.6 has.
const RESPONSE: &[&str] = &[
    "status",
    "res.ver",
    "resp_ver",
    "capture.res.ver",
    "res.hdr(x)",
    "res.hdr(x,1)",
    "res.hdr(x,-2)",
    "shdr(x)",
    "res.hdr_cnt(x)",
    "shdr_cnt(x)",
    "res.fhdr(x)",
    "res.fhdr(x,1)",
    "res.fhdr_cnt(x)",
    "res.hdr_val(x)",
    "shdr_val(x,1)",
    "res.hdr_ip(x)",
    "shdr_ip(x,1)",
    "scook(a)",
    "res.cook(b)",
    "scook",
    "scook_cnt",
    "scook_cnt(a)",
    "scook_val(a)",
    "res.cook_val(b)",
    "scook(path)",
    "cookie(a)",
    "hdr(x)",
    "be_id",
    "be_name",
    "be_server_timeout",
    "cur_server_timeout",
    "be_tunnel_timeout",
    "cur_tunnel_timeout",
    "be_conn(origin)",
    "method,lower",
    "res.cache_hit",
    "res.cache_name",
    "http_first_req",
    "last_rule_file",
];

/// Tests of the request, which try every value where an expression takes one.
const TESTS: &[&str] = &[
    "hdr(x) -m str b",
    "hdr(x) a",
    "hdr(x,1) a",
    "hdr_cnt(x) gt 1",
    "hdr_val(x) 7",
    "hdr_val(x) lt 0",
    "hdr_ip(x) 10.0.0.1",
    "hdr_ip(x) 1.1.1.1 ::1",
    "req.fhdr(x) -m sub ,",
    "hdr_beg(x) 10.",
    "hdr_len(x) 0",
    "hdr -m found",
    "req.fhdr -m found",
    "cook(a) 1",
    "cook(a) -m found",
    "cook -m found",
    "cook_val(a) 5:9",
    "cook_cnt(a) 2",
    "cook_beg(a) x",
    "cook_reg(b) ^.?[0-9]$",
    "urlp(a) 4",
    "urlp(a) -m found",
    "urlp_val(a) 3",
    "urlp_end(b) 3",
    "url_ip 1.2.3.4",
    "url_port 80",
    "url_beg http",
    "base_end /",
    "base_len 10:12",
    "path_dir b",
    "http_auth_user -m str user",
    "http_auth_type -m beg B",
    "src 127.0.0.0/8",
    "base32 gt 2147483647",
    "req.hdrs -m sub cookie",
    "req.hdr_names -m sub x",
    "req.len gt 150",
    "fe_defbe origin",
];

/// Predefined ACLs.
const PREDEFINED: &[&str] = &[
    "TRUE",
    "FALSE",
    "HTTP",
    "HTTP_1.0",
    "HTTP_1.1",
    "HTTP_2.0",
    "HTTP_CONTENT",
    "HTTP_URL_ABS",
    "HTTP_URL_SLASH",
    "HTTP_URL_STAR",
    "LOCALHOST",
    "METH_CONNECT",
    "METH_DELETE",
    "METH_GET",
    "METH_HEAD",
    "METH_OPTIONS",
    "METH_POST",
    "METH_PUT",
    "METH_TRACE",
    "REQ_CONTENT",
    "WAIT_END",
];

/// What is asked for: each expression or test by the field that its result comes back in.
fn asked() -> BTreeMap<String, String> {
    let lists = [
        ('a', [REQUEST, OF_SESSION].concat()),
        ('b', RESPONSE.to_vec()),
        ('c', TESTS.to_vec()),
        ('d', PREDEFINED.to_vec()),
    ];
    let named = |(letter, texts): (char, Vec<&str>)| {
        let name = move |(number, text): (usize, &str)| (format!("x-{letter}{number}"), text.to_owned());
        texts.into_iter().enumerate().map(name).collect::<Vec<_>>()
    };
    lists.into_iter().flat_map(named).collect()
}

/// A frontend that keeps every result in a variable and shows those that there are.
fn rules(global: &str, log: &str, origin: &Origin) -> String {
    let mut rules = format!(
        "global\n    {global}\ndefaults\n    mode http\n    timeout connect 2s\n    timeout client 7s\n    timeout server 11s\n\
         frontend web\n    bind 127.0.0.1:0 name inside\n{log}"
    );
    for (name, text) in asked() {
        let variable = name.replace("x-", "txn.");
        let text = text.replace(' ', "\\ ");
        rules += &match name.as_bytes()[2] {
            b'a' => format!("    http-request set-var({variable}) {text}\n"),
            b'b' => format!("    http-response set-var({variable}) {text}\n"),
            b'c' => format!("    http-request set-var({variable}) bool(true) if {{ {} }}\n", text.replace("\\ ", " ")),
            _ => format!("    http-request set-var({variable}) bool(true) if {text}\n"),
        };
        rules += &format!(
            "    http-after-response set-header {name} <%[var({variable})]> if {{ var({variable}) -m found }}\n"
        );
    }
    rules += &format!("    default_backend origin\nbackend origin\n    server o1 {}\n", origin.address);
    rules += "backend idle\n    server o1 127.0.0.1:9\n";
    rules
}

/// The results by the field they come back in, and the status.
fn results(client: &mut Client, case: &Case, asked: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let response = client
        .send(&case.request)
        .try_read(case.method)
        .unwrap_or_else(|broken| panic!("{}: {broken:?}", case.request));
    let mut results = BTreeMap::from([("status".to_owned(), response.status.to_string())]);
    for (name, value) in &response.fields {
        let name = name.to_ascii_lowercase();
        if name == "connection" && value == "close" || asked.contains_key(&name) {
            results.insert(name, value.clone());
        }
    }
    results
}

/// What HAProxy has read of the body by then counts in `req.len`.
fn is_chance(text: &str, case: &Case) -> bool {
    case.method == "PUT" && (text.starts_with("req.len") || text == "req_len")
}

/// By the time of the response HAProxy has forgotten what a method that it does not know was called.
fn is_forgotten(name: &str, text: &str, case: &Case) -> bool {
    name.starts_with("x-b") && text == "method,lower" && case.method == "PATCH"
}

#[test]
fn fetches_give_what_haproxys_give() {
    let Some([program]) = peers::need("differential test of fetches", ["haproxy"]) else { return };
    let fields = Arc::new(Mutex::new(String::new()));
    let shown = Arc::clone(&fields);
    let origin = Origin::start(move |_, wire| wire.reply(200, &shown.lock().unwrap(), b""));
    let dir = tempfile::tempdir().unwrap();
    let log = "    log 127.0.0.1:9 local0\n    option httplog\n";
    // HAProxy remembers what `capture.req.uri` asks for only when it is going to log it.
    let theirs = rules("maxconn 100\n    tune.http.maxhdr 1000\n    tune.bufsize 65536", log, &origin);
    let peer = Haproxy::start(&program, dir.path(), &theirs);
    let gateway = Gateway::start(&rules("nbthread 1", "", &origin));
    let asked = asked();
    let mut random = Random(seed());
    let (mut there, mut here) = (Client::connect(peer.address), Client::connect(gateway.address()));
    let mut differing = BTreeMap::<&str, Vec<String>>::new();
    let mut given: BTreeMap<&str, usize> = BTreeMap::new();
    for round in 0..VALUES.len() + 300 {
        let case = if round < VALUES.len() { case(|len| round % len) } else { case(|len| random.below(len)) };
        fields.lock().unwrap().clone_from(&case.response);
        let theirs = results(&mut there, &case, &asked);
        let ours = results(&mut here, &case, &asked);
        // Where one of them ends the connection, both begin anew.
        let closed = [&theirs, &ours].iter().any(|results| results.contains_key("connection"));
        if closed {
            (there, here) = (Client::connect(peer.address), Client::connect(gateway.address()));
        }
        for name in asked.keys().map(String::as_str).chain(["status"]) {
            let (theirs, ours) = (theirs.get(name), ours.get(name));
            *given.entry(name).or_default() += usize::from(theirs.is_some());
            if asked.get(name).is_some_and(|text| is_chance(text, &case)) {
                continue;
            }
            if theirs.is_none() && asked.get(name).is_some_and(|text| is_forgotten(name, text, &case)) {
                assert_eq!(ours.map(String::as_str), Some("<patch>"));
            } else if theirs != ours {
                let exchange = format!("{} | {}", case.request.escape_debug(), case.response.escape_debug());
                differing.entry(name).or_default().push(format!("theirs {theirs:?}, ours {ours:?}: {exchange}"));
            }
        }
    }
    let text = |name: &str| asked.get(name).map_or("status", String::as_str);
    let report: Vec<String> = differing
        .iter()
        .map(|(name, cases)| format!("{name}, {}: {} times, first {}", text(name), cases.len(), cases[0]))
        .collect();
    assert!(report.is_empty(), "{} differ:\n{}", report.len(), report.join("\n"));
    let never: BTreeSet<_> = given.iter().filter(|(_, count)| **count == 0).map(|(name, _)| text(name)).collect();
    let expected: BTreeSet<_> = NEVER.iter().chain(OF_SESSION).copied().collect();
    assert_eq!(never, expected, "what is never there");
}

/// What these requests never have, which is the same on both sides as well.
const NEVER: &[&str] = &[
    "env(TIDEGATE_NOT_SET)",
    "last_rule_line",
    "last_rule_file",
    "hdr(x,9)",
    "hdr(x,-9)",
    "hdr -m found",
    "req.fhdr -m found",
    "res.cache_name",
    "FALSE",
    // What HTTP/1.0 is to HAProxy it sends on as such, and the origin speaks HTTP/1.1.
    "HTTP_1.0",
    "HTTP_2.0",
    "METH_CONNECT",
];
