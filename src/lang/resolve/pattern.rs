//! Patterns of an ACL, compiled together.

use std::sync::Arc;

use super::{Scope, codes, lists};
use crate::{
    lang::{
        ast::Word,
        diag::{Diagnostic, Severity},
        source::Span,
    },
    rule::{
        Matcher,
        list::{List, Look},
        matcher::{
            Method,
            address::Networks,
            hexadecimal,
            number::{Operator, Range},
        },
    },
};

/// One pattern that is written in the line.
#[derive(Clone, Debug)]
pub(super) struct Pattern<'w> {
    /// Its text.
    pub(super) text: Vec<u8>,
    /// Whether case is ignored.
    pub(super) fold: bool,
    /// The word it is.
    pub(super) word: &'w Word,
}

/// A file of patterns.
#[derive(Clone, Debug)]
pub(super) struct File<'w> {
    /// What is in it.
    pub(super) list: Arc<List>,
    /// Whether case is ignored.
    pub(super) fold: bool,
    /// Where it is named.
    pub(super) name: &'w Word,
}

impl Pattern<'_> {
    /// Where the bytes from `at` on stand.
    fn span(&self, at: usize) -> Span {
        if at > 0 && at < self.text.len() { self.word.part(at..self.text.len()) } else { self.word.span }
    }

    fn fault(&self, code: &'static str, at: usize, message: &str) -> Diagnostic {
        Diagnostic::error(code, self.span(at), message)
    }
}

/// The matcher of these patterns and files. `names`: host names are addresses (no `-n`).
pub(super) fn compile(
    scope: &mut Scope<'_>,
    method: Method,
    patterns: &[Pattern<'_>],
    files: &[File<'_>],
    names: bool,
) -> Option<Matcher> {
    let mut matcher = match method {
        _ if patterns.is_empty() => Some(Matcher::never()),
        Method::Int => ranges(scope, patterns).map(Matcher::int),
        Method::Len => ranges(scope, patterns).map(Matcher::len),
        Method::Ip => addresses(scope, patterns, names),
        Method::Bin => bytes(scope, patterns),
        _ => texts(scope, method, patterns),
    };
    for file in files {
        let look = Look { method, fold: file.fold, groups: false };
        let view = lists::view(scope, &file.list, look, names, file.name.span);
        matcher = matcher.zip(view).map(|(matcher, view)| Matcher::either(matcher, Matcher::list(view)));
    }
    matcher
}

/// Numbers; an operator changes the meaning of those behind it.
fn ranges(scope: &mut Scope<'_>, patterns: &[Pattern<'_>]) -> Option<Vec<Range>> {
    let mut ranges = Vec::with_capacity(patterns.len());
    let mut operator = Operator::default();
    let mut waiting = None;
    for pattern in patterns {
        let word = Operator::WORDS.iter().find(|(word, _)| word.as_bytes() == pattern.text);
        if let Some((_, next)) = word {
            operator = *next;
            waiting = Some(pattern);
            continue;
        }
        waiting = None;
        let Some(range) = operator.range(&pattern.text) else {
            let text = String::from_utf8_lossy(&pattern.text);
            let fault = pattern.fault(codes::BAD_PATTERN, 0, &format!("`{text}` is not a number or a range"));
            scope.report(fault.help("write `5`, `5:9`, `5:`, `:9`, or an operator: `gt 5`"));
            return None;
        };
        if operator != Operator::Eq && Range::is_written(&pattern.text) {
            scope.report(idle_operator(pattern));
        }
        ranges.push(range);
    }
    if let Some(pattern) = waiting {
        scope.report(pattern.fault(codes::BAD_PATTERN, 0, "an operator needs a number behind it"));
        return None;
    }
    Some(ranges)
}

/// A range behind `gt` and its kin is taken as it is.
fn idle_operator(pattern: &Pattern<'_>) -> Diagnostic {
    let text = String::from_utf8_lossy(&pattern.text);
    let message = format!("`{text}` is a range, to which the operator before it says nothing");
    let finding = Diagnostic { severity: Severity::Warning, ..pattern.fault(codes::IDLE_OPERATOR, 0, &message) };
    match text.strip_prefix('-') {
        Some(number) => finding.help(format!(
            "it means {number} or less; for negative numbers add to the sample first: `…,add({number}) gt 0`"
        )),
        None => finding.help("leave the operator out, or the range"),
    }
}

fn addresses(scope: &mut Scope<'_>, patterns: &[Pattern<'_>], names: bool) -> Option<Matcher> {
    let mut texts = Vec::with_capacity(patterns.len());
    for pattern in patterns {
        let text = std::slice::from_ref(&pattern.text);
        let Err((_, why)) = Networks::parse(text) else {
            texts.push(pattern.text.clone());
            continue;
        };
        let found = if names { lists::hosts(scope.outside, &pattern.text) } else { Vec::new() };
        if found.is_empty() {
            let fault = pattern.fault(codes::BAD_PATTERN, 0, &why);
            scope.report(if names && lists::may_be_host(&pattern.text) {
                fault.help("it is not the name of a host that can be resolved now, either")
            } else {
                fault
            });
            return None;
        }
        texts.extend(found.iter().map(|address| address.to_string().into_bytes()));
    }
    Networks::parse(&texts).ok().map(Matcher::ip)
}

fn bytes(scope: &mut Scope<'_>, patterns: &[Pattern<'_>]) -> Option<Matcher> {
    let mut bytes = Vec::with_capacity(patterns.len());
    for pattern in patterns {
        let Some(found) = hexadecimal(&pattern.text) else {
            let message = format!("`{}` is not made of pairs of hexadecimal digits", pattern.word.lossy());
            scope.report(pattern.fault(codes::BAD_PATTERN, 0, &message).help("write `2f61` for the bytes `/a`"));
            return None;
        };
        bytes.push(found);
    }
    Matcher::text(Method::Bin, &bytes, false).ok()
}

fn texts(scope: &mut Scope<'_>, method: Method, patterns: &[Pattern<'_>]) -> Option<Matcher> {
    let mut half = |fold: bool| {
        let half: Vec<_> = patterns.iter().filter(|pattern| pattern.fold == fold).collect();
        let texts: Vec<_> = half.iter().map(|pattern| pattern.text.clone()).collect();
        match Matcher::text(method, &texts, fold) {
            Ok(matcher) => Some(matcher),
            Err(fault) => {
                if let Some(pattern) = half.get(fault.index) {
                    let code = if method == Method::Reg { codes::BAD_REGEX } else { codes::BAD_PATTERN };
                    scope.report(pattern.fault(code, fault.at, &fault.message).help(fault.help));
                }
                None
            }
        }
    };
    let (exact, folded) = (half(false), half(true));
    Some(Matcher::either(exact?, folded?))
}
