//! Log-format strings (HAProxy manual §8.2.6): text, `%%`, `%[expression]`.

use super::{Scope, call::calls, codes, expr, known};
use crate::{
    lang::{ast::Word, diag::Diagnostic, suggest},
    rule::{
        Format, Phase,
        format::Piece,
        template::{self, Part},
    },
};

/// The format that a word is.
pub fn format(scope: &mut Scope<'_>, word: &Word, phase: Phase) -> Option<Format> {
    read(scope, word, phase, Use::Line)
}

/// What a format is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// One line of a head: no control characters.
    Line,
    /// As [`Use::Line`], with `\1` for what a pattern's groups matched.
    Replacement,
    /// A body.
    Body,
}

/// The format that a word is.
pub(super) fn read(scope: &mut Scope<'_>, word: &Word, phase: Phase, for_what: Use) -> Option<Format> {
    if for_what != Use::Body {
        no_controls(scope, word)?;
    }
    let mut reader = Reader {
        scope,
        word,
        phase,
        groups: for_what == Use::Replacement,
        plain: Vec::new(),
        start: 0,
        pieces: Vec::new(),
    };
    reader.run()?;
    let pieces = reader.pieces;
    Some(Format::new(pieces, &word.text))
}

/// A word without control characters but tab: it becomes part of a line.
pub(super) fn no_controls(scope: &mut Scope<'_>, word: &Word) -> Option<()> {
    let Some(at) = word.text.iter().position(|byte| byte.is_ascii_control() && *byte != b'\t') else { return Some(()) };
    let span = word.part(at..at + 1);
    scope.error(codes::CONTROL_CHARACTER, span, "a control character would break the message this becomes part of");
    None
}

struct Reader<'r, 's, 'w> {
    scope: &'r mut Scope<'s>,
    word: &'w Word,
    phase: Phase,
    groups: bool,
    /// Text not yet made a piece.
    plain: Vec<u8>,
    /// Where it starts.
    start: usize,
    pieces: Vec<Piece>,
}

impl Reader<'_, '_, '_> {
    fn run(&mut self) -> Option<()> {
        let mut at = 0;
        while let Some(&byte) = self.word.text.get(at) {
            if byte != b'%' {
                self.plain.push(byte);
                at += 1;
                continue;
            }
            match self.word.text.get(at + 1) {
                Some(b'%') => {
                    self.plain.push(b'%');
                    at += 2;
                }
                Some(b'[') => {
                    self.flush()?;
                    at = self.sample(at)?;
                    self.start = at;
                }
                _ => return self.other(at),
            }
        }
        self.flush()
    }

    /// `%[expression]`; returns where it ends.
    fn sample(&mut self, at: usize) -> Option<usize> {
        let (calls, end) = match calls(self.word, at + 2, true) {
            Ok(read) => read,
            Err(finding) => {
                self.scope.report(finding);
                return None;
            }
        };
        if self.word.text.get(end) != Some(&b']') {
            self.scope.error(codes::FORMAT_SHAPE, self.word.part(at..at + 2), "this `%[` is not closed");
            return None;
        }
        let expr = expr::in_phase(self.scope, self.word, &calls, self.phase)?;
        self.pieces.push(Piece::Sample(expr));
        Some(end + 1)
    }

    /// A `%` that begins neither text nor an expression.
    fn other(&mut self, at: usize) -> Option<()> {
        let rest = self.word.text.get(at + 1..).unwrap_or_default();
        let letters = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let name = String::from_utf8_lossy(rest.get(..letters).unwrap_or_default()).into_owned();
        let span = self.word.part(at..at + 1 + letters.max(1).min(rest.len()));
        if matches!(rest.first(), Some(b'{' | b'(')) {
            self.scope.refuse(
                codes::UNBUILT_ACTION,
                span,
                "flags and names in formats (`%{…}`, `%(…)`) are not built yet",
            );
        } else if known::is_alias(&name) {
            self.scope.refuse(codes::UNBUILT_ACTION, span, format!("the log alias `%{name}` is not built yet"));
        } else if name.is_empty() {
            let finding = Diagnostic::error(codes::FORMAT_SHAPE, span, "this `%` begins nothing");
            self.scope.report(finding.help("write `%%` for a percent sign, `%[…]` for a sample"));
        } else {
            let nearest = suggest::nearest(&name, known::aliases()).map(|alias| format!("%{alias}"));
            let finding = Diagnostic::error(codes::UNKNOWN_ALIAS, span, format!("unknown log alias `%{name}`"));
            let finding = finding.help("write `%%` for a percent sign, `%[…]` for a sample");
            self.scope.report(finding.did_you_mean(nearest.as_deref()));
        }
        None
    }

    /// Makes a piece of the text read so far.
    fn flush(&mut self) -> Option<()> {
        let plain = std::mem::take(&mut self.plain);
        if plain.is_empty() {
            return Some(());
        }
        if !self.groups {
            self.pieces.push(Piece::Text(plain.into()));
            return Some(());
        }
        match template::parts(&plain) {
            Ok(parts) => {
                self.pieces.extend(parts.into_iter().map(|part| match part {
                    Part::Text(text) => Piece::Text(text),
                    Part::Group(number) => Piece::Group(number),
                }));
                Some(())
            }
            Err(at) => {
                let from = self.start + at;
                let finding = Diagnostic::error(
                    codes::BAD_REPLACEMENT,
                    self.word.part(from..from + 1),
                    "this escape is not complete",
                );
                self.scope.report(finding.help("write `\\\\` for a backslash, `\\1` for a group, `\\xHH` for a byte"));
                None
            }
        }
    }
}
