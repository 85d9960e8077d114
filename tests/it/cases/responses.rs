//! F27 to F31: heads that origins send.

use super::{
    Right::{And, Answered},
    case, run,
};
use crate::harness::{Gateway, Origin, Seen, Wire, gateway::without_front, site};

const RULES: &str = "    cache-rule all ttl auto";
const EMPTY: &str = "POST /a HTTP/1.1\r\nHost: t.example\r\nContent-Length: 0\r\n\r\n";
const POST: &str = "POST /a HTTP/1.1\r\nHost: t.example\r\nContent-Length: 1\r\n\r\nx";
const DELETE: &str = "DELETE /a HTTP/1.1\r\nHost: t.example\r\n\r\n";
const GET: &str = "GET /a HTTP/1.1\r\nHost: t.example\r\n\r\n";

fn bare_line_feed(_: &Seen, wire: &mut Wire<'_>) -> std::io::Result<()> {
    wire.raw("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nX: a\nSet-Cookie: b=1\r\nContent-Length: 2\r\n\r\nok")?;
    wire.close()
}

fn bare_carriage_return(_: &Seen, wire: &mut Wire<'_>) -> std::io::Result<()> {
    wire.raw("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nX: a\rSet-Cookie: b=1\r\nContent-Length: 2\r\n\r\nok")?;
    wire.close()
}

fn two_lengths(_: &Seen, wire: &mut Wire<'_>) -> std::io::Result<()> {
    wire.raw("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\nContent-Length: 8\r\n\r\n12345678")?;
    wire.close()
}

fn two_framings(_: &Seen, wire: &mut Wire<'_>) -> std::io::Result<()> {
    wire.raw(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\
        Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n",
    )?;
    wire.close()
}

fn another_coding(_: &Seen, wire: &mut Wire<'_>) -> std::io::Result<()> {
    wire.raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n")?;
    wire.close()
}

fn interim(_: &Seen, wire: &mut Wire<'_>) -> std::io::Result<()> {
    wire.raw("HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n")?;
    wire.raw("HTTP/1.1 100 Continue\r\n\r\n")?;
    wire.reply(200, "Cache-Control: max-age=60", b"final")
}

#[test]
fn f27_and_f29_wrong_heads_are_502_and_never_stored() {
    let twice = [GET, GET].concat();
    run(
        RULES,
        vec![
            case("F27", GET, bare_line_feed, And(&[502], &["GET /a"], |_| true)),
            case("F27", &twice, bare_line_feed, Answered(&[502, 502], &["GET /a", "GET /a"])),
            case("F27", GET, bare_carriage_return, Answered(&[502], &["GET /a"])),
            case("F27", POST, bare_carriage_return, Answered(&[502], &["POST /a"])),
            case("F29", GET, two_lengths, Answered(&[502], &["GET /a"])),
            case("F29", &twice, two_lengths, Answered(&[502, 502], &["GET /a", "GET /a"])),
            case("F29", POST, two_lengths, Answered(&[502], &["POST /a"])),
            case("F29", DELETE, two_lengths, Answered(&[502], &["DELETE /a"])),
            case("F29", POST, another_coding, Answered(&[502], &["POST /a"])),
            case("F29", GET, another_coding, Answered(&[502], &["GET /a"])),
        ],
    );
}

#[test]
fn f27_and_f29_hold_for_what_passes() {
    // The proxy engine takes a bare LF for a line's end, which RFC 9112 §2.2 lets it, and chunks before a length.
    let status: &[u16] = if without_front() { &[200] } else { &[502] };
    let cases = [("F27", bare_line_feed as fn(&Seen, &mut Wire<'_>) -> std::io::Result<()>), ("F29", two_framings)];
    let mut all = Vec::new();
    for (id, script) in cases {
        all.push(case(id, DELETE, script, Answered(status, &["DELETE /a"])));
        all.push(case(id, EMPTY, script, Answered(status, &["POST /a"])));
        all.push(case(id, POST, script, Answered(status, &["POST /a"])));
    }
    run(RULES, all);
}

#[test]
fn f29_a_response_framed_twice_is_refused_or_read_as_chunks_once() {
    let origin = Origin::start(two_framings);
    let gateway = Gateway::start(&site(origin.address, RULES));
    for _ in 0..2 {
        let response = gateway.get("/a");
        assert!(response.status == 502 || response.text() == "abcd", "{response:#?}");
    }
}

#[test]
fn f31_interim_responses_pass_and_are_not_the_answer() {
    let origin = Origin::start(interim);
    let gateway = Gateway::start(&site(origin.address, RULES));
    let first = gateway.get("/a");
    assert_eq!((first.status, first.text()), (200, "final".to_owned()));
    let hints: Vec<_> = first.interim.iter().filter(|response| response.status == 103).collect();
    assert_eq!(hints.iter().map(|hint| hint.field("link")).collect::<Vec<_>>(), [Some("</style.css>; rel=preload")]);
    let hit = gateway.get("/a");
    assert!(hit.is_hit() && hit.text() == "final" && hit.field("link").is_none(), "{hit:#?}");
    let posted = gateway.client().request("POST", "/b", "", b"x");
    assert_eq!((posted.status, posted.text()), (200, "final".to_owned()));
    for path in ["/old", "/old"] {
        let mut client = gateway.client();
        client.send(format!("GET {path} HTTP/1.0\r\nHost: t.example\r\n\r\n"));
        assert_eq!(client.read_head().unwrap().status, 200, "HTTP/1.0 knows no interim responses");
    }
    gateway.assert_law();
}
