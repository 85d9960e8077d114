//! An origin server that does, byte for byte, what a test tells it, and remembers what it was sent.

use std::{
    io::{self, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex, RwLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use super::{
    deadline::{Gate, LIMIT},
    request::{Buffer, Seen, Trouble},
};

/// Between two pieces of [`Wire::drip`].
const PACE: Duration = Duration::from_millis(5);

/// What an origin does with a request.
pub type Script = dyn Fn(&Seen, &mut Wire<'_>) -> io::Result<()> + Send + Sync;

/// A server on 127.0.0.1 that follows a [`Script`].
pub struct Origin {
    /// Where it listens.
    pub address: SocketAddr,
    state: Arc<State>,
}

struct State {
    script: RwLock<Arc<Script>>,
    log: Mutex<Log>,
    changed: Condvar,
    connections: AtomicUsize,
    open: AtomicUsize,
    answer_early: AtomicBool,
    stopped: AtomicBool,
}

#[derive(Default)]
struct Log {
    seen: Vec<Seen>,
    garbage: Vec<String>,
}

impl Origin {
    /// Starts an origin that runs `script` for each request, whose body has been read by then.
    pub fn start(script: impl Fn(&Seen, &mut Wire<'_>) -> io::Result<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            script: RwLock::new(Arc::new(script)),
            log: Mutex::default(),
            changed: Condvar::new(),
            connections: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            answer_early: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
        });
        let shared = Arc::clone(&state);
        thread::spawn(move || accept(&listener, &shared));
        Self { address, state }
    }

    /// An origin that answers everything with `200`, these fields and this body.
    pub fn fixed(fields: &'static str, body: &'static str) -> Self {
        Self::start(move |_, wire| wire.reply(200, fields, body.as_bytes()))
    }

    /// Follows another script from the next request on.
    pub fn follow(&self, script: impl Fn(&Seen, &mut Wire<'_>) -> io::Result<()> + Send + Sync + 'static) {
        *self.state.script.write().unwrap() = Arc::new(script);
    }

    /// Whether the script runs as soon as a head is there, before its body is read.
    pub fn answer_early(&self, early: bool) {
        self.state.answer_early.store(early, Ordering::SeqCst);
    }

    /// Every complete request so far, in the order they were complete.
    pub fn seen(&self) -> Vec<Seen> {
        self.state.log.lock().unwrap().seen.clone()
    }

    /// How many complete requests there were.
    pub fn count(&self) -> usize {
        self.state.log.lock().unwrap().seen.len()
    }

    /// How many complete requests for this path there were.
    pub fn count_of(&self, path: &str) -> usize {
        self.state.log.lock().unwrap().seen.iter().filter(|seen| seen.path() == path).count()
    }

    /// The last complete request.
    pub fn last(&self) -> Seen {
        self.state.log.lock().unwrap().seen.last().cloned().expect("the origin has seen a request")
    }

    /// How many connections have been accepted.
    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// How many connections are open.
    pub fn open_connections(&self) -> usize {
        self.state.open.load(Ordering::SeqCst)
    }

    /// Waits until `n` complete requests have come.
    pub fn wait_for(&self, n: usize) {
        let log = self.state.log.lock().unwrap();
        let (log, _) = self.state.changed.wait_timeout_while(log, LIMIT, |log| log.seen.len() < n).unwrap();
        assert!(log.seen.len() >= n, "the origin waited for {n} requests and saw {}", log.seen.len());
    }

    /// What reached the origin and is no request. Empty, always (oracle (a) of the cases).
    pub fn garbage(&self) -> Vec<String> {
        self.state.log.lock().unwrap().garbage.clone()
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.state.stopped.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if !thread::panicking() {
            let garbage = self.garbage();
            assert!(garbage.is_empty(), "the origin was sent what is no request: {garbage:#?}");
        }
    }
}

fn accept(listener: &TcpListener, state: &Arc<State>) {
    for stream in listener.incoming() {
        if state.stopped.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        state.connections.fetch_add(1, Ordering::SeqCst);
        state.open.fetch_add(1, Ordering::SeqCst);
        let state = Arc::clone(state);
        thread::spawn(move || {
            serve(stream, &state);
            state.open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

fn serve(mut stream: TcpStream, state: &State) {
    stream.set_nodelay(true).unwrap();
    let mut buffer = Buffer::default();
    let trouble = loop {
        let mut seen = match buffer.head(&mut stream) {
            Ok(seen) => seen,
            Err(trouble) => break trouble,
        };
        let early = state.answer_early.load(Ordering::SeqCst);
        if early && !answer(&seen, &mut stream, &mut buffer, state) {
            return;
        }
        if let Err(trouble) = buffer.body(&mut stream, &mut seen) {
            break trouble;
        }
        state.log.lock().unwrap().seen.push(seen.clone());
        state.changed.notify_all();
        if !early && !answer(&seen, &mut stream, &mut buffer, state) {
            return;
        }
    };
    if let Trouble::Garbage(text) = trouble {
        state.log.lock().unwrap().garbage.push(text);
    }
}

/// Runs the script; false when the connection is over.
fn answer(seen: &Seen, stream: &mut TcpStream, buffer: &mut Buffer, state: &State) -> bool {
    let script = Arc::clone(&state.script.read().unwrap());
    let mut wire = Wire { stream, buffer, bodyless: seen.method == "HEAD", over: false };
    script(seen, &mut wire).is_ok() && !wire.over
}

/// The connection that a request came on.
pub struct Wire<'a> {
    stream: &'a mut TcpStream,
    buffer: &'a mut Buffer,
    bodyless: bool,
    over: bool,
}

impl Wire<'_> {
    /// Writes these bytes.
    pub fn raw(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref())
    }

    /// Writes a head: `fields` is `Name: value` lines, separated by line ends.
    pub fn head(&mut self, status: u16, fields: &str) -> io::Result<()> {
        self.raw(head(status, fields))
    }

    /// A whole response framed by `Content-Length`; without its body to HEAD.
    pub fn reply(&mut self, status: u16, fields: &str, body: &[u8]) -> io::Result<()> {
        let mut bytes = head(status, &format!("{fields}\nContent-Length: {}", body.len()));
        if !self.bodyless {
            bytes.extend_from_slice(body);
        }
        self.raw(bytes)
    }

    /// A whole response framed by chunks.
    pub fn chunked(&mut self, status: u16, fields: &str, chunks: &[&[u8]]) -> io::Result<()> {
        self.raw(head(status, &format!("{fields}\nTransfer-Encoding: chunked")))?;
        for chunk in chunks {
            self.chunk(chunk)?;
        }
        self.raw("0\r\n\r\n")
    }

    /// One chunk; not an empty one.
    pub fn chunk(&mut self, data: &[u8]) -> io::Result<()> {
        self.raw([format!("{:x}\r\n", data.len()).as_bytes(), data, b"\r\n"].concat())
    }

    /// A whole response that the connection's end ends.
    pub fn until_close(&mut self, status: u16, fields: &str, body: &[u8]) -> io::Result<()> {
        self.raw([&head(status, fields), body].concat())?;
        self.close()
    }

    /// Ends the connection with FIN.
    pub fn close(&mut self) -> io::Result<()> {
        self.over = true;
        self.stream.shutdown(Shutdown::Both)
    }

    /// Ends the connection with RST.
    pub fn reset(&mut self) -> io::Result<()> {
        self.over = true;
        socket2::SockRef::from(&*self.stream).set_linger(Some(Duration::ZERO))
    }

    /// Waits until `gate` opens.
    pub fn hold(&mut self, gate: &Gate) {
        gate.wait();
    }

    /// Says nothing more until the gateway ends the connection.
    pub fn silence(&mut self) -> io::Result<()> {
        while self.read().is_some() {}
        self.close()
    }

    /// Writes `piece` now and then until the gateway ends the connection, and fails then.
    pub fn drip(&mut self, piece: &[u8]) -> io::Result<()> {
        loop {
            self.raw(piece)?;
            thread::sleep(PACE);
        }
    }

    /// Whether bytes have come that nobody has read yet.
    pub fn has_more(&mut self) -> io::Result<bool> {
        if !self.buffer.is_empty() {
            return Ok(true);
        }
        self.stream.set_nonblocking(true)?;
        let peeked = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false)?;
        Ok(peeked.is_ok_and(|n| n > 0))
    }

    /// Some raw bytes, at least one; `None` at the end of the stream.
    pub fn read(&mut self) -> Option<Vec<u8>> {
        let rest = self.buffer.rest();
        if !rest.is_empty() {
            return Some(rest);
        }
        self.buffer.fill(self.stream).ok()?.then(|| self.buffer.rest())
    }
}

/// A response head's bytes: `fields` is `Name: value` lines, separated by line ends.
pub fn head(status: u16, fields: &str) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 {status} Scripted\r\n").into_bytes();
    for line in fields.lines().map(str::trim).filter(|line| !line.is_empty()) {
        bytes.extend_from_slice(line.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    bytes
}
