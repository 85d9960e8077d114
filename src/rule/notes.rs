//! What rules note of one exchange beside variables.

use std::sync::Arc;

use super::{trace::Trace, track::Tracks};
use crate::message::Fields;

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
    /// Who asked why rules decide as they do; `None`: nobody.
    pub trace: Option<Arc<Trace>>,
}

/// Where a rule stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RulePlace {
    /// The file's number among those of the configuration, from 0.
    pub file: u32,
    /// The line, from 1.
    pub line: u32,
}
