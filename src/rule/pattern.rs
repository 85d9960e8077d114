//! Regular expressions as rule files write them: PCRE's syntax, translated to what `regex` reads.
//!
//! Bytes, not characters; ASCII classes. What a PCRE can and a finite automaton cannot (look-around,
//! back-references, possessive and recursive parts) is refused by name.

use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

/// Room for a compiled pattern or set, in bytes.
const SIZE_LIMIT: usize = 64 << 20;

/// Why a pattern cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPattern {
    /// Which pattern, from 0.
    pub index: usize,
    /// Where in it, in bytes.
    pub at: usize,
    /// What is wrong.
    pub message: String,
    /// What to write instead; may be empty.
    pub help: &'static str,
}

impl BadPattern {
    /// A pattern that is wrong as a whole.
    pub(super) fn whole(index: usize, message: String) -> Self {
        Self { index, at: 0, message, help: "" }
    }
}

/// One pattern; `fold` ignores ASCII case.
///
/// # Errors
/// When the pattern is malformed, too large, or needs what is refused.
pub fn regex(pattern: &[u8], fold: bool) -> Result<Regex, BadPattern> {
    let translated = Translation::of(pattern)?;
    RegexBuilder::new(&translated)
        .unicode(false)
        .case_insensitive(fold)
        .size_limit(SIZE_LIMIT)
        .build()
        .map_err(|error| refused(&error))
}

/// Many patterns, searched at once; `fold` ignores ASCII case.
///
/// # Errors
/// As [`regex()`], for the first pattern at fault.
pub fn set(patterns: &[Vec<u8>], fold: bool) -> Result<RegexSet, BadPattern> {
    let mut translated = Vec::with_capacity(patterns.len());
    for (index, pattern) in patterns.iter().enumerate() {
        translated.push(Translation::of(pattern).map_err(|fault| BadPattern { index, ..fault })?);
    }
    let set = RegexSetBuilder::new(&translated).unicode(false).case_insensitive(fold).size_limit(SIZE_LIMIT).build();
    set.map_err(|error| {
        let alone = patterns.iter().enumerate().find_map(|(index, pattern)| Some((index, regex(pattern, fold).err()?)));
        alone.map_or_else(|| refused(&error), |(index, fault)| BadPattern { index, ..fault })
    })
}

fn refused(error: &regex::Error) -> BadPattern {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    BadPattern { index: 0, at: 0, message: last.trim_start_matches("error: ").to_owned(), help: "" }
}

const LOOK_AROUND: &str = "write two ACLs instead: one for what must match, and one negated with `!`";
const NO_BACK_REFERENCE: &str = "back-references work in replacements (`\\1`), not in patterns";
const GREEDY: &str = "leave the `+` off: a pattern is matched in linear time and never backtracks";

/// A pattern on its way from one syntax to the other.
struct Translation<'p> {
    pattern: &'p [u8],
    at: usize,
    out: String,
}

impl<'p> Translation<'p> {
    fn of(pattern: &'p [u8]) -> Result<String, BadPattern> {
        let mut translation = Self { pattern, at: 0, out: String::with_capacity(pattern.len() + 16) };
        while let Some(byte) = translation.peek(0) {
            translation.piece(byte)?;
        }
        Ok(translation.out)
    }

    fn piece(&mut self, byte: u8) -> Result<(), BadPattern> {
        match byte {
            b'\\' => return self.escape(false),
            b'[' => return self.class(),
            b'(' => return self.group(),
            b'*' | b'+' | b'?' => {
                self.copy(1);
                return self.after_quantifier();
            }
            b'{' => match quantifier(self.pattern.get(self.at..).unwrap_or_default()) {
                Some(length) => {
                    self.copy(length);
                    return self.after_quantifier();
                }
                None => self.literal(byte),
            },
            b'}' => self.literal(byte),
            _ if byte >= 0x80 => self.literal(byte),
            _ => {
                self.copy(1);
                return Ok(());
            }
        }
        self.at += 1;
        Ok(())
    }

    /// `?` makes a quantifier lazy, `+` possessive.
    fn after_quantifier(&mut self) -> Result<(), BadPattern> {
        match self.peek(0) {
            Some(b'?') => self.copy(1),
            Some(b'+') => return Err(self.fault("possessive quantifiers are not supported", GREEDY)),
            _ => {}
        }
        Ok(())
    }

    fn group(&mut self) -> Result<(), BadPattern> {
        let rest = self.pattern.get(self.at..).unwrap_or_default();
        let named: &[(&[u8], &str, &'static str)] = &[
            (b"(?=", "look-ahead is not supported", LOOK_AROUND),
            (b"(?!", "negative look-ahead is not supported", LOOK_AROUND),
            (b"(?<=", "look-behind is not supported", LOOK_AROUND),
            (b"(?<!", "negative look-behind is not supported", LOOK_AROUND),
            (b"(?>", "atomic groups are not supported", "write `(?:…)`: a pattern never backtracks"),
            (b"(?|", "branch reset groups are not supported", ""),
            (b"(?(", "conditional groups are not supported", ""),
            (b"(?R", "recursion is not supported", ""),
            (b"(?&", "recursion is not supported", ""),
            (b"(?P>", "recursion is not supported", ""),
            (b"(?P=", "back-references in patterns are not supported", NO_BACK_REFERENCE),
            (b"(?C", "callouts are not supported", ""),
            (b"(*", "verbs are not supported", ""),
        ];
        if let Some((_, what, help)) = named.iter().find(|(start, ..)| rest.starts_with(start)) {
            return Err(self.fault(what, help));
        }
        if rest.starts_with(b"(?#") {
            self.at += memchr::memchr(b')', rest).map_or(rest.len(), |end| end + 1);
        } else if rest.starts_with(b"(?") {
            self.copy(2);
        } else {
            self.copy(1);
        }
        Ok(())
    }

    fn class(&mut self) -> Result<(), BadPattern> {
        self.copy(1);
        if self.peek(0) == Some(b'^') {
            self.copy(1);
        }
        let mut first = true;
        while let Some(byte) = self.peek(0) {
            match byte {
                b']' if !first => {
                    self.copy(1);
                    return Ok(());
                }
                b'\\' => self.escape(true)?,
                b'[' => self.nested(),
                b'-' if self.peek(1) == Some(b'-') => {
                    self.out.push_str(if first { "\\-" } else { "-\\-" });
                    self.at += if first { 1 } else { 2 };
                }
                b']' | b'&' | b'~' => {
                    self.literal(byte);
                    self.at += 1;
                }
                _ if byte >= 0x80 => {
                    self.literal(byte);
                    self.at += 1;
                }
                _ => self.copy(1),
            }
            first = false;
        }
        Err(self.fault("a class `[…]` is not closed", ""))
    }

    /// A `[` in a class: the start of `[:name:]`, else itself.
    fn nested(&mut self) {
        let rest = self.pattern.get(self.at..).unwrap_or_default();
        let named = rest.starts_with(b"[:").then(|| memchr::memmem::find(rest, b":]")).flatten();
        match named {
            Some(end) => self.copy(end + 2),
            None => {
                self.literal(b'[');
                self.at += 1;
            }
        }
    }

    fn escape(&mut self, in_class: bool) -> Result<(), BadPattern> {
        let Some(byte) = self.peek(1) else { return Err(self.fault("a pattern cannot end with `\\`", "")) };
        let class = |out: &'static str, alone: &'static str| if in_class { out } else { alone };
        let written = match byte {
            b'1'..=b'9' if !in_class && self.run(1, 3, is_octal).len() < 3 => {
                return Err(self.fault("back-references in patterns are not supported", NO_BACK_REFERENCE));
            }
            b'k' | b'g' => return Err(self.fault("back-references in patterns are not supported", NO_BACK_REFERENCE)),
            b'K' | b'G' | b'X' | b'C' => {
                let what = format!("`\\{}` is not supported", char::from(byte));
                return Err(self.fault(&what, ""));
            }
            b'0'..=b'7' => {
                self.octal();
                return Ok(());
            }
            b'x' => {
                self.hexadecimal();
                return Ok(());
            }
            b'Q' => {
                self.quoted();
                return Ok(());
            }
            b'E' => "",
            b'b' if in_class => "\\x08",
            b'e' => "\\x1b",
            b'Z' if !in_class => "\\z",
            b'h' => class("\\t ", "[\\t ]"),
            b'v' => class("\\n\\x0b\\x0c\\r", "[\\n\\x0b\\x0c\\r]"),
            b'H' if !in_class => "[^\\t ]",
            b'V' if !in_class => "[^\\n\\x0b\\x0c\\r]",
            b'N' if !in_class => "[^\\n]",
            b'R' if !in_class => "(?:\\r\\n|[\\n\\x0b\\x0c\\r])",
            _ if byte >= 0x80 || matches!(byte, b'<' | b'>') => {
                self.literal(byte);
                ""
            }
            _ => {
                self.copy(2);
                return Ok(());
            }
        };
        self.out.push_str(written);
        self.at += 2;
        Ok(())
    }

    /// `\0`, `\012`: up to three octal digits.
    fn octal(&mut self) {
        let digits = self.run(1, 3, is_octal);
        let value = digits.iter().fold(0_u32, |value, digit| value * 8 + u32::from(digit - b'0'));
        self.at += 1 + digits.len();
        self.byte(u8::try_from(value & 0xff).unwrap_or_default());
    }

    /// `\xHH` with up to two digits; `\x{…}` is the same in both syntaxes.
    fn hexadecimal(&mut self) {
        if self.peek(2) == Some(b'{') {
            self.copy(2);
            let rest = self.pattern.get(self.at..).unwrap_or_default();
            self.copy(memchr::memchr(b'}', rest).map_or(rest.len(), |end| end + 1));
            return;
        }
        let digits = self.run(2, 2, |byte| byte.is_ascii_hexdigit());
        let value = std::str::from_utf8(digits).ok().and_then(|text| u8::from_str_radix(text, 16).ok());
        self.at += 2 + digits.len();
        self.byte(value.unwrap_or_default());
    }

    /// `\Q…\E`: text without meaning.
    fn quoted(&mut self) {
        self.at += 2;
        let rest = self.pattern.get(self.at..).unwrap_or_default();
        let end = memchr::memmem::find(rest, b"\\E").unwrap_or(rest.len());
        for &byte in rest.get(..end).unwrap_or_default() {
            self.literal(byte);
        }
        self.at = (self.at + end + 2).min(self.pattern.len());
    }

    fn run(&self, from: usize, most: usize, is: impl Fn(u8) -> bool) -> &'p [u8] {
        let rest = self.pattern.get(self.at + from..).unwrap_or_default();
        let length = rest.iter().take(most).take_while(|byte| is(**byte)).count();
        rest.get(..length).unwrap_or_default()
    }

    /// Writes one byte that stands for itself.
    fn literal(&mut self, byte: u8) {
        if byte.is_ascii_punctuation() && !matches!(byte, b'<' | b'>') {
            self.out.push('\\');
            self.out.push(char::from(byte));
        } else if byte.is_ascii_graphic() || byte == b' ' {
            self.out.push(char::from(byte));
        } else {
            self.byte(byte);
        }
    }

    fn byte(&mut self, byte: u8) {
        self.out.push_str(&format!("\\x{byte:02x}"));
    }

    /// Copies ASCII as it is; other bytes as escapes.
    fn copy(&mut self, length: usize) {
        for &byte in self.pattern.get(self.at..self.at + length).unwrap_or_default() {
            if byte.is_ascii() { self.out.push(char::from(byte)) } else { self.byte(byte) }
        }
        self.at += length;
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.pattern.get(self.at + ahead).copied()
    }

    fn fault(&self, message: &str, help: &'static str) -> BadPattern {
        BadPattern { index: 0, at: self.at, message: message.to_owned(), help }
    }
}

const fn is_octal(byte: u8) -> bool {
    matches!(byte, b'0'..=b'7')
}

/// The length of `{n}`, `{n,}` or `{n,m}` at the start of `text`; any other `{` is text.
fn quantifier(text: &[u8]) -> Option<usize> {
    let end = memchr::memchr(b'}', text)?;
    let inside = text.get(1..end)?;
    let (low, high) = match memchr::memchr(b',', inside) {
        Some(comma) => (inside.get(..comma)?, inside.get(comma + 1..)?),
        None => (inside, &b""[..]),
    };
    let number = |digits: &[u8]| digits.iter().all(u8::is_ascii_digit);
    (!low.is_empty() && number(low) && number(high)).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_pcre_means() {
        let cases: &[(&[u8], &[u8], bool)] = &[
            (br"^/img/\d+\.png$", b"/img/12.png", true),
            (br"^/img/\d+\.png$", b"/img/1x.png", false),
            (br"\/a\-b\_", b"/a-b_", true),
            (br"^/{id}$", b"/{id}", true),
            (br"a{2}", b"aa", true),
            (br"[[]x[]]", b"[x]", true),
            (br"[]a]b", b"]b", true),
            (br"[a&&b]", b"&", true),
            (br"[[:digit:]x]+y", b"12xy", true),
            (br"[+--]z", b",z", true),
            (br"\<b\>", b"<b>", true),
            (br"\Qa.b\E+", b"a.bb", true),
            (br"\x41\101", b"AA", true),
            ("é".as_bytes(), "café".as_bytes(), true),
            (br"\w", "é".as_bytes(), false),
            (br"[\w.-]+@", b"a.b-c@", true),
            (br"a(?#comment)b", b"ab", true),
            (br"\h+", b"\t", true),
        ];
        for (pattern, text, expected) in cases {
            let found = regex(pattern, false).map(|regex| regex.is_match(text));
            assert_eq!(found, Ok(*expected), "{}", String::from_utf8_lossy(pattern));
        }
    }

    #[test]
    fn what_cannot_be_done_is_refused_by_name_and_place() {
        let cases: &[(&[u8], usize, &str)] = &[
            (b"a(?=b)", 1, "look-ahead"),
            (b"(?<!b)", 0, "look-behind"),
            (br"(a)\1", 3, "back-reference"),
            (b"a++", 2, "possessive"),
            (b"(?R)", 0, "recursion"),
            (b"(", 0, "unclosed group"),
            (b"[a", 2, "not closed"),
            (b"a\\", 1, "cannot end"),
        ];
        for (pattern, at, message) in cases {
            let fault = regex(pattern, false).unwrap_err();
            assert!(fault.message.contains(message), "{fault:?}");
            assert_eq!(fault.at, *at, "{fault:?}");
        }
    }

    #[test]
    fn case_is_ignored_for_ascii_letters_only() {
        let regex = regex("straße".as_bytes(), true).unwrap();
        assert!(regex.is_match("STRAßE".as_bytes()));
    }
}
