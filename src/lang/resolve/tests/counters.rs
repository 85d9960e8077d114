//! Tables of counters as rules count and read them.

use super::*;
use crate::rule::{
    table::{Column, Datum, KeyKind},
    track::Event,
};

/// `front` stores everything that has a name of its own, `arrays` the arrays, `names` has text for keys, `little` stores
/// one counter.
pub(super) fn tables() -> Vec<Spec> {
    let column = |datum: Datum| Column {
        datum,
        count: if datum.is_array() { 3 } else { 1 },
        period: if datum.is_rate() { 10_000 } else { 0 },
    };
    let spec = |name: &str, key: KeyKind, stored: Vec<Column>| Spec {
        name: name.to_owned(),
        key,
        size: 4,
        expire: Some(60_000),
        nopurge: false,
        stored,
    };
    let (arrays, named): (Vec<_>, Vec<_>) =
        Datum::ALL.iter().map(|(_, datum)| column(*datum)).partition(|column| column.datum.is_array());
    vec![
        spec("front", KeyKind::Ipv4, named),
        spec("arrays", KeyKind::Ipv4, arrays),
        spec("names", KeyKind::Str(8), vec![column(Datum::HttpReqCnt)]),
        spec("little", KeyKind::Ipv4, vec![column(Datum::Gpc0)]),
    ]
}

/// An exchange that `sc0` tracks by the client's address in `front`, and `sc1` in `arrays`.
fn tracked() -> (Bench, Exchange) {
    let mut bench = Bench::default();
    let mut exchange = Exchange::get("/");
    let rules = bench.rules(Phase::Request, &["track-sc0 src", "track-sc1 src table arrays"]);
    exchange.run(&rules);
    (bench, exchange)
}

#[test]
fn every_counter_is_read_in_every_form() {
    let (mut bench, mut exchange) = tracked();
    let now = exchange.env.millis;
    let tracks = exchange.notes.tracks.clone().unwrap();
    for event in [Event::ClientError, Event::Failure, Event::Failure, Event::Received(3000), Event::Sent(5000)] {
        tracks.count(event, now);
    }
    tracks.with(0, |tracked| {
        let entry = tracked.entry(now);
        for (datum, count) in [(Datum::SessCnt, 2), (Datum::SessRate, 2), (Datum::Gpt0, 9), (Datum::Gpc1, 6)] {
            entry.add(datum, 0, count);
        }
        entry.add(Datum::Gpc0, 0, 4);
        entry.add(Datum::Gpc0Rate, 0, 3);
        entry.add(Datum::Gpc1Rate, 0, 2);
    });
    for (name, expected) in [
        ("conn_cnt", 1),
        ("conn_cur", 1),
        ("conn_rate", 1),
        ("sess_cnt", 2),
        ("sess_rate", 2),
        ("http_req_cnt", 1),
        ("http_req_rate", 1),
        ("http_err_cnt", 1),
        ("http_err_rate", 1),
        ("http_fail_cnt", 2),
        ("http_fail_rate", 2),
        ("kbytes_in", 2),
        ("kbytes_out", 4),
        ("bytes_in_rate", 3000),
        ("bytes_out_rate", 5000),
        ("get_gpc0", 4),
        ("gpc0_rate", 3),
        ("get_gpc1", 6),
        ("gpc1_rate", 2),
        ("get_gpt0", 9),
        ("trackers", 1),
    ] {
        let mut value = |text: String| exchange.value(&mut bench, &text, Phase::Request);
        let converter = name.replace("get_", "");
        let mut forms = vec![
            format!("sc0_{name}"),
            format!("sc0_{name}(front)"),
            format!("sc_{name}(0)"),
            format!("sc_{name}(1,front)"),
            format!("src,table_{converter}"),
            format!("src,table_{converter}(front)"),
        ];
        if name != "trackers" {
            forms.extend([format!("src_{name}"), format!("src_{name}(front)")]);
        }
        for form in forms {
            assert_eq!(value(form.clone()), format!("int {expected}"), "{form}");
        }
        assert_eq!(value(format!("sc2_{name}")), "-", "{name} of what is not tracked");
        // The key has no entry there yet: everything is 0.
        assert_eq!(value(format!("sc0_{name}(little)")), "int 0", "{name}");
        assert_eq!(value(format!("str(192.0.2.99),table_{converter}")), "int 0", "{name}");
        assert_eq!(value(format!("str(nobody),table_{converter}")), "-", "{name}");
    }
}

#[test]
fn what_a_table_does_not_store_is_no_value() {
    let (mut bench, mut exchange) = tracked();
    let rules = bench.rules(Phase::Request, &["track-sc2 src table little"]);
    exchange.run(&rules);
    for (expr, expected) in [
        ("sc2_get_gpc0", "int 0"),
        ("sc2_http_req_cnt", "-"),
        ("src_http_req_cnt(little)", "-"),
        ("src,table_conn_cur(little)", "-"),
        ("sc0_http_req_cnt(little)", "-"),
        ("sc2_clr_gpc1", "-"),
        // As in HAProxy, counting where nothing is stored gives 0.
        ("sc2_inc_gpc1", "int 0"),
        ("src_updt_conn_cnt(little)", "-"),
        ("sc_get_gpc(0,2)", "-"),
        ("sc_get_gpc(3,1)", "-"),
    ] {
        assert_eq!(exchange.value(&mut bench, expr, Phase::Request), expected, "{expr}");
    }
}

#[test]
fn counting_and_clearing_are_side_effects() {
    let (mut bench, mut exchange) = tracked();
    for (expr, expected) in [
        ("sc0_inc_gpc0", "int 1"),
        ("sc_inc_gpc0(0)", "int 2"),
        ("src_inc_gpc0", "int 3"),
        ("src,table_inc_gpc0", "int 4"),
        ("sc0_gpc0_rate", "int 4"),
        ("sc0_clr_gpc0", "int 4"),
        ("sc0_get_gpc0", "int 0"),
        ("src_inc_gpc1", "int 1"),
        ("src,table_clr_gpc1", "int 1"),
        // In another table no entry is made for what is tracked, one is for an address or key.
        ("sc0_inc_gpc0(little)", "int 0"),
        ("src,in_table(little)", "bool false"),
        ("src_clr_gpc0(little)", "int 0"),
        ("src,in_table(little)", "bool true"),
        ("sc0_inc_gpc0(little)", "int 1"),
        ("str(192.0.2.50),table_inc_gpc0(little)", "int 1"),
        ("str(192.0.2.50),table_gpc0(little)", "int 1"),
        ("table_cnt(little)", "int 2"),
        ("table_avl(little)", "int 2"),
        ("src_updt_conn_cnt", "int 2"),
        ("src,table_server_id", "int 0"),
        ("sc_inc_gpc(1,1)", "int 1"),
        ("src_inc_gpc(1,arrays)", "int 2"),
        ("src,table_inc_gpc(1,arrays)", "int 3"),
        ("sc_gpc_rate(1,1)", "int 3"),
        ("sc_get_gpc(1,1)", "int 3"),
        ("src,table_gpc(1,arrays)", "int 3"),
        ("src,table_gpc_rate(1,arrays)", "int 3"),
        ("sc_clr_gpc(1,1)", "int 3"),
        ("src_get_gpc(1,arrays)", "int 0"),
        // An array's elements stand for the counters with names.
        ("sc1_inc_gpc0", "int 1"),
        ("sc_get_gpc(0,1)", "int 1"),
        ("sc1_inc_gpc1", "int 1"),
        ("src_clr_gpc(1,arrays)", "int 1"),
        ("src,table_clr_gpc(0,arrays)", "int 1"),
    ] {
        assert_eq!(exchange.value(&mut bench, expr, Phase::Request), expected, "{expr}");
    }
}

#[test]
fn actions_change_counters_of_what_is_tracked() {
    let (mut bench, mut exchange) = tracked();
    let rules = bench.rules(
        Phase::Request,
        &[
            "sc-inc-gpc0",
            "sc-inc-gpc0(0)",
            "sc-inc-gpc1(0)",
            "sc-inc-gpc1(2)",
            "sc-inc-gpc(2,1)",
            "sc-add-gpc(2,1) 40",
            "sc-add-gpc(2,1) int(2)",
            "sc-set-gpt0(0) 7",
            "sc-set-gpt(1,1) path,length",
            "sc-set-gpt(2,1) -1",
            "sc-set-gpt(0,1) str()",
        ],
    );
    exchange.run(&rules);
    for (expr, expected) in [
        ("sc0_get_gpc0", "int 2"),
        ("sc0_gpc0_rate", "int 2"),
        ("sc0_get_gpc1", "int 1"),
        ("sc_get_gpc(2,1)", "int 43"),
        ("sc0_get_gpt0", "int 7"),
        ("sc_get_gpt(1,1)", "int 1"),
        ("sc_get_gpt(2,1)", "int 4294967295"),
        ("src,table_gpt(1,arrays)", "int 1"),
        ("src_get_gpt(1,arrays)", "int 1"),
        ("sc1_get_gpt0", "int 0"),
    ] {
        assert_eq!(exchange.value(&mut bench, expr, Phase::Request), expected, "{expr}");
    }
}

#[test]
fn the_first_track_of_a_slot_stays() {
    let mut bench = Bench::default();
    let mut exchange = Exchange::get("/one");
    let connection = bench.rules(Phase::Connection, &["track-sc0 src"]);
    let content = bench.rules(Phase::Content, &["track-sc0 path table names", "track-sc1 path table names"]);
    let request = bench.rules(Phase::Request, &["track-sc1 src", "track-sc2 path table names", "track-sc2 src"]);
    let response = bench.rules(Phase::Response, &["track-sc2 src"]);
    exchange.run(&connection);
    exchange.run(&content);
    exchange.run(&request);
    let mut exchange = exchange.answered(404, &[]);
    exchange.run(&response);
    for (expr, expected) in [
        ("sc0_key", "ip 192.0.2.7"),
        ("sc1_key", "str /one"),
        ("sc_key(2)", "str /one"),
        ("sc0_conn_cur", "int 1"),
        // The content rule tracks before requests are counted, the others count for themselves.
        ("sc1_http_req_cnt", "int 1"),
        ("sc0_http_err_cnt", "int 0"),
        ("sc0_tracked", "bool true"),
        ("sc_tracked(1)", "bool true"),
        ("table_cnt(names)", "int 1"),
    ] {
        assert_eq!(exchange.value(&mut bench, expr, Phase::Response), expected, "{expr}");
    }
    assert_eq!(Exchange::get("/").value(&mut bench, "sc0_tracked", Phase::Request), "bool false");
}

#[test]
fn what_is_tracked_on_a_response_counts_its_status() {
    for (status, errors, failures) in [(200, 0, 0), (404, 1, 0), (500, 0, 1), (501, 0, 0)] {
        let mut bench = Bench::default();
        let mut exchange = Exchange::get("/").answered(status, &[]);
        let rules = bench.rules(Phase::Response, &["track-sc0 src"]);
        exchange.run(&rules);
        for (expr, expected) in [("sc0_http_req_cnt", 1), ("sc0_http_err_cnt", errors), ("sc0_http_fail_cnt", failures)]
        {
            let value = exchange.value(&mut bench, expr, Phase::Response);
            assert_eq!(value, format!("int {expected}"), "{expr} at {status}");
        }
    }
}

#[test]
fn a_key_that_cannot_be_made_tracks_nothing() {
    let mut bench = Bench::default();
    let mut exchange = Exchange::get("/");
    let rules = bench.rules(Phase::Request, &["track-sc0 req.hdr(x-address)", "track-sc1 req.hdr(host)"]);
    exchange.run(&rules);
    for slot in ["sc0_tracked", "sc1_tracked"] {
        assert_eq!(exchange.value(&mut bench, slot, Phase::Request), "bool false", "{slot}");
    }
}

#[test]
fn entries_are_idle_and_expire() {
    let (mut bench, mut exchange) = tracked();
    exchange.notes.tracks = None;
    exchange.env.millis += 1500;
    for (expr, expected) in [
        ("src,table_idle", "int 1500"),
        ("src,table_expire", "int 58500"),
        ("str(192.0.2.1),table_idle(front)", "-"),
        ("str(192.0.2.1),table_idle(front,7)", "int 7"),
        ("str(192.0.2.1),table_expire(front,8)", "int 8"),
        ("src,table_conn_cur", "int 0"),
        ("src,table_http_req_rate", "int 1"),
    ] {
        assert_eq!(exchange.value(&mut bench, expr, Phase::Request), expected, "{expr}");
    }
    exchange.env.millis += 58_500;
    assert_eq!(exchange.value(&mut bench, "src,in_table", Phase::Request), "bool false");
}

#[test]
fn connections_are_closed_by_rules() {
    let mut bench = Bench::default();
    for (phase, text, silent) in [
        (Phase::Connection, "reject if { src 192.0.2.7 }", false),
        (Phase::Session, "silent-drop", true),
        (Phase::Content, "reject if { path /x }", false),
        (Phase::Request, "reject", false),
        (Phase::Request, "silent-drop", true),
        (Phase::ResponseContent, "close", false),
    ] {
        let rules = bench.rules(phase, &[text]);
        let verdict = Exchange::get("/x").run(&rules);
        assert!(matches!(verdict, Verdict::Close { silent: found } if found == silent), "{text}: {verdict:?}");
    }
    let rules = bench.rules(Phase::Connection, &["accept", "reject"]);
    assert!(matches!(Exchange::get("/").run(&rules), Verdict::Continue));
}
