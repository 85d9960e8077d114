//! The texts of a configuration and places in them.

use crate::{config::Place, rule::RulePlace};

/// A file of the configuration, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FileId(pub u32);

/// A piece of one file, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// From the start of this piece to the end of `last`, which stands behind it in the same file.
    pub fn to(self, last: Self) -> Self {
        Self { end: last.end.max(self.end), ..self }
    }

    /// The empty piece right behind this one.
    pub const fn after(self) -> Self {
        Self { file: self.file, start: self.end, end: self.end }
    }
}

/// The texts of a configuration.
#[derive(Debug, Default)]
pub struct Sources {
    files: Vec<Source>,
}

#[derive(Debug)]
struct Source {
    name: String,
    text: Vec<u8>,
    /// Where each line starts.
    lines: Vec<u32>,
}

impl Sources {
    /// Takes a file in. Offsets are 32 bits wide: what lies beyond 4 GiB cannot be named.
    pub fn add(&mut self, name: String, text: Vec<u8>) -> FileId {
        let id = FileId(offset(self.files.len()));
        let lines = std::iter::once(0).chain(memchr::memchr_iter(b'\n', &text).map(|at| offset(at + 1))).collect();
        self.files.push(Source { name, text, lines });
        id
    }

    /// The path of a file, as given; empty for a file that is not there.
    pub fn name(&self, file: FileId) -> &str {
        self.source(file).map_or("", |source| &source.name)
    }

    /// The paths of all files, as given.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|source| source.name.as_str())
    }

    /// The bytes of a file.
    pub fn text(&self, file: FileId) -> &[u8] {
        self.source(file).map_or(&[], |source| &source.text)
    }

    /// The number of the line in which a piece starts, from 1.
    pub fn line(&self, span: Span) -> u32 {
        self.source(span.file).map_or(1, |source| offset(source.lines.partition_point(|&start| start <= span.start)))
    }

    /// The column at which a piece starts, from 1, in characters; a byte that is no UTF-8 counts as one.
    pub fn column(&self, span: Span) -> u32 {
        let line = self.line_span(span);
        let before = self.slice(Span { start: line.start, end: span.start, file: span.file });
        offset(String::from_utf8_lossy(before).chars().count() + 1)
    }

    /// The line in which a piece starts, without its end.
    pub fn line_span(&self, span: Span) -> Span {
        let Some(source) = self.source(span.file) else { return span };
        let next = source.lines.partition_point(|&start| start <= span.start);
        let start = next.checked_sub(1).and_then(|line| source.lines.get(line)).copied().unwrap_or(0);
        let end = source.lines.get(next).map_or(offset(source.text.len()), |&end| end.saturating_sub(1));
        let text = self.slice(Span { file: span.file, start, end });
        let end = if text.ends_with(b"\r") { end.saturating_sub(1) } else { end };
        Span { file: span.file, start, end }
    }

    /// The bytes of a piece.
    pub fn slice(&self, span: Span) -> &[u8] {
        self.text(span.file).get(span.start as usize..span.end as usize).unwrap_or_default()
    }

    /// A piece's file and line, for messages after loading.
    pub fn place(&self, span: Span) -> Place {
        Place { file: self.name(span.file).to_owned(), line: self.line(span) }
    }

    /// The last line of a file that says something, without its end; the empty piece at the start when there is none.
    pub(super) fn end(&self, file: FileId) -> Span {
        let last = self.text(file).iter().rposition(|byte| !byte.is_ascii_whitespace());
        let at = last.map_or(0, offset);
        self.line_span(Span { file, start: at, end: at })
    }

    /// Where a rule stands.
    pub fn rule_place(&self, span: Span) -> RulePlace {
        RulePlace { file: span.file.0, line: self.line(span) }
    }

    /// The line at a place, without the blanks around it; empty when there is none.
    pub fn line_at(&self, place: RulePlace) -> &[u8] {
        let file = FileId(place.file);
        let start = self.source(file).and_then(|source| source.lines.get(place.line.saturating_sub(1) as usize));
        let Some(&start) = start else { return b"" };
        self.slice(self.line_span(Span { file, start, end: start })).trim_ascii()
    }

    fn source(&self, file: FileId) -> Option<&Source> {
        self.files.get(file.0 as usize)
    }
}

/// An offset or a count as 32 bits; what does not fit saturates.
pub(in crate::lang) fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one() {
        let mut sources = Sources::default();
        let file = sources.add("a.cfg".into(), "ä b\r\nccc\n".into());
        let span = |start| Span { file, start, end: start + 1 };
        assert_eq!((sources.line(span(0)), sources.column(span(0))), (1, 1));
        assert_eq!((sources.line(span(3)), sources.column(span(3))), (1, 3));
        assert_eq!((sources.line(span(6)), sources.column(span(8))), (2, 3));
        assert_eq!(sources.slice(sources.line_span(span(3))), "ä b".as_bytes());
        assert_eq!(sources.line(Span { file, start: 10, end: 10 }), 3);
    }
}
