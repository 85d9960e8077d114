//! What the running gateway knows beyond the exchange itself: names, counts, states.

/// One thing to ask [`super::Env::fact`] for. A name that is `None` stands for the side the exchange is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact<'a> {
    /// The frontend's name, a string.
    FrontendName,
    /// The backend's name, a string; nothing before one is chosen.
    BackendName,
    /// Client connections of a frontend now, an integer.
    FrontendConnections(Option<&'a [u8]>),
}
