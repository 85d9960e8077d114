//! `acl NAME CRITERION [flags] [operator] [patterns]` (HAProxy manual §7.1).

use super::{
    Scope,
    call::{Call, calls},
    codes, expr, joined, lists,
    pattern::{self, File, Pattern},
};
use crate::{
    lang::{
        ast::{Line, Word},
        diag::Diagnostic,
        suggest,
    },
    rule::{
        acl::AclTest,
        fetch::{self, FetchRow},
        matcher::{Matcher, Method},
        sample::Type,
    },
};

/// Takes the line `acl NAME …` in. A line of a name that exists already is an alternative; conditions above
/// it do not see it, so all `acl` lines of a proxy are best read first.
pub fn acl(scope: &mut Scope<'_>, line: &Line) {
    let Some(name) = line.words.get(1) else {
        let span = line.span.after();
        scope.report(
            Diagnostic::error(codes::CONDITION_SHAPE, span, "`acl` needs a name")
                .help("write `acl NAME CRITERION [flags] [patterns]`"),
        );
        return;
    };
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte);
    if let Some(at) = name.text.iter().position(|byte| !allowed(byte)) {
        let finding =
            Diagnostic::error(codes::BAD_ACL_NAME, name.part(at..at + 1), "this cannot be in the name of an ACL");
        scope.report(finding.help("names are made of letters, digits, `-`, `_`, `.` and `:`"));
    }
    let words = line.words.get(2..).unwrap_or_default();
    if words.is_empty() {
        scope.error(codes::CONDITION_SHAPE, name.span.after(), "an ACL needs a criterion, such as `path_beg /img/`");
    }
    let test = test(scope, words).map(|test| (test, joined(words)));
    scope.acls.declare(name, test);
}

/// The test that the words are: criterion, flags, patterns.
pub(super) fn test(scope: &mut Scope<'_>, words: &[Word]) -> Option<AclTest> {
    let (criterion, rest) = words.split_first()?;
    let calls = match calls(criterion, 0, false) {
        Ok((calls, _)) => calls,
        Err(finding) => {
            scope.report(finding);
            return None;
        }
    };
    let keyword = keyword(scope, criterion, &calls)?;
    let expr = expr::build(scope, criterion, &calls, keyword.row)?;
    let mut flags = Flags::default();
    let patterns = flags.read(scope, rest)?;
    let converted = calls.len() > 1;
    let implied = match keyword.suffix {
        Some((method, suffix)) if converted && flags.method.is_none() => {
            dropped(scope, criterion, suffix, method);
            None
        }
        Some((method, _)) => Some(method),
        None if converted => None,
        None => keyword.row.implied,
    };
    let method =
        flags.method.as_ref().map(|(_, method)| *method).or(implied).or_else(|| Method::for_type(expr.output()));
    let Some(method) = method else {
        let message = format!(
            "`{}` is of type {}, which can be matched in several ways",
            criterion.lossy(),
            expr.output().name()
        );
        scope.report(
            Diagnostic::error(codes::METHOD_NEEDED, criterion.span, message)
                .help("say how: `-m str`, `-m int`, `-m found` …"),
        );
        return None;
    };
    fits(scope, criterion, method, expr.output(), &flags)?;
    if let (Some((word, method)), Some((_, suffix))) = (&flags.method, keyword.suffix) {
        let message = format!("`-m {}` takes the place of the match that `{suffix}` stands for", method.word());
        scope.warn(codes::SUFFIX_OVERRIDDEN, word.span, message, "leave the suffix off");
    }
    let matcher = matcher(scope, criterion, method, &flags, patterns)?;
    Some(AclTest { expr, matcher })
}

/// What the first name of a criterion is.
struct Keyword {
    row: &'static FetchRow,
    suffix: Option<(Method, &'static str)>,
}

fn keyword(scope: &mut Scope<'_>, word: &Word, calls: &[Call]) -> Option<Keyword> {
    let call = calls.first()?;
    let name = call.name(word);
    if let Some(row) = fetch::find(name, false) {
        return Some(Keyword { row, suffix: None });
    }
    for (suffix, method) in Method::SUFFIXES {
        let row = name.strip_suffix(suffix.as_bytes()).and_then(|plain| fetch::find(plain, false));
        if let Some(row) = row.filter(|row| row.output == Type::Str) {
            return Some(Keyword { row, suffix: Some((method, suffix)) });
        }
    }
    expr::unknown_fetch(scope, word, call);
    None
}

fn dropped(scope: &mut Scope<'_>, criterion: &Word, suffix: &str, method: Method) {
    let message = format!("behind `{suffix}`, converters take its match away: whole values are compared");
    let plain = criterion.lossy().replacen(suffix, "", 1);
    scope.warn(codes::SUFFIX_DROPPED, criterion.span, message, format!("write `{plain} -m {}`", method.word()));
}

fn fits(scope: &mut Scope<'_>, criterion: &Word, method: Method, kind: Type, flags: &Flags<'_>) -> Option<()> {
    if method == Method::Method || method.tests(kind) {
        return Some(());
    }
    let span = flags.method.as_ref().map_or(criterion.span, |(word, _)| word.span);
    let message = format!("a value of type {} cannot be matched with `-m {}`", kind.name(), method.word());
    scope.error(codes::BAD_METHOD, span, message);
    None
}

fn matcher(
    scope: &mut Scope<'_>,
    criterion: &Word,
    method: Method,
    flags: &Flags<'_>,
    patterns: Vec<Pattern<'_>>,
) -> Option<Matcher> {
    if !method.takes_patterns() {
        return Some(if method == Method::Found { Matcher::found() } else { Matcher::bool() });
    }
    if patterns.is_empty() && !flags.ended && flags.files.is_empty() {
        let message = format!("`{}` has no pattern and never matches", criterion.lossy());
        scope.warn(
            codes::NO_PATTERN,
            criterion.span,
            message,
            "add patterns, or `-m found` to ask whether there is a value",
        );
    }
    pattern::compile(scope, method, &patterns, &flags.files, !flags.no_names)
}

/// What stands between criterion and patterns.
#[derive(Default)]
struct Flags<'w> {
    /// `-i`.
    fold: bool,
    /// `-m`.
    method: Option<(&'w Word, Method)>,
    /// `-M`: files have two columns.
    map: bool,
    /// `-n`.
    no_names: bool,
    /// `--`.
    ended: bool,
    /// `-f`.
    files: Vec<File<'w>>,
}

impl<'w> Flags<'w> {
    /// Reads flags and patterns.
    fn read(&mut self, scope: &mut Scope<'_>, words: &'w [Word]) -> Option<Vec<Pattern<'w>>> {
        let mut patterns = Vec::new();
        let mut words = words.iter();
        while let Some(word) = words.as_slice().first() {
            if !word.text.starts_with(b"-") {
                break;
            }
            words.next();
            match word.text.as_slice() {
                b"--" => {
                    self.ended = true;
                    break;
                }
                b"-i" => self.fold = true,
                b"-n" => self.no_names = true,
                b"-M" => self.map = true,
                b"-u" => {
                    let id = value(scope, word, &mut words)?;
                    if id.text.is_empty() || !id.text.iter().all(u8::is_ascii_digit) {
                        scope.error(codes::BAD_FLAG, id.span, "`-u` is followed by a number");
                    }
                }
                b"-m" => {
                    let name = value(scope, word, &mut words)?;
                    self.method(scope, word, name)?;
                }
                b"-f" => {
                    let name = value(scope, word, &mut words)?;
                    let list = lists::open(scope, &name.lossy(), name.span, self.map)?;
                    self.files.push(File { list, fold: self.fold, name });
                }
                _ => {
                    let message = format!("unknown flag `{}`", word.lossy());
                    let finding = Diagnostic::error(codes::BAD_FLAG, word.span, message);
                    scope.report(
                        finding.help("flags are -i -f -m -M -n -u; write `--` before patterns that begin with `-`"),
                    );
                    return None;
                }
            }
        }
        patterns.extend(words.map(|word| Pattern { text: word.text.clone(), fold: self.fold, word }));
        Some(patterns)
    }

    fn method(&mut self, scope: &mut Scope<'_>, flag: &Word, name: &'w Word) -> Option<()> {
        if self.method.is_some() || !self.files.is_empty() {
            scope.error(codes::BAD_FLAG, flag.span, "`-m` stands once, and before every `-f`");
            return None;
        }
        let text = name.lossy();
        let known = Method::WORDS.iter().find(|(word, _)| *word == text);
        match known {
            Some((_, method)) => self.method = Some((name, *method)),
            None => {
                let nearest = suggest::nearest(&text, Method::WORDS.iter().map(|(word, _)| *word));
                let finding = Diagnostic::error(codes::BAD_METHOD, name.span, format!("unknown match method `{text}`"));
                scope.report(finding.did_you_mean(nearest));
                return None;
            }
        }
        Some(())
    }
}

fn value<'w>(scope: &mut Scope<'_>, flag: &Word, words: &mut std::slice::Iter<'w, Word>) -> Option<&'w Word> {
    let next = words.next();
    if next.is_none() {
        scope.error(codes::BAD_FLAG, flag.span.after(), format!("`{}` needs a value", flag.lossy()));
    }
    next
}
