//! What rules keep for a client's connection from one request to the next.

use super::{track::Slots, vars::SharedVars};

/// The state of one connection, shared by all that work for it: the streams of HTTP/2, and whoever still fetches
/// for a request of it. It outlives reloads of the configuration. A connection has none until a rule asks for it.
#[derive(Debug, Default)]
pub struct Session {
    /// What the connection is tracked by (`tcp-request connection track-sc0`); its requests are, too.
    pub tracks: Slots,
    /// Variables of the scope `sess`.
    pub vars: SharedVars,
}
