//! `test`: rule tests as data. A file names rule files, requests and what should become of them.

mod compare;

use std::{
    collections::HashMap,
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use self::compare::Expected;
use super::{
    Exit, io_reason,
    load::{self, Checked, System},
    question::{Answered, Asked},
    say,
};
use crate::{gateway::explain::Explainer, lang::Outside};

/// What `test` takes.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A file of rule tests (TOML); may be repeated
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

/// A file of rule tests.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Suite {
    /// Rule files or directories of them, from where this file lies.
    rules: Vec<PathBuf>,
    /// Environment variables, beside those of the process.
    #[serde(default)]
    env: HashMap<String, String>,
    /// The tests.
    #[serde(default)]
    test: Vec<Test>,
}

/// One test.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Test {
    /// What it shows.
    name: String,
    /// The request.
    request: Asked,
    /// What the server answers; without it, what depends on that stays open.
    response: Option<Answered>,
    /// How often the request comes; the last time counts.
    #[serde(default = "once")]
    times: u32,
    /// What should become of it.
    expect: Expected,
}

const fn once() -> u32 {
    1
}

/// Runs the tests of every file and prints what fails.
///
/// # Errors
/// A file cannot be used, or a test fails.
pub(super) fn test(args: &Args) -> Result<(), Exit> {
    let (mut passed, mut failed) = (0_usize, 0_usize);
    for path in &args.files {
        let suite = read(path).map_err(Exit::line)?;
        let outside = WithEnv { env: &suite.env };
        let rules: Vec<_> = suite.rules.iter().map(|rules| beside(path, rules)).collect();
        let checked = load::load_with(&rules, &outside, false).map_err(Exit)?;
        for test in &suite.test {
            let faults =
                run(test, &checked).map_err(|why| Exit::line(format!("{}: {}: {why}", path.display(), test.name)))?;
            if faults.is_empty() {
                passed += 1;
                continue;
            }
            failed += 1;
            say(format_args!("{}: {}: failed", path.display(), test.name));
            faults.iter().flat_map(|fault| fault.lines()).for_each(|line| say(format_args!("    {line}")));
            say(format_args!("    why: {}", explain_line(&rules, test)));
        }
    }
    say(format_args!("{passed} passed, {failed} failed"));
    if failed > 0 { Err(Exit::line(format!("{failed} of {} rule tests failed", passed + failed))) } else { Ok(()) }
}

fn read(path: &Path) -> Result<Suite, String> {
    let text =
        fs::read_to_string(path).map_err(|error| format!("cannot read {}: {}", path.display(), io_reason(&error)))?;
    toml::from_str(&text).map_err(|error| format!("{}: {}", path.display(), error.to_string().trim_end()))
}

/// A path that a test file names.
fn beside(file: &Path, named: &Path) -> PathBuf {
    file.parent().unwrap_or(Path::new("")).join(named)
}

/// What is not as expected, one text each; each test begins with fresh counters and variables.
fn run(test: &Test, checked: &Checked) -> Result<Vec<String>, String> {
    let question = test.request.question(test.response.as_ref())?;
    let explainer = Explainer::new(checked.config.clone(), &checked.sources)?;
    for _ in 1..test.times {
        explainer.ask(&question)?;
    }
    Ok(test.expect.faults(&explainer.ask(&question)?))
}

/// The command that shows why.
fn explain_line(rules: &[PathBuf], test: &Test) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let mut line = "tidegate explain".to_owned();
    let mut option = |name: &str, value: &str| line.extend([" ", name, " ", &quoted(value)]);
    rules.iter().for_each(|path| option("-f", &path.display().to_string()));
    let Asked { method, url, headers, data, src, sni, frontend } = &test.request;
    headers.iter().for_each(|field| option("-H", field));
    if let Some(src) = src {
        option("--src", &src.to_string());
    }
    for (name, value) in [("-d", data), ("--sni", sni), ("--frontend", frontend)] {
        value.iter().for_each(|value| option(name, value));
    }
    if let Some(Answered { status, headers }) = &test.response {
        status.iter().for_each(|status| option("--status", &status.to_string()));
        headers.iter().for_each(|field| option("-R", field));
    }
    line.extend([" ", method, " ", &quoted(url)]);
    line
}

/// The machine, with some variables more.
struct WithEnv<'e> {
    env: &'e HashMap<String, String>,
}

impl Outside for WithEnv<'_> {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        System.read(path)
    }

    fn var(&self, name: &str) -> Option<String> {
        self.env.get(name).cloned().or_else(|| System.var(name))
    }

    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        System.resolve(host, port)
    }

    fn memory(&self) -> Option<u64> {
        System.memory()
    }

    fn certificate_faults(&self, path: &Path) -> Vec<String> {
        System.certificate_faults(path)
    }
}
