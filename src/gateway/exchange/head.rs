//! The head of a request as it is sent, and of a response as it is read (RFC 9112 §2 to §6).

use std::mem::MaybeUninit;

use crate::message::{Fields, Framing, Request, Response, Version};

/// Largest head of a response, in bytes.
pub(super) const MAX_BYTES: usize = 64 << 10;
/// Most field lines of a response, trailers counted for themselves.
pub(super) const MAX_FIELDS: usize = 256;

/// `head` in HTTP/1.1's form.
///
/// # Errors
/// When a piece holds bytes that would end it early: the one place that keeps whatever rules have
/// put together from becoming a second request (RFC 9112 §11.1).
pub(super) fn write(head: &Request) -> Result<Vec<u8>, &'static str> {
    let mut out = Vec::with_capacity(512);
    out.extend_from_slice(head.method());
    out.push(b' ');
    let target = out.len();
    head.write_target(&mut out);
    if head.method().is_empty() || target == out.len() {
        return Err("a request without method or target");
    }
    if out.iter().filter(|&&byte| byte == b' ').count() != 1 || out.iter().any(u8::is_ascii_control) {
        return Err("a blank or control byte in a request's target");
    }
    out.extend_from_slice(b" HTTP/1.1\r\n");
    for field in head.fields.iter() {
        let name_breaks = field.name.is_empty() || field.name.iter().any(|&byte| byte <= b' ' || byte == b':');
        if name_breaks || memchr::memchr3(b'\r', b'\n', 0, field.value).is_some() {
            return Err("a line break in a request's field");
        }
        out.extend_from_slice(field.name);
        out.extend_from_slice(b": ");
        out.extend_from_slice(field.value);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    Ok(out)
}

/// Looks for the empty line that ends a field section, over however many reads.
#[derive(Debug, Default)]
pub(super) struct Scan {
    seen: usize,
}

impl Scan {
    /// Where the section in `bytes` ends, its empty line included; `None`: not yet.
    ///
    /// # Errors
    /// A line end without CR (RFC 9112 §2.2), found before the section is complete.
    pub(super) fn end(&mut self, bytes: &[u8]) -> Result<Option<usize>, &'static str> {
        for at in memchr::memchr_iter(b'\n', bytes.get(self.seen..).unwrap_or_default()) {
            let at = self.seen + at;
            let before = bytes.get(..at).unwrap_or_default();
            if !before.ends_with(b"\r") {
                return Err("a line that ends without CR");
            }
            if before.ends_with(b"\n\r") || at == 1 {
                return Ok(Some(at + 1));
            }
        }
        self.seen = bytes.len();
        Ok(None)
    }
}

/// A response's head and what it means for the connection.
#[derive(Debug)]
pub(super) struct Parsed {
    /// The head; `framing` is what follows it on the wire.
    pub(super) response: Response,
    /// Whether another request may follow on this connection.
    pub(super) persistent: bool,
}

/// Reads the head `raw`, which [`Scan`] has delimited; `to_head`: it answers a HEAD.
///
/// # Errors
/// Anything that two readers could understand in two ways.
pub(super) fn parse(raw: &[u8], to_head: bool) -> Result<Parsed, &'static str> {
    if !raw.starts_with(b"HTTP/1.") {
        return Err("no HTTP/1 response");
    }
    let mut lines = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let mut parsed = httparse::Response::new(&mut []);
    let end = httparse::ParserConfig::default().parse_response_with_uninit_headers(&mut parsed, raw, &mut lines);
    if end.map_err(fault)? != httparse::Status::Complete(raw.len()) {
        return Err("a head with an empty line in it");
    }
    let mut response = Response::new(parsed.code.unwrap_or_default());
    response.version = if parsed.version == Some(0) { Version::Http10 } else { Version::Http11 };
    adopt(&mut response.fields, raw, parsed.headers);
    if !(100..600).contains(&response.status) || response.status == 101 {
        return Err("a status code that was not asked for");
    }
    let persistent = frame(&mut response, to_head)?;
    Ok(Parsed { response, persistent })
}

/// Reads the trailer section `raw`, and leaves out what has no business there.
///
/// # Errors
/// As for a head.
pub(super) fn parse_trailers(raw: &[u8]) -> Result<Fields, &'static str> {
    let mut lines = [httparse::EMPTY_HEADER; 64];
    let mut fields = Fields::new();
    match httparse::parse_headers(raw, &mut lines).map_err(fault)? {
        httparse::Status::Complete((end, lines)) if end == raw.len() => adopt(&mut fields, raw, lines),
        _ => return Err("trailers with an empty line in them"),
    }
    fields.retain(|field| !NOT_IN_TRAILERS.iter().any(|name| field.is(name)));
    Ok(fields)
}

/// Fields for framing, routing, authentication, caching and content: a recipient that merges them
/// into a head would be misled (RFC 9110 §6.5.1).
const NOT_IN_TRAILERS: &[&str] = &[
    "age",
    "authorization",
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "date",
    "expires",
    "host",
    "keep-alive",
    "location",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "retry-after",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "vary",
    "www-authenticate",
];

/// Copies `raw` once and names its pieces.
fn adopt(fields: &mut Fields, raw: &[u8], lines: &[httparse::Header<'_>]) {
    let start = fields.adopt(raw);
    let range = |piece: &[u8]| {
        let at = start + (piece.as_ptr() as usize).saturating_sub(raw.as_ptr() as usize);
        at..at + piece.len()
    };
    for line in lines {
        let value = line.value.trim_ascii();
        // An empty value may stand anywhere.
        let value = if value.is_empty() { start..start } else { range(value) };
        fields.append_at(range(line.name.as_bytes()), value);
    }
}

/// Finds the framing of a body (RFC 9112 §6.3); returns whether the connection persists (§9.3).
fn frame(response: &mut Response, to_head: bool) -> Result<bool, &'static str> {
    let fields = &mut response.fields;
    let coded = coded(fields)?;
    let length = content_length(fields)?;
    if coded.is_some() && (length.is_some() || response.version == Version::Http10) {
        return Err("Transfer-Encoding beside Content-Length or in HTTP/1.0");
    }
    let without_body = matches!(response.status, 100..200 | 204);
    let framed = coded.is_some() || length.unwrap_or_default() > 0;
    if response.status < 200 && framed {
        return Err("a 1xx response with a body");
    }
    response.framing = match (coded, length) {
        _ if without_body || response.status == 304 || to_head => Framing::None,
        (Some(coded), _) => coded,
        (None, Some(length)) => Framing::Length(length),
        (None, None) => Framing::UntilClose,
    };
    let close = response.fields.members("connection").any(|member| member.eq_ignore_ascii_case(b"close"));
    Ok(response.version == Version::Http11
        && !close
        && response.framing != Framing::UntilClose
        && !(without_body && framed))
}

/// How `Transfer-Encoding` says that the body ends (RFC 9112 §6.3): by its chunks, or with the connection after a name
/// that stands for no coding, and that tells nobody anything further. A coding that changes the bytes is refused: it
/// was not asked for, and who got the body without a word of it could not read it.
fn coded(fields: &mut Fields) -> Result<Option<Framing>, &'static str> {
    const CODINGS: [&[u8]; 6] = [b"chunked", b"gzip", b"x-gzip", b"deflate", b"compress", b"x-compress"];
    if !fields.has("transfer-encoding") {
        return Ok(None);
    }
    let is = |coding: &[u8]| CODINGS.iter().position(|known| coding.eq_ignore_ascii_case(known));
    let mut codings = fields.members("transfer-encoding");
    let (first, several) = (codings.next().map(is), codings.next().is_some());
    drop(codings);
    match (first, several) {
        (Some(Some(0)), false) => Ok(Some(Framing::Chunked)),
        (Some(None), false) => {
            fields.remove(b"Transfer-Encoding");
            Ok(Some(Framing::UntilClose))
        }
        _ => Err("a Transfer-Encoding other than chunked"),
    }
}

/// The one length that all `Content-Length` lines agree on (RFC 9110 §8.6), left as one line.
fn content_length(fields: &mut Fields) -> Result<Option<u64>, &'static str> {
    let mut found = None;
    let mut repeated = false;
    for value in fields.all("content-length").flat_map(|line| line.split(|&byte| byte == b',')) {
        let length = decimal(value.trim_ascii()).ok_or("an invalid Content-Length")?;
        repeated |= found.is_some();
        if *found.get_or_insert(length) != length {
            return Err("Content-Lengths that differ");
        }
    }
    if let Some(length) = found.filter(|_| repeated) {
        fields.set(b"Content-Length", length.to_string().as_bytes());
    }
    Ok(found)
}

/// `1*DIGIT` within 64 bits.
fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

fn fault(error: httparse::Error) -> &'static str {
    match error {
        httparse::Error::HeaderName => "an invalid field name",
        httparse::Error::HeaderValue => "an invalid byte in a field value",
        httparse::Error::NewLine => "an invalid line end",
        httparse::Error::Status => "an invalid status line",
        httparse::Error::TooManyHeaders => "too many fields",
        httparse::Error::Version => "an invalid version",
        httparse::Error::Token => "an invalid byte in a head",
    }
}
