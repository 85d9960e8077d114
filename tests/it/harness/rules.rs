//! Rule files that most tests share.

use std::{net::SocketAddr, path::Path};

use super::Gateway;

/// One frontend `web` with these lines, one backend `origin` with this server, a store, an admin listener.
/// Its timeouts are longer than any test waits: nothing that a test waits for comes of them.
pub fn site(origin: SocketAddr, frontend: &str) -> String {
    site_with(origin, "", frontend, "")
}

/// As [`site`], with lines for `global` and for the backend too.
pub fn site_with(origin: SocketAddr, global: &str, frontend: &str, backend: &str) -> String {
    format!(
        "global
    nbthread 2
{global}
cache edge
    memory 64m
admin
    bind 127.0.0.1:0
defaults
    mode http
    timeout connect 2s
    timeout client 5m
    timeout server 5m
frontend web
    bind 127.0.0.1:0
{frontend}
    default_backend origin
backend origin
{backend}
    server o1 {origin}
"
    )
}

/// These rules with one thread for all connections: what came first is dealt with first.
pub fn one_worker(rules: &str) -> String {
    assert!(rules.contains("nbthread 2"));
    rules.replace("nbthread 2", "nbthread 1")
}

/// As [`site`], with a second bind of the frontend that speaks TLS with the certificates at `crt`:
/// [`secure`] says where.
pub fn site_with_tls(origin: SocketAddr, crt: &Path, global: &str, frontend: &str) -> String {
    let bind = format!("    bind 127.0.0.1:0 ssl crt {} alpn h2,http/1.1\n{frontend}", crt.display());
    site_with(origin, global, &bind, "")
}

/// Where the TLS bind of [`site_with_tls`] listens.
pub fn secure(gateway: &Gateway) -> SocketAddr {
    gateway.frontends("web")[1]
}
