//! Parameters of the query (HAProxy manual §7.3.6), not decoded: `url_param(name[,delim[,i]])`.

use bumpalo::collections::Vec as BumpVec;

use super::{ArgSpec, Args, Draw, FetchRow, Sample, TEXT, Txn, Type, joined};
use crate::rule::{args::ArgKind, sample::field_int};

const REQUEST: FetchRow = FetchRow {
    args: &[ArgSpec::may(ArgKind::Text), ArgSpec::may(ArgKind::Text), ArgSpec::may(ArgKind::Word(&["i"]))],
    ..TEXT
};

pub(super) const ROWS: &[FetchRow] = &[
    FetchRow { names: &["url_param", "urlp"], draw: Draw::Many(first, each), ..REQUEST },
    FetchRow {
        names: &["urlp_val", "url_param_val"],
        output: Type::Int,
        draw: Draw::Many(
            |args, txn| params(args, txn).next().map(field_int).map(Sample::Int),
            |args, txn, test| params(args, txn).map(field_int).map(Sample::Int).any(test),
        ),
        ..REQUEST
    },
    // Ours: every parameter of the name as written. A cache key made of it tells apart what any server could,
    // whatever that server takes for separators, escapes and lists.
    FetchRow {
        names: &["url_param_all"],
        args: &[ArgSpec::need(ArgKind::Text)],
        draw: Draw::One(|args, txn| joined(written(args.text(0)?, txn.request.query()?), b"&", txn.arena)),
        ..TEXT
    },
];

fn first<'s>(args: &'s Args, txn: &'s Txn<'_>) -> Option<Sample<'s>> {
    params(args, txn).next().map(Sample::Str)
}

fn each<'s>(args: &'s Args, txn: &'s Txn<'_>, test: &mut dyn FnMut(Sample<'s>) -> bool) -> bool {
    params(args, txn).map(Sample::Str).any(test)
}

/// The values of the parameters called as the first argument says, of all without one.
fn params<'s>(args: &'s Args, txn: &'s Txn<'_>) -> impl Iterator<Item = &'s [u8]> + use<'s> {
    let name = args.text(0);
    let delimiter = args.text(1).and_then(<[u8]>::first).copied().unwrap_or(b'?');
    let any_case = args.text(2).is_some();
    let list = parameter_list(txn, delimiter).unwrap_or_default();
    let ends = move |&byte: &u8| byte == b'&' || byte == b';' || byte == delimiter;
    list.split(ends).filter_map(move |pair| value_of(pair, name, any_case))
}

/// The value in a pair that is called `name`, if it has to be called so.
pub(super) fn value_of<'s>(pair: &'s [u8], name: Option<&[u8]>, any_case: bool) -> Option<&'s [u8]> {
    let (key, value) = pair.split_at_checked(memchr::memchr(b'=', pair)?)?;
    let called = name.is_none_or(|name| if any_case { key.eq_ignore_ascii_case(name) } else { key == name });
    value.get(1..).filter(|_| called)
}

/// What stands behind the first `delimiter` of the target.
fn parameter_list<'s>(txn: &'s Txn<'_>, delimiter: u8) -> Option<&'s [u8]> {
    let request = &*txn.request;
    if delimiter == b'?' {
        return request.query();
    }
    let at = memchr::memchr(delimiter, request.path());
    let Some(query) = request.query() else { return request.path().get(at? + 1..) };
    match at {
        None => query.get(memchr::memchr(delimiter, query)? + 1..),
        Some(at) => {
            let mut list = BumpVec::new_in(txn.arena);
            list.extend_from_slice(request.path().get(at + 1..)?);
            list.push(b'?');
            list.extend_from_slice(query);
            Some(list.into_bump_slice())
        }
    }
}

/// The pieces of the query between `&` in which a parameter may be called `name`: at their start or behind a `;`,
/// escaped or not, as a list (`name[]`) or not.
fn written<'s>(name: &'s [u8], query: &'s [u8]) -> impl Iterator<Item = &'s [u8]> {
    query.split(|&byte| byte == b'&').filter(|piece| piece.split(|&byte| byte == b';').any(|one| is_called(one, name)))
}

fn is_called(parameter: &[u8], name: &[u8]) -> bool {
    let mut written = parameter.split(|&byte| byte == b'=').next().unwrap_or_default();
    for &expected in name {
        let Some((found, rest)) = decoded(written) else { return false };
        if found != expected {
            return false;
        }
        written = rest;
    }
    decoded(written).is_none_or(|(next, _)| next == b'[')
}

/// The first byte of a text after percent-decoding, and what follows it.
fn decoded(text: &[u8]) -> Option<(u8, &[u8])> {
    let (&first, rest) = text.split_first()?;
    let digit = |at: usize| rest.get(at).and_then(|&byte| char::from(byte).to_digit(16));
    Some(match (first, digit(0), digit(1)) {
        (b'%', Some(high), Some(low)) => {
            (u8::try_from(high * 16 + low).unwrap_or_default(), rest.get(2..).unwrap_or_default())
        }
        (b'+', ..) => (b' ', rest),
        _ => (first, rest),
    })
}
