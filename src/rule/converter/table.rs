//! `table_X(TABLE)` and `in_table(TABLE)`: what a table has on a key (HAProxy manual §7.3.1).

use super::{ArgSpec, Args, ConverterRow, Sample, TEXT, Txn, Type};
use crate::rule::{
    args::ArgKind,
    fetch::counter::Ask,
    table::{Datum, Entry, Key, KeyKind},
};

const COUNTER: ConverterRow =
    ConverterRow { args: &[ArgSpec::may(ArgKind::Table)], input: Type::Any, output: Type::Int, ..TEXT };
const ELEMENT: ConverterRow =
    ConverterRow { args: &[ArgSpec::need(ArgKind::Index), ArgSpec::may(ArgKind::Table)], ..COUNTER };
const TIME: ConverterRow =
    ConverterRow { args: &[ArgSpec::may(ArgKind::Table), ArgSpec::may(ArgKind::Int)], ..COUNTER };

macro_rules! counters {
    ($($name:literal $ask:expr;)*) => {
        &[$(ConverterRow {
            names: &[concat!("table_", $name)],
            apply: |args, sample, txn| {
                let place = args.table(0)?;
                $ask.of_key(&key(place, sample, txn)?, place, 0, txn)
            },
            ..COUNTER
        }),*]
    };
}

macro_rules! arrays {
    ($($name:literal $ask:expr;)*) => {
        &[$(ConverterRow {
            names: &[concat!("table_", $name)],
            apply: |args, sample, txn| {
                let place = args.table(1)?;
                $ask.of_key(&key(place, sample, txn)?, place, args.place(0)?, txn)
            },
            ..ELEMENT
        }),*]
    };
}

pub(super) const COUNTERS: &[ConverterRow] = counters! {
    "bytes_in_rate" Ask::Get(Datum::BytesInRate);
    "bytes_out_rate" Ask::Get(Datum::BytesOutRate);
    "clr_gpc0" Ask::Clear(Datum::Gpc0);
    "clr_gpc1" Ask::Clear(Datum::Gpc1);
    "conn_cnt" Ask::Get(Datum::ConnCnt);
    "conn_cur" Ask::Get(Datum::ConnCur);
    "conn_rate" Ask::Get(Datum::ConnRate);
    "gpc0" Ask::Get(Datum::Gpc0);
    "gpc0_rate" Ask::Get(Datum::Gpc0Rate);
    "gpc1" Ask::Get(Datum::Gpc1);
    "gpc1_rate" Ask::Get(Datum::Gpc1Rate);
    "gpt0" Ask::Get(Datum::Gpt0);
    "http_err_cnt" Ask::Get(Datum::HttpErrCnt);
    "http_err_rate" Ask::Get(Datum::HttpErrRate);
    "http_fail_cnt" Ask::Get(Datum::HttpFailCnt);
    "http_fail_rate" Ask::Get(Datum::HttpFailRate);
    "http_req_cnt" Ask::Get(Datum::HttpReqCnt);
    "http_req_rate" Ask::Get(Datum::HttpReqRate);
    "inc_gpc0" Ask::Count(Datum::Gpc0, Datum::Gpc0Rate);
    "inc_gpc1" Ask::Count(Datum::Gpc1, Datum::Gpc1Rate);
    "kbytes_in" Ask::Kib(Datum::BytesInCnt);
    "kbytes_out" Ask::Kib(Datum::BytesOutCnt);
    "server_id" Ask::Get(Datum::ServerId);
    "sess_cnt" Ask::Get(Datum::SessCnt);
    "sess_rate" Ask::Get(Datum::SessRate);
    "trackers" Ask::Trackers;
};

pub(super) const ARRAYS: &[ConverterRow] = arrays! {
    "clr_gpc" Ask::Clear(Datum::Gpc);
    "gpc" Ask::Get(Datum::Gpc);
    "gpc_rate" Ask::Get(Datum::GpcRate);
    "gpt" Ask::Get(Datum::Gpt);
    "inc_gpc" Ask::Count(Datum::Gpc, Datum::GpcRate);
};

pub(super) const ROWS: &[ConverterRow] = &[
    ConverterRow {
        names: &["in_table"],
        output: Type::Bool,
        apply: |args, sample, txn| Some(Sample::Bool(read(args, sample, txn, |_| ())?.is_some())),
        ..COUNTER
    },
    ConverterRow {
        names: &["table_expire"],
        apply: |args, sample, txn| time(args, read(args, sample, txn, |entry| entry.expires_in())?),
        ..TIME
    },
    ConverterRow {
        names: &["table_idle"],
        apply: |args, sample, txn| time(args, read(args, sample, txn, |entry| entry.idle())?),
        ..TIME
    },
];

/// Milliseconds; what is written for keys that are not there.
fn time<'s>(args: &Args, found: Option<u64>) -> Option<Sample<'s>> {
    found.map_or_else(|| args.int(1).map(Sample::Int), number)
}

/// What `ask` says of the entry; the inner `None`: there is none; the outer one: the sample is no key.
fn read<T>(args: &Args, sample: Sample<'_>, txn: &Txn<'_>, ask: impl FnOnce(Entry<'_>) -> T) -> Option<Option<T>> {
    let place = args.table(0)?;
    let key = key(place, sample, txn)?;
    Some(txn.env.table(place)?.with(&key, txn.millis(), ask))
}

fn key(place: usize, sample: Sample<'_>, txn: &Txn<'_>) -> Option<Key> {
    txn.env.table(place)?.spec().key.key(sample, txn.arena)
}

/// A number as a sample.
#[expect(clippy::unnecessary_wraps, reason = "draws give it so")]
pub(in crate::rule) fn number<'s>(value: u64) -> Option<Sample<'s>> {
    Some(Sample::Int(i64::try_from(value).unwrap_or(i64::MAX)))
}

/// A key of one table as a key of another kind of them, where that makes sense.
pub(in crate::rule) fn stand_in(key: Key, kind: KeyKind) -> Key {
    let arena = bumpalo::Bump::new();
    kind.key(key.sample(&arena), &arena).unwrap_or(key)
}
