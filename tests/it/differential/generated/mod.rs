//! Generated rules and requests decide in the gateway as they do in HAProxy 2.6.

mod requests;
mod rules;

use std::{collections::BTreeMap, net::SocketAddr, path::Path};

use self::{
    requests::Request,
    rules::{Generator, Rules, TESTS},
};
use super::Haproxy;
use crate::{
    counters::{Random, seed},
    harness::{Client, Gateway, Origin, peers},
};

/// Exchanges under each configuration.
const REQUESTS: usize = 100;
/// Configurations, at the least; more until each word has been true and false.
const CONFIGURATIONS: usize = 30;
const MOST_CONFIGURATIONS: usize = 60;
/// Differences that are cut down to their smallest rules.
const MOST_REPORTS: usize = 4;

/// What one exchange showed.
#[derive(Debug, PartialEq)]
struct Seen {
    /// What the client got.
    answer: Vec<String>,
    /// What the origin got; empty when it was not asked.
    sent: Vec<String>,
}

fn exchange(address: SocketAddr, origin: &Origin, request: &Request) -> Seen {
    let before = origin.count();
    let mut client = Client::connect(address);
    let response = client.send(&request.bytes).try_read(request.method);
    let response = response.unwrap_or_else(|broken| panic!("{}: {broken:?}", request.bytes));
    let mut answer = vec![format!("status {}", response.status)];
    answer
        .extend(fields(&response.fields, |name| name.starts_with("x-") || ["location", "set-cookie"].contains(&name)));
    // The text of other answers is HAProxy's or ours.
    if matches!(response.status, 298 | 299) {
        answer.push(response.text());
    }
    let mut sent = Vec::new();
    for seen in origin.seen().split_off(before) {
        sent.push(seen.line());
        sent.extend(fields(&seen.fields, |name| {
            name.starts_with("x-") || ["host", "cookie", "authorization"].contains(&name)
        }));
        sent.push(format!("{} bytes", seen.body.len()));
    }
    Seen { answer, sent }
}

/// Fields by name; those of one name in their order.
fn fields(fields: &[(String, String)], keep: impl Fn(&str) -> bool) -> Vec<String> {
    let lower = fields.iter().map(|(name, value)| (name.to_ascii_lowercase(), value));
    let mut kept: Vec<_> = lower.filter(|(name, _)| keep(name)).collect();
    kept.sort_by(|(one, _), (other, _)| one.cmp(other));
    kept.into_iter().map(|(name, value)| format!("{name}: {value}")).collect()
}

/// How often each word's tests held, and how often not.
#[derive(Default)]
struct Words(BTreeMap<String, [usize; 2]>);

impl Words {
    /// Only what reached the origin shows how each test came out.
    fn count(&mut self, rules: &Rules, seen: &Seen) {
        if seen.sent.is_empty() {
            return;
        }
        for (number, words) in rules.words.iter().enumerate() {
            let held = seen.sent.iter().any(|line| *line == format!("x-t{number}: 1"));
            words.iter().for_each(|word| self.0.entry(word.clone()).or_default()[usize::from(held)] += 1);
        }
    }

    /// Those that were never true, or never false, though they can be.
    fn one_sided(&self) -> Vec<String> {
        let fixed = ["always_true", "always_false", "ssl_fc", "src_is_local", "int", "mul"];
        let found = self.0.iter().filter(|(word, counts)| counts.contains(&0) && !fixed.contains(&word.as_str()));
        found.map(|(word, _)| word.clone()).collect()
    }
}

fn configuration(rules: &str, origin: &Origin) -> String {
    let text = rules.replace("@ORIGIN@", &origin.address.to_string());
    format!("defaults\n    mode http\n    timeout connect 2s\n    timeout client 10s\n    timeout server 10s\n{text}")
}

/// What the origin answers depends on the path.
fn origin() -> Origin {
    Origin::start(|seen, wire| {
        let (status, fields) = match seen.path().len() % 4 {
            0 => (200, "X-Kind: one\nX-Many: a\nX-Many: foo"),
            1 => (404, "X-Kind: two"),
            2 => (503, "X-Many: o"),
            _ => (200, ""),
        };
        wire.reply(status, fields, b"body")
    })
}

/// Both gateways under the same rules.
struct Pair {
    peer: Haproxy,
    gateway: Gateway,
    origin: Origin,
}

impl Pair {
    fn start(haproxy: &Path, dir: &Path, rules: &str) -> Self {
        let origin = origin();
        let text = configuration(rules, &origin);
        let with = |global: &str| format!("global\n    {global}\n    setenv TIDEGATE_DIFFERENTIAL set\n{text}");
        // HAProxy remembers what `capture.req.uri` asks for only when it is going to log it.
        let logs = "frontend web\n    log 127.0.0.1:9 local0\n    option httplog\n";
        let peer = Haproxy::start(haproxy, dir, &with("maxconn 100").replace("frontend web\n", logs));
        let gateway = Gateway::start(&with("nbthread 1"));
        Self { peer, gateway, origin }
    }

    fn ask(&self, request: &Request) -> (Seen, Seen) {
        let ask = |address| exchange(address, &self.origin, request);
        (ask(self.peer.address), ask(self.gateway.address()))
    }
}

#[test]
fn generated_rules_decide_as_in_haproxy() {
    let Some([haproxy]) = peers::need("differential test of generated rules", ["haproxy"]) else { return };
    let mut random = Random(seed());
    let mut words = Words::default();
    let (mut pairs, mut differing, mut reports) = (0, 0, Vec::new());
    for round in 0..MOST_CONFIGURATIONS {
        // What has not been both by then is what the rest is about.
        let wanted = if round >= CONFIGURATIONS { words.one_sided() } else { Vec::new() };
        if round >= CONFIGURATIONS && wanted.is_empty() {
            break;
        }
        let dir = tempfile::tempdir().unwrap();
        let rules = Generator::new(&mut random, dir.path(), round * TESTS, wanted).rules();
        let pair = Pair::start(&haproxy, dir.path(), &rules.text);
        let mut first = None;
        for _ in 0..REQUESTS {
            let request = requests::any(&mut random);
            let (theirs, ours) = pair.ask(&request);
            pairs += 1;
            words.count(&rules, &theirs);
            if theirs != ours {
                differing += 1;
                first.get_or_insert(request);
            }
        }
        if let Some(request) = first.filter(|_| reports.len() < MOST_REPORTS) {
            reports.push(smallest(&haproxy, dir.path(), rules.text, &request));
        }
    }
    for (word, [no, yes]) in &words.0 {
        eprintln!("{word}: {yes} times true, {no} times false");
    }
    assert!(differing == 0, "{differing} of {pairs} exchanges differ:\n{}", reports.join("\n"));
    assert!(pairs >= 3_000, "{pairs} exchanges");
    assert!(words.one_sided().is_empty(), "never true, or never false: {}", words.one_sided().join(", "));
}

/// Leaves rules out as long as the exchange still differs; what is left, and how it differs.
fn smallest(haproxy: &Path, dir: &Path, mut rules: String, request: &Request) -> String {
    let asked = |rules: &str| Pair::start(haproxy, dir, rules).ask(request);
    // From the end, so that tests come after the rules that need them.
    for at in (0..rules.lines().count()).rev() {
        let line = rules.lines().nth(at).unwrap_or_default();
        let name = line.trim().strip_prefix("acl ").and_then(|rest| rest.split(' ').next());
        let used = name.is_some_and(|name| rules.split([' ', '\n', '!']).filter(|word| *word == name).count() > 1);
        let removable = line.contains("http-") || line.contains("use_backend") || name.is_some();
        let without: String =
            rules.lines().enumerate().filter(|(n, _)| *n != at).map(|(_, line)| format!("{line}\n")).collect();
        if removable && !used && differ(&asked(&without)) {
            rules = without;
        }
    }
    let (theirs, ours) = asked(&rules);
    format!("{}\n{rules}", difference(request, &theirs, &ours))
}

fn differ((theirs, ours): &(Seen, Seen)) -> bool {
    theirs != ours
}

fn difference(request: &Request, theirs: &Seen, ours: &Seen) -> String {
    let only = |a: &Seen, b: &Seen| {
        let lines = a.answer.iter().filter(|line| !b.answer.contains(line));
        let sent = a.sent.iter().filter(|line| !b.sent.contains(line));
        lines.chain(sent).cloned().collect::<Vec<_>>()
    };
    format!("{}: theirs {:?}, ours {:?}", request.bytes.escape_debug(), only(theirs, ours), only(ours, theirs))
}
