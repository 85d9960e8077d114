//! Responses on their way to an HTTP/1 client (RFC 9112 §4 to §7).

use std::{
    io::Write as _,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use smallvec::SmallVec;

use super::{
    body::Body,
    link::{Link, Socket},
    parse::Terms,
};
use crate::{
    gateway::hop,
    message::{Fields, Framing, Response, Version},
};

/// Most bytes of an unwanted request body that are read to keep its connection.
pub const DRAIN_LIMIT: usize = 64 * 1024;

/// Longest time an unwanted request body is waited for.
const DRAIN_WAIT: Duration = Duration::from_secs(2);

/// Bytes on their way out: one piece that is built, and pieces that are shared.
#[derive(Debug, Default)]
pub struct Wire {
    /// Goes first.
    pub head: Vec<u8>,
    /// Goes after it, in order.
    pub body: SmallVec<[Bytes; 4]>,
}

impl Wire {
    /// Forgets everything and keeps the room.
    pub fn clear(&mut self) {
        self.head.clear();
        self.body.clear();
    }

    /// Bytes in all.
    pub fn len(&self) -> usize {
        self.head.len() + self.body.iter().map(Bytes::len).sum::<usize>()
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends to the end, whatever that is.
    fn text(&mut self, text: &[u8]) {
        if self.body.is_empty() {
            self.head.extend_from_slice(text);
        } else {
            self.body.push(Bytes::copy_from_slice(text));
        }
    }
}

/// Where one response stands: what may be sent next, and what becomes of the connection.
#[derive(Debug)]
pub struct Outgoing {
    version: Version,
    head_only: bool,
    keep_alive: bool,
    state: State,
    status: u16,
    body_sent: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Head,
    Length(u64),
    Chunked,
    UntilClose,
    Raw,
    Done,
}

impl Outgoing {
    /// The response to a request with these terms; `keep_alive` is what the connection would like.
    pub const fn new(terms: Terms, keep_alive: bool) -> Self {
        Self {
            version: terms.version,
            head_only: terms.head_only,
            keep_alive,
            state: State::Head,
            status: 0,
            body_sent: 0,
        }
    }

    /// Whether nothing of the final response was written.
    pub fn is_unsent(&self) -> bool {
        self.state == State::Head
    }

    /// Whether the whole response was written.
    pub fn is_complete(&self) -> bool {
        self.state == State::Done
    }

    /// Whether the connection may serve another request once the response is complete.
    pub const fn keeps_alive(&self) -> bool {
        self.keep_alive
    }

    /// Whether only the connection's end tells the client that the body is complete.
    pub fn ends_with_connection(&self) -> bool {
        self.state == State::UntilClose
    }

    /// Whether the connection speaks another protocol now.
    pub fn is_raw(&self) -> bool {
        self.state == State::Raw
    }

    /// The status written; 0 before the head.
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// Bytes of the body written, framing not counted.
    pub const fn body_sent(&self) -> u64 {
        self.body_sent
    }

    /// Ends the connection after this response; only before the head.
    pub const fn close(&mut self) {
        self.keep_alive = false;
    }

    /// Says, before the head, whether the connection is to stay.
    pub const fn persist(&mut self, keep_alive: bool) {
        self.keep_alive = keep_alive;
    }

    /// Appends a 1xx head, 101 excepted. A client of HTTP/1.0 gets none (RFC 9110 §15.2).
    pub fn interim(&self, head: &Response, wire: &mut Wire) {
        if self.version == Version::Http10 || self.state != State::Head {
            return;
        }
        status_line(head, &mut wire.head);
        head.fields
            .iter()
            .filter(|field| !hop::is_connection(field.name))
            .for_each(|field| line(field.name, field.value, wire));
        wire.text(b"\r\n");
    }

    /// Appends the final head and settles how the body's end will be known: by `framing`, unless there
    /// is no body (`bodyless`, or by method and status).
    pub fn head(&mut self, head: &Response, framing: Framing, bodyless: bool, wire: &mut Wire) {
        self.status = head.status;
        self.state = self.body_state(framing, bodyless);
        self.keep_alive &= !matches!(self.state, State::UntilClose | State::Raw);
        status_line(head, &mut wire.head);
        let length_stays = !matches!(self.state, State::Chunked | State::UntilClose | State::Raw) && head.status != 204;
        let mut has_length = false;
        for field in head.fields.iter().filter(|field| !hop::is_connection(field.name)) {
            if field.is("content-length") && (!length_stays || std::mem::replace(&mut has_length, true)) {
                continue;
            }
            line(field.name, field.value, wire);
        }
        if !head.fields.has("date") {
            date(&mut wire.head);
        }
        self.framing_lines(framing, has_length, bodyless, &mut wire.head);
        wire.head.extend_from_slice(b"\r\n");
    }

    fn body_state(&self, framing: Framing, bodyless: bool) -> State {
        match framing {
            _ if self.status == 101 => State::Raw,
            _ if bodyless || self.head_only || self.never_has_body() => State::Done,
            Framing::None | Framing::Length(0) => State::Done,
            Framing::Length(length) => State::Length(length),
            _ if self.version == Version::Http10 => State::UntilClose,
            _ => State::Chunked,
        }
    }

    const fn never_has_body(&self) -> bool {
        matches!(self.status, 204 | 304)
    }

    fn framing_lines(&self, framing: Framing, has_length: bool, bodyless: bool, out: &mut Vec<u8>) {
        let written = match (self.state, framing) {
            (State::Chunked, _) => write!(out, "Transfer-Encoding: chunked\r\n"),
            (State::Raw, _) => write!(out, "Connection: Upgrade\r\n"),
            (State::UntilClose, _) => Ok(()),
            _ if has_length || self.never_has_body() => Ok(()),
            (_, Framing::Length(length)) => write!(out, "Content-Length: {length}\r\n"),
            (_, Framing::None) if !bodyless && !self.head_only => write!(out, "Content-Length: 0\r\n"),
            _ => Ok(()),
        };
        debug_assert!(written.is_ok(), "a Vec takes everything");
        out.extend_from_slice(connection_line(self.version, self.keep_alive || self.state == State::Raw));
    }

    /// Appends a piece of the body. `false`: it is more than the head announced, and was left out.
    #[must_use]
    pub fn data(&mut self, data: Bytes, wire: &mut Wire) -> bool {
        let size = data.len() as u64;
        if size == 0 {
            return true;
        }
        match self.state {
            State::Head => return false,
            // HEAD, 204, 304: whatever comes is not for this client.
            State::Done => return self.head_only || self.never_has_body(),
            State::Length(left) => {
                let Some(left) = left.checked_sub(size) else { return false };
                self.state = if left == 0 { State::Done } else { State::Length(left) };
                wire.body.push(data);
            }
            State::Chunked => {
                wire.text(format!("{size:x}\r\n").as_bytes());
                wire.body.push(data);
                wire.body.push(Bytes::from_static(b"\r\n"));
            }
            State::UntilClose | State::Raw => wire.body.push(data),
        }
        self.body_sent += size;
        true
    }

    /// Appends the end of the body. `false`: it came before the announced length.
    #[must_use]
    pub fn end(&mut self, trailers: Option<&Fields>, wire: &mut Wire) -> bool {
        match self.state {
            State::Head | State::Length(_) => return false,
            State::Chunked => {
                wire.text(b"0\r\n");
                for field in trailers.into_iter().flat_map(Fields::iter).filter(|field| may_be_trailer(field.name)) {
                    line(field.name, field.value, wire);
                }
                wire.text(b"\r\n");
            }
            State::UntilClose | State::Raw | State::Done => {}
        }
        self.state = State::Done;
        true
    }
}

/// `Connection` where the version's default is another one (RFC 9112 §9.3), else nothing.
pub const fn connection_line(version: Version, keep_alive: bool) -> &'static [u8] {
    match (version, keep_alive) {
        (Version::Http10, true) => b"Connection: keep-alive\r\n",
        (_, false) => b"Connection: close\r\n",
        _ => b"",
    }
}

fn status_line(head: &Response, out: &mut Vec<u8>) {
    let written = write!(out, "HTTP/1.1 {} {}\r\n", head.status, head.reason());
    debug_assert!(written.is_ok(), "a Vec takes everything");
}

fn line(name: &[u8], value: &[u8], wire: &mut Wire) {
    if wire.body.is_empty() {
        for piece in [name, b": ", value, b"\r\n"] {
            wire.head.extend_from_slice(piece);
        }
    } else {
        wire.text(&[name, b": ", value, b"\r\n"].concat());
    }
}

/// RFC 9110 §6.6.1: a response without a date gets the time it was received.
fn date(out: &mut Vec<u8>) {
    let written = write!(out, "Date: {}\r\n", httpdate::HttpDate::from(SystemTime::now()));
    debug_assert!(written.is_ok(), "a Vec takes everything");
}

/// What would steer the message, were it in the head, has no place behind it (RFC 9110 §6.5.1).
fn may_be_trailer(name: &[u8]) -> bool {
    const NEVER: [&[u8]; 12] = [
        b"content-length",
        b"content-encoding",
        b"content-type",
        b"content-range",
        b"host",
        b"set-cookie",
        b"trailer",
        b"cache-control",
        b"age",
        b"vary",
        b"location",
        b"date",
    ];
    !hop::is_connection(name) && !NEVER.iter().any(|never| name.eq_ignore_ascii_case(never))
}

/// The request's side of an exchange: what is left of its body.
#[derive(Debug)]
pub struct Incoming {
    /// The body's decoder.
    pub body: Body,
    /// The client waits for a 100 before it sends the body.
    pub awaits_continue: bool,
}

impl Incoming {
    /// The body of a request that nothing was read of yet.
    pub const fn new(framing: Framing, terms: Terms) -> Self {
        Self { body: Body::new(framing), awaits_continue: terms.expects_continue }
    }

    /// Whether the rest of the body can be read over, as far as one can say, so that another request can follow it.
    pub const fn is_drainable(&self) -> bool {
        self.body.is_done() || (!self.awaits_continue && self.body.is_within(DRAIN_LIMIT as u64))
    }

    /// Reads over what is left; whether another request can follow.
    pub async fn drain<S: Socket>(&mut self, link: &mut Link<S>) -> bool {
        self.is_drainable() && (self.body.is_done() || link.drain(&mut self.body, DRAIN_LIMIT, DRAIN_WAIT).await)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::reason;

    fn terms(version: Version, head_only: bool) -> Terms {
        Terms { version, keep_alive: true, expects_continue: false, upgrade: false, head_only }
    }

    fn response(status: u16, framing: Framing, fields: &[(&str, &str)]) -> Response {
        let mut response = Response::new(status);
        response.framing = framing;
        response.fields = fields.iter().copied().chain([("Date", "x")]).collect();
        response
    }

    /// What a response with this body looks like on the wire, and whether it came to its end.
    fn written(terms: Terms, keep: bool, head: &Response, pieces: &[&'static str]) -> (String, bool, bool) {
        let (mut outgoing, mut wire) = (Outgoing::new(terms, keep), Wire::default());
        outgoing.head(head, head.framing, false, &mut wire);
        let mut good = pieces.iter().all(|piece| outgoing.data(Bytes::from_static(piece.as_bytes()), &mut wire));
        good &= outgoing.end(None, &mut wire);
        let mut bytes = wire.head.clone();
        wire.body.iter().for_each(|piece| bytes.extend_from_slice(piece));
        (String::from_utf8(bytes).unwrap(), good && outgoing.is_complete(), outgoing.keeps_alive())
    }

    #[test]
    fn framing_by_version_and_length() {
        let (old, new) = (terms(Version::Http10, false), terms(Version::Http11, false));
        let start = "HTTP/1.1 200 OK\r\nDate: x\r\n";
        for (terms, keep, framing, pieces, expected, kept) in [
            (new, true, Framing::Length(2), &["a", "b"][..], "Content-Length: 2\r\n\r\nab", true),
            (new, false, Framing::Length(1), &["a"], "Content-Length: 1\r\nConnection: close\r\n\r\na", false),
            (new, true, Framing::None, &[], "Content-Length: 0\r\n\r\n", true),
            (
                new,
                true,
                Framing::Chunked,
                &["a", "bc"],
                "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n",
                true,
            ),
            (new, true, Framing::Stream, &[], "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", true),
            (new, true, Framing::UntilClose, &["a"], "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", true),
            (old, true, Framing::Length(1), &["a"], "Content-Length: 1\r\nConnection: keep-alive\r\n\r\na", true),
            (old, true, Framing::Chunked, &["a"], "Connection: close\r\n\r\na", false),
        ] {
            let got = written(terms, keep, &response(200, framing, &[]), pieces);
            assert_eq!(got, (format!("{start}{expected}"), true, kept), "{framing:?}");
        }
    }

    #[test]
    fn responses_without_a_body() {
        let head = terms(Version::Http11, true);
        let get = terms(Version::Http11, false);
        for (terms, status, framing, fields, expected) in [
            (head, 200, Framing::Length(5), &[("Content-Length", "5")][..], "Content-Length: 5\r\nDate: x\r\n\r\n"),
            (head, 200, Framing::Length(5), &[], "Date: x\r\nContent-Length: 5\r\n\r\n"),
            (head, 200, Framing::Chunked, &[], "Date: x\r\n\r\n"),
            (get, 204, Framing::None, &[("Content-Length", "0")], "Date: x\r\n\r\n"),
            (get, 304, Framing::None, &[("ETag", "\"a\"")], "ETag: \"a\"\r\nDate: x\r\n\r\n"),
        ] {
            let (text, good, kept) = written(terms, true, &response(status, framing, fields), &[]);
            assert_eq!(text, format!("HTTP/1.1 {status} {}\r\n{expected}", reason(status)));
            assert!(good && kept);
        }
    }

    #[test]
    fn a_body_of_another_length_is_not_a_complete_response() {
        let get = terms(Version::Http11, false);
        assert!(!written(get, true, &response(200, Framing::Length(3), &[]), &["ab"]).1);
        assert!(!written(get, true, &response(200, Framing::Length(1), &[]), &["ab"]).1);
    }

    #[test]
    fn framing_fields_are_ours_and_a_missing_date_is_added() {
        let mut head = Response::new(200);
        head.framing = Framing::Chunked;
        head.fields =
            [("Connection", "x"), ("Transfer-Encoding", "gzip"), ("Content-Length", "9"), ("keep-alive", "1")]
                .into_iter()
                .collect();
        let (text, ..) = written(terms(Version::Http11, false), true, &head, &[]);
        let lines: Vec<_> = text.split("\r\n").map(|line| line.split(' ').next().unwrap()).collect();
        assert_eq!(lines, ["HTTP/1.1", "Date:", "Transfer-Encoding:", "", "0", "", ""]);
    }

    #[test]
    fn trailers_that_steer_are_dropped() {
        let (mut outgoing, mut wire) = (Outgoing::new(terms(Version::Http11, false), true), Wire::default());
        outgoing.head(&response(200, Framing::Chunked, &[]), Framing::Chunked, false, &mut wire);
        wire.clear();
        let trailers: Fields =
            [("X-Sum", "1"), ("Content-Length", "2"), ("Set-Cookie", "a"), ("Transfer-Encoding", "b")]
                .into_iter()
                .collect();
        assert!(outgoing.end(Some(&trailers), &mut wire));
        assert_eq!(wire.head, b"0\r\nX-Sum: 1\r\n\r\n");
    }

    #[test]
    fn no_1xx_for_http_1_0() {
        let mut wire = Wire::default();
        Outgoing::new(terms(Version::Http10, false), true).interim(&Response::new(103), &mut wire);
        assert!(wire.is_empty());
        Outgoing::new(terms(Version::Http11, false), true).interim(&Response::new(103), &mut wire);
        assert_eq!(wire.head, b"HTTP/1.1 103 Early Hints\r\n\r\n");
    }
}
