//! The admin API: a small HTTP/1 server with a thread and sockets of its own, away from the traffic.
//!
//! A request passes `guard` (may this caller ask?), then one row of the table in `routes`. New sockets and a new
//! token are prepared first and committed when the whole configuration has been taken, so that a refused reload
//! changes nothing.

mod bind;
mod guard;
mod purge;
mod room;
mod routes;
mod serve;

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use arc_swap::ArcSwapOption;
use tokio::sync::mpsc;

pub use self::bind::BindError;
use self::{bind::Listener, room::Room};
use crate::{
    config::{self, BindAddress},
    ops::Ops,
};

/// Connections at a time; one more closes the one whose client has been waited for longest.
const MAX_CONNECTIONS: usize = 64;

/// The admin API's server. It runs until the process ends.
#[derive(Debug)]
pub struct Admin {
    commands: mpsc::UnboundedSender<Command>,
    shared: Arc<Shared>,
    /// Addresses asked for, and those they became (port 0 is resolved).
    bound: Mutex<HashMap<BindAddress, BindAddress>>,
}

/// Sockets and a token that wait for [`Admin::commit`]. Dropping it closes the sockets that are new.
#[derive(Debug)]
pub struct Prepared {
    wanted: Vec<BindAddress>,
    new: Vec<(BindAddress, Listener)>,
    token: Option<String>,
}

/// A socket that is not served after all leaves no file behind.
impl Drop for Prepared {
    fn drop(&mut self) {
        for (address, _) in &self.new {
            if let BindAddress::Unix(path) = address {
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

/// What all connections share.
#[derive(Debug)]
struct Shared {
    ops: Arc<Ops>,
    token: ArcSwapOption<String>,
    room: Arc<Room>,
}

/// What the server's thread is told.
#[derive(Debug)]
enum Command {
    /// Serve this one from now on.
    Serve(BindAddress, Listener),
    /// Stop accepting there.
    Close(BindAddress),
}

impl Admin {
    /// Starts the server's thread. It listens nowhere until [`Admin::commit`].
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(ops: Arc<Ops>) -> io::Result<Self> {
        let shared = Arc::new(Shared { ops, token: ArcSwapOption::empty(), room: Room::new(MAX_CONNECTIONS) });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(4).build()?;
        let (commands, receiver) = mpsc::unbounded_channel();
        let served = Arc::clone(&shared);
        thread::Builder::new()
            .name("admin".to_owned())
            .spawn(move || runtime.block_on(serve::commands(served, receiver)))?;
        Ok(Self { commands, shared, bound: Mutex::default() })
    }

    /// Opens the sockets that `admin` names and that are not open yet; `None` names none.
    ///
    /// # Errors
    /// The first address that cannot be listened on. Nothing has changed then.
    pub fn prepare(&self, admin: Option<&config::Admin>) -> Result<Prepared, BindError> {
        let bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        let mut prepared =
            Prepared { wanted: Vec::new(), new: Vec::new(), token: admin.and_then(|admin| admin.token.clone()) };
        for (address, place) in admin.map(|admin| admin.binds.as_slice()).unwrap_or_default() {
            if !prepared.wanted.contains(address) {
                prepared.wanted.push(address.clone());
                if !bound.contains_key(address) {
                    prepared.new.push((address.clone(), bind::open(address, place)?));
                }
            }
        }
        Ok(prepared)
    }

    /// Takes `prepared` over: its token holds and its sockets are served from now on, and those it does not name close.
    pub fn commit(&self, mut prepared: Prepared) {
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.token.store(prepared.token.take().map(Arc::new));
        bound.retain(|address, _| {
            let keep = prepared.wanted.contains(address);
            if !keep {
                let _ = self.commands.send(Command::Close(address.clone()));
            }
            keep
        });
        for (address, listener) in std::mem::take(&mut prepared.new) {
            let real = listener.address(&address);
            tracing::info!("admin on {real}");
            bound.insert(address.clone(), real);
            let _ = self.commands.send(Command::Serve(address, listener));
        }
    }

    /// Stops listening, and leaves no socket file behind.
    pub fn close(&self) {
        let bound = std::mem::take(&mut *self.bound.lock().unwrap_or_else(PoisonError::into_inner));
        for address in bound.into_keys() {
            // Here as well as in the server's thread: the process may end before that has run.
            if let BindAddress::Unix(path) = &address {
                let _ = std::fs::remove_file(path);
            }
            let _ = self.commands.send(Command::Close(address));
        }
    }

    /// Where it listens, with the ports that the system chose.
    pub fn addresses(&self) -> Vec<BindAddress> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::{SocketAddr, TcpStream},
        time::Duration,
    };

    use super::*;
    use crate::{config::Place, metrics::Metrics};

    fn settings(addresses: &[BindAddress], token: Option<&str>) -> config::Admin {
        let binds = addresses.iter().map(|address| (address.clone(), Place::default())).collect();
        config::Admin { binds, token: token.map(str::to_owned) }
    }

    fn started() -> (Admin, SocketAddr) {
        let admin = Admin::start(Arc::new(Ops::new(Arc::new(Metrics::new())))).unwrap();
        let any = BindAddress::Tcp("127.0.0.1:0".parse().unwrap());
        admin.commit(admin.prepare(Some(&settings(&[any], None))).unwrap());
        let BindAddress::Tcp(address) = admin.addresses().remove(0) else { panic!("not TCP") };
        (admin, address)
    }

    fn say(mut stream: impl Read + Write, text: &str) -> String {
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn ask(address: SocketAddr, method: &str, path: &str, more: &str, body: &str) -> String {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{more}");
        say(stream, &format!("{head}Content-Length: {length}\r\n\r\n{body}"))
    }

    #[test]
    fn calls_are_answered() {
        let (admin, address) = started();
        let json = "Content-Type: application/json\r\n";
        for (method, path, more, body, status, says) in [
            ("GET", "/healthz", "", "", 200, "ok"),
            ("HEAD", "/healthz", "", "", 200, "text/plain"),
            ("GET", "/readyz", "", "", 503, "not ready"),
            ("GET", "/v1/stats", "", "", 200, "\"uptime_seconds\":"),
            ("GET", "/v1/purge", "", "", 405, "allow: POST"),
            ("DELETE", "/v1/stats", "", "", 405, "allow: GET, HEAD"),
            ("GET", "/secret", "", "", 404, "\"error\":"),
            ("POST", "/v1/purge", json, r#"{"all":true}"#, 200, r#"{"matched":0,"purged":0,"state":"done"}"#),
            ("POST", "/v1/purge", json, r#"{"all":1}"#, 400, "`all` takes true"),
            ("POST", "/v1/purge", "", r#"{"all":true}"#, 415, "application/json"),
            ("POST", "/v1/purge", "Content-Type: text/plain\r\n", r#"{"all":true}"#, 415, "application/json"),
            ("POST", "/v1/purge", "Origin: http://evil.example\r\n", r#"{"all":true}"#, 403, "web pages"),
            ("POST", "/v1/reload", "", "", 422, "nothing to reload"),
        ] {
            let answer = ask(address, method, path, more, body);
            let line = format!("HTTP/1.1 {status} ");
            assert!(answer.starts_with(&line) && answer.contains(says), "{method} {path} {body}: {answer}");
        }
        let big = "x".repeat((1 << 20) + 1);
        assert!(ask(address, "POST", "/v1/purge", json, &big).starts_with("HTTP/1.1 413 "));
        admin.shared.ops.set_ready(true);
        assert!(ask(address, "GET", "/readyz", "", "").starts_with("HTTP/1.1 200 "));
    }

    #[test]
    fn a_commit_opens_closes_and_keeps_sockets() {
        let (admin, tcp) = started();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("admin.sock");
        let (any, unix) = (BindAddress::Tcp("127.0.0.1:0".parse().unwrap()), BindAddress::Unix(path.clone()));
        let both = settings(&[any.clone(), unix], Some("secret"));

        drop(admin.prepare(Some(&both)).unwrap());
        assert!(ask(tcp, "GET", "/v1/stats", "", "").starts_with("HTTP/1.1 200 "), "preparing changes nothing");

        admin.commit(admin.prepare(Some(&both)).unwrap());
        assert!(ask(tcp, "GET", "/v1/stats", "", "").contains("www-authenticate: Bearer"), "the token holds at once");
        assert!(ask(tcp, "GET", "/healthz", "", "").starts_with("HTTP/1.1 200 "));
        let stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
        let request = "GET /v1/stats HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer secret\r\n\r\n";
        assert!(say(stream, request).starts_with("HTTP/1.1 200 "));

        admin.commit(admin.prepare(Some(&settings(&[any], None))).unwrap());
        assert!(ask(tcp, "GET", "/v1/stats", "", "").starts_with("HTTP/1.1 200 "), "the socket stayed");
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        while path.exists() && std::time::Instant::now() < deadline {
            thread::yield_now();
        }
        assert!(!path.exists());
    }

    #[test]
    fn silent_connections_keep_nobody_out() {
        let (_admin, address) = started();
        let mut silent: Vec<_> = (0..MAX_CONNECTIONS + 10).map(|_| TcpStream::connect(address).unwrap()).collect();
        for stream in silent.iter_mut().skip(MAX_CONNECTIONS / 2) {
            stream.write_all(b"GET /healthz HT").unwrap();
        }
        let asked = std::time::Instant::now();
        assert!(ask(address, "GET", "/healthz", "", "").starts_with("HTTP/1.1 200 "));
        assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
        // The youngest was not closed for it.
        let youngest = silent.pop().unwrap();
        youngest.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let answer = say(youngest, "TP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }

    #[test]
    fn a_head_that_does_not_come_is_given_up() {
        let (_admin, address) = started();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(9))).unwrap();
        say(stream, "GET /healthz HTTP/1.1\r\n");
    }

    #[test]
    fn heads_that_can_be_read_in_two_ways_are_refused() {
        let (_admin, address) = started();
        let both = "Content-Type: application/json\r\n";
        for (lines, status) in [
            ("GET /v1/stats HTTP/1.1\r\n".to_owned(), 400),
            ("GET /healthz HTTP/1.1\r\n".to_owned(), 400),
            ("GET /v1/stats HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n".to_owned(), 400),
            ("GET http://localhost/v1/stats HTTP/1.1\r\n".to_owned(), 400),
            ("GET /v1/stats HTTP/1.0\r\n".to_owned(), 200),
            ("GET /v1/stats HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n".to_owned(), 200),
            (
                format!(
                    "POST /v1/purge HTTP/1.1\r\nHost: localhost\r\n{both}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"
                ),
                400,
            ),
            (
                format!(
                    "POST /v1/purge HTTP/1.1\r\nHost: localhost\r\n{both}Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"
                ),
                400,
            ),
            (
                format!(
                    "POST /v1/purge HTTP/1.1\r\nHost: localhost\r\n{both}Content-Length: 3\r\nContent-Length: 4\r\n"
                ),
                400,
            ),
        ] {
            let stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            // A refusal closes the connection: what follows it is not read as a request.
            let answer = say(
                stream,
                &format!("{lines}\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
            );
            assert!(
                answer.starts_with(&format!("HTTP/1.{} {status} ", u8::from(!lines.contains("/1.0")))),
                "{lines}: {answer}"
            );
            assert_eq!(answer.matches("HTTP/1.").count(), 1, "{lines}: {answer}");
        }
    }
}
