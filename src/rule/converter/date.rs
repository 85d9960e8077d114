//! Points in time as text and back: `http_date`, `ltime`, `utime` and their finer forms, `date`
//! (HAProxy manual §7.3.1).

use std::{fmt::Write, time::UNIX_EPOCH};

use bumpalo::collections::String as BumpString;
use jiff::tz::TimeZone;

use super::{
    Arg, ArgFault, Args, ConverterRow, Sample, TEXT, Txn, Type,
    strftime::{Moment, write_formatted},
    text,
};
use crate::rule::args::{ArgKind, ArgSpec};

const FROM_INT: ConverterRow = ConverterRow { input: Type::Int, ..TEXT };
const FORMATTED: ConverterRow =
    ConverterRow { args: &[ArgSpec::may(ArgKind::Text), ArgSpec::may(ArgKind::Int)], apply: formatted, ..FROM_INT };

/// The upper bits of a time in seconds do not count: a negative one is one far in the future, as in HAProxy.
const MOST: i64 = (1 << 55) - 1;

const SECOND: i64 = 1;
const MILLISECOND: i64 = 1_000;
const MICROSECOND: i64 = 1_000_000;

/// The unit of a time, seconds when there is none.
pub(in crate::rule) const UNIT: ArgKind = ArgKind::Word(&["s", "ms", "us"]);

pub(super) const ROWS: &[ConverterRow] = &[
    ConverterRow {
        names: &["http_date"],
        args: &[ArgSpec::may(ArgKind::Int), ArgSpec::may(UNIT)],
        apply: |args, sample, txn| {
            let parts = parts(args.text(1));
            let time = sample.int()?.wrapping_add(args.int(0).unwrap_or_default());
            let moment = Moment::utc((time / parts) & MOST);
            let mut to = BumpString::new_in(txn.arena);
            write_formatted(&mut to, b"%a, %d %b %Y %H:%M:%S", &moment, false)?;
            if parts > 1 {
                write!(to, ".{}", time % parts).ok()?;
            }
            to.push_str(" GMT");
            Some(Sample::Str(to.into_bump_str().as_bytes()))
        },
        ..FROM_INT
    },
    ConverterRow { names: &["ltime"], prepare: |args| clock(args, true, SECOND), ..FORMATTED },
    ConverterRow { names: &["utime"], prepare: |args| clock(args, false, SECOND), ..FORMATTED },
    ConverterRow { names: &["ms_ltime"], prepare: |args| clock(args, true, MILLISECOND), ..FORMATTED },
    ConverterRow { names: &["ms_utime"], prepare: |args| clock(args, false, MILLISECOND), ..FORMATTED },
    ConverterRow { names: &["us_ltime"], prepare: |args| clock(args, true, MICROSECOND), ..FORMATTED },
    ConverterRow { names: &["us_utime"], prepare: |args| clock(args, false, MICROSECOND), ..FORMATTED },
    // A date of HTTP (RFC 9110 §5.6.7) in seconds since 1970.
    ConverterRow {
        names: &["date"],
        output: Type::Int,
        apply: |_, sample, _| {
            let time = httpdate::parse_http_date(std::str::from_utf8(text(sample)?).ok()?).ok()?;
            i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok().map(Sample::Int)
        },
        ..TEXT
    },
];

/// How many of a [`UNIT`] make a second.
pub(in crate::rule) fn parts(unit: Option<&[u8]>) -> i64 {
    match unit {
        Some(b"ms") => MILLISECOND,
        Some(b"us") => MICROSECOND,
        _ => SECOND,
    }
}

/// How times are written.
#[derive(Clone, Debug)]
pub struct Clock {
    format: Box<[u8]>,
    /// `None`: UTC.
    zone: Option<TimeZone>,
    /// How many of the input's units make a second.
    parts: i64,
}

/// The zone is the system's at load.
fn clock(args: Vec<Arg>, local: bool, parts: i64) -> Result<Vec<Arg>, ArgFault> {
    let given = Args::new(args);
    let zone = local.then(TimeZone::system);
    let format = given.text(0).unwrap_or_default().into();
    Ok(vec![Arg::Clock(Clock { format, zone, parts }.into()), given.at(1).clone()])
}

fn formatted<'s>(args: &'s Args, sample: Sample<'s>, txn: &'s Txn<'_>) -> Option<Sample<'s>> {
    let Arg::Clock(clock) = args.at(0) else { return None };
    let (time, offset) = (sample.int()?, args.int(1).unwrap_or_default());
    let (seconds, fraction) = match clock.parts {
        SECOND => ((time & MOST).saturating_add(offset), 0),
        parts => {
            let time = time.wrapping_add(offset);
            (time.div_euclid(parts), time.rem_euclid(parts) * (1_000_000_000 / parts))
        }
    };
    let moment = match &clock.zone {
        Some(zone) => Moment::local(seconds, zone, txn.arena),
        None => Moment::utc(seconds),
    };
    let mut to = BumpString::new_in(txn.arena);
    write_formatted(&mut to, &clock.format, &moment.with_fraction(fraction), clock.parts != SECOND)?;
    Some(Sample::Str(to.into_bump_str().as_bytes()))
}
