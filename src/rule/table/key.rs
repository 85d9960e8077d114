//! Keys of tables.

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
};

use bumpalo::Bump;

use crate::rule::sample::{Sample, Type};

/// What the keys of a table are (`type …`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// `ip`, `ipv4`: IPv4 addresses.
    Ipv4,
    /// `ipv6`: IPv6 addresses; an IPv4 address is the one mapped to it.
    Ipv6,
    /// `integer`: of a number the lower 32 bits.
    Int,
    /// `string`: text, cut after so many bytes.
    Str(usize),
    /// `binary`: so many bytes, filled up with zeros.
    Bin(usize),
}

/// One key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// An address.
    Ip(IpAddr),
    /// A number.
    Int(u32),
    /// Text.
    Str(Arc<[u8]>),
    /// Bytes, zeros at their end left out.
    Bin(Arc<[u8]>),
}

impl KeyKind {
    /// The type that a sample is cast to.
    pub const fn sample(self) -> Type {
        match self {
            Self::Ipv4 | Self::Ipv6 => Type::Ip,
            Self::Int => Type::Int,
            Self::Str(_) => Type::Str,
            Self::Bin(_) => Type::Bin,
        }
    }

    /// How it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ipv4 => "ip",
            Self::Ipv6 => "ipv6",
            Self::Int => "integer",
            Self::Str(_) => "string",
            Self::Bin(_) => "binary",
        }
    }

    /// The key that a sample is; `None` when it cannot be one.
    pub fn key(self, sample: Sample<'_>, arena: &Bump) -> Option<Key> {
        Some(match (self, sample.cast(self.sample(), arena)?) {
            (Self::Ipv4, Sample::Ip(address)) => match address.to_canonical() {
                IpAddr::V4(address) => Key::Ip(address.into()),
                IpAddr::V6(_) => return None,
            },
            (Self::Ipv6, Sample::Ip(address)) => Key::Ip(mapped(address).into()),
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a key has the lower 32 bits")]
            (Self::Int, Sample::Int(value)) => Key::Int(value as u32),
            (Self::Str(most), Sample::Str(text)) => Key::Str(text.get(..most).unwrap_or(text).into()),
            (Self::Bin(size), Sample::Bin(bytes)) => {
                let bytes = bytes.get(..size).unwrap_or(bytes);
                let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                Key::Bin(bytes.get(..end).unwrap_or_default().into())
            }
            _ => return None,
        })
    }
}

impl Key {
    /// What the key is a key for; bytes without zeros at their end.
    pub fn sample<'s>(&self, arena: &'s Bump) -> Sample<'s> {
        match self {
            Self::Ip(address) => Sample::Ip(*address),
            Self::Int(number) => Sample::Int((*number).into()),
            Self::Str(text) => Sample::Str(arena.alloc_slice_copy(text)),
            Self::Bin(bytes) => Sample::Bin(arena.alloc_slice_copy(bytes)),
        }
    }
}

fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_become_keys_of_the_tables_type() {
        let arena = Bump::new();
        let key = |kind: KeyKind, sample: Sample<'_>| kind.key(sample, &arena);
        let ip = |text: &str| Key::Ip(text.parse().unwrap());
        let cases = [
            (KeyKind::Ipv4, Sample::Ip("192.0.2.1".parse().unwrap()), Some(ip("192.0.2.1"))),
            (KeyKind::Ipv4, Sample::Ip("::ffff:192.0.2.1".parse().unwrap()), Some(ip("192.0.2.1"))),
            (KeyKind::Ipv4, Sample::Ip("2001:db8::1".parse().unwrap()), None),
            (KeyKind::Ipv4, Sample::Str(b"192.0.2.1"), Some(ip("192.0.2.1"))),
            (KeyKind::Ipv4, Sample::Str(b"nobody"), None),
            (KeyKind::Ipv6, Sample::Ip("192.0.2.1".parse().unwrap()), Some(ip("::ffff:192.0.2.1"))),
            (KeyKind::Int, Sample::Int(-1), Some(Key::Int(u32::MAX))),
            (KeyKind::Int, Sample::Int(1 << 32 | 7), Some(Key::Int(7))),
            (KeyKind::Int, Sample::Str(b"12x"), Some(Key::Int(12))),
            (KeyKind::Str(3), Sample::Str(b"abcd"), Some(Key::Str(b"abc".as_slice().into()))),
            (KeyKind::Str(3), Sample::Int(7), Some(Key::Str(b"7".as_slice().into()))),
            (KeyKind::Bin(3), Sample::Bin(b"abcd"), Some(Key::Bin(b"abc".as_slice().into()))),
            (KeyKind::Bin(3), Sample::Bin(b"a\0"), Some(Key::Bin(b"a".as_slice().into()))),
        ];
        for (kind, sample, expected) in cases {
            assert_eq!(key(kind, sample), expected, "{sample:?} as {kind:?}");
        }
    }
}
