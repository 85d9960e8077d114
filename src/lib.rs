//! Tidegate: an HTTP cache gateway steered by rules.
//!
//! # The map
//!
//! In import order; a module imports only from those above it in this list.
//!
//! * [`time`]: points in time as values; nothing in the core reads a clock.
//! * [`message`]: heads of requests and responses, with their fields in order, in one buffer.
//! * [`policy`]: the RFCs on caching (9110, 9111, 9211) as pure functions of request, response, stored response and now.
//! * [`rule`]: the checked rules and their evaluation on a request; it knows nothing of caching.
//! * [`config`]: what a checked configuration says; nothing in it can be wrong any more.
//! * [`lang`]: from text to a configuration, or to everything that is wrong with the text.
//! * `metrics`: counters, a cell for each thread.
//! * `cache`: where responses live: objects, index, memory tier, fills under way, purges.
//! * `ops`: what an operator can do: purge, reload, stats.
//! * `gateway`: sockets, in the order a request meets them; here rules and policy meet, in the plan.
//! * `admin`: the operator's API, with a thread and sockets of its own.
//! * `cli`: the command line.
//!
//! The first six are the core. With `--no-default-features` the crate is only that: no socket, no clock, no thread.
//!
//! # The way of a request
//!
//! The listener accepts, TLS and HTTP are taken off, the head is parsed once. The frontend's and backend's rules run once and
//! give a plan: an answer (deny, redirect, return, purge), or a backend with edits of the request and candidates for
//! caching. What memory has is answered at once. A GET or HEAD that may be cached starts a fill or joins the one under
//! way; everything else is passed on by pingora's proxy. On the way back the response rules run, the policy says whether
//! and how long to store, and the reply goes out; log and counters come last.
//!
//! # What always holds
//!
//! * A loaded configuration never changes; a reload replaces it whole, and a request keeps the one it began with.
//! * A stored response never changes, and is complete: what breaks off is not stored.
//! * Whatever the key, `Vary` and the policy read is the request as it is sent to the server.
//! * A purge that has been acknowledged holds for the next request and for every fill that had begun.
//! * Each request has exactly one outcome in the counters.
//! * Nothing that a client or server sends makes the program panic; trouble in a store is a miss.
//! * A hit allocates nothing in parsing, rules and lookup.

pub mod config;
pub mod lang;
pub mod message;
pub mod policy;
pub mod rule;
pub mod time;

#[cfg(feature = "gateway")]
pub mod admin;
#[cfg(feature = "gateway")]
pub mod cache;
#[cfg(feature = "gateway")]
pub mod cli;
#[cfg(feature = "gateway")]
pub mod gateway;
#[cfg(feature = "gateway")]
pub mod metrics;
#[cfg(feature = "gateway")]
pub mod ops;
