//! `Forwarded` (RFC 7239): `rfc7239_*`. Strict: parameters in lower case, each once, `;` between them and no
//! blanks; a `host` that is a name or an address, a `proto` that is `http` or `https`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{ConverterRow, Sample, TEXT, Txn, Type, joined, text};
use crate::rule::args::{ArgKind, ArgSpec};

pub(super) const ROWS: &[ConverterRow] = &[
    ConverterRow {
        names: &["rfc7239_is_valid"],
        output: Type::Bool,
        apply: |_, sample, _| Some(Sample::Bool(Element::read(text(sample)?).is_some())),
        ..TEXT
    },
    ConverterRow {
        names: &["rfc7239_field"],
        args: &[ArgSpec::need(ArgKind::Word(&["proto", "host", "for", "by"]))],
        apply: |args, sample, _| {
            let element = Element::read(text(sample)?)?;
            let value = match args.text(0)? {
                b"proto" => element.proto,
                b"host" => element.host,
                b"for" => element.r#for,
                _ => element.by,
            };
            value.map(Sample::Str)
        },
        ..TEXT
    },
    // The name of a node: an address, or text.
    ConverterRow {
        names: &["rfc7239_n2nn"],
        output: Type::Any,
        apply: |_, sample, _| match node(&mut Reader(text(sample)?), true)?.name {
            Name::Address(address) => Some(Sample::Ip(address)),
            Name::Text(text) => Some(Sample::Str(text)),
        },
        ..TEXT
    },
    // The port of a node: an integer, or text.
    ConverterRow {
        names: &["rfc7239_n2np"],
        output: Type::Any,
        apply: |_, sample, _| match node(&mut Reader(text(sample)?), true)?.port? {
            Port::Number(port) => Some(Sample::Int(port)),
            Port::Text(text) => Some(Sample::Str(text)),
        },
        ..TEXT
    },
    ConverterRow {
        names: &["rfc7239_nn"],
        input: Type::Any,
        apply: |_, sample, txn| match sample {
            Sample::Ip(IpAddr::V4(_)) => sample.text(txn.arena).map(Sample::Str),
            Sample::Ip(IpAddr::V6(_)) => Some(joined(&[b"[", sample.text(txn.arena)?, b"]"], txn)),
            _ => match sample.text(txn.arena)? {
                b"" => Some(Sample::Str(b"unknown")),
                text => hidden(text, txn),
            },
        },
        ..TEXT
    },
    ConverterRow {
        names: &["rfc7239_np"],
        input: Type::Any,
        apply: |_, sample, txn| match sample {
            Sample::Int(port) => Sample::Int(port & 0xffff_ffff).text(txn.arena).map(Sample::Str),
            _ => hidden(sample.text(txn.arena)?, txn),
        },
        ..TEXT
    },
];

/// `_` before a text that may stand behind one (RFC 7239 §6.3).
fn hidden<'s>(text: &[u8], txn: &'s Txn<'_>) -> Option<Sample<'s>> {
    let fits = !text.is_empty() && text.iter().all(obscure);
    fits.then(|| joined(&[b"_", text], txn))
}

/// RFC 7239 §6.3.
fn obscure(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

/// The parameters of one element, without quotes.
#[derive(Default)]
struct Element<'s> {
    r#for: Option<&'s [u8]>,
    by: Option<&'s [u8]>,
    host: Option<&'s [u8]>,
    proto: Option<&'s [u8]>,
}

impl<'s> Element<'s> {
    /// `None` when anything in it is wrong, or nothing is in it.
    fn read(text: &'s [u8]) -> Option<Self> {
        let mut element = Self::default();
        let mut reader = Reader(text);
        loop {
            let name = reader.take(u8::is_ascii_lowercase);
            reader.literal(b"=")?;
            let place = match name {
                b"for" => &mut element.r#for,
                b"by" => &mut element.by,
                b"host" => &mut element.host,
                b"proto" => &mut element.proto,
                _ => return None,
            };
            if place.is_some() {
                return None;
            }
            // A protocol is never quoted.
            let quoted = name != b"proto" && reader.literal(b"\"").is_some();
            let start = reader.0;
            match name {
                b"host" => host(&mut reader, quoted)?,
                b"proto" => {
                    reader.literal(b"https").or_else(|| reader.literal(b"http"))?;
                }
                _ => {
                    node(&mut reader, quoted)?;
                }
            }
            *place = start.get(..start.len() - reader.0.len());
            if quoted {
                reader.literal(b"\"")?;
            }
            if reader.0.is_empty() {
                return Some(element);
            }
            reader.literal(b";")?;
        }
    }
}

/// What is left of a text.
struct Reader<'s>(&'s [u8]);

impl<'s> Reader<'s> {
    fn literal(&mut self, text: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(text)?;
        Some(())
    }

    /// What stands before the first byte that is not of the kind.
    fn take(&mut self, kind: impl Fn(&u8) -> bool) -> &'s [u8] {
        let end = self.0.iter().position(|byte| !kind(byte)).unwrap_or(self.0.len());
        let (taken, rest) = self.0.split_at_checked(end).unwrap_or((self.0, b""));
        self.0 = rest;
        taken
    }

    fn bracketed(&mut self) -> Option<Ipv6Addr> {
        self.literal(b"[")?;
        let address = self.take(|byte| byte.is_ascii_alphanumeric() || *byte == b':');
        self.literal(b"]")?;
        std::str::from_utf8(address).ok()?.parse().ok()
    }

    /// `_` and what follows it, as it stands.
    fn hidden(&mut self) -> Option<&'s [u8]> {
        let start = self.0;
        self.literal(b"_")?;
        let name = self.take(obscure);
        if name.is_empty() { None } else { start.get(..=name.len()) }
    }

    fn port(&mut self) -> Option<i64> {
        let digits = self.take(u8::is_ascii_digit);
        std::str::from_utf8(digits).ok()?.parse::<u16>().ok().map(i64::from)
    }
}

struct Node<'s> {
    name: Name<'s>,
    port: Option<Port<'s>>,
}

enum Name<'s> {
    Address(IpAddr),
    Text(&'s [u8]),
}

enum Port<'s> {
    Number(i64),
    Text(&'s [u8]),
}

/// RFC 7239 §6. Brackets and ports need quotes around the node.
fn node<'s>(reader: &mut Reader<'s>, quoted: bool) -> Option<Node<'s>> {
    let name = match reader.0.first()? {
        b'_' => Name::Text(reader.hidden()?),
        b'u' => {
            reader.literal(b"unknown")?;
            Name::Text(b"unknown")
        }
        b'[' if quoted => Name::Address(reader.bracketed()?.into()),
        _ => {
            let address = reader.take(|byte| byte.is_ascii_digit() || *byte == b'.');
            Name::Address(std::str::from_utf8(address).ok()?.parse::<Ipv4Addr>().ok()?.into())
        }
    };
    if reader.0.first() != Some(&b':') {
        return Some(Node { name, port: None });
    }
    if !quoted {
        return None;
    }
    reader.literal(b":")?;
    let port = match reader.0.first() {
        Some(b'_') => Port::Text(reader.hidden()?),
        _ => Port::Number(reader.port()?),
    };
    Some(Node { name, port: Some(port) })
}

fn host(reader: &mut Reader<'_>, quoted: bool) -> Option<()> {
    match reader.0.first()? {
        b'[' if quoted => {
            reader.bracketed()?;
        }
        _ => {
            reader.take(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'));
        }
    }
    if reader.0.first() != Some(&b':') {
        return Some(());
    }
    if !quoted {
        return None;
    }
    reader.literal(b":")?;
    reader.port().map(|_| ())
}
