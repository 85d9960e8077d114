//! Patterns of an ACL, compiled together.

use super::{Scope, codes};
use crate::{
    lang::{
        ast::Word,
        diag::{Diagnostic, Severity},
        source::Span,
    },
    rule::{
        Matcher,
        matcher::{
            Method,
            address::Networks,
            number::{Operator, Range},
        },
    },
};

/// One pattern.
#[derive(Clone, Debug)]
pub(super) struct Pattern<'w> {
    /// Its text.
    pub(super) text: Vec<u8>,
    /// Whether case is ignored.
    pub(super) fold: bool,
    /// The word it is, or that names its file.
    pub(super) word: &'w Word,
    /// Its line in that file.
    pub(super) line: Option<usize>,
}

impl Pattern<'_> {
    /// Where the bytes from `at` on stand.
    fn span(&self, at: usize) -> Span {
        match self.line {
            None if at > 0 && at < self.text.len() => self.word.part(at..self.text.len()),
            _ => self.word.span,
        }
    }

    fn fault(&self, code: &'static str, at: usize, message: &str) -> Diagnostic {
        let message = match self.line {
            Some(line) => format!("{}, line {line}: {message}", self.word.lossy()),
            None => message.to_owned(),
        };
        Diagnostic::error(code, self.span(at), message)
    }
}

/// The matcher of these patterns. `no_names`: host names are no addresses (`-n`).
pub(super) fn compile(
    scope: &mut Scope<'_>,
    method: Method,
    patterns: &[Pattern<'_>],
    no_names: bool,
) -> Option<Matcher> {
    match method {
        Method::Int => ranges(scope, patterns).map(Matcher::int),
        Method::Len => ranges(scope, patterns).map(Matcher::len),
        Method::Ip => addresses(scope, patterns, no_names),
        _ => texts(scope, method, patterns),
    }
}

/// Numbers; an operator changes the meaning of those behind it.
fn ranges(scope: &mut Scope<'_>, patterns: &[Pattern<'_>]) -> Option<Vec<Range>> {
    let mut ranges = Vec::with_capacity(patterns.len());
    let mut operator = Operator::default();
    let mut waiting = None;
    for pattern in patterns {
        let word = Operator::WORDS.iter().find(|(word, _)| pattern.line.is_none() && word.as_bytes() == pattern.text);
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

fn addresses(scope: &mut Scope<'_>, patterns: &[Pattern<'_>], no_names: bool) -> Option<Matcher> {
    let mut texts = Vec::with_capacity(patterns.len());
    for pattern in patterns {
        let text = std::slice::from_ref(&pattern.text);
        let Err((_, why)) = Networks::parse(text) else {
            texts.push(pattern.text.clone());
            continue;
        };
        let name = String::from_utf8_lossy(&pattern.text);
        let may_be_name = !no_names && name.contains(|c: char| c.is_ascii_alphabetic()) && !name.contains([':', '/']);
        let found = if may_be_name { scope.outside.resolve(&name, 0).unwrap_or_default() } else { Vec::new() };
        if found.is_empty() {
            let fault = pattern.fault(codes::BAD_PATTERN, 0, &why);
            scope.report(if may_be_name {
                fault.help("it is not the name of a host that can be resolved now, either")
            } else {
                fault
            });
            return None;
        }
        texts.extend(found.iter().map(|address| address.ip().to_string().into_bytes()));
    }
    Networks::parse(&texts).ok().map(Matcher::ip)
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
