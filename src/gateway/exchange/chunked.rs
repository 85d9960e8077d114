//! The chunked coding, read strictly (RFC 9112 §7.1): hexadecimal size, CRLF, nothing else is guessed.

use bytes::{Buf, BytesMut};

use super::head::{self, Scan};
use crate::message::Fields;

/// Longest line of a chunk's size and extensions, in bytes.
const MAX_LINE: usize = 1024;
/// Largest trailer section, in bytes.
const MAX_TRAILERS: usize = 16 << 10;

/// Takes a chunked body apart as it arrives.
#[derive(Debug)]
pub(super) struct Decoder {
    state: State,
}

#[derive(Debug)]
enum State {
    Size,
    /// Bytes left of a chunk.
    Data(u64),
    /// The CRLF after a chunk's data.
    DataEnd,
    Trailers(Scan),
}

/// What a buffer begins with.
#[derive(Debug)]
pub(super) enum Step {
    /// Too little to say.
    More,
    /// So many bytes of the body; the caller takes them before the next step.
    Data(usize),
    /// The end, taken off the buffer.
    End(Option<Fields>),
}

impl Decoder {
    pub(super) const fn new() -> Self {
        Self { state: State::Size }
    }

    /// Takes framing off `buffer`, up to `limit` bytes of the body or the end.
    ///
    /// # Errors
    /// Framing that is not exactly the grammar's, or beyond the limits.
    pub(super) fn step(&mut self, buffer: &mut BytesMut, limit: usize) -> Result<Step, &'static str> {
        loop {
            match &mut self.state {
                State::Size => {
                    let Some(size) = take_size(buffer)? else { return Ok(Step::More) };
                    self.state = if size == 0 { State::Trailers(Scan::default()) } else { State::Data(size) };
                }
                State::Data(0) => self.state = State::DataEnd,
                State::Data(_) if buffer.is_empty() => return Ok(Step::More),
                State::Data(left) => {
                    let length = usize::try_from(*left).unwrap_or(usize::MAX).min(buffer.len()).min(limit);
                    *left = left.saturating_sub(length as u64);
                    return Ok(Step::Data(length));
                }
                State::DataEnd => match buffer.get(..2) {
                    Some(b"\r\n") => {
                        buffer.advance(2);
                        self.state = State::Size;
                    }
                    None if buffer.is_empty() || buffer.starts_with(b"\r") => return Ok(Step::More),
                    _ => return Err("a chunk longer than its size"),
                },
                State::Trailers(scan) => {
                    let Some(end) = scan.end(buffer)?.filter(|&end| end <= MAX_TRAILERS) else {
                        if buffer.len() > MAX_TRAILERS {
                            return Err("trailers of more than 16 KiB");
                        }
                        return Ok(Step::More);
                    };
                    let section = buffer.split_to(end);
                    let fields = if end == 2 { Fields::new() } else { head::parse_trailers(&section)? };
                    return Ok(Step::End(Some(fields).filter(|fields| !fields.is_empty())));
                }
            }
        }
    }
}

/// Takes a size line off `buffer`; `None`: it is not whole yet. Extensions are dropped.
fn take_size(buffer: &mut BytesMut) -> Result<Option<u64>, &'static str> {
    let within = buffer.get(..MAX_LINE.min(buffer.len())).unwrap_or_default();
    let Some(end) = memchr::memchr(b'\n', within) else {
        return if buffer.len() >= MAX_LINE { Err("a chunk's size line of more than 1 KiB") } else { Ok(None) };
    };
    let line = within.get(..end).and_then(|line| line.strip_suffix(b"\r"));
    let line = line.ok_or("a chunk's size line that ends without CR")?;
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (digits, extensions) = line.split_at_checked(digits).unwrap_or_default();
    let mut size = 0_u64;
    for &digit in digits {
        let digit = u64::from(char::from(digit).to_digit(16).unwrap_or_default());
        size = size.checked_mul(16).ok_or("a chunk's size beyond 64 bits")? + digit;
    }
    let extended = extensions.trim_ascii_start().starts_with(b";");
    let clean = !extensions.iter().any(|&byte| byte.is_ascii_control() && byte != b'\t');
    if digits.is_empty() || !(extensions.is_empty() || (extended && clean)) {
        return Err("an invalid chunk size");
    }
    buffer.advance(end + 1);
    Ok(Some(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(wire: &[u8]) -> Result<(Vec<u8>, bool), &'static str> {
        let mut buffer = BytesMut::from(wire);
        let (mut decoder, mut body) = (Decoder::new(), Vec::new());
        loop {
            match decoder.step(&mut buffer, usize::MAX)? {
                Step::Data(length) => body.extend_from_slice(&buffer.split_to(length)),
                Step::More => return Ok((body, false)),
                Step::End(_) => return Ok((body, true)),
            }
        }
    }

    #[test]
    fn sizes_in_either_case_and_extensions_are_read() {
        let wire = b"a\r\n0123456789\r\n0A;name=\"v;w\"\r\n0123456789\r\n1 ; x\r\nz\r\n000\r\n\r\n";
        assert_eq!(decode(wire), Ok((b"01234567890123456789z".to_vec(), true)));
    }

    #[test]
    fn every_prefix_is_incomplete() {
        let wire = b"3\r\nabc\r\n4;x\r\ndefg\r\n0\r\nX-Sum: 1\r\n\r\n";
        for end in 0..wire.len() {
            assert!(matches!(decode(&wire[..end]), Ok((_, false))), "cut at {end}");
        }
        assert!(matches!(decode(wire), Ok((_, true))));
    }

    #[test]
    fn doubtful_framing_is_refused() {
        let wires: &[&[u8]] = &[
            b"\r\n",
            b"3\nabc\r\n0\r\n\r\n",
            b"3\r\nabcd\r\n0\r\n\r\n",
            b"3\r\nabc\n0\r\n\r\n",
            b"3\r\nabc\r\n\r\n0\r\n\r\n",
            b"4;z\nabcd\r\n0\r\n\r\n",
            b"4\r\r;q\nabcd\r\n",
            b"4;a\rb\r\nabcd\r\n",
            b"4 \r\nabcd\r\n",
            b" 4\r\nabcd\r\n",
            b"+4\r\nabcd\r\n",
            b"0x4\r\nabcd\r\n",
            b"-1\r\n",
            b"11111111111111111\r\n",
            b"0\r\nX: a\nY: b\r\n\r\n",
            b"0\r\n X: a\r\n\r\n",
            b"0\r\nX : a\r\n\r\n",
            b"g\r\n",
        ];
        for wire in wires {
            assert!(decode(wire).is_err(), "{}", wire.escape_ascii());
        }
        assert!(decode(&[b'1'; MAX_LINE]).is_err());
        assert!(decode(&[&b"0\r\nX: "[..], &[b'a'; MAX_TRAILERS]].concat()).is_err());
    }
}
