//! Words before HAProxy 2.1 that edit or refuse by whole lines: `reqadd`, `reqrep`, `rspdel`, `block` and their kin
//! (HAProxy 2.0 manual §4.2).

use super::{Scope, codes, cond, split_cond};
use crate::{
    lang::{
        ast::{Line, Word},
        diag::Diagnostic,
        resolve::format,
    },
    rule::{
        Action, Format, Phase, Rule,
        action::{
            answer::Reply,
            header::{HeaderEdit, Side, is_framing},
            line::{LineEdit, LineFilter},
            target::is_token,
        },
        pattern,
        template::{self, Part},
    },
};

/// What a line of one of these words is read as: the rule and its phase, and how it is written today.
pub struct Legacy {
    /// The rule.
    pub rule: Rule,
    /// When it runs.
    pub phase: Phase,
    /// Its form today.
    pub today: &'static str,
}

/// Reads the line of `block`, or of a word that begins with `req` or `rsp`.
pub fn legacy(scope: &mut Scope<'_>, keyword: &Word, words: &[Word], line: &Line) -> Option<Legacy> {
    let name = keyword.lossy();
    let (phase, side, rest) = match name.split_at_checked(3) {
        Some(("rsp", rest)) => (Phase::Response, Side::Response, rest),
        Some(("req", rest)) => (Phase::Request, Side::Request, rest),
        _ => (Phase::Request, Side::Request, &*name),
    };
    let (kind, fold) = match rest.strip_prefix('i') {
        Some(kind) => (kind, true),
        None => (rest, false),
    };
    let (head, condition) = split_cond(words);
    let cond = cond(scope, condition, phase);
    let (edit, today) = match (kind, head) {
        ("block", []) => {
            let rule = Rule { action: Action::Deny(Reply::Page(403).into()), cond: cond?, place: None };
            return Some(Legacy { rule, phase, today: "http-request deny" });
        }
        ("add", [text]) => {
            let rule = Rule { action: Action::AddHeader(added(scope, text, side)?), cond: cond?, place: None };
            return Some(Legacy { rule, phase, today: "add-header" });
        }
        ("del", [_]) => (LineEdit::Remove, "del-header"),
        ("rep", [_, with]) => (LineEdit::Replace(replacement(scope, with)?), "replace-header or replace-uri"),
        ("deny", [_]) if side == Side::Response => (LineEdit::Deny(502), "deny"),
        ("deny", [_]) => (LineEdit::Deny(403), "deny"),
        ("tarpit", [_]) => (LineEdit::Tarpit(500), "tarpit"),
        _ => {
            let usage = match kind {
                "block" => "",
                "add" => " LINE",
                "rep" => " REGEX REPLACEMENT",
                _ => " REGEX",
            };
            let span = words.last().map_or(line.span.after(), |word| word.span);
            let finding = Diagnostic::error(codes::ACTION_SHAPE, span, format!("these are not the words of `{name}`"));
            scope.report(finding.help(format!("write `{name}{usage} [if CONDITION]`")));
            return None;
        }
    };
    let regex = compiled(scope, head.first()?, fold)?;
    let action = Action::EditLines(LineFilter { side, regex, edit }.into());
    Some(Legacy { rule: Rule { action, cond: cond?, place: None }, phase, today })
}

fn compiled(scope: &mut Scope<'_>, word: &Word, fold: bool) -> Option<regex::bytes::Regex> {
    match pattern::regex(&word.text, fold) {
        Ok(regex) => Some(regex),
        Err(fault) => {
            let span = if fault.at > 0 { word.part(fault.at..word.text.len()) } else { word.span };
            scope.report(Diagnostic::error(codes::BAD_REGEX, span, fault.message).help(fault.help));
            None
        }
    }
}

fn replacement(scope: &mut Scope<'_>, word: &Word) -> Option<Vec<Part>> {
    let parts = template::parts(&word.text);
    if let Err(at) = parts {
        let span = word.part(at..word.text.len());
        scope.error(codes::BAD_REPLACEMENT, span, "an escape in the replacement is not complete");
    }
    parts.ok()
}

/// A whole line: name, colon, value.
fn added(scope: &mut Scope<'_>, word: &Word, side: Side) -> Option<HeaderEdit> {
    format::no_controls(scope, word)?;
    let line = word.lossy();
    let (name, value) = line.split_once(':').unwrap_or_default();
    if !is_token(name.as_bytes()) {
        let finding = Diagnostic::error(codes::BAD_FIELD_NAME, word.span, "this is no field line");
        scope.report(finding.help("write a name, a colon and a value as one word: `X-Name:\\ value`"));
        return None;
    }
    if is_framing(name.as_bytes()) {
        scope.error(codes::FRAMING_FIELD, word.span, format!("`{name}` tells where the body ends: no rule may"));
        return None;
    }
    Some(HeaderEdit { side, name: name.into(), value: Format::literal(value.trim().as_bytes()) })
}
