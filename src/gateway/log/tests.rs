use std::{
    io::{self, Write},
    net::UdpSocket,
    os::unix::net::UnixDatagram,
    sync::{Arc, Mutex},
    time::Instant,
};

use super::*;
use crate::config::{LogSample, LogTarget};

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

fn write(log: &AccessLog, outlet: u16, text: &str) {
    log.with_room(|room| room.put(outlet, |_, _, out| out.extend_from_slice(text.as_bytes())));
}

#[test]
fn lines_are_written_in_order_and_too_many_are_counted() {
    let (shelf, metrics, outlets) =
        (Shelf::default(), Arc::<crate::metrics::Metrics>::default(), Arc::<Outlets>::default());
    let stderr = outlets.number(&LogTarget::Stderr);
    let held = shelf.0.lock().unwrap();
    let (log, writer) = AccessLog::start(shelf.clone(), outlets, metrics.clone()).unwrap();
    let other = log.another();
    let long = "x".repeat(1000);
    for number in 0..8_000 {
        write(&log, stderr, &format!("{number} {long}\n"));
    }
    drop(held);
    write(&other, stderr, "another worker\n");
    drop((log, other));
    writer.join();
    let text = String::from_utf8(shelf.0.lock().unwrap().clone()).unwrap();
    let (ours, others): (Vec<_>, Vec<_>) = text.lines().partition(|line| line.ends_with('x'));
    assert_eq!(others, ["another worker"]);
    let numbers: Vec<u64> = ours.iter().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect();
    assert!(numbers.is_sorted() && numbers.starts_with(&[0, 1, 2]));
    let dropped = metrics.process().log_lines_dropped.get();
    assert!(dropped > 0);
    assert_eq!(numbers.len() as u64 + dropped, 8_000);
}

#[test]
fn lines_go_to_sockets_of_every_kind() {
    let (outlets, dir) = (Arc::<Outlets>::default(), tempfile::tempdir().unwrap());
    let (udp, path) = (UdpSocket::bind("127.0.0.1:0").unwrap(), dir.path().join("log"));
    let unix = UnixDatagram::bind(&path).unwrap();
    let targets =
        [LogTarget::Udp(udp.local_addr().unwrap()), LogTarget::Unix(path), LogTarget::Unix("/nowhere/log".into())];
    let numbers = targets.each_ref().map(|target| outlets.number(target));
    assert_eq!(outlets.number(&targets[1]), numbers[1]);
    let metrics = Arc::<crate::metrics::Metrics>::default();
    let (log, writer) = AccessLog::start(io::sink(), outlets, metrics.clone()).unwrap();
    for number in numbers {
        write(&log, number, "a line\n");
    }
    let mut room = [0; 100];
    udp.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    unix.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    assert_eq!(udp.recv(&mut room).map(|size| room[..size].to_vec()).unwrap(), b"a line\n");
    assert_eq!(unix.recv(&mut room).map(|size| room[..size].to_vec()).unwrap(), b"a line\n");
    drop(log);
    writer.join();
    assert_eq!(metrics.process().log_lines_dropped.get(), 1);
}

#[test]
fn a_sample_takes_its_share() {
    let outlet = outlet::Outlet::new(0);
    let sample = LogSample { ranges: vec![1..=1, 3..=4], size: 5 };
    let taken: Vec<_> = (0..10).map(|_| outlet.takes(Some(&sample))).collect();
    assert_eq!(taken, [true, false, true, true, false, true, false, true, true, false]);
}

#[test]
fn how_exchanges_end() {
    let plan = |connect, response| {
        let mut plan = Plan {
            frontend: Id::new(0),
            backend: None,
            now: crate::time::Timestamp::default(),
            started: Instant::now(),
            vars: crate::rule::Vars::default(),
            notes: crate::rule::Notes::default(),
            hit: None,
            unlogged: false,
            route: Route::Pass(super::super::plan::Bypass::NoRule),
        };
        let progress = &mut plan.notes.progress;
        (progress.queue, progress.connect, progress.response) = (Some(0), connect, response);
        plan
    };
    let nothing = plan(None, None);
    let (reached, answered) = (plan(Some(1), None), plan(Some(1), Some(1)));
    let gone = Some(CLIENT_GONE);
    for (outcome, reason, plan, expected, error) in [
        (Outcome::Pass, Some("no-rule"), &answered, "--", false),
        (Outcome::Miss, Some("uri-miss"), &answered, "--", false),
        (Outcome::Hit, None, &nothing, "LR", false),
        (Outcome::Answered, None, &nothing, "LR", false),
        (Outcome::Refused, None, &nothing, "PR", true),
        (Outcome::Refused, Some("head-timeout"), &nothing, "cR", true),
        (Outcome::Error, Some("connect"), &nothing, "SC", true),
        (Outcome::Error, None, &nothing, "SC", true),
        (Outcome::Error, Some("truncated"), &reached, "SH", true),
        (Outcome::Error, Some("truncated"), &answered, "SD", true),
        (Outcome::Error, Some("timeout"), &reached, "sH", true),
        (Outcome::Error, Some("timeout"), &answered, "sD", true),
        (Outcome::Error, Some("protocol"), &reached, "PH", true),
        (Outcome::Miss, gone, &nothing, "CC", true),
        (Outcome::Pass, gone, &reached, "CH", true),
        (Outcome::Pass, gone, &answered, "CD", true),
    ] {
        let ending = Ending { status: 200, outcome, reason, rule: None };
        let state = ending.state(plan);
        assert_eq!(
            (std::str::from_utf8(&state), ending.is_error(state)),
            (Ok(expected), error),
            "{outcome:?} {reason:?}"
        );
    }
}
