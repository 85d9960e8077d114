//! `timeout …`, and the words it had before HAProxy 1.4.

use std::time::Duration;

use super::{Args, Draft, Loader};
use crate::{
    config::{ClientTimeouts, ServerTimeouts},
    lang::{code, diag::Diagnostic, unit::TimeUnit},
};

/// HAProxy's longest time; stands for `0`, which means none.
const LONGEST: Duration = Duration::from_millis(i32::MAX as u64);

/// What is written; a request's and an idle connection's fall back on others as in HAProxy.
#[derive(Clone, Copy, Default)]
pub(super) struct Timeouts {
    client: Option<Duration>,
    http_request: Option<Duration>,
    keep_alive: Option<Duration>,
    connect: Option<Duration>,
    server: Option<Duration>,
    tarpit: Option<Duration>,
}

impl Timeouts {
    pub(super) fn of_client(self) -> ClientTimeouts {
        let base = ClientTimeouts::default();
        ClientTimeouts {
            client: self.client.unwrap_or(base.client),
            http_request: self.http_request.or(self.client).unwrap_or(base.http_request),
            keep_alive: self.keep_alive.or(self.http_request).or(self.client).unwrap_or(base.keep_alive),
        }
    }

    /// How long a `tarpit` keeps a client waiting.
    pub(super) fn of_tarpit(self) -> Duration {
        self.tarpit.or(self.connect).unwrap_or(ServerTimeouts::default().connect)
    }

    pub(super) fn of_server(self) -> ServerTimeouts {
        let base = ServerTimeouts::default();
        ServerTimeouts { connect: self.connect.unwrap_or(base.connect), server: self.server.unwrap_or(base.server) }
    }
}

/// `timeout tarpit`; 0 is as if it were not there.
pub(in crate::lang) fn tarpit(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    set(loader, &mut draft.timeouts.tarpit, args);
    draft.timeouts.tarpit = draft.timeouts.tarpit.filter(|time| *time < LONGEST);
}

pub(in crate::lang) fn client(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    set(loader, &mut draft.timeouts.client, args);
}

pub(in crate::lang) fn http_request(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    set(loader, &mut draft.timeouts.http_request, args);
}

pub(in crate::lang) fn keep_alive(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    set(loader, &mut draft.timeouts.keep_alive, args);
}

pub(in crate::lang) fn connect(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    set(loader, &mut draft.timeouts.connect, args);
}

pub(in crate::lang) fn server(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    set(loader, &mut draft.timeouts.server, args);
}

pub(in crate::lang) fn clitimeout(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    translated(loader, &args, "timeout client");
    client(loader, draft, args);
}

pub(in crate::lang) fn contimeout(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    translated(loader, &args, "timeout connect");
    connect(loader, draft, args);
}

pub(in crate::lang) fn srvtimeout(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    translated(loader, &args, "timeout server");
    server(loader, draft, args);
}

fn translated(loader: &mut Loader<'_>, args: &Args<'_>, modern: &str) {
    let message = format!("`{}` is read as `{modern}`, its name today", args.name());
    loader.report(Diagnostic::note(code::TRANSLATED, args.keyword(), message));
}

fn set(loader: &mut Loader<'_>, slot: &mut Option<Duration>, args: Args<'_>) {
    let span = args.line.span;
    let Some(time) = loader.only_time(args, TimeUnit::Millis) else { return };
    if time > LONGEST {
        loader.error(code::BAD_VALUE, span, "a timeout cannot be longer than 24 days");
    }
    *slot = Some(if time.is_zero() { LONGEST } else { time.min(LONGEST) });
}
