//! Integers and ranges of them.

/// A range of integers, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Range {
    /// The least.
    pub min: i64,
    /// The greatest.
    pub max: i64,
}

impl Range {
    /// `n`, `a:b`, `a:`, `:b`; `-` separates as well. `None` when it is none of these or empty.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let Some(at) = memchr::memchr2(b':', b'-', text) else {
            let value = integer(text)?;
            return Some(Self { min: value, max: value });
        };
        let (low, high) = (text.get(..at)?, text.get(at + 1..)?);
        if low.is_empty() && high.is_empty() {
            return None;
        }
        let min = if low.is_empty() { i64::MIN } else { integer(low)? };
        let max = if high.is_empty() { i64::MAX } else { integer(high)? };
        (min <= max).then_some(Self { min, max })
    }

    /// Whether `text` has what stands between the ends of a range.
    pub fn is_written(text: &[u8]) -> bool {
        memchr::memchr2(b':', b'-', text).is_some()
    }

    /// Whether the value lies in it.
    pub const fn contains(self, value: i64) -> bool {
        self.min <= value && value <= self.max
    }
}

/// What stands before numbers in an ACL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Operator {
    /// `eq`.
    #[default]
    Eq,
    /// `ge`.
    Ge,
    /// `gt`.
    Gt,
    /// `le`.
    Le,
    /// `lt`.
    Lt,
}

impl Operator {
    /// Every operator with its word.
    pub const WORDS: [(&'static str, Self); 5] =
        [("eq", Self::Eq), ("ge", Self::Ge), ("gt", Self::Gt), ("le", Self::Le), ("lt", Self::Lt)];

    /// The range that the operator and a number make; a pattern that is a range stays one, and `-3` is one.
    pub fn range(self, text: &[u8]) -> Option<Range> {
        let number = match self {
            Self::Eq => None,
            _ if Range::is_written(text) => None,
            _ => integer(text),
        };
        let Some(value) = number else { return Range::parse(text) };
        // `gt` of the greatest and `lt` of the least integer are empty ranges.
        Some(match self {
            Self::Eq => Range { min: value, max: value },
            Self::Ge => Range { min: value, max: i64::MAX },
            Self::Gt => value.checked_add(1).map_or(Range { min: 1, max: 0 }, |min| Range { min, max: i64::MAX }),
            Self::Le => Range { min: i64::MIN, max: value },
            Self::Lt => value.checked_sub(1).map_or(Range { min: 1, max: 0 }, |max| Range { min: i64::MIN, max }),
        })
    }
}

/// A whole text that is an integer.
pub fn integer(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Ranges, sorted and merged.
#[derive(Clone, Debug)]
pub(super) struct Ranges(Box<[Range]>);

impl Ranges {
    pub(super) fn new(mut ranges: Vec<Range>) -> Self {
        ranges.retain(|range| range.min <= range.max);
        ranges.sort_unstable();
        let mut merged: Vec<Range> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match merged.last_mut() {
                Some(last) if range.min <= last.max.saturating_add(1) => last.max = last.max.max(range.max),
                _ => merged.push(range),
            }
        }
        Self(merged.into())
    }

    pub(super) fn contain(&self, value: i64) -> bool {
        let after = self.0.partition_point(|range| range.min <= value);
        after.checked_sub(1).and_then(|index| self.0.get(index)).is_some_and(|range| range.contains(value))
    }
}
