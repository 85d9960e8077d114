//! `json([code])`: a text escaped for the inside of a JSON string (RFC 8259 §7).

use std::fmt::Write;

use bumpalo::collections::String as BumpString;

use super::{ConverterRow, Sample, TEXT, text};
use crate::rule::args::{ArgKind, ArgSpec};

pub(super) const ROWS: &[ConverterRow] = &[ConverterRow {
    names: &["json"],
    args: &[ArgSpec::may(ArgKind::Word(&["ascii", "utf8", "utf8s", "utf8p", "utf8ps"]))],
    apply: |args, sample, txn| {
        let mut rest = text(sample)?;
        let code = args.text(0).unwrap_or_default();
        let (permissive, silent) = (code.starts_with(b"utf8p"), code.ends_with(b"s"));
        let mut to = BumpString::with_capacity_in(rest.len() + 8, txn.arena);
        while let Some(&first) = rest.first() {
            let point = if code.starts_with(b"utf8") { Point::read(rest) } else { Point::of_byte(first) };
            rest = rest.get(point.length..).unwrap_or_default();
            if point.fits(permissive) {
                escape(point.value, &mut to)?;
            } else if !silent {
                return None;
            }
        }
        Some(Sample::Str(to.into_bump_str().as_bytes()))
    },
    ..TEXT
}];

/// A code point and how well it was written.
struct Point {
    value: u32,
    /// In bytes, at least 1.
    length: usize,
    /// The sequence is not complete, or begins with what cannot begin one.
    broken: bool,
    /// The sequence is longer than the point needs.
    overlong: bool,
}

impl Point {
    fn of_byte(byte: u8) -> Self {
        Self { value: byte.into(), length: 1, broken: false, overlong: false }
    }

    /// The first point of a text that is not empty. Sequences of five and six bytes are read as well, so that
    /// they count as one error.
    fn read(text: &[u8]) -> Self {
        let first = text.first().copied().unwrap_or_default();
        let length = match first.leading_ones() {
            0 => return Self::of_byte(first),
            ones @ 2..=6 => usize::try_from(ones).unwrap_or(1),
            _ => return Self { broken: true, ..Self::of_byte(first) },
        };
        let mut value = u32::from(first & (0x7f >> length));
        for at in 1..length {
            match text.get(at) {
                Some(next) if next & 0xc0 == 0x80 => value = value << 6 | u32::from(next & 0x3f),
                _ => return Self { value, length: at, broken: true, overlong: false },
            }
        }
        let least = if length == 2 { 0x80 } else { 1 << (5 * length - 4) };
        Self { value, length, broken: false, overlong: value < least }
    }

    /// Whether it can be written with four digits.
    fn fits(&self, permissive: bool) -> bool {
        let nobody = matches!(self.value, 0xd800..=0xdfff | 0xfffe | 0xffff);
        !self.broken && (permissive || !self.overlong) && !nobody && self.value <= 0xffff
    }
}

fn escape(point: u32, to: &mut BumpString<'_>) -> Option<()> {
    let letter = match point {
        0x22 | 0x5c | 0x2f => char::from_u32(point)?,
        0x08 => 'b',
        0x09 => 't',
        0x0a => 'n',
        0x0c => 'f',
        0x0d => 'r',
        0x20..=0x7e => {
            to.push(char::from_u32(point)?);
            return Some(());
        }
        _ => return write!(to, "\\u{point:04x}").ok(),
    };
    to.push('\\');
    to.push(letter);
    Some(())
}
