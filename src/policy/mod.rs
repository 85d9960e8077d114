//! RFC 9110, 9111, 9211, 9213, 5861 as pure functions of (request, stored response, now).
//!
//! `Terms` say what a caching rule asks for; the functions say what HTTP allows. A decision is an
//! enum with its reason, never an error.

pub mod date;
pub mod directive;
pub mod freshness;
pub mod head;
pub mod invalidate;
pub mod key;
pub mod keyed;
pub mod range;
pub mod reuse;
pub mod rewrite;
pub mod status;
pub mod storable;
mod targeted;
pub mod terms;
pub mod validator;
pub mod variant;
