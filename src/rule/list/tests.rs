//! Lists against what their methods say in one line each, while rules change them.

use proptest::{collection::vec, prelude::*, sample::select};

use super::*;
use crate::rule::{matcher::number::Range as Numbers, pattern};

const TEXT_METHODS: [Method; 7] =
    [Method::Str, Method::Beg, Method::End, Method::Sub, Method::Dir, Method::Dom, Method::Reg];

fn naive(method: Method, fold: bool, key: &str, text: &str) -> bool {
    let case = |text: &str| if fold { text.to_ascii_lowercase() } else { text.to_owned() };
    let (key, text) = (case(key), case(text));
    let between = |delimiters: &[char]| {
        let key = key.trim_matches(delimiters);
        let bounded = |at: usize| {
            text[..at].chars().last().is_none_or(|letter| delimiters.contains(&letter))
                && text[at + key.len()..].chars().next().is_none_or(|letter| delimiters.contains(&letter))
        };
        !key.is_empty() && (0..text.len()).any(|at| text[at..].starts_with(key) && bounded(at))
    };
    match method {
        Method::Beg => text.starts_with(&key),
        Method::End => text.ends_with(&key),
        Method::Sub => text.contains(&key),
        Method::Dir => between(&['/', '?']),
        Method::Dom => between(&['/', '?', '.', ':']),
        Method::Reg => pattern::regex(key.as_bytes(), fold).unwrap().is_match(text.as_bytes()),
        _ => key == text,
    }
}

fn list(keys: &[String]) -> Arc<List> {
    let list = List::new("a.lst");
    let lines: Vec<_> = keys.iter().enumerate().map(|(at, key)| format!("{key} {at}\n")).collect();
    list.fill(lines.concat().into_bytes(), true);
    list
}

fn look(method: Method, fold: bool) -> Look {
    Look { method, fold, groups: false }
}

fn view(list: &Arc<List>, method: Method, fold: bool) -> Arc<View> {
    list.view(look(method, fold), &|_| Vec::new()).unwrap()
}

/// Key and value of what is found.
fn found(view: &View, sample: Sample<'_>) -> Option<(String, String)> {
    let arena = Bump::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let found = view.look_up(sample, &arena, |found| (text(found.key()), found.value(text)));
    assert_eq!(view.matches(sample, &arena), found.is_some());
    found
}

#[derive(Clone, Debug)]
enum Edit {
    Set(String, String),
    Add(String),
    Remove(String),
}

fn key() -> impl Strategy<Value = String> {
    "[abA/.?]{1,4}".prop_filter("a regex of its own", |key| pattern::regex(key.as_bytes(), false).is_ok())
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        (key(), "[xyz]{1,2}").prop_map(|(key, value)| Edit::Set(key, value)),
        key().prop_map(Edit::Add),
        key().prop_map(Edit::Remove),
    ]
}

/// Entries as a list of keys and values would keep them.
fn edited(mut entries: Vec<(String, String)>, edit: &Edit) -> Vec<(String, String)> {
    match edit {
        Edit::Set(key, value) => {
            if !entries.iter().any(|entry| entry.0 == *key) {
                entries.push((key.clone(), String::new()));
            }
            entries.iter_mut().filter(|entry| entry.0 == *key).for_each(|entry| entry.1.clone_from(value));
        }
        Edit::Add(key) if entries.iter().any(|entry| entry.0 == *key) => {}
        Edit::Add(key) => entries.push((key.clone(), String::new())),
        Edit::Remove(key) => entries.retain(|entry| entry.0 != *key),
    }
    entries
}

fn apply(list: &List, edit: &Edit) {
    match edit {
        Edit::Set(key, value) => list.set(key.as_bytes(), value.as_bytes()),
        Edit::Add(key) => list.add(key.as_bytes()),
        Edit::Remove(key) => list.remove(key.as_bytes()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(192) })]

    /// What stands in a file: the first entry that matches, the longest one for prefixes.
    #[test]
    fn what_is_found_in_a_file_is_what_a_naive_search_finds(
        keys in vec(key(), 0..12),
        texts in vec("[abA/.?]{0,6}", 1..8),
        method in select(&TEXT_METHODS[..]),
        fold in any::<bool>(),
    ) {
        let view = view(&list(&keys), method, fold);
        for text in &texts {
            let mut hits: Vec<_> =
                keys.iter().enumerate().filter(|(_, key)| naive(method, fold, key, text)).collect();
            if method == Method::Beg {
                hits.sort_by_key(|(at, key)| (std::cmp::Reverse(key.len()), *at));
            }
            let expected = hits.first().map(|(at, key)| ((*key).clone(), at.to_string()));
            prop_assert_eq!(found(&view, Sample::Str(text.as_bytes())), expected, "{:?} {} in {:?}", method, text, &keys);
        }
    }

    /// What rules have made of it.
    #[test]
    fn what_is_changed_is_found_as_a_naive_search_finds_it(
        keys in vec(key(), 0..6),
        edits in vec(edit(), 1..60),
        texts in vec("[abA/.?]{0,6}", 1..8),
        method in select(&TEXT_METHODS[..]),
        fold in any::<bool>(),
    ) {
        let list = list(&keys);
        list.change();
        let view = view(&list, method, fold);
        let mut entries: Vec<_> = keys.iter().enumerate().map(|(at, key)| (key.clone(), at.to_string())).collect();
        for edit in &edits {
            apply(&list, edit);
            entries = edited(entries, edit);
            for text in &texts {
                let hits: Vec<_> = entries.iter().filter(|(key, _)| naive(method, fold, key, text)).collect();
                let longest = hits.iter().map(|(key, _)| key.len()).max();
                match found(&view, Sample::Str(text.as_bytes())) {
                    None => prop_assert!(hits.is_empty(), "{:?} {}: {:?}", method, text, hits),
                    Some(entry) => {
                        // Which of equal keys is meant is the first one's affair.
                        let of_key = entries.iter().find(|known| known.0 == entry.0);
                        prop_assert_eq!(of_key, Some(&entry), "{:?} {}", method, text);
                        prop_assert!(hits.contains(&&entry));
                        prop_assert!(method != Method::Beg || longest == Some(entry.0.len()));
                    }
                }
            }
        }
    }

    #[test]
    fn networks_are_found_as_a_naive_search_finds_them(
        networks in vec((any::<[u8; 2]>(), 0_u32..=32), 0..20),
        addresses in vec(any::<[u8; 2]>(), 1..20),
    ) {
        let address = |[one, two]: [u8; 2]| std::net::Ipv4Addr::new(10, one & 3, two & 3, two >> 6);
        let keys: Vec<_> = networks.iter().map(|(bytes, length)| format!("{}/{length}", address(*bytes))).collect();
        let view = view(&list(&keys), Method::Ip, false);
        for bytes in addresses {
            let asked = address(bytes);
            let masked = |address: std::net::Ipv4Addr, length: u32| u32::from(address).checked_shr(32 - length).unwrap_or(0);
            let hits = networks.iter().enumerate().filter(|(_, (network, length))| masked(address(*network), *length) == masked(asked, *length));
            let best = hits.min_by_key(|(at, (_, length))| (std::cmp::Reverse(*length), *at));
            let expected = best.map(|(at, _)| (keys[at].clone(), at.to_string()));
            prop_assert_eq!(found(&view, Sample::Ip(asked.into())), expected, "{} in {:?}", asked, &keys);
        }
    }

    #[test]
    fn numbers_are_found_as_a_naive_search_finds_them(
        ranges in vec((0_i64..40, 0_i64..8), 0..20),
        removed in vec(0_usize..20, 0..5),
        values in vec(-5_i64..50, 1..20),
    ) {
        let keys: Vec<_> = ranges.iter().map(|(min, width)| format!("{min}:{}", min + width)).collect();
        let list = list(&keys);
        list.change();
        let (ints, lengths) = (view(&list, Method::Int, false), view(&list, Method::Len, false));
        let gone: Vec<_> = removed.iter().filter_map(|at| keys.get(*at)).collect();
        gone.iter().for_each(|key| list.remove(key.as_bytes()));
        for value in values {
            let holds = |key: &&String| !gone.contains(key) && Numbers::parse(key.as_bytes()).unwrap().contains(value);
            let expected = keys.iter().find(holds).cloned();
            prop_assert_eq!(found(&ints, Sample::Int(value)).map(|entry| entry.0), expected.clone());
            if let Ok(length) = usize::try_from(value) {
                prop_assert_eq!(found(&lengths, Sample::Str(&vec![b'x'; length])).map(|entry| entry.0), expected.clone());
            }
        }
    }
}

#[test]
fn what_cannot_be_a_pattern_of_every_view_is_not_taken() {
    let list = list(&["10.0.0.0/8".to_owned()]);
    list.change();
    let (networks, texts) = (view(&list, Method::Ip, false), view(&list, Method::Str, false));
    list.add(b"nonsense");
    list.set(b"", b"1");
    list.set(b"192.0.2.1", b"new");
    assert_eq!(found(&texts, Sample::Str(b"nonsense")), None);
    let new = Some(("192.0.2.1".to_owned(), "new".to_owned()));
    assert_eq!(found(&texts, Sample::Str(b"192.0.2.1")), new);
    assert_eq!(found(&networks, Sample::Ip("192.0.2.1".parse().unwrap())), new);
}

#[test]
fn a_list_is_compiled_once_for_each_way_of_looking() {
    let list = list(&["a".to_owned()]);
    assert!(Arc::ptr_eq(&view(&list, Method::Beg, false), &view(&list, Method::Beg, false)));
    assert!(!Arc::ptr_eq(&view(&list, Method::Beg, false), &view(&list, Method::Beg, true)));
}

/// Layers of like size are merged, so that many additions leave few of them, and what is taken out leaves no trace.
#[test]
fn a_list_that_is_changed_for_long_stays_small() {
    let list = list(&["base".to_owned()]);
    list.change();
    let view = view(&list, Method::Str, false);
    for number in 0..5000 {
        list.add(format!("k{number}").as_bytes());
        if number >= 10 {
            list.remove(format!("k{}", number - 10).as_bytes());
        }
    }
    let inner = list.inner();
    let held: usize = inner.blocks.iter().map(|block| block.len()).sum();
    assert!(inner.blocks.len() < 15 && held < 200, "{} layers, {held} entries", inner.blocks.len());
    drop(inner);
    assert!(found(&view, Sample::Str(b"k4995")).is_some() && found(&view, Sample::Str(b"k4980")).is_none());
}

#[test]
fn faults_stand_where_their_entries_stand() {
    let text = b"# c\n10.0.0.0/8\n  300.1.1.1\nhost.test\n1.2.3.4/40\n".to_vec();
    let list = List::new("n.lst");
    list.fill(text.clone(), false);
    let hosts = |name: &str| if name == "host.test" { vec!["192.0.2.1".parse().unwrap()] } else { vec![] };
    let faults = list.view(look(Method::Ip, false), &hosts).unwrap_err();
    let places: Vec<_> = faults.iter().map(|fault| &text[fault.at.clone()]).collect();
    assert_eq!(places, [&b"300.1.1.1"[..], b"1.2.3.4/40"]);
    let regexes = List::new("r.lst");
    regexes.fill(b"ok\na(b\nx(?=y)\n".to_vec(), false);
    let faults = regexes.view(look(Method::Reg, false), &|_| vec![]).unwrap_err();
    assert_eq!(faults.iter().map(|fault| fault.at.clone()).collect::<Vec<_>>(), [3..6, 8..13]);
}
