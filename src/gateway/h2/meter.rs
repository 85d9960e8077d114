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

/// What a [`Meter`] has seen, readable beside it.
#[derive(Debug)]
pub(super) struct Gauge {
    start: Instant,
    /// Milliseconds after `start` when bytes last moved.
    moved: AtomicU64,
    /// Told when the budget is used up.
    pub(super) flood: Notify,
}

impl Gauge {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { start: Instant::now(), moved: AtomicU64::new(0), flood: Notify::new() })
    }

    /// How long no byte has moved.
    pub(super) fn quiet(&self) -> Duration {
        self.start.elapsed().saturating_sub(Duration::from_millis(self.moved.load(Ordering::Relaxed)))
    }

    fn moves(&self) -> u64 {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.moved.store(now, Ordering::Relaxed);
        now
    }
}

/// A stream whose reads are measured.
#[derive(Debug)]
pub(super) struct Meter<IO> {
    io: IO,
    gauge: Arc<Gauge>,
    /// Bytes to pass over: the preface, then each frame's payload.
    skip: u32,
    /// The bytes of a frame's head so far, and how many.
    head: (u128, u32),
    budget: u64,
    /// When the budget was last filled up, in milliseconds of the gauge.
    filled: u64,
    sent: u64,
}

impl<IO> Meter<IO> {
    pub(super) fn new(io: IO, gauge: Arc<Gauge>) -> Self {
        Self { io, gauge, skip: PREFACE, head: (0, 0), budget: BURST, filled: 0, sent: 0 }
    }

    /// Takes the frames in `bytes` off the budget.
    fn measure(&mut self, mut bytes: &[u8]) {
        self.earn();
        while !bytes.is_empty() {
            let skipped = bytes.len().min(self.skip as usize);
            self.skip = self.skip.saturating_sub(u32::try_from(skipped).unwrap_or(u32::MAX));
            bytes = bytes.get(skipped..).unwrap_or_default();
            if let Some((&byte, rest)) = bytes.split_first() {
                bytes = rest;
                self.head = (self.head.0 << 8 | u128::from(byte), self.head.1 + 1);
                if self.head.1 == FRAME_HEAD {
                    self.frame();
                }
            }
        }
    }

    /// A frame's head is complete: 24 bits of length, 8 of type, then what does not matter here.
    fn frame(&mut self) {
        let length = u32::try_from(self.head.0 >> 48 & 0xff_ffff).unwrap_or_default();
        let kind = u8::try_from(self.head.0 >> 40 & 0xff).unwrap_or_default();
        self.head = (0, 0);
        self.skip = length;
        if kind == HEADERS || (kind == DATA && length > 0) {
            self.budget = (self.budget + PER_REQUEST_FRAME).min(BURST);
        } else {
            self.budget = self.budget.saturating_sub(1);
        }
    }

    /// Fills the budget up for the time that has passed and the bytes that were sent.
    fn earn(&mut self) {
        let now = self.gauge.moves();
        let earned = (now - self.filled) * PER_SECOND / 1000;
        if earned > 0 {
            self.filled = now;
        }
        self.budget = (self.budget + earned + self.sent / BYTES_SENT).min(BURST);
        self.sent %= BYTES_SENT;
    }

    fn wrote(&mut self, length: usize) {
        self.sent += length as u64;
        self.gauge.moves();
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
        meter.wrote(length);
        Poll::Ready(Ok(length))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let meter = self.get_mut();
        let length = ready!(Pin::new(&mut meter.io).poll_write_vectored(context, slices))?;
        meter.wrote(length);
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
