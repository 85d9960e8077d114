//! Findings for people: the line, the column, the words underlined, the way out.

use std::fmt::Write;

use super::{
    Loaded,
    diag::{Diagnostic, Severity},
    source::{Sources, Span},
};

/// The width of a source line that is shown; of longer ones the part around the finding.
const WIDTH: usize = 120;

/// How much of a longer line is looked at on each side of a finding, in bytes.
const NEAR: u32 = 2048;

/// How many errors are shown, and how many other findings; what comes behind so many is counted only.
const MOST: usize = 200;

/// Everything that loading found, and how much of it. Empty when nothing was found.
pub fn render(loaded: &Loaded, color: bool) -> String {
    let mut out = String::new();
    let (mut errors, mut others, mut more) = (0, 0, 0);
    for finding in &loaded.diagnostics {
        let shown = if finding.severity == Severity::Error { &mut errors } else { &mut others };
        if *shown == MOST {
            more += 1;
            continue;
        }
        *shown += 1;
        out.push_str(&finding_text(finding, &loaded.sources, color));
        out.push('\n');
    }
    if more > 0 {
        let _ = writeln!(out, "{more} more are not shown\n");
    }
    let summary = summary(&loaded.diagnostics);
    if !summary.is_empty() {
        out.push_str(&summary);
        out.push('\n');
    }
    out
}

/// `2 errors, 1 warning, 3 notes`; empty when there are none.
pub fn summary(findings: &[Diagnostic]) -> String {
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let parts = [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Note, "note")];
    let parts: Vec<_> = parts
        .into_iter()
        .map(|(severity, name)| (count(severity), name))
        .filter(|(count, _)| *count > 0)
        .map(|(count, name)| format!("{count} {name}{}", if count == 1 { "" } else { "s" }))
        .collect();
    parts.join(", ")
}

/// One finding. Notes go without their source line.
pub fn finding_text(finding: &Diagnostic, sources: &Sources, color: bool) -> String {
    let paint = Paint { color };
    let (name, code) = match finding.severity {
        Severity::Error => ("error", "1;31"),
        Severity::Warning => ("warning", "1;33"),
        Severity::Note => ("note", "1;36"),
    };
    let mut out = String::new();
    let head = paint.with(code, &format!("{name}[{}]", finding.code));
    let _ = writeln!(out, "{head}{}", paint.with("1", &format!(": {}", visible(finding.message.as_bytes()))));
    let places = by_line(finding, sources);
    let gutter = places.iter().map(|(line, _)| line.to_string().len()).max().unwrap_or(1);
    if finding.severity == Severity::Note {
        arrow(&mut out, sources, finding.span, gutter, paint);
    } else {
        let mut shown = None;
        for (line, marks) in &places {
            let Some(first) = marks.first() else { continue };
            match shown.replace((first.span.file, *line)) {
                Some((file, before)) if file == first.span.file => {
                    if before.saturating_add(1) < *line {
                        let _ = writeln!(out, "{}", paint.with("1;34", "..."));
                    }
                }
                before => {
                    let place = if before.is_none() { finding.span } else { first.span };
                    arrow(&mut out, sources, place, gutter, paint);
                    let _ = writeln!(out, "{:gutter$} {}", "", paint.with("1;34", "|"));
                }
            }
            snippet(&mut out, sources, *line, marks, gutter, (paint, code));
        }
    }
    for help in finding.help.lines() {
        let _ = writeln!(
            out,
            "{:gutter$} {} {}",
            "",
            paint.with("1;34", "="),
            paint.with("1", "help: ").as_str().to_owned() + &visible(help.as_bytes())
        );
    }
    out
}

#[derive(Clone, Copy)]
struct Paint {
    color: bool,
}

impl Paint {
    fn with(self, code: &str, text: &str) -> String {
        if self.color && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// A piece to underline.
struct Mark<'f> {
    span: Span,
    text: &'f str,
    primary: bool,
}

/// The finding's own place and the others, by line; those of its own file first, in their order.
fn by_line<'f>(finding: &'f Diagnostic, sources: &Sources) -> Vec<(u32, Vec<Mark<'f>>)> {
    let own = finding.labels.iter().find(|label| label.span == finding.span);
    let own = Mark { span: finding.span, text: own.map_or("", |label| &label.text), primary: true };
    let others = finding.labels.iter().filter(|label| label.span != finding.span);
    let others = others.map(|label| Mark { span: label.span, text: &label.text, primary: false });
    let mut places: Vec<(u32, Vec<Mark<'f>>)> = Vec::new();
    for mark in std::iter::once(own).chain(others) {
        let line = sources.line(mark.span);
        let same = |(other, marks): &&mut (u32, Vec<Mark<'f>>)| {
            *other == line && marks.first().is_some_and(|first| first.span.file == mark.span.file)
        };
        match places.iter_mut().find(same) {
            Some((_, marks)) => marks.push(mark),
            None => places.push((line, vec![mark])),
        }
    }
    let own = finding.span.file;
    places.sort_by_key(|(line, marks)| (marks.first().map(|mark| mark.span.file).filter(|file| *file != own), *line));
    places
}

fn arrow(out: &mut String, sources: &Sources, span: Span, gutter: usize, paint: Paint) {
    let name = visible(sources.name(span.file).as_bytes());
    let place = format!("{name}:{}:{}", sources.line(span), sources.column(span));
    let _ = writeln!(out, "{:gutter$}{} {place}", "", paint.with("1;34", "-->"));
}

fn snippet(out: &mut String, sources: &Sources, number: u32, marks: &[Mark<'_>], gutter: usize, colors: (Paint, &str)) {
    let (paint, code) = colors;
    let Some(first) = marks.first() else { return };
    let line = sources.line_span(first.span);
    let near = Span {
        start: line.start.max(first.span.start.saturating_sub(NEAR)),
        end: line.end.min(first.span.start.saturating_add(NEAR)),
        ..line
    };
    let shown = Shown::new(sources.slice(near), near.start, first.span.start);
    let bar = paint.with("1;34", "|");
    let _ = writeln!(out, "{} {bar} {}", paint.with("1;34", &format!("{number:gutter$}")), shown.text.trim_end());
    for mark in marks {
        let (start, end) = (shown.column(mark.span.start), shown.column(mark.span.end));
        let sign = if mark.primary { "^" } else { "-" };
        let under = sign.repeat(end.saturating_sub(start).max(1));
        let text = if mark.text.is_empty() { under } else { format!("{under} {}", visible(mark.text.as_bytes())) };
        let painted = paint.with(if mark.primary { code } else { "1;34" }, &text);
        let _ = writeln!(out, "{:gutter$} {bar} {:start$}{painted}", "", "");
    }
}

/// A source line as shown, and where its bytes went.
struct Shown {
    text: String,
    /// Offset of a character in the file, and its column as shown.
    columns: Vec<(u32, usize)>,
    width: usize,
}

impl Shown {
    fn new(line: &[u8], start: u32, focus: u32) -> Self {
        let cells = cells(line, start);
        let total: usize = cells.iter().map(|(_, text)| text.chars().count()).sum();
        let before: usize =
            cells.iter().filter(|(offset, _)| *offset < focus).map(|(_, text)| text.chars().count()).sum();
        let from = if total > WIDTH { before.saturating_sub(WIDTH / 3) } else { 0 };
        let mut shown = Self { text: String::new(), columns: Vec::new(), width: 0 };
        if from > 0 {
            shown.push("…");
        }
        let mut at = 0;
        for (offset, text) in &cells {
            if at >= from && shown.width >= WIDTH {
                shown.push("…");
                break;
            }
            if at >= from {
                shown.columns.push((*offset, shown.width));
                shown.push(text);
            }
            at += text.chars().count();
        }
        shown
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.width += text.chars().count();
    }

    /// The column of an offset; the end of the line for what lies behind it.
    fn column(&self, offset: u32) -> usize {
        let next = self.columns.partition_point(|(start, _)| *start < offset);
        self.columns.get(next).map_or(self.width, |(_, column)| *column)
    }
}

/// Each character of a line as shown, with its offset: tabs as blanks, what cannot be shown as `\xHH`.
fn cells(line: &[u8], start: u32) -> Vec<(u32, String)> {
    let mut cells = Vec::new();
    let mut at = start;
    let mut push = |text: String, length: usize| {
        cells.push((at, text));
        at = at.saturating_add(super::source::offset(length));
    };
    for chunk in line.utf8_chunks() {
        for character in chunk.valid().chars() {
            let text = match character {
                '\t' => "    ".to_owned(),
                _ if character.is_control() => character.escape_default().to_string(),
                _ => character.to_string(),
            };
            push(text, character.len_utf8());
        }
        for byte in chunk.invalid() {
            push(format!("\\x{byte:02x}"), 1);
        }
    }
    cells
}

/// A text with what a terminal must not get shown as escapes.
fn visible(text: &[u8]) -> String {
    cells(text, 0).into_iter().map(|(_, text)| text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &[u8], start: u32, end: u32) -> String {
        let mut sources = Sources::default();
        let file = sources.add("a.cfg".into(), text.into());
        finding_text(&Diagnostic::error("E0000", Span { file, start, end }, "no"), &sources, false)
    }

    #[test]
    fn a_word_is_underlined_where_it_is_seen() {
        let text = shown("x\n\tä\u{1b}\u{ff} bad".as_bytes(), 9, 12);
        assert_eq!(text, "error[E0000]: no\n --> a.cfg:2:6\n  |\n2 |     ä\\u{1b}ÿ bad\n  |              ^^^\n");
        let text = shown(b"\xff\xfe bad", 3, 6);
        assert!(text.contains("1 | \\xff\\xfe bad\n  |          ^^^\n"), "{text}");
    }

    #[test]
    fn a_long_line_is_cut_around_the_finding() {
        let text = shown(&[&b"a".repeat(500)[..], b" bad ", &b"b".repeat(500)].concat(), 501, 504);
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[3].starts_with("1 | …aaa") && lines[3].ends_with("b…"), "{text}");
        assert!(lines[3].chars().count() < 130);
        let column = lines[4].find('^').unwrap();
        let source: String = lines[3].chars().skip(column).take(3).collect();
        assert_eq!(source, "bad");
    }

    #[test]
    fn an_end_beyond_the_text_is_no_trouble() {
        for text in [&b""[..], b"\n", b"a"] {
            shown(text, 0, 5);
            shown(text, 9, 9);
        }
    }
}
