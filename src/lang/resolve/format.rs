//! Log-format strings (HAProxy manual §8.2.6): text, `%%`, `%[expression]`, aliases, flags, names.

use super::{Scope, call::calls, codes, expr};
use crate::{
    lang::{ast::Word, diag::Diagnostic, suggest},
    rule::{
        Format, Phase, alias,
        format::{Flags, Piece},
        template::{self, Part},
    },
};

/// The format that a word is.
pub fn format(scope: &mut Scope<'_>, word: &Word, phase: Phase) -> Option<Format> {
    read(scope, word, phase, Use::Line)
}

/// The line of a log that a word is.
pub fn log_format(scope: &mut Scope<'_>, word: &Word) -> Option<Format> {
    read(scope, word, Phase::Log, Use::Log)
}

/// The format that a word of `global` is: it is written before there is a connection.
pub fn global_format(scope: &mut Scope<'_>, word: &Word) -> Option<Format> {
    let format = read(scope, word, Phase::Request, Use::Body)?;
    expr::internal(scope, format.exprs(), word).then_some(format)
}

/// The unique id that a word is.
pub fn unique_id(scope: &mut Scope<'_>, word: &Word) -> Option<Format> {
    let format = read(scope, word, Phase::Request, Use::Id)?;
    let itself = format.aliases().any(|row| row.name == "ID")
        || format.exprs().any(|expr| expr.fetch().names.contains(&"unique-id"));
    if itself {
        scope.error(codes::FORMAT_SHAPE, word.span, "a unique id cannot be made of itself");
        return None;
    }
    Some(format)
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
    /// A line of a log: blanks that follow each other are one.
    Log,
    /// A unique id: as [`Use::Line`], blanks that follow each other are one.
    Id,
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
        for_what,
        plain: Vec::new(),
        start: 0,
        flags: Flags::default(),
        pieces: Vec::new(),
    };
    reader.run()?;
    let pieces = reader.pieces;
    Some(match for_what {
        Use::Log => Format::of_log(pieces, &word.text),
        _ => Format::new(pieces, &word.text),
    })
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
    for_what: Use,
    /// Text not yet made a piece.
    plain: Vec<u8>,
    /// Where it starts.
    start: usize,
    /// What `%{…}o` has set for the rest.
    flags: Flags,
    pieces: Vec<Piece>,
}

impl Reader<'_, '_, '_> {
    fn run(&mut self) -> Option<()> {
        let mut at = 0;
        while let Some(byte) = self.byte(at) {
            match (byte, self.byte(at + 1)) {
                (b'%', Some(b'%')) => {
                    self.plain.push(b'%');
                    at += 2;
                }
                (b'%', _) => {
                    self.flush()?;
                    at = self.item(at)?;
                    self.start = at;
                }
                (b' ', Some(b' ')) if matches!(self.for_what, Use::Log | Use::Id) => at += 1,
                _ => {
                    self.plain.push(byte);
                    at += 1;
                }
            }
        }
        self.flush()
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.word.text.get(at).copied()
    }

    /// `%[(name)][{flags}][expression]` or `%[(name)][{flags}]alias`, whose `%` is at `start`; returns where it ends.
    fn item(&mut self, start: usize) -> Option<usize> {
        let mut at = start + 1;
        if self.byte(at) == Some(b'(') {
            // Names are for encodings that have them; a line of text has none.
            at = self.closed(start, at, b')')? + 1;
        }
        let mut flags = self.flags;
        if self.byte(at) == Some(b'{') {
            let end = self.closed(start, at, b'}')?;
            flags = self.changed(flags, at + 1, end)?;
            at = end + 1;
        }
        if self.byte(at) == Some(b'[') {
            return self.sample(at, flags);
        }
        self.alias(start, at, flags)
    }

    /// Where what opens at `at` is closed.
    fn closed(&mut self, start: usize, at: usize, with: u8) -> Option<usize> {
        let rest = self.word.text.get(at..).unwrap_or_default();
        let found = memchr::memchr(with, rest).map(|end| at + end);
        if found.is_none() {
            let opened = self.word.part(start..at + 1);
            self.scope.error(codes::FORMAT_SHAPE, opened, format!("this is not closed with `{}`", char::from(with)));
        }
        found
    }

    /// The flags with what the bytes between two places say of them.
    fn changed(&mut self, mut flags: Flags, from: usize, to: usize) -> Option<Flags> {
        let text = self.word.text.get(from..to).unwrap_or_default();
        let mut at = from;
        for word in text.split(|byte| *byte == b',') {
            let span = self.word.part(at..at + word.len());
            at += word.len() + 1;
            let (on, name) = match word.split_first() {
                Some((b'+', name)) => (true, name),
                Some((b'-', name)) => (false, name),
                // HAProxy reads a flag without a sign, and does nothing.
                _ if matches!(word, b"Q" | b"X" | b"E" | b"M") => {
                    let message = format!("the flag `{}` does nothing without a sign", String::from_utf8_lossy(word));
                    self.scope.warn(codes::FORMAT_FLAG, span, message, "write `+` or `-` before it");
                    continue;
                }
                _ => (true, word),
            };
            match name {
                b"Q" => flags.quote = on,
                b"X" => flags.hex = on,
                b"E" => flags.escape = on,
                // What is not there is a dash in logs in any case.
                b"M" => {}
                b"json" | b"cbor" | b"bin" => {
                    let name = String::from_utf8_lossy(name);
                    let message = format!("the encoding `{name}` of HAProxy 3 is not built");
                    self.scope.refuse(codes::UNBUILT_ACTION, span, message);
                    return None;
                }
                _ => {
                    let message = format!("unknown flag `{}`", String::from_utf8_lossy(word));
                    let finding = Diagnostic::error(codes::FORMAT_SHAPE, span, message);
                    self.scope.report(finding.help(
                        "flags are `Q` (quotes), `X` (hexadecimal) and `E` (escapes), with `+` or `-` before each",
                    ));
                    return None;
                }
            }
        }
        Some(flags)
    }

    /// `[expression]`; returns where it ends.
    fn sample(&mut self, at: usize, flags: Flags) -> Option<usize> {
        let (calls, end) = match calls(self.word, at + 1, true) {
            Ok(read) => read,
            Err(finding) => {
                self.scope.report(finding);
                return None;
            }
        };
        if self.word.text.get(end) != Some(&b']') {
            self.scope.error(codes::FORMAT_SHAPE, self.word.part(at - 1..at + 1), "this `%[` is not closed");
            return None;
        }
        let expr = expr::in_phase(self.scope, self.word, &calls, self.phase)?;
        self.pieces.push(Piece::Sample(expr, flags));
        Some(end + 1)
    }

    /// The letters of an alias; returns where they end.
    fn alias(&mut self, start: usize, at: usize, flags: Flags) -> Option<usize> {
        let rest = self.word.text.get(at..).unwrap_or_default();
        let letters = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        let name = String::from_utf8_lossy(rest.get(..letters).unwrap_or_default()).into_owned();
        if name == "o" {
            self.flags = flags;
            return Some(at + letters);
        }
        if let Some(row) = alias::find(&name) {
            self.pieces.push(Piece::Alias(row, flags));
            return Some(at + letters);
        }
        let span = self.word.part(start..(at + letters.max(1)).min(self.word.text.len()));
        let help = "write `%%` for a percent sign, `%[…]` for a sample";
        if name == "OG" {
            self.scope.refuse(codes::UNBUILT_ACTION, span, "the log alias `%OG` is not built: nothing traces here");
        } else if name.is_empty() {
            let finding = Diagnostic::error(codes::FORMAT_SHAPE, span, "this `%` begins nothing");
            self.scope.report(finding.help(help));
        } else {
            let nearest = suggest::nearest(&name, alias::ROWS.iter().map(|row| row.name));
            let nearest = nearest.map(|alias| format!("%{alias}"));
            let finding = Diagnostic::error(codes::UNKNOWN_ALIAS, span, format!("unknown log alias `%{name}`"));
            self.scope.report(finding.help(help).did_you_mean(nearest.as_deref()));
        }
        None
    }

    /// Makes a piece of the text read so far.
    fn flush(&mut self) -> Option<()> {
        let plain = std::mem::take(&mut self.plain);
        if plain.is_empty() {
            return Some(());
        }
        if self.for_what != Use::Replacement {
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
