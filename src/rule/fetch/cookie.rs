//! Cookies (HAProxy manual §7.3.6): `Cookie` of requests, `Set-Cookie` of responses. Names are
//! case-sensitive; outside ACLs the last one of a name counts.

use super::{
    ArgSpec, Args, Draw, FetchRow, OfRequest, OfResponse, Sample, Side, Source, TEXT, Txn, Type,
    header::{lines, number, split_outside_quotes},
    joined,
};
use crate::rule::{args::ArgKind, sample::leading_int};

const NAME: &[ArgSpec] = &[ArgSpec::may(ArgKind::Text)];
const REQUEST: FetchRow = FetchRow { args: NAME, ..TEXT };
const RESPONSE: FetchRow = FetchRow { args: NAME, source: Source::Response, ..TEXT };

pub(super) const ROWS: &[FetchRow] = &[
    FetchRow { names: &["req.cook", "cook", "cookie"], draw: Draw::Many(last::<Sent>, each::<Sent>), ..REQUEST },
    FetchRow {
        names: &["req.cook_cnt", "cook_cnt"],
        output: Type::Int,
        draw: Draw::One(|args, txn| Some(number(cookies::<Sent>(args, txn).count()))),
        ..REQUEST
    },
    FetchRow {
        names: &["req.cook_val", "cook_val"],
        output: Type::Int,
        draw: Draw::Many(
            |args, txn| integer(last::<Sent>(args, txn)?),
            |args, txn, test| each::<Sent>(args, txn, &mut |sample| integer(sample).is_some_and(&mut *test)),
        ),
        ..REQUEST
    },
    // Ours: every cookie of the name as written. A cache key made of it tells apart what any server could,
    // whether that server knows quotes or not.
    FetchRow {
        names: &["req.cook_all"],
        args: &[ArgSpec::need(ArgKind::Text)],
        draw: Draw::One(|args, txn| {
            let name = args.text(0)?;
            let lines = lines(&txn.request.fields, Some(Sent::FIELD));
            joined(lines.flat_map(|line| written(name, line)), b";", txn.arena)
        }),
        ..REQUEST
    },
    FetchRow { names: &["res.cook", "scook", "set-cookie"], draw: Draw::Many(last::<Set>, each::<Set>), ..RESPONSE },
    FetchRow {
        names: &["res.cook_cnt", "scook_cnt"],
        output: Type::Int,
        draw: Draw::One(|args, txn| Some(number(cookies::<Set>(args, txn).count()))),
        ..RESPONSE
    },
    FetchRow {
        names: &["res.cook_val", "scook_val"],
        output: Type::Int,
        draw: Draw::Many(
            |args, txn| integer(last::<Set>(args, txn)?),
            |args, txn, test| each::<Set>(args, txn, &mut |sample| integer(sample).is_some_and(&mut *test)),
        ),
        ..RESPONSE
    },
];

/// Which field cookies stand in.
trait Jar {
    /// The message.
    type Side: Side;
    /// The field's name.
    const FIELD: &'static str;
    /// Whether one line may hold several cookies.
    const LIST: bool;
}

struct Sent;
struct Set;

impl Jar for Sent {
    type Side = OfRequest;
    const FIELD: &'static str = "cookie";
    const LIST: bool = true;
}

impl Jar for Set {
    type Side = OfResponse;
    const FIELD: &'static str = "set-cookie";
    const LIST: bool = false;
}

fn last<'s, J: Jar>(args: &'s Args, txn: &'s Txn<'_>) -> Option<Sample<'s>> {
    cookies::<J>(args, txn).last().map(Sample::Str)
}

fn each<'s, J: Jar>(args: &'s Args, txn: &'s Txn<'_>, test: &mut dyn FnMut(Sample<'s>) -> bool) -> bool {
    cookies::<J>(args, txn).map(Sample::Str).any(test)
}

/// The pieces of a line that may be cookies called `name`; all of the line when there are quotes in it.
fn written<'s>(name: &'s [u8], line: &'s [u8]) -> impl Iterator<Item = &'s [u8]> {
    let called =
        move |piece: &&[u8]| piece.split(|&byte| byte == b'=').next().is_some_and(|one| one.trim_ascii() == name);
    let separates = |byte: &u8| matches!(byte, b';' | b',');
    let quoted = memchr::memchr(b'"', line).is_some();
    let whole = (quoted && line.split(separates).any(|piece| called(&piece))).then_some(line);
    let pieces = (!quoted).then(|| line.split(|&byte| byte == b';'));
    let called_in = move |piece: &&'s [u8]| piece.split(separates).any(|one| called(&one));
    whole.into_iter().chain(pieces.into_iter().flatten().filter(called_in).map(<[u8]>::trim_ascii))
}

fn integer(sample: Sample<'_>) -> Option<Sample<'_>> {
    match sample {
        Sample::Str(text) => leading_int(text).map(Sample::Int),
        _ => None,
    }
}

/// The values of the cookies called as the first argument says, of all without one.
fn cookies<'s, J: Jar>(args: &'s Args, txn: &'s Txn<'_>) -> impl Iterator<Item = &'s [u8]> + use<'s, J> {
    let name = args.text(0);
    let lines = J::Side::fields(txn).map(|fields| lines(fields, Some(J::FIELD))).into_iter().flatten();
    lines
        .flat_map(|line| pairs(line, J::LIST))
        .filter(move |(cookie, _)| name.is_none_or(|name| *cookie == name))
        .map(|(_, value)| value)
}

/// `name=value` pairs of a line: at semicolons and commas outside quotes when it is a list, else the first one.
fn pairs(line: &[u8], list: bool) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let (pair, after) = split_outside_quotes(rest?, |byte| byte == b';' || (list && byte == b','));
        rest = after.filter(|_| list);
        Some(pair)
    })
    .filter_map(|pair| {
        let equals = memchr::memchr(b'=', pair)?;
        let (name, value) = pair.split_at_checked(equals)?;
        Some((name.trim_ascii(), value.get(1..)?.trim_ascii()))
    })
}
