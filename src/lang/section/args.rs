//! The arguments of a line, one after the other, and the kinds of values they have.

use std::{ops::RangeInclusive, time::Duration};

use super::Loader;
use crate::lang::{
    ast::{Line, Word},
    code,
    diag::Diagnostic,
    source::Span,
    unit::{self, TimeUnit},
};

/// The words of a line behind its keyword.
#[derive(Clone)]
pub(in crate::lang) struct Args<'l> {
    pub(in crate::lang) line: &'l Line,
    keyword: usize,
    at: usize,
}

impl<'l> Args<'l> {
    /// The words behind the first `keyword` ones.
    pub(super) const fn new(line: &'l Line, keyword: usize) -> Self {
        Self { line, keyword, at: keyword }
    }

    /// The keyword, for messages.
    pub(super) fn name(&self) -> String {
        let words: Vec<_> = self.line.words.iter().take(self.keyword).map(Word::lossy).collect();
        words.join(" ")
    }

    /// Where the keyword stands.
    pub(super) fn keyword(&self) -> Span {
        let mut words = self.line.words.iter().take(self.keyword.max(1));
        let first = words.next().map_or(self.line.span, |word| word.span);
        words.next_back().map_or(first, |last| first.to(last.span))
    }

    /// The next word, left where it is.
    pub(super) fn peek(&self) -> Option<&'l Word> {
        self.line.words.get(self.at)
    }

    /// Takes the next word.
    pub(super) fn next(&mut self) -> Option<&'l Word> {
        let word = self.peek()?;
        self.at += 1;
        Some(word)
    }

    /// The words not yet taken.
    pub(super) fn rest(&self) -> &'l [Word] {
        self.line.words.get(self.at..).unwrap_or_default()
    }

    /// The empty place where the next word would stand.
    fn end(&self) -> Span {
        let last = self.at.checked_sub(1).and_then(|last| self.line.words.get(last));
        last.map_or(self.line.span, |last| last.span.after())
    }
}

impl Loader<'_> {
    /// Takes the next word; without one, an error that says `what` is missing.
    pub(super) fn need<'l>(&mut self, args: &mut Args<'l>, what: &str) -> Option<&'l Word> {
        let next = args.next();
        if next.is_none() {
            self.error(code::MISSING_WORD, args.end(), format!("`{}` needs {what}", args.name()));
        }
        next
    }

    /// An error when there are words left.
    pub(super) fn nothing_more(&mut self, args: &Args<'_>) {
        if let (Some(first), Some(last)) = (args.rest().first(), args.rest().last()) {
            let message = format!("`{}` takes no more words here", args.name());
            self.error(code::EXTRA_WORD, first.span.to(last.span), message);
        }
    }

    /// A time; without a suffix in `unit`.
    pub(super) fn time(&mut self, word: &Word, unit: TimeUnit) -> Option<Duration> {
        let time = unit::time(&word.text, unit);
        if time.is_none() {
            let what = if unit::is_too_large(&word.text, unit::TIMES) { "too long a time" } else { "no time" };
            let message = format!("`{}` is {what}", word.lossy());
            self.report(
                Diagnostic::error(code::BAD_VALUE, word.span, message)
                    .help("write a whole number and one of us, ms, s, m, h, d, such as `30s`"),
            );
        }
        time
    }

    /// A size in bytes.
    pub(super) fn size(&mut self, word: &Word) -> Option<u64> {
        let size = unit::size(&word.text);
        if size.is_none() {
            let what = if unit::is_too_large(&word.text, unit::SIZES) { "too large a size" } else { "no size" };
            let message = format!("`{}` is {what}", word.lossy());
            self.report(
                Diagnostic::error(code::BAD_VALUE, word.span, message)
                    .help("write a whole number and one of k, m, g, such as `512m`"),
            );
        }
        size
    }

    /// A whole number within bounds.
    pub(super) fn number(&mut self, word: &Word, bounds: RangeInclusive<usize>) -> Option<usize> {
        let number = unit::number(&word.text).and_then(|number| usize::try_from(number).ok());
        let number = number.filter(|number| bounds.contains(number));
        if number.is_none() {
            let message = match bounds.end() {
                &usize::MAX => format!("`{}` is no whole number from {}", word.lossy(), bounds.start()),
                end => format!("`{}` is no whole number from {} to {end}", word.lossy(), bounds.start()),
            };
            self.error(code::BAD_VALUE, word.span, message);
        }
        number
    }

    /// `on` or `off`.
    pub(super) fn switch(&mut self, word: &Word) -> Option<bool> {
        match word.text.as_slice() {
            b"on" => Some(true),
            b"off" => Some(false),
            _ => {
                let message = format!("`{}` is neither `on` nor `off`", word.lossy());
                self.error(code::BAD_VALUE, word.span, message);
                None
            }
        }
    }

    /// One argument that is a switch, and nothing more.
    pub(super) fn only_switch(&mut self, mut args: Args<'_>) -> Option<bool> {
        let word = self.need(&mut args, "`on` or `off`")?;
        self.nothing_more(&args);
        self.switch(word)
    }

    /// One argument that is a time, and nothing more.
    pub(super) fn only_time(&mut self, mut args: Args<'_>, unit: TimeUnit) -> Option<Duration> {
        let word = self.need(&mut args, "a time")?;
        self.nothing_more(&args);
        self.time(word, unit)
    }

    /// One argument that is a number, and nothing more.
    pub(super) fn only_number(&mut self, mut args: Args<'_>, bounds: RangeInclusive<usize>) -> Option<usize> {
        let word = self.need(&mut args, "a number")?;
        self.nothing_more(&args);
        self.number(word, bounds)
    }
}
