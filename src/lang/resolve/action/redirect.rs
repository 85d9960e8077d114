//! `redirect`: as an action, and as a line of its own, whose words are text.

use super::{Input, Scope, codes};
use crate::{
    lang::{
        ast::{Line, Word},
        diag::Diagnostic,
        resolve::format::{self, Use},
        suggest,
    },
    rule::{
        Action, Format, Phase,
        action::redirect::{Cookie, Redirect, RedirectKind},
    },
};

/// What follows a cookie that is set.
const STAYS: &str = "; path=/;";
/// What follows a cookie that is taken away.
const GOES: &str = "; path=/; Max-Age=0;";

const CODES: [u16; 5] = [301, 302, 303, 307, 308];

/// Words with a value.
const VALUED: &[&str] = &["location", "prefix", "scheme", "code", "set-cookie", "set-cookie-fmt", "clear-cookie"];
/// Words without.
const FLAGS: &[&str] = &["drop-query", "append-slash", "ignore-empty", "keep-query"];

pub(super) fn read(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    let end = input.words.last().unwrap_or(input.action).span.after();
    let action = redirection(scope, input.words, end, |scope, word| format::read(scope, word, input.phase, Use::Line));
    // By then the request may be gone, so HAProxy leads to fixed places alone.
    if let (Some(Action::Redirect(redirect)), Phase::Response) = (&action, input.phase)
        && redirect.kind != RedirectKind::Location
    {
        input.misshapen(scope, input.action.span, "a response can be redirected with `location` alone");
        return None;
    }
    action
}

/// The words behind a plain `redirect`.
pub(super) fn literal(scope: &mut Scope<'_>, words: &[Word], line: &Line) -> Option<Action> {
    redirection(scope, words, line.span.after(), literal_of)
}

fn redirection(
    scope: &mut Scope<'_>,
    words: &[Word],
    end: crate::lang::source::Span,
    read: impl Fn(&mut Scope<'_>, &Word) -> Option<Format>,
) -> Option<Action> {
    let mut target = None;
    let mut redirect = Redirect {
        kind: RedirectKind::Location,
        to: Format::literal(b""),
        code: 302,
        drop_query: false,
        append_slash: false,
        ignore_empty: false,
        keep_query: false,
        cookie: None,
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let name = word.lossy();
        if FLAGS.contains(&&*name) {
            match &*name {
                "drop-query" => redirect.drop_query = true,
                "append-slash" => redirect.append_slash = true,
                "keep-query" => redirect.keep_query = true,
                _ => redirect.ignore_empty = true,
            }
            continue;
        }
        if !VALUED.contains(&&*name) {
            unknown(scope, word);
            return None;
        }
        let Some(value) = words.next() else {
            scope.error(codes::ACTION_SHAPE, word.span.after(), format!("`{name}` needs a value"));
            return None;
        };
        match &*name {
            "code" => redirect.code = code(scope, value)?,
            "set-cookie" => redirect.cookie = Some(Cookie { pair: literal_of(scope, value)?, attributes: STAYS }),
            "set-cookie-fmt" => redirect.cookie = Some(Cookie { pair: read(scope, value)?, attributes: STAYS }),
            "clear-cookie" => redirect.cookie = Some(Cookie { pair: literal_of(scope, value)?, attributes: GOES }),
            kind => {
                let kind = match kind {
                    "location" => RedirectKind::Location,
                    "prefix" => RedirectKind::Prefix,
                    _ => RedirectKind::Scheme,
                };
                target = Some((kind, read(scope, value)?));
            }
        }
    }
    let Some((kind, to)) = target else {
        let finding = Diagnostic::error(codes::ACTION_SHAPE, end, "`redirect` does not say where to");
        scope.report(finding.help("write `location URL`, `prefix PREFIX` or `scheme SCHEME`"));
        return None;
    };
    Some(Action::Redirect(Redirect { kind, to, ..redirect }.into()))
}

fn unknown(scope: &mut Scope<'_>, word: &Word) {
    let name = word.lossy();
    let nearest = suggest::nearest(&name, VALUED.iter().chain(FLAGS).copied());
    let message = format!("unknown word `{name}` behind `redirect`");
    scope.report(Diagnostic::error(codes::ACTION_SHAPE, word.span, message).did_you_mean(nearest));
}

fn code(scope: &mut Scope<'_>, word: &Word) -> Option<u16> {
    let code = word.lossy().parse().ok().filter(|code| CODES.contains(code));
    if code.is_none() {
        let message = format!("`{}` is not 301, 302, 303, 307 or 308", word.lossy());
        scope.error(codes::BAD_VALUE, word.span, message);
    }
    code
}

fn literal_of(scope: &mut Scope<'_>, word: &Word) -> Option<Format> {
    format::no_controls(scope, word)?;
    Some(Format::literal(&word.text))
}
