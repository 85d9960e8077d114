//! Requests that go through the proxy engine.

use super::*;

/// A server that says what it was sent; returns its address.
async fn server() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut request = Vec::new();
                let answer = loop {
                    if stream.read_buf(&mut request).await.unwrap() == 0 {
                        return;
                    }
                    let text = String::from_utf8_lossy(&request);
                    let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                    let head = head.to_lowercase();
                    let length =
                        head.split_once("content-length: ").map(|(_, rest)| rest.split("\r\n").next().unwrap());
                    let length = length.map(|length| length.parse::<usize>().unwrap());
                    let done = match length {
                        Some(length) => body.len() >= length,
                        None if head.contains("chunked") => body.ends_with("0\r\n\r\n"),
                        None => true,
                    };
                    if done {
                        break format!("{} {}", head.lines().next().unwrap(), body.len());
                    }
                };
                let head = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nConnection: close\r\n";
                let answer = format!("{head}Content-Length: {}\r\n\r\n{answer}", answer.len());
                stream.write_all(answer.as_bytes()).await.unwrap();
            });
        }
    });
    address
}

#[tokio::test]
async fn a_passed_request_goes_through_the_proxy_engine() {
    let (rig, mut sender, _) = client_of(TIMEOUTS, server().await).await;
    let (parts, body, _) = fetch(&mut sender, get("/pass?a=b")).await;
    assert_eq!((parts.status.as_u16(), &body[..]), (200, &b"get /pass?a=b http/1.1 0"[..]));
    assert!(!parts.headers.contains_key("connection"));

    let post = http::Request::post("http://t.example/pass").header("content-length", "300000").body(()).unwrap();
    let (response, mut stream) = sender.send_request(post, false).unwrap();
    let mut left = Bytes::from(vec![b'x'; 300_000]);
    while !left.is_empty() {
        stream.reserve_capacity(left.len());
        let room = std::future::poll_fn(|context| stream.poll_capacity(context)).await.unwrap().unwrap();
        let piece = left.split_to(room.min(left.len()));
        let last = left.is_empty();
        stream.send_data(piece, last).unwrap();
    }
    let (_, body, _) = read(response.await.unwrap()).await.unwrap();
    assert_eq!(body, b"post /pass http/1.1 300000");

    let unsized_post = http::Request::post("http://t.example/pass").body(()).unwrap();
    let (mut response, mut stream) = sender.send_request(unsized_post, false).unwrap();
    stream.send_data(Bytes::from_static(b"abc"), true).unwrap();
    let hints = std::future::poll_fn(|context| match response.poll_informational(context) {
        Poll::Ready(Some(found)) => Poll::Ready(found.unwrap().status()),
        Poll::Ready(None) => panic!("no 103"),
        Poll::Pending => Poll::Pending,
    });
    assert_eq!(hints.await, 103);
    let (_, body, _) = read(response.await.unwrap()).await.unwrap();
    assert!(body.starts_with(b"post /pass http/1.1 "));
    until(|| rig.seen.working.load(Ordering::SeqCst) == 0).await;
}

#[tokio::test]
async fn a_server_that_is_down_is_an_answer_not_a_reset() {
    let (_rig, mut sender, _) = client(TIMEOUTS).await;
    assert_eq!(fetch(&mut sender, get("/pass")).await.0.status, 502);
    assert_eq!(fetch(&mut sender, get("/small")).await.1, b"hello");
}
