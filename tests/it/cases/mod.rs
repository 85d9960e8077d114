//! Inputs with right answers, gathered from what went wrong in other proxies. A case is a row: its id,
//! the client's bytes, the origin's script, what is right. For every case holds besides:
//! (a) the origin's bytes parse as exactly the requests that were meant to be sent;
//! (b) no byte of a client's body is taken for a request;
//! (c) a clean GET on a new connection gets the clean answer;
//! (d) the law of the counters.

mod framing;
mod responses;
mod target;

use std::io;

use crate::harness::{Broken, Gateway, Origin, Response, Seen, Wire, site};

/// What an origin does in a case.
type Script = fn(&Seen, &mut Wire<'_>) -> io::Result<()>;

/// What must hold of a case's outcome.
type Holds = fn(&Outcome) -> bool;

/// One input and what is right.
struct Case {
    id: &'static str,
    /// The client's bytes, sent at once on one connection.
    send: Vec<u8>,
    script: Script,
    right: Right,
}

/// What is right.
enum Right {
    /// One of these statuses, the end of the connection, and the origin sees nothing.
    Refused(&'static [u16]),
    /// Answers with these statuses, and exactly these requests at the origin, in any order.
    Answered(&'static [u16], &'static [&'static str]),
    /// As `Answered`, and this holds too.
    And(&'static [u16], &'static [&'static str], Holds),
}

/// What came of a case.
struct Outcome {
    /// What the client could read, up to the end of the connection or as many as were expected.
    answers: Vec<Result<Response, Broken>>,
    /// Whether the connection ended after a refusal; not asked of others.
    closed: bool,
    /// Complete requests at the origin.
    seen: Vec<Seen>,
}

/// The path and the answer of the clean GET.
const CLEAN: &str = "/clean";

/// An ordinary, storable answer.
fn plain(seen: &Seen, wire: &mut Wire<'_>) -> io::Result<()> {
    wire.reply(200, "Cache-Control: max-age=60", seen.target.as_bytes())
}

/// An ordinary answer that nobody stores.
fn unstored(_: &Seen, wire: &mut Wire<'_>) -> io::Result<()> {
    wire.reply(200, "Cache-Control: no-store", b"x")
}

fn case(id: &'static str, send: impl AsRef<[u8]>, script: Script, right: Right) -> Case {
    Case { id, send: send.as_ref().to_vec(), script, right }
}

/// Runs every row against one gateway with these frontend lines.
fn run(frontend: &str, cases: Vec<Case>) {
    let origin = Origin::start(plain);
    let gateway = Gateway::start(&site(origin.address, frontend));
    let mut wrong = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        if let Err(why) = judge(case, &origin, &gateway) {
            wrong.push(format!("{} (row {number}) {}\n    {why}", case.id, case.send.escape_ascii()));
        }
    }
    assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

fn judge(case: &Case, origin: &Origin, gateway: &Gateway) -> Result<(), String> {
    let script = case.script;
    origin.follow(
        move |seen, wire| if seen.path() == CLEAN { wire.reply(200, "", b"clean") } else { script(seen, wire) },
    );
    gateway.purge(r#"{"all":true}"#);
    let (before, garbage) = (origin.count(), origin.garbage().len());
    let outcome = exchange(case, gateway, origin, before);
    let clean = gateway.get(CLEAN);
    if (clean.status, clean.text().as_str()) != (200, "clean") {
        return Err(format!("(c) the clean GET got {clean:?}"));
    }
    if origin.garbage().len() > garbage {
        return Err(format!("(a) the origin was sent what is no request: {:?}", origin.garbage()));
    }
    gateway.settled().map_err(|why| format!("(d) {why}"))?;
    verdict(&case.right, &outcome)
}

fn exchange(case: &Case, gateway: &Gateway, origin: &Origin, before: usize) -> Outcome {
    let expected = match case.right {
        Right::Refused(_) => 1,
        Right::Answered(statuses, _) | Right::And(statuses, ..) => statuses.len(),
    };
    let methods = methods_of(&case.send);
    let mut client = gateway.client();
    client.send(&case.send);
    let mut answers = Vec::new();
    while answers.len() < expected {
        let method = methods.get(answers.len()).map_or("GET", String::as_str);
        let answer = client.try_read(method);
        let over = answer.as_ref().map_or(true, |response| response.until_close);
        answers.push(answer);
        if over {
            break;
        }
    }
    let closed = matches!(case.right, Right::Refused(_)) && client.is_closed();
    let seen = origin.seen().split_off(before).into_iter().filter(|seen| seen.path() != CLEAN).collect();
    Outcome { answers, closed, seen }
}

fn heads(outcome: &Outcome) -> Vec<String> {
    outcome.seen.iter().map(|seen| seen.head.escape_ascii().to_string()).collect()
}

/// Only HEAD matters, and only for a first request.
fn methods_of(send: &[u8]) -> Vec<String> {
    vec![String::from_utf8_lossy(send).split(' ').next().unwrap_or_default().to_owned()]
}

fn verdict(right: &Right, outcome: &Outcome) -> Result<(), String> {
    let statuses: Vec<Result<u16, &str>> = outcome
        .answers
        .iter()
        .map(|answer| answer.as_ref().map(|response| response.status).map_err(|broken| broken.why.as_str()))
        .collect();
    let mut lines: Vec<String> = outcome.seen.iter().map(Seen::line).collect();
    lines.sort();
    let said = format!("answers {statuses:?}, origin saw {lines:?}");
    let (expected, requests, holds): (&[u16], &[&str], Holds) = match right {
        Right::Refused(among) => {
            let refused = matches!(statuses[..], [Ok(status)] if among.contains(&status));
            let ok = refused && outcome.closed && lines.is_empty();
            return if ok {
                Ok(())
            } else {
                Err(format!("not refused with {among:?}: {said}, closed {}", outcome.closed))
            };
        }
        Right::Answered(expected, requests) => (expected, requests, |_| true),
        Right::And(expected, requests, holds) => (expected, requests, *holds),
    };
    let mut requests = requests.to_vec();
    requests.sort_unstable();
    if !statuses.iter().copied().eq(expected.iter().map(|&status| Ok(status))) || lines != requests {
        return Err(format!("expected {expected:?} and {requests:?}: {said}"));
    }
    if holds(outcome) { Ok(()) } else { Err(format!("what should hold does not: {said}; {:?}", heads(outcome))) }
}
