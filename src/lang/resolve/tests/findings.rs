//! What is wrong: its code, the piece of text it points at, and the way out.

use super::{Bench, line};
use crate::{
    lang::{
        diag::{Diagnostic, Severity},
        resolve::{Dialect, Lists, cache_rule, codes, cond, expr, redirect_line},
        source::{FileId, Sources, Span},
        testing::Desk,
    },
    rule::{Phase, RulePlace},
};

/// Reads one line by its first word.
fn read(bench: &mut Bench, text: &str) {
    let line = line(text);
    let (keyword, rest) = line.words.split_first().unwrap();
    let phases = [Phase::Request, Phase::Response, Phase::AfterResponse, Phase::CacheResponse];
    let scope = &mut bench.scope();
    match &*keyword.lossy() {
        "acl" => crate::lang::resolve::acl(scope, &line),
        "if" | "unless" => drop(cond(scope, &line.words, Phase::Request)),
        "expr" => drop(expr(scope, &rest[0], Phase::Request)),
        "log-format" => drop(crate::lang::resolve::log_format(scope, &rest[0])),
        "unique-id-format" => drop(crate::lang::resolve::unique_id(scope, &rest[0])),
        "redirect" => drop(redirect_line(scope, rest, &line)),
        "cache-rule" => drop(cache_rule(scope, Dialect::Tidegate, rest, &line, RulePlace::default())),
        name => {
            let phase = phases.into_iter().find(|phase| phase.keyword() == name).unwrap();
            drop(crate::lang::resolve::rule(scope, phase, rest, &line));
        }
    }
}

/// What is found in a line.
fn found(text: &str) -> Vec<Diagnostic> {
    let desk = Desk::new()
        .with_file("bad.lst", BAD_LIST)
        .with_file("bad.map", BAD_MAP)
        .with_file("good.map", "a 1\n")
        .with_file("odd.lst", "2f6\n");
    let mut sources = Sources::default();
    sources.add("site.cfg".into(), text.into());
    let mut bench = Bench { desk, lists: Lists::behind(&sources), ..Bench::default() };
    read(&mut bench, text);
    bench.found.extend(bench.lists.unread().collect::<Vec<_>>());
    bench.found
}

/// The piece of text a finding points at: of the line, or of the one file that it names.
fn piece(text: &str, span: Span) -> Option<String> {
    let file = [("bad.map", BAD_MAP), ("bad.lst", BAD_LIST), ("good.map", "a 1\n"), ("odd.lst", "2f6\n")];
    let file = file.iter().find(|(name, _)| text.contains(name)).map_or("", |(_, text)| text);
    let text = if span.file == FileId(0) { text } else { file };
    text.get(span.start as usize..span.end as usize).map(str::to_owned)
}

const BAD_LIST: &str = "10.0.0.0/8\nhost!\n";
const BAD_MAP: &str = "a 1\nb x\nc\n";

/// A line, its code, the piece it points at, a piece of its help.
const CASES: &[(&str, &str, &str, &str)] = &[
    ("expr pth", codes::UNKNOWN_FETCH, "pth", "did you mean `path`"),
    ("expr path_beg", codes::UNKNOWN_FETCH, "path_beg", "-m beg"),
    ("expr path,lowr", codes::UNKNOWN_CONVERTER, "lowr", "did you mean `lower`"),
    ("expr 'path, lower'", codes::UNKNOWN_CONVERTER, " lower", "blanks"),
    ("expr nbsrv(b)", codes::UNBUILT_SAMPLE, "nbsrv", ""),
    ("expr sc0_glitch_rate", codes::UNBUILT_SAMPLE, "sc0_glitch_rate", ""),
    ("expr path,ungrpc(1)", codes::UNBUILT_SAMPLE, "ungrpc", ""),
    ("expr path,length,add(5x)", codes::BAD_ARGUMENT, "5x", ""),
    ("expr path,length,add(x)", codes::BAD_VARIABLE_NAME, "x", "txn.x"),
    ("expr path,concat(a,b)", codes::BAD_VARIABLE_NAME, "b", "txn.b"),
    ("expr path,add_item(-)", codes::BAD_ARGUMENT, "-", "add_item(DELIMITER,VARIABLE)"),
    ("expr path,field(1,\"\")", codes::BAD_ARGUMENT, "\"\"", "separate"),
    ("expr path,regsub(a,b,x)", codes::BAD_ARGUMENT, "x", "`g` and `i`"),
    ("expr src,ipmask(33)", codes::BAD_ARGUMENT, "33", "255.255.255.0"),
    ("expr path,be2dec(.,9)", codes::BAD_ARGUMENT, "9", "1 to 8"),
    ("expr path,digest(md6)", codes::BAD_ARGUMENT, "md6", "sha256"),
    ("expr path,hmac(sha256,k!)", codes::BAD_ARGUMENT, "k!", "base64"),
    ("expr path,sha2(1)", codes::BAD_ARGUMENT, "1", "256"),
    ("expr path,jwt_verify(XS256,x)", codes::BAD_ARGUMENT, "XS256", "HS256"),
    ("expr path,jwt_verify(ES512,x)", codes::BAD_ARGUMENT, "ES512", "ES256"),
    ("expr path,jwt_verify(RS256,none.pem)", codes::BAD_ARGUMENT, "none.pem", "PUBLIC KEY"),
    ("expr path,jwt_verify(RS256,bad.lst)", codes::BAD_ARGUMENT, "bad.lst", "openssl x509"),
    ("expr path,set-var(txn.a,ifnew)", codes::BAD_ARGUMENT, "ifnew", ""),
    ("expr var(txn.a),set-var(res.x)", codes::TOO_EARLY, "var(txn.a),set-var(res.x)", "http-response"),
    ("expr hdr(a", codes::EXPRESSION_SHAPE, "(", "quotes"),
    ("expr hdr(a)b", codes::EXPRESSION_SHAPE, "b", "separated"),
    ("expr ,lower", codes::EXPRESSION_SHAPE, ",", ""),
    ("expr str(\"a)", codes::EXPRESSION_SHAPE, "\"", ""),
    ("expr path,field(1)", codes::MISSING_ARGUMENT, "field(1)", ""),
    ("expr path,field(a,b)", codes::BAD_ARGUMENT, "a", ""),
    ("expr path,word(0,/)", codes::BAD_ARGUMENT, "0", "from 1"),
    ("expr path(x)", codes::EXTRA_ARGUMENT, "x", ""),
    ("expr 'hdr(a b)'", codes::BAD_ARGUMENT, "a b", ""),
    ("expr src,lower,map_ip(bad.lst)", codes::BAD_ENTRY, "host!", "not an address"),
    ("expr path,map_str_int(bad.map)", codes::BAD_ENTRY, "x", "integer"),
    ("expr path,map_str_ip(good.map)", codes::BAD_ENTRY, "1", "address"),
    ("expr path,map(bad.map)", codes::NO_VALUE, "c", "empty text"),
    ("expr path,map_str_int(good.map,x)", codes::BAD_ARGUMENT, "x", "integer"),
    ("expr path,map(none.map)", codes::UNREADABLE_FILE, "none.map", ""),
    ("expr path,regsub((?=a),b)", codes::EXPRESSION_SHAPE, ")", "quotes"),
    ("expr path,regsub(\"(?=a)\",b)", codes::BAD_ARGUMENT, "\"(?=a)\"", "two ACLs"),
    ("expr path,regsub(a,\"b\\\")", codes::EXPRESSION_SHAPE, "\"", ""),
    ("expr ssl_fc,map_ip(bad.lst)", codes::TYPES, "map_ip(bad.lst)", ""),
    ("expr status", codes::TOO_EARLY, "status", "http-response"),
    ("expr var(x)", codes::BAD_VARIABLE_NAME, "x", "txn.x"),
    ("expr var(tnx.x)", codes::BAD_VARIABLE_NAME, "tnx.x", "did you mean `txn`"),
    ("expr var(txn.a-b)", codes::BAD_VARIABLE_NAME, "txn.a-b", "letters"),
    ("acl", codes::CONDITION_SHAPE, "", "acl NAME"),
    ("acl x", codes::CONDITION_SHAPE, "", ""),
    ("acl a/b path /x", codes::BAD_ACL_NAME, "/", "letters"),
    ("acl x pathbeg /x", codes::UNKNOWN_FETCH, "pathbeg", "path"),
    ("acl x hdr_bge(host) a", codes::UNKNOWN_FETCH, "hdr_bge", ""),
    ("acl x path_beg", codes::NO_PATTERN, "path_beg", "-m found"),
    ("acl x path_reg (a", codes::BAD_REGEX, "(a", ""),
    ("acl x path_reg a(?!b)", codes::BAD_REGEX, "(?!b)", "negated"),
    ("acl x path -x", codes::BAD_FLAG, "-x", "--"),
    ("acl x path -m", codes::BAD_FLAG, "", ""),
    ("acl x path -m bge /a", codes::BAD_METHOD, "bge", "did you mean `beg`"),
    ("acl x path -m bin 0", codes::BAD_PATTERN, "0", "2f61"),
    ("acl x path -m bin -f odd.lst", codes::BAD_PATTERN, "2f6", "hexadecimal"),
    ("acl x path -u one /a", codes::BAD_FLAG, "one", "number"),
    ("acl x path -m str -m beg /a", codes::BAD_FLAG, "-m", "once"),
    ("acl x ssl_fc -m ip 1.2.3.4", codes::BAD_METHOD, "ip", ""),
    ("acl x dst_port 80x", codes::BAD_PATTERN, "80x", "5:9"),
    ("acl x dst_port gt", codes::BAD_PATTERN, "gt", ""),
    ("acl x src 10.0.0.0/33", codes::BAD_PATTERN, "10.0.0.0/33", ""),
    ("acl x src nowhere.example", codes::BAD_PATTERN, "nowhere.example", "resolved"),
    ("acl x src -f bad.lst", codes::BAD_PATTERN, "host!", "10.0.0.0/8"),
    ("acl x src -f none.lst", codes::UNREADABLE_FILE, "none.lst", ""),
    ("acl x path,map(good.map) -f good.map", codes::LIST_SHAPE, "good.map", "-M -f"),
    ("acl x var(txn.a) b", codes::METHOD_NEEDED, "var(txn.a)", "-m str"),
    ("acl x hdr_end(host),lower .com", codes::SUFFIX_DROPPED, "hdr_end(host),lower", "hdr(host),lower -m end"),
    ("acl x path_beg -m end /a", codes::SUFFIX_OVERRIDDEN, "end", "suffix"),
    ("acl x path_len gt 3:5", codes::IDLE_OPERATOR, "3:5", "leave the operator out"),
    ("if", codes::CONDITION_SHAPE, "", ""),
    ("if METH_GTE", codes::UNKNOWN_ACL, "METH_GTE", "did you mean `METH_GET`"),
    ("if TRUE and FALSE", codes::UNKNOWN_ACL, "and", "side by side"),
    ("if { path /a", codes::CONDITION_SHAPE, "{", "}"),
    ("if { }", codes::CONDITION_SHAPE, "{", ""),
    ("if TRUE }", codes::CONDITION_SHAPE, "}", ""),
    ("if TRUE ||", codes::CONDITION_SHAPE, "||", ""),
    ("if || TRUE", codes::CONDITION_SHAPE, "||", ""),
    ("if TRUE !", codes::CONDITION_SHAPE, "!", ""),
    ("if { status 200 }", codes::TOO_EARLY, "status 200", "http-response"),
    ("http-request", codes::ACTION_SHAPE, "", ""),
    ("http-request if TRUE", codes::ACTION_SHAPE, "if", ""),
    ("http-request add-acl x", codes::ACTION_SHAPE, "add-acl", "add-acl(FILE) KEY"),
    ("http-request set-map(a,b) x y", codes::ACTION_SHAPE, "set-map(a,b)", "one file"),
    ("http-request del-map(a) x", codes::UNREAD_LIST, "a", "-f"),
    ("http-after-response del-acl(a) x", codes::ACTION_PHASE, "del-acl", ""),
    ("http-request set-heder a b", codes::UNKNOWN_ACTION, "set-heder", "did you mean `set-header`"),
    ("http-request do-resolve", codes::UNBUILT_ACTION, "do-resolve", ""),
    ("http-response cache-store", codes::UNBUILT_ACTION, "cache-store", ""),
    ("http-request normalize-uri path-strip-dots", codes::ACTION_SHAPE, "path-strip-dots", "path-strip-dot"),
    ("http-response set-status 99", codes::BAD_VALUE, "99", ""),
    ("http-request auth relm x", codes::ACTION_SHAPE, "relm", "realm"),
    ("http-after-response deny", codes::ACTION_PHASE, "deny", ""),
    ("cache-response purge", codes::ACTION_PHASE, "purge", ""),
    ("http-request set-header a", codes::ACTION_SHAPE, "", "NAME FORMAT"),
    ("http-request set-header a b c", codes::ACTION_SHAPE, "c", "NAME FORMAT"),
    ("http-request set-header a: b", codes::BAD_FIELD_NAME, "a:", "`:`"),
    ("http-request set-header Content-Length 5", codes::FRAMING_FIELD, "Content-Length", ""),
    ("http-request del-header Transfer-Encoding", codes::FRAMING_FIELD, "Transfer-Encoding", ""),
    ("http-request del-header content-length", codes::FRAMING_FIELD, "content-length", ""),
    ("http-response del-header Transfer-Encoding", codes::FRAMING_FIELD, "Transfer-Encoding", ""),
    ("http-request set-header a 50%", codes::FORMAT_SHAPE, "%", "%%"),
    ("http-request set-header a x%20y", codes::UNKNOWN_ALIAS, "%20y", "%%"),
    ("http-request set-header a %zz", codes::UNKNOWN_ALIAS, "%zz", "%%"),
    ("http-request set-header a %[path", codes::FORMAT_SHAPE, "%[", ""),
    ("http-request set-header a b%[pth]", codes::UNKNOWN_FETCH, "pth", "path"),
    ("http-request set-header a %[status]", codes::TOO_EARLY, "status", ""),
    ("http-request set-header a %{Q}[path]", codes::FORMAT_FLAG, "Q", "`+` or `-`"),
    ("log-format %[path]", codes::TOO_LATE, "path", "set-var"),
    ("log-format %ci%%%cpp", codes::UNKNOWN_ALIAS, "%cpp", ""),
    ("unique-id-format a%ID", codes::FORMAT_SHAPE, "a%ID", "itself"),
    ("http-request capture path len 0", codes::BAD_VALUE, "0", "1"),
    ("http-response capture res.hdr(a) len 9", codes::ACTION_SHAPE, "len", "declare capture response"),
    ("http-request set-log-level loud", codes::BAD_VALUE, "loud", "silent"),
    ("http-request set-header a 'b\nc'", codes::CONTROL_CHARACTER, "\n", ""),
    ("http-request replace-header a ( b", codes::BAD_REGEX, "(", ""),
    ("http-request replace-path a %[path]b\\", codes::BAD_REPLACEMENT, "\\", "\\1"),
    ("http-request set-var path", codes::ACTION_SHAPE, "set-var", ""),
    ("http-request set-var(txn.x,ifst) path", codes::BAD_VALUE, "ifst", "ifset"),
    ("http-request set-path(x) /a", codes::ACTION_SHAPE, "x", ""),
    ("http-request deny status 99", codes::BAD_VALUE, "99", ""),
    ("http-request deny statsu 403", codes::ACTION_SHAPE, "statsu", "status"),
    ("http-request return string x", codes::ACTION_SHAPE, "return", "content-type"),
    ("http-request return errorfile x", codes::UNREADABLE_FILE, "x", ""),
    ("http-request return errorfile bad.lst", codes::BAD_MESSAGE, "bad.lst", "status line"),
    ("http-request return errorfiles pags", codes::UNKNOWN_PAGES, "pags", "did you mean `pages`"),
    ("http-request deny status 200 content-type a/b string x string y", codes::ACTION_SHAPE, "string", "already"),
    ("http-request return hdr Date x", codes::FIELD_IGNORED, "Date", ""),
    ("http-request redirect", codes::ACTION_SHAPE, "", "location URL"),
    ("http-request redirect location / code 200", codes::BAD_VALUE, "200", ""),
    ("http-request redirect loaction /", codes::ACTION_SHAPE, "loaction", "location"),
    ("redirect prefix", codes::ACTION_SHAPE, "", ""),
    ("http-request purge hard", codes::ACTION_SHAPE, "hard", "soft"),
    ("http-request deny now", codes::ACTION_SHAPE, "now", ""),
    ("cache-response set-header a %[src]", codes::STORED_FOR_ALL, "set-header", "http-response"),
    ("cache-response set-header a b if { req.hdr(x) y }", codes::STORED_FOR_ALL, "set-header", ""),
    ("cache-rule", codes::BAD_RULE_NAME, "", ""),
    ("cache-rule a/b", codes::BAD_RULE_NAME, "/", ""),
    ("cache-rule ttl 5", codes::BAD_RULE_NAME, "ttl", ""),
    ("cache-rule r tttl 5", codes::UNKNOWN_PARAMETER, "tttl", "did you mean `ttl`"),
    ("cache-rule r ttl 5 ttl 6", codes::REPEATED_PARAMETER, "ttl", ""),
    ("cache-rule r status 200 code 200", codes::REPEATED_PARAMETER, "code", ""),
    ("cache-rule r ttl", codes::BAD_PARAMETER, "", ""),
    ("cache-rule r ttl soon", codes::BAD_PARAMETER, "soon", "200=1h"),
    ("cache-rule r ttl auto 9..1", codes::BAD_PARAMETER, "9..1", ""),
    ("cache-rule r ttl 5 6", codes::BAD_PARAMETER, "6", ""),
    ("cache-rule r status 99", codes::BAD_PARAMETER, "99", ""),
    ("cache-rule r wait maybe", codes::BAD_PARAMETER, "maybe", ""),
    ("cache-rule r fill finish-if 101%/1m", codes::BAD_PARAMETER, "101%/1m", ""),
    ("cache-rule r ignore no-stoer", codes::BAD_PARAMETER, "no-stoer", "no-store"),
    ("cache-rule r honour server", codes::BAD_PARAMETER, "server", ""),
    ("cache-rule r key host pth", codes::UNKNOWN_COMPONENT, "pth", "path"),
    ("cache-rule r key host.pth.query", codes::UNKNOWN_COMPONENT, "pth", "path"),
    ("cache-rule r key heder(a)", codes::UNKNOWN_COMPONENT, "heder", ""),
    ("cache-rule r key hdr(a,b)", codes::BAD_PARAMETER, "hdr(a,b)", ""),
    ("cache-rule r key %[pth]", codes::UNKNOWN_FETCH, "pth", ""),
    ("cache-rule r disk sync", codes::UNBUILT_PARAMETER, "disk sync", ""),
];

#[test]
fn findings_have_their_code_their_place_and_a_way_out() {
    let mut wrong = String::new();
    for (text, code, piece, help) in CASES {
        let found = found(text);
        let severity = match code.as_bytes()[0] {
            b'E' => Severity::Error,
            _ => Severity::Warning,
        };
        let as_said = matches!(found.as_slice(), [one] if one.code == *code
            && one.severity == severity
            && self::piece(text, one.span).as_deref() == Some(*piece)
            && format!("{} {}", one.help, one.message).contains(help));
        if !as_said {
            wrong += &format!("{text}: expected {code} at `{piece}` with `{help}`, found {found:#?}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_code_stands_in_the_table_above() {
    // These two are tried where caching rules are.
    let elsewhere = [codes::IGNORED_REQUIREMENT, codes::CLAMPED];
    for (code, _) in codes::ALL {
        assert!(elsewhere.contains(code) || CASES.iter().any(|case| case.1 == *code), "{code}");
    }
}

#[test]
fn all_that_is_wrong_with_a_line_is_found() {
    let mut bench = Bench::default();
    read(&mut bench, "http-request set-header a: %[pth] if nope { pathx /a } || METH_GET");
    let codes: Vec<_> = bench.found.iter().map(|found| found.code).collect();
    let expected = [codes::BAD_FIELD_NAME, codes::UNKNOWN_FETCH, codes::UNKNOWN_ACL, codes::UNKNOWN_FETCH];
    assert_eq!(codes, expected);
}

#[test]
fn a_broken_acl_is_reported_once() {
    let mut bench = Bench::default();
    for text in ["acl x pathx /a", "http-request deny if x", "http-request deny if !x"] {
        read(&mut bench, text);
    }
    assert_eq!(bench.found.len(), 1);
}

#[test]
fn lenient_loading_warns_of_what_is_not_built() {
    let mut bench = Bench { lenient: true, ..Bench::default() };
    for text in ["http-request do-resolve", "acl x nbsrv(b) gt 0", "http-request deny if x", "http-request pause 5"] {
        read(&mut bench, text);
    }
    assert_eq!(bench.found.len(), 3);
    assert!(bench.found.iter().all(|found| found.severity == Severity::Warning));
}

/// Whatever the words, nothing panics: pieces of the cases above, mixed by a generator of fixed seed.
#[test]
fn nothing_panics_on_mixed_up_words() {
    let pieces: Vec<&str> = CASES
        .iter()
        .flat_map(|case| case.0.split(' '))
        .chain(["", "(", ")", "%", "\\", "'", "{", "}", ",", "\u{e9}"])
        .collect();
    let heads = ["acl", "if", "http-request", "http-response", "cache-response", "cache-rule", "redirect", "expr"];
    let mut seed: u64 = 7;
    let mut next = |most: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % most
    };
    for round in 0..20_000 {
        let mut text = heads[round % heads.len()].to_owned();
        for _ in 0..1 + next(6) {
            text.push(' ');
            text.push_str(pieces[next(pieces.len())]);
            if next(3) == 0 {
                text.push_str(pieces[next(pieces.len())]);
            }
        }
        if line(&text).words.len() > 1 {
            read(&mut Bench::default(), &text);
        }
    }
}
