//! The short names of log formats (`%ci`, `%ST`): one row an alias (HAProxy manual §8.2.6).

use std::{fmt, net::IpAddr, sync::OnceLock};

use jiff::tz::TimeZone;

use super::{capture::Place, fact::Fact, format::Writer, progress::or_none, sample::Sample, txn::Txn};
use crate::{
    message::{Request, Version},
    rule::converter::strftime::Moment,
    time::Timestamp,
};

/// One alias.
pub struct AliasRow {
    /// How it is written behind the `%`.
    pub name: &'static str,
    /// What it is, for people.
    pub about: &'static str,
    /// Writes it.
    pub write: fn(&Txn<'_>, &mut Writer<'_>),
}

impl fmt::Debug for AliasRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

const fn row(name: &'static str, about: &'static str, write: fn(&Txn<'_>, &mut Writer<'_>)) -> AliasRow {
    AliasRow { name, about, write }
}

/// Every alias.
pub const ROWS: &[AliasRow] = &[
    row("B", "bytes sent to the client", |txn, out| out.number(txn.notes.progress.end.map_or(0, |end| end.sent))),
    row("CC", "captured cookie of the request", |txn, out| out.text(captured(txn, Place::RequestCookie))),
    row("CS", "captured cookie of the response", |txn, out| out.text(captured(txn, Place::ResponseCookie))),
    row("H", "name of this machine", |txn, out| out.text(text(txn, Fact::Hostname))),
    row("HM", "method", |txn, out| of_request(txn, out, |request, out| out.encoded(request.received_method(), URI))),
    row("HP", "target without its query", |txn, out| {
        of_request(txn, out, |_, out| put(&Target::of(txn).without_query(), out))
    }),
    row("HPO", "path", |txn, out| of_request(txn, out, |_, out| put(&[Target::of(txn).path], out))),
    row("HQ", "query with its `?`", |txn, out| of_request(txn, out, |_, out| put(&[Target::of(txn).query], out))),
    row("HU", "target", |txn, out| of_request(txn, out, |_, out| put(&Target::of(txn).whole(), out))),
    row("HV", "version", |txn, out| of_request(txn, out, |request, out| out.raw(version(request.version)))),
    row("ID", "unique id", |txn, out| out.text(txn.notes.unique_id.get().map(|id| &**id))),
    row("ST", "status", |txn, out| out.number(status(txn))),
    row("T", "time of accept, UTC", |txn, out| date(accepted(txn), Zone::Utc, out)),
    row("Ta", "time from the request's first byte to the end", |txn, out| out.number(txn.notes.progress.active())),
    row("Tc", "time to reach the server", |txn, out| out.number(or_none(txn.notes.progress.connect))),
    row("Td", "time of the response's body", |txn, out| out.number(or_none(txn.notes.progress.data()))),
    row("Th", "time of the handshake", |txn, out| out.number(txn.notes.progress.handshake)),
    row("Ti", "time before the request", |txn, out| out.number(txn.notes.progress.idle)),
    row("Tl", "time of accept, local", |txn, out| date(accepted(txn), Zone::Local, out)),
    row("Tq", "Th + Ti + TR", |txn, out| out.number(or_none(txn.notes.progress.request()))),
    row("TR", "time of the request's head", |txn, out| {
        let progress = &txn.notes.progress;
        out.number(or_none(progress.decided.then_some(progress.head)));
    }),
    row("Tr", "time until the response's head", |txn, out| out.number(or_none(txn.notes.progress.response))),
    row("Ts", "second of accept since 1970", |txn, out| out.number_or_hex(accepted(txn).as_secs(), 4)),
    row("Tt", "time from accept to the end", |txn, out| out.number(txn.notes.progress.total())),
    row("Tu", "Tt - Ti", |txn, out| {
        let progress = &txn.notes.progress;
        out.number(progress.total().saturating_sub(progress.idle));
    }),
    row("Tw", "time in queues", |txn, out| out.number(or_none(txn.notes.progress.queue))),
    row("U", "bytes received from the client", |txn, out| {
        out.number(txn.notes.progress.end.map_or(0, |end| end.received));
    }),
    row("ac", "connections of the process", |txn, out| out.number(count(txn, Fact::Connections))),
    row("b", "backend", |txn, out| {
        out.text(text(txn, Fact::BackendName).or_else(|| text(txn, Fact::FrontendName)));
    }),
    row("bc", "exchanges of the backend", |txn, out| out.number(count(txn, Fact::OwnExchanges))),
    row("bi", "address that the server sees", |txn, out| {
        out.address(txn.notes.progress.source.map(|source| source.ip().to_canonical()));
    }),
    row("bp", "port that the server sees", |txn, out| port(txn.notes.progress.source.map(|source| source.port()), out)),
    // Nothing queues.
    row("bq", "requests queued before it in the backend", |_, out| out.number(0)),
    row("ci", "client's address", |txn, out| out.address(txn.client.src.map(|source| source.ip()))),
    row("cp", "client's port", |txn, out| port(txn.client.src.map(|source| source.port()), out)),
    row("f", "frontend", |txn, out| out.text(text(txn, Fact::FrontendName))),
    row("fc", "connections of the frontend", |txn, out| out.number(count(txn, Fact::OwnConnections))),
    row("fi", "address that the client reached", |txn, out| out.address(txn.client.dst.map(|reached| reached.ip()))),
    row("fp", "port that the client reached", |txn, out| port(txn.client.dst.map(|reached| reached.port()), out)),
    row("ft", "frontend, with `~` for TLS", |txn, out| {
        out.quoted(|out| {
            out.raw(text(txn, Fact::FrontendName).unwrap_or_default());
            if txn.client.tls.is_some() {
                out.raw(b"~");
            }
        });
    }),
    row("hr", "captured fields of the request", |txn, out| fields(txn, out, Side::Request)),
    row("hrl", "the same, one by one", |txn, out| list(txn, out, Side::Request)),
    row("hs", "captured fields of the response", |txn, out| fields(txn, out, Side::Response)),
    row("hsl", "the same, one by one", |txn, out| list(txn, out, Side::Response)),
    row("lc", "log lines of the frontend before this one", |txn, out| {
        out.number_or_hex(count(txn, Fact::LogLines).unsigned_abs(), 4);
    }),
    row("ms", "millisecond of accept", |txn, out| {
        let millis = accepted(txn).as_millis() % 1000;
        if out.flags().hex { out.print(format_args!("{millis:02X}")) } else { out.print(format_args!("{millis:03}")) }
    }),
    row("pid", "number of the process", |txn, out| out.number_or_hex(count(txn, Fact::Process).unsigned_abs(), 4)),
    row("r", "request line", |txn, out| {
        of_request(txn, out, |request, out| {
            out.encoded(request.received_method(), URI);
            out.raw(b" ");
            put(&Target::of(txn).whole(), out);
            out.raw(b" ");
            out.raw(version(request.version));
        });
    }),
    row("rc", "servers tried in vain", |txn, out| out.number(txn.notes.progress.retries)),
    row("rt", "number of the request", |txn, out| out.number_or_hex(txn.number().into(), 4)),
    row("s", "server", |txn, out| match text(txn, Fact::ServerName) {
        _ if flag(txn, Fact::CacheHit) => out.text(Some(b"<CACHE>")),
        Some(name) => out.text(Some(name)),
        None => out.text(Some(b"<NOSRV>")),
    }),
    // Connections of one server are not counted.
    row("sc", "connections of the server", |_, out| out.number(0)),
    row("si", "server's address", |txn, out| out.address(address(txn))),
    row("sp", "server's port", |txn, out| port(server_port(txn), out)),
    row("sq", "requests queued before it at the server", |_, out| out.number(0)),
    row("sslc", "cipher suite of the client's connection", |txn, out| {
        out.text(txn.client.tls.as_ref().map(|tls| tls.cipher.as_bytes()));
    }),
    row("sslv", "TLS version of the client's connection", |txn, out| {
        out.text(txn.client.tls.as_ref().map(|tls| tls.protocol.as_bytes()));
    }),
    row("t", "time of accept", |txn, out| stamp(accepted(txn), Zone::Local, out)),
    row("tr", "time of the request", |txn, out| stamp(begun(txn), Zone::Local, out)),
    row("trg", "time of the request, UTC", |txn, out| date(begun(txn), Zone::Utc, out)),
    row("trl", "time of the request, local", |txn, out| date(begun(txn), Zone::Local, out)),
    row("ts", "who ended it, and when", |txn, out| out.raw(&state(txn))),
    row("tsc", "the same, and what became of its cookie", |txn, out| {
        out.raw(&state(txn));
        // No cookie keeps a client with a server.
        out.raw(b"--");
    }),
];

/// Rows of Tidegate's own log line, which no format can name.
pub const HOUSE: &[AliasRow] = &[
    row("client", "client", |txn, out| match txn.client.src {
        Some(source) => out.print(format_args!("{source}")),
        None => out.raw(b"unix"),
    }),
    row("date", "time of the request, UTC", |txn, out| {
        stamp(txn.env.now(), Zone::Utc, out);
        out.raw(b" +0000");
    }),
    row("backend", "backend", |txn, out| out.text(text(txn, Fact::BackendName))),
    row("active", "time from the request's head to the end", |txn, out| {
        out.number(txn.notes.progress.end.map_or(0, |end| end.active));
    }),
    row("status", "status", |txn, out| out.number(txn.notes.progress.end.map_or(0, |end| end.status))),
    row("outcome", "outcome", |txn, out| out.text(txn.notes.progress.end.map(|end| end.outcome.as_bytes()))),
    row("reason", "reason", |txn, out| out.text(txn.notes.progress.end.and_then(|end| end.reason).map(str::as_bytes))),
    row("request", "request", |txn, out| {
        let request = &*txn.request;
        if request.received_method().is_empty() {
            return out.raw(b"- <malformed> HTTP/1.1");
        }
        visible(request.received_method(), out);
        out.raw(b" ");
        if request.received_target().starts_with(b"/") {
            visible(request.received_host(), out);
        }
        visible(request.received_target(), out);
        out.raw(match request.version {
            Version::Http10 => b" HTTP/1.0".as_slice(),
            Version::Http11 => b" HTTP/1.1",
            Version::Http2 => b" HTTP/2",
        });
    }),
];

/// The alias called `name`.
pub fn find(name: &str) -> Option<&'static AliasRow> {
    ROWS.iter().find(|row| row.name == name)
}

/// What is encoded in targets.
const URI: &[u8] = b"\"#";
/// What is encoded in captured fields.
const FIELD: &[u8] = b"\"#{|}";

fn text<'s>(txn: &'s Txn<'_>, fact: Fact) -> Option<&'s [u8]> {
    match txn.env.fact(fact)? {
        Sample::Str(text) => Some(text),
        _ => None,
    }
}

fn count(txn: &Txn<'_>, fact: Fact) -> i64 {
    match txn.env.fact(fact) {
        Some(Sample::Int(count)) => count,
        _ => 0,
    }
}

fn flag(txn: &Txn<'_>, fact: Fact) -> bool {
    matches!(txn.env.fact(fact), Some(Sample::Bool(true)))
}

fn address(txn: &Txn<'_>) -> Option<IpAddr> {
    match txn.env.fact(Fact::ServerAddress)? {
        Sample::Ip(address) => Some(address),
        _ => None,
    }
}

fn server_port(txn: &Txn<'_>) -> Option<u16> {
    match txn.env.fact(Fact::ServerPort)? {
        Sample::Int(port) => u16::try_from(port).ok(),
        _ => None,
    }
}

fn port(port: Option<u16>, out: &mut Writer<'_>) {
    match port {
        Some(port) => out.number_or_hex(port.into(), 4),
        None => out.text(None),
    }
}

fn captured<'s>(txn: &'s Txn<'_>, place: Place) -> Option<&'s [u8]> {
    txn.notes.captured.value(place, txn.arena)
}

/// The status that the client gets, as far as it is known.
fn status(txn: &Txn<'_>) -> i64 {
    let response = txn.response.as_deref().map(|response| response.status);
    let status = txn.notes.progress.end.map(|end| end.status).or(response);
    status.filter(|status| *status > 0).map_or(-1, i64::from)
}

fn state(txn: &Txn<'_>) -> [u8; 2] {
    txn.notes.progress.end.map_or(*b"--", |end| end.state)
}

/// Writes what is of the request, in quotes if they are asked for; a request that could not be read has nothing.
fn of_request(txn: &Txn<'_>, out: &mut Writer<'_>, write: impl FnOnce(&Request, &mut Writer<'_>)) {
    out.quoted(|out| {
        if txn.request.received_method().is_empty() {
            out.raw(b"<BADREQ>");
        } else {
            write(txn.request, out);
        }
    });
}

fn put(pieces: &[&[u8]], out: &mut Writer<'_>) {
    pieces.iter().for_each(|piece| out.encoded(piece, URI));
}

/// The target as HAProxy has it, absolute with HTTP/2, in pieces.
struct Target<'s> {
    scheme: &'s [u8],
    host: &'s [u8],
    /// As it was received, up to its query.
    before: &'s [u8],
    path: &'s [u8],
    query: &'s [u8],
}

impl<'s> Target<'s> {
    fn of(txn: &'s Txn<'_>) -> Self {
        let request = &*txn.request;
        let received = request.received_target();
        let absolute = request.version == Version::Http2 && received.starts_with(b"/");
        let (scheme, host): (&[u8], &[u8]) = match (absolute, txn.client.tls.is_some()) {
            (false, _) => (b"", b""),
            (true, true) => (b"https://", request.received_host()),
            (true, false) => (b"http://", request.received_host()),
        };
        let query = memchr::memchr(b'?', received).unwrap_or(received.len());
        let (before, query) = received.split_at_checked(query).unwrap_or((received, b""));
        let path = match memchr::memmem::find(before, b"://") {
            Some(at) if !before.starts_with(b"/") => {
                let rest = before.get(at + 3..).unwrap_or_default();
                memchr::memchr(b'/', rest).and_then(|at| rest.get(at..)).unwrap_or_default()
            }
            _ => before,
        };
        Self { scheme, host, before, path, query }
    }

    const fn without_query(&self) -> [&'s [u8]; 3] {
        [self.scheme, self.host, self.before]
    }

    const fn whole(&self) -> [&'s [u8]; 4] {
        [self.scheme, self.host, self.before, self.query]
    }
}

fn version(version: Version) -> &'static [u8] {
    match version {
        Version::Http10 => b"HTTP/1.0",
        Version::Http11 => b"HTTP/1.1",
        Version::Http2 => b"HTTP/2.0",
    }
}

#[derive(Clone, Copy)]
enum Side {
    Request,
    Response,
}

impl Side {
    /// The captured values, in the order of their slots.
    fn values<'s>(self, txn: &'s Txn<'_>) -> impl Iterator<Item = Option<&'s [u8]>> {
        let captures = txn.env.captures().filter(|_| !txn.request.received_method().is_empty());
        let slots = captures.map_or(0, |captures| match self {
            Self::Request => captures.request.len(),
            Self::Response => captures.response.len(),
        });
        (0..slots).map(move |at| {
            captured(
                txn,
                match self {
                    Self::Request => Place::Request(at),
                    Self::Response => Place::Response(at),
                },
            )
        })
    }
}

/// `{a|b}`; nothing when nothing is to be captured.
fn fields(txn: &Txn<'_>, out: &mut Writer<'_>, side: Side) {
    let mut values = side.values(txn).peekable();
    if values.peek().is_none() {
        return;
    }
    out.quoted(|out| {
        let mut before: &[u8] = b"{";
        for value in values {
            out.raw(std::mem::replace(&mut before, b"|"));
            out.encoded(value.unwrap_or_default(), FIELD);
        }
        out.raw(b"}");
    });
}

/// `a b`, each in quotes if they are asked for, else `-` for what is not there.
fn list(txn: &Txn<'_>, out: &mut Writer<'_>, side: Side) {
    let mut before: &[u8] = b"";
    for value in side.values(txn) {
        out.raw(std::mem::replace(&mut before, b" "));
        match value {
            None if !out.flags().quote => out.raw(b"-"),
            value => out.quoted(|out| out.encoded(value.unwrap_or_default(), FIELD)),
        }
    }
}

/// What cannot end the line or the quotes it stands in.
fn visible(text: &[u8], out: &mut Writer<'_>) {
    for &byte in text {
        match byte {
            b'"' | b'\\' => out.raw(&[b'\\', byte]),
            0x20..=0x7e => out.raw(&[byte]),
            _ => out.print(format_args!("\\x{byte:02x}")),
        }
    }
}

/// When the connection was accepted, or the response before ended.
fn accepted(txn: &Txn<'_>) -> Timestamp {
    let progress = &txn.notes.progress;
    earlier(txn.env.now(), progress.before() + progress.head)
}

/// When the request's first byte came.
fn begun(txn: &Txn<'_>) -> Timestamp {
    earlier(txn.env.now(), txn.notes.progress.head)
}

fn earlier(time: Timestamp, millis: u32) -> Timestamp {
    Timestamp::from_millis(time.as_millis().saturating_sub(millis.into()))
}

#[derive(Clone, Copy)]
enum Zone {
    Utc,
    Local,
}

/// The time on the calendar of a zone; the local one is that of the process, read once.
pub(super) fn local(time: Timestamp) -> Moment<'static> {
    static LOCAL: OnceLock<TimeZone> = OnceLock::new();
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    let known = jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::MAX);
    let offset = LOCAL.get_or_init(TimeZone::system).to_offset(known).seconds();
    Moment::east(seconds, offset.into())
}

fn moment(time: Timestamp, zone: Zone) -> Moment<'static> {
    match zone {
        Zone::Utc => Moment::utc(i64::try_from(time.as_secs()).unwrap_or(i64::MAX)),
        Zone::Local => local(time),
    }
}

/// `30/Nov/2026:22:20:52.123`.
fn stamp(time: Timestamp, zone: Zone, out: &mut Writer<'_>) {
    out.print(format_args!("{}.{:03}", moment(time, zone).of_log(), time.as_millis() % 1000));
}

/// `30/Nov/2026:22:20:52 +0000`.
fn date(time: Timestamp, zone: Zone, out: &mut Writer<'_>) {
    let moment = moment(time, zone);
    let minutes = moment.offset() / 60;
    let sign = if minutes < 0 { '-' } else { '+' };
    let (hours, minutes) = (minutes.abs() / 60, minutes.abs() % 60);
    out.print(format_args!("{} {sign}{hours:02}{minutes:02}", moment.of_log()));
}

/// Dates as syslog has them.
pub mod syslog {
    use std::fmt;

    use crate::time::Timestamp;

    /// `Nov 30 22:20:52`, local (RFC 3164 §4.1.2).
    pub struct Date(pub Timestamp);

    impl fmt::Display for Date {
        fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            super::local(self.0).of_syslog().fmt(out)
        }
    }

    /// `2026-11-30T22:20:52.123456+00:00`, local, with microseconds of their own (RFC 5424 §6.2.3).
    pub struct Iso(pub Timestamp, pub u32);

    impl fmt::Display for Iso {
        fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            let moment = super::local(self.0);
            let minutes = moment.offset() / 60;
            let sign = if minutes < 0 { '-' } else { '+' };
            let (hours, minutes) = (minutes.abs() / 60, minutes.abs() % 60);
            write!(out, "{}.{:06}{sign}{hours:02}:{minutes:02}", moment.of_iso(), self.1)
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_name_stands_for_two_aliases() {
        let mut names: Vec<_> = super::ROWS.iter().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), super::ROWS.len());
    }
}
