//! Conversions whose results are HAProxy's own: `tests/fixtures/converters` (a black-box test asks the real one).
//!
//! A file has converters at the start of a line and under them `"input" = "output"`, percent-encoded; `-` is no
//! value, `refused` an error at load. `later.txt` has what HAProxy 2.6 does not know: there the manuals of later
//! versions say what comes out.

use std::{env, fs, path::PathBuf, process::Command};

use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};

use super::{Bench, Exchange, line};
use crate::{
    lang::{resolve::expr, testing::Desk},
    rule::Phase,
};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/converters")
}

fn read(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap()
}

fn bench() -> Bench {
    let mut desk = Desk::new();
    for key in ["rsa", "ec", "ec384", "none"] {
        let path = format!("keys/{key}.pub");
        desk = desk.with_file(&path, &read(&path));
    }
    Bench { desk, ..Bench::default() }
}

/// One exchange with the variables that the conversions read.
fn prepared(bench: &mut Bench, variables: &str, input: &[u8]) -> Exchange {
    let mut exchange = Exchange::new("GET", "/", &[]);
    exchange.request.fields.append(b"X", input);
    for set in variables.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = set.split_once(' ').unwrap();
        let rule = bench.rule(Phase::Request, &format!("set-var(txn.{name}) '{value}'")).unwrap();
        exchange.with(|txn| crate::rule::RuleSet { rules: vec![rule] }.run(txn));
    }
    exchange
}

/// What comes out of `converters` for the header field `X: input`, as the files write it.
fn converted(bench: &mut Bench, variables: &str, converters: &str, input: &str) -> String {
    let mut exchange = prepared(bench, variables, input.as_bytes());
    let line = line(&format!("'req.fhdr(x),url_dec,{converters}'"));
    bench.found.clear();
    let Some(expr) = expr(&mut bench.scope(), &line.words[0], Phase::Request) else { return "refused".to_owned() };
    bench.clean();
    exchange.with(|txn| match expr.eval(txn).and_then(|sample| sample.text(txn.arena)) {
        None => "-".to_owned(),
        Some(text) => format!("\"{}\"", encoded(text)),
    })
}

fn encoded(text: &[u8]) -> String {
    let plain = |byte: u8| (b' '..0x7f).contains(&byte) && !matches!(byte, b'"' | b'%');
    let shown = |byte: &u8| if plain(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02x}") };
    text.iter().map(shown).collect()
}

/// Local times are those of the machine; they are written for one that lives in UTC.
fn in_utc() -> bool {
    let zone = jiff::tz::TimeZone::system();
    [0, 784_111_777, 1_751_000_000].into_iter().all(|second| {
        let there = zone.to_offset_info(jiff::Timestamp::from_second(second).unwrap());
        there.offset().seconds() == 0 && there.abbreviation() == "UTC"
    })
}

/// Runs a test of this file once more, in a process whose zone is UTC.
fn again_in_utc(test: &str) {
    assert_ne!(env::var("TZ").as_deref(), Ok("UTC"), "the zone cannot be set");
    let (_, module) = module_path!().split_once("::").unwrap();
    let mut command = Command::new(env::current_exe().unwrap());
    let output = command.env("TZ", "UTC").arg("--exact").arg(format!("{module}::{test}")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// Every line of a file that comes out differently.
fn differing(name: &str) -> Vec<String> {
    let (variables, mut bench) = (read("variables.txt"), bench());
    let (mut converters, mut differing) = (String::new(), Vec::new());
    for text in read(name).lines().filter(|text| !text.starts_with('#') && !text.is_empty()) {
        let Some(case) = text.strip_prefix("    ") else {
            converters = text.to_owned();
            continue;
        };
        let (input, expected) = match case.strip_prefix('"') {
            Some(case) => case.split_once("\" = ").unwrap_or_else(|| panic!("{name}: {case}")),
            None => ("1", case),
        };
        let found = converted(&mut bench, &variables, &converters, input);
        if found != expected {
            differing.push(format!("{name}: {converters}: \"{input}\" gives {found}, not {expected}"));
        }
    }
    differing
}

fn files() -> Vec<String> {
    let names = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name.ends_with(".txt") && name != "variables.txt").collect();
    names.sort();
    assert!(names.len() > 7, "{names:?}");
    names
}

#[test]
fn converters_give_what_haproxy_gives() {
    if !in_utc() {
        return again_in_utc("converters_give_what_haproxy_gives");
    }
    let differing: Vec<_> = files().iter().flat_map(|name| differing(name)).collect();
    assert!(differing.is_empty(), "{} differ:\n{}", differing.len(), differing.join("\n"));
}

/// Whatever comes in: bytes of all kinds, and pieces of what the converters understand.
#[test]
fn no_input_makes_a_converter_panic() {
    let (variables, mut bench) = (read("variables.txt"), bench());
    let texts: Vec<_> = files().iter().map(|name| read(name)).collect();
    let starts = |text: &&str| !text.is_empty() && !text.starts_with([' ', '#']);
    let config = Config { cases: 64, failure_persistence: None, ..Config::default() };
    let mut inputs = 0;
    let pieces = prop::sample::select(vec![
        "9223372036854775807",
        "-9223372036854775808",
        "-1",
        "0",
        "{\"v\":",
        "[",
        "\"",
        "\\u",
        "e9",
        ".",
        "eyJhbGciOiJIUzI1NiJ9",
        ";q=",
        "%",
        "=",
        "for=",
        ":",
        "\u{ff}",
        "1e308",
    ]);
    let input = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..48),
        prop::collection::vec(pieces, 0..6).prop_map(|pieces| pieces.concat().into_bytes()),
        any::<i64>().prop_map(|number| number.to_string().into_bytes()),
    ];
    for converters in texts.iter().flat_map(|text| text.lines()).filter(starts) {
        let line = line(&format!("'req.fhdr(x),{converters}'"));
        bench.found.clear();
        let Some(expr) = expr(&mut bench.scope(), &line.words[0], Phase::Request) else { continue };
        bench.found.clear();
        let start = prepared(&mut bench, &variables, b"");
        // A runner counts its cases over all of its runs: each expression needs its own.
        let mut runner = TestRunner::new(config.clone());
        let count = std::cell::Cell::new(0);
        let result = runner.run(&input, |input| {
            count.set(count.get() + 1);
            let mut exchange = Exchange::new("GET", "/", &[]);
            exchange.request.fields.append(b"X", &input);
            exchange.vars = start.vars.clone();
            let length = exchange.with(|txn| expr.eval(txn)?.text(txn.arena).map(<[u8]>::len));
            prop_assert!(length < Some(100_000));
            Ok(())
        });
        assert!(result.is_ok(), "{converters}: {result:?}");
        inputs += count.get();
    }
    assert!(inputs > 10_000, "{inputs}");
}
