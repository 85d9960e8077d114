//! Environment variables as a configuration sees them: those of the process, those that are always there, and
//! what `setenv` and its kin in `global` have changed so far (HAProxy manual §2.3 and §3.1). The process's own
//! environment stays as it is, so that a reload begins with it again.

use std::{
    collections::{HashMap, HashSet},
    io,
    net::SocketAddr,
    path::Path,
};

use super::{Outside, ast::Word, code, condition::VERSION, diag::Diagnostic};

/// The log formats that HAProxy calls by name (manual §8.2).
const HTTP: &str =
    "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq %hr %hs %{+Q}r";
const HTTPS: &str = "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq \
                     %hr %hs %{+Q}r %[fc_err]/%[ssl_fc_err,hex]/%[ssl_c_err]/%[ssl_c_ca_err]/%[ssl_fc_is_resumed] \
                     %[ssl_fc_sni]/%sslv/%sslc";
const CLF: &str = "%{+Q}o %{-Q}ci - - [%trg] %r %ST %B \"\" \"\" %cp %ms %ft %b %s %TR %Tw %Tc %Tr %Ta %tsc %ac %fc \
                   %bc %sc %rc %sq %bq %CC %CS %hrl %hsl";
const TCP: &str = "%ci:%cp [%t] %ft %b/%s %Tw/%Tc/%Tt %B %ts %ac/%fc/%bc/%sc/%rc %sq/%bq";

/// See the module.
pub(super) struct Environment<'o> {
    outside: &'o dyn Outside,
    /// What is different from the process's own: `None`: unset.
    changed: HashMap<String, Option<String>>,
    /// `resetenv`: those that are left of the process's own; `None`: all of them.
    kept: Option<HashSet<String>>,
    /// The files of the configuration, in one text.
    files: String,
}

impl<'o> Environment<'o> {
    pub(super) fn new<'n>(outside: &'o dyn Outside, files: impl Iterator<Item = &'n str>) -> Self {
        let files = files.collect::<Vec<_>>().join(";");
        Self { outside, changed: HashMap::new(), kept: None, files }
    }

    /// Whether a line of `global` changes the environment.
    pub(super) fn is_change(words: &[Word]) -> bool {
        let names = ["setenv", "presetenv", "unsetenv", "resetenv"];
        words.first().is_some_and(|first| names.iter().any(|name| first.is(name)))
    }

    /// Does what such a line says. Gives what is wrong with it; with an error nothing is changed.
    pub(super) fn change(&mut self, words: &[Word]) -> Option<Diagnostic> {
        let (keyword, args) = words.split_first()?;
        let name = keyword.lossy();
        match &*name {
            "unsetenv" if args.is_empty() => return Some(incomplete(keyword, keyword, "unsetenv NAME …")),
            "unsetenv" => self.changed.extend(args.iter().map(|word| (word.lossy().into_owned(), None))),
            "resetenv" => {
                let names = args.iter().map(|word| word.lossy().into_owned());
                let left: HashSet<String> = names.filter(|name| self.var(name).is_some()).collect();
                self.changed.retain(|name, _| left.contains(name));
                self.kept = Some(left);
            }
            _ => return self.set(keyword, args),
        }
        None
    }

    /// `setenv` and `presetenv`.
    fn set(&mut self, keyword: &Word, args: &[Word]) -> Option<Diagnostic> {
        let form = format!("{} NAME VALUE", keyword.lossy());
        let [name, value, surplus @ ..] = args else {
            return Some(incomplete(keyword, args.last().unwrap_or(keyword), &form));
        };
        if let Some(at) = name.text.iter().position(|byte| *byte == b'=') {
            let finding = Diagnostic::error(code::BAD_NAME, name.part(at..at + 1), "a name cannot have a `=` in it");
            return Some(finding.help(format!("write `{form}`")));
        }
        if keyword.is("setenv") || self.var(&name.lossy()).is_none() {
            self.changed.insert(name.lossy().into_owned(), Some(value.lossy().into_owned()));
        }
        let span = surplus.first()?.span.to(surplus.last()?.span);
        let finding = Diagnostic::warning(code::EXTRA_WORD, span, "only the first word behind the name is the value");
        Some(finding.help("a value with blanks needs quotes"))
    }

    fn predefined(&self, name: &str) -> Option<&str> {
        Some(match name {
            "HAPROXY_HTTP_LOG_FMT" => HTTP,
            "HAPROXY_HTTPS_LOG_FMT" => HTTPS,
            "HAPROXY_HTTP_CLF_LOG_FMT" => CLF,
            "HAPROXY_TCP_LOG_FMT" => TCP,
            "HAPROXY_BRANCH" => VERSION.branch(),
            "HAPROXY_STARTUP_VERSION" => VERSION.text,
            "HAPROXY_CFGFILES" => &self.files,
            _ => return None,
        })
    }
}

fn incomplete(keyword: &Word, last: &Word, form: &str) -> Diagnostic {
    let message = format!("`{}` needs another word", keyword.lossy());
    Diagnostic::error(code::MISSING_WORD, last.span.after(), message).help(format!("write `{form}`"))
}

impl Outside for Environment<'_> {
    fn var(&self, name: &str) -> Option<String> {
        if let Some(changed) = self.changed.get(name) {
            return changed.clone();
        }
        if self.kept.as_ref().is_some_and(|kept| !kept.contains(name)) {
            return None;
        }
        self.predefined(name).map(str::to_owned).or_else(|| self.outside.var(name))
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.outside.read(path)
    }

    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        self.outside.resolve(host, port)
    }

    fn memory(&self) -> Option<u64> {
        self.outside.memory()
    }

    fn certificate_faults(&self, path: &Path) -> Vec<String> {
        self.outside.certificate_faults(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lang::{resolve::written, source::Span, testing::Desk};

    fn words(text: &str) -> Vec<Word> {
        text.split(' ').map(|word| written(word, Span::default())).collect()
    }

    /// What the lines leave of the variables, each as `NAME=value` when it is set.
    fn after(lines: &[&str]) -> Vec<String> {
        let desk = Desk::new().with_var("HOME", "/h").with_var("A", "a").with_var("EMPTY", "");
        let mut environment = Environment::new(&desk, ["x.cfg", "y.cfg"].into_iter());
        for line in lines {
            assert!(Environment::is_change(&words(line)), "{line}");
            assert_eq!(environment.change(&words(line)), None, "{line}");
        }
        let value = |name: &str| Some(format!("{name}={}", environment.var(name)?));
        ["HOME", "A", "B", "EMPTY"].into_iter().filter_map(value).collect()
    }

    #[test]
    fn lines_change_what_the_lines_below_see() {
        let cases: &[(&[&str], &[&str])] = &[
            (&[], &["HOME=/h", "A=a", "EMPTY="]),
            (&["setenv A b", "setenv B c"], &["HOME=/h", "A=b", "B=c", "EMPTY="]),
            (&["presetenv A b", "presetenv B c", "presetenv EMPTY x"], &["HOME=/h", "A=a", "B=c", "EMPTY="]),
            (&["unsetenv A EMPTY NONE"], &["HOME=/h"]),
            (&["unsetenv A", "presetenv A b"], &["HOME=/h", "A=b", "EMPTY="]),
            (&["setenv B c", "resetenv B HOME NONE"], &["HOME=/h", "B=c"]),
            (&["resetenv"], &[]),
            (&["resetenv HOME", "setenv A b", "resetenv A"], &["A=b"]),
        ];
        for (lines, expected) in cases {
            assert_eq!(after(lines), *expected, "{lines:?}");
        }
    }

    #[test]
    fn lines_that_say_nothing_change_nothing() {
        let desk = Desk::new();
        let mut environment = Environment::new(&desk, std::iter::empty());
        for (line, code) in [
            ("setenv", code::MISSING_WORD),
            ("presetenv A", code::MISSING_WORD),
            ("setenv A=b c", code::BAD_NAME),
            ("unsetenv", code::MISSING_WORD),
        ] {
            assert_eq!(environment.change(&words(line)).unwrap().code, code, "{line}");
        }
        assert_eq!(environment.var("A"), None);
    }

    #[test]
    fn haproxys_own_variables_are_there() {
        let desk = Desk::new();
        let environment = Environment::new(&desk, ["x.cfg", "y.cfg"].into_iter());
        assert_eq!(environment.var("HAPROXY_CFGFILES").as_deref(), Some("x.cfg;y.cfg"));
        assert_eq!(environment.var("HAPROXY_BRANCH").as_deref(), Some("2.6"));
        assert!(environment.var("HAPROXY_HTTP_LOG_FMT").is_some_and(|format| format.ends_with("%{+Q}r")));
        assert_eq!(environment.var("HAPROXY_MWORKER"), None);
    }
}
