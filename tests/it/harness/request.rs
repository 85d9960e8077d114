//! Requests as an origin sees them, read as strictly as RFC 9112 allows.

use std::io::{self, Read};

/// A request that reached an origin.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Its bytes up to and including the empty line.
    pub head: Vec<u8>,
    /// The method.
    pub method: String,
    /// The request target.
    pub target: String,
    /// The field lines in order, names as sent.
    pub fields: Vec<(String, String)>,
    /// The body without its framing.
    pub body: Vec<u8>,
    /// The body with its framing.
    pub framed: Vec<u8>,
}

impl Seen {
    /// The value of the first line named `name`.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(have, _)| have.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The values of all lines named `name`.
    pub fn all(&self, name: &str) -> Vec<&str> {
        self.fields
            .iter()
            .filter(|(have, _)| have.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
            .collect()
    }

    /// The target without its query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// `METHOD target`.
    pub fn line(&self) -> String {
        format!("{} {}", self.method, self.target)
    }
}

/// Why a connection's bytes are no request.
#[derive(Debug)]
pub enum Trouble {
    /// The connection ended between requests.
    Done,
    /// It ended inside one.
    Cut,
    /// These bytes break RFC 9112.
    Garbage(String),
}

impl From<io::Error> for Trouble {
    fn from(_: io::Error) -> Self {
        Self::Cut
    }
}

/// A connection's bytes that have been read and not used yet.
#[derive(Debug, Default)]
pub struct Buffer {
    bytes: Vec<u8>,
    /// Everything that was ever read.
    pub log: Vec<u8>,
}

impl Buffer {
    /// Reads more; false at the end of the stream.
    pub fn fill(&mut self, stream: &mut impl Read) -> io::Result<bool> {
        let mut room = [0; 16384];
        let n = stream.read(&mut room)?;
        self.bytes.extend_from_slice(&room[..n]);
        self.log.extend_from_slice(&room[..n]);
        Ok(n > 0)
    }

    /// Exactly `n` bytes.
    pub fn take(&mut self, stream: &mut impl Read, n: usize) -> Result<Vec<u8>, Trouble> {
        while self.bytes.len() < n {
            if !self.fill(stream)? {
                return Err(Trouble::Cut);
            }
        }
        Ok(self.bytes.drain(..n).collect())
    }

    /// Whether everything that has been read has been used.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whatever has been read and not used.
    pub fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Up to and including `end`.
    fn until(&mut self, stream: &mut impl Read, end: &[u8]) -> Result<Vec<u8>, Trouble> {
        loop {
            if let Some(at) = self.bytes.windows(end.len()).position(|window| window == end) {
                return Ok(self.bytes.drain(..at + end.len()).collect());
            }
            let begun = !self.bytes.is_empty();
            match self.fill(stream) {
                Ok(true) => {}
                Ok(false) | Err(_) if begun => return Err(Trouble::Cut),
                Ok(false) | Err(_) => return Err(Trouble::Done),
            }
        }
    }

    /// The next request's head.
    pub fn head(&mut self, stream: &mut impl Read) -> Result<Seen, Trouble> {
        let head = self.until(stream, b"\r\n\r\n")?;
        let lines = lines(&head).ok_or_else(|| garbage("stray line end or NUL", &head))?;
        let (start, fields) = lines.split_first().ok_or_else(|| garbage("nothing", &head))?;
        let words: Vec<&str> = start.split(' ').collect();
        let [method, target, "HTTP/1.1"] = words[..] else { return Err(garbage("start line", &head)) };
        let mut seen = Seen {
            head: head.clone(),
            method: method.to_owned(),
            target: target.to_owned(),
            fields: Vec::new(),
            body: Vec::new(),
            framed: Vec::new(),
        };
        for line in fields {
            let (name, value) = line.split_once(':').ok_or_else(|| garbage("field without colon", &head))?;
            if !token(name) {
                return Err(garbage("field name", &head));
            }
            seen.fields.push((name.to_owned(), value.trim_matches([' ', '\t']).to_owned()));
        }
        if seen.all("host").len() != 1 {
            return Err(garbage("not exactly one Host", &head));
        }
        if seen.all("content-length").len() + seen.all("transfer-encoding").len() > 1 {
            return Err(garbage("framed twice", &head));
        }
        Ok(seen)
    }

    /// The body that `seen` announces.
    pub fn body(&mut self, stream: &mut impl Read, seen: &mut Seen) -> Result<(), Trouble> {
        if let Some(length) = seen.field("content-length") {
            let length = digits(length).ok_or_else(|| garbage("Content-Length", &seen.head))?;
            seen.body = self.take(stream, length)?;
            seen.framed.clone_from(&seen.body);
        }
        match seen.field("transfer-encoding") {
            None => Ok(()),
            Some(coding) if coding.eq_ignore_ascii_case("chunked") => self.chunks(stream, seen),
            Some(_) => Err(garbage("Transfer-Encoding", &seen.head)),
        }
    }

    fn chunks(&mut self, stream: &mut impl Read, seen: &mut Seen) -> Result<(), Trouble> {
        loop {
            let line = self.until(stream, b"\r\n").map_err(|_| Trouble::Cut)?;
            seen.framed.extend_from_slice(&line);
            let text = String::from_utf8_lossy(&line);
            let size = usize::from_str_radix(text.trim_end_matches("\r\n"), 16).map_err(|_| garbage("chunk", &line))?;
            if size == 0 {
                break;
            }
            let mut chunk = self.take(stream, size + 2)?;
            seen.framed.extend_from_slice(&chunk);
            if !chunk.ends_with(b"\r\n") {
                return Err(garbage("chunk end", &chunk));
            }
            chunk.truncate(size);
            seen.body.extend_from_slice(&chunk);
        }
        loop {
            let line = self.until(stream, b"\r\n").map_err(|_| Trouble::Cut)?;
            seen.framed.extend_from_slice(&line);
            if line == b"\r\n" {
                return Ok(());
            }
        }
    }
}

fn garbage(why: &str, bytes: &[u8]) -> Trouble {
    Trouble::Garbage(format!("{why}: {}", bytes.escape_ascii()))
}

/// The lines of a head, the empty last one left out; `None` when a CR, LF or NUL stands inside one.
pub fn lines(head: &[u8]) -> Option<Vec<String>> {
    let text: String = head.iter().copied().map(char::from).collect();
    let lines: Vec<String> = text.strip_suffix("\r\n\r\n")?.split("\r\n").map(str::to_owned).collect();
    lines.iter().all(|line| !line.contains(['\r', '\n', '\0'])).then_some(lines)
}

/// Whether `name` is a token (RFC 9110 §5.6.2).
pub fn token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// `1*DIGIT`.
pub fn digits(text: &str) -> Option<usize> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}
