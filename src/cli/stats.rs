//! `stats`: the state of a running gateway.

use std::fmt::Write;

use http::Method;
use serde_json::Value;

use super::{Exit, client::Remote, say};

/// What `stats` takes.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print the API's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// Asks and prints.
///
/// # Errors
/// The gateway cannot be reached or refuses.
pub(super) fn stats(args: &Args) -> Result<(), Exit> {
    let stats = args.remote.call(&Method::GET, "/v1/stats", None)?;
    if args.json {
        say(format_args!("{stats:#}"))
    } else {
        say(table(&stats))
    }
    Ok(())
}

fn table(stats: &Value) -> String {
    let mut out = String::new();
    let version = stats.get("version").and_then(Value::as_str).unwrap_or("?");
    let ready = stats.get("ready").and_then(Value::as_bool).unwrap_or_default();
    let state = if ready { "ready" } else { "not taking requests" };
    let _ = writeln!(out, "tidegate {version}, up {} s, {state}", number(stats, "uptime_seconds"));
    let _ = writeln!(out, "requests: {}{}", number(stats, "requests"), outcomes(stats));
    for (name, frontend) in each(stats, "frontends") {
        let (requests, connections) = (number(frontend, "requests"), number(frontend, "connections"));
        let _ = writeln!(out, "frontend {name}: {requests} requests, {connections} connections{}", outcomes(frontend));
    }
    for (name, backend) in each(stats, "backends") {
        let (requests, errors) = (number(backend, "requests"), number(backend, "errors"));
        let _ = writeln!(out, "backend {name}: {requests} requests, {errors} errors");
    }
    for (name, store) in each(stats, "stores") {
        let (used, budget) = (size(number(store, "bytes")), size(number(store, "budget")));
        let (objects, evictions) = (number(store, "objects"), number(store, "evictions"));
        let _ = writeln!(out, "store {name}: {objects} objects, {used} of {budget}, {evictions} evicted");
    }
    out
}

/// The outcomes that there were: `; hit 3, miss 1`.
fn outcomes(of: &Value) -> String {
    let counted =
        each(of, "outcomes").filter_map(|(name, count)| Some((name, count.as_u64().filter(|&count| count > 0)?)));
    let listed: Vec<_> = counted.map(|(name, count)| format!("{name} {count}")).collect();
    if listed.is_empty() { String::new() } else { format!("; {}", listed.join(", ")) }
}

fn number(value: &Value, name: &str) -> u64 {
    value.get(name).and_then(Value::as_u64).unwrap_or_default()
}

fn each<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    value.get(name).and_then(Value::as_object).into_iter().flatten()
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_table_shows_what_there_is() {
        let stats = json!({ "version": "1.2.3", "uptime_seconds": 5, "ready": true,
            "requests": 4, "outcomes": { "hit": 3, "miss": 1, "pass": 0 },
            "frontends": { "web": { "requests": 4, "connections": 1, "outcomes": {} } },
            "backends": { "app": { "requests": 1, "errors": 0 } },
            "stores": { "edge": { "objects": 2, "bytes": 3000, "budget": 67_108_864, "evictions": 7 } } });
        let want = "tidegate 1.2.3, up 5 s, ready\n\
            requests: 4; hit 3, miss 1\n\
            frontend web: 4 requests, 1 connections\n\
            backend app: 1 requests, 0 errors\n\
            store edge: 2 objects, 2 KiB of 64 MiB, 7 evicted\n";
        assert_eq!(table(&stats), want);
    }
}
