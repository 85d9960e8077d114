//! How far the exchange has come: times, sizes, how it ended (HAProxy manual §7.3.3, §7.3.6).

use super::{Draw, FetchRow, Sample, Source, TEXT, Type};
use crate::rule::progress::sample;

const NUMBER: FetchRow = FetchRow { output: Type::Int, source: Source::Delivery, ..TEXT };
/// What is known from the beginning.
const EARLY: FetchRow = FetchRow { source: Source::Gateway, ..NUMBER };
const WORD: FetchRow = FetchRow { source: Source::Delivery, ..TEXT };

pub(super) const ROWS: &[FetchRow] = &[
    FetchRow {
        names: &["fc.timer.handshake"],
        draw: Draw::One(|_, txn| Some(Sample::Int(txn.notes.progress.handshake.into()))),
        ..EARLY
    },
    FetchRow {
        names: &["req.timer.idle"],
        draw: Draw::One(|_, txn| Some(Sample::Int(txn.notes.progress.idle.into()))),
        ..EARLY
    },
    FetchRow {
        names: &["req.timer.hdr"],
        draw: Draw::One(|_, txn| Some(Sample::Int(txn.notes.progress.head.into()))),
        ..EARLY
    },
    FetchRow {
        names: &["req.timer.tq"],
        draw: Draw::One(|_, txn| {
            let progress = &txn.notes.progress;
            Some(Sample::Int((progress.before() + progress.head).into()))
        }),
        ..EARLY
    },
    FetchRow {
        names: &["req.timer.queue"],
        draw: Draw::One(|_, txn| Some(sample(txn.notes.progress.queue))),
        ..NUMBER
    },
    FetchRow {
        names: &["bc.timer.connect"],
        draw: Draw::One(|_, txn| Some(sample(txn.notes.progress.connect))),
        ..NUMBER
    },
    FetchRow {
        names: &["res.timer.hdr"],
        draw: Draw::One(|_, txn| Some(sample(txn.notes.progress.response))),
        ..NUMBER
    },
    FetchRow {
        names: &["res.timer.data"],
        draw: Draw::One(|_, txn| Some(sample(txn.notes.progress.data()))),
        ..NUMBER
    },
    FetchRow {
        names: &["txn.timer.total"],
        draw: Draw::One(|_, txn| Some(Sample::Int(txn.notes.progress.active().into()))),
        ..NUMBER
    },
    FetchRow {
        names: &["txn.timer.user"],
        draw: Draw::One(|_, txn| {
            let progress = &txn.notes.progress;
            Some(Sample::Int(progress.total().saturating_sub(progress.idle).into()))
        }),
        ..NUMBER
    },
    FetchRow {
        names: &["fc.timer.total"],
        draw: Draw::One(|_, txn| Some(Sample::Int(txn.notes.progress.total().into()))),
        ..NUMBER
    },
    FetchRow {
        names: &["txn.sess_term_state"],
        draw: Draw::One(|_, txn| {
            let state = txn.notes.progress.end.map_or(*b"--", |end| end.state);
            Some(Sample::Str(txn.arena.alloc_slice_copy(&state)))
        }),
        ..WORD
    },
    FetchRow {
        names: &["txn.conn_retries"],
        draw: Draw::One(|_, txn| Some(Sample::Int(txn.notes.progress.retries.into()))),
        ..NUMBER
    },
    FetchRow { names: &["txn.id32"], draw: Draw::One(|_, txn| Some(Sample::Int(txn.number().into()))), ..EARLY },
    // How Tidegate counts the request, and why it was no hit: once it is over.
    FetchRow {
        names: &["txn.outcome"],
        draw: Draw::One(|_, txn| Some(Sample::Str(txn.notes.progress.end?.outcome.as_bytes()))),
        ..WORD
    },
    FetchRow {
        names: &["txn.reason"],
        draw: Draw::One(|_, txn| Some(Sample::Str(txn.notes.progress.end?.reason?.as_bytes()))),
        ..WORD
    },
    FetchRow {
        names: &["bytes_in", "req.bytes_in"],
        draw: Draw::One(|_, txn| Some(count(txn.notes.progress.end?.received))),
        ..NUMBER
    },
    FetchRow {
        names: &["bytes_out", "res.bytes_out"],
        draw: Draw::One(|_, txn| Some(count(txn.notes.progress.end?.sent))),
        ..NUMBER
    },
];

fn count<'s>(value: u64) -> Sample<'s> {
    Sample::Int(i64::try_from(value).unwrap_or(i64::MAX))
}
