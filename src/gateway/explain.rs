//! Why rules decide as they do: one request, and perhaps its response, through the engine that serves them, with a
//! trace and without a network.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bumpalo::Bump;
use bytes::Bytes;
use serde::Serialize;

use super::{
    clock,
    decide::Decided,
    entrance::{self, Admission, Door},
    exchange::Pool,
    fetch::Origin,
    forward,
    h1::parse,
    lookup::write_key,
    plan::{Candidates, Plan, Route, Scratch},
    respond::{self, Rules},
    snapshot::{Shared, Snapshot},
};
use crate::{
    cache::{
        fill::{Judgement, Source},
        object::Draft,
    },
    config::{BindAddress, CacheRule, Config, Frontend, Id},
    lang::source::{FileId, Sources},
    message::{Ahead, Fields, Request, Response},
    metrics::{Metrics, Outcome},
    ops::Ops,
    policy::{key, variant::Vary},
    rule::{Client, Tls, Trace, Tri, trace::Tried},
};

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// The request's head as a client would send it.
    pub head: Vec<u8>,
    /// Its body, as its head announces it.
    pub body: Bytes,
    /// Whether it comes over TLS.
    pub https: bool,
    /// The port that it comes to.
    pub port: u16,
    /// The client's address.
    pub src: SocketAddr,
    /// The server name of the TLS handshake; `None`: none was sent.
    pub sni: Option<String>,
    /// The frontend; `None`: the one whose bind the port and TLS fit best.
    pub frontend: Option<String>,
    /// What the server would answer; `None`: what depends on it stays open.
    pub response: Option<Response>,
}

/// What becomes of a request, and why.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// Where it comes in.
    pub frontend: String,
    /// The rules that were tried, in order.
    pub steps: Vec<Step>,
    /// The backend chosen; `None` when it was decided before one was.
    pub backend: Option<String>,
    /// The decision.
    pub decision: Decision,
    /// What would become of the response; `None` when none was given or none is needed.
    pub response: Option<Delivery>,
}

/// A rule that was tried.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// The file that it stands in.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// How it is written.
    pub text: String,
    /// How its condition came out, which ACLs were asked for that, and what it did.
    #[serde(flatten)]
    pub tried: Tried,
}

/// What is decided about a request.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Decision {
    /// Rules answer it.
    Answer {
        /// The word it is counted under.
        outcome: &'static str,
        /// What the client gets, `http-after-response` included.
        head: Head,
        /// The body, as text.
        body: String,
    },
    /// Its URL is purged.
    Purge {
        /// Whether stale objects are left.
        soft: bool,
    },
    /// It is looked up; on a miss it is fetched and perhaps stored.
    Lookup {
        /// The caching rules that may be for it, in order: the first whose whole condition holds counts.
        rules: Vec<String>,
        /// The key of the first of them.
        key: Vec<KeyPart>,
        /// What a server gets although it is not in the key: `hdr(accept)`. Unless the response varies by it, it
        /// shapes what others get.
        unkeyed: Vec<String>,
        /// What a server of the backend gets on a miss.
        sent: Head,
    },
    /// Its connection is closed without an answer.
    Close,
    /// It goes to a server, past the cache.
    Pass {
        /// Why.
        reason: &'static str,
        /// What a server of the backend gets.
        sent: Head,
    },
}

/// A component of a cache key.
#[derive(Clone, Debug, Serialize)]
pub struct KeyPart {
    /// What it is made of.
    pub part: String,
    /// Its value; `None`: the request has no such thing.
    pub value: Option<String>,
}

/// A head: its first line and its fields.
#[derive(Clone, Debug, Serialize)]
pub struct Head {
    /// `GET /path` or the status.
    pub line: String,
    /// `Name: value` each.
    pub fields: Vec<String>,
}

/// What becomes of a response.
#[derive(Clone, Debug, Serialize)]
pub struct Delivery {
    /// The rules that were tried, in order: caching rules, `cache-response`, `http-response`, `http-after-response`.
    pub steps: Vec<Step>,
    /// The caching rule that counts; `None`: none.
    pub rule: Option<String>,
    /// Whether it is stored.
    pub stored: bool,
    /// Why not.
    pub reason: Option<&'static str>,
    /// How it is stored.
    pub kept: Option<Kept>,
    /// What the client gets on a miss, or that a rule closes its connection; `Age`, `Cache-Status` and what the connection needs are left out.
    pub head: Head,
}

/// How a response is stored.
#[derive(Clone, Debug, Serialize)]
pub struct Kept {
    /// How long it is fresh from now on, in seconds.
    pub ttl: u64,
    /// How long past that it may be served while it is refreshed, in seconds.
    pub grace: u64,
    /// How long past that it may be served when the server fails, in seconds.
    pub stale_if_error: u64,
    /// The request fields it depends on.
    pub vary: Vec<String>,
    /// Its surrogate keys.
    pub tags: Vec<String>,
}

/// A configuration that can be asked. What rules count and set is kept from question to question.
#[derive(Debug)]
pub struct Explainer<'s> {
    shared: Arc<Shared>,
    sources: &'s Sources,
}

impl<'s> Explainer<'s> {
    /// Makes `config`, which was made of `sources`, ready to be asked.
    ///
    /// # Errors
    /// One line: the configuration cannot be run.
    pub fn new(config: Config, sources: &'s Sources) -> Result<Self, String> {
        let shared = Shared::new(config, Arc::new(Ops::new(Arc::new(Metrics::new()))))?;
        Ok(Self { shared, sources })
    }

    /// Runs `question` through the rules.
    ///
    /// # Errors
    /// One line: there is no such frontend, or the request would be refused by the parser.
    pub fn ask(&self, question: &Question) -> Result<Explanation, String> {
        let snapshot = self.shared.snapshot();
        let frontend = choose(&snapshot.config, question)?;
        let mut request = Request::default();
        match parse::parse(&question.head, question.https, &mut request) {
            Ok(Some(_)) => {}
            Ok(None) => return Err("the request's head has no end".to_owned()),
            Err(refusal) => return Err(format!("the request would get {}: {}", refusal.status, refusal.reason)),
        }
        request.ahead = Ahead { bytes: question.body.clone(), is_whole: true };
        let client = client(question, &snapshot.config, frontend);
        let trace = Arc::<Trace>::default();
        let scratch = Scratch { trace: Some(trace.clone()), ..Scratch::default() };
        Ok(Asked { sources: self.sources, shared: &self.shared, snapshot, client, request, scratch, trace }
            .explanation(frontend, question.response.clone()))
    }
}

/// The frontend that is named, or whose binds fit best.
fn choose(config: &Config, question: &Question) -> Result<Id<Frontend>, String> {
    let fit = |frontend: &Frontend| {
        let fit = frontend.binds.iter().map(|bind| {
            let port = matches!(bind.address, BindAddress::Tcp(address) if address.port() == question.port);
            (u8::from(bind.tls.is_some() == question.https), u8::from(port))
        });
        fit.max()
    };
    let mut frontends = config.frontends.iter().enumerate();
    let found = match &question.frontend {
        Some(name) => frontends.find(|(_, frontend)| frontend.name == *name),
        None => frontends.rev().max_by_key(|(_, frontend)| fit(frontend)),
    };
    found.map(|(at, _)| Id::new(at)).ok_or_else(|| {
        let names: Vec<_> = config.frontends.iter().map(|frontend| frontend.name.as_str()).collect();
        format!(
            "there is no frontend `{}`; there are: {}",
            question.frontend.as_deref().unwrap_or("-"),
            names.join(", ")
        )
    })
}

fn client(question: &Question, config: &Config, frontend: Id<Frontend>) -> Client {
    let tls = question.https.then(|| Tls {
        sni: question.sni.as_deref().map(|name| name.to_ascii_lowercase().into()),
        protocol: "TLSv1.3",
        cipher: "TLS_AES_128_GCM_SHA256",
        key_bits: 128,
        ..Tls::default()
    });
    let binds = config.frontends.get(frontend.index()).map(|frontend| frontend.binds.as_slice()).unwrap_or_default();
    let bind = binds.iter().find(|bind| bind.tls.is_some() == question.https).or(binds.first());
    let dst = bind.and_then(|bind| match bind.address {
        BindAddress::Tcp(address) => Some(address),
        BindAddress::Unix(_) => None,
    });
    let bind = bind.map(|bind| bind.name.clone());
    Client { src: Some(question.src), dst, bind, accepted: clock::now(), tls, ..Client::default() }
}

/// One request under explanation.
struct Asked<'s> {
    sources: &'s Sources,
    shared: &'s Shared,
    snapshot: Arc<Snapshot>,
    client: Client,
    request: Request,
    scratch: Scratch,
    trace: Arc<Trace>,
}

impl Asked<'_> {
    fn explanation(mut self, frontend: Id<Frontend>, response: Option<Response>) -> Explanation {
        let Self { snapshot, client, request, scratch, trace, .. } = &mut self;
        let now = clock::both();
        if !Self::is_let_in(snapshot, frontend, client, trace) {
            let steps = self.located(self.trace.take());
            let frontend = self.snapshot.frontend(frontend).map(|frontend| frontend.name.clone()).unwrap_or_default();
            return Explanation { frontend, steps, backend: None, decision: Decision::Close, response: None };
        }
        let decided = Plan::decide(snapshot, frontend, client, request, now, scratch);
        // The body is there: nothing is waited for.
        let (Decided::Made(mut plan) | Decided::Paused(mut plan, _)) = decided;
        let steps = self.located(self.trace.take());
        let decision = self.decision(&mut plan);
        let response = response.and_then(|response| self.response(&mut plan, response));
        let name = |id: Id<_>| self.snapshot.backend(id).map(|backend| backend.name.clone());
        Explanation {
            frontend: self.snapshot.frontend(frontend).map(|frontend| frontend.name.clone()).unwrap_or_default(),
            steps,
            backend: plan.backend.and_then(name),
            decision,
            response,
        }
    }

    /// Whether the rules below HTTP let the connection in.
    fn is_let_in(snapshot: &Snapshot, frontend: Id<Frontend>, client: &Client, trace: &Arc<Trace>) -> bool {
        if snapshot.keeps_sessions() {
            client.session();
        }
        let welcome = [Door::Connection, Door::Session].into_iter().all(|door| {
            let trace = Some(trace.clone());
            entrance::admit(snapshot, frontend, door, client, trace) == Admission::Welcome
        });
        if welcome {
            entrance::let_in(client);
        }
        welcome
    }

    /// With the lines that the rules are.
    fn located(&self, steps: Vec<Tried>) -> Vec<Step> {
        let step = |tried: Tried| {
            let place = tried.place.unwrap_or_default();
            let file = self.sources.name(FileId(place.file)).to_owned();
            Step { file, line: place.line, text: lossy(self.sources.line_at(place)), tried }
        };
        steps.into_iter().map(step).collect()
    }

    fn decision(&mut self, plan: &mut Plan) -> Decision {
        match plan.route.clone() {
            Route::Answer(answer, outcome) => {
                let mut head = answer.head.clone();
                let Self { snapshot, client, request, .. } = self;
                let rules = Rules::of_answer(snapshot, plan);
                // An answer of our own meets no rule that closes the connection.
                let _ = respond::apply(&rules, plan, client, request, &mut head, &Bump::new());
                let body = String::from_utf8_lossy(&answer.body).into_owned();
                Decision::Answer { outcome: outcome.as_str(), head: head_of_response(&head), body }
            }
            Route::Tarpit { answer: Some(answer), .. } => {
                plan.route = Route::Answer(answer, Outcome::Refused);
                self.decision(plan)
            }
            Route::Tarpit { answer: None, .. } | Route::Close { .. } => Decision::Close,
            Route::Purge { soft } => Decision::Purge { soft },
            Route::Fetch(candidates) => {
                let mut sent = self.request.clone();
                forward::for_fill(&mut sent);
                let rule = candidates.first().and_then(|&id| self.snapshot.cache_rule(id));
                if let Some(rule) = rule.filter(|rule| rule.forward_keyed) {
                    rule.keyed.keep_only(&[], &mut sent);
                }
                let unkeyed = rule.map_or_else(Vec::new, |rule| rule.keyed.missing(&[], &sent));
                let names = candidates.iter().filter_map(|&id| self.snapshot.cache_rule(id));
                let rules = names.map(|rule| rule.name.clone()).collect();
                Decision::Lookup { rules, key: self.key(&candidates, plan), unkeyed, sent: head_of_request(&sent) }
            }
            Route::Pass(bypass) => {
                let sent = head_of_request(&forward::for_pass(&self.request));
                Decision::Pass { reason: bypass.as_str(), sent }
            }
        }
    }

    fn key(&mut self, candidates: &Candidates, plan: &mut Plan) -> Vec<KeyPart> {
        let Self { snapshot, client, request, scratch, .. } = self;
        let Some(rule) = candidates.first().and_then(|&id| snapshot.cache_rule(id)) else { return Vec::new() };
        write_key(snapshot, rule, plan, client, request, scratch);
        let names = rule.key.iter().flat_map(|part| match part {
            crate::config::KeyPart::Uri => vec!["path".into(), "query".into()],
            part => vec![part.word()],
        });
        let values = key::components(&scratch.key).map(|value| value.map(lossy));
        names.zip(values).map(|(part, value)| KeyPart { part: part.into_owned(), value }).collect()
    }

    /// What becomes of `response`; `None` when none is asked for.
    fn response(&mut self, plan: &mut Plan, mut response: Response) -> Option<Delivery> {
        let mut steps = Vec::new();
        let (draft, refused, rule) = match plan.route.clone() {
            Route::Fetch(candidates) => {
                let (snapshot, client) = (self.snapshot.clone(), Arc::new(self.client.clone()));
                let request = self.request.clone();
                let mut origin =
                    Origin::new(Pool::new(), snapshot, plan.clone(), candidates.clone(), client, request, None);
                let judgement = origin.judge(response);
                let (head, draft, refused) = judged(judgement);
                response = head;
                steps = self.trace.take();
                let rule = self.counting(&candidates, &steps);
                (draft, refused, rule)
            }
            Route::Pass(bypass) => (None, Some(bypass.as_str()), None),
            _ => return None,
        };
        let Self { shared, snapshot, client, request, .. } = self;
        let delivered = match plan.route {
            Route::Pass(_) => respond::passed(shared, snapshot, plan, client, request, &mut response),
            _ => {
                let rules = Rules::of(snapshot, plan);
                respond::apply(&rules, plan, client, request, &mut response, &Bump::new())
            }
        };
        response.fields.remove(b"Cache-Status");
        steps.append(&mut self.trace.take());
        let (stored, kept) = (draft.is_some(), draft.as_deref().map(kept));
        Some(Delivery {
            steps: self.located(steps),
            rule,
            stored,
            reason: refused,
            kept,
            head: match delivered {
                Ok(_) => head_of_response(&response),
                Err(closed) => Head { line: closed.to_string(), fields: Vec::new() },
            },
        })
    }

    /// The candidate whose whole condition held.
    fn counting(&self, candidates: &Candidates, steps: &[Tried]) -> Option<String> {
        let held =
            |rule: &&CacheRule| steps.iter().any(|tried| tried.outcome == Tri::True && tried.place == Some(rule.place));
        let mut rules = candidates.iter().filter_map(|&id| self.snapshot.cache_rule(id));
        rules.find(held).map(|rule| rule.name.clone())
    }
}

/// The head that goes on, what is stored, and why nothing is.
fn judged(judgement: Judgement) -> (Response, Option<Box<Draft>>, Option<&'static str>) {
    match judgement {
        Judgement::Store(draft) | Judgement::Freshen(draft, _) => (draft.head.clone(), Some(draft), None),
        Judgement::Confirmed(head, _, why) | Judgement::Alone(head, why) | Judgement::Private(head, why) => {
            (*head, None, Some(why))
        }
        Judgement::ServerError(head) => (*head, None, Some("server-error")),
    }
}

fn kept(draft: &Draft) -> Kept {
    let times = &draft.freshness;
    let left = times.lifetime.saturating_sub(times.initial_age);
    Kept {
        ttl: left.saturating_add(Duration::from_millis(500)).as_secs(),
        grace: times.grace.as_secs(),
        stale_if_error: times.stale_if_error.as_secs(),
        vary: match &draft.vary {
            Vary::None => Vec::new(),
            Vary::On(names) => names.iter().map(ToString::to_string).collect(),
            Vary::Any => vec!["*".to_owned()],
        },
        tags: draft.tags.iter().map(ToString::to_string).collect(),
    }
}

fn head_of_request(request: &Request) -> Head {
    let mut target = Vec::new();
    request.write_target(&mut target);
    Head { line: format!("{} {}", lossy(request.method()), lossy(&target)), fields: lines(&request.fields) }
}

fn head_of_response(response: &Response) -> Head {
    Head { line: response.status.to_string(), fields: lines(&response.fields) }
}

fn lines(fields: &Fields) -> Vec<String> {
    fields.iter().map(|field| format!("{}: {}", lossy(field.name), lossy(field.value))).collect()
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
