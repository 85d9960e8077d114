//! HTTP/1 towards clients, in the order a request meets it: the connection's loop, the parser of
//! heads, the decoder of bodies and what is read of them ahead, the writer of responses, and the hand-over to the
//! proxy engine.

mod ahead;
pub mod body;
pub mod connection;
pub mod downstream;
pub mod half;
pub mod link;
pub mod parse;
pub mod reply;
pub mod service;
pub mod target;
pub mod upload;
pub mod write;
