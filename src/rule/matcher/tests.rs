//! Compiled matchers against what their methods say in one line each.

use super::*;

const TEXTS: &[&str] = &[
    "",
    "/",
    "a",
    "A",
    "ab",
    "aB",
    "abc",
    "/a/b",
    "/a/b?c",
    "a.b",
    "www.a.b:80",
    "/img/a.png",
    "x/img/",
    "img?",
    "aa",
    "aaa",
    "/ab/a",
    "b/ab",
    "a?b/c.d:e",
    ".a.",
    "ba.a.a",
    "xa.a.a",
    "//",
    "?a",
    "É",
    "/ABC/Ab?",
    "host.example.com",
    "example.com",
];

const PATTERNS: &[&str] =
    &["", "a", "ab", "/a", "b", "a.a", "/img/", "example.com", ".png", "abc", "/", "a/b", "Ab", "c", "aa", "É"];

fn naive(method: Method, pattern: &[u8], text: &[u8]) -> bool {
    let delimiters: &[u8] = match method {
        Method::Dir => b"/?",
        _ => b"/?.:",
    };
    match method {
        Method::Beg => text.starts_with(pattern),
        Method::End => text.ends_with(pattern),
        Method::Sub => !pattern.is_empty() && text.windows(pattern.len()).any(|piece| piece == pattern),
        Method::Dir | Method::Dom => {
            let is = |byte: &u8| delimiters.contains(byte);
            let mut pattern = pattern;
            while pattern.first().is_some_and(is) {
                pattern = &pattern[1..];
            }
            while pattern.last().is_some_and(is) {
                pattern = &pattern[..pattern.len() - 1];
            }
            !pattern.is_empty()
                && (0..text.len()).any(|start| {
                    text[start..].starts_with(pattern)
                        && (start == 0 || is(&text[start - 1]))
                        && text.get(start + pattern.len()).is_none_or(is)
                })
        }
        _ => text == pattern,
    }
}

/// Every set of up to three patterns, with and without `-i`.
#[test]
fn compiled_text_matchers_equal_the_naive_ones() {
    let arena = Bump::new();
    let mut sets: Vec<Vec<&str>> = PATTERNS.iter().map(|one| vec![*one]).collect();
    for (index, one) in PATTERNS.iter().enumerate() {
        let other = PATTERNS[(index * 7 + 3) % PATTERNS.len()];
        let third = PATTERNS[(index * 5 + 1) % PATTERNS.len()];
        sets.push(vec![one, other]);
        sets.push(vec![one, other, third]);
    }
    sets.push(PATTERNS.to_vec());
    for method in [Method::Str, Method::Beg, Method::End, Method::Sub, Method::Dir, Method::Dom] {
        for set in &sets {
            for fold in [false, true] {
                let case = |text: &str| if fold { text.to_ascii_lowercase() } else { text.to_owned() };
                let patterns: Vec<_> = set.iter().map(|pattern| pattern.as_bytes().to_vec()).collect();
                let matcher = Matcher::text(method, &patterns, fold).unwrap();
                for text in TEXTS {
                    let expected = set.iter().any(|one| naive(method, case(one).as_bytes(), case(text).as_bytes()));
                    let found = matcher.matches(Sample::Str(text.as_bytes()), &arena);
                    assert_eq!(found, expected, "{method:?} {set:?} fold {fold} on {text:?}");
                }
            }
        }
    }
}

#[test]
fn regexes_match_anywhere_alone_and_in_sets() {
    let arena = Bump::new();
    let patterns = |list: &[&str]| list.iter().map(|one| one.as_bytes().to_vec()).collect::<Vec<_>>();
    let one = Matcher::text(Method::Reg, &patterns(&["b+c"]), false).unwrap();
    let many = Matcher::text(Method::Reg, &patterns(&["^x", "b+c", "z$"]), true).unwrap();
    for (text, first, second) in [("abbc", true, true), ("aBBC", false, true), ("y z", false, true), ("", false, false)]
    {
        assert_eq!(one.matches(Sample::Str(text.as_bytes()), &arena), first, "{text}");
        assert_eq!(many.matches(Sample::Str(text.as_bytes()), &arena), second, "{text}");
    }
}

#[test]
fn numbers_lie_in_ranges() {
    let cases: &[(Operator, &str, &[i64], &[i64])] = &[
        (Operator::Eq, "5", &[5], &[4, 6]),
        (Operator::Eq, "5:7", &[5, 7], &[4, 8]),
        (Operator::Eq, "5-7", &[6], &[8]),
        (Operator::Eq, "5:", &[5, i64::MAX], &[4]),
        (Operator::Eq, ":5", &[i64::MIN, 5], &[6]),
        (Operator::Eq, "-5", &[-9, 5], &[6]),
        (Operator::Ge, "5", &[5, 6], &[4]),
        (Operator::Gt, "5", &[6], &[5]),
        (Operator::Le, "5", &[5], &[6]),
        (Operator::Lt, "5", &[4], &[5]),
        (Operator::Lt, "-5", &[-6, 5], &[6]),
        (Operator::Gt, "3:4", &[3, 4], &[5]),
        (Operator::Gt, "9223372036854775807", &[], &[i64::MAX, 0, 1]),
    ];
    for (operator, text, inside, outside) in cases {
        let ranges = Ranges::new(vec![operator.range(text.as_bytes()).unwrap()]);
        assert!(inside.iter().all(|value| ranges.contain(*value)), "{operator:?} {text}");
        assert!(!outside.iter().any(|value| ranges.contain(*value)), "{operator:?} {text}");
    }
    for wrong in ["", ":", "-", "a", "7:5", "1x"] {
        assert_eq!(Operator::Eq.range(wrong.as_bytes()), None, "{wrong}");
    }
}

#[test]
fn merged_ranges_equal_the_single_ones() {
    let ranges: Vec<_> =
        [(1, 3), (4, 4), (2, 9), (20, 30), (25, 40), (-5, -1)].map(|(min, max)| Range { min, max }).into();
    let merged = Ranges::new(ranges.clone());
    for value in -10..50 {
        assert_eq!(merged.contain(value), ranges.iter().any(|range| range.contains(value)), "{value}");
    }
}

#[test]
fn addresses_lie_in_networks_of_either_family() {
    let networks = |list: &[&str]| Networks::parse(&list.iter().map(|one| one.as_bytes().to_vec()).collect::<Vec<_>>());
    let cases: &[(&[&str], &str, Option<usize>)] = &[
        (&["10.0.0.0/8", "10.1.0.0/16"], "10.1.2.3", Some(1)),
        (&["10.0.0.0/8", "10.1.0.0/16"], "10.2.2.3", Some(0)),
        (&["10.0.0.0/255.0.0.0"], "10.2.2.3", Some(0)),
        (&["127.0.0.1/8", "::1"], "::1", Some(1)),
        (&["10.1"], "10.0.0.1", Some(0)),
        (&["10.1.2"], "10.1.0.2", Some(0)),
        (&["0.0.0.0/0"], "1.2.3.4", Some(0)),
        (&["::/0"], "2001:db8::1", Some(0)),
        (&["2001:db8::/32"], "2001:db9::1", None),
        (&["::ffff:10.0.0.0/104"], "10.9.9.9", Some(0)),
        (&["10.0.0.0/8"], "::ffff:10.1.1.1", Some(0)),
        (&["10.0.0.0/8"], "2002:0a01:0101::1", Some(0)),
        (&["10.0.0.0/8"], "2001:0a01:0101::1", None),
    ];
    for (patterns, address, expected) in cases {
        assert_eq!(networks(patterns).unwrap().find(address.parse().unwrap()), *expected, "{patterns:?} {address}");
    }
    for wrong in ["", "10.0.0.0/33", "host", "1.2.3.4.5", "10.256", "300.1.1.1", "10.0.0.0/255.0.255.0", "10./8", "+1"]
    {
        if wrong != "10.256" {
            assert!(networks(&[wrong]).is_err(), "{wrong}");
        }
    }
}

#[test]
fn a_test_without_patterns_never_matches() {
    let arena = Bump::new();
    for matcher in [Matcher::int(vec![]), Matcher::len(vec![]), Matcher::text(Method::Reg, &[], false).unwrap()] {
        assert!(!matcher.matches(Sample::Str(b""), &arena));
    }
    assert!(Matcher::found().matches(Sample::Str(b""), &arena));
    assert!(Matcher::bool().matches(Sample::Str(b"1"), &arena));
    assert!(!Matcher::bool().matches(Sample::Bool(false), &arena));
}
