//! HTTP/2 towards clients: a loop of our own over the h2 crate, a task for each stream, and the
//! hand-over of a stream to the proxy engine.

mod body;
mod budget;
mod downstream;
mod meter;
mod reply;
mod request;
mod upload;

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use h2::{Reason, RecvStream, server::SendResponse};
use pingora::{apps::HttpServerApp, protocols::http::ServerSession, server::ShutdownWatch};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{sleep, timeout},
};

pub use self::reply::H2Reply;
use self::{
    body::H2Body,
    budget::{Budget, Portion},
    downstream::Downstream,
    meter::{Gauge, Meter},
    reply::Outlet,
    upload::H2Upload,
};
use super::{
    decide::{Decided, Pause},
    fault::{self, Fault},
    h1::parse::Refusal,
    reply::Reply,
    upload::{Broken, Upload},
};
use crate::{config::ClientTimeouts, message::Request, rule::Client};

/// Streams that a client may have open (RFC 9113 §5.1.2).
const MAX_STREAMS: u32 = 100;
/// Largest header list, in the measure of RFC 9113 §6.5.2.
const MAX_HEADER_LIST: u32 = 64 << 10;
/// What a client may send of a body before it is read; of all bodies of a connection.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;
/// Bytes of one response waiting for the socket.
const SEND_BUFFER: usize = 64 << 10;
/// Bytes of all responses of a connection waiting for the socket.
const SEND_BUDGET: u32 = 256 << 10;
/// Resets and malformed requests that never end a connection; beyond them, they must be the lesser
/// part of its requests (RFC 9113 §10.5).
const STRIKES: u32 = 100;
/// How long a connection that is to close may take to say goodbye.
const LINGER: Duration = Duration::from_secs(2);
/// The shortest time between two looks at a connection that works.
const TICK: Duration = Duration::from_millis(10);

/// How a request ended for the connection that carried it.
#[derive(Debug)]
pub enum Served<P> {
    /// The reply is complete.
    Done,
    /// The client is gone, or the reply was broken off.
    Broken,
    /// Nothing has been sent: the proxy engine is to answer, with this plan and request.
    Pass(Box<(P, Request)>),
}

/// What connections of every protocol need of the gateway.
pub trait Service: Clone + Send + Sync + 'static {
    /// What has been decided about a request; it travels to the proxy engine in the request's extensions.
    type Plan: Clone + Send + Sync + 'static;
    /// The proxy engine.
    type Proxy: HttpServerApp + Send + Sync + 'static;

    /// Counts a request that could not be read, and was answered with `status`.
    fn refused(&self, client: &Client, status: u16);

    /// Counts the request and runs its rules.
    fn decide(&self, client: &Arc<Client>, request: &mut Request) -> Decided<Self::Plan>;

    /// Goes on with a decision, now that there is more of the body in `request`.
    fn resume(&self, plan: Self::Plan, pause: Pause, request: &mut Request) -> Decided<Self::Plan>;

    /// Ends a decision whose request turns out to be none.
    fn give_up(&self, plan: Self::Plan, refusal: &Refusal) -> Self::Plan;

    /// Most bytes of a body that are read before the decision.
    fn buffer(&self) -> usize;

    /// Answers the request, or says that the proxy engine must; nothing of the body has been taken then.
    fn serve<R: Reply, U: Upload>(
        &self,
        plan: Self::Plan,
        request: Request,
        client: &Arc<Client>,
        reply: &mut R,
        upload: &mut U,
    ) -> impl Future<Output = Served<Self::Plan>> + Send;

    /// Counts a request that could not be handed to the proxy engine, and was answered with 500.
    fn failed(&self, plan: Self::Plan);

    /// The engine for requests that are passed.
    fn proxy(&self) -> &Arc<Self::Proxy>;
}

/// What the streams of a connection have in common.
struct Streams {
    /// Tasks at work.
    active: AtomicU32,
    /// Requests so far.
    opened: AtomicU32,
    /// Streams that the client reset, or whose request was malformed.
    strikes: AtomicU32,
    /// Told when a stream ends.
    gauge: Arc<Gauge>,
    /// What their responses may have waiting for the socket.
    budget: Budget,
}

impl Streams {
    fn new(gauge: Arc<Gauge>) -> Self {
        let budget = Budget::new(SEND_BUDGET, Arc::clone(&gauge));
        Self { active: AtomicU32::new(0), opened: AtomicU32::new(0), strikes: AtomicU32::new(0), gauge, budget }
    }

    /// Counts a request; `false` when too many of them have been broken.
    fn admit(&self) -> bool {
        let opened = self.opened.fetch_add(1, Ordering::Relaxed) + 1;
        let strikes = self.strikes.load(Ordering::Relaxed);
        let admitted = strikes <= STRIKES || strikes <= opened / 2;
        self.active.fetch_add(u32::from(admitted), Ordering::Relaxed);
        admitted
    }

    fn is_idle(&self) -> bool {
        self.active.load(Ordering::Relaxed) == 0
    }

    /// Waits until the client has taken too long for a request, or for the rest of one.
    async fn overdue(&self, timeouts: ClientTimeouts) {
        loop {
            let opened = self.opened.load(Ordering::Relaxed) > 0;
            let limit = if opened { timeouts.keep_alive } else { timeouts.http_request };
            let mut left = limit.saturating_sub(self.gauge.quiet());
            if !self.is_idle() {
                left = left.max(LINGER.min(limit)).max(TICK);
            }
            if let Some(age) = self.gauge.head_age() {
                left = left.min(timeouts.http_request.saturating_sub(age));
            }
            if left.is_zero() {
                return;
            }
            // A head that begins meanwhile has a time of its own.
            let _ = timeout(left, self.gauge.head.notified()).await;
        }
    }

    /// Waits until a client that is to leave has had the time for it.
    async fn farewell(&self) {
        loop {
            sleep(LINGER).await;
            if self.is_idle() && self.gauge.quiet() >= LINGER {
                return;
            }
        }
    }
}

/// Serves HTTP/2 on `io`, whose client has chosen it by ALPN or will send its preface (RFC 9113 §3.4),
/// until the connection ends: by the client, for want of a request (the first within `timeouts.http_request`,
/// others within `timeouts.keep_alive` of the last stream's end, whatever else is sent), for a header block
/// that takes longer than `timeouts.http_request`, by abuse, or after `shutdown` when the last stream has been
/// answered.
pub async fn serve<IO, S>(
    io: IO,
    service: S,
    client: Arc<Client>,
    timeouts: ClientTimeouts,
    mut shutdown: ShutdownWatch,
) where
    IO: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    S: Service,
{
    let gauge = Gauge::new();
    let handshake = builder().handshake::<_, Portion>(Meter::new(io, Arc::clone(&gauge)));
    let Ok(Ok(mut connection)) = timeout(timeouts.http_request, handshake).await else { return };
    let streams = Arc::new(Streams::new(Arc::clone(&gauge)));
    let mut overdue = pin!(streams.overdue(timeouts));
    let mut farewell = pin!(streams.farewell());
    let mut draining = false;
    let abused = loop {
        tokio::select! {
            biased;
            () = down(&mut shutdown), if !draining => {
                connection.graceful_shutdown();
                draining = true;
            }
            () = gauge.flood.notified() => break true,
            accepted = connection.accept() => {
                let Some(Ok((request, respond))) = accepted else { break false };
                if !streams.admit() {
                    break true;
                }
                let stream = Stream {
                    service: service.clone(),
                    client: Arc::clone(&client),
                    timeouts,
                    shutdown: shutdown.clone(),
                    streams: Arc::clone(&streams),
                };
                stream.open(request, respond);
            }
            () = &mut overdue, if !draining => {
                connection.graceful_shutdown();
                draining = true;
            }
            () = &mut farewell, if draining => return,
        }
    };
    if abused {
        connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
        let _ = timeout(LINGER, std::future::poll_fn(|context| connection.poll_closed(context))).await;
    }
}

/// Waits until the process is to end.
async fn down(shutdown: &mut ShutdownWatch) {
    // Nobody left who could say so means the same.
    let _ = shutdown.wait_for(|&down| down).await;
}

fn builder() -> h2::server::Builder {
    let mut builder = h2::server::Builder::new();
    builder
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADER_LIST)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buffer_size(SEND_BUFFER)
        .max_concurrent_reset_streams(50)
        .max_pending_accept_reset_streams(20)
        .max_local_error_reset_streams(Some(STRIKES as usize));
    builder
}

/// One request on its way, counted as active as long as it lives.
struct Stream<S> {
    service: S,
    client: Arc<Client>,
    timeouts: ClientTimeouts,
    shutdown: ShutdownWatch,
    streams: Arc<Streams>,
}

impl<S: Service> Stream<S> {
    /// Reads the request and gives it a task of its own.
    fn open(self, request: http::Request<RecvStream>, respond: SendResponse<Portion>) {
        let (parts, body) = request.into_parts();
        let outlet = Outlet::new(respond, self.streams.budget.clone());
        match request::convert(&parts, body.is_end_stream(), self.client.tls.is_some()) {
            Ok(request) => {
                let continues = parts.headers.contains_key(http::header::EXPECT) && !body.is_end_stream();
                tokio::spawn(self.run(request, body, continues, outlet));
            }
            Err(status) => {
                self.streams.strikes.fetch_add(1, Ordering::Relaxed);
                self.service.refused(&self.client, status);
                let mut head = http::Response::new(());
                *head.status_mut() = http::StatusCode::from_u16(status).unwrap_or(http::StatusCode::BAD_REQUEST);
                // Nobody is left to tell.
                let _ = outlet.head(head, true);
            }
        }
    }

    async fn run(self, mut request: Request, body: RecvStream, continues: bool, outlet: Outlet) {
        let (mut body, mut continues) = (H2Body::new(body), continues);
        let plan = tokio::select! {
            biased;
            plan = self.decide(&mut request, &mut body, &mut continues, &outlet) => plan,
            _ = outlet.closed() => None,
        };
        let Some(plan) = plan else { return self.strike(&outlet) };
        let mut reply = H2Reply::new(outlet.clone(), self.timeouts.client);
        let mut upload = H2Upload::new(body, outlet.clone(), continues, self.timeouts.client);
        let served = tokio::select! {
            biased;
            served = self.service.serve(plan, request, &self.client, &mut reply, &mut upload) => served,
            _ = outlet.closed() => Served::Broken,
        };
        match served {
            Served::Done => {}
            Served::Broken => {
                self.strike(&outlet);
                reply.abort();
            }
            Served::Pass(passed) => {
                let (plan, request) = *passed;
                let (to, limit) = (outlet.clone(), self.timeouts.client);
                let (body, continues) = upload.into_body();
                match Downstream::new(plan, &request, body, to, &self.client, limit, continues) {
                    Ok(session) => {
                        let session = ServerSession::new_custom(Box::new(session));
                        // The engine looks for a client's departure only where it reads or writes.
                        tokio::select! {
                            biased;
                            _ = self.service.proxy().process_new_http(session, &self.shutdown) => {}
                            _ = outlet.closed() => {}
                        }
                        self.strike(&outlet);
                    }
                    Err(plan) => {
                        let page = fault::page(Fault::INTERNAL.status, Fault::INTERNAL.sentence());
                        // A failure is the client's departure.
                        let _ = reply.whole(&page.head, page.body).await;
                        self.service.failed(plan);
                    }
                }
            }
        }
    }

    /// Decides what becomes of the request, with as much of its body as that takes; `None` when the client leaves.
    async fn decide(
        &self,
        request: &mut Request,
        body: &mut H2Body,
        continues: &mut bool,
        outlet: &Outlet,
    ) -> Option<S::Plan> {
        let most = self.service.buffer();
        if !body.is_done() {
            request.ahead = body.peek(most).await;
        }
        let mut decided = self.service.decide(&self.client, request);
        loop {
            let (plan, pause) = match decided {
                Decided::Made(plan) => return Some(plan),
                Decided::Paused(plan, pause) => (plan, pause),
            };
            if std::mem::take(continues) {
                let mut head = http::Response::new(());
                *head.status_mut() = http::StatusCode::CONTINUE;
                outlet.interim(head).ok()?;
            }
            match body.read_ahead(pause.wait, most).await {
                Ok(ahead) => request.ahead = ahead,
                Err(Broken::Malformed(refusal)) => return Some(self.service.give_up(plan, &refusal)),
                Err(Broken::Client(error)) if error.kind() == std::io::ErrorKind::TimedOut => {
                    return Some(self.service.give_up(plan, &Refusal::new(408, "the body took too long")));
                }
                Err(Broken::Client(_)) => return None,
            }
            decided = self.service.resume(plan, pause, request);
        }
    }

    /// Counts a stream that the client has reset.
    fn strike(&self, outlet: &Outlet) {
        if outlet.is_reset() {
            self.streams.strikes.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl<S> Drop for Stream<S> {
    fn drop(&mut self) {
        self.streams.gauge.moves();
        self.streams.active.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
