//! Carries a plan out: from memory, from a fill, or by a rule's own answer, to whatever writes the reply.

mod own;
mod relay;

pub use own::hint;

use std::{io, sync::Arc};

use bumpalo::Bump;

use super::{
    clock, fault,
    fetch::Origin,
    log::{CLIENT_GONE, CLOSED, Ending},
    lookup::{Found, Remaining, Stored, lookup, write_key},
    plan::{Bypass, Candidates, Plan, Route, Scratch},
    reply::Reply,
    respond::{self, Rules},
    snapshot::Snapshot,
    upload::Upload,
    worker::Worker,
};
use crate::{
    cache::{
        Object, Seen, Store,
        fill::{Arrival, Failure, FillOptions, Joined, Piece, Reader},
    },
    config::{CacheRule, FillMode, Id},
    message::{Framing, Request, Response},
    metrics::Outcome,
    policy::{
        freshness::Freshness,
        range::{Part, part},
        reuse::{only_if_cached, usable_on_error},
        status::{Forward, Status},
        storable::{Reason, cookie_at_risk},
        validator::{Precondition, not_modified, precondition},
    },
    rule::Client,
};

/// How an exchange with a client ended, as far as this module carries it.
#[derive(Debug)]
pub enum Served {
    /// The reply is complete.
    Done(Box<Plan>, Ending),
    /// The client is gone or the reply was broken off: its connection or stream is of no more use.
    Broken(Box<Plan>, Ending),
    /// Nothing was sent: the request is for the proxy engine, which counts it.
    Pass(Box<(Plan, Request)>),
}

/// How a step ended. Writing to a client that has left is an error.
enum Flow {
    Done,
    /// The server broke off.
    Broken,
    /// The client was seen to leave.
    Left,
    Pass(Bypass),
}

/// One request being answered.
struct Delivery<'a, R, U> {
    worker: &'a Worker,
    snapshot: &'a Arc<Snapshot>,
    client: &'a Client,
    plan: Plan,
    request: Request,
    reply: &'a mut R,
    /// What the client still says.
    upload: &'a mut U,
    /// What is known so far of how the request ends.
    ending: Ending,
}

/// What a reply says of how it came about.
#[derive(Clone, Copy)]
struct How {
    outcome: Outcome,
    rule: Option<Id<CacheRule>>,
    reason: Option<&'static str>,
    status: Status<'static>,
    age: Age,
}

/// `Age` of a reply (RFC 9111 §5.1).
#[derive(Clone, Copy)]
enum Age {
    /// The cache's: these seconds; `None`: the origin has just made or confirmed the response.
    Ours(Option<u64>),
    /// As the origin says and rules leave it: the response is nobody else's.
    Origins,
}

/// What was asked of the origin, and why.
struct Asked<'c> {
    candidates: &'c Candidates,
    forward: Forward,
    joined: Joined,
    /// What may be served if that comes to nothing.
    stale: Option<Stored>,
}

impl Asked<'_> {
    /// What may be served although it is stale, now that the origin has failed (RFC 5861 §4).
    fn usable(&self) -> Option<&Stored> {
        self.stale.as_ref().filter(|stored| usable_on_error(&stored.object.freshness, clock::now()))
    }

    /// What its answers say, whatever they are.
    fn status(&self) -> Status<'static> {
        Status { forward: Some(self.forward), collapsed: self.joined == Joined::Follower, ..Status::default() }
    }
}

/// Carries `plan` out, all of it but what the proxy engine has to pass.
pub async fn serve<R: Reply, U: Upload>(
    worker: &Worker,
    snapshot: &Arc<Snapshot>,
    client: &Client,
    plan: Plan,
    request: Request,
    reply: &mut R,
    upload: &mut U,
) -> Served {
    let ending = Ending::client_gone(&plan);
    let mut delivery = Delivery { worker, snapshot, client, plan, request, reply, upload, ending };
    let mut flow = delivery.run().await;
    if let Ok(Flow::Pass(bypass)) = flow
        && delivery.relays()
    {
        flow = delivery.relay(bypass).await;
    }
    let Delivery { mut plan, request, ending, .. } = delivery;
    match flow {
        Ok(Flow::Done) => Served::Done(Box::new(plan), ending),
        Ok(Flow::Pass(bypass)) => {
            plan.route = Route::Pass(bypass);
            Served::Pass(Box::new((plan, request)))
        }
        Ok(Flow::Broken) => Served::Broken(Box::new(plan), ending),
        Err(error) if respond::is_closed(&error) => {
            let ending = Ending { outcome: Outcome::Refused, reason: Some(CLOSED), ..ending };
            Served::Broken(Box::new(plan), ending)
        }
        Ok(Flow::Left) | Err(_) => Served::Broken(Box::new(plan), Ending { reason: Some(CLIENT_GONE), ..ending }),
    }
}

impl<R: Reply, U: Upload> Delivery<'_, R, U> {
    async fn run(&mut self) -> io::Result<Flow> {
        hint(&mut self.plan, self.reply).await?;
        match self.plan.route.clone() {
            Route::Answer(answer, outcome) => {
                self.own(answer.head.clone(), answer.body.clone(), outcome, None, None).await
            }
            Route::Tarpit { answer, time } => self.hold(answer.as_deref(), time).await,
            Route::Purge { soft } => self.purge(soft).await,
            Route::Fetch(candidates) => self.fetch(&candidates).await,
            Route::Pass(bypass) => Ok(Flow::Pass(bypass)),
            Route::Close { .. } => {
                self.ending.reason = Some(CLOSED);
                Ok(Flow::Broken)
            }
        }
    }

    /// Looks in memory, then asks the origin.
    async fn fetch(&mut self, candidates: &Candidates) -> io::Result<Flow> {
        let mut scratch = Scratch::default();
        for last in [false, true] {
            let found = lookup(self.snapshot, &mut self.plan, candidates, self.client, &mut self.request, &mut scratch);
            let (forward, stale) = match found {
                Found::Fresh(stored, remaining) => return self.hit(&stored, remaining, Outcome::Hit, None).await,
                Found::Grace(stored, remaining) => {
                    self.refresh(candidates, &stored, &mut scratch);
                    return self.hit(&stored, remaining, Outcome::Stale, Some("grace")).await;
                }
                Found::Stale(..) | Found::Nothing(_) if only_if_cached(&self.request) => {
                    let answer = fault::page(504, "nothing usable is stored, and the request wants no more");
                    let detail = Some("only-if-cached");
                    let status = Status { detail, ..Status::default() };
                    return self.fault(answer, Outcome::Answered, detail, Some(status)).await;
                }
                Found::Nothing(_) if self.request.fields.has("range") => return Ok(Flow::Pass(Bypass::Range)),
                Found::Stale(stored, _) => (Forward::Stale, Some(stored)),
                Found::Nothing(forward) => (forward, None),
            };
            if let Some((reader, joined)) = self.start(candidates, stale.as_ref(), last, &mut scratch) {
                return self.fill(Asked { candidates, forward, joined, stale }, reader).await;
            }
            // A fill that ended since has stored something: it may answer this request.
        }
        Ok(Flow::Pass(Bypass::NoRule))
    }

    /// Starts or joins the fill of the first candidate's key. `None`: there is no rule for it, or what the
    /// lookup has found is not what is stored now, unless that does not matter (`whatever`).
    fn start(
        &mut self,
        candidates: &Candidates,
        stale: Option<&Stored>,
        whatever: bool,
        scratch: &mut Scratch,
    ) -> Option<(Reader, Joined)> {
        let (store, options) = self.fill_of(candidates, scratch)?;
        let stored = stale.map(|stored| &stored.object);
        let seen = if whatever { Seen::Whatever } else { Seen::This(stored) };
        let origin = || self.origin(candidates, stored.cloned(), &store.vary_of(&scratch.key));
        store.fetch(&scratch.key, &self.request, options, seen, origin)
    }

    /// Refreshes a stale object while it is served; nobody waits for it. A request whose answer may be its
    /// own alone leaves that to the next one.
    fn refresh(&mut self, candidates: &Candidates, stored: &Stored, scratch: &mut Scratch) {
        if let Some((store, options)) = self.fill_of(candidates, scratch).filter(|(_, options)| !options.alone) {
            let origin = || self.origin(candidates, Some(stored.object.clone()), &store.vary_of(&scratch.key));
            store.refresh(&scratch.key, &self.request, options, origin);
        }
    }

    /// Where the first candidate stores, and how; its key is in `scratch.key` then.
    fn fill_of(&mut self, candidates: &Candidates, scratch: &mut Scratch) -> Option<(Arc<Store>, FillOptions)> {
        let rule = candidates.first().and_then(|&id| self.snapshot.cache_rule(id))?;
        let store = self.snapshot.store_of(rule)?.clone();
        write_key(self.snapshot, rule, &mut self.plan, self.client, &mut self.request, scratch);
        let alone = (self.request.fields.has("authorization") && !rule.terms.ignore.authorization)
            || cookie_at_risk(&self.request, &rule.terms);
        let limit = self.snapshot.config.stores.get(rule.store.index()).map_or(0, |store| store.max_object_size);
        Some((store, options(rule, limit, alone)))
    }

    /// A fetch of what the request asks for; `vary`: what the stored responses are known to depend on.
    fn origin(&self, candidates: &Candidates, stored: Option<Arc<Object>>, vary: &[Box<str>]) -> Origin {
        let mut request = self.request.clone();
        let rules = candidates.iter().filter_map(|&id| self.snapshot.cache_rule(id));
        for rule in rules.filter(|rule| rule.forward_keyed) {
            rule.keyed.keep_only(vary, &mut request);
        }
        Origin::new(
            self.worker.pool.clone(),
            self.snapshot.clone(),
            self.plan.clone(),
            candidates.clone(),
            Arc::new(self.client.clone()),
            request,
            stored,
        )
    }

    /// Answers from a fill, streaming as it grows.
    async fn fill(&mut self, asked: Asked<'_>, mut reader: Reader) -> io::Result<Flow> {
        loop {
            let arrival = tokio::select! {
                arrival = reader.head() => arrival,
                () = self.upload.gone(false) => return Ok(Flow::Left),
            };
            match arrival {
                Ok(Arrival::Interim(head)) => self.reply.interim(&head).await?,
                Ok(Arrival::NotForYou(reason)) => {
                    return match asked.usable().filter(|_| reason == SERVER_ERROR) {
                        Some(stored) => self.instead(&asked, stored, None, reason).await,
                        None => Ok(Flow::Pass(Bypass::NotShared(reason))),
                    };
                }
                Ok(Arrival::Head { head, freshness, stored, reason, revalidated }) => {
                    if let Some(stale) = asked.usable().filter(|_| reason == Some(SERVER_ERROR)) {
                        return self.instead(&asked, stale, Some(head.status), SERVER_ERROR).await;
                    }
                    self.plan.notes.progress.answered_after(0, self.plan.started);
                    let arrived = Arrived { freshness, stored, reason, revalidated };
                    return self.stream(&head, Self::how(&asked, &arrived), reader).await;
                }
                Err(failure) => return self.failed(&asked, &failure).await,
            }
        }
    }

    fn how(asked: &Asked<'_>, arrived: &Arrived) -> How {
        let now = clock::now();
        let ttl = arrived.freshness.map(|times| {
            let seconds = |duration: std::time::Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
            seconds(times.lifetime).saturating_sub(seconds(times.age(now)))
        });
        let outcome = match asked.joined {
            Joined::Follower => Outcome::Collapsed,
            Joined::Leader if arrived.revalidated => Outcome::Revalidated,
            Joined::Leader => Outcome::Miss,
        };
        let age = arrived
            .freshness
            .map_or(Age::Origins, |times| Age::Ours(Some(times.age(now).as_secs()).filter(|&age| age > 0)));
        // What is stored was not for this request, whatever became of the answer.
        let barred = (asked.forward == Forward::Bypass).then_some(Reason::Cookie.as_str());
        let detail = arrived.reason.or(barred);
        let status = Status {
            forward_status: arrived.revalidated.then_some(304),
            ttl: ttl.filter(|_| arrived.stored),
            stored: arrived.stored,
            detail,
            ..asked.status()
        };
        let reason = detail.or(Some(asked.forward.as_str()));
        How { outcome, rule: asked.candidates.first().copied(), reason, status, age }
    }

    /// Sends a fill's response.
    async fn stream(&mut self, head: &Response, how: How, reader: Reader) -> io::Result<Flow> {
        if precondition(&self.request, head) == Precondition::NotModified {
            self.head(not_modified(&head.fields), &how, true).await?;
            return Ok(Flow::Done);
        }
        let bodyless = self.request.method() == b"HEAD" || head.is_bodyless();
        if self.head(head.clone(), &how, bodyless).await? && !bodyless {
            self.body(reader).await
        } else {
            Ok(Flow::Done)
        }
    }

    /// Sends a body as it comes.
    async fn body(&mut self, mut body: Reader) -> io::Result<Flow> {
        loop {
            let piece = tokio::select! {
                piece = body.body() => piece,
                () = self.upload.gone(true) => return Ok(Flow::Left),
            };
            match piece {
                Ok(Piece::Data(data)) => self.reply.data(data).await?,
                Ok(Piece::End(trailers)) => {
                    self.reply.end(trailers.as_ref()).await?;
                    return Ok(Flow::Done);
                }
                Err(failure) => return Ok(self.broken_off(&failure)),
            }
        }
    }

    /// The server has broken its response off: so does ours.
    fn broken_off(&mut self, failure: &Failure) -> Flow {
        self.reply.abort();
        self.ending.outcome = Outcome::Error;
        self.ending.reason = Some(failure.kind.as_str());
        Flow::Broken
    }

    /// The origin failed before it answered: a stale response if that is allowed, else the fault.
    async fn failed(&mut self, asked: &Asked<'_>, failure: &Failure) -> io::Result<Flow> {
        let detail = failure.kind.as_str();
        if let Some(stored) = asked.usable() {
            return self.instead(asked, stored, None, detail).await;
        }
        let answer = fault::of_failure(failure);
        let status = Status { detail: Some(detail), ..asked.status() };
        self.fault(answer, Outcome::Error, Some(detail), Some(status)).await
    }

    /// Sends what is stored although it is stale, in the place of an error: of the status `answered`, if the origin
    /// answered at all.
    async fn instead(
        &mut self,
        asked: &Asked<'_>,
        stored: &Stored,
        answered: Option<u16>,
        detail: &'static str,
    ) -> io::Result<Flow> {
        let (now, times) = (clock::now(), &stored.object.freshness);
        let over = times.age(now).saturating_sub(times.lifetime).as_secs();
        let ttl = Some(-i64::try_from(over).unwrap_or(i64::MAX));
        let status = Status { forward_status: answered, ttl, detail: Some(detail), ..asked.status() };
        let age = Age::Ours(Some(times.age(now).as_secs()));
        let how = How { outcome: Outcome::Stale, rule: Some(stored.rule), reason: Some(detail), status, age };
        self.stored(stored, &how).await
    }

    /// Sends a stored response without asking anybody.
    async fn hit(
        &mut self,
        stored: &Stored,
        remaining: Remaining,
        outcome: Outcome,
        reason: Option<&'static str>,
    ) -> io::Result<Flow> {
        let status = Status { hit: true, ttl: Some(remaining.ttl), detail: reason, ..Status::default() };
        let age = Age::Ours(Some(remaining.age.as_secs()));
        self.stored(stored, &How { outcome, rule: Some(stored.rule), reason, status, age }).await
    }

    /// Sends a stored response.
    async fn stored(&mut self, stored: &Stored, how: &How) -> io::Result<Flow> {
        let object = &stored.object;
        match precondition(&self.request, &object.head) {
            Precondition::Forward => return Ok(Flow::Pass(Bypass::Precondition)),
            Precondition::NotModified => {
                self.plan.hit = Some(stored.rule);
                self.head(not_modified(&object.head.fields), how, true).await?;
            }
            Precondition::Send => {
                self.plan.hit = Some(stored.rule);
                self.object(object, how).await?;
            }
        }
        Ok(Flow::Done)
    }

    /// Sends a stored response or the part of it that was asked for.
    async fn object(&mut self, object: &Object, how: &How) -> io::Result<()> {
        let mut head = object.head.clone();
        let len = object.body.len;
        let (mut skip, mut left) = (0, len);
        match part(&self.request, &head, len) {
            Part::Whole => {}
            Part::Bytes { first, last } => {
                (skip, left) = (first, last - first + 1);
                head.status = 206;
                head.fields.set(b"Content-Range", format!("bytes {first}-{last}/{len}").as_bytes());
            }
            Part::Unsatisfiable => {
                (skip, left) = (len, 0);
                head.status = 416;
                head.fields.set(b"Content-Range", format!("bytes */{len}").as_bytes());
            }
        }
        let bodyless = self.request.method() == b"HEAD" || head.is_bodyless();
        if !head.is_bodyless() {
            head.fields.set(b"Content-Length", left.to_string().as_bytes());
            head.framing = Framing::Length(left);
        }
        if !self.head(head, how, bodyless).await? || bodyless {
            return Ok(());
        }
        for chunk in &object.body.chunks {
            let size = u64::try_from(chunk.len()).unwrap_or(u64::MAX);
            let from = usize::try_from(skip.min(size)).unwrap_or(chunk.len());
            let to = usize::try_from((skip + left).min(size)).unwrap_or(chunk.len()).max(from);
            if to > from {
                self.reply.data(chunk.slice(from..to)).await?;
            }
            left -= u64::try_from(to - from).unwrap_or(left).min(left);
            skip = skip.saturating_sub(size);
        }
        self.reply.end(None).await
    }

    /// Sends a head after the response rules, with what says how it came about. `false`: no body follows, be it
    /// that a rule has taken it or put another response in the place of this one.
    async fn head(&mut self, mut head: Response, how: &How, bodyless: bool) -> io::Result<bool> {
        let rules = Rules::of(self.snapshot, &self.plan);
        let finish = if matches!(how.age, Age::Ours(_)) { respond::apply_cached } else { respond::apply };
        let finished = finish(&rules, &mut self.plan, self.client, &mut self.request, &mut head, &Bump::new())?;
        if let Some(instead) = finished {
            self.instead_of_response(head, instead).await?;
            return Ok(false);
        }
        if let Age::Ours(Some(age)) = how.age {
            head.fields.append(b"Age", age.to_string().as_bytes());
        }
        respond::say(&how.status, &mut head);
        self.ending = Ending { status: head.status, outcome: how.outcome, reason: how.reason, rule: how.rule };
        self.upload.notice_end().await;
        let head_only = self.request.method() == b"HEAD" || head.is_bodyless();
        if bodyless && !head_only {
            // `set-status` has made it a response with a body: an empty one.
            head.fields.remove(b"Content-Length");
            head.framing = Framing::None;
        }
        self.reply.head(&head, head_only).await?;
        Ok(!head_only && !bodyless)
    }
}

/// The word of a fill whose response is a server's error while something stale may be served instead.
const SERVER_ERROR: &str = "server-error";

/// What a fill said with its head.
struct Arrived {
    freshness: Option<Freshness>,
    stored: bool,
    reason: Option<&'static str>,
    revalidated: bool,
}

/// What a caching rule says about its fills.
fn options(rule: &CacheRule, max_object_size: u64, alone: bool) -> FillOptions {
    let (finish_percent, finish_bytes, abandon) = match rule.fill {
        FillMode::Finish => (0, u64::MAX, false),
        FillMode::Abandon => (100, 0, true),
        FillMode::FinishIf { percent, bytes } => (percent, bytes, false),
    };
    FillOptions { wait: rule.wait.filter(|_| !alone), alone, finish_percent, finish_bytes, abandon, max_object_size }
}
