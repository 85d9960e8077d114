//! An outside world for tests: files, variables and host names that are written down.

use std::{collections::HashMap, io, net::SocketAddr, path::Path};

use super::Outside;

/// See the module.
#[derive(Default)]
pub(crate) struct Desk {
    files: HashMap<String, Vec<u8>>,
    vars: HashMap<String, String>,
    hosts: HashMap<String, SocketAddr>,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn with_file(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.into(), text.into());
        self
    }

    pub(crate) fn with_var(mut self, name: &str, value: &str) -> Self {
        self.vars.insert(name.into(), value.into());
        self
    }

    pub(crate) fn with_host(mut self, name: &str, address: [u8; 4]) -> Self {
        self.hosts.insert(name.into(), SocketAddr::from((address, 0)));
        self
    }
}

impl Outside for Desk {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.files.get(path).cloned().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such file"))
    }

    fn memory(&self) -> Option<u64> {
        Some(16 << 30)
    }

    fn certificate_faults(&self, path: &Path) -> Vec<String> {
        if path.starts_with("broken") { vec![format!("{}: this file is empty", path.display())] } else { Vec::new() }
    }

    fn var(&self, name: &str) -> Option<String> {
        self.vars.get(name).cloned()
    }

    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        match self.hosts.get(host) {
            Some(address) => Ok(vec![SocketAddr::new(address.ip(), port)]),
            None => Err(io::Error::new(io::ErrorKind::NotFound, "no such host")),
        }
    }
}
