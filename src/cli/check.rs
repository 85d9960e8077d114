//! `check`: says what is wrong with rule files, and what they do that an operator should know.

use super::{Exit, load, load::Files, say};
use crate::gateway;

/// Loads the files and the certificates they name, and prints what there is to say.
///
/// # Errors
/// Everything that is wrong with them.
pub(super) fn check(files: &Files) -> Result<(), Exit> {
    let checked = load::load(files).map_err(Exit)?;
    say(checked.remarks);
    gateway::check(&checked.config).map_err(Exit::line)?;
    say("The configuration is valid.");
    Ok(())
}
