//! F1 to F25: where a request's body ends (RFC 9112).

use super::{
    Case, Outcome,
    Right::{And, Answered, Refused},
    case, plain, run, unstored,
};
use crate::harness::{Gateway, Origin, site};

const RULES: &str = "    http-request deny if { path_beg /admin }
    http-request redirect location /elsewhere code 302 if { path_beg /moved }
    http-request return status 200 content-type text/plain string here if { path_beg /here }
    cache-rule all ttl auto";

fn post(fields: &str, body: &str) -> String {
    format!("POST /a HTTP/1.1\r\nHost: t.example\r\n{fields}\r\n{body}")
}

fn chunked(body: &str) -> String {
    post("Transfer-Encoding: chunked\r\n", body)
}

fn get(fields: &str) -> String {
    format!("GET /a HTTP/1.1\r\nHost: t.example\r\n{fields}\r\n")
}

#[test]
fn f1_to_f13_lengths_and_codings() {
    let length = |value: &str, body: &str| post(&format!("Content-Length:{value}\r\n"), body);
    let mut rows = vec![
        case("F1", post("Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\nG"), plain, Refused(&[400])),
        case("F1", post("Transfer-Encoding: chunked\r\nContent-Length: 6\r\n", "0\r\n\r\nG"), plain, Refused(&[400])),
        case(
            "F7",
            post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
            plain,
            Refused(&[400]),
        ),
        case("F7", post("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"), plain, Refused(&[400])),
        case("F9", post("Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n"), plain, Refused(&[400, 501])),
        case("F9", post("Transfer-Encoding: gzip\r\n", "0\r\n\r\n"), plain, Refused(&[400, 501])),
        case("F9", post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"), plain, Refused(&[400, 501])),
        case("F9", post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"), plain, Refused(&[400])),
        case(
            "F9",
            "POST /a HTTP/1.0\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            plain,
            Refused(&[400]),
        ),
        case("F11", post("Content-Length:\r\n", ""), plain, Refused(&[400])),
        case("F11", post("Content-Length:\r\nContent-Length: 40\r\n", &"x".repeat(40)), plain, Refused(&[400])),
        case("F11", post("Content-Length: 4\r\nContent-Length: 5\r\n", "12345"), plain, Refused(&[400])),
        case("F11", post("Content-Length: 4, 5\r\n", "12345"), plain, Refused(&[400])),
        case("F13", length("  7\t ", "1234567"), plain, And(&[200], &["POST /a"], sent_with_length_7)),
        case("F13", length("007", "1234567"), plain, And(&[200], &["POST /a"], sent_with_length_7)),
    ];
    for value in ["+7", "-0", "0x7", "7_0", "7 0", "7.0", "18446744073709551617", "99999999999999999999999"] {
        rows.push(case("F13", length(value, "1234567"), plain, Refused(&[400, 413])));
    }
    run(RULES, rows);
}

/// The body arrived, framed by chunks or by exactly `Content-Length: 7`.
fn sent_with_length_7(outcome: &Outcome) -> bool {
    outcome.seen.iter().all(|seen| seen.body == b"1234567" && [Some("7"), None].contains(&seen.field("content-length")))
}

#[test]
fn f15_and_f17_chunks() {
    let mut rows = Vec::new();
    let bad = [
        ("F15", "4;z\nabcd\r\n0\r\n\r\n"),
        ("F15", "4\r\r;q\nabcd\r\n0\r\n\r\n"),
        ("F15", "4\nabcd\r\n0\r\n\r\n"),
        ("F15", "4\r\nabcd\n0\r\n\r\n"),
        ("F15", "4\r\nabcd\r0\r\n\r\n"),
        ("F15", "4;a=\"b\nc\"\r\nabcd\r\n0\r\n\r\n"),
        ("F15", "4\r\nabcd\r\n0\n\n"),
        ("F15", "+4\r\nabcd\r\n0\r\n\r\n"),
        ("F15", "0x4\r\nabcd\r\n0\r\n\r\n"),
        ("F15", "4 \t 4\r\nabcd\r\n0\r\n\r\n"),
        ("F15", "-1\r\nabcd\r\n0\r\n\r\n"),
        ("F15", "10000000000000004\r\nabcd\r\n0\r\n\r\n"),
        ("F15", "4\r\nabcde\r\n0\r\n\r\n"),
        ("F15", ";a\r\nabcd\r\n0\r\n\r\n"),
        ("F17", "4\r\nabcd\r\n\r\n0\r\n\r\n"),
        ("F17", "\r\n4\r\nabcd\r\n0\r\n\r\n"),
    ];
    for (id, body) in bad {
        rows.push(case(id, chunked(body), unstored, Refused(&[400])));
    }
    let good = [
        "4;a=b\r\nabcd\r\n0\r\n\r\n",
        "4 ;a=\"b\\\"c\"\r\nabcd\r\n0;last\r\n\r\n",
        "0004\r\nabcd\r\n000\r\n\r\n",
        "2\r\nab\r\n2\r\ncd\r\n0\r\nX-Trailer: 1\r\n\r\n",
    ];
    for body in good {
        rows.push(case(
            "F15",
            chunked(body),
            unstored,
            And(&[200], &["POST /a"], |outcome| {
                outcome.seen.iter().all(|seen| seen.body == b"abcd" && !seen.framed.contains(&b';'))
            }),
        ));
    }
    run(RULES, rows);
}

#[test]
fn f19_and_f21_field_lines() {
    let mut rows = Vec::new();
    let bad = [
        ("F19", get("X-A: p\rq\r\n")),
        ("F19", get("X-A: p\r\r\n")),
        ("F19", "GET /a HTTP/1.1\nHost: t.example\n\n".to_owned()),
        ("F19", get("X-A: p\nX-B: q\r\n")),
        ("F19", "GET /a HTTP/1.1\r\nHost: t.example\r\nX-A: p\r\n\nX-B: q\r\n\r\n".to_owned()),
        ("F19", "GET /a HTTP/1.1\r\nHost: t.example\0.bad\r\n\r\n".to_owned()),
        ("F19", get("X-A: p\0q\r\n")),
        ("F19", get("X-A: p\r\n folded\r\n")),
        ("F19", "GET /a HTTP/1.1\r\n Host: t.example\r\n\r\n".to_owned()),
        ("F19", get("X-A: p\u{7f}q\r\n")),
        ("F19", get("X-A: p\u{1}q\r\n")),
        ("F21", get(": v\r\nX-Drop: 1\r\n")),
        ("F21", get("no colon\r\nX-Drop: 1\r\n")),
        ("F21", get("X-A : v\r\nX-Drop: 1\r\n")),
        ("F21", get("X A: v\r\nX-Drop: 1\r\n")),
    ];
    for (id, send) in bad {
        rows.push(case(id, send, plain, Refused(&[400])));
    }
    rows.push(case(
        "F19",
        get("X-A: p\tq  r\r\nX-Empty:\r\nX-Latin: \u{e4}\r\n"),
        plain,
        And(&[200], &["GET /a"], |outcome| {
            outcome.seen.iter().all(|seen| seen.field("x-a") == Some("p\tq  r") && seen.field("x-empty") == Some(""))
        }),
    ));
    run(RULES, rows);
}

#[test]
fn f3_to_f25_bodies_nobody_asked_for() {
    let inner = "GET /inner HTTP/1.1\r\nHost: t.example\r\n\r\n";
    let with_body = |line: &str, body: &str| {
        format!("{line} HTTP/1.1\r\nHost: t.example\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    };
    let with_chunks = |line: &str, body: &str| {
        format!(
            "{line} HTTP/1.1\r\nHost: t.example\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
            body.len()
        )
    };
    let after = get("");
    let mut rows = vec![
        case(
            "F5",
            "GET /chat HTTP/1.1\r\nHost: t\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\n\
                GET /admin HTTP/1.1\r\nHost: t\r\n\r\n",
            plain,
            Answered(&[200, 403], &["GET /chat"]),
        ),
        case(
            "F25",
            get("Content-Length: 9\r\n") + "123456789" + &after,
            plain,
            Answered(&[200, 200], &["GET /a", "GET /a"]),
        ),
        case("F25", with_chunks("GET /a", inner) + &after, plain, Answered(&[200, 200], &["GET /a", "GET /a"])),
        case(
            "F25",
            after.clone() + &with_body("GET /a", inner) + &after,
            plain,
            Answered(&[200, 200, 200], &["GET /a", "GET /a"]),
        ),
        case("F25", with_body("HEAD /a", inner) + &after, plain, Answered(&[200, 200], &["GET /a", "HEAD /a"])),
    ];
    for line in ["POST /admin", "PUT /admin", "GET /admin"] {
        rows.push(case("F23", with_body(line, inner) + &after, plain, Answered(&[403, 200], &["GET /a"])));
        rows.push(case("F23", with_chunks(line, inner) + &after, plain, Answered(&[403, 200], &["GET /a"])));
    }
    for (line, status) in [("POST /moved", &[302, 200]), ("POST /here", &[200, 200])] {
        rows.push(case("F23", with_body(line, inner) + &after, plain, Answered(status, &["GET /a"])));
        rows.push(case("F23", with_chunks(line, inner) + &after, plain, Answered(status, &["GET /a"])));
    }
    for method in ["OPTIONS", "DELETE", "QUERY", "PROPFIND"] {
        let (line, expected): (String, &[&str]) = match method {
            "OPTIONS" => ("OPTIONS /x".to_owned(), &["GET /a", "OPTIONS /x"]),
            "DELETE" => ("DELETE /x".to_owned(), &["GET /a", "DELETE /x"]),
            "QUERY" => ("QUERY /x".to_owned(), &["GET /a", "QUERY /x"]),
            _ => ("PROPFIND /x".to_owned(), &["GET /a", "PROPFIND /x"]),
        };
        rows.push(case("F3", with_body(&line, inner) + &after, plain, Answered(&[200, 200], expected)));
        rows.push(case("F3", with_chunks(&line, inner) + &after, plain, Answered(&[200, 200], expected)));
    }
    run(RULES, rows);
}

#[test]
fn f3_a_body_that_the_origin_ignores_is_never_a_request() {
    let origin = Origin::start(unstored);
    origin.answer_early(true);
    let gateway = Gateway::start(&site(origin.address, RULES));
    let inner = format!("GET /inner HTTP/1.1\r\nX: {}", "a".repeat(26));
    assert_eq!(inner.len(), 0x32);
    let send = format!(
        "OPTIONS /x HTTP/1.1\r\nHost: t.example\r\nTransfer-Encoding: chunked\r\n\r\n32\r\n{inner}\r\n0\r\n\r\n\r\n"
    );
    let mut client = gateway.client();
    assert_eq!(client.send(send).read("OPTIONS").status, 200);
    for number in 0..5 {
        assert_eq!(gateway.get(&format!("/clean{number}")).status, 200);
    }
    let large = "x".repeat(1 << 20);
    let send = format!("OPTIONS /x HTTP/1.1\r\nHost: t.example\r\nContent-Length: {}\r\n\r\n{large}", large.len());
    assert_eq!(gateway.client().send(send).read("OPTIONS").status, 200);
    for number in 0..5 {
        assert_eq!(gateway.get(&format!("/clean{number}")).status, 200);
    }
    let strange = origin.seen().into_iter().filter(|seen| seen.path() != "/x" && !seen.path().starts_with("/clean"));
    assert_eq!(strange.count(), 0);
    gateway.assert_law();
}

#[test]
fn f25_a_get_with_a_body_is_never_stored() {
    let origin = Origin::start(plain);
    let gateway = Gateway::start(&site(origin.address, RULES));
    for _ in 0..2 {
        let response = gateway.client().request("GET", "/s?x=1", "", b"x=evil");
        assert_eq!((response.status, response.is_hit()), (200, false));
    }
    let seen = origin.seen();
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|seen| seen.body == b"x=evil" || seen.body.is_empty()));
    assert!(!gateway.get("/s?x=1").is_hit(), "what a body may have changed is nobody else's");
    gateway.assert_law();
}

/// Rows whose answers are few stay together.
#[test]
fn f25_a_small_body_is_kept_or_dropped_with_its_length() {
    let rows: Vec<Case> = vec![case(
        "F25",
        get("Content-Length: 9\r\n") + "123456789",
        plain,
        And(&[200], &["GET /a"], |outcome| {
            outcome.seen.iter().all(|seen| match seen.field("content-length") {
                Some(length) => length == "9" && seen.body == b"123456789",
                None => seen.body.is_empty() || seen.body == b"123456789",
            })
        }),
    )];
    run(RULES, rows);
}
