//! `set-method`, `set-path`, `set-query`, `replace-path`.

use super::{Input, Scope, header::compiled};
use crate::{
    lang::resolve::format::{self, Use},
    rule::{Action, Format, action::target::PathReplace},
};

pub(super) fn set_method(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    one(scope, input).map(Action::SetMethod)
}

pub(super) fn set_path(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    one(scope, input).map(Action::SetPath)
}

pub(super) fn set_query(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    one(scope, input).map(Action::SetQuery)
}

fn one(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Format> {
    let [word] = input.exactly(scope)?;
    format::read(scope, word, input.phase, Use::Line)
}

pub(super) fn replace_path(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    let [pattern, with] = input.exactly(scope)?;
    let regex = compiled(scope, pattern);
    let with = format::read(scope, with, input.phase, Use::Replacement);
    Some(Action::ReplacePath(PathReplace { regex: regex?, with: with? }))
}
