//! Converters that fill slots of captures (HAProxy manual §7.3.1).

use super::{Args, ConverterRow, Sample, TEXT, Txn, text};
use crate::rule::{
    args::{ArgKind, ArgSpec},
    capture::{Captures, Place, Slot},
};

const SLOT: &[ArgSpec] = &[ArgSpec::need(ArgKind::Int)];

pub(super) const ROWS: &[ConverterRow] = &[
    ConverterRow {
        names: &["capture-req"],
        args: SLOT,
        apply: |args, sample, txn| capture(args, sample, txn, |captures| &captures.request, Place::Request),
        ..TEXT
    },
    ConverterRow {
        names: &["capture-res"],
        args: SLOT,
        apply: |args, sample, txn| capture(args, sample, txn, |captures| &captures.response, Place::Response),
        ..TEXT
    },
];

/// Fails where the frontend has no such slot.
fn capture<'s>(
    args: &Args,
    sample: Sample<'s>,
    txn: &Txn<'_>,
    slots: fn(&Captures) -> &[Slot],
    place: fn(usize) -> Place,
) -> Option<Sample<'s>> {
    let at = usize::try_from(args.int(0)?).ok()?;
    let slot = slots(txn.env.captures()?).get(at)?;
    txn.notes.captured.set(place(at), text(sample)?, slot.len);
    Some(sample)
}
