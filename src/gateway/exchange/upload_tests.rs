//! Bodies on their way up, against a server that is driven by hand.

use std::collections::VecDeque;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{uplink::MAX_KEPT, *};
use crate::gateway::h1::parse::Refusal;

/// What a client says, in order.
enum Says {
    Piece(&'static [u8]),
    Nothing,
    Leaves,
    Nonsense,
}

struct Script(VecDeque<Says>);

impl Upload for Script {
    fn awaits_continue(&self) -> bool {
        false
    }

    fn continued(&mut self) {}

    fn is_done(&self) -> bool {
        self.0.is_empty()
    }

    fn is_drainable(&self) -> bool {
        true
    }

    fn poll_data(&mut self, _: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Broken>> {
        match self.0.front() {
            None => Poll::Ready(Ok(None)),
            Some(Says::Nothing) => Poll::Pending,
            Some(Says::Piece(piece)) => {
                let piece = Bytes::from_static(piece);
                self.0.pop_front();
                Poll::Ready(Ok(Some(piece)))
            }
            Some(Says::Leaves) => Poll::Ready(Err(Broken::Client(io::ErrorKind::UnexpectedEof.into()))),
            Some(Says::Nonsense) => Poll::Ready(Err(Broken::Malformed(Refusal::new(400, "no chunk")))),
        }
    }

    fn poll_gone(&mut self, _: &mut Context<'_>, _: bool) -> Poll<()> {
        Poll::Pending
    }
}

const LIMIT: Duration = Duration::from_millis(400);

/// An exchange under way, what its client says, and the server's end.
async fn begun(framing: Framing, says: impl IntoIterator<Item = Says>) -> (Exchange, Script, TcpStream, Pool) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = ServerAddress::Tcp(listener.local_addr().unwrap());
    let mut request = Request::new(b"POST", b"/a");
    request.framing = framing;
    let (pool, timeouts) = (Pool::new(), ServerTimeouts { connect: LIMIT, server: LIMIT });
    let exchange = Exchange::open(&pool, &address, &timeouts, &request).await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();
    read_until(&mut server, b"\r\n\r\n").await;
    (exchange, Script(says.into_iter().collect()), server, pool)
}

async fn read_until(server: &mut TcpStream, end: &[u8]) -> Vec<u8> {
    let mut seen = Vec::new();
    while !seen.ends_with(end) {
        assert_ne!(server.read_buf(&mut seen).await.unwrap(), 0, "{}", String::from_utf8_lossy(&seen));
    }
    seen
}

fn idle(pool: &Pool) -> String {
    format!("{pool:?}")
}

#[tokio::test]
async fn a_body_goes_up_in_its_framing() {
    for (framing, wire) in
        [(Framing::Length(5), &b"abcde"[..]), (Framing::Chunked, b"2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n")]
    {
        let (mut exchange, mut script, mut server, pool) =
            begun(framing, [Says::Piece(b"ab"), Says::Piece(b"cde")]).await;
        let answering = async {
            assert_eq!(read_until(&mut server, wire).await, wire);
            server.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.unwrap();
        };
        let (head, ()) = tokio::join!(exchange.head_beside(&mut script), answering);
        assert!(matches!(head, Ok(Head::Final(head)) if head.status == 200));
        assert_eq!(idle(&pool), "Pool { idle: 1 }", "{framing:?}");
    }
}

#[tokio::test]
async fn an_early_answer_comes_down_and_the_body_goes_on() {
    let says = [Says::Piece(b"ab"), Says::Nothing];
    let (mut exchange, mut script, mut server, pool) = begun(Framing::Length(5), says).await;
    server.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").await.unwrap();
    assert!(matches!(exchange.head_beside(&mut script).await, Ok(Head::Final(_))));
    assert!(matches!(exchange.body_beside(&mut script).await, Ok(Piece::Data(data)) if data == "hi"));
    assert_eq!(idle(&pool), "Pool { idle: 0 }", "its connection is in use");
    script.0 = [Says::Piece(b"cde")].into();
    exchange.conclude(&mut script).await;
    assert_eq!(read_until(&mut server, b"e").await, b"abcde");
    assert_eq!(idle(&pool), "Pool { idle: 1 }");
}

#[tokio::test]
async fn a_server_that_stops_reading_has_its_answer_heard() {
    let piece: &[u8] = Vec::leak(vec![b'x'; 8 << 20]);
    let (mut exchange, mut script, mut server, pool) =
        begun(Framing::Length(8 << 20), [Says::Piece(piece), Says::Nothing]).await;
    server.write_all(b"HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\nno").await.unwrap();
    drop(server);
    // The reset may overtake the answer, as on any connection (RFC 9112 §9.6).
    match exchange.head_beside(&mut script).await {
        Ok(Head::Final(head)) => assert_eq!(head.status, 413),
        Err(Trouble::Server(failure)) => assert_eq!(failure.kind, FailureKind::Truncated),
        other => panic!("{other:?}"),
    }
    exchange.conclude(&mut script).await;
    assert_eq!(idle(&pool), "Pool { idle: 0 }");
}

#[tokio::test]
async fn only_the_servers_silence_counts() {
    // It is the client's turn for as long as it likes here.
    let (mut exchange, mut script, _server, _) = begun(Framing::Length(5), [Says::Piece(b"ab"), Says::Nothing]).await;
    let waited = timeout(2 * LIMIT, exchange.head_beside(&mut script)).await;
    assert!(waited.is_err(), "{waited:?}");
    // All is up: the server's turn.
    script.0 = [Says::Piece(b"cde")].into();
    let head = exchange.head_beside(&mut script).await;
    assert!(matches!(head, Err(Trouble::Server(failure)) if failure.kind == FailureKind::Timeout));
    // A server that takes nothing is silent, too.
    let piece: &[u8] = Vec::leak(vec![b'x'; 32 << 20]);
    let (mut exchange, mut script, _server, _) = begun(Framing::Length(32 << 20), [Says::Piece(piece)]).await;
    let head = exchange.head_beside(&mut script).await;
    assert!(matches!(head, Err(Trouble::Server(failure)) if failure.kind == FailureKind::Timeout));
}

#[tokio::test]
async fn a_client_that_breaks_off_is_told_from_a_server() {
    for (says, malformed) in [(Says::Leaves, false), (Says::Nonsense, true)] {
        let (mut exchange, mut script, _server, _) = begun(Framing::Chunked, [Says::Piece(b"ab"), says]).await;
        match exchange.head_beside(&mut script).await {
            Err(Trouble::Client(broken)) => assert_eq!(matches!(broken, Broken::Malformed(_)), malformed),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_repeatable_request_goes_up_again_when_its_connection_was_closed() {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = ServerAddress::Tcp(listener.local_addr().unwrap());
    let (pool, timeouts) = (Pool::new(), ServerTimeouts { connect: LIMIT, server: LIMIT });
    let ask = async |method: &[u8], body: &'static [u8]| {
        let mut request = Request::new(method, b"/a");
        request.framing = Framing::Chunked;
        let mut exchange = Exchange::open(&pool, &address, &timeouts, &request).await?;
        exchange.head_beside(&mut Script([Says::Piece(body)].into())).await
    };
    for (method, size, again) in [(&b"PUT"[..], 3, true), (b"PUT", MAX_KEPT + 1, false), (b"POST", 3, false)] {
        let body: &[u8] = Vec::leak(vec![b'x'; size]);
        let serving = async {
            let (mut server, _) = listener.accept().await.unwrap();
            read_until(&mut server, b"0\r\n\r\n").await;
            server.write_all(answer).await.unwrap();
            read_until(&mut server, b"\r\n\r\n").await;
            drop(server);
            if again {
                let (mut server, _) = listener.accept().await.unwrap();
                let whole = read_until(&mut server, b"0\r\n\r\n").await;
                assert!(whole.ends_with(b"\r\n\r\n3\r\nxxx\r\n0\r\n\r\n"), "{}", String::from_utf8_lossy(&whole));
                server.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").await.unwrap();
            }
        };
        let asking = async {
            ask(b"PUT", b"x").await.unwrap();
            ask(method, body).await
        };
        let (head, ()) = tokio::join!(asking, serving);
        match head {
            Ok(Head::Final(_)) => assert!(again),
            Err(Trouble::Server(failure)) => assert!(!again && failure.kind == FailureKind::Truncated),
            other => panic!("{other:?}"),
        }
    }
}
