//! Log-format strings (HAProxy manual §8.2.6), as far as rules use them: text and `%[expression]`.

use bumpalo::collections::Vec as BumpVec;

use super::{
    expr::Expr,
    phase::{Source, Stage},
    template::Groups,
    txn::Txn,
};

/// A compiled format.
#[derive(Clone, Debug)]
pub struct Format {
    pieces: Box<[Piece]>,
    text: Box<[u8]>,
}

/// One piece of a format.
#[derive(Clone, Debug)]
pub enum Piece {
    /// Text.
    Text(Box<[u8]>),
    /// `%[expression]`.
    Sample(Expr),
    /// `\1` in a replacement; nothing elsewhere.
    Group(u8),
}

impl Format {
    /// The format of these pieces, written as `text`.
    pub fn new(pieces: Vec<Piece>, text: &[u8]) -> Self {
        Self { pieces: pieces.into(), text: text.into() }
    }

    /// A format that always gives `text`.
    pub fn literal(text: &[u8]) -> Self {
        let pieces = if text.is_empty() { vec![] } else { vec![Piece::Text(text.into())] };
        Self::new(pieces, text)
    }

    /// Appends the text for this exchange; a missing sample gives nothing. Bytes of samples that no field
    /// value may hold (controls but tab) are percent-encoded.
    pub fn write(&self, txn: &Txn<'_>, out: &mut Vec<u8>) {
        self.each(txn, None, |bytes| out.extend_from_slice(bytes));
    }

    /// The text for this exchange, in its arena.
    pub fn text_in<'t>(&self, txn: &Txn<'t>) -> &'t [u8] {
        self.replacement_in(txn, None)
    }

    /// As [`Format::text_in`], with the groups of a match for `\0` to `\9`.
    pub fn replacement_in<'t>(&self, txn: &Txn<'t>, groups: Option<&Groups<'_>>) -> &'t [u8] {
        let mut text = BumpVec::new_in(txn.arena);
        self.each(txn, groups, |bytes| text.extend_from_slice(bytes));
        text.into_bump_slice()
    }

    /// The latest stage any of its expressions needs.
    pub fn stage(&self) -> Stage {
        self.exprs().map(Expr::stage).max().unwrap_or(Stage::Connection)
    }

    /// Where its values come from.
    pub fn sources(&self) -> impl Iterator<Item = Source> + '_ {
        self.exprs().map(Expr::source)
    }

    /// Its expressions, in order.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Sample(expr) => Some(expr),
            _ => None,
        })
    }

    /// Whether it refers to groups other than `\0`.
    pub fn has_groups(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Group(1..)))
    }

    /// How it is written.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    fn each(&self, txn: &Txn<'_>, groups: Option<&Groups<'_>>, mut put: impl FnMut(&[u8])) {
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => put(text),
                Piece::Group(number) => put(groups.map(|groups| groups.text(*number)).unwrap_or_default()),
                Piece::Sample(expr) => {
                    let text = expr.eval(txn).and_then(|sample| sample.text(txn.arena));
                    encode(text.unwrap_or_default(), &mut put);
                }
            }
        }
    }
}

/// Hands on the text with what RFC 9110 §5.5 forbids in field values as `%HH`.
fn encode(text: &[u8], put: &mut impl FnMut(&[u8])) {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| byte.is_ascii_control() && byte != b'\t') {
        let (before, from) = rest.split_at_checked(at).unwrap_or((rest, b""));
        put(before);
        let Some((&byte, after)) = from.split_first() else { return };
        put(&percent_encoded(byte));
        rest = after;
    }
    put(rest);
}

/// `%HH` (RFC 3986 §2.1).
pub(super) fn percent_encoded(byte: u8) -> [u8; 3] {
    const DIGITS: [u8; 16] = *b"0123456789ABCDEF";
    let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or_default();
    [b'%', digit(byte >> 4), digit(byte & 15)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_become_percent_escapes() {
        let mut out = Vec::new();
        encode(b"a\r\nb\t\x7f%", &mut |bytes| out.extend_from_slice(bytes));
        assert_eq!(out, b"a%0D%0Ab\t%7F%");
    }
}
