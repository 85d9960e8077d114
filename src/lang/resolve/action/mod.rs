//! Actions: a row for each says where it may stand and how its words are read (HAProxy manual §4.3).

mod answer;
mod count;
mod header;
mod legacy;
mod list;
mod log;
mod redirect;
mod target;
mod variable;
mod wait;

use super::{
    Scope,
    call::{self, RawArg},
    codes, cond, known, split_cond,
};
use crate::{
    lang::{
        ast::{Line, Word},
        diag::Diagnostic,
        source::Span,
        suggest,
    },
    rule::{Action, Expr, Phase, Rule, Source, action::header::Side},
};

/// One action.
struct Row {
    name: &'static str,
    /// Where it may stand.
    phases: &'static [Phase],
    /// What follows it, for messages.
    usage: &'static str,
    read: fn(&mut Scope<'_>, &Input<'_>) -> Option<Action>,
}

const REQUEST: &[Phase] = &[Phase::Request];
const LIVE: &[Phase] = &[Phase::Request, Phase::Response, Phase::AfterResponse];
const ANSWERED: &[Phase] = &[Phase::Request, Phase::Response];
const OF_RESPONSE: &[Phase] = &[Phase::Response, Phase::AfterResponse];
const ALL: &[Phase] = &[Phase::Request, Phase::Response, Phase::AfterResponse, Phase::CacheResponse];

/// Rules below HTTP.
const BELOW: &[Phase] = &[Phase::Connection, Phase::Session, Phase::Content, Phase::ResponseContent];
const CLOSING: &[Phase] = &[Phase::Connection, Phase::Session, Phase::Content, Phase::ResponseContent, Phase::Request];
const TRACKING: &[Phase] = &[Phase::Connection, Phase::Session, Phase::Content, Phase::Request, Phase::Response];
/// Everywhere but on what is stored.
const ANYWHERE: &[Phase] = &[
    Phase::Connection,
    Phase::Session,
    Phase::Content,
    Phase::ResponseContent,
    Phase::Request,
    Phase::Response,
    Phase::AfterResponse,
];

const ROWS: &[Row] = &[
    Row { name: "accept", phases: BELOW, usage: "", read: |scope, input| input.nothing(scope, Action::Allow) },
    Row { name: "reject", phases: CLOSING, usage: "", read: close },
    Row { name: "close", phases: &[Phase::ResponseContent], usage: "", read: close },
    Row { name: "silent-drop", phases: CLOSING, usage: "", read: drop_silently },
    Row { name: "track-sc0", phases: TRACKING, usage: "EXPRESSION [table TABLE]", read: count::track },
    Row { name: "track-sc1", phases: TRACKING, usage: "EXPRESSION [table TABLE]", read: count::track },
    Row { name: "track-sc2", phases: TRACKING, usage: "EXPRESSION [table TABLE]", read: count::track },
    Row { name: "sc-inc-gpc0", phases: ANYWHERE, usage: "", read: count::increase_first },
    Row { name: "sc-inc-gpc1", phases: ANYWHERE, usage: "", read: count::increase_second },
    Row { name: "sc-inc-gpc", phases: ANYWHERE, usage: "", read: count::increase_element },
    Row { name: "sc-add-gpc", phases: ANYWHERE, usage: "NUMBER|EXPRESSION", read: count::add_to_element },
    Row { name: "sc-set-gpt0", phases: ANYWHERE, usage: "NUMBER|EXPRESSION", read: count::set_first_tag },
    Row { name: "sc-set-gpt", phases: ANYWHERE, usage: "NUMBER|EXPRESSION", read: count::set_tag },
    Row { name: "allow", phases: LIVE, usage: "", read: |scope, input| input.nothing(scope, Action::Allow) },
    Row { name: "set-header", phases: ALL, usage: "NAME FORMAT", read: header::set },
    Row { name: "add-header", phases: ALL, usage: "NAME FORMAT", read: header::add },
    Row { name: "del-header", phases: ALL, usage: "NAME [-m METHOD]", read: header::delete },
    Row { name: "replace-header", phases: ALL, usage: "NAME REGEX FORMAT", read: header::replace },
    Row { name: "replace-value", phases: ALL, usage: "NAME REGEX FORMAT", read: header::replace_value },
    Row { name: "set-status", phases: OF_RESPONSE, usage: "STATUS [reason PHRASE]", read: header::set_status },
    Row { name: "early-hint", phases: REQUEST, usage: "NAME FORMAT", read: header::hint },
    Row { name: "set-method", phases: REQUEST, usage: "FORMAT", read: target::set_method },
    Row { name: "set-path", phases: REQUEST, usage: "FORMAT", read: target::set_path },
    Row { name: "set-pathq", phases: REQUEST, usage: "FORMAT", read: target::set_path_and_query },
    Row { name: "set-uri", phases: REQUEST, usage: "FORMAT", read: target::set_uri },
    Row { name: "set-query", phases: REQUEST, usage: "FORMAT", read: target::set_query },
    Row { name: "replace-path", phases: REQUEST, usage: "REGEX FORMAT", read: target::replace_path },
    Row { name: "set-var", phases: ANYWHERE, usage: "EXPRESSION", read: variable::set },
    Row { name: "set-var-fmt", phases: ANYWHERE, usage: "FORMAT", read: variable::set_format },
    Row { name: "unset-var", phases: ANYWHERE, usage: "", read: variable::unset },
    Row { name: "replace-pathq", phases: REQUEST, usage: "REGEX FORMAT", read: target::replace_path_and_query },
    Row { name: "replace-uri", phases: REQUEST, usage: "REGEX FORMAT", read: target::replace_uri },
    Row { name: "normalize-uri", phases: REQUEST, usage: "NORMALIZER [full|strict]", read: target::normalize },
    Row { name: "deny", phases: ANSWERED, usage: answer::USAGE, read: answer::deny },
    Row { name: "return", phases: ANSWERED, usage: answer::USAGE, read: answer::answer },
    Row { name: "tarpit", phases: REQUEST, usage: answer::USAGE, read: answer::tarpit },
    Row { name: "auth", phases: REQUEST, usage: "[realm REALM]", read: answer::auth },
    Row { name: "set-map", phases: LIVE, usage: "(FILE) KEY VALUE", read: list::set },
    Row { name: "del-map", phases: LIVE, usage: "(FILE) KEY", read: list::remove },
    Row { name: "add-acl", phases: ANSWERED, usage: "(FILE) KEY", read: list::add },
    Row { name: "del-acl", phases: ANSWERED, usage: "(FILE) KEY", read: list::remove },
    Row { name: "capture", phases: LIVE, usage: "EXPRESSION len BYTES|id SLOT", read: log::capture },
    Row { name: "set-log-level", phases: LIVE, usage: "LEVEL|silent", read: log::set_level },
    Row {
        name: "redirect",
        phases: ANSWERED,
        usage: "location|prefix|scheme FORMAT [code CODE] [drop-query] [keep-query] [append-slash] [ignore-empty] \
                [set-cookie NAME[=VALUE]|set-cookie-fmt FORMAT|clear-cookie NAME]",
        read: redirect::read,
    },
    Row { name: "wait-for-body", phases: REQUEST, usage: "time TIME [at-least BYTES]", read: wait::for_body },
    Row { name: "purge", phases: REQUEST, usage: "[soft]", read: answer::purge },
];

/// Actions that are read and change nothing here, and why.
const ACCEPTED: &[(&str, &[Phase], &str)] = &[
    ("set-nice", ANSWERED, "requests have no priorities here"),
    ("set-mark", ANSWERED, MARKS),
    ("set-tos", ANSWERED, MARKS),
    ("set-fc-mark", ANSWERED, MARKS),
    ("set-fc-tos", ANSWERED, MARKS),
    ("set-bc-mark", REQUEST, MARKS),
    ("set-bc-tos", REQUEST, MARKS),
    ("wait-for-handshake", REQUEST, "a request is served when its handshake is complete"),
    ("strict-mode", LIVE, "an edit does not fail for want of room"),
    ("disable-l7-retry", REQUEST, "what a server may have seen is not sent again"),
];

const MARKS: &str = "packets are not marked; let the packet filter do it by address and port";

/// Every action: its name, where it may stand, and what follows it.
pub fn actions() -> impl Iterator<Item = (&'static str, &'static [Phase], &'static str)> {
    ROWS.iter().map(|row| (row.name, row.phases, row.usage))
}

/// The actions that are accepted without effect: name, where they may stand, why.
pub fn accepted_actions() -> impl Iterator<Item = (&'static str, &'static [Phase], &'static str)> {
    ACCEPTED.iter().copied()
}

pub use answer::{challenge, message, page, page_status, pages_of};
pub use legacy::legacy;

/// What a row reads.
struct Input<'w> {
    phase: Phase,
    row: &'static Row,
    /// The action's own word.
    action: &'w Word,
    /// What stands in parentheses in it.
    args: Vec<RawArg>,
    /// The words behind it, the condition left out.
    words: &'w [Word],
}

/// The rule that the words behind `http-request` and its kin are, condition included.
pub fn rule(scope: &mut Scope<'_>, phase: Phase, words: &[Word], line: &Line) -> Option<Rule> {
    let (head, condition) = split_cond(words);
    let Some((action, rest)) = head.split_first() else {
        let span = condition.first().map_or(line.span.after(), |word| word.span);
        scope.error(codes::ACTION_SHAPE, span, format!("`{}` needs an action", phase.keyword()));
        return None;
    };
    cond::without_if(scope, rest, condition)?;
    let made = read(scope, phase, action, rest);
    let cond = cond(scope, condition, phase);
    let rule = Rule { action: made?, cond: cond?, place: None };
    fit_to_store(scope, phase, &rule, action.span).then_some(rule)
}

/// The rule that the words behind a plain `redirect` are: as `http-request redirect`, with text in place of formats.
pub fn redirect_line(scope: &mut Scope<'_>, words: &[Word], line: &Line) -> Option<Rule> {
    let (head, condition) = split_cond(words);
    cond::without_if(scope, head, condition)?;
    let made = redirect::literal(scope, head, line);
    let cond = cond(scope, condition, Phase::Request);
    Some(Rule { action: made?, cond: cond?, place: None })
}

fn read(scope: &mut Scope<'_>, phase: Phase, action: &Word, words: &[Word]) -> Option<Action> {
    let call = match call::one(action) {
        Ok(call) => call,
        Err(finding) => {
            scope.report(finding);
            return None;
        }
    };
    let name = String::from_utf8_lossy(call.name(action)).into_owned();
    let span = action.part(call.name.clone());
    if let Some((_, _, reason)) = ACCEPTED.iter().find(|(known, phases, _)| *known == name && phases.contains(&phase)) {
        accept(scope, &name, span, reason);
        return None;
    }
    let Some(row) = ROWS.iter().find(|row| row.name == name) else {
        unknown(scope, phase, &name, span);
        return None;
    };
    if !row.phases.contains(&phase) {
        let message = format!("`{name}` cannot stand in `{}`", phase.keyword());
        if known::is_action(&name) && phase == Phase::Response {
            scope.refuse(codes::UNBUILT_ACTION, span, format!("`{} {name}` is not built yet", phase.keyword()));
        } else {
            scope.error(codes::ACTION_PHASE, span, message);
        }
        return None;
    }
    let takes_arguments = ["-var", "-var-fmt", "-map", "-acl"].iter().any(|end| name.ends_with(end));
    if let Some(arg) = call.args.first().filter(|_| !takes_arguments && !name.starts_with("sc-")) {
        scope.error(codes::ACTION_SHAPE, action.part(arg.at.clone()), format!("`{name}` takes nothing in parentheses"));
        return None;
    }
    (row.read)(scope, &Input { phase, row, action, args: call.args, words })
}

fn close(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    input.nothing(scope, Action::Close { silent: false })
}

fn drop_silently(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    input.nothing(scope, Action::Close { silent: true })
}

/// Said once for each action.
fn accept(scope: &mut Scope<'_>, name: &str, span: Span, reason: &str) {
    let message = format!("`{name}` has no effect: {reason}");
    if !scope.diagnostics.iter().any(|found| found.message == message) {
        scope.report(Diagnostic::note(crate::lang::code::ACCEPTED, span, message));
    }
}

fn unknown(scope: &mut Scope<'_>, phase: Phase, name: &str, span: Span) {
    if known::is_action(name) {
        scope.refuse(codes::UNBUILT_ACTION, span, format!("the action `{name}` is not built yet"));
        return;
    }
    let here = ROWS.iter().filter(|row| row.phases.contains(&phase)).map(|row| row.name);
    let nearest = suggest::nearest(name, here.chain(known::actions()));
    let finding = Diagnostic::error(codes::UNKNOWN_ACTION, span, format!("unknown action `{name}`"));
    scope.report(finding.did_you_mean(nearest));
}

/// An edit of what is stored must give the same for every client that will get it. The path and host are
/// the same for all of them, being what an object is found by.
fn fit_to_store(scope: &mut Scope<'_>, phase: Phase, rule: &Rule, span: Span) -> bool {
    const SHARED: &[&str] = &["method", "path", "pathq", "query", "base", "baseq", "url"];
    let of_host = |expr: &Expr| {
        matches!(expr.fetch().name(), "req.hdr" | "req.fhdr")
            && expr.args().field(0).is_some_and(|name| name.eq_ignore_ascii_case("host"))
    };
    let shared = |expr: &&Expr| {
        expr.source().of_response_alone()
            || (expr.source() == Source::Request && (SHARED.contains(&expr.fetch().name()) || of_host(expr)))
    };
    if phase != Phase::CacheResponse {
        return true;
    }
    let personal =
        rule.exprs().find(|expr| !shared(expr)).map(|expr| String::from_utf8_lossy(expr.text()).into_owned());
    let Some(text) = personal.or_else(|| rule.aliases().next().map(|row| format!("%{}", row.name))) else {
        return true;
    };
    let message = format!("what is stored is for every client, and `{text}` is one client's");
    let finding = Diagnostic::error(codes::STORED_FOR_ALL, span, message);
    scope.report(
        finding.help(
            "use `http-response`, which runs on each delivery, or put the value in the key and read it from there",
        ),
    );
    false
}

impl<'w> Input<'w> {
    fn side(&self) -> Side {
        if self.phase.on_response() { Side::Response } else { Side::Request }
    }

    /// Exactly `N` words.
    fn exactly<const N: usize>(&self, scope: &mut Scope<'_>) -> Option<[&'w Word; N]> {
        if let Some(extra) = self.words.get(N) {
            self.misshapen(scope, extra.span, &format!("`{}` is one word too many", extra.lossy()));
            return None;
        }
        let words: Vec<_> = self.words.iter().collect();
        let found = <[&Word; N]>::try_from(words).ok();
        if found.is_none() {
            let last = self.words.last().unwrap_or(self.action);
            self.misshapen(scope, last.span.after(), "a word is missing");
        }
        found
    }

    /// No words.
    fn nothing(&self, scope: &mut Scope<'_>, action: Action) -> Option<Action> {
        self.exactly::<0>(scope).map(|[]| action)
    }

    fn misshapen(&self, scope: &mut Scope<'_>, span: Span, what: &str) {
        let name = self.row.name;
        let finding = Diagnostic::error(codes::ACTION_SHAPE, span, format!("`{name}`: {what}"));
        let gap = if self.row.usage.starts_with('(') { "" } else { " " };
        scope.report(finding.help(format!("write `{}`", format!("{name}{gap}{}", self.row.usage).trim_end())));
    }
}
