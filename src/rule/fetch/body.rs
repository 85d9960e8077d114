//! The request's body, as far as it was read before the rules ran (HAProxy manual §7.3.6): all of it behind
//! `option http-buffer-request` or `wait-for-body`, else what came with the head.

use super::{ArgSpec, Args, Draw, FetchRow, Sample, Source, TEXT, Txn, Type, param::value_of};
use crate::{
    message::{Framing, Request},
    rule::args::ArgKind,
};

const BODY: FetchRow = FetchRow { source: Source::Body, ..TEXT };

pub(super) const ROWS: &[FetchRow] = &[
    FetchRow {
        names: &["req.body"],
        output: Type::Bin,
        draw: Draw::One(|_, txn| Some(Sample::Bin(&txn.request.ahead.bytes))),
        ..BODY
    },
    FetchRow {
        names: &["req.body_len"],
        output: Type::Int,
        draw: Draw::One(|_, txn| Some(Sample::Int(count(txn.request.ahead.bytes.len())))),
        ..BODY
    },
    FetchRow {
        names: &["req.body_size"],
        output: Type::Int,
        draw: Draw::One(|_, txn| Some(Sample::Int(size(txn.request)))),
        ..BODY
    },
    FetchRow {
        names: &["req.body_param"],
        args: &[ArgSpec::may(ArgKind::Text), ArgSpec::may(ArgKind::Word(&["i"]))],
        output: Type::Bin,
        draw: Draw::Many(
            |args, txn| params(args, txn).next().map(Sample::Bin),
            |args, txn, test| params(args, txn).map(Sample::Bin).any(test),
        ),
        ..BODY
    },
];

/// What `Content-Length` announces; without one, what was read.
fn size(request: &Request) -> i64 {
    match request.framing {
        Framing::Length(length) => i64::try_from(length).unwrap_or(i64::MAX),
        _ => count(request.ahead.bytes.len()),
    }
}

fn count(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// The values of a form's fields, not decoded.
fn params<'s>(args: &'s Args, txn: &'s Txn<'_>) -> impl Iterator<Item = &'s [u8]> + use<'s> {
    let (name, any_case) = (args.text(0), args.text(1).is_some());
    let pairs = txn.request.ahead.bytes.split(|&byte| byte == b'&' || byte == b';');
    pairs.filter_map(move |pair| value_of(pair, name, any_case))
}
