//! The log of a frontend.

use std::{net::SocketAddr, ops::RangeInclusive, path::PathBuf};

use crate::rule::Format;

/// The log of a frontend.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// `log` lines, those of `global` where it says so; empty: nothing is logged.
    pub loggers: Vec<Logger>,
    /// `log-format`, `option httplog` and their kin, or Tidegate's own line.
    pub line: Format,
    /// `log-format-sd`: structured data for loggers of RFC 5424; `None`: a `-`.
    pub structured: Option<Format>,
    /// `log-tag`: the name of the program in lines.
    pub tag: String,
    /// `log-send-hostname`: the name of the machine in lines; `None`: not sent.
    pub host: Option<String>,
    /// `option log-separate-errors`: what went wrong has the level `err`.
    pub separate_errors: bool,
    /// `option dontlog-normal`: only what went wrong is logged.
    pub errors_only: bool,
}

/// One `log` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logger {
    /// Where it leads.
    pub target: LogTarget,
    /// What stands before a line.
    pub header: LogHeader,
    /// `len`: the most bytes of a line; `None`: as many as it has.
    pub len: Option<usize>,
    /// 0 to 23 (RFC 5424 §6.2.1).
    pub facility: u8,
    /// The least severe level that is sent, 0 to 7.
    pub level: u8,
    /// Levels more severe than this one are sent as this one.
    pub min_level: u8,
    /// `sample`: which lines of how many are sent; `None`: all.
    pub sample: Option<LogSample>,
}

/// Which lines are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSample {
    /// Their numbers, from 1.
    pub ranges: Vec<RangeInclusive<u64>>,
    /// After how many the count begins again.
    pub size: u64,
}

/// Where log lines go.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LogTarget {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A syslog server, over UDP.
    Udp(SocketAddr),
    /// A datagram socket's path.
    Unix(PathBuf),
}

/// What stands before a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogHeader {
    /// As [`LogHeader::Rfc3164`], without the machine's name.
    Local,
    /// Level, date, name of the machine, program (RFC 3164 §4.1).
    Rfc3164,
    /// As RFC 5424 §6 has it.
    Rfc5424,
    /// Level and facility.
    Priority,
    /// The level.
    Short,
    /// The level and the date.
    Timed,
    /// The date.
    Iso,
    /// Nothing.
    Raw,
}
