//! What rules keep over the requests of one client connection.

/// State of a connection, shared by its streams. Nothing in it is touched unless a rule asks for it.
#[derive(Debug, Default)]
pub struct Session {}
