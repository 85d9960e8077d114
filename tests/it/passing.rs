//! What no cache may hold, passed through whole.

use std::sync::Arc;

use crate::harness::{Gate, Gateway, Origin, client::request, eventually, rules::one_worker, site};

const RULE: &str = "    cache-rule all ttl auto";

#[test]
fn bodies_of_any_size_and_framing_go_up() {
    let origin = Origin::start(|seen, wire| {
        let line = format!("{} {}", seen.method, seen.body.len());
        wire.reply(200, "", line.as_bytes())
    });
    let gateway = Gateway::start(&site(origin.address, RULE));
    let mut client = gateway.client();
    for size in [1usize, 100, 65_536, 3_000_000] {
        let body: Vec<u8> = (0..size).map(|at| at.to_le_bytes()[0]).collect();
        for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY"] {
            assert_eq!(client.request(method, "/a", "", &body).text(), format!("{method} {size}"));
        }
        let chunks: Vec<u8> = body
            .chunks(10_000)
            .flat_map(|chunk| [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat())
            .collect();
        client.send("POST /a HTTP/1.1\r\nHost: t.example\r\nTransfer-Encoding: chunked\r\n\r\n");
        client.send(chunks).send("0\r\n\r\n");
        assert_eq!(client.read("POST").text(), format!("POST {size}"));
        assert!(origin.last().body == body);
    }
    gateway.assert_law();
}

#[test]
fn a_body_streams_up_before_it_is_whole() {
    let origin = Origin::start(|seen, wire| wire.reply(200, "", &seen.body));
    origin.answer_early(true);
    origin.follow(|_, wire| wire.reply(200, "", b"early answer"));
    let gateway = Gateway::start(&site(origin.address, RULE));
    let mut client = gateway.client();
    client.send("POST /a HTTP/1.1\r\nHost: t.example\r\nContent-Length: 10\r\n\r\n01234");
    assert_eq!(client.read("POST").text(), "early answer");
}

#[test]
fn an_endless_passed_response_streams() {
    for method in ["GET", "POST"] {
        let gate = Arc::new(Gate::default());
        let hold = Arc::clone(&gate);
        let origin = Origin::start(move |_, wire| {
            wire.head(200, "Content-Type: text/event-stream\nTransfer-Encoding: chunked")?;
            wire.chunk(b"data: 1\n\n")?;
            wire.hold(&hold);
            wire.chunk(b"data: 2\n\n")?;
            wire.raw("0\r\n\r\n")
        });
        let gateway = Gateway::start(&site(origin.address, ""));
        let mut client = gateway.client();
        client.send(request(method, "/events", "", if method == "POST" { b"x" } else { b"" }));
        assert_eq!(client.read_head().unwrap().status, 200);
        assert_eq!(client.chunk_size(), Ok(9));
        assert_eq!(client.take(11), b"data: 1\n\n\r\n", "{method}: the first event comes before the second is there");
        gate.open();
        assert_eq!(client.chunk_size(), Ok(9));
    }
}

#[test]
fn a_client_that_leaves_ends_a_passed_exchange() {
    let origin = Origin::start(|_, wire| {
        wire.head(200, "Transfer-Encoding: chunked")?;
        wire.drip(b"5\r\nxxxxx\r\n")
    });
    let gateway = Gateway::start(&site(origin.address, ""));
    for (method, body) in [("POST", &b"x"[..]), ("GET", b""), ("DELETE", b"")] {
        let mut client = gateway.client();
        client.send(request(method, "/a", "", body));
        client.read_head().unwrap();
        client.reset_on_drop();
        drop(client);
        eventually("the origin's side ends", || origin.open_connections() == 0);
    }
    gateway.assert_law();
}

#[test]
fn statuses_and_fields_arrive_as_they_were_sent() {
    let origin = Origin::start(|seen, wire| match seen.path() {
        "/204" => wire.head(204, "X-A: 1"),
        "/404" => wire.reply(404, "X-A: 1\nx-a: 2", b"no"),
        "/500" => wire.reply(500, "", b"oops"),
        "/cookies" => wire.reply(200, "Set-Cookie: a=1\nSet-Cookie: b=2", b""),
        _ => wire.reply(299, "Server: own/1.0\nVia: 1.1 other\nDate: Tue, 04 Mar 2025 10:00:00 GMT", b""),
    });
    let gateway = Gateway::start(&site(origin.address, RULE));
    for method in ["GET", "POST"] {
        let mut client = gateway.client();
        let mut fetch = |path: &str| client.request(method, path, "", if method == "POST" { b"x" } else { b"" });
        assert_eq!(fetch("/204").status, 204);
        let absent = fetch("/404");
        assert_eq!((absent.status, absent.all("x-a"), absent.text()), (404, vec!["1", "2"], "no".to_owned()));
        assert_eq!(fetch("/500").text(), "oops");
        assert_eq!(fetch("/cookies").all("set-cookie"), ["a=1", "b=2"]);
        let odd = fetch("/odd");
        assert_eq!((odd.status, odd.field("server")), (299, Some("own/1.0")), "{method}");
        assert_eq!(odd.field("date"), Some("Tue, 04 Mar 2025 10:00:00 GMT"), "{method}");
    }
    gateway.assert_law();
}

#[test]
fn server_connections_are_used_again() {
    let origin = Origin::fixed("", "x");
    let gateway = Gateway::start(&one_worker(&site(origin.address, RULE)));
    let mut client = gateway.client();
    for number in 0..20 {
        client.get(&format!("/{number}"));
    }
    assert!(origin.connections() <= 3, "{}", origin.connections());
    for _ in 0..20 {
        client.request("POST", "/a", "", b"x");
    }
    assert!(origin.connections() <= 6, "{}", origin.connections());
}

#[test]
fn a_kept_connection_that_the_origin_closes_costs_no_request() {
    let origin = Origin::start(|_, wire| {
        wire.reply(200, "", b"x")?;
        wire.close()
    });
    let gateway = Gateway::start(&one_worker(&site(origin.address, RULE)));
    let mut client = gateway.client();
    for number in 0..30 {
        assert_eq!(client.get(&format!("/{number}")).status, 200, "{number}");
        assert_eq!(client.request("DELETE", &format!("/{number}"), "", b"").status, 200, "{number}");
    }
    gateway.assert_law();
}

#[test]
fn the_backends_name_for_the_clients_address_wins() {
    let origin = Origin::fixed("", "x");
    let (frontend, backend) = ("    option forwardfor header X-Front", "    option forwardfor header X-Back if-none");
    let gateway = Gateway::start(&crate::harness::rules::site_with(origin.address, "", frontend, backend));
    gateway.client().get_with("/a", "X-Back: 192.0.2.1");
    // `if-none` does not count, because the frontend's line says otherwise.
    assert!(origin.last().fields.iter().any(|(name, value)| name == "X-Back" && value == "127.0.0.1"));
    assert_eq!(origin.last().field("x-front"), None);
}
