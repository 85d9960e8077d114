//! What can only be seen when every proxy is read.

use std::collections::HashMap;

use super::{Kind, Loader, loops, names, proxy::Draft};
use crate::{
    config::BindAddress,
    lang::{
        code,
        diag::{Diagnostic, Severity},
        resolve::Dialect,
        source::Span,
    },
};

/// Looks at all proxies together.
pub(super) fn proxies(loader: &mut Loader<'_>, drafts: &[Draft]) {
    for draft in drafts {
        mode(loader, draft);
        if !loader.is_broken(draft) {
            listening(loader, draft);
            unused_acls(loader, draft);
        }
    }
    servers(loader, drafts);
    addresses(loader, drafts);
    loops::warn(loader, drafts);
    rule_names(loader);
}

impl Loader<'_> {
    /// Whether an error was found in a proxy: then what seems to be missing may be what is broken.
    fn is_broken(&self, draft: &Draft) -> bool {
        self.diagnostics.iter().any(|found| found.severity == Severity::Error && draft.owns(found.span))
    }
}

fn mode(loader: &mut Loader<'_>, draft: &Draft) {
    if let Some(mode) = draft.mode.as_ref().filter(|mode| !mode.is("http")) {
        loader.report(
            Diagnostic::error(code::MODE, mode.span, format!("`mode {}` is not supported", mode.lossy()))
                .label(draft.span, "by this proxy")
                .help("write `mode http`; what is no HTTP has no place here"),
        );
    }
}

fn listening(loader: &mut Loader<'_>, draft: &Draft) {
    if !draft.kind.listens() {
        return;
    }
    if draft.binds.is_empty() {
        let message = format!("`{}` listens nowhere", draft.name);
        let finding = match draft.kind {
            Kind::Frontend => Diagnostic::error(code::NO_BIND, draft.span, message),
            _ => Diagnostic::warning(code::NO_BIND, draft.span, message),
        };
        loader.report(finding.help("add a line such as `bind :80`"));
    }
    if draft.kind == Kind::Frontend && !draft.targets.is_total() && !draft.rules.answers_all {
        let message =
            format!("`{}` has no `default_backend`: what no `use_backend` takes is answered with 503", draft.name);
        loader.report(Diagnostic::warning(code::NO_DEFAULT_BACKEND, draft.span, message));
    }
}

fn unused_acls(loader: &mut Loader<'_>, draft: &Draft) {
    // What is inherited may be used by another proxy.
    let own: Vec<_> =
        draft.acls.unused().filter(|(_, span)| draft.owns(*span)).map(|(name, span)| (name.to_owned(), span)).collect();
    for (name, span) in own {
        loader.report(Diagnostic::warning(code::UNUSED_ACL, span, format!("nothing uses the ACL `{name}`")));
    }
}

/// Backends in use need servers; a `listen` without any may still send everything elsewhere.
fn servers(loader: &mut Loader<'_>, drafts: &[Draft]) {
    // A line with an error in it may be the `server` that is missed.
    let broken: Vec<_> = drafts.iter().filter(|draft| loader.is_broken(draft)).map(|draft| draft.span).collect();
    let lacks = |draft: &Draft| draft.servers.is_empty() && !draft.rules.answers_all && !broken.contains(&draft.span);
    let backends: Vec<_> = drafts.iter().filter(|draft| draft.kind.serves()).collect();
    let mut seen = Vec::new();
    for draft in drafts {
        for (id, span) in draft.targets.named() {
            let Some(backend) = backends.get(id.index()).filter(|_| !seen.contains(&id.index())) else { continue };
            if lacks(backend) {
                seen.push(id.index());
                no_server(loader, backend, Some(span));
            }
        }
        let to_itself = draft.kind == Kind::Listen && !draft.targets.is_total() && !draft.binds.is_empty();
        if to_itself && lacks(draft) {
            no_server(loader, draft, None);
        }
    }
}

fn no_server(loader: &mut Loader<'_>, draft: &Draft, used: Option<Span>) {
    let message = format!("`{}` has no server: its requests are answered with 503", draft.name);
    let mut finding = Diagnostic::warning(code::NO_SERVER, draft.span, message);
    if let Some(used) = used {
        finding = finding.label(used, "it is used here");
    }
    loader.report(finding.help("add a line such as `server one 127.0.0.1:8080`"));
}

fn addresses(loader: &mut Loader<'_>, drafts: &[Draft]) {
    let mut seen: HashMap<BindAddress, Span> = HashMap::new();
    let admin = loader.config.admin.clone();
    for (bind, span) in drafts.iter().flat_map(|draft| &draft.binds) {
        if matches!(bind.address, BindAddress::Tcp(address) if address.port() == 0) {
            continue;
        }
        let message = || format!("{} is bound already", bind.address);
        if let Some(first) = seen.get(&bind.address) {
            let finding = Diagnostic::error(code::SAME_ADDRESS, *span, message()).label(*first, "here it is first");
            loader.report(finding);
        } else if let Some((_, place)) = admin.iter().flat_map(|admin| &admin.binds).find(|(a, _)| *a == bind.address) {
            let finding = Diagnostic::error(code::SAME_ADDRESS, *span, message());
            loader.report(finding.help(format!("the `admin` section has it, at {place}")));
        } else {
            seen.insert(bind.address.clone(), *span);
        }
    }
}

/// Names of caching rules are one name space; a rule that several proxies inherit is one rule.
fn rule_names(loader: &mut Loader<'_>) {
    let mut seen: HashMap<String, Span> = HashMap::new();
    let mut found = Vec::new();
    for (rule, span) in loader.config.cache_rules.iter().zip(&loader.names.rules) {
        match seen.get(&rule.name) {
            Some(first) if first == span => {}
            Some(first) => found.push(names::duplicate("caching rule", &rule.name, *span, *first)),
            None => {
                seen.insert(rule.name.clone(), *span);
            }
        }
    }
    loader.diagnostics.append(&mut found);
}

/// Takes the rules of nuster away that nuster's switches turn off.
pub(super) fn nuster_switches(loader: &mut Loader<'_>, draft: &mut Draft) {
    let off = loader.nuster == Some(false) || draft.nuster == Some(false);
    let nusters = |(_, dialect, _): &(_, Dialect, Span)| *dialect == Dialect::Nuster;
    let Some((.., span)) = draft.cache_rules.iter().find(|rule| nusters(rule)).copied() else { return };
    if off {
        draft.cache_rules.retain(|rule| !nusters(rule));
        let message = format!("the nuster rules of `{}` are switched off with `nuster cache off`", draft.name);
        loader.report(Diagnostic::warning(code::SWITCHED_OFF, span, message));
    } else if draft.nuster.is_none() || loader.nuster.is_none() {
        let place = if draft.nuster.is_none() { draft.kind.name() } else { "global" };
        let message = format!("nuster would cache here only with `nuster cache on` in `{place}`; Tidegate does anyway");
        loader.report(
            Diagnostic::note(code::NUSTER_SWITCH, span, message)
                .help("write `nuster cache off` to switch the rules off"),
        );
    }
}
