//! ACLs and conditions on exchanges.

use super::{Bench, Exchange, line};
use crate::{
    lang::{resolve::cond, testing::Desk},
    rule::{Cond, Phase, Tri},
};

fn compiled(bench: &mut Bench, text: &str, phase: Phase) -> Cond {
    let line = line(text);
    let made = cond(&mut bench.scope(), &line.words, phase);
    assert!(
        bench.found.iter().all(|found| found.severity < crate::lang::diag::Severity::Error),
        "{text}: {:#?}",
        bench.found
    );
    made.flatten().expect(text)
}

fn exchange() -> Exchange {
    let fields = [
        ("Host", "www.example.com"),
        ("X-List", "one, two"),
        ("X-List", "three"),
        ("Cookie", "lang=fr; lang=en"),
        ("Accept", "text/html"),
    ];
    Exchange::new("GET", "/img/Logo.png?size=20&name=Bob", &fields).tls(Some("shop.example.com"))
}

#[test]
fn criteria_flags_and_patterns_decide() {
    let cases = [
        ("path /img/Logo.png", true),
        ("path /img/logo.png", false),
        ("path -i /img/logo.png", true),
        ("path_beg /img/", true),
        ("path_beg /css/ /img/ /js/", true),
        ("path_end .gif .png", true),
        ("path_end -i .PNG", true),
        ("path_sub Logo", true),
        ("path_dir img", true),
        ("path_dir im", false),
        ("path_dom png", true),
        ("path_reg ^/img/.*\\.png$", true),
        ("path_reg -i LOGO", true),
        ("path_len 13", true),
        ("path_len 14 gt 20", false),
        ("path -m beg /img", true),
        ("path -m reg -i ^/IMG", true),
        ("path -m len ge 10", true),
        ("path -m found", true),
        ("query -m found", true),
        ("req.hdr(none) -m found", false),
        ("hdr(x-list) two", true),
        ("hdr(x-list) three", true),
        ("hdr(x-list,1) two", false),
        ("hdr(x-list,1) one", true),
        ("hdr_beg(x-list) tw", true),
        ("hdr_cnt(x-list) 3", true),
        ("hdr_dom(host) example", true),
        ("hdr_dom(host) -m beg www.", true),
        ("hdr_end(host) .com", true),
        ("hdr_reg(host) ^www\\.", true),
        ("hdr_sub(accept) html", true),
        ("req.hdr_beg(host) www", true),
        ("cook(lang) fr", true),
        ("cook_sub(lang) e", true),
        ("cook_beg(lang) x", false),
        ("url_param(size) 20", true),
        ("url_param(size) -m int gt 19", true),
        ("url_param_reg(name) ^B", true),
        ("urlp_len(name) 3", true),
        ("url_beg /img", true),
        ("base_dom example", true),
        ("method GET POST", true),
        ("method get", false),
        ("method -i get", true),
        ("method POST", false),
        ("method -m str GET", true),
        ("src 192.0.2.0/24", true),
        ("src 10.0.0.0/8 192.0.2.7", true),
        ("src 10.0.0.0/8", false),
        ("src -m str 192.0.2.7", true),
        ("src -m int 3221225991", true),
        ("dst_port 443", true),
        ("dst_port 80:100 400-500", true),
        ("dst_port eq 442 lt 500", true),
        ("dst_port gt 443", false),
        ("ssl_fc", true),
        ("ssl_fc -m bool", true),
        ("ssl_fc -m str 1", true),
        ("ssl_fc_sni shop.example.com", true),
        ("ssl_fc_sni_end .example.com", true),
        ("ssl_fc_sni_reg ^shop", true),
        ("ssl_fc_sni -i SHOP.EXAMPLE.COM", true),
        ("always_false", false),
        ("path,lower /img/logo.png", true),
        ("path,lower -m beg /img/l", true),
        ("hdr(host),field(1,.) www", true),
        ("var(txn.x) -m found", false),
        ("path -f paths.lst", true),
        ("path -i -f lower.lst", true),
        ("path -f lower.lst", false),
        ("path -f lower.lst /img/Logo.png", true),
        ("path -M -f paths.map", true),
        ("path -f opt@missing.lst --", false),
        ("path -- -x", false),
        ("path -m bin 2F696d672f4C6f676f2e706e67", true),
        ("path -m bin 2f696d67", false),
        ("path -m bin -f bytes.lst", true),
        ("src -m bin c0000207", true),
        ("path -f lower.lst -i -f lower.lst", true),
        ("path -f lower.lst -f paths.lst", true),
        ("path -f file@paths.lst -f opt@missing.lst", true),
        ("src -f nets.lst", true),
        ("src friend.example", true),
        ("path", false),
    ];
    let desk = Desk::new()
        .with_file("paths.lst", "# paths\n/a\n/img/Logo.png\n")
        .with_file("lower.lst", "/img/logo.png\n")
        .with_file("paths.map", "/img/Logo.png value\n")
        .with_file("bytes.lst", "2f\n2f696d672f4c6f676f2e706e67\n")
        .with_file("nets.lst", "10.0.0.0/8\n192.0.2.0/24\n")
        .with_host("friend.example", [192, 0, 2, 7]);
    let mut bench = Bench { desk, ..Bench::default() };
    for (text, expected) in cases {
        let cond = compiled(&mut bench, &format!("if {{ {text} }}"), Phase::Request);
        assert_eq!(exchange().with(|txn| cond.holds(txn)), expected, "{text}");
    }
}

#[test]
fn terms_join_as_an_or_of_ands() {
    let mut bench = Bench::default();
    for text in ["acl t always_true", "acl f always_false", "acl both always_false", "acl both always_true"] {
        bench.acl(text);
    }
    let cases = [
        ("if t", true),
        ("if f", false),
        ("if t f", false),
        ("if t f || t", true),
        ("if f or f OR t", true),
        ("if !f", true),
        ("if !!f", false),
        ("if ! f", true),
        ("if ! { always_false }", true),
        ("if !{ always_true }", false),
        ("if t !f t", true),
        ("unless t", false),
        ("unless f", true),
        ("unless t f", true),
        ("unless f || t", false),
        ("if both", true),
        ("if TRUE !FALSE HTTP", true),
    ];
    for (text, expected) in cases {
        let cond = compiled(&mut bench, text, Phase::Request);
        assert_eq!(exchange().with(|txn| cond.holds(txn)), expected, "{text}");
        assert_eq!(String::from_utf8_lossy(cond.text()), text);
    }
    bench.clean();
}

#[test]
fn predefined_acls_are_there_and_can_be_redefined() {
    let mut bench = Bench::default();
    for (text, expected) in [
        ("if METH_GET", true),
        ("if METH_POST", false),
        ("if HTTP_1.1 !HTTP_1.0 !HTTP_2.0", true),
        ("if HTTP_CONTENT", false),
        ("if HTTP_URL_SLASH !HTTP_URL_STAR !HTTP_URL_ABS", true),
        ("if LOCALHOST", false),
    ] {
        let cond = compiled(&mut bench, text, Phase::Request);
        assert_eq!(exchange().with(|txn| cond.holds(txn)), expected, "{text}");
    }
    let head = compiled(&mut bench, "if METH_GET", Phase::Request);
    assert!(Exchange::new("HEAD", "/", &[]).with(|txn| head.holds(txn)));
    bench.acl("acl METH_GET method POST");
    let redefined = compiled(&mut bench, "if METH_GET", Phase::Request);
    assert!(!exchange().with(|txn| redefined.holds(txn)));
}

#[test]
fn de_morgan_holds_whatever_is_known() {
    let mut bench = Bench::default();
    for text in ["acl t always_true", "acl f always_false", "acl later status 200", "acl never status 500"] {
        bench.acl(text);
    }
    let names = ["t", "f", "later", "never"];
    for one in names {
        for other in names {
            let pairs = [
                (format!("unless {one} {other}"), format!("if !{one} || !{other}")),
                (format!("unless {one} || {other}"), format!("if !{one} !{other}")),
                (format!("if !{one} || {other}"), format!("unless {one} !{other}")),
            ];
            for (left, right) in pairs {
                let left = compiled(&mut bench, &left, Phase::Caching);
                let right = compiled(&mut bench, &right, Phase::Caching);
                let mut before = exchange();
                assert_eq!(
                    before.with(|txn| left.so_far(txn)),
                    before.with(|txn| right.so_far(txn)),
                    "{left:?} {right:?}"
                );
                let mut after = exchange().answered(200, &[]);
                assert_eq!(after.with(|txn| left.holds(txn)), after.with(|txn| right.holds(txn)));
            }
        }
    }
}

#[test]
fn what_is_decided_at_request_time_stays_decided() {
    let mut bench = Bench::default();
    for text in ["acl img path_beg /img/", "acl ok status 200", "acl mixed path_beg /img/", "acl mixed status 200"] {
        bench.acl(text);
    }
    for (text, expected) in [
        ("if img", Tri::True),
        ("if !img", Tri::False),
        ("if ok", Tri::Unknown),
        ("if img ok", Tri::Unknown),
        ("if !img ok", Tri::False),
        ("if img || ok", Tri::True),
        ("if !img || ok", Tri::Unknown),
        ("unless !img ok", Tri::True),
        ("if mixed", Tri::True),
        ("if { var(res.x) -m found }", Tri::Unknown),
    ] {
        let cond = compiled(&mut bench, text, Phase::Caching);
        assert_eq!(exchange().with(|txn| cond.so_far(txn)), expected, "{text}");
        let mut answered = exchange().answered(200, &[]);
        let whole = answered.with(|txn| cond.so_far(txn));
        assert_ne!(whole, Tri::Unknown);
        assert_eq!(whole == Tri::True, answered.with(|txn| cond.holds(txn)), "{text}");
        if expected != Tri::Unknown {
            assert_eq!(whole, expected, "{text}");
        }
    }
}

#[test]
fn unused_acls_are_remembered() {
    let mut bench = Bench::default();
    bench.acl("acl used always_true");
    bench.acl("acl spare always_true");
    compiled(&mut bench, "if used", Phase::Request);
    assert_eq!(bench.acls.unused().map(|(name, _)| name).collect::<Vec<_>>(), ["spare"]);
}

/// A condition on a request with no edits makes nothing on the heap: the arena's bytes stay where they are, too.
#[test]
fn borrowed_samples_leave_the_arena_empty() {
    let mut bench = Bench::default();
    let cond = compiled(
        &mut bench,
        "if { path_beg /img/ /css/ } { hdr(x-list) -i three } { path_reg ^/img } { cook(lang) en } { src 192.0.2.0/24 } METH_GET { url_param(size) 20 }",
        Phase::Request,
    );
    let mut exchange = exchange();
    let before = exchange.arena.allocated_bytes();
    assert!(exchange.with(|txn| cond.holds(txn)));
    assert_eq!(exchange.arena.allocated_bytes(), before);
}
