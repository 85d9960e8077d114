//! The proxy engine's side: what pingora's `HttpProxy` asks on its way from a request to a server.
//!
//! Rules have run before; the plan comes along in the request's extensions. Here it is only carried
//! out: the server chosen, the head rewritten, the response edited, the end counted.

use std::{io, sync::Arc};

use async_trait::async_trait;
use bumpalo::Bump;
use bytes::Bytes;
use pingora::{
    Error, ErrorSource, ErrorType, Result,
    http::{RequestHeader, ResponseHeader},
    protocols::http::ServerSession,
    proxy::{FailToProxy, ProxyHttp, Session, http_proxy},
    server::configuration::ServerConf,
    upstreams::peer::{HttpPeer, HttpUpstreamRequestPolicy},
};
use pingora::{modules::http::HttpModules, proxy::HttpProxy};

use super::{
    deliver::{self, Served},
    fault::{self, Fault},
    forward,
    h1::downstream::response_of,
    hop,
    job::{Handover, Job},
    log::{CLIENT_GONE, CLOSED, Ending, RESPONSE_RULE, Traffic},
    pages,
    plan::Route,
    reply::Reply,
    respond::{self, Instead, Rules},
    upload::NoUpload,
    worker::Worker,
};
use crate::{
    config::{Backend, Server, ServerAddress},
    message::{Fields, Framing, Request, Response},
    metrics::Outcome,
};

/// Servers tried for one request that none of them has seen.
const MAX_TRIES: usize = 3;

/// The engine with our filters. Each worker has its own, with its own connections to servers.
pub type Engine = HttpProxy<Gate>;

/// A new engine for a worker.
pub fn engine(worker: Worker) -> Arc<Engine> {
    Arc::new(http_proxy(&Arc::new(ServerConf::default()), Gate { worker }))
}

/// The header that the engine sees of a request: start line and `Host`, the job in its extensions.
/// What servers get is built from the job when a server has been reached.
///
/// # Errors
/// The job, when the engine cannot represent its request: a target of 64 KiB and more.
pub fn header(job: Job) -> Result<RequestHeader, Box<Job>> {
    match outline(&job) {
        Ok(mut header) => {
            header.extensions_mut().insert(Handover::new(job));
            Ok(header)
        }
        Err(_) => Err(Box::new(job)),
    }
}

fn outline(job: &Job) -> Result<RequestHeader> {
    let mut target = Vec::new();
    job.request.write_target(&mut target);
    let mut header = RequestHeader::build(job.request.method(), &target, Some(4))?;
    header.insert_header(http::header::HOST, job.request.host())?;
    if job.upgrade {
        header.insert_header(http::header::UPGRADE, "websocket")?;
    }
    Ok(header)
}

/// Our filters.
pub struct Gate {
    worker: Worker,
}

/// What the filters know of one request.
#[derive(Debug, Default)]
pub struct Exchange {
    job: Option<Job>,
    ending: Option<Ending>,
    /// What a response rule has put in the place of the server's response.
    instead: Option<(Response, Instead)>,
    tries: usize,
    server: Option<String>,
}

impl Exchange {
    fn job(&mut self) -> Result<&mut Job> {
        self.job.as_mut().ok_or_else(|| Error::explain(ErrorType::InternalError, "a request without its plan"))
    }

    fn backend(&self) -> Option<&Backend> {
        let job = self.job.as_ref()?;
        job.snapshot.backend(job.plan.backend?)
    }

    /// Says in the log what a server did wrong, as fills do.
    fn complain(&self, kind: &str, error: &Error) {
        let backend = self.backend().map_or("-", |backend| &backend.name);
        let server = self.server.as_deref().unwrap_or("-");
        tracing::error!(backend, kind, "server {server}: {}", fault::of_connection(error));
    }

    /// Counts in the backend's series.
    fn count(&self, count: impl FnOnce(&crate::metrics::BackendMetrics)) {
        let job = self.job.as_ref();
        if let Some(state) = job.and_then(|job| job.snapshot.backend_state(job.plan.backend?)) {
            count(&state.metrics);
        }
    }
}

#[async_trait]
impl ProxyHttp for Gate {
    type CTX = Exchange;

    fn new_ctx(&self) -> Exchange {
        Exchange::default()
    }

    fn init_downstream_modules(&self, _modules: &mut HttpModules) {
        // None: what clients get is what servers sent and rules made of it.
    }

    async fn request_filter(&self, session: &mut Session, ctx: &mut Exchange) -> Result<bool> {
        let handover = session.req_header().extensions.get::<Handover>().cloned();
        ctx.job = handover.as_ref().and_then(Handover::take);
        let job = ctx.job()?;
        let mut reply = SessionReply { session };
        if matches!(job.plan.route, Route::Pass(_)) {
            return deliver::hint(&mut job.plan, &mut reply)
                .await
                .map(|()| false)
                .map_err(|_| Error::new_down(ErrorType::WriteError));
        }
        // `tune.front off`: nothing was answered before the engine.
        let (plan, request) = (job.plan.clone(), job.request.clone());
        match deliver::serve(&self.worker, &job.snapshot, &job.client, plan, request, &mut reply, &mut NoUpload).await {
            Served::Done(plan, ending) => {
                job.plan = *plan;
                ctx.ending = Some(ending);
            }
            Served::Broken(plan, ending) => {
                job.plan = *plan;
                ctx.ending = Some(ending);
                session.downstream_session.shutdown().await;
            }
            Served::Pass(passed) => {
                (job.plan, job.request) = *passed;
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn upstream_peer(&self, _session: &mut Session, ctx: &mut Exchange) -> Result<Box<HttpPeer>> {
        let Job { snapshot, plan, .. } = ctx.job()?;
        let picked = plan.backend.and_then(|id| Some((snapshot.backend(id)?, snapshot.pick(id)?)));
        let Some((backend, (place, server))) = picked else {
            return Err(Error::explain(ErrorType::HTTPStatus(503), "the backend has no server"));
        };
        let peer = peer(backend, server)?;
        plan.notes.progress.server = u32::try_from(place).ok();
        ctx.server = Some(match &server.address {
            ServerAddress::Tcp(address) => address.to_string(),
            ServerAddress::Unix(path) => path.display().to_string(),
        });
        ctx.tries += 1;
        ctx.count(|metrics| metrics.requests.add(1));
        Ok(Box::new(peer))
    }

    fn fail_to_connect(
        &self,
        _session: &mut Session,
        _peer: &HttpPeer,
        ctx: &mut Exchange,
        mut error: Box<Error>,
    ) -> Box<Error> {
        ctx.count(|metrics| metrics.error("connect"));
        ctx.complain("connect", &error);
        // Nothing was sent, so another server can take any request.
        let servers = ctx.backend().map_or(0, |backend| backend.servers.len());
        error.set_retry(ctx.tries < servers.min(MAX_TRIES));
        error
    }

    fn error_while_proxy(
        &self,
        _peer: &HttpPeer,
        session: &mut Session,
        mut error: Box<Error>,
        ctx: &mut Exchange,
        reused: bool,
    ) -> Box<Error> {
        if *error.esource() == ErrorSource::Upstream {
            let kind = Fault::of(&error).map_or("truncated", |fault| fault.reason);
            ctx.count(|metrics| metrics.error(kind));
            ctx.complain(kind, &error);
        }
        let again = session.req_header().method.is_idempotent() && !session.as_ref().retry_buffer_truncated();
        if again {
            error.retry.decide_reuse(reused);
        } else {
            error.set_retry(false);
        }
        error
    }

    async fn upstream_request_filter(
        &self,
        _session: &mut Session,
        upstream_request: &mut RequestHeader,
        ctx: &mut Exchange,
    ) -> Result<()> {
        let job = ctx.job()?;
        let mut head = forward::for_pass(&job.request);
        let Job { snapshot, plan, client, request, .. } = job;
        forward::add_unique_id(snapshot, plan, client, request, &mut head);
        *upstream_request = upstream_header(&head, job.request.framing, job.upgrade)?;
        Ok(())
    }

    async fn response_filter(
        &self,
        session: &mut Session,
        upstream_response: &mut ResponseHeader,
        ctx: &mut Exchange,
    ) -> Result<()> {
        if upstream_response.status.is_informational() {
            return Ok(());
        }
        framed(upstream_response)?;
        let mut response = response_of(upstream_response, false);
        strip_hop_by_hop(&mut response);
        let job = ctx.job()?;
        let Job { snapshot, plan, client, request, .. } = job;
        plan.notes.progress.answered_after(0, plan.started);
        match respond::passed(&self.worker.shared, snapshot, plan, client, request, &mut response) {
            Ok(None) => {}
            Ok(Some(instead)) => {
                ctx.instead = Some((response, instead));
                return Err(Error::explain(ErrorType::ConnectionClosed, "a rule answers").into_down());
            }
            Err(_) => {
                ctx.ending = Some(ending(ctx, 0, Outcome::Refused, Some(CLOSED)));
                return Err(Error::explain(ErrorType::ConnectionClosed, "a rule closes the connection").into_down());
            }
        }
        let bodyless = session.req_header().method == http::Method::HEAD;
        *upstream_response = response_header(&response, bodyless)?;
        Ok(())
    }

    async fn fail_to_proxy(&self, session: &mut Session, error: &Error, ctx: &mut Exchange) -> FailToProxy {
        if let Some((head, instead)) = ctx.instead.take() {
            ctx.ending = Some(ending(ctx, head.status, instead.outcome, Some(RESPONSE_RULE)));
            answer(session, &head, instead.body).await;
            return FailToProxy { error_code: head.status, can_reuse_downstream: false };
        }
        let Some(fault) = Fault::of(error) else {
            ctx.ending = ctx.ending.take().or_else(|| Some(ending(ctx, 0, Outcome::Pass, Some(CLIENT_GONE))));
            return FailToProxy { error_code: 0, can_reuse_downstream: false };
        };
        let started = session.response_written().is_some_and(|head| !head.status.is_informational());
        let status = session.response_written().filter(|_| started).map_or(fault.status, |head| head.status.as_u16());
        ctx.ending = Some(ending(ctx, status, fault.outcome, Some(fault.reason)));
        if !started {
            let ours = fault::page(fault.status, fault.sentence());
            let page = match &ctx.job {
                Some(Job { snapshot, plan, .. }) => pages::instead_of(snapshot, plan.frontend, plan.backend, ours),
                None => Some(ours),
            };
            if let Some(mut page) = page {
                if let Some(Job { snapshot, plan, client, request, .. }) = &mut ctx.job {
                    let rules = Rules::of_answer(snapshot, plan);
                    // An answer of our own meets no rule that closes the connection.
                    let _ = respond::apply(&rules, plan, client, request, &mut page.head, &Bump::new());
                    respond::say_passed(plan, Some(fault.reason), &mut page.head);
                }
                answer(session, &page.head, page.body).await;
            }
        }
        FailToProxy { error_code: fault.status, can_reuse_downstream: false }
    }

    async fn logging(&self, session: &mut Session, error: Option<&Error>, ctx: &mut Exchange) {
        let status = session.response_written().map_or(0, |head| head.status.as_u16());
        let ending = ctx.ending.take().unwrap_or_else(|| {
            let reason = match ctx.job.as_ref().map(|job| &job.plan.route) {
                _ if error.is_some() => Some(CLIENT_GONE),
                Some(Route::Pass(bypass)) => Some(bypass.as_str()),
                _ => None,
            };
            ending(ctx, status, Outcome::Pass, reason)
        });
        let Some(job) = ctx.job.take() else { return };
        let traffic = Traffic {
            received: session.body_bytes_read() as u64,
            sent: session.body_bytes_sent() as u64,
            duration: job.received.elapsed(),
        };
        job.ended(&ending, traffic);
    }

    fn suppress_error_log(&self, _session: &Session, _ctx: &Exchange, _error: &Error) -> bool {
        true
    }

    fn allow_spawning_subrequest(&self, _session: &Session, _ctx: &Exchange) -> bool {
        false
    }
}

fn ending(ctx: &Exchange, status: u16, outcome: Outcome, reason: Option<&'static str>) -> Ending {
    let rule = ctx.job.as_ref().and_then(|job| job.plan.rule());
    Ending { status, outcome, reason, rule }
}

/// Sends a response of our own. A failure is the client's departure.
async fn answer(session: &mut Session, head: &Response, body: Bytes) {
    let mut reply = SessionReply { session };
    if reply.whole(head, body).await.is_ok() {
        let _ = session.downstream_session.finish_body().await;
    }
}

/// Where a server is and how long it may take. Addresses were resolved at load: names are never
/// looked up here.
fn peer(backend: &Backend, server: &Server) -> Result<HttpPeer> {
    let mut peer = match &server.address {
        ServerAddress::Tcp(address) => HttpPeer::new(*address, false, String::new()),
        ServerAddress::Unix(path) => {
            let path = path.to_str().ok_or_else(|| Error::explain(ErrorType::SocketError, "path is not UTF-8"))?;
            HttpPeer::new_uds(path, false, String::new())?
        }
    };
    let timeouts = &backend.timeouts;
    peer.options.connection_timeout = Some(timeouts.connect);
    peer.options.total_connection_timeout = Some(timeouts.connect);
    peer.options.read_timeout = Some(timeouts.server);
    peer.options.write_timeout = Some(timeouts.server);
    peer.options.idle_timeout = Some(timeouts.server);
    // The head is built by us, without anything that is for one connection only.
    peer.options.http_upstream_request_policy = HttpUpstreamRequestPolicy::preserve();
    Ok(peer)
}

/// Whether it is beyond doubt where a response ends (RFC 9112 §6.1): a coding is `chunked` alone and once. The
/// engine has already taken away a length beside it (§6.3).
fn framed(response: &ResponseHeader) -> Result<()> {
    let mut codings = response.headers.get_all(http::header::TRANSFER_ENCODING).iter();
    let Some(coding) = codings.next() else { return Ok(()) };
    let doubtful = codings.next().is_some()
        || !coding.as_bytes().eq_ignore_ascii_case(b"chunked")
        || response.version < http::Version::HTTP_11;
    if doubtful {
        return Err(Error::explain(ErrorType::InvalidHTTPHeader, "its framing is in doubt").into_up());
    }
    Ok(())
}

/// The head that a server gets, with the framing of the request's body.
fn upstream_header(head: &Request, framing: Framing, upgrade: bool) -> Result<RequestHeader> {
    let mut target = Vec::new();
    head.write_target(&mut target);
    let mut header = RequestHeader::build(head.method(), &target, Some(head.fields.len() + 2))?;
    for field in head.fields.iter().filter(|field| !field.is("content-length")) {
        header.append_header(Bytes::copy_from_slice(field.name), field.value)?;
    }
    match framing {
        Framing::Length(length) => header.insert_header("Content-Length", length.to_string())?,
        Framing::Chunked | Framing::Stream | Framing::UntilClose => {
            header.insert_header("Transfer-Encoding", "chunked")?;
        }
        Framing::None => {}
    }
    if upgrade {
        header.insert_header("Connection", "Upgrade")?;
        header.insert_header("Upgrade", "websocket")?;
    }
    Ok(header)
}

/// A response of ours as the engine carries it. A body of unknown length is marked as chunked: the
/// client's writer turns that into what the client understands.
pub fn response_header(response: &Response, bodyless: bool) -> Result<ResponseHeader> {
    let mut header = ResponseHeader::build(response.status, Some(response.fields.len() + 1))?;
    header.set_reason_phrase(Some(response.reason()))?;
    let bodyless = bodyless || matches!(response.status, 204 | 304) || response.status < 200;
    for field in response.fields.iter() {
        header.append_header(Bytes::copy_from_slice(field.name), field.value)?;
    }
    match response.framing {
        Framing::Length(length) if !response.fields.has("content-length") => {
            header.insert_header("Content-Length", length.to_string())?;
        }
        Framing::None if !bodyless => header.insert_header("Content-Length", "0")?,
        Framing::Chunked | Framing::UntilClose | Framing::Stream if !bodyless => {
            header.insert_header("Transfer-Encoding", "chunked")?;
        }
        _ => {}
    }
    Ok(header)
}

/// Takes away what a server said to us alone; a 101 keeps what it switches to.
fn strip_hop_by_hop(response: &mut Response) {
    let upgrade = response.fields.first("upgrade").filter(|_| response.status == 101).map(<[u8]>::to_vec);
    hop::strip(&mut response.fields);
    if let Some(protocol) = upgrade {
        response.fields.append(b"Upgrade", &protocol);
    }
}

/// The writer of replies over a session of the engine, whichever protocol is under it.
pub struct SessionReply<'s> {
    session: &'s mut Session,
}

impl SessionReply<'_> {
    fn session(&mut self) -> &mut ServerSession {
        &mut self.session.downstream_session
    }

    fn head_only(&self) -> bool {
        self.session.req_header().method == http::Method::HEAD
    }
}

fn broken(error: Box<Error>) -> io::Error {
    io::Error::other(error)
}

impl Reply for SessionReply<'_> {
    async fn interim(&mut self, head: &Response) -> io::Result<()> {
        let header = response_header(head, true).map_err(broken)?;
        self.session().write_response_header(Box::new(header)).await.map_err(broken)
    }

    async fn head(&mut self, head: &Response, bodyless: bool) -> io::Result<()> {
        let bodyless = bodyless || self.head_only();
        let header = response_header(head, bodyless).map_err(broken)?;
        self.session().write_response_header(Box::new(header)).await.map_err(broken)?;
        if bodyless {
            self.session().write_response_body(Bytes::new(), true).await.map_err(broken)?;
        }
        Ok(())
    }

    async fn data(&mut self, data: Bytes) -> io::Result<()> {
        self.session().write_response_body(data, false).await.map_err(broken)
    }

    async fn end(&mut self, trailers: Option<&Fields>) -> io::Result<()> {
        let Some(trailers) = trailers else {
            return self.session().write_response_body(Bytes::new(), true).await.map_err(broken);
        };
        let mut map = http::HeaderMap::new();
        for field in trailers.iter() {
            let name = http::HeaderName::from_bytes(field.name);
            if let (Ok(name), Ok(value)) = (name, http::HeaderValue::from_bytes(field.value)) {
                map.append(name, value);
            }
        }
        self.session().write_response_trailers(map).await.map_err(broken)
    }

    fn abort(&mut self) {
        // The caller reports the break, and the session is shut down then.
    }
}
