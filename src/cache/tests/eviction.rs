//! The budget and what leaves for it.

use ahash::RandomState;

use super::*;

/// A small generator with a printed seed.
struct Random(u64);

impl Random {
    fn new() -> Self {
        let seed = RandomState::new().hash_one(0) | 1;
        println!("seed {seed}");
        Self(seed)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

#[tokio::test(start_paused = true)]
async fn the_budget_is_never_exceeded() {
    let cache = Cache::of(1 << 20);
    let mut random = Random::new();
    let mut held = Vec::new();
    for _ in 0..3000 {
        let path = format!("/{}", random.below(400));
        let most = 1 << random.below(18);
        let len = usize::try_from(random.below(most)).expect("small");
        if let Some(object) = cache.found(&path, &[]) {
            if random.below(8) == 0 {
                held.push(object);
            }
        } else {
            let (mut reader, origin) = cache.ask(&path, &[]);
            let tags = format!("t{}", random.below(9));
            origin.expect("leads").whole(&[("Surrogate-Key", &tags)], &"x".repeat(len));
            head(&mut reader).await;
            assert_eq!(rest(&mut reader).await.expect("whole").len(), len);
        }
        if random.below(50) == 0 {
            let target = crate::cache::purge::Target::Tag(format!("t{}", random.below(9)));
            cache.store.purge(&target, random.below(2) == 0, Timestamp::default());
        }
        if held.len() > 8 {
            held.clear();
        }
        let stats = cache.store.stats();
        assert!(stats.used <= stats.budget, "{stats:?}");
        assert_eq!(u64::try_from(cache.metrics.used.get()), Ok(stats.used));
    }
    assert!(cache.metrics.evictions.total() > 0);
    drop(held);
    cache.store.purge(&crate::cache::purge::Target::All, false, Timestamp::default());
    settle().await;
    assert_eq!((cache.store.stats().used, cache.store.stats().objects), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn what_is_in_use_outlives_a_flood() {
    let cache = Cache::of(256 << 10);
    cache.put("/hot", &[], &[], &"h".repeat(1000)).await;
    for index in 0..3000 {
        assert!(cache.found("/hot", &[]).is_some(), "gone after {index}");
        cache.put(&format!("/{index}"), &[], &[], &"x".repeat(1000)).await;
    }
    assert!(cache.metrics.evictions.total() > 2000);
}

#[tokio::test(start_paused = true)]
async fn what_comes_back_after_eviction_is_taken_for_good() {
    let cache = Cache::of(256 << 10);
    cache.put("/back", &[], &[], &"b".repeat(1000)).await;
    let mut index = 0;
    while cache.found("/back", &[]).is_some() {
        index += 1;
        cache.put(&format!("/{index}"), &[], &[], &"x".repeat(1000)).await;
        // Undo what looking did: it has not been asked for.
        cache.found("/back", &[]).iter().for_each(|object| object.set_frequency(0));
    }
    cache.put("/back", &[], &[], &"b".repeat(1000)).await;
    for index in 0..2000 {
        cache.put(&format!("/more/{index}"), &[], &[], &"x".repeat(1000)).await;
    }
    assert!(cache.found("/back", &[]).is_some());
}

#[tokio::test(start_paused = true)]
async fn the_least_used_variant_makes_room_for_a_new_one() {
    let cache = Cache::new();
    let vary = [("Vary", "X")];
    for value in ["1", "2", "3", "4"] {
        cache.put("/a", &[("X", value)], &vary, value).await;
    }
    for value in ["1", "3", "4"] {
        assert!(cache.found("/a", &[("X", value)]).is_some());
    }
    cache.put("/a", &[("X", "5")], &vary, "5").await;
    assert!(cache.found("/a", &[("X", "2")]).is_none());
    assert!(cache.found("/a", &[("X", "1")]).is_some() && cache.found("/a", &[("X", "5")]).is_some());
    let missed = cache.store.lookup(b"/a", &request("/a", &[]), &mut Vec::new());
    assert!(matches!(missed, Lookup::VaryMiss));
    assert_eq!(cache.store.stats().objects, 4);
}

#[tokio::test(start_paused = true)]
async fn a_lower_limit_is_reached_at_once() {
    let cache = Cache::new();
    for index in 0..100 {
        cache.put(&format!("/{index}"), &[], &[], &"x".repeat(1000)).await;
    }
    let limits = Limits { memory: 32 << 10, max_object_size: 1 << 20, max_variants: 4 };
    cache.store.set_limits(limits);
    let stats = cache.store.stats();
    assert!(stats.used <= 32 << 10 && stats.objects > 5, "{stats:?}");
    assert_eq!(stats.budget, 32 << 10);
}

#[tokio::test(start_paused = true)]
async fn slow_readers_do_not_empty_the_store() {
    let cache = Cache::of(1 << 20);
    let mut held = Vec::new();
    for index in 0..2000 {
        let path = format!("/{index}");
        cache.put(&path, &[], &[], &"x".repeat(2000)).await;
        // Every object is held by somebody who reads it slowly.
        held.extend(cache.found(&path, &[]));
        assert!(cache.store.stats().used <= 1 << 20);
    }
    assert!(cache.store.stats().objects > 100, "{:?}", cache.store.stats());
}
