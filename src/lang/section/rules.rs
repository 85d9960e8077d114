//! Lines that the rule compiler reads: ACLs, `http-*` rules, redirects, caching rules.

use super::{Args, Draft, Kind, Loader, store};
use crate::{
    lang::{
        code,
        diag::{Diagnostic, Label},
        resolve::{self, Dialect},
        source::Span,
        unit::TimeUnit,
    },
    policy::terms::Ttl,
    rule::{Phase, Rule},
};

/// `acl NAME …`.
pub(in crate::lang) fn acl(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    if !refused_in_anonymous(loader, draft, &args) {
        resolve::acl(&mut loader.scope(draft), args.line);
    }
}

/// `http-request …`.
pub(in crate::lang) fn http_request(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    if !draft.inherited {
        warn_of_order(loader, &args, draft.rules.first_redirect.or(draft.targets.first));
    }
    let answers = args.peek().is_some_and(|action| ["deny", "redirect", "return"].iter().any(|name| action.is(name)));
    draft.rules.answers_all |= answers && resolve::split_cond(args.rest()).1.is_empty();
    if let Some(rule) = rule(loader, draft, Phase::Request, &args) {
        draft.rules.request.push(rule);
    }
}

/// `tcp-request connection …`.
pub(in crate::lang) fn tcp_connection(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    if let Some(rule) = rule(loader, draft, Phase::Connection, &args) {
        draft.rules.connection.push(rule);
    }
}

/// `tcp-request session …`.
pub(in crate::lang) fn tcp_session(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    if let Some(rule) = rule(loader, draft, Phase::Session, &args) {
        draft.rules.session.push(rule);
    }
}

/// `tcp-request content …`.
pub(in crate::lang) fn tcp_content(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    if let Some(rule) = rule(loader, draft, Phase::Content, &args) {
        draft.rules.content.push(rule);
    }
}

/// `tcp-response content …`.
pub(in crate::lang) fn tcp_response_content(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    if let Some(rule) = rule(loader, draft, Phase::ResponseContent, &args) {
        draft.rules.response_content.push(rule);
    }
}

/// `tcp-request inspect-delay TIME` and `tcp-response inspect-delay TIME`: heads are complete before rules run, so there
/// is nothing to wait for.
pub(in crate::lang) fn inspect_delay(loader: &mut Loader<'_>, _: &mut Draft, args: Args<'_>) {
    loader.only_time(args, TimeUnit::Millis);
}

/// `http-response …`.
pub(in crate::lang) fn http_response(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    if let Some(rule) = rule(loader, draft, Phase::Response, &args) {
        draft.rules.response.push(rule);
    }
}

/// `http-after-response …`.
pub(in crate::lang) fn http_after_response(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    if let Some(rule) = rule(loader, draft, Phase::AfterResponse, &args) {
        draft.rules.after_response.push(rule);
    }
}

/// `block`, `reqadd`, `reqrep`, `rspdel` and their kin: HAProxy's before 2.1. Those of requests run behind all
/// `http-request` rules.
pub(in crate::lang) fn legacy(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    if refused_in_anonymous(loader, draft, &args) {
        return;
    }
    let Some(keyword) = args.line.words.first() else { return };
    let Some(made) = resolve::legacy(&mut loader.scope(draft), keyword, args.rest(), args.line) else { return };
    let message = format!("`{}` is HAProxy's before 2.1: today it is written `{}`", args.name(), made.today);
    loader.report(Diagnostic::note(code::TRANSLATED, args.keyword(), message));
    let rule = placed(loader, made.rule, &args);
    match made.phase {
        Phase::Response => draft.rules.response.push(rule),
        _ => draft.rules.legacy.push(rule),
    }
}

/// `cache-response …`.
pub(in crate::lang) fn cache_response(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    if let Some(rule) = rule(loader, draft, Phase::CacheResponse, &args) {
        draft.rules.cache_response.push(rule);
    }
}

/// The rule that a line says.
pub(super) fn rule(loader: &mut Loader<'_>, draft: &mut Draft, phase: Phase, args: &Args<'_>) -> Option<Rule> {
    if refused_in_anonymous(loader, draft, args) {
        return None;
    }
    let action = loader.need(&mut args.clone(), "an action")?;
    let haproxys = match phase {
        Phase::Request => "cache-use",
        _ => "cache-store",
    };
    if action.is(haproxys) {
        let hint =
            "write `cache-rule NAME` here instead: it looks up and stores; `store NAME` names the `cache` section";
        loader.refuse(&format!("{} {haproxys}", args.name()), action.span, hint);
        return None;
    }
    let rule = resolve::rule(&mut loader.scope(draft), phase, args.rest(), args.line)?;
    Some(placed(loader, rule, args))
}

fn placed(loader: &Loader<'_>, rule: Rule, args: &Args<'_>) -> Rule {
    Rule { place: Some(loader.sources.rule_place(args.line.span)), ..rule }
}

/// A plain `redirect`: it runs behind every `http-request` rule of its proxy.
pub(in crate::lang) fn redirect(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    warn_of_order(loader, &args, draft.targets.first);
    draft.rules.first_redirect.get_or_insert(args.keyword());
    draft.rules.answers_all |= resolve::split_cond(args.rest()).1.is_empty();
    if let Some(rule) = resolve::redirect_line(&mut loader.scope(draft), args.rest(), args.line) {
        draft.rules.redirects.push(placed(loader, rule, &args));
    }
}

/// Said once for each line that runs later; further lines that run before it become labels.
fn warn_of_order(loader: &mut Loader<'_>, args: &Args<'_>, later: Option<Span>) {
    let Some(later) = later else { return };
    let about =
        |found: &&mut Diagnostic| found.code == code::ORDER && found.labels.iter().any(|label| label.span == later);
    if let Some(found) = loader.diagnostics.iter_mut().rev().find(about) {
        let labels = found.labels.len();
        if labels < MOST_LABELS {
            found.labels.push(Label { span: args.keyword(), text: "and this one".to_owned() });
        }
        return;
    }
    let message = format!("this `{}` runs before the line above that seems to come first", args.name());
    loader.report(
        Diagnostic::warning(code::ORDER, args.keyword(), message)
            .label(later, "this runs later")
            .help("the order is: `http-request`, `redirect`, `use_backend`; write them so"),
    );
}

/// Places that one finding about the order shows.
const MOST_LABELS: usize = 8;

fn refused_in_anonymous(loader: &mut Loader<'_>, draft: &Draft, args: &Args<'_>) -> bool {
    if draft.is_anonymous() {
        let message = format!("`{}` cannot stand in a `defaults` section without a name", args.name());
        loader.report(
            Diagnostic::error(code::ANONYMOUS_RULES, args.keyword(), message)
                .help("name the section: `defaults NAME`; the proxies below it still inherit"),
        );
    }
    draft.is_anonymous()
}

/// `cache-rule NAME …`.
pub(in crate::lang) fn cache_rule(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    caching(loader, draft, Dialect::Tidegate, &args);
}

/// `nuster rule NAME …`.
pub(in crate::lang) fn nuster_rule(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    caching(loader, draft, Dialect::Nuster, &args);
}

fn caching(loader: &mut Loader<'_>, draft: &mut Draft, dialect: Dialect, args: &Args<'_>) {
    let Some(name) = loader.need(&mut args.clone(), "a name") else { return };
    let place = loader.sources.rule_place(args.line.span);
    let scope = &mut loader.scope(draft);
    let Some(made) = resolve::cache_rule(scope, dialect, args.rest(), args.line, place) else { return };
    if draft.kind == Kind::Defaults {
        return;
    }
    let Some(store) = store::choose(loader, dialect, made.store.as_ref(), args.keyword()) else { return };
    let mut rule = made.rule;
    rule.store = store;
    if let Some(cap) = loader.names.lifetime_caps.get(&store.index())
        && let Ttl::Auto { max, .. } = &mut rule.terms.ttl
    {
        *max = Some(max.map_or(*cap, |max| max.min(*cap)));
    }
    let id = crate::config::Id::new(loader.config.cache_rules.len());
    loader.config.cache_rules.push(rule);
    loader.names.rules.push(name.span);
    draft.cache_rules.push((id, dialect, args.line.span));
}
