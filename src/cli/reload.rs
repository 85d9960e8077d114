//! `reload`: makes a running gateway read its rule files anew.

use http::Method;
use serde_json::Value;

use super::{Exit, client::Remote, say};

/// What `reload` takes.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
}

/// Reloads, and prints what changed.
///
/// # Errors
/// The gateway cannot be reached, or the new configuration does not load: why; the old one goes on then.
pub(super) fn reload(args: &Args) -> Result<(), Exit> {
    let reply = args.remote.call(&Method::POST, "/v1/reload", None)?;
    say(reply.get("message").and_then(Value::as_str).unwrap_or("configuration reloaded"));
    Ok(())
}
