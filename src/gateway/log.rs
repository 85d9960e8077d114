//! What is written down about a request that has ended: its counters and its line in the access log.

use std::{
    fmt::Write as _,
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use super::{
    clock,
    plan::{Plan, Route},
    snapshot::Snapshot,
};
use crate::{
    config::{CacheRule, Id},
    message::{Request, Version},
    metrics::{Metrics, Outcome},
    rule::{
        Client,
        track::{Event, Tracks},
    },
    time::Timestamp,
};

/// Lines that may wait for the writer; more are dropped and counted.
const BACKLOG: usize = 8 * 1024;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The status sent; 0 when the client left before any.
    pub status: u16,
    /// How it is counted.
    pub outcome: Outcome,
    /// Why it was no hit, when it was none.
    pub reason: Option<&'static str>,
    /// The caching rule it is counted under; `None`: no rule was for it.
    pub rule: Option<Id<CacheRule>>,
}

/// The reason of a request whose connection a rule closed.
pub const CLOSED: &str = "closed-by-rule";

/// The reason of a request that a response rule answered.
pub const RESPONSE_RULE: &str = "response-rule";

/// The reason of a request whose client did not wait for the end.
pub const CLIENT_GONE: &str = "client-gone";

impl Ending {
    /// The client left before it got a status: the request counts as what it was to be.
    pub fn client_gone(plan: &Plan) -> Self {
        let outcome = match &plan.route {
            Route::Answer(_, outcome) => *outcome,
            Route::Purge { .. } => Outcome::Purge,
            Route::Fetch(_) => Outcome::Miss,
            Route::Pass(_) => Outcome::Pass,
            Route::Tarpit { .. } | Route::Close { .. } => Outcome::Refused,
        };
        Self { status: 0, outcome, reason: Some(CLIENT_GONE), rule: plan.rule() }
    }
}

/// What a request took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes received for it, framing included.
    pub received: u64,
    /// Bytes sent for it, framing included.
    pub sent: u64,
    /// From its head's last byte to its response's last byte.
    pub duration: Duration,
}

/// The request's part of a log line, kept while the request itself moves on.
pub type Line = Option<Box<str>>;

/// Counts a request's end and logs it when `line` is there.
pub fn settle(snapshot: &Snapshot, plan: &Plan, line: &Line, ending: &Ending, traffic: Traffic, log: &AccessLog) {
    if let Some(state) = snapshot.frontend_state(plan.frontend) {
        state.requests(ending.rule).count(ending.outcome, ending.reason);
        state.metrics.duration.observe(traffic.duration);
    }
    if let Some(state) = plan.backend.and_then(|id| snapshot.backend_state(id)) {
        state.metrics.left.add(1);
    }
    if let Some(tracks) = &plan.notes.tracks {
        count(tracks, ending, traffic);
    }
    if let Some(line) = line.as_ref().filter(|_| !plan.unlogged) {
        log.write(format(line, snapshot, plan, ending, traffic));
    }
}

/// Counts a request's end for what it is tracked by; its own tracking ends.
fn count(tracks: &Tracks, ending: &Ending, traffic: Traffic) {
    let now = clock::now().as_millis();
    // What servers answer was counted when it came; that none could be reached is no failure of one (HAProxy manual
    // §7.3.2, `http_fail_cnt`).
    if ending.outcome == Outcome::Error && matches!(ending.reason, Some("timeout" | "protocol" | "truncated")) {
        tracks.count(Event::Failure, now);
    }
    for event in [Event::Received(traffic.received), Event::Sent(traffic.sent)] {
        tracks.count(event, now);
    }
    tracks.end(now);
}

/// The client's and the request's part of a log line.
pub fn line(client: &Client, request: &Request) -> Line {
    let mut text = String::new();
    match client.src {
        Some(source) => push(&mut text, format_args!("{source}\t")),
        None => text.push_str("unix\t"),
    }
    push_bytes(&mut text, request.method());
    text.push(' ');
    if request.received_target().starts_with(b"/") {
        push_bytes(&mut text, request.host());
    }
    push_bytes(&mut text, request.received_target());
    text.push_str(match request.version {
        Version::Http10 => " HTTP/1.0",
        Version::Http11 => " HTTP/1.1",
        Version::Http2 => " HTTP/2",
    });
    Some(text.into())
}

/// `client [date] frontend backend ms status received sent outcome reason "request"`.
fn format(line: &str, snapshot: &Snapshot, plan: &Plan, ending: &Ending, traffic: Traffic) -> String {
    let (client, request) = line.split_once('\t').unwrap_or(("-", line));
    let frontend = snapshot.frontend(plan.frontend).map_or("-", |frontend| &frontend.name);
    let backend = plan.backend.and_then(|id| snapshot.backend(id)).map_or("-", |backend| &backend.name);
    let mut text = String::with_capacity(160);
    push(
        &mut text,
        format_args!(
            "{client} [{}] {frontend} {backend} {} {} {} {} {} {} \"{request}\"\n",
            Date(plan.now),
            traffic.duration.as_millis(),
            ending.status,
            traffic.received,
            traffic.sent,
            ending.outcome.as_str(),
            ending.reason.unwrap_or("-"),
        ),
    );
    text
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    let written = text.write_fmt(arguments);
    debug_assert!(written.is_ok(), "a String takes everything");
}

/// Appends what a client sent so that it cannot end the line or the quotes.
fn push_bytes(text: &mut String, bytes: &[u8]) {
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => push(text, format_args!("\\{}", char::from(byte))),
            0x20..=0x7e => text.push(char::from(byte)),
            _ => push(text, format_args!("\\x{byte:02x}")),
        }
    }
}

/// `30/Nov/2026:22:20:52.123 +0000`.
struct Date(Timestamp);

impl std::fmt::Display for Date {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seconds = self.0.as_secs();
        let (year, month, day) = civil(seconds / 86_400);
        let name = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let name = usize::try_from(month - 1).ok().and_then(|at| name.get(at)).unwrap_or(&"-");
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        let millis = self.0.as_millis() % 1000;
        write!(out, "{day:02}/{name}/{year}:{hour:02}:{minute:02}:{second:02}.{millis:03} +0000")
    }
}

/// Year, month (1 to 12) and day of a day counted from 1970-01-01, in the proleptic Gregorian
/// calendar: years begin in March, so that the leap day is their last.
fn civil(days: u64) -> (u64, u64, u64) {
    let from_march_of_year_0 = days + 719_468;
    let (era, day) = (from_march_of_year_0 / 146_097, from_march_of_year_0 % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, day_of_month)
}

/// Takes lines from every thread and writes them in one of its own.
#[derive(Clone, Debug)]
pub struct AccessLog {
    lines: Option<SyncSender<String>>,
    dropped: Arc<AtomicU64>,
    metrics: Option<Arc<Metrics>>,
}

/// The thread that writes; it ends when the last [`AccessLog`] is gone.
#[derive(Debug)]
pub struct LogWriter(Option<JoinHandle<()>>);

impl AccessLog {
    /// A log that drops everything.
    pub fn off() -> Self {
        Self { lines: None, dropped: Arc::default(), metrics: None }
    }

    /// A log that writes to `out`; lines that are dropped are counted in `metrics`.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn to(out: impl Write + Send + 'static, metrics: Arc<Metrics>) -> io::Result<(Self, LogWriter)> {
        let (lines, waiting) = sync_channel(BACKLOG);
        let dropped = Arc::new(AtomicU64::new(0));
        let counted = dropped.clone();
        let thread = std::thread::Builder::new().name("log".into()).spawn(move || write(&waiting, out, &counted))?;
        Ok((Self { lines: Some(lines), dropped, metrics: Some(metrics) }, LogWriter(Some(thread))))
    }

    /// Hands a line (with its line end) over; it is dropped and counted when the writer is too far behind.
    pub fn write(&self, line: String) {
        if let Some(lines) = &self.lines
            && lines.try_send(line).is_err()
        {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            if let Some(metrics) = &self.metrics {
                metrics.process().log_lines_dropped.add(1);
            }
        }
    }

    /// Lines dropped since the writer last said so.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
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

/// Writes lines, flushing whenever none waits. A sink that fails loses them: nobody is left to tell.
fn write(lines: &Receiver<String>, out: impl Write, dropped: &AtomicU64) {
    let mut out = io::BufWriter::new(out);
    while let Ok(line) = lines.recv() {
        let mut next = Some(line);
        while let Some(line) = next {
            let _ = out.write_all(line.as_bytes());
            next = lines.try_recv().ok();
        }
        match dropped.swap(0, Ordering::Relaxed) {
            0 => {}
            count => {
                let _ = writeln!(out, "{count} access log lines dropped");
            }
        }
        let _ = out.flush();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn dates() {
        for (millis, expected) in [
            (0, "01/Jan/1970:00:00:00.000 +0000"),
            (951_782_400_000, "29/Feb/2000:00:00:00.000 +0000"),
            (1_709_251_199_999, "29/Feb/2024:23:59:59.999 +0000"),
            (4_107_542_400_000, "01/Mar/2100:00:00:00.000 +0000"),
        ] {
            assert_eq!(Date(Timestamp::from_millis(millis)).to_string(), expected);
        }
    }

    #[test]
    fn a_client_cannot_forge_a_line() {
        let request = Request::new(b"G\"ET", b"/a\n\\b\xe9");
        assert_eq!(line(&Client::default(), &request).as_deref(), Some("unix\tG\\\"ET /a\\x0a\\\\b\\xe9 HTTP/1.1"));
    }

    #[derive(Clone, Default)]
    struct Shelf(Arc<Mutex<Vec<u8>>>);

    impl Write for Shelf {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_are_written_in_order_and_too_many_are_counted() {
        let shelf = Shelf::default();
        let held = shelf.0.lock().unwrap();
        let (log, writer) = AccessLog::to(shelf.clone(), Arc::default()).unwrap();
        for number in 0..BACKLOG * 2 {
            log.write(format!("{number}\n"));
        }
        assert!(log.dropped() > 0);
        drop((held, log));
        writer.join();
        let text = String::from_utf8(shelf.0.lock().unwrap().clone()).unwrap();
        assert!(text.starts_with("0\n1\n2\n") && text.ends_with("access log lines dropped\n"), "{text}");
    }
}
