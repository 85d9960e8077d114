//! One strict parse of a request's head (RFC 9112 §2 to §6), into a [`Request`] that keeps its room.
//!
//! What two parsers could read in two ways is refused, not repaired: whatever leaves here has one
//! meaning for rules, cache key and server alike.

use std::mem::MaybeUninit;

use smallvec::SmallVec;

use super::target;
use crate::{
    gateway::{hop, host},
    message::{Framing, Request, Version, members},
};

#[cfg(test)]
mod tests;

/// Most field lines in a head.
pub const MAX_FIELDS: usize = 128;

/// Longest head, in bytes.
pub const MAX_HEAD: usize = 64 * 1024;

/// A host in its normal form; on the stack, but for absurd ones.
type Host = SmallVec<[u8; 128]>;

const BAD_HOST: Refusal = Refusal::new(400, "bad host");

/// Why a request is not served: the status it gets, and the word for log and page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status.
    pub status: u16,
    /// One line, in English.
    pub reason: &'static str,
}

impl Refusal {
    /// A refusal.
    pub const fn new(status: u16, reason: &'static str) -> Self {
        Self { status, reason }
    }

    /// The word that it is counted under.
    pub const fn word(&self) -> &'static str {
        match self.status {
            408 => "head-timeout",
            414 | 431 => "head-too-long",
            417 | 501 | 505 => "unsupported",
            421 => "misdirected",
            _ => "malformed",
        }
    }
}

/// What a head says about its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The client's version.
    pub version: Version,
    /// Whether the connection may serve another request (RFC 9112 §9.3).
    pub keep_alive: bool,
    /// Whether the client waits for a 100 before it sends the body (RFC 9110 §10.1.1).
    pub expects_continue: bool,
    /// Whether the client asks for WebSocket (RFC 6455 §4.1); other protocols are not offered.
    pub upgrade: bool,
    /// Whether the method is HEAD, so that no response has a body.
    pub head_only: bool,
}

/// Reads one head from the start of `bytes`. `Ok(None)`: more bytes are needed. Otherwise what the
/// head says and how long it is; `request` holds it, `Host` first replaced and normalised.
///
/// # Errors
/// The refusal for a head that is malformed, ambiguous or beyond the limits; the connection cannot
/// be used any further.
pub fn parse(bytes: &[u8], https: bool, request: &mut Request) -> Result<Option<(Terms, usize)>, Refusal> {
    let mut slots = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let mut head = httparse::Request::new(&mut []);
    let size = match head.parse_with_uninit_headers(bytes, &mut slots) {
        Ok(httparse::Status::Complete(size)) => size,
        Ok(httparse::Status::Partial) => return too_long(bytes).map_or(Ok(None), Err),
        Err(error) => return Err(malformed(error, bytes)),
    };
    let raw = bytes.get(..size).unwrap_or_default();
    if size > MAX_HEAD {
        return Err(Refusal::new(431, "head too long"));
    }
    if has_bare_line_feed(raw) {
        return Err(Refusal::new(400, "line end without carriage return"));
    }
    let method = head.method.unwrap_or_default().as_bytes();
    let received = head.path.unwrap_or_default().as_bytes();
    let version = if head.version == Some(0) { Version::Http10 } else { Version::Http11 };
    let target = target::target(method, received)?;
    request.start(method, received, &target.origin_form);
    request.version = version;
    let seen = adopt(request, raw, head.headers, target.authority, https)?;
    request.framing = seen.framing(request)?;
    let terms = seen.terms(request)?;
    seen.strip(request, terms);
    Ok(Some((terms, size)))
}

/// Whether a line of the head ends without CR (RFC 9112 §2.2 allows to accept it; others don't).
fn has_bare_line_feed(raw: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', raw).any(|at| at.checked_sub(1).and_then(|before| raw.get(before)) != Some(&b'\r'))
}

/// The refusal for a head that is not complete and already too long.
pub fn too_long(bytes: &[u8]) -> Option<Refusal> {
    // The method and the version take a little beside the target.
    if bytes.len() > target::MAX_TARGET + 256 && memchr::memchr(b'\n', bytes).is_none() {
        return Some(Refusal::new(414, "request target too long"));
    }
    (bytes.len() >= MAX_HEAD).then_some(Refusal::new(431, "head too long"))
}

fn malformed(error: httparse::Error, bytes: &[u8]) -> Refusal {
    match error {
        httparse::Error::TooManyHeaders => Refusal::new(431, "too many fields"),
        httparse::Error::Version if names_other_version(bytes) => Refusal::new(505, "HTTP version not supported"),
        httparse::Error::HeaderName => Refusal::new(400, "bad field name"),
        httparse::Error::HeaderValue => Refusal::new(400, "bad field value"),
        _ => Refusal::new(400, "bad request line"),
    }
}

/// Whether the first line ends in a well-formed version (RFC 9112 §2.3).
fn names_other_version(bytes: &[u8]) -> bool {
    let end = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n')).unwrap_or(bytes.len());
    let line = bytes.get(..end).unwrap_or_default();
    let mut words = line.splitn(3, |&byte| byte == b' ').skip(1);
    words.next().is_some_and(|target| !target.is_empty())
        && matches!(words.next(), Some([b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9']))
}

/// What the lines that steer the message said.
#[derive(Default)]
struct Seen {
    hosts: usize,
    length: Option<u64>,
    codings: usize,
    chunked: usize,
    last_is_chunked: bool,
    transfer_encoding: bool,
    close: bool,
    keep_alive: bool,
    wants_upgrade: bool,
    nominates: bool,
    upgrade: bool,
    websocket: bool,
    expect: bool,
    continues: bool,
    settings: bool,
}

/// Copies the head in and adds its lines, each looked at once.
fn adopt(
    request: &mut Request,
    raw: &[u8],
    lines: &[httparse::Header<'_>],
    authority: Option<&[u8]>,
    https: bool,
) -> Result<Seen, Refusal> {
    let mut seen = Seen::default();
    let base = request.fields.adopt(raw);
    let range = |piece: &[u8]| {
        let start = base + (piece.as_ptr() as usize).wrapping_sub(raw.as_ptr() as usize);
        start..start + piece.len()
    };
    for line in lines {
        let name = line.name.as_bytes();
        match steering(name) {
            Steering::Host => {
                seen.hosts += 1;
                let mut host = Host::new();
                host::normalise(line.value, https, &mut host).map_err(|_| BAD_HOST)?;
                if let Some(authority) = authority {
                    host.clear();
                    host::normalise(authority, https, &mut host).map_err(|_| BAD_HOST)?;
                }
                if host.as_slice() != line.value {
                    request.fields.append(name, &host);
                    continue;
                }
            }
            Steering::ContentLength => {
                let length = decimal(line.value)?;
                match seen.length.replace(length) {
                    Some(first) if first != length => return Err(Refusal::new(400, "two lengths")),
                    Some(_) => continue,
                    None => {}
                }
                // `007` is a legal way to write 7, and leaves as 7.
                if line.value.len() > 1 && line.value.first() == Some(&b'0') {
                    request.fields.append(name, length.to_string().as_bytes());
                    continue;
                }
            }
            steering => seen.note(steering, line.value),
        }
        request.fields.append_at(range(name), range(line.value));
    }
    seen.require_host(request, authority, https)?;
    Ok(seen)
}

/// The fields that steer the message.
enum Steering {
    None,
    Host,
    ContentLength,
    TransferEncoding,
    Connection,
    Upgrade,
    Expect,
    Http2Settings,
}

fn steering(name: &[u8]) -> Steering {
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    match name.len() {
        4 if is("host") => Steering::Host,
        6 if is("expect") => Steering::Expect,
        7 if is("upgrade") => Steering::Upgrade,
        10 if is("connection") => Steering::Connection,
        14 if is("content-length") => Steering::ContentLength,
        14 if is("http2-settings") => Steering::Http2Settings,
        17 if is("transfer-encoding") => Steering::TransferEncoding,
        _ => Steering::None,
    }
}

/// `1*DIGIT` (RFC 9110 §8.6); no list, no sign, no overflow.
fn decimal(value: &[u8]) -> Result<u64, Refusal> {
    const BAD: Refusal = Refusal::new(400, "bad length");
    if value.is_empty() {
        return Err(BAD);
    }
    value.iter().try_fold(0_u64, |length, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10).ok_or(BAD)?;
        length.checked_mul(10).and_then(|length| length.checked_add(u64::from(digit))).ok_or(BAD)
    })
}

impl Seen {
    fn note(&mut self, steering: Steering, value: &[u8]) {
        match steering {
            Steering::TransferEncoding => {
                self.transfer_encoding = true;
                for coding in members(value) {
                    self.codings += 1;
                    self.last_is_chunked = coding.eq_ignore_ascii_case(b"chunked");
                    self.chunked += usize::from(self.last_is_chunked);
                }
            }
            Steering::Connection => {
                for option in members(value) {
                    match option {
                        _ if option.eq_ignore_ascii_case(b"close") => self.close = true,
                        _ if option.eq_ignore_ascii_case(b"keep-alive") => self.keep_alive = true,
                        _ if option.eq_ignore_ascii_case(b"upgrade") => self.wants_upgrade = true,
                        _ => self.nominates = true,
                    }
                }
            }
            Steering::Upgrade => {
                self.upgrade = true;
                self.websocket |= members(value).any(|protocol| protocol.eq_ignore_ascii_case(b"websocket"));
            }
            Steering::Expect => {
                let continues = value.eq_ignore_ascii_case(b"100-continue");
                self.continues = continues && (!self.expect || self.continues);
                self.expect = true;
            }
            Steering::Http2Settings => self.settings = true,
            Steering::None | Steering::Host | Steering::ContentLength => {}
        }
    }

    /// RFC 9112 §3.2: exactly one; a client of HTTP/1.0 may leave it out and then gets an empty one,
    /// unless its target names a host.
    fn require_host(&self, request: &mut Request, authority: Option<&[u8]>, https: bool) -> Result<(), Refusal> {
        match self.hosts {
            1 => Ok(()),
            0 if request.version == Version::Http10 => {
                let mut host = Host::new();
                if let Some(authority) = authority {
                    host::normalise(authority, https, &mut host).map_err(|_| BAD_HOST)?;
                }
                request.fields.append(b"Host", &host);
                Ok(())
            }
            0 => Err(Refusal::new(400, "no host")),
            _ => Err(Refusal::new(400, "two hosts")),
        }
    }

    /// RFC 9112 §6.1 and §6.3. A length of zero on GET and HEAD is no body.
    fn framing(&self, request: &mut Request) -> Result<Framing, Refusal> {
        if self.transfer_encoding {
            return match () {
                () if self.length.is_some() => Err(Refusal::new(400, "both a length and a transfer coding")),
                () if request.version == Version::Http10 => Err(Refusal::new(400, "transfer coding in HTTP/1.0")),
                () if self.codings == 1 && self.last_is_chunked => Ok(Framing::Chunked),
                () if self.chunked == 1 && self.last_is_chunked => Err(Refusal::new(501, "unknown transfer coding")),
                () => Err(Refusal::new(400, "bad transfer coding")),
            };
        }
        match self.length {
            Some(0) if request.is_get_or_head() => {
                request.fields.remove(b"content-length");
                Ok(Framing::None)
            }
            Some(length) => Ok(Framing::Length(length)),
            None => Ok(Framing::None),
        }
    }

    fn terms(&self, request: &Request) -> Result<Terms, Refusal> {
        let version = request.version;
        let modern = version == Version::Http11;
        if self.expect && !self.continues && modern {
            return Err(Refusal::new(417, "unknown expectation"));
        }
        Ok(Terms {
            version,
            keep_alive: !self.close && (modern || self.keep_alive),
            expects_continue: modern && self.continues && request.framing != Framing::None,
            upgrade: modern
                && self.wants_upgrade
                && self.websocket
                && request.method() == b"GET"
                && request.framing == Framing::None,
            head_only: request.method() == b"HEAD",
        })
    }

    /// Takes away what is settled between the client and us, and what the client nominated
    /// (RFC 9110 §7.6.1), before any rule looks.
    fn strip(&self, request: &mut Request, terms: Terms) {
        if self.expect {
            request.fields.remove(b"expect");
        }
        if self.settings {
            request.fields.remove(b"http2-settings");
        }
        if self.upgrade {
            if terms.upgrade {
                request.fields.set(b"Upgrade", b"websocket");
            } else {
                request.fields.remove(b"upgrade");
            }
        }
        if self.nominates {
            hop::strip_nominated(&mut request.fields);
        }
    }
}
