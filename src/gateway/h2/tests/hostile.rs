//! Clients that break rules, or mean harm.

use super::*;

#[tokio::test]
async fn rapid_resets_end_the_connection() {
    let (rig, mut sender, connection) = client(TIMEOUTS).await;
    let mut sent = 0;
    for _ in 0..10_000 {
        let Ok(ready) = sender.clone().ready().await else { break };
        sender = ready;
        let Ok((_, mut stream)) = sender.send_request(get("/slow"), true) else { break };
        sent += 1;
        tokio::task::yield_now().await;
        stream.send_reset(Reason::CANCEL);
    }
    let error = connection.await.unwrap().unwrap_err();
    assert!(error.is_go_away() && error.reason() == Some(Reason::ENHANCE_YOUR_CALM), "{error:?}");
    rig.served.await.unwrap();
    assert!(sent < 1_000 && rig.seen.decided.load(Ordering::SeqCst) < 1_000);
    until(|| rig.seen.working.load(Ordering::SeqCst) == 0).await;
}

#[tokio::test]
async fn a_preface_has_a_deadline() {
    let (rig, mut io) = rig(TIMEOUTS, "127.0.0.1:1".parse().unwrap());
    io.write_all(b"PRI * HTTP/2.0\r\n").await.unwrap();
    timeout(Duration::from_secs(1), rig.served).await.unwrap().unwrap();
}

/// A frame of this kind on a stream.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A header block of literals.
fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    fields.iter().flat_map(|(name, value)| [vec![0], text(name), text(value)].concat()).collect()
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Sends raw frames; returns what comes back for stream 1: a status, or a reset's or goodbye's code.
async fn raw(frames: &[u8]) -> (Rig, Result<u16, u32>) {
    let (rig, mut io) = rig(TIMEOUTS, "127.0.0.1:1".parse().unwrap());
    io.write_all(&[PREFACE, frames].concat()).await.unwrap();
    loop {
        let mut head = [0; 9];
        io.read_exact(&mut head).await.unwrap();
        let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
        io.read_exact(&mut payload).await.unwrap();
        let code = |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().unwrap());
        match head[3] {
            // The status is indexed, or a literal with an indexed name.
            1 => return (rig, Ok(status(&payload))),
            3 => return (rig, Err(code(0))),
            7 => return (rig, Err(code(4))),
            _ => {}
        }
    }
}

/// `:status` as its first field: 200 and 400 are in the static table, others a literal whose digits
/// are Huffman-coded, 0 to 2 in five bits, 3 to 9 in six (RFC 7541, appendices A and B).
fn status(block: &[u8]) -> u16 {
    match block[0] {
        0x88 => return 200,
        0x8c => return 400,
        _ => {}
    }
    let digits = &block[2..2 + usize::from(block[1] & 0x7f)];
    let mut bits = digits.iter().fold(0_u32, |bits, &byte| bits << 8 | u32::from(byte)) << (32 - 8 * digits.len());
    let mut digit = || {
        let (digit, length) = if bits >> 27 <= 2 { (bits >> 27, 5) } else { ((bits >> 26) - 0x16, 6) };
        bits <<= length;
        digit
    };
    u16::try_from(digit() * 100 + digit() * 10 + digit()).unwrap()
}

type Fields<'a> = Vec<(&'a str, &'a str)>;

/// The usual pseudo-fields with one of them replaced.
fn with<'a>(name: &'a str, value: &'a str) -> Fields<'a> {
    let usual = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "t.example")];
    usual.into_iter().map(|(usual, given)| if usual == name { (name, value) } else { (usual, given) }).collect()
}

fn and<'a>(more: &[(&'a str, &'a str)]) -> Fields<'a> {
    [with("", ""), more.to_vec()].concat()
}

#[tokio::test]
async fn malformed_requests_are_refused() {
    let malformed = Err(1);
    let table: Vec<(Fields<'_>, Result<u16, u32>)> = vec![
        (with("", ""), Ok(200)),
        (with(":path", "/a b"), malformed),
        (with(":path", "/a\r\nX: b"), malformed),
        (with(":path", "a"), malformed),
        (with(":path", ""), malformed),
        (with(":path", "*"), Ok(400)),
        (with(":path", "http://t.example/"), malformed),
        (with(":path", "/a\\b"), Ok(400)),
        (with(":path", "/a\\b"), Ok(400)),
        (with(":path", "/\u{e9}"), Ok(400)),
        (with(":method", "GET /x HTTP/1.1"), malformed),
        (with(":method", "CONNECT"), malformed),
        (vec![(":method", "CONNECT"), (":authority", "t.example:22")], Ok(501)),
        (with(":scheme", "http://e/?"), malformed),
        (with(":scheme", "ftp"), Ok(400)),
        (with(":authority", "u@t.example"), Ok(400)),
        (with(":authority", "a,b"), Ok(400)),
        (with(":authority", "t.example:99999"), Ok(400)),
        (vec![(":method", "GET"), (":scheme", "http"), (":path", "/")], Ok(400)),
        (and(&[("host", "other.example")]), Ok(400)),
        (and(&[("host", "T.example:80")]), Ok(200)),
        (and(&[("host", "t.example"), ("host", "t.example")]), Ok(400)),
        (and(&[("X-Upper", "1")]), malformed),
        (and(&[("", "1")]), malformed),
        (and(&[("x", "a\r\nb: c")]), malformed),
        (and(&[("x", "a\0")]), malformed),
        (and(&[("x", " a")]), Ok(400)),
        (and(&[("connection", "close")]), malformed),
        (and(&[("transfer-encoding", "chunked")]), malformed),
        (and(&[("upgrade", "h2c")]), malformed),
        (and(&[("te", "gzip")]), malformed),
        (and(&[(":path", "/late")]), malformed),
        (and(&[("x", "1"), (":odd", "late")]), malformed),
        (and(&[("content-length", "3")]), malformed),
        (and(&[("content-length", "x")]), malformed),
        (and(&[("content-length", "0"), ("content-length", "00")]), Ok(200)),
    ];
    for (fields, expected) in table {
        let end = frame(1, 0x5, 1, &block(&fields));
        let (rig, found) = raw(&end).await;
        // A header block with a name that is none ends the connection: 9 is a compression error.
        let same = found == expected || (expected == malformed && found == Err(9));
        assert!(same, "{fields:?}: {found:?}");
        if found == Ok(400) {
            assert_eq!(rig.seen.refused.load(Ordering::SeqCst), 1);
        }
        assert_eq!(rig.seen.decided.load(Ordering::SeqCst), usize::from(found == Ok(200)), "{fields:?}");
    }
}

#[tokio::test]
async fn too_much_head_is_refused() {
    let many = and(&vec![("x", "1"); request::MAX_FIELDS + 1]);
    assert_eq!(raw(&frame(1, 0x5, 1, &block(&many))).await.1, Ok(431));
    let long = "a".repeat(120);
    let lines = vec![("x", long.as_str()); 1000];
    let all = block(&lines);
    let mut frames = frame(1, 0x1, 1, &block(&with("", "")));
    for part in all.chunks(16_000) {
        frames.extend(frame(9, 0, 1, part));
    }
    frames.extend(frame(9, 0x4, 1, &[]));
    let found = raw(&frames).await.1;
    assert!(matches!(found, Ok(431) | Err(1 | 11)), "{found:?}");
}

#[tokio::test]
async fn more_data_than_announced_is_a_stream_error() {
    let fields = [vec![(":method", "POST")], with(":method", "")[1..].to_vec(), vec![("content-length", "3")]].concat();
    let slow = fields.iter().map(|&(name, value)| if name == ":path" { (name, "/slow") } else { (name, value) });
    let slow: Vec<_> = slow.collect();
    let frames = [frame(1, 0x4, 1, &block(&slow)), frame(0, 0x1, 1, b"0123456789")].concat();
    assert_eq!(raw(&frames).await.1, Err(1));
}

#[tokio::test]
async fn floods_of_control_frames_end_the_connection() {
    let calm = 11;
    let floods: [(&str, Vec<u8>); 4] = [
        ("ping", frame(6, 0, 0, &[0; 8])),
        ("settings", frame(4, 0, 0, &[])),
        ("priority", frame(2, 0, 5, &[0, 0, 0, 0, 1])),
        ("unknown", frame(99, 0, 0, &[])),
    ];
    for (name, flood) in floods {
        let (rig, io) = rig(TIMEOUTS, "127.0.0.1:1".parse().unwrap());
        let (mut input, mut output) = tokio::io::split(io);
        let writing = tokio::spawn(async move {
            let _ = output.write_all(PREFACE).await;
            for _ in 0..1000 {
                if output.write_all(&flood.repeat(100)).await.is_err() {
                    return true;
                }
            }
            false
        });
        let mut last = Vec::new();
        let _ = input.read_to_end(&mut last).await;
        assert!(last.windows(9).any(|head| head[3] == 7 && head[..3] == [0, 0, 8]), "{name}: no goodbye");
        assert!(last.ends_with(&u32::to_be_bytes(calm)), "{name}");
        assert!(writing.await.unwrap(), "{name}");
        timeout(Duration::from_secs(3), rig.served).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn pings_keep_no_connection_without_requests() {
    for dripped in [false, true] {
        let timeouts = ClientTimeouts { http_request: Duration::from_millis(200), ..TIMEOUTS };
        let (rig, mut io) = rig(timeouts, "127.0.0.1:1".parse().unwrap());
        io.write_all(PREFACE).await.unwrap();
        let head = frame(1, 4, 1, &[0x82; 200]);
        let (mut read, mut write) = tokio::io::split(io);
        let sink = tokio::spawn(async move { tokio::io::copy(&mut read, &mut tokio::io::sink()).await });
        let drip = tokio::spawn(async move {
            for at in 0..head.len() {
                let bytes = if dripped { head[at..=at].to_vec() } else { frame(6, 0, 0, b"12345678") };
                if write.write_all(&bytes).await.is_err() {
                    return;
                }
                sleep(Duration::from_millis(50)).await;
            }
        });
        timeout(Duration::from_secs(5), rig.served).await.expect("it is closed").unwrap();
        drip.await.unwrap();
        sink.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_body_taken_byte_by_byte_is_broken_off() {
    let (rig, io) = rig(TIMEOUTS, "127.0.0.1:1".parse().unwrap());
    let mut builder = h2::client::Builder::new();
    let (mut sender, connection) = builder.initial_window_size(1).handshake::<_, Bytes>(io).await.unwrap();
    tokio::spawn(connection);
    let (response, _) = sender.send_request(get("/big"), true).unwrap();
    let mut stream = response.await.unwrap().into_body();
    let taken = async {
        while let Some(Ok(data)) = stream.data().await {
            sleep(Duration::from_millis(20)).await;
            stream.flow_control().release_capacity(data.len()).unwrap();
        }
    };
    timeout(Duration::from_secs(5), taken).await.expect("it is broken off");
    until(|| rig.seen.working.load(Ordering::SeqCst) == 0).await;
}

#[tokio::test]
async fn a_client_that_reads_nothing_holds_one_budget_however_many_streams_it_opens() {
    let timeouts = ClientTimeouts { client: Duration::from_secs(1), ..TIMEOUTS };
    let (rig, mut io) = rig(timeouts, "127.0.0.1:1".parse().unwrap());
    let preface = &PREFACE[..PREFACE.len() - 9];
    let windows = [frame(4, 0, 0, &[0, 4, 0, 0x10, 0, 0]), frame(8, 0, 0, &[4, 0, 0, 0])].concat();
    let head = block(&with(":path", "/pieces"));
    let requests: Vec<u8> = (0..MAX_STREAMS).flat_map(|number| frame(1, 5, 2 * number + 1, &head)).collect();
    io.write_all(&[preface, &windows, &requests].concat()).await.unwrap();
    until(|| rig.seen.working.load(Ordering::SeqCst) == MAX_STREAMS as usize).await;
    until(|| rig.seen.taken.load(Ordering::SeqCst) > 200 << 10).await;
    sleep(Duration::from_millis(300)).await;
    let taken = rig.seen.taken.load(Ordering::SeqCst);
    assert!(taken < (SEND_BUDGET as usize) + (200 << 10), "{taken} bytes wait");
    // Nobody takes any of it: all of them are given up.
    timeout(Duration::from_secs(5), async {
        while rig.seen.working.load(Ordering::SeqCst) > 0 {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .expect("they are given up");
}
