//! A body as it grows.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::cache::object::{Body, count};

/// Pieces are put together until they are this long, so that small bodies end as one chunk.
const CHUNK: u64 = 64 << 10;

/// What has been received and is still wanted, found by offset.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    /// Each with the offset of its first byte.
    chunks: VecDeque<(u64, Bytes)>,
    end: u64,
    /// How many chunks at the front own exactly their bytes; those behind may be slices of larger buffers.
    sealed: usize,
    /// Bytes of those behind.
    loose: u64,
}

impl Pieces {
    /// The chunks of a complete body.
    pub(super) fn of(body: &Body) -> Self {
        let mut pieces = Self::default();
        for chunk in &body.chunks {
            pieces.push(chunk.clone());
        }
        pieces.sealed = pieces.chunks.len();
        pieces.loose = 0;
        pieces
    }

    pub(super) fn push(&mut self, data: Bytes) {
        let len = count(data.len());
        self.chunks.push_back((self.end, data));
        self.end = self.end.saturating_add(len);
        self.loose = self.loose.saturating_add(len);
    }

    /// Seals what is loose once it is long enough; for bodies that are kept.
    pub(super) fn settle(&mut self) {
        if self.loose >= CHUNK {
            self.seal();
        }
    }

    /// Copies what is loose into one chunk of its own: what is kept must not hold the buffers it came in.
    pub(super) fn seal(&mut self) {
        if self.loose == 0 {
            return;
        }
        let start = self.end - self.loose;
        let mut whole = Vec::with_capacity(usize::try_from(self.loose).unwrap_or_default());
        for (_, data) in self.chunks.drain(self.sealed..) {
            whole.extend_from_slice(&data);
        }
        self.chunks.push_back((start, whole.into()));
        self.sealed = self.chunks.len();
        self.loose = 0;
    }

    /// The bytes from `offset` on, as far as they are in one piece; `None` when there are none yet.
    pub(super) fn at(&self, offset: u64) -> Option<Bytes> {
        let after = self.chunks.partition_point(|(start, _)| *start <= offset);
        let (start, data) = self.chunks.get(after.checked_sub(1)?)?;
        let skip = usize::try_from(offset - start).ok()?;
        (skip < data.len()).then(|| data.slice(skip..))
    }

    /// Lets go of the pieces that lie wholly before `offset`; returns how many bytes are left.
    pub(super) fn trim(&mut self, offset: u64) -> u64 {
        while let Some((start, data)) = self.chunks.front()
            && start.saturating_add(count(data.len())) <= offset
        {
            if self.sealed > 0 {
                self.sealed -= 1;
            } else {
                self.loose = self.loose.saturating_sub(count(data.len()));
            }
            self.chunks.pop_front();
        }
        self.chunks.front().map_or(0, |(start, _)| self.end - start)
    }

    /// Everything, as a body.
    pub(super) fn body(&self) -> Body {
        Body { chunks: self.chunks.iter().map(|(_, data)| data.clone()).collect(), len: self.end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &Pieces, mut offset: u64) -> Vec<u8> {
        let mut out = Vec::new();
        while let Some(data) = pieces.at(offset) {
            offset += count(data.len());
            out.extend_from_slice(&data);
        }
        out
    }

    #[test]
    fn every_offset_reads_the_same_before_and_after_sealing() {
        let mut pieces = Pieces::default();
        for piece in ["ab", "c", "def"] {
            pieces.push(Bytes::from(piece));
        }
        for sealed in [false, true] {
            for offset in 0..=6 {
                assert_eq!(read(&pieces, offset), &b"abcdef"[usize::try_from(offset).expect("small")..], "{sealed}");
            }
            pieces.seal();
        }
        assert_eq!(pieces.body().chunks.len(), 1);
        assert!(pieces.at(6).is_none());
        pieces.push(Bytes::from("g"));
        assert_eq!(read(&pieces, 5), b"fg");
    }

    #[test]
    fn trimming_keeps_what_is_ahead() {
        let mut pieces = Pieces::default();
        for piece in ["ab", "cd", "ef"] {
            pieces.push(Bytes::from(piece));
        }
        assert_eq!(pieces.trim(3), 4);
        assert_eq!(read(&pieces, 3), b"def");
        assert_eq!(pieces.trim(6), 0);
    }
}
