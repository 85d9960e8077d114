//! Texts cut, joined and changed letter by letter (HAProxy manual §7.3.1).

use bumpalo::{Bump, collections::Vec as BumpVec};

use super::{Arg, ArgFault, Args, ConverterRow, Sample, TEXT, Txn, Type, bytes, text};
use crate::rule::args::{ArgKind, ArgSpec};

const CHARS: &[ArgSpec] = &[ArgSpec::may(ArgKind::Text)];

pub(super) const ROWS: &[ConverterRow] = &[
    ConverterRow {
        names: &["lower"],
        apply: |_, sample, txn| Some(Sample::Str(lowered(text(sample)?, txn.arena))),
        ..TEXT
    },
    ConverterRow {
        names: &["upper"],
        apply: |_, sample, txn| {
            let from = text(sample)?;
            if !from.iter().any(u8::is_ascii_lowercase) {
                return Some(sample);
            }
            let to = txn.arena.alloc_slice_copy(from);
            to.make_ascii_uppercase();
            Some(Sample::Str(to))
        },
        ..TEXT
    },
    ConverterRow {
        names: &["length"],
        output: Type::Int,
        apply: |_, sample, _| i64::try_from(text(sample)?.len()).ok().map(Sample::Int),
        ..TEXT
    },
    ConverterRow {
        names: &["ltrim"],
        args: CHARS,
        apply: |args, sample, _| {
            let (text, chars) = (text(sample)?, args.text(0).unwrap_or_default());
            let start = text.iter().position(|byte| !chars.contains(byte)).unwrap_or(text.len());
            text.get(start..).map(Sample::Str)
        },
        ..TEXT
    },
    ConverterRow {
        names: &["rtrim"],
        args: CHARS,
        apply: |args, sample, _| {
            let (text, chars) = (text(sample)?, args.text(0).unwrap_or_default());
            let end = text.iter().rposition(|byte| !chars.contains(byte)).map_or(0, |at| at + 1);
            text.get(..end).map(Sample::Str)
        },
        ..TEXT
    },
    ConverterRow {
        names: &["cut_crlf"],
        apply: |_, sample, _| {
            let text = text(sample)?;
            text.get(..memchr::memchr2(b'\r', b'\n', text).unwrap_or(text.len())).map(Sample::Str)
        },
        ..TEXT
    },
    ConverterRow {
        names: &["reverse"],
        apply: |_, sample, txn| {
            let to = txn.arena.alloc_slice_copy(text(sample)?);
            to.reverse();
            Some(Sample::Str(to))
        },
        ..TEXT
    },
    // The labels of a name from right to left: `www.example.org` gives `org.example.www`.
    ConverterRow {
        names: &["reverse_dom"],
        apply: |_, sample, txn| {
            let from = text(sample)?;
            let mut to = BumpVec::with_capacity_in(from.len(), txn.arena);
            for label in from.rsplit(|byte| *byte == b'.') {
                to.extend_from_slice(label);
                to.push(b'.');
            }
            to.pop();
            Some(Sample::Str(to.into_bump_slice()))
        },
        ..TEXT
    },
    ConverterRow {
        names: &["bytes"],
        args: &[ArgSpec::need(ArgKind::IntOrVar), ArgSpec::may(ArgKind::IntOrVar)],
        input: Type::Bin,
        output: Type::Bin,
        apply: |args, sample, txn| part(args, bytes(sample)?, txn).map(Sample::Bin),
        ..TEXT
    },
    // `param(name[,delimiters])`: the value behind the first `name` of a list such as a query.
    ConverterRow {
        names: &["param"],
        args: &[ArgSpec::need(ArgKind::Text), ArgSpec::may(ArgKind::Text)],
        prepare: |args| match args.first() {
            Some(Arg::Text(name)) if name.is_empty() => Err(ArgFault::new(0, "the name of the parameter is empty", "")),
            _ => Ok(args),
        },
        apply: |args, sample, _| {
            let (name, delimiters) = (args.text(0)?, args.text(1).filter(|chars| !chars.is_empty()).unwrap_or(b"&"));
            text(sample)?.split(|byte| delimiters.contains(byte)).find_map(|pair| match pair.strip_prefix(name)? {
                [] => Some(Sample::Str(b"")),
                [b'=', value @ ..] => Some(Sample::Str(value)),
                _ => None,
            })
        },
        ..TEXT
    },
];

/// The text in lower case; borrowed when it is already.
pub(in crate::rule) fn lowered<'s>(text: &'s [u8], arena: &'s Bump) -> &'s [u8] {
    if !text.iter().any(u8::is_ascii_uppercase) {
        return text;
    }
    let lower = arena.alloc_slice_copy(text);
    lower.make_ascii_lowercase();
    lower
}

/// `bytes(offset[,length])`: nothing is left behind the end, or when the offset is negative; a negative
/// length is none.
fn part<'s>(args: &Args, from: &'s [u8], txn: &Txn<'_>) -> Option<&'s [u8]> {
    let offset = args.number(0, txn)?;
    let rest = usize::try_from(offset).ok().and_then(|offset| from.get(offset..)).unwrap_or_default();
    let length = match args.at(1) {
        Arg::Absent => rest.len(),
        _ => usize::try_from(args.number(1, txn)?).unwrap_or(rest.len()),
    };
    rest.get(..length.min(rest.len()))
}
