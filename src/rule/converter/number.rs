//! Arithmetic and bits (HAProxy manual §7.3.1). What does not fit stays at the nearest integer that
//! there is; a division by 0 gives the greatest one, its remainder is 0.

use super::{Arg, Args, ConverterRow, Sample, TEXT, Txn, Type, bytes, text};
use crate::rule::args::{ArgKind, ArgSpec};

const NUMBER: ConverterRow = ConverterRow { input: Type::Int, output: Type::Int, ..TEXT };
const WITH: ConverterRow = ConverterRow { args: &[ArgSpec::may(ArgKind::IntOrVar)], ..NUMBER };
const TRUTH: ConverterRow = ConverterRow { output: Type::Bool, ..NUMBER };

pub(super) const ROWS: &[ConverterRow] = &[
    ConverterRow { names: &["add"], apply: |args, sample, txn| with(args, sample, txn, i64::saturating_add), ..WITH },
    ConverterRow { names: &["sub"], apply: |args, sample, txn| with(args, sample, txn, i64::saturating_sub), ..WITH },
    ConverterRow { names: &["mul"], apply: |args, sample, txn| with(args, sample, txn, i64::saturating_mul), ..WITH },
    ConverterRow {
        names: &["div"],
        apply: |args, sample, txn| {
            with(args, sample, txn, |value, by| if by == 0 { i64::MAX } else { value.saturating_div(by) })
        },
        ..WITH
    },
    ConverterRow {
        names: &["mod"],
        apply: |args, sample, txn| {
            with(args, sample, txn, |value, by| if by == 0 { 0 } else { value.wrapping_rem(by) })
        },
        ..WITH
    },
    ConverterRow { names: &["and"], apply: |args, sample, txn| with(args, sample, txn, |a, b| a & b), ..WITH },
    ConverterRow { names: &["or"], apply: |args, sample, txn| with(args, sample, txn, |a, b| a | b), ..WITH },
    ConverterRow { names: &["xor"], apply: |args, sample, txn| with(args, sample, txn, |a, b| a ^ b), ..WITH },
    ConverterRow { names: &["neg"], apply: |_, sample, _| Some(Sample::Int(sample.int()?.saturating_neg())), ..NUMBER },
    ConverterRow { names: &["cpl"], apply: |_, sample, _| Some(Sample::Int(!sample.int()?)), ..NUMBER },
    ConverterRow { names: &["bool"], apply: |_, sample, _| Some(Sample::Bool(sample.int()? != 0)), ..TRUTH },
    ConverterRow { names: &["not"], apply: |_, sample, _| Some(Sample::Bool(sample.int()? == 0)), ..TRUTH },
    ConverterRow { names: &["even"], apply: |_, sample, _| Some(Sample::Bool(sample.int()? & 1 == 0)), ..TRUTH },
    ConverterRow { names: &["odd"], apply: |_, sample, _| Some(Sample::Bool(sample.int()? & 1 != 0)), ..TRUTH },
    ConverterRow {
        names: &["htonl"],
        output: Type::Bin,
        apply: |_, sample, txn| {
            let [_, _, _, _, low @ ..] = sample.int()?.to_be_bytes();
            Some(Sample::Bin(txn.arena.alloc_slice_copy(&low)))
        },
        ..NUMBER
    },
    ConverterRow {
        names: &["hex2i"],
        output: Type::Int,
        apply: |_, sample, _| {
            let digits = text(sample)?;
            let mut value: i64 = 0;
            for digit in digits.iter().map(|byte| char::from(*byte).to_digit(16)) {
                value = value.wrapping_shl(4) | i64::from(digit?);
            }
            Some(Sample::Int(value))
        },
        ..TEXT
    },
    ConverterRow {
        names: &["iif"],
        args: &[ArgSpec::need(ArgKind::Text), ArgSpec::need(ArgKind::Text)],
        input: Type::Bool,
        apply: |args, sample, _| args.text(if sample.bool()? { 0 } else { 1 }).map(Sample::Str),
        ..TEXT
    },
    // `has_ctl([mask])`: whether there is a byte below 32; the mask has a bit for each byte that counts.
    ConverterRow {
        names: &["has_ctl"],
        args: &[ArgSpec::may(ArgKind::Int)],
        input: Type::Bin,
        output: Type::Bool,
        apply: |args, sample, _| {
            let mask = args.int(0).unwrap_or(-1);
            let counts = |byte: &u8| *byte < 32 && (mask >> *byte) & 1 != 0;
            Some(Sample::Bool(bytes(sample)?.iter().any(counts)))
        },
        ..TEXT
    },
];

/// The sample and the argument through `f`; nothing when a variable has no value or one that is no integer.
fn with<'s>(args: &'s Args, sample: Sample<'s>, txn: &'s Txn<'_>, f: fn(i64, i64) -> i64) -> Option<Sample<'s>> {
    let operand = match args.at(0) {
        Arg::Absent => 0,
        _ => args.number(0, txn)?,
    };
    Some(Sample::Int(f(sample.int()?, operand)))
}
