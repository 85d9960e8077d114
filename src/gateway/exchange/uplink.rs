//! The body of a request on its way to a server, beside whatever the server says meanwhile.

use std::{
    collections::VecDeque,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use pingora::protocols::Stream;
use tokio::io::AsyncWrite;

use crate::{
    gateway::upload::{Broken, Upload},
    message::Framing,
};

/// Most slices in one write.
const SLICES: usize = 8;

/// Most bytes of a body that are kept for a second try.
pub(super) const MAX_KEPT: usize = 64 * 1024;

/// What becomes of a request's body.
#[derive(Debug)]
pub(super) struct Uplink {
    chunked: bool,
    state: State,
    /// What is not written yet.
    pending: VecDeque<Bytes>,
    unflushed: bool,
    /// Whether something has moved since it was last asked.
    moved: bool,
    broken: Option<Broken>,
    /// What was sent, for a second try; `None`: there is none.
    kept: Option<Kept>,
}

/// The beginning of a body.
#[derive(Debug, Default)]
struct Kept {
    pieces: Vec<Bytes>,
    size: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The client has not said everything.
    Open,
    /// All of it has been taken.
    Ended,
    /// No more is sent: the server takes nothing, or the client has broken off.
    Cut,
}

impl Uplink {
    /// That of a request framed so; nothing is to be sent when it has no body. `repeatable`: what was sent is kept for
    /// a second try as long as it is little.
    pub(super) fn new(framing: Framing, repeatable: bool) -> Self {
        let state = match framing {
            Framing::None | Framing::Length(0) => State::Ended,
            _ => State::Open,
        };
        let chunked = matches!(framing, Framing::Chunked | Framing::Stream | Framing::UntilClose);
        Self {
            chunked,
            state,
            pending: VecDeque::new(),
            unflushed: false,
            moved: false,
            broken: None,
            kept: repeatable.then(Kept::default),
        }
    }

    /// Whether nothing more will be sent.
    pub(super) fn is_over(&self) -> bool {
        match self.state {
            State::Open => false,
            State::Ended => self.is_clear(),
            State::Cut => true,
        }
    }

    /// Whether the server got everything.
    pub(super) fn is_whole(&self) -> bool {
        self.state == State::Ended && self.is_clear()
    }

    /// Whether it is the client's turn.
    pub(super) fn waits_for_client(&self) -> bool {
        self.state == State::Open && self.is_clear()
    }

    /// Whether something has moved since the last call.
    pub(super) const fn has_moved(&mut self) -> bool {
        std::mem::replace(&mut self.moved, false)
    }

    /// Why the client's body did not come; once.
    pub(super) const fn take_broken(&mut self) -> Option<Broken> {
        self.broken.take()
    }

    /// Sends no more.
    pub(super) fn cut(&mut self) {
        self.state = State::Cut;
        self.pending.clear();
    }

    /// Begins anew on another connection; whether that can be done.
    pub(super) fn again(&mut self) -> bool {
        let Some(kept) = self.kept.take() else { return false };
        (self.pending, self.unflushed) = (kept.pieces.into(), false);
        true
    }

    /// The server has begun to answer: there will be no second try.
    pub(super) fn settle(&mut self) {
        self.kept = None;
    }

    /// Sends what can be sent without waiting; ready when it is over. A server that takes nothing any more may
    /// still have answered, so that is no error.
    pub(super) fn poll<U: Upload>(
        &mut self,
        stream: &mut Stream,
        upload: &mut U,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        loop {
            if ready!(self.poll_write(stream, context)).is_err() {
                if self.kept.is_some() {
                    // The server's end is seen by whoever reads, and decides.
                    self.pending.clear();
                    return Poll::Ready(());
                }
                self.cut();
            }
            if self.state != State::Open {
                return Poll::Ready(());
            }
            match ready!(upload.poll_data(context)) {
                Ok(Some(data)) => self.push(data),
                Ok(None) => {
                    self.state = State::Ended;
                    if self.chunked {
                        self.send(Bytes::from_static(b"0\r\n\r\n"));
                    }
                }
                Err(broken) => {
                    self.broken = Some(broken);
                    self.cut();
                }
            }
            self.moved = true;
        }
    }

    fn push(&mut self, data: Bytes) {
        if !self.chunked {
            return self.send(data);
        }
        self.send(Bytes::from(format!("{:x}\r\n", data.len())));
        self.send(data);
        self.send(Bytes::from_static(b"\r\n"));
    }

    fn send(&mut self, piece: Bytes) {
        if let Some(kept) = &mut self.kept {
            kept.size += piece.len();
            kept.pieces.push(piece.clone());
        }
        self.kept = self.kept.take().filter(|kept| kept.size <= MAX_KEPT);
        self.pending.push_back(piece);
    }

    fn poll_write(&mut self, stream: &mut Stream, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.pending.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            for (slice, piece) in slices.iter_mut().zip(&self.pending) {
                *slice = IoSlice::new(piece);
            }
            let size = ready!(Pin::new(&mut *stream).poll_write_vectored(context, &slices))?;
            if size == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written(size);
            (self.unflushed, self.moved) = (true, true);
        }
        if self.unflushed {
            ready!(Pin::new(stream).poll_flush(context))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    fn written(&mut self, mut size: usize) {
        while let Some(piece) = self.pending.front_mut() {
            if size < piece.len() {
                piece.advance(size);
                return;
            }
            size -= piece.len();
            self.pending.pop_front();
        }
    }

    fn is_clear(&self) -> bool {
        self.pending.is_empty() && !self.unflushed
    }
}
