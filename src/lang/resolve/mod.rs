//! From words to the rule engine's types: expressions, ACLs, conditions, formats, actions, caching
//! rules. Names are looked up in the tables of [`crate::rule`]; whatever is wrong becomes a finding
//! that points at the piece of the word it is about.
//!
//! Every function returns `None` when it could make nothing of its words; why has been reported then
//! (as a warning when known words without machinery are let through).

mod acl;
mod acls;
mod action;
mod cache_rule;
mod call;
pub mod codes;
mod cond;
mod expr;
mod format;
mod known;
mod lists;
mod pattern;
mod vars;

#[cfg(test)]
pub(super) use self::acls::written;
pub(super) use self::call::arguments;
pub use self::{
    acl::acl,
    acls::Acls,
    action::{accepted_actions, actions, challenge, legacy, message, page, page_status, pages_of, redirect_line, rule},
    cache_rule::{CacheRuleDraft, Dialect, WAIT_ON, cache_rule, parameters},
    cond::{cond, split_cond},
    expr::{expr, global_expr},
    format::{format, global_format, log_format, unique_id},
    known::{actions as known_actions, converters as known_converters, fetches as known_fetches},
    lists::Lists,
    vars::{VarNames, process_variable},
};

use crate::rule::capture::Captures;

use super::{
    Outside,
    ast::Word,
    diag::{AROUND, Diagnostic},
    in_words,
    source::Span,
};
use crate::rule::{action::answer::Pages, table::Spec, users::Userlist};
use std::sync::Arc;

/// What words are resolved in.
pub struct Scope<'a> {
    /// Files and variables.
    pub outside: &'a dyn Outside,
    /// Where findings go.
    pub diagnostics: &'a mut Vec<Diagnostic>,
    /// The ACLs of the proxy.
    pub acls: &'a mut Acls,
    /// What the proxy captures; rules add to it.
    pub captures: &'a mut Captures,
    /// The proxy.
    pub proxy: Proxy<'a>,
    /// The names of all proxies.
    pub proxies: &'a dyn Proxies,
    /// The variables of the configuration.
    pub vars: &'a mut VarNames,
    /// The pattern files and maps of the configuration.
    pub lists: &'a mut Lists,
    /// Whether known words without machinery are warnings.
    pub lenient: bool,
}

/// The proxy whose lines are resolved.
#[derive(Clone, Copy, Debug)]
pub struct Proxy<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether it takes connections.
    pub listens: bool,
    /// Whether it has servers.
    pub serves: bool,
}

/// The names of all proxies, those that stand further down included, each at its place in the configuration's table.
pub trait Proxies {
    /// The frontends and `listen` sections.
    fn frontends(&self) -> Vec<&str>;
    /// The backends and `listen` sections.
    fn backends(&self) -> Vec<&str>;
    /// The tables.
    fn tables(&self) -> Vec<&Spec>;
    /// The `http-errors` sections and their pages.
    fn pages(&self) -> Vec<(&str, &Pages)> {
        Vec::new()
    }
    /// The `userlist` sections.
    fn users(&self) -> Vec<&Arc<Userlist>> {
        Vec::new()
    }
}

impl Scope<'_> {
    fn report(&mut self, finding: Diagnostic) {
        self.diagnostics.push(finding);
    }

    fn error(&mut self, code: &'static str, span: Span, message: impl Into<String>) {
        self.report(Diagnostic::error(code, span, message));
    }

    fn warn(&mut self, code: &'static str, span: Span, message: impl Into<String>, help: impl AsRef<str>) {
        self.report(Diagnostic::warning(code, span, message).help(help));
    }

    /// Something known that has no machinery: an error, a warning when the scope is lenient.
    fn refuse(&mut self, code: &'static str, span: Span, message: impl Into<String>) {
        let finding = if self.lenient {
            Diagnostic::warning(code, span, message).help("the line is left out")
        } else {
            Diagnostic::error(code, span, message).help(AROUND)
        };
        self.report(finding);
    }

    /// The bytes of the file that `word` names, from its `from`-th byte on.
    fn read_file(&mut self, word: &Word, from: usize) -> Option<Vec<u8>> {
        let path = word.text.get(from..).unwrap_or_default();
        self.read_path(&String::from_utf8_lossy(path), word.part(from..word.text.len()))
    }

    /// The bytes of a file (HAProxy manual §2.7: `opt@` may be missing, `virt@` is empty, `file@` is plain).
    fn read_path(&mut self, name: &str, span: Span) -> Option<Vec<u8>> {
        if name.starts_with("virt@") {
            return Some(Vec::new());
        }
        let optional = name.strip_prefix("opt@");
        let path = optional.or_else(|| name.strip_prefix("file@")).unwrap_or(name);
        match self.outside.read(path) {
            Ok(bytes) => Some(bytes),
            Err(error) if optional.is_some() && error.kind() == std::io::ErrorKind::NotFound => Some(Vec::new()),
            Err(error) => {
                self.error(codes::UNREADABLE_FILE, span, format!("`{path}` cannot be read: {}", in_words(&error)));
                None
            }
        }
    }
}

/// The words as one text, for `explain` and fingerprints.
fn joined(words: &[Word]) -> Vec<u8> {
    words.iter().map(|word| word.text.as_slice()).collect::<Vec<_>>().join(&b' ')
}

/// From the first to the last word; `None` without any.
fn span_of(words: &[Word]) -> Option<Span> {
    Some(words.first()?.span.to(words.last()?.span))
}

#[cfg(test)]
mod tests;
