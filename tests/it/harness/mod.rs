//! What the tests stand on: the gateway as a process, an origin that does what a test says, clients
//! that accept nothing but correct messages.

pub mod certificates;
pub mod client;
pub mod deadline;
pub mod gateway;
pub mod http2;
pub mod metrics;
pub mod origin;
pub mod peers;
pub mod place;
pub mod request;
pub mod response;
pub mod rules;

pub use client::{Client, get};
pub use deadline::{Gate, eventually};
pub use gateway::Gateway;
pub use origin::{Origin, Wire};
pub use place::Place;
pub use request::Seen;
pub use response::{Broken, Response};
pub use rules::site;
