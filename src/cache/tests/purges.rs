//! Purges of what is stored and of what is on its way.

use super::*;
use crate::cache::purge::{Purged, Target};

const NOW: Timestamp = Timestamp::from_secs(10);

fn purge(cache: &Cache, target: Target) -> u64 {
    let Purged { matched, purged } = cache.store.purge(&target, false, NOW);
    assert_eq!(matched, purged);
    purged
}

fn of(path: &str) -> Target {
    Target::Url(url(path))
}

#[tokio::test(start_paused = true)]
async fn a_url_goes_with_all_its_variants() {
    let cache = Cache::new();
    for language in ["fi", "de"] {
        cache.put("/a", &[("Accept-Language", language)], &[("Vary", "accept-language")], language).await;
    }
    cache.put("/b", &[], &[], "b").await;
    assert_eq!(purge(&cache, of("/a")), 2);
    assert!(cache.found("/a", &[("Accept-Language", "fi")]).is_none());
    assert!(cache.found("/a", &[("Accept-Language", "de")]).is_none());
    assert!(cache.found("/b", &[]).is_some());
    assert_eq!(purge(&cache, of("/a")), 0);
    assert_eq!(cache.store.stats().objects, 1);
}

#[tokio::test(start_paused = true)]
async fn prefix_tag_and_all_name_what_they_say() {
    let cache = Cache::new();
    let fill = async || {
        cache.put("/img/1", &[], &[("Surrogate-Key", "img one")], "1").await;
        cache.put("/img/2", &[], &[("Surrogate-Key", "img, two")], "2").await;
        cache.put("/x", &[], &[("Surrogate-Key", "")], "3").await;
    };
    fill().await;
    assert_eq!(purge(&cache, Target::Prefix(url("/img/"))), 2);
    fill().await;
    assert_eq!(purge(&cache, Target::Tag("two".into())), 1);
    assert_eq!(purge(&cache, Target::Tag("img".into())), 1);
    assert_eq!(purge(&cache, Target::Tag(String::new())), 0);
    fill().await;
    assert_eq!(purge(&cache, Target::All), 3);
    assert_eq!((cache.store.stats().objects, cache.store.stats().used), (0, 0));
    assert_eq!(cache.metrics.purged.get(), 2 + 1 + 1 + 3);
}

#[tokio::test(start_paused = true)]
async fn a_soft_purge_leaves_a_stale_object() {
    let cache = Cache::new();
    cache.put("/a", &[], &[("Surrogate-Key", "t")], "a").await;
    assert!(cache.found("/a", &[]).expect("stored").freshness.is_fresh(NOW));
    assert_eq!(cache.store.purge(&of("/a"), true, NOW), Purged { matched: 1, purged: 1 });
    let object = cache.found("/a", &[]).expect("still there");
    assert!(!object.freshness.is_fresh(NOW));
    assert_eq!(object.body.len, 1);
    drop(object);
    assert_eq!(purge(&cache, Target::Tag("t".into())), 1);
    assert_eq!(cache.store.stats().used, 0);
}

#[tokio::test(start_paused = true)]
async fn a_reader_finishes_what_was_purged_under_it() {
    let cache = Cache::new();
    cache.put("/a", &[], &[], "old").await;
    let object = cache.found("/a", &[]).expect("stored");
    purge(&cache, of("/a"));
    assert!(cache.found("/a", &[]).is_none());
    assert_eq!(object.body.chunks, ["old"]);
    assert!(cache.store.stats().used > 0, "charged until the last reader lets go");
    drop(object);
    assert_eq!(cache.store.stats().used, 0);
}

#[tokio::test(start_paused = true)]
async fn a_purge_beats_the_fill_under_way() {
    for target in [of("/a"), Target::Prefix(url("/")), Target::Tag("t".into()), Target::All] {
        for head_first in [false, true] {
            let cache = Cache::new();
            let (mut leader, origin) = cache.lead("/a");
            let lines = [("Surrogate-Key", "t")];
            if head_first {
                origin.head(&lines, Framing::Length(3));
                assert_eq!(head(&mut leader).await, (200, true));
            }
            purge(&cache, target.clone());
            let (_later, own) = cache.ask("/a", &[]);
            let own = own.expect("who comes after the purge does not join");
            if !head_first {
                origin.head(&lines, Framing::Length(3));
                head(&mut leader).await;
            }
            origin.data("old").end();
            assert_eq!(rest(&mut leader).await.as_deref(), Ok("old"), "who came before has it");
            settle().await;
            assert!(cache.found("/a", &[]).is_none(), "{target:?}");
            own.whole(&[], "newer");
            settle().await;
            assert_eq!(cache.found("/a", &[]).expect("stored").body.len, 5);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_purge_of_something_else_leaves_the_fill_alone() {
    let cache = Cache::new();
    let (mut leader, origin) = cache.lead("/a");
    origin.head(&[("Surrogate-Key", "t")], Framing::Chunked);
    head(&mut leader).await;
    for target in [of("/b"), Target::Prefix(url("/b")), Target::Tag("u".into())] {
        purge(&cache, target);
    }
    assert!(cache.ask("/a", &[]).1.is_none());
    origin.data("a").end();
    settle().await;
    assert!(cache.found("/a", &[]).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_fill_whose_url_is_known_is_parted_by_its_own_purges_only() {
    let mut cache = Cache::new();
    cache.url_known = true;
    let (_leader, _origin) = cache.lead("/a");
    purge(&cache, of("/b"));
    purge(&cache, Target::Prefix(url("/b")));
    assert!(cache.ask("/a", &[]).1.is_none());
    purge(&cache, of("/a"));
    assert!(cache.ask("/a", &[]).1.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_key_that_several_urls_share_goes_with_each_of_them() {
    let cache = Cache::new();
    // One key, stored for two variants by way of two URLs.
    for (variant, path) in [("1", "/a?x"), ("2", "/a?y")] {
        let asked = request("/a", &[("X", variant)]);
        let (sender, steps) = unbounded_channel();
        let source = || Scripted { steps, request: asked.clone(), url: url(path), stored: None, url_known: false };
        let (_reader, joined) =
            cache.store.fetch(b"/a", &asked, cache.options, Seen::Whatever, source).expect("a fetch");
        assert_eq!(joined, Joined::Leader);
        Origin(sender).whole(&[("Vary", "X")], "a");
        settle().await;
    }
    assert_eq!(cache.store.stats().objects, 2);
    let (_reader, origin) = cache.ask("/a", &[("X", "3")]);
    assert_eq!(purge(&cache, of("/a?x")), 2);
    origin.expect("leads").whole(&[("Vary", "X")], "old");
    settle().await;
    assert_eq!(cache.store.stats().objects, 0, "nor what was on its way to that key");
}

#[tokio::test(start_paused = true)]
async fn a_soft_purge_makes_what_is_under_way_stale() {
    let cache = Cache::new();
    let (_leader, origin) = cache.lead("/a");
    cache.store.purge(&Target::All, true, NOW);
    origin.whole(&[], "old");
    settle().await;
    assert!(!cache.found("/a", &[]).expect("stored").freshness.is_fresh(NOW));
}

#[tokio::test(start_paused = true)]
async fn a_purge_beats_a_revalidation_under_way() {
    let cache = Cache::new();
    cache.put("/a", &[], &[], "old").await;
    let old = cache.found("/a", &[]);
    let (mut leader, origin) = cache.ask_about("/a", &[], old);
    assert_eq!(purge(&cache, of("/a")), 1);
    origin.expect("leads").head(&[], Framing::None).end();
    assert_eq!(head(&mut leader).await, (200, false));
    assert_eq!(rest(&mut leader).await.as_deref(), Ok("old"));
    assert!(cache.found("/a", &[]).is_none());
}
