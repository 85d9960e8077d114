//! `capture EXPRESSION len N|id N`, `set-log-level LEVEL`: what the log says of an exchange.

use super::{Input, Scope, codes};
use crate::{
    lang::{ast::Word, diag::Diagnostic, resolve::expr, section::log, unit},
    rule::{
        Action, Phase,
        capture::{Place, Slot},
        notes::LogLevel,
    },
};

pub(super) fn capture(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    let [written, kind, number] = input.exactly(scope)?;
    let expr = expr::expr(scope, written, input.phase);
    let place = match kind.text.as_slice() {
        b"len" => slot(scope, input, kind, number),
        b"id" => match count(scope, number, 0) {
            Some(at) if input.phase == Phase::Request => Some(Place::Request(at)),
            at => at.map(Place::Response),
        },
        _ => {
            input.misshapen(scope, kind.span, "`len` or `id` stands here");
            None
        }
    };
    Some(Action::Capture(expr?, place?))
}

/// A new slot of the frontend's.
fn slot(scope: &mut Scope<'_>, input: &Input<'_>, kind: &Word, number: &Word) -> Option<Place> {
    let help = if input.phase != Phase::Request {
        Some("declare a slot with `declare capture response len N` and write `id SLOT`")
    } else if !scope.proxy.listens {
        Some("slots are the frontend's: declare one there with `declare capture request len N` and write `id SLOT`")
    } else {
        None
    };
    if let Some(help) = help {
        let finding = Diagnostic::error(codes::ACTION_SHAPE, kind.span, "`len` cannot stand here");
        scope.report(finding.help(help));
        return None;
    }
    let len = count(scope, number, 1)?;
    scope.captures.request.push(Slot { field: None, len });
    Some(Place::Request(scope.captures.request.len() - 1))
}

fn count(scope: &mut Scope<'_>, word: &Word, least: usize) -> Option<usize> {
    let number = unit::number(&word.text).and_then(|number| usize::try_from(number).ok());
    let number = number.filter(|number| (least..=64 << 10).contains(number));
    if number.is_none() {
        scope.error(
            codes::BAD_VALUE,
            word.span,
            format!("`{}` is no whole number from {least} to 65536", word.lossy()),
        );
    }
    number
}

pub(super) fn set_level(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    let [word] = input.exactly(scope)?;
    let level = match &*word.lossy() {
        "silent" => Some(LogLevel::Silent),
        name => log::level(name).map(LogLevel::At),
    };
    if level.is_none() {
        let finding = Diagnostic::error(codes::BAD_VALUE, word.span, format!("unknown level `{}`", word.lossy()));
        scope.report(finding.help("one of emerg, alert, crit, err, warning, notice, info, debug, silent"));
    }
    level.map(Action::SetLogLevel)
}
