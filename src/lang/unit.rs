//! Numbers, times and sizes as HAProxy writes them (manual §2.5, §2.6): digits and at most one suffix.

use std::time::Duration;

/// The unit of a time without a suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Timeouts.
    Millis,
    /// Lifetimes.
    Seconds,
}

/// Suffixes of times.
pub const TIMES: &[&str] = &["us", "ms", "s", "m", "h", "d"];

/// Suffixes of sizes.
pub const SIZES: &[&str] = &["k", "m", "g"];

/// A time: `us`, `ms`, `s`, `m`, `h`, `d`. `None` when it is none or too long for a `u64` of microseconds.
pub fn time(text: &[u8], unit: TimeUnit) -> Option<Duration> {
    let (number, suffix) = split(text)?;
    let micros: u64 = match suffix {
        b"" if unit == TimeUnit::Millis => 1_000,
        b"" => 1_000_000,
        b"us" => 1,
        b"ms" => 1_000,
        b"s" => 1_000_000,
        b"m" => 60_000_000,
        b"h" => 3_600_000_000,
        b"d" => 86_400_000_000,
        _ => return None,
    };
    number.checked_mul(micros).map(Duration::from_micros)
}

/// A size in bytes: `k`, `m`, `g` in any case, powers of 1024. `None` when it is none or too large.
pub fn size(text: &[u8]) -> Option<u64> {
    let (number, suffix) = split(text)?;
    let factor: u64 = match suffix {
        b"" => 1,
        b"k" | b"K" => 1 << 10,
        b"m" | b"M" => 1 << 20,
        b"g" | b"G" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(factor)
}

/// A number. `None` when there is anything but digits, or too many.
pub fn number(text: &[u8]) -> Option<u64> {
    split(text).filter(|(_, suffix)| suffix.is_empty()).map(|(number, _)| number)
}

/// Whether a text has the form of a time or size, digits and at most one suffix of `suffixes`, and is more than
/// can be counted: what is wrong with it is its size alone.
pub fn is_too_large(text: &[u8], suffixes: &[&str]) -> bool {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let suffix = text.get(digits..).unwrap_or_default();
    digits > 0 && (suffix.is_empty() || suffixes.iter().any(|known| suffix.eq_ignore_ascii_case(known.as_bytes())))
}

fn split(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, suffix) = text.split_at_checked(digits)?;
    Some((std::str::from_utf8(digits).ok()?.parse().ok()?, suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_take_one_suffix() {
        for (text, expected) in [
            ("10", Some(Duration::from_millis(10))),
            ("1500us", Some(Duration::from_micros(1500))),
            ("10s", Some(Duration::from_secs(10))),
            ("2h", Some(Duration::from_secs(7200))),
            ("1h30m", None),
            ("-1", None),
            ("s", None),
            ("", None),
            ("99999999999999999999", None),
            ("18446744073709551615d", None),
        ] {
            assert_eq!(time(text.as_bytes(), TimeUnit::Millis), expected, "{text}");
        }
        assert_eq!(time(b"7", TimeUnit::Seconds), Some(Duration::from_secs(7)));
    }

    #[test]
    fn what_is_only_too_large_is_told_from_what_is_wrong() {
        for (text, expected) in [("99999999999999999d", true), ("9", true), ("1day", false), ("d", false), ("", false)]
        {
            assert_eq!(is_too_large(text.as_bytes(), TIMES), expected, "{text}");
        }
    }

    #[test]
    fn sizes_are_powers_of_1024() {
        for (text, expected) in [("1", Some(1)), ("2k", Some(2048)), ("1M", Some(1 << 20)), ("1t", None), ("k", None)] {
            assert_eq!(size(text.as_bytes()), expected, "{text}");
        }
    }
}
