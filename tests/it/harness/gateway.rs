//! The gateway as users run it: a process with a rule file.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::{Arc, Condvar, Mutex, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::{client::Client, deadline::LIMIT, deadline::eventually, metrics::Metrics, response::Response};

/// How the gateway says on stderr where a frontend and the admin listener are.
const LISTENING: &str = "listening on ";
const FRONTEND: &str = " (frontend ";
const ADMIN: &str = "admin on ";

/// A running gateway. Dropping it ends the process.
pub struct Gateway {
    child: Child,
    stderr: Arc<Stderr>,
    rules: PathBuf,
    dir: TempDir,
}

#[derive(Default)]
struct Stderr {
    lines: Mutex<Vec<String>>,
    changed: Condvar,
}

/// The binary under test.
pub fn binary() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tidegate"))
}

/// Runs the binary to its end, which must come by itself.
pub fn run(args: &[&str]) -> Output {
    run_in(Path::new("."), args)
}

/// As [`run`], in this folder.
pub fn run_in(folder: &Path, args: &[&str]) -> Output {
    let mut command = binary();
    command.current_dir(folder);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let pid = child.id();
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait_with_output().unwrap()));
    receiver.recv_timeout(LIMIT).unwrap_or_else(|_| {
        send(pid, libc::SIGKILL);
        panic!("{args:?} does not end: {:?}", receiver.recv());
    })
}

/// Sends a signal to a child that has not been waited for.
pub fn send(pid: u32, signal: libc::c_int) {
    let pid = libc::pid_t::try_from(pid).unwrap();
    #[expect(unsafe_code, reason = "the standard library can only kill")]
    // SAFETY: the pid is that of a child which has not been waited for.
    let sent = unsafe { libc::kill(pid, signal) };
    assert_eq!(sent, 0);
}

impl Gateway {
    /// Starts it with this rule file and waits until every `bind` of it listens.
    pub fn start(rules: &str) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), rules)
    }

    /// As [`Gateway::start`], with the rule file in `dir`, where it may name files.
    pub fn start_in(dir: TempDir, rules: &str) -> Self {
        Self::start_as(binary(), dir, rules)
    }

    /// As [`Gateway::start`], under a limit of descriptors: what `ulimit -n` takes.
    pub fn start_limited(limit: &str, rules: &str) -> Self {
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("ulimit {limit} && exec \"$0\" \"$@\"")).arg(binary().get_program());
        Self::start_as(command, tempfile::tempdir().unwrap(), rules)
    }

    fn start_as(mut command: Command, dir: TempDir, rules: &str) -> Self {
        let rules = with_front_switch(rules);
        let path = dir.path().join("site.cfg");
        fs::write(&path, &rules).unwrap();
        command.arg("run").arg("-f").arg(&path).current_dir(dir.path());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = Arc::new(Stderr::default());
        let (pipe, shared) = (child.stderr.take().unwrap(), Arc::clone(&stderr));
        thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                shared.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
                shared.changed.notify_all();
            }
        });
        let gateway = Self { child, stderr, rules: path, dir };
        gateway.wait_listening(&rules);
        gateway
    }

    fn wait_listening(&self, rules: &str) {
        let binds = rules.lines().filter(|line| line.trim_start().starts_with("bind ")).count();
        let heard =
            |lines: &[String]| lines.iter().filter(|line| line.contains(LISTENING) || line.contains(ADMIN)).count();
        self.wait_lines("every bind listens", |lines| heard(lines) >= binds);
    }

    fn wait_lines(&self, what: &str, holds: impl Fn(&[String]) -> bool) {
        let lines = self.stderr.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let (lines, timeout) =
            self.stderr.changed.wait_timeout_while(lines, LIMIT, |lines| !holds(lines.as_slice())).unwrap();
        assert!(!timeout.timed_out(), "waited in vain: {what}; stderr:\n{}", lines.join("\n"));
    }

    /// Waits until a line on stderr contains `text`.
    pub fn wait_stderr(&self, text: &str) {
        self.wait_lines(text, |lines| lines.iter().any(|line| line.contains(text)));
    }

    /// What it has written to stderr.
    pub fn stderr(&self) -> String {
        self.stderr.lines.lock().unwrap_or_else(PoisonError::into_inner).join("\n")
    }

    /// Where the frontend `web` listens.
    pub fn address(&self) -> SocketAddr {
        self.frontend("web")
    }

    /// Where this frontend listens (its first bind).
    pub fn frontend(&self, name: &str) -> SocketAddr {
        let frontends = self.frontends(name);
        *frontends.first().unwrap_or_else(|| panic!("a frontend {name}; stderr:\n{}", self.stderr()))
    }

    /// Where this frontend listens, newest line last.
    pub fn frontends(&self, name: &str) -> Vec<SocketAddr> {
        let lines = self.stderr.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let suffix = format!("{FRONTEND}{name})");
        lines.iter().filter(|line| line.contains(&suffix)).filter_map(|line| address_after(line, LISTENING)).collect()
    }

    /// Where the admin listener is.
    pub fn admin(&self) -> SocketAddr {
        let lines = self.stderr.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().find_map(|line| address_after(line, ADMIN)).expect("an admin listener")
    }

    /// A new connection to the frontend `web`.
    pub fn client(&self) -> Client {
        Client::connect(self.address())
    }

    /// GET on a new connection.
    pub fn get(&self, path: &str) -> Response {
        self.client().get(path)
    }

    /// A call of the admin API.
    pub fn api(&self, method: &str, path: &str, json: &str) -> Response {
        Client::connect(self.admin()).request(
            method,
            path,
            "Host: 127.0.0.1\nContent-Type: application/json",
            json.as_bytes(),
        )
    }

    /// Purges; how many objects went.
    pub fn purge(&self, json: &str) -> u64 {
        let reply = self.api("POST", "/v1/purge", json);
        assert_eq!(reply.status, 200, "{}", reply.text());
        let value: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        value["purged"].as_u64().unwrap_or_else(|| panic!("a number of purged objects: {value}"))
    }

    /// A scrape of the metrics as they are now, requests under way included.
    pub fn scrape(&self) -> Metrics {
        let reply = self.api("GET", "/metrics", "");
        assert_eq!(reply.status, 200);
        Metrics { text: reply.text() }
    }

    /// A scrape of the metrics once no request is under way.
    pub fn metrics(&self) -> Metrics {
        self.settled().unwrap_or_else(|why| panic!("{why}"))
    }

    /// Asserts the law of the counters; waits for requests that are just ending.
    pub fn assert_law(&self) {
        self.metrics();
    }

    /// As [`Gateway::metrics`].
    ///
    /// # Errors
    /// What breaks the law of the counters: a request that has no outcome, or an outcome of none.
    pub fn settled(&self) -> Result<Metrics, String> {
        // A request is counted once its last byte has been sent: its client may ask before that.
        let end = Instant::now() + LIMIT;
        loop {
            let metrics = self.scrape();
            match metrics.law() {
                Ok(()) => return Ok(metrics),
                Err(why) if Instant::now() > end => return Err(why),
                Err(_) => thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    /// The rule file's folder.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Writes the rule file anew and asks for a reload.
    pub fn reload(&self, rules: &str) {
        fs::write(&self.rules, with_front_switch(rules)).unwrap();
        self.signal(libc::SIGHUP);
    }

    /// Writes the rule file anew and asks for a reload from the command line.
    pub fn reload_command(&self, rules: &str) -> Output {
        fs::write(&self.rules, with_front_switch(rules)).unwrap();
        run(&["reload", "--admin", &self.admin().to_string()])
    }

    /// Sends a signal.
    pub fn signal(&self, signal: libc::c_int) {
        send(self.child.id(), signal);
    }

    /// Waits for the process's end.
    pub fn wait_exit(&mut self) -> ExitStatus {
        let mut status = None;
        eventually("the gateway ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Whether the process still runs.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let stderr = self.stderr();
        if thread::panicking() {
            eprintln!("--- stderr of the gateway\n{stderr}\n---");
        } else {
            assert!(!stderr.contains("panicked at"), "the gateway panicked:\n{stderr}");
        }
    }
}

/// Whether every test runs without the memory shortcut: `TIDEGATE_TEST_FRONT=off`.
pub fn without_front() -> bool {
    env::var("TIDEGATE_TEST_FRONT").as_deref() == Ok("off")
}

fn with_front_switch(rules: &str) -> String {
    if !without_front() || rules.contains("tune.front") {
        return rules.to_owned();
    }
    rules.replacen("global\n", "global\n    tune.front off\n", 1)
}

fn address_after(line: &str, prefix: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once(prefix)?;
    rest.split_whitespace().next()?.parse().ok()
}
