//! What rules did, for those who ask why: `explain` and rule tests. The exchanges of a running gateway carry no
//! trace and pay one look for it a rule and test.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bumpalo::Bump;
use serde::Serialize;

use super::{
    acl::{Acl, AclTest, Tri},
    action::{Verdict, answer::Given},
    notes::RulePlace,
    sample::Sample,
    txn::Txn,
    vars::VarId,
};
use crate::message::{Fields, Request, Response};

/// The course of one exchange through the rules.
#[derive(Debug, Default)]
pub struct Trace(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    values: Vec<Value>,
    tests: Vec<Tested>,
    steps: Vec<Tried>,
}

/// A rule that was tried.
#[derive(Clone, Debug, Serialize)]
pub struct Tried {
    /// Where it stands; `None` for what stands in no file.
    #[serde(skip)]
    pub place: Option<RulePlace>,
    /// How its condition came out; true when it has none. Unknown: it needs the response.
    pub outcome: Tri,
    /// The ACLs of its condition that had to be asked, in order.
    pub tests: Vec<Tested>,
    /// What it changed, one line each: `+ X-A: b`, `- Cookie: c`, `path /a → /b`.
    pub effects: Vec<String>,
}

/// An ACL that was asked.
#[derive(Clone, Debug, Serialize)]
pub struct Tested {
    /// Its name; empty between braces.
    pub acl: String,
    /// How it is written.
    pub text: String,
    /// What it was asked about, in order, up to what decided it.
    pub values: Vec<Value>,
    /// How it came out. Unknown: it needs the response.
    pub outcome: Tri,
}

/// A sample that an ACL was asked about.
#[derive(Clone, Debug, Serialize)]
pub struct Value {
    /// The expression that it comes from.
    pub expression: String,
    /// The value as text; binary ones in hexadecimal digits. `None`: there was none.
    pub value: Option<String>,
}

impl Trace {
    /// The rules that were tried so far, in order; they are forgotten here.
    pub fn take(&self) -> Vec<Tried> {
        std::mem::take(&mut self.seen().steps)
    }

    /// A line of an ACL was asked about a sample.
    pub(super) fn asked(&self, test: &AclTest, sample: Option<Sample<'_>>, arena: &Bump) {
        let value = Value { expression: lossy(test.expr.text()), value: sample.map(|sample| text(sample, arena)) };
        self.seen().values.push(value);
    }

    /// An ACL came out.
    pub(super) fn tested(&self, acl: &Acl, outcome: Tri) {
        let mut seen = self.seen();
        let values = std::mem::take(&mut seen.values);
        seen.tests.push(Tested { acl: acl.name().to_owned(), text: lossy(acl.text()), values, outcome });
    }

    /// A rule without effects of its own was tried: `use_backend`, `cache-rule`.
    pub fn tried(&self, place: Option<RulePlace>, outcome: Tri) {
        self.record(place, outcome, Vec::new());
    }

    fn record(&self, place: Option<RulePlace>, outcome: Tri, effects: Vec<String>) {
        let mut seen = self.seen();
        let tests = std::mem::take(&mut seen.tests);
        seen.steps.push(Tried { place, outcome, tests, effects });
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn said(what: &str, given: &Given) -> String {
    given.status().map_or_else(|| format!("{what} without a word"), |status| format!("{what} with {status}"))
}

/// An exchange before a rule acts on it.
pub(super) struct Before {
    method: String,
    target: String,
    status: Option<u16>,
    request: Vec<String>,
    response: Vec<String>,
}

impl Before {
    pub(super) fn of(txn: &Txn<'_>) -> Self {
        let response = txn.response.as_deref();
        Self {
            method: lossy(txn.request.method()),
            target: target(txn.request),
            status: response.map(|response| response.status),
            request: lines(&txn.request.fields),
            response: response.map(|response: &Response| lines(&response.fields)).unwrap_or_default(),
        }
    }

    /// Notes what has become of it: the rule at `place` has acted, set `variable` and ended its set with `verdict`.
    pub(super) fn compare(
        self,
        txn: &Txn<'_>,
        place: Option<RulePlace>,
        variable: Option<VarId>,
        verdict: Option<&Verdict>,
    ) {
        let Some(trace) = &txn.notes.trace else { return };
        let now = Self::of(txn);
        let mut effects = Vec::new();
        changed("method", &self.method, &now.method, &mut effects);
        changed("target", &self.target, &now.target, &mut effects);
        if let (Some(before), Some(now)) = (self.status, now.status) {
            changed("status", &before.to_string(), &now.to_string(), &mut effects);
        }
        edited(&self.request, &now.request, &mut effects);
        edited(&self.response, &now.response, &mut effects);
        if let Some(id) = variable {
            let value = txn.var(id).map(|sample| text(sample, txn.arena));
            effects.push(value.map_or_else(|| "variable unset".to_owned(), |value| format!("variable = {value:?}")));
        }
        match verdict {
            Some(Verdict::Deny(given)) => effects.push(said("refused", given)),
            Some(Verdict::Answer(given)) => effects.push(said("answered", given)),
            Some(Verdict::Tarpit(given)) => effects.push(said("kept waiting and refused", given)),
            Some(Verdict::Purge { .. }) => effects.push("purged".to_owned()),
            Some(Verdict::Close { .. }) => effects.push("connection closed".to_owned()),
            Some(Verdict::Wait { .. }) => effects.push("the body is waited for".to_owned()),
            Some(Verdict::Continue) => effects.push("the rest of its rules is skipped".to_owned()),
            None => {}
        }
        trace.record(place, Tri::True, effects);
    }
}

fn changed(what: &str, before: &str, now: &str, effects: &mut Vec<String>) {
    if before != now {
        effects.push(format!("{what} {before} → {now}"));
    }
}

/// The lines that went, then those that came; a line that is there twice counts twice.
fn edited(before: &[String], now: &[String], effects: &mut Vec<String>) {
    let without = |lines: &[String], others: &[String]| {
        let mut others = others.to_vec();
        let left = lines.iter().filter(|line| {
            let found = others.iter().position(|other| other == *line);
            found.map(|at| others.swap_remove(at)).is_none()
        });
        left.cloned().collect::<Vec<_>>()
    };
    effects.extend(without(before, now).iter().map(|line| format!("- {line}")));
    effects.extend(without(now, before).iter().map(|line| format!("+ {line}")));
}

fn target(request: &Request) -> String {
    let mut target = Vec::new();
    request.write_target(&mut target);
    lossy(&target)
}

fn lines(fields: &Fields) -> Vec<String> {
    fields.iter().map(|field| format!("{}: {}", lossy(field.name), lossy(field.value))).collect()
}

fn text(sample: Sample<'_>, arena: &Bump) -> String {
    sample.text(arena).map(lossy).unwrap_or_default()
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
