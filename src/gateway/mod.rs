//! Sockets, in the order a request meets them.

pub mod clock;
pub mod counted;
pub mod deliver;
pub mod exchange;
pub mod explain;
pub mod fault;
pub mod fetch;
pub mod file;
pub mod forward;
pub mod front;
pub mod h1;
pub mod h2;
pub mod hop;
pub mod host;
pub mod job;
pub mod limit;
pub mod listener;
pub mod listening;
pub mod log;
pub mod lookup;
pub mod plan;
pub mod proxy;
pub mod reload;
pub mod reply;
pub mod respond;
pub mod server;
pub mod shortcut;
pub mod snapshot;
pub mod streams;
pub mod surrogate;
pub mod tls;
pub mod upstream;
pub mod worker;
pub mod world;

pub use server::{check, run};
pub use tls::faults as certificate_faults;
