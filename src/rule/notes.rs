//! What rules note of one exchange beside variables.

/// Notes of one exchange; they travel with it. Empty ones hold no memory.
#[derive(Clone, Debug, Default)]
pub struct Notes {}
