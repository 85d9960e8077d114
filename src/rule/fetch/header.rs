//! Header fields (HAProxy manual §7.3.6). `hdr` splits lines at commas, `fhdr` does not. Without a name, counts are
//! those of every line, and there is no value.

use std::net::{IpAddr, Ipv4Addr};

use super::{
    ArgSpec, Args, Draw, FetchRow, OfRequest, OfResponse, Sample, Side, Source, TEXT, Txn, Type, joined, pick,
};
use crate::{
    message::Fields,
    rule::{args::ArgKind, sample::field_int},
};

const NAME: &[ArgSpec] = &[ArgSpec::may(ArgKind::Field)];
const NAME_OCCURRENCE: &[ArgSpec] = &[ArgSpec::may(ArgKind::Field), ArgSpec::may(ArgKind::Int)];

const REQUEST: FetchRow = FetchRow { args: NAME_OCCURRENCE, ..TEXT };
const RESPONSE: FetchRow = FetchRow { args: NAME_OCCURRENCE, source: Source::Response, ..TEXT };

pub(super) const ROWS: &[FetchRow] = &[
    FetchRow { names: &["req.hdr", "hdr"], draw: element::<OfRequest, Text>(), ..REQUEST },
    FetchRow { names: &["req.fhdr"], draw: Draw::Many(line::<OfRequest>, each_line::<OfRequest>), ..REQUEST },
    FetchRow { names: &["req.hdr_val", "hdr_val"], output: Type::Int, draw: element::<OfRequest, Number>(), ..REQUEST },
    FetchRow { names: &["req.hdr_ip", "hdr_ip"], output: Type::Ip, draw: element::<OfRequest, Address>(), ..REQUEST },
    FetchRow {
        names: &["req.hdr_cnt", "hdr_cnt"],
        args: NAME,
        output: Type::Int,
        draw: Draw::One(count::<OfRequest>),
        ..REQUEST
    },
    FetchRow {
        names: &["req.fhdr_cnt"],
        args: NAME,
        output: Type::Int,
        draw: Draw::One(count_lines::<OfRequest>),
        ..REQUEST
    },
    // Ours: all lines as one value, so that a cache key leaves none out.
    FetchRow { names: &["req.fhdr_all"], args: NAME, draw: Draw::One(all_lines::<OfRequest>), ..REQUEST },
    FetchRow { names: &["res.hdr", "shdr"], response_names: &["hdr"], draw: element::<OfResponse, Text>(), ..RESPONSE },
    FetchRow { names: &["res.fhdr"], draw: Draw::Many(line::<OfResponse>, each_line::<OfResponse>), ..RESPONSE },
    FetchRow {
        names: &["res.hdr_val", "shdr_val"],
        response_names: &["hdr_val"],
        output: Type::Int,
        draw: element::<OfResponse, Number>(),
        ..RESPONSE
    },
    FetchRow {
        names: &["res.hdr_ip", "shdr_ip"],
        response_names: &["hdr_ip"],
        output: Type::Ip,
        draw: element::<OfResponse, Address>(),
        ..RESPONSE
    },
    FetchRow {
        names: &["res.hdr_cnt", "shdr_cnt"],
        response_names: &["hdr_cnt"],
        args: NAME,
        output: Type::Int,
        draw: Draw::One(count::<OfResponse>),
        ..RESPONSE
    },
    FetchRow {
        names: &["res.fhdr_cnt"],
        args: NAME,
        output: Type::Int,
        draw: Draw::One(count_lines::<OfResponse>),
        ..RESPONSE
    },
    // Ours: surrogate keys stand in any of the lines.
    FetchRow { names: &["res.fhdr_all"], args: NAME, draw: Draw::One(all_lines::<OfResponse>), ..RESPONSE },
];

/// How an element is read.
trait Read {
    /// The sample; `None` when the element is none of the kind.
    fn read(element: &[u8]) -> Option<Sample<'_>>;
}

struct Text;
struct Number;
struct Address;

impl Read for Text {
    fn read(element: &[u8]) -> Option<Sample<'_>> {
        Some(Sample::Str(element))
    }
}

impl Read for Number {
    fn read(element: &[u8]) -> Option<Sample<'_>> {
        Some(Sample::Int(field_int(element)))
    }
}

impl Read for Address {
    /// An address; an IPv4 address may have a port.
    fn read(element: &[u8]) -> Option<Sample<'_>> {
        ipv4(element).map(IpAddr::V4).or_else(|| std::str::from_utf8(element).ok()?.parse().ok()).map(Sample::Ip)
    }
}

/// Four decimal numbers, zeros in front of them allowed, and perhaps a port.
fn ipv4(text: &[u8]) -> Option<Ipv4Addr> {
    let mut pieces = text.splitn(2, |&byte| byte == b':');
    let (address, port) = (pieces.next()?, pieces.next());
    if port.is_some_and(|port| decimal(port).is_none_or(|port| port > u16::MAX.into())) {
        return None;
    }
    let mut octets = [0; 4];
    let mut numbers = address.split(|&byte| byte == b'.');
    for octet in &mut octets {
        *octet = u8::try_from(decimal(numbers.next()?)?).ok()?;
    }
    numbers.next().is_none().then(|| octets.into())
}

/// A number of nothing but digits.
pub(super) fn decimal(text: &[u8]) -> Option<u32> {
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    if digits { std::str::from_utf8(text).ok()?.parse().ok() } else { None }
}

const fn element<S: Side, R: Read>() -> Draw {
    Draw::Many(one_element::<S, R>, each_element::<S, R>)
}

fn one_element<'s, S: Side, R: Read>(args: &'s Args, txn: &'s Txn<'_>) -> Option<Sample<'s>> {
    let elements = lines(S::fields(txn)?, Some(args.field(0)?)).flat_map(Elements::of);
    R::read(pick(elements, args.int(1).unwrap_or(0))?)
}

fn each_element<'s, S: Side, R: Read>(
    args: &'s Args,
    txn: &'s Txn<'_>,
    test: &mut dyn FnMut(Sample<'s>) -> bool,
) -> bool {
    if args.int(1).is_some() {
        return one_element::<S, R>(args, txn).is_some_and(test);
    }
    let (Some(fields), Some(name)) = (S::fields(txn), args.field(0)) else { return false };
    lines(fields, Some(name)).flat_map(Elements::of).filter_map(R::read).any(test)
}

fn line<'s, S: Side>(args: &'s Args, txn: &'s Txn<'_>) -> Option<Sample<'s>> {
    pick(lines(S::fields(txn)?, Some(args.field(0)?)), args.int(1).unwrap_or(0)).map(Sample::Str)
}

fn each_line<'s, S: Side>(args: &'s Args, txn: &'s Txn<'_>, test: &mut dyn FnMut(Sample<'s>) -> bool) -> bool {
    if args.int(1).is_some() {
        return line::<S>(args, txn).is_some_and(test);
    }
    let (Some(fields), Some(name)) = (S::fields(txn), args.field(0)) else { return false };
    lines(fields, Some(name)).map(Sample::Str).any(test)
}

fn all_lines<'s, S: Side>(args: &'s Args, txn: &'s Txn<'_>) -> Option<Sample<'s>> {
    joined(lines(S::fields(txn)?, args.field(0)), b",", txn.arena)
}

fn count<'s, S: Side>(args: &'s Args, txn: &'s Txn<'_>) -> Option<Sample<'s>> {
    Some(number(lines(S::fields(txn)?, args.field(0)).flat_map(Elements::of).count()))
}

fn count_lines<'s, S: Side>(args: &'s Args, txn: &'s Txn<'_>) -> Option<Sample<'s>> {
    Some(number(lines(S::fields(txn)?, args.field(0)).count()))
}

/// A count as a sample.
pub(super) fn number<'s>(count: usize) -> Sample<'s> {
    Sample::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

/// The values of the lines called `name`, of all lines without one.
pub(super) fn lines<'s>(fields: &'s Fields, name: Option<&'s str>) -> impl Iterator<Item = &'s [u8]> + Clone {
    fields.iter().filter(move |field| name.is_none_or(|name| field.is(name))).map(|field| field.value)
}

/// The comma-separated elements of a line, trimmed. Empty ones count, unlike in RFC 9110 §5.6.1:
/// `hdr_cnt` of `a,,b` is 3.
#[derive(Clone)]
pub(super) struct Elements<'a> {
    rest: Option<&'a [u8]>,
}

impl<'a> Elements<'a> {
    pub(super) fn of(line: &'a [u8]) -> Self {
        Self { rest: Some(line) }
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let text = self.rest?;
        let (element, rest) = split_outside_quotes(text, |byte| byte == b',');
        self.rest = rest;
        Some(element.trim_ascii())
    }
}

/// The text up to the first byte outside quotes that is a separator, and the text after that byte.
pub(super) fn split_outside_quotes(text: &[u8], separator: impl Fn(u8) -> bool) -> (&[u8], Option<&[u8]>) {
    let (mut quoted, mut escaped) = (false, false);
    let end = text.iter().position(|&byte| {
        if escaped {
            escaped = false;
        } else if quoted {
            escaped = byte == b'\\';
            quoted = byte != b'"';
        } else if byte == b'"' {
            quoted = true;
        } else {
            return separator(byte);
        }
        false
    });
    match end {
        Some(at) => (text.get(..at).unwrap_or_default(), text.get(at + 1..)),
        None => (text, None),
    }
}
