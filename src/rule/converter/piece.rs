//! `field(index,delimiters[,count])` and `word(index,delimiters[,count])`: pieces of text between
//! delimiter bytes. Every delimiter ends a field; a run of them separates words. Indices count from 1,
//! negative ones from the end; a count of 0 means all that follow.

use super::{Arg, ArgFault, Args, ConverterRow, Sample, TEXT, text};
use crate::rule::args::{ArgKind, ArgSpec};

const PIECE: ConverterRow = ConverterRow {
    args: &[ArgSpec::need(ArgKind::Int), ArgSpec::need(ArgKind::Text), ArgSpec::may(ArgKind::Int)],
    prepare: |args| match args.first() {
        Some(Arg::Int(0)) => Err(ArgFault::new(0, "the index 0 names nothing", "count from 1, or from -1 at the end")),
        _ if matches!(args.get(1), Some(Arg::Text(text)) if text.is_empty()) => {
            let help = "name the bytes that separate, quoted where they are `,` or `)`";
            Err(ArgFault::new(1, "there are no delimiters", help))
        }
        _ => Ok(args),
    },
    ..TEXT
};

pub(super) const ROWS: &[ConverterRow] = &[
    ConverterRow {
        names: &["field"],
        apply: |args, sample, _| {
            let (ask, text) = (Ask::of(args)?, text(sample)?);
            let found = if ask.from_end { last_fields(&ask, text) } else { first_fields(&ask, text) };
            found.map(Sample::Str)
        },
        ..PIECE
    },
    ConverterRow {
        names: &["word"],
        apply: |args, sample, _| {
            let (ask, text) = (Ask::of(args)?, text(sample)?);
            let found = if ask.from_end { last_words(&ask, text) } else { first_words(&ask, text) };
            // Unlike a field, a word that is not there is empty.
            Some(Sample::Str(found.unwrap_or_default()))
        },
        ..PIECE
    },
];

/// Which pieces are asked for.
struct Ask<'a> {
    /// From 1, counted from the end that `from_end` says.
    index: usize,
    from_end: bool,
    /// `usize::MAX`: all.
    count: usize,
    delimiters: &'a [u8],
}

impl<'a> Ask<'a> {
    fn of(args: &'a Args) -> Option<Self> {
        let index = args.int(0)?;
        let count = args.int(2).unwrap_or(1);
        Some(Self {
            index: usize::try_from(index.unsigned_abs()).ok().filter(|index| *index != 0)?,
            from_end: index < 0,
            count: usize::try_from(count).ok().filter(|count| *count != 0).unwrap_or(usize::MAX),
            delimiters: args.text(1)?,
        })
    }

    fn delimits(&self, byte: u8) -> bool {
        self.delimiters.contains(&byte)
    }
}

fn first_fields<'s>(ask: &Ask<'_>, text: &'s [u8]) -> Option<&'s [u8]> {
    let mut ends = text.iter().enumerate().filter(|(_, byte)| ask.delimits(**byte)).map(|(at, _)| at);
    let start = match ask.index.checked_sub(2) {
        None => 0,
        Some(before) => ends.nth(before)? + 1,
    };
    let end = ends.nth(ask.count - 1).unwrap_or(text.len());
    text.get(start..end)
}

fn last_fields<'s>(ask: &Ask<'_>, text: &'s [u8]) -> Option<&'s [u8]> {
    let mut starts = text.iter().enumerate().rev().filter(|(_, byte)| ask.delimits(**byte)).map(|(at, _)| at);
    let end = match ask.index.checked_sub(2) {
        None => text.len(),
        Some(before) => starts.nth(before)?,
    };
    let start = starts.nth(ask.count - 1).map_or(0, |at| at + 1);
    text.get(start..end)
}

/// When words run out before the count does, what follows the last one belongs to the result.
fn first_words<'s>(ask: &Ask<'_>, text: &'s [u8]) -> Option<&'s [u8]> {
    let delimits = |at: usize| text.get(at).is_none_or(|byte| ask.delimits(*byte));
    let mut starts = (0..text.len()).filter(|&at| !delimits(at) && (at == 0 || delimits(at - 1)));
    let start = starts.nth(ask.index - 1)?;
    let mut ends = (start..text.len()).filter(|&at| delimits(at) && !delimits(at - 1));
    let end = ends.nth(ask.count - 1).unwrap_or(text.len());
    text.get(start..end)
}

/// As [`first_words`], from the end: what stands before the first word belongs to it then.
fn last_words<'s>(ask: &Ask<'_>, text: &'s [u8]) -> Option<&'s [u8]> {
    let delimits = |at: usize| text.get(at).is_none_or(|byte| ask.delimits(*byte));
    let mut ends = (1..=text.len()).rev().filter(|&at| !delimits(at - 1) && delimits(at));
    let end = ends.nth(ask.index - 1)?;
    let mut starts = (0..end).rev().filter(|&at| delimits(at) && !delimits(at + 1));
    let start = starts.nth(ask.count - 1).map_or(0, |at| at + 1);
    text.get(start..end)
}
