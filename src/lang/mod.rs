//! From text to a checked configuration: words, lines, sections, names, types, phases.
//! Loading never fails and never panics: it returns what could be made of the text and what is wrong with it.
//!
//! `words`, `block` and `parse` know shapes only; `keyword` knows every word by name and what becomes of it;
//! `section` reads one kind of line a file; `resolve` compiles rules; `render` shows findings.

pub mod ast;
mod block;
pub mod code;
mod condition;
pub mod diag;
mod environment;
mod keyword;
mod parse;
pub mod reference;
pub mod render;
pub mod resolve;
mod section;
pub mod source;
pub mod suggest;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub mod unit;
mod words;

use std::{collections::HashSet, fmt, io, net::SocketAddr, path::Path};

use crate::config::Config;
pub use reference::reference;
pub use render::{render, summary};

/// What loading needs of the outside: pattern files, environment variables, host names, certificates.
pub trait Outside {
    /// The bytes of a file, relative to the working directory.
    ///
    /// # Errors
    /// Whatever reading it gave.
    fn read(&self, path: &str) -> io::Result<Vec<u8>>;
    /// An environment variable; `None` when unset.
    fn var(&self, name: &str) -> Option<String>;
    /// The addresses of a host name, in the order they should be tried.
    ///
    /// # Errors
    /// Whatever the resolver gave. Without one, names cannot be used.
    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let _ = (host, port);
        Err(io::Error::new(io::ErrorKind::Unsupported, "names are not resolved here"))
    }
    /// The machine's memory in bytes; `None` when it is not known.
    fn memory(&self) -> Option<u64> {
        None
    }
    /// What keeps the certificates that `path` stands for (a file or a directory) from being used, a line
    /// each. Empty: nothing, or nobody here can say.
    fn certificate_faults(&self, path: &Path) -> Vec<String> {
        let _ = path;
        Vec::new()
    }
}

/// An error of the system as people read it in a sentence: `connection refused`, without its number.
pub fn in_words(error: &(impl fmt::Display + ?Sized)) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(characters).collect()
}

/// The outcome of loading.
#[derive(Debug)]
pub struct Loaded {
    /// The configuration; `None` when an error was found.
    pub config: Option<Config>,
    /// Everything found, in the order of the text.
    pub diagnostics: Vec<diag::Diagnostic>,
    /// The texts, to show places in.
    pub sources: source::Sources,
}

/// Loads the files of one configuration, in order. Never panics.
/// `lenient` turns refusals of known words without machinery into warnings.
pub fn load(files: Vec<(String, Vec<u8>)>, outside: &dyn Outside, lenient: bool) -> Loaded {
    let mut sources = source::Sources::default();
    let ids: Vec<_> = files.into_iter().map(|(name, text)| sources.add(name, text)).collect();
    let mut environment = environment::Environment::new(outside, sources.names());
    let mut diagnostics = Vec::new();
    let mut sections = Vec::new();
    for id in ids {
        sections.append(&mut parse::sections(&sources, id, &mut environment, &mut diagnostics));
    }
    let (config, diagnostics, lists) = section::read(&sections, &sources, &environment, lenient, diagnostics);
    lists.show(&mut sources);
    let diagnostics = in_order(diagnostics);
    let fine = diagnostics.iter().all(|found| found.severity < diag::Severity::Error);
    Loaded { config: fine.then_some(config), diagnostics, sources }
}

/// In the order of the text, each once: what is inherited is read once for each heir.
fn in_order(mut diagnostics: Vec<diag::Diagnostic>) -> Vec<diag::Diagnostic> {
    diagnostics.sort_by_key(|found| (found.span.file, found.span.start));
    let mut seen = HashSet::new();
    diagnostics.retain(|found| seen.insert((found.span, found.code, found.message.clone())));
    diagnostics
}
