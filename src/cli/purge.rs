//! `purge`: removes stored responses from a running gateway.

use http::Method;
use serde_json::{Value, json};

use super::{Exit, client::Remote, say};
use crate::ops::{BadTarget, PurgeRequest};

/// What `purge` takes.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("target").required(true).args(["url", "prefix", "tag", "all"])))]
pub(super) struct Args {
    /// The URL whose responses to remove, as clients write it; //HOST/PATH means http and https
    #[arg(value_name = "URL")]
    url: Option<String>,
    /// Remove everything whose URL begins so
    #[arg(long, value_name = "URL")]
    prefix: Option<String>,
    /// Remove everything with this surrogate key
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Remove everything
    #[arg(long)]
    all: bool,
    /// Make the responses stale instead of removing them
    #[arg(long)]
    soft: bool,
    #[command(flatten)]
    remote: Remote,
}

/// Purges, and prints how much there was.
///
/// # Errors
/// The target makes no sense, or the gateway cannot be reached or refuses.
pub(super) fn purge(args: &Args) -> Result<(), Exit> {
    let body = body(args).map_err(Exit::line)?;
    let reply = args.remote.call(&Method::POST, "/v1/purge", Some(&body))?;
    let count = |name| reply.get(name).and_then(Value::as_u64).unwrap_or_default();
    let what = if args.soft { "made stale" } else { "purged" };
    say(format_args!("{what}: {} ({} matched)", count("purged"), count("matched")));
    Ok(())
}

/// The call's body. What makes no sense is refused here already, without a gateway.
fn body(args: &Args) -> Result<Value, BadTarget> {
    let mode = if args.soft { "soft" } else { "hard" };
    Ok(match (&args.url, &args.prefix, &args.tag) {
        (Some(url), _, _) => PurgeRequest::url(url).map(|_| json!({ "url": url, "mode": mode }))?,
        (_, Some(prefix), _) => PurgeRequest::prefix(prefix).map(|_| json!({ "prefix": prefix, "mode": mode }))?,
        (_, _, Some(tag)) => PurgeRequest::tag(tag).map(|_| json!({ "tag": tag, "mode": mode }))?,
        _ => json!({ "all": true, "mode": mode }),
    })
}
