//! `run`: the gateway with its admin API, until it is stopped.

use std::{
    io::stderr,
    sync::{Arc, Mutex, PoisonError},
};

use tracing::level_filters::LevelFilter;

use super::{
    Exit, complain,
    load::{self, Files},
};
use crate::{admin::Admin, config::Config, gateway, metrics::Metrics, ops::Ops};

/// What `run` takes.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) files: Files,
    /// What to log to standard error: off, error, warn, info or debug
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log_level: LevelFilter,
}

/// Loads the files and runs the gateway; reloads read the same files again.
///
/// # Errors
/// The files don't load, or the gateway cannot start.
pub(super) fn run(args: Args) -> Result<(), Exit> {
    log_to_stderr(args.log_level);
    let checked = load::load(&args.files).map_err(Exit)?;
    complain(checked.remarks);
    serve(checked.config, move || {
        let checked = load::load(&args.files)?;
        complain(checked.remarks);
        Ok(checked.config)
    })
}

/// Runs `config` with its admin API until the process is told to stop. `reload` gives the configuration that a
/// reload takes up.
///
/// # Errors
/// A socket cannot be opened, or another thing that the gateway needs is not there.
pub(super) fn serve(
    config: Config,
    reload: impl Fn() -> Result<Config, String> + Send + Sync + 'static,
) -> Result<(), Exit> {
    let ops = Arc::new(Ops::new(Arc::new(Metrics::new())));
    let admin = Arc::new(Admin::start(Arc::clone(&ops)).map_err(Exit::line)?);
    admin.commit(admin.prepare(config.admin.as_ref()).map_err(Exit::line)?);

    // A reload opens the admin sockets it needs, and takes them up only when the gateway has taken the rest.
    let pending = Arc::new(Mutex::new(None));
    let (later, committed) = (Arc::clone(&pending), Arc::clone(&admin));
    ops.set_after_reload(Box::new(move |done| {
        let prepared = later.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let (true, Some(prepared)) = (done, prepared) {
            committed.commit(prepared);
        }
    }));
    let preparing = Arc::clone(&admin);
    let ended = gateway::run(config, Arc::clone(&ops), move || {
        let config = reload()?;
        let prepared = preparing.prepare(config.admin.as_ref()).map_err(|error| error.to_string())?;
        *pending.lock().unwrap_or_else(PoisonError::into_inner) = Some(prepared);
        Ok(config)
    });
    admin.close();
    ended.map_err(Exit::line)
}

/// Sends the process's own messages (not the access log) to standard error.
pub(super) fn log_to_stderr(level: LevelFilter) {
    // Fails only when there is a subscriber already, which is as good.
    let _ = tracing_subscriber::fmt().with_max_level(level).with_target(false).with_writer(stderr).try_init();
}
