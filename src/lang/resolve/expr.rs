//! Sample expressions (HAProxy manual §7.3): names, arguments, types, phases.

use std::sync::Arc;

use super::{
    Scope, acls,
    call::{Call, RawArg, calls},
    codes, known, lists, vars,
};
use crate::{
    lang::{ast::Word, diag::Diagnostic, source::Span, suggest},
    rule::{
        Expr, Phase, Source, Stage,
        action::target::is_token,
        args::{Arg, ArgKind, ArgSpec, Args, KeyText},
        converter::{self, ConverterRow},
        expr::Step,
        fetch::{self, FetchRow},
        matcher::{Method, hexadecimal, number::integer},
        sample::leading_int,
        table::KeyKind,
    },
};

/// The expression that a word is.
pub fn expr(scope: &mut Scope<'_>, word: &Word, phase: Phase) -> Option<Expr> {
    let calls = match calls(word, 0, false) {
        Ok((calls, _)) => calls,
        Err(finding) => {
            scope.report(finding);
            return None;
        }
    };
    in_phase(scope, word, &calls, phase)
}

/// The expression that a word of `global` is: it is evaluated before there is a connection.
pub fn global_expr(scope: &mut Scope<'_>, word: &Word) -> Option<Expr> {
    let expr = expr(scope, word, Phase::Request)?;
    internal(scope, std::iter::once(&expr), word).then_some(expr)
}

/// Whether expressions read nothing but what is there before the first connection; else that is reported.
pub(super) fn internal<'e>(scope: &mut Scope<'_>, exprs: impl IntoIterator<Item = &'e Expr>, word: &Word) -> bool {
    let there = |expr: &&Expr| matches!(expr.fetch().source, Source::Constant | Source::Variable | Source::Gateway);
    let Some(expr) = exprs.into_iter().find(|expr| !there(expr)) else { return true };
    let text = String::from_utf8_lossy(expr.text());
    let message = format!("`{text}` is {}, and `global` is read before there is any", expr.fetch().source.name());
    scope.report(
        Diagnostic::error(codes::TOO_EARLY, word.span, message).help("write a constant, such as `str(x)` or `int(1)`"),
    );
    false
}

/// The expression of these calls, outside ACLs.
pub(super) fn in_phase(scope: &mut Scope<'_>, word: &Word, calls: &[Call], phase: Phase) -> Option<Expr> {
    let row = fetch_row(scope, word, calls.first()?, phase.on_response())?;
    let expr = build(scope, word, calls, row)?;
    let span = calls.first().zip(calls.last()).map(|(first, last)| word.part(first.whole.start..last.whole.end));
    let (subject, span) = (format!("`{}`", String::from_utf8_lossy(expr.text())), span.unwrap_or(word.span));
    let early = too_early(scope, &subject, std::iter::once(&expr), phase, span);
    let finding = early.or_else(|| too_late(&subject, &expr, phase, span));
    let fine = finding.is_none();
    scope.diagnostics.extend(finding);
    fine.then_some(expr)
}

/// What is wrong when one of the expressions of `subject` reads what is not there yet in this phase.
pub(super) fn too_early<'e>(
    scope: &Scope<'_>,
    subject: &str,
    exprs: impl Iterator<Item = &'e Expr> + Clone,
    phase: Phase,
    span: Span,
) -> Option<Diagnostic> {
    if phase.reach() == Stage::Response {
        return None;
    }
    let (reads, help) = if exprs.clone().any(|expr| expr.stage() == Stage::Response) {
        let reads = format!("reads the response, and `{}` rules run before there is one", phase.keyword());
        (reads, "use it in an `http-response` rule")
    } else if exprs.clone().any(|expr| expr.stage() > phase.reach()) {
        let reads = format!("reads the request, and `{}` rules run before there is one", phase.keyword());
        (reads, "use it in an `http-request` rule")
    } else if scope.proxy.listens && !scope.proxy.serves && exprs.clone().any(reads_backend) {
        let reads = "asks for the backend, and none is chosen yet when request rules of a frontend run";
        (reads.to_owned(), "use it in the backend, or in an `http-response` rule")
    } else {
        return None;
    };
    Some(Diagnostic::error(codes::TOO_EARLY, span, format!("{subject} {reads}")).help(help))
}

/// What is wrong when an expression of the log reads a message, of which nothing is left then.
fn too_late(subject: &str, expr: &Expr, phase: Phase, span: Span) -> Option<Diagnostic> {
    fn gone(expr: &Expr) -> bool {
        expr.fetch().is_gone_at_the_end() || expr.args().acls().flat_map(|(_, acl)| acl.exprs()).any(gone)
    }
    if phase != Phase::Log || !gone(expr) {
        return None;
    }
    let message = format!("{subject} reads a message, and when the log is written there is none any more");
    Some(
        Diagnostic::error(codes::TOO_LATE, span, message)
            .help("keep it: `http-request set-var(txn.x) …` and `%[var(txn.x)]` here, or `capture` and `%hr`"),
    )
}

/// Whether the expression is about the backend that was chosen.
fn reads_backend(expr: &Expr) -> bool {
    expr.fetch().source == Source::Backend || expr.args().acls().flat_map(|(_, acl)| acl.exprs()).any(reads_backend)
}

fn fetch_row(scope: &mut Scope<'_>, word: &Word, call: &Call, in_response: bool) -> Option<&'static FetchRow> {
    let name = call.name(word);
    let row = fetch::find(name, in_response);
    if row.is_none() {
        unknown_fetch(scope, word, call);
    }
    row
}

/// Whether a word begins a test rather than names an ACL.
pub(super) fn is_criterion(word: &str) -> bool {
    let name = word.split('(').next().unwrap_or_default();
    let plain = Method::SUFFIXES.iter().find_map(|(suffix, _)| name.strip_suffix(suffix)).unwrap_or(name);
    fetch::find(plain.as_bytes(), false).is_some() || known::is_fetch(plain)
}

/// Reports a fetch that no row has.
pub(super) fn unknown_fetch(scope: &mut Scope<'_>, word: &Word, call: &Call) {
    let name = String::from_utf8_lossy(call.name(word));
    let span = word.part(call.name.clone());
    if known::is_fetch(&name) {
        scope.refuse(codes::UNBUILT_SAMPLE, span, format!("the fetch `{name}` is not built yet"));
        return;
    }
    let finding = Diagnostic::error(codes::UNKNOWN_FETCH, span, format!("unknown fetch `{name}`"));
    let suffix = Method::SUFFIXES.iter().find_map(|(suffix, method)| Some((name.strip_suffix(suffix)?, method)));
    let finding = match suffix {
        Some((plain, method)) if fetch::find(plain.as_bytes(), false).is_some() => finding
            .help(format!("suffix forms are for ACLs: `{plain}` gives the value, `-m {}` matches it", method.word())),
        _ => {
            let plain = fetch::rows().flat_map(|row| row.names).copied();
            let forms: Vec<String> = fetch::rows()
                .filter(|row| row.output == crate::rule::Type::Str)
                .flat_map(|row| row.names)
                .flat_map(|name| Method::SUFFIXES.iter().map(move |(suffix, _)| format!("{name}{suffix}")))
                .collect();
            let nearest = suggest::nearest(&name, plain.chain(known::fetches()));
            let form = || suggest::nearest(&name, forms.iter().map(String::as_str));
            finding.did_you_mean(nearest.or_else(form))
        }
    };
    scope.report(finding);
}

/// Checks arguments and types of the calls; the first one is the fetch `row`.
pub(super) fn build(scope: &mut Scope<'_>, word: &Word, calls: &[Call], row: &'static FetchRow) -> Option<Expr> {
    let (first, steps) = calls.split_first()?;
    let args = arguments(scope, word, first, row.name(), row.args);
    let mut kind = row.output;
    let mut done = Vec::with_capacity(steps.len());
    for call in steps {
        let step = converter_row(scope, word, call)?;
        if !kind.casts_to(step.input) {
            let message =
                format!("`{}` works on type {}, and gets type {}", step.name(), step.input.name(), kind.name());
            scope.error(codes::TYPES, word.part(call.whole.clone()), message);
            return None;
        }
        done.push((step, arguments(scope, word, call, step.name(), step.args), call));
        kind = step.output;
    }
    let args = Args::new(args?);
    let mut compiled = Vec::with_capacity(done.len());
    for (row, args, call) in done {
        compiled.push(Step { row, args: Args::new(prepared(scope, word, row, args?, call)?) });
    }
    let text = word.text.get(first.whole.start..calls.last()?.whole.end).unwrap_or_default();
    Some(Expr::new(row, args, compiled, text))
}

fn prepared(scope: &mut Scope<'_>, word: &Word, row: &ConverterRow, args: Vec<Arg>, call: &Call) -> Option<Vec<Arg>> {
    let list = match args.first() {
        Some(Arg::List(list)) => Some(Arc::clone(list)),
        _ => None,
    };
    match (row.prepare)(args) {
        Ok(args) => {
            if let Some(list) = list {
                lists::warn_of_missing_values(scope, &list, word.span);
            }
            Some(args)
        }
        Err(fault) => {
            if let Some(list) = list.filter(|_| !fault.entries.is_empty()) {
                lists::report(scope, &list, codes::BAD_ENTRY, fault.entries, word.part(call.whole.clone()));
                return None;
            }
            let at = call.args.get(fault.arg).map_or(call.whole.clone(), |arg| arg.at.clone());
            let message = format!("`{}`: {}", row.name(), fault.message);
            scope.report(Diagnostic::error(codes::BAD_ARGUMENT, word.part(at), message).help(fault.help));
            None
        }
    }
}

fn converter_row(scope: &mut Scope<'_>, word: &Word, call: &Call) -> Option<&'static ConverterRow> {
    let name = call.name(word);
    let row = converter::find(name);
    if row.is_none() {
        let name = String::from_utf8_lossy(name);
        let span = word.part(call.name.clone());
        if known::is_converter(&name) {
            scope.refuse(codes::UNBUILT_SAMPLE, span, format!("the converter `{name}` is not built yet"));
            return None;
        }
        let finding = Diagnostic::error(codes::UNKNOWN_CONVERTER, span, format!("unknown converter `{name}`"));
        scope.report(if name.trim() == name {
            let names = converter::rows().flat_map(|row| row.names).copied().chain(known::converters());
            finding.did_you_mean(suggest::nearest(&name, names))
        } else {
            finding.help("blanks around the commas belong to the name: leave them out")
        });
    }
    row
}

/// The arguments as the row's code gets them.
fn arguments(scope: &mut Scope<'_>, word: &Word, call: &Call, name: &str, specs: &[ArgSpec]) -> Option<Vec<Arg>> {
    if let Some(extra) = call.args.get(specs.len()) {
        let message = match specs.len() {
            0 => format!("`{name}` takes no arguments"),
            most => format!("`{name}` takes at most {most} arguments"),
        };
        scope.error(codes::EXTRA_ARGUMENT, word.part(extra.at.clone()), message);
        return None;
    }
    let mut args = Vec::with_capacity(specs.len());
    for (index, spec) in specs.iter().enumerate() {
        args.push(match call.args.get(index) {
            Some(raw) if !raw.text.is_empty() || (raw.at.len() > 1 && spec.kind != ArgKind::Var) => {
                argument(scope, word, raw, spec.kind)?
            }
            raw if spec.required && spec.kind == ArgKind::Text && (raw.is_some() || empty_parentheses(call, index)) => {
                Arg::Text([].into())
            }
            // A number may be left out at the end, not before another argument.
            _ if spec.required || (spec.kind == ArgKind::Int && call.args.len() > index + 1) => {
                let message = format!("argument {} of `{name}` is missing", index + 1);
                scope.error(codes::MISSING_ARGUMENT, word.part(call.whole.clone()), message);
                return None;
            }
            _ => own(scope, word, call, spec.kind)?,
        });
    }
    Some(args)
}

/// A proxy that is named.
fn proxy(scope: &mut Scope<'_>, name: &str, span: Span, kind: ArgKind) -> Option<Arg> {
    let (what, known) = match kind {
        ArgKind::Frontend => ("frontend", scope.proxies.frontends()),
        _ => ("backend", scope.proxies.backends()),
    };
    let found = known.iter().position(|known| *known == name);
    if found.is_none() {
        let nearest = suggest::nearest(name, known.into_iter());
        let finding = Diagnostic::error(codes::BAD_ARGUMENT, span, format!("there is no {what} `{name}`"));
        scope.report(finding.did_you_mean(nearest));
    }
    found.map(Arg::Proxy)
}

/// The users of a section that is named.
fn users(scope: &mut Scope<'_>, name: &str, span: Span) -> Option<Arg> {
    let known = scope.proxies.users();
    if let Some(users) = known.iter().find(|users| users.name() == name) {
        return Some(Arg::Users(Arc::clone(users)));
    }
    let nearest = suggest::nearest(name, known.iter().map(|users| users.name())).map(str::to_owned);
    let finding = Diagnostic::error(codes::BAD_ARGUMENT, span, format!("there is no `userlist {name}`"));
    scope.report(finding.did_you_mean(nearest.as_deref()));
    None
}

/// What an argument is that was left out: a proxy is the one at hand. A `defaults` section is none; its lines are read
/// again for those who inherit them.
fn own(scope: &mut Scope<'_>, word: &Word, call: &Call, kind: ArgKind) -> Option<Arg> {
    if kind == ArgKind::Table {
        return own_table(scope, word, call);
    }
    let (what, fits) = match kind {
        ArgKind::Frontend => ("frontend", scope.proxy.listens),
        ArgKind::Backend => ("backend", scope.proxy.serves),
        _ => return Some(Arg::Absent),
    };
    if fits {
        return proxy(scope, scope.proxy.name, word.part(call.whole.clone()), kind);
    }
    if !scope.proxy.listens && !scope.proxy.serves {
        return Some(Arg::Absent);
    }
    let name = String::from_utf8_lossy(call.name(word)).into_owned();
    let message = format!("`{name}` is about a {what}, and `{}` is none", scope.proxy.name);
    let finding = Diagnostic::error(codes::MISSING_ARGUMENT, word.part(call.whole.clone()), message);
    scope.report(finding.help(format!("name one: `{name}(NAME)`")));
    None
}

/// The table of the proxy at hand; lines of a `defaults` section are read again for those who inherit them.
fn own_table(scope: &mut Scope<'_>, word: &Word, call: &Call) -> Option<Arg> {
    let known = scope.proxies.tables();
    if let Some(place) = known.iter().position(|table| table.name == scope.proxy.name) {
        return Some(Arg::Table(place));
    }
    if !scope.proxy.listens && !scope.proxy.serves {
        return Some(Arg::Absent);
    }
    let name = String::from_utf8_lossy(call.name(word)).into_owned();
    let message = format!("`{name}` is about a table, and `{}` has none", scope.proxy.name);
    let finding = Diagnostic::error(codes::MISSING_ARGUMENT, word.part(call.whole.clone()), message);
    scope.report(finding.help(format!("name one: `{name}(NAME)`, or add a `stick-table` line")));
    None
}

/// A number within these bounds.
fn small(text: &[u8], bounds: std::ops::RangeInclusive<i64>) -> Option<Arg> {
    integer(text).filter(|value| bounds.contains(value)).map(Arg::Int)
}

/// The place of a table that is named, and what its keys are.
pub(super) fn known_table(scope: &mut Scope<'_>, name: &str, span: Span) -> Option<(usize, KeyKind)> {
    let known = scope.proxies.tables();
    let found = known.iter().enumerate().find(|(_, table)| table.name == name);
    let found = found.map(|(place, table)| (place, table.key));
    if found.is_none() {
        let nearest = suggest::nearest(name, known.iter().map(|table| table.name.as_str()));
        let finding = Diagnostic::error(codes::BAD_ARGUMENT, span, format!("there is no table `{name}`"));
        let help = "a table has the name of the proxy whose `stick-table` line it is";
        scope.report(finding.did_you_mean(nearest).help(help));
    }
    found
}

/// `str()` is an empty text.
fn empty_parentheses(call: &Call, index: usize) -> bool {
    index == 0 && call.args.is_empty() && call.whole.end > call.name.end
}

fn argument(scope: &mut Scope<'_>, word: &Word, raw: &RawArg, kind: ArgKind) -> Option<Arg> {
    let text = String::from_utf8_lossy(&raw.text);
    let span = word.part(raw.at.clone());
    let wrong = |scope: &mut Scope<'_>, what: &str| {
        scope.error(codes::BAD_ARGUMENT, span, format!("`{text}` is not {what}"));
        None
    };
    match kind {
        ArgKind::Text => Some(Arg::Text(raw.text.as_slice().into())),
        ArgKind::Field if is_token(&raw.text) => Some(Arg::Field(text.into())),
        ArgKind::Field => wrong(scope, "the name of a header field"),
        ArgKind::Int => integer(&raw.text).map(Arg::Int).or_else(|| wrong(scope, "an integer")),
        ArgKind::Ip => text.parse().ok().map(Arg::Ip).or_else(|| wrong(scope, "an address")),
        ArgKind::Bool => match &*text.to_ascii_lowercase() {
            "true" | "1" | "on" | "yes" => Some(Arg::Bool(true)),
            "false" | "0" | "off" | "no" => Some(Arg::Bool(false)),
            _ => wrong(scope, "`true` or `false`"),
        },
        ArgKind::Word(words) if words.contains(&&*text) => Some(Arg::Text(raw.text.as_slice().into())),
        ArgKind::Word(words) => wrong(scope, &format!("one of `{}`", words.join("`, `"))),
        ArgKind::IntOrVar => match number(&raw.text) {
            Some(value) => Some(Arg::Int(value)),
            None if raw.text.first().is_some_and(u8::is_ascii_alphabetic) => {
                vars::variable(scope, &raw.text, span).map(Arg::Var)
            }
            None => wrong(scope, "an integer or a variable"),
        },
        ArgKind::TextOrVar | ArgKind::Key if vars::is_variable(&raw.text) => {
            vars::variable(scope, &raw.text, span).map(Arg::Var)
        }
        ArgKind::TextOrVar => Some(Arg::Text(raw.text.as_slice().into())),
        ArgKind::Key => {
            let file = scope.outside.read(&text).ok().map(Into::into);
            Some(Arg::Key(KeyText { text: raw.text.as_slice().into(), file }))
        }
        ArgKind::Var => vars::variable(scope, &raw.text, span).map(Arg::Var),
        ArgKind::Env => {
            Some(scope.outside.var(&text).map_or(Arg::Absent, |value| Arg::Text(value.into_bytes().into())))
        }
        ArgKind::Hex => hexadecimal(&raw.text)
            .map(|bytes| Arg::Text(bytes.into()))
            .or_else(|| wrong(scope, "pairs of hexadecimal digits")),
        ArgKind::Frontend | ArgKind::Backend => proxy(scope, &text, span, kind),
        ArgKind::Table | ArgKind::OtherTable => known_table(scope, &text, span).map(|(place, _)| Arg::Table(place)),
        ArgKind::Slot => small(&raw.text, 0..=2).or_else(|| wrong(scope, "a slot: 0, 1 or 2")),
        ArgKind::Index => small(&raw.text, 0..=99).or_else(|| wrong(scope, "an index from 0 to 99")),
        ArgKind::Acl => {
            let name = text.trim_start_matches('!');
            let negated = (text.len() - name.len()) % 2 == 1;
            acls::named(scope, name, span).map(|acl| Arg::Acl(negated, acl))
        }
        ArgKind::Users => users(scope, &text, span),
        ArgKind::Map => lists::open(scope, &text, span, true).map(Arg::List),
    }
}

/// A whole text that is an integer; one that does not fit becomes the nearest that does.
fn number(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    let whole = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    whole.then(|| leading_int(text)).flatten()
}
