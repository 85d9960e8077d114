//! T1 to T19: target, host and path.

use super::{
    Outcome,
    Right::{And, Answered, Refused},
    case, plain, run,
};
use crate::harness::{
    Client, Gateway, Origin,
    certificates::Authority,
    rules::{secure, site_with_tls},
    site,
};

const RULES: &str = "    http-request deny deny_status 403 if { hdr(host) -i b.example }
    http-request deny deny_status 403 if { path_beg /admin }
    http-request set-header X-Real-IP %[src]
    cache-rule pictures ttl 1h if { path_end .png }
    cache-rule all ttl auto";

fn absolute(target: &str, host: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

fn with_fields(fields: &str) -> String {
    format!("GET /a HTTP/1.1\r\n{fields}\r\n")
}

/// The one request's Host is a.example.
fn host_is_a(outcome: &Outcome) -> bool {
    outcome.seen.iter().all(|seen| seen.all("host") == ["a.example"])
}

#[test]
fn t1_to_t7_target_and_host() {
    let rows = vec![
        case("T1", absolute("http://a.example/x", "b.example"), plain, And(&[200], &["GET /x"], host_is_a)),
        case("T1", absolute("http://b.example/x", "a.example"), plain, Answered(&[403], &[])),
        case("T1", absolute("http://a.example", "b.example"), plain, And(&[200], &["GET /"], host_is_a)),
        case("T1", absolute("http://a.example?q", "b.example"), plain, And(&[200], &["GET /?q"], host_is_a)),
        case("T1", absolute("HTTP://A.Example:80/x", "b.example"), plain, And(&[200], &["GET /x"], host_is_a)),
        case(
            "T1",
            absolute("http://a.example/x", "b.example") + &absolute("/x", "a.example"),
            plain,
            And(&[200, 200], &["GET /x"], host_is_a),
        ),
        case("T1", absolute("http://user@a.example/x", "a.example"), plain, Refused(&[400])),
        case("T3", with_fields(""), plain, Refused(&[400])),
        case("T3", with_fields("Host: a.example\r\nHost: a.example\r\n"), plain, Refused(&[400])),
        case("T3", with_fields("Host: a.example\r\nHost: c.example\r\n"), plain, Refused(&[400])),
        case("T3", with_fields("Host: a.example, b.example\r\n"), plain, Refused(&[400])),
        case("T3", with_fields("Host: a.example/x\r\n"), plain, Refused(&[400])),
        case("T3", with_fields("Host: a b\r\n"), plain, Refused(&[400])),
        case("T3", with_fields("Host: user@a.example\r\n"), plain, Refused(&[400])),
        case("T3", with_fields("Host: a.example:http\r\n"), plain, Refused(&[400])),
        case("T3", with_fields("Host: a.example:99999\r\n"), plain, Refused(&[400])),
        case("T3", with_fields("Host: a.example#b\r\n"), plain, Refused(&[400])),
        case("T3", with_fields("Host: a.example?b\r\n"), plain, Refused(&[400])),
        case("T5", absolute("/public.png#/../admin", "a.example"), plain, Refused(&[400])),
        case("T5", absolute("/#", "a.example"), plain, Refused(&[400])),
        case("T5", absolute("http://a.example/x#y", "a.example"), plain, Refused(&[400])),
        case("T7", absolute("/a?x=<\"1 2\">", "a.example"), plain, Refused(&[400])),
        case("T7", absolute("/a b", "a.example"), plain, Refused(&[400])),
        case("T7", absolute("/a\tb", "a.example"), plain, Refused(&[400])),
        case("T7", absolute("a", "a.example"), plain, Refused(&[400])),
        case("T7", absolute("", "a.example"), plain, Refused(&[400])),
        case("T7", absolute("*", "a.example"), plain, Refused(&[400])),
        case("T7", "GET  /a HTTP/1.1\r\nHost: a.example\r\n\r\n", plain, Refused(&[400])),
        case("T7", "GET /a  HTTP/1.1\r\nHost: a.example\r\n\r\n", plain, Refused(&[400])),
        case("T7", "GET /a HTTP/1.1 \r\nHost: a.example\r\n\r\n", plain, Refused(&[400])),
        case("T7", "GET /a http/1.1\r\nHost: a.example\r\n\r\n", plain, Refused(&[400, 505])),
        case("T7", "GET /a HTTP/1.10\r\nHost: a.example\r\n\r\n", plain, Refused(&[400, 505])),
        case("T7", "GET /a HTTP/2.0\r\nHost: a.example\r\n\r\n", plain, Refused(&[400, 505])),
    ];
    run(RULES, rows);
}

#[test]
fn t9_connection_names_fields_of_this_hop_only() {
    let get = |fields: &str| format!("GET /a HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n");
    let rows = vec![
        case(
            "T9",
            get("Connection: close, X-Real-IP, Host, Content-Length, Authorization\r\nX-Real-IP: 6.6.6.6\r\n\
                    Authorization: Basic abc\r\n"),
            plain,
            And(&[200], &["GET /a"], own_address_and_host),
        ),
        case(
            "T9",
            get("Connection: X-Real-IP, X-Mine\r\nX-Real-IP: 6.6.6.6\r\nX-Mine: 1\r\nX-Kept: 1\r\n"),
            plain,
            And(&[200], &["GET /a"], |outcome| {
                own_address_and_host(outcome)
                    && outcome
                        .seen
                        .iter()
                        .all(|seen| seen.field("x-mine").is_none() && seen.field("x-kept") == Some("1"))
            }),
        ),
        case(
            "T9",
            "POST /a HTTP/1.1\r\nHost: a.example\r\n\
                Connection: Content-Length, Transfer-Encoding, Cache-Control\r\nContent-Length: 5\r\n\
                Cache-Control: no-cache\r\n\r\nhello",
            plain,
            And(&[200], &["POST /a"], |outcome| {
                own_address_and_host(outcome)
                    && outcome
                        .seen
                        .iter()
                        .all(|seen| seen.body == b"hello" && seen.field("cache-control") == Some("no-cache"))
            }),
        ),
    ];
    run(RULES, rows);
}

fn own_address_and_host(outcome: &Outcome) -> bool {
    outcome.seen.iter().all(|seen| seen.all("x-real-ip") == ["127.0.0.1"] && seen.all("host") == ["a.example"])
}

#[test]
fn t13_connect_opens_nothing() {
    let origin = Origin::start(plain);
    let gateway = Gateway::start(&site(origin.address, RULES));
    let before = origin.connections();
    for target in ["127.0.0.1:22", &origin.address.to_string(), "a.example:443"] {
        let mut client = gateway.client();
        let response = client.send(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")).read("CONNECT");
        assert!([400, 405, 501].contains(&response.status), "{target}: {}", response.status);
        assert!(!response.closes() || client.is_closed(), "{target}");
    }
    assert_eq!(origin.connections(), before);
    gateway.assert_law();
}

#[test]
fn t15_a_name_that_the_handshake_did_not_ask_for_is_misdirected() {
    let origin = Origin::start(plain);
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let crt = dir.path().join("certs");
    std::fs::create_dir(&crt).unwrap();
    for name in ["a.example", "c.example"] {
        authority.write(&crt.join(name), &[name]);
    }
    let rules = site_with_tls(origin.address, &crt, "    tune.misdirected on", RULES);
    let gateway = Gateway::start_in(dir, &rules);
    let connect = || Client::tls(secure(&gateway), "a.example", &authority.client(&["http/1.1"])).unwrap();
    assert_eq!(connect().get_with("/x", "Host: a.example").status, 200);
    assert_eq!(connect().get_with("/x", "Host: A.EXAMPLE:443").status, 200);
    for line in [
        "GET /x HTTP/1.1\r\nHost: c.example",
        "GET https://c.example/x HTTP/1.1\r\nHost: a.example",
        "POST /x HTTP/1.1\r\nContent-Length: 0\r\nHost: c.example",
    ] {
        let response = connect().send(format!("{line}\r\n\r\n")).read("GET");
        assert_eq!(response.status, 421, "{line}");
    }
    assert!(
        origin
            .seen()
            .iter()
            .all(|seen| seen.field("host").is_some_and(|host| host.to_lowercase().starts_with("a.example")))
    );
    gateway.assert_law();
}

#[test]
fn t17_field_names_are_tokens() {
    let get = |name: &[u8]| [b"GET /a HTTP/1.1\r\nHost: a.example\r\n", name, b": 1\r\n\r\n"].concat();
    let names: [&[u8]; 9] = [b"X-\xff", b"X(1)", b"X[1]", b"X@", b"X\"", b"X/1", b"\"X\"", b"X\x01", b"X{}"];
    let mut rows: Vec<_> = names.into_iter().map(|name| case("T17", get(name), plain, Refused(&[400]))).collect();
    rows.push(case("T17", get(b"!#$%&'*+-.^_`|~09aZ"), plain, Answered(&[200], &["GET /a"])));
    run(RULES, rows);
}

#[test]
fn t19_parameters_that_differ_at_the_origin_do_not_share_a_key() {
    let targets = ["/p?id=1&id=2", "/p?id=1;id=2", "/p?%69d=1"];
    for key in ["", " key host path param(id)"] {
        let origin = Origin::start(plain);
        let gateway = Gateway::start(&site(origin.address, &format!("    cache-rule all ttl auto{key}")));
        for target in targets {
            let response = gateway.get(target);
            assert_eq!((response.is_hit(), response.text()), (false, target.to_owned()), "{key}");
        }
        for target in targets {
            let response = gateway.get(target);
            assert_eq!((response.is_hit(), response.text()), (true, target.to_owned()), "{key}");
        }
    }
}
