//! From the text of a file to sections of lines of words.

use super::{
    ast::{Line, Section},
    block::Blocks,
    code,
    diag::Diagnostic,
    environment::Environment,
    keyword,
    source::{FileId, Sources, Span},
    words::{self, Split, Surroundings},
};

/// Larger files are refused: offsets are 32 bits wide, and nobody writes such rules.
const LARGEST: usize = 256 << 20;

/// The sections of a file. Lines with an error in a word are reported and left out.
pub(super) fn sections(
    sources: &Sources,
    file: FileId,
    environment: &mut Environment<'_>,
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
    let mut parser = Parser { sections: Vec::new(), blocks: Blocks::default(), homeless: false };
    for (number, shape) in (1..).zip(shapes) {
        let line = words::span(&shape, file);
        let section = parser.section();
        let around = Surroundings {
            outside: environment,
            file,
            text,
            name: sources.name(file),
            line: number,
            section: &section,
        };
        let split = words::words(shape, &around);
        parser.line(split, line, environment, found);
    }
    parser.blocks.end(sources.end(file), found);
    parser.sections
}

struct Parser {
    sections: Vec<Section>,
    blocks: Blocks,
    /// Whether a line before the first section was reported already.
    homeless: bool,
}

impl Parser {
    /// `.SECTION`: the name of the section at hand, its kind when it has none.
    fn section(&self) -> String {
        let words = self.sections.last().map_or(&[][..], |section| &section.head.words);
        words.get(1).or(words.first()).map(|word| word.lossy().into_owned()).unwrap_or_default()
    }

    fn line(&mut self, mut split: Split, whole: Span, environment: &mut Environment<'_>, found: &mut Vec<Diagnostic>) {
        let directive = split.words.first().is_some_and(|first| first.text.first() == Some(&b'.'));
        if directive || self.blocks.skips() {
            split.only_unreadable();
        }
        let broken = split.is_broken();
        found.append(&mut split.found);
        let words = split.words;
        let Some(first) = words.first() else { return };
        if directive {
            return self.blocks.directive(&words, broken, environment, found);
        }
        if broken || self.blocks.skips() {
            return;
        }
        let span = words.last().map_or(whole, |last| first.span.to(last.span));
        if keyword::section::opens(&words, self.sections.last()) {
            return self.sections.push(Section { head: Line { words, span }, lines: Vec::new() });
        }
        match self.sections.last_mut() {
            Some(section) => {
                let in_global = section.head.words.first().is_some_and(|head| head.is("global"));
                if in_global && Environment::is_change(&words) {
                    found.extend(environment.change(&words));
                }
                section.lines.push(Line { words, span });
            }
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
}
