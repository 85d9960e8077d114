//! Responses that rules and proxies make: `deny`, `return`, `tarpit`, `auth`, and the pages of a proxy's own errors.

use bytes::Bytes;

use super::Answer;
use crate::{
    message::{Framing, Response, reason},
    rule::{format::Format, txn::Txn},
};

/// A response as a rule or a proxy describes it.
#[derive(Clone, Debug)]
pub enum Reply {
    /// What the proxies answer themselves with this status (`default-errorfiles`).
    Page(u16),
    /// A whole message, as it stands in a file (`errorfile`).
    Message(Answer),
    /// Nothing: the connection ends (an `errorfile` that is empty).
    Silence,
    /// Put together from these parts.
    Composed(Composed),
}

/// A response of a status, fields and a body.
#[derive(Clone, Debug)]
pub struct Composed {
    /// Its status, 200 to 599.
    pub status: u16,
    /// `content-type`; `None`: no such field.
    pub content_type: Option<Box<[u8]>>,
    /// `hdr NAME FMT`: further fields, in order.
    pub fields: Vec<(Box<str>, Format)>,
    /// Its body.
    pub body: ReplyBody,
}

/// A body as a rule describes it.
#[derive(Clone, Debug)]
pub enum ReplyBody {
    /// Always the same.
    Fixed(Bytes),
    /// Made for each request.
    Made(Format),
}

/// What a rule has answered with.
#[derive(Clone, Debug)]
pub enum Given {
    /// This response.
    Answer(Box<Answer>),
    /// The page that the proxies of the exchange have for a status.
    Page {
        /// The status, 200 to 599.
        status: u16,
        /// The value of the `WWW-Authenticate` that it carries alone; `None`: it stays as it is.
        challenge: Option<Box<[u8]>>,
    },
    /// Nothing: the connection ends.
    Silence,
}

impl Given {
    /// The status, for people; `None` when nothing is answered.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Answer(answer) => Some(answer.head.status),
            Self::Page { status, .. } => Some(*status),
            Self::Silence => None,
        }
    }
}

impl Reply {
    /// What is answered to this request.
    pub fn give(&self, txn: &Txn<'_>) -> Given {
        match self {
            Self::Page(status) => Given::Page { status: *status, challenge: None },
            Self::Message(answer) => Given::Answer(Box::new(answer.clone())),
            Self::Silence => Given::Silence,
            Self::Composed(composed) => Given::Answer(Box::new(composed.answer(txn))),
        }
    }

    /// What is answered whatever the request; `None` when that depends on it.
    pub fn fixed(&self) -> Option<Given> {
        match self {
            Self::Message(answer) => Some(Given::Answer(Box::new(answer.clone()))),
            Self::Silence => Some(Given::Silence),
            Self::Page(_) | Self::Composed(_) => None,
        }
    }

    /// The formats it is made of.
    pub(super) fn formats(&self) -> Vec<&Format> {
        match self {
            Self::Composed(composed) => composed.formats().collect(),
            Self::Page(_) | Self::Message(_) | Self::Silence => Vec::new(),
        }
    }
}

impl Composed {
    fn answer(&self, txn: &Txn<'_>) -> Answer {
        let body = match &self.body {
            ReplyBody::Fixed(bytes) => bytes.clone(),
            ReplyBody::Made(format) => Bytes::copy_from_slice(format.text_in(txn)),
        };
        let mut head = Response::new(self.status);
        if let Some(kind) = &self.content_type {
            head.fields.append(b"Content-Type", kind);
        }
        for (name, value) in &self.fields {
            head.fields.append(name.as_bytes(), value.text_in(txn));
        }
        head.framing = framing(&body);
        Answer { head, body }
    }

    fn formats(&self) -> impl Iterator<Item = &Format> {
        let body = match &self.body {
            ReplyBody::Made(format) => Some(format),
            ReplyBody::Fixed(_) => None,
        };
        self.fields.iter().map(|(_, value)| value).chain(body)
    }
}

/// The statuses that a proxy may have pages of its own for (HAProxy manual §4.2 `errorfile`).
pub const PAGES: [u16; 21] =
    [200, 400, 401, 403, 404, 405, 407, 408, 410, 413, 414, 421, 422, 425, 429, 431, 500, 501, 502, 503, 504];

/// A proxy's pages by status: `errorfile` and its kin.
#[derive(Clone, Debug, Default)]
pub struct Pages(Vec<(u16, Reply)>);

impl Pages {
    /// The page for a status; `None`: there is none of its own.
    pub fn of(&self, status: u16) -> Option<&Reply> {
        self.0.iter().find(|(of, _)| *of == status).map(|(_, reply)| reply)
    }

    /// Gives a status a page in the place of the one it had; [`Reply::Page`] takes that away.
    pub fn set(&mut self, status: u16, reply: Reply) {
        self.0.retain(|(of, _)| *of != status);
        if !matches!(reply, Reply::Page(_)) {
            self.0.push((status, reply));
        }
    }

    /// Every page with its status.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &Reply)> {
        self.0.iter().map(|(status, reply)| (*status, reply))
    }
}

/// What is answered with a status that no proxy has a page for: a line that says so, not to be cached.
pub fn page(status: u16) -> Answer {
    let sentence = match status {
        200 => "This site is at work.",
        401 | 407 => "This site asks for a name and a password.",
        _ => "A rule of this site refuses this request.",
    };
    let title = format!("{status} {}", reason(status));
    let body = format!(
        "<!doctype html>\n<html><head><title>{title}</title></head>\n<body><h1>{title}</h1>\n\
         <p>{sentence}</p></body></html>\n"
    );
    let body = Bytes::from(body);
    let mut head = Response::new(status);
    head.fields.append(b"Content-Type", b"text/html");
    head.fields.append(b"Cache-Control", b"no-cache");
    head.framing = framing(&body);
    Answer { head, body }
}

/// The framing of a body that is wholly there.
pub fn framing(body: &Bytes) -> Framing {
    Framing::Length(u64::try_from(body.len()).unwrap_or(u64::MAX))
}

/// Why the text of an `errorfile` is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageFault {
    /// The line of the file, from 1.
    pub line: usize,
    /// What is wrong there.
    pub what: &'static str,
}

/// Reads a whole response: status line, fields, an empty line, body. Lines may end without a carriage return.
/// Fields that say where the body ends or are for one connection are left out; an empty text is silence.
///
/// # Errors
/// The first line that is not as it should be.
pub fn message(text: &[u8]) -> Result<Reply, MessageFault> {
    if text.is_empty() {
        return Ok(Reply::Silence);
    }
    let mut lines = Lines { text, number: 0 };
    let mut head = status_line(&mut lines)?;
    let mut length = None;
    loop {
        let line = lines
            .next()
            .ok_or(MessageFault { line: lines.number + 1, what: "the empty line behind the fields is missing" })?;
        if line.is_empty() {
            break;
        }
        let fault = |what| MessageFault { line: lines.number, what };
        let colon = memchr::memchr(b':', line).ok_or(fault("this is no field: it has no `:`"))?;
        let (name, value) = (line.get(..colon).unwrap_or_default(), line.get(colon + 1..).unwrap_or_default());
        if !super::target::is_token(name) {
            return Err(fault("this is not the name of a field"));
        }
        let value = value.trim_ascii();
        if value.iter().any(|&byte| byte.is_ascii_control() && byte != b'\t') {
            return Err(fault("a field's value has no control characters"));
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            let digits = Some(value).filter(|value| value.iter().all(u8::is_ascii_digit));
            let number = digits.and_then(|value| std::str::from_utf8(value).ok()?.parse::<usize>().ok());
            length = Some((number.ok_or(fault("this length is no number"))?, lines.number));
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            return Err(fault("the body stands in the file as it is: a transfer coding has no place there"));
        } else if !OF_CONNECTION.iter().any(|own| name.eq_ignore_ascii_case(own)) {
            head.fields.append(name, value);
        }
    }
    let mut body = Bytes::copy_from_slice(lines.text);
    if let Some((length, line)) = length {
        if length > body.len() {
            return Err(MessageFault { line, what: "the body is shorter than this" });
        }
        body.truncate(length);
    }
    if head.is_bodyless() {
        body.clear();
    }
    head.framing = framing(&body);
    Ok(Reply::Message(Answer { head, body }))
}

/// Fields that are for one connection.
const OF_CONNECTION: [&[u8]; 5] = [b"connection", b"keep-alive", b"proxy-connection", b"upgrade", b"te"];

fn status_line(lines: &mut Lines<'_>) -> Result<Response, MessageFault> {
    let bad = MessageFault {
        line: 1,
        what: "a message begins with a status line, such as `HTTP/1.1 503 Service Unavailable`",
    };
    let line = lines.next().ok_or(bad)?;
    let rest = line.strip_prefix(b"HTTP/1.").ok_or(bad)?;
    let (version, rest) = rest.split_at_checked(2).ok_or(bad)?;
    let (digits, phrase) = rest.split_at_checked(3).ok_or(bad)?;
    if !matches!(version, b"0 " | b"1 ")
        || !digits.iter().all(u8::is_ascii_digit)
        || !matches!(phrase.first(), None | Some(b' '))
    {
        return Err(bad);
    }
    let status = digits.iter().fold(0, |status, digit| status * 10 + u16::from(digit - b'0'));
    if !(200..=599).contains(&status) {
        return Err(MessageFault { line: 1, what: "the status of an answer is from 200 to 599" });
    }
    let phrase = phrase.trim_ascii();
    if phrase.iter().any(u8::is_ascii_control) {
        return Err(bad);
    }
    let mut head = Response::new(status);
    head.set_phrase(phrase);
    Ok(head)
}

/// The lines of a head; what is left is the body.
struct Lines<'t> {
    text: &'t [u8],
    number: usize,
}

impl<'t> Iterator for Lines<'t> {
    type Item = &'t [u8];

    fn next(&mut self) -> Option<&'t [u8]> {
        let end = memchr::memchr(b'\n', self.text)?;
        let (line, rest) = self.text.split_at_checked(end)?;
        self.text = rest.get(1..)?;
        self.number += 1;
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (u16, String, Vec<String>, String) {
        let Ok(Reply::Message(Answer { head, body })) = message(text.as_bytes()) else { panic!("{text}") };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let fields = head.fields.iter().map(|field| format!("{}: {}", text(field.name), text(field.value))).collect();
        (head.status, head.reason().to_owned(), fields, text(&body))
    }

    #[test]
    fn files_are_messages() {
        let found = read("HTTP/1.0 503 Sorry\r\nConnection: close\r\nX-A:  b \r\n\r\n<p>\r\n");
        assert_eq!(found, (503, "Sorry".into(), vec!["X-A: b".into()], "<p>\r\n".into()));
        let found = read("HTTP/1.1 200\nContent-Length: 2\n\nabc");
        assert_eq!(found, (200, "OK".into(), vec![], "ab".into()));
        assert_eq!(read("HTTP/1.1 204 No Content\n\nabc").3, "");
        assert!(matches!(message(b""), Ok(Reply::Silence)));
    }

    #[test]
    fn what_is_no_message_is_found_with_its_line() {
        for (text, line) in [
            ("<html>", 1),
            ("<html>\n", 1),
            ("HTTP/2 200 OK\n\n", 1),
            ("HTTP/1.1 20 OK\n\n", 1),
            ("HTTP/1.1 100 Continue\n\n", 1),
            ("HTTP/1.1 2000\n\n", 1),
            ("HTTP/1.1 200 OK\nA: b", 2),
            ("HTTP/1.1 200 OK\nno field\n\n", 2),
            ("HTTP/1.1 200 OK\nA: b\nA b: c\n\n", 3),
            ("HTTP/1.1 200 OK\nContent-Length: 4\n\nabc", 2),
            ("HTTP/1.1 200 OK\nContent-Length: +1\n\nabc", 2),
            ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n", 2),
        ] {
            assert_eq!(message(text.as_bytes()).map(|_| ()).map_err(|fault| fault.line), Err(line), "{text}");
        }
    }
}
