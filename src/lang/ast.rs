//! A configuration as written: sections of lines of words.

use std::{borrow::Cow, ops::Range};

use super::source::Span;

/// One word after quotes, escapes and variables are resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// Its text. Rarely anything but UTF-8, but HAProxy's `\xHH` can make any byte.
    pub text: Vec<u8>,
    /// Where it stands, quotes included.
    pub span: Span,
    /// For each byte of `text`, the offset in the file of what it came from, so that errors inside a
    /// word (an argument, a converter) can point at it. One longer than `text`.
    pub origins: Vec<u32>,
}

impl Word {
    /// Whether the word is `text`.
    pub fn is(&self, text: &str) -> bool {
        self.text == text.as_bytes()
    }

    /// The word for messages and look-ups: bytes that are no UTF-8 become U+FFFD.
    pub fn lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.text)
    }

    /// Where the bytes `range` of the text stand in the file; the whole word when there are none such.
    pub fn part(&self, range: Range<usize>) -> Span {
        let start = self.origins.get(range.start).copied();
        let last = range.end.checked_sub(1).filter(|last| *last >= range.start);
        let end = last.and_then(|last| self.origins.get(last)).map(|last| last.saturating_add(1));
        match (start, end) {
            (Some(start), Some(end)) if end > start => Span { start, end, ..self.span },
            _ => self.span,
        }
    }
}

/// One line that is not blank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its words; never empty.
    pub words: Vec<Word>,
    /// The whole line.
    pub span: Span,
}

/// One section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The line that opens it: `frontend NAME …`.
    pub head: Line,
    /// The lines in it.
    pub lines: Vec<Line>,
}
