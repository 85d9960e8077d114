//! Parts of a stored response (RFC 9110 §14).

use super::validator;
use crate::message::{Request, Response};

/// What a GET with `Range` gets of a complete stored response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it: no range, one that is to be ignored, or several.
    Whole,
    /// 206 with these bytes, both ends included.
    Bytes {
        /// The first byte.
        first: u64,
        /// The last byte.
        last: u64,
    },
    /// 416 (§15.5.17).
    Unsatisfiable,
}

/// The part of `stored`, `len` bytes long, that `request` asks for. Several ranges at once get the whole,
/// as §14.2 allows.
pub fn part(request: &Request, stored: &Response, len: u64) -> Part {
    let fields = &request.fields;
    if request.method() != b"GET" || stored.status != 200 {
        return Part::Whole;
    }
    let Some(range) = fields.first("range").filter(|_| fields.all("range").count() == 1) else { return Part::Whole };
    if fields.first("if-range").is_some_and(|condition| !validator::if_range(condition, &stored.fields)) {
        return Part::Whole;
    }
    parse(range).map_or(Part::Whole, |spec| spec.of(len))
}

/// One `int-range` or `suffix-range` (§14.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spec {
    From(u64, Option<u64>),
    Last(u64),
}

impl Spec {
    fn of(self, len: u64) -> Part {
        match self {
            Self::Last(count) if count > 0 && len > 0 => {
                Part::Bytes { first: len.saturating_sub(count), last: len - 1 }
            }
            Self::From(first, last) if first < len => {
                Part::Bytes { first, last: last.map_or(len - 1, |last| last.min(len - 1)) }
            }
            Self::Last(_) | Self::From(..) => Part::Unsatisfiable,
        }
    }
}

/// `None` when the field is to be ignored: another unit, several ranges, or not a range at all.
fn parse(range: &[u8]) -> Option<Spec> {
    let at = memchr::memchr(b'=', range)?;
    let (unit, set) = range.split_at_checked(at)?;
    if !unit.trim_ascii().eq_ignore_ascii_case(b"bytes") {
        return None;
    }
    let set = set.get(1..)?.trim_ascii();
    let dash = memchr::memchr(b'-', set)?;
    let (first, last) = (set.get(..dash)?, set.get(dash + 1..)?);
    match (first.is_empty(), last.is_empty()) {
        (true, true) => None,
        (true, false) => number(last).map(Spec::Last),
        (false, true) => number(first).map(|first| Spec::From(first, None)),
        (false, false) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then_some(Spec::From(first, Some(last)))
        }
    }
}

/// Digits alone; too many of them saturate.
fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0u64, |value, digit| {
        digit.is_ascii_digit().then(|| value.saturating_mul(10).saturating_add(u64::from(digit - b'0')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(range: &str, len: u64) -> Part {
        let mut request = Request::new(b"GET", b"/");
        request.fields.append(b"Range", range.as_bytes());
        part(&request, &Response::new(200), len)
    }

    #[test]
    fn ranges_are_cut_to_the_length() {
        for (range, first, last) in
            [("bytes=0-1", 0, 1), ("bytes=5-", 5, 9), ("bytes=-3", 7, 9), ("bytes=-99", 0, 9), ("BYTES=8-99", 8, 9)]
        {
            assert_eq!(of(range, 10), Part::Bytes { first, last }, "{range}");
        }
    }

    #[test]
    fn what_is_no_single_byte_range_is_ignored() {
        for range in ["bytes=", "bytes=-", "bytes=5-3", "lines=1-2", "bytes=0-1,3-4", "bytes=a-b", "0-1", "bytes=+1-2"]
        {
            assert_eq!(of(range, 10), Part::Whole, "{range}");
        }
    }

    #[test]
    fn nothing_in_reach_is_unsatisfiable() {
        for (range, len) in [("bytes=-0", 10), ("bytes=10-", 10), ("bytes=-1", 0), ("bytes=18446744073709551616-", 10)]
        {
            assert_eq!(of(range, len), Part::Unsatisfiable, "{range}");
        }
        let far = "bytes=-9223372036854775608,-9223372036854774591";
        assert_eq!(of(far, 100), Part::Whole);
    }
}
