//! Tests of the gateway as its users meet it: a process, a rule file, sockets.
#![allow(unreachable_pub, reason = "one test binary: nothing here is public")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that cannot go on fails, and says why"
)]

mod harness;

mod allocations;
mod answers;
mod cache_status;
mod cases;
mod collapse;
mod command_line;
mod conditional;
mod confirmed;
mod connection;
mod counters;
mod demo;
mod differential;
mod errors;
mod explain;
mod facts;
mod fill;
mod freshness;
mod front;
mod harness_itself;
mod head;
mod http2;
mod imports;
mod listening;
mod lists;
mod log;
mod mirror;
mod passing;
mod poisoning;
mod purge;
mod reload;
mod rules;
mod shipped;
mod shutdown;
mod surrogate;
mod tables;
mod tls;
mod truncation;
mod upgrade;
mod vary;
