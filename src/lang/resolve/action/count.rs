//! `track-sc0 EXPR [table T]`, `sc-inc-gpc0(SLOT)` and their kin.

use super::{Input, Scope, codes};
use crate::{
    lang::{
        ast::Word,
        diag::Diagnostic,
        resolve::{
            call::RawArg,
            expr::{self, known_table},
        },
    },
    rule::{
        Action, Phase,
        action::count::{Change, CounterEdit, Number, Track, Tracking},
        table::Datum,
        track::SLOTS,
    },
};

/// Most elements of an array of counters.
const ELEMENTS: usize = 100;

pub(super) fn track(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    let slot = input.row.name.strip_prefix("track-sc").and_then(|slot| slot.parse().ok())?;
    let (key, named) = match input.words {
        [key] => (key, None),
        [key, table, name] if table.is("table") => (key, Some(name)),
        words => {
            let at = words.get(1).map_or(input.action.span.after(), |word| word.span);
            input.misshapen(scope, at, "one expression, and perhaps a table, make the key");
            return None;
        }
    };
    let expr = expr::expr(scope, key, input.phase);
    let (place, kind) = match named {
        Some(name) => known_table(scope, &name.lossy(), name.span)?,
        None => own(scope, input)?,
    };
    let expr = expr?;
    if !expr.output().casts_to(kind.sample()) {
        let message = format!("a sample of type {} is no key of type {}", expr.output().name(), kind.name());
        scope.error(codes::TYPES, key.span, message);
        return None;
    }
    let tracks = match input.phase {
        Phase::Connection | Phase::Session => Tracking::Connection,
        Phase::Content => Tracking::Exchange,
        _ => Tracking::Http,
    };
    Some(Action::Track(Box::new(Track { slot, key: expr, table: place, tracks })))
}

/// The table of the proxy itself.
fn own(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<(usize, crate::rule::table::KeyKind)> {
    let name = scope.proxy.name.to_owned();
    let found = scope.proxies.tables().iter().position(|table| table.name == name);
    let kind = found.and_then(|place| scope.proxies.tables().get(place).map(|table| table.key));
    if found.is_none() {
        let message = format!("`{}` needs a table, and `{name}` has none", input.row.name);
        let finding = Diagnostic::error(codes::MISSING_ARGUMENT, input.action.span, message);
        scope.report(finding.help("name one: `table NAME`, or add a `stick-table` line"));
    }
    found.zip(kind)
}

pub(super) fn increase_first(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    increase(scope, input, [Datum::Gpc0, Datum::Gpc0Rate])
}

pub(super) fn increase_second(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    increase(scope, input, [Datum::Gpc1, Datum::Gpc1Rate])
}

fn increase(scope: &mut Scope<'_>, input: &Input<'_>, data: [Datum; 2]) -> Option<Action> {
    let slot = only_slot(scope, input)?;
    let [] = input.exactly(scope)?;
    Some(edit(slot, Change::Add(data, 0, Number::Of(1))))
}

pub(super) fn increase_element(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    let (index, slot) = element(scope, input)?;
    let [] = input.exactly(scope)?;
    Some(edit(slot, Change::Add([Datum::Gpc, Datum::GpcRate], index, Number::Of(1))))
}

pub(super) fn add_to_element(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    let (index, slot) = element(scope, input)?;
    let [word] = input.exactly(scope)?;
    Some(edit(slot, Change::Add([Datum::Gpc, Datum::GpcRate], index, number(scope, input, word)?)))
}

pub(super) fn set_first_tag(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    let slot = only_slot(scope, input)?;
    let [word] = input.exactly(scope)?;
    Some(edit(slot, Change::Set(Datum::Gpt0, 0, number(scope, input, word)?)))
}

pub(super) fn set_tag(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    let (index, slot) = element(scope, input)?;
    let [word] = input.exactly(scope)?;
    Some(edit(slot, Change::Set(Datum::Gpt, index, number(scope, input, word)?)))
}

fn edit(slot: usize, change: Change) -> Action {
    Action::Counter(Box::new(CounterEdit { slot, change }))
}

/// `(SLOT)`; the first when it is left out.
fn only_slot(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<usize> {
    match input.args.as_slice() {
        [] => Some(0),
        [arg] => small(scope, input, arg, SLOTS, "slot"),
        [_, extra, ..] => {
            input.misshapen(scope, input.action.part(extra.at.clone()), "the slot stands alone in the parentheses");
            None
        }
    }
}

/// `(INDEX,SLOT)`.
fn element(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<(usize, usize)> {
    let [index, slot] = input.args.as_slice() else {
        input.misshapen(scope, input.action.span, "the parentheses hold the element's index and the slot");
        return None;
    };
    let index = small(scope, input, index, ELEMENTS, "index");
    Some((index?, small(scope, input, slot, SLOTS, "slot")?))
}

fn small(scope: &mut Scope<'_>, input: &Input<'_>, arg: &RawArg, below: usize, what: &str) -> Option<usize> {
    let text = String::from_utf8_lossy(&arg.text);
    let value = text.parse().ok().filter(|value| *value < below);
    if value.is_none() {
        let message = format!("`{text}` is no {what}, a number from 0 to {}", below - 1);
        scope.error(codes::BAD_VALUE, input.action.part(arg.at.clone()), message);
    }
    value
}

/// A number, or an expression that gives one.
fn number(scope: &mut Scope<'_>, input: &Input<'_>, word: &Word) -> Option<Number> {
    if let Ok(number) = word.lossy().parse::<i64>() {
        return Some(Number::Of(number.cast_unsigned()));
    }
    expr::expr(scope, word, input.phase).map(|expr| Number::Drawn(Box::new(expr)))
}
