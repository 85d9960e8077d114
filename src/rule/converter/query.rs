//! `json_query(path[,int])`: one value of a JSON text.
//!
//! The text is read up to the value and no further, and not more strictly than HAProxy reads it: `01`, `5a` and a
//! lone `-` are numbers, a comma may stand before a `]`, control bytes in a string, anything behind the value. With
//! `int` it is the digits that count, not the number. `serde_json` refuses all of that (RFC 8259), and what an origin
//! sends that HAProxy reads must be read here too. Containers nest up to 20 deep.

use std::fmt::Write;

use bumpalo::{
    Bump,
    collections::{String as BumpString, Vec as BumpVec},
};

use super::{Arg, ArgFault, Args, ConverterRow, Sample, TEXT, Txn, Type, text};
use crate::rule::args::{ArgKind, ArgSpec};

pub(super) const ROWS: &[ConverterRow] = &[ConverterRow {
    names: &["json_query"],
    args: &[ArgSpec::need(ArgKind::Text), ArgSpec::may(ArgKind::Word(&["int"]))],
    output: Type::Any,
    prepare: |args| match args.first() {
        Some(Arg::Text(path)) if path.is_empty() => {
            Err(ArgFault::new(0, "the path is empty", "write a path such as `$.user.name` or `$.list[0]`"))
        }
        _ => prepare(args),
    },
    apply: |args, sample, txn| find(args, text(sample)?, txn),
    ..TEXT
}];

/// A path as its steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// `None`: no value is ever there.
    steps: Option<Box<[Step]>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(Box<[u8]>),
    Index(usize),
}

impl Path {
    /// `$`, then `.key` (a `.` or `[` of a key behind a `\`) and `[index]`.
    fn parse(text: &[u8]) -> Self {
        Self { steps: Self::steps(text) }
    }

    fn steps(text: &[u8]) -> Option<Box<[Step]>> {
        let mut rest = text.strip_prefix(b"$")?;
        let mut steps = Vec::new();
        while let Some((first, after)) = rest.split_first() {
            rest = after;
            match first {
                b'.' => {
                    let mut key = Vec::new();
                    while let Some((byte, after)) = rest.split_first().filter(|(byte, _)| !matches!(byte, b'.' | b'['))
                    {
                        rest = after;
                        match (byte, rest.split_first()) {
                            (b'\\', Some((escaped, after))) => {
                                key.push(*escaped);
                                rest = after;
                            }
                            _ => key.push(*byte),
                        }
                    }
                    steps.push(Step::Key(key.into()));
                }
                b'[' => {
                    let end = rest.iter().position(|byte| *byte == b']').unwrap_or(rest.len());
                    let (inside, after) = rest.split_at_checked(end)?;
                    rest = after.get(1..).unwrap_or_default();
                    steps.push(Step::Index(index(inside)?));
                }
                _ => return None,
            }
        }
        Some(steps.into())
    }
}

/// What stands in brackets; one letter that is no digit, or none, is 0 (`[*]` is the first element).
fn index(inside: &[u8]) -> Option<usize> {
    match inside {
        [] => Some(0),
        [one] => Some(if one.is_ascii_digit() { (one - b'0').into() } else { 0 }),
        [b'1'..=b'9', ..] => std::str::from_utf8(inside).ok()?.parse().ok(),
        _ => None,
    }
}

/// Compiles the path, if there is one.
pub(super) fn prepare(mut args: Vec<Arg>) -> Result<Vec<Arg>, ArgFault> {
    if let Some(arg) = args.first_mut()
        && let Arg::Text(path) = arg
    {
        *arg = Arg::Path(Path::parse(path).into());
    }
    Ok(args)
}

/// The value in the text. Numbers are written with six digits, as C's `%g` does; with `int` they are integers.
pub(super) fn find<'s>(args: &'s Args, json: &'s [u8], txn: &'s Txn<'_>) -> Option<Sample<'s>> {
    let Arg::Path(path) = args.at(0) else { return None };
    let mut reader = Reader { json, at: 0 };
    match reader.value(path.steps.as_deref()?, true, 0).ok()?? {
        Value::Bool(value) => Some(Sample::Bool(value)),
        Value::Text(text) => unescaped(text, txn.arena).map(Sample::Str),
        Value::Number(number) if args.text(1).is_some() => integer(number).map(Sample::Int),
        Value::Number(number) => Some(Sample::Str(general(double(number).0, txn.arena)?)),
        Value::Other => None,
    }
}

/// A value that was asked for.
enum Value<'s> {
    Bool(bool),
    /// What stands between the quotes.
    Text(&'s [u8]),
    /// The text from the number on.
    Number(&'s [u8]),
    /// `null`, an object, an array.
    Other,
}

/// The text is malformed.
struct Malformed;

type Found<'s> = Result<Option<Value<'s>>, Malformed>;

struct Reader<'s> {
    json: &'s [u8],
    at: usize,
}

impl<'s> Reader<'s> {
    /// Reads a value; `wanted`: it is, or has in it, the one that the steps lead to.
    fn value(&mut self, steps: &[Step], wanted: bool, depth: usize) -> Found<'s> {
        let asked = wanted && steps.is_empty();
        let rest = self.rest();
        let value = match self.next().ok_or(Malformed)? {
            open @ (b'{' | b'[') => return self.container(open, steps, wanted, depth),
            b'"' => Value::Text(self.quoted()?),
            b'-' | b'0'..=b'9' => {
                self.at += double(rest).1.max(1) - 1;
                Value::Number(rest)
            }
            b't' => self.word(b"rue", Value::Bool(true))?,
            b'f' => self.word(b"alse", Value::Bool(false))?,
            b'n' => self.word(b"ull", Value::Other)?,
            _ => return Err(Malformed),
        };
        Ok(asked.then_some(value))
    }

    fn container(&mut self, open: u8, steps: &[Step], wanted: bool, depth: usize) -> Found<'s> {
        if depth >= 20 {
            return Err(Malformed);
        }
        if wanted && steps.is_empty() {
            return Ok(Some(Value::Other));
        }
        let close = if open == b'{' { b'}' } else { b']' };
        let mut count = 0;
        loop {
            if self.peek() == Some(close) {
                self.next();
                return Ok(None);
            }
            let here = if open == b'{' {
                if self.next() != Some(b'"') {
                    return Err(Malformed);
                }
                let key = self.quoted()?;
                if self.next() != Some(b':') {
                    return Err(Malformed);
                }
                matches!(steps.first(), Some(Step::Key(step)) if **step == *key)
            } else {
                matches!(steps.first(), Some(Step::Index(step)) if *step == count)
            };
            let below = steps.get(1..).unwrap_or_default();
            let found = self.value(below, wanted && here, depth + 1)?;
            if found.is_some() {
                return Ok(found);
            }
            count += 1;
            match self.peek() {
                Some(b',') => {
                    self.next();
                }
                Some(byte) if byte == close => {}
                _ => return Err(Malformed),
            }
        }
    }

    fn word(&mut self, rest: &[u8], value: Value<'s>) -> Result<Value<'s>, Malformed> {
        let here = self.json.get(self.at..).unwrap_or_default();
        if !here.starts_with(rest) {
            return Err(Malformed);
        }
        self.at += rest.len();
        Ok(value)
    }

    /// Up to the quote that ends a string, which is skipped.
    fn quoted(&mut self) -> Result<&'s [u8], Malformed> {
        let start = self.at;
        while let Some(byte) = self.json.get(self.at) {
            match byte {
                b'"' => {
                    self.at += 1;
                    return self.json.get(start..self.at - 1).ok_or(Malformed);
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        Err(Malformed)
    }

    fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.json.get(self.at) {
            self.at += 1;
        }
        self.json.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let next = self.peek();
        self.at += usize::from(next.is_some());
        next
    }

    fn rest(&mut self) -> &'s [u8] {
        self.peek();
        self.json.get(self.at..).unwrap_or_default()
    }
}

/// A string without its escapes. `\u` gives one byte, and nothing above it can be written; `\/` is no escape.
fn unescaped<'s>(text: &'s [u8], arena: &'s Bump) -> Option<&'s [u8]> {
    if !text.contains(&b'\\') {
        return Some(text);
    }
    let mut to = BumpVec::with_capacity_in(text.len(), arena);
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            to.push(byte);
            continue;
        }
        to.push(match bytes.next()? {
            same @ (b'"' | b'\\') => same,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                if (bytes.next()?, bytes.next()?) != (b'0', b'0') {
                    return None;
                }
                // What is no digit counts by its distance from the letters.
                let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(u32::from(byte.wrapping_sub(b'W') & 15));
                u8::try_from(digit(bytes.next()?) << 4 | digit(bytes.next()?)).ok()?
            }
            _ => return None,
        });
    }
    Some(to.into_bump_slice())
}

/// The number that a text begins with, and its length.
fn double(text: &[u8]) -> (f64, usize) {
    let digits = |from: usize| text.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count();
    let sign = usize::from(text.first() == Some(&b'-'));
    let mut end = sign + digits(sign);
    if text.get(end) == Some(&b'.') {
        end += 1 + digits(end + 1);
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let signed = usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        let count = digits(end + 1 + signed);
        if count > 0 {
            end += 1 + signed + count;
        }
    }
    let written = text.get(..end).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default();
    (written.parse().unwrap_or(0.0), end)
}

/// The integer that a number begins with, in base 16 behind `0x`, in base 8 behind `0`; `None` when a double
/// could not tell it from its neighbours.
fn integer(text: &[u8]) -> Option<i64> {
    const MOST: i64 = (1 << 53) - 1;
    let (negative, digits) = text.strip_prefix(b"-").map_or((false, text), |digits| (true, digits));
    let (base, digits) = match digits {
        [b'0', b'x' | b'X', digits @ ..] => (16, digits),
        [b'0', digits @ ..] => (8, digits),
        _ => (10, digits),
    };
    let mut value: i64 = 0;
    for digit in digits.iter().map_while(|byte| char::from(*byte).to_digit(base)) {
        value = value.saturating_mul(base.into()).saturating_add(digit.into());
    }
    (value <= MOST).then_some(if negative { -value } else { value })
}

/// C's `%g`: six digits, without zeros at the end.
fn general(value: f64, arena: &Bump) -> Option<&[u8]> {
    let mut to = BumpString::new_in(arena);
    if value.is_infinite() {
        return Some(if value > 0.0 { b"inf" } else { b"-inf" });
    }
    write!(to, "{value:.5e}").ok()?;
    let (digits, exponent) = to.split_once('e')?;
    let exponent: i32 = exponent.parse().ok()?;
    let mut out = BumpString::new_in(arena);
    if (-4..6).contains(&exponent) {
        let places = usize::try_from(5 - exponent).ok()?;
        write!(out, "{value:.places$}").ok()?;
    } else {
        out.push_str(digits);
    }
    if out.contains('.') {
        let kept = out.trim_end_matches('0').trim_end_matches('.').len();
        out.truncate(kept);
    }
    if !(-4..6).contains(&exponent) {
        write!(out, "e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs()).ok()?;
    }
    Some(out.into_bump_str().as_bytes())
}
