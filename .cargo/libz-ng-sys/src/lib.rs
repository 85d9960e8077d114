//! zlib-ng's Rust interface served by plain zlib, which `cc` builds alone.
pub use libz_sys::*;
