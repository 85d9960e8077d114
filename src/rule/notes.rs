//! What rules note of one exchange beside variables.

use std::sync::{Arc, OnceLock};

use super::{capture::Captured, progress::Progress, trace::Trace, track::Tracks};
use crate::message::{Fields, Version};

/// Notes of one exchange; they travel with it. Empty ones hold no memory.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    /// The last rule that ended a rule set (`last_rule_line`); `None` while none has.
    pub last_rule: Option<RulePlace>,
    /// The status that the server gave (`server_status`), before response rules; `None` when it gave none.
    pub server_status: Option<u16>,
    /// What the exchange is tracked by; `None` while nothing is.
    pub tracks: Option<Arc<Tracks>>,
    /// What a 103 response tells the client beforehand (`early-hint`); empty: nothing.
    pub hints: Fields,
    /// The version of the response; `None` before there is one.
    pub response_version: Option<Version>,
    /// How far the exchange has come.
    pub progress: Progress,
    /// What the frontend captures.
    pub captured: Captured,
    /// The request's unique id, made when it is first asked for; empty when the frontend makes none.
    pub unique_id: OnceLock<Box<[u8]>>,
    /// The request's number in the process, given when it is first asked for.
    pub number: OnceLock<u32>,
    /// The level that its log line gets; `None`: the one that goes with how it ended.
    pub log_level: Option<LogLevel>,
    /// Who asked why rules decide as they do; `None`: nobody.
    pub trace: Option<Arc<Trace>>,
}

/// `set-log-level`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// `silent`: no line.
    Silent,
    /// `emerg` (0) to `debug` (7), as in syslog (RFC 5424 §6.2.1).
    At(u8),
}

/// Where a rule stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RulePlace {
    /// The file's number among those of the configuration, from 0.
    pub file: u32,
    /// The line, from 1.
    pub line: u32,
}
