//! The loop of one HTTP/1 connection: a head, a decision, an answer, and again.
//!
//! What memory can answer costs one read and one write and touches nothing that other threads write.
//! Pipelined requests are answered in order; small answers to what has arrived together leave together.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Buf;
use tokio::time::Instant;

use super::{
    link::{HEAD_ROOM, Link, Socket},
    parse::{self, Refusal, Terms},
    reply::Http1Reply,
    service::{Carrier, Passed, Served, Service, Waited},
    upload::Http1Upload,
    write::{self, Incoming, Outgoing, Wire},
};
use crate::{
    gateway::{
        decide::Decided,
        log::{Ending, Line, Traffic},
        reply::Reply,
        upload::Broken,
    },
    message::{Framing, Request, Version},
    rule::Client,
};

#[cfg(test)]
mod tests;

/// Most bytes of answers that wait for each other before they are sent.
const BATCH: usize = 64 * 1024;

/// How long, and for how many bytes, a client may go on sending after its last response.
const LINGER: (usize, Duration) = (256 * 1024, Duration::from_secs(1));

/// What a connection shows to those who close it.
#[derive(Debug, Default)]
pub struct Life {
    idle: AtomicBool,
    draining: Arc<AtomicBool>,
}

impl Life {
    /// A connection that ends after its request once `draining` is set.
    pub fn new(draining: Arc<AtomicBool>) -> Self {
        Self { idle: AtomicBool::new(false), draining }
    }

    /// Whether the connection waits for a request and can be closed without harm.
    pub fn is_idle(&self) -> bool {
        self.idle.load(Ordering::Relaxed)
    }

    /// Whether connections are to end.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Says whether the connection waits for a request.
    pub fn set_idle(&self, idle: bool) {
        self.idle.store(idle, Ordering::Relaxed);
    }
}

/// Serves a connection to its end.
pub async fn serve<S: Socket, V: Service>(socket: S, client: Client, service: V, life: Arc<Life>) {
    let link = Link::new(socket, service.metrics());
    let deadline = Instant::now() + service.timeouts().http_request;
    let connection = Connection {
        client,
        service,
        life,
        request: Request::default(),
        wire: Wire::default(),
        deadline,
        received_mark: 0,
        settled: Instant::now(),
        begun: None,
        is_first: true,
    };
    connection.run(link).await;
}

struct Connection<V> {
    client: Client,
    service: V,
    life: Arc<Life>,
    /// The request at hand; its room is reused.
    request: Request,
    /// Answers that are not sent yet; its room is reused.
    wire: Wire,
    /// When the head that is awaited must be complete, or begun.
    deadline: Instant,
    /// What the link had received when the last request ended, less what was read ahead.
    received_mark: u64,
    /// When the last response had ended, or the handshake.
    settled: Instant,
    /// When the head at hand began; `None`: it was there when the last request ended, or nobody asks.
    begun: Option<Instant>,
    /// Whether no request has come yet.
    is_first: bool,
}

/// What waiting for a head came to.
enum Awaited {
    Head(Terms, usize),
    Refused(Refusal),
    Left,
}

impl<V: Service> Connection<V> {
    async fn run<S: Socket>(mut self, mut link: Link<S>) {
        loop {
            let (mut terms, size) = match self.head(&mut link).await {
                Awaited::Head(terms, size) => (terms, size),
                Awaited::Refused(refusal) => return self.refuse(link, refusal).await,
                Awaited::Left => return,
            };
            let received = Instant::now();
            link.inbox_mut().advance(size);
            let stays = self.service.refresh();
            self.request.is_first = std::mem::take(&mut self.is_first);
            let waited = self.waited(received);
            let decided = self.decide(&link, received, waited);
            let Some(mut plan) = self.decided(&mut link, decided, &mut terms, received).await else { return };
            let keep = stays && terms.keep_alive && !self.life.is_draining();
            let waiting = self.wire.len();
            if let Some(ending) = self.answer_from_memory(&mut plan, terms.version, keep) {
                let sent = self.wire.len().saturating_sub(waiting) as u64;
                if !self.deliver(&mut link, &mut plan, &ending, keep, (received, sent)).await {
                    return;
                }
                continue;
            }
            match self.exchange(link, plan, terms, keep, received).await {
                Some(back) => link = back,
                None => return,
            }
        }
    }

    fn decide<S: Socket>(&mut self, link: &Link<S>, received: Instant, waited: Waited) -> Decided<V::Plan> {
        if self.request.framing != Framing::None
            && let Ok(ahead) = link.peek(self.request.framing, self.service.buffer())
        {
            // A mistake in it is found again by whoever takes it.
            self.request.ahead = ahead;
        }
        self.service.decide(&self.client, &mut self.request, received, waited)
    }

    /// Brings a decision to its end, and the body that it waits for; `None` when the client leaves.
    async fn decided<S: Socket>(
        &mut self,
        link: &mut Link<S>,
        mut decided: Decided<V::Plan>,
        terms: &mut Terms,
        received: Instant,
    ) -> Option<V::Plan> {
        loop {
            let (mut plan, pause) = match decided {
                Decided::Made(plan) => return Some(plan),
                Decided::Paused(plan, pause) => (plan, pause),
            };
            let of = (self.request.framing, &mut *terms);
            let (most, stall) = (self.service.buffer(), self.service.timeouts().client);
            let read = match self.send(link).await {
                Ok(()) => link.read_ahead(of, pause.wait, most, stall).await,
                Err(error) => Err(Broken::Client(error)),
            };
            let refusal = match read {
                Ok(ahead) => {
                    self.request.ahead = ahead;
                    decided = self.service.resume(plan, pause, &self.client, &mut self.request);
                    continue;
                }
                Err(Broken::Malformed(refusal)) => refusal,
                Err(Broken::Client(error)) if error.kind() == io::ErrorKind::TimedOut => {
                    Refusal::new(408, "the body took too long")
                }
                Err(Broken::Client(_)) => {
                    let traffic = Traffic { received: self.taken(link), sent: 0, duration: received.elapsed() };
                    let line = self.service.line(&self.request);
                    self.service.left(&mut plan, &self.client, line, traffic);
                    return None;
                }
            };
            terms.keep_alive = false;
            return Some(self.service.give_up(plan, &refusal));
        }
    }

    /// How long the head was waited for.
    fn waited(&mut self, received: Instant) -> Waited {
        let Some(begun) = self.begun.take() else { return Waited::default() };
        let millis = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        let idle = millis(begun.saturating_duration_since(self.settled));
        Waited { idle, head: millis(received.saturating_duration_since(begun)) }
    }

    fn answer_from_memory(&mut self, plan: &mut V::Plan, version: Version, keep: bool) -> Option<Ending> {
        if self.request.framing != Framing::None || !self.service.is_front() {
            return None;
        }
        let connection = write::connection_line(version, keep);
        let Self { service, client, request, wire, .. } = self;
        service.answer_from_memory(plan, client, request, connection, wire)
    }

    /// Waits for a whole head, answering nothing in between but what is due.
    async fn head<S: Socket>(&mut self, link: &mut Link<S>) -> Awaited {
        let (mut begun, mut skipped) = (false, false);
        loop {
            if !skipped && link.inbox().starts_with(b"\r\n") {
                // RFC 9112 §2.2: one empty line before a request is forgiven.
                link.inbox_mut().advance(2);
                skipped = true;
                continue;
            }
            match parse::parse(link.inbox(), self.client.tls.is_some(), &mut self.request) {
                Ok(Some((terms, size))) => return Awaited::Head(terms, size),
                Ok(None) => {}
                Err(refusal) => return Awaited::Refused(refusal),
            }
            if self.send(link).await.is_err() {
                return Awaited::Left;
            }
            if let Some(awaited) = self.more(link, &mut begun).await {
                return awaited;
            }
        }
    }

    /// Reads until it is worth while to parse again.
    async fn more<S: Socket>(&mut self, link: &mut Link<S>, begun: &mut bool) -> Option<Awaited> {
        loop {
            let had = link.inbox().len();
            if had > 0 && !std::mem::replace(begun, true) && self.received_mark > 0 {
                self.deadline = Instant::now() + self.service.timeouts().http_request;
            }
            let last = had == 0 && self.life.is_draining();
            if last {
                // A socket that was just accepted has not been looked at: what it holds is to be answered.
                tokio::task::yield_now().await;
            }
            let until = if last { Instant::now() } else { self.deadline };
            self.life.set_idle(had == 0);
            let read = link.fill(HEAD_ROOM, Some(until)).await;
            self.life.set_idle(false);
            match read {
                Ok(1..) if had == 0 && self.service.logs() => self.begun = Some(Instant::now()),
                Ok(1..) => {}
                Err(error) if error.kind() == io::ErrorKind::TimedOut && had > 0 => {
                    return Some(Awaited::Refused(Refusal::new(408, "the head took too long")));
                }
                _ => return Some(Awaited::Left),
            }
            let new = link.inbox().get(had..).unwrap_or_default();
            if had == 0 || memchr::memchr(b'\n', new).is_some() {
                return None;
            }
            if let Some(refusal) = parse::too_long(link.inbox()) {
                return Some(Awaited::Refused(refusal));
            }
        }
    }

    /// Sends an answer from memory, or leaves it for the next one to follow.
    async fn deliver<S: Socket>(
        &mut self,
        link: &mut Link<S>,
        plan: &mut V::Plan,
        ending: &Ending,
        keep: bool,
        (received, sent): (Instant, u64),
    ) -> bool {
        let more_waits = keep && !link.inbox().is_empty() && self.wire.body.is_empty() && self.wire.head.len() < BATCH;
        let alive = more_waits || self.send(link).await.is_ok();
        let now = Instant::now();
        self.deadline = now + self.service.timeouts().keep_alive;
        let traffic = Traffic { received: self.taken(link), sent, duration: now - received };
        let line = self.service.line(&self.request);
        self.service.ended(plan, &self.client, line, ending, traffic);
        self.settled = now;
        if alive && !keep {
            link.linger(LINGER.0, LINGER.1).await;
        }
        alive && keep
    }

    /// Sends what waits.
    async fn send<S: Socket>(&mut self, link: &mut Link<S>) -> io::Result<()> {
        if self.wire.is_empty() {
            return Ok(());
        }
        let stall = self.service.timeouts().client;
        let written = link.write(&self.wire.head, &self.wire.body, stall).await;
        self.wire.clear();
        link.settle();
        written
    }

    /// Bytes received since the last request, without what belongs to the next.
    fn taken<S: Socket>(&mut self, link: &Link<S>) -> u64 {
        let mark = link.received() - link.inbox().len() as u64;
        mark - std::mem::replace(&mut self.received_mark, mark)
    }

    /// Answers what memory could not. `None`: the connection is used up.
    async fn exchange<S: Socket>(
        &mut self,
        mut link: Link<S>,
        mut plan: V::Plan,
        terms: Terms,
        keep: bool,
        received: Instant,
    ) -> Option<Link<S>> {
        let line = self.service.line(&self.request);
        if self.send(&mut link).await.is_err() {
            // The answers before this one did not arrive; this request has been counted all the same.
            let traffic = Traffic { received: self.taken(&link), sent: 0, duration: received.elapsed() };
            self.service.left(&mut plan, &self.client, line, traffic);
            return None;
        }
        let request = std::mem::take(&mut self.request);
        if !self.service.is_front() {
            return self.pass(link, plan, request, (terms, keep), line, received).await;
        }
        let (mut incoming, sent) = (Incoming::new(request.framing, terms), link.sent());
        let stall = self.service.timeouts().client;
        let (reader, writer) = link.split();
        let mut reply = Http1Reply::new(writer, &mut self.wire, Outgoing::new(terms, keep), stall);
        // Unless whoever answers says otherwise.
        reply.persist(incoming.is_drainable());
        let mut upload = Http1Upload::new(reader, &mut incoming, stall);
        let (mut plan, ending, outgoing) =
            match self.service.serve(plan, &self.client, request, &mut reply, &mut upload).await {
                Served::Done(plan, ending) => (plan, ending, reply.finish()),
                Served::Broken(plan, ending) => (plan, ending, reply.break_off()),
                Served::Pass(plan, request) => {
                    return self.pass(link, plan, request, (terms, keep), line, received).await;
                }
            };
        let duration = received.elapsed();
        let traffic = Traffic { received: self.taken(&link), sent: link.sent() - sent, duration };
        self.service.ended(&mut plan, &self.client, line, &ending, traffic);
        self.settled = received + duration;
        self.follow_up(Carrier { link, incoming, outgoing }).await
    }

    /// Lends the connection to the proxy engine.
    async fn pass<S: Socket>(
        &mut self,
        link: Link<S>,
        plan: V::Plan,
        request: Request,
        (terms, keep): (Terms, bool),
        line: Line,
        received: Instant,
    ) -> Option<Link<S>> {
        let incoming = Incoming::new(request.framing, terms);
        let carrier = Carrier { link, incoming, outgoing: Outgoing::new(terms, keep) };
        let passed = Passed { plan, client: self.client.clone(), request, terms, line, received, carrier };
        let back = self.service.pass(passed).await?;
        self.taken(&back.link);
        self.settled = Instant::now();
        self.follow_up(back).await
    }

    /// Makes a connection ready for the next request after a response; `None` when there is no next one.
    async fn follow_up<S: Socket>(&mut self, carrier: Carrier<S>) -> Option<Link<S>> {
        let Carrier { mut link, mut incoming, outgoing } = carrier;
        link.settle();
        if !outgoing.is_complete() || !link.is_sound() {
            return None;
        }
        if !outgoing.keeps_alive() || !incoming.drain(&mut link).await {
            link.linger(LINGER.0, LINGER.1).await;
            return None;
        }
        link.shrink();
        self.deadline = Instant::now() + self.service.timeouts().keep_alive;
        Some(link)
    }

    /// Answers a request that could not be read, and closes.
    async fn refuse<S: Socket>(mut self, mut link: Link<S>, refusal: Refusal) {
        let terms = Terms {
            version: Version::Http11,
            keep_alive: false,
            expects_continue: false,
            upgrade: false,
            head_only: false,
        };
        if self.send(&mut link).await.is_err() {
            return;
        }
        let (start, sent) = (Instant::now(), link.sent());
        link.inbox_mut().clear();
        let stall = self.service.timeouts().client;
        let mut reply = Http1Reply::new(link.split().1, &mut self.wire, Outgoing::new(terms, false), stall);
        let answered = match self.service.page(&refusal) {
            Some(page) => reply.whole(&page.head, page.body).await,
            None => Ok(()),
        };
        let traffic = Traffic { received: self.taken(&link), sent: link.sent() - sent, duration: start.elapsed() };
        self.service.refused(&self.client, &refusal, traffic);
        if answered.is_ok() {
            link.linger(LINGER.0, LINGER.1).await;
        }
    }
}
