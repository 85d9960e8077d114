//! `stick-table` lines. They are read before everything else in the proxies, so that a rule may name a table that stands
//! below it.

use super::{Args, Draft, Kind, Loader, head::Head, names};
use crate::{
    lang::{
        ast::{Line, Word},
        code,
        diag::Diagnostic,
        source::Span,
        suggest,
        unit::{self, TimeUnit},
    },
    rule::table::{Column, Datum, KeyKind, Spec},
};

/// Bytes of text in a key unless the line says otherwise: 32 with the zero that HAProxy ends it with.
const TEXT: usize = 31;
/// Bytes of a binary key unless the line says otherwise.
const BINARY: usize = 32;
/// Most elements of an array.
const ELEMENTS: u64 = 100;

/// What may stand in a line, for messages.
const PARAMETERS: [&str; 10] =
    ["type", "size", "expire", "nopurge", "store", "peers", "srvkey", "write-to", "recv-only", "brates-factor"];

/// A line of a proxy: it has been read.
pub(in crate::lang) fn line(_: &mut Loader<'_>, _: &mut Draft, _: Args<'_>) {}

/// Reads the tables of all proxies.
pub(super) fn collect(loader: &mut Loader<'_>, heads: &[Head<'_>]) {
    let is_table = |line: &&Line| line.words.first().is_some_and(|word| word.is("stick-table"));
    for head in heads.iter().filter(|head| matches!(head.kind, Kind::Frontend | Kind::Listen | Kind::Backend)) {
        for line in head.section.lines.iter().filter(is_table) {
            // A table with mistakes is there all the same, for those who name it.
            let spec = read(loader, &head.name, Args::new(line, 1)).unwrap_or_else(|| Spec {
                name: head.name.clone(),
                key: KeyKind::Str(TEXT),
                size: 1,
                expire: None,
                nopurge: false,
                stored: Vec::new(),
            });
            add(loader, spec, line.span);
        }
    }
}

fn add(loader: &mut Loader<'_>, spec: Spec, span: Span) {
    if let Some((_, first)) = loader.names.tables.iter().find(|(known, _)| known.name == spec.name) {
        let first = *first;
        loader.report(names::duplicate("table", &spec.name, span, first));
        return;
    }
    loader.names.tables.push((spec, span));
}

/// A table being put together.
#[derive(Default)]
struct Made {
    key: Option<KeyKind>,
    size: Option<usize>,
    expire: Option<u64>,
    nopurge: bool,
    stored: Vec<Column>,
}

/// Reads what follows `stick-table`. `None` when that makes no table; why has been said.
fn read(loader: &mut Loader<'_>, name: &str, mut args: Args<'_>) -> Option<Spec> {
    let mut made = Made::default();
    let mut fine = true;
    while let Some(word) = args.next() {
        fine &= parameter(loader, &mut made, word, &mut args).is_some();
    }
    let mut missing = |what: &str| {
        let message = format!("the table of `{name}` needs a {what}");
        loader.report(
            Diagnostic::error(code::MISSING_WORD, args.keyword(), message)
                .help("write `stick-table type ip size 100k expire 10m store http_req_rate(10s)` or the like"),
        );
    };
    if fine && made.key.is_none() {
        missing("`type`");
    }
    if fine && made.size.is_none() {
        missing("`size`");
    }
    let Made { key: Some(key), size: Some(size), expire, nopurge, stored } = made else { return None };
    fine.then(|| Spec { name: name.to_owned(), key, size, expire, nopurge, stored })
}

fn parameter(loader: &mut Loader<'_>, made: &mut Made, word: &Word, args: &mut Args<'_>) -> Option<()> {
    match &*word.lossy() {
        "type" => made.key = Some(kind(loader, args)?),
        "size" => made.size = Some(size(loader, args)?),
        "expire" => {
            let word = loader.need(args, "a time behind `expire`")?;
            made.expire = Some(millis(loader, word)?).filter(|time| *time > 0);
        }
        "nopurge" => made.nopurge = true,
        "store" => {
            let list = loader.need(args, "a list behind `store`")?;
            store(loader, made, list)?;
        }
        "peers" => {
            loader.need(args, "a name behind `peers`")?;
            loader.accept("stick-table … peers", word.span, "each process has its own table");
        }
        "srvkey" => {
            loader.need(args, "`name` or `addr` behind `srvkey`")?;
            loader.accept("stick-table … srvkey", word.span, "tables keep no servers yet");
        }
        "write-to" => {
            loader.need(args, "a table behind `write-to`")?;
            loader.accept("stick-table … write-to", word.span, "each process has its own table");
        }
        "recv-only" => loader.accept("stick-table … recv-only", word.span, "each process has its own table"),
        "brates-factor" => {
            args.next();
            loader.refuse("stick-table … brates-factor", word.span, "leave it out: bytes are counted one by one");
        }
        other => {
            let nearest = suggest::nearest(other, PARAMETERS.into_iter());
            let message = format!("`stick-table` has no parameter `{other}`");
            loader.report(Diagnostic::error(code::UNKNOWN_WORD, word.span, message).did_you_mean(nearest));
            return None;
        }
    }
    Some(())
}

/// `type ip|ipv4|ipv6|integer|string [len N]|binary [len N]`.
fn kind(loader: &mut Loader<'_>, args: &mut Args<'_>) -> Option<KeyKind> {
    let word = loader.need(args, "a kind of keys behind `type`")?;
    let kind = match &*word.lossy() {
        "ip" | "ipv4" => KeyKind::Ipv4,
        "ipv6" => KeyKind::Ipv6,
        "integer" => KeyKind::Int,
        "string" => KeyKind::Str(TEXT),
        "binary" => KeyKind::Bin(BINARY),
        other => {
            let known = ["ip", "ipv4", "ipv6", "integer", "string", "binary"];
            let message = format!("a table's keys are not of type `{other}`");
            loader.report(
                Diagnostic::error(code::BAD_VALUE, word.span, message)
                    .did_you_mean(suggest::nearest(other, known.into_iter()))
                    .help("types are `ip`, `ipv6`, `integer`, `string [len N]` and `binary [len N]`"),
            );
            return None;
        }
    };
    let takes_length = matches!(kind, KeyKind::Str(_) | KeyKind::Bin(_));
    if !takes_length || !args.peek().is_some_and(|word| word.is("len")) {
        return Some(kind);
    }
    args.next();
    let word = loader.need(args, "a number of bytes behind `len`")?;
    let length = loader.number(word, 1..=usize::MAX)?;
    Some(if matches!(kind, KeyKind::Str(_)) { KeyKind::Str(length) } else { KeyKind::Bin(length) })
}

fn size(loader: &mut Loader<'_>, args: &mut Args<'_>) -> Option<usize> {
    let word = loader.need(args, "a number of entries behind `size`")?;
    let size = unit::size(&word.text).and_then(|size| usize::try_from(size).ok()).filter(|size| *size > 0);
    if size.is_none() {
        let message = format!("`{}` is no number of entries from 1", word.lossy());
        loader.report(
            Diagnostic::error(code::BAD_VALUE, word.span, message).help("`k`, `m` and `g` may follow, powers of 1024"),
        );
    }
    size
}

fn millis(loader: &mut Loader<'_>, word: &Word) -> Option<u64> {
    let time = loader.time(word, TimeUnit::Millis)?;
    u64::try_from(time.as_millis()).ok()
}

/// `NAME[(ARGUMENTS)][,…]`.
fn store(loader: &mut Loader<'_>, made: &mut Made, list: &Word) -> Option<()> {
    let mut start = 0;
    let mut fine = true;
    while start < list.text.len() {
        let rest = list.text.get(start..).unwrap_or_default();
        let mut inside = false;
        let ends = |byte: &u8| {
            inside = *byte == b'(' || inside && *byte != b')';
            *byte == b',' && !inside
        };
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        fine &= stored(loader, made, &piece(list, start, start + length)).is_some();
        start += length + 1;
    }
    fine.then_some(())
}

fn piece(word: &Word, from: usize, to: usize) -> Word {
    let text = word.text.get(from..to).unwrap_or_default().to_vec();
    Word { text, span: word.part(from..to), origins: word.origins.get(from..to).unwrap_or_default().to_vec() }
}

/// `NAME`, `NAME(PERIOD)`, `NAME(COUNT)` or `NAME(COUNT,PERIOD)`.
fn stored(loader: &mut Loader<'_>, made: &mut Made, word: &Word) -> Option<()> {
    let text = word.lossy();
    let (name, arguments) = match text.split_once('(') {
        Some((name, rest)) => (name, rest.strip_suffix(')')),
        None => (&*text, Some("")),
    };
    let Some(arguments) = arguments else {
        loader.error(code::BAD_VALUE, word.span, format!("`{text}` has no `)` at its end"));
        return None;
    };
    if name.starts_with("glitch_") {
        loader.refuse(&format!("store {name}"), word.span, "glitches are not counted; leave it out");
        return Some(());
    }
    let Some((_, datum)) = Datum::ALL.iter().find(|(known, _)| *known == name) else {
        let nearest = suggest::nearest(name, Datum::ALL.iter().map(|(name, _)| *name));
        let message = format!("a table stores no `{name}`");
        loader.report(Diagnostic::error(code::UNKNOWN_WORD, word.span, message).did_you_mean(nearest));
        return None;
    };
    let column = column(loader, *datum, arguments, word)?;
    if made.stored.iter().any(|known| known.datum == *datum) {
        let message = format!("`{name}` is stored already; this one is ignored");
        loader.report(Diagnostic::warning(code::OVERRIDDEN, word.span, message));
        return Some(());
    }
    let excluded = |known: &&Column| known.datum.excludes() == Some(*datum) || datum.excludes() == Some(known.datum);
    if let Some(other) = made.stored.iter().find(excluded) {
        let message = format!("`{name}` and `{}` cannot be stored together", other.datum.name());
        loader.report(
            Diagnostic::error(code::BAD_VALUE, word.span, message)
                .help("the elements of an array stand for the counters that have a name of their own"),
        );
        return None;
    }
    made.stored.push(column);
    Some(())
}

fn column(loader: &mut Loader<'_>, datum: Datum, arguments: &str, word: &Word) -> Option<Column> {
    let given: Vec<&str> = if arguments.is_empty() { vec![] } else { arguments.split(',').collect() };
    let wanted = usize::from(datum.is_array()) + usize::from(datum.is_rate());
    let name = datum.name();
    if given.len() != wanted {
        let form = match (datum.is_array(), datum.is_rate()) {
            (true, true) => format!("{name}(COUNT,PERIOD)"),
            (true, false) => format!("{name}(COUNT)"),
            (false, true) => format!("{name}(PERIOD)"),
            (false, false) => name.to_owned(),
        };
        let takes = ["no argument", "one argument", "two arguments"].get(wanted).copied().unwrap_or_default();
        let message = format!("`{name}` takes {takes}");
        loader.report(Diagnostic::error(code::BAD_VALUE, word.span, message).help(format!("write `{form}`")));
        return None;
    }
    let mut given = given.into_iter();
    let mut column = Column { datum, count: 1, period: 0 };
    if datum.is_array() {
        let text = given.next().unwrap_or_default();
        let count = unit::number(text.as_bytes()).filter(|count| (1..=ELEMENTS).contains(count));
        let Some(count) = count.and_then(|count| usize::try_from(count).ok()) else {
            let message = format!("`{text}` is no number of elements from 1 to {ELEMENTS}");
            loader.error(code::BAD_VALUE, word.span, message);
            return None;
        };
        column.count = count;
    }
    if datum.is_rate() {
        let text = given.next().unwrap_or_default();
        let period =
            unit::time(text.as_bytes(), TimeUnit::Millis).and_then(|time| u64::try_from(time.as_millis()).ok());
        let Some(period) = period.filter(|period| *period > 0) else {
            loader.error(code::BAD_VALUE, word.span, format!("`{text}` is no period of a rate, such as `10s`"));
            return None;
        };
        column.period = period;
    }
    Some(column)
}
