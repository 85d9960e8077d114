//! From the text of a file to sections of lines of words.

use super::{
    Outside,
    ast::{Line, Section, Word},
    code,
    diag::Diagnostic,
    keyword,
    source::{FileId, Sources, Span},
    words::{self, Surroundings},
};

/// Larger files are refused: offsets are 32 bits wide, and nobody writes such rules.
const LARGEST: usize = 256 << 20;

/// The sections of a file. Lines with an error in a word are reported and left out.
pub(super) fn sections(
    sources: &Sources,
    file: FileId,
    outside: &dyn Outside,
    found: &mut Vec<Diagnostic>,
) -> Vec<Section> {
    let text = sources.text(file);
    let start = Span { file, start: 0, end: 0 };
    if text.len() > LARGEST {
        found.push(Diagnostic::error(code::TOO_LARGE, start, "this file is larger than 256 MiB"));
        return Vec::new();
    }
    let readable = words::readable(text);
    let shapes = match words::lines(&readable) {
        Ok(shapes) => shapes,
        Err(error) => {
            found.push(Diagnostic::error(code::TOO_LARGE, start, error.to_string()));
            return Vec::new();
        }
    };
    let mut parser = Parser { sections: Vec::new(), skip: None, homeless: false };
    for (number, shape) in (1..).zip(shapes) {
        let line = words::span(&shape, file);
        let section = parser.sections.last().and_then(|section| section.head.words.first());
        let section = section.map(|word| word.lossy().into_owned()).unwrap_or_default();
        let around = Surroundings { outside, file, text, name: sources.name(file), line: number, section: &section };
        if let Some(words) = words::words(shape, &around, found) {
            parser.line(words, line, found);
        }
    }
    if let Some((_, opened)) = parser.skip {
        found.push(Diagnostic::error(code::CONDITIONAL, opened, "this `.if` has no `.endif`"));
    }
    parser.sections
}

struct Parser {
    sections: Vec<Section>,
    /// Inside a conditional block: how deep, and where it was opened.
    skip: Option<(u32, Span)>,
    /// Whether a line before the first section was reported already.
    homeless: bool,
}

impl Parser {
    fn line(&mut self, words: Vec<Word>, whole: Span, found: &mut Vec<Diagnostic>) {
        let Some(first) = words.first() else { return };
        let span = words.last().map_or(whole, |last| first.span.to(last.span));
        if first.text.first() == Some(&b'.') {
            return self.conditional(first, found);
        }
        if self.skip.is_some() {
            return;
        }
        if keyword::section::opens(&words, self.sections.last()) {
            return self.sections.push(Section { head: Line { words, span }, lines: Vec::new() });
        }
        match self.sections.last_mut() {
            Some(section) => section.lines.push(Line { words, span }),
            None if self.homeless => {}
            None => {
                self.homeless = true;
                let message = format!("`{}` stands before the first section", first.lossy());
                found.push(
                    Diagnostic::error(code::NO_SECTION, first.span, message)
                        .did_you_mean(keyword::section::nearest(&first.lossy()))
                        .help("a file starts with a section such as `global`, `defaults` or `frontend NAME`"),
                );
            }
        }
    }

    fn conditional(&mut self, first: &Word, found: &mut Vec<Diagnostic>) {
        let refuse = |what: &str| {
            Diagnostic::error(code::CONDITIONAL, first.span, format!("{what} are not built yet"))
                .help("write what holds on this machine, or keep a file for each case and load the right one")
        };
        match (first.text.as_slice(), &mut self.skip) {
            (b".if", Some((depth, _))) => *depth = depth.saturating_add(1),
            (b".if", None) => {
                self.skip = Some((0, first.span));
                found.push(refuse("conditional blocks"));
            }
            (b".endif", Some((0, _))) => self.skip = None,
            (b".endif", Some((depth, _))) => *depth -= 1,
            (_, Some(_)) => {}
            (b".elif" | b".else" | b".endif", None) => {
                let message = format!("`{}` without `.if`", first.lossy());
                found.push(Diagnostic::error(code::CONDITIONAL, first.span, message));
            }
            (b".notice" | b".warning" | b".diag" | b".alert", None) => found.push(refuse("messages from a file")),
            (_, None) => {
                let known = [".if", ".elif", ".else", ".endif", ".notice", ".warning", ".diag", ".alert"];
                let nearest = super::suggest::nearest(&first.lossy(), known.into_iter());
                let message = format!("unknown word `{}`", first.lossy());
                found.push(Diagnostic::error(code::UNKNOWN_WORD, first.span, message).did_you_mean(nearest));
            }
        }
    }
}
