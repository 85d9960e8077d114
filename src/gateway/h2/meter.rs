//! Watches the frames of a connection on their way to the h2 crate.
//!
//! The crate bounds what floods cost in memory (resets waiting to be accepted, resets it had to send,
//! CONTINUATION, small and empty DATA, one pong and one SETTINGS acknowledgement at a time), but it
//! answers PING and SETTINGS without end. A budget here ends connections that send little else
//! (RFC 9113 §10.5).

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::Notify,
};

/// Control frames that may come at once.
const BURST: u64 = 2000;
/// Control frames that any connection may send a second.
const PER_SECOND: u64 = 50;
/// What a frame of a request allows beside it.
const PER_REQUEST_FRAME: u64 = 4;
/// Bytes sent that allow one more control frame: window updates follow them.
const BYTES_SENT: u64 = 1024;

const PREFACE: u32 = 24;
const FRAME_HEAD: u32 = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

/// What a [`Meter`] has seen, readable beside it.
#[derive(Debug)]
pub(super) struct Gauge {
    start: Instant,
    /// Milliseconds after `start` when a body's bytes last went out, or a stream ended.
    moved: AtomicU64,
    /// One more than the milliseconds after `start` when the header block began that has not ended yet; 0: none.
    begun: AtomicU64,
    /// Told when a header block has begun and not ended.
    pub(super) head: Notify,
    /// Bytes written.
    written: AtomicU64,
    /// Told when the budget is used up.
    pub(super) flood: Notify,
}

impl Gauge {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            start: Instant::now(),
            moved: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            head: Notify::new(),
            written: AtomicU64::new(0),
            flood: Notify::new(),
        })
    }

    /// How long no body has gone out and no stream has ended. Frames of other kinds change nothing: PING
    /// keeps no connection.
    pub(super) fn quiet(&self) -> Duration {
        self.start.elapsed().saturating_sub(Duration::from_millis(self.moved.load(Ordering::Relaxed)))
    }

    /// How long the header block that has not ended yet has taken; `None`: there is none.
    pub(super) fn head_age(&self) -> Option<Duration> {
        let begun = self.begun.load(Ordering::Relaxed).checked_sub(1)?;
        Some(self.start.elapsed().saturating_sub(Duration::from_millis(begun)))
    }

    /// Bytes that the socket has taken so far.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Takes note of a header block that has not ended, or that there is none. `fresh`: not the one of the
    /// last time.
    fn block(&self, open: bool, fresh: bool) {
        if !open {
            self.begun.store(0, Ordering::Relaxed);
        } else if fresh || self.begun.load(Ordering::Relaxed) == 0 {
            self.begun.store(self.now() + 1, Ordering::Relaxed);
            self.head.notify_one();
        }
    }

    /// A stream has ended, or a body moves.
    pub(super) fn moves(&self) {
        self.moved.store(self.now(), Ordering::Relaxed);
    }

    /// Milliseconds since the start.
    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Finds the frames in a stream of bytes.
#[derive(Debug, Default)]
struct Frames {
    /// Bytes to pass over: the preface, then each frame's payload.
    skip: u32,
    /// The type of the frame that `skip` is of.
    kind: u8,
    /// The last frame of a header block says that another one follows.
    unended: bool,
    /// The bytes of a frame's head so far, and how many.
    head: (u128, u32),
}

impl Frames {
    /// Takes `bytes`; calls `frame` with type and length at the end of each head. Whether any of them
    /// were of a body.
    fn take(&mut self, mut bytes: &[u8], mut frame: impl FnMut(u8, u32)) -> bool {
        let mut body = false;
        while !bytes.is_empty() {
            let skipped = bytes.len().min(self.skip as usize);
            body |= skipped > 0 && self.kind == DATA;
            self.skip = self.skip.saturating_sub(u32::try_from(skipped).unwrap_or(u32::MAX));
            bytes = bytes.get(skipped..).unwrap_or_default();
            if let Some((&byte, rest)) = bytes.split_first() {
                bytes = rest;
                self.head = (self.head.0 << 8 | u128::from(byte), self.head.1 + 1);
                if self.head.1 == FRAME_HEAD {
                    // 24 bits of length, 8 of type, then what does not matter here.
                    self.skip = u32::try_from(self.head.0 >> 48 & 0xff_ffff).unwrap_or_default();
                    self.kind = u8::try_from(self.head.0 >> 40 & 0xff).unwrap_or_default();
                    if matches!(self.kind, HEADERS | CONTINUATION) {
                        self.unended = self.head.0 >> 32 & u128::from(END_HEADERS) == 0;
                    }
                    self.head = (0, 0);
                    frame(self.kind, self.skip);
                }
            }
        }
        body
    }

    /// Whether a header block has begun and not ended.
    const fn is_in_block(&self) -> bool {
        self.unended || (self.skip > 0 && matches!(self.kind, HEADERS | CONTINUATION))
    }
}

/// A stream whose frames are measured.
#[derive(Debug)]
pub(super) struct Meter<IO> {
    io: IO,
    gauge: Arc<Gauge>,
    received: Frames,
    written: Frames,
    budget: u64,
    /// When the budget was last filled up, in milliseconds of the gauge.
    filled: u64,
    sent: u64,
}

impl<IO> Meter<IO> {
    pub(super) fn new(io: IO, gauge: Arc<Gauge>) -> Self {
        let received = Frames { skip: PREFACE, kind: u8::MAX, ..Frames::default() };
        Self { io, gauge, received, written: Frames::default(), budget: BURST, filled: 0, sent: 0 }
    }

    /// Takes the frames in `bytes` off the budget.
    fn measure(&mut self, bytes: &[u8]) {
        self.earn();
        let (budget, mut fresh) = (&mut self.budget, false);
        self.received.take(bytes, |kind, length| {
            fresh |= kind == HEADERS;
            *budget = if kind == HEADERS || (kind == DATA && length > 0) {
                (*budget + PER_REQUEST_FRAME).min(BURST)
            } else {
                budget.saturating_sub(1)
            };
        });
        self.gauge.block(self.received.is_in_block(), fresh);
    }

    /// Fills the budget up for the time that has passed and the bytes that were sent.
    fn earn(&mut self) {
        let now = self.gauge.now();
        let earned = (now - self.filled) * PER_SECOND / 1000;
        if earned > 0 {
            self.filled = now;
        }
        self.budget = (self.budget + earned + self.sent / BYTES_SENT).min(BURST);
        self.sent %= BYTES_SENT;
    }

    /// Takes note of the first `length` bytes of `slices`.
    fn wrote<'b>(&mut self, slices: impl IntoIterator<Item = &'b [u8]>, length: usize) {
        self.sent += length as u64;
        self.gauge.written.fetch_add(length as u64, Ordering::Relaxed);
        let mut left = length;
        let mut body = false;
        for slice in slices {
            let taken = slice.get(..left.min(slice.len())).unwrap_or_default();
            body |= self.written.take(taken, |_, _| {});
            left -= taken.len();
        }
        if body {
            self.gauge.moves();
        }
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for Meter<IO> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let meter = self.get_mut();
        if meter.budget == 0 {
            // Nothing more is read; the connection's loop says goodbye and closes.
            meter.gauge.flood.notify_one();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut meter.io).poll_read(context, buffer))?;
        meter.measure(buffer.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Meter<IO> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let meter = self.get_mut();
        let length = ready!(Pin::new(&mut meter.io).poll_write(context, bytes))?;
        meter.wrote([bytes], length);
        Poll::Ready(Ok(length))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let meter = self.get_mut();
        let length = ready!(Pin::new(&mut meter.io).poll_write_vectored(context, slices))?;
        meter.wrote(slices.iter().map(|slice| &**slice), length);
        Poll::Ready(Ok(length))
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, length: u8) -> Vec<u8> {
        [vec![0, 0, length, kind, 0, 0, 0, 0, 0], vec![7; usize::from(length)]].concat()
    }

    #[test]
    fn frames_are_found_however_they_are_cut() {
        let wire = [vec![0; 24], frame(6, 8), frame(4, 0), frame(HEADERS, 200), frame(DATA, 0)].concat();
        for size in [1, 2, 7, 9, 10, 300] {
            let mut meter = Meter::new((), Gauge::new());
            meter.budget = 100;
            wire.chunks(size).for_each(|bytes| meter.measure(bytes));
            assert_eq!(meter.budget, 100 - 1 - 1 + PER_REQUEST_FRAME - 1, "{size}");
        }
    }

    #[test]
    fn a_header_block_is_open_until_its_last_byte() {
        let open = |wire: &[u8]| {
            let mut meter = Meter::new((), Gauge::new());
            meter.measure(&[0; 24]);
            wire.chunks(3).for_each(|bytes| meter.measure(bytes));
            meter.gauge.head_age().is_some()
        };
        let ended = |kind: u8, length: u8| {
            let mut frame = frame(kind, length);
            frame[4] = END_HEADERS;
            frame
        };
        let whole = ended(HEADERS, 20);
        assert!(!open(&whole) && !open(&frame(DATA, 3)[..10]) && !open(&frame(6, 8)));
        assert!(!open(&[frame(HEADERS, 2), ended(CONTINUATION, 0)].concat()));
        assert!(open(&whole[..28]) && open(&frame(HEADERS, 0)) && open(&[whole, frame(HEADERS, 1)].concat()));
        assert!(open(&[frame(HEADERS, 2), frame(CONTINUATION, 2)].concat()));
        assert!(open(&[frame(HEADERS, 2), ended(CONTINUATION, 2)[..10].to_vec()].concat()));
    }

    #[test]
    fn a_flood_uses_the_budget_up_and_work_does_not() {
        let mut meter = Meter::new((), Gauge::new());
        meter.measure(&[0; 24]);
        for _ in 0..10 * BURST {
            meter.measure(&[frame(HEADERS, 1), frame(3, 4), frame(8, 4)].concat());
        }
        assert!(meter.budget > BURST / 2);
        meter.measure(&frame(6, 8).repeat(3000));
        assert_eq!(meter.budget, 0);
    }
}
