//! Log-format strings (HAProxy manual §8.2.6): text, `%[expression]`, aliases. The same for a header and a log line.

use std::{fmt, net::IpAddr};

use bumpalo::collections::Vec as BumpVec;

use super::{
    alias::AliasRow,
    expr::Expr,
    phase::{Source, Stage},
    template::Groups,
    txn::Txn,
};

/// A compiled format.
#[derive(Clone, Debug, Default)]
pub struct Format {
    pieces: Box<[Piece]>,
    text: Box<[u8]>,
    style: Style,
}

/// One piece of a format.
#[derive(Clone, Debug)]
pub enum Piece {
    /// Text.
    Text(Box<[u8]>),
    /// `%[expression]`.
    Sample(Expr, Flags),
    /// `%ci`.
    Alias(&'static AliasRow, Flags),
    /// `\1` in a replacement; nothing elsewhere.
    Group(u8),
}

/// How one piece is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `Q`: texts stand in quotes.
    pub quote: bool,
    /// `X`: addresses, ports and some numbers are hexadecimal.
    pub hex: bool,
    /// `E`: `"`, `\` and `]` are escaped (RFC 5424 §6.3.3).
    pub escape: bool,
}

/// What a format is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// A piece of a message: what is not there gives nothing.
    #[default]
    Message,
    /// A line of a log: what is not there is a `-`.
    Log,
}

impl Format {
    /// The format of these pieces, written as `text`.
    pub fn new(pieces: Vec<Piece>, text: &[u8]) -> Self {
        Self { pieces: pieces.into(), text: text.into(), style: Style::Message }
    }

    /// As [`Format::new`], for a log.
    pub fn of_log(pieces: Vec<Piece>, text: &[u8]) -> Self {
        Self { style: Style::Log, ..Self::new(pieces, text) }
    }

    /// A format that always gives `text`.
    pub fn literal(text: &[u8]) -> Self {
        let pieces = if text.is_empty() { vec![] } else { vec![Piece::Text(text.into())] };
        Self::new(pieces, text)
    }

    /// Appends the text for this exchange; a missing sample gives nothing, `-` in a log. Bytes of samples that no field
    /// value may hold (controls but tab) are percent-encoded; in a log they become `#HH`.
    pub fn write(&self, txn: &Txn<'_>, out: &mut Vec<u8>) {
        self.each(txn, None, &mut |bytes| out.extend_from_slice(bytes));
    }

    /// The text for this exchange, in its arena.
    pub fn text_in<'t>(&self, txn: &Txn<'t>) -> &'t [u8] {
        self.replacement_in(txn, None)
    }

    /// As [`Format::text_in`], with the groups of a match for `\0` to `\9`.
    pub fn replacement_in<'t>(&self, txn: &Txn<'t>, groups: Option<&Groups<'_>>) -> &'t [u8] {
        let mut text = BumpVec::new_in(txn.arena);
        self.each(txn, groups, &mut |bytes| text.extend_from_slice(bytes));
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
            Piece::Sample(expr, _) => Some(expr),
            _ => None,
        })
    }

    /// Its aliases, in order.
    pub fn aliases(&self) -> impl Iterator<Item = &'static AliasRow> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Alias(row, _) => Some(*row),
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

    fn each(&self, txn: &Txn<'_>, groups: Option<&Groups<'_>>, put: &mut dyn FnMut(&[u8])) {
        if self.style == Style::Message {
            return self.pieces_to(txn, groups, put, &mut false);
        }
        // Blanks of the format that nothing stands between are one, and none stands at the beginning.
        let mut blank = true;
        self.pieces_to(txn, groups, put, &mut blank);
    }

    fn pieces_to(&self, txn: &Txn<'_>, groups: Option<&Groups<'_>>, put: &mut dyn FnMut(&[u8]), blank: &mut bool) {
        for piece in &self.pieces {
            if let Piece::Text(text) = piece
                && self.style == Style::Log
            {
                let text = text.strip_prefix(b" ").filter(|_| *blank).unwrap_or(text);
                put(text);
                *blank = text.last().map_or(*blank, |last| *last == b' ');
                continue;
            }
            let put = &mut |bytes: &[u8]| {
                *blank = false;
                put(bytes);
            };
            match piece {
                Piece::Text(text) => put(text),
                Piece::Group(number) => put(groups.map(|groups| groups.text(*number)).unwrap_or_default()),
                Piece::Alias(row, flags) => {
                    (row.write)(txn, &mut Writer { put, flags: *flags, style: self.style });
                }
                Piece::Sample(expr, flags) => {
                    let text = expr.eval(txn).and_then(|sample| sample.text(txn.arena));
                    Writer { put, flags: *flags, style: self.style }.sample(text);
                }
            }
        }
    }
}

/// Takes the text of one piece.
pub struct Writer<'w> {
    put: &'w mut dyn FnMut(&[u8]),
    flags: Flags,
    style: Style,
}

impl Writer<'_> {
    /// The flags of the piece.
    pub const fn flags(&self) -> Flags {
        self.flags
    }

    /// Bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        (self.put)(bytes);
    }

    /// A text, in quotes and escaped as the flags say; nothing, or a `-` in a log, when there is none.
    pub fn text(&mut self, text: Option<&[u8]>) {
        let text = text.unwrap_or_default();
        if text.is_empty() && self.style == Style::Log && !self.flags.quote {
            return self.raw(b"-");
        }
        self.quoted(|out| out.escaped(text));
    }

    /// What `inner` writes, in quotes when the flags say so.
    pub fn quoted(&mut self, inner: impl FnOnce(&mut Self)) {
        if self.flags.quote {
            self.raw(b"\"");
        }
        inner(self);
        if self.flags.quote {
            self.raw(b"\"");
        }
    }

    /// A text in which the bytes that are `set` and all that are not printable ASCII become `#HH`.
    pub fn encoded(&mut self, text: &[u8], set: &[u8]) {
        self.mapped(text, |byte| (!matches!(byte, 0x20..=0x7e) || set.contains(&byte)).then(|| escape(b'#', byte)));
    }

    /// A number, whatever the flags.
    pub fn number(&mut self, value: impl fmt::Display) {
        self.print(format_args!("{value}"));
    }

    /// A number, with at least so many hexadecimal digits when the flags say so.
    pub fn number_or_hex(&mut self, value: u64, digits: usize) {
        if self.flags.hex {
            self.print(format_args!("{value:0digits$X}"));
        } else {
            self.print(format_args!("{value}"));
        }
    }

    /// An address.
    pub fn address(&mut self, address: Option<IpAddr>) {
        let Some(address) = address else { return self.text(None) };
        if !self.flags.hex {
            return self.quoted(|out| out.print(format_args!("{address}")));
        }
        match address {
            IpAddr::V4(address) => address.octets().iter().for_each(|byte| self.print(format_args!("{byte:02X}"))),
            IpAddr::V6(address) => address.octets().iter().for_each(|byte| self.print(format_args!("{byte:02X}"))),
        }
    }

    /// Formatted text as it is.
    pub fn print(&mut self, arguments: fmt::Arguments<'_>) {
        // Nothing that takes bytes fails.
        let _ = fmt::Write::write_fmt(self, arguments);
    }

    /// The value of an expression.
    fn sample(&mut self, text: Option<&[u8]>) {
        match self.style {
            Style::Log => {
                // A control character of a client's could begin a line of its own; HAProxy writes them all.
                let text = text.unwrap_or_default();
                if text.is_empty() && !self.flags.quote {
                    return self.raw(b"-");
                }
                let barred = |byte: u8| byte.is_ascii_control() && byte != b'\t';
                self.quoted(|out| out.mapped(text, |byte| barred(byte).then(|| escape(b'#', byte))));
            }
            Style::Message => {
                // RFC 9110 §5.5.
                let barred = |byte: u8| byte.is_ascii_control() && byte != b'\t';
                self.mapped(text.unwrap_or_default(), |byte| barred(byte).then(|| percent_encoded(byte)));
            }
        }
    }

    fn escaped(&mut self, text: &[u8]) {
        self.mapped(text, |_| None);
    }

    /// The text with what `replace` gives for bytes, and with the escapes that the flags ask for.
    fn mapped(&mut self, text: &[u8], replace: impl Fn(u8) -> Option<[u8; 3]>) {
        let escapes = |byte: u8| self.flags.escape && matches!(byte, b'"' | b'\\' | b']');
        let mut rest = text;
        while let Some(at) = rest.iter().position(|&byte| replace(byte).is_some() || escapes(byte)) {
            let (before, from) = rest.split_at_checked(at).unwrap_or((rest, b""));
            (self.put)(before);
            let Some((&byte, after)) = from.split_first() else { return };
            match replace(byte) {
                Some(replaced) => (self.put)(&replaced),
                None => (self.put)(&[b'\\', byte]),
            }
            rest = after;
        }
        (self.put)(rest);
    }
}

impl fmt::Write for Writer<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        (self.put)(text.as_bytes());
        Ok(())
    }
}

/// `%HH` (RFC 3986 §2.1).
pub(super) fn percent_encoded(byte: u8) -> [u8; 3] {
    escape(b'%', byte)
}

fn escape(mark: u8, byte: u8) -> [u8; 3] {
    const DIGITS: [u8; 16] = *b"0123456789ABCDEF";
    let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or_default();
    [mark, digit(byte >> 4), digit(byte & 15)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(flags: Flags, style: Style, write: impl FnOnce(&mut Writer<'_>)) -> String {
        let mut out = Vec::new();
        write(&mut Writer { put: &mut |bytes| out.extend_from_slice(bytes), flags, style });
        String::from_utf8(out).unwrap()
    }

    const PLAIN: Flags = Flags { quote: false, hex: false, escape: false };
    const QUOTE: Flags = Flags { quote: true, ..PLAIN };
    const HEX: Flags = Flags { hex: true, ..PLAIN };
    const ESCAPE: Flags = Flags { escape: true, ..PLAIN };

    #[test]
    fn values_are_made_safe_for_where_they_go() {
        let text = Some(&b"a\r\nb\t\x7f%"[..]);
        assert_eq!(written(PLAIN, Style::Message, |out| out.sample(text)), "a%0D%0Ab\t%7F%");
        assert_eq!(written(QUOTE, Style::Message, |out| out.sample(text)), "a%0D%0Ab\t%7F%");
        assert_eq!(written(QUOTE, Style::Log, |out| out.sample(text)), "\"a#0D#0Ab\t#7F%\"");
        assert_eq!(written(ESCAPE, Style::Log, |out| out.sample(Some(b"\"\\]#"))), "\\\"\\\\\\]#");
        assert_eq!(written(PLAIN, Style::Log, |out| out.encoded(b"a{#\"\xe9", b"{#\"")), "a#7B#23#22#E9");
        assert_eq!(written(ESCAPE, Style::Log, |out| out.encoded(b"\"]\\", b"\"")), "#22\\]\\\\");
    }

    #[test]
    fn what_is_not_there_is_a_dash_in_logs_alone() {
        for (flags, style, expected) in
            [(PLAIN, Style::Log, "-"), (QUOTE, Style::Log, "\"\""), (PLAIN, Style::Message, "")]
        {
            assert_eq!(written(flags, style, |out| out.text(None)), expected);
            assert_eq!(written(flags, style, |out| out.text(Some(b""))), expected);
            assert_eq!(written(flags, style, |out| out.sample(None)), expected);
        }
        assert_eq!(written(QUOTE, Style::Message, |out| out.text(None)), "\"\"");
    }

    #[test]
    fn addresses_and_numbers_in_hexadecimal() {
        let v6 = Some("2001:db8::1".parse().unwrap());
        assert_eq!(written(HEX, Style::Log, |out| out.address(Some([127, 0, 0, 1].into()))), "7F000001");
        assert_eq!(written(HEX, Style::Log, |out| out.address(v6)), "20010DB8000000000000000000000001");
        assert_eq!(written(QUOTE, Style::Log, |out| out.address(v6)), "\"2001:db8::1\"");
        assert_eq!(written(HEX, Style::Log, |out| out.number_or_hex(26, 4)), "001A");
        assert_eq!(written(PLAIN, Style::Log, |out| out.number_or_hex(26, 4)), "26");
    }
}
