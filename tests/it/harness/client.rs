//! A client that writes exactly the bytes it is given and reads exactly one response at a time.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    sync::Arc,
    time::Duration,
};

use rustls::{ClientConfig, ClientConnection, StreamOwned, pki_types::ServerName};

use super::{
    deadline::LIMIT,
    response::{BodyEnd, Broken, Response},
};

/// One connection to the gateway.
pub struct Client {
    transport: Transport,
    buffer: Vec<u8>,
}

enum Transport {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// One GET on a connection of its own.
pub fn get(address: SocketAddr, path: &str) -> Response {
    Client::connect(address).get(path)
}

impl Client {
    /// Connects.
    pub fn connect(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).unwrap())
    }

    /// Connects from an address of the loopback network.
    pub fn connect_from(source: [u8; 4], address: SocketAddr) -> Self {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from((source, 0)).into()).unwrap();
        socket.connect(&address.into()).unwrap();
        Self::over(socket.into())
    }

    fn over(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.set_write_timeout(Some(LIMIT)).unwrap();
        Self { transport: Transport::Plain(stream), buffer: Vec::new() }
    }

    /// Connects and shakes hands over TLS, asking for the name `sni`.
    ///
    /// # Errors
    /// When the handshake fails.
    pub fn tls(address: SocketAddr, sni: &str, config: &Arc<ClientConfig>) -> io::Result<Self> {
        let Transport::Plain(mut stream) = Self::connect(address).transport else { unreachable!() };
        let name = ServerName::try_from(sni.to_owned()).unwrap();
        let mut connection = ClientConnection::new(Arc::clone(config), name).unwrap();
        while connection.is_handshaking() {
            connection.complete_io(&mut stream)?;
        }
        Ok(Self { transport: Transport::Tls(Box::new(StreamOwned::new(connection, stream))), buffer: Vec::new() })
    }

    /// Writes these bytes. That the gateway has closed is seen when reading.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let _ = match &mut self.transport {
            Transport::Plain(stream) => stream.write_all(bytes.as_ref()),
            Transport::Tls(stream) => stream.write_all(bytes.as_ref()).and_then(|()| stream.flush()),
        };
        self
    }

    /// Says that no more bytes will come.
    pub fn half_close(&mut self) {
        let _ = self.stream().shutdown(Shutdown::Write);
    }

    /// Makes the connection end with RST when it is dropped.
    pub fn reset_on_drop(&mut self) {
        socket2::SockRef::from(self.stream()).set_linger(Some(Duration::ZERO)).unwrap();
    }

    /// How much the network may hold for it. Little makes a slow reader.
    pub fn window(&mut self, bytes: usize) {
        socket2::SockRef::from(self.stream()).set_recv_buffer_size(bytes).unwrap();
    }

    /// GET with `Host: t.example`.
    pub fn get(&mut self, path: &str) -> Response {
        self.request("GET", path, "", b"")
    }

    /// GET with more fields: `Name: value` lines, separated by line ends.
    pub fn get_with(&mut self, path: &str, fields: &str) -> Response {
        self.request("GET", path, fields, b"")
    }

    /// A whole exchange; `Host: t.example` unless `fields` names another.
    pub fn request(&mut self, method: &str, path: &str, fields: &str, body: &[u8]) -> Response {
        self.send(request(method, path, fields, body)).read(method)
    }

    /// The response to a request that was sent with this method.
    pub fn read(&mut self, method: &str) -> Response {
        self.try_read(method).unwrap_or_else(|broken| panic!("no response: {broken:#?}"))
    }

    /// The response to a request that was sent with this method.
    ///
    /// # Errors
    /// When it is incomplete or wrong.
    pub fn try_read(&mut self, method: &str) -> Result<Response, Broken> {
        let mut interim = Vec::new();
        loop {
            let mut response = self.read_head()?;
            if response.status < 200 && response.status != 101 {
                response.body_end().map_err(Broken::before_head)?;
                interim.push(response);
                continue;
            }
            response.interim = interim;
            return self.finish(method, response);
        }
    }

    /// The rest of a response whose head was read with [`Client::read_head`].
    ///
    /// # Errors
    /// When it is incomplete or wrong.
    pub fn finish(&mut self, method: &str, mut response: Response) -> Result<Response, Broken> {
        let end = match response.body_end().map_err(Broken::before_head)? {
            _ if method == "HEAD" => BodyEnd::None,
            end => end,
        };
        match self.read_body(end, &mut response) {
            Ok(()) => Ok(response),
            Err(why) => Err(Broken { why, body: std::mem::take(&mut response.body), head: Some(Box::new(response)) }),
        }
    }

    /// A head, interim or final, without its body.
    ///
    /// # Errors
    /// When it is incomplete or wrong.
    pub fn read_head(&mut self) -> Result<Response, Broken> {
        let head = self.until(b"\r\n\r\n").map_err(Broken::before_head)?;
        Response::parse(&head).map_err(Broken::before_head)
    }

    fn read_body(&mut self, end: BodyEnd, response: &mut Response) -> Result<(), String> {
        match end {
            BodyEnd::None => {}
            BodyEnd::Length(length) => {
                let result = self.fill_to(length);
                let have = length.min(self.buffer.len());
                response.body = self.buffer.drain(..have).collect();
                result?;
            }
            BodyEnd::Chunked => self.read_chunks(response)?,
            BodyEnd::Close => {
                response.until_close = true;
                let result = self.fill_until_end();
                response.body = std::mem::take(&mut self.buffer);
                result?;
            }
        }
        Ok(())
    }

    fn read_chunks(&mut self, response: &mut Response) -> Result<(), String> {
        loop {
            let size = self.chunk_size()?;
            if size == 0 {
                break;
            }
            let result = self.fill_to(size + 2);
            let have = size.min(self.buffer.len());
            response.body.extend(self.buffer.drain(..have));
            result?;
            let end: Vec<u8> = self.buffer.drain(..2).collect();
            if end != b"\r\n" {
                return Err("a chunk does not end".to_owned());
            }
        }
        loop {
            let line = self.until(b"\r\n")?;
            if line == b"\r\n" {
                return Ok(());
            }
            let text = String::from_utf8_lossy(&line).into_owned();
            let (name, value) = text.trim_end().split_once(':').ok_or("a trailer without colon")?;
            response.trailers.push((name.to_owned(), value.trim().to_owned()));
        }
    }

    /// The size of the next chunk.
    ///
    /// # Errors
    /// When there is none.
    pub fn chunk_size(&mut self) -> Result<usize, String> {
        let line = self.until(b"\r\n")?;
        let text = String::from_utf8_lossy(&line).into_owned();
        usize::from_str_radix(text.trim_end_matches("\r\n"), 16).map_err(|_| format!("chunk size {text:?}"))
    }

    /// Exactly `n` bytes of whatever comes.
    pub fn take(&mut self, n: usize) -> Vec<u8> {
        self.fill_to(n).unwrap();
        self.buffer.drain(..n).collect()
    }

    /// Whether the gateway closes the connection, without another byte.
    pub fn is_closed(&mut self) -> bool {
        self.buffer.is_empty() && matches!(self.fill(), Ok(false) | Err(Silence::Reset))
    }

    /// Reads once, for so long at most, forgets what came, and says whether the connection is still there.
    pub fn is_open(&mut self, limit: Duration) -> bool {
        self.stream().set_read_timeout(Some(limit)).unwrap();
        let open = matches!(self.fill(), Ok(true) | Err(Silence::TimedOut));
        self.stream().set_read_timeout(Some(LIMIT)).unwrap();
        self.buffer.clear();
        open
    }

    fn until(&mut self, end: &[u8]) -> Result<Vec<u8>, String> {
        loop {
            if let Some(at) = self.buffer.windows(end.len()).position(|window| window == end) {
                return Ok(self.buffer.drain(..at + end.len()).collect());
            }
            self.fill_more()?;
        }
    }

    fn fill_to(&mut self, length: usize) -> Result<(), String> {
        while self.buffer.len() < length {
            self.fill_more()?;
        }
        Ok(())
    }

    fn fill_until_end(&mut self) -> Result<(), String> {
        loop {
            match self.fill() {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(silence) => return Err(format!("{silence:?}")),
            }
        }
    }

    fn fill_more(&mut self) -> Result<(), String> {
        match self.fill() {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("ended after {}", self.shown())),
            Err(silence) => Err(format!("{silence:?} after {}", self.shown())),
        }
    }

    /// What was read last and not used.
    fn shown(&self) -> String {
        let last = self.buffer.len().saturating_sub(200);
        format!("{} bytes: …{}", self.buffer.len(), self.buffer[last..].escape_ascii())
    }

    /// Reads once; false at the stream's end. A TLS stream that ends without close_notify is reset.
    fn fill(&mut self) -> Result<bool, Silence> {
        let mut room = [0; 16384];
        let result = match &mut self.transport {
            Transport::Plain(stream) => stream.read(&mut room),
            Transport::Tls(stream) => stream.read(&mut room),
        };
        match result {
            Ok(n) => {
                self.buffer.extend_from_slice(&room[..n]);
                Ok(n > 0)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                Err(Silence::TimedOut)
            }
            Err(_) => Err(Silence::Reset),
        }
    }

    fn stream(&self) -> &TcpStream {
        match &self.transport {
            Transport::Plain(stream) => stream,
            Transport::Tls(stream) => stream.get_ref(),
        }
    }
}

/// Why nothing more came.
#[derive(Debug)]
enum Silence {
    TimedOut,
    Reset,
}

/// A request's bytes; `Host: t.example` unless `fields` names another, `Content-Length` when there is a body.
pub fn request(method: &str, path: &str, fields: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{method} {path} HTTP/1.1\r\n").into_bytes();
    if !fields.lines().any(|line| line.trim().to_ascii_lowercase().starts_with("host:")) {
        bytes.extend_from_slice(b"Host: t.example\r\n");
    }
    for line in fields.lines().map(str::trim).filter(|line| !line.is_empty()) {
        bytes.extend_from_slice(line.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    if !body.is_empty() {
        bytes.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}
