//! What rules read of the running gateway: counts, rates, names, the connection's TLS session.

use crate::harness::{
    Client, Gateway, Origin, Response,
    certificates::Authority,
    eventually,
    http2::Http2,
    rules::{secure, site_with, site_with_tls},
    site,
};

/// A field that a rule made, or what stands for its absence.
fn field(response: &Response, name: &str) -> String {
    response.field(name).unwrap_or("-").to_owned()
}

#[test]
fn connections_and_rates_are_counted_while_they_last() {
    let origin = Origin::fixed("Cache-Control: max-age=60", "x");
    let lines = "    cache-rule all ttl auto
    http-request set-var(txn.conn) fe_conn
    http-request set-var(txn.rate) fe_req_rate
    http-request set-var(txn.sess) fe_sess_rate(web)
    http-request set-var(txn.first) http_first_req
    http-response set-header X-Conn %[var(txn.conn)]
    http-response set-header X-All %[act_conn]
    http-response set-header X-Rate %[var(txn.rate)]
    http-response set-header X-Sess %[var(txn.sess)]
    http-response set-header X-First %[var(txn.first)]
    http-response set-header X-At %[be_conn(origin)]
    http-response set-header X-Be-Rate %[be_sess_rate(origin)]";
    let gateway = Gateway::start(&site(origin.address, lines));
    let idle: Vec<Client> = (0..3)
        .map(|_| {
            let mut client = gateway.client();
            client.get("/a");
            client
        })
        .collect();
    let mut client = gateway.client();
    let first = client.get("/a");
    assert_eq!(field(&first, "x-first"), "1");
    assert_eq!((field(&first, "x-conn"), field(&first, "x-all")), ("4".to_owned(), "4".to_owned()));
    // The other requests are over, or about to be.
    eventually("one exchange is left", || field(&client.get("/a"), "x-at") == "1");
    let again = client.get("/a");
    assert_eq!(field(&again, "x-first"), "0");
    let rate = |name: &str| field(&again, name).parse::<u64>().unwrap();
    assert!(rate("x-rate") >= 2 && rate("x-sess") <= 4, "{:?}", again.fields);
    assert!(rate("x-be-rate") >= 2, "{:?}", again.fields);
    drop(idle);
    eventually("the others are gone", || field(&client.get("/a"), "x-conn") == "1");
    eventually("a second without connections passes", || field(&client.get("/a"), "x-sess") == "0");
    gateway.assert_law();
}

#[test]
fn a_request_that_ends_early_leaves_its_backend() {
    let origin = Origin::start(|_, wire| wire.close());
    let lines = "    http-after-response set-header X-At %[be_conn(origin)]";
    let backend = "    http-request deny if { path /denied }";
    let gateway = Gateway::start(&site_with(origin.address, "", lines, backend));
    for path in ["/denied", "/broken", "/denied", "/broken"] {
        gateway.get(path);
    }
    eventually("only the one that asks is left", || field(&gateway.get("/denied"), "x-at") == "1");
    gateway.assert_law();
}

#[test]
fn response_rules_know_a_hit_and_what_ended_the_rules() {
    let origin = Origin::fixed("Cache-Control: max-age=60", "x");
    let lines = "    http-request allow if { path /allowed }
    http-request deny if { path /denied }
    cache-rule all ttl auto
    http-response set-header X-Hit %[res.cache_hit]
    http-response set-header X-Store <%[res.cache_name]>
    http-response set-header X-Server <%[server_status]>
    http-after-response set-header X-Line <%[last_rule_line]>
    http-after-response set-header X-Names %[fe_name]/%[fe_id]/%[so_id]/%[be_name]/%[be_id]";
    let gateway = Gateway::start(&site(origin.address, lines));
    let miss = gateway.get("/a");
    let all = ["x-hit", "x-store", "x-server", "x-line"];
    assert_eq!(all.map(|name| field(&miss, name)), ["0", "<>", "<200>", "<>"]);
    assert_eq!(field(&miss, "x-names"), "web/1/1/origin/2");
    for _ in 0..2 {
        let hit = gateway.get("/a");
        assert!(hit.is_hit());
        assert_eq!(all.map(|name| field(&hit, name)), ["1", "<edge>", "<>", "<>"]);
    }
    let text = std::fs::read_to_string(gateway.dir().join("site.cfg")).unwrap();
    let line = |word: &str| text.lines().position(|line| line.contains(word)).unwrap() + 1;
    assert_eq!(field(&gateway.get("/allowed"), "x-line"), format!("<{}>", line("allow if")));
    assert_eq!(field(&gateway.get("/denied"), "x-line"), format!("<{}>", line("deny if")));
    gateway.assert_law();
}

#[test]
fn rules_read_the_tls_session() {
    let origin = Origin::fixed("Cache-Control: max-age=60", "x");
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let crt = dir.path().join("a.pem");
    authority.write(&crt, &["a.example"]);
    let lines = "    http-response set-header X-Tls \
                 %[ssl_fc_protocol]/%[ssl_fc_alpn]/%[fc_http_major]/%[ssl_fc_has_crt]/%[ssl_fc_use_keysize]
    http-response set-header X-Cipher %[ssl_fc_cipher]
    http-response set-header X-Resumed %[ssl_fc_is_resumed]";
    let gateway = Gateway::start_in(dir, &site_with_tls(origin.address, &crt, "", lines));
    let config = authority.client(&["http/1.1"]);
    let connect = || Client::tls(secure(&gateway), "a.example", &config).unwrap();
    let response = connect().get_with("/", "Host: a.example");
    let cipher = field(&response, "x-cipher");
    assert!(cipher.starts_with("TLS_"), "{cipher}");
    let bits = if cipher.contains("128") { 128 } else { 256 };
    assert_eq!(field(&response, "x-tls"), format!("TLSv1.3/http/1.1/1/0/{bits}"));
    assert_eq!(field(&response, "x-resumed"), "0");
    assert_eq!(field(&connect().get_with("/", "Host: a.example"), "x-resumed"), "1");
    let plain = gateway.get("/");
    assert_eq!((field(&plain, "x-tls"), field(&plain, "x-resumed")), ("//1//".to_owned(), "0".to_owned()));
    let mut http2 = Http2::connect(secure(&gateway), "a.example", &authority.client(&["h2"]));
    let answer = http2.get("https://a.example/");
    assert_eq!(answer.field("x-tls"), Some(format!("TLSv1.3/h2/2/0/{bits}").as_str()));
    gateway.assert_law();
}
