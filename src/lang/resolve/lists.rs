//! Pattern files and maps of a configuration: each is read once, whoever names it (HAProxy manual §7.1.3).

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    ops::Range,
    sync::Arc,
};

use super::{Scope, codes};
use crate::{
    lang::{
        Outside,
        diag::Diagnostic,
        source::{FileId, Sources, Span, offset},
    },
    rule::{
        Type,
        list::{Fault, List, Look, View},
        matcher::Method,
    },
};

/// The lists of a configuration by the name of their file.
#[derive(Debug, Default)]
pub struct Lists {
    known: HashMap<String, Known>,
    /// Lists that findings point into, in the order of their numbers as files.
    shown: Vec<Arc<List>>,
    /// The number of the first of them.
    first: u32,
}

#[derive(Debug)]
struct Known {
    list: Arc<List>,
    /// Who looked it up first; `None`: nobody has.
    reader: Option<Span>,
    /// Who changes it first.
    changer: Option<Span>,
    /// Whether its file could not be read, which has been reported.
    broken: bool,
}

impl Lists {
    /// No lists; files that findings point into get the numbers behind those of `sources`.
    pub fn behind(sources: &Sources) -> Self {
        Self { first: offset(sources.names().count()), ..Self::default() }
    }

    /// Adds the files that findings point into.
    pub fn show(&self, sources: &mut Sources) {
        for list in &self.shown {
            sources.add(list.name().to_owned(), list.text());
        }
    }

    /// What can be said when all lines are read: lists that are changed and never looked up.
    pub fn unread(&self) -> impl Iterator<Item = Diagnostic> {
        let unread = self.known.values().filter(|known| known.reader.is_none() && !known.broken);
        unread.filter_map(|known| {
            let message =
                format!("no ACL and no map reads `{}`: what is changed here is never seen", known.list.name());
            let finding = Diagnostic::warning(codes::UNREAD_LIST, known.changer?, message);
            Some(finding.help("name the file behind `-f` of an ACL or in a map as it is named here"))
        })
    }

    fn known(&mut self, name: &str) -> &mut Known {
        let name = plain(name);
        self.known.entry(name.to_owned()).or_insert_with(|| Known {
            list: List::new(name),
            reader: None,
            changer: None,
            broken: false,
        })
    }

    /// The piece `at` of a list's file.
    fn place(&mut self, list: &Arc<List>, at: &Range<usize>) -> Span {
        let known = self.shown.iter().position(|shown| Arc::ptr_eq(shown, list));
        let index = known.unwrap_or_else(|| {
            self.shown.push(Arc::clone(list));
            self.shown.len() - 1
        });
        let file = FileId(self.first.saturating_add(offset(index)));
        Span { file, start: offset(at.start), end: offset(at.end) }
    }
}

/// `file@` and `opt@` say how a file is read, not which one.
fn plain(name: &str) -> &str {
    name.strip_prefix("file@").or_else(|| name.strip_prefix("opt@")).unwrap_or(name)
}

/// The list in the file `name`, named at `span`. `columns`: its lines have a key and a value.
pub(super) fn open(scope: &mut Scope<'_>, name: &str, span: Span, columns: bool) -> Option<Arc<List>> {
    let known = scope.lists.known(name);
    let list = Arc::clone(&known.list);
    let reader = *known.reader.get_or_insert(span);
    match list.columns() {
        Some(other) if other == columns => return Some(list),
        Some(other) => {
            let of = |columns: bool| if columns { "keys and values" } else { "patterns alone" };
            let message =
                format!("`{}` is a file of {} already, and no file of {}", list.name(), of(other), of(columns));
            let finding = Diagnostic::error(codes::LIST_SHAPE, span, message).label(reader, "by this");
            scope.report(finding.help("read a file that is a map with `-M -f`, or make two files of it"));
            return None;
        }
        None if known.broken => return None,
        None => {}
    }
    match scope.read_path(name, span) {
        Some(bytes) => list.fill(bytes, columns),
        None => {
            scope.lists.known(name).broken = true;
            return None;
        }
    }
    Some(list)
}

/// The list in the file `name`, which a rule changes.
pub(super) fn changed(scope: &mut Scope<'_>, name: &str, span: Span) -> Arc<List> {
    let known = scope.lists.known(name);
    known.changer.get_or_insert(span);
    known.list.change();
    Arc::clone(&known.list)
}

/// A list as it is looked up; what is wrong with its entries is reported. `named` is where it is named.
pub(super) fn view(scope: &mut Scope<'_>, list: &Arc<List>, look: Look, names: bool, named: Span) -> Option<Arc<View>> {
    let outside = scope.outside;
    let hosts = |name: &str| if names { hosts(outside, name.as_bytes()) } else { Vec::new() };
    match list.view(look, &hosts) {
        Ok(view) => Some(view),
        Err(faults) => {
            let code = if look.method == Method::Reg { codes::BAD_REGEX } else { codes::BAD_PATTERN };
            report(scope, list, code, faults, named);
            None
        }
    }
}

/// Warns of keys of a map that have no value.
pub(super) fn warn_of_missing_values(scope: &mut Scope<'_>, list: &Arc<List>, named: Span) {
    for fault in list.values(Type::Str).1 {
        let span = scope.lists.place(list, &fault.at);
        let finding = Diagnostic::warning(codes::NO_VALUE, span, fault.message).label(named, "the map is named here");
        scope.report(finding.help("write a value behind the key; without one, an empty text is found"));
    }
}

/// Reports entries at fault; `named` is where their file is named.
pub(super) fn report(scope: &mut Scope<'_>, list: &Arc<List>, code: &'static str, faults: Vec<Fault>, named: Span) {
    for fault in faults {
        // What cannot be said of one entry is said where the file is named.
        let finding = if fault.at.is_empty() {
            Diagnostic::error(code, named, fault.message)
        } else {
            let span = scope.lists.place(list, &fault.at);
            Diagnostic::error(code, span, fault.message).label(named, "the file is named here")
        };
        scope.report(finding.help(fault.help));
    }
}

/// The addresses of a pattern that is the name of a host; none when it is not.
pub(super) fn hosts(outside: &dyn Outside, pattern: &[u8]) -> Vec<IpAddr> {
    let resolved = may_be_host(pattern).then(|| outside.resolve(&String::from_utf8_lossy(pattern), 0));
    let found = resolved.and_then(Result::ok).unwrap_or_default();
    found.iter().map(SocketAddr::ip).collect()
}

/// Whether a pattern that is no address may be the name of a host.
pub(super) fn may_be_host(pattern: &[u8]) -> bool {
    pattern.iter().any(u8::is_ascii_alphabetic) && !pattern.iter().any(|byte| matches!(byte, b':' | b'/'))
}
