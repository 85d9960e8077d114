//! `language(values[,default])`: the best of a list by the weights of `Accept-Language` (RFC 9110 §12.5.4).

use super::{ConverterRow, Sample, TEXT, text};
use crate::rule::args::{ArgKind, ArgSpec};

pub(super) const ROWS: &[ConverterRow] = &[ConverterRow {
    names: &["language"],
    args: &[ArgSpec::may(ArgKind::Text), ArgSpec::may(ArgKind::Text)],
    apply: |args, sample, _| {
        let best = best(args.text(0).unwrap_or_default(), text(sample)?);
        best.or(args.text(1)).filter(|language| !language.is_empty()).map(Sample::Str)
    },
    ..TEXT
}];

/// The first of those with the greatest weight; a weight of 0 is no offer.
fn best<'a>(known: &'a [u8], asked: &[u8]) -> Option<&'a [u8]> {
    let mut best = (0, None);
    for range in asked.split(|byte| *byte == b',').map(<[u8]>::trim_ascii_start) {
        let end = range.iter().position(|byte| *byte == b';' || byte.is_ascii_whitespace()).unwrap_or(range.len());
        let (name, rest) = range.split_at_checked(end).unwrap_or((range, b""));
        if name.is_empty() {
            continue;
        }
        let Some(language) = known.split(|byte| *byte == b';').find(|known| covers(known, name)) else { continue };
        let Some(weight) = weight(rest) else { continue };
        if weight > best.0 {
            best = (weight, Some(language));
        }
    }
    best.1
}

/// Whether what is asked for is the language or a variant of it (`en` covers `en-GB`).
fn covers(language: &[u8], asked: &[u8]) -> bool {
    matches!(asked.strip_prefix(language), Some([] | [b'-', ..])) && !language.is_empty()
}

/// The weight in thousandths that stands behind a name: the whole when it says none, `None` when something
/// else stands there.
fn weight(rest: &[u8]) -> Option<u32> {
    let rest = rest.trim_ascii_start();
    let Some(rest) = rest.strip_prefix(b";") else { return rest.is_empty().then_some(1000) };
    let value = || {
        let equals = rest.trim_ascii_start().strip_prefix(b"q")?.trim_ascii_start().strip_prefix(b"=")?;
        Some(thousandths(equals.trim_ascii_start()))
    };
    Some(value().unwrap_or(1000))
}

/// A weight is a digit, a point and up to three digits; what begins otherwise is the whole.
fn thousandths(text: &[u8]) -> u32 {
    let digit = |at: usize| text.get(at).filter(|byte| byte.is_ascii_digit()).map(|byte| u32::from(byte - b'0'));
    let Some(whole) = digit(0) else { return 1000 };
    let mut weight = whole * 1000;
    if text.get(1) == Some(&b'.') {
        for (at, unit) in [(2, 100), (3, 10), (4, 1)] {
            let Some(digit) = digit(at) else { break };
            weight += digit * unit;
        }
    }
    weight.min(1000)
}
