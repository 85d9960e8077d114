//! What rules do, and what comes out of a rule set.

pub mod answer;
pub mod count;
pub mod header;
pub mod line;
pub mod list;
pub mod normalize;
pub mod redirect;
pub mod target;

use bytes::Bytes;

use self::{
    answer::{Given, Reply},
    count::{CounterEdit, Track, Tracking},
    header::{HeaderDelete, HeaderEdit, HeaderReplace},
    line::{LineEdit, LineFilter},
    list::ListEdit,
    normalize::Normalizer,
    redirect::Redirect,
    target::{TargetPart, TargetReplace},
};
use super::{
    acl::{Cond, Tri},
    alias::AliasRow,
    capture::Place,
    expr::Expr,
    format::Format,
    matcher::Matcher,
    notes::{LogLevel, RulePlace},
    phase::{Source, Stage},
    trace::Before,
    txn::Txn,
    vars::{SetWhen, VarId, VarScope},
};
use crate::message::{BodyWait, Response};

/// What one rule does. One variant an action; `lang::resolve` has the rows that read them.
#[derive(Clone, Debug)]
pub enum Action {
    /// `allow`: the rest of the rule set is skipped.
    Allow,
    /// `set-header NAME FMT`.
    SetHeader(HeaderEdit),
    /// `add-header NAME FMT`.
    AddHeader(HeaderEdit),
    /// `del-header NAME`.
    DelHeader(HeaderDelete),
    /// `replace-header NAME REGEX FMT`.
    ReplaceHeader(Box<HeaderReplace>),
    /// `replace-value NAME REGEX FMT`.
    ReplaceValue(Box<HeaderReplace>),
    /// `set-method FMT`.
    SetMethod(Format),
    /// `set-path FMT`, `set-pathq FMT`, `set-uri FMT`.
    SetTarget(TargetPart, Format),
    /// `set-query FMT`.
    SetQuery(Format),
    /// `replace-path REGEX FMT`, `replace-pathq`, `replace-uri`.
    ReplaceTarget(TargetReplace),
    /// `normalize-uri NORMALIZER`.
    NormalizeUri(Normalizer),
    /// `set-status STATUS [reason PHRASE]`.
    SetStatus(u16, Box<str>),
    /// `early-hint NAME FMT`.
    EarlyHint(Box<str>, Format),
    /// `set-var(scope.name[,cond…]) EXPR`.
    SetVar(VarId, Box<[SetWhen]>, Expr),
    /// `set-var-fmt(scope.name[,cond…]) FMT`.
    SetVarFormat(VarId, Box<[SetWhen]>, Format),
    /// `unset-var(scope.name)`.
    UnsetVar(VarId),
    /// `set-map`, `del-map`, `add-acl`, `del-acl`.
    ChangeList(Box<ListEdit>),
    /// `reqrep` and its kin.
    EditLines(Box<LineFilter>),
    /// `capture EXPR len N`, `capture EXPR id N`.
    Capture(Expr, Place),
    /// `set-log-level LEVEL`.
    SetLogLevel(LogLevel),
    /// `deny`.
    Deny(Box<Reply>),
    /// `return`.
    Return(Box<Reply>),
    /// `tarpit`.
    Tarpit(Box<Reply>),
    /// `auth [realm REALM]`: what `WWW-Authenticate` says.
    Auth(Box<[u8]>),
    /// `redirect`.
    Redirect(Box<Redirect>),
    /// `purge [soft]`.
    Purge {
        /// Whether a stale object is left.
        soft: bool,
    },
    /// `reject`, `close`, `silent-drop`.
    Close {
        /// Whether the client is not even told that the connection ends.
        silent: bool,
    },
    /// `wait-for-body time TIME [at-least BYTES]`.
    WaitForBody(BodyWait),
    /// `track-sc0 EXPR`.
    Track(Box<Track>),
    /// `sc-inc-gpc0` and its kin.
    Counter(Box<CounterEdit>),
}

/// One rule: an action, perhaps under a condition.
#[derive(Clone, Debug)]
pub struct Rule {
    /// `None`: always.
    pub cond: Option<Cond>,
    /// What is done.
    pub action: Action,
    /// Where it stands; `None` for what stands in no file.
    pub place: Option<RulePlace>,
}

/// Rules of one phase, in the order they run.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    /// The rules.
    pub rules: Vec<Rule>,
}

/// A response that a rule made.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its head, without `Content-Length` and `Date`; its framing is the body's length.
    pub head: Response,
    /// Its body.
    pub body: Bytes,
}

/// How a rule set ended.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Go on.
    Continue,
    /// The exchange is refused (`deny`, `auth`).
    Deny(Given),
    /// The exchange is answered (`redirect`, `return`).
    Answer(Given),
    /// The request is refused, and its client waits for that (`tarpit`).
    Tarpit(Given),
    /// The request's URL is purged; `soft` leaves a stale object.
    Purge {
        /// `http-request purge soft`.
        soft: bool,
    },
    /// The connection is closed without an answer.
    Close {
        /// Whether the client is not even told so (`silent-drop`).
        silent: bool,
    },
    /// The request's body is waited for (`wait-for-body`); the rule at `next` goes on then.
    Wait {
        /// For how much of it, and how long.
        wait: BodyWait,
        /// The place of that rule in its set.
        next: usize,
    },
}

/// What follows an action.
enum Flow {
    Next,
    Wait(BodyWait),
    End(Verdict),
}

impl RuleSet {
    /// Runs the rules in order until one ends it.
    pub fn run(&self, txn: &mut Txn<'_>) -> Verdict {
        self.resume(txn, 0)
    }

    /// Whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether every rule reads the response alone (no request, connection, variable or clock), so
    /// that its outcome can be kept beside a stored object.
    pub fn reads_only_response(&self) -> bool {
        self.rules.iter().all(|rule| {
            rule.action.edits_only_fields()
                && rule.is_settled()
                && rule.aliases().next().is_none()
                && rule.exprs().all(|expr| expr.source().of_response_alone())
        })
    }

    /// Whether a rule may end it with an answer, or with none.
    pub fn answers(&self) -> bool {
        self.rules.iter().any(|rule| rule.action.answers())
    }

    /// Whether a rule keeps something for the connection, in its [`super::Session`].
    pub fn keeps_session(&self) -> bool {
        self.rules.iter().any(Rule::keeps_session)
    }

    /// Whether a rule tracks exchanges.
    pub fn tracks(&self) -> bool {
        let of_exchange = |track: &Track| track.tracks != Tracking::Connection;
        self.rules.iter().any(|rule| matches!(&rule.action, Action::Track(track) if of_exchange(track)))
    }

    /// The latest stage any rule needs.
    pub fn stage(&self) -> Stage {
        self.rules.iter().flat_map(Rule::exprs).map(Expr::stage).max().unwrap_or(Stage::Connection)
    }

    /// As [`RuleSet::run`], from the rule at `from` on: where an earlier run has had to wait.
    pub fn resume(&self, txn: &mut Txn<'_>, from: usize) -> Verdict {
        let mut next = from;
        while let Some(rule) = self.rules.get(next) {
            next += 1;
            if rule.cond.as_ref().is_some_and(|cond| !cond.holds(txn)) {
                if let Some(trace) = &txn.notes.trace {
                    trace.tried(rule.place, Tri::False);
                }
                continue;
            }
            let flow = match txn.notes.trace {
                None => rule.action.apply(txn),
                Some(_) => rule.apply_traced(txn),
            };
            match flow {
                Flow::Next => {}
                Flow::Wait(wait) => return Verdict::Wait { wait, next },
                Flow::End(verdict) => {
                    txn.notes.last_rule = rule.place;
                    return verdict;
                }
            }
        }
        Verdict::Continue
    }
}

impl Rule {
    #[cold]
    fn apply_traced(&self, txn: &mut Txn<'_>) -> Flow {
        let before = Before::of(txn);
        let flow = self.action.apply(txn);
        let verdict = match &flow {
            Flow::Next | Flow::Wait(_) => None,
            Flow::End(verdict) => Some(verdict),
        };
        before.compare(txn, self.place, self.action.variable(), verdict);
        flow
    }

    /// Whether no list that it looks into is changed by rules.
    fn is_settled(&self) -> bool {
        let tests = self.cond.iter().flat_map(Cond::terms).flat_map(|term| term.acl.tests());
        tests.map(|test| &test.matcher).all(Matcher::is_settled) && self.exprs().all(Expr::is_settled)
    }

    /// Every expression that its condition and its action read.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.cond.iter().flat_map(Cond::exprs).chain(self.action.exprs())
    }

    /// Every alias of a log format that its action writes.
    pub fn aliases(&self) -> impl Iterator<Item = &'static AliasRow> {
        self.action.formats().into_iter().flat_map(Format::aliases)
    }

    /// Whether it keeps something for the connection.
    fn keeps_session(&self) -> bool {
        let of_connection = |id: VarId| id.scope == VarScope::Sess;
        matches!(self.action, Action::SetVar(id, ..) | Action::SetVarFormat(id, ..) if of_connection(id))
            || matches!(&self.action, Action::Track(track) if track.tracks == Tracking::Connection)
            || self.exprs().flat_map(Expr::vars).any(of_connection)
    }

    /// Where what it reads comes from.
    pub fn sources(&self) -> impl Iterator<Item = Source> + '_ {
        self.exprs().map(Expr::source)
    }
}

impl Action {
    /// Every expression that it reads.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let expr = match self {
            Self::Track(track) => Some(&track.key),
            Self::Counter(edit) => edit.expr(),
            Self::SetVar(_, _, expr) | Self::Capture(expr, _) => Some(expr),
            _ => None,
        };
        expr.into_iter().chain(self.formats().into_iter().flat_map(Format::exprs))
    }

    /// The variable that it sets.
    const fn variable(&self) -> Option<VarId> {
        match self {
            Self::SetVar(id, ..) | Self::SetVarFormat(id, ..) | Self::UnsetVar(id) => Some(*id),
            _ => None,
        }
    }

    fn formats(&self) -> Vec<&Format> {
        match self {
            Self::SetHeader(edit) | Self::AddHeader(edit) => vec![&edit.value],
            Self::ReplaceHeader(replace) | Self::ReplaceValue(replace) => vec![&replace.with],
            Self::SetMethod(format) | Self::SetTarget(_, format) | Self::SetQuery(format) => vec![format],
            Self::EarlyHint(_, format) => vec![format],
            Self::ReplaceTarget(replace) => vec![&replace.with],
            Self::Deny(reply) | Self::Return(reply) | Self::Tarpit(reply) => reply.formats(),
            Self::Redirect(redirect) => redirect.formats(),
            Self::SetVarFormat(_, _, format) => vec![format],
            Self::Allow
            | Self::DelHeader(_)
            | Self::SetVar(..)
            | Self::UnsetVar(_)
            | Self::Purge { .. }
            | Self::NormalizeUri(_)
            | Self::SetStatus(..)
            | Self::Auth(_)
            | Self::Close { .. }
            | Self::WaitForBody(_)
            | Self::Track(_)
            | Self::Counter(_)
            | Self::Capture(..)
            | Self::EditLines(_)
            | Self::SetLogLevel(_) => vec![],
            Self::ChangeList(edit) => edit.formats(),
        }
    }

    /// Whether it answers, ends the exchange without an answer, or may take the body away or give one.
    const fn answers(&self) -> bool {
        matches!(
            self,
            Self::SetStatus(..)
                | Self::EditLines(_)
                | Self::Deny(_)
                | Self::Return(_)
                | Self::Tarpit(_)
                | Self::Auth(_)
                | Self::Redirect(_)
                | Self::Close { .. }
        )
    }

    const fn edits_only_fields(&self) -> bool {
        matches!(
            self,
            Self::Allow
                | Self::SetHeader(_)
                | Self::AddHeader(_)
                | Self::DelHeader(_)
                | Self::ReplaceHeader(_)
                | Self::ReplaceValue(_)
        )
    }

    fn apply(&self, txn: &mut Txn<'_>) -> Flow {
        match self {
            Self::Allow => return Flow::End(Verdict::Continue),
            Self::SetHeader(edit) => edit.set(txn),
            Self::AddHeader(edit) => edit.add(txn),
            Self::DelHeader(delete) => delete.apply(txn),
            Self::EditLines(filter) => {
                if filter.apply(txn) {
                    return filter.edit.flow();
                }
            }
            Self::ReplaceHeader(replace) => replace.lines(txn),
            Self::ReplaceValue(replace) => replace.members(txn),
            Self::SetMethod(format) => target::set_method(format, txn),
            Self::SetTarget(part, format) => part.set(format.text_in(txn), txn),
            Self::SetQuery(format) => target::set_query(format.text_in(txn), txn),
            Self::ReplaceTarget(replace) => replace.apply(txn),
            Self::NormalizeUri(normalizer) => {
                if !normalizer.apply(txn) {
                    return Flow::End(Verdict::Deny(Given::Page { status: 400, challenge: None }));
                }
            }
            Self::SetStatus(status, phrase) => {
                if let Some(response) = txn.response.as_deref_mut() {
                    response.status = *status;
                    response.set_phrase(phrase.as_bytes());
                }
            }
            Self::EarlyHint(name, format) => {
                let value = format.text_in(txn);
                txn.notes.hints.append(name.as_bytes(), value);
            }
            Self::Deny(reply) => return Flow::End(Verdict::Deny(reply.give(txn))),
            Self::Return(reply) => return Flow::End(Verdict::Answer(reply.give(txn))),
            Self::Tarpit(reply) => return Flow::End(Verdict::Tarpit(reply.give(txn))),
            Self::Auth(challenge) => {
                let given = Given::Page { status: 401, challenge: Some(challenge.clone()) };
                return Flow::End(Verdict::Deny(given));
            }
            Self::ChangeList(edit) => edit.apply(txn),
            Self::SetVar(id, when, expr) => {
                // A sample that is not there leaves the variable as it is.
                let arena = txn.arena;
                if let Some(sample) = expr.eval(txn).map(|sample| sample.copied_in(arena)) {
                    txn.set_var(*id, when.iter().copied(), sample);
                }
            }
            Self::SetVarFormat(id, when, format) => {
                let text = format.text_in(txn);
                txn.set_var(*id, when.iter().copied(), super::Sample::Str(text));
            }
            Self::UnsetVar(id) => txn.unset_var(*id),
            Self::Capture(expr, place) => {
                let captured = expr.eval(txn).and_then(|sample| sample.text(txn.arena));
                if let (Some(text), Some(captures)) = (captured, txn.env.captures()) {
                    txn.notes.captured.set(*place, text, captures.len(*place));
                }
            }
            Self::SetLogLevel(level) => txn.notes.log_level = Some(*level),
            Self::Redirect(redirect) => {
                if let Some(answer) = redirect.answer(txn) {
                    return Flow::End(Verdict::Answer(Given::Answer(Box::new(answer))));
                }
            }
            Self::Purge { soft } => return Flow::End(Verdict::Purge { soft: *soft }),
            Self::Close { silent } => return Flow::End(Verdict::Close { silent: *silent }),
            Self::WaitForBody(wait) if wait.is_met(txn.request) => {}
            Self::WaitForBody(wait) => return Flow::Wait(*wait),
            Self::Track(track) => track.apply(txn),
            Self::Counter(edit) => edit.apply(txn),
        }
        Flow::Next
    }
}

impl LineEdit {
    /// What follows when a line has matched.
    fn flow(&self) -> Flow {
        let page = |status: u16| Given::Page { status, challenge: None };
        match self {
            Self::Deny(status) => Flow::End(Verdict::Deny(page(*status))),
            Self::Tarpit(status) => Flow::End(Verdict::Tarpit(page(*status))),
            Self::Remove | Self::Replace(_) => Flow::Next,
        }
    }
}
