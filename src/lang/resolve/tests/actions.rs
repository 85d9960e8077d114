//! Actions on exchanges.

use super::{Bench, Exchange};
use crate::{
    lang::testing::Desk,
    message::Framing,
    rule::{
        Phase, Verdict,
        action::answer::{Given, page},
    },
};

fn exchange() -> Exchange {
    Exchange::new("GET", "/old/page?q=1", &[("Host", "a.example"), ("X-A", "one"), ("X-A", "two"), ("X-B", "abc")])
}

/// Runs `http-request` rules; returns request line and fields.
fn edited(lines: &[&str]) -> Vec<String> {
    let mut bench = Bench::default();
    let rules = bench.rules(Phase::Request, lines);
    let mut exchange = exchange();
    assert!(matches!(exchange.run(&rules), Verdict::Continue));
    let mut target = exchange.request.method().to_vec();
    target.push(b' ');
    exchange.request.write_target(&mut target);
    let mut lines = vec![String::from_utf8(target).unwrap()];
    lines.extend(Exchange::lines(&exchange.request.fields));
    lines
}

#[test]
fn fields_are_set_added_deleted_and_replaced() {
    let cases: &[(&str, &[&str])] = &[
        ("set-header X-A 'v %[method] %%'", &["Host: a.example", "X-A: v GET %", "X-B: abc"]),
        ("set-header X-C %[path]", &["Host: a.example", "X-A: one", "X-A: two", "X-B: abc", "X-C: /old/page"]),
        ("set-header X-B %[req.hdr(none)]", &["Host: a.example", "X-A: one", "X-A: two", "X-B: "]),
        ("add-header x-a three", &["Host: a.example", "X-A: one", "X-A: two", "X-B: abc", "x-a: three"]),
        ("del-header X-A", &["Host: a.example", "X-B: abc"]),
        ("del-header x- -m beg", &["Host: a.example"]),
        ("del-header ^x-[b] -m reg", &["Host: a.example", "X-A: one", "X-A: two"]),
        (
            "replace-header X-A ^t(.*) <\\1\\0>%[method]",
            &["Host: a.example", "X-A: one", "X-A: <wotwo>GET", "X-B: abc"],
        ),
        ("replace-header X-A nothing x", &["Host: a.example", "X-A: one", "X-A: two", "X-B: abc"]),
        ("replace-header X-B (b) [\\1]%[req.hdr(x-b)]", &["Host: a.example", "X-A: one", "X-A: two", "X-B: [b]abc"]),
        ("set-header X-B gone if { path /none }", &["Host: a.example", "X-A: one", "X-A: two", "X-B: abc"]),
    ];
    for (text, expected) in cases {
        let found = edited(&[text]);
        assert_eq!(found[0], "GET /old/page?q=1", "{text}");
        assert_eq!(found[1..], **expected, "{text}");
    }
}

#[test]
fn the_target_is_rewritten() {
    let cases = [
        ("set-path /new%[path]", "GET /new/old/page?q=1"),
        ("set-path /q?z", "GET /q?z?q=1"),
        ("set-path relative", "GET /relative?q=1"),
        ("set-path '/a b'", "GET /a%20b?q=1"),
        ("set-path %[str(/a%0db),url_dec]", "GET /a%0Db?q=1"),
        ("set-query r=2", "GET /old/page?r=2"),
        ("set-query ?r=2", "GET /old/page?r=2"),
        ("set-query %[str()]", "GET /old/page?"),
        ("set-query 'a b'", "GET /old/page?a%20b"),
        ("replace-path /old(.*) /new\\1", "GET /new/page?q=1"),
        ("replace-path ^(/o)ld/ \\1", "GET /o?q=1"),
        ("replace-path none x", "GET /old/page?q=1"),
        ("set-method POST", "POST /old/page?q=1"),
        ("set-method 'no token'", "GET /old/page?q=1"),
    ];
    for (text, expected) in cases {
        assert_eq!(edited(&[text])[0], expected, "{text}");
    }
}

#[test]
fn later_rules_see_earlier_edits() {
    let found = edited(&[
        "set-path /x",
        "set-header X-C yes if { path /x }",
        "set-var(txn.v) req.hdr(x-c),upper",
        "set-header X-D %[var(txn.v)] if { var(txn.v) -m str YES }",
        "set-var-fmt(req.f) '%[path]-%[method]'",
        "set-header X-E %[var(req.f)]",
        "unset-var(txn.v)",
        "set-header X-F yes if { var(txn.v) -m found }",
        "allow",
        "set-header X-G no",
    ]);
    assert_eq!(found[found.len() - 3..], ["X-C: yes", "X-D: YES", "X-E: /x-GET"]);
}

#[test]
fn a_field_value_cannot_be_broken_out_of() {
    let found = edited(&["set-header X-C %[str(a%0d%0aSet-Cookie:b),url_dec]"]);
    assert_eq!(found.last().unwrap(), "X-C: a%0D%0ASet-Cookie:b");
}

#[test]
fn response_rules_edit_the_response() {
    for phase in [Phase::Response, Phase::AfterResponse, Phase::CacheResponse] {
        let mut bench = Bench::default();
        let lines = [
            "set-header X-Status %[status]",
            "add-header X-Two 2",
            "del-header Server",
            "replace-header Cache-Control (.*) 'public, \\1'",
        ];
        let rules = bench.rules(phase, &lines);
        assert!(rules.reads_only_response());
        let mut exchange = exchange().answered(200, &[("Server", "x"), ("Cache-Control", "max-age=1")]);
        assert!(matches!(exchange.run(&rules), Verdict::Continue));
        let found = Exchange::lines(&exchange.response.unwrap().fields);
        assert_eq!(found, ["Cache-Control: public, max-age=1", "X-Status: 200", "X-Two: 2"]);
    }
}

#[test]
fn rules_that_read_a_client_are_told_apart() {
    let mut bench = Bench::default();
    for (text, expected) in [
        ("set-header A %[res.hdr(b)]", true),
        ("set-header A b if { status 200 }", true),
        ("set-header A %[src]", false),
        ("set-header A %[req.hdr(origin)]", false),
        ("set-header A %[var(txn.x)]", false),
        ("set-header A %[res.hdr(b),upper,base64]", true),
        ("set-header A %[res.hdr(b),concat(-,txn.x)]", false),
        ("set-header A %[status,add(txn.x)]", false),
        ("set-header A %[res.hdr(b),set-var(txn.x)]", false),
        ("set-header A b if { path /x }", false),
        ("set-var(txn.a) status", false),
    ] {
        assert_eq!(bench.rules(Phase::Response, &[text]).reads_only_response(), expected, "{text}");
    }
}

/// What a converter sets is there for the rules and conditions that follow, and in one condition after another.
#[test]
fn converters_set_variables_for_later_rules() {
    let mut bench = Bench::default();
    let rules = bench.rules(
        Phase::Request,
        &[
            "set-header A %[path,set-var(txn.p),length,set-var(txn.n),add(txn.n)]",
            "set-header B %[var(txn.p),concat(-,txn.n)] if { var(txn.p) -m str /abc }",
            "set-header C %[str(x),unset-var(txn.p),concat(-,txn.p)]",
            "set-header D 1 if { path,set-var(txn.q) -m found } { var(txn.q) -m str /abc } !{ var(txn.p) -m found }",
            "set-var(txn.n) str(new)",
            "set-header E %[var(txn.n)]",
        ],
    );
    let mut exchange = Exchange::new("GET", "/abc", &[]);
    exchange.run(&rules);
    assert_eq!(Exchange::lines(&exchange.request.fields), ["A: 8", "B: /abc-4", "C: x-", "D: 1", "E: new"]);
}

fn answer(verdict: Verdict) -> (u16, Vec<String>, String) {
    let (Verdict::Deny(given) | Verdict::Answer(given)) = verdict else { panic!("no answer: {verdict:?}") };
    let answer = match given {
        Given::Answer(answer) => *answer,
        Given::Page { status, challenge } => {
            assert_eq!(challenge, None);
            page(status)
        }
        Given::Silence => panic!("silence"),
    };
    assert_eq!(answer.head.framing, Framing::Length(answer.body.len() as u64));
    (answer.head.status, Exchange::lines(&answer.head.fields), String::from_utf8(answer.body.to_vec()).unwrap())
}

#[test]
fn requests_are_denied() {
    let mut bench = Bench::default();
    for (text, status) in [("deny", 403), ("deny status 429 default-errorfiles", 429), ("deny deny_status 404", 404)] {
        let verdict = exchange().run(&bench.rules(Phase::Request, &[text]));
        assert!(matches!(verdict, Verdict::Deny(_)));
        let (found, fields, body) = answer(verdict);
        assert_eq!(
            (found, fields),
            (status, vec!["Content-Type: text/html".to_owned(), "Cache-Control: no-cache".to_owned()])
        );
        assert!(body.contains(&format!("<h1>{status} ")));
    }
    // Any other word makes an answer of its own, as in HAProxy.
    let rules = bench.rules(Phase::Request, &["deny status 429"]);
    assert_eq!(answer(exchange().run(&rules)), (429, vec![], String::new()));
    let rules = bench.rules(Phase::Response, &["deny"]);
    assert_eq!(answer(exchange().answered(200, &[]).run(&rules)).0, 502);
    let rules =
        bench.rules(Phase::Request, &["deny status 400 content-type text/plain string 'go away' hdr X-Why %[path]"]);
    let expected =
        (400, vec!["Content-Type: text/plain".to_owned(), "X-Why: /old/page".to_owned()], "go away".to_owned());
    assert_eq!(answer(exchange().run(&rules)), expected);
}

#[test]
fn requests_are_answered() {
    let desk = Desk::new().with_file("body.txt", "from\na file").with_file("body.lf", "path %[path]\n");
    let mut bench = Bench { desk, ..Bench::default() };
    let cases: &[(&str, u16, &[&str], &str)] = &[
        ("return", 200, &[], ""),
        ("return status 204", 204, &[], ""),
        ("return content-type text/plain string '100%'", 200, &["Content-Type: text/plain"], "100%"),
        ("return content-type a/b lf-string %[method]%%", 200, &["Content-Type: a/b"], "GET%"),
        ("return content-type a/b file body.txt", 200, &["Content-Type: a/b"], "from\na file"),
        (
            "return content-type a/b lf-file body.lf hdr A %[query] hdr B c",
            200,
            &["Content-Type: a/b", "A: q=1", "B: c"],
            "path /old/page\n",
        ),
    ];
    for (text, status, fields, body) in cases {
        let verdict = exchange().run(&bench.rules(Phase::Request, &[text]));
        assert!(matches!(verdict, Verdict::Answer(_)));
        let found = answer(verdict);
        assert_eq!(
            (found.0, found.1.as_slice(), found.2.as_str()),
            (*status, &fields.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()[..], *body),
            "{text}"
        );
    }
}

#[test]
fn requests_are_redirected() {
    let mut bench = Bench::default();
    let cases: &[(&str, u16, &[&str])] = &[
        ("redirect location /x%[path]", 302, &["Location: /x/old/page", "Cache-Control: no-cache"]),
        ("redirect code 301 location https://b/", 301, &["Location: https://b/"]),
        ("redirect prefix https://b", 302, &["Location: https://b/old/page?q=1", "Cache-Control: no-cache"]),
        ("redirect prefix / drop-query append-slash code 308", 308, &["Location: /old/page/"]),
        ("redirect scheme https code 301", 301, &["Location: https://a.example/old/page?q=1"]),
        ("redirect location / set-cookie a=1 code 301", 301, &["Location: /", "Set-Cookie: a=1; path=/;"]),
        ("redirect location / clear-cookie a= code 301", 301, &["Location: /", "Set-Cookie: a=; path=/; Max-Age=0;"]),
    ];
    for (text, status, fields) in cases {
        let found = answer(exchange().run(&bench.rules(Phase::Request, &[text])));
        assert_eq!(found.0, *status, "{text}");
        assert_eq!(found.1, *fields, "{text}");
        assert_eq!(found.2, "");
    }
    let skipped = bench.rules(Phase::Request, &["redirect location %[req.hdr(none)] ignore-empty"]);
    assert!(matches!(exchange().run(&skipped), Verdict::Continue));
}

#[test]
fn a_plain_redirect_takes_its_words_as_text() {
    let mut bench = Bench::default();
    let line = super::line("location /a%20b%[path] if { path_beg /old }");
    let rule = crate::lang::resolve::redirect_line(&mut bench.scope(), &line.words, &line).unwrap();
    bench.clean();
    let rules = crate::rule::RuleSet { rules: vec![rule] };
    assert_eq!(answer(exchange().run(&rules)).1[0], "Location: /a%20b%[path]");
}

#[test]
fn purges_are_verdicts() {
    let mut bench = Bench::default();
    for (text, expected) in [("purge", false), ("purge soft", true)] {
        let rules = bench.rules(Phase::Request, &[&format!("{text} if {{ method GET }}")]);
        assert!(matches!(exchange().run(&rules), Verdict::Purge { soft } if soft == expected));
    }
}

#[test]
fn variables_of_the_connection_outlive_the_request() {
    let mut bench = Bench::default();
    let rules = bench.rules(
        Phase::Request,
        &["set-var(sess.first) path if !{ var(sess.first) -m found }", "set-header X %[var(sess.first)]"],
    );
    let mut exchange = exchange();
    exchange.run(&rules);
    exchange.vars.end_request();
    exchange.request = crate::message::Request::new(b"GET", b"/second");
    exchange.run(&rules);
    assert_eq!(Exchange::lines(&exchange.request.fields), ["X: /old/page"]);
}

#[test]
fn lists_are_changed_for_whoever_looks_next() {
    let desk = Desk::new().with_file("a.lst", "/old\n").with_file("a.map", "/old 1\n/old 2\n/other 3\n");
    let mut bench = Bench { desk, ..Bench::default() };
    bench.acl("acl listed path -f a.lst");
    bench.acl("acl mapped path -M -f a.map");
    let rules = bench.rules(
        Phase::Request,
        &[
            "set-header Listed 1 if listed",
            "set-header Mapped '%[path,map_str_int(a.map,0)]'",
            "add-acl(a.lst) %[path] if { query add }",
            "del-acl(file@a.lst) %[path] if { query del }",
            "set-map(a.map) %[path] %[path,length] if { query add }",
            "del-map(a.map) %[path] if { query del }",
            "set-header Now '%[path,map_str_int(a.map,0)]' if listed mapped",
        ],
    );
    let fields = |target: &str| {
        let mut exchange = Exchange::new("GET", target, &[]);
        exchange.run(&rules);
        Exchange::lines(&exchange.request.fields).join(", ")
    };
    assert_eq!(fields("/old"), "Listed: 1, Mapped: 1, Now: 1");
    assert_eq!(fields("/old?del"), "Listed: 1, Mapped: 1");
    assert_eq!(fields("/old"), "Mapped: 0");
    assert_eq!(fields("/old?add"), "Mapped: 0, Now: 4");
    assert_eq!(fields("/new?add"), "Mapped: 0, Now: 4");
    assert_eq!(fields("/new"), "Listed: 1, Mapped: 4, Now: 4");
    assert_eq!(fields("/other"), "Mapped: 3");
    assert!(!rules.reads_only_response());
}

#[test]
fn what_looks_into_a_changing_list_is_not_kept_beside_a_stored_response() {
    let bench = || Bench { desk: Desk::new().with_file("a.map", "200 fine\n"), ..Bench::default() };
    let lines = ["set-header A %[status,map_int(a.map)]", "set-header B 1 if { status -M -f a.map }"];
    for line in lines {
        let mut still = bench();
        assert!(still.rules(Phase::Response, &[line]).reads_only_response(), "{line}");
        let mut changing = bench();
        let rules = changing.rules(Phase::Response, &[line]);
        changing.rules(Phase::Request, &["del-map(a.map) 200"]);
        assert!(!rules.reads_only_response(), "{line}");
    }
}
