//! From sections to a [`Config`]: which section is which, defaults inheritance, names, and one file
//! for each kind of line.

mod address;
pub(super) mod admin;
mod args;
pub(super) mod bind;
pub(super) mod capture;
mod check;
pub(super) mod forward;
pub(super) mod global;
mod head;
pub(super) mod log;
mod loops;
mod names;
pub(super) mod nuster;
pub(super) mod pages;
mod params;
pub(super) mod proxy;
pub(super) mod route;
pub(super) mod rules;
pub(super) mod server;
pub(super) mod stats;
pub(super) mod store;
pub(super) mod table;
pub(super) mod timeout;
pub(super) mod users;

use std::{collections::HashSet, path::PathBuf};

use super::{
    Outside,
    ast::{Line, Section, Word},
    code,
    diag::{AROUND, Diagnostic, Severity},
    keyword::{self, Found, Row, Status, place},
    resolve::{Lists, Proxy, Scope, VarNames},
    source::{Sources, Span},
    suggest,
};
use crate::config::Config;
pub(super) use args::Args;
pub(super) use bind::BindDraft;
use names::Names;
pub(super) use proxy::Draft;
use proxy::Inheritance;
pub(super) use server::ServerDraft;

/// The kinds of sections that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Global,
    Defaults,
    Frontend,
    Listen,
    Backend,
    Cache,
    Admin,
    HttpErrors,
    Userlist,
}

impl Kind {
    const fn place(self) -> u16 {
        match self {
            Self::Global => place::GLOBAL,
            Self::Defaults => place::DEFAULTS,
            Self::Frontend => place::FRONTEND,
            Self::Listen => place::LISTEN,
            Self::Backend => place::BACKEND,
            Self::Cache => place::CACHE,
            Self::Admin => place::ADMIN,
            Self::HttpErrors => place::ERRORS,
            Self::Userlist => place::USERS,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Defaults => "defaults",
            Self::Frontend => "frontend",
            Self::Listen => "listen",
            Self::Backend => "backend",
            Self::Cache => "cache",
            Self::Admin => "admin",
            Self::HttpErrors => "http-errors",
            Self::Userlist => "userlist",
        }
    }

    const fn listens(self) -> bool {
        matches!(self, Self::Frontend | Self::Listen)
    }

    const fn serves(self) -> bool {
        matches!(self, Self::Backend | Self::Listen)
    }
}

/// What is known while sections are read.
pub(super) struct Loader<'a> {
    pub(super) outside: &'a dyn Outside,
    pub(super) lenient: bool,
    pub(super) sources: &'a Sources,
    pub(super) diagnostics: Vec<Diagnostic>,
    pub(super) vars: VarNames,
    pub(super) lists: Lists,
    pub(super) config: Config,
    names: Names,
    /// The log of `global`.
    logs: log::GlobalLogs,
    /// `crt-base`.
    crt_base: Option<PathBuf>,
    /// What `nuster cache` in `global` says; `None`: the line is not there.
    nuster: Option<bool>,
    /// Words whose note was given.
    noted: HashSet<String>,
}

/// Reads all sections and adds to what was found in their words. The configuration is what could be made of them;
/// whether it may be used, the severity of the findings says.
pub(super) fn read(
    sections: &[Section],
    sources: &Sources,
    outside: &dyn Outside,
    lenient: bool,
    diagnostics: Vec<Diagnostic>,
) -> (Config, Vec<Diagnostic>, Lists) {
    let mut loader = Loader {
        outside,
        lenient,
        sources,
        diagnostics,
        vars: VarNames::default(),
        lists: Lists::behind(sources),
        config: Config { files: sources.names().map(str::to_owned).collect(), ..Config::default() },
        names: Names::default(),
        logs: log::GlobalLogs::default(),
        crt_base: None,
        nuster: None,
        noted: HashSet::new(),
    };
    let ends = sections.iter().skip(1).map(|next| Some(next.head.span)).chain([None]);
    let heads: Vec<_> =
        sections.iter().zip(ends).filter_map(|(section, next)| head::read(&mut loader, section, next)).collect();
    names::collect(&mut loader, &heads);
    table::collect(&mut loader, &heads);
    let all = |kind: Kind| heads.iter().filter(move |head| head.kind == kind);
    for head in all(Kind::Global) {
        for line in &head.section.lines {
            global::line(&mut loader, line);
        }
    }
    for head in all(Kind::Cache) {
        store::section(&mut loader, head);
    }
    for head in all(Kind::HttpErrors) {
        pages::section(&mut loader, head);
    }
    for head in all(Kind::Userlist) {
        users::section(&mut loader, head);
    }
    admin::sections(&mut loader, all(Kind::Admin));
    let mut inheritance = Inheritance::default();
    let mut drafts = Vec::new();
    for head in &heads {
        match head.kind {
            Kind::Defaults => proxy::defaults(&mut loader, head, &mut inheritance),
            Kind::Frontend | Kind::Listen | Kind::Backend => {
                let mut draft = proxy::section(&mut loader, head, &inheritance);
                check::nuster_switches(&mut loader, &mut draft);
                drafts.push(draft);
            }
            Kind::Global | Kind::Cache | Kind::Admin | Kind::HttpErrors | Kind::Userlist => {}
        }
    }
    check::proxies(&mut loader, &drafts);
    proxy::finish(&mut loader, drafts);
    loader.config.tables = loader.names.tables.drain(..).map(|(table, _)| table).collect();
    let unread: Vec<_> = loader.lists.unread().collect();
    loader.diagnostics.extend(unread);
    (loader.config, loader.diagnostics, loader.lists)
}

impl Loader<'_> {
    /// Takes a finding in.
    pub(super) fn report(&mut self, finding: Diagnostic) {
        self.diagnostics.push(finding);
    }

    /// An error without more to say.
    pub(super) fn error(&mut self, code: &'static str, span: Span, message: impl Into<String>) {
        self.report(Diagnostic::error(code, span, message));
    }

    /// A known word that is read and has no effect; said once a word.
    pub(super) fn accept(&mut self, name: &str, span: Span, reason: &str) {
        if self.noted.insert(name.to_owned()) {
            self.report(Diagnostic::note(code::ACCEPTED, span, format!("`{name}` has no effect: {reason}")));
        }
    }

    /// A known word that would change traffic and is not built: an error, or a warning when lenient.
    pub(super) fn refuse(&mut self, name: &str, span: Span, hint: &str) {
        let severity = if self.lenient { Severity::Warning } else { Severity::Error };
        let finding = Diagnostic::new(severity, code::REFUSED, span, format!("`{name}` is not supported")).help(hint);
        self.report(if self.lenient { finding } else { finding.help(AROUND) });
    }

    /// Room in which the rule compiler works for one proxy.
    pub(super) fn scope<'s>(&'s mut self, draft: &'s mut Draft) -> Scope<'s> {
        Scope {
            outside: self.outside,
            diagnostics: &mut self.diagnostics,
            acls: &mut draft.acls,
            captures: &mut draft.captures,
            proxy: Proxy { name: &draft.name, listens: draft.kind.listens(), serves: draft.kind.serves() },
            proxies: &self.names,
            vars: &mut self.vars,
            lists: &mut self.lists,
            lenient: self.lenient,
        }
    }

    /// Looks a line of a section up. Gives its handler and its arguments; everything else about the
    /// line is reported here.
    fn handler<'l, H: Copy>(
        &mut self,
        tables: &[&[Row<H>]],
        kind: Kind,
        line: &'l Line,
        skip: usize,
    ) -> Option<(&'static str, Status<H>, u16, Args<'l>)> {
        let words = line.words.get(skip..).unwrap_or_default();
        match keyword::find(tables, words) {
            Found::Row(row, count) => Some((row.name, row.status, row.places, Args::new(line, skip + count))),
            Found::Family { names } => {
                self.unfinished(words, &names);
                None
            }
            Found::Unknown => {
                self.unknown(keyword::nearest(tables, words), kind, words);
                None
            }
        }
    }

    /// A line whose first word is known and whose second is not.
    fn unfinished(&mut self, words: &[Word], names: &[&'static str]) {
        let Some(first) = words.first() else { return };
        let Some(second) = words.get(1) else {
            let message = format!("`{}` needs another word", first.lossy());
            let some: Vec<_> = names.iter().take(3).map(|name| format!("`{name}`")).collect();
            self.report(
                Diagnostic::error(code::MISSING_WORD, first.span.after(), message)
                    .help(format!("such as {}", some.join(", "))),
            );
            return;
        };
        let name = format!("{} {}", first.lossy(), second.lossy());
        let nearest = suggest::nearest(&second.lossy(), names.iter().filter_map(|name| name.split(' ').nth(1)));
        let nearest = nearest.map(|nearest| format!("{} {nearest}", first.lossy()));
        self.report(
            Diagnostic::error(code::UNKNOWN_WORD, second.span, format!("unknown word `{name}`"))
                .did_you_mean(nearest.as_deref()),
        );
    }

    fn unknown(&mut self, nearest: Option<&'static str>, kind: Kind, words: &[Word]) {
        let Some(first) = words.first() else { return };
        if let Some((name, places)) = keyword::places(words) {
            let message = format!("`{name}` has no place in section `{}`", kind.name());
            self.report(
                Diagnostic::error(code::MISPLACED, first.span, message)
                    .help(format!("it belongs in: {}", place::names(places))),
            );
            return;
        }
        let message = format!("unknown word `{}` in section `{}`", first.lossy(), kind.name());
        let nearest = nearest.or_else(|| keyword::section::nearest(&first.lossy()));
        self.report(Diagnostic::error(code::UNKNOWN_WORD, first.span, message).did_you_mean(nearest));
    }
}
