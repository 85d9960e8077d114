//! What stands before a line on its way to a log server: syslog in its many forms.

use std::{
    io::Write,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::{
    config::{Log, LogHeader, Logger},
    rule::{Env, Fact, Sample, alias::syslog},
    time::Timestamp,
};

/// What all lines of one moment have in common.
pub(super) struct Stamp<'a> {
    now: Duration,
    tag: &'a str,
    host: Option<&'a [u8]>,
}

impl<'a> Stamp<'a> {
    /// The present moment.
    pub(super) fn now(log: &'a Log, env: &'a dyn Env) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let host = log.host.as_ref().map(|name| match env.fact(Fact::Hostname) {
            Some(Sample::Str(machine)) if name.is_empty() => machine,
            _ => name.as_bytes(),
        });
        Self { now, tag: &log.tag, host }
    }
}

/// Appends it.
pub(super) fn write(logger: &Logger, level: u8, stamp: &Stamp<'_>, structured: &[u8], out: &mut Vec<u8>) {
    let time = Timestamp::from_millis(u64::try_from(stamp.now.as_millis()).unwrap_or(u64::MAX));
    let priority = u16::from(logger.facility) * 8 + u16::from(level);
    let (process, micros) = (std::process::id(), stamp.now.subsec_micros());
    let tag = stamp.tag;
    // Writing to a Vec cannot fail.
    let _ = match logger.header {
        LogHeader::Raw => Ok(()),
        LogHeader::Priority => write!(out, "<{priority}>"),
        LogHeader::Short => write!(out, "<{level}>"),
        LogHeader::Timed => write!(out, "<{level}>{} ", syslog::Iso(time, micros)),
        LogHeader::Iso => write!(out, "{} ", syslog::Iso(time, micros)),
        LogHeader::Local => write!(out, "<{priority}>{} {tag}[{process}]: ", syslog::Date(time)),
        LogHeader::Rfc3164 => {
            let _ = write!(out, "<{priority}>{} ", syslog::Date(time));
            out.extend_from_slice(stamp.host.unwrap_or(b"localhost"));
            write!(out, " {tag}[{process}]: ")
        }
        LogHeader::Rfc5424 => {
            let _ = write!(out, "<{priority}>1 {} ", syslog::Iso(time, micros));
            out.extend_from_slice(stamp.host.unwrap_or(b"-"));
            let _ = write!(out, " {tag} {process} - ");
            out.extend_from_slice(if structured.is_empty() { b"-" } else { structured });
            write!(out, " ")
        }
    };
}
