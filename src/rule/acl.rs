//! Named tests and their combination (HAProxy manual §7.1 and §7.2).

use std::sync::Arc;

use serde::Serialize;

use super::{
    expr::Expr,
    matcher::Matcher,
    phase::{Source, Stage},
    trace::Trace,
    txn::Txn,
};

/// A test with a name or between braces: lines of an expression and what it is matched with.
#[derive(Clone, Debug)]
pub struct Acl {
    name: Box<str>,
    text: Box<[u8]>,
    tests: Vec<AclTest>,
}

/// One line of an ACL.
#[derive(Clone, Debug)]
pub struct AclTest {
    /// What is tested.
    pub expr: Expr,
    /// How.
    pub matcher: Matcher,
}

impl AclTest {
    /// Whether any value of the expression passes. A sample that is not there does not.
    pub fn holds(&self, txn: &Txn<'_>) -> bool {
        match &txn.notes.trace {
            None => self.expr.any(txn, |sample| self.matcher.matches(sample, txn.arena)),
            Some(trace) => self.holds_traced(txn, trace),
        }
    }

    #[cold]
    fn holds_traced(&self, txn: &Txn<'_>, trace: &Trace) -> bool {
        let mut asked = false;
        let holds = self.expr.any(txn, |sample| {
            asked = true;
            trace.asked(self, Some(sample), txn.arena);
            self.matcher.matches(sample, txn.arena)
        });
        if !asked {
            trace.asked(self, None, txn.arena);
        }
        holds
    }
}

impl Acl {
    /// An ACL of one line, written as `text`; the name is empty between braces.
    pub fn new(name: &str, test: AclTest, text: &[u8]) -> Self {
        Self { name: name.into(), text: text.into(), tests: vec![test] }
    }

    /// Takes another line of the same name in: one of them has to hold.
    pub fn or(&mut self, test: AclTest, text: &[u8]) {
        self.tests.push(test);
        self.text = [&*self.text, b" || ", text].concat().into();
    }

    /// Its name; empty between braces.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it is written: criterion, flags and patterns of each line.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Its lines, in order.
    pub fn tests(&self) -> &[AclTest] {
        &self.tests
    }

    /// The expressions of its lines, in order.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> + Clone {
        self.tests.iter().map(|test| &test.expr)
    }

    /// Whether one of its lines holds.
    pub fn holds(&self, txn: &Txn<'_>) -> bool {
        let holds = self.tests.iter().any(|test| test.holds(txn));
        if let Some(trace) = &txn.notes.trace {
            trace.tested(self, if holds { Tri::True } else { Tri::False });
        }
        holds
    }

    /// As far as it is decided (see [`Cond::so_far`]).
    pub fn so_far(&self, txn: &Txn<'_>) -> Tri {
        let outcome = self.lines_so_far(txn);
        if let Some(trace) = &txn.notes.trace {
            trace.tested(self, outcome);
        }
        outcome
    }

    fn lines_so_far(&self, txn: &Txn<'_>) -> Tri {
        let decided = |test: &AclTest| txn.response.is_some() || test.expr.stage() < Stage::Response;
        let mut outcome = Tri::False;
        for test in &self.tests {
            if !decided(test) {
                outcome = Tri::Unknown;
            } else if test.holds(txn) {
                return Tri::True;
            }
        }
        outcome
    }

    /// The latest stage any of its lines needs.
    pub fn stage(&self) -> Stage {
        self.exprs().map(Expr::stage).max().unwrap_or(Stage::Connection)
    }
}

/// A condition: an OR of ANDs of possibly negated ACLs, `unless` folded in.
#[derive(Clone, Debug)]
pub struct Cond {
    groups: Box<[Box<[Term]>]>,
    /// `unless`: the whole is turned around.
    negated: bool,
    text: Box<[u8]>,
}

/// One ACL in a condition.
#[derive(Clone, Debug)]
pub struct Term {
    /// `!`.
    pub negated: bool,
    /// The ACL.
    pub acl: Arc<Acl>,
}

/// A truth value when part of the exchange has not happened yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tri {
    /// False whatever comes.
    False,
    /// True whatever comes.
    True,
    /// Depends on the response.
    Unknown,
}

impl Tri {
    /// The opposite; what is unknown stays so.
    #[must_use]
    pub const fn not(self) -> Self {
        match self {
            Self::False => Self::True,
            Self::True => Self::False,
            Self::Unknown => Self::Unknown,
        }
    }

    const fn not_if(self, negated: bool) -> Self {
        if negated { self.not() } else { self }
    }
}

impl Cond {
    /// One of `groups` holds, in each of them every term; `unless`: none does. Written as `text`.
    pub fn new(groups: Vec<Vec<Term>>, unless: bool, text: &[u8]) -> Self {
        Self { groups: groups.into_iter().map(Into::into).collect(), negated: unless, text: text.into() }
    }

    /// Whether the condition holds. A sample that is not there makes its ACL false.
    pub fn holds(&self, txn: &Txn<'_>) -> bool {
        let group = |terms: &[Term]| terms.iter().all(|term| term.acl.holds(txn) != term.negated);
        self.groups.iter().any(|terms| group(terms)) != self.negated
    }

    /// The condition as far as it is decided: when `txn` has no response, ACLs of stage
    /// [`Stage::Response`] are unknown.
    pub fn so_far(&self, txn: &Txn<'_>) -> Tri {
        let mut outcome = Tri::False;
        for terms in &self.groups {
            match group_so_far(terms, txn) {
                Tri::True => return Tri::True.not_if(self.negated),
                Tri::Unknown => outcome = Tri::Unknown,
                Tri::False => {}
            }
        }
        outcome.not_if(self.negated)
    }

    /// The latest stage any of its ACLs needs.
    pub fn stage(&self) -> Stage {
        self.terms().map(|term| term.acl.stage()).max().unwrap_or(Stage::Connection)
    }

    /// Where the values it tests come from.
    pub fn sources(&self) -> impl Iterator<Item = Source> + '_ {
        self.exprs().map(Expr::source)
    }

    /// The expressions of its ACLs.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.terms().flat_map(|term| term.acl.tests()).map(|test| &test.expr)
    }

    /// Its terms, group after group.
    pub fn terms(&self) -> impl Iterator<Item = &Term> {
        self.groups.iter().flatten()
    }

    /// Its groups: one of them has to hold, in each of them every term.
    pub fn groups(&self) -> &[Box<[Term]>] {
        &self.groups
    }

    /// Whether it is written with `unless`.
    pub fn is_unless(&self) -> bool {
        self.negated
    }

    /// How it is written, `if` or `unless` included.
    pub fn text(&self) -> &[u8] {
        &self.text
    }
}

fn group_so_far(terms: &[Term], txn: &Txn<'_>) -> Tri {
    let mut outcome = Tri::True;
    for term in terms {
        match term.acl.so_far(txn).not_if(term.negated) {
            Tri::False => return Tri::False,
            Tri::Unknown => outcome = Tri::Unknown,
            Tri::True => {}
        }
    }
    outcome
}
