//! Values drawn from an exchange, and how one type becomes another (HAProxy manual §7.1).

use std::{
    fmt::Write,
    net::{IpAddr, Ipv4Addr},
};

use bumpalo::Bump;

/// The type of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// True or false.
    Bool,
    /// A 64-bit signed integer.
    Int,
    /// An IPv4 or IPv6 address.
    Ip,
    /// Text.
    Str,
    /// Bytes.
    Bin,
    /// An HTTP method.
    Method,
    /// Known only when it is drawn (variables).
    Any,
}

impl Type {
    /// Whether a sample of this type can become one of type `to` at all; a value may still fail to.
    pub fn casts_to(self, to: Self) -> bool {
        self == to
            || match self {
                Self::Any => true,
                Self::Bool => matches!(to, Self::Int | Self::Str | Self::Bin | Self::Any),
                Self::Int => matches!(to, Self::Bool | Self::Ip | Self::Str | Self::Bin | Self::Any),
                Self::Ip => matches!(to, Self::Int | Self::Str | Self::Bin | Self::Any),
                Self::Str => to != Self::Str,
                Self::Bin => matches!(to, Self::Str | Self::Method | Self::Any),
                Self::Method => matches!(to, Self::Str | Self::Bin | Self::Any),
            }
    }

    /// Its name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "boolean",
            Self::Int => "integer",
            Self::Ip => "address",
            Self::Str => "string",
            Self::Bin => "binary",
            Self::Method => "method",
            Self::Any => "any",
        }
    }
}

/// A value; text and bytes borrow from the message or the transaction's arena.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sample<'s> {
    /// See [`Type::Bool`].
    Bool(bool),
    /// See [`Type::Int`].
    Int(i64),
    /// See [`Type::Ip`].
    Ip(IpAddr),
    /// See [`Type::Str`].
    Str(&'s [u8]),
    /// See [`Type::Bin`].
    Bin(&'s [u8]),
    /// See [`Type::Method`].
    Method(&'s [u8]),
}

impl<'s> Sample<'s> {
    /// The type of this value.
    pub const fn kind(self) -> Type {
        match self {
            Self::Bool(_) => Type::Bool,
            Self::Int(_) => Type::Int,
            Self::Ip(_) => Type::Ip,
            Self::Str(_) => Type::Str,
            Self::Bin(_) => Type::Bin,
            Self::Method(_) => Type::Method,
        }
    }

    /// The same value, whose text is in `arena`.
    pub fn copied_in<'a>(self, arena: &'a Bump) -> Sample<'a> {
        match self {
            Self::Bool(value) => Sample::Bool(value),
            Self::Int(value) => Sample::Int(value),
            Self::Ip(value) => Sample::Ip(value),
            Self::Str(text) => Sample::Str(arena.alloc_slice_copy(text)),
            Self::Bin(bytes) => Sample::Bin(arena.alloc_slice_copy(bytes)),
            Self::Method(name) => Sample::Method(arena.alloc_slice_copy(name)),
        }
    }

    /// This value as one of type `to`; `None` when it cannot be one. New text goes to `arena`.
    pub fn cast(self, to: Type, arena: &'s Bump) -> Option<Self> {
        match to {
            Type::Any => Some(self),
            Type::Bool => self.bool().map(Self::Bool),
            Type::Int => self.int().map(Self::Int),
            Type::Ip => self.ip().map(Self::Ip),
            Type::Str => self.text(arena).map(Self::Str),
            Type::Bin => self.bytes(arena).map(Self::Bin),
            Type::Method => match self {
                Self::Method(name) | Self::Str(name) | Self::Bin(name) => Some(Self::Method(name)),
                _ => None,
            },
        }
    }

    /// As true or false; text by way of its integer.
    pub fn bool(self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(value),
            Self::Int(value) => Some(value != 0),
            Self::Str(_) => self.int().map(|value| value != 0),
            _ => None,
        }
    }

    /// As an integer. Text gives its leading decimal number, 0 when it has none, nothing when empty.
    pub fn int(self) -> Option<i64> {
        match self {
            Self::Bool(value) => Some(value.into()),
            Self::Int(value) => Some(value),
            Self::Ip(IpAddr::V4(address)) => Some(u32::from(address).into()),
            Self::Str(text) => leading_int(text),
            _ => None,
        }
    }

    /// As an address. An integer gives the IPv4 address of its lower 32 bits. Behind an IPv4 address in text
    /// anything may stand that cannot be part of it, such as a port.
    pub fn ip(self) -> Option<IpAddr> {
        match self {
            Self::Ip(address) => Some(address),
            Self::Int(value) => Some(Ipv4Addr::from(u32::try_from(value & 0xffff_ffff).ok()?).into()),
            Self::Str(text) => {
                leading_ip4(text).map(IpAddr::V4).or_else(|| std::str::from_utf8(text).ok()?.parse().ok())
            }
            _ => None,
        }
    }

    /// As text. Bytes end at their first NUL.
    pub fn text(self, arena: &'s Bump) -> Option<&'s [u8]> {
        Some(match self {
            Self::Str(text) | Self::Method(text) => text,
            Self::Bool(value) => {
                if value {
                    b"1"
                } else {
                    b"0"
                }
            }
            Self::Int(value) => printed(value, arena),
            Self::Ip(address) => match compatible(address) {
                Some(inner) => printed(format_args!("::{inner}"), arena),
                None => printed(address, arena),
            },
            Self::Bin(bytes) => bytes.split(|&byte| byte == 0).next().unwrap_or_default(),
        })
    }

    /// As bytes; numbers in network order.
    pub fn bytes(self, arena: &'s Bump) -> Option<&'s [u8]> {
        Some(match self {
            Self::Str(bytes) | Self::Bin(bytes) | Self::Method(bytes) => bytes,
            Self::Bool(value) => arena.alloc(i64::from(value).to_be_bytes()),
            Self::Int(value) => arena.alloc(value.to_be_bytes()),
            Self::Ip(IpAddr::V4(address)) => arena.alloc(address.octets()),
            Self::Ip(IpAddr::V6(address)) => arena.alloc(address.octets()),
        })
    }
}

/// The decimal number that text begins with, saturating; 0 when there is none, `None` when the text is empty.
pub fn leading_int(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, text),
    };
    let mut value: i64 = 0;
    for digit in digits.iter().map(|byte| byte.wrapping_sub(b'0')).take_while(|digit| *digit <= 9) {
        let digit = if negative { -i64::from(digit) } else { digit.into() };
        value = value.saturating_mul(10).saturating_add(digit);
    }
    Some(value)
}

/// The IPv4 address in an IPv6 address that is compatible with it (RFC 4291 §2.5.5.1), which is written so.
fn compatible(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else { return None };
    let number = u32::try_from(u128::from(address)).ok()?;
    (number > 0xffff).then(|| number.into())
}

/// The IPv4 address that text begins with; zeros may stand before its numbers.
fn leading_ip4(text: &[u8]) -> Option<Ipv4Addr> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.').unwrap_or(text.len());
    let mut numbers = text.get(..end)?.split(|byte| *byte == b'.').map(|digits| {
        let value = leading_int(digits)?;
        u8::try_from(value).ok()
    });
    let mut next = || numbers.next().flatten();
    let address = Ipv4Addr::new(next()?, next()?, next()?, next()?);
    numbers.next().is_none().then_some(address)
}

/// The number that HAProxy reads header fields, cookies and parameters as (`hdr_val`): 32 bits that wrap, and no byte
/// below `0` ends it, so that `1.5` is 85. Never fails.
pub fn field_int(text: &[u8]) -> i64 {
    let (negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        _ => (false, text),
    };
    let mut value: i32 = 0;
    for &byte in digits {
        let digit = i32::from(byte.cast_signed()) - i32::from(b'0');
        if digit > 9 {
            break;
        }
        let tens = value.wrapping_mul(10);
        value = if negative { tens.wrapping_sub(digit) } else { tens.wrapping_add(digit) };
    }
    value.into()
}

/// A value as it is written out.
pub(super) fn printed(value: impl std::fmt::Display, arena: &Bump) -> &[u8] {
    let mut text = bumpalo::collections::String::new_in(arena);
    // Writing to a growing string cannot fail.
    let _ = write!(text, "{value}");
    text.into_bump_str().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPES: [Type; 6] = [Type::Bool, Type::Int, Type::Ip, Type::Str, Type::Bin, Type::Method];

    #[test]
    fn casts_follow_the_table() {
        let arena = Bump::new();
        let v4: IpAddr = "10.0.0.1".parse().unwrap();
        let v6: IpAddr = "2001:db8::1".parse().unwrap();
        let cases: &[(Sample<'_>, Type, Option<Sample<'_>>)] = &[
            (Sample::Bool(true), Type::Int, Some(Sample::Int(1))),
            (Sample::Bool(true), Type::Str, Some(Sample::Str(b"1"))),
            (Sample::Bool(true), Type::Bin, Some(Sample::Bin(&[0, 0, 0, 0, 0, 0, 0, 1]))),
            (Sample::Int(0), Type::Bool, Some(Sample::Bool(false))),
            (Sample::Int(-7), Type::Str, Some(Sample::Str(b"-7"))),
            (Sample::Int(0x0a00_0001), Type::Ip, Some(Sample::Ip(v4))),
            (Sample::Int(-1), Type::Ip, Some(Sample::Ip([255; 4].into()))),
            (Sample::Str(b"010.0.0.1:80"), Type::Ip, Some(Sample::Ip(v4))),
            (Sample::Str(b"10.0.0.1.2"), Type::Ip, None),
            (Sample::Str(b"10.0.0.256"), Type::Ip, None),
            (Sample::Str(b" 12"), Type::Int, Some(Sample::Int(0))),
            (Sample::Ip("::10.0.0.1".parse().unwrap()), Type::Str, Some(Sample::Str(b"::10.0.0.1"))),
            (Sample::Ip("::1".parse().unwrap()), Type::Str, Some(Sample::Str(b"::1"))),
            (Sample::Ip(v4), Type::Int, Some(Sample::Int(0x0a00_0001))),
            (Sample::Ip(v6), Type::Int, None),
            (Sample::Ip(v6), Type::Str, Some(Sample::Str(b"2001:db8::1"))),
            (Sample::Ip(v4), Type::Bin, Some(Sample::Bin(&[10, 0, 0, 1]))),
            (Sample::Str(b""), Type::Int, None),
            (Sample::Str(b"12ab"), Type::Int, Some(Sample::Int(12))),
            (Sample::Str(b"ab"), Type::Int, Some(Sample::Int(0))),
            (Sample::Str(b"0"), Type::Bool, Some(Sample::Bool(false))),
            (Sample::Str(b"99999999999999999999"), Type::Int, Some(Sample::Int(i64::MAX))),
            (Sample::Str(b"nope"), Type::Ip, None),
            (Sample::Bin(b"a\0b"), Type::Str, Some(Sample::Str(b"a"))),
            (Sample::Method(b"GET"), Type::Str, Some(Sample::Str(b"GET"))),
            (Sample::Method(b"GET"), Type::Int, None),
        ];
        for (from, to, expected) in cases {
            assert_eq!(from.cast(*to, &arena), *expected, "{from:?} to {to:?}");
        }
    }

    #[test]
    fn fields_are_numbers_as_haproxy_reads_them() {
        let cases: [(&str, i64); 11] = [
            ("", 0),
            ("a", 0),
            ("12abc", 12),
            ("-5", -5),
            ("+5", -45),
            ("1.2.3.4", 818_284),
            ("300.1.1.1", 299_808_081),
            ("10.0.0.1.5", 979_798_085),
            ("99999999999999999999", 1_661_992_959),
            ("\"a,b\"", -14),
            ("::1", 0),
        ];
        for (text, expected) in cases {
            assert_eq!(field_int(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn what_the_types_forbid_never_yields_a_value() {
        let arena = Bump::new();
        let samples = [
            Sample::Bool(true),
            Sample::Int(1),
            Sample::Ip([1, 2, 3, 4].into()),
            Sample::Str(b"1"),
            Sample::Bin(b"1"),
            Sample::Method(b"GET"),
        ];
        for sample in samples {
            for to in TYPES {
                if !sample.kind().casts_to(to) {
                    assert_eq!(sample.cast(to, &arena), None, "{sample:?} to {to:?}");
                }
            }
        }
    }
}
