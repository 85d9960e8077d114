mod hostile;
mod passing;

use std::{io, sync::atomic::AtomicUsize, task::Poll};

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, Response as HttpResponse};
use pingora::{
    proxy::{HttpProxy, ProxyHttp, Session, http_proxy},
    server::configuration::ServerConf,
    upstreams::peer::HttpPeer,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    net::TcpListener,
    sync::watch,
    task::JoinHandle,
};

use super::*;
use crate::message::{Fields, Framing, Response, Version};

/// What the fake gateway counts.
#[derive(Default)]
struct Seen {
    decided: AtomicUsize,
    refused: AtomicUsize,
    working: AtomicUsize,
    /// Bytes of `/pieces` that were taken off our hands.
    taken: AtomicUsize,
}

/// A gateway that answers by path.
#[derive(Clone)]
struct Fake {
    seen: Arc<Seen>,
    proxy: Arc<HttpProxy<Engine>>,
}

#[derive(Clone, Debug, PartialEq)]
struct FakePlan(String);

/// Counts a request at work.
struct Working(Arc<Seen>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.working.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Service for Fake {
    type Plan = FakePlan;
    type Proxy = HttpProxy<Engine>;

    fn refused(&self, _: &Client, _: u16) {
        self.seen.refused.fetch_add(1, Ordering::SeqCst);
    }

    fn decide(&self, _: &Arc<Client>, request: &mut Request) -> Decided<FakePlan> {
        self.seen.decided.fetch_add(1, Ordering::SeqCst);
        Decided::Made(FakePlan(String::from_utf8(request.path().to_vec()).unwrap()))
    }

    fn resume(&self, plan: FakePlan, _: Pause, _: &mut Request) -> Decided<FakePlan> {
        Decided::Made(plan)
    }

    fn give_up(&self, plan: FakePlan, _: &Refusal) -> FakePlan {
        plan
    }

    fn buffer(&self) -> usize {
        1024
    }

    async fn serve<R: Reply, U: Upload>(
        &self,
        plan: FakePlan,
        request: Request,
        _: &Arc<Client>,
        reply: &mut R,
        _: &mut U,
    ) -> Served<FakePlan> {
        self.seen.working.fetch_add(1, Ordering::SeqCst);
        let _working = Working(Arc::clone(&self.seen));
        if plan.0 == "/pass" {
            return Served::Pass(Box::new((plan, request)));
        }
        match answer(&plan.0, &request, reply, &self.seen).await {
            Ok(()) => Served::Done,
            Err(_) => Served::Broken,
        }
    }

    fn failed(&self, _: FakePlan) {}

    fn proxy(&self) -> &Arc<Self::Proxy> {
        &self.proxy
    }
}

const BIG: usize = 1 << 20;

async fn answer<R: Reply>(path: &str, request: &Request, reply: &mut R, seen: &Seen) -> io::Result<()> {
    let mut head = Response::new(200);
    match path {
        "/small" => {
            head.framing = Framing::Length(5);
            head.fields.append(b"Content-Length", b"5");
            head.fields.append(b"Connection", b"close");
            reply.head(&head, request.method() == b"HEAD").await?;
            if request.method() == b"HEAD" {
                return Ok(());
            }
            reply.data(Bytes::from_static(b"hel")).await?;
            reply.data(Bytes::from_static(b"lo")).await?;
            reply.end(None).await
        }
        "/big" => {
            head.framing = Framing::Chunked;
            reply.head(&head, false).await?;
            for index in 0..BIG / 65_536 {
                reply.data(Bytes::from(vec![u8::try_from(index).unwrap(); 65_536])).await?;
            }
            reply.end(None).await
        }
        "/pieces" => {
            head.framing = Framing::Chunked;
            reply.head(&head, false).await?;
            for _ in 0..BIG / 1024 {
                reply.data(Bytes::from_static(&[b'x'; 1024])).await?;
                seen.taken.fetch_add(1024, Ordering::SeqCst);
            }
            reply.end(None).await
        }
        "/hints" => {
            let mut hints = Response::new(103);
            hints.fields.append(b"Link", b"</a>");
            reply.interim(&hints).await?;
            head.framing = Framing::Chunked;
            reply.head(&head, false).await?;
            reply.data(Bytes::from_static(b"x")).await?;
            reply.end(Some(&Fields::from_iter([("X-Sum", "1"), ("Connection", "x")]))).await
        }
        "/short" => {
            head.framing = Framing::Length(9);
            reply.head(&head, false).await?;
            reply.data(Bytes::from_static(b"abc")).await?;
            reply.abort();
            Ok(())
        }
        "/slow" => std::future::pending().await,
        _ => {
            let mut text = format!("{:?} ", request.framing).into_bytes();
            text.extend_from_slice(request.received_target());
            for field in request.fields.iter() {
                text.extend_from_slice(&[b"|", field.name, b"=", field.value].concat());
            }
            assert_eq!(request.version, Version::Http2);
            head.framing = Framing::Stream;
            reply.head(&head, false).await?;
            reply.data(text.into()).await?;
            reply.end(None).await
        }
    }
}

/// Sends what is passed to one server, and says in a field what plan came along.
struct Engine(std::net::SocketAddr);

#[async_trait]
impl ProxyHttp for Engine {
    type CTX = ();

    fn new_ctx(&self) {}

    async fn upstream_peer(&self, session: &mut Session, (): &mut ()) -> pingora::Result<Box<HttpPeer>> {
        assert_eq!(session.req_header().extensions.get(), Some(&FakePlan("/pass".into())));
        Ok(Box::new(HttpPeer::new(self.0, false, String::new())))
    }
}

struct Rig {
    seen: Arc<Seen>,
    down: watch::Sender<bool>,
    served: JoinHandle<()>,
}

const TIMEOUTS: ClientTimeouts = ClientTimeouts {
    client: Duration::from_millis(500),
    http_request: Duration::from_millis(300),
    keep_alive: Duration::from_secs(5),
};

/// A served connection; returns its client's end.
fn rig(timeouts: ClientTimeouts, server: std::net::SocketAddr) -> (Rig, DuplexStream) {
    let (here, there) = duplex(64 << 10);
    let seen = Arc::new(Seen::default());
    let conf = Arc::new(ServerConf::default());
    let service = Fake { seen: Arc::clone(&seen), proxy: Arc::new(http_proxy(&conf, Engine(server))) };
    let (down, shutdown) = watch::channel(false);
    let served = tokio::spawn(serve(there, service, Arc::new(Client::default()), timeouts, shutdown));
    (Rig { seen, down, served }, here)
}

type Sender = h2::client::SendRequest<Bytes>;

async fn client(timeouts: ClientTimeouts) -> (Rig, Sender, JoinHandle<Result<(), h2::Error>>) {
    client_of(timeouts, "127.0.0.1:1".parse().unwrap()).await
}

async fn client_of(
    timeouts: ClientTimeouts,
    server: std::net::SocketAddr,
) -> (Rig, Sender, JoinHandle<Result<(), h2::Error>>) {
    let (rig, io) = rig(timeouts, server);
    let (sender, connection) = h2::client::handshake(io).await.unwrap();
    (rig, sender, tokio::spawn(connection))
}

fn get(path: &str) -> http::Request<()> {
    http::Request::get(format!("http://T.Example:80{path}")).body(()).unwrap()
}

async fn read(
    response: HttpResponse<RecvStream>,
) -> Result<(http::response::Parts, Vec<u8>, Option<HeaderMap>), h2::Error> {
    let (parts, mut stream) = response.into_parts();
    let mut body = Vec::new();
    while let Some(data) = stream.data().await {
        let data = data?;
        stream.flow_control().release_capacity(data.len())?;
        body.extend_from_slice(&data);
    }
    let trailers = stream.trailers().await?;
    Ok((parts, body, trailers))
}

async fn fetch(sender: &mut Sender, request: http::Request<()>) -> (http::response::Parts, Vec<u8>, Option<HeaderMap>) {
    let (response, _) = sender.send_request(request, true).unwrap();
    read(response.await.unwrap()).await.unwrap()
}

/// Waits until `done`, for a second at most.
async fn until(done: impl Fn() -> bool) {
    for _ in 0..200 {
        if done() {
            return;
        }
        sleep(Duration::from_millis(5)).await;
    }
    panic!("it does not come about");
}

#[tokio::test]
async fn a_request_is_what_http_1_would_have_made_of_it() {
    let (_rig, mut sender, _) = client(TIMEOUTS).await;
    let request = http::Request::get("http://T.Example:80/a?b=%20c")
        .header("cookie", "a=1")
        .header("x-one", "1")
        .header("cookie", "b=2")
        .header("host", "t.example")
        .header("te", "trailers")
        .body(())
        .unwrap();
    let (parts, body, _) = fetch(&mut sender, request).await;
    assert_eq!(parts.status, 200);
    assert_eq!(String::from_utf8(body).unwrap(), "None /a?b=%20c|host=t.example|x-one=1|te=trailers|cookie=a=1; b=2");
}

#[tokio::test]
async fn answers_carry_their_length_and_no_fields_of_a_connection() {
    let (_rig, mut sender, _) = client(TIMEOUTS).await;
    let (parts, body, trailers) = fetch(&mut sender, get("/small")).await;
    assert_eq!((&body[..], trailers), (&b"hello"[..], None));
    assert_eq!(parts.headers.get("content-length").unwrap(), "5");
    assert!(!parts.headers.contains_key("connection"));
    let mut head = get("/small");
    *head.method_mut() = http::Method::HEAD;
    let (parts, body, _) = fetch(&mut sender, head).await;
    assert_eq!((parts.headers.get("content-length").unwrap().as_bytes(), &body[..]), (&b"5"[..], &b""[..]));
}

#[tokio::test]
async fn interim_responses_and_trailers_arrive() {
    let (_rig, mut sender, _) = client(TIMEOUTS).await;
    let (mut response, _) = sender.send_request(get("/hints"), true).unwrap();
    let hints = std::future::poll_fn(|context| response.poll_informational(context)).await.unwrap().unwrap();
    assert_eq!((hints.status().as_u16(), hints.headers().get("link").unwrap().as_bytes()), (103, &b"</a>"[..]));
    let (_, body, trailers) = read(response.await.unwrap()).await.unwrap();
    assert_eq!((&body[..], trailers.unwrap().len()), (&b"x"[..], 1));
}

#[tokio::test]
async fn a_hundred_streams_at_once_are_answered() {
    let (rig, sender, _) = client(TIMEOUTS).await;
    let tasks: Vec<_> = (0..MAX_STREAMS)
        .map(|index| {
            let sender = sender.clone();
            tokio::spawn(async move {
                let path = if index % 2 == 0 { "/small" } else { "/big" };
                let (response, _) = sender.ready().await.unwrap().send_request(get(path), true).unwrap();
                let (_, body, _) = read(response.await.unwrap()).await.unwrap();
                assert_eq!(body.len(), if index % 2 == 0 { 5 } else { BIG });
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(rig.seen.decided.load(Ordering::SeqCst), 100);
}

#[tokio::test]
async fn a_body_waits_for_the_clients_windows() {
    let (_rig, mut sender, _) = client(ClientTimeouts { client: Duration::from_secs(5), ..TIMEOUTS }).await;
    let (response, _) = sender.send_request(get("/big"), true).unwrap();
    let mut stream = response.await.unwrap().into_body();
    let mut body = Vec::new();
    let mut held = 0;
    while let Some(data) = stream.data().await {
        let data = data.unwrap();
        body.extend_from_slice(&data);
        held += data.len();
        assert!(held <= 65_535);
        if held > 60_000 {
            sleep(Duration::from_millis(2)).await;
            stream.flow_control().release_capacity(held).unwrap();
            held = 0;
        }
    }
    assert_eq!(body.len(), BIG);
    assert!(body.chunks(65_536).enumerate().all(|(index, chunk)| chunk.iter().all(|&byte| usize::from(byte) == index)));
}

#[tokio::test]
async fn a_client_that_takes_nothing_loses_its_stream_only() {
    let (_rig, mut sender, _) = client(TIMEOUTS).await;
    let (response, _) = sender.send_request(get("/big"), true).unwrap();
    let mut stalled = response.await.unwrap().into_body();
    // Reads what the first window holds and gives none of it back.
    let error = loop {
        match stalled.data().await.unwrap() {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR));
    drop(stalled);
    assert_eq!(fetch(&mut sender, get("/small")).await.1, b"hello");
}

#[tokio::test]
async fn a_response_broken_off_is_seen_as_such() {
    let (_rig, mut sender, _) = client(TIMEOUTS).await;
    let (response, _) = sender.send_request(get("/short"), true).unwrap();
    let error = match response.await {
        Ok(response) => read(response).await.unwrap_err(),
        Err(error) => error,
    };
    assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR));
}

#[tokio::test]
async fn a_client_that_resets_stops_the_work() {
    let (rig, mut sender, _) = client(TIMEOUTS).await;
    let (_response, mut slow) = sender.send_request(get("/slow"), true).unwrap();
    let (response, mut big) = sender.send_request(get("/big"), true).unwrap();
    let mut stream = response.await.unwrap().into_body();
    assert!(stream.data().await.unwrap().is_ok());
    drop(stream);
    until(|| rig.seen.working.load(Ordering::SeqCst) == 2).await;
    slow.send_reset(Reason::CANCEL);
    big.send_reset(Reason::CANCEL);
    until(|| rig.seen.working.load(Ordering::SeqCst) == 0).await;
    assert_eq!(fetch(&mut sender, get("/small")).await.1, b"hello");
}

#[tokio::test]
async fn requests_cancelled_now_and_then_do_no_harm() {
    let (rig, mut sender, _) = client(TIMEOUTS).await;
    for _ in 0..300 {
        let (_, mut stream) = sender.send_request(get("/slow"), true).unwrap();
        let decided = rig.seen.decided.load(Ordering::SeqCst);
        until(|| rig.seen.decided.load(Ordering::SeqCst) > decided).await;
        stream.send_reset(Reason::CANCEL);
        for _ in 0..2 {
            fetch(&mut sender, get("/small")).await;
        }
    }
}

#[tokio::test]
async fn shutdown_finishes_what_has_begun() {
    let (rig, mut sender, connection) = client(TIMEOUTS).await;
    let (response, _) = sender.send_request(get("/big"), true).unwrap();
    let response = response.await.unwrap();
    rig.down.send(true).unwrap();
    sleep(Duration::from_millis(20)).await;
    assert_eq!(read(response).await.unwrap().1.len(), BIG);
    connection.await.unwrap().unwrap();
    rig.served.await.unwrap();
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_a_busy_one_is_not() {
    let (rig, mut sender, connection) =
        client(ClientTimeouts { keep_alive: Duration::from_millis(100), ..TIMEOUTS }).await;
    let (_response, mut slow) = sender.send_request(get("/slow"), true).unwrap();
    sleep(Duration::from_millis(400)).await;
    assert!(!rig.served.is_finished());
    slow.send_reset(Reason::CANCEL);
    timeout(Duration::from_secs(1), rig.served).await.unwrap().unwrap();
    drop(sender);
    connection.await.unwrap().unwrap();
}
