//! The words that open sections.

use super::{
    Status::{self, Accepted, Honoured, Refused},
    suggest,
};
use crate::lang::{
    ast::{Section, Word},
    section::Kind,
};

/// One kind of section.
pub(in crate::lang) struct Row {
    pub(in crate::lang) name: &'static str,
    pub(in crate::lang) status: Status<Kind>,
}

const fn row(name: &'static str, status: Status<Kind>) -> Row {
    Row { name, status }
}

const UNUSED: Status<Kind> = Accepted("the words that would use it are refused where they stand");

pub(in crate::lang) const TABLE: &[Row] = &[
    row("acme", Accepted("certificates are not fetched; name their files with `crt`")),
    row("admin", Honoured(Kind::Admin)),
    row("backend", Honoured(Kind::Backend)),
    row("cache", Honoured(Kind::Cache)),
    row("crt-store", UNUSED),
    row("defaults", Honoured(Kind::Defaults)),
    row("fcgi-app", UNUSED),
    row("frontend", Honoured(Kind::Frontend)),
    row("global", Honoured(Kind::Global)),
    row("http-errors", Honoured(Kind::HttpErrors)),
    row("listen", Honoured(Kind::Listen)),
    row("log-forward", Refused("Tidegate forwards no logs; let a syslog server do it")),
    row("log-profile", Accepted("the access log has one format")),
    row("mailers", Accepted("no mail is sent")),
    row("peers", UNUSED),
    row("program", Accepted("Tidegate starts no programs; let the service manager do it")),
    row("resolvers", UNUSED),
    row("ring", Accepted("the access log goes to standard error")),
    row("traces", Accepted("it is for HAProxy's developers")),
    row("userlist", Honoured(Kind::Userlist)),
];

/// What the word that opens a section says.
pub(in crate::lang) fn find(word: &Word) -> Option<&'static Row> {
    TABLE.iter().find(|row| word.is(row.name))
}

/// Whether a line opens a section. `cache on` in `global` is a word of nuster 1.7, no section.
pub(in crate::lang) fn opens(words: &[Word], current: Option<&Section>) -> bool {
    let Some(row) = words.first().and_then(find) else { return false };
    let in_global = current.and_then(|section| section.head.words.first()).is_some_and(|word| word.is("global"));
    let switch = words.get(1).is_some_and(|word| word.is("on") || word.is("off"));
    !(row.name == "cache" && in_global && switch)
}

/// The section nearest to a word.
pub(in crate::lang) fn nearest(word: &str) -> Option<&'static str> {
    suggest::nearest(word, TABLE.iter().map(|row| row.name))
}
