//! `explain` and `test`: what rules decide, without a gateway. The engine is the gateway's: the same questions are
//! put to both.

use std::{fs, path::Path};

use serde_json::Value;

use crate::harness::{
    certificates::Authority,
    gateway::{run, run_in},
};

const RULES: &str = "\
frontend web
    bind 127.0.0.1:8080
    acl reading method GET HEAD
    acl shop hdr(host) -m dom shop
    http-request deny deny_status 429 if { src 192.0.2.0/24 } !reading
    http-request set-header X-Lang %[req.hdr(Accept-Language),lower] if { req.hdr(Accept-Language) -m found }
    http-request set-path /shop%[path] if shop
    use_backend shop if shop
    default_backend app
    cache-rule pages ttl auto if reading { status 200 }
    http-response set-header X-By tidegate
backend shop
    server s 127.0.0.1:1
backend app
    server s 127.0.0.1:1
";

fn explain(args: &[&str]) -> Value {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("site.cfg");
    fs::write(&path, RULES).unwrap();
    let output = run(&[&["explain", "--json", "-f", path.to_str().unwrap()], args].concat());
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn step<'v>(explanation: &'v Value, text: &str) -> &'v Value {
    let steps = explanation["steps"].as_array().unwrap();
    steps.iter().find(|step| step["text"].as_str().unwrap().contains(text)).unwrap_or_else(|| panic!("{steps:#?}"))
}

#[test]
fn each_rule_says_what_it_saw_and_did() {
    let said = explain(&["GET", "http://my.shop.example/a?b=c", "-H", "Accept-Language: DE"]);
    let denied = step(&said, "deny");
    assert_eq!((denied["outcome"].as_str(), denied["line"].as_u64()), (Some("false"), Some(5)));
    assert_eq!(denied["tests"][0]["values"][0]["value"], "127.0.0.1");
    // The first term decided; the second was not asked.
    assert_eq!(denied["tests"].as_array().unwrap().len(), 1);
    assert_eq!(step(&said, "X-Lang")["effects"][0], "+ X-Lang: de");
    assert_eq!(step(&said, "set-path")["effects"][0], "target /a?b=c → /shop/a?b=c");
    assert_eq!(step(&said, "use_backend")["outcome"], "true");
    assert_eq!(said["backend"], "shop");
    assert_eq!(said["decision"]["kind"], "lookup");
    assert_eq!(said["decision"]["key"][2]["value"], "/shop/a");
    // What the status decides is open.
    assert_eq!(step(&said, "cache-rule")["outcome"], "unknown");
    assert_eq!(said["response"], Value::Null);
}

#[test]
fn a_response_shows_what_is_stored_and_delivered() {
    let asked = ["GET", "http://a.example/x", "--status", "200", "-R", "Cache-Control: max-age=90"];
    let said = explain(&asked);
    assert_eq!(said["response"]["stored"], true);
    assert_eq!(said["response"]["kept"]["ttl"], 90);
    let fields = said["response"]["head"]["fields"].as_array().unwrap();
    assert!(fields.iter().any(|field| field == "X-By: tidegate"), "{fields:?}");
    let private = explain(&["GET", "http://a.example/x", "-R", "Cache-Control: private"]);
    assert_eq!((&private["response"]["stored"], &private["response"]["reason"]), (&false.into(), &"private".into()));
    let missing = explain(&["GET", "http://a.example/x", "--status", "404"]);
    assert_eq!(missing["response"]["rule"], Value::Null);
}

#[test]
fn an_answer_of_the_rules_is_shown() {
    let said = explain(&["POST", "http://a.example/x", "--src", "192.0.2.9"]);
    assert_eq!(said["decision"]["kind"], "answer");
    assert_eq!(said["decision"]["head"]["line"], "429");
    assert_eq!(said["backend"], Value::Null);
}

#[test]
fn what_makes_no_sense_is_said_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("site.cfg");
    fs::write(&path, RULES).unwrap();
    let cases: [(&[&str], &str); 5] = [
        (&["GET", "/a"], "has to begin with http://HOST"),
        (&["GET", "http://a/", "-H", "nonsense"], "has no colon"),
        (&["GET", "http://a/", "--frontend", "nowhere"], "there are: web"),
        (&["GET", "http://a/", "--status", "100"], "final response"),
        (&["GET", "http://a/", "-H", "Host: b", "-H", "Host: c"], "would get 400"),
    ];
    for (args, expected) in cases {
        let output = run(&[&["explain", "-f", path.to_str().unwrap()], args].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains(expected), "{args:?}: {said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{args:?}: {said}");
    }
}

/// Rule tests in a folder with `site.cfg`.
fn suite(tests: &str) -> (Option<i32>, String) {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("site.cfg"), RULES.replace("127.0.0.1:1\n", "\"${ORIGIN}\"\n")).unwrap();
    let head = "rules = [\"site.cfg\"]\nenv = { ORIGIN = \"127.0.0.1:1\" }\n";
    fs::write(dir.path().join("site.toml"), format!("{head}{tests}")).unwrap();
    let output = run_in(dir.path(), &["test", "site.toml"]);
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn rule_tests_pass_and_fail() {
    let test =
        "[[test]]\nname = \"shops\"\nrequest = { url = \"http://shop/a\" }\nexpect = { backend = \"BACKEND\" }\n";
    let (code, said) = suite(&test.replace("BACKEND", "shop"));
    assert_eq!((code, said.as_str()), (Some(0), "1 passed, 0 failed\n"));
    let (code, said) = suite(&test.replace("BACKEND", "app"));
    assert_eq!(code, Some(1), "{said}");
    for part in ["site.toml: shops: failed", "expected \"app\"", "but got  \"shop\"", "tidegate explain -f 'site.cfg'"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// Every expectation, wrong: a word that is never looked at would pass.
#[test]
fn every_expectation_can_fail() {
    let words = [
        "frontend = \"x\"",
        "backend = \"x\"",
        "decision = \"pass\"",
        "reason = \"x\"",
        "status = 201",
        "body = \"x\"",
        "target = \"/x\"",
        "sent = [\"X: y\"]",
        "not_sent = [\"host\"]",
        "delivered = [\"X: y\"]",
        "not_delivered = [\"x-by\"]",
        "rule = \"x\"",
        "key = [\"path=/x\"]",
        "stored = false",
        "ttl = \"1h\"",
        "grace = 7",
        "vary = [\"x\"]",
        "tags = [\"x\"]",
    ];
    for word in words {
        let request = "request = { url = \"http://a/a\" }\nresponse = { headers = [\"Cache-Control: max-age=9\"] }";
        let (code, said) = suite(&format!("[[test]]\nname = \"t\"\n{request}\nexpect = {{ {word} }}\n"));
        assert_eq!(code, Some(1), "{word}: {said}");
        assert!(said.contains("1 failed"), "{word}: {said}");
    }
}

#[test]
fn a_test_file_with_a_slip_names_the_place() {
    let (code, said) = suite("[[test]]\nname = \"t\"\nrequest = { url = \"http://a/\" }\nexpect = { statuss = 3 }\n");
    assert_eq!(code, Some(1));
    assert!(said.contains("site.toml") && said.contains("line 6") && said.contains("statuss"), "{said}");
}

/// Every rule file that ships has its tests, and they pass.
#[test]
fn the_rules_that_ship_pass_their_tests() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("rules");
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let rules: Vec<_> = files.filter(|path| path.extension().is_some_and(|extension| extension == "cfg")).collect();
    assert!(rules.len() > 8, "{rules:?}");
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("certs")).unwrap();
    for name in ["shop", "docs"] {
        let path = dir.path().join("certs").join(name).with_extension("pem");
        Authority::new().write(&path, &[&format!("{name}.example.com")]);
    }
    for path in rules {
        let output = run_in(dir.path(), &["test", path.with_extension("toml").to_str().unwrap()]);
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&said));
    }
}
