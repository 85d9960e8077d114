//! HTTP-date (RFC 9110 §5.6.7).

use std::time::{Duration, SystemTime};

use jiff::{civil, tz::TimeZone};

use crate::time::Timestamp;

/// An HTTP-date in any of its three forms, as a cache reads it: in any case (RFC 9111 §4.2), whatever it says the day
/// of the week is. `None` when it is none, as with another zone than GMT, or lies before 1970.
pub fn date(value: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(value).ok()?;
    let (day_name, rest) = text.split_once(' ')?;
    let time = match day_name.strip_suffix(',') {
        Some(name) if is_day(name) => imf_fixdate(rest).or_else(|| rfc850(rest)),
        Some(name) if DAYS.iter().any(|day| name.eq_ignore_ascii_case(day)) => rfc850(rest),
        None if is_day(day_name) => asctime(rest),
        _ => None,
    }?;
    let seconds = time.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second();
    u64::try_from(seconds).ok().map(Timestamp::from_secs)
}

/// The HTTP-date of `time`, to the second.
pub fn write_date(time: Timestamp) -> String {
    // Years past 9999 have no HTTP-date; they stay at its last one.
    const LAST: u64 = 253_402_300_799;
    httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(time.as_secs().min(LAST)))
}

const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

fn is_day(name: &str) -> bool {
    DAYS.iter().any(|day| day.get(..3).is_some_and(|short| name.eq_ignore_ascii_case(short)))
}

/// `06 Nov 1994 08:49:37 GMT`.
fn imf_fixdate(text: &str) -> Option<civil::DateTime> {
    let [day, month, year, clock, zone] = words(text)?;
    is_gmt(zone).then(|| moment(number(year, 4)?, month, number(day, 2)?, clock)).flatten()
}

/// `06-Nov-94 08:49:37 GMT`.
fn rfc850(text: &str) -> Option<civil::DateTime> {
    let [date, clock, zone] = words(text)?;
    let mut parts = date.split('-');
    let (Some(day), Some(month), Some(year), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return None;
    };
    // What would lie far ahead was meant of the century before.
    let year = number(year, 2)?;
    let year = if year < 70 { 2000 + year } else { 1900 + year };
    is_gmt(zone).then(|| moment(year, month, number(day, 2)?, clock)).flatten()
}

/// `Nov  6 08:49:37 1994`.
fn asctime(text: &str) -> Option<civil::DateTime> {
    let (month, rest) = text.split_once(' ')?;
    let (day, rest) = match rest.strip_prefix(' ') {
        Some(rest) => rest.split_once(' ').map(|(day, rest)| (number(day, 1), rest)),
        None => rest.split_once(' ').map(|(day, rest)| (number(day, 2), rest)),
    }?;
    let [clock, year] = words(rest)?;
    moment(number(year, 4)?, month, day?, clock)
}

fn moment(year: i16, month: &str, day: i16, clock: &str) -> Option<civil::DateTime> {
    let month = MONTHS.iter().zip(1..).find(|(name, _)| month.eq_ignore_ascii_case(name))?.1;
    let mut parts = clock.split(':').map(|part| number(part, 2).and_then(|part| i8::try_from(part).ok()));
    let (Some(hour), Some(minute), Some(second), None) = (parts.next()?, parts.next()?, parts.next()?, parts.next())
    else {
        return None;
    };
    // A leap second counts as the one before it.
    let second = if second == 60 { 59 } else { second };
    civil::DateTime::new(year, month, i8::try_from(day).ok()?, hour, minute, second, 0).ok()
}

fn words<const N: usize>(text: &str) -> Option<[&str; N]> {
    text.split(' ').collect::<smallvec::SmallVec<[_; 5]>>().as_slice().try_into().ok()
}

fn is_gmt(zone: &str) -> bool {
    zone.eq_ignore_ascii_case("GMT")
}

/// So many digits, at most four.
fn number(digits: &str, count: usize) -> Option<i16> {
    (digits.len() == count && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: u64 = 784_123_200;

    fn seconds(text: &str) -> Option<u64> {
        date(text.as_bytes()).map(Timestamp::as_secs)
    }

    #[test]
    fn all_three_forms_are_read_in_any_case() {
        for text in [
            "Sun, 06 Nov 1994 12:00:00 GMT",
            "Sunday, 06-Nov-94 12:00:00 GMT",
            "Sun Nov  6 12:00:00 1994",
            "SUN, 06 nov 1994 12:00:00 gmt",
            "sUNDAY, 06-NOV-94 12:00:00 GMT",
            "Sun, 06-Nov-94 12:00:00 GMT",
            "Mon, 06 Nov 1994 12:00:00 GMT",
        ] {
            assert_eq!(seconds(text), Some(NOON), "{text}");
        }
        assert_eq!(seconds("Thu Aug 18 02:01:18 2050"), Some(2_544_400_878));
        assert_eq!(seconds("Wednesday, 01-Jan-69 00:00:00 GMT"), Some(3_124_224_000));
        assert_eq!(seconds("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(seconds("Sat, 31 Dec 2016 23:59:60 GMT"), Some(1_483_228_799));
        assert_eq!(seconds("Thu, 29 Feb 2024 00:00:00 GMT"), Some(1_709_164_800));
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "0",
            "-1",
            "tomorrow",
            "Sun, 06 Nov 1994 12:00:00 UTC",
            "Sun, 06 Nov 1994 12:00:00 +0000",
            "Sun, 06 Nov 1994 12:00:00",
            "Sun, 6 Nov 1994 12:00:00 GMT",
            "Sun, 06  Nov 1994 12:00:00 GMT",
            "Sun, 06 Nov 94 12:00:00 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 12:00 GMT",
            "Sun, 06 Nov 1994 12:00:00:00 GMT",
            "Sun, 06 Nov 1994 1:00:00 GMT",
            "Sun, 31 Feb 1994 12:00:00 GMT",
            "Thu, 29 Feb 2023 00:00:00 GMT",
            "Sun, 06 Nov 1969 12:00:00 GMT",
            "Sun, +6 Nov 1994 12:00:00 GMT",
            "Foo, 06 Nov 1994 12:00:00 GMT",
            "06 Nov 1994 12:00:00 GMT",
            "Sun Nov 6 12:00:00 1994",
            "Sun Nov  6 12:00:00 1994 GMT",
            "Sun, 06-Nov-1994 12:00:00 GMT",
            "Sun, 06 Nov 1994 12:00:00 GMT ",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    #[test]
    fn dates_are_written_in_the_preferred_form() {
        assert_eq!(write_date(Timestamp::from_secs(NOON)), "Sun, 06 Nov 1994 12:00:00 GMT");
        assert!(write_date(Timestamp::from_millis(u64::MAX)).contains("9999"));
    }
}
