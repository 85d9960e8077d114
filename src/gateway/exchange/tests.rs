use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::mpsc,
};

use super::*;
use crate::message::Response;

/// What a scripted server does with one request.
enum Answer {
    /// Writes this and waits for the next request.
    Keep(Vec<u8>),
    /// Writes this and closes.
    Close(Vec<u8>),
    /// Writes this and resets.
    Reset(Vec<u8>),
    /// Writes this and is silent.
    Stall(Vec<u8>),
    /// Writes this byte by byte, then closes.
    Drip(Vec<u8>),
}

/// A server with a script for each connection. Sends what it was asked, with the connection's number.
async fn server(scripts: Vec<Vec<Answer>>) -> (ServerAddress, mpsc::UnboundedReceiver<(usize, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (asked, requests) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        for (number, script) in scripts.into_iter().enumerate() {
            let (mut stream, _) = listener.accept().await.unwrap();
            let asked = asked.clone();
            tokio::spawn(async move {
                for answer in script {
                    let mut request = Vec::new();
                    while !request.ends_with(b"\r\n\r\n") {
                        if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
                            return;
                        }
                    }
                    let _ = asked.send((number, request));
                    match answer {
                        Answer::Keep(bytes) => stream.write_all(&bytes).await.unwrap(),
                        Answer::Close(bytes) => return stream.write_all(&bytes).await.unwrap(),
                        Answer::Stall(bytes) => {
                            stream.write_all(&bytes).await.unwrap();
                            std::future::pending::<()>().await;
                        }
                        Answer::Reset(bytes) => {
                            stream.write_all(&bytes).await.unwrap();
                            tokio::time::sleep(Duration::from_millis(30)).await;
                            return stream.set_zero_linger().unwrap();
                        }
                        Answer::Drip(bytes) => {
                            stream.set_nodelay(true).unwrap();
                            for byte in bytes {
                                stream.write_all(&[byte]).await.unwrap();
                                tokio::task::yield_now().await;
                            }
                            return;
                        }
                    }
                }
                // Waits for the other side's end.
                let _ = stream.read_u8().await;
            });
        }
        std::future::pending::<()>().await;
    });
    (ServerAddress::Tcp(address), requests)
}

#[derive(Debug)]
struct Whole {
    interim: Vec<u16>,
    head: Response,
    body: Vec<u8>,
    trailers: Option<Fields>,
}

const TIMEOUTS: ServerTimeouts = ServerTimeouts { connect: Duration::from_secs(2), server: Duration::from_millis(400) };

fn request(method: &str) -> Request {
    let mut request = Request::new(method.as_bytes(), b"/a?b=1");
    request.fields.append(b"Host", b"t.example");
    request
}

async fn exchange(pool: &Pool, server: &ServerAddress, method: &str) -> Result<Whole, Failure> {
    exchange_of(pool, server, &request(method)).await
}

async fn exchange_of(pool: &Pool, server: &ServerAddress, request: &Request) -> Result<Whole, Failure> {
    let mut exchange = Exchange::open(pool, server, &TIMEOUTS, request).await?;
    let mut interim = Vec::new();
    let head = loop {
        match exchange.head().await? {
            Head::Interim(head) => interim.push(head.status),
            Head::Final(head) => break head,
        }
    };
    let mut body = Vec::new();
    loop {
        match exchange.body().await? {
            Piece::Data(data) => {
                assert!(!data.is_empty() && data.len() <= BODY_READ);
                body.extend_from_slice(&data);
            }
            Piece::End(trailers) => return Ok(Whole { interim, head, body, trailers }),
        }
    }
}

/// One exchange with a server that has one answer.
async fn one(answer: Answer) -> Result<Whole, Failure> {
    let (address, _requests) = server(vec![vec![answer]]).await;
    exchange(&Pool::new(), &address, "GET").await
}

fn pooled(pool: &Pool) -> String {
    format!("{pool:?}")
}

#[tokio::test]
async fn request_goes_out_as_it_is() {
    let (address, mut requests) = server(vec![vec![Answer::Keep(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec())]]).await;
    exchange(&Pool::new(), &address, "GET").await.unwrap();
    assert_eq!(requests.recv().await.unwrap().1, b"GET /a?b=1 HTTP/1.1\r\nHost: t.example\r\n\r\n");
}

#[tokio::test]
async fn line_breaks_in_a_request_are_never_sent() {
    let write = |method: &[u8], target: &[u8], name: &[u8], value: &[u8]| {
        let mut request = Request::new(method, target);
        request.fields.append(name, value);
        head::write(&request)
    };
    assert!(write(b"GET", b"/", b"A", b"\tb \xff").is_ok());
    assert!(write(b"GET", b"/a b", b"A", b"b").is_err());
    assert!(write(b"GET", b"/a\r\nX:", b"A", b"b").is_err());
    assert!(write(b"GET", b"", b"A", b"b").is_err());
    assert!(write(b"G ET", b"/", b"A", b"b").is_err());
    assert!(write(b"GET", b"/", b"A:", b"b").is_err());
    assert!(write(b"GET", b"/", b"A\n", b"b").is_err());
    assert!(write(b"GET", b"/", b"", b"b").is_err());
    assert!(write(b"GET", b"/", b"A", b"b\r\nC: d").is_err());
    assert!(write(b"GET", b"/", b"A", b"b\0").is_err());
}

#[tokio::test]
async fn every_framing_is_read_and_reuse_follows_it() {
    let table: &[(&str, &str, Framing, &[u8], bool)] = &[
        ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", Framing::Length(3), b"abc", true),
        ("GET", "HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n", Framing::Length(0), b"", true),
        (
            "GET",
            "HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\nContent-Length: 03\r\n\r\nabc",
            Framing::Length(3),
            b"abc",
            true,
        ),
        (
            "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n",
            Framing::Chunked,
            b"abc",
            true,
        ),
        ("GET", "HTTP/1.1 204 No\r\n\r\n", Framing::None, b"", true),
        ("GET", "HTTP/1.1 304 N\r\nContent-Length: 10\r\n\r\n", Framing::None, b"", true),
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", Framing::None, b"", true),
        ("HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Framing::None, b"", true),
        ("HEAD", "HTTP/1.1 200 OK\r\n\r\n", Framing::None, b"", true),
        (
            "GET",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: x, Close\r\n\r\nabc",
            Framing::Length(3),
            b"abc",
            false,
        ),
        ("GET", "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc", Framing::Length(3), b"abc", false),
        ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcd", Framing::Length(3), b"abc", false),
        ("GET", "HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n", Framing::None, b"", false),
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", Framing::None, b"", false),
    ];
    for (method, wire, framing, body, kept) in table {
        let (address, _requests) = server(vec![vec![Answer::Keep(wire.as_bytes().to_vec())]]).await;
        let pool = Pool::new();
        let whole = exchange(&pool, &address, method).await.unwrap_or_else(|failure| panic!("{wire:?}: {failure:?}"));
        assert_eq!((whole.head.framing, &whole.body[..]), (*framing, *body), "{wire:?}");
        assert!(whole.head.fields.all("content-length").count() <= 1);
        assert_eq!(pooled(&pool), format!("Pool {{ idle: {} }}", usize::from(*kept)), "{wire:?}");
    }
    for field in ["A: b", "Transfer-Encoding: Identity", "Transfer-Encoding: x-what"] {
        let wire = format!("HTTP/1.1 200 OK\r\n{field}\r\n\r\nuntil the end");
        let whole = one(Answer::Close(wire.into_bytes())).await.unwrap();
        assert_eq!((whole.head.framing, &whole.body[..]), (Framing::UntilClose, &b"until the end"[..]), "{field}");
        assert!(!whole.head.fields.has("transfer-encoding"), "{field}");
    }
}

#[tokio::test]
async fn doubtful_heads_are_refused() {
    let table: &[&[u8]] = &[
        b"HTTP/1.1 200 OK\r\nX: a\nSet-Cookie: b=1\r\n\r\n",
        b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        b"HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\r\n folded\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n: v\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX(1): v\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 8\r\n\r\nabcdefgh",
        b"HTTP/1.1 200 OK\r\nContent-Length: 4, 8\r\n\r\nabcdefgh",
        b"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 4,\r\n\r\nabcd",
        b"HTTP/1.1 200 OK\r\nContent-Length: +4\r\n\r\nabcd",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0x4\r\n\r\nabcd",
        b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551617\r\n\r\na",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: identity\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\n",
        b"HTTP/1.1 099 Odd\r\n\r\n",
        b"HTTP/1.1 600 Odd\r\n\r\n",
        b"HTTP/1.1 20 Odd\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.2 200 OK\r\n\r\n",
        b"http/1.1 200 OK\r\n\r\n",
        b"\r\nHTTP/1.1 200 OK\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"\0\0\0\r\n\r\n",
    ];
    for wire in table {
        let failure = one(Answer::Keep(wire.to_vec())).await.expect_err(&wire.escape_ascii().to_string());
        assert_eq!(failure.kind, FailureKind::Protocol, "{}: {}", wire.escape_ascii(), failure.text);
    }
}

#[tokio::test]
async fn heads_beyond_the_limits_are_refused() {
    let long = [b"HTTP/1.1 200 OK\r\nX: ".to_vec(), vec![b'a'; 2 << 20]].concat();
    let many = ["HTTP/1.1 200 OK\r\n", &"X: a\r\n".repeat(5000), "\r\n"].concat().into_bytes();
    let endless = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(5000).into_bytes();
    for wire in [long, many, endless] {
        let (address, _requests) = server(vec![vec![Answer::Stall(wire)]]).await;
        assert_eq!(exchange(&Pool::new(), &address, "GET").await.unwrap_err().kind, FailureKind::Protocol);
    }
}

#[tokio::test]
async fn a_message_cut_at_any_byte_is_truncated() {
    let wires: &[&[u8]] = &[
        b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world",
        b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x\r\n world\r\n0\r\nX-Sum: 1\r\n\r\n",
    ];
    for wire in wires {
        for end in 0..wire.len() {
            let failure = one(Answer::Close(wire[..end].to_vec())).await.expect_err(&format!("cut at {end}"));
            assert_eq!(failure.kind, FailureKind::Truncated, "cut at {end}: {}", failure.text);
        }
        assert_eq!(one(Answer::Drip(wire.to_vec())).await.unwrap().body, b"hello world");
    }
}

#[tokio::test]
async fn a_reset_is_no_end() {
    let failure = one(Answer::Reset(b"HTTP/1.1 200 OK\r\n\r\nhalf".to_vec())).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Truncated);
}

#[tokio::test]
async fn wrong_chunks_end_the_exchange() {
    let wire = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n".to_vec();
    assert_eq!(one(Answer::Keep(wire)).await.unwrap_err().kind, FailureKind::Protocol);
}

#[tokio::test]
async fn interim_responses_come_before_the_final_one() {
    let wire = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na";
    let whole = one(Answer::Keep(wire.to_vec())).await.unwrap();
    assert_eq!((&whole.interim[..], whole.head.status, &whole.body[..]), (&[103, 100][..], 200, &b"a"[..]));
    assert!(!whole.head.fields.has("link"));
}

#[tokio::test]
async fn trailers_stay_apart_from_the_head() {
    let wire = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: 1\r\nContent-Length: 9\r\nSet-Cookie: a=b\r\nTransfer-Encoding: x\r\n\r\n";
    let (address, _requests) = server(vec![vec![Answer::Keep(wire.to_vec())]]).await;
    let pool = Pool::new();
    let whole = exchange(&pool, &address, "GET").await.unwrap();
    let trailers = whole.trailers.unwrap();
    assert_eq!((trailers.len(), trailers.first("x-sum")), (1, Some(&b"1"[..])));
    assert!(!whole.head.fields.has("x-sum") && !whole.head.fields.has("set-cookie"));
    assert_eq!(pooled(&pool), "Pool { idle: 1 }");
}

#[tokio::test]
async fn large_bodies_arrive_whole() {
    let body: Vec<u8> = (0..1_000_000_u32).map(|index| (index % 251) as u8).collect();
    let mut chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for (index, chunk) in body.chunks(30_011).enumerate() {
        let (a, b) = chunk.split_at(if index % 2 == 0 { 7 } else { chunk.len() });
        for piece in [a, b].into_iter().filter(|piece| !piece.is_empty()) {
            chunked.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            chunked.extend_from_slice(piece);
            chunked.extend_from_slice(b"\r\n");
        }
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    let length = [format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes(), &body].concat();
    let until_close = [&b"HTTP/1.1 200 OK\r\n\r\n"[..], &body].concat();
    for wire in [chunked, length, until_close] {
        assert!(one(Answer::Close(wire)).await.unwrap().body == body);
    }
}

#[tokio::test]
async fn connections_are_reused_until_they_are_idle_too_long() {
    let answer = || Answer::Keep(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na".to_vec());
    let (address, mut requests) = server(vec![vec![answer(), answer()], vec![answer()]]).await;
    let pool = Pool::with_timeout(Duration::from_millis(100));
    for _ in 0..2 {
        exchange(&pool, &address, "GET").await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(120)).await;
    exchange(&pool, &address, "GET").await.unwrap();
    let mut connections = Vec::new();
    while let Ok((number, _)) = requests.try_recv() {
        connections.push(number);
    }
    assert_eq!(connections, [0, 0, 1]);
}

#[tokio::test]
async fn an_idle_connection_that_the_server_closed_or_wrote_to_is_not_used() {
    for tail in [&b""[..], b"HTTP/1.1 408 Request Timeout\r\n\r\n"] {
        let answer = || b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na".to_vec();
        let (address, mut requests) =
            server(vec![vec![Answer::Close([answer(), tail.to_vec()].concat())], vec![Answer::Keep(answer())]]).await;
        let pool = Pool::new();
        exchange(&pool, &address, "GET").await.unwrap();
        tokio::time::sleep(Duration::from_millis(30)).await;
        exchange(&pool, &address, "GET").await.unwrap();
        assert_eq!((requests.recv().await.unwrap().0, requests.recv().await.unwrap().0), (0, 1));
    }
}

/// The connection breaks when the second request is there: seen from here, a race that was lost.
#[tokio::test]
async fn a_reused_connection_that_dies_unanswered_is_replaced_once() {
    let answer = || b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na".to_vec();
    for lost in [Answer::Close(Vec::new()), Answer::Reset(Vec::new())] {
        let scripts = vec![vec![Answer::Keep(answer()), lost], vec![Answer::Keep(answer())]];
        let (address, mut requests) = server(scripts).await;
        let pool = Pool::new();
        exchange(&pool, &address, "GET").await.unwrap();
        assert_eq!(exchange(&pool, &address, "GET").await.unwrap().body, b"a");
        let mut next = async || requests.recv().await.unwrap().0;
        assert_eq!((next().await, next().await, next().await), (0, 0, 1));
    }
    // Once a byte is there, or on a fresh connection, it is a failure.
    let scripts = vec![vec![Answer::Keep(answer()), Answer::Close(b"H".to_vec())], vec![Answer::Close(Vec::new())]];
    let (address, _requests) = server(scripts).await;
    let pool = Pool::new();
    exchange(&pool, &address, "GET").await.unwrap();
    assert_eq!(exchange(&pool, &address, "GET").await.unwrap_err().kind, FailureKind::Truncated);
    assert_eq!(exchange(&pool, &address, "GET").await.unwrap_err().kind, FailureKind::Truncated);
}

#[tokio::test]
async fn a_clients_first_post_never_goes_over_a_reused_connection() {
    let answer = || Answer::Keep(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na".to_vec());
    for (first, connection) in [(true, 1), (false, 0)] {
        let (address, mut requests) = server(vec![vec![answer(), answer()], vec![answer()]]).await;
        let pool = Pool::new();
        exchange(&pool, &address, "GET").await.unwrap();
        let mut post = request("POST");
        post.is_first = first;
        exchange_of(&pool, &address, &post).await.unwrap();
        assert_eq!((requests.recv().await.unwrap().0, requests.recv().await.unwrap().0), (0, connection));
    }
}

#[tokio::test]
async fn silence_is_a_timeout() {
    for wire in [&b""[..], b"HTTP/1.1 200", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na"] {
        let failure = one(Answer::Stall(wire.to_vec())).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Timeout, "{}", failure.text);
    }
}

#[tokio::test]
async fn no_connection_is_a_failure_to_connect() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    for server in [ServerAddress::Tcp(address), ServerAddress::Unix("/nonexistent/socket".into())] {
        let failure = exchange(&Pool::new(), &server, "GET").await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Connect);
        assert!(failure.text.starts_with("server "), "{}", failure.text);
    }
}

#[test]
fn an_exchange_may_move_between_threads() {
    fn moves<T: Send>() {}
    fn future_moves<T: Send>(_: impl Fn(&'static mut Exchange) -> T) {}
    moves::<Exchange>();
    moves::<Pool>();
    future_moves(|exchange| exchange.head());
    future_moves(|exchange| exchange.body());
}
