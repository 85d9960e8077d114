//! The way of a line from the worker that writes it to the thread that sends it.

use std::{
    io::{self, Write},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{JoinHandle, Thread},
    time::Duration,
};

use bumpalo::Bump;

use super::outlet::{Doors, Outlets};
use crate::metrics::Metrics;

/// Bytes of lines that a worker may have waiting; more lines are dropped and counted.
const BACKLOG: usize = 2 << 20;
/// How long the writer sleeps at most.
const NAP: Duration = Duration::from_secs(1);
/// What stands before a line that waits: the number of its outlet, its length.
const MARK: usize = 6;

/// Takes the lines of one worker. Copies of it have one room.
#[derive(Clone, Debug)]
pub struct AccessLog(Option<Ours>);

#[derive(Clone, Debug)]
struct Ours {
    queue: Arc<Queue>,
    handle: Arc<Handle>,
}

/// The thread that writes; it ends when the last [`AccessLog`] is gone.
#[derive(Debug)]
pub struct LogWriter(Option<JoinHandle<()>>);

/// One worker's lines. Its lock is contended by the writer alone, which holds it for a swap.
#[derive(Debug, Default)]
struct Queue(Mutex<Room>);

/// Room for lines; it is kept from line to line.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// The line at hand.
    pub(super) line: Vec<u8>,
    /// Its structured data.
    pub(super) structured: Vec<u8>,
    /// Room for what is made for it.
    pub(super) arena: Bump,
    waiting: Vec<u8>,
    lost: u64,
}

impl Room {
    /// Has `write` append a whole line for an outlet, from the line at hand and its structured data.
    pub(super) fn put(&mut self, outlet: u16, write: impl FnOnce(&[u8], &[u8], &mut Vec<u8>)) {
        let Self { line, structured, waiting, lost, .. } = self;
        let start = waiting.len();
        if start + line.len() > BACKLOG {
            *lost += 1;
            return;
        }
        waiting.extend_from_slice(&outlet.to_le_bytes());
        waiting.extend_from_slice(&[0; MARK - 2]);
        write(line, structured, waiting);
        let len = u32::try_from(waiting.len() - start - MARK).unwrap_or_default();
        if let Some(mark) = waiting.get_mut(start + 2..start + MARK) {
            mark.copy_from_slice(&len.to_le_bytes());
        }
    }
}

/// What the workers and the writer share.
#[derive(Debug)]
struct Desk {
    queues: Mutex<Vec<Arc<Queue>>>,
    outlets: Arc<Outlets>,
    writer: OnceLock<Thread>,
    asleep: AtomicBool,
    closed: AtomicBool,
    dropped: AtomicU64,
    metrics: Arc<Metrics>,
}

/// Its end is the end of the log.
#[derive(Debug)]
struct Handle(Arc<Desk>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::SeqCst);
        if let Some(writer) = self.0.writer.get() {
            writer.unpark();
        }
    }
}

impl AccessLog {
    /// A log that drops everything.
    pub const fn off() -> Self {
        Self(None)
    }

    /// A log whose lines for standard error go to `stderr`; lines that are dropped are counted in `metrics`.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(
        stderr: impl Write + Send + 'static,
        outlets: Arc<Outlets>,
        metrics: Arc<Metrics>,
    ) -> io::Result<(Self, LogWriter)> {
        let desk = Arc::new(Desk {
            queues: Mutex::default(),
            outlets,
            writer: OnceLock::new(),
            asleep: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            dropped: AtomicU64::new(0),
            metrics,
        });
        let writing = desk.clone();
        let thread = std::thread::Builder::new().name("log".into()).spawn(move || writing.write(Doors::new(stderr)))?;
        // The first to say so; nobody else does.
        let _ = desk.writer.set(thread.thread().clone());
        let handle = Arc::new(Handle(desk));
        Ok((Self(Some(Ours::new(handle))), LogWriter(Some(thread))))
    }

    /// The log of another worker.
    #[must_use]
    pub fn another(&self) -> Self {
        Self(self.0.as_ref().map(|ours| Ours::new(ours.handle.clone())))
    }

    /// Lends the worker's room, and tells the writer.
    pub(super) fn with_room(&self, work: impl FnOnce(&mut Room)) {
        let Some(Ours { queue, handle }) = &self.0 else { return };
        work(&mut queue.room());
        let desk = &handle.0;
        if desk.asleep.swap(false, Ordering::SeqCst)
            && let Some(writer) = desk.writer.get()
        {
            writer.unpark();
        }
    }

    /// Lines dropped so far, as far as the writer knows.
    pub fn dropped(&self) -> u64 {
        self.0.as_ref().map_or(0, |ours| ours.handle.0.dropped.load(Ordering::Relaxed))
    }
}

impl Ours {
    fn new(handle: Arc<Handle>) -> Self {
        let queue = Arc::<Queue>::default();
        handle.0.queues().push(queue.clone());
        Self { queue, handle }
    }
}

impl LogWriter {
    /// Waits until everything is written; every [`AccessLog`] must be gone.
    pub fn join(mut self) {
        if let Some(thread) = self.0.take() {
            // A writer that panicked has nothing left to write.
            let _ = thread.join();
        }
    }
}

impl Queue {
    fn room(&self) -> MutexGuard<'_, Room> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Desk {
    fn queues(&self) -> MutexGuard<'_, Vec<Arc<Queue>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writer's life: it sends what waits, and sleeps when nothing does.
    fn write(&self, mut doors: Doors<impl Write>) {
        let mut taken = Vec::new();
        loop {
            let closed = self.closed.load(Ordering::SeqCst);
            if self.send(&mut doors, &mut taken) {
                continue;
            }
            if closed {
                return;
            }
            // Whoever adds a line from here on wakes the writer; what came just before is seen now.
            self.asleep.store(true, Ordering::SeqCst);
            if !self.send(&mut doors, &mut taken) {
                std::thread::park_timeout(NAP);
            }
            self.asleep.store(false, Ordering::SeqCst);
        }
    }

    /// Sends what waits in all rooms; whether there was anything.
    fn send(&self, doors: &mut Doors<impl Write>, taken: &mut Vec<u8>) -> bool {
        let queues: Vec<_> = {
            let mut queues = self.queues();
            // A worker that has gone has taken its last line to its room.
            queues.retain(|queue| Arc::strong_count(queue) > 1 || !queue.room().waiting.is_empty());
            queues.clone()
        };
        let mut any = false;
        for queue in queues {
            taken.clear();
            let lost = {
                let mut room = queue.room();
                std::mem::swap(&mut room.waiting, taken);
                std::mem::take(&mut room.lost)
            };
            any |= !taken.is_empty();
            let lost = lost + self.send_all(doors, taken);
            if lost > 0 {
                self.dropped.fetch_add(lost, Ordering::Relaxed);
                self.metrics.process().log_lines_dropped.add(lost);
            }
        }
        if any {
            doors.flush();
        }
        any
    }

    /// Sends lines; returns how many are lost.
    fn send_all(&self, doors: &mut Doors<impl Write>, mut lines: &[u8]) -> u64 {
        let mut lost = 0;
        while let Some(([low, high, mark @ ..], rest)) = lines.split_first_chunk::<MARK>() {
            let len = usize::try_from(u32::from_le_bytes(*mark)).unwrap_or(usize::MAX);
            let (line, after) = rest.split_at_checked(len).unwrap_or((rest, b""));
            lost += u64::from(!doors.send(&self.outlets, u16::from_le_bytes([*low, *high]), line));
            lines = after;
        }
        lost
    }
}
