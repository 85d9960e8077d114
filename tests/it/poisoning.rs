//! Inputs that are in no key: a client must not be able to write what others read.

use std::fs;

use crate::harness::{Gateway, Origin, client::request, gateway::run_in, site};

/// A server that puts into its pages what it is told by fields, cookies, parameters and bodies.
fn gullible() -> Origin {
    Origin::start(|seen, wire| {
        let host = seen.field("x-forwarded-host").or(seen.field("host")).unwrap_or("-");
        let language = seen.field("accept-language").unwrap_or("-");
        let page = format!(
            "{host} {language} {} {} {}",
            seen.field("cookie").unwrap_or("-"),
            seen.target,
            String::from_utf8_lossy(&seen.body)
        );
        wire.reply(200, "Cache-Control: max-age=60\r\nVary: Accept-Language", page.as_bytes())
    })
}

#[test]
fn what_is_in_no_key_poisons_nothing_that_is_forwarded_keyed() {
    let attack = "X-Forwarded-Host: evil.example\nCookie: theme=evil\nAccept-Language: de";
    for (rule, stopped) in [("cache-rule all", false), ("cache-rule all forward keyed", true)] {
        let origin = gullible();
        let gateway = Gateway::start(&site(origin.address, &format!("    {rule}")));
        gateway.client().get_with("/page?a=1", attack);
        let victim = gateway.client().get_with("/page?a=1", "Accept-Language: de");
        assert_eq!(victim.text().contains("evil"), !stopped, "{rule}: {}", victim.text());
        assert!(victim.text().contains("/page?a=1"), "{}", victim.text());
        if stopped {
            // What responses are known to vary by reaches the server, and tells them apart.
            assert!(victim.text().contains(" de "), "{}", victim.text());
            assert!(gateway.client().get_with("/page?a=1", "Accept-Language: de\nX-Forwarded-Host: x").is_hit());
            let other = gateway.client().get_with("/page?a=1", "Accept-Language: fi");
            assert!(!other.is_hit() && other.text().contains(" fi "), "{}", other.text());
        }
    }
}

#[test]
fn a_get_with_a_body_is_nobody_elses() {
    let origin = gullible();
    let gateway = Gateway::start(&site(origin.address, "    cache-rule all"));
    let ask = |body: &'static [u8]| {
        let mut client = gateway.client();
        client.send(request("GET", "/page", &format!("Content-Length: {}", body.len()), body));
        client.read("GET")
    };
    assert!(ask(b"evil").text().contains("evil"));
    let victim = gateway.get("/page");
    assert!(!victim.is_hit() && !victim.text().contains("evil"), "{}", victim.text());
    assert!(!ask(b"evil").is_hit());
}

#[test]
fn check_and_explain_name_what_is_in_no_key() {
    let dir = tempfile::tempdir().unwrap();
    let rules = site("127.0.0.1:9".parse().unwrap(), "    cache-rule all key host path query(a)");
    fs::write(dir.path().join("site.cfg"), rules).unwrap();
    let said = |args: &[&str]| {
        let output = run_in(dir.path(), &[args, &["-f", "site.cfg"]].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let checked = said(&["check"]);
    assert!(
        checked.contains("`all`: servers get more of a request than is in the key: cookies, header fields"),
        "{checked}"
    );
    let asked =
        ["explain", "GET", "http://t.example/x?a=1&b=2", "-H", "X-Forwarded-Host: evil", "-H", "Cookie: theme=1"];
    let explained = said(&asked);
    assert!(explained.contains("not in the key: hdr(x-forwarded-host) cookie(theme) ("), "{explained}");
}
