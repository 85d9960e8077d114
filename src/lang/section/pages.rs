//! What a proxy answers itself: `errorfile` and its kin, `http-error`, `http-errors` sections, `monitor-uri`.

use super::{Args, Draft, Kind, Loader, head::Head, names};
use crate::{
    config::Monitor,
    lang::{
        ast::Word,
        code,
        diag::{Diagnostic, Severity},
        keyword::{Row, Status, place::ERRORS},
        resolve::{self, codes},
    },
    rule::{
        Answer, Phase,
        action::answer::{Pages, Reply, framing},
    },
};

type Handler = fn(&mut Loader<'_>, &mut Pages, Args<'_>);

/// Words of an `http-errors` section.
pub(in crate::lang) const TABLE: &[Row<Handler>] =
    &[Row { name: "errorfile", places: ERRORS, status: Status::Honoured(of_section) }];

/// Reads an `http-errors` section.
pub(super) fn section(loader: &mut Loader<'_>, head: &Head<'_>) {
    let mut pages = Pages::default();
    for line in &head.section.lines {
        let Some((name, status, _, args)) = loader.handler(&[TABLE], Kind::HttpErrors, line, 0) else { continue };
        match status {
            Status::Honoured(handler) => handler(loader, &mut pages, args),
            Status::Accepted(reason) => loader.accept(name, args.keyword(), reason),
            Status::Refused(hint) => loader.refuse(name, args.keyword(), hint),
        }
    }
    if let Some((_, first, _)) = loader.names.pages.iter().find(|(name, ..)| *name == head.name) {
        let finding = names::duplicate("http-errors section", &head.name, head.span, *first);
        loader.report(finding);
    }
    loader.names.pages.push((head.name.clone(), head.span, pages));
}

fn of_section(loader: &mut Loader<'_>, pages: &mut Pages, args: Args<'_>) {
    let mut draft = Draft::nobody();
    if let Some((status, reply)) = file(loader, &mut draft, args) {
        pages.set(status, reply);
    }
}

/// `errorfile CODE FILE`.
pub(in crate::lang) fn errorfile(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    if let Some((status, reply)) = file(loader, draft, args) {
        draft.pages.set(status, reply);
    }
}

/// The status and the message of an `errorfile`. A file that cannot be read is a warning: files written for another
/// machine name pages that are not there.
fn file(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) -> Option<(u16, Reply)> {
    let (status, path) = status_and(loader, draft, args, "the path of a file")?;
    let before = loader.diagnostics.len();
    let reply = resolve::message(&mut loader.scope(draft), path);
    let unreadable = loader.diagnostics.iter_mut().skip(before).filter(|found| found.code == codes::UNREADABLE_FILE);
    for finding in unreadable {
        finding.severity = Severity::Warning;
        finding.help = "answers with this status are Tidegate's own then".to_owned();
    }
    Some((status, reply?))
}

/// A status that has pages, and one word more.
fn status_and<'l>(
    loader: &mut Loader<'_>,
    draft: &mut Draft,
    mut args: Args<'l>,
    what: &str,
) -> Option<(u16, &'l Word)> {
    let status = loader.need(&mut args, "a status")?;
    let other = loader.need(&mut args, what)?;
    loader.nothing_more(&args);
    Some((resolve::page_status(&mut loader.scope(draft), status)?, other))
}

/// `errorloc CODE URL`, `errorloc302`: 302.
pub(in crate::lang) fn errorloc(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    elsewhere(loader, draft, args, 302);
}

/// `errorloc303 CODE URL`.
pub(in crate::lang) fn errorloc303(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    elsewhere(loader, draft, args, 303);
}

fn elsewhere(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>, with: u16) {
    let Some((status, url)) = status_and(loader, draft, args, "a URL") else { return };
    if url.text.iter().any(u8::is_ascii_control) {
        return loader.error(code::BAD_VALUE, url.span, "a URL has no control characters");
    }
    let mut head = crate::message::Response::new(with);
    head.fields.append(b"Location", &url.text);
    head.fields.append(b"Cache-Control", b"no-cache");
    let body = bytes::Bytes::new();
    head.framing = framing(&body);
    draft.pages.set(status, Reply::Message(Answer { head, body }));
}

/// `errorfiles SECTION [CODE …]`: all of its pages, or those of the statuses.
pub(in crate::lang) fn errorfiles(loader: &mut Loader<'_>, draft: &mut Draft, mut args: Args<'_>) {
    let Some(name) = loader.need(&mut args, "the name of an `http-errors` section") else { return };
    let Some(pages) = resolve::pages_of(&mut loader.scope(draft), name) else { return };
    let mut wanted = Vec::new();
    while let Some(word) = args.next() {
        let Some(status) = resolve::page_status(&mut loader.scope(draft), word) else { return };
        if pages.of(status).is_none() {
            let message = format!("`http-errors {}` has no page for {status}", name.lossy());
            loader.report(Diagnostic::warning(code::NO_PAGE, word.span, message));
        }
        wanted.push(status);
    }
    for (status, reply) in pages.iter().filter(|(status, _)| wanted.is_empty() || wanted.contains(status)) {
        draft.pages.set(status, reply.clone());
    }
}

/// `http-error status CODE …`.
pub(in crate::lang) fn http_error(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    let Some(keyword) = args.line.words.first() else { return };
    if let Some((status, reply)) = resolve::page(&mut loader.scope(draft), keyword, args.rest()) {
        draft.pages.set(status, reply);
    }
}

/// `monitor-uri URI`.
pub(in crate::lang) fn monitor_uri(loader: &mut Loader<'_>, draft: &mut Draft, mut args: Args<'_>) {
    let Some(uri) = loader.need(&mut args, "a URI such as `/alive`") else { return };
    loader.nothing_more(&args);
    draft.monitor.uri = Some(uri.text.clone());
}

/// `monitor fail if|unless CONDITION`.
pub(in crate::lang) fn monitor_fail(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    let (before, condition) = resolve::split_cond(args.rest());
    if let Some(extra) = before.first().or(condition.is_empty().then_some(()).and(args.line.words.last())) {
        return loader.error(code::MISSING_WORD, extra.span, "`monitor fail` needs `if` or `unless` and a condition");
    }
    if let Some(Some(cond)) = resolve::cond(&mut loader.scope(draft), condition, Phase::Request) {
        draft.monitor.fail.push(cond);
    }
}

/// What `monitor-uri` and `monitor fail` say so far.
#[derive(Default)]
pub(super) struct MonitorDraft {
    uri: Option<Vec<u8>>,
    fail: Vec<crate::rule::Cond>,
}

impl MonitorDraft {
    pub(super) fn made(&self) -> Option<Monitor> {
        let uri = self.uri.clone()?;
        Some(Monitor { uri: uri.into(), fail: self.fail.clone() })
    }
}
