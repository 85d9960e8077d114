//! `set-var(scope.name) EXPRESSION`, `set-var-fmt(…) FORMAT`, `unset-var(…)`.

use super::{Input, Scope, codes};
use crate::{
    lang::resolve::{
        expr,
        format::{self, Use},
        vars,
    },
    rule::{Action, VarId},
};

pub(super) fn set(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    let id = variable(scope, input);
    let [word] = input.exactly(scope)?;
    let expr = expr::expr(scope, word, input.phase);
    Some(Action::SetVar(id?, expr?))
}

pub(super) fn set_format(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    let id = variable(scope, input);
    let [word] = input.exactly(scope)?;
    let format = format::read(scope, word, input.phase, Use::Body);
    Some(Action::SetVarFormat(id?, format?))
}

pub(super) fn unset(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    let id = variable(scope, input);
    let [] = input.exactly(scope)?;
    Some(Action::UnsetVar(id?))
}

fn variable(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<VarId> {
    let Some((name, conditions)) = input.args.split_first() else {
        input.misshapen(scope, input.action.span, "the variable's name is missing");
        return None;
    };
    if let Some(condition) = conditions.first() {
        let span = input.action.part(condition.at.clone());
        scope.refuse(
            codes::UNBUILT_ACTION,
            span,
            "conditions of `set-var` (`ifnotexists` and its kin) are not built yet",
        );
        return None;
    }
    vars::variable(scope, &name.text, input.action.part(name.at.clone()))
}
