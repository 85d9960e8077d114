//! Ports that are nobody else's.

use std::net::SocketAddr;

use socket2::{Domain, Socket, Type};

/// A port of 127.0.0.1 that is held but not listened on. Who asks for any port does not get it; a server that is told
/// to take it may; who connects before that is refused. Without one, a port that was found free could be another
/// test's a moment later, and servers that share ports would share each other's clients.
pub struct Place {
    _held: Socket,
    /// Where it is.
    pub address: SocketAddr,
}

impl Place {
    /// Holds a free one, until it is dropped.
    pub fn hold() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.set_reuse_address(true).unwrap();
        socket.set_reuse_port(true).unwrap();
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        let address = socket.local_addr().unwrap().as_socket().unwrap();
        Self { _held: socket, address }
    }
}
