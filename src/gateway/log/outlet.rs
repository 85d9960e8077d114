//! Where lines go. Each place has a number for as long as the process lives; configurations find theirs again.

use std::{
    io::{self, Write},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    os::unix::net::UnixDatagram,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::config::{LogSample, LogTarget};

/// The places that any configuration has named.
#[derive(Debug, Default)]
pub struct Outlets(Mutex<Vec<LogTarget>>);

impl Outlets {
    /// The number of a place.
    pub fn number(&self, target: &LogTarget) -> u16 {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = known.iter().position(|one| one == target).unwrap_or_else(|| {
            known.push(target.clone());
            known.len() - 1
        });
        u16::try_from(at).unwrap_or(u16::MAX)
    }

    fn at(&self, number: u16) -> Option<LogTarget> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(usize::from(number)).cloned()
    }
}

/// A `log` line at run time.
#[derive(Debug)]
pub struct Outlet {
    /// The number of its place.
    pub number: u16,
    /// Lines that it was asked to take.
    asked: AtomicU64,
}

impl Outlet {
    /// The outlet of a place.
    pub const fn new(number: u16) -> Self {
        Self { number, asked: AtomicU64::new(0) }
    }

    /// Whether the line at hand is one of its sample.
    pub(super) fn takes(&self, sample: Option<&LogSample>) -> bool {
        let Some(sample) = sample else { return true };
        let turn = self.asked.fetch_add(1, Ordering::Relaxed) % sample.size.max(1) + 1;
        sample.ranges.iter().any(|range| range.contains(&turn))
    }
}

/// How long a log server may keep the writer waiting for one line.
const PATIENCE: Duration = Duration::from_millis(200);

/// What the writer has open.
pub(super) struct Doors<W: Write> {
    stderr: io::BufWriter<W>,
    stdout: io::BufWriter<io::Stdout>,
    v4: Option<UdpSocket>,
    v6: Option<UdpSocket>,
    unix: Option<UnixDatagram>,
    /// By number.
    known: Vec<LogTarget>,
}

impl<W: Write> Doors<W> {
    pub(super) fn new(stderr: W) -> Self {
        Self {
            stderr: io::BufWriter::new(stderr),
            stdout: io::BufWriter::new(io::stdout()),
            v4: None,
            v6: None,
            unix: None,
            known: Vec::new(),
        }
    }

    /// Sends a line to a place; `false` when it is lost.
    pub(super) fn send(&mut self, outlets: &Outlets, number: u16, line: &[u8]) -> bool {
        while self.known.len() <= usize::from(number) {
            let Some(next) = u16::try_from(self.known.len()).ok().and_then(|next| outlets.at(next)) else {
                return false;
            };
            self.known.push(next);
        }
        let sent = match self.known.get(usize::from(number)) {
            Some(LogTarget::Stderr) => self.stderr.write_all(line),
            Some(LogTarget::Stdout) => self.stdout.write_all(line),
            Some(LogTarget::Udp(address)) => {
                let address = *address;
                self.udp(address).and_then(|socket| socket.send_to(line, address).map(drop))
            }
            Some(LogTarget::Unix(path)) => {
                let path = path.clone();
                self.unix().and_then(|socket| socket.send_to(line, path).map(drop))
            }
            None => return false,
        };
        sent.is_ok()
    }

    /// Hands on what was put together.
    pub(super) fn flush(&mut self) {
        // A stream that fails loses its lines: nobody is left to tell.
        let _ = self.stderr.flush();
        let _ = self.stdout.flush();
    }

    fn udp(&mut self, to: SocketAddr) -> io::Result<&UdpSocket> {
        let (place, any): (_, SocketAddr) = match to {
            SocketAddr::V4(_) => (&mut self.v4, (Ipv4Addr::UNSPECIFIED, 0).into()),
            SocketAddr::V6(_) => (&mut self.v6, (Ipv6Addr::UNSPECIFIED, 0).into()),
        };
        opened(place, || {
            let socket = UdpSocket::bind(any)?;
            socket.set_write_timeout(Some(PATIENCE))?;
            Ok(socket)
        })
    }

    fn unix(&mut self) -> io::Result<&UnixDatagram> {
        opened(&mut self.unix, || {
            let socket = UnixDatagram::unbound()?;
            socket.set_write_timeout(Some(PATIENCE))?;
            Ok(socket)
        })
    }
}

fn opened<T>(place: &mut Option<T>, open: impl FnOnce() -> io::Result<T>) -> io::Result<&T> {
    let made = match place.take() {
        Some(there) => there,
        None => open()?,
    };
    Ok(place.insert(made))
}
