//! Why an address cannot be listened on, in words that say what to do.

use std::io;

use crate::{config::BindAddress, lang::in_words};

/// What `error` means for whoever wanted to listen on `address`; one line.
pub fn reason(error: &io::Error, address: &BindAddress) -> String {
    match (error.kind(), address) {
        (io::ErrorKind::AddrInUse, BindAddress::Tcp(address)) => {
            format!("the port is in use (`ss -ltnp 'sport = :{}'` shows by which process)", address.port())
        }
        (io::ErrorKind::AddrInUse, BindAddress::Unix(_)) => {
            "the socket is in use (`ss -lxp` shows by which process)".to_owned()
        }
        (io::ErrorKind::PermissionDenied, BindAddress::Tcp(address)) if address.port() < 1024 => {
            "not permitted: ports below 1024 take the right CAP_NET_BIND_SERVICE; give it, or use a port from 1024 on"
                .to_owned()
        }
        (io::ErrorKind::PermissionDenied, BindAddress::Unix(_)) => {
            "not permitted: this user may not write in its directory".to_owned()
        }
        (io::ErrorKind::NotFound, BindAddress::Unix(_)) => "its directory does not exist".to_owned(),
        (io::ErrorKind::AddrNotAvailable, BindAddress::Tcp(_)) => "this machine has no such address".to_owned(),
        _ => in_words(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_and_one_without_the_right_to_it_say_what_to_do() {
        let address = BindAddress::Tcp("127.0.0.1:80".parse().unwrap());
        let said = |kind: io::ErrorKind| reason(&kind.into(), &address);
        assert!(said(io::ErrorKind::AddrInUse).contains("in use (`ss -ltnp 'sport = :80'`"));
        assert!(said(io::ErrorKind::PermissionDenied).contains("CAP_NET_BIND_SERVICE"));
        let high = BindAddress::Tcp("127.0.0.1:8080".parse().unwrap());
        assert!(!reason(&io::ErrorKind::PermissionDenied.into(), &high).contains("1024"));
        let unix = BindAddress::Unix("/nowhere/web.sock".into());
        assert_eq!(reason(&io::ErrorKind::NotFound.into(), &unix), "its directory does not exist");
    }
}
