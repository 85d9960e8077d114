//! Times written as `strftime(3)` writes them in the C locale, GNU's flags and widths included.
//!
//! `jiff`, which knows the zones, has a `strtime` too, and it gives other results than HAProxy
//! (`tests/fixtures/converters/date.txt`): its years end at 9999, and times before 1970 lie far behind that (see `date`);
//! it pads no text (`%10A`, `%12F`), gives `%z` neither flags nor a width, has no `%E` and `%O`, and has meanings for
//! letters that are text here (`%f`, `%N`, `%Q`, `%q`).

use std::fmt::Write;

use bumpalo::{Bump, collections::String as BumpString};
use jiff::tz::TimeZone;

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// A point in time on the calendar of a zone.
#[derive(Clone, Debug)]
pub(in crate::rule) struct Moment<'a> {
    /// Since 1970, UTC.
    seconds: i64,
    nanoseconds: i64,
    year: i64,
    /// From 1.
    month: i64,
    /// From 1.
    day: i64,
    /// From 0.
    day_of_year: i64,
    /// From 0, Sunday.
    weekday: i64,
    hour: i64,
    minute: i64,
    second: i64,
    /// East of UTC, in seconds.
    offset: i64,
    zone: &'a str,
}

impl<'a> Moment<'a> {
    pub(in crate::rule) fn utc(seconds: i64) -> Self {
        Self::at(seconds, 0, "GMT")
    }

    pub(super) fn local(seconds: i64, zone: &TimeZone, arena: &'a Bump) -> Self {
        let known = jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::MAX);
        let info = zone.to_offset_info(known);
        Self::at(seconds, info.offset().seconds().into(), arena.alloc_str(info.abbreviation()))
    }

    /// So many seconds east of UTC.
    pub(in crate::rule) fn east(seconds: i64, offset: i64) -> Self {
        Self::at(seconds, offset, "")
    }

    /// Seconds east of UTC.
    pub(in crate::rule) const fn offset(&self) -> i64 {
        self.offset
    }

    /// `30/Nov/2026:22:20:52`.
    pub(in crate::rule) fn of_log(&self) -> impl std::fmt::Display + '_ {
        std::fmt::from_fn(|out| {
            let (day, year) = (self.day, self.year);
            write!(out, "{day:02}/{}/{year}:{:02}:{:02}:{:02}", self.month_name(), self.hour, self.minute, self.second)
        })
    }

    /// `Nov 30 22:20:52`, as syslog has it (RFC 3164 §4.1.2).
    pub(in crate::rule) fn of_syslog(&self) -> impl std::fmt::Display + '_ {
        std::fmt::from_fn(|out| {
            let (month, day) = (self.month_name(), self.day);
            write!(out, "{month} {day:2} {:02}:{:02}:{:02}", self.hour, self.minute, self.second)
        })
    }

    /// `2026-11-30T22:20:52`.
    pub(in crate::rule) fn of_iso(&self) -> impl std::fmt::Display + '_ {
        std::fmt::from_fn(|out| {
            let (year, month, day) = (self.year, self.month, self.day);
            write!(out, "{year}-{month:02}-{day:02}T{:02}:{:02}:{:02}", self.hour, self.minute, self.second)
        })
    }

    fn month_name(&self) -> &'static str {
        let at = usize::try_from(self.month - 1).ok();
        at.and_then(|at| MONTHS.get(at)?.get(..3)).unwrap_or("-")
    }

    pub(super) fn with_fraction(self, nanoseconds: i64) -> Self {
        Self { nanoseconds, ..self }
    }

    fn at(seconds: i64, offset: i64, zone: &'a str) -> Self {
        let there = seconds.saturating_add(offset);
        let (days, time) = (there.div_euclid(86_400), there.rem_euclid(86_400));
        let (year, month, day) = civil(days);
        let day_of_year = days - day_number(year, 1, 1);
        let weekday = (days + 4).rem_euclid(7);
        let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
        Self { seconds, nanoseconds: 0, year, month, day, day_of_year, weekday, hour, minute, second, offset, zone }
    }

    /// Weeks of ISO 8601: the year that the week belongs to, and its number.
    fn iso_week(&self) -> (i64, i64) {
        let monday_based = (self.weekday + 6) % 7;
        let thursday = self.day_of_year - monday_based + 3;
        let length = |year: i64| day_number(year + 1, 1, 1) - day_number(year, 1, 1);
        if thursday < 0 {
            (self.year - 1, (thursday + length(self.year - 1)) / 7 + 1)
        } else if thursday >= length(self.year) {
            (self.year + 1, 1)
        } else {
            (self.year, thursday / 7 + 1)
        }
    }
}

/// Days since 1970 of a date of the Gregorian calendar. Years begin in March here, so that leap days are last.
fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leaps + (month * 153 + 2) / 5 + day - 1 - 719_468
}

/// The date of a day: year, month, day.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (year_of_era * 365 + year_of_era / 4 - year_of_era / 100);
    let from_march = (of_year * 5 + 2) / 153;
    let day = of_year - (from_march * 153 + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// What stands between `%` and a letter.
#[derive(Clone, Copy, Default)]
struct Spec {
    /// `_`, `-` or `0`.
    pad: Option<u8>,
    upper: bool,
    /// `#`.
    swap: bool,
    width: usize,
}

/// Widths above this are not wanted by anyone and would take memory.
const WIDEST: usize = 1024;

/// Writes the time; `fractions`: `%N` is nanoseconds, `%3N` their first three digits.
pub(super) fn write_formatted(
    to: &mut BumpString<'_>,
    format: &[u8],
    moment: &Moment<'_>,
    fractions: bool,
) -> Option<()> {
    let mut rest = format;
    while let Some((first, after)) = rest.split_first() {
        if *first != b'%' {
            let plain = memchr::memchr(b'%', rest).unwrap_or(rest.len());
            to.push_str(&String::from_utf8_lossy(rest.get(..plain).unwrap_or_default()));
            rest = rest.get(plain..).unwrap_or_default();
            continue;
        }
        let (spec, modifier, letter, after) = read(after);
        let raw = rest.get(..rest.len() - after.len()).unwrap_or_default();
        rest = after;
        let known = letter.filter(|letter| modifies(modifier, *letter));
        let written = match known {
            Some(b'N') if fractions => fraction(to, moment, spec),
            Some(letter) => conversion(to, letter, spec, moment),
            None => None,
        };
        if written.is_none() {
            text(to, &String::from_utf8_lossy(raw), Spec { width: spec.width, ..Spec::default() })?;
        }
    }
    Some(())
}

/// Flags, width, modifier, letter, and what follows.
fn read(mut rest: &[u8]) -> (Spec, Option<u8>, Option<u8>, &[u8]) {
    let mut spec = Spec::default();
    while let Some((flag, after)) = rest.split_first() {
        match flag {
            b'_' | b'-' | b'0' => spec.pad = Some(*flag),
            b'^' => spec.upper = true,
            b'#' => spec.swap = true,
            _ => break,
        }
        rest = after;
    }
    while let Some((digit, after)) = rest.split_first().filter(|(byte, _)| byte.is_ascii_digit()) {
        spec.width = (spec.width * 10 + usize::from(digit - b'0')).min(WIDEST);
        rest = after;
    }
    let mut modifier = None;
    if let Some((found @ (b'E' | b'O'), after)) = rest.split_first() {
        modifier = Some(*found);
        rest = after;
    }
    match rest.split_first() {
        Some((letter, after)) if letter.is_ascii() => (spec, modifier, Some(*letter), after),
        _ => (spec, modifier, None, rest),
    }
}

/// Whether the letter can follow the modifier.
fn modifies(modifier: Option<u8>, letter: u8) -> bool {
    match modifier {
        None => true,
        Some(b'E') => b"CcYyXx".contains(&letter),
        Some(_) => b"deHImMSuUVwWy".contains(&letter),
    }
}

/// `None` when there is no such conversion; nothing has been written then.
fn conversion(to: &mut BumpString<'_>, letter: u8, spec: Spec, moment: &Moment<'_>) -> Option<()> {
    let name = |names: &[&'static str], index: i64| {
        usize::try_from(index).ok().and_then(|index| names.get(index)).copied().unwrap_or_default()
    };
    let short = |name: &'static str| name.get(..3).unwrap_or_default();
    let half = if moment.hour < 12 { "AM" } else { "PM" };
    let twelve = (moment.hour + 11) % 12 + 1;
    let blank = Spec { pad: spec.pad.or(Some(b'_')), ..spec };
    let shout = Spec { upper: spec.upper || spec.swap, ..spec };
    match letter {
        b'a' => text(to, short(name(&DAYS, moment.weekday)), shout),
        b'A' => text(to, name(&DAYS, moment.weekday), shout),
        b'b' | b'h' => text(to, short(name(&MONTHS, moment.month - 1)), shout),
        b'B' => text(to, name(&MONTHS, moment.month - 1), shout),
        b'p' if spec.swap => text(to, &half.to_ascii_lowercase(), spec),
        b'p' => text(to, half, spec),
        b'P' => text(to, &half.to_ascii_lowercase(), Spec { upper: false, ..spec }),
        b'Z' if spec.swap => text(to, &moment.zone.to_ascii_lowercase(), spec),
        b'Z' => text(to, moment.zone, spec),
        b'%' => text(to, "%", spec),
        b'n' => text(to, "\n", spec),
        b't' => text(to, "\t", spec),
        b's' => {
            let mut digits = BumpString::new_in(to.bump());
            write!(digits, "{}", moment.seconds).ok()?;
            text(to, &digits, spec)
        }
        b'c' => composed(to, b"%a %b %e %H:%M:%S %Y", spec, moment),
        b'D' | b'x' => composed(to, b"%m/%d/%y", spec, moment),
        b'F' => composed(to, b"%Y-%m-%d", spec, moment),
        b'r' => composed(to, b"%I:%M:%S %p", spec, moment),
        b'R' => composed(to, b"%H:%M", spec, moment),
        b'T' | b'X' => composed(to, b"%H:%M:%S", spec, moment),
        b'C' => number(to, moment.year / 100, 2, spec),
        b'd' => number(to, moment.day, 2, spec),
        b'e' => number(to, moment.day, 2, blank),
        b'g' => number(to, moment.iso_week().0 % 100, 2, spec),
        b'G' => number(to, moment.iso_week().0, 4, spec),
        b'H' => number(to, moment.hour, 2, spec),
        b'I' => number(to, twelve, 2, spec),
        b'j' => number(to, moment.day_of_year + 1, 3, spec),
        b'k' => number(to, moment.hour, 2, blank),
        b'l' => number(to, twelve, 2, blank),
        b'm' => number(to, moment.month, 2, spec),
        b'M' => number(to, moment.minute, 2, spec),
        b'S' => number(to, moment.second, 2, spec),
        b'u' => number(to, (moment.weekday + 6) % 7 + 1, 1, spec),
        b'U' => number(to, (moment.day_of_year + 7 - moment.weekday) / 7, 2, spec),
        b'V' => number(to, moment.iso_week().1, 2, spec),
        b'w' => number(to, moment.weekday, 1, spec),
        b'W' => number(to, (moment.day_of_year + 7 - (moment.weekday + 6) % 7) / 7, 2, spec),
        b'y' => number(to, moment.year % 100, 2, spec),
        b'Y' => number(to, moment.year, 4, spec),
        b'z' => {
            let minutes = moment.offset.abs() / 60;
            text(to, if moment.offset < 0 { "-" } else { "+" }, Spec { pad: None, ..spec })?;
            number(to, minutes / 60 * 100 + minutes % 60, 4, spec)
        }
        _ => None,
    }
}

/// Text, filled up with blanks on its left, with zeros when the flag says so.
fn text(to: &mut BumpString<'_>, text: &str, spec: Spec) -> Option<()> {
    let fill = if spec.pad == Some(b'0') { '0' } else { ' ' };
    to.extend(std::iter::repeat_n(fill, spec.width.saturating_sub(text.len())));
    if spec.upper {
        to.extend(text.chars().map(|letter| letter.to_ascii_uppercase()));
    } else {
        to.push_str(text);
    }
    Some(())
}

/// A number of at least so many digits: zeros on its left, blanks after `_`, none after `-`.
fn number(to: &mut BumpString<'_>, value: i64, digits: usize, spec: Spec) -> Option<()> {
    let width = spec.width.max(if spec.pad == Some(b'-') { 0 } else { digits });
    match spec.pad {
        Some(b'_' | b'-') => write!(to, "{value:width$}"),
        _ => write!(to, "{value:0width$}"),
    }
    .ok()
}

fn composed(to: &mut BumpString<'_>, format: &[u8], spec: Spec, moment: &Moment<'_>) -> Option<()> {
    let mut inner = BumpString::new_in(to.bump());
    write_formatted(&mut inner, format, moment, false)?;
    text(to, &inner, spec)
}

fn fraction(to: &mut BumpString<'_>, moment: &Moment<'_>, spec: Spec) -> Option<()> {
    let mut digits = BumpString::new_in(to.bump());
    write!(digits, "{:09}", moment.nanoseconds).ok()?;
    let width = if spec.width == 0 { 9 } else { spec.width };
    to.push_str(digits.get(..width.min(9))?);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: &str, moment: &Moment<'_>) -> String {
        let arena = Bump::new();
        let mut to = BumpString::new_in(&arena);
        write_formatted(&mut to, format.as_bytes(), moment, true).unwrap();
        to.as_str().to_owned()
    }

    #[test]
    fn local_times_follow_summer_and_winter() {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let arena = Bump::new();
        for (seconds, expected) in [
            (784_111_777, "1994-11-06 09:49:37 CET +0100 cet"),
            (1_751_000_000, "2025-06-27 06:53:20 CEST +0200 cest"),
            (1_766_000_000, "2025-12-17 20:33:20 CET +0100 cet"),
        ] {
            assert_eq!(written("%F %T %Z %z %#Z", &Moment::local(seconds, &zone, &arena)), expected);
        }
        let west = TimeZone::posix("<-0330>3:30").unwrap();
        assert_eq!(written("%H:%M %z", &Moment::local(0, &west, &arena)), "20:30 -0330");
    }

    #[test]
    fn every_day_has_its_date() {
        let (mut year, mut month, mut day) = (1969, 12, 31);
        for days in 0..200_000 {
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 => 28 + i64::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > length {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
            assert_eq!(civil(days), (year, month, day));
            assert_eq!(day_number(year, month, day), days);
        }
    }

    #[test]
    fn text_that_is_no_conversion_stays() {
        assert_eq!(written("é%é%3N %", &Moment::utc(0).with_fraction(42_000_000)), "é%é042 %");
    }
}
