//! Caching rules: parameters, keys, defaults of both dialects.

use std::time::Duration;

use super::{Bench, Exchange, line};
use crate::{
    config::{CacheRule, FillMode, KeyPart},
    lang::{
        diag::Severity,
        resolve::{CacheRuleDraft, Dialect, WAIT_ON, cache_rule, codes},
    },
    policy::{
        rewrite::{Names, Rewrite},
        terms::{Heuristic, Ignore, Statuses, Terms, Ttl},
    },
    rule::{RulePlace, Tri},
};

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn draft(bench: &mut Bench, dialect: Dialect, text: &str) -> Option<CacheRuleDraft> {
    let line = line(text);
    cache_rule(&mut bench.scope(), dialect, &line.words, &line, RulePlace::default())
}

fn made(dialect: Dialect, text: &str) -> CacheRule {
    let mut bench = Bench::default();
    let draft = draft(&mut bench, dialect, text);
    assert!(bench.found.iter().all(|found| found.severity < Severity::Error), "{text}: {:#?}", bench.found);
    draft.expect(text).rule
}

/// A key as text.
fn key(rule: &CacheRule) -> String {
    let text = |part: &KeyPart| match part {
        KeyPart::Sample(expr) => String::from_utf8_lossy(expr.text()).into_owned(),
        KeyPart::Host(_) => "Host".to_owned(),
        other => format!("{other:?}"),
    };
    rule.key.iter().map(text).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_bare_rule_has_the_defaults_of_its_dialect() {
    let ours = made(Dialect::Tidegate, "r");
    assert_eq!(ours.terms, Terms::default());
    assert_eq!(
        (key(&ours).as_str(), ours.wait, ours.fill),
        ("Scheme Host Path Query", Some(WAIT_ON), FillMode::default())
    );
    assert_eq!(ours.tags.len(), 3);
    let nuster = made(Dialect::Nuster, "r");
    assert_eq!(nuster.terms.ttl, Ttl::Fixed(Duration::from_secs(0x7fff_ffff)));
    assert_eq!(nuster.terms.statuses, Statuses::Only(vec![200]));
    assert_eq!(nuster.terms.ignore, Ignore::default());
    assert_eq!((key(&nuster).as_str(), nuster.wait), ("Scheme Host Uri", None));
}

#[test]
fn lifetimes_come_in_four_forms() {
    let cases = [
        ("r ttl auto", Ttl::default()),
        ("r ttl 90", Ttl::Fixed(secs(90))),
        ("r ttl 1h", Ttl::Fixed(secs(3600))),
        ("r ttl 0", Ttl::Fixed(secs(0))),
        ("r ttl auto 10s..1h", Ttl::Auto { min: Some(secs(10)), max: Some(secs(3600)) }),
        ("r ttl auto ..1h", Ttl::Auto { min: None, max: Some(secs(3600)) }),
        ("r ttl auto 10..", Ttl::Auto { min: Some(secs(10)), max: None }),
        ("r ttl 200=1h 404=10s", Ttl::PerStatus(vec![(200, secs(3600)), (404, secs(10))])),
    ];
    for (text, expected) in cases {
        assert_eq!(made(Dialect::Tidegate, text).terms.ttl, expected, "{text}");
    }
    assert_eq!(made(Dialect::Nuster, "r ttl 0").terms.ttl, Ttl::Fixed(secs(0x7fff_ffff)));
    assert_eq!(made(Dialect::Nuster, "r ttl 100000d").terms.ttl, Ttl::Fixed(secs(0x7fff_ffff)));
}

#[test]
fn stale_responses_may_stand_in() {
    let windows = |dialect, text| {
        let terms = made(dialect, text).terms;
        (terms.grace, terms.stale_if_error)
    };
    let forever = Some(secs(0x7fff_ffff));
    assert_eq!(windows(Dialect::Tidegate, "r stale-if-error 5m grace 1"), (Some(secs(1)), Some(secs(300))));
    assert_eq!(windows(Dialect::Tidegate, "r stale-if-error on"), (None, forever));
    assert_eq!(windows(Dialect::Tidegate, "r stale-if-error off"), (None, Some(secs(0))));
    assert_eq!(windows(Dialect::Nuster, "r use-stale 30"), (Some(secs(30)), Some(secs(30))));
    assert_eq!(windows(Dialect::Nuster, "r use-stale on"), (forever, forever));
}

#[test]
fn a_heuristic_has_a_part_and_a_limit() {
    let heuristic = |text| made(Dialect::Tidegate, text).terms.heuristic;
    assert_eq!(heuristic("r heuristic 10% max 1d"), Some(Heuristic { percent: 10, max: secs(86_400) }));
    assert_eq!(heuristic("r heuristic off"), None);
    for text in ["r heuristic 10%", "r heuristic 101% max 1d", "r heuristic 10% max x", "r heuristic 10 max 1d"] {
        let mut bench = Bench::default();
        assert!(draft(&mut bench, Dialect::Tidegate, text).is_none(), "{text}");
    }
}

#[test]
fn an_explicit_lifetime_of_nusters_outweighs_the_response() {
    let ignore = Ignore { no_store: true, no_cache: true, max_age: true, pragma: true, ..Ignore::default() };
    assert_eq!(made(Dialect::Nuster, "r ttl 5").terms.ignore, ignore);
    assert_eq!(made(Dialect::Nuster, "r ttl auto").terms.ignore, Ignore::default());
    assert_eq!(made(Dialect::Tidegate, "r ttl 5").terms.ignore, Ignore::default());
}

#[test]
fn keys_are_words_or_dotted() {
    let cases = [
        ("r key host path", "Host Path"),
        ("r key method.scheme.host.path.delimiter.query", "Method Scheme Host Path Delimiter Query"),
        ("r key uri.header_Accept-Language.cookie_lang.param_type", "Uri hdr(accept-language) cookie_lang param_type"),
        ("r key host hdr(Accept) cookie(x) sni src port", "Host hdr(accept) cookie(x) ssl_fc_sni src Port"),
        ("r key path %[req.hdr(x),lower] str(v1) ttl 5", "Path req.hdr(x),lower str(v1)"),
    ];
    for (text, expected) in cases {
        assert_eq!(key(&made(Dialect::Tidegate, text)), expected, "{text}");
    }
    for (text, expected) in [
        ("r key host cookie(x)", true),
        ("r key host.cookie_x", true),
        ("r key %[cook(x)]", true),
        ("r key hdr(Cookie)", true),
        ("r key host hdr(accept)", false),
    ] {
        assert_eq!(made(Dialect::Tidegate, text).terms.cookie_in_key, expected, "{text}");
    }
}

#[test]
fn a_key_sees_all_of_a_field_a_cookie_and_a_parameter() {
    let rule = made(Dialect::Tidegate, "r key hdr(a) cookie(b) param_c");
    let mut exchange = Exchange::new("GET", "/?c=1&c=2", &[("A", "1, 2"), ("a", "3"), ("Cookie", "b=1; b=2")]);
    let values: Vec<_> = exchange.with(|txn| {
        rule.key
            .iter()
            .map(|part| match part {
                KeyPart::Sample(expr) => super::show(expr.eval(txn).unwrap()),
                _ => String::new(),
            })
            .collect()
    });
    assert_eq!(values, ["str 1, 2,3", "str b=1;b=2", "str c=1&c=2"]);
}

/// What a server might read as the parameter or cookie is never left out of a key that names it.
#[test]
fn no_spelling_slips_past_a_key() {
    let rule = made(Dialect::Tidegate, "r key param_id cookie(b)");
    let keys = |target: &str, cookie: &str| {
        let mut exchange = Exchange::new("GET", target, &[("Cookie", cookie)]);
        exchange.with(|txn| {
            let value = |part: &KeyPart| match part {
                KeyPart::Sample(expr) => expr.eval(txn).map(super::show),
                _ => None,
            };
            rule.key.iter().map(value).collect::<Vec<_>>()
        })
    };
    let targets =
        ["/", "/?id=1", "/?id=1&id=2", "/?id=1;id=2", "/?%69d=1", "/?x=1;id=1", "/?id", "/?id[]=1", "/?id=&x"];
    for (index, one) in targets.iter().enumerate() {
        for other in targets.iter().skip(index + 1) {
            assert_ne!(keys(one, ""), keys(other, ""), "{one} {other}");
        }
    }
    assert_eq!(keys("/?x=1&idx=2", ""), keys("/", ""));
    let cookies = ["", "b=1", "b=1; b=2", "a=\"x; b=1\"", "b=\"x; a=1\"", "b=\"x; a=2\"", "b=1,c", "a=1,b=1", "b"];
    for (index, one) in cookies.iter().enumerate() {
        for other in cookies.iter().skip(index + 1) {
            assert_ne!(keys("/", one), keys("/", other), "{one} {other}");
        }
    }
    assert_eq!(keys("/", "a=1; bb=2"), keys("/", ""));
}

#[test]
fn the_other_parameters_are_read() {
    let text = "r status 200,404 410 grace 30s wait 5s fill finish-if 80%/2m tags res.hdr(xkey) \
                %[res.hdr(group),lower] honour client ignore set-cookie,private vary store edge";
    let mut bench = Bench::default();
    let draft = draft(&mut bench, Dialect::Tidegate, text).unwrap();
    let rule = draft.rule;
    assert_eq!(rule.terms.statuses, Statuses::Only(vec![200, 404, 410]));
    assert_eq!(rule.terms.grace, Some(Duration::from_secs(30)));
    assert_eq!(rule.wait, Some(Duration::from_secs(5)));
    assert_eq!(rule.fill, FillMode::FinishIf { percent: 80, bytes: 2 << 20 });
    assert_eq!(rule.tags.iter().map(|expr| expr.fetch().name()).collect::<Vec<_>>(), ["res.fhdr_all", "res.hdr"]);
    assert!(rule.terms.honour_client);
    assert_eq!(rule.terms.ignore, Ignore { set_cookie: true, private: true, vary: true, ..Ignore::default() });
    assert_eq!(draft.store.unwrap().text, b"edge");
    assert_eq!(bench.found.iter().map(|found| found.code).collect::<Vec<_>>(), [codes::IGNORED_REQUIREMENT]);
    assert_eq!(made(Dialect::Nuster, "r wait on code all").wait, Some(WAIT_ON));
    assert_eq!(made(Dialect::Nuster, "r code all").terms.statuses, Statuses::All);
    assert_eq!(made(Dialect::Tidegate, "r fill abandon wait off").wait, None);
}

#[test]
fn a_rule_takes_from_a_request_what_shapes_no_answer() {
    let rewrites = |text| made(Dialect::Tidegate, text).rewrites;
    let names = |list: &str| Names::new(list.split(','));
    assert_eq!(
        rewrites("r strip query utm_*,gclid strip cookies except a b* normalise query-order,case"),
        [
            Rewrite::StripQuery(names("utm_*,gclid")),
            Rewrite::StripCookies(names("a,b*")),
            Rewrite::SortQuery,
            Rewrite::LowerPath
        ]
    );
    assert_eq!(rewrites("r strip cookies"), [Rewrite::StripCookies(Names::default())]);
    assert_eq!(rewrites("r normalise accept-encoding accept-language"), [Rewrite::SortLanguages]);
    let [Rewrite::StripQuery(tracking)] = &rewrites("r strip query @tracking,x")[..] else { panic!() };
    assert!(["utm_source", "gclid", "x"].iter().all(|name| tracking.has(name.as_bytes())) && !tracking.has(b"id"));
    assert_eq!(rewrites("r key host path query(b,a*)"), [Rewrite::KeepQuery(names("b,a*")), Rewrite::SortQuery]);
    assert_eq!(rewrites("r key path query(!a)"), [Rewrite::StripQuery(names("a")), Rewrite::SortQuery]);
    for text in ["r strip query", "r strip cookies a", "r strip cookies except", "r normalise x", "r key query(a,!b)"] {
        let mut bench = Bench::default();
        assert!(draft(&mut bench, Dialect::Tidegate, text).is_none(), "{text}");
        assert_eq!(bench.found[0].code, codes::BAD_PARAMETER, "{text}");
    }
}

#[test]
fn what_is_not_built_is_accepted_with_its_default_alone() {
    made(Dialect::Nuster, "r use-stale off extend off inactive off memory on disk off etag off last-modified off");
    made(Dialect::Tidegate, "r heuristic off min-uses 1 slice off status-header on mode on forward all");
    for text in ["r disk on", "r mode shadow", "r key body"] {
        let mut bench = Bench::default();
        assert!(draft(&mut bench, Dialect::Tidegate, text).is_none(), "{text}");
        assert_eq!(bench.found.len(), 1);
        assert_eq!(
            (bench.found[0].code, bench.found[0].severity),
            (codes::UNBUILT_PARAMETER, Severity::Error),
            "{text}"
        );
    }
    let mut bench = Bench { lenient: true, ..Bench::default() };
    assert!(draft(&mut bench, Dialect::Tidegate, "r disk on ttl 5").is_some());
    assert_eq!(bench.found[0].severity, Severity::Warning);
}

#[test]
fn a_condition_may_mix_request_and_response() {
    let rule = made(Dialect::Tidegate, "r ttl 5 if { path_beg /img/ } { status 200 }");
    let cond = rule.cond.unwrap();
    assert_eq!(Exchange::get("/img/x").with(|txn| cond.so_far(txn)), Tri::Unknown);
    assert_eq!(Exchange::get("/css/x").with(|txn| cond.so_far(txn)), Tri::False);
    assert!(Exchange::get("/img/x").answered(200, &[]).with(|txn| cond.holds(txn)));
}

#[test]
fn a_fingerprint_changes_with_what_shapes_objects() {
    let print = |text| made(Dialect::Tidegate, text).fingerprint;
    assert_eq!(print("r key host path ttl 5"), print("r ttl 9 key host.path"));
    assert_eq!(print("r"), print("r key scheme host path query"));
    assert_ne!(print("r"), print("s"));
    assert_ne!(print("r key host"), print("r key path"));
    assert_ne!(print("r"), print("r ignore vary"));
    assert_ne!(print("r"), print("r strip cookies"));
    let key = |text| made(Dialect::Tidegate, text).key_print;
    assert_eq!(key("r ignore vary"), key("s"));
}
