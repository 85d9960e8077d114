//! The bodies of `bench origin`: as long as ordered, unlike for other targets, without a buffer of their own.

use std::{
    io,
    pin::Pin,
    sync::LazyLock,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::{Checksum, Random};

/// Where bodies come from.
static BLOCK: LazyLock<Bytes> = LazyLock::new(|| {
    let mut random = Random::new(42);
    (0..8192).flat_map(|_| random.next().to_le_bytes()).collect()
});
/// A body: `left` bytes out of `block`, from `at` on, round and round.
#[derive(Clone, Debug, Default)]
pub(super) struct Script {
    block: Bytes,
    at: usize,
    left: u64,
    /// Breaks off when this many bytes are out.
    pub(super) breaks_at: Option<u64>,
    /// The head does not say how long it is.
    pub(super) chunked: bool,
}

impl Script {
    /// The body of a target: others begin elsewhere in the block.
    pub(super) fn of(target: &str, bytes: u64) -> Self {
        let mut sum = Checksum::default();
        sum.add(target.as_bytes());
        let at = usize::try_from(Random::new(sum.sums).next() % BLOCK.len() as u64).unwrap_or_default();
        Self { block: BLOCK.clone(), at, left: bytes, breaks_at: None, chunked: false }
    }

    /// A text as it is.
    pub(super) fn text(text: Bytes) -> Self {
        let left = text.len() as u64;
        Self { block: text, at: 0, left, breaks_at: None, chunked: false }
    }

    /// What it adds up to.
    pub(super) fn checksum(&self) -> Checksum {
        let (mut sum, mut rest) = (Checksum::default(), self.clone());
        while let Some(piece) = rest.piece(u64::MAX) {
            sum.add(&piece);
        }
        sum
    }

    /// The next bytes, at most `most`; `None` at the end.
    fn piece(&mut self, most: u64) -> Option<Bytes> {
        let room = self.block.len().saturating_sub(self.at);
        let length = usize::try_from(self.left.min(most)).unwrap_or(usize::MAX).min(room);
        if length == 0 {
            return None;
        }
        let piece = self.block.slice(self.at..self.at + length);
        self.at = if length == room { 0 } else { self.at + length };
        self.left -= length as u64;
        Some(piece)
    }
}

impl Body for Script {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let script = self.get_mut();
        if script.breaks_at == Some(0) && script.left > 0 {
            // What is out already must be on its way before the connection breaks.
            script.breaks_at = None;
            script.left = u64::MAX;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if script.left == u64::MAX {
            return Poll::Ready(Some(Err(io::Error::other("broken off, as ordered"))));
        }
        let piece = script.piece(script.breaks_at.unwrap_or(u64::MAX));
        if let (Some(rest), Some(piece)) = (&mut script.breaks_at, &piece) {
            *rest -= piece.len() as u64;
        }
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        if self.chunked { SizeHint::default() } else { SizeHint::with_exact(self.left) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll(script: &mut Script) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Pin::new(script).poll_frame(&mut Context::from_waker(std::task::Waker::noop()))
    }

    #[test]
    fn a_body_is_as_long_as_ordered_and_adds_up() {
        let mut script = Script::of("/bytes/200000", 200_000);
        let (want, mut sum, mut length) = (script.checksum(), Checksum::default(), 0);
        while let Poll::Ready(Some(Ok(frame))) = poll(&mut script) {
            let data = frame.into_data().unwrap();
            sum.add(&data);
            length += data.len();
        }
        assert_eq!((length, sum), (200_000, want));
        assert!(script.is_end_stream());
        assert_ne!(want, Script::of("/bytes/200000?x", 200_000).checksum());
    }

    #[test]
    fn a_body_breaks_off_where_ordered() {
        let mut script = Script::of("/", 1000);
        script.breaks_at = Some(10);
        assert_eq!(script.size_hint().exact(), Some(1000));
        let Poll::Ready(Some(Ok(frame))) = poll(&mut script) else { panic!("no first piece") };
        assert_eq!(frame.into_data().unwrap().len(), 10);
        assert!(poll(&mut script).is_pending(), "what is out gets time to leave");
        assert!(matches!(poll(&mut script), Poll::Ready(Some(Err(_)))));
    }
}
