//! HTTP/1 towards clients, in the order a request meets it: the connection's loop, the parser of
//! heads, the decoder of bodies, the writer of responses, and the hand-over to the proxy engine.

pub mod body;
pub mod connection;
pub mod downstream;
pub mod half;
pub mod link;
pub mod parse;
pub mod reply;
pub mod target;
pub mod upload;
pub mod write;
