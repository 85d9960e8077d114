//! Responses as a client sees them, and nothing that is not one.

use super::request::{digits, lines, token};

/// A complete response.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The phrase behind it.
    pub reason: String,
    /// `HTTP/1.0` or `HTTP/1.1`.
    pub version: String,
    /// The field lines in order.
    pub fields: Vec<(String, String)>,
    /// The body without its framing.
    pub body: Vec<u8>,
    /// The trailer field lines.
    pub trailers: Vec<(String, String)>,
    /// The 1xx responses before it.
    pub interim: Vec<Response>,
    /// Whether the connection was its end.
    pub until_close: bool,
}

/// Why there is no complete response.
#[derive(Clone, Debug)]
pub struct Broken {
    /// What was wrong, or that the connection ended or was silent.
    pub why: String,
    /// The head, when that much had come.
    pub head: Option<Box<Response>>,
    /// What had come of the body.
    pub body: Vec<u8>,
}

impl Broken {
    /// Nothing had come.
    pub fn before_head(why: impl Into<String>) -> Self {
        Self { why: why.into(), head: None, body: Vec::new() }
    }
}

/// How a response's body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyEnd {
    /// There is none.
    None,
    /// After so many bytes.
    Length(usize),
    /// With the last chunk.
    Chunked,
    /// With the connection.
    Close,
}

impl Response {
    /// Reads a head, its empty line included.
    ///
    /// # Errors
    /// What RFC 9112 does not allow.
    pub fn parse(head: &[u8]) -> Result<Self, String> {
        let shown = head.escape_ascii();
        let lines = lines(head).ok_or_else(|| format!("stray line end or NUL: {shown}"))?;
        let (start, rest) = lines.split_first().ok_or("nothing")?;
        let (version, status) = start.split_once(' ').ok_or_else(|| format!("status line: {shown}"))?;
        let (code, reason) = status.split_once(' ').ok_or_else(|| format!("status line without phrase: {shown}"))?;
        if !["HTTP/1.0", "HTTP/1.1"].contains(&version) || code.len() != 3 {
            return Err(format!("status line: {shown}"));
        }
        let mut fields = Vec::new();
        for line in rest {
            let (name, value) = line.split_once(':').ok_or_else(|| format!("field line: {shown}"))?;
            if !token(name) {
                return Err(format!("field name: {shown}"));
            }
            fields.push((name.to_owned(), value.trim_matches([' ', '\t']).to_owned()));
        }
        Ok(Self {
            status: code.parse().map_err(|_| format!("status line: {shown}"))?,
            reason: reason.to_owned(),
            version: version.to_owned(),
            fields,
            body: Vec::new(),
            trailers: Vec::new(),
            interim: Vec::new(),
            until_close: false,
        })
    }

    /// How the body ends (RFC 9112 §6.3), when the request allows one.
    ///
    /// # Errors
    /// Framing fields that contradict each other.
    pub fn body_end(&self) -> Result<BodyEnd, String> {
        let lengths = self.all("content-length");
        let codings = self.all("transfer-encoding");
        if self.status < 200 || self.status == 204 {
            let framed = !lengths.is_empty() || !codings.is_empty();
            return if framed { Err(format!("{} with framing fields", self.status)) } else { Ok(BodyEnd::None) };
        }
        if self.status == 304 {
            return Ok(BodyEnd::None);
        }
        match (&lengths[..], &codings[..]) {
            ([], []) => Ok(BodyEnd::Close),
            ([length], []) => digits(length).map(BodyEnd::Length).ok_or(format!("Content-Length {length}")),
            ([], ["chunked"]) => Ok(BodyEnd::Chunked),
            _ => Err(format!("framed by {lengths:?} and {codings:?}")),
        }
    }

    /// The value of the field `name`, which stands there at most once.
    pub fn field(&self, name: &str) -> Option<&str> {
        let all = self.all(name);
        assert!(all.len() < 2, "{name} stands there {} times: {:#?}", all.len(), self.fields);
        all.first().copied()
    }

    /// The values of all lines named `name`.
    pub fn all(&self, name: &str) -> Vec<&str> {
        self.fields
            .iter()
            .filter(|(have, _)| have.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
            .collect()
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// `Age` in seconds.
    pub fn age(&self) -> Option<u64> {
        self.field("age").map(|age| age.parse().expect("Age is a number"))
    }

    /// Whether the connection ends after it.
    pub fn closes(&self) -> bool {
        let close = self.all("connection").iter().any(|value| value.to_ascii_lowercase().contains("close"));
        close || self.until_close || self.version == "HTTP/1.0"
    }

    /// What the gateway's member of `Cache-Status` says (RFC 9211); empty when there is none.
    pub fn cache(&self) -> CacheStatus {
        let all = self.all("cache-status");
        let member =
            all.iter().flat_map(|line| line.split(',')).map(str::trim).find(|text| text.starts_with("tidegate"));
        CacheStatus {
            parameters: member.unwrap_or_default().split(';').skip(1).map(|text| text.trim().to_owned()).collect(),
        }
    }

    /// Whether it was served from the cache.
    pub fn is_hit(&self) -> bool {
        self.cache().has("hit")
    }
}

/// The gateway's member of `Cache-Status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheStatus {
    parameters: Vec<String>,
}

impl CacheStatus {
    /// Whether the parameter without a value is there.
    pub fn has(&self, name: &str) -> bool {
        self.parameters.iter().any(|parameter| parameter == name)
    }

    /// The value of a parameter, without quotes.
    pub fn value(&self, name: &str) -> Option<&str> {
        let pairs = self.parameters.iter().filter_map(|parameter| parameter.split_once('='));
        pairs.filter(|(have, _)| *have == name).map(|(_, value)| value.trim_matches('"')).next()
    }

    /// `fwd=`.
    pub fn forward(&self) -> Option<&str> {
        self.value("fwd")
    }
}
