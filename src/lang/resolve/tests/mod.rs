//! From text to answers: what words compile to, tried on exchanges.

mod actions;
mod caching;
mod conditions;
mod converted;
mod counters;
mod fetches;
mod findings;
mod samples;

use std::{
    net::SocketAddr,
    sync::{Arc, LazyLock},
};

use bumpalo::Bump;

use super::*;
use crate::{
    lang::{ast::Line, source::FileId, testing::Desk},
    message::{Request, Response},
    rule::{
        BindName, Client, Env, Fact, Notes, Phase, Rule, RuleSet, Sample, Table, Tls, Txn, Vars, Verdict,
        fact::Timeout,
        users::{Password, User},
    },
    time::Timestamp,
};

/// What a configuration has made so far.
#[derive(Default)]
pub(super) struct Bench {
    pub(super) desk: Desk,
    pub(super) acls: Acls,
    pub(super) captures: Captures,
    pub(super) vars: VarNames,
    pub(super) lists: Lists,
    pub(super) found: Vec<Diagnostic>,
    pub(super) lenient: bool,
    pub(super) proxy: Proxy<'static>,
}

/// A `listen`, so that everything is allowed.
impl Default for Proxy<'_> {
    fn default() -> Self {
        Self { name: "front", listens: true, serves: true }
    }
}

/// Tables as the lines would declare them: every kind of key, with and without arrays.
static TABLES: LazyLock<Vec<Spec>> = LazyLock::new(counters::tables);

static PAGES: LazyLock<Pages> = LazyLock::new(Pages::default);

static USERS: LazyLock<Arc<Userlist>> = LazyLock::new(|| {
    let user = |name: &str, password: &str, groups: &[&str]| User {
        name: name.as_bytes().into(),
        password: Some(Password::Plain(password.as_bytes().into())),
        groups: groups.iter().map(|group| group.as_bytes().into()).collect(),
    };
    let users = vec![user("ann", "a:b", &["staff", "admins"]), user("bob", "", &[])];
    Arc::new(Userlist::new("people".into(), users))
});

struct Known;

impl Proxies for Known {
    fn frontends(&self) -> Vec<&str> {
        vec!["front", "other"]
    }

    fn backends(&self) -> Vec<&str> {
        vec!["front", "back"]
    }

    fn tables(&self) -> Vec<&Spec> {
        TABLES.iter().collect()
    }

    fn pages(&self) -> Vec<(&str, &Pages)> {
        vec![("pages", &PAGES)]
    }

    fn users(&self) -> Vec<&Arc<Userlist>> {
        vec![&USERS]
    }
}

impl Bench {
    pub(super) fn scope(&mut self) -> Scope<'_> {
        Scope {
            outside: &self.desk,
            diagnostics: &mut self.found,
            acls: &mut self.acls,
            captures: &mut self.captures,
            proxy: self.proxy,
            proxies: &Known,
            vars: &mut self.vars,
            lists: &mut self.lists,
            lenient: self.lenient,
        }
    }

    pub(super) fn acl(&mut self, text: &str) {
        let line = line(text);
        acl(&mut self.scope(), &line);
    }

    pub(super) fn rule(&mut self, phase: Phase, text: &str) -> Option<Rule> {
        let line = line(text);
        rule(&mut self.scope(), phase, &line.words, &line)
    }

    /// The rules of one phase; anything found is a failure.
    pub(super) fn rules(&mut self, phase: Phase, lines: &[&str]) -> RuleSet {
        let rules = lines.iter().filter_map(|text| self.rule(phase, text)).collect();
        self.clean();
        RuleSet { rules }
    }

    pub(super) fn clean(&self) {
        assert!(self.found.is_empty(), "{:#?}", self.found);
    }
}

/// The words of a line. `'…'` makes one word of its inside; nothing else is special here.
pub(super) fn line(text: &str) -> Line {
    let offset = |at: usize| u32::try_from(at).unwrap();
    let span = |start: usize, end: usize| Span { file: FileId(0), start: offset(start), end: offset(end) };
    let mut words: Vec<Word> = Vec::new();
    let mut word: Option<(usize, Word)> = None;
    let mut quoted = false;
    for (at, byte) in text.bytes().enumerate().chain([(text.len(), b' ')]) {
        if byte == b' ' && (!quoted || at == text.len()) {
            if let Some((start, mut done)) = word.take() {
                done.origins.push(offset(at));
                done.span = span(start, at);
                words.push(done);
            }
            continue;
        }
        let empty = || Word { text: vec![], span: Span::default(), origins: vec![] };
        let (_, current) = word.get_or_insert_with(|| (at, empty()));
        if byte == b'\'' {
            quoted = !quoted;
            continue;
        }
        current.text.push(byte);
        current.origins.push(offset(at));
    }
    Line { words, span: span(0, text.len()) }
}

/// The gateway at a moment.
pub(super) struct Now {
    pub(super) millis: u64,
    pub(super) tables: Vec<Arc<Table>>,
}

impl Env for Now {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.millis)
    }

    fn random(&self) -> u64 {
        4
    }

    fn fact(&self, fact: Fact) -> Option<Sample<'_>> {
        Some(match fact {
            Fact::FrontendName => Sample::Str(b"front"),
            Fact::FrontendNumber => Sample::Int(1),
            Fact::BackendName => Sample::Str(b"back"),
            Fact::BackendNumber => Sample::Int(2),
            Fact::DefaultBackend => Sample::Str(b"default"),
            Fact::FrontendConnections(1) => Sample::Int(4),
            Fact::FrontendConnections(_) => Sample::Int(3),
            Fact::FrontendSessionRate(_) => Sample::Int(5),
            Fact::FrontendRequestRate(_) => Sample::Int(6),
            Fact::BackendConnections(_) => Sample::Int(7),
            Fact::BackendSessionRate(_) => Sample::Int(8),
            Fact::OwnConnections => Sample::Int(13),
            Fact::OwnExchanges => Sample::Int(14),
            Fact::ServerName => Sample::Str(b"s1"),
            Fact::ServerAddress => Sample::Ip([10, 0, 0, 9].into()),
            Fact::ServerPort => Sample::Int(8080),
            Fact::LogLines => Sample::Int(15),
            Fact::NextNumber => Sample::Int(16),
            Fact::Connections => Sample::Int(9),
            Fact::Timeout(Timeout::Client) => Sample::Int(1000),
            Fact::Timeout(Timeout::Connect) => Sample::Int(2000),
            Fact::Timeout(Timeout::Server) => Sample::Int(3000),
            Fact::Timeout(Timeout::Tunnel) => Sample::Int(0),
            Fact::CacheHit => Sample::Bool(true),
            Fact::CacheName => Sample::Str(b"edge"),
            Fact::FileName(_) => Sample::Str(b"a.cfg"),
            Fact::Hostname => Sample::Str(b"machine"),
            Fact::Process => Sample::Int(10),
            Fact::Thread => Sample::Int(11),
            Fact::Stopping => Sample::Bool(false),
            Fact::Uptime => Sample::Int(12),
            Fact::IsLocal(address) => Sample::Bool(address.is_ipv4()),
        })
    }

    fn table(&self, place: usize) -> Option<&Arc<Table>> {
        self.tables.get(place)
    }
}

/// One exchange.
pub(super) struct Exchange {
    pub(super) client: Client,
    pub(super) request: Request,
    pub(super) response: Option<Response>,
    pub(super) vars: Vars,
    pub(super) notes: Notes,
    pub(super) arena: Bump,
    pub(super) env: Now,
}

impl Exchange {
    pub(super) fn new(method: &str, target: &str, fields: &[(&str, &str)]) -> Self {
        let address = |text: &str| text.parse::<SocketAddr>().ok();
        let mut request = Request::new(method.as_bytes(), target.as_bytes());
        for (name, value) in fields {
            request.fields.append(name.as_bytes(), value.as_bytes());
        }
        Self {
            client: Client {
                src: address("192.0.2.7:4000"),
                dst: address("[2001:db8::1]:443"),
                bind: Some(BindName { number: 2, name: Some("inside".into()) }),
                accepted: Timestamp::from_millis(1_500),
                ..Client::default()
            },
            request,
            response: None,
            vars: Vars::default(),
            notes: Notes::default(),
            arena: Bump::new(),
            env: Now {
                millis: 1_234_567,
                tables: TABLES.iter().map(|spec| Arc::new(Table::new(spec.clone()))).collect(),
            },
        }
    }

    pub(super) fn get(target: &str) -> Self {
        Self::new("GET", target, &[("Host", "www.example.com:8080")])
    }

    pub(super) fn tls(mut self, sni: Option<&str>) -> Self {
        self.client.tls = Some(Tls {
            sni: sni.map(Into::into),
            alpn: Some("h2"),
            protocol: "TLSv1.3",
            cipher: "TLS_AES_256_GCM_SHA384",
            key_bits: 256,
            resumed: true,
        });
        self
    }

    pub(super) fn answered(mut self, status: u16, fields: &[(&str, &str)]) -> Self {
        let mut response = Response::new(status);
        for (name, value) in fields {
            response.fields.append(name.as_bytes(), value.as_bytes());
        }
        self.response = Some(response);
        self
    }

    pub(super) fn with<T>(&mut self, read: impl FnOnce(&mut Txn<'_>) -> T) -> T {
        read(&mut Txn {
            client: &self.client,
            request: &mut self.request,
            response: self.response.as_mut(),
            vars: &mut self.vars,
            notes: &mut self.notes,
            env: &self.env,
            arena: &self.arena,
        })
    }

    pub(super) fn run(&mut self, rules: &RuleSet) -> Verdict {
        self.with(|txn| rules.run(txn))
    }

    /// The value of an expression, written out with its type; `-` when there is none.
    pub(super) fn value(&mut self, bench: &mut Bench, text: &str, phase: Phase) -> String {
        let line = line(text);
        let expr = expr(&mut bench.scope(), &line.words[0], phase);
        bench.clean();
        let expr = expr.unwrap();
        self.with(|txn| expr.eval(txn).map_or("-".to_owned(), show))
    }

    pub(super) fn lines(fields: &crate::message::Fields) -> Vec<String> {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        fields.iter().map(|field| format!("{}: {}", text(field.name), text(field.value))).collect()
    }
}

fn show(sample: Sample<'_>) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    match sample {
        Sample::Bool(value) => format!("bool {value}"),
        Sample::Int(value) => format!("int {value}"),
        Sample::Ip(value) => format!("ip {value}"),
        Sample::Str(value) => format!("str {}", text(value)),
        Sample::Bin(value) => format!("bin {}", value.escape_ascii()),
        Sample::Method(value) => format!("method {}", text(value)),
    }
}
