//! Where requests go: `use_backend` and `default_backend`.

use super::{Args, Draft, Loader};
use crate::{
    config::{Backend, Id, Switch, SwitchTarget},
    lang::{ast::Word, code, diag::Diagnostic, resolve, source::Span},
    rule::Phase,
};

/// Where a proxy sends requests.
#[derive(Default)]
pub(super) struct Targets {
    switches: Vec<(Switch, Span)>,
    pub(super) default: Option<Target>,
    /// The first `use_backend` without a condition.
    always: Option<Span>,
    /// The first `use_backend`.
    pub(super) first: Option<Span>,
}

/// A backend and where it is named.
pub(super) struct Target(Id<Backend>, Span);

impl Target {
    pub(super) const fn id(&self) -> Id<Backend> {
        self.0
    }
}

impl Targets {
    pub(super) fn switches(&self) -> Vec<Switch> {
        self.switches.iter().map(|(switch, _)| switch.clone()).collect()
    }

    /// Whether requests may reach a backend from here.
    pub(super) fn may_reach(&self, backend: Id<Backend>) -> bool {
        let by_switch = self.switches.iter().any(|(switch, _)| match &switch.target {
            SwitchTarget::Backend(id) => *id == backend,
            SwitchTarget::Named(_) => true,
        });
        by_switch || self.default.as_ref().is_some_and(|target| target.id() == backend)
    }

    /// Every backend named, and where.
    pub(super) fn named(&self) -> impl Iterator<Item = (Id<Backend>, Span)> {
        let switches = self.switches.iter().filter_map(|(switch, span)| match switch.target {
            SwitchTarget::Backend(id) => Some((id, *span)),
            SwitchTarget::Named(_) => None,
        });
        switches.chain(self.default.as_ref().map(|target| (target.0, target.1)))
    }

    /// Whether every request finds a backend.
    pub(super) const fn is_total(&self) -> bool {
        self.default.is_some() || self.always.is_some()
    }
}

/// `use_backend NAME|FORMAT [if|unless …]`.
pub(in crate::lang) fn use_backend(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    let (head, cond_words) = resolve::split_cond(args.rest());
    let Some(name) = head.first() else {
        return loader.error(code::MISSING_WORD, args.keyword().after(), "`use_backend` needs the name of a backend");
    };
    if let Some(extra) = head.get(1) {
        let message = format!("`{}` stands where `if` or `unless` belongs", extra.lossy());
        loader.report(
            Diagnostic::error(code::EXTRA_WORD, extra.span, message)
                .help("the form is `use_backend NAME if CONDITION`"),
        );
    }
    let cond = resolve::cond(&mut loader.scope(draft), cond_words, Phase::Request);
    let target = target(loader, draft, name);
    if !draft.inherited {
        order(loader, draft, &args, cond_words.is_empty());
    }
    if let (Some(cond), Some(target)) = (cond, target) {
        draft
            .targets
            .switches
            .push((Switch { cond, target, place: loader.sources.rule_place(args.line.span) }, name.span));
    }
}

fn target(loader: &mut Loader<'_>, draft: &mut Draft, name: &Word) -> Option<SwitchTarget> {
    if memchr::memmem::find(&name.text, b"%[").is_some() {
        let format = resolve::format(&mut loader.scope(draft), name, Phase::Request);
        return format.map(SwitchTarget::Named);
    }
    loader.backend(name).map(SwitchTarget::Backend)
}

fn order(loader: &mut Loader<'_>, draft: &mut Draft, args: &Args<'_>, always: bool) {
    draft.targets.first.get_or_insert(args.keyword());
    match draft.targets.always {
        Some(before) => loader.report(
            Diagnostic::warning(code::UNREACHABLE, args.line.span, "this `use_backend` is never reached")
                .label(before, "this one has no condition and takes every request"),
        ),
        None if always => draft.targets.always = Some(args.line.span),
        None => {}
    }
}

/// `default_backend NAME`.
pub(in crate::lang) fn default_backend(loader: &mut Loader<'_>, draft: &mut Draft, mut args: Args<'_>) {
    let Some(name) = loader.need(&mut args, "the name of a backend") else { return };
    loader.nothing_more(&args);
    if let Some(id) = loader.backend(name) {
        draft.targets.default = Some(Target(id, name.span));
    }
}
