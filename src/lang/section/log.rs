//! The log: `log` in `global` and in proxies, what a line says and which requests get one (HAProxy manual §8).

use std::{net::SocketAddr, ops::RangeInclusive, path::PathBuf};

use super::{Args, Draft, Loader};
use crate::{
    config::{Log, LogHeader, LogSample, LogTarget, Logger},
    lang::{ast::Word, code, diag::Diagnostic, resolve, suggest},
    rule::{
        Format, alias,
        format::{Flags, Piece},
    },
};

const HTTP: &str = "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq %hr %hs \
     %{+Q}r";
const HTTPS: &str = " %[fc_err]/%[ssl_fc_err,hex]/%[ssl_c_err]/%[ssl_c_ca_err]/%[ssl_fc_is_resumed] \
     %[ssl_fc_sni]/%sslv/%sslc";
const CLF: &str = "%{+Q}o %{-Q}ci - - [%trg] %r %ST %B \"\" \"\" %cp %ms %ft %b %s %TR %Tw %Tc %Tr %Ta %tsc %ac %fc %bc %sc \
     %rc %sq %bq %CC %CS %hrl %hsl";
const TCP: &str = "%ci:%cp [%t] %ft %b/%s %Tw/%Tc/%Tt %B %ts %ac/%fc/%bc/%sc/%rc %sq/%bq";

/// What the name of the program is in lines.
const TAG: &str = "tidegate";

const FACILITIES: [&str; 24] = [
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "auth2", "ftp", "ntp", "audit",
    "alert", "cron2", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7",
];
const LEVELS: [&str; 8] = ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"];
const HEADERS: [(&str, LogHeader); 8] = [
    ("local", LogHeader::Local),
    ("rfc3164", LogHeader::Rfc3164),
    ("rfc5424", LogHeader::Rfc5424),
    ("priority", LogHeader::Priority),
    ("short", LogHeader::Short),
    ("timed", LogHeader::Timed),
    ("iso", LogHeader::Iso),
    ("raw", LogHeader::Raw),
];

/// The level of this name.
pub(in crate::lang) fn level(name: &str) -> Option<u8> {
    LEVELS.iter().position(|level| *level == name).and_then(|at| u8::try_from(at).ok())
}

/// What the log lines of `global` say.
#[derive(Default)]
pub(super) struct GlobalLogs {
    loggers: Vec<Logger>,
    tag: Option<String>,
    /// The name behind `log-send-hostname`; empty: the machine's.
    host: Option<String>,
}

/// What the log lines of a proxy say.
#[derive(Default)]
pub(super) struct Logs {
    loggers: Vec<Logger>,
    /// `log global`.
    global: bool,
    line: Option<Format>,
    structured: Option<Format>,
    tag: Option<String>,
    separate_errors: bool,
    errors_only: bool,
}

impl Logs {
    /// The whole, with what `global` adds.
    pub(super) fn log(&self, loader: &Loader<'_>) -> Log {
        let global = &loader.logs;
        let mut loggers = self.loggers.clone();
        if self.global {
            loggers.extend(global.loggers.iter().cloned());
        }
        if global.host.is_some() {
            // As in HAProxy, the name of the machine has its place then.
            loggers
                .iter_mut()
                .filter(|one| one.header == LogHeader::Local)
                .for_each(|one| one.header = LogHeader::Rfc3164);
        }
        Log {
            loggers,
            line: self.line.clone().unwrap_or_else(house),
            structured: self.structured.clone(),
            tag: self.tag.clone().or_else(|| global.tag.clone()).unwrap_or_else(|| TAG.to_owned()),
            host: global.host.clone(),
            separate_errors: self.separate_errors,
            errors_only: self.errors_only,
        }
    }

    /// `no log`: what is inherited does not count.
    pub(super) fn none(&mut self) {
        (self.loggers, self.global) = (Vec::new(), false);
    }

    /// `no option …`.
    pub(super) fn without(&mut self, option: &str) {
        match option {
            "option dontlog-normal" => self.errors_only = false,
            "option log-separate-errors" => self.separate_errors = false,
            _ => {}
        }
    }
}

/// Tidegate's own line.
fn house() -> Format {
    let row = |name: &str| {
        let row = alias::HOUSE.iter().find(|row| row.name == name).or_else(|| alias::find(name));
        row.map(|row| Piece::Alias(row, Flags::default()))
    };
    let text = |text: &str| Piece::Text(text.as_bytes().into());
    let mut pieces = Vec::new();
    for (name, after) in [
        ("client", " ["),
        ("date", "] "),
        ("f", " "),
        ("backend", " "),
        ("active", " "),
        ("status", " "),
        ("U", " "),
        ("B", " "),
        ("outcome", " "),
        ("reason", " \""),
        ("request", "\""),
    ] {
        pieces.extend(row(name));
        pieces.push(text(after));
    }
    Format::of_log(pieces, b"")
}

/// `log` in `global`.
pub(in crate::lang) fn global(loader: &mut Loader<'_>, args: Args<'_>) {
    let logger = logger(loader, args);
    loader.logs.loggers.extend(logger);
}

/// `log-tag` in `global`.
pub(in crate::lang) fn global_tag(loader: &mut Loader<'_>, args: Args<'_>) {
    loader.logs.tag = only_word(loader, args, "a name").or(loader.logs.tag.take());
}

/// `log-send-hostname [NAME]`.
pub(in crate::lang) fn send_hostname(loader: &mut Loader<'_>, mut args: Args<'_>) {
    loader.logs.host = Some(args.next().map(|word| word.lossy().into_owned()).unwrap_or_default());
    loader.nothing_more(&args);
}

/// `log` in a proxy.
pub(in crate::lang) fn proxy(loader: &mut Loader<'_>, draft: &mut Draft, mut args: Args<'_>) {
    if args.peek().is_some_and(|word| word.is("global")) {
        draft.logs.global = true;
        args.next();
        loader.nothing_more(&args);
    } else {
        let logger = logger(loader, args);
        draft.logs.loggers.extend(logger);
    }
}

/// `log-tag` in a proxy.
pub(in crate::lang) fn tag(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    draft.logs.tag = only_word(loader, args, "a name").or(draft.logs.tag.take());
}

/// `option httplog [clf]`.
pub(in crate::lang) fn httplog(loader: &mut Loader<'_>, draft: &mut Draft, mut args: Args<'_>) {
    let text = match args.next() {
        None => HTTP,
        Some(word) if word.is("clf") => CLF,
        Some(word) => {
            let message = format!("`{}` is no format of `option httplog`", word.lossy());
            return loader
                .report(Diagnostic::error(code::BAD_VALUE, word.span, message).help("write `clf` or nothing"));
        }
    };
    loader.nothing_more(&args);
    built_in(loader, draft, &args, text.to_owned());
}

/// `option httpslog`.
pub(in crate::lang) fn httpslog(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    built_in(loader, draft, &args, format!("{HTTP}{HTTPS}"));
}

/// `option tcplog`.
pub(in crate::lang) fn tcplog(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    built_in(loader, draft, &args, TCP.to_owned());
}

fn built_in(loader: &mut Loader<'_>, draft: &mut Draft, args: &Args<'_>, text: String) {
    let word = Word { text: text.into_bytes(), span: args.keyword(), origins: Vec::new() };
    draft.logs.line = resolve::log_format(&mut loader.scope(draft), &word);
}

/// `log-format FORMAT`.
pub(in crate::lang) fn format(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    if let Some(format) = read(loader, draft, args) {
        draft.logs.line = Some(format);
    }
}

/// `log-format-sd FORMAT`.
pub(in crate::lang) fn structured(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    if let Some(format) = read(loader, draft, args) {
        draft.logs.structured = Some(format);
    }
}

/// `error-log-format FORMAT`: read for what is wrong in it.
pub(in crate::lang) fn of_errors(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    let span = args.keyword();
    if read(loader, draft, args).is_some() {
        loader.accept("error-log-format", span, "a connection that fails before a request has no line");
    }
}

fn read(loader: &mut Loader<'_>, draft: &mut Draft, mut args: Args<'_>) -> Option<Format> {
    let word = loader.need(&mut args, "a format")?;
    loader.nothing_more(&args);
    resolve::log_format(&mut loader.scope(draft), word)
}

/// `option log-separate-errors`.
pub(in crate::lang) fn separate_errors(_: &mut Loader<'_>, draft: &mut Draft, _: Args<'_>) {
    draft.logs.separate_errors = true;
}

/// `option dontlog-normal`.
pub(in crate::lang) fn errors_only(_: &mut Loader<'_>, draft: &mut Draft, _: Args<'_>) {
    draft.logs.errors_only = true;
}

fn only_word(loader: &mut Loader<'_>, mut args: Args<'_>, what: &str) -> Option<String> {
    let word = loader.need(&mut args, what)?;
    loader.nothing_more(&args);
    Some(word.lossy().into_owned())
}

/// `ADDRESS [len N] [format F] [sample RANGES:SIZE] FACILITY [LEVEL [MINLEVEL]]`.
fn logger(loader: &mut Loader<'_>, mut args: Args<'_>) -> Option<Logger> {
    let address = loader.need(&mut args, "a target such as `stderr` or `127.0.0.1:514`")?;
    let target = target(loader, address)?;
    let (mut len, mut header, mut sample) = (None, None, None);
    while let Some(word) = args.peek() {
        match word.text.as_slice() {
            b"len" => {
                args.next();
                let word = loader.need(&mut args, "a number of bytes behind `len`")?;
                len = Some(loader.number(word, 80..=65_535)?);
            }
            b"format" => {
                args.next();
                let word = loader.need(&mut args, "a format behind `format`")?;
                header = Some(named(loader, word, "format", &HEADERS)?);
            }
            b"sample" => {
                args.next();
                let word = loader.need(&mut args, "`RANGES:SIZE` behind `sample`")?;
                sample = Some(sampled(loader, word)?);
            }
            _ => break,
        }
    }
    let is_stream = matches!(target, LogTarget::Stdout | LogTarget::Stderr);
    let facility = match args.next() {
        Some(word) => number_of(loader, word, "facility", &FACILITIES)?,
        // `log stderr` alone is Tidegate's own: lines as they are.
        None if is_stream => 3,
        None => {
            loader.need(&mut args, "a facility such as `local0`")?;
            return None;
        }
    };
    let bare = is_stream && args.rest().is_empty() && address_is_last(&args);
    let level = args.next().map_or(Some(7), |word| number_of(loader, word, "level", &LEVELS))?;
    let min_level = args.next().map_or(Some(0), |word| number_of(loader, word, "level", &LEVELS))?;
    loader.nothing_more(&args);
    let header = header.unwrap_or(if bare { LogHeader::Raw } else { LogHeader::Local });
    // What goes to a terminal or a pipe is not cut.
    let len = if is_stream { None } else { Some(len.unwrap_or(1024)) };
    Some(Logger { target, header, len, facility, level, min_level, sample })
}

/// Whether the line ends with the address.
fn address_is_last(args: &Args<'_>) -> bool {
    args.line.words.last().is_some_and(|word| word.is("stderr") || word.is("stdout"))
}

fn target(loader: &mut Loader<'_>, word: &Word) -> Option<LogTarget> {
    let text = word.lossy();
    match &*text {
        "stderr" | "fd@2" => return Some(LogTarget::Stderr),
        "stdout" | "fd@1" => return Some(LogTarget::Stdout),
        _ => {}
    }
    const STREAMS: [&str; 10] =
        ["ring@", "tcp@", "tcp4@", "tcp6@", "uxst@", "abns@", "fd@", "sockpair@", "backend@", "stream+"];
    if let Some(kind) = STREAMS.iter().find(|kind| text.starts_with(**kind)) {
        let reason = "lines go to standard output or error, to a UDP address, or to a datagram socket";
        loader.accept(&format!("log {kind}"), word.span, reason);
        return None;
    }
    let text = ["udp@", "udp4@", "udp6@", "ipv4@", "ipv6@", "unix@", "uxdg@"]
        .iter()
        .find_map(|family| text.strip_prefix(family))
        .unwrap_or(&text);
    if text.starts_with('/') {
        return Some(LogTarget::Unix(PathBuf::from(text)));
    }
    socket(loader, word, text).map(LogTarget::Udp)
}

/// A UDP address; without a port, syslog's.
fn socket(loader: &mut Loader<'_>, word: &Word, text: &str) -> Option<SocketAddr> {
    const SYSLOG: u16 = 514;
    let bare = |host: &str| host.trim_start_matches('[').trim_end_matches(']').parse().ok();
    if let Some(address) = bare(text) {
        return Some(SocketAddr::new(address, SYSLOG));
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, "")) => (host, Some(SYSLOG)),
        Some((host, port)) => (host, port.parse().ok()),
        None => (text, Some(SYSLOG)),
    };
    let Some(port) = port.filter(|_| !host.is_empty()) else {
        let finding = Diagnostic::error(code::BAD_ADDRESS, word.span, format!("`{text}` is no address of a log"));
        loader.report(finding.help("write `stderr`, `127.0.0.1:514`, `[::1]:514` or the path of a datagram socket"));
        return None;
    };
    if let Some(address) = bare(host) {
        return Some(SocketAddr::new(address, port));
    }
    let found = loader.outside.resolve(host, port).ok().and_then(|found| found.first().copied());
    if found.is_none() {
        // Nothing that clients get depends on it.
        let message = format!("`{host}` cannot be resolved: nothing is logged there");
        loader.report(Diagnostic::warning(code::BAD_ADDRESS, word.span, message).help("write an IP address"));
    }
    found
}

fn named<T: Copy>(loader: &mut Loader<'_>, word: &Word, what: &str, known: &[(&str, T)]) -> Option<T> {
    if let Some((_, value)) = known.iter().find(|(name, _)| word.is(name)) {
        return Some(*value);
    }
    let message = format!("unknown {what} `{}`", word.lossy());
    let nearest = suggest::nearest(&word.lossy(), known.iter().map(|(name, _)| *name));
    let all: Vec<_> = known.iter().map(|(name, _)| *name).collect();
    loader.report(
        Diagnostic::error(code::BAD_VALUE, word.span, message)
            .did_you_mean(nearest)
            .help(format!("one of {}", all.join(", "))),
    );
    None
}

fn number_of<const N: usize>(loader: &mut Loader<'_>, word: &Word, what: &str, names: &[&str; N]) -> Option<u8> {
    let numbered: Vec<_> = names.iter().copied().zip(0..).collect();
    named(loader, word, what, &numbered)
}

/// `1,3-5:10`.
fn sampled(loader: &mut Loader<'_>, word: &Word) -> Option<LogSample> {
    let read = || -> Option<LogSample> {
        let text = word.lossy();
        let (ranges, size) = text.split_once(':')?;
        let size: u64 = size.parse().ok()?;
        let range = |text: &str| -> Option<RangeInclusive<u64>> {
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            (1 <= first && first <= last && last <= size).then_some(first..=last)
        };
        Some(LogSample { ranges: ranges.split(',').map(range).collect::<Option<_>>()?, size })
    };
    let sample = read();
    if sample.is_none() {
        let message = format!("`{}` is no sample", word.lossy());
        loader.report(
            Diagnostic::error(code::BAD_VALUE, word.span, message)
                .help("write `1,3-5:10` for the first, third, fourth and fifth of every ten lines"),
        );
    }
    sample
}
