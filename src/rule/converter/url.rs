//! `url_dec([in_form])`: percent-decoding (RFC 3986 §2.1).

use bumpalo::collections::Vec as BumpVec;

use super::{ConverterRow, Sample, TEXT, text};
use crate::rule::args::{ArgKind, ArgSpec};

pub(super) const ROWS: &[ConverterRow] = &[ConverterRow {
    names: &["url_dec"],
    args: &[ArgSpec::may(ArgKind::Int)],
    apply: |args, sample, txn| {
        let from = text(sample)?;
        if memchr::memchr2(b'%', b'+', from).is_none() {
            return Some(sample);
        }
        let mut to = BumpVec::with_capacity_in(from.len(), txn.arena);
        decode(from, args.int(0).is_some_and(|flag| flag != 0), &mut to)?;
        Some(Sample::Str(to.into_bump_slice()))
    },
    ..TEXT
}];

/// Decodes `%HH`, and `+` as a blank in a form, which is what stands behind a `?` in any case.
/// `None` when a `%` is not followed by two hexadecimal digits.
fn decode(from: &[u8], mut in_form: bool, to: &mut BumpVec<'_, u8>) -> Option<()> {
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
