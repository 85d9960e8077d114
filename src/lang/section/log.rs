//! `log` in `global` and in proxies. Lines go to standard error or nowhere.

use super::{Args, Draft, Loader};
use crate::{
    config::LogSink,
    lang::{code, diag::Diagnostic},
};

/// What the `log` lines of a proxy say.
#[derive(Clone, Copy, Default)]
pub(super) struct Logs {
    /// `log global`.
    global: bool,
    /// `log stderr`.
    own: bool,
}

impl Logs {
    /// Where lines go, when those of `global` go to `global`.
    pub(super) const fn sink(self, global: LogSink) -> LogSink {
        if self.own {
            LogSink::Stderr
        } else if self.global {
            global
        } else {
            LogSink::None
        }
    }
}

/// `log` in `global`.
pub(in crate::lang) fn global(loader: &mut Loader<'_>, args: Args<'_>) {
    if to_stderr(loader, args) {
        loader.config.global.log = LogSink::Stderr;
    }
}

/// `log` in a proxy.
pub(in crate::lang) fn proxy(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    if args.peek().is_some_and(|word| word.is("global")) {
        draft.logs.global = true;
    } else {
        draft.logs.own |= to_stderr(loader, args);
    }
}

/// `option httplog`: what the access log is in any case.
pub(in crate::lang) fn httplog(_: &mut Loader<'_>, _: &mut Draft, _: Args<'_>) {}

fn to_stderr(loader: &mut Loader<'_>, mut args: Args<'_>) -> bool {
    let Some(target) = loader.need(&mut args, "a target such as `stderr`") else { return false };
    match target.text.as_slice() {
        b"stderr" => true,
        b"stdout" => {
            let message = "`log stdout` is read as `log stderr`: standard output is for answers to commands";
            loader.report(Diagnostic::note(code::TRANSLATED, target.span, message));
            true
        }
        _ => {
            loader.accept("log", args.keyword(), "the access log goes to standard error: write `log stderr`");
            false
        }
    }
}
