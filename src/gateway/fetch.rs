//! One fetch for a fill: the request as it goes to a server, and the verdict on what comes back.

use std::{sync::Arc, time::Instant};

use bumpalo::Bump;

use super::{
    clock,
    exchange::{Exchange, Pool},
    forward, hop,
    lookup::write_key,
    plan::{Candidates, Plan, Scratch},
    snapshot::Snapshot,
    surrogate, upstream,
};
use crate::{
    cache::{
        Object,
        fill::{Failure, FailureKind, Head, Judgement, Piece, Source},
        object::Draft,
    },
    config::{CacheRule, Id},
    message::{Request, Response},
    policy::{
        head::stored_head,
        reuse::usable_on_error,
        storable::{Storable, storable},
        validator::{freshen, make_conditional, selects},
        variant::Vary,
    },
    rule::{Client, Tri},
    time::Timestamp,
};

/// A fetch from a backend, for the cache.
pub struct Origin {
    pool: Pool,
    snapshot: Arc<Snapshot>,
    plan: Plan,
    candidates: Candidates,
    client: Arc<Client>,
    /// The request as rules left it: what conditions, keys and `Vary` read.
    request: Request,
    /// What a revalidation would confirm, and what may be served in the place of an error.
    stored: Option<Arc<Object>>,
    /// Whether the whole is asked for: the server has confirmed something else than what is stored.
    whole: bool,
    /// Whether the last request that was sent carried the stored validators.
    conditional: bool,
    /// What purges call it.
    url: Vec<u8>,
    exchange: Option<Exchange>,
    requested: Timestamp,
    /// When the last exchange began; `None` before any has.
    begun: Option<Instant>,
    /// Whether a server that broke off has been given its second chance.
    repeated: bool,
}

impl Origin {
    /// A fetch that has not begun. With `stored`, the server is asked to confirm it (RFC 9111 §4.3.1).
    pub fn new(
        pool: Pool,
        snapshot: Arc<Snapshot>,
        plan: Plan,
        candidates: Candidates,
        client: Arc<Client>,
        request: Request,
        stored: Option<Arc<Object>>,
    ) -> Self {
        let requested = plan.now;
        let mut url = Vec::new();
        request.write_url(client.tls.is_some(), &mut url);
        let (exchange, whole, conditional, begun, repeated) = (None, false, false, None, false);
        Self {
            pool,
            snapshot,
            plan,
            candidates,
            client,
            request,
            stored,
            whole,
            conditional,
            url,
            exchange,
            requested,
            begun,
            repeated,
        }
    }

    /// Sends the request to a server whose turn it is; to the next when one cannot be reached.
    async fn open(&mut self) -> Result<Exchange, Failure> {
        let mut upstream = self.request.clone();
        forward::for_fill(&mut upstream);
        let confirmed = self.stored.as_ref().filter(|_| !self.whole);
        self.conditional = confirmed.is_some_and(|stored| make_conditional(&mut upstream, &stored.head));
        let Self { pool, snapshot, plan, client, request, requested, begun, .. } = self;
        forward::add_unique_id(snapshot, plan, client, request, &mut upstream);
        let begins = |(now, start)| (*requested, *begun) = (now, Some(start));
        upstream::open(pool, snapshot, plan.backend, &upstream, begins).await.map(|(_, exchange)| exchange)
    }

    fn count_error(&self, failure: &Failure) {
        upstream::failed(&self.snapshot, self.plan.backend, failure);
    }

    /// The first candidate whose whole condition holds for this response.
    fn rule_for(&mut self, response: &mut Response, arena: &Bump) -> Option<Id<CacheRule>> {
        let Self { snapshot, plan, candidates, client, request, .. } = self;
        plan.with_response(snapshot, client, request, response, arena, |txn| {
            candidates.iter().copied().find(|&id| {
                let Some(rule) = snapshot.cache_rule(id) else { return false };
                let holds = rule.cond.as_ref().is_none_or(|cond| cond.holds(txn));
                if let Some(trace) = &txn.notes.trace {
                    trace.tried(Some(rule.place), if holds { Tri::True } else { Tri::False });
                }
                holds
            })
        })
    }

    /// Runs `cache-response` rules: edits of what is stored.
    fn edit(&mut self, response: &mut Response, arena: &Bump) {
        let Self { snapshot, plan, client, request, .. } = self;
        let backend = plan.backend.and_then(|id| snapshot.backend(id)).map(|backend| &backend.cache_response);
        let frontend = snapshot.frontend(plan.frontend).map(|frontend| &frontend.cache_response);
        for rules in [backend, frontend].into_iter().flatten().filter(|rules| !rules.is_empty()) {
            plan.with_response(snapshot, client, request, response, arena, |txn| {
                let _ = rules.run(txn);
            });
        }
    }

    /// The surrogate keys of a response, whose fields go.
    fn take_tags(&mut self, id: Id<CacheRule>, response: &mut Response, arena: &Bump) -> Vec<Box<str>> {
        let Self { snapshot, plan, client, request, .. } = self;
        let Some(rule) = snapshot.cache_rule(id) else { return Vec::new() };
        let found = surrogate::keys(rule, snapshot, plan, client, request, response, arena);
        surrogate::strip(snapshot, plan, &mut response.fields);
        found
    }

    /// The key of `id`, when the fill was asked for another's.
    fn key_of(&mut self, id: Id<CacheRule>) -> Option<Vec<u8>> {
        if self.candidates.first() == Some(&id) {
            return None;
        }
        let rule = self.snapshot.cache_rule(id)?;
        let mut scratch = Scratch::default();
        write_key(&self.snapshot, rule, &mut self.plan, &self.client, &mut self.request, &mut scratch);
        Some(scratch.key)
    }

    fn verdict(&mut self, mut response: Response, confirmed: Option<Arc<Object>>) -> Judgement {
        let received = clock::now();
        let arena = Bump::new();
        hop::strip(&mut response.fields);
        match &confirmed {
            Some(stored) => response = freshen(&stored.head, &response, |head| self.edit(head, &arena)),
            None => self.edit(&mut response, &arena),
        }
        let failed = confirmed.is_none() && matches!(response.status, 500 | 502 | 503 | 504);
        if failed && self.stored.as_ref().is_some_and(|stored| usable_on_error(&stored.freshness, received)) {
            surrogate::strip(&self.snapshot, &self.plan, &mut response.fields);
            return Judgement::ServerError(Box::new(response));
        }
        let draft = self.draft(&mut response, confirmed.as_deref(), received, &arena);
        surrogate::strip(&self.snapshot, &self.plan, &mut response.fields);
        match (draft, confirmed) {
            (Ok(draft), Some(stored)) => Judgement::Freshen(Box::new(draft), stored),
            (Ok(draft), None) => Judgement::Store(Box::new(draft)),
            (Err(refused), Some(stored)) => Judgement::Confirmed(Box::new(response), stored, refused.word),
            (Err(refused), None) if refused.of_the_request => Judgement::Alone(Box::new(response), refused.word),
            (Err(refused), None) => Judgement::Private(Box::new(response), refused.word),
        }
    }

    /// What is to be stored of a response; else the word for why nothing is.
    fn draft(
        &mut self,
        response: &mut Response,
        confirmed: Option<&Object>,
        received: Timestamp,
        arena: &Bump,
    ) -> Result<Draft, Refused> {
        let id = self.rule_for(response, arena).ok_or(Refused::by_rules("no-rule"))?;
        let snapshot = self.snapshot.clone();
        let rule = snapshot.cache_rule(id).ok_or(Refused::by_rules("no-rule"))?;
        let first = self.candidates.first().and_then(|&id| snapshot.cache_rule(id)).map(|rule| rule.store);
        if first != Some(rule.store) {
            return Err(Refused::by_rules("other-store"));
        }
        let freshness = match storable(&self.request, response, &rule.terms, self.requested, received) {
            Storable::Yes(freshness) => freshness,
            Storable::No(reason) => {
                return Err(Refused { word: reason.as_str(), of_the_request: reason.is_of_the_request() });
            }
        };
        let mut tags = self.take_tags(id, response, arena);
        if let Some(stored) = confirmed.filter(|_| tags.is_empty()) {
            // The fields that named them were not stored; a 304 need not repeat them.
            tags.extend(stored.tags().map(Box::from));
        }
        Ok(Draft {
            tags,
            key: self.key_of(id),
            request: self.request.clone(),
            url: self.url.clone(),
            freshness,
            vary: if rule.terms.ignore.vary { Vary::None } else { Vary::of(&response.fields) },
            rule: rule.fingerprint,
            head: stored_head(response, &rule.terms.ignore, received),
        })
    }
}

/// Why a response is not stored.
struct Refused {
    word: &'static str,
    /// Because of what this one request carries.
    of_the_request: bool,
}

impl Refused {
    const fn by_rules(word: &'static str) -> Self {
        Self { word, of_the_request: false }
    }
}

/// However a fetch ends, its time is counted.
impl Drop for Origin {
    fn drop(&mut self) {
        let backend = self.plan.backend.and_then(|id| self.snapshot.backend_state(id));
        if let (Some(begun), Some(backend)) = (self.begun, backend) {
            backend.metrics.fill_duration.observe(begun.elapsed());
        }
    }
}

impl Source for Origin {
    async fn head(&mut self) -> Result<Head, Failure> {
        loop {
            if self.exchange.is_none() {
                self.exchange = Some(self.open().await?);
            }
            let Some(exchange) = &mut self.exchange else { continue };
            let head = match exchange.head().await {
                Ok(head) => head,
                Err(failure) => {
                    self.count_error(&failure);
                    // Once more for all who wait: GET can be repeated, and nothing was sent on
                    // (RFC 9110 §9.2.2). A silent server would only take as long again.
                    let again = failure.kind == FailureKind::Truncated && !std::mem::replace(&mut self.repeated, true);
                    self.exchange = None;
                    if again {
                        continue;
                    }
                    return Err(failure);
                }
            };
            match (&head, &self.stored) {
                (Head::Final(response), _) if response.status == 304 && !self.conditional => {
                    let failure = Failure::new(FailureKind::Protocol, "304 to a request without condition");
                    self.count_error(&failure);
                    return Err(failure);
                }
                // A 304 about something else than what is stored confirms nothing: ask for the whole (RFC 9111
                // §4.3.4). What is stored may still have to stand in for an error.
                (Head::Final(response), Some(stored)) if response.status == 304 && !selects(response, &stored.head) => {
                    self.whole = true;
                    self.exchange = None;
                }
                _ => return Ok(head),
            }
        }
    }

    fn judge(&mut self, response: Response) -> Judgement {
        let confirmed = self.stored.clone().filter(|_| response.status == 304);
        self.verdict(response, confirmed)
    }

    fn url(&self) -> Option<&[u8]> {
        Some(&self.url)
    }

    async fn body(&mut self) -> Result<Piece, Failure> {
        match &mut self.exchange {
            Some(exchange) => exchange.body().await.inspect_err(|failure| self.count_error(failure)),
            None => Ok(Piece::End(None)),
        }
    }
}
