//! Fills and their readers.

use super::*;

#[tokio::test(start_paused = true)]
async fn fifty_readers_share_one_fetch() {
    let cache = Cache::new();
    let (leader, origin) = cache.lead("/a");
    let mut readers = vec![leader];
    readers.extend((0..49).map(|_| {
        let (reader, own) = cache.ask("/a", &[]);
        assert!(own.is_none());
        reader
    }));
    let tasks: Vec<_> = readers
        .into_iter()
        .map(|mut reader| {
            tokio::spawn(async move {
                assert_eq!(head(&mut reader).await, (200, true));
                rest(&mut reader).await
            })
        })
        .collect();
    settle().await;
    origin.head(&[], Framing::Chunked).data("ab");
    settle().await;
    origin.data("cd").end();
    for task in tasks {
        assert_eq!(task.await.expect("no panic").as_deref(), Ok("abcd"));
    }
    let object = cache.found("/a", &[]).expect("stored");
    assert_eq!((object.body.len, object.body.chunks.len()), (4, 1));
    assert_eq!(cache.metrics.fills.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_late_reader_starts_at_the_beginning() {
    let cache = Cache::new();
    let (mut leader, origin) = cache.lead("/a");
    origin.head(&[], Framing::Chunked).data("ab");
    assert_eq!(head(&mut leader).await, (200, true));
    assert_eq!(piece(&mut leader).await, "ab");
    let (mut late, own) = cache.ask("/a", &[]);
    assert!(own.is_none());
    origin.data("cd").end();
    head(&mut late).await;
    assert_eq!(rest(&mut late).await.as_deref(), Ok("abcd"));
    assert_eq!(rest(&mut leader).await.as_deref(), Ok("cd"));
}

#[tokio::test(start_paused = true)]
async fn who_has_the_whole_length_finds_it_stored() {
    let cache = Cache::new();
    let (mut leader, origin) = cache.lead("/a");
    origin.head(&[], Framing::Length(2)).data("ab");
    head(&mut leader).await;
    let body = tokio::spawn(async move { piece(&mut leader).await });
    settle().await;
    assert!(!body.is_finished(), "the last byte comes with the end");
    origin.end();
    assert_eq!(body.await.expect("no panic"), "ab");
    assert!(cache.found("/a", &[]).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_fill_that_is_to_finish_does_so_without_readers() {
    let cache = Cache::new();
    let (leader, origin) = cache.lead("/a");
    origin.head(&[], Framing::Chunked).data("ab");
    settle().await;
    drop(leader);
    settle().await;
    origin.data("cd").end();
    settle().await;
    assert_eq!(cache.found("/a", &[]).expect("stored").body.len, 4);
    let (reader, origin) = cache.lead("/b");
    drop(reader);
    origin.whole(&[], "early");
    settle().await;
    assert!(cache.found("/b", &[]).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_fill_that_is_to_be_abandoned_stops_with_its_last_reader() {
    let mut cache = Cache::new();
    cache.options.abandon = true;
    let (leader, origin) = cache.lead("/a");
    let (follower, _) = cache.ask("/a", &[]);
    origin.head(&[], Framing::Chunked).data("ab");
    settle().await;
    drop(leader);
    settle().await;
    assert!(origin.is_read());
    drop(follower);
    settle().await;
    assert!(!origin.is_read());
    assert!(cache.found("/a", &[]).is_none());
    assert_eq!((cache.store.stats().used, cache.metrics.fills.get()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn finish_if_looks_at_share_and_missing_bytes() {
    for (percent, bytes, goes_on) in [(50, 0, true), (51, 0, false), (100, 5, true), (100, 4, false)] {
        let mut cache = Cache::new();
        cache.options.finish_percent = percent;
        cache.options.finish_bytes = bytes;
        let (leader, origin) = cache.lead("/a");
        origin.head(&[], Framing::Length(10)).data("01234");
        settle().await;
        drop(leader);
        settle().await;
        assert_eq!(origin.is_read(), goes_on, "{percent} % or {bytes} bytes");
        origin.data("56789").end();
        settle().await;
        assert_eq!(cache.found("/a", &[]).is_some(), goes_on);
    }
}

#[tokio::test(start_paused = true)]
async fn fills_without_readers_are_capped() {
    let cache = Cache::new();
    let origins: Vec<_> = (0..200)
        .map(|index| {
            let (reader, origin) = cache.lead(&format!("/{index}"));
            drop(reader);
            origin
        })
        .collect();
    settle().await;
    assert_eq!(origins.iter().filter(|origin| origin.is_read()).count(), 128);
    origins.iter().for_each(|origin| origin.whole(&[], "x"));
    settle().await;
    assert_eq!(cache.store.stats().objects, 128);
    let (reader, origin) = cache.lead("/more");
    drop(reader);
    settle().await;
    assert!(origin.is_read(), "the count goes down again");
}

#[tokio::test(start_paused = true)]
async fn a_failure_reaches_everyone_and_nothing_is_stored() {
    for early in [true, false] {
        let cache = Cache::new();
        let (mut leader, origin) = cache.lead("/a");
        let (mut follower, _) = cache.ask("/a", &[]);
        if !early {
            origin.head(&[], Framing::Length(9)).data("ab");
            assert_eq!(head(&mut leader).await, (200, true));
            assert_eq!(head(&mut follower).await, (200, true));
        }
        origin.fail();
        if early {
            assert_eq!(leader.head().await.expect_err("fails").kind, FailureKind::Truncated);
            assert_eq!(follower.head().await.expect_err("fails").kind, FailureKind::Truncated);
        } else {
            assert_eq!(rest(&mut leader).await, Err(FailureKind::Truncated));
            assert_eq!(rest(&mut follower).await, Err(FailureKind::Truncated));
        }
        settle().await;
        assert!(cache.found("/a", &[]).is_none());
        drop((leader, follower));
        assert_eq!(cache.store.stats().used, 0);
        assert!(cache.ask("/a", &[]).1.is_some(), "the next one fetches");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_of_the_wrong_length_is_a_failure() {
    for body in ["ab", "abcd"] {
        let cache = Cache::new();
        let (mut leader, origin) = cache.lead("/a");
        origin.head(&[], Framing::Length(3)).data(body).end();
        assert!(matches!(leader.head().await, Ok(_) | Err(_)));
        assert!(rest(&mut leader).await.is_err(), "{body}");
        settle().await;
        assert!(cache.found("/a", &[]).is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_that_panics_or_is_dropped_is_a_failure() {
    let cache = Cache::new();
    let (mut leader, origin) = cache.lead("/a");
    origin.then(Step::Panic);
    assert_eq!(leader.head().await.expect_err("fails").kind, FailureKind::Truncated);
    assert!(cache.ask("/a", &[]).1.is_some());

    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let entered = runtime.enter();
    let (mut leader, _origin) = cache.lead("/b");
    drop(entered);
    runtime.shutdown_background();
    assert_eq!(leader.head().await.expect_err("fails").kind, FailureKind::Truncated);
}

#[tokio::test(start_paused = true)]
async fn a_private_answer_is_the_leaders_and_is_remembered_for_a_while() {
    let cache = Cache::new();
    let (mut leader, origin) = cache.lead("/a");
    let (mut follower, _) = cache.ask("/a", &[]);
    origin.whole(&[("Private", "1")], "mine");
    assert_eq!(head(&mut leader).await, (200, false));
    assert_eq!(refusal(&mut follower).await, "private");
    assert!(follower.body().await.is_err());
    assert_eq!(rest(&mut leader).await.as_deref(), Ok("mine"));
    assert!(cache.found("/a", &[]).is_none());

    let (_one, first) = cache.ask("/a", &[]);
    let (_two, second) = cache.ask("/a", &[]);
    assert!(first.is_some() && second.is_some(), "they don't queue");
    tokio::time::advance(Duration::from_secs(3)).await;
    let (_three, third) = cache.ask("/a", &[]);
    let (_four, fourth) = cache.ask("/a", &[]);
    assert!(third.is_some() && fourth.is_none(), "they do again");
}

#[tokio::test(start_paused = true)]
async fn a_private_answer_whose_leader_left_is_nobodys() {
    let cache = Cache::new();
    let (leader, origin) = cache.lead("/a");
    let (mut follower, _) = cache.ask("/a", &[]);
    drop(leader);
    origin.head(&[("Private", "1")], Framing::Chunked);
    assert_eq!(refusal(&mut follower).await, "private");
    settle().await;
    assert!(!origin.is_read());
}

#[tokio::test(start_paused = true)]
async fn a_follower_of_another_variant_goes_alone() {
    let cache = Cache::new();
    let (mut finnish, origin) = cache.ask("/a", &[("Accept-Language", "fi")]);
    let (mut german, none) = cache.ask("/a", &[("Accept-Language", "de")]);
    let (mut other, _) = cache.ask("/a", &[("Accept-Language", "fi")]);
    assert!(none.is_none(), "nothing is known of Vary yet");
    origin.expect("leads").whole(&[("Vary", "Accept-Language")], "moi");
    assert_eq!(head(&mut finnish).await, (200, true));
    assert_eq!(refusal(&mut german).await, "vary");
    head(&mut other).await;
    assert_eq!(rest(&mut other).await.as_deref(), Ok("moi"));

    // Now Vary is known from what is stored, and they part at once.
    let (_finnish, first) = cache.ask("/a", &[("Accept-Language", "fi")]);
    let (_german, second) = cache.ask("/a", &[("Accept-Language", "de")]);
    let (_same, third) = cache.ask("/a", &[("Accept-Language", "DE")]);
    assert!(first.is_some() && second.is_some() && third.is_none());
}

#[tokio::test(start_paused = true)]
async fn who_does_not_wait_fetches_alone() {
    let mut cache = Cache::new();
    cache.options.wait = None;
    let (_one, first) = cache.ask("/a", &[]);
    let (_two, second) = cache.ask("/a", &[]);
    assert!(first.is_some() && second.is_some());
    first.expect("leads").whole(&[], "one");
    settle().await;
    assert!(cache.found("/a", &[]).is_some(), "stored all the same");
}

#[tokio::test(start_paused = true)]
async fn an_older_fill_does_not_replace_what_a_later_one_brought() {
    let mut cache = Cache::new();
    cache.options.wait = None;
    let (_one, first) = cache.ask("/a", &[]);
    let (_two, second) = cache.ask("/a", &[]);
    second.expect("leads").whole(&[], "new");
    settle().await;
    first.expect("leads").whole(&[], "older");
    settle().await;
    assert_eq!(cache.found("/a", &[]).expect("stored").body.len, 3);
    assert_eq!(cache.store.stats().objects, 1);
}

#[tokio::test(start_paused = true)]
async fn a_follower_waits_no_longer_than_its_time() {
    let mut cache = Cache::new();
    cache.options.wait = Some(Duration::from_millis(500));
    let (mut leader, origin) = cache.lead("/a");
    let (mut follower, _) = cache.ask("/a", &[]);
    let before = tokio::time::Instant::now();
    assert_eq!(refusal(&mut follower).await, "wait");
    assert_eq!(before.elapsed(), Duration::from_millis(500));
    origin.whole(&[], "late");
    assert_eq!(head(&mut leader).await, (200, true));
}

#[tokio::test(start_paused = true)]
async fn interim_heads_and_trailers_are_the_leaders() {
    let cache = Cache::new();
    let (mut leader, origin) = cache.lead("/a");
    let (mut follower, _) = cache.ask("/a", &[]);
    origin.interim().interim().head(&[], Framing::Chunked).data("ab").trailers();
    for _ in 0..2 {
        assert!(matches!(leader.head().await, Ok(Arrival::Interim(interim)) if interim.status == 103));
    }
    assert_eq!(head(&mut leader).await, (200, true));
    assert_eq!(head(&mut follower).await, (200, true));
    assert_eq!((piece(&mut leader).await, piece(&mut follower).await), (Bytes::from("ab"), Bytes::from("ab")));
    assert!(matches!(leader.body().await, Ok(Piece::End(Some(_)))));
    assert!(matches!(follower.body().await, Ok(Piece::End(None))));
}

#[tokio::test(start_paused = true)]
async fn a_304_gives_the_object_a_new_head_and_keeps_its_body() {
    let cache = Cache::new();
    cache.put("/a", &[], &[("X-Old", "1")], "body").await;
    let old = cache.found("/a", &[]).expect("stored");
    let (mut leader, origin) = cache.ask_about("/a", &[], Some(Arc::clone(&old)));
    let (mut follower, _) = cache.ask("/a", &[]);
    origin.expect("leads").head(&[("X-New", "1")], Framing::None).end();
    for reader in [&mut leader, &mut follower] {
        match reader.head().await {
            Ok(Arrival::Head { head, stored: true, revalidated: true, .. }) => {
                assert!(head.fields.has("x-new") && head.framing == Framing::Length(4));
            }
            other => panic!("not revalidated: {other:?}"),
        }
        assert_eq!(rest(reader).await.as_deref(), Ok("body"));
    }
    let new = cache.found("/a", &[]).expect("stored");
    assert_eq!(new.body.chunks, old.body.chunks);
    assert!(std::ptr::eq(new.body.chunks[0].as_ptr(), old.body.chunks[0].as_ptr()));
    assert_eq!(cache.store.stats().objects, 1);
    let both = cache.store.stats().used;
    drop((old, leader, follower));
    settle().await;
    assert!(cache.store.stats().used < both, "the old head is given back, the body stays");
    assert!(cache.store.stats().used > 4);
}

#[tokio::test(start_paused = true)]
async fn a_refresh_runs_once_in_the_background() {
    let mut cache = Cache::new();
    cache.options.finish_percent = 100;
    let asked = request("/a", &[]);
    let (sender, steps) = unbounded_channel();
    let source = || Scripted { steps, request: asked.clone(), url: url("/a"), stored: None, url_known: false };
    assert!(cache.store.refresh(b"/a", &asked, cache.options, source));
    let never = || -> Scripted { panic!("one is under way") };
    assert!(!cache.store.refresh(b"/a", &asked, cache.options, never));
    Origin(sender).head(&[], Framing::Chunked).data("ab").end();
    settle().await;
    assert_eq!(cache.found("/a", &[]).expect("stored").body.len, 2);
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_server_is_the_leaders() {
    let cache = Cache::new();
    let (mut leader, origin) = cache.lead("/a");
    let (mut follower, _) = cache.ask("/a", &[]);
    origin.whole(&[("Error", "1")], "oops");
    assert_eq!(head(&mut leader).await, (200, false));
    assert_eq!(refusal(&mut follower).await, "server-error");
    assert_eq!(rest(&mut leader).await.as_deref(), Ok("oops"));
}

#[tokio::test(start_paused = true)]
async fn what_a_fill_has_stored_since_the_lookup_is_not_fetched_again() {
    let cache = Cache::new();
    cache.put("/a", &[], &[], "first").await;
    let (first, asked) = (cache.found("/a", &[]).expect("stored"), request("/a", &[]));
    let fetch = |seen: Option<&Arc<Object>>| {
        let source = || Scripted {
            steps: unbounded_channel().1,
            request: asked.clone(),
            url: url("/a"),
            stored: None,
            url_known: false,
        };
        cache.store.fetch(b"/a", &asked, cache.options, Seen::This(seen), source).map(|(_, joined)| joined)
    };
    assert_eq!(fetch(None), None, "the lookup found nothing, and there is something now");
    assert_eq!(fetch(Some(&first)), Some(Joined::Leader), "what was found is to be confirmed");
}

/// Whether two requests for `path` share one fill.
fn together(cache: &Cache, path: &str) -> bool {
    let (_one, first) = cache.ask(path, &[]);
    let (_two, second) = cache.ask(path, &[]);
    assert!(first.is_some());
    second.is_none()
}

#[tokio::test(start_paused = true)]
async fn what_one_client_gets_for_its_credentials_does_not_part_the_others() {
    for (lines, most) in [(&[("Private", "1")][..], u64::MAX), (&[], 2)] {
        let mut cache = Cache::new();
        cache.options = FillOptions { wait: None, alone: true, max_object_size: most, ..FINISH };
        let (mut reader, origin) = cache.lead("/a");
        origin.whole(lines, "mine");
        assert_eq!(head(&mut reader).await, (200, false));
        cache.options = FINISH;
        assert!(together(&cache, "/a"), "{lines:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_without_room_parts_nobody() {
    let cache = Cache::of(200_000);
    let mut held = Vec::new();
    for path in ["/1", "/2"] {
        cache.put(path, &[], &[], &"x".repeat(80_000)).await;
        held.push(cache.found(path, &[]).expect("stored"));
    }
    let (mut reader, origin) = cache.lead("/a");
    origin.head(&[], Framing::Chunked).data("y".repeat(60_000)).end();
    assert_eq!(head(&mut reader).await, (200, true));
    assert_eq!(rest(&mut reader).await.expect("whole").len(), 60_000);
    assert!(cache.found("/a", &[]).is_none());
    drop(held);
    assert!(together(&cache, "/a"));
}
