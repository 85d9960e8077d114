//! The gateway over real sockets, with an origin that is written here: what is passed, reloaded, drained.

use std::{
    io::{ErrorKind, Read, Write},
    net::{TcpListener, TcpStream},
    sync::mpsc as channel,
    time::Instant,
};

use super::*;
use crate::config::{
    Backend, Balance, Bind, BindTls, ClientTimeouts, Id, Log, Place, Server, ServerAddress, ServerTimeouts,
};

/// Longest time that something is waited for.
const LIMIT: Duration = Duration::from_secs(20);

fn config(origin: &str, binds: &[&str]) -> Config {
    let bind = |address: &&str| Bind {
        address: match address.strip_prefix("unix:") {
            Some(path) => BindAddress::Unix(path.into()),
            None => BindAddress::Tcp(address.parse().unwrap()),
        },
        name: Default::default(),
        tls: None,
        place: Place { file: "test.cfg".into(), line: 3 },
    };
    let frontend = Frontend {
        name: "web".into(),
        number: 1,
        names_default: true,
        binds: binds.iter().map(bind).collect(),
        maxconn: None,
        rate_limit: None,
        timeouts: ClientTimeouts::default(),
        forwardfor: None,
        buffers: false,
        stats: None,
        tarpit: Duration::from_secs(1),
        pages: Default::default(),
        monitor: None,
        connection: Default::default(),
        session: Default::default(),
        content: Default::default(),
        request: Default::default(),
        response: Default::default(),
        after_response: Default::default(),
        cache_response: Default::default(),
        switches: Vec::new(),
        default_backend: Some(Id::new(0)),
        cache_rules: Vec::new(),
        captures: Default::default(),
        unique_id: None,
        unique_id_header: None,
        log: Log::default(),
    };
    let server = Server { name: "a".into(), address: ServerAddress::Tcp(origin.parse().unwrap()) };
    let backend = Backend {
        name: "app".into(),
        number: 2,
        servers: vec![server],
        balance: Balance::RoundRobin,
        timeouts: ServerTimeouts { connect: Duration::from_secs(2), server: Duration::from_secs(2) },
        forwardfor: None,
        buffers: false,
        stats: None,
        tarpit: Duration::from_secs(1),
        pages: Default::default(),
        content: Default::default(),
        request: Default::default(),
        response_content: Default::default(),
        response: Default::default(),
        after_response: Default::default(),
        cache_response: Default::default(),
        cache_rules: Vec::new(),
    };
    let mut config = Config { frontends: vec![frontend], backends: vec![backend], ..Config::default() };
    config.global.threads = Some(1);
    config.global.hard_stop_after = Duration::from_secs(3);
    config
}

/// A gateway in a thread of its own; stopped when dropped.
struct Running {
    address: String,
    control: Control,
    ops: Arc<Ops>,
    next: Arc<Mutex<Result<Config, String>>>,
    thread: Option<thread::JoinHandle<()>>,
}

fn start(config: Config) -> Running {
    let ops = Arc::new(Ops::new(Arc::new(Metrics::new())));
    let next = Arc::new(Mutex::new(Err("nothing to load".to_owned())));
    let loaded = next.clone();
    let shared = Shared::new(config, ops.clone()).unwrap();
    let gateway = Gateway::start(shared, move || loaded.lock().unwrap().clone()).unwrap();
    let address = gateway.addresses()[0].to_string();
    let control = gateway.control();
    let thread = thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(gateway.run(Signals::default()));
    });
    Running { address, control, ops, next, thread: Some(thread) }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.control.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// A client or server side with a deadline on everything.
struct Wire {
    stream: TcpStream,
    held: Vec<u8>,
}

impl Wire {
    fn to(address: &str) -> Self {
        Self::over(TcpStream::connect(address).unwrap())
    }

    fn over(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, held: Vec::new() }
    }

    fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).unwrap();
    }

    /// Reads until `end` was seen; what came up to and with it.
    fn until(&mut self, end: &str) -> String {
        loop {
            if let Some(at) = memchr::memmem::find(&self.held, end.as_bytes()) {
                let rest = self.held.split_off(at + end.len());
                return String::from_utf8(std::mem::replace(&mut self.held, rest)).unwrap();
            }
            let mut room = [0; 4096];
            match self.stream.read(&mut room) {
                Ok(0) => panic!("ended after {:?}", String::from_utf8_lossy(&self.held)),
                Ok(size) => self.held.extend_from_slice(&room[..size]),
                Err(error) => panic!("{error} after {:?}", String::from_utf8_lossy(&self.held)),
            }
        }
    }

    /// Whatever comes until the other side closes.
    fn rest(&mut self) -> String {
        let mut held = std::mem::take(&mut self.held);
        match self.stream.read_to_end(&mut held) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => held.extend_from_slice(b"<reset>"),
            Err(error) => panic!("{error}"),
        }
        String::from_utf8(held).unwrap()
    }
}

/// An origin whose connections are played by `play`, one thread each.
fn origin(play: impl Fn(Wire) + Clone + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let play = play.clone();
            thread::spawn(move || play(Wire::over(stream.unwrap())));
        }
    });
    address
}

/// Answers every request with what it received: heads end in an empty line, bodies in `.`.
fn echo(mut wire: Wire) {
    loop {
        let mut room = [0; 1];
        if wire.held.is_empty() && !matches!(wire.stream.peek(&mut room), Ok(1)) {
            return;
        }
        let head = wire.until("\r\n\r\n");
        let has_body = head.to_lowercase().contains("content-length") || head.to_lowercase().contains("chunked");
        let body = if has_body { wire.until(".") } else { String::new() };
        if head.to_lowercase().contains("chunked") {
            wire.until("\r\n0\r\n\r\n");
        }
        let line = head.lines().next().unwrap();
        let said = format!("<{line}|{body}>");
        wire.send(&format!(
            "HTTP/1.1 200 OK\r\nDate: then\r\nConnection: X-Hop\r\nX-Hop: 1\r\nContent-Length: {}\r\n\r\n{said}",
            said.len()
        ));
    }
}

#[test]
fn requests_with_and_without_bodies_share_a_connection() {
    let gateway = start(config(&origin(echo), &["127.0.0.1:0"]));
    let mut client = Wire::to(&gateway.address);
    client.send("GET /a HTTP/1.1\r\nHost: t\r\n\r\n");
    let answer = client.until(">");
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\nDate: then\r\n") && answer.ends_with("<GET /a HTTP/1.1|>"),
        "{answer}"
    );
    assert!(!answer.contains("X-Hop"), "{answer}");
    client.send("POST /b HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nbody.");
    assert!(client.until(">").ends_with("<POST /b HTTP/1.1|body.>"));
    client.send("POST /c HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n3;x=1\r\nbod\r\n2\r\ny.\r\n0\r\n\r\nGET /d HTTP/1.1\r\nHost: t\r\n\r\n");
    let answer = client.until(">");
    assert!(answer.contains("<POST /c HTTP/1.1|") && !answer.contains(";x"), "{answer}");
    assert!(client.until(">").ends_with("<GET /d HTTP/1.1|>"), "pipelined behind a chunked body");
    client.send("HEAD /e HTTP/1.1\r\nHost: t\r\n\r\nGET /f HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
    assert!(!client.until("\r\n\r\n").contains('<'));
    let last = client.rest();
    assert!(last.contains("Connection: close\r\n") && last.ends_with("<GET /f HTTP/1.1|>"), "{last}");
}

#[test]
fn a_client_is_asked_for_the_body_it_announced() {
    let gateway = start(config(&origin(echo), &["127.0.0.1:0"]));
    let mut client = Wire::to(&gateway.address);
    client.send("POST /b HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(client.until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("body.");
    assert!(client.until(">").ends_with("<POST /b HTTP/1.1|body.>"));
}

#[test]
fn a_pipelined_request_waits_for_a_slow_origin() {
    let (seen, came) = channel::channel();
    let (open, held) = channel::channel();
    let held = Arc::new(Mutex::new(held));
    let slow = move |mut wire: Wire| {
        wire.until("\r\n\r\n");
        seen.send(()).unwrap();
        held.lock().unwrap().recv().unwrap();
        wire.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1");
        wire.until("\r\n\r\n");
        wire.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n2\r\n0\r\n\r\n");
    };
    let gateway = start(config(&origin(slow), &["127.0.0.1:0"]));
    let mut client = Wire::to(&gateway.address);
    client.send("GET /1 HTTP/1.1\r\nHost: t\r\n\r\n");
    came.recv_timeout(LIMIT).unwrap();
    client.send("GET /2 HTTP/1.1\r\nHost: t\r\n\r\n");
    open.send(()).unwrap();
    assert!(client.until("\r\n\r\n1").starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(client.until("0\r\n\r\n").ends_with("chunked\r\n\r\n1\r\n2\r\n0\r\n\r\n"));
}

#[test]
fn failures_of_servers_have_their_status() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let silent = origin(|mut wire| drop(wire.rest()));
    let rude = origin(|mut wire| {
        wire.until("\r\n\r\n");
        wire.send("nonsense\r\n\r\n");
    });
    let closing = origin(|mut wire| drop(wire.until("\r\n\r\n")));
    for (origin, status) in [(nobody, 503), (silent, 504), (rude, 502), (closing, 502)] {
        let gateway = start(config(&origin, &["127.0.0.1:0"]));
        let mut client = Wire::to(&gateway.address);
        client.send("POST /a HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\n\r\n");
        let head = client.until("\r\n\r\n");
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
        client.until("\n");
    }
}

#[test]
fn a_response_that_breaks_off_is_seen_to() {
    for (head, body) in [("Content-Length: 9", "abc"), ("Transfer-Encoding: chunked", "3\r\nabc\r\n")] {
        let broken = move |mut wire: Wire| {
            wire.until("\r\n\r\n");
            wire.send(&format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}"));
        };
        let gateway = start(config(&origin(broken), &["127.0.0.1:0"]));
        let mut client = Wire::to(&gateway.address);
        client.send("GET /a HTTP/1.1\r\nHost: t\r\n\r\n");
        let answer = client.rest();
        assert!(!answer.ends_with("0\r\n\r\n") && answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

#[test]
fn a_bad_chunk_is_the_clients_fault_and_no_request_follows_it() {
    let (seen, requests) = channel::channel();
    let swallow = move |mut wire: Wire| {
        let _ = seen.send(wire.until("\r\n\r\n"));
        wire.rest();
    };
    let gateway = start(config(&origin(swallow), &["127.0.0.1:0"]));
    let mut client = Wire::to(&gateway.address);
    client.send("POST /a HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n4\r\r;q\nabcd\r\n0\r\n\r\nGET /b HTTP/1.1\r\nHost: t\r\n\r\n");
    let answer = client.rest();
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.matches("HTTP/1.1").count() == 1, "{answer}");
    assert!(requests.try_iter().all(|request: String| !request.contains("/b")));
}

#[test]
fn websocket_bytes_pass_after_the_101_only() {
    let (early, seen) = channel::channel();
    let play = move |mut wire: Wire| {
        let head = wire.until("\r\n\r\n");
        assert!(
            head.contains("Connection: Upgrade\r\n") && head.to_lowercase().contains("upgrade: websocket\r\n"),
            "{head}"
        );
        wire.stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let mut room = [0; 16];
        early.send(wire.stream.read(&mut room).is_err()).unwrap();
        wire.stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        wire.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello.");
        assert_eq!(wire.until("."), "early.");
        assert_eq!(wire.until("."), "late.");
        wire.send("bye.");
    };
    let gateway = start(config(&origin(play), &["127.0.0.1:0"]));
    let mut client = Wire::to(&gateway.address);
    client.send("GET /chat HTTP/1.1\r\nHost: t\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\nearly.");
    let head = client.until("\r\n\r\n");
    assert!(
        head.starts_with("HTTP/1.1 101 ") && head.contains("Connection: Upgrade\r\n") && head.contains("websocket"),
        "{head}"
    );
    assert!(seen.recv().unwrap(), "bytes went to the server before it agreed");
    assert_eq!(client.until("."), "hello.");
    client.send("late.");
    assert_eq!(client.rest(), "bye.");
}

#[test]
fn what_follows_a_refused_upgrade_is_a_request() {
    let gateway = start(config(&origin(echo), &["127.0.0.1:0"]));
    for protocol in ["websocket", "foo"] {
        let mut client = Wire::to(&gateway.address);
        client.send(&format!("GET /chat HTTP/1.1\r\nHost: t\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n\r\nGET /admin HTTP/1.1\r\nHost: t\r\n\r\n"));
        assert!(client.until(">").ends_with("<GET /chat HTTP/1.1|>"));
        assert!(client.until(">").ends_with("<GET /admin HTTP/1.1|>"));
    }
}

#[test]
fn the_answers_are_the_same_without_the_front() {
    let mut off = config(&origin(echo), &["127.0.0.1:0"]);
    off.global.front = false;
    let gateway = start(off);
    let mut client = Wire::to(&gateway.address);
    client.send("POST /b HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nbody.GET /a HTTP/1.1\r\nHost: t\r\n\r\n");
    assert!(client.until(">").ends_with("<POST /b HTTP/1.1|body.>"));
    assert!(client.until(">").ends_with("<GET /a HTTP/1.1|>"));
}

#[test]
fn a_reload_adds_and_removes_binds_and_keeps_connections() {
    let origin = origin(echo);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let unix = format!("unix:{}", path.display());
    let gateway = start(config(&origin, &["127.0.0.1:0"]));
    let mut client = Wire::to(&gateway.address);
    client.send("GET /a HTTP/1.1\r\nHost: t\r\n\r\n");
    client.until(">");

    assert_eq!(gateway.ops.reload().unwrap_err(), "nothing to load");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let held = TcpListener::bind(&taken);
    *gateway.next.lock().unwrap() = Ok(config(&origin, &["127.0.0.1:0", &taken]));
    if held.is_ok() {
        let refused = gateway.ops.reload().unwrap_err();
        assert!(refused.starts_with(&format!("test.cfg:3: cannot listen on {taken}: ")), "{refused}");
    }

    *gateway.next.lock().unwrap() = Ok(config(&origin, &["127.0.0.1:0", &unix]));
    gateway.ops.reload().unwrap();
    let mut local = std::os::unix::net::UnixStream::connect(&path).unwrap();
    local.write_all(b"GET /u HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    local.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("<GET /u HTTP/1.1|>"), "{answer}");
    client.send("GET /b HTTP/1.1\r\nHost: t\r\n\r\n");
    assert!(client.until(">").ends_with("<GET /b HTTP/1.1|>"), "the connection outlives the reload");

    *gateway.next.lock().unwrap() = Ok(config(&origin, &[&unix]));
    gateway.ops.reload().unwrap();
    assert!(path.exists());
    let deadline = Instant::now() + Duration::from_secs(5);
    while TcpStream::connect(&gateway.address).is_ok() {
        assert!(Instant::now() < deadline, "a removed bind still listens");
        thread::sleep(Duration::from_millis(10));
    }
    drop(gateway);
    assert!(!path.exists(), "the socket's file is removed at the end");
}

#[test]
fn a_drain_closes_idle_connections_and_waits_for_busy_ones() {
    let (seen, came) = channel::channel();
    let (open, held) = channel::channel();
    let held = Arc::new(Mutex::new(held));
    let slow = move |mut wire: Wire| {
        wire.until("\r\n\r\n");
        seen.send(()).unwrap();
        held.lock().unwrap().recv().unwrap();
        wire.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    };
    let mut patient = config(&origin(slow), &["127.0.0.1:0"]);
    patient.global.hard_stop_after = 3 * LIMIT;
    let mut gateway = start(patient);
    let (mut idle, mut busy) = (Wire::to(&gateway.address), Wire::to(&gateway.address));
    busy.send("GET /a HTTP/1.1\r\nHost: t\r\n\r\n");
    came.recv_timeout(LIMIT).unwrap();
    let start = Instant::now();
    gateway.control.drain();
    assert_eq!(idle.rest(), "", "idle connections are closed while others are busy");
    open.send(()).unwrap();
    assert!(busy.rest().ends_with("ok"));
    gateway.thread.take().unwrap().join().unwrap();
    assert!(start.elapsed() < LIMIT, "a drain ends when the last request has");
    assert!(TcpStream::connect(&gateway.address).is_err());
}

#[test]
fn a_drain_is_cut_after_its_limit() {
    let (seen, came) = channel::channel();
    let never = move |mut wire: Wire| {
        wire.until("\r\n\r\n");
        seen.send(()).unwrap();
        wire.rest();
    };
    let mut stuck = config(&origin(never), &["127.0.0.1:0"]);
    stuck.global.hard_stop_after = Duration::from_millis(300);
    stuck.backends[0].timeouts.server = Duration::from_secs(60);
    let mut gateway = start(stuck);
    let mut busy = Wire::to(&gateway.address);
    busy.send("GET /a HTTP/1.1\r\nHost: t\r\n\r\n");
    came.recv_timeout(LIMIT).unwrap();
    let start = Instant::now();
    gateway.control.drain();
    gateway.thread.take().unwrap().join().unwrap();
    assert!((Duration::from_millis(300)..LIMIT).contains(&start.elapsed()), "{:?}", start.elapsed());
    assert!(!busy.rest().contains("200"));
}

#[test]
fn clients_beyond_maxconn_wait() {
    let mut one = config(&origin(echo), &["127.0.0.1:0"]);
    one.frontends[0].maxconn = Some(1);
    let gateway = start(one);
    let mut first = Wire::to(&gateway.address);
    first.send("GET /1 HTTP/1.1\r\nHost: t\r\n\r\n");
    first.until(">");
    let mut second = Wire::to(&gateway.address);
    second.send("GET /2 HTTP/1.1\r\nHost: t\r\n\r\n");
    second.stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert!(second.stream.peek(&mut [0]).is_err(), "answered beyond maxconn");
    second.stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    drop(first);
    assert!(second.until(">").ends_with("<GET /2 HTTP/1.1|>"));
}

#[test]
fn a_bind_that_cannot_be_opened_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ops = Arc::new(Ops::new(Arc::new(Metrics::new())));
    let shared = Shared::new(config("127.0.0.1:9", &[&address]), ops).unwrap();
    let error = Gateway::start(shared, || Err(String::new())).err().unwrap();
    assert!(error.starts_with(&format!("test.cfg:3: cannot listen on {address}: the port is in use")), "{error}");
}

#[test]
fn a_stale_socket_file_is_replaced_and_a_living_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let unix = format!("unix:{}", path.display());
    let gateway = start(config(&origin(echo), &[&unix]));
    let ops = Arc::new(Ops::new(Arc::new(Metrics::new())));
    let shared = Shared::new(config("127.0.0.1:9", &[&unix]), ops).unwrap();
    assert!(Gateway::start(shared, || Err(String::new())).is_err());
    drop(gateway);
}

#[test]
fn a_configuration_that_is_refused_gets_no_series_and_no_store() {
    let ops = Arc::new(Ops::new(Arc::new(Metrics::new())));
    let shared = Shared::new(config("127.0.0.1:9", &["127.0.0.1:0"]), ops.clone()).unwrap();
    let mut refused = config("127.0.0.1:9", &["127.0.0.1:0"]);
    let mut broken = refused.frontends[0].clone();
    refused.frontends[0].name = "more".into();
    broken.binds[0].tls =
        Some(BindTls { certificates: vec!["/nonexistent/a.pem".into()], alpn: Vec::new(), strict_sni: false });
    refused.frontends.push(broken);
    assert!(shared.prepare(refused).unwrap_err().contains("/nonexistent/a.pem"));
    let series = ops.metrics().render();
    assert!(!series.contains("frontend=\"more\""), "{series}");
}
