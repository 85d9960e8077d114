//! TLS: certificates and rules by SNI.

use std::process::Command;

use crate::harness::{
    Client, Gateway, Origin,
    certificates::Authority,
    gateway::run,
    peers,
    rules::{secure, site_with_tls},
};

const RULE: &str = "    cache-rule all ttl auto";

/// A gateway with certificates for a.example (the default), b.example and *.wild.example.
fn two_names(origin: &Origin, global: &str, frontend: &str) -> (Gateway, Authority) {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let crt = dir.path().join("certs");
    std::fs::create_dir(&crt).unwrap();
    for (file, name) in [("1.pem", "a.example"), ("2.pem", "b.example"), ("3.pem", "*.wild.example")] {
        authority.write(&crt.join(file), &[name]);
    }
    authority.write_root(&dir.path().join("root.crt"));
    let rules = site_with_tls(origin.address, &crt, global, frontend);
    (Gateway::start_in(dir, &rules), authority)
}

#[test]
fn the_certificate_follows_the_name() {
    let origin = Origin::fixed("Cache-Control: max-age=60", "x");
    let (gateway, authority) = two_names(&origin, "", RULE);
    for name in ["a.example", "b.example", "c.wild.example"] {
        let mut client = Client::tls(secure(&gateway), name, &authority.client(&["http/1.1"])).unwrap();
        assert_eq!(client.get_with("/a", &format!("Host: {name}")).status, 200);
    }
    let stranger = Client::tls(secure(&gateway), "stranger.example", &authority.client(&[]));
    assert!(stranger.is_err(), "the default certificate is not for this name");
}

#[test]
fn rules_see_tls_and_its_name() {
    let origin = Origin::fixed("Cache-Control: max-age=60", "x");
    let lines = "    http-request set-header X-Tls %[ssl_fc]
    http-request set-header X-Name %[ssl_fc_sni]
    http-request deny deny_status 403 if { ssl_fc_sni -i c.wild.example }
    cache-rule by_name ttl auto key path sni if { ssl_fc_sni a.example b.example }";
    let (gateway, authority) = two_names(&origin, "", lines);
    let config = authority.client(&["http/1.1"]);
    let connect = |name: &str| Client::tls(secure(&gateway), name, &config).unwrap();
    for name in ["a.example", "b.example"] {
        assert!(!connect(name).get_with("/a", "Host: same.example").is_hit(), "SNI is in the key");
        assert_eq!((origin.last().field("x-tls"), origin.last().field("x-name")), (Some("1"), Some(name)));
        assert!(connect(name).get_with("/a", "Host: same.example").is_hit());
    }
    assert_eq!(connect("c.wild.example").get("/a").status, 403);
    for _ in 0..2 {
        assert!(!gateway.get("/a").is_hit(), "without TLS there is no name");
    }
    assert_eq!(origin.last().field("x-tls"), Some("0"));
    gateway.assert_law();
}

#[test]
fn curl_gets_two_names_under_different_rules_over_http_2() {
    let Some([curl]) = peers::need("curl with two names", ["curl"]) else { return };
    let origin = Origin::fixed("Cache-Control: max-age=60", "hello");
    let lines = "    http-response set-header X-Site a if { ssl_fc_sni a.example }
    http-response set-header X-Site b if { ssl_fc_sni b.example }
    cache-rule only_a ttl auto if { ssl_fc_sni a.example }";
    let (gateway, _) = two_names(&origin, "", lines);
    let address = secure(&gateway);
    let fetch = |name: &str| {
        let output = Command::new(&curl)
            .args(["--silent", "--show-error", "--include", "--http2", "--max-time", "10", "--cacert"])
            .arg(gateway.dir().join("root.crt"))
            .args(["--resolve", &format!("{name}:{}:127.0.0.1", address.port())])
            .arg(format!("https://{name}:{}/a", address.port()))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().to_ascii_lowercase()
    };
    for (name, hit) in [("a.example", false), ("a.example", true), ("b.example", false), ("b.example", false)] {
        let answer = fetch(name);
        assert!(answer.starts_with("http/2 200"), "{answer}");
        assert!(answer.contains(&format!("x-site: {}", &name[..1])), "{answer}");
        assert!(answer.ends_with("hello"), "{answer}");
        assert_eq!(answer.contains("tidegate; hit"), hit, "{name}: {answer}");
    }
    assert_eq!(origin.count(), 3);
    gateway.assert_law();
}

#[test]
fn hits_of_http_1_and_http_2_come_from_one_object() {
    let origin = Origin::fixed("Cache-Control: max-age=60", "x");
    let (gateway, authority) = two_names(&origin, "", RULE);
    let mut one = Client::tls(secure(&gateway), "a.example", &authority.client(&["http/1.1"])).unwrap();
    one.get_with("/a", "Host: a.example");
    let mut two = crate::harness::http2::Http2::connect(secure(&gateway), "a.example", &authority.client(&["h2"]));
    assert!(two.get("https://a.example/a").is_hit());
    assert_eq!(origin.count(), 1);
}

#[test]
fn a_handshake_that_does_not_come_is_given_up() {
    let origin = Origin::fixed("", "x");
    let lines = format!("    timeout http-request 500ms\n{RULE}");
    let (gateway, _) = two_names(&origin, "", &lines);
    let mut silent = Client::connect(secure(&gateway));
    silent.send([0x16, 0x03]);
    assert!(silent.is_closed());
    let mut clear = Client::connect(secure(&gateway));
    assert!(clear.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n").try_read("GET").is_err(), "clear text is no handshake");
}

#[test]
fn a_bad_certificate_is_a_load_error_with_its_place() {
    let origin = Origin::fixed("", "x");
    let dir = tempfile::tempdir().unwrap();
    let crt = dir.path().join("bad.pem");
    std::fs::write(&crt, "no certificate").unwrap();
    let rules = dir.path().join("site.cfg");
    let text = site_with_tls(origin.address, &crt, "", RULE);
    let line = 1 + text.lines().position(|line| line.contains("bad.pem")).unwrap();
    std::fs::write(&rules, text).unwrap();
    for command in ["run", "check"] {
        let output = run(&[command, "-f", rules.to_str().unwrap()]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{command}: {error}");
        assert!(error.contains("bad.pem") && error.contains(&format!("site.cfg:{line}")), "{command}: {error}");
    }
}

#[test]
fn a_host_under_another_name_than_the_handshakes_is_misdirected_when_the_switch_is_on() {
    let origin = Origin::fixed("", "x");
    let (gateway, authority) = two_names(&origin, "    tune.misdirected on", RULE);
    let mut client = Client::tls(secure(&gateway), "a.example", &authority.client(&["http/1.1"])).unwrap();
    assert_eq!(client.get_with("/a", "Host: a.example").status, 200);
    assert_eq!(client.get_with("/a", "Host: b.example").status, 421);
    assert_eq!(origin.count(), 1);
    gateway.assert_law();
    let (gateway, authority) = two_names(&origin, "", RULE);
    let mut client = Client::tls(secure(&gateway), "a.example", &authority.client(&["http/1.1"])).unwrap();
    assert_eq!(client.get_with("/a", "Host: b.example").status, 200, "off by default");
}

#[test]
fn a_plain_listener_beside_it_has_its_own_objects() {
    let origin = Origin::fixed("Cache-Control: max-age=60", "x");
    let (gateway, authority) = two_names(&origin, "", RULE);
    let mut client = Client::tls(secure(&gateway), "a.example", &authority.client(&[])).unwrap();
    client.get_with("/a", "Host: a.example");
    assert!(!gateway.client().get_with("/a", "Host: a.example").is_hit(), "the scheme is in the key");
}
