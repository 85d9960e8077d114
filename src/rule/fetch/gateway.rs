//! The running gateway: proxies, counts, clocks, chance (HAProxy manual §7.3.2, §7.3.3).

use super::{ArgSpec, Args, Draw, FetchRow, Sample, Source, TEXT, Txn, Type};
use crate::{
    rule::{
        args::ArgKind,
        converter::date::{UNIT, parts},
        fact::{Fact, Timeout},
        sample::printed,
    },
    time::Timestamp,
};

const GATEWAY: FetchRow = FetchRow { source: Source::Gateway, ..TEXT };
const COUNT: FetchRow = FetchRow { output: Type::Int, ..GATEWAY };
const OF_FRONTEND: FetchRow = FetchRow { args: &[ArgSpec::may(ArgKind::Frontend)], ..COUNT };
const OF_BACKEND: FetchRow = FetchRow { args: &[ArgSpec::may(ArgKind::Backend)], ..COUNT };
const BACKEND: FetchRow = FetchRow { source: Source::Backend, ..TEXT };
const BACKEND_NUMBER: FetchRow = FetchRow { output: Type::Int, ..BACKEND };

pub(super) const ROWS: &[FetchRow] = &[
    FetchRow { names: &["fe_name"], draw: Draw::Fact(Fact::FrontendName), ..GATEWAY },
    FetchRow { names: &["fe_id"], draw: Draw::Fact(Fact::FrontendNumber), ..COUNT },
    FetchRow { names: &["fe_defbe"], draw: Draw::Fact(Fact::DefaultBackend), ..GATEWAY },
    FetchRow {
        names: &["be_name"],
        // An exchange that ended before a backend was chosen is its frontend's in the log.
        draw: Draw::One(|_, txn| {
            let of_frontend = || txn.notes.progress.end.and_then(|_| txn.env.fact(Fact::FrontendName));
            txn.env.fact(Fact::BackendName).or_else(of_frontend)
        }),
        ..BACKEND
    },
    FetchRow { names: &["be_id"], draw: Draw::Fact(Fact::BackendNumber), ..BACKEND_NUMBER },
    FetchRow {
        names: &["fe_conn"],
        draw: Draw::One(|args, txn| txn.env.fact(Fact::FrontendConnections(args.proxy(0)?))),
        ..OF_FRONTEND
    },
    FetchRow {
        names: &["fe_sess_rate"],
        draw: Draw::One(|args, txn| txn.env.fact(Fact::FrontendSessionRate(args.proxy(0)?))),
        ..OF_FRONTEND
    },
    FetchRow {
        names: &["fe_req_rate"],
        draw: Draw::One(|args, txn| txn.env.fact(Fact::FrontendRequestRate(args.proxy(0)?))),
        ..OF_FRONTEND
    },
    FetchRow {
        names: &["be_conn"],
        draw: Draw::One(|args, txn| txn.env.fact(Fact::BackendConnections(args.proxy(0)?))),
        ..OF_BACKEND
    },
    FetchRow {
        names: &["be_sess_rate"],
        draw: Draw::One(|args, txn| txn.env.fact(Fact::BackendSessionRate(args.proxy(0)?))),
        ..OF_BACKEND
    },
    FetchRow { names: &["act_conn"], draw: Draw::Fact(Fact::Connections), ..COUNT },
    FetchRow {
        names: &["fe_client_timeout", "cur_client_timeout"],
        draw: Draw::Fact(Fact::Timeout(Timeout::Client)),
        ..COUNT
    },
    FetchRow {
        names: &["be_connect_timeout", "cur_connect_timeout"],
        draw: Draw::Fact(Fact::Timeout(Timeout::Connect)),
        ..BACKEND_NUMBER
    },
    FetchRow {
        names: &["be_server_timeout", "cur_server_timeout"],
        draw: Draw::Fact(Fact::Timeout(Timeout::Server)),
        ..BACKEND_NUMBER
    },
    FetchRow {
        names: &["be_tunnel_timeout", "cur_tunnel_timeout"],
        draw: Draw::Fact(Fact::Timeout(Timeout::Tunnel)),
        ..BACKEND_NUMBER
    },
    FetchRow { names: &["hostname"], draw: Draw::Fact(Fact::Hostname), ..GATEWAY },
    FetchRow { names: &["pid"], draw: Draw::Fact(Fact::Process), ..COUNT },
    FetchRow { names: &["thread"], draw: Draw::Fact(Fact::Thread), ..COUNT },
    FetchRow { names: &["uptime"], draw: Draw::Fact(Fact::Uptime), ..COUNT },
    FetchRow { names: &["stopping"], output: Type::Bool, draw: Draw::Fact(Fact::Stopping), ..GATEWAY },
    FetchRow {
        names: &["date"],
        args: &[ArgSpec::may(ArgKind::Int), ArgSpec::may(UNIT)],
        draw: Draw::One(|args, txn| Some(in_unit(txn.env.now(), args.int(0).unwrap_or(0), args.text(1)))),
        ..COUNT
    },
    FetchRow {
        names: &["date_us"],
        draw: Draw::One(|_, txn| Some(Sample::Int(signed(txn.env.now().as_millis() % 1000) * 1000))),
        ..COUNT
    },
    // One request is decided at one moment.
    FetchRow {
        names: &["request_date"],
        args: &[ArgSpec::may(UNIT)],
        draw: Draw::One(|args, txn| Some(in_unit(txn.env.now(), 0, args.text(0)))),
        ..COUNT
    },
    FetchRow {
        names: &["accept_date"],
        args: &[ArgSpec::may(UNIT)],
        draw: Draw::One(|args, txn| Some(in_unit(txn.client.accepted, 0, args.text(0)))),
        ..COUNT
    },
    FetchRow { names: &["rand"], args: &[ArgSpec::may(ArgKind::Int)], draw: Draw::One(rand), ..COUNT },
    FetchRow { names: &["uuid"], args: &[ArgSpec::may(ArgKind::Word(&["4"]))], draw: Draw::One(uuid), ..GATEWAY },
    FetchRow {
        names: &["last_rule_line"],
        draw: Draw::One(|_, txn| Some(Sample::Int(txn.notes.last_rule?.line.into()))),
        ..COUNT
    },
    FetchRow {
        names: &["last_rule_file"],
        draw: Draw::One(|_, txn| txn.env.fact(Fact::FileName(txn.notes.last_rule?.file))),
        ..GATEWAY
    },
    FetchRow {
        names: &["res.cache_hit"],
        output: Type::Bool,
        source: Source::Delivery,
        draw: Draw::Fact(Fact::CacheHit),
        ..GATEWAY
    },
    // nuster has it at any time; before there is a response, nothing is a hit.
    FetchRow { names: &["nuster.cache.hit"], output: Type::Bool, draw: Draw::Fact(Fact::CacheHit), ..GATEWAY },
    FetchRow { names: &["res.cache_name"], source: Source::Delivery, draw: Draw::Fact(Fact::CacheName), ..GATEWAY },
];

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A moment in `unit`s since 1970, seconds when there is none; `offset` is in seconds whatever the unit.
fn in_unit<'s>(moment: Timestamp, offset: i64, unit: Option<&[u8]>) -> Sample<'s> {
    let parts = parts(unit);
    let rest = signed(moment.as_millis() % 1000) * parts / 1000;
    let seconds = signed(moment.as_secs()).saturating_add(offset);
    Sample::Int(seconds.saturating_mul(parts).saturating_add(rest))
}

/// 32 bits, or one of so many numbers from 0.
fn rand<'s>(args: &'s Args, txn: &'s Txn<'_>) -> Option<Sample<'s>> {
    let random = signed(txn.env.random() >> 32);
    Some(Sample::Int(match args.int(0) {
        Some(range) => random.wrapping_mul(range) >> 32,
        None => random,
    }))
}

/// RFC 9562 §5.4.
fn uuid<'s>(_: &'s Args, txn: &'s Txn<'_>) -> Option<Sample<'s>> {
    let bits = u128::from(txn.env.random()) << 64 | u128::from(txn.env.random());
    let bits = bits & !(0xf << 76) & !(0b11 << 62) | 4 << 76 | 0b10 << 62;
    let text = format_args!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        bits >> 96,
        bits >> 80 & 0xffff,
        bits >> 64 & 0xffff,
        bits >> 48 & 0xffff,
        bits & 0xffff_ffff_ffff
    );
    Some(Sample::Str(printed(text, txn.arena)))
}
