//! The admin API's sockets.

use std::{
    fs, io,
    net::TcpListener,
    os::unix::{
        fs::{FileTypeExt, PermissionsExt},
        net::{UnixListener, UnixStream},
    },
    path::Path,
};

use socket2::{Domain, SockAddr, Socket, Type};

use crate::{
    config::{BindAddress, Place},
    gateway::listening,
};

/// Connections that wait for room.
const BACKLOG: i32 = 128;

/// An address that cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("{place}: the admin API cannot listen on {address}: {}", listening::reason(.source, .address))]
pub struct BindError {
    address: BindAddress,
    place: Place,
    source: io::Error,
}

/// An open socket that is not served yet.
#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// The address it has, when `asked` was asked for.
    pub(super) fn address(&self, asked: &BindAddress) -> BindAddress {
        match self {
            Self::Tcp(listener) => listener.local_addr().map_or_else(|_| asked.clone(), BindAddress::Tcp),
            Self::Unix(_) => asked.clone(),
        }
    }
}

/// Opens a socket. A unix socket's file is for its owner only, and one that nobody serves any more is replaced.
pub(super) fn open(address: &BindAddress, place: &Place) -> Result<Listener, BindError> {
    let opened = match address {
        BindAddress::Tcp(tcp) => TcpListener::bind(tcp).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(Listener::Tcp(listener))
        }),
        BindAddress::Unix(path) => open_unix(path).map(Listener::Unix),
    };
    opened.map_err(|source| BindError { address: address.clone(), place: place.clone(), source })
}

fn open_unix(path: &Path) -> io::Result<UnixListener> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if is_socket && UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
        fs::remove_file(path)?;
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    // Before `listen`, so that nobody gets in between.
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abandoned_socket_file_is_replaced_and_a_served_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let address = BindAddress::Unix(dir.path().join("admin.sock"));
        let place = Place { file: "a.cfg".to_owned(), line: 3 };
        let first = open(&address, &place).unwrap();
        let error = open(&address, &place).unwrap_err().to_string();
        assert!(error.starts_with("a.cfg:3: the admin API cannot listen on /"), "{error}");
        assert!(error.ends_with("the socket is in use (`ss -lxp` shows by which process)"), "{error}");
        drop(first);
        open(&address, &place).unwrap();
    }
}
