//! The demo: what a newcomer runs first.

use std::{
    io::{BufRead, BufReader},
    net::{TcpListener, TcpStream},
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use crate::harness::{
    Client, Place, eventually,
    gateway::{binary, send},
    peers,
};

/// The demo on ports of its own; stopped when dropped.
struct Demo {
    child: Child,
    ports: [u16; 2],
    _places: [Place; 2],
    stdout: BufReader<ChildStdout>,
}

impl Demo {
    fn start() -> Self {
        let places = [Place::hold(), Place::hold()];
        let ports = places.each_ref().map(|place| place.address.port());
        let mut command = binary();
        command.args(["demo", "--port", &ports[0].to_string(), "--admin-port", &ports[1].to_string()]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        for port in ports {
            eventually("the demo listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        }
        Self { child, ports, _places: places, stdout }
    }

    /// The lines to try that it has printed, up to `last`.
    fn lines_to_try(&mut self, last: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "it prints what to try: {lines:?}");
            if line.starts_with("  ") && !line.starts_with("   ") {
                lines.push(line.trim().to_owned());
            }
            if line.contains(last) {
                return lines;
            }
        }
    }

    fn client(&self) -> Client {
        Client::connect(([127, 0, 0, 1], self.ports[0]).into())
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_demo_shows_hits_and_misses_and_ends_with_ctrl_c() {
    let mut demo = Demo::start();
    let mut client = demo.client();
    let page = client.get_with("/", "Host: 127.0.0.1");
    assert_eq!((page.status, page.field("content-type").map(|kind| kind.starts_with("text/html"))), (200, Some(true)));
    for (path, start) in [("/photo.jpg", &b"\xff\xd8"[..]), ("/logo.png", b"\x89PNG")] {
        let first = client.get(path);
        assert!(first.status == 200 && first.body.starts_with(start), "{path}");
        assert!(client.get(path).is_hit(), "{path}");
    }
    for path in ["/api/time", "/login"] {
        client.get(path);
        assert!(!client.get(path).is_hit(), "{path}");
    }
    let begun = Instant::now();
    assert_eq!(client.get("/slow").status, 200);
    assert!(begun.elapsed() > Duration::from_secs(1));
    assert!(client.get("/slow").is_hit());
    send(demo.child.id(), libc::SIGINT);
    let begun = Instant::now();
    eventually("the demo ends", || demo.child.try_wait().unwrap().is_some());
    assert!(begun.elapsed() < Duration::from_secs(3));
}

#[test]
fn what_the_demo_says_to_try_works() {
    let Some([bash, _]) = peers::need("what the demo says to try", ["bash", "curl"]) else { return };
    let mut demo = Demo::start();
    let lines = demo.lines_to_try("/metrics");
    assert!(lines.len() >= 6, "{lines:?}");
    for line in lines {
        let line = line.replace("cargo run --release --", env!("CARGO_BIN_EXE_tidegate"));
        let output = Command::new(&bash).args(["-o", "pipefail", "-c", &line]).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success() && !output.stdout.is_empty(), "{line}: {output:?}");
    }
}

#[test]
fn a_port_in_use_is_said_before_anything_starts() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = crate::harness::gateway::run(&["demo", "--port", &port, "--admin-port", "1"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains(&port) && error.contains("--port"), "{error}");
}
