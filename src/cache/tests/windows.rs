//! Fills that cannot be kept: a window, at the pace of the readers.

use super::*;

const PIECE: usize = 16 << 10;

fn feed(origin: &Origin, pieces: usize) {
    for index in 0..pieces {
        origin.data(vec![u8::try_from(index % 251).expect("small"); PIECE]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_exceeds_the_largest_object_is_streamed_and_not_kept() {
    let mut cache = Cache::new();
    cache.options.max_object_size = 100;
    let (mut leader, origin) = cache.lead("/a");
    origin.head(&[], Framing::Chunked).data("x".repeat(60)).data("y".repeat(60)).end();
    assert_eq!(head(&mut leader).await, (200, true));
    assert_eq!(rest(&mut leader).await.expect("whole").len(), 120);
    assert!(cache.found("/a", &[]).is_none());
    assert!(cache.ask("/a", &[]).1.is_some() && cache.ask("/a", &[]).1.is_some(), "they don't queue");
    drop(leader);
    settle().await;
    assert_eq!(cache.store.stats().used, 0);
}

#[tokio::test(start_paused = true)]
async fn an_announced_length_that_is_too_large_says_so_at_the_head() {
    let mut cache = Cache::new();
    cache.options.max_object_size = 3;
    let (mut leader, origin) = cache.lead("/a");
    origin.whole(&[], "four");
    match leader.head().await {
        Ok(Arrival::Head { stored: false, reason, .. }) => assert_eq!(reason, Some("too-large")),
        other => panic!("{other:?}"),
    }
    assert_eq!(rest(&mut leader).await.as_deref(), Ok("four"));
}

#[tokio::test(start_paused = true)]
async fn a_window_is_all_that_is_held() {
    let mut cache = Cache::new();
    cache.options.max_object_size = 0;
    let (mut leader, origin) = cache.lead("/a");
    origin.head(&[], Framing::Chunked);
    feed(&origin, 1000);
    origin.end();
    head(&mut leader).await;
    let mut seen = 0;
    for _ in 0..8 {
        settle().await;
        // What the fill has taken from the origin is ahead of the reader by no more than a window and a piece.
        seen += piece(&mut leader).await.len();
    }
    settle().await;
    assert_eq!(cache.store.stats().used, 0, "a window is not charged");
    assert_eq!(rest_len(&mut leader).await, 1000 * PIECE - seen);
}

#[tokio::test(start_paused = true)]
async fn a_windowed_fill_goes_at_the_pace_of_its_slowest_reader() {
    let mut cache = Cache::new();
    cache.options.max_object_size = 0;
    let (mut fast, origin) = cache.lead("/a");
    let (mut slow, none) = cache.ask("/a", &[]);
    assert!(none.is_none());
    origin.head(&[], Framing::Chunked);
    feed(&origin, 100);
    origin.end();
    head(&mut fast).await;
    head(&mut slow).await;
    let reading = tokio::spawn(async move { rest_len(&mut fast).await });
    settle().await;
    assert!(!reading.is_finished());
    assert_eq!(rest_len(&mut slow).await, 100 * PIECE);
    assert_eq!(reading.await.expect("no panic"), 100 * PIECE);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_that_leaves_holds_nobody_up() {
    let mut cache = Cache::new();
    cache.options.max_object_size = 0;
    let (mut fast, origin) = cache.lead("/a");
    let (slow, _) = cache.ask("/a", &[]);
    origin.head(&[], Framing::Chunked);
    feed(&origin, 100);
    origin.end();
    head(&mut fast).await;
    let reading = tokio::spawn(async move { rest_len(&mut fast).await });
    settle().await;
    drop(slow);
    assert_eq!(reading.await.expect("no panic"), 100 * PIECE);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_does_not_hold_up_a_fill_that_is_kept() {
    let cache = Cache::new();
    let (mut fast, origin) = cache.lead("/a");
    let (mut slow, _) = cache.ask("/a", &[]);
    origin.head(&[], Framing::Chunked);
    feed(&origin, 100);
    origin.end();
    head(&mut fast).await;
    assert_eq!(rest_len(&mut fast).await, 100 * PIECE);
    assert_eq!(cache.found("/a", &[]).expect("stored").body.len, (100 * PIECE) as u64);
    head(&mut slow).await;
    assert_eq!(rest_len(&mut slow).await, 100 * PIECE);
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_used_up_makes_a_window() {
    let cache = Cache::of(1 << 20);
    let fills = ["/a", "/b", "/c"].map(|path| cache.lead(path));
    let mut readers = Vec::new();
    for (mut reader, origin) in fills {
        // Three times three eighths of the budget, all under way at once.
        origin.head(&[], Framing::Chunked);
        feed(&origin, 24);
        head(&mut reader).await;
        settle().await;
        readers.push((reader, origin));
    }
    assert!(cache.store.stats().used <= cache.store.stats().budget);
    for (reader, origin) in &mut readers {
        origin.end();
        assert_eq!(rest_len(reader).await, 24 * PIECE);
    }
    assert!(cache.found("/a", &[]).is_some() && cache.found("/c", &[]).is_none());
    assert_eq!(cache.metrics.refusals.each().collect::<Vec<_>>(), [("no-room", 1)]);
}

async fn rest_len(reader: &mut Reader) -> usize {
    let mut len = 0;
    loop {
        match reader.body().await {
            Ok(Piece::Data(data)) => len += data.len(),
            Ok(Piece::End(_)) => return len,
            Err(failure) => panic!("{failure:?}"),
        }
    }
}
