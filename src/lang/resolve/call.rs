//! The shape of an expression: `name[(argument,…)][,name[(argument,…)]]*`.

use std::ops::Range;

use super::codes;
use crate::lang::{ast::Word, diag::Diagnostic};

/// One name and its arguments.
#[derive(Debug)]
pub(super) struct Call {
    /// Where the name stands in the word.
    pub(super) name: Range<usize>,
    /// The arguments; none when there are no parentheses or nothing between them.
    pub(super) args: Vec<RawArg>,
    /// Where name and arguments stand.
    pub(super) whole: Range<usize>,
}

/// One argument after quotes and escapes are resolved.
#[derive(Clone, Debug)]
pub(in crate::lang) struct RawArg {
    /// Its text.
    pub(in crate::lang) text: Vec<u8>,
    /// Where it stands in the word, quotes included.
    pub(super) at: Range<usize>,
}

impl Call {
    /// The name's text.
    pub(super) fn name<'w>(&self, word: &'w Word) -> &'w [u8] {
        word.text.get(self.name.clone()).unwrap_or_default()
    }
}

/// Reads calls from the `from`-th byte of the word on. `bracketed`: up to a `]`, which stays unread; else to the end.
/// Returns where reading ended.
pub(super) fn calls(word: &Word, from: usize, bracketed: bool) -> Result<(Vec<Call>, usize), Diagnostic> {
    let mut reader = Reader { word, at: from, bracketed };
    let mut calls = vec![reader.call()?];
    while reader.peek() == Some(b',') {
        reader.at += 1;
        calls.push(reader.call()?);
    }
    match reader.peek() {
        None => Ok((calls, reader.at)),
        Some(b']') if bracketed => Ok((calls, reader.at)),
        Some(byte) => {
            let message = format!("unexpected `{}` in an expression", char::from(byte));
            let help = if byte == b')' { QUOTES } else { "converters are separated by `,`" };
            Err(reader.fault(reader.at..reader.at + 1, message).help(help))
        }
    }
}

/// Reads the parenthesised arguments of an action word (`set-var(txn.x)`), if it has any.
pub(super) fn one(word: &Word) -> Result<Call, Diagnostic> {
    let mut reader = Reader { word, at: 0, bracketed: false };
    let call = reader.call()?;
    match reader.peek() {
        None => Ok(call),
        Some(_) => Err(reader.fault(reader.at..word.text.len(), "nothing may follow the `)`".to_owned())),
    }
}

/// Reads the arguments behind the `(` at `at`. Returns where they end.
pub(in crate::lang) fn arguments(word: &Word, at: usize) -> Result<(Vec<RawArg>, usize), Diagnostic> {
    let mut reader = Reader { word, at, bracketed: false };
    let args = reader.arguments()?;
    Ok((args, reader.at))
}

const QUOTES: &str = "a `)` or `,` inside an argument needs quotes that survive the line: `'regsub(\"(a|b)\",x)'`";

struct Reader<'w> {
    word: &'w Word,
    at: usize,
    bracketed: bool,
}

impl Reader<'_> {
    fn call(&mut self) -> Result<Call, Diagnostic> {
        let start = self.at;
        while let Some(byte) = self.peek() {
            if matches!(byte, b'(' | b')' | b',') || (self.bracketed && byte == b']') {
                break;
            }
            self.at += 1;
        }
        let name = start..self.at;
        if name.is_empty() {
            return Err(self.fault(start..start + 1, "the name of a fetch or converter is missing".to_owned()));
        }
        let args = if self.peek() == Some(b'(') { self.arguments()? } else { Vec::new() };
        Ok(Call { name, args, whole: start..self.at })
    }

    fn arguments(&mut self) -> Result<Vec<RawArg>, Diagnostic> {
        let open = self.at;
        self.at += 1;
        if self.peek() == Some(b')') {
            self.at += 1;
            return Ok(Vec::new());
        }
        let mut args = Vec::new();
        loop {
            args.push(self.argument(open)?);
            let end = self.peek();
            self.at += 1;
            if end == Some(b')') {
                return Ok(args);
            }
        }
    }

    /// Reads up to a `,` or `)` outside quotes (HAProxy manual §2.2, second level: `\#`, `\$` and `\xHH` are no escapes here).
    fn argument(&mut self, open: usize) -> Result<RawArg, Diagnostic> {
        let start = self.at;
        let mut text = Vec::new();
        let mut quote = None;
        while let Some(byte) = self.peek() {
            let next = self.word.text.get(self.at + 1).copied();
            match (byte, quote) {
                (b',' | b')', None) => return Ok(RawArg { text, at: start..self.at }),
                (b'"' | b'\'', None) => quote = Some((byte, self.at)),
                (b'"' | b'\'', Some((open, _))) if byte == open => quote = None,
                (b'\\', Some((b'"', _)) | None) => {
                    if let Some(escaped) = next.and_then(escaped) {
                        text.push(escaped);
                        self.at += 1;
                    } else {
                        text.push(byte);
                    }
                }
                _ => text.push(byte),
            }
            self.at += 1;
        }
        Err(match quote {
            Some((_, at)) => self.fault(at..at + 1, "a quote in an argument is not closed".to_owned()),
            None => self.fault(open..open + 1, "this `(` is not closed".to_owned()).help(QUOTES),
        })
    }

    fn peek(&self) -> Option<u8> {
        self.word.text.get(self.at).copied()
    }

    fn fault(&self, at: Range<usize>, message: String) -> Diagnostic {
        Diagnostic::error(codes::EXPRESSION_SHAPE, self.word.part(at), message)
    }
}

fn escaped(byte: u8) -> Option<u8> {
    match byte {
        b'\\' | b' ' | b'"' | b'\'' => Some(byte),
        b'n' => Some(b'\n'),
        b'r' => Some(b'\r'),
        b't' => Some(b'\t'),
        _ => None,
    }
}
