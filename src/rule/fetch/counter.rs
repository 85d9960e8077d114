//! Counters of tables (HAProxy manual §7.3.2, §7.3.3): `sc0_X`, `sc1_X`, `sc2_X` and `sc_X(SLOT)` of what is tracked,
//! `src_X` of the client's address; how full tables are.

use super::{ArgSpec, Args, Draw, FetchRow, Sample, Source, TEXT, Txn, Type};
use crate::rule::{
    args::ArgKind,
    converter::table::{number, stand_in},
    table::{Datum, Entry, Key},
};

/// What is asked of an entry.
#[derive(Clone, Copy)]
pub(in crate::rule) enum Ask {
    /// A value.
    Get(Datum),
    /// A number of bytes, in KiB.
    Kib(Datum),
    /// Counts in a counter and its rate; the value then.
    Count(Datum, Datum),
    /// Sets a counter to 0; the value before.
    Clear(Datum),
    /// How many track it.
    Trackers,
}

impl Ask {
    /// Whether an entry that is not there is made, where a key is given.
    const fn makes(self) -> bool {
        matches!(self, Self::Count(..) | Self::Clear(_))
    }

    /// Asks; `None` when the value is not stored. `index`: see [`Entry::get`].
    pub(in crate::rule) fn of<'s>(self, entry: Entry<'_>, index: usize) -> Option<Sample<'s>> {
        number(match self {
            Self::Get(datum) => entry.get(datum, index)?,
            Self::Kib(datum) => entry.get(datum, index)? >> 10,
            Self::Count(counter, rate) => {
                let rate = entry.add(rate, index, 1);
                entry.add(counter, index, 1).or(rate).unwrap_or_default()
            }
            Self::Clear(datum) => entry.set(datum, index, 0)?,
            Self::Trackers => entry.trackers().into(),
        })
    }

    /// Asks of the entry of a key in a table; 0 when there is none.
    pub(in crate::rule) fn of_key<'s>(
        self,
        key: &Key,
        place: usize,
        index: usize,
        txn: &Txn<'_>,
    ) -> Option<Sample<'s>> {
        let (table, now) = (txn.env.table(place)?, txn.millis());
        let ask = |entry: Entry<'_>| self.of(entry, index);
        let asked = if self.makes() { table.with_made(key, now, ask) } else { table.with(key, now, ask) };
        asked.unwrap_or_else(|| number(0))
    }
}

/// What the exchange is tracked by in a slot; in another table the entry of the same key.
fn slot<'s>(slot: usize, ask: Ask, index: usize, other: Option<usize>, txn: &Txn<'_>) -> Option<Sample<'s>> {
    let now = txn.millis();
    match other {
        None => txn.tracked(slot, |tracked| ask.of(tracked.entry(now), index))?,
        Some(place) => {
            let key = txn.tracked(slot, |tracked| tracked.key().clone())?;
            let key = stand_in(key, txn.env.table(place)?.spec().key);
            // No entry is made there for a key that is tracked elsewhere.
            let asked = txn.env.table(place)?.with(&key, now, |entry| ask.of(entry, index));
            asked.unwrap_or_else(|| number(0))
        }
    }
}

/// The entry of the client's address.
fn source<'s>(ask: Ask, index: usize, place: Option<usize>, txn: &Txn<'_>) -> Option<Sample<'s>> {
    let place = place?;
    let address = Sample::Ip(txn.client.src?.ip());
    let key = txn.env.table(place)?.spec().key.key(address, txn.arena)?;
    ask.of_key(&key, place, index, txn)
}

const COUNTER: FetchRow = FetchRow { output: Type::Int, source: Source::Gateway, ..TEXT };
const OF_SLOT: &[ArgSpec] = &[ArgSpec::may(ArgKind::OtherTable)];
const OF_ANY_SLOT: &[ArgSpec] = &[ArgSpec::need(ArgKind::Slot), ArgSpec::may(ArgKind::OtherTable)];
const OF_SOURCE: &[ArgSpec] = &[ArgSpec::may(ArgKind::Table)];
const ELEMENT_OF_SLOT: &[ArgSpec] =
    &[ArgSpec::need(ArgKind::Index), ArgSpec::need(ArgKind::Slot), ArgSpec::may(ArgKind::OtherTable)];
const ELEMENT_OF_SOURCE: &[ArgSpec] = &[ArgSpec::need(ArgKind::Index), ArgSpec::may(ArgKind::Table)];

/// The five forms of each counter.
macro_rules! counters {
    ($($suffix:literal $ask:expr;)*) => {
        &[$(
            FetchRow {
                names: &[concat!("sc0_", $suffix)],
                args: OF_SLOT,
                draw: Draw::One(|args, txn| slot(0, $ask, 0, args.table(0), txn)),
                ..COUNTER
            },
            FetchRow {
                names: &[concat!("sc1_", $suffix)],
                args: OF_SLOT,
                draw: Draw::One(|args, txn| slot(1, $ask, 0, args.table(0), txn)),
                ..COUNTER
            },
            FetchRow {
                names: &[concat!("sc2_", $suffix)],
                args: OF_SLOT,
                draw: Draw::One(|args, txn| slot(2, $ask, 0, args.table(0), txn)),
                ..COUNTER
            },
            FetchRow {
                names: &[concat!("sc_", $suffix)],
                args: OF_ANY_SLOT,
                draw: Draw::One(|args, txn| slot(args.place(0)?, $ask, 0, args.table(1), txn)),
                ..COUNTER
            },
            FetchRow {
                names: &[concat!("src_", $suffix)],
                args: OF_SOURCE,
                draw: Draw::One(|args, txn| source($ask, 0, args.table(0), txn)),
                ..COUNTER
            },
        )*]
    };
}

/// The two forms of each array of counters.
macro_rules! arrays {
    ($($suffix:literal $ask:expr;)*) => {
        &[$(
            FetchRow {
                names: &[concat!("sc_", $suffix)],
                args: ELEMENT_OF_SLOT,
                draw: Draw::One(|args, txn| slot(args.place(1)?, $ask, args.place(0)?, args.table(2), txn)),
                ..COUNTER
            },
            FetchRow {
                names: &[concat!("src_", $suffix)],
                args: ELEMENT_OF_SOURCE,
                draw: Draw::One(|args, txn| source($ask, args.place(0)?, args.table(1), txn)),
                ..COUNTER
            },
        )*]
    };
}

pub(super) const COUNTERS: &[FetchRow] = counters! {
    "bytes_in_rate" Ask::Get(Datum::BytesInRate);
    "bytes_out_rate" Ask::Get(Datum::BytesOutRate);
    "clr_gpc0" Ask::Clear(Datum::Gpc0);
    "clr_gpc1" Ask::Clear(Datum::Gpc1);
    "conn_cnt" Ask::Get(Datum::ConnCnt);
    "conn_cur" Ask::Get(Datum::ConnCur);
    "conn_rate" Ask::Get(Datum::ConnRate);
    "get_gpc0" Ask::Get(Datum::Gpc0);
    "get_gpc1" Ask::Get(Datum::Gpc1);
    "get_gpt0" Ask::Get(Datum::Gpt0);
    "gpc0_rate" Ask::Get(Datum::Gpc0Rate);
    "gpc1_rate" Ask::Get(Datum::Gpc1Rate);
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
    "sess_cnt" Ask::Get(Datum::SessCnt);
    "sess_rate" Ask::Get(Datum::SessRate);
};

pub(super) const ARRAYS: &[FetchRow] = arrays! {
    "clr_gpc" Ask::Clear(Datum::Gpc);
    "get_gpc" Ask::Get(Datum::Gpc);
    "get_gpt" Ask::Get(Datum::Gpt);
    "gpc_rate" Ask::Get(Datum::GpcRate);
    "inc_gpc" Ask::Count(Datum::Gpc, Datum::GpcRate);
};

const TRACKED: FetchRow = FetchRow { output: Type::Bool, ..COUNTER };
const KEY: FetchRow = FetchRow { output: Type::Any, ..COUNTER };
const TABLE: FetchRow = FetchRow { args: &[ArgSpec::may(ArgKind::Table)], ..COUNTER };

pub(super) const ROWS: &[FetchRow] = &[
    FetchRow { names: &["sc0_tracked"], args: OF_SLOT, draw: Draw::One(|_, txn| tracked(0, txn)), ..TRACKED },
    FetchRow { names: &["sc1_tracked"], args: OF_SLOT, draw: Draw::One(|_, txn| tracked(1, txn)), ..TRACKED },
    FetchRow { names: &["sc2_tracked"], args: OF_SLOT, draw: Draw::One(|_, txn| tracked(2, txn)), ..TRACKED },
    FetchRow {
        names: &["sc_tracked"],
        args: OF_ANY_SLOT,
        draw: Draw::One(|args, txn| tracked(args.place(0)?, txn)),
        ..TRACKED
    },
    FetchRow {
        names: &["sc0_trackers"],
        args: OF_SLOT,
        draw: Draw::One(|args, txn| slot(0, Ask::Trackers, 0, args.table(0), txn)),
        ..COUNTER
    },
    FetchRow {
        names: &["sc1_trackers"],
        args: OF_SLOT,
        draw: Draw::One(|args, txn| slot(1, Ask::Trackers, 0, args.table(0), txn)),
        ..COUNTER
    },
    FetchRow {
        names: &["sc2_trackers"],
        args: OF_SLOT,
        draw: Draw::One(|args, txn| slot(2, Ask::Trackers, 0, args.table(0), txn)),
        ..COUNTER
    },
    FetchRow {
        names: &["sc_trackers"],
        args: OF_ANY_SLOT,
        draw: Draw::One(|args, txn| slot(args.place(0)?, Ask::Trackers, 0, args.table(1), txn)),
        ..COUNTER
    },
    FetchRow { names: &["sc0_key"], draw: Draw::One(|_, txn| key(0, txn)), ..KEY },
    FetchRow { names: &["sc1_key"], draw: Draw::One(|_, txn| key(1, txn)), ..KEY },
    FetchRow { names: &["sc2_key"], draw: Draw::One(|_, txn| key(2, txn)), ..KEY },
    FetchRow {
        names: &["sc_key"],
        args: &[ArgSpec::need(ArgKind::Slot)],
        draw: Draw::One(|args, txn| key(args.place(0)?, txn)),
        ..KEY
    },
    FetchRow { names: &["src_updt_conn_cnt"], args: OF_SOURCE, draw: Draw::One(update), ..COUNTER },
    FetchRow {
        names: &["table_cnt"],
        draw: Draw::One(|args, txn| number(txn.env.table(args.table(0)?)?.fill(txn.millis()).0.try_into().ok()?)),
        ..TABLE
    },
    FetchRow {
        names: &["table_avl"],
        draw: Draw::One(|args, txn| number(txn.env.table(args.table(0)?)?.fill(txn.millis()).1.try_into().ok()?)),
        ..TABLE
    },
];

fn tracked<'s>(slot: usize, txn: &Txn<'_>) -> Option<Sample<'s>> {
    Some(Sample::Bool(txn.tracked(slot, |_| ()).is_some()))
}

fn key<'s>(slot: usize, txn: &'s Txn<'_>) -> Option<Sample<'s>> {
    txn.tracked(slot, |tracked| tracked.key().sample(txn.arena))
}

/// Counts a connection of the client's address; what is not stored gives nothing.
fn update<'s>(args: &'s Args, txn: &'s Txn<'_>) -> Option<Sample<'s>> {
    let table = txn.env.table(args.table(0)?)?;
    let key = table.spec().key.key(Sample::Ip(txn.client.src?.ip()), txn.arena)?;
    table.with_made(&key, txn.millis(), |entry| entry.add(Datum::ConnCnt, 0, 1))?.and_then(number)
}
