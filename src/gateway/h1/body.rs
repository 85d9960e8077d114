//! Request bodies: where they end and what is in them (RFC 9112 §6 and §7.1).

use bytes::{Buf, Bytes, BytesMut};

use super::parse::Refusal;
use crate::message::Framing;

/// Longest chunk size line, extensions included, in bytes.
const MAX_SIZE_LINE: usize = 1024;

/// Pieces below this are put together when they have arrived together.
const GATHER_BELOW: usize = 16 * 1024;

/// Longest trailer section, in bytes.
const MAX_TRAILERS: usize = 16 * 1024;

/// Decodes one request body. Trailers are read over and dropped, chunk extensions too.
#[derive(Debug)]
pub struct Body {
    state: State,
}

#[derive(Debug)]
enum State {
    Length(u64),
    Size,
    Chunk(u64),
    ChunkEnd,
    Trailers(usize),
    Raw,
    Broken,
    Done,
}

/// What a look at the bytes at hand gives.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// A piece of the body, never empty.
    Data(Bytes),
    /// More bytes are needed.
    More,
    /// The body is complete.
    End,
}

const BAD_CHUNK: Refusal = Refusal::new(400, "bad chunk");

impl Body {
    /// A body with this framing.
    pub const fn new(framing: Framing) -> Self {
        let state = match framing {
            Framing::Length(0) | Framing::None => State::Done,
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Size,
            Framing::UntilClose | Framing::Stream => State::Raw,
        };
        Self { state }
    }

    /// Whether everything has been read.
    pub const fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Whether at most `limit` bytes are left, as far as the framing says.
    pub const fn is_within(&self, limit: u64) -> bool {
        !matches!(self.state, State::Length(left) if left > limit)
    }

    /// Says that nothing more comes.
    pub const fn finish(&mut self) {
        self.state = State::Done;
    }

    /// Takes the next piece from the front of `inbox`.
    ///
    /// # Errors
    /// 400 for chunked framing that is not exactly RFC 9112 §7.1: what one parser overlooks and another
    /// reads is how requests are smuggled.
    pub fn step(&mut self, inbox: &mut BytesMut) -> Result<Step, Refusal> {
        let step = self.advance(inbox);
        if step.is_err() {
            // What follows a mistake has no meaning, however well it reads.
            self.state = State::Broken;
        }
        step
    }

    /// As [`Body::step`]; small chunks that have arrived together come as one piece.
    ///
    /// # Errors
    /// As for [`Body::step`].
    pub fn gather(&mut self, inbox: &mut BytesMut) -> Result<Step, Refusal> {
        let first = match self.step(inbox)? {
            Step::Data(first) if first.len() < GATHER_BELOW && !inbox.is_empty() => first,
            step => return Ok(step),
        };
        let mut whole = BytesMut::new();
        // A mistake behind a piece is found again by the next step.
        while let Ok(Step::Data(next)) = self.step(inbox) {
            if whole.is_empty() {
                whole.extend_from_slice(&first);
            }
            whole.extend_from_slice(&next);
            if whole.len() >= GATHER_BELOW {
                break;
            }
        }
        Ok(Step::Data(if whole.is_empty() { first } else { whole.freeze() }))
    }

    /// Bytes that a read may take for this body: what is left of it, as far as its framing says, at most `most`.
    pub fn room(&self, most: usize) -> usize {
        match self.state {
            State::Length(left) => usize::try_from(left).unwrap_or(most).min(most),
            _ => most,
        }
    }

    fn advance(&mut self, inbox: &mut BytesMut) -> Result<Step, Refusal> {
        loop {
            match self.state {
                State::Done => return Ok(Step::End),
                State::Broken => return Err(BAD_CHUNK),
                _ if inbox.is_empty() => return Ok(Step::More),
                State::Raw => return Ok(Step::Data(inbox.split().freeze())),
                State::Length(left) => {
                    let (data, left) = take(inbox, left);
                    self.state = if left == 0 { State::Done } else { State::Length(left) };
                    return Ok(Step::Data(data));
                }
                State::Chunk(left) => {
                    let (data, left) = take(inbox, left);
                    self.state = if left == 0 { State::ChunkEnd } else { State::Chunk(left) };
                    return Ok(Step::Data(data));
                }
                State::ChunkEnd => match inbox.get(..2) {
                    Some(b"\r\n") => {
                        inbox.advance(2);
                        self.state = State::Size;
                    }
                    None if inbox.first() == Some(&b'\r') => return Ok(Step::More),
                    _ => return Err(BAD_CHUNK),
                },
                State::Size => {
                    let Some(line) = line(inbox, MAX_SIZE_LINE)? else { return Ok(Step::More) };
                    self.state = match size(&line)? {
                        0 => State::Trailers(0),
                        size => State::Chunk(size),
                    };
                }
                State::Trailers(before) => {
                    let Some(line) = line(inbox, MAX_TRAILERS)? else { return Ok(Step::More) };
                    let total = before + line.len() + 2;
                    self.state = match () {
                        () if line.is_empty() => State::Done,
                        () if total > MAX_TRAILERS || !is_field_line(&line) => return Err(BAD_CHUNK),
                        () => State::Trailers(total),
                    };
                }
            }
        }
    }
}

/// Up to `left` bytes from the front, and what is left of `left`.
fn take(inbox: &mut BytesMut, left: u64) -> (Bytes, u64) {
    let size = usize::try_from(left).unwrap_or(usize::MAX).min(inbox.len());
    (inbox.split_to(size).freeze(), left - size as u64)
}

/// The next line without its CRLF; a bare CR or LF in it is an error.
fn line(inbox: &mut BytesMut, limit: usize) -> Result<Option<Bytes>, Refusal> {
    let Some(end) = memchr::memchr(b'\n', inbox) else {
        return if inbox.len() > limit { Err(BAD_CHUNK) } else { Ok(None) };
    };
    let mut line = inbox.split_to(end + 1).freeze();
    line.truncate(end);
    match line.split_last() {
        Some((b'\r', rest)) if rest.len() <= limit && !rest.contains(&b'\r') => {
            line.truncate(end - 1);
            Ok(Some(line))
        }
        _ => Err(BAD_CHUNK),
    }
}

/// `chunk-size [ chunk-ext ]` (RFC 9112 §7.1.1); extensions are not looked into.
fn size(line: &[u8]) -> Result<u64, Refusal> {
    let digits = line.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(line.len());
    let (digits, rest) = line.split_at_checked(digits).ok_or(BAD_CHUNK)?;
    let extension = rest.trim_ascii_start();
    let well_formed = rest.is_empty() || extension.first() == Some(&b';');
    if digits.is_empty() || digits.len() > 16 || !well_formed || rest.iter().any(|&byte| is_control(byte)) {
        return Err(BAD_CHUNK);
    }
    let text = std::str::from_utf8(digits).map_err(|_| BAD_CHUNK)?;
    u64::from_str_radix(text, 16).map_err(|_| BAD_CHUNK)
}

fn is_field_line(line: &[u8]) -> bool {
    let colon = memchr::memchr(b':', line).unwrap_or(0);
    let (name, value) = line.split_at_checked(colon).unwrap_or_default();
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !name.is_empty() && name.iter().all(is_token) && !value.iter().any(|&byte| is_control(byte))
}

const fn is_control(byte: u8) -> bool {
    byte.is_ascii_control() && byte != b'\t'
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything `wire` decodes to, fed `step` bytes at a time, and what is left over.
    fn decode(framing: Framing, wire: &[u8], step: usize) -> Result<(Vec<u8>, bool, Vec<u8>), Refusal> {
        let (mut body, mut inbox, mut data) = (Body::new(framing), BytesMut::new(), Vec::new());
        let mut rest = wire.chunks(step);
        loop {
            match body.step(&mut inbox)? {
                Step::Data(piece) => data.extend_from_slice(&piece),
                Step::End => break,
                Step::More => match rest.next() {
                    Some(piece) => inbox.extend_from_slice(piece),
                    None => break,
                },
            }
        }
        rest.for_each(|piece| inbox.extend_from_slice(piece));
        Ok((data, body.is_done(), inbox.to_vec()))
    }

    #[test]
    fn bodies_end_where_they_say() {
        for step in [1, 2, 3, 100] {
            let got = decode(Framing::Length(3), b"abcGET", step);
            assert_eq!(got, Ok((b"abc".to_vec(), true, b"GET".to_vec())));
            let got = decode(Framing::Length(5), b"abc", step);
            assert_eq!(got, Ok((b"abc".to_vec(), false, Vec::new())));
            let got = decode(Framing::None, b"GET", step);
            assert_eq!(got, Ok((Vec::new(), true, b"GET".to_vec())));
            let got = decode(Framing::Chunked, b"3\r\nabc\r\n00A;q=\"1\"\r\n0123456789\r\n0\r\nX: 1\r\n\r\nGET", step);
            assert_eq!(got, Ok((b"abc0123456789".to_vec(), true, b"GET".to_vec())));
            let got = decode(Framing::Chunked, b"1 ;a\r\nx\r\n000\r\n\r\n", step);
            assert_eq!(got, Ok((b"x".to_vec(), true, Vec::new())));
        }
    }

    #[test]
    fn chunked_framing_is_read_to_the_letter() {
        for wire in [
            &b"4;z\nabcd\r\n0\r\n\r\n"[..],
            b"4\r\r;q\nabcd\r\n0\r\n\r\n",
            b"4\nabcd\n0\n\n",
            b"3\r\nabc\r\n\r\n0\r\n\r\n",
            b"3\r\nabcd\r\n0\r\n\r\n",
            b"3\r\nabc\n0\r\n\r\n",
            b"3\r\nabc0\r\n\r\n",
            b"\r\n0\r\n\r\n",
            b"g\r\n",
            b"0x3\r\nabc\r\n",
            b"+3\r\nabc\r\n",
            b"-3\r\nabc\r\n",
            b" 3\r\nabc\r\n",
            b"3 \r\nabc\r\n",
            b"3_\r\nabc\r\n",
            b"3;a\x00\r\nabc\r\n",
            b"10000000000000000\r\n",
            b"00000000000000003\r\nabc\r\n",
            b";a\r\n",
            b"0\r\nX\r\n\r\n",
            b"0\r\n: 1\r\n\r\n",
            b"0\r\nX : 1\r\n\r\n",
            b"0\r\nX: a\rb\r\n\r\n",
            b"0\r\nX: 1\n\r\n",
            b"0\r\n\n",
        ] {
            for step in [1, 100] {
                assert_eq!(decode(Framing::Chunked, wire, step).err(), Some(BAD_CHUNK), "{}", wire.escape_ascii());
            }
        }
    }

    #[test]
    fn nothing_is_read_after_a_mistake() {
        let (mut body, mut inbox) = (Body::new(Framing::Chunked), BytesMut::from(&b"\r\n0\r\n\r\n"[..]));
        assert_eq!(body.step(&mut inbox), Err(BAD_CHUNK));
        assert_eq!(body.step(&mut inbox), Err(BAD_CHUNK));
    }

    #[test]
    fn small_chunks_that_arrive_together_are_one_piece() {
        let gathered = |wire: &[u8]| {
            let (mut body, mut inbox) = (Body::new(Framing::Chunked), BytesMut::from(wire));
            (body.gather(&mut inbox), body.is_done(), inbox.to_vec(), body.gather(&mut inbox))
        };
        let piece = |text: &'static str| Ok(Step::Data(Bytes::from_static(text.as_bytes())));
        let next = b"GET".to_vec();
        assert_eq!(gathered(b"1\r\na\r\n2\r\nbc\r\n0\r\n\r\nGET"), (piece("abc"), true, next, Ok(Step::End)));
        assert_eq!(gathered(b"1\r\na\r\n2\r\nb"), (piece("ab"), false, Vec::new(), Ok(Step::More)));
        let (first, done, _, then) = gathered(b"1\r\na\r\nzz\r\n");
        assert_eq!((first, done, then), (piece("a"), false, Err(BAD_CHUNK)));
        let many = b"1\r\nx\r\n".repeat(2 * GATHER_BELOW);
        assert!(matches!(gathered(&many).0, Ok(Step::Data(data)) if data.len() == GATHER_BELOW));
    }

    #[test]
    fn endless_lines_are_cut() {
        let size = [&b"1;"[..], &[b'a'; MAX_SIZE_LINE]].concat();
        assert_eq!(decode(Framing::Chunked, &size, 100).err(), Some(BAD_CHUNK));
        let trailers = [&b"0\r\n"[..], &b"X: 1\r\n".repeat(MAX_TRAILERS / 4)].concat();
        assert_eq!(decode(Framing::Chunked, &trailers, 100).err(), Some(BAD_CHUNK));
    }
}
