//! The results in `tests/fixtures/converters` are HAProxy's: it is asked for each of them.
//! `TIDEGATE_BLESS=1` writes what it answers into the files. `later.txt` is not asked, being about later versions.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::Haproxy;
use crate::harness::{Client, client::request, peers};

/// A line of a file.
enum Line {
    /// A comment, as it stands.
    Other(String),
    Converters(String),
    /// An input, as it stands between the quotes; what comes out of it is HAProxy's to say.
    Case(String),
    /// The converters above cannot be loaded.
    Refused,
}

impl Line {
    fn read(text: &str) -> Self {
        match text.strip_prefix("    ") {
            Some("refused") => Self::Refused,
            Some(case) => {
                let (input, _) = case.strip_prefix('"').unwrap_or(case).split_once("\" = ").unwrap();
                Self::Case(input.to_owned())
            }
            None if text.starts_with('#') || text.is_empty() => Self::Other(text.to_owned()),
            None => Self::Converters(text.to_owned()),
        }
    }
}

/// A file of conversions, and the program's part of the configuration.
struct Asked<'p> {
    program: &'p Path,
    folder: PathBuf,
    converters: Vec<String>,
    /// Whether HAProxy loads each of them.
    loads: Vec<bool>,
}

impl Asked<'_> {
    /// A frontend that sets a variable to the field `X` converted by the converters that the path numbers.
    fn rules(&self) -> String {
        let mut rules = String::from(
            "global\n    maxconn 100\n    tune.bufsize 65536\ndefaults\n    mode http\n    timeout client 10s\n    \
             timeout connect 10s\n    timeout server 10s\nfrontend web\n    bind 127.0.0.1:0\n",
        );
        let variables = fs::read_to_string(self.folder.join("variables.txt")).unwrap();
        for set in variables.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = set.split_once(' ').unwrap();
            rules += &format!("    http-request set-var(txn.{name}) '{value}'\n");
        }
        for (number, converters) in self.converters.iter().enumerate() {
            if self.loads[number] {
                rules += &format!(
                    "    http-request set-var(txn.result) 'req.fhdr(x),url_dec,{converters}' if {{ path /{number} }}\n"
                );
            } else {
                rules += "\n";
            }
        }
        rules += "    http-request return status 200 content-type text/plain lf-string '%[var(txn.result),concat(),hex]' \
                  if { var(txn.result) -m found }\n    http-request return status 404\n";
        rules
    }

    /// Marks the converters that keep the configuration from loading; the first error hides others.
    fn check(&mut self, dir: &Path) {
        let file = dir.join("check.cfg");
        loop {
            let rules = self.rules();
            let first =
                rules.lines().take_while(|line| !line.contains("set-var(txn.result)") && !line.is_empty()).count();
            // Checking opens no socket, but wants a port.
            fs::write(&file, rules.replacen("127.0.0.1:0", "127.0.0.1:9", 1)).unwrap();
            let mut command = Command::new(self.program);
            let output = command.arg("-c").arg("-f").arg(&file).current_dir(&self.folder).output().unwrap();
            if output.status.success() {
                return;
            }
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let mark = format!("[{}:", file.display());
            let numbers =
                said.split(mark.as_str()).skip(1).filter_map(|rest| rest.split(']').next()?.parse::<usize>().ok());
            let mut found = false;
            for number in numbers {
                let index = number.checked_sub(first + 1).filter(|index| *index < self.loads.len());
                let loads = index.map(|index| &mut self.loads[index]);
                found |= loads.is_some_and(|loads| std::mem::replace(loads, false));
            }
            assert!(found, "HAProxy refuses something else: {said}");
        }
    }
}

/// The file as HAProxy would have it.
fn answered(program: &Path, folder: &Path, name: &str) -> String {
    let text = fs::read_to_string(folder.join(name)).unwrap();
    let lines: Vec<_> = text.lines().map(Line::read).collect();
    let converters: Vec<_> = lines
        .iter()
        .filter_map(|line| match line {
            Line::Converters(converters) => Some(converters.clone()),
            _ => None,
        })
        .collect();
    let loads = vec![true; converters.len()];
    let mut asked = Asked { program, folder: folder.to_owned(), converters, loads };
    let dir = tempfile::tempdir().unwrap();
    asked.check(dir.path());
    let peer = Haproxy::start_in(program, dir.path(), &asked.rules(), folder);
    let mut client = Client::connect(peer.address);
    let (mut out, mut number) = (String::new(), None);
    for line in lines {
        match line {
            Line::Other(text) => out += &format!("{text}\n"),
            Line::Converters(converters) => {
                let next = number.map_or(0, |number: usize| number + 1);
                number = Some(next);
                out += &format!("{converters}\n");
                if !asked.loads[next] {
                    out += "    refused\n";
                }
            }
            Line::Case(input) if asked.loads[number.unwrap()] => {
                let path = format!("/{}", number.unwrap());
                let answer = client.send(request("GET", &path, &format!("X: {input}"), b"")).read("GET");
                let result = match answer.status {
                    200 => shown(&answer.body),
                    404 => "-".to_owned(),
                    other => format!("status {other}"),
                };
                out += &format!("    \"{input}\" = {result}\n");
            }
            Line::Case(..) | Line::Refused => {}
        }
    }
    out
}

/// What hexadecimal digits stand for, percent-encoded in quotes.
fn shown(digits: &[u8]) -> String {
    let mut out = String::from("\"");
    for pair in digits.chunks(2) {
        let byte = u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        if (b' '..0x7f).contains(&byte) && !matches!(byte, b'"' | b'%') {
            out.push(byte.into());
        } else {
            out += &format!("%{byte:02x}");
        }
    }
    out + "\""
}

#[test]
fn the_results_of_converters_are_haproxys() {
    let Some([program]) = peers::need("differential test of converters", ["haproxy"]) else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/converters");
    let mut differing = Vec::new();
    let mut cases = 0;
    for name in ["number", "text", "hash", "coding", "json", "token", "date"] {
        let name = format!("{name}.txt");
        let written = fs::read_to_string(folder.join(&name)).unwrap();
        let answered = answered(&program, &folder, &name);
        if std::env::var_os("TIDEGATE_BLESS").is_some() {
            fs::write(folder.join(&name), &answered).unwrap();
            continue;
        }
        cases += written.lines().filter(|line| line.starts_with(' ')).count();
        let lines = written.lines().zip(answered.lines());
        differing.extend(
            lines.filter(|(one, other)| one != other).map(|(one, other)| format!("{name}: {one}, HAProxy: {other}")),
        );
        if written.lines().count() != answered.lines().count() {
            differing.push(format!("{name}: another number of lines"));
        }
    }
    assert!(differing.is_empty(), "{} lines differ:\n{}", differing.len(), differing.join("\n"));
    assert!(cases > 1000 || std::env::var_os("TIDEGATE_BLESS").is_some(), "{cases}");
}
