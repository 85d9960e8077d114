//! Replacements with back-references: `\1`, `\0` (HAProxy manual §7.3.1 `regsub`, §4.2 `replace-header`).

use regex::bytes::{Captures, Regex};

/// One piece of a replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Text.
    Text(Box<[u8]>),
    /// What the group of this number matched; nothing when it took no part.
    Group(u8),
}

/// Reads a replacement: `\0` to `\9` are groups, `\xHH` a byte, any other escaped byte itself.
///
/// # Errors
/// The place of an escape that is not complete.
pub fn parts(text: &[u8]) -> Result<Vec<Part>, usize> {
    let mut parts = Vec::new();
    let mut plain = Vec::new();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        if byte != b'\\' {
            plain.push(byte);
            at += 1;
            continue;
        }
        match text.get(at + 1) {
            None => return Err(at),
            Some(digit @ b'0'..=b'9') => {
                if !plain.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut plain).into()));
                }
                parts.push(Part::Group(digit - b'0'));
                at += 2;
            }
            Some(b'x') => {
                // A sign is a digit to `from_str_radix`.
                let digits = text.get(at + 2..at + 4).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
                let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
                let value = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                plain.push(value.ok_or(at)?);
                at += 4;
            }
            Some(&other) => {
                plain.push(other);
                at += 2;
            }
        }
    }
    if !plain.is_empty() {
        parts.push(Part::Text(plain.into()));
    }
    Ok(parts)
}

/// The groups of one match.
#[derive(Debug)]
pub enum Groups<'h> {
    /// Only the whole match is known.
    Whole(&'h [u8]),
    /// All.
    All(Captures<'h>),
}

impl<'h> Groups<'h> {
    /// The match of `regex` in `text` at or after `from`, with its bounds. `all`: whether more than `\0` is asked
    /// for, which costs an allocation.
    pub fn find(regex: &Regex, text: &'h [u8], from: usize, all: bool) -> Option<(std::ops::Range<usize>, Self)> {
        let found = regex.find_at(text, from)?;
        if !all {
            return Some((found.range(), Self::Whole(found.as_bytes())));
        }
        let captures = regex.captures_at(text, from)?;
        Some((captures.get(0)?.range(), Self::All(captures)))
    }

    /// What a group matched; empty when it took no part.
    pub fn text(&self, group: u8) -> &[u8] {
        match self {
            Self::Whole(text) if group == 0 => text,
            Self::Whole(_) => b"",
            Self::All(captures) => captures.get(group.into()).map(|found| found.as_bytes()).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_groups_bytes_or_themselves() {
        let text = |text: &[u8]| Part::Text(text.into());
        assert_eq!(parts(br"a\1\\\x41\."), Ok(vec![text(b"a"), Part::Group(1), text(b"\\A.")]));
        assert_eq!(parts(b"a\\"), Err(1));
        assert_eq!(parts(br"\x4"), Err(0));
        assert_eq!(parts(br"\x+4"), Err(0));
        assert_eq!(parts(b""), Ok(vec![]));
    }
}
