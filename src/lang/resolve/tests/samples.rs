//! Every fetch and every converter: text, and what it gives.

use std::collections::HashSet;

use super::{Bench, Exchange, line};
use crate::{
    lang::{resolve::expr, testing::Desk},
    message::Version,
    rule::{Phase, converter, fetch},
};

fn exchange() -> Exchange {
    let fields = [
        ("Host", "www.example.com:8080"),
        ("X-List", "a, \"b,c\",,d"),
        ("x-list", "e ,f"),
        ("X-Num", "10, 20"),
        ("X-Ip", "bad, 10.0.0.1:80, 2001:db8::2"),
        ("Cookie", "sid=one; n=5; sid=two,q=\"x;y\""),
        ("Cookie", "sid=three; empty="),
    ];
    Exchange::new("GET", "/dir/page.html?a=1&b=2&a=3;c=4&N=7", &fields)
}

#[test]
fn fetches_give_what_the_request_says() {
    let cases = [
        ("method", "method GET"),
        ("path", "str /dir/page.html"),
        ("url", "str /dir/page.html?a=1&b=2&a=3;c=4&N=7"),
        ("query", "str a=1&b=2&a=3;c=4&N=7"),
        ("pathq", "str /dir/page.html?a=1&b=2&a=3;c=4&N=7"),
        ("base", "str www.example.com:8080/dir/page.html"),
        ("baseq", "str www.example.com:8080/dir/page.html?a=1&b=2&a=3;c=4&N=7"),
        ("req.ver", "str 1.1"),
        ("url_param(a)", "str 1"),
        ("urlp(c)", "str 4"),
        ("url_param(x)", "-"),
        ("url_param(n)", "-"),
        ("url_param(n,?,i)", "str 7"),
        ("url_param", "str 1"),
        ("urlp_val(b)", "int 2"),
        ("url_param_all(a)", "str a=1&a=3;c=4"),
        ("url_param_all(c)", "str a=3;c=4"),
        ("hdr(x-list)", "str f"),
        ("req.hdr(X-LIST,1)", "str a"),
        ("req.hdr(x-list,2)", "str \"b,c\""),
        ("req.hdr(x-list,3)", "str "),
        ("req.hdr(x-list,-1)", "str f"),
        ("req.hdr(x-list,-6)", "str a"),
        ("req.hdr(x-list,-7)", "-"),
        ("req.hdr(x-list,7)", "-"),
        ("req.hdr(none)", "-"),
        ("req.fhdr(x-list)", "str e ,f"),
        ("req.fhdr(x-list,1)", "str a, \"b,c\",,d"),
        ("req.fhdr_all(x-list)", "str a, \"b,c\",,d,e ,f"),
        ("req.fhdr_all(x-num)", "str 10, 20"),
        ("req.fhdr_all(none)", "-"),
        ("hdr_cnt(x-list)", "int 6"),
        ("req.fhdr_cnt(x-list)", "int 2"),
        ("req.fhdr_cnt", "int 7"),
        ("hdr_cnt(none)", "int 0"),
        ("hdr_val(x-num)", "int 20"),
        ("hdr_val(x-num,1)", "int 10"),
        ("hdr_ip(x-ip)", "ip 2001:db8::2"),
        ("hdr_ip(x-ip,2)", "ip 10.0.0.1"),
        ("hdr_ip(x-ip,1)", "-"),
        ("cook(sid)", "str three"),
        ("req.cook(n)", "str 5"),
        ("cookie(q)", "str \"x;y\""),
        ("cook(SID)", "-"),
        ("cook(empty)", "str "),
        ("cook", "str one"),
        ("cook_cnt(sid)", "int 3"),
        ("cook_val(n)", "int 5"),
        ("req.cook_all(sid)", "str sid=one; n=5; sid=two,q=\"x;y\";sid=three"),
        ("req.cook_all(none)", "-"),
        ("src", "ip 192.0.2.7"),
        ("src_port", "int 4000"),
        ("dst", "ip 2001:db8::1"),
        ("dst_port", "int 443"),
        ("ssl_fc", "bool false"),
        ("ssl_fc_sni", "-"),
        ("ssl_fc_has_sni", "bool false"),
        ("always_true", "bool true"),
        ("always_false", "bool false"),
        ("str(a b)", "str a b"),
        ("str()", "str "),
        ("int(-5)", "int -5"),
        ("bool(yes)", "bool true"),
        ("ipv4(10.0.0.1)", "ip 10.0.0.1"),
        ("meth(PUT)", "method PUT"),
        ("var(txn.none)", "-"),
        ("var(txn.none,else)", "str else"),
    ];
    let mut bench = Bench::default();
    let mut exchange = exchange();
    for (text, expected) in cases {
        let text = format!("'{text}'");
        assert_eq!(exchange.value(&mut bench, &text, Phase::Request), expected, "{text}");
    }
}

#[test]
fn fetches_give_what_the_response_says() {
    let fields = [("Server", "origin"), ("Cache-Control", "public, max-age=5"), ("Set-Cookie", "a=1,2; path=/; b=3")];
    let mut exchange = exchange().answered(404, &fields);
    let mut bench = Bench::default();
    for (text, expected) in [
        ("status", "int 404"),
        ("res.ver", "str 1.1"),
        ("res.hdr(cache-control)", "str max-age=5"),
        ("res.hdr(cache-control,1)", "str public"),
        ("res.fhdr(cache-control)", "str public, max-age=5"),
        ("res.fhdr_all(cache-control)", "str public, max-age=5"),
        ("res.hdr_cnt(cache-control)", "int 2"),
        ("res.fhdr_cnt(cache-control)", "int 1"),
        ("res.hdr_val(none)", "-"),
        ("res.hdr_ip(server)", "-"),
        // HAProxy splits the line at its comma.
        ("res.cook(a)", "str 1"),
        ("scook(b)", "-"),
        ("scook_cnt(a)", "int 1"),
        ("scook_val(a)", "int 1"),
        // In expressions of response rules `hdr` is the response's.
        ("hdr(server)", "str origin"),
        ("hdr(host)", "-"),
        ("req.hdr(host)", "str www.example.com:8080"),
        ("path", "str /dir/page.html"),
    ] {
        assert_eq!(exchange.value(&mut bench, text, Phase::Response), expected, "{text}");
    }
}

#[test]
fn response_fetches_give_nothing_before_there_is_a_response() {
    let mut bench = Bench::default();
    for text in ["status", "res.hdr(server)", "scook(a)", "res.ver", "res.hdr_cnt(a)", "res.fhdr_all(a)"] {
        assert_eq!(exchange().value(&mut bench, text, Phase::Caching), "-", "{text}");
    }
}

#[test]
fn the_url_follows_rules_and_keeps_its_authority() {
    let mut bench = Bench::default();
    let mut exchange = Exchange::get("/a");
    exchange.request.start(b"GET", b"http://Host.example/a?b", b"/a?b");
    assert_eq!(exchange.value(&mut bench, "url", Phase::Request), "str http://Host.example/a?b");
    exchange.request.set_path(b"/c");
    assert_eq!(exchange.value(&mut bench, "url", Phase::Request), "str http://Host.example/c?b");
    exchange.request.set_query(None);
    assert_eq!(exchange.value(&mut bench, "url", Phase::Request), "str http://Host.example/c");
    let mut exchange = Exchange::get("/a?b").tls(Some("sni.example"));
    exchange.request.version = Version::Http2;
    assert_eq!(exchange.value(&mut bench, "url", Phase::Request), "str https://www.example.com:8080/a?b");
    assert_eq!(exchange.value(&mut bench, "req.ver", Phase::Request), "str 2.0");
    let mut exchange = Exchange::new("OPTIONS", "*", &[]);
    assert_eq!(exchange.value(&mut bench, "url", Phase::Request), "str *");
    assert_eq!(exchange.value(&mut bench, "path", Phase::Request), "-");
}

#[test]
fn tls_shows_its_server_name() {
    let mut bench = Bench::default();
    let mut exchange = Exchange::get("/").tls(Some("a.example"));
    assert_eq!(exchange.value(&mut bench, "ssl_fc", Phase::Request), "bool true");
    assert_eq!(exchange.value(&mut bench, "ssl_fc_sni", Phase::Request), "str a.example");
    assert_eq!(exchange.value(&mut bench, "ssl_fc_has_sni", Phase::Request), "bool true");
    let mut exchange = Exchange::get("/").tls(None);
    assert_eq!(exchange.value(&mut bench, "ssl_fc_sni", Phase::Request), "-");
}

#[test]
fn converters_give_what_the_manual_says() {
    let cases = [
        ("str(AbC),lower", "str abc"),
        ("str(AbC),upper", "str ABC"),
        ("method,lower", "str get"),
        ("str(f1_f2_f3__f5),field(4,_)", "str "),
        ("str(f1_f2_f3__f5),field(5,_)", "str f5"),
        ("str(f1_f2_f3__f5),field(2,_,0)", "str f2_f3__f5"),
        ("str(f1_f2_f3__f5),field(2,_,2)", "str f2_f3"),
        ("str(f1_f2_f3__f5),field(-2,_,3)", "str f2_f3_"),
        ("str(f1_f2_f3__f5),field(-3,_,0)", "str f1_f2_f3"),
        ("str(f1_f2_f3__f5),field(6,_)", "-"),
        ("str(),field(1,_)", "str "),
        ("str(f1_f2_f3__f5),word(4,_)", "str f5"),
        ("str(f1_f2_f3__f5),word(2,_,0)", "str f2_f3__f5"),
        ("str(f1_f2_f3__f5),word(3,_,2)", "str f3__f5"),
        ("str(f1_f2_f3__f5),word(-2,_,3)", "str f1_f2_f3"),
        ("str(f1_f2_f3__f5),word(-3,_,0)", "str f1_f2"),
        ("str(/a/b/c),word(2,/)", "str b"),
        ("str(/a/b/),word(-1,/)", "str b"),
        ("str(/a//b/),word(2,/,5)", "str b/"),
        ("str(//a/b),word(-2,/,5)", "str //a"),
        ("str(a.b-c),word(2,.-)", "str b"),
        ("str(abc),word(2,/)", "str "),
        ("str(),word(1,/)", "str "),
        ("str(abbc),regsub(b*,-,g)", "str -a--c-"),
        ("str(abbc),regsub(b,x)", "str axbc"),
        ("str(abbc),regsub(b,x,g)", "str axxc"),
        ("str(aBbc),regsub(B,x,ig)", "str axxc"),
        ("str(a-b),regsub(\"(.)-(.)\",\"\\2\\0\\1\")", "str ba-ba"),
        ("str(a/b),regsub(/,,g)", "str ab"),
        ("str(abc),regsub(x,y)", "str abc"),
        ("str(a%20b+c),url_dec", "str a b+c"),
        ("str(/a+b?c+d),url_dec", "str /a+b?c d"),
        ("str(a+b),url_dec(1)", "str a b"),
        ("str(a%2),url_dec", "-"),
        ("str(a%zz),url_dec", "-"),
        ("str(plain),url_dec", "str plain"),
        ("str(www.a.org),map(hosts.map)", "str first"),
        ("str(none),map(hosts.map)", "-"),
        ("str(none),map(hosts.map,other)", "str other"),
        ("str(www.a.org),map_str_int(numbers.map)", "int 5"),
        ("str(www.a.org),map_str_ip(addresses.map)", "ip 10.0.0.9"),
        ("str(/img/x),map_beg(prefixes.map)", "str image"),
        ("str(/x),map_beg(prefixes.map)", "str root"),
        ("str(a.b.org),map_dom(hosts.map)", "str second"),
        ("str(x.png),map_reg(regexes.map)", "str picture"),
        ("str(x.txt),map_reg(regexes.map)", "str any"),
        ("src,map_ip(nets.map)", "str docs"),
        ("ipv4(10.1.1.1),map_ip(nets.map)", "str narrow"),
        ("ipv4(10.2.1.1),map_ip(nets.map)", "str wide"),
        ("int(404),map_int(codes.map)", "str client"),
        ("str(x.html),map_end(ends.map)", "str page"),
        ("str(/img/x),map_beg_key(prefixes.map)", "str /img/"),
        ("ipv4(10.1.1.1),map_ip_key(nets.map)", "str 10.1.0.0/16"),
        ("str(none),map_key(hosts.map)", "-"),
        ("str(none),map_key(hosts.map,d)", "str d"),
        ("str(none),map_str_int(numbers.map,7)", "int 7"),
        ("str(none),map_str_ip(addresses.map,192.0.2.7)", "ip 192.0.2.7"),
        ("str(/u/42/pics),map_regm(groups.map)", "str user 42 has pics \\1"),
        ("str(/v/1),map_regm(groups.map)", "str version"),
        ("str(/w/1),map_regm(groups.map,none)", "str none"),
        ("str(AxyB),map_sub(subs.map)", "str found"),
        ("str(/a/b),map_dir(dirs.map)", "str dir"),
    ];
    let desk = Desk::new()
        .with_file("hosts.map", "# hosts\nwww.a.org first\nwww.a.org again\nb.org   second  \n")
        .with_file("groups.map", "^/u/([0-9]+)/(.*) user \\1 has \\2\\3 \\\\1\n^/v/ version\n")
        .with_file("numbers.map", "www.a.org 5\n")
        .with_file("addresses.map", "www.a.org 10.0.0.9\n")
        .with_file("prefixes.map", "/ root\n/img/ image\n")
        .with_file("regexes.map", "\\.png$ picture\n. any\n")
        .with_file("nets.map", "10.0.0.0/8 wide\n10.1.0.0/16 narrow\n192.0.2.0/24 docs\n")
        .with_file("codes.map", "400:499 client\n500: server\n")
        .with_file("ends.map", ".html page\n")
        .with_file("subs.map", "xy found\n")
        .with_file("dirs.map", "/b/ dir\n");
    let mut bench = Bench { desk, ..Bench::default() };
    let mut exchange = exchange();
    for (text, expected) in cases {
        assert_eq!(exchange.value(&mut bench, text, Phase::Request), expected, "{text}");
    }
}

/// A row that nobody tried is a row that nobody knows.
#[test]
fn every_row_stands_in_a_table_above() {
    let this = [include_str!("samples.rs"), include_str!("fetches.rs")].concat();
    // The forms of a counter are made by one line: one of them stands for all.
    let counters = include_str!("counters.rs");
    let of_counter = |name: &str| {
        let families = ["sc0_", "sc1_", "sc2_", "sc_", "src_", "table_", "in_"];
        families.iter().find_map(|family| name.strip_prefix(family)).is_some_and(|counter| {
            let plain = counter.replace("get_", "");
            let forms =
                [counter, &plain].map(|name| [format!("_{name}\""), format!("_{name}("), format!("(\"{name}\"")]);
            forms.as_flattened().iter().any(|text| counters.contains(text))
        })
    };
    for row in fetch::rows() {
        let used = row.names.iter().any(|name| of_counter(name))
            || row.names.iter().any(|name| {
                let cases =
                    [format!("(\"{name}\""), format!("(\"{name}("), format!("(\"{name},"), format!("[\"{name}\"")];
                cases.iter().any(|text| this.contains(text))
            });
        assert!(used, "no case for {}", row.name());
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/converters");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let texts: Vec<_> =
        files.filter(|path| path.is_file()).map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let name = |text: &str| text.split(['(', '"']).next().unwrap_or_default().to_owned();
    let converters = texts.iter().flat_map(|text| text.lines()).flat_map(|line| line.split(',')).map(name);
    let tried: HashSet<_> = this.split(',').skip(1).map(name).chain(converters).collect();
    for row in converter::rows() {
        // What the values of a map are does not depend on how its keys match.
        let of_map = row.name().rsplit_once('_').map(|(family, _)| family).filter(|_| row.name().starts_with("map_"));
        let used = row.names.iter().copied().chain(of_map).any(|name| tried.contains(name) || of_counter(name));
        assert!(used, "no case for {}", row.name());
    }
}

#[test]
fn a_made_sample_leaves_its_source_alone() {
    let mut bench = Bench::default();
    let mut exchange = Exchange::new("GET", "/", &[("X", "AbC")]);
    let line = line("req.hdr(x),lower,upper");
    let expr = expr(&mut bench.scope(), &line.words[0], Phase::Request).unwrap();
    exchange.with(|txn| assert!(expr.eval(txn).is_some()));
    assert_eq!(exchange.request.fields.first("x"), Some(&b"AbC"[..]));
}
