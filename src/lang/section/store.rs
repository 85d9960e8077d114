//! `cache` sections, and which store a caching rule uses.

use std::time::Duration;

use super::{Args, Kind, Loader, head::Head, names, nuster};
use crate::{
    config::{Id, Store},
    lang::{
        ast::Word,
        code,
        diag::Diagnostic,
        keyword::{Row, Status, place::CACHE},
        resolve::Dialect,
        source::Span,
        unit::TimeUnit,
    },
};

/// Variants kept under one key unless the section says otherwise.
pub(super) const VARIANTS: usize = 32;

/// The budget of a store that says none, and of the one that is made when there is none.
const MEMORY: u64 = 64 << 20;

/// Smaller budgets are a slip of the pen.
const SMALLEST: u64 = 1 << 20;

/// The name of the store that is made when there is none.
const DEFAULT: &str = "default";

/// A store being put together.
#[derive(Default)]
pub(in crate::lang) struct StoreDraft {
    memory: Option<(u64, Span)>,
    max_object_size: Option<(u64, Span)>,
    max_variants: Option<usize>,
    max_age: Option<Duration>,
}

type Handler = fn(&mut Loader<'_>, &mut StoreDraft, Args<'_>);

const fn row(name: &'static str, status: Status<Handler>) -> Row<Handler> {
    Row { name, places: CACHE, status }
}

/// Words of a `cache` section.
pub(in crate::lang) const TABLE: &[Row<Handler>] = &[
    row("disk", Status::Refused("stores on disk are not built yet; leave the line out")),
    row("early-hints", Status::Honoured(early_hints)),
    row("max-age", Status::Honoured(max_age)),
    row("max-object-size", Status::Honoured(max_object_size)),
    row("max-secondary-entries", Status::Honoured(max_variants)),
    row("max-variants", Status::Honoured(max_variants)),
    row("memory", Status::Honoured(memory)),
    row("process-vary", Status::Accepted("`Vary` is always honoured")),
    row("total-max-size", Status::Honoured(total_max_size)),
];

/// Reads a `cache` section.
pub(super) fn section(loader: &mut Loader<'_>, head: &Head<'_>) {
    let mut made = StoreDraft::default();
    for line in &head.section.lines {
        let Some((name, status, _, args)) = loader.handler(&[TABLE], Kind::Cache, line, 0) else { continue };
        match status {
            Status::Honoured(handler) => handler(loader, &mut made, args),
            Status::Accepted(reason) => loader.accept(name, args.keyword(), reason),
            Status::Refused(hint) => loader.refuse(name, args.keyword(), hint),
        }
    }
    let memory = made.memory.map_or(MEMORY, |(memory, span)| {
        judge(loader, memory, span);
        memory
    });
    if let Some((size, span)) = made.max_object_size.filter(|(size, _)| *size > memory) {
        let message = format!("an object of {size} bytes does not fit into {memory} bytes");
        loader.report(Diagnostic::warning(code::OVERRIDDEN, span, message));
    }
    let id = Id::new(loader.config.stores.len());
    if let Some(first) = loader.names.store_span(&head.name) {
        loader.report(names::duplicate("store", &head.name, head.span, first));
    }
    loader.names.add_store(&head.name, id, head.span);
    loader.names.declared.push(id);
    if let Some(cap) = made.max_age {
        loader.names.lifetime_caps.insert(id.index(), cap);
    }
    loader.config.stores.push(Store {
        name: head.name.clone(),
        memory,
        max_object_size: made.max_object_size.map_or(memory / 8, |(size, _)| size).min(memory),
        max_variants: made.max_variants.unwrap_or(VARIANTS),
    });
}

/// `memory SIZE`.
fn memory(loader: &mut Loader<'_>, made: &mut StoreDraft, mut args: Args<'_>) {
    let Some(word) = loader.need(&mut args, "a size such as `512m`") else { return };
    loader.nothing_more(&args);
    let size = loader.size(word);
    if size == Some(0) {
        loader.error(code::BAD_VALUE, word.span, "a store of no bytes keeps nothing");
    }
    made.memory = size.map(|size| (size, word.span));
}

/// A budget that cannot be meant.
fn judge(loader: &mut Loader<'_>, memory: u64, span: Span) {
    if (1..SMALLEST).contains(&memory) {
        let message = format!("{memory} bytes hold next to nothing: each object takes some hundred beside its own");
        let finding = Diagnostic::warning(code::STORE_SIZE, span, message);
        loader.report(finding.help("without a suffix a size is in bytes; write it as `256m`"));
    }
    if let Some(machine) = loader.outside.memory().filter(|machine| memory > *machine) {
        let message = format!("this is more than the {} MiB of memory that this machine has", machine >> 20);
        let finding = Diagnostic::warning(code::STORE_SIZE, span, message);
        loader.report(finding.help("what does not fit is swapped out, or the process is killed; write less"));
    }
}

/// `total-max-size MEGABYTES`, HAProxy's word.
fn total_max_size(loader: &mut Loader<'_>, made: &mut StoreDraft, args: Args<'_>) {
    let span = args.peek().map_or(args.keyword(), |word| word.span);
    let megabytes = loader.only_number(args, 1..=1 << 20).and_then(|size| u64::try_from(size).ok());
    made.memory = megabytes.map(|size| (size << 20, span)).or(made.memory);
}

/// `max-object-size SIZE`.
fn max_object_size(loader: &mut Loader<'_>, made: &mut StoreDraft, mut args: Args<'_>) {
    let Some(word) = loader.need(&mut args, "a size such as `8m`") else { return };
    loader.nothing_more(&args);
    made.max_object_size = loader.size(word).map(|size| (size, word.span));
}

/// `max-variants N`; HAProxy's word is `max-secondary-entries`.
fn max_variants(loader: &mut Loader<'_>, made: &mut StoreDraft, args: Args<'_>) {
    made.max_variants = loader.only_number(args, 1..=65_536);
}

/// `max-age SECONDS`, HAProxy's word: an upper bound for lifetimes that the origin gives.
fn max_age(loader: &mut Loader<'_>, made: &mut StoreDraft, args: Args<'_>) {
    made.max_age = loader.only_time(args, TimeUnit::Seconds);
}

/// `early-hints off` is what happens.
fn early_hints(loader: &mut Loader<'_>, _: &mut StoreDraft, args: Args<'_>) {
    if !args.peek().is_some_and(|word| word.is("off")) {
        loader.refuse("early-hints", args.keyword(), "hints are not made here; those of the server are passed on");
    }
}

/// The store of a caching rule: the one it names; nuster's for its rules; the only one there is; one
/// that is made when there is none.
pub(super) fn choose(
    loader: &mut Loader<'_>,
    dialect: Dialect,
    wanted: Option<&Word>,
    rule: Span,
) -> Option<Id<Store>> {
    if let Some(word) = wanted {
        let name = word.lossy();
        let found = loader.names.store(&name);
        if found.is_none() {
            let finding = Diagnostic::error(code::UNKNOWN_STORE, word.span, format!("there is no store `{name}`"))
                .did_you_mean(loader.names.nearest_store(&name))
                .help(format!("a section `cache {name}` declares it"));
            loader.report(finding);
        }
        return found;
    }
    let nusters = loader.names.store(nuster::STORE);
    if dialect == Dialect::Nuster && nusters.is_some() {
        return nusters;
    }
    match loader.names.declared.as_slice() {
        [only] => Some(*only),
        [] => nusters.or_else(|| loader.names.store(DEFAULT)).or_else(|| Some(make_default(loader, rule))),
        _ => {
            loader.report(
                Diagnostic::error(code::WHICH_STORE, rule, "there are several stores: which one is this rule's?")
                    .help("add `store NAME` with the name of a `cache` section"),
            );
            None
        }
    }
}

fn make_default(loader: &mut Loader<'_>, rule: Span) -> Id<Store> {
    let message = "no store is declared: responses are kept in 64 MiB of memory";
    loader.report(
        Diagnostic::note(code::DEFAULT_STORE, rule, message)
            .help("a section `cache NAME` with `memory SIZE` declares one"),
    );
    let id = Id::new(loader.config.stores.len());
    loader.names.add_store(DEFAULT, id, rule);
    loader.config.stores.push(Store {
        name: DEFAULT.into(),
        memory: MEMORY,
        max_object_size: MEMORY / 8,
        max_variants: VARIANTS,
    });
    id
}
