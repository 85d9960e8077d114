//! Names in a head, and heads as a whole (HAProxy manual §7.3.5, §7.3.6). Names of fields are in lower case.

use bumpalo::{Bump, collections::Vec as BumpVec};

use super::{
    ArgSpec, Args, Draw, FetchRow, OfRequest, OfResponse, Sample, Side, Source, TEXT, Txn, Type, cookie,
    header::number, request,
};
use crate::{
    message::Fields,
    rule::{args::ArgKind, converter::text::lowered},
};

const NAMES: FetchRow = FetchRow { args: &[ArgSpec::may(ArgKind::Text)], ..TEXT };
const RESPONSE_NAMES: FetchRow = FetchRow { source: Source::Response, ..NAMES };

pub(super) const ROWS: &[FetchRow] = &[
    FetchRow { names: &["req.hdr_names"], draw: Draw::One(field_names::<OfRequest>), ..NAMES },
    FetchRow { names: &["res.hdr_names"], draw: Draw::One(field_names::<OfResponse>), ..RESPONSE_NAMES },
    FetchRow {
        names: &["req.cook_names"],
        draw: Draw::One(|args, txn| listed(cookie::sent_names(txn), args, txn.arena)),
        ..NAMES
    },
    FetchRow {
        names: &["res.cook_names"],
        draw: Draw::One(|args, txn| listed(cookie::set_names(txn)?, args, txn.arena)),
        ..RESPONSE_NAMES
    },
    FetchRow {
        names: &["req.hdrs"],
        output: Type::Bin,
        draw: Draw::One(|_, txn| Some(lines(&txn.request.fields, txn.arena))),
        ..TEXT
    },
    FetchRow {
        names: &["res.hdrs"],
        output: Type::Bin,
        source: Source::Response,
        draw: Draw::One(|_, txn| Some(lines(OfResponse::fields(txn)?, txn.arena))),
        ..TEXT
    },
    FetchRow { names: &["req.len", "req_len"], output: Type::Int, draw: Draw::One(length), ..TEXT },
];

/// The byte between names.
fn delimiter(args: &Args) -> u8 {
    args.text(0).and_then(<[u8]>::first).copied().unwrap_or(b',')
}

fn field_names<'s, S: Side>(args: &'s Args, txn: &'s Txn<'_>) -> Option<Sample<'s>> {
    let names = S::fields(txn)?.iter().map(|field| field.name);
    let Some(Sample::Str(text)) = listed(names, args, txn.arena) else { return None };
    Some(Sample::Str(lowered(text, txn.arena)))
}

/// The names with a byte between them; without any, nothing between nothing.
fn listed<'s>(names: impl Iterator<Item = &'s [u8]>, args: &Args, arena: &'s Bump) -> Option<Sample<'s>> {
    super::joined(names, &[delimiter(args)], arena).or(Some(Sample::Str(b"")))
}

/// The field lines with the empty line behind them.
fn lines<'s>(fields: &'s Fields, arena: &'s Bump) -> Sample<'s> {
    let mut text = BumpVec::new_in(arena);
    for field in fields.iter() {
        text.extend(field.name.iter().map(u8::to_ascii_lowercase));
        text.extend_from_slice(b": ");
        text.extend_from_slice(field.value);
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(b"\r\n");
    Sample::Bin(text.into_bump_slice())
}

/// The room that the head takes in HAProxy's buffers: 20 bytes and the words of the start line, names and values, and
/// one byte for the end.
fn length<'s>(args: &'s Args, txn: &'s Txn<'_>) -> Option<Sample<'s>> {
    let Sample::Str(url) = request::url(args, txn)? else { return None };
    let start = 20 + txn.request.method().len() + url.len() + "HTTP/1.1".len();
    let fields: usize = txn.request.fields.iter().map(|field| field.name.len() + field.value.len()).sum();
    Some(number(start + fields + 1))
}
