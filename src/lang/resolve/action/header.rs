//! `set-header`, `add-header`, `del-header`, `replace-header`, `replace-value`, `early-hint`, `set-status`.

use regex::bytes::Regex;

use super::{Input, Scope, codes};
use crate::{
    lang::{
        ast::Word,
        diag::Diagnostic,
        resolve::{
            format::{self, Use},
            pattern::{self, Pattern},
        },
        suggest,
    },
    rule::{
        Action,
        action::{
            header::{HeaderDelete, HeaderEdit, HeaderReplace, Names, is_framing},
            target::is_token,
        },
        matcher::Method,
        pattern as regexes,
    },
};

pub(super) fn set(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    edit(scope, input).map(Action::SetHeader)
}

pub(super) fn add(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    edit(scope, input).map(Action::AddHeader)
}

fn edit(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<HeaderEdit> {
    let [name, value] = input.exactly(scope)?;
    let field = field_name(scope, name);
    let value = format::read(scope, value, input.phase, Use::Line);
    let field = field?;
    writable(scope, name, &field)?;
    Some(HeaderEdit { side: input.side(), name: field, value: value? })
}

/// `early-hint NAME FORMAT`: a field of a 103 response (RFC 8297).
pub(super) fn hint(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    let HeaderEdit { name, value, .. } = edit(scope, input)?;
    Some(Action::EarlyHint(name, value))
}

/// `set-status STATUS [reason PHRASE]`.
pub(super) fn set_status(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    let (status, phrase) = match input.words {
        [status] => (status, None),
        [status, reason, phrase] if reason.is("reason") => (status, Some(phrase)),
        _ => {
            input.misshapen(scope, input.action.span, "a status is missing, or what follows it is not `reason`");
            return None;
        }
    };
    let code = status.lossy().parse().ok().filter(|code| (200..=999).contains(code));
    if code.is_none() {
        let message = format!("`{}` is not a status from 200 to 999", status.lossy());
        scope.error(codes::BAD_VALUE, status.span, message);
    }
    if let Some(phrase) = phrase {
        format::no_controls(scope, phrase)?;
    }
    Some(Action::SetStatus(code?, phrase.map(Word::lossy).unwrap_or_default().into()))
}

pub(super) fn delete(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    let names = match input.words {
        [name, flag, method] if flag.is("-m") => Names::Matching(matching(scope, name, method)?.into()),
        _ => {
            let [name] = input.exactly(scope)?;
            let field = field_name(scope, name)?;
            writable(scope, name, &field)?;
            Names::Exactly(field)
        }
    };
    Some(Action::DelHeader(HeaderDelete { side: input.side(), names }))
}

fn matching(scope: &mut Scope<'_>, name: &Word, method: &Word) -> Option<crate::rule::Matcher> {
    const METHODS: [Method; 5] = [Method::Str, Method::Beg, Method::End, Method::Sub, Method::Reg];
    let Some(found) = METHODS.into_iter().find(|known| method.is(known.word())) else {
        let nearest = suggest::nearest(&method.lossy(), METHODS.iter().map(|method| method.word()));
        let message = format!("`{}` is no way to match names here", method.lossy());
        let finding = Diagnostic::error(codes::BAD_METHOD, method.span, message);
        scope.report(finding.did_you_mean(nearest).help("use `str`, `beg`, `end`, `sub` or `reg`"));
        return None;
    };
    // Names have no case (RFC 9110 §5.1).
    let pattern = Pattern { text: name.text.clone(), fold: true, word: name };
    pattern::compile(scope, found, &[pattern], &[], true)
}

pub(super) fn replace(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    replacement(scope, input).map(|replace| Action::ReplaceHeader(Box::new(replace)))
}

pub(super) fn replace_value(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    replacement(scope, input).map(|replace| Action::ReplaceValue(Box::new(replace)))
}

fn replacement(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<HeaderReplace> {
    let [name, pattern, with] = input.exactly(scope)?;
    let field = field_name(scope, name);
    let regex = compiled(scope, pattern);
    let with = format::read(scope, with, input.phase, Use::Replacement);
    let field = field?;
    writable(scope, name, &field)?;
    Some(HeaderReplace { side: input.side(), name: field, regex: regex?, with: with? })
}

/// The pattern of a replacement.
pub(super) fn compiled(scope: &mut Scope<'_>, pattern: &Word) -> Option<Regex> {
    match regexes::regex(&pattern.text, false) {
        Ok(regex) => Some(regex),
        Err(fault) => {
            let span = if fault.at > 0 { pattern.part(fault.at..pattern.text.len()) } else { pattern.span };
            scope.report(Diagnostic::error(codes::BAD_REGEX, span, fault.message).help(fault.help));
            None
        }
    }
}

/// A field's name.
pub(super) fn field_name(scope: &mut Scope<'_>, word: &Word) -> Option<Box<str>> {
    if is_token(&word.text) {
        return Some(word.lossy().into());
    }
    let message = format!("`{}` is not the name of a header field", word.lossy());
    let help = match word.text.last() {
        Some(b':') => "leave the `:` off",
        _ => "names are letters, digits and `-`; blanks and other marks have no place in them",
    };
    scope.report(Diagnostic::error(codes::BAD_FIELD_NAME, word.span, message).help(help));
    None
}

/// Where a body ends is for the gateway to say: a rule that says otherwise opens the way for smuggling.
fn writable(scope: &mut Scope<'_>, word: &Word, name: &str) -> Option<()> {
    let framing = is_framing(name.as_bytes());
    if framing {
        let message = format!("`{name}` tells where a body ends, which only the gateway may");
        scope.error(codes::FRAMING_FIELD, word.span, message);
    }
    (!framing).then_some(())
}
