//! `set-var(scope.name) EXPRESSION`, `set-var-fmt(…) FORMAT`, `unset-var(…)`.

use super::{Input, Scope, codes};
use crate::{
    lang::{
        diag::Diagnostic,
        resolve::{
            expr,
            format::{self, Use},
            vars,
        },
        suggest,
    },
    rule::{Action, VarId, vars::SetWhen},
};

pub(super) fn set(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    let (id, when) = (variable(scope, input), conditions(scope, input));
    let [word] = input.exactly(scope)?;
    let expr = expr::expr(scope, word, input.phase);
    Some(Action::SetVar(id?, when?, expr?))
}

pub(super) fn set_format(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    let (id, when) = (variable(scope, input), conditions(scope, input));
    let [word] = input.exactly(scope)?;
    let format = format::read(scope, word, input.phase, Use::Body);
    Some(Action::SetVarFormat(id?, when?, format?))
}

pub(super) fn unset(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    let id = variable(scope, input);
    if let Some(extra) = input.args.get(1) {
        scope.error(codes::ACTION_SHAPE, input.action.part(extra.at.clone()), "`unset-var` takes a name alone");
        return None;
    }
    let [] = input.exactly(scope)?;
    Some(Action::UnsetVar(id?))
}

fn variable(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<VarId> {
    let Some(name) = input.args.first() else {
        input.misshapen(scope, input.action.span, "the variable's name is missing");
        return None;
    };
    vars::variable(scope, &name.text, input.action.part(name.at.clone()))
}

/// What stands behind the variable's name: at most four conditions.
fn conditions(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Box<[SetWhen]>> {
    let written = input.args.get(1..).unwrap_or_default();
    if let Some(extra) = written.get(4) {
        scope.error(codes::ACTION_SHAPE, input.action.part(extra.at.clone()), "at most four conditions may stand here");
        return None;
    }
    let mut conditions = Vec::new();
    for arg in written {
        let Some(condition) = SetWhen::named(&arg.text) else {
            let word = String::from_utf8_lossy(&arg.text);
            let message = format!("`{word}` is no condition of `{}`", input.row.name);
            let finding = Diagnostic::error(codes::BAD_VALUE, input.action.part(arg.at.clone()), message);
            let nearest = suggest::nearest(&word, SetWhen::WORDS.iter().copied());
            let all = format!("conditions are `{}`", SetWhen::WORDS.join("`, `"));
            scope.report(finding.did_you_mean(nearest).help(all));
            return None;
        };
        conditions.push(condition);
    }
    Some(conditions.into())
}
