//! `Vary`: one key, several variants.

use std::{net::Ipv4Addr, sync::Arc, thread};

use crate::harness::{Client, Gate, Gateway, Origin, site};

const RULE: &str = "    cache-rule all ttl auto";

#[test]
fn each_variant_is_stored_beside_the_others() {
    let origin = Origin::start(|seen, wire| {
        let language = seen.field("accept-language").unwrap_or("none").to_owned();
        wire.reply(200, "Cache-Control: max-age=60\nVary: Accept-Language", language.as_bytes())
    });
    let gateway = Gateway::start(&site(origin.address, RULE));
    let mut client = gateway.client();
    let languages = ["Accept-Language: fi", "Accept-Language: de", ""];
    assert_eq!(client.get_with("/a", languages[0]).cache().forward(), Some("uri-miss"));
    assert_eq!(client.get_with("/a", languages[1]).cache().forward(), Some("vary-miss"));
    client.get_with("/a", languages[2]);
    for (fields, body) in languages.into_iter().zip(["fi", "de", "none"]) {
        let hit = client.get_with("/a", fields);
        assert_eq!((hit.is_hit(), hit.text()), (true, body.to_owned()), "{fields}");
    }
    assert_eq!(origin.count(), 3);
    gateway.assert_law();
}

#[test]
fn what_varies_on_a_field_that_we_add_is_nobody_elses() {
    for (option, field) in [("option forwardfor", "X-Forwarded-For"), ("option forwardfor header X-Client", "X-Client")]
    {
        let origin = Origin::start(move |seen, wire| {
            let client = seen.field(&field.to_lowercase()).unwrap_or("-").to_owned();
            wire.reply(200, &format!("Cache-Control: max-age=60\nVary: Accept, {field}"), client.as_bytes())
        });
        let gateway = Gateway::start(&site(origin.address, &format!("    {option}\n{RULE}")));
        for source in [[127, 0, 0, 2], [127, 0, 0, 3], [127, 0, 0, 2]] {
            let page = Client::connect_from(source, gateway.address()).get("/a").text();
            assert_eq!(page, Ipv4Addr::from(source).to_string());
        }
    }
}

#[test]
fn a_purge_takes_every_variant() {
    let origin = Origin::fixed("Cache-Control: max-age=60\nVary: X", "v");
    let gateway = Gateway::start(&site(origin.address, RULE));
    for x in ["X: 1", "X: 2"] {
        gateway.client().get_with("/a", x);
    }
    assert_eq!(gateway.purge(r#"{"url":"http://t.example/a"}"#), 2);
    for x in ["X: 1", "X: 2"] {
        assert!(!gateway.client().get_with("/a", x).is_hit());
    }
}

#[test]
fn star_is_never_a_hit() {
    for star in ["*", ", *", "x, *", "x\nVary: *"] {
        let fields = format!("Cache-Control: max-age=60\nVary: {star}");
        let origin = Origin::start(move |_, wire| wire.reply(200, &fields, b"x"));
        let gateway = Gateway::start(&site(origin.address, RULE));
        gateway.get("/a");
        assert!(!gateway.get("/a").is_hit(), "Vary: {star}");
    }
}

#[test]
fn lines_of_a_list_are_one_value() {
    let origin = Origin::fixed("Cache-Control: max-age=60\nVary: X-List", "x");
    let gateway = Gateway::start(&site(origin.address, RULE));
    gateway.client().get_with("/a", "X-List: 1, 2");
    assert!(gateway.client().get_with("/a", "X-List: 1\nX-List: 2").is_hit());
    assert!(!gateway.client().get_with("/a", "X-List: 2, 1").is_hit());
}

#[test]
fn variants_are_capped() {
    let origin = Origin::fixed("Cache-Control: max-age=60\nVary: X", "x");
    let rules = site(origin.address, RULE).replace("memory 64m", "memory 64m\n    max-variants 4");
    let gateway = Gateway::start(&rules);
    let mut client = gateway.client();
    for number in 0..20 {
        client.get_with("/a", &format!("X: {number}"));
    }
    let hits = (0..20)
        .rev()
        .filter(|number| client.get_with("/a", &format!("X: {number}\nCache-Control: only-if-cached")).is_hit());
    assert_eq!(hits.count(), 4);
}

/// An origin whose pages are for the address that it is told in this field.
fn for_each_address(field: &'static str, gate: Arc<Gate>) -> Origin {
    Origin::start(move |seen, wire| {
        wire.hold(&gate);
        let page = format!("for {}", seen.all(field).join(" and "));
        wire.reply(200, &format!("Cache-Control: max-age=60\nVary: {field}"), page.as_bytes())
    })
}

const ADDED: [(&str, &str); 2] =
    [("X-Forwarded-For", "option forwardfor"), ("X-Client", "option forwardfor header X-Client")];

#[test]
fn the_clients_address_that_we_add_tells_variants_apart() {
    for (field, option) in ADDED {
        let gate = Arc::new(Gate::default());
        gate.open();
        let origin = for_each_address(field, gate);
        let gateway = Gateway::start(&site(origin.address, &format!("    {option}\n{RULE}")));
        for (last, hit) in [(2, false), (3, false), (2, true), (3, true)] {
            let response = Client::connect_from([127, 0, 0, last], gateway.address()).get("/a");
            assert_eq!((response.text(), response.is_hit()), (format!("for 127.0.0.{last}"), hit), "{field}");
        }
        let passed = Client::connect_from([127, 0, 0, 2], gateway.address()).request("POST", "/b", "", b"body");
        assert_eq!(passed.text(), "for 127.0.0.2", "{field}");
        gateway.assert_law();
    }
}

#[test]
fn who_waits_for_a_fill_does_not_get_a_page_for_another_address() {
    for (field, option) in ADDED {
        let gate = Arc::new(Gate::default());
        let origin = for_each_address(field, Arc::clone(&gate));
        let gateway = Gateway::start(&site(origin.address, &format!("    {option}\n{RULE}")));
        let clients: Vec<_> = (2..8)
            .map(|last| {
                let (source, address) = ([127, 0, 0, last], gateway.address());
                thread::spawn(move || (Client::connect_from(source, address).get("/a").text(), Ipv4Addr::from(source)))
            })
            .collect();
        origin.wait_for(1);
        gate.open();
        for client in clients {
            let (text, source) = client.join().unwrap();
            assert_eq!(text, format!("for {source}"), "{field}");
        }
        gateway.assert_law();
    }
}

#[test]
fn the_clients_address_that_we_add_is_in_keys() {
    let gate = Arc::new(Gate::default());
    gate.open();
    let origin = for_each_address("X-Forwarded-For", gate);
    let rules = "    option forwardfor\n    cache-rule all ttl auto ignore vary key path hdr(X-Forwarded-For)";
    let gateway = Gateway::start(&site(origin.address, rules));
    for (last, hit) in [(2, false), (3, false), (2, true)] {
        let response = Client::connect_from([127, 0, 0, last], gateway.address()).get("/a");
        assert_eq!((response.text(), response.is_hit()), (format!("for 127.0.0.{last}"), hit));
    }
}
