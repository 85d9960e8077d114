//! The names of proxies and stores, collected before any line is read, so that a line may name what
//! stands below it.

use std::{collections::HashMap, sync::Arc, time::Duration};

use super::{Kind, Loader, head::Head};
use crate::{
    config::{Backend, Frontend, Id, Store},
    lang::{ast::Word, code, diag::Diagnostic, resolve::Proxies, source::Span, suggest},
    rule::{action::answer::Pages, table::Spec, users::Userlist},
};

/// What names stand for.
#[derive(Default)]
pub(super) struct Names {
    frontends: HashMap<String, (Id<Frontend>, Span)>,
    backends: HashMap<String, (Id<Backend>, Span)>,
    stores: HashMap<String, (Id<Store>, Span)>,
    /// The tables and where each is, in the order of the configuration's list.
    pub(super) tables: Vec<(Spec, Span)>,
    /// Stores that `cache` sections declare.
    pub(super) declared: Vec<Id<Store>>,
    /// `max-age` of stores: an upper bound for lifetimes that the origin gives.
    pub(super) lifetime_caps: HashMap<usize, Duration>,
    /// The `http-errors` sections: name, place, pages.
    pub(super) pages: Vec<(String, Span, Pages)>,
    /// The `userlist` sections, each with its place.
    pub(super) users: Vec<(Arc<Userlist>, Span)>,
    /// Where the caching rules stand, in the order of the configuration's table.
    pub(super) rules: Vec<Span>,
}

impl Proxies for Names {
    fn frontends(&self) -> Vec<&str> {
        in_order(self.frontends.iter().map(|(name, (id, _))| (id.index(), name.as_str())))
    }

    fn pages(&self) -> Vec<(&str, &Pages)> {
        self.pages.iter().map(|(name, _, pages)| (name.as_str(), pages)).collect()
    }

    fn users(&self) -> Vec<&Arc<Userlist>> {
        self.users.iter().map(|(users, _)| users).collect()
    }

    fn backends(&self) -> Vec<&str> {
        in_order(self.backends.iter().map(|(name, (id, _))| (id.index(), name.as_str())))
    }

    fn tables(&self) -> Vec<&Spec> {
        self.tables.iter().map(|(table, _)| table).collect()
    }
}

fn in_order<'n>(names: impl Iterator<Item = (usize, &'n str)>) -> Vec<&'n str> {
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names.into_iter().map(|(_, name)| name).collect()
}

impl Names {
    /// Takes a store's name in.
    pub(super) fn add_store(&mut self, name: &str, id: Id<Store>, span: Span) {
        self.stores.entry(name.to_owned()).or_insert((id, span));
    }

    /// The store of a name.
    pub(super) fn store(&self, name: &str) -> Option<Id<Store>> {
        self.stores.get(name).map(|(id, _)| *id)
    }

    /// Where a store is declared.
    pub(super) fn store_span(&self, name: &str) -> Option<Span> {
        self.stores.get(name).map(|(_, span)| *span)
    }

    /// The store's name nearest to a word.
    pub(super) fn nearest_store(&self, name: &str) -> Option<&str> {
        suggest::nearest(name, self.stores.keys().map(String::as_str))
    }
}

/// Gives every frontend and backend its number; reports names that are there twice.
pub(super) fn collect(loader: &mut Loader<'_>, heads: &[Head<'_>]) {
    let (mut frontends, mut backends) = (0, 0);
    for head in heads {
        let mut twice = None;
        if head.kind.listens() {
            let entry = loader.names.frontends.entry(head.name.clone()).or_insert((Id::new(frontends), head.span));
            twice = (entry.0.index() != frontends).then_some(entry.1);
            frontends += 1;
        }
        if head.kind.serves() {
            let entry = loader.names.backends.entry(head.name.clone()).or_insert((Id::new(backends), head.span));
            twice = twice.or((entry.0.index() != backends).then_some(entry.1));
            backends += 1;
        }
        if let Some(first) = twice {
            loader.report(duplicate(head.kind.name(), &head.name, head.span, first));
        }
    }
    for head in heads.iter().filter(|head| head.kind == Kind::Frontend) {
        if let Some((_, span)) = loader.names.backends.get(&head.name) {
            let message = format!("`{}` names a frontend and a backend", head.name);
            let finding = Diagnostic::warning(code::SHARED_NAME, head.span, message)
                .label(*span, "the backend")
                .help("current HAProxy refuses this; give one of them another name");
            loader.report(finding);
        }
    }
}

/// The numbers of what stands at the spans, in order: the `id` that is written, else its place among them all, or the
/// next number that no `id` has taken. Reports those that share one.
pub(super) fn numbers(loader: &mut Loader<'_>, kind: &str, written: &[(Option<u32>, Span)]) -> Vec<u32> {
    let mut taken = HashMap::new();
    for (number, span) in written {
        let Some(number) = number else { continue };
        if let Some(first) = taken.insert(*number, *span) {
            let message = format!("another {kind} has the `id` {number}");
            loader.report(Diagnostic::error(code::DUPLICATE, *span, message).label(first, "this one"));
        }
    }
    let mut next = 0;
    let number = |(number, span): &(Option<u32>, Span)| {
        next += 1;
        number.unwrap_or_else(|| {
            while taken.contains_key(&next) {
                next += 1;
            }
            taken.insert(next, *span);
            next
        })
    };
    written.iter().map(number).collect()
}

/// A name that is there twice.
pub(super) fn duplicate(kind: &str, name: &str, again: Span, first: Span) -> Diagnostic {
    Diagnostic::error(code::DUPLICATE, again, format!("there is a {kind} `{name}` already"))
        .label(first, "here it is first")
        .help("give one of them another name")
}

impl Loader<'_> {
    /// The backend a word names.
    pub(super) fn backend(&mut self, word: &Word) -> Option<Id<Backend>> {
        let name = word.lossy();
        if let Some((id, _)) = self.names.backends.get(&*name) {
            return Some(*id);
        }
        let mut finding = Diagnostic::error(code::UNKNOWN_BACKEND, word.span, format!("there is no backend `{name}`"));
        if let Some((_, span)) = self.names.frontends.get(&*name) {
            finding = finding.label(*span, "this is a frontend");
        }
        let nearest = suggest::nearest(&name, self.names.backends.keys().map(String::as_str)).map(str::to_owned);
        self.report(finding.did_you_mean(nearest.as_deref()));
        None
    }
}
