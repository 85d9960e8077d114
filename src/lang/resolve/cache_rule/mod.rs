//! `cache-rule NAME [parameter …] [if|unless COND]` and `nuster rule NAME …`: a row for each parameter.

mod key;
mod value;

use std::time::Duration;

use super::{Scope, call::calls, codes, cond, expr, split_cond};
use crate::{
    config::{CacheRule, FillMode, Id, KeyPart},
    lang::{
        ast::{Line, Word},
        diag::Diagnostic,
        suggest,
    },
    policy::{
        rewrite::Rewrite,
        terms::{Heuristic, Ignore, Statuses, Terms, Ttl},
    },
    rule::{
        Expr, Fingerprint, Phase, RulePlace,
        args::{Arg, Args},
        fetch,
    },
};

/// Whose defaults a rule has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `cache-rule`.
    Tidegate,
    /// `nuster rule`.
    Nuster,
}

/// A caching rule whose store has not been looked up.
#[derive(Clone, Debug)]
pub struct CacheRuleDraft {
    /// The rule; its store is the first one.
    pub rule: CacheRule,
    /// The store's name; `None`: the only one.
    pub store: Option<Word>,
}

/// `wait on`: as good as without limit; the fill itself ends sooner (`timeout server`).
pub const WAIT_ON: Duration = Duration::from_secs(24 * 3600);

/// nuster's longest lifetime, which `ttl 0` means there: 2^31 - 1 seconds.
const FOREVER: Duration = Duration::from_secs(0x7fff_ffff);

/// Every parameter of a caching rule, and what is built of it.
pub fn parameters() -> impl Iterator<Item = (&'static str, String)> {
    PARAMS.iter().map(|param| {
        let about = match param.read {
            Read::With(_) => "honoured".to_owned(),
            Read::Only([]) => "refused: not built yet".to_owned(),
            Read::Only(words) => format!("only `{}` yet", words.join("`, `")),
        };
        (param.name, about)
    })
}

/// The caching rule that the words behind `cache-rule` or `nuster rule` are: its name first.
pub fn cache_rule(
    scope: &mut Scope<'_>,
    dialect: Dialect,
    words: &[Word],
    line: &Line,
    place: RulePlace,
) -> Option<CacheRuleDraft> {
    let (head, condition) = split_cond(words);
    let Some((name, params)) = head.split_first() else {
        scope.error(codes::BAD_RULE_NAME, line.span.after(), "a caching rule needs a name");
        return None;
    };
    if PARAMS.iter().any(|param| name.is(param.name)) {
        let message = format!("a rule called `{}`: is its name missing?", name.lossy());
        scope.error(codes::BAD_RULE_NAME, name.span, message);
        return None;
    }
    cond::without_if(scope, params, condition)?;
    let mut draft = Draft::new(dialect);
    let fine = rule_name(scope, name) & draft.read(scope, params);
    let cond = cond(scope, condition, Phase::Caching);
    if !fine {
        return None;
    }
    draft.finish(scope, name, cond?, place)
}

fn rule_name(scope: &mut Scope<'_>, name: &Word) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte);
    let wrong = name.text.iter().position(|byte| !allowed(byte));
    if let Some(at) = wrong {
        let finding =
            Diagnostic::error(codes::BAD_RULE_NAME, name.part(at..at + 1), "this cannot be in the name of a rule");
        scope.report(finding.help("names are made of letters, digits, `-`, `_`, `.` and `:`"));
    }
    wrong.is_none()
}

/// One parameter.
struct Param {
    name: &'static str,
    read: Read,
}

/// How a parameter's values are read.
#[derive(Clone, Copy)]
enum Read {
    /// By this function; `None` when they cannot be.
    With(fn(&mut Draft, &mut Scope<'_>, &Values<'_>) -> Option<()>),
    /// Only these values are accepted so far: they change nothing.
    Only(&'static [&'static str]),
}

/// A parameter and the words behind it.
struct Values<'w> {
    param: &'w Word,
    words: &'w [Word],
}

const PARAMS: &[Param] = &[
    Param { name: "store", read: Read::With(Draft::store) },
    Param { name: "key", read: Read::With(Draft::key) },
    Param { name: "ttl", read: Read::With(Draft::ttl) },
    Param { name: "status", read: Read::With(Draft::statuses) },
    Param { name: "code", read: Read::With(Draft::statuses) },
    Param { name: "grace", read: Read::With(Draft::grace) },
    Param { name: "wait", read: Read::With(Draft::wait) },
    Param { name: "fill", read: Read::With(Draft::fill) },
    Param { name: "tags", read: Read::With(Draft::tags) },
    Param { name: "honour", read: Read::With(Draft::honour) },
    Param { name: "ignore", read: Read::With(Draft::ignore) },
    Param { name: "stale-if-error", read: Read::With(Draft::stale_if_error) },
    Param { name: "use-stale", read: Read::With(Draft::use_stale) },
    Param { name: "heuristic", read: Read::With(Draft::heuristic) },
    Param { name: "min-uses", read: Read::Only(&["1"]) },
    Param { name: "memory", read: Read::Only(&["on"]) },
    Param { name: "disk", read: Read::Only(&["off"]) },
    Param { name: "inactive", read: Read::Only(&["off", "0"]) },
    Param { name: "extend", read: Read::Only(&["off"]) },
    Param { name: "etag", read: Read::Only(&["off"]) },
    Param { name: "last-modified", read: Read::Only(&["off"]) },
    Param { name: "strip", read: Read::With(Draft::strip) },
    Param { name: "normalise", read: Read::With(Draft::normalise) },
    Param { name: "slice", read: Read::Only(&["off"]) },
    Param { name: "status-header", read: Read::Only(&["on"]) },
    Param { name: "mode", read: Read::Only(&["on"]) },
    Param { name: "forward", read: Read::With(Draft::forward) },
    Param { name: "buffer-response", read: Read::Only(&[]) },
];

/// A rule as far as it has been read.
struct Draft {
    dialect: Dialect,
    key: Option<key::Key>,
    ttl: Option<Ttl>,
    statuses: Statuses,
    grace: Option<Duration>,
    stale_if_error: Option<Duration>,
    heuristic: Option<Heuristic>,
    rewrites: Vec<Rewrite>,
    forward_keyed: bool,
    wait: Option<Duration>,
    fill: FillMode,
    store: Option<Word>,
    tags: Option<Vec<Expr>>,
    honour_client: bool,
    ignore: Ignore,
    /// What `ignore` names, for the note about it.
    ignored: Vec<&'static str>,
}

impl Draft {
    fn new(dialect: Dialect) -> Self {
        let nuster = dialect == Dialect::Nuster;
        Self {
            dialect,
            key: None,
            ttl: None,
            statuses: if nuster { Statuses::Only(vec![200]) } else { Statuses::Default },
            grace: None,
            stale_if_error: None,
            heuristic: None,
            rewrites: Vec::new(),
            forward_keyed: false,
            wait: (!nuster).then_some(WAIT_ON),
            fill: FillMode::default(),
            store: None,
            tags: None,
            honour_client: false,
            ignore: Ignore::default(),
            ignored: Vec::new(),
        }
    }

    /// Reads every parameter; false when one could not be.
    fn read(&mut self, scope: &mut Scope<'_>, words: &[Word]) -> bool {
        let mut rest = words;
        let mut seen: Vec<&str> = Vec::new();
        let mut fine = true;
        while let Some((word, behind)) = rest.split_first() {
            let Some(param) = PARAMS.iter().find(|param| word.is(param.name)) else {
                let nearest = suggest::nearest(&word.lossy(), PARAMS.iter().map(|param| param.name));
                let message = format!("unknown parameter `{}`", word.lossy());
                scope.report(Diagnostic::error(codes::UNKNOWN_PARAMETER, word.span, message).did_you_mean(nearest));
                return false;
            };
            // The word behind a parameter is its value, whatever it is.
            let more = behind.iter().skip(1).take_while(|word| !is_param(word)).count();
            let (values, after) = behind.split_at_checked(more + 1).unwrap_or((behind, &[]));
            rest = after;
            let one_thing = if param.name == "code" { "status" } else { param.name };
            // `strip query … strip cookies` are two things.
            if seen.contains(&one_thing) && one_thing != "strip" {
                scope.error(codes::REPEATED_PARAMETER, word.span, format!("`{}` is there twice", param.name));
                fine = false;
            }
            seen.push(one_thing);
            fine &= self.one(scope, param, &Values { param: word, words: values }).is_some();
        }
        fine
    }

    fn one(&mut self, scope: &mut Scope<'_>, param: &Param, values: &Values<'_>) -> Option<()> {
        let Some(first) = values.words.first() else {
            scope.error(codes::BAD_PARAMETER, values.param.span.after(), format!("`{}` needs a value", param.name));
            return None;
        };
        match param.read {
            Read::With(read) => read(self, scope, values),
            Read::Only(accepted) if values.words.len() == 1 && accepted.iter().any(|value| first.is(value)) => Some(()),
            Read::Only(_) => {
                let message = format!("`{} {}` is not built yet", param.name, first.lossy());
                scope.refuse(codes::UNBUILT_PARAMETER, values.param.span.to(first.span), message);
                scope.lenient.then_some(())
            }
        }
    }

    fn finish(
        self,
        scope: &mut Scope<'_>,
        name: &Word,
        cond: Option<crate::rule::Cond>,
        place: RulePlace,
    ) -> Option<CacheRuleDraft> {
        let nuster = self.dialect == Dialect::Nuster;
        let mut ignore = self.ignore;
        let mut ignored = self.ignored;
        // nuster's lifetime is the rule's, whatever the response says.
        if nuster && matches!(self.ttl, Some(Ttl::Fixed(_))) {
            ignore = Ignore { no_store: true, no_cache: true, max_age: true, pragma: true, ..ignore };
            ignored.extend(["no-store", "no-cache", "max-age", "pragma"]);
        }
        if !ignored.is_empty() {
            ignored.sort_unstable();
            ignored.dedup();
            let message = format!("`{}` stores in spite of {}", name.lossy(), ignored.join(", "));
            scope.report(Diagnostic::note(codes::IGNORED_REQUIREMENT, name.span, message));
        }
        let mut key = self.key.unwrap_or_else(|| key::Key::default_of(self.dialect));
        let rewrites: Vec<_> = self.rewrites.into_iter().chain(key.rewrites.drain(..)).collect();
        let name = name.lossy().into_owned();
        let key_print = key.texts.iter().fold(Fingerprint::default(), |print, text| print.with(text)).finish();
        let fingerprint = Fingerprint::default()
            .with(name.as_bytes())
            .with(&key_print.to_le_bytes())
            .with(format!("{ignore:?}").as_bytes())
            .with(format!("{rewrites:?}").as_bytes())
            .finish();
        let ttl = self.ttl.unwrap_or(if nuster { Ttl::Fixed(FOREVER) } else { Ttl::default() });
        let terms = Terms {
            ttl,
            statuses: self.statuses,
            grace: self.grace,
            stale_if_error: self.stale_if_error,
            heuristic: self.heuristic,
            honour_client: self.honour_client,
            ignore,
            cookie_in_key: key.has_cookie(),
        };
        let rule = CacheRule {
            name,
            cond,
            store: Id::new(0),
            keyed: key.keyed(),
            forward_keyed: self.forward_keyed,
            key: key.parts,
            rewrites,
            terms,
            wait: self.wait,
            fill: self.fill,
            tags: self.tags.unwrap_or_else(default_tags),
            fingerprint,
            key_print,
            place,
        };
        Some(CacheRuleDraft { rule, store: self.store })
    }

    fn key(&mut self, scope: &mut Scope<'_>, values: &Values<'_>) -> Option<()> {
        self.key = Some(key::Key::read(scope, values.words)?);
        Some(())
    }

    /// `tags EXPRESSION…`: surrogate keys stand in every line of a field, so `res.hdr(N)` means all of them here.
    fn tags(&mut self, scope: &mut Scope<'_>, values: &Values<'_>) -> Option<()> {
        let mut tags = Vec::with_capacity(values.words.len());
        for word in values.words {
            let expr = bracketed(scope, word)?;
            let whole = matches!(expr.fetch().name(), "res.hdr" | "res.fhdr") && expr.steps().is_empty();
            let field = expr.args().field(0).filter(|_| whole && expr.args().int(1).is_none()).map(Box::from);
            tags.push(match field {
                Some(field) => drawn("res.fhdr_all", Arg::Field(field), expr.text())?,
                None => expr,
            });
        }
        self.tags = Some(tags);
        Some(())
    }
}

fn is_param(word: &Word) -> bool {
    PARAMS.iter().any(|param| word.is(param.name))
}

/// `%[expression]` or `expression`.
fn bracketed(scope: &mut Scope<'_>, word: &Word) -> Option<Expr> {
    if !word.text.starts_with(b"%[") {
        return expr::expr(scope, word, Phase::Caching);
    }
    match calls(word, 2, true) {
        Ok((calls, end)) if word.text.get(end..) == Some(b"]") => expr::in_phase(scope, word, &calls, Phase::Caching),
        Ok((_, end)) => {
            scope.error(codes::EXPRESSION_SHAPE, word.part(end..word.text.len()), "`]` has to end this word");
            None
        }
        Err(finding) => {
            scope.report(finding);
            None
        }
    }
}

/// A fetch of one argument, written as `text`.
fn drawn(fetch: &str, arg: Arg, text: &[u8]) -> Option<Expr> {
    Some(Expr::new(fetch::find(fetch.as_bytes(), false)?, Args::new(vec![arg]), vec![], text))
}

fn default_tags() -> Vec<Expr> {
    ["Surrogate-Key", "Cache-Tag", "xkey"]
        .into_iter()
        .filter_map(|field| drawn("res.fhdr_all", Arg::Field(field.into()), format!("res.hdr({field})").as_bytes()))
        .collect()
}
