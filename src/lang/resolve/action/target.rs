//! `set-method`, `set-path`, `set-query` and their kin, `replace-path`, `normalize-uri`.

use super::{Input, Scope, codes, header::compiled};
use crate::{
    lang::{
        diag::Diagnostic,
        resolve::format::{self, Use},
        suggest,
    },
    rule::{
        Action, Format,
        action::{
            normalize::Normalizer,
            target::{TargetPart, TargetReplace},
        },
    },
};

pub(super) fn set_method(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    one(scope, input).map(Action::SetMethod)
}

pub(super) fn set_path(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    one(scope, input).map(|format| Action::SetTarget(TargetPart::Path, format))
}

pub(super) fn set_path_and_query(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    one(scope, input).map(|format| Action::SetTarget(TargetPart::PathQuery, format))
}

pub(super) fn set_uri(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    one(scope, input).map(|format| Action::SetTarget(TargetPart::Uri, format))
}

pub(super) fn set_query(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    one(scope, input).map(Action::SetQuery)
}

fn one(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Format> {
    let [word] = input.exactly(scope)?;
    format::read(scope, word, input.phase, Use::Line)
}

pub(super) fn replace_path(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    replace(scope, input, TargetPart::Path)
}

pub(super) fn replace_path_and_query(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    replace(scope, input, TargetPart::PathQuery)
}

pub(super) fn replace_uri(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    replace(scope, input, TargetPart::Uri)
}

fn replace(scope: &mut Scope<'_>, input: &Input<'_>, part: TargetPart) -> Option<Action> {
    let [pattern, with] = input.exactly(scope)?;
    let regex = compiled(scope, pattern);
    let with = format::read(scope, with, input.phase, Use::Replacement);
    Some(Action::ReplaceTarget(TargetReplace { part, regex: regex?, with: with? }))
}

/// A normalizer, with its option or without.
type Make = fn(bool) -> Normalizer;

/// The normalizers: name, the word that may follow, and what the two mean.
const NORMALIZERS: &[(&str, &str, Make)] = &[
    ("fragment-encode", "", |_| Normalizer::FragmentEncode),
    ("fragment-strip", "", |_| Normalizer::FragmentStrip),
    ("path-merge-slashes", "", |_| Normalizer::MergeSlashes),
    ("path-strip-dot", "", |_| Normalizer::StripDot),
    ("path-strip-dotdot", "full", |full| Normalizer::StripDotdot { full }),
    ("percent-decode-unreserved", "strict", |strict| Normalizer::DecodeUnreserved { strict }),
    ("percent-to-uppercase", "strict", |strict| Normalizer::UppercaseEscapes { strict }),
    ("query-sort-by-name", "", |_| Normalizer::SortQuery),
];

pub(super) fn normalize(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    let Some((name, options)) = input.words.split_first() else {
        input.misshapen(scope, input.action.span.after(), "a normalizer is missing");
        return None;
    };
    let Some((_, option, make)) = NORMALIZERS.iter().find(|(known, ..)| name.is(known)) else {
        let nearest = suggest::nearest(&name.lossy(), NORMALIZERS.iter().map(|(known, ..)| *known));
        let message = format!("there is no normalizer `{}`", name.lossy());
        scope.report(Diagnostic::error(codes::ACTION_SHAPE, name.span, message).did_you_mean(nearest));
        return None;
    };
    match options {
        [] => Some(Action::NormalizeUri(make(false))),
        [word] if !option.is_empty() && word.is(option) => Some(Action::NormalizeUri(make(true))),
        [word, ..] => {
            input.misshapen(scope, word.span, &format!("`{}` has no place here", word.lossy()));
            None
        }
    }
}
