//! Proxies: `defaults`, `frontend`, `backend`, `listen`. What is inherited is replayed: a proxy reads
//! the lines of its defaults, then its own, so that what stands later wins as in HAProxy.

use super::{
    Args, Kind, Loader, ServerDraft, bind,
    head::Head,
    log::Logs,
    names,
    pages::MonitorDraft,
    route::{Target, Targets},
    stats::StatsDraft,
    timeout::Timeouts,
};
use crate::{
    config::{Backend, Balance, Bind, CacheRule, ForwardFor, Frontend, Id, Server, SwitchTarget},
    lang::{
        ast::{Line, Word},
        code,
        diag::Diagnostic,
        keyword::{self, Status, place},
        resolve::{Acls, Dialect},
        source::Span,
        suggest,
    },
    rule::{Format, Rule, RuleSet, action::answer::Pages, capture::Captures},
};

/// A proxy being put together.
pub(in crate::lang) struct Draft {
    pub(super) kind: Kind,
    pub(super) name: String,
    /// Where the name stands.
    pub(super) span: Span,
    /// From its head to the next section.
    whole: Span,
    /// Whether the line at hand is one of the defaults'.
    pub(super) inherited: bool,
    pub(super) acls: Acls,
    /// The word behind the last `mode`.
    pub(super) mode: Option<Word>,
    pub(super) maxconn: Option<usize>,
    /// `rate-limit sessions`.
    rate_limit: Option<u64>,
    /// `id`.
    number: Option<u32>,
    pub(super) timeouts: Timeouts,
    pub(super) forwardfor: Option<ForwardFor>,
    /// `option http-buffer-request`.
    buffers: bool,
    pub(super) logs: Logs,
    pub(super) captures: Captures,
    pub(super) unique_id: Option<Format>,
    pub(super) unique_id_header: Option<String>,
    pub(super) binds: Vec<(Bind, Span)>,
    pub(super) servers: Vec<(Server, Span)>,
    pub(super) default_server: ServerDraft,
    /// Weights written down, to see that they are equal.
    pub(super) weights: Vec<(usize, Span)>,
    pub(super) balance: Balance,
    pub(super) rules: Rules,
    /// `errorfile` and its kin.
    pub(super) pages: Pages,
    pub(super) monitor: MonitorDraft,
    pub(super) stats: StatsDraft,
    pub(super) targets: Targets,
    pub(super) cache_rules: Vec<(Id<CacheRule>, Dialect, Span)>,
    /// `nuster cache`; `None`: the line is not there.
    pub(super) nuster: Option<bool>,
}

/// The rules of a proxy, by phase.
#[derive(Default)]
pub(super) struct Rules {
    pub(super) connection: Vec<Rule>,
    pub(super) session: Vec<Rule>,
    pub(super) content: Vec<Rule>,
    pub(super) request: Vec<Rule>,
    /// What `block` and `reqrep` and their kin say, behind all `http-request` rules.
    pub(super) legacy: Vec<Rule>,
    /// Plain `redirect` lines, which run behind all of these.
    pub(super) redirects: Vec<Rule>,
    pub(super) response_content: Vec<Rule>,
    pub(super) response: Vec<Rule>,
    pub(super) after_response: Vec<Rule>,
    pub(super) cache_response: Vec<Rule>,
    /// The first `redirect` line.
    pub(super) first_redirect: Option<Span>,
    /// Whether a rule without a condition answers every request.
    pub(super) answers_all: bool,
}

/// The `defaults` sections read so far.
#[derive(Default)]
pub(super) struct Inheritance<'s> {
    sections: Vec<Defaults<'s>>,
}

struct Defaults<'s> {
    name: String,
    span: Span,
    /// Its own lines behind those it inherits.
    lines: Vec<&'s Line>,
}

impl<'s> Inheritance<'s> {
    fn lines(&self, loader: &mut Loader<'_>, from: Option<&Word>) -> &[&'s Line] {
        let Some(from) = from else { return self.sections.last().map_or(&[], |section| &section.lines) };
        if let Some(section) = self.sections.iter().rev().find(|section| from.is(&section.name)) {
            return &section.lines;
        }
        let message = format!("there is no `defaults {}` above", from.lossy());
        let known = self.sections.iter().map(|section| section.name.as_str());
        let nearest = suggest::nearest(&from.lossy(), known);
        loader.report(Diagnostic::error(code::UNKNOWN_DEFAULTS, from.span, message).did_you_mean(nearest));
        &[]
    }
}

/// Reads a `defaults` section: as a proxy that nobody uses, for what is wrong in it; then kept for
/// those that inherit.
pub(super) fn defaults<'s>(loader: &mut Loader<'_>, head: &Head<'s>, inheritance: &mut Inheritance<'s>) {
    let mut lines = match head.from {
        Some(_) => inheritance.lines(loader, head.from).to_vec(),
        None => Vec::new(),
    };
    let mut draft = Draft::new(head);
    replay(loader, &mut draft, &lines);
    for line in &head.section.lines {
        read(loader, &mut draft, line);
    }
    if let Some(first) = inheritance.sections.iter().find(|first| !head.name.is_empty() && first.name == head.name) {
        loader.report(names::duplicate("defaults section", &head.name, head.span, first.span));
    }
    lines.extend(&head.section.lines);
    inheritance.sections.push(Defaults { name: head.name.clone(), span: head.span, lines });
}

/// Reads a proxy.
pub(super) fn section(loader: &mut Loader<'_>, head: &Head<'_>, inheritance: &Inheritance<'_>) -> Draft {
    let mut draft = Draft::new(head);
    let lines = inheritance.lines(loader, head.from);
    replay(loader, &mut draft, lines);
    if let Some(address) = head.address {
        bind::in_head(loader, &mut draft, address);
    }
    for line in &head.section.lines {
        read(loader, &mut draft, line);
    }
    draft
}

fn replay(loader: &mut Loader<'_>, draft: &mut Draft, lines: &[&Line]) {
    draft.inherited = true;
    for line in lines {
        read(loader, draft, line);
    }
    draft.inherited = false;
}

/// Words whose absence from the right section changes where traffic goes; the others are ignored with
/// a warning when misplaced, as HAProxy does.
const ROUTING: [&str; 6] = ["bind", "default_backend", "nuster rule", "redirect", "server", "use_backend"];

fn read(loader: &mut Loader<'_>, draft: &mut Draft, line: &Line) {
    let off = line.words.first().is_some_and(|word| word.is("no") || word.is("default"));
    let Some((name, status, places, args)) = loader.handler(keyword::PROXY_TABLES, draft.kind, line, usize::from(off))
    else {
        return;
    };
    if places & draft.kind.place() == 0 {
        if !draft.inherited {
            misplaced(loader, draft, name, places, &args);
        }
        return;
    }
    if off {
        return negated(loader, draft, name, &args);
    }
    match status {
        Status::Honoured(handler) => handler(loader, draft, args),
        Status::Accepted(reason) => loader.accept(name, args.keyword(), reason),
        Status::Refused(hint) => loader.refuse(name, args.keyword(), hint),
    }
}

fn misplaced(loader: &mut Loader<'_>, draft: &Draft, name: &str, places: u16, args: &Args<'_>) {
    let message = format!("`{name}` has no place in section `{}`", draft.kind.name());
    let finding = if ROUTING.contains(&name) {
        Diagnostic::error(code::MISPLACED, args.keyword(), message)
    } else {
        Diagnostic::warning(code::MISPLACED, args.keyword(), message + " and is ignored")
    };
    loader.report(finding.help(format!("it belongs in: {}", place::names(places))));
}

/// `no option …` and `default option …`: options are off unless a line turns them on, and what is not
/// built is off in any case.
fn negated(loader: &mut Loader<'_>, draft: &mut Draft, name: &str, args: &Args<'_>) {
    match name {
        "option forwardfor" => draft.forwardfor = None,
        "option http-buffer-request" => draft.buffers = false,
        "log" => draft.logs.none(),
        _ if name.starts_with("option ") => draft.logs.without(name),
        _ => {
            let word = args.line.words.first().map(Word::lossy).unwrap_or_default();
            let message = format!("`{word}` cannot stand before `{name}`");
            loader.report(
                Diagnostic::error(code::MISPLACED, args.line.span, message)
                    .help("it takes back an `option`; leave the line out instead"),
            );
        }
    }
}

/// `mode`: whether it is one we have is asked when all lines are read.
pub(in crate::lang) fn mode(loader: &mut Loader<'_>, draft: &mut Draft, mut args: Args<'_>) {
    let Some(word) = loader.need(&mut args, "`http`") else { return };
    loader.nothing_more(&args);
    let known = ["http", "tcp", "health", "log", "spop", "haterm"];
    if known.iter().any(|known| word.is(known)) {
        draft.mode = Some(word.clone());
    } else {
        let message = format!("there is no mode `{}`", word.lossy());
        let nearest = suggest::nearest(&word.lossy(), known.into_iter());
        loader.report(Diagnostic::error(code::MODE, word.span, message).did_you_mean(nearest));
    }
}

/// `maxconn` of a listening side; 0 means no limit.
pub(in crate::lang) fn maxconn(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    if let Some(most) = loader.only_number(args, 0..=usize::MAX) {
        draft.maxconn = Some(most).filter(|most| *most > 0);
    }
}

/// `option http-buffer-request`.
pub(in crate::lang) fn buffer_request(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    loader.nothing_more(&args);
    draft.buffers = true;
}

/// `rate-limit sessions`; 0 means no limit.
pub(in crate::lang) fn rate_limit(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    if let Some(most) = loader.only_number(args, 0..=usize::MAX) {
        draft.rate_limit = u64::try_from(most).ok().filter(|most| *most > 0);
    }
}

/// `id`, which rules read as `fe_id` and `be_id`.
pub(in crate::lang) fn id(loader: &mut Loader<'_>, draft: &mut Draft, mut args: Args<'_>) {
    let Some(word) = loader.need(&mut args, "a number") else { return };
    loader.nothing_more(&args);
    match bind::number(word) {
        Some(number) => draft.number = Some(number),
        None => loader.error(code::BAD_VALUE, word.span, "an `id` is a number from 1"),
    }
}

impl Draft {
    fn new(head: &Head<'_>) -> Self {
        Self::empty(head.kind, head.name.clone(), head.span, head.whole)
    }

    fn empty(kind: Kind, name: String, span: Span, whole: Span) -> Self {
        Self {
            kind,
            name,
            span,
            whole,
            inherited: false,
            acls: Acls::default(),
            mode: None,
            maxconn: None,
            rate_limit: None,
            number: None,
            timeouts: Timeouts::default(),
            forwardfor: None,
            buffers: false,
            logs: Logs::default(),
            captures: Captures::default(),
            unique_id: None,
            unique_id_header: None,
            binds: Vec::new(),
            servers: Vec::new(),
            default_server: ServerDraft::default(),
            weights: Vec::new(),
            balance: Balance::default(),
            rules: Rules::default(),
            pages: Pages::default(),
            monitor: MonitorDraft::default(),
            stats: StatsDraft::default(),
            targets: Targets::default(),
            cache_rules: Vec::new(),
            nuster: None,
        }
    }

    /// A proxy that nobody knows, for lines of sections that are none.
    pub(super) fn nobody() -> Self {
        Self::empty(Kind::Defaults, String::new(), Span::default(), Span::default())
    }

    /// Whether this is a `defaults` section without a name, which may hold no rules.
    pub(super) fn is_anonymous(&self) -> bool {
        self.kind == Kind::Defaults && self.name.is_empty()
    }

    /// Whether a place is in this section itself, not in what it inherits.
    pub(super) fn owns(&self, span: Span) -> bool {
        span.file == self.whole.file && span.start >= self.whole.start && span.end <= self.whole.end
    }

    fn frontend(&self, loader: &Loader<'_>, own: Option<Id<Backend>>) -> Frontend {
        Frontend {
            name: self.name.clone(),
            number: self.number.unwrap_or_default(),
            names_default: self.targets.default.is_some(),
            binds: self.binds.iter().map(|(bind, _)| bind.clone()).collect(),
            maxconn: self.maxconn,
            rate_limit: self.rate_limit,
            timeouts: self.timeouts.of_client(),
            forwardfor: self.forwardfor.clone(),
            connection: set(&self.rules.connection),
            session: set(&self.rules.session),
            content: set(&self.rules.content),
            tarpit: self.timeouts.of_tarpit(),
            buffers: self.buffers,
            pages: self.pages.clone(),
            stats: self.stats.made(&self.name),
            monitor: self.monitor.made(),
            request: self.rules.request(),
            response: set(&self.rules.response),
            after_response: set(&self.rules.after_response),
            cache_response: set(&self.rules.cache_response),
            switches: self.targets.switches(),
            default_backend: self.targets.default.as_ref().map(Target::id).or(own),
            cache_rules: self.cache_rules.iter().map(|(id, ..)| *id).collect(),
            captures: self.captures.clone(),
            unique_id: self.unique_id.clone(),
            unique_id_header: self.unique_id_header.clone(),
            log: self.logs.log(loader),
        }
    }

    fn backend(&self, with_rules: bool) -> Backend {
        let rules = if with_rules { &self.rules } else { &Rules::default() };
        Backend {
            name: self.name.clone(),
            number: self.number.unwrap_or_default(),
            servers: self.servers.iter().map(|(server, _)| server.clone()).collect(),
            balance: self.balance,
            timeouts: self.timeouts.of_server(),
            forwardfor: self.forwardfor.clone(),
            content: set(&rules.content),
            tarpit: self.timeouts.of_tarpit(),
            buffers: with_rules && self.buffers,
            pages: self.pages.clone(),
            stats: self.stats.made(&self.name).filter(|_| with_rules),
            request: rules.request(),
            // They are a backend's alone, so those of a `listen` run with its back half.
            response_content: set(&self.rules.response_content),
            response: set(&rules.response),
            after_response: set(&rules.after_response),
            cache_response: set(&rules.cache_response),
            cache_rules: self.cache_rules.iter().filter(|_| with_rules).map(|(id, ..)| *id).collect(),
        }
    }
}

impl Rules {
    fn request(&self) -> RuleSet {
        RuleSet { rules: self.request.iter().chain(&self.legacy).chain(&self.redirects).cloned().collect() }
    }
}

fn set(rules: &[Rule]) -> RuleSet {
    RuleSet { rules: rules.to_vec() }
}

/// Makes frontends and backends of the drafts, in the order of their numbers.
///
/// A `listen` is one proxy: its rules run once, with its front half. A request that another frontend
/// sends to its back half must meet them too; for such requests there is a second backend of that
/// name, behind all others, that carries them.
pub(super) fn finish(loader: &mut Loader<'_>, mut drafts: Vec<Draft>) {
    number(loader, &mut drafts);
    let mut again = Vec::new();
    for draft in &drafts {
        let own = Id::new(loader.config.backends.len());
        if draft.kind.serves() {
            loader.config.backends.push(draft.backend(draft.kind == Kind::Backend));
        }
        if draft.kind == Kind::Listen {
            let elsewhere = |other: &Draft| other.name != draft.name && other.targets.may_reach(own);
            if drafts.iter().any(elsewhere) {
                again.push((own, draft));
            }
        }
        if draft.kind.listens() {
            let frontend = draft.frontend(loader, (draft.kind == Kind::Listen).then_some(own));
            loader.config.frontends.push(frontend);
        }
    }
    for (own, draft) in again {
        let ruled = Id::new(loader.config.backends.len());
        loader.config.backends.push(draft.backend(true));
        for frontend in loader.config.frontends.iter_mut().filter(|frontend| frontend.name != draft.name) {
            retarget(frontend, own, ruled);
        }
    }
}

/// Gives proxies, and the binds of each, their numbers.
fn number(loader: &mut Loader<'_>, drafts: &mut [Draft]) {
    let proxies: Vec<_> = drafts.iter().map(|draft| (draft.number, draft.span)).collect();
    for (draft, number) in drafts.iter_mut().zip(names::numbers(loader, "proxy", &proxies)) {
        draft.number = Some(number);
        let binds: Vec<_> = draft
            .binds
            .iter()
            .map(|(bind, span)| (Some(bind.name.number).filter(|number| *number > 0), *span))
            .collect();
        for ((bind, _), number) in draft.binds.iter_mut().zip(names::numbers(loader, "bind", &binds)) {
            bind.name.number = number;
        }
    }
}

fn retarget(frontend: &mut Frontend, from: Id<Backend>, to: Id<Backend>) {
    for switch in &mut frontend.switches {
        if let SwitchTarget::Backend(id) = &mut switch.target
            && *id == from
        {
            *id = to;
        }
    }
    if frontend.default_backend == Some(from) {
        frontend.default_backend = Some(to);
    }
}
