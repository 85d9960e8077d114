use std::thread;

use super::*;

fn table(size: usize, expire: Option<u64>, nopurge: bool) -> Arc<Table> {
    let count = |datum| Column { datum, count: 1, period: 0 };
    let stored = vec![
        count(Datum::Gpc0),
        count(Datum::ConnCur),
        count(Datum::ConnCnt),
        Column { datum: Datum::HttpReqRate, count: 1, period: 10_000 },
    ];
    Arc::new(Table::new(Spec { name: "t".to_owned(), key: KeyKind::Int, size, expire, nopurge, stored }))
}

fn use_key(table: &Table, key: u32, now: u64) -> Option<u64> {
    table.with_made(&Key::Int(key), now, |entry| entry.add(Datum::Gpc0, 0, 1)).flatten()
}

fn read(table: &Table, key: u32, now: u64) -> Option<u64> {
    table.with(&Key::Int(key), now, |entry| entry.get(Datum::Gpc0, 0)).flatten()
}

#[test]
fn an_entry_stays_until_it_has_not_been_used_for_so_long() {
    let table = table(10, Some(1000), false);
    assert_eq!(read(&table, 1, 5000), None);
    assert_eq!(use_key(&table, 1, 5000), Some(1));
    assert_eq!(use_key(&table, 1, 5999), Some(2));
    // A look is no use.
    assert_eq!(read(&table, 1, 6998), Some(2));
    assert_eq!(read(&table, 1, 6999), None);
    assert_eq!(table.fill(6998), (1, 9));
    assert_eq!(table.fill(6999), (0, 10));
}

#[test]
fn what_has_expired_begins_anew_before_anybody_swept() {
    let table = table(1, Some(1000), true);
    assert_eq!(use_key(&table, 1, 5000), Some(1));
    assert_eq!(use_key(&table, 1, 9000), Some(1));
    assert_eq!(table.fill(9000), (1, 0));
    assert_eq!(use_key(&table, 2, 9500), None);
    assert_eq!(use_key(&table, 2, 10_000), Some(1));
    assert_eq!(table.fill(20_000), (0, 1));
}

#[test]
fn a_tracked_entry_stays_and_counts_its_trackers() {
    let table = table(1, Some(1000), false);
    let key = Key::Int(7);
    let first = table.track(&key, 1000).unwrap();
    let second = table.track(&key, 1000).unwrap();
    let seen = |now| {
        table.with(&key, now, |entry| (entry.get(Datum::ConnCur, 0), entry.get(Datum::ConnCnt, 0), entry.trackers()))
    };
    assert_eq!(seen(50_000), Some((Some(2), Some(2), 2)));
    assert_eq!(table.sweep(50_000), 0);
    // No room is made of what somebody tracks.
    assert_eq!(use_key(&table, 8, 50_000), None);
    drop(first);
    second.end(50_000);
    assert_eq!(seen(50_999), Some((Some(0), Some(2), 0)));
    assert_eq!(seen(51_000), None);
    assert_eq!(use_key(&table, 8, 51_000), Some(1));
}

#[test]
fn a_full_table_forgets_what_was_not_used_for_longest() {
    let table = table(3, None, false);
    for (key, now) in [(1, 10), (2, 20), (3, 30), (1, 40)] {
        use_key(&table, key, now);
    }
    assert_eq!(use_key(&table, 4, 50), Some(1));
    assert_eq!([1, 2, 3, 4].map(|key| read(&table, key, 50)), [Some(2), None, Some(1), Some(1)]);
    assert_eq!(table.fill(50), (3, 0));
}

#[test]
fn a_full_table_that_forgets_nothing_takes_no_more() {
    let table = table(2, None, true);
    assert_eq!([1, 2, 3, 1].map(|key| use_key(&table, key, 10)), [Some(1), Some(1), None, Some(2)]);
    assert!(table.track(&Key::Int(3), 10).is_none());
}

#[test]
fn no_event_is_lost_between_threads() {
    let table = table(100, Some(60_000), false);
    let (threads, rounds) = (8, 2000_u64);
    thread::scope(|scope| {
        for thread in 0..threads {
            let table = &table;
            scope.spawn(move || {
                for round in 0..rounds {
                    let tracked = table.track(&Key::Int(1), 1000 + round).unwrap();
                    let entry = tracked.entry(1000 + round);
                    entry.add(Datum::Gpc0, 0, 1);
                    entry.add(Datum::HttpReqRate, 0, 1);
                    // Others come and go meanwhile, and are swept.
                    use_key(table, 1000 + thread, 1000 + round);
                    if round % 100 == 0 {
                        table.sweep(1000 + round);
                    }
                }
            });
        }
    });
    let all = u64::from(threads) * rounds;
    let seen = table.with(&Key::Int(1), 3000, |entry| {
        [Datum::Gpc0, Datum::ConnCnt, Datum::ConnCur, Datum::HttpReqRate].map(|datum| entry.get(datum, 0).unwrap())
    });
    assert_eq!(seen, Some([all, all, 0, all]));
}

#[test]
fn a_table_never_has_more_than_its_size() {
    let table = table(64, Some(50), false);
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            let table = &table;
            scope.spawn(move || {
                let mut random = thread * 7919 + 1;
                for round in 0..5000_u64 {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let key = Key::Int(u32::try_from(random >> 40).unwrap() % 500);
                    let tracked = (random & 1 == 0).then(|| table.track(&key, 1000 + round)).flatten();
                    table.with_made(&key, 1000 + round, |entry| entry.add(Datum::Gpc0, 0, 1));
                    assert!(table.count.load(Ordering::Relaxed) <= 64);
                    drop(tracked);
                }
            });
        }
    });
    assert_eq!(table.rows.len(), table.count.load(Ordering::Relaxed));
    for _ in 0..10 {
        table.sweep(1_000_000);
    }
    assert_eq!((table.rows.len(), table.fill(1_000_000), table.ages().len()), (0, (0, 64), 0));
}
