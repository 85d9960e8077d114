//! nuster's own words: its store, its manager, its switch for a backend.

use super::{Args, Draft, Loader};
use crate::{
    config::{Id, Store},
    lang::{ast::Word, code, diag::Diagnostic, keyword::Status, source::Span, suggest},
};

/// The name of the store that `nuster cache on` declares.
pub(super) const STORE: &str = "nuster";

/// nuster's smallest store, and its default.
const SMALLEST: u64 = 1 << 20;

type SizeReader = fn(&mut Loader<'_>, &Word) -> Option<u64>;

/// Options of `nuster cache`; each takes one word.
const OPTIONS: &[(&str, Status<SizeReader>)] = &[
    ("data-size", Status::Honoured(data_size)),
    ("dict-size", Status::Accepted("the index grows as it needs to and counts against `data-size`")),
    ("share", Status::Accepted("there is one process")),
    ("dict-cleaner", Status::Accepted("room is made when it is needed")),
    ("data-cleaner", Status::Accepted("room is made when it is needed")),
    ("disk-cleaner", DISK_TUNING),
    ("disk-loader", DISK_TUNING),
    ("disk-saver", DISK_TUNING),
    ("clean-temp", DISK_TUNING),
    ("always-check-disk", DISK_TUNING),
    ("dir", Status::Refused("stores on disk are not built yet; leave `dir` out")),
    ("uri", MANAGER),
    ("purge-method", MANAGER),
];

const DISK_TUNING: Status<SizeReader> = Status::Accepted("stores are in memory");
const MANAGER: Status<SizeReader> = Status::Refused(MANAGER_HINT);
const MANAGER_HINT: &str =
    "nuster's manager is not built yet; the `admin` section purges, and so does `http-request purge if …`";

fn data_size(loader: &mut Loader<'_>, word: &Word) -> Option<u64> {
    loader.size(word)
}

/// `nuster cache on|off [OPTION VALUE …]` in `global`.
pub(in crate::lang) fn global_cache(loader: &mut Loader<'_>, mut args: Args<'_>) {
    let keyword = args.keyword();
    let Some(word) = loader.need(&mut args, "`on` or `off`") else { return };
    let Some(on) = loader.switch(word) else { return };
    let memory = options(loader, &mut args).unwrap_or(SMALLEST);
    if loader.nuster.replace(on).is_some() {
        let message = "there is a `nuster cache` line already; this one is ignored";
        return loader.report(Diagnostic::warning(code::OVERRIDDEN, keyword, message));
    }
    if on {
        let memory = memory.max(SMALLEST);
        add_store(loader, memory, keyword);
    }
}

fn options(loader: &mut Loader<'_>, args: &mut Args<'_>) -> Option<u64> {
    let mut memory = None;
    while let Some(word) = args.next() {
        let Some((name, status)) = OPTIONS.iter().find(|(name, _)| word.is(name)) else {
            let nearest = suggest::nearest(&word.lossy(), OPTIONS.iter().map(|(name, _)| *name));
            let message = format!("unknown word `{}` behind `nuster cache`", word.lossy());
            loader.report(Diagnostic::error(code::UNKNOWN_WORD, word.span, message).did_you_mean(nearest));
            continue;
        };
        let Some(value) = args.next() else {
            loader.error(code::MISSING_WORD, word.span.after(), format!("`{name}` needs a value"));
            break;
        };
        match status {
            Status::Honoured(read) => memory = read(loader, value),
            Status::Accepted(reason) => loader.accept(&format!("nuster cache … {name}"), word.span, reason),
            Status::Refused(hint) => loader.refuse(&format!("nuster cache … {name}"), word.span, hint),
        }
    }
    memory
}

fn add_store(loader: &mut Loader<'_>, memory: u64, span: Span) {
    let id = Id::new(loader.config.stores.len());
    loader.names.add_store(STORE, id, span);
    loader.config.stores.push(Store {
        name: STORE.into(),
        memory,
        // nuster keeps whatever fits.
        max_object_size: memory,
        max_variants: super::store::VARIANTS,
    });
}

/// `nuster manager on|off …`.
pub(in crate::lang) fn manager(loader: &mut Loader<'_>, args: Args<'_>) {
    unless_off(loader, "nuster manager", args, MANAGER_HINT);
}

/// `nuster nosql on|off …`.
pub(in crate::lang) fn nosql(loader: &mut Loader<'_>, args: Args<'_>) {
    unless_off(loader, "nuster nosql", args, "Tidegate is no database");
}

/// `nuster nosql [on|off]` of a proxy.
pub(in crate::lang) fn proxy_nosql(loader: &mut Loader<'_>, _: &mut Draft, args: Args<'_>) {
    unless_off(loader, "nuster nosql", args, "Tidegate is no database");
}

fn unless_off(loader: &mut Loader<'_>, name: &str, args: Args<'_>, hint: &str) {
    if !args.peek().is_some_and(|word| word.is("off")) {
        loader.refuse(name, args.keyword(), hint);
    }
}

/// `nuster cache [on|off]` of a proxy.
pub(in crate::lang) fn proxy_cache(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    let on = match args.peek() {
        Some(_) => loader.only_switch(args),
        None => Some(true),
    };
    draft.nuster = on.or(draft.nuster);
}
