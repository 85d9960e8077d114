//! Bytes written as text and back: base64, hexadecimal, URLs (HAProxy manual §7.3.1).

use std::fmt::Write;

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use bumpalo::collections::{String as BumpString, Vec as BumpVec};

use super::{Arg, ArgFault, Args, ConverterRow, Sample, TEXT, Txn, Type, bytes, text};
use crate::rule::{
    args::{ArgKind, ArgSpec},
    format::percent_encoded,
    sample::printed,
};

const FROM_BYTES: ConverterRow = ConverterRow { input: Type::Bin, ..TEXT };

/// `(separator,chunk_size[,truncate])`.
const CHUNKS: &[ArgSpec] = &[ArgSpec::may(ArgKind::Text), ArgSpec::may(ArgKind::Int), ArgSpec::may(ArgKind::Int)];
const DECIMAL: ConverterRow = ConverterRow { args: CHUNKS, prepare: |args| chunks(args, 1..=8), ..FROM_BYTES };

pub(super) const ROWS: &[ConverterRow] = &[
    ConverterRow {
        names: &["base64"],
        apply: |_, sample, txn| to_base64(bytes(sample)?, &STANDARD, txn),
        ..FROM_BYTES
    },
    ConverterRow {
        names: &["ub64enc"],
        apply: |_, sample, txn| to_base64(bytes(sample)?, &URL_SAFE_NO_PAD, txn),
        ..FROM_BYTES
    },
    ConverterRow {
        names: &["b64dec"],
        output: Type::Bin,
        apply: |_, sample, txn| {
            let from = text(sample)?;
            let mut to = BumpVec::with_capacity_in(from.len() / 4 * 3, txn.arena);
            from_base64(from, &mut to)?;
            Some(Sample::Bin(to.into_bump_slice()))
        },
        ..TEXT
    },
    ConverterRow {
        names: &["ub64dec"],
        output: Type::Bin,
        apply: |_, sample, txn| from_base64_url(text(sample)?, txn).map(Sample::Bin),
        ..TEXT
    },
    ConverterRow {
        names: &["hex"],
        apply: |_, sample, txn| Some(hex(bytes(sample)?, b"", usize::MAX, txn)),
        ..FROM_BYTES
    },
    ConverterRow {
        names: &["base2"],
        apply: |_, sample, txn| {
            let mut to = BumpString::new_in(txn.arena);
            for byte in bytes(sample)? {
                write!(to, "{byte:08b}").ok()?;
            }
            Some(Sample::Str(to.into_bump_str().as_bytes()))
        },
        ..FROM_BYTES
    },
    ConverterRow {
        names: &["be2hex"],
        args: CHUNKS,
        prepare: |args| match args.as_slice() {
            // Without a separator the size of chunks says nothing, but where to cut.
            [Arg::Absent, Arg::Absent | Arg::Int(0), Arg::Absent] => Ok(args),
            _ => chunks(args, 1..=i64::MAX),
        },
        apply: |args, sample, txn| {
            let (from, size) = cut(args, bytes(sample)?);
            Some(hex(from, args.text(0).unwrap_or_default(), size, txn))
        },
        ..FROM_BYTES
    },
    ConverterRow {
        names: &["be2dec"],
        apply: |args, sample, txn| {
            let (from, size) = cut(args, bytes(sample)?);
            Some(decimal(args, from.chunks(size), txn))
        },
        ..DECIMAL
    },
    ConverterRow {
        names: &["le2dec"],
        apply: |args, sample, txn| {
            let (from, size) = cut(args, bytes(sample)?);
            let big = txn.arena.alloc_slice_copy(from);
            big.chunks_mut(size).for_each(<[u8]>::reverse);
            Some(decimal(args, big.chunks(size), txn))
        },
        ..DECIMAL
    },
    ConverterRow {
        names: &["url_dec"],
        args: &[ArgSpec::may(ArgKind::Int)],
        apply: |args, sample, txn| {
            let from = text(sample)?;
            if memchr::memchr2(b'%', b'+', from).is_none() {
                return Some(sample);
            }
            let mut to = BumpVec::with_capacity_in(from.len(), txn.arena);
            url_decoded(from, args.int(0).is_some_and(|flag| flag != 0), &mut to)?;
            Some(Sample::Str(to.into_bump_slice()))
        },
        ..TEXT
    },
    ConverterRow {
        names: &["url_enc"],
        args: &[ArgSpec::may(ArgKind::Word(&["query"]))],
        apply: |_, sample, txn| {
            let from = text(sample)?;
            if from.iter().all(unreserved) {
                return Some(sample);
            }
            let mut to = BumpVec::with_capacity_in(from.len() + 16, txn.arena);
            for byte in from {
                if unreserved(byte) {
                    to.push(*byte);
                } else {
                    to.extend_from_slice(&percent_encoded(*byte));
                }
            }
            Some(Sample::Str(to.into_bump_slice()))
        },
        ..TEXT
    },
];

fn to_base64<'s>(from: &[u8], engine: &impl Engine, txn: &'s Txn<'_>) -> Option<Sample<'s>> {
    let room = txn.arena.alloc_slice_fill_default(from.len().div_ceil(3) * 4);
    let length = engine.encode_slice(from, room).ok()?;
    room.get(..length).map(Sample::Str)
}

/// The six bits of a letter of base64.
fn six_bits(letter: u8) -> Option<u8> {
    Some(match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

/// Decodes groups of four letters, any of them padded (the `base64` crate allows that in the last one alone); the bits
/// beside a last byte do not matter. `None` when the text is anything else.
pub(in crate::rule) fn from_base64(from: &[u8], to: &mut impl Extend<u8>) -> Option<()> {
    let (groups, []) = from.as_chunks::<4>() else { return None };
    for group in groups {
        let letters = group.iter().take_while(|letter| **letter != b'=').count();
        let mut bits: u32 = 0;
        for (at, letter) in group.iter().enumerate() {
            let value = if at < letters { six_bits(*letter)? } else { 0 };
            if at >= letters && *letter != b'=' {
                return None;
            }
            bits = bits << 6 | u32::from(value);
        }
        let [_, bytes @ ..] = bits.to_be_bytes();
        to.extend(bytes.into_iter().take(letters.checked_sub(1)?));
    }
    Some(())
}

/// Decodes base64url without padding; `=` reads as `_`, as in HAProxy.
pub(super) fn from_base64_url<'s>(from: &[u8], txn: &'s Txn<'_>) -> Option<&'s [u8]> {
    let mut to = BumpVec::with_capacity_in(from.len() / 4 * 3 + 3, txn.arena);
    for group in from.chunks(4) {
        let mut bits: u32 = 0;
        for at in 0..4 {
            let value = match group.get(at) {
                None => 0,
                Some(b'-') => 62,
                Some(b'_' | b'=') => 63,
                Some(b'+' | b'/') => return None,
                Some(letter) => six_bits(*letter)?,
            };
            bits = bits << 6 | u32::from(value);
        }
        let [_, bytes @ ..] = bits.to_be_bytes();
        let count = group.len().checked_sub(1).filter(|count| *count > 0)?;
        to.extend(bytes.into_iter().take(count));
    }
    Some(to.into_bump_slice())
}

fn hex<'s>(from: &[u8], separator: &[u8], size: usize, txn: &'s Txn<'_>) -> Sample<'s> {
    let mut to = BumpVec::with_capacity_in(from.len() * 2, txn.arena);
    for (index, chunk) in from.chunks(size).enumerate() {
        if index > 0 {
            to.extend_from_slice(separator);
        }
        for byte in chunk {
            to.extend(percent_encoded(*byte).into_iter().skip(1));
        }
    }
    Sample::Str(to.into_bump_slice())
}

/// The numbers that chunks of at most 8 bytes in network order are.
fn decimal<'s, 'c>(args: &Args, chunks: impl Iterator<Item = &'c [u8]>, txn: &'s Txn<'_>) -> Sample<'s> {
    let mut to = BumpVec::new_in(txn.arena);
    for (index, chunk) in chunks.enumerate() {
        if index > 0 {
            to.extend_from_slice(args.text(0).unwrap_or_default());
        }
        let number = chunk.iter().fold(0, |value: u64, byte| value << 8 | u64::from(*byte));
        to.extend_from_slice(printed(number, txn.arena));
    }
    Sample::Str(to.into_bump_slice())
}

/// Checks `(separator,chunk_size[,truncate])`.
fn chunks(args: Vec<Arg>, sizes: std::ops::RangeInclusive<i64>) -> Result<Vec<Arg>, ArgFault> {
    let given = Args::new(args.clone());
    let size = given.int(1).unwrap_or_default();
    if !sizes.contains(&size) {
        let help = if *sizes.end() == i64::MAX { "write 1 or more" } else { "write 1 to 8" };
        return Err(ArgFault::new(1, format!("chunks cannot have {size} bytes"), help));
    }
    match given.int(2) {
        None | Some(0 | 1) => Ok(args),
        Some(other) => {
            Err(ArgFault::new(2, format!("`{other}` is no truncation"), "write 1 to leave an incomplete chunk out"))
        }
    }
}

/// What of the bytes is written, and the size of its chunks.
fn cut<'s>(args: &Args, from: &'s [u8]) -> (&'s [u8], usize) {
    let size = args.int(1).and_then(|size| usize::try_from(size).ok()).filter(|size| *size > 0).unwrap_or(usize::MAX);
    let whole = if args.int(2) == Some(1) { from.len() - from.len() % size } else { from.len() };
    (from.get(..whole).unwrap_or_default(), size)
}

/// RFC 3986 §2.3.
fn unreserved(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Decodes `%HH`, and `+` as a blank in a form, which is what stands behind a `?` in any case.
/// `None` when a `%` is not followed by two hexadecimal digits.
fn url_decoded(from: &[u8], mut in_form: bool, to: &mut BumpVec<'_, u8>) -> Option<()> {
    let mut bytes = from.iter().copied();
    while let Some(byte) = bytes.next() {
        to.push(match byte {
            b'%' => {
                let high = char::from(bytes.next()?).to_digit(16)?;
                let low = char::from(bytes.next()?).to_digit(16)?;
                u8::try_from(high * 16 + low).ok()?
            }
            b'+' if in_form => b' ',
            _ => {
                in_form |= byte == b'?';
                byte
            }
        });
    }
    Some(())
}
