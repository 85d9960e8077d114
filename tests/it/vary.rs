//! `Vary`: one key, several variants.

use crate::harness::{Client, Gateway, Origin, site};

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
            assert_eq!(page, std::net::Ipv4Addr::from(source).to_string());
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
