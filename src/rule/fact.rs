//! What the running gateway knows beyond the exchange itself: names, counts, states.

use std::net::IpAddr;

/// One thing to ask [`super::Env::fact`] for. A frontend or backend is its place in the configuration's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// The frontend's name, a string.
    FrontendName,
    /// The frontend's number among all proxies, an integer.
    FrontendNumber,
    /// The backend's name, a string; nothing before one is chosen.
    BackendName,
    /// The backend's number among all proxies, an integer; nothing before one is chosen.
    BackendNumber,
    /// The name in the frontend's `default_backend`, a string; nothing without one.
    DefaultBackend,
    /// Client connections of a frontend now, an integer.
    FrontendConnections(usize),
    /// Client connections that a frontend took in the last second, an integer.
    FrontendSessionRate(usize),
    /// Requests that a frontend took in the last second, an integer.
    FrontendRequestRate(usize),
    /// Exchanges that are at a backend now, an integer.
    BackendConnections(usize),
    /// Exchanges that came to a backend in the last second, an integer.
    BackendSessionRate(usize),
    /// Client connections of the exchange's frontend now, an integer.
    OwnConnections,
    /// Exchanges that are at the chosen backend now, an integer; nothing before one is chosen.
    OwnExchanges,
    /// The name of the server, a string; nothing before one is chosen.
    ServerName,
    /// The address of the server; nothing before one is chosen, or when it is a unix socket.
    ServerAddress,
    /// The port of the server, an integer; nothing before one is chosen, or when it is a unix socket.
    ServerPort,
    /// Log lines that the frontend has written, an integer.
    LogLines,
    /// Another number each time, an integer from 1; each is one more than the last.
    NextNumber,
    /// Client connections of all frontends now, an integer.
    Connections,
    /// A timeout in force, an integer in milliseconds; 0 when there is none.
    Timeout(Timeout),
    /// Whether the response comes out of a store, true or false.
    CacheHit,
    /// The name of the store that the response comes out of, a string; nothing when it comes out of none.
    CacheName,
    /// The path of a file of the configuration by its number, a string.
    FileName(u32),
    /// The name of the machine, a string.
    Hostname,
    /// The number of the process, an integer.
    Process,
    /// The number of the thread, an integer from 0.
    Thread,
    /// Whether the gateway is about to end, true or false.
    Stopping,
    /// Whole seconds since the gateway started, an integer.
    Uptime,
    /// Whether an address is one of this machine's, true or false.
    IsLocal(IpAddr),
}

/// The timeouts that rules can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeout {
    /// `timeout client`.
    Client,
    /// `timeout connect`; nothing before a backend is chosen.
    Connect,
    /// `timeout server`; nothing before a backend is chosen.
    Server,
    /// `timeout tunnel`; nothing before a backend is chosen.
    Tunnel,
}
