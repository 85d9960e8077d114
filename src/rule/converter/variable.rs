//! Converters that set, join or compare variables (HAProxy manual §7.3.1).

use super::{Arg, ArgFault, Args, ConverterRow, Sample, TEXT, Txn, Type, bytes, joined, text};
use crate::rule::{
    args::{ArgKind, ArgSpec},
    vars::SetWhen,
};

/// When `set-var` sets.
const CONDITION: ArgSpec = ArgSpec::may(ArgKind::Word(SetWhen::WORDS));

const ANY: ConverterRow = ConverterRow { input: Type::Any, output: Type::Any, ..TEXT };
const JOIN: &[ArgSpec] = &[ArgSpec::may(ArgKind::Text), ArgSpec::may(ArgKind::Var), ArgSpec::may(ArgKind::Text)];

pub(super) const ROWS: &[ConverterRow] = &[
    ConverterRow {
        names: &["set-var"],
        args: &[ArgSpec::need(ArgKind::Var), CONDITION, CONDITION, CONDITION, CONDITION],
        apply: |args, sample, txn| {
            let when = (1..=4).filter_map(|index| SetWhen::named(args.text(index)?));
            txn.note_var(args.var(0)?, when, sample).then_some(sample)
        },
        ..ANY
    },
    ConverterRow {
        names: &["unset-var"],
        args: &[ArgSpec::need(ArgKind::Var)],
        apply: |args, sample, txn| {
            txn.unset_var(args.var(0)?);
            Some(sample)
        },
        ..ANY
    },
    ConverterRow {
        names: &["concat"],
        args: JOIN,
        apply: |args, sample, txn| {
            let (start, end) = (args.text(0).unwrap_or_default(), args.text(2).unwrap_or_default());
            Some(joined(&[text(sample)?, start, value(args, 1, txn), end], txn))
        },
        ..TEXT
    },
    ConverterRow {
        names: &["add_item"],
        args: JOIN,
        prepare: |args| match args.as_slice() {
            [_, Arg::Absent, Arg::Absent] => Err(no_item()),
            [_, Arg::Absent, Arg::Text(text)] if text.is_empty() => Err(no_item()),
            _ => Ok(args),
        },
        apply: |args, sample, txn| {
            let (list, item, end) = (text(sample)?, value(args, 1, txn), args.text(2).unwrap_or_default());
            let adds_nothing = item.is_empty() && end.is_empty();
            let delimiter = if list.is_empty() || adds_nothing { b"" } else { args.text(0).unwrap_or_default() };
            Some(joined(&[list, delimiter, item, end], txn))
        },
        ..TEXT
    },
    // As `strcmp(3)`: the difference of the first bytes that differ, else which one is shorter.
    ConverterRow {
        names: &["strcmp"],
        args: &[ArgSpec::need(ArgKind::Var)],
        output: Type::Int,
        apply: |args, sample, txn| {
            let one = text(sample)?;
            let other = txn.var(args.var(0)?)?.text(txn.arena)?;
            let difference = one.iter().zip(other).find(|(one, other)| one != other);
            Some(Sample::Int(match difference {
                Some((one, other)) => i64::from(*one) - i64::from(*other),
                None => i64::from(one.len() > other.len()) - i64::from(one.len() < other.len()),
            }))
        },
        ..TEXT
    },
    ConverterRow {
        names: &["secure_memcmp"],
        args: &[ArgSpec::need(ArgKind::Var)],
        input: Type::Bin,
        output: Type::Bool,
        apply: |args, sample, txn| {
            let other = txn.var(args.var(0)?)?.bytes(txn.arena)?;
            Some(Sample::Bool(same(bytes(sample)?, other)))
        },
        ..TEXT
    },
];

/// Whether the texts are the same, in a time that depends on their lengths alone.
fn same(one: &[u8], other: &[u8]) -> bool {
    let differing = one.iter().zip(other).fold(0, |sum, (one, other)| sum | (one ^ other));
    one.len() == other.len() && std::hint::black_box(differing) == 0
}

fn no_item() -> ArgFault {
    let help = "write `add_item(DELIMITER,VARIABLE)` or `add_item(DELIMITER,,SUFFIX)`";
    ArgFault::new(0, "neither a variable nor a suffix: there is nothing to add", help)
}

/// The variable's text; empty when there is none.
fn value<'s>(args: &Args, index: usize, txn: &'s Txn<'_>) -> &'s [u8] {
    let value = args.var(index).and_then(|id| txn.var(id));
    value.and_then(|value| value.text(txn.arena)).unwrap_or_default()
}
