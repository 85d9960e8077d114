//! `set-map(FILE) KEY VALUE`, `del-map(FILE) KEY`, `add-acl(FILE) KEY`, `del-acl(FILE) KEY`.

use super::{Input, Scope};
use crate::{
    lang::{
        ast::Word,
        resolve::{
            format::{self, Use},
            lists,
        },
    },
    rule::{
        Action,
        action::list::{Change, ListEdit},
    },
};

pub(super) fn set(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    let [key, value] = input.exactly(scope)?;
    let value = format::read(scope, value, input.phase, Use::Body);
    edit(scope, input, key, Change::Set(value?))
}

pub(super) fn add(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    let [key] = input.exactly(scope)?;
    edit(scope, input, key, Change::Add)
}

pub(super) fn remove(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    let [key] = input.exactly(scope)?;
    edit(scope, input, key, Change::Remove)
}

fn edit(scope: &mut Scope<'_>, input: &Input<'_>, key: &Word, change: Change) -> Option<Action> {
    let [file] = input.args.as_slice() else {
        input.misshapen(scope, input.action.span, "the name of one file stands in parentheses");
        return None;
    };
    let key = format::read(scope, key, input.phase, Use::Body)?;
    let span = input.action.part(file.at.clone());
    let list = lists::changed(scope, &String::from_utf8_lossy(&file.text), span);
    Some(Action::ChangeList(Box::new(ListEdit { list, key, change })))
}
