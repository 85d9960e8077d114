//! Every word of the language by name, one row a word: where it may stand and what becomes of it.
//! A word that is honoured carries the function that reads it; to add one, add its row.

pub(super) mod bind;
pub(super) mod global;
pub(super) mod option;
pub(super) mod proxy;
pub(super) mod section;
pub(super) mod server;
pub(super) mod tune;

use super::{
    ast::Word,
    section::{Args, BindDraft, Draft, Loader, ServerDraft, admin, pages, store, users},
    suggest,
};

/// Reads a line of `global`.
pub(super) type GlobalHandler = fn(&mut Loader<'_>, Args<'_>);
/// Reads a line of a proxy.
pub(super) type ProxyHandler = fn(&mut Loader<'_>, &mut Draft, Args<'_>);
/// Reads a word behind the address of a `bind`, and what it takes.
pub(super) type BindHandler = fn(&mut Loader<'_>, &mut BindDraft, &Word, &[Word]);
/// Reads a word behind the address of a `server`, and what it takes.
pub(super) type ServerHandler = fn(&mut Loader<'_>, &mut ServerDraft, &Word, &[Word]);

/// What becomes of a known word.
#[derive(Clone, Copy, Debug)]
pub(super) enum Status<H> {
    /// It is read and does what the manual says.
    Honoured(H),
    /// It changes no traffic here; the reason is said once.
    Accepted(&'static str),
    /// It would change traffic and is not built; what to do instead.
    Refused(&'static str),
}

/// One word, or several that belong together (`option httplog`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<H> {
    pub(super) name: &'static str,
    /// Sections it may stand in, see [`place`].
    pub(super) places: u16,
    pub(super) status: Status<H>,
}

const fn row<H: Copy>(name: &'static str, places: u16, status: Status<H>) -> Row<H> {
    Row { name, places, status }
}

/// One word of a list behind an address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Param<H> {
    pub(super) name: &'static str,
    /// How many words it takes.
    pub(super) args: u8,
    pub(super) status: Status<H>,
}

const fn param<H: Copy>(name: &'static str, args: u8, status: Status<H>) -> Param<H> {
    Param { name, args, status }
}

/// Sections, one bit each.
pub(super) mod place {
    pub(in crate::lang) const DEFAULTS: u16 = 1;
    pub(in crate::lang) const FRONTEND: u16 = 2;
    pub(in crate::lang) const LISTEN: u16 = 4;
    pub(in crate::lang) const BACKEND: u16 = 8;
    pub(in crate::lang) const GLOBAL: u16 = 16;
    pub(in crate::lang) const CACHE: u16 = 32;
    pub(in crate::lang) const ADMIN: u16 = 64;
    pub(in crate::lang) const ERRORS: u16 = 128;
    pub(in crate::lang) const USERS: u16 = 256;
    /// Every proxy.
    pub(in crate::lang) const ALL: u16 = DEFAULTS | RULED;
    /// What has a listening side.
    pub(in crate::lang) const FRONT: u16 = DEFAULTS | LISTENING;
    /// What has a serving side.
    pub(in crate::lang) const BACK: u16 = DEFAULTS | SERVED;
    /// As [`ALL`], but nothing to inherit.
    pub(in crate::lang) const RULED: u16 = LISTENING | SERVED;
    /// As [`FRONT`], but nothing to inherit.
    pub(in crate::lang) const LISTENING: u16 = FRONTEND | LISTEN;
    /// As [`BACK`], but nothing to inherit.
    pub(in crate::lang) const SERVED: u16 = LISTEN | BACKEND;

    const NAMES: [(u16, &str); 9] = [
        (GLOBAL, "global"),
        (DEFAULTS, "defaults"),
        (FRONTEND, "frontend"),
        (LISTEN, "listen"),
        (BACKEND, "backend"),
        (CACHE, "cache"),
        (ADMIN, "admin"),
        (ERRORS, "http-errors"),
        (USERS, "userlist"),
    ];

    /// `frontend, listen`
    pub(in crate::lang) fn names(places: u16) -> String {
        let names: Vec<_> = NAMES.iter().filter(|(place, _)| places & place != 0).map(|(_, name)| *name).collect();
        names.join(", ")
    }
}

/// What a table knows of the first words of a line.
pub(super) enum Found<'t, H> {
    /// A row, and how many words its name takes.
    Row(&'t Row<H>, usize),
    /// The first word begins several names, and the second one ends none of them.
    Family {
        /// The names, those that are honoured first.
        names: Vec<&'static str>,
    },
    /// Nothing.
    Unknown,
}

/// Looks the first words of a line up, the longest name first.
pub(super) fn find<'t, H>(tables: &[&'t [Row<H>]], words: &[Word]) -> Found<'t, H> {
    let rows = || tables.iter().flat_map(|table| table.iter());
    for count in (1..=words.len().min(3)).rev() {
        let texts: Vec<&[u8]> = words.iter().take(count).map(|word| word.text.as_slice()).collect();
        let name = texts.join(&b' ');
        if let Some(row) = rows().find(|row| row.name.as_bytes() == name) {
            return Found::Row(row, count);
        }
    }
    let first = words.first().map(Word::lossy).unwrap_or_default();
    let in_family = |name: &str| name.strip_prefix(&*first).is_some_and(|rest| rest.starts_with(' '));
    let mut family: Vec<_> = rows().filter(|row| in_family(row.name)).collect();
    family.sort_by_key(|row| !matches!(row.status, Status::Honoured(_)));
    let names: Vec<_> = family.into_iter().map(|row| row.name).collect();
    if names.is_empty() { Found::Unknown } else { Found::Family { names } }
}

/// The name nearest to the first words of a line: of one word, or of several together.
pub(super) fn nearest<'t, H: 't>(tables: &[&'t [Row<H>]], words: &[Word]) -> Option<&'static str> {
    let names = || tables.iter().flat_map(|table| table.iter()).map(|row| row.name);
    let first = words.first()?.lossy();
    let pair = words.get(1).map(|second| format!("{first} {}", second.lossy()));
    suggest::nearest(&first, names().filter(|name| !name.contains(' ')))
        .or_else(|| suggest::nearest(&pair?, names().filter(|name| name.contains(' '))))
}

/// The sections in which a word has a place, for one that stands in another.
pub(super) fn places(words: &[Word]) -> Option<(&'static str, u16)> {
    fn known<H>(tables: &[&'static [Row<H>]], words: &[Word]) -> Option<(&'static str, u16)> {
        match find(tables, words) {
            Found::Row(row, _) => Some((row.name, row.places)),
            _ => None,
        }
    }
    known(GLOBAL_TABLES, words)
        .or_else(|| known(PROXY_TABLES, words))
        .or_else(|| known(&[store::TABLE], words))
        .or_else(|| known(&[admin::TABLE], words))
        .or_else(|| known(&[pages::TABLE], words))
        .or_else(|| known(&[users::TABLE], words))
}

/// Words of `global`.
pub(super) const GLOBAL_TABLES: &[&[Row<GlobalHandler>]] = &[global::TABLE, tune::TABLE];
/// Words of proxies.
pub(super) const PROXY_TABLES: &[&[Row<ProxyHandler>]] = &[proxy::TABLE, option::TABLE];

#[cfg(test)]
mod tests {
    use super::*;

    fn unique(names: impl Iterator<Item = &'static str>) {
        let mut names: Vec<_> = names.collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn no_word_has_two_rows() {
        unique(GLOBAL_TABLES.iter().flat_map(|table| table.iter()).map(|row| row.name));
        unique(PROXY_TABLES.iter().flat_map(|table| table.iter()).map(|row| row.name));
        unique(bind::TABLE.iter().map(|param| param.name));
        unique(server::TABLE.iter().map(|param| param.name));
        unique(section::TABLE.iter().map(|row| row.name));
    }
}
