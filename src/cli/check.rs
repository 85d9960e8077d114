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
    for rule in checked.config.cache_rules.iter().filter(|rule| !rule.forward_keyed) {
        say(format_args!(
            "`{}`: servers get more of a request than is in the key: {}. If responses depend on it without saying so in \
             `Vary`, one client can write what others read: `explain` names it for a request, `forward keyed` stops it.",
            rule.name,
            rule.keyed.open().join(", ")
        ));
    }
    gateway::check(&checked.config).map_err(Exit::line)?;
    say("The configuration is valid.");
    Ok(())
}
