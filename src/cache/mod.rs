//! Where responses live: objects, the index over them, the memory tier, fills under way, purges.
//! It knows servers only as a [`fill::Source`].

mod budget;
pub mod fill;
mod index;
mod memory;
pub mod object;
pub mod purge;
pub mod store;
pub mod tags;
#[cfg(test)]
mod tests;

pub use object::{Body, Object};
pub use store::{Lookup, Seen, Store};
