use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    task::JoinHandle,
};

use super::*;
use crate::{
    config::ClientTimeouts,
    gateway::{decide::Pause, fault, upload::Upload},
    message::Response,
    metrics::{FrontendMetrics, Outcome},
    rule::Answer,
};

/// A gateway that answers `/hit` from memory, streams `/stream`, and passes `/pass` to an engine that
/// echoes bodies.
#[derive(Clone, Default)]
struct Fake {
    ended: Arc<std::sync::Mutex<Vec<String>>>,
    engine_only: bool,
}

impl Fake {
    fn note(&self, what: &str, status: u16, traffic: Traffic) {
        let mut ended = self.ended.lock().unwrap();
        ended.push(format!("{what} {status} in {} out {}", traffic.received, traffic.sent));
    }
}

const ENDING: Ending = Ending { status: 200, outcome: Outcome::Pass, reason: None, rule: None };

impl Service for Fake {
    type Plan = ();

    fn metrics(&self) -> Option<Arc<FrontendMetrics>> {
        None
    }
    fn timeouts(&self) -> ClientTimeouts {
        let seconds = Duration::from_secs;
        ClientTimeouts { client: seconds(5), http_request: seconds(10), keep_alive: seconds(60) }
    }
    fn refresh(&mut self) -> bool {
        true
    }
    fn decide(&mut self, _: &Client, _: &mut Request, _: Instant, _: Waited) -> Decided<()> {
        Decided::Made(())
    }
    fn resume(&mut self, _: (), _: Pause, _: &Client, _: &mut Request) -> Decided<()> {
        Decided::Made(())
    }
    fn give_up(&self, _: (), _: &Refusal) {}
    fn buffer(&self) -> usize {
        1024
    }
    fn is_front(&self) -> bool {
        !self.engine_only
    }
    fn answer_from_memory(
        &mut self,
        _plan: &mut (),
        _client: &Client,
        request: &mut Request,
        connection: &[u8],
        wire: &mut Wire,
    ) -> Option<Ending> {
        let body = match request.path() {
            b"/hit" => &b"hit"[..],
            b"/large" => &[b'x'; 100_000],
            _ => return None,
        };
        wire.head.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
        wire.head.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
        wire.head.extend_from_slice(connection);
        wire.head.extend_from_slice(b"\r\n");
        match request.method() {
            b"HEAD" => {}
            _ if body.len() < 1000 => wire.head.extend_from_slice(body),
            _ => wire.body.push(Bytes::from_static(body)),
        }
        Some(ENDING)
    }
    async fn serve<R: Reply, U: Upload>(
        &mut self,
        _plan: (),
        _client: &Client,
        request: Request,
        reply: &mut R,
        _upload: &mut U,
    ) -> Served<()> {
        let mut head = Response::new(200);
        head.fields.append(b"Date", b"x");
        head.framing = Framing::UntilClose;
        match request.path() {
            b"/stream" => {
                reply.interim(&Response::new(103)).await.unwrap();
                reply.head(&head, false).await.unwrap();
                reply.data(Bytes::from_static(b"a")).await.unwrap();
                tokio::time::sleep(Duration::from_secs(1)).await;
                reply.data(Bytes::from_static(b"bc")).await.unwrap();
                reply.end(None).await.unwrap();
            }
            b"/broken" => {
                reply.head(&head, false).await.unwrap();
                reply.data(Bytes::from_static(b"a")).await.unwrap();
                reply.abort();
                return Served::Broken((), ENDING);
            }
            b"/denied" => reply.whole(&head, Bytes::from_static(b"no")).await.unwrap(),
            _ => return Served::Pass((), request),
        }
        Served::Done((), ENDING)
    }
    async fn pass<S: Socket>(&mut self, passed: Passed<(), S>) -> Option<Carrier<S>> {
        let mut carrier = passed.carrier;
        let stall = Duration::from_secs(5);
        let mut body = Vec::new();
        while let Some(data) = carrier.link.body(&mut carrier.incoming.body, stall).await.ok()? {
            body.extend_from_slice(&data);
        }
        let mut head = Response::new(200);
        head.fields.append(b"Date", b"x");
        let mut wire = Wire::default();
        carrier.outgoing.head(&head, Framing::Length(body.len() as u64), false, &mut wire);
        assert!(carrier.outgoing.data(body.into(), &mut wire) && carrier.outgoing.end(None, &mut wire));
        carrier.link.write(&wire.head, &wire.body, stall).await.ok()?;
        Some(carrier)
    }
    fn line(&self, _request: &Request) -> Line {
        None
    }
    fn logs(&self) -> bool {
        false
    }
    fn ended(&mut self, _plan: &mut (), _client: &Client, _line: Line, ending: &Ending, traffic: Traffic) {
        self.note("ended", ending.status, traffic);
    }
    fn left(&mut self, _plan: &mut (), _client: &Client, _line: Line, traffic: Traffic) {
        self.note("left", 0, traffic);
    }
    fn page(&self, refusal: &Refusal) -> Option<Answer> {
        Some(fault::page(refusal.status, refusal.reason))
    }
    fn refused(&mut self, _client: &Client, refusal: &Refusal, traffic: Traffic) {
        self.note("refused", refusal.status, traffic);
    }
}

struct Peer {
    stream: DuplexStream,
    life: Arc<Life>,
    fake: Fake,
    task: JoinHandle<()>,
}

fn connect(fake: Fake) -> Peer {
    let (near, stream) = tokio::io::duplex(1 << 20);
    let life = Arc::new(Life::default());
    let task = tokio::spawn(serve(near, Client::default(), fake.clone(), life.clone()));
    Peer { stream, life, fake, task }
}

impl Peer {
    async fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// What comes until the connection is silent for a moment.
    async fn hear(&mut self) -> String {
        let mut heard = Vec::new();
        loop {
            match tokio::time::timeout(Duration::from_millis(1500), self.stream.read_buf(&mut heard)).await {
                Ok(Ok(0)) => heard.extend_from_slice(b"<end>"),
                Ok(Ok(_)) => continue,
                Ok(Err(_)) | Err(_) => {}
            }
            return String::from_utf8(heard).unwrap();
        }
    }

    async fn ask(&mut self, text: &str) -> String {
        self.send(text).await;
        self.hear().await
    }
}

const HIT: &str = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhit";

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: t\r\n\r\n")
}

#[tokio::test(start_paused = true)]
async fn requests_follow_each_other_on_one_connection() {
    let mut client = connect(Fake::default());
    assert_eq!(client.ask(&get("/hit")).await, HIT);
    assert!(client.life.is_idle());
    assert_eq!(
        client.ask("HEAD /hit HTTP/1.1\r\nHost: t\r\n\r\n").await,
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"
    );
    assert_eq!(client.ask(&get("/denied")).await, "HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length: 2\r\n\r\nno");
    let echo = "HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length: 4\r\n\r\nbody";
    assert_eq!(client.ask("POST /pass HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\n\r\nbody").await, echo);
    assert_eq!(client.ask(&format!("\r\n{}", get("/hit"))).await, HIT);
    let ended = client.fake.ended.lock().unwrap().clone();
    let hit = format!("ended 200 in {} out {}", get("/hit").len(), HIT.len());
    assert_eq!(ended[0], hit);
    assert_eq!(ended.len(), 4, "the engine counts what it answers: {ended:?}");
}

#[tokio::test(start_paused = true)]
async fn pipelined_requests_are_answered_in_order() {
    let mut client = connect(Fake::default());
    let post = "POST /pass HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n";
    let all = [&get("/hit"), &get("/hit"), post, &get("/large"), &get("/denied"), &get("/hit")]
        .map(|text| text.to_owned())
        .concat();
    let heard = client.ask(&all).await;
    let found: Vec<_> = heard.match_indices("\r\n\r\n").map(|(at, _)| &heard[at + 4..at + 6]).collect();
    assert_eq!(found, ["hi", "hi", "bo", "xx", "no", "hi"]);
    assert!(heard.ends_with(HIT));
}

#[tokio::test(start_paused = true)]
async fn a_head_may_come_byte_by_byte() {
    let mut client = connect(Fake::default());
    for byte in get("/hit").bytes() {
        client.stream.write_all(&[byte]).await.unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(client.hear().await, HIT);
}

#[tokio::test(start_paused = true)]
async fn the_head_has_one_deadline() {
    let mut client = connect(Fake::default());
    let start = Instant::now();
    for _ in 0..9 {
        client.send("G").await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let mut heard = String::new();
    while !heard.ends_with("<end>") {
        heard += &client.hear().await;
    }
    assert!(heard.starts_with("HTTP/1.1 408 "), "{heard}");
    assert!(start.elapsed() < Duration::from_secs(14));
    assert_eq!(client.fake.ended.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn silence_ends_a_connection_without_a_word() {
    for (text, answer, seconds) in [("", "", 10), (&*get("/hit"), HIT, 60)] {
        let mut client = connect(Fake::default());
        let start = Instant::now();
        client.send(text).await;
        let mut heard = String::new();
        client.stream.read_to_string(&mut heard).await.unwrap();
        assert_eq!((heard.as_str(), start.elapsed().as_secs()), (answer, seconds));
        client.task.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_later_head_has_its_deadline_from_its_first_byte() {
    let mut client = connect(Fake::default());
    client.ask(&get("/hit")).await;
    tokio::time::sleep(Duration::from_secs(50)).await;
    client.send("GET /hit").await;
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert_eq!(client.ask(" HTTP/1.1\r\nHost: t\r\n\r\n").await, HIT);
    client.send("GET").await;
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert!(client.hear().await.starts_with("HTTP/1.1 408 "));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_refused_and_ends_the_connection() {
    for (text, status) in [
        ("POST /a HTTP/1.1\r\nHost: t\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG", 400),
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/2.0\r\n\r\n", 505),
        ("CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: t\r\n\r\n", 501),
    ] {
        let mut client = connect(Fake::default());
        let heard = client.ask(&format!("{}{text}{}", get("/hit"), get("/hit"))).await;
        let rest = heard.strip_prefix(HIT).unwrap();
        assert!(rest.starts_with(&format!("HTTP/1.1 {status} ")), "{heard}");
        assert!(rest.contains("\r\nConnection: close\r\n") && rest.ends_with("<end>"), "{heard}");
        assert_eq!(rest.matches("HTTP/1.1").count(), 1, "{heard}");
        assert!(client.fake.ended.lock().unwrap()[1].starts_with(&format!("refused {status} ")));
    }
}

#[tokio::test(start_paused = true)]
async fn http_1_0_closes_unless_told_otherwise() {
    let mut client = connect(Fake::default());
    let heard = client.ask("GET /hit HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").await;
    assert_eq!(heard, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\nhit");
    let heard = client.ask("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").await;
    assert_eq!(heard, "HTTP/1.1 200 OK\r\nDate: x\r\nConnection: close\r\n\r\nabc<end>");
    let mut client = connect(Fake::default());
    let heard = client.ask("GET /hit HTTP/1.0\r\n\r\n").await;
    assert!(heard.ends_with("Connection: close\r\n\r\nhit<end>"));
}

#[tokio::test(start_paused = true)]
async fn unknown_lengths_are_chunked_and_a_break_shows() {
    let mut client = connect(Fake::default());
    let heard = client.ask(&get("/stream")).await;
    let interim = "HTTP/1.1 103 Early Hints\r\n\r\n";
    let head = "HTTP/1.1 200 OK\r\nDate: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(heard, format!("{interim}{head}1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"));
    assert_eq!(client.ask(&get("/broken")).await, format!("{head}1\r\na\r\n<end>"));
}

/// Bodies that nobody wants are read over, or end the connection (RFC 9112 §9.3).
#[tokio::test(start_paused = true)]
async fn the_body_of_a_request_answered_here_is_no_request() {
    let mut client = connect(Fake::default());
    let body = get("/hit");
    let post = |length: usize| format!("POST /denied HTTP/1.1\r\nHost: t\r\nContent-Length: {length}\r\n\r\n");
    let heard = client.ask(&format!("{}{body}{}", post(body.len()), get("/hit"))).await;
    assert_eq!(heard, format!("HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length: 2\r\n\r\nno{HIT}"));
    let heard = client.ask(&format!("{}{}", post(1 << 20), get("/hit"))).await;
    assert!(heard.ends_with("Connection: close\r\n\r\nno<end>"), "{heard}");

    let mut client = connect(Fake::default());
    let expects = "POST /denied HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n";
    assert!(client.ask(expects).await.ends_with("Connection: close\r\n\r\nno<end>"));

    let mut client = connect(Fake::default());
    let get = "GET /hit HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\n\r\n123456789";
    assert!(client.ask(get).await.ends_with("\r\n\r\n123456789"), "a body is never answered from memory");
}

#[tokio::test(start_paused = true)]
async fn a_bad_chunk_ends_the_connection() {
    let mut client = connect(Fake::default());
    let post = "POST /denied HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n4;z\nabcd\r\n0\r\n\r\n";
    let heard = client.ask(&format!("{post}{}", get("/hit"))).await;
    assert_eq!(heard.matches("HTTP/1.1").count(), 1);
    assert!(heard.ends_with("no<end>"), "{heard}");
}

#[tokio::test(start_paused = true)]
async fn draining_ends_after_the_request_at_hand() {
    let mut client = connect(Fake::default());
    client.life.draining.store(true, Ordering::Relaxed);
    let heard = client.ask(&get("/hit")).await;
    assert!(heard.ends_with("Connection: close\r\n\r\nhit<end>"), "{heard}");
    let mut client = connect(Fake::default());
    client.life.draining.store(true, Ordering::Relaxed);
    let start = Instant::now();
    assert_eq!(client.hear().await, "<end>");
    assert!(start.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn without_the_front_everything_is_the_engines() {
    let mut client = connect(Fake { engine_only: true, ..Fake::default() });
    let heard = client.ask(&get("/hit")).await;
    assert_eq!(heard, "HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length: 0\r\n\r\n");
}
