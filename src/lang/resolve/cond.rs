//! Conditions: `if TERMS [|| TERMS …]`, `unless …` (HAProxy manual §7.2).

use std::sync::Arc;

use super::{Scope, acl, acls, codes, expr, joined, span_of};
use crate::{
    lang::{ast::Word, diag::Diagnostic, source::Span},
    rule::{
        Cond, Phase,
        acl::{Acl, Term},
    },
};

/// The words before the first `if` or `unless`, and those from there on.
pub fn split_cond(words: &[Word]) -> (&[Word], &[Word]) {
    let at = words.iter().position(|word| word.is("if") || word.is("unless")).unwrap_or(words.len());
    words.split_at_checked(at).unwrap_or((words, &[]))
}

/// A condition whose `if` was forgotten: `None`, and that is said.
pub(super) fn without_if(scope: &mut Scope<'_>, words: &[Word], condition: &[Word]) -> Option<()> {
    let Some(brace) = words.iter().find(|word| word.is("{")).filter(|_| condition.is_empty()) else { return Some(()) };
    let finding = Diagnostic::error(codes::CONDITION_SHAPE, brace.span, "a condition needs `if` or `unless` before it");
    scope.report(finding.help("write `if { … }`"));
    None
}

/// The condition that the words are: none, or `if` or `unless` and terms.
pub fn cond(scope: &mut Scope<'_>, words: &[Word], phase: Phase) -> Option<Option<Cond>> {
    let Some((keyword, terms)) = words.split_first() else { return Some(None) };
    if !keyword.is("if") && !keyword.is("unless") {
        let message = format!("expected `if` or `unless`, found `{}`", keyword.lossy());
        scope.error(codes::CONDITION_SHAPE, keyword.span, message);
        return None;
    }
    if terms.is_empty() {
        let message = format!("`{}` needs a condition behind it", keyword.lossy());
        scope.error(codes::CONDITION_SHAPE, keyword.span.after(), message);
        return None;
    }
    let groups = Parser { scope, phase, rest: terms }.groups()?;
    Some(Some(Cond::new(groups, keyword.is("unless"), &joined(words))))
}

struct Parser<'p, 's, 'w> {
    scope: &'p mut Scope<'s>,
    phase: Phase,
    rest: &'w [Word],
}

impl<'w> Parser<'_, '_, 'w> {
    /// Reads on after a term that is wrong, so that the others are looked at as well.
    fn groups(mut self) -> Option<Vec<Vec<Term>>> {
        let mut groups = vec![];
        let mut group = vec![];
        let mut fine = true;
        let mut empty = true;
        while let Some(word) = self.rest.first() {
            if word.is("||") || word.text.eq_ignore_ascii_case(b"or") {
                self.rest = self.rest.get(1..).unwrap_or_default();
                if empty || self.rest.is_empty() {
                    let message = format!("`{}` stands between two conditions", word.lossy());
                    self.scope.error(codes::CONDITION_SHAPE, word.span, message);
                    fine = false;
                }
                groups.push(std::mem::take(&mut group));
                empty = true;
                continue;
            }
            empty = false;
            match self.term() {
                Some(term) => group.push(term),
                None => fine = false,
            }
        }
        groups.push(group);
        fine.then_some(groups)
    }

    fn term(&mut self) -> Option<Term> {
        let mut negated = false;
        let mut last = Span::default();
        while let Some((word, rest)) = self.rest.split_first() {
            self.rest = rest;
            last = word.span;
            let marks = word.text.iter().take_while(|byte| **byte == b'!').count();
            negated ^= marks % 2 == 1;
            let name = word.text.get(marks..).unwrap_or_default();
            if name.is_empty() {
                continue;
            }
            let acl = if name == b"{" { self.anonymous(word)? } else { self.named(word, marks)? };
            return Some(Term { negated, acl });
        }
        self.scope.error(codes::CONDITION_SHAPE, last, "a `!` needs an ACL behind it");
        None
    }

    fn named(&mut self, word: &Word, from: usize) -> Option<Arc<Acl>> {
        let span = word.part(from..word.text.len());
        let name = String::from_utf8_lossy(word.text.get(from..).unwrap_or_default()).into_owned();
        if name == "}" {
            self.scope.error(codes::CONDITION_SHAPE, span, "this `}` closes nothing");
            return None;
        }
        let Some(acl) = acls::named(self.scope, &name, span) else {
            if name.starts_with('{') || expr::is_criterion(&name) {
                // What follows belongs to it and names no ACL either.
                self.rest = &[];
            }
            return None;
        };
        if let Some(finding) = self.too_early(&format!("the ACL `{name}`"), &acl, span) {
            self.scope.report(match self.scope.acls.place(&name) {
                Some(place) => finding.label(place, "it is declared here"),
                None => finding,
            });
            return None;
        }
        Some(acl)
    }

    /// `{ CRITERION … }`: the first `}` ends it.
    fn anonymous(&mut self, open: &Word) -> Option<Arc<Acl>> {
        let Some(end) = self.rest.iter().position(|word| word.is("}")) else {
            let finding = Diagnostic::error(codes::CONDITION_SHAPE, open.span, "this `{` is not closed");
            self.scope.report(finding.help("write a `}` as a word of its own behind the patterns"));
            self.rest = &[];
            return None;
        };
        let (words, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest.get(1..).unwrap_or_default();
        let Some(span) = span_of(words) else {
            self.scope.error(codes::CONDITION_SHAPE, open.span, "there is nothing between these braces");
            return None;
        };
        let acl = Acl::new("", acl::test(self.scope, words)?, &joined(words));
        if let Some(finding) = self.too_early("this", &acl, span) {
            self.scope.report(finding);
            return None;
        }
        Some(Arc::new(acl))
    }

    fn too_early(&self, subject: &str, acl: &Acl, span: Span) -> Option<Diagnostic> {
        expr::too_early(self.scope, subject, acl.exprs(), self.phase, span)
    }
}
