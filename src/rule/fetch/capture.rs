//! What the frontend keeps of messages: captured values, unique ids (HAProxy manual §7.3.6).

use super::{ArgSpec, Args, Draw, FetchRow, Sample, Source, TEXT, Txn};
use crate::rule::{args::ArgKind, capture::Place};

const SLOT: FetchRow = FetchRow { args: &[ArgSpec::need(ArgKind::Int)], lasting: true, ..TEXT };

pub(super) const ROWS: &[FetchRow] = &[
    FetchRow {
        names: &["capture.req.hdr"],
        draw: Draw::One(|args, txn| captured(txn, Place::Request(slot(args)?))),
        ..SLOT
    },
    FetchRow {
        names: &["capture.res.hdr"],
        source: Source::Response,
        draw: Draw::One(|args, txn| captured(txn, Place::Response(slot(args)?))),
        ..SLOT
    },
    FetchRow {
        names: &["unique-id"],
        source: Source::Gateway,
        draw: Draw::One(|_, txn| txn.unique_id().map(Sample::Str)),
        ..TEXT
    },
];

fn slot(args: &Args) -> Option<usize> {
    usize::try_from(args.int(0)?).ok()
}

fn captured<'s>(txn: &'s Txn<'_>, place: Place) -> Option<Sample<'s>> {
    txn.notes.captured.value(place, txn.arena).map(Sample::Str)
}
