//! Cookies (HAProxy manual §7.3.6): `Cookie` of requests, `Set-Cookie` of responses. Names are
//! case-sensitive; outside ACLs the last one of a name counts, and the first of all where none is named.

use super::{
    ArgSpec, Args, Draw, FetchRow, OfRequest, OfResponse, Sample, Side, Source, TEXT, Txn, Type,
    header::{Elements, lines, number, split_outside_quotes},
    joined,
};
use crate::rule::{args::ArgKind, sample::field_int};

const NAME: &[ArgSpec] = &[ArgSpec::may(ArgKind::Text)];
const REQUEST: FetchRow = FetchRow { args: NAME, ..TEXT };
const RESPONSE: FetchRow = FetchRow { args: NAME, source: Source::Response, ..TEXT };

pub(super) const ROWS: &[FetchRow] = &[
    FetchRow { names: &["req.cook", "cook", "cookie"], draw: texts::<Sent>(), ..REQUEST },
    FetchRow { names: &["req.cook_cnt", "cook_cnt"], output: Type::Int, draw: Draw::One(count::<Sent>), ..REQUEST },
    FetchRow { names: &["req.cook_val", "cook_val"], output: Type::Int, draw: numbers::<Sent>(), ..REQUEST },
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
    FetchRow {
        names: &["res.cook", "scook", "set-cookie"],
        response_names: &["cookie"],
        draw: texts::<Set>(),
        ..RESPONSE
    },
    FetchRow { names: &["res.cook_cnt", "scook_cnt"], output: Type::Int, draw: Draw::One(count::<Set>), ..RESPONSE },
    FetchRow { names: &["res.cook_val", "scook_val"], output: Type::Int, draw: numbers::<Set>(), ..RESPONSE },
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

const fn texts<J: Jar>() -> Draw {
    Draw::Many(
        |args, txn| chosen::<J>(args, txn).map(Sample::Str),
        |args, txn, test| cookies::<J>(args, txn).map(Sample::Str).any(test),
    )
}

const fn numbers<J: Jar>() -> Draw {
    Draw::Many(
        |args, txn| chosen::<J>(args, txn).map(field_int).map(Sample::Int),
        |args, txn, test| cookies::<J>(args, txn).map(field_int).map(Sample::Int).any(test),
    )
}

fn count<'s, J: Jar>(args: &'s Args, txn: &'s Txn<'_>) -> Option<Sample<'s>> {
    Some(number(cookies::<J>(args, txn).count()))
}

/// The last one of the name; without a name, the first of all.
fn chosen<'s, J: Jar>(args: &'s Args, txn: &'s Txn<'_>) -> Option<&'s [u8]> {
    let mut values = cookies::<J>(args, txn);
    if args.text(0).is_some() { values.last() } else { values.next() }
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

/// The values of the cookies called as the first argument says, of all without one.
fn cookies<'s, J: Jar>(args: &'s Args, txn: &'s Txn<'_>) -> impl Iterator<Item = &'s [u8]> + use<'s, J> {
    all::<J>(args.text(0).unwrap_or_default(), txn).map(|(_, value)| value)
}

/// The names of all cookies that the client sent.
pub(super) fn sent_names<'s>(txn: &'s Txn<'_>) -> impl Iterator<Item = &'s [u8]> + use<'s> {
    all::<Sent>(b"", txn).map(|(name, _)| name)
}

/// The names of all cookies that the response sets; `None` while there is none.
pub(super) fn set_names<'s>(txn: &'s Txn<'_>) -> Option<impl Iterator<Item = &'s [u8]> + use<'s>> {
    let lines = lines(OfResponse::fields(txn)?, Some(Set::FIELD));
    Some(lines.filter_map(|line| Pairs { rest: line, name: b"", list: false }.next()).map(|(name, _)| name))
}

/// The cookies called `name`, all when that is empty. HAProxy splits lines at commas before it looks for cookies,
/// those of `Set-Cookie` too.
fn all<'s, J: Jar>(name: &'s [u8], txn: &'s Txn<'_>) -> impl Iterator<Item = (&'s [u8], &'s [u8])> + use<'s, J> {
    let lines = J::Side::fields(txn).map(|fields| lines(fields, Some(J::FIELD))).into_iter().flatten();
    lines.flat_map(Elements::of).flat_map(move |line| Pairs { rest: line, name, list: J::LIST })
}

/// The `name=value` pairs of a line that are called `name`, of any name when that is empty. Without `list`, the line is
/// over at the first pair of another name: what follows are attributes of a cookie.
struct Pairs<'s> {
    rest: &'s [u8],
    name: &'s [u8],
    list: bool,
}

impl<'s> Iterator for Pairs<'s> {
    type Item = (&'s [u8], &'s [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        // HAProxy does not look where nothing but the name and its equals sign has room.
        while self.rest.len() > self.name.len() + 1 {
            let line = self.rest;
            let end = line.iter().position(|&byte| matches!(byte, b'=' | b';') || (self.list && byte == b','));
            let Some(end) = end else { break };
            let (name, rest) = (line.get(..end)?.trim_ascii(), line.get(end + 1..)?);
            if line.get(end) != Some(&b'=') {
                self.rest = rest;
                continue;
            }
            let (value, after) = split_outside_quotes(rest, |byte| matches!(byte, b';' | b','));
            self.rest = after.unwrap_or_default();
            if name.starts_with(b"$") {
                continue;
            }
            if self.name.is_empty() || self.name == name {
                return Some((name, value.trim_ascii()));
            }
            if !self.list {
                break;
            }
        }
        self.rest = &[];
        None
    }
}
