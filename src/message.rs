//! The head of an HTTP message: start line and field lines in order, in one buffer.
//!
//! A head owns its bytes in an append-only buffer and keeps spans into it. A connection reuses one
//! head for every request, so parsing allocates nothing once it is warm; an edit appends the new
//! bytes and moves a span, so what was received stays readable beside what rules made of it.

mod ahead;
mod reason;

pub use ahead::{Ahead, BodyWait};
pub use reason::reason;

/// A piece of a head's buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Span {
    start: u32,
    end: u32,
}

#[derive(Clone, Copy, Debug)]
struct FieldSpan {
    name: Span,
    value: Span,
}

/// One field line (RFC 9110 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// The name as received; compare it with [`Field::is`].
    pub name: &'a [u8],
    /// The value without surrounding blanks.
    pub value: &'a [u8],
}

impl Field<'_> {
    /// Whether this is the field `name`, in any case (RFC 9110 §5.1).
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }
}

/// The protocol version a message was received in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    #[default]
    Http11,
    /// HTTP/2.
    Http2,
}

/// How the end of a body is known (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Framing {
    /// There is no body.
    #[default]
    None,
    /// `Content-Length`, in bytes.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// The connection's end (responses only).
    UntilClose,
    /// The end of an HTTP/2 stream, no length announced.
    Stream,
}

/// Field lines in order of arrival, names in the case received.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    bytes: Vec<u8>,
    spans: Vec<FieldSpan>,
}

impl Fields {
    /// No fields; allocates nothing.
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), spans: Vec::new() }
    }

    /// Number of field lines.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there is no field line.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Every field line, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Field<'_>> + Clone {
        self.spans.iter().map(|span| Field { name: self.text(span.name), value: self.text(span.value) })
    }

    /// The values of the lines named `name`, in order, one for each line (lists are not split).
    pub fn all<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a [u8]> + Clone {
        self.iter().filter(move |field| field.is(name)).map(|field| field.value)
    }

    /// The value of the first line named `name`; `None` when there is none.
    pub fn first(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|field| field.is(name)).map(|field| field.value)
    }

    /// The value of the last line named `name`; `None` when there is none.
    pub fn last(&self, name: &str) -> Option<&[u8]> {
        self.iter().rev().find(|field| field.is(name)).map(|field| field.value)
    }

    /// Whether a line named `name` exists.
    pub fn has(&self, name: &str) -> bool {
        self.iter().any(|field| field.is(name))
    }

    /// The members of the list field `name` over all its lines, split at commas outside quotes,
    /// trimmed, empty ones left out (RFC 9110 §5.6.1).
    pub fn members<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.all(name).flat_map(members)
    }

    /// Adds a line at the end.
    pub fn append(&mut self, name: &[u8], value: &[u8]) {
        let name = push(&mut self.bytes, name);
        let value = push(&mut self.bytes, value);
        self.spans.push(FieldSpan { name, value });
    }

    /// Leaves exactly one line named `name`, where the first one stood or at the end.
    pub fn set(&mut self, name: &[u8], value: &[u8]) {
        let value = push(&mut self.bytes, value);
        let mut seen = false;
        let bytes = &self.bytes;
        self.spans.retain_mut(|span| {
            if !text(bytes, span.name).eq_ignore_ascii_case(name) {
                return true;
            }
            if !seen {
                span.value = value;
            }
            !std::mem::replace(&mut seen, true)
        });
        if !seen {
            let name = push(&mut self.bytes, name);
            self.spans.push(FieldSpan { name, value });
        }
    }

    /// Removes every line named `name`; returns how many there were.
    pub fn remove(&mut self, name: &[u8]) -> usize {
        let before = self.spans.len();
        self.retain(|field| !field.name.eq_ignore_ascii_case(name));
        before - self.spans.len()
    }

    /// Keeps the lines for which `keep` is true.
    pub fn retain(&mut self, mut keep: impl FnMut(Field<'_>) -> bool) {
        let bytes = &self.bytes;
        self.spans.retain(|span| keep(Field { name: text(bytes, span.name), value: text(bytes, span.value) }));
    }

    /// Gives each line named `name` the value that `edit` returns for its present one; `None` leaves it.
    pub fn rewrite(&mut self, name: &[u8], mut edit: impl FnMut(&[u8]) -> Option<Vec<u8>>) {
        for index in 0..self.spans.len() {
            let Some(span) = self.spans.get(index).copied() else { return };
            if !self.text(span.name).eq_ignore_ascii_case(name) {
                continue;
            }
            if let Some(value) = edit(self.text(span.value)) {
                let value = push(&mut self.bytes, &value);
                if let Some(span) = self.spans.get_mut(index) {
                    span.value = value;
                }
            }
        }
    }

    /// Bytes of heap this head holds.
    pub fn heap_bytes(&self) -> usize {
        self.bytes.capacity() + self.spans.capacity() * size_of::<FieldSpan>()
    }

    /// Gives unused room back; for heads that are kept.
    pub fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.spans.shrink_to_fit();
    }

    /// Makes room for so many lines and bytes more.
    pub fn reserve(&mut self, lines: usize, bytes: usize) {
        self.spans.reserve(lines);
        self.bytes.reserve(bytes);
    }

    /// Forgets every line and keeps the room for the next head.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }

    /// Copies the bytes of a whole head in, so that [`Fields::append_at`] can name pieces of it.
    /// Returns where they start: add it to offsets into `raw`.
    pub fn adopt(&mut self, raw: &[u8]) -> usize {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(raw);
        start
    }

    /// Adds a line whose name and value already stand in the buffer (see [`Fields::adopt`]).
    pub fn append_at(&mut self, name: std::ops::Range<usize>, value: std::ops::Range<usize>) {
        self.spans.push(FieldSpan { name: span(name), value: span(value) });
    }

    fn text(&self, span: Span) -> &[u8] {
        text(&self.bytes, span)
    }
}

impl<N: AsRef<[u8]>, V: AsRef<[u8]>> FromIterator<(N, V)> for Fields {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(lines: I) -> Self {
        let mut fields = Self::new();
        for (name, value) in lines {
            fields.append(name.as_ref(), value.as_ref());
        }
        fields
    }
}

/// The members of one list value: split at commas outside quoted strings, trimmed, empty ones left out.
pub fn members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(value);
    std::iter::from_fn(move || {
        while let Some(text) = rest {
            let (mut quoted, mut escaped) = (false, false);
            let comma = text.iter().position(|&byte| {
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' if quoted => escaped = true,
                    b'"' => quoted = !quoted,
                    b',' if !quoted => return true,
                    _ => {}
                }
                false
            });
            let member = match comma {
                Some(at) => {
                    rest = text.get(at + 1..);
                    text.get(..at).unwrap_or_default()
                }
                None => {
                    rest = None;
                    text
                }
            };
            let member = member.trim_ascii();
            if !member.is_empty() {
                return Some(member);
            }
        }
        None
    })
}

/// A request's head. `path` and `query` are what rules have made of them; `received_target` stays.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The version the client spoke.
    pub version: Version,
    /// How the end of the request's body is known.
    pub framing: Framing,
    /// The field lines; `Host` is always there, normalised, once the gateway has parsed the head.
    pub fields: Fields,
    /// Whether it is the first one of an HTTP/1 connection. As in HAProxy, HTTP/2 has no first request.
    pub is_first: bool,
    /// What was read of the body before the rules ran.
    pub ahead: Ahead,
    method: Span,
    received_method: Span,
    received: Span,
    received_host: Span,
    path: Span,
    query: Option<Span>,
}

impl Request {
    /// A request without fields. `target` is in origin form (`/path?query`) or `*`.
    pub fn new(method: &[u8], target: &[u8]) -> Self {
        let mut request = Self::default();
        request.start(method, target, target);
        request
    }

    /// Begins the next head in the same room: forgets everything, then takes the start line.
    /// `received` is the target as it came (any form), `origin_form` the path and query of it.
    pub fn start(&mut self, method: &[u8], received: &[u8], origin_form: &[u8]) {
        self.fields.clear();
        self.ahead = Ahead::default();
        self.framing = Framing::None;
        self.method = push(&mut self.fields.bytes, method);
        self.received_method = self.method;
        self.is_first = false;
        self.received = push(&mut self.fields.bytes, received);
        self.received_host = Span::default();
        let split = memchr::memchr(b'?', origin_form);
        let (path, query) = match split {
            Some(at) => (origin_form.get(..at).unwrap_or_default(), origin_form.get(at + 1..)),
            None => (origin_form, None),
        };
        self.path = push(&mut self.fields.bytes, path);
        self.query = query.map(|query| push(&mut self.fields.bytes, query));
    }

    /// The method, case-sensitive (RFC 9110 §9.1).
    pub fn method(&self) -> &[u8] {
        self.fields.text(self.method)
    }

    /// The method as the client sent it.
    pub fn received_method(&self) -> &[u8] {
        self.fields.text(self.received_method)
    }

    /// The request target as the client sent it, in whatever form (RFC 9112 §3.2).
    pub fn received_target(&self) -> &[u8] {
        self.fields.text(self.received)
    }

    /// The host as the client sent it, normalised; empty when there was none or nobody remembered it.
    pub fn received_host(&self) -> &[u8] {
        self.fields.text(self.received_host)
    }

    /// The path, from its first `/`; `*` for a server-wide OPTIONS.
    pub fn path(&self) -> &[u8] {
        self.fields.text(self.path)
    }

    /// The query without its `?`; `None` when there is no `?`.
    pub fn query(&self) -> Option<&[u8]> {
        self.query.map(|query| self.fields.text(query))
    }

    /// The normalised host, with its port unless that is the scheme's default; empty when there is none.
    pub fn host(&self) -> &[u8] {
        self.fields.first("host").unwrap_or_default()
    }

    /// Keeps the present Host as the one received; rules may then change it (see [`Request::write_url`]).
    pub fn remember_host(&mut self) {
        let host = self.fields.spans.iter().find(|span| self.fields.text(span.name).eq_ignore_ascii_case(b"host"));
        self.received_host = host.map_or_else(Span::default, |span| span.value);
    }

    /// Appends `scheme://host/path?query` as the client asked for it, before any rule: what purges name.
    pub fn write_url(&self, https: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(if https { b"https://" } else { b"http://" });
        out.extend_from_slice(self.fields.text(self.received_host));
        let received = self.received_target();
        let authority = memchr::memmem::find(received, b"://").map(|at| at + 3);
        let origin_form = match authority {
            Some(at) if !received.starts_with(b"/") => {
                let rest = received.get(at..).unwrap_or_default();
                rest.iter().position(|byte| matches!(byte, b'/' | b'?')).and_then(|at| rest.get(at..)).unwrap_or(b"/")
            }
            _ => received,
        };
        if !origin_form.starts_with(b"/") {
            out.push(b'/');
        }
        out.extend_from_slice(origin_form);
    }

    /// Changes the method.
    pub fn set_method(&mut self, method: &[u8]) {
        self.method = push(&mut self.fields.bytes, method);
    }

    /// Changes the path; the query stays.
    pub fn set_path(&mut self, path: &[u8]) {
        self.path = push(&mut self.fields.bytes, path);
    }

    /// Changes the query; `None` takes it away, `?` included.
    pub fn set_query(&mut self, query: Option<&[u8]>) {
        self.query = query.map(|query| push(&mut self.fields.bytes, query));
    }

    /// Appends the target in origin form, as it goes upstream.
    pub fn write_target(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.path());
        if let Some(query) = self.query() {
            out.push(b'?');
            out.extend_from_slice(query);
        }
    }

    /// Whether the method is GET or HEAD.
    pub fn is_get_or_head(&self) -> bool {
        matches!(self.method(), b"GET" | b"HEAD")
    }
}

/// Printable ASCII without what makes a target mean two things: `#` would begin a fragment, which is no
/// part of a request target; backslash, quotes and angle brackets are read in different ways by different
/// servers. Of the rest of what RFC 3986 keeps out of URIs, browsers send `{`, `|`, `}` and `^` in queries.
pub const fn is_target_byte(byte: u8) -> bool {
    matches!(byte, 0x21..=0x7e) && !matches!(byte, b'"' | b'#' | b'<' | b'>' | b'\\' | b'`')
}

/// A response's head.
#[derive(Clone, Debug, Default)]
pub struct Response {
    /// The version the server spoke.
    pub version: Version,
    /// The status code, 100 to 599.
    pub status: u16,
    /// How the end of the response's body is known.
    pub framing: Framing,
    /// The field lines.
    pub fields: Fields,
    /// A phrase that a rule or a file has given to a status; it counts while the status is that one.
    pub phrase: Option<(u16, Box<str>)>,
}

impl Response {
    /// A response without fields.
    pub fn new(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    /// The status's phrase (RFC 9110 §15), or the one that it was given; what servers say here is not kept.
    pub fn reason(&self) -> &str {
        match &self.phrase {
            Some((status, phrase)) if *status == self.status => phrase,
            _ => reason(self.status),
        }
    }

    /// Gives the present status a phrase of its own; an empty one is none.
    pub fn set_phrase(&mut self, phrase: &[u8]) {
        let own = !phrase.is_empty() && phrase != reason(self.status).as_bytes();
        self.phrase = own.then(|| (self.status, String::from_utf8_lossy(phrase).into()));
    }

    /// Whether a response of this status has no body, whatever its fields say (RFC 9112 §6.3).
    pub const fn is_bodyless(&self) -> bool {
        matches!(self.status, 100..=199 | 204 | 304)
    }

    /// Appends status line and field lines as HTTP/1.1 sends them, without the empty line that ends a head.
    pub fn write_lines(&self, out: &mut Vec<u8>) {
        let digit = |n: u16| b'0' + u8::try_from(n % 10).unwrap_or_default();
        out.extend_from_slice(b"HTTP/1.1 ");
        out.extend_from_slice(&[digit(self.status / 100), digit(self.status / 10), digit(self.status), b' ']);
        out.extend_from_slice(self.reason().as_bytes());
        out.extend_from_slice(b"\r\n");
        for field in self.fields.iter() {
            out.extend_from_slice(field.name);
            out.extend_from_slice(b": ");
            out.extend_from_slice(field.value);
            out.extend_from_slice(b"\r\n");
        }
    }
}

fn push(bytes: &mut Vec<u8>, piece: &[u8]) -> Span {
    let start = bytes.len();
    bytes.extend_from_slice(piece);
    span(start..bytes.len())
}

/// Offsets past 4 GiB saturate and then read as empty; the parsers refuse heads long before.
fn span(range: std::ops::Range<usize>) -> Span {
    let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    Span { start: offset(range.start), end: offset(range.end) }
}

fn text(bytes: &[u8], span: Span) -> &[u8] {
    bytes.get(span.start as usize..span.end as usize).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_leaves_one_line_where_the_first_stood() {
        let mut fields: Fields = [("A", "1"), ("b", "2"), ("a", "3")].into_iter().collect();
        fields.set(b"a", b"4");
        let lines: Vec<_> = fields.iter().map(|field| (field.name, field.value)).collect();
        assert_eq!(lines, [(&b"A"[..], &b"4"[..]), (b"b", b"2")]);
    }

    #[test]
    fn members_split_at_commas_outside_quotes() {
        let found: Vec<_> = members(b" a, \"b,\\\"c\" ,, d").collect();
        assert_eq!(found, [&b"a"[..], b"\"b,\\\"c\"", b"d"]);
    }

    #[test]
    fn the_url_is_what_the_client_asked_for() {
        let mut request = Request::default();
        request.start(b"GET", b"http://A.example?x", b"/?x");
        request.fields.append(b"Host", b"a.example");
        request.remember_host();
        request.fields.set(b"host", b"internal");
        request.set_path(b"/elsewhere");
        let mut url = Vec::new();
        request.write_url(true, &mut url);
        assert_eq!(url, b"https://a.example/?x");
    }

    #[test]
    fn an_edited_path_leaves_the_received_target() {
        let mut request = Request::new(b"GET", b"/a?b=1");
        request.set_path(b"/c");
        let mut target = Vec::new();
        request.write_target(&mut target);
        assert_eq!(target, b"/c?b=1");
        assert_eq!(request.received_target(), b"/a?b=1");
    }
}
