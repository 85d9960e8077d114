//! Lines of `global`.

use std::path::PathBuf;

use super::{Args, Kind, Loader, params};
use crate::{
    config::SetVar,
    lang::{
        ast::{Line, Word},
        code,
        keyword::{self, Status},
        resolve::{self, Acls, Proxy, Scope},
        unit::TimeUnit,
    },
    rule::capture::Captures,
};

/// Reads a line of `global`.
pub(super) fn line(loader: &mut Loader<'_>, line: &Line) {
    let off = line.words.first().is_some_and(|word| word.is("no"));
    let found = loader.handler(keyword::GLOBAL_TABLES, Kind::Global, line, usize::from(off));
    let Some((name, status, _, args)) = found else { return };
    match status {
        Status::Accepted(reason) => loader.accept(name, args.keyword(), reason),
        Status::Refused(_) if off => {}
        Status::Refused(hint) => loader.refuse(name, args.keyword(), hint),
        Status::Honoured(_) if off => {
            loader.error(code::MISPLACED, args.keyword(), format!("`no` cannot stand before `{name}`"));
        }
        Status::Honoured(handler) => handler(loader, args),
    }
}

/// `setenv` and its kin: done already, as the lines below them are split with it.
pub(in crate::lang) fn environment(_: &mut Loader<'_>, _: Args<'_>) {}

pub(in crate::lang) fn nbthread(loader: &mut Loader<'_>, args: Args<'_>) {
    if let Some(threads) = loader.only_number(args, 1..=1024) {
        loader.config.global.threads = Some(threads);
    }
}

/// 0 means no limit of our own.
pub(in crate::lang) fn maxconn(loader: &mut Loader<'_>, args: Args<'_>) {
    if let Some(most) = loader.only_number(args, 0..=usize::MAX) {
        loader.config.global.maxconn = Some(most).filter(|most| *most > 0);
    }
}

pub(in crate::lang) fn hard_stop_after(loader: &mut Loader<'_>, args: Args<'_>) {
    if let Some(time) = loader.only_time(args, TimeUnit::Millis) {
        loader.config.global.hard_stop_after = time;
    }
}

pub(in crate::lang) fn tune_front(loader: &mut Loader<'_>, args: Args<'_>) {
    if let Some(on) = loader.only_switch(args) {
        loader.config.global.front = on;
    }
}

pub(in crate::lang) fn tune_bufsize(loader: &mut Loader<'_>, args: Args<'_>) {
    if let Some(bytes) = loader.only_number(args, 1024..=64 << 20) {
        loader.config.global.buffer = bytes;
    }
}

pub(in crate::lang) fn tune_misdirected(loader: &mut Loader<'_>, args: Args<'_>) {
    if let Some(on) = loader.only_switch(args) {
        loader.config.global.misdirected = on;
    }
}

/// Where relative paths behind `crt` start.
pub(in crate::lang) fn crt_base(loader: &mut Loader<'_>, mut args: Args<'_>) {
    let Some(path) = loader.need(&mut args, "a directory") else { return };
    loader.nothing_more(&args);
    loader.crt_base = Some(PathBuf::from(path.lossy().into_owned()));
}

/// `ssl-default-bind-options`: each word is looked up as if it stood on a bind.
pub(in crate::lang) fn bind_options(loader: &mut Loader<'_>, args: Args<'_>) {
    let mut nothing = super::BindDraft::default();
    let name = args.name();
    params::read(loader, keyword::bind::TABLE, &name, args, |loader, honour, word, values| {
        honour(loader, &mut nothing, word, values);
    });
}

/// `set-var proc.NAME EXPRESSION`.
pub(in crate::lang) fn set_var(loader: &mut Loader<'_>, args: Args<'_>) {
    variable(loader, args, |scope, word| resolve::global_expr(scope, word).map(SetVar::To));
}

/// `set-var-fmt proc.NAME FORMAT`.
pub(in crate::lang) fn set_var_fmt(loader: &mut Loader<'_>, args: Args<'_>) {
    variable(loader, args, |scope, word| resolve::global_format(scope, word).map(SetVar::Written));
}

fn variable(loader: &mut Loader<'_>, mut args: Args<'_>, read: impl FnOnce(&mut Scope<'_>, &Word) -> Option<SetVar>) {
    let Some(name) = loader.need(&mut args, "a variable such as `proc.x`") else { return };
    let Some(value) = loader.need(&mut args, "what it is set to") else { return };
    loader.nothing_more(&args);
    let (mut acls, mut captures) = (Acls::default(), Captures::default());
    let mut scope = Scope {
        outside: loader.outside,
        diagnostics: &mut loader.diagnostics,
        acls: &mut acls,
        captures: &mut captures,
        proxy: Proxy { name: "global", listens: false, serves: false },
        proxies: &loader.names,
        vars: &mut loader.vars,
        lists: &mut loader.lists,
        lenient: loader.lenient,
    };
    let id = resolve::process_variable(&mut scope, name);
    let value = read(&mut scope, value);
    loader.config.global.set_vars.extend(id.zip(value));
}
