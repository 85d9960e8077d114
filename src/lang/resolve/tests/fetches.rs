//! Fetches beyond fields and parameters, and what HAProxy 2.6 makes of odd input.

use bytes::Bytes;

use super::{Bench, Exchange, Proxy, line};
use crate::{
    lang::{resolve::expr, testing::Desk},
    message::{Framing, Version},
    rule::{
        Notes, Phase, RulePlace,
        progress::{End, Progress},
    },
};

fn check(exchange: &mut Exchange, phase: Phase, cases: &[(&str, &str)]) {
    let desk = Desk::new().with_var("SET", "a value");
    let mut bench = Bench { desk, ..Bench::default() };
    bench.acl("acl img path_beg /p/");
    bench.acl("acl post method POST");
    for (text, expected) in cases {
        assert_eq!(exchange.value(&mut bench, &format!("'{text}'"), phase), *expected, "{text}");
    }
}

#[test]
fn the_gateway_tells_names_counts_and_times() {
    let cases = [
        ("fe_name", "str front"),
        ("fe_id", "int 1"),
        ("fe_defbe", "str default"),
        ("be_name", "str back"),
        ("be_id", "int 2"),
        ("fe_conn", "int 3"),
        ("fe_conn(other)", "int 4"),
        ("fe_sess_rate", "int 5"),
        ("fe_req_rate", "int 6"),
        ("be_conn(back)", "int 7"),
        ("be_sess_rate(back)", "int 8"),
        ("act_conn", "int 9"),
        ("fe_client_timeout", "int 1000"),
        ("cur_client_timeout", "int 1000"),
        ("be_connect_timeout", "int 2000"),
        ("be_server_timeout", "int 3000"),
        ("cur_server_timeout", "int 3000"),
        ("be_tunnel_timeout", "int 0"),
        ("hostname", "str machine"),
        ("pid", "int 10"),
        ("thread", "int 11"),
        ("stopping", "bool false"),
        ("uptime", "int 12"),
        ("nbproc", "int 1"),
        ("proc", "int 1"),
        ("quic_enabled", "bool false"),
        ("date", "int 1234"),
        ("date(10)", "int 1244"),
        ("date(-4)", "int 1230"),
        ("date(10,ms)", "int 1244567"),
        ("date(0,us)", "int 1234567000"),
        ("date_us", "int 567000"),
        ("request_date", "int 1234"),
        ("request_date(ms)", "int 1234567"),
        ("accept_date", "int 1"),
        ("accept_date(ms)", "int 1500"),
        // The bench's random number is 4.
        ("rand", "int 0"),
        ("rand(100)", "int 0"),
        ("uuid", "str 00000000-0000-4004-8000-000000000004"),
        ("last_rule_line", "-"),
        ("last_rule_file", "-"),
        ("nuster.cache.hit", "bool true"),
        ("env(SET)", "str a value"),
        ("env(UNSET)", "-"),
        ("bin(48656C6c6F)", "bin Hello"),
        ("acl(img)", "bool true"),
        ("acl(img,post)", "bool false"),
        ("acl(img,!post)", "bool true"),
        ("acl(METH_GET)", "bool true"),
    ];
    check(&mut Exchange::get("/p/a"), Phase::Request, &cases);
    let mut exchange = Exchange::get("/").answered(200, &[]);
    exchange.notes = Notes { last_rule: Some(RulePlace { file: 0, line: 7 }), ..Notes::default() };
    check(
        &mut exchange,
        Phase::Response,
        &[
            ("last_rule_line", "int 7"),
            ("last_rule_file", "str a.cfg"),
            ("res.cache_hit", "bool true"),
            ("res.cache_name", "str edge"),
        ],
    );
}

#[test]
fn the_connection_tells_where_it_comes_from() {
    let cases = [
        ("fc_src", "ip 192.0.2.7"),
        ("fc_src_port", "int 4000"),
        ("fc_dst", "ip 2001:db8::1"),
        ("fc_dst_port", "int 443"),
        // The bench calls every IPv4 address its own.
        ("src_is_local", "bool true"),
        ("fc_src_is_local", "bool true"),
        ("dst_is_local", "bool false"),
        ("fc_dst_is_local", "bool false"),
        ("so_id", "int 2"),
        ("so_name", "str inside"),
        ("fc_http_major", "int 1"),
        ("fc_rcvd_proxy", "bool false"),
        ("ssl_fc", "bool false"),
        ("ssl_fc_protocol", "-"),
        ("ssl_fc_has_crt", "-"),
        ("ssl_c_verify", "-"),
        ("ssl_fc_is_resumed", "bool false"),
    ];
    check(&mut Exchange::get("/"), Phase::Request, &cases);
    let mut exchange = Exchange::get("/").tls(Some("a.example"));
    exchange.request.version = Version::Http2;
    let cases = [
        ("fc_http_major", "int 2"),
        ("ssl_fc_alpn", "str h2"),
        ("ssl_fc_protocol", "str TLSv1.3"),
        ("ssl_fc_cipher", "str TLS_AES_256_GCM_SHA384"),
        ("ssl_fc_use_keysize", "int 256"),
        ("ssl_fc_alg_keysize", "int 256"),
        ("ssl_fc_is_resumed", "bool true"),
        ("ssl_fc_has_crt", "bool false"),
        ("ssl_c_used", "bool false"),
        ("ssl_fc_has_early", "bool false"),
        ("ssl_c_verify", "int 0"),
    ];
    check(&mut exchange, Phase::Request, &cases);
}

fn received(target: &[u8], origin_form: &[u8], fields: &[(&str, &str)]) -> Exchange {
    let mut exchange = Exchange::get("/");
    exchange.client.src = "127.0.0.1:5".parse().ok();
    exchange.request.start(b"GET", target, origin_form);
    for (name, value) in fields {
        exchange.request.fields.append(name.as_bytes(), value.as_bytes());
    }
    exchange
}

#[test]
fn hashes_and_lengths_are_those_of_haproxy() {
    let fields = [("Host", "H.example"), ("X-A", "1"), ("x-a", "2"), ("Authorization", "Basic dXNlcjpwYTpzcw==")];
    let cases = [
        ("base32", "int 3637583655"),
        ("base32+src", "bin \\xd8\\xd1\\x1f\\'\\x7f\\x00\\x00\\x01"),
        ("url32", "int 501669417"),
        ("url32+src", "bin \\x1d\\xe6\\xde)\\x7f\\x00\\x00\\x01"),
        ("req.len", "int 96"),
        ("req_len", "int 96"),
        ("url_ip", "-"),
        ("url_port", "-"),
        ("req.hdr_names", "str host,x-a,x-a,authorization"),
        ("req.hdr_names(;)", "str host;x-a;x-a;authorization"),
        (
            "req.hdrs",
            "bin host: H.example\\r\\nx-a: 1\\r\\nx-a: 2\\r\\nauthorization: Basic dXNlcjpwYTpzcw==\\r\\n\\r\\n",
        ),
        ("query(with_qm)", "str ?x=1"),
        ("http_first_req", "bool false"),
        ("capture.req.method", "str GET"),
        ("capture.req.uri", "str /p/a?x=1"),
        ("capture.req.ver", "str HTTP/1.1"),
        ("nuster.host", "str H.example"),
        ("nuster.uri", "str /p/a?x=1"),
        ("nuster.path", "str /p/a"),
        ("nuster.query", "str x=1"),
    ];
    let mut exchange = received(b"/p/a?x=1", b"/p/a?x=1", &fields);
    check(&mut exchange, Phase::Request, &cases);
    exchange.request.set_method(b"PUT");
    exchange.request.set_path(b"/other");
    exchange.request.is_first = true;
    let cases =
        [("capture.req.method", "str GET"), ("capture.req.uri", "str /p/a?x=1"), ("http_first_req", "bool true")];
    check(&mut exchange, Phase::Request, &cases);
    let cases = [
        ("base32", "int 2340802059"),
        ("req.len", "int 34"),
        ("req.hdr_names", "str "),
        ("req.hdrs", "bin \\r\\n"),
        ("base", "str /x"),
        ("nuster.host", "-"),
    ];
    check(&mut received(b"/x", b"/x", &[]), Phase::Request, &cases);
    let cases = [
        ("base", "str a"),
        ("baseq", "str a"),
        ("capture.req.uri", "-"),
        ("base32", "int 1830748055"),
        ("pathq", "-"),
        ("query", "-"),
    ];
    check(&mut received(b"*", b"*", &[("Host", "a")]), Phase::Request, &cases);
}

#[test]
fn a_target_with_an_address_has_a_port() {
    for (target, address, port) in [
        ("http://1.2.3.4:81/p", "ip 1.2.3.4", "int 81"),
        ("http://1.2.3.4/", "ip 1.2.3.4", "int 80"),
        ("https://1.2.3.4/?q", "ip 1.2.3.4", "int 443"),
        ("http://foo.example:8080/", "-", "-"),
        ("https://[::1]:99/", "-", "-"),
        ("/p", "-", "-"),
    ] {
        let mut exchange = received(target.as_bytes(), b"/p", &[]);
        check(&mut exchange, Phase::Request, &[("url_ip", address), ("url_port", port)]);
    }
}

#[test]
fn credentials_are_read_as_in_haproxy() {
    for (field, [kind, user, password, token]) in [
        ("Basic dXNlcjpwYTpzcw==", ["str Basic", "str user", "str pa:ss", "-"]),
        ("BASIC  dXNlcjpw", ["str Basic", "str user", "str p", "-"]),
        ("Basic Og==", ["str Basic", "str ", "str ", "-"]),
        ("basic dXNlcg==", ["-", "-", "-", "-"]),
        ("Basic dXNlcjpwcA", ["-", "-", "-", "-"]),
        // Bits beside the last byte, and padding within.
        ("Basic dXNlcjpwYR==", ["str Basic", "str user", "str pa", "-"]),
        ("Basic dXNlcg==OnB3", ["str Basic", "str user", "str pw", "-"]),
        ("Basic ???", ["-", "-", "-", "-"]),
        ("Digest foo", ["-", "-", "-", "-"]),
        ("bearer tt", ["str Bearer", "-", "-", "str tt"]),
        ("Bearer  a b", ["str Bearer", "-", "-", "str a b"]),
        ("Bearer", ["-", "-", "-", "-"]),
    ] {
        let cases = [
            ("http_auth_type", kind),
            ("http_auth_user", user),
            ("http_auth_pass", password),
            ("http_auth_bearer", token),
        ];
        check(&mut Exchange::new("GET", "/", &[("Authorization", field)]), Phase::Request, &cases);
    }
    for (field, token) in [
        ("Bearer  q w", "str q w"),
        ("bearer t", "str t"),
        ("Bearer", "str "),
        ("Bearerx", "str "),
        ("Token x", "str "),
        ("a, Bearer b", "str "),
    ] {
        let mut exchange = Exchange::new("GET", "/", &[("X-Auth", field), ("X-Auth", "Bearer c")]);
        check(&mut exchange, Phase::Request, &[("http_auth_bearer(X-Auth)", token)]);
    }
    check(&mut Exchange::get("/"), Phase::Request, &[("http_auth_bearer(X-Auth)", "str ")]);
}

#[test]
fn an_exchange_tells_how_far_it_has_come() {
    let mut exchange = Exchange::new("GET", "/", &[]).answered(200, &[]);
    for (text, expected) in [
        ("fc.timer.handshake", "int 0"),
        ("req.timer.idle", "int 0"),
        ("req.timer.hdr", "int 0"),
        ("req.timer.tq", "int 0"),
        ("req.timer.queue", "int -1"),
        ("bc.timer.connect", "int -1"),
        ("res.timer.hdr", "int -1"),
        ("res.timer.data", "int -1"),
        ("txn.timer.total", "int 0"),
        ("txn.timer.user", "int 0"),
        ("fc.timer.total", "int 0"),
        ("txn.sess_term_state", "str --"),
        ("txn.conn_retries", "int 0"),
        ("txn.id32", "int 16"),
        ("txn.outcome", "-"),
        ("txn.reason", "-"),
        ("bytes_in", "-"),
        ("bytes_out", "-"),
        ("fc_err", "int 0"),
        ("fc_err_str", "str Success"),
        ("ssl_fc_err", "-"),
        ("capture.req.hdr(0)", "-"),
        ("capture.res.hdr(0)", "-"),
        ("unique-id", "-"),
        ("method,capture-req(0)", "-"),
        ("method,capture-res(0)", "-"),
    ] {
        check(&mut exchange, Phase::Log, &[(text, expected)]);
    }
    let (handshake, idle, head) = (3, 4, 5);
    let end = End {
        status: 200,
        state: *b"SD",
        active: 100,
        received: 10,
        sent: 20,
        outcome: "miss",
        reason: Some("uri-miss"),
    };
    exchange.notes.progress = Progress {
        handshake,
        idle,
        head,
        decided: true,
        queue: Some(0),
        connect: Some(7),
        response: Some(11),
        retries: 2,
        end: Some(end),
        ..Progress::default()
    };
    for (text, expected) in [
        ("req.timer.tq", "int 12"),
        ("res.timer.data", "int 82"),
        ("txn.timer.total", "int 105"),
        ("txn.timer.user", "int 108"),
        ("fc.timer.total", "int 112"),
        ("txn.sess_term_state", "str SD"),
        ("txn.conn_retries", "int 2"),
        ("txn.outcome", "str miss"),
        ("txn.reason", "str uri-miss"),
        ("req.bytes_in", "int 10"),
        ("res.bytes_out", "int 20"),
    ] {
        check(&mut exchange, Phase::Log, &[(text, expected)]);
    }
}

#[test]
fn users_are_who_their_passwords_say() {
    for (field, is, group) in [
        ("Basic YW5uOmE6Yg==", "bool true", "str staff"),
        ("Basic YW5uOmE=", "bool false", "-"),
        ("Basic Ym9iOg==", "bool true", "-"),
        ("Basic Y2FybDo=", "bool false", "-"),
        ("Bearer YW5uOmE6Yg==", "bool false", "-"),
    ] {
        let mut exchange = Exchange::new("GET", "/", &[("Authorization", field)]);
        check(&mut exchange, Phase::Request, &[("http_auth(people)", is), ("http_auth_group(people)", group)]);
    }
    let admin = Exchange::new("GET", "/", &[("Authorization", "Basic YW5uOmE6Yg==")]);
    for (groups, holds) in [("admins", true), ("x staff", true), ("x", false)] {
        let mut bench = Bench::default();
        bench.acl(&format!("acl in http_auth_group(people) {groups}"));
        let rules = bench.rules(Phase::Request, &["set-header X-In 1 if in"]);
        let mut exchange = Exchange::new("GET", "/", &[]);
        exchange.request = admin.request.clone();
        exchange.run(&rules);
        assert_eq!(exchange.request.fields.has("x-in"), holds, "{groups}");
    }
}

#[test]
fn cookies_are_found_where_haproxy_finds_them() {
    for (lines, [a, first, count, all]) in [
        (&["a=1; a=2"][..], ["str 2", "str 1", "int 2", "int 2"]),
        (&["a=1", "a=2"], ["str 2", "str 1", "int 2", "int 2"]),
        (&["a=\"x;y\"; b=2"], ["str \"x;y\"", "str \"x;y\"", "int 1", "int 2"]),
        (&["a"], ["-", "-", "int 0", "int 0"]),
        (&["a="], ["-", "str ", "int 0", "int 1"]),
        (&["a=; b=3"], ["str ", "str ", "int 1", "int 2"]),
        (&["b=3;a="], ["-", "str 3", "int 0", "int 2"]),
        (&["b=3; a="], ["str ", "str 3", "int 1", "int 2"]),
        (&["b=3,a=, c=4"], ["-", "str 3", "int 0", "int 3"]),
        (&["$Version=1; a=2; $Path=/"], ["str 2", "str 2", "int 1", "int 1"]),
        (&["a = 5 ; b=6"], ["str 5", "str 5", "int 1", "int 2"]),
        (&["a=1;;b=2;"], ["str 1", "str 1", "int 1", "int 2"]),
        (&["a=\"un; b=2"], ["str \"un; b=2", "str \"un; b=2", "int 1", "int 1"]),
        (&["a=b=c; b==x"], ["str b=c", "str b=c", "int 1", "int 2"]),
        (&["=v; b=1"], ["-", "str v", "int 0", "int 2"]),
        (&["a=x\"y,z\";c=4"], ["str x\"y,z\"", "str x\"y,z\"", "int 1", "int 2"]),
    ] {
        let fields: Vec<_> = lines.iter().map(|line| ("Cookie", *line)).collect();
        let cases = [("cook(a)", a), ("cook", first), ("cook_cnt(a)", count), ("cook_cnt", all)];
        check(&mut Exchange::new("GET", "/", &fields), Phase::Request, &cases);
    }
    let mut exchange = Exchange::new("GET", "/", &[("Cookie", "a=1; b=2"), ("Cookie", "a=\"x\"")]);
    let cases = [("req.cook_names", "str a,b,a"), ("req.cook_names(;)", "str a;b;a"), ("cook_val(a)", "int -14")];
    check(&mut exchange, Phase::Request, &cases);
}

#[test]
fn the_response_tells_its_names_and_cookies() {
    let fields = [
        ("Content-Length", "0"),
        ("Set-Cookie", "a=1; expires=Thu, 01 Jan; path=/"),
        ("Set-Cookie", "b=\"q;w\"; x"),
        ("Set-Cookie", "c"),
    ];
    let mut exchange = Exchange::get("/").answered(404, &fields);
    exchange.notes.server_status = Some(500);
    let cases = [
        ("res.hdr_names", "str content-length,set-cookie,set-cookie,set-cookie"),
        ("res.cook_names", "str a,b"),
        ("scook", "str 1"),
        ("cookie(a)", "str 1"),
        ("scook(path)", "str /"),
        ("scook(expires)", "-"),
        ("res.cook(b)", "str \"q;w\""),
        ("scook(c)", "-"),
        ("txn.status", "int 404"),
        ("server_status", "int 500"),
        ("capture.res.ver", "str HTTP/1.1"),
        ("capture.req.uri", "str /"),
    ];
    check(&mut exchange, Phase::Response, &cases);
    let mut exchange = Exchange::get("/").answered(200, &[("A", "b")]);
    check(&mut exchange, Phase::Response, &[("res.hdrs", "bin a: b\\r\\n\\r\\n"), ("res.cook_names", "str ")]);
}

#[test]
fn numbers_and_addresses_in_fields_are_those_of_haproxy() {
    for (field, number, address) in [
        ("12abc, 7", "int 7", "-"),
        ("", "int 0", "-"),
        ("+5", "int -45", "-"),
        ("10.0.0.1", "int 9797981", "ip 10.0.0.1"),
        ("10.0.0.1:80", "int 9797981", "ip 10.0.0.1"),
        ("01.2.3.4", "int 818284", "ip 1.2.3.4"),
        ("1.2.3.4:", "int 818284", "-"),
        ("1.2.3.4:x", "int 818284", "-"),
        ("1.2.3.4:99999", "int 818284", "-"),
        ("10.0.0", "int 97980", "-"),
        ("300.1.1.1", "int 299808081", "-"),
        ("[::1]:80", "int 0", "-"),
        ("::1", "int 0", "ip ::1"),
        ("::ffff:1.2.3.4", "int 0", "ip ::ffff:1.2.3.4"),
    ] {
        let mut exchange = Exchange::new("GET", "/", &[("X", field)]);
        check(&mut exchange, Phase::Request, &[("hdr_val(x)", number), ("hdr_ip(x)", address)]);
    }
    let mut exchange = Exchange::new("GET", "/", &[("X", "a, b"), ("Y", "")]);
    check(&mut exchange, Phase::Request, &[("hdr", "-"), ("req.fhdr", "-"), ("hdr_cnt", "int 3"), ("hdr(y)", "str ")]);
}

#[test]
fn a_name_that_no_proxy_has_is_found_at_load() {
    let front = Proxy { name: "front", listens: true, serves: false };
    let back = Proxy { name: "back", listens: false, serves: true };
    for (proxy, text, expected) in [
        (front, "fe_conn", None),
        (front, "fe_conn(other)", None),
        (front, "fe_conn(back)", Some("there is no frontend `back`")),
        (front, "be_conn", Some("`be_conn` is about a backend, and `front` is none")),
        (front, "be_conn(back)", None),
        (front, "be_name", Some("none is chosen yet")),
        (back, "be_name", None),
        (back, "be_conn", None),
        (back, "fe_conn", Some("`fe_conn` is about a frontend, and `back` is none")),
        (back, "res.cache_hit", Some("reads the response")),
        (back, "server_status", Some("reads the response")),
        (back, "nuster.cache.hit", None),
        (back, "bin(4)", Some("`4` is not pairs of hexadecimal digits")),
        (back, "bin(xx)", Some("`xx` is not pairs of hexadecimal digits")),
        (back, "date(1,h)", Some("`h` is not one of")),
        (back, "acl(none)", Some("no ACL is called `none`")),
    ] {
        let mut bench = Bench { proxy, ..Bench::default() };
        let line = line(text);
        let made = expr(&mut bench.scope(), &line.words[0], Phase::Request);
        match expected {
            None => bench.clean(),
            Some(message) => {
                assert!(made.is_none(), "{text}");
                assert!(bench.found.iter().any(|found| found.message.contains(message)), "{text}: {:?}", bench.found);
            }
        }
    }
    // Once there is a response, there was a backend.
    let mut bench = Bench { proxy: front, ..Bench::default() };
    let line = line("be_name");
    assert!(expr(&mut bench.scope(), &line.words[0], Phase::Response).is_some());
}

#[test]
fn bodies_are_read_as_far_as_they_have_come() {
    let mut exchange = Exchange::new("POST", "/", &[]);
    exchange.request.framing = Framing::Length(20);
    exchange.request.ahead.bytes = Bytes::from_static(b"a=1&B=two;c=&d&a=3");
    check(
        &mut exchange,
        Phase::Request,
        &[
            ("req.body", "bin a=1&B=two;c=&d&a=3"),
            ("req.body_len", "int 18"),
            ("req.body_size", "int 20"),
            ("req.body_param(a)", "bin 1"),
            ("req.body_param(b)", "-"),
            ("req.body_param(b,i)", "bin two"),
            ("req.body_param(c)", "bin "),
            ("req.body_param(d)", "-"),
            ("req.body_param", "bin 1"),
        ],
    );
    exchange.request.framing = Framing::Chunked;
    check(&mut exchange, Phase::Request, &[("req.body_size", "int 18")]);
    let nothing = [("req.body", "bin "), ("req.body_len", "int 0"), ("req.body_param", "-")];
    check(&mut Exchange::new("GET", "/", &[]), Phase::Request, &nothing);
}
