//! A generator of configurations that HAProxy 2.6 and the gateway both load.

use std::{fmt::Write, fs, path::Path};

use super::requests::{HOSTS, METHODS, PATHS, QUERIES, VALUES};
use crate::counters::Random;

/// Tests of each configuration; each shows its outcome in a field of its own.
pub(super) const TESTS: usize = 24;
/// Rules of each kind in each configuration.
const ACTIONS: usize = 14;

/// A configuration and what its tests are made of.
pub(super) struct Rules {
    /// Its lines, from the frontend on; `@ORIGIN@` stands for the origin's address.
    pub(super) text: String,
    /// The words of each test.
    pub(super) words: Vec<Vec<String>>,
}

/// What a sample is, as far as patterns go.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Number,
    Address,
    Truth,
    Method,
}

/// An expression that tests ask.
struct Subject {
    text: &'static str,
    kind: Kind,
    /// Values that it may have.
    values: &'static [&'static str],
    /// Whether forms such as `path_beg` exist.
    suffixes: bool,
}

const fn text(text: &'static str, values: &'static [&'static str]) -> Subject {
    Subject { text, kind: Kind::Text, values, suffixes: true }
}

const fn plain(text: &'static str, kind: Kind, values: &'static [&'static str]) -> Subject {
    Subject { text, kind, values, suffixes: false }
}

const NUMBERS: &[&str] = &["0", "1", "2", "3", "10", "15", "-3", "42", "100"];
const ADDRESSES: &[&str] =
    &["10.0.0.0/8", "10.0.0.7", "127.0.0.0/8", "192.168.0.0/16", "2001:db8::/32", "::1", "10.0.0.0/255.0.0.0"];
const SEVERAL: &[&str] = &["one", "Two", "a", "b", "x=1", "10", "10.0.0.7"];

const SUBJECTS: &[Subject] = &[
    text("path", PATHS),
    text("url", PATHS),
    text("base", &["t.example/", "/a/b/c", "www.", "/img/", ".png", "t.example/a/b/c"]),
    text("hdr(host)", HOSTS),
    text("hdr(x-a)", VALUES),
    text("hdr(x-b)", VALUES),
    text("cook(s)", SEVERAL),
    text("cook(t)", SEVERAL),
    text("urlp(a)", SEVERAL),
    text("urlp(b)", SEVERAL),
    plain("req.hdr(x-a,1)", Kind::Text, VALUES),
    plain("req.hdr(x-a,-1)", Kind::Text, VALUES),
    plain("req.fhdr(x-a)", Kind::Text, VALUES),
    plain("req.cook(s)", Kind::Text, SEVERAL),
    plain("url_param(a)", Kind::Text, SEVERAL),
    plain("pathq", Kind::Text, &["/a?a=1", "?", "a=1", "/index.html", "b="]),
    plain("query", Kind::Text, QUERIES),
    plain("baseq", Kind::Text, &["t.example/", "?a=1", "b=2", "www."]),
    plain("var(txn.one)", Kind::Text, SEVERAL),
    plain("req.hdr_names", Kind::Text, &["host", "x-a", "x-b", "cookie"]),
    plain("http_auth_user", Kind::Text, &["user", "use", "x"]),
    plain("capture.req.uri", Kind::Text, PATHS),
    plain("env(TIDEGATE_DIFFERENTIAL)", Kind::Text, &["set", "se", "x"]),
    plain("method", Kind::Method, METHODS),
    plain("capture.req.method", Kind::Method, METHODS),
    plain("req.hdr_cnt(x-a)", Kind::Number, NUMBERS),
    plain("req.fhdr_cnt(x-b)", Kind::Number, NUMBERS),
    plain("hdr_val(x-a)", Kind::Number, NUMBERS),
    plain("req.cook_val(t)", Kind::Number, NUMBERS),
    plain("req.cook_cnt(s)", Kind::Number, NUMBERS),
    plain("urlp_val(a)", Kind::Number, NUMBERS),
    plain("path,length", Kind::Number, &["1", "2", "5", "10", "12", "20"]),
    plain("int(7),mul(3)", Kind::Number, &["21", "20:22", "7"]),
    plain("hdr_ip(x-a)", Kind::Address, ADDRESSES),
    plain("src", Kind::Address, ADDRESSES),
    plain("always_true", Kind::Truth, &[]),
    plain("always_false", Kind::Truth, &[]),
    plain("ssl_fc", Kind::Truth, &[]),
    plain("hdr_val(x-a),bool", Kind::Truth, &[]),
    plain("src_is_local", Kind::Truth, &[]),
];

/// Converters from text to text.
const CONVERTERS: &[&str] = &[
    "lower",
    "upper",
    "field(1,/)",
    "field(2,.)",
    "field(-1,/)",
    "word(1,/)",
    "word(2,.)",
    "word(-1,/.)",
    "bytes(1)",
    "bytes(0,4)",
    "url_dec",
    "regsub(o,0,g)",
    "regsub([0-9]+,N)",
    "concat(-,txn.one,+)",
    "base64",
    "hex",
    "sha1,hex",
    "digest(md5),hex",
    "url_enc",
    "json(utf8)",
    "map(@MAP@,no)",
    "map_beg(@MAP@)",
    "map_sub(@MAP@,no)",
    "ltrim(/)",
    "rtrim(g)",
];
/// Converters from text to numbers.
const COUNTERS: &[&str] = &["length", "crc32", "djb2", "sdbm", "wt6(1)", "xxh32", "strcmp(txn.one)"];

/// What the map has, and what stands in for it.
const MAPPED: &[&str] = &["found", "root", "1", "picture", "none", "no"];

/// Pieces of what `hex` gives; a digest never is what a subject says.
const DIGITS: &[&str] = &["0", "2", "6", "A", "D", "2F"];

/// Methods of matching, for each kind of sample.
const METHODS_OF_TEXT: &[&str] = &["str", "beg", "end", "sub", "dir", "dom", "reg", "len", "found", "int", "ip"];
const METHODS_OF_NUMBERS: &[&str] = &["int", "found", "bool", "str"];

pub(super) struct Generator<'r> {
    random: &'r mut Random,
    dir: &'r Path,
    files: usize,
    /// The subject of the next test: all of them have their turn.
    turn: usize,
    /// Words that every test should have one of; empty: any will do.
    wanted: Vec<String>,
}

impl<'r> Generator<'r> {
    pub(super) fn new(random: &'r mut Random, dir: &'r Path, turn: usize, wanted: Vec<String>) -> Self {
        fs::write(dir.join("m.map"), "/a/b/c found\n/ root\none 1\nimg picture\n").unwrap();
        Self { random, dir, files: 0, turn, wanted }
    }

    /// A whole configuration.
    pub(super) fn rules(&mut self) -> Rules {
        let mut out =
            String::from("frontend web\n    bind 127.0.0.1:0\n    http-request set-var(txn.one) req.hdr(x-a)\n");
        let mut words = Vec::new();
        for number in 0..TESTS {
            let (test, of_test) = self.wanted_test();
            let _ = writeln!(out, "    acl t{number} {test}");
            if self.chance(10) {
                // Another line of the name: either will do.
                let (other, _) = self.test();
                let _ = writeln!(out, "    acl t{number} {other}");
            }
            let _ = writeln!(out, "    http-request set-header X-T{number} 1 if t{number}");
            words.push(of_test);
        }
        for number in 0..ACTIONS {
            let (action, condition) = (self.request_action(number), self.condition());
            let _ = writeln!(out, "    http-request {action}{condition}");
        }
        for number in 0..ACTIONS / 2 {
            let (action, condition) = (self.response_action(number), self.response_condition());
            let _ = writeln!(out, "    http-response {action}{condition}");
        }
        let _ = writeln!(out, "    http-after-response set-header X-After \"%[status]-%[var(txn.kept)]\"");
        for name in ["a", "b", "a"] {
            let condition = self.condition();
            let _ = writeln!(out, "    use_backend {name}{condition}");
        }
        out += "    default_backend c\n";
        for name in ["a", "b", "c"] {
            let _ =
                writeln!(out, "backend {name}\n    http-request set-header X-Backend {name}\n    server s @ORIGIN@");
        }
        Rules { text: out.replace("@MAP@", &self.dir.join("m.map").display().to_string()), words }
    }

    fn below(&mut self, n: usize) -> usize {
        self.random.below(n)
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn one(&mut self, of: &[&'static str]) -> &'static str {
        of[self.below(of.len())]
    }

    /// A test with one of the wanted words, as far as there soon is one.
    fn wanted_test(&mut self) -> (String, Vec<String>) {
        for _ in 0..500 {
            let (test, words) = self.test();
            if self.wanted.is_empty() || words.iter().any(|word| self.wanted.contains(word)) {
                return (test, words);
            }
        }
        self.test()
    }

    /// A test and its words.
    fn test(&mut self) -> (String, Vec<String>) {
        let subject = &SUBJECTS[self.turn % SUBJECTS.len()];
        self.turn += 1;
        let mut words = vec![word(subject.text)];
        let mut expr = subject.text.to_owned();
        let mut kind = subject.kind;
        if kind == Kind::Text && self.chance(45) {
            for _ in 0..=self.below(2) {
                let converter = self.one(CONVERTERS);
                expr = format!("{expr},{converter}");
                words.extend(converter.split("),").map(word));
            }
            if self.chance(25) {
                let converter = self.one(COUNTERS);
                expr = format!("{expr},{converter}");
                words.push(word(converter));
                kind = Kind::Number;
            }
        }
        let bare = expr == subject.text;
        let test = match kind {
            Kind::Truth => expr,
            Kind::Method => format!("{expr} {}", self.several(subject.values)),
            Kind::Address => {
                let method = if self.chance(30) { " -m ip" } else { "" };
                words.push("ip".to_owned());
                format!("{expr}{method} {}", self.several(ADDRESSES))
            }
            Kind::Number => self.number(&expr, subject, &mut words),
            Kind::Text => self.text(&expr, subject, bare, &mut words),
        };
        (test, words)
    }

    fn number(&mut self, expr: &str, subject: &Subject, words: &mut Vec<String>) -> String {
        let method = self.one(METHODS_OF_NUMBERS);
        words.push(format!("-m {method}"));
        let values = if subject.kind == Kind::Number { subject.values } else { NUMBERS };
        match method {
            "found" | "bool" => format!("{expr} -m {method}"),
            "str" => format!("{expr} -m str {}", self.several(values)),
            _ => {
                let explicit = if self.chance(50) { " -m int" } else { "" };
                format!("{expr}{explicit} {}", self.range(values))
            }
        }
    }

    /// Patterns of numbers: one or several, ranges, comparisons.
    fn range(&mut self, values: &[&'static str]) -> String {
        let value = self.one(values);
        match self.below(5) {
            0 => ended(value),
            1 if !value.contains(':') => format!("{} {value}", self.one(&["eq", "ge", "gt", "le", "lt"])),
            2 if !value.contains([':', '-']) => ended(&format!("{value}:")),
            3 if !value.contains([':', '-']) => format!(":{value}"),
            _ => self.several(values),
        }
    }

    fn text(&mut self, expr: &str, subject: &Subject, bare: bool, words: &mut Vec<String>) -> String {
        // What `bytes` gives is binary to HAProxy, and no number or address.
        let binary = expr.rsplit(",").next().is_some_and(|last| last.starts_with("bytes") || last.ends_with("4)"));
        let methods = if binary { &METHODS_OF_TEXT[..9] } else { METHODS_OF_TEXT };
        let method = self.one(methods);
        let (name, args) = expr.split_at(expr.find(['(', ',']).unwrap_or(expr.len()));
        let by_suffix =
            bare && subject.suffixes && !matches!(method, "str" | "found" | "int" | "ip") && self.chance(50);
        let head = if by_suffix {
            words.push(format!("_{method}"));
            format!("{name}_{method}{args}")
        } else {
            words.push(format!("-m {method}"));
            format!("{expr} -m {method}")
        };
        let insensitive = !matches!(method, "len" | "found" | "int" | "ip") && self.chance(30);
        let flag = if insensitive { " -i" } else { "" };
        if insensitive {
            words.push("-i".to_owned());
        }
        let patterns = match method {
            "found" => return head,
            // Less than nothing is true in HAProxy, whose lengths have no sign.
            "len" => self.range(&NUMBERS[1..6]),
            "int" => self.range(NUMBERS),
            "ip" => self.several(ADDRESSES),
            _ => {
                let count = 1 + self.below(3);
                let values = match expr {
                    _ if expr.ends_with("no)") || expr.contains("map_beg") => MAPPED,
                    _ if expr.ends_with(",hex") => DIGITS,
                    _ => subject.values,
                };
                let patterns: Vec<_> = (0..count).map(|_| self.pattern(method, values)).collect();
                if self.chance(15) {
                    words.push("-f".to_owned());
                    return format!("{head}{flag} -f {}", self.file(&patterns));
                }
                ended(&patterns.iter().map(|pattern| quoted(pattern)).collect::<Vec<_>>().join(" "))
            }
        };
        format!("{head}{flag} {patterns}")
    }

    /// A pattern that has a good chance to match one of `values`.
    fn pattern(&mut self, method: &str, values: &[&'static str]) -> String {
        let value = self.one(values);
        let third = value.len() / 3;
        let piece = |range: std::ops::Range<usize>| value.get(range).filter(|piece| !piece.is_empty()).unwrap_or("a");
        let text = match method {
            "beg" => piece(0..third.max(1)),
            "end" => piece(value.len() - third.max(1).min(value.len())..value.len()),
            "sub" => piece(third..2 * third.max(1)),
            "dir" | "dom" => {
                let inner: Vec<_> = value.split(['/', '.', '?', ':']).filter(|piece| !piece.is_empty()).collect();
                if inner.is_empty() { "a" } else { inner[self.below(inner.len())] }
            }
            "reg" => return self.regex(value),
            _ => value,
        };
        if text.is_empty() { "none".to_owned() } else { text.to_owned() }
    }

    fn regex(&mut self, value: &str) -> String {
        let escaped: String = value
            .chars()
            .flat_map(|c| if c.is_alphanumeric() || c == '/' || c == '-' { vec![c] } else { vec!['.'] })
            .collect();
        match self.below(5) {
            0 => format!("^{escaped}$"),
            1 => format!("^{}", &escaped[..escaped.len().min(2)]),
            2 => "[0-9]+".to_owned(),
            3 => "(^|/)[a-z]{1,3}($|/)".to_owned(),
            _ => format!("({escaped}|o.e)"),
        }
    }

    fn file(&mut self, patterns: &[String]) -> String {
        self.files += 1;
        let path = self.dir.join(format!("p{}-{}.lst", self.turn, self.files));
        fs::write(&path, format!("# patterns\n\n{}\n", patterns.join("\n"))).unwrap();
        path.display().to_string()
    }

    fn several(&mut self, values: &[&'static str]) -> String {
        let count = 1 + self.below(3);
        let values: Vec<_> = (0..count).map(|_| quoted(self.one(values))).collect();
        ended(&values.join(" "))
    }

    /// ` if …` or ` unless …` over the tests; sometimes nothing.
    fn condition(&mut self) -> String {
        let mut out = match self.below(8) {
            0 => return String::new(),
            1 => " unless".to_owned(),
            _ => " if".to_owned(),
        };
        for group in 0..=self.below(3) {
            if group > 0 {
                out += if self.chance(50) { " ||" } else { " or" };
            }
            for _ in 0..=self.below(3) {
                let term = match self.below(10) {
                    0 => self
                        .one(&["TRUE", "METH_GET", "METH_POST", "LOCALHOST", "HTTP_1.1", "HTTP_URL_SLASH"])
                        .to_owned(),
                    1 => format!("{{ {} }}", self.test().0),
                    _ => format!("t{}", self.below(TESTS)),
                };
                out += if self.chance(30) { " !" } else { " " };
                out += &term;
            }
        }
        out
    }

    /// A condition of a response rule.
    fn response_condition(&mut self) -> String {
        let test = match self.below(6) {
            0 => return String::new(),
            1 => "status 200",
            2 => "status 404 500:599",
            3 => "res.hdr(x-kind) -m beg o",
            4 => "res.hdr_cnt(x-many) gt 1",
            _ => "var(txn.kept) -m found",
        };
        format!(" {} {{ {test} }}", self.one(&["if", "unless"]))
    }

    /// A format: text and samples.
    fn format(&mut self) -> String {
        let expr = self.expr();
        format!("{}<%[{expr}]>", self.one(&["", "v", "a b "]))
    }

    fn expr(&mut self) -> String {
        let subject = &SUBJECTS[self.below(SUBJECTS.len())];
        let converter = if subject.kind == Kind::Text && self.chance(50) {
            format!(",{}", self.one(CONVERTERS))
        } else {
            String::new()
        };
        // In a format a comma stands for what follows the fetch, and braces and quotes are the file's.
        format!("{}{converter}", subject.text)
    }

    fn request_action(&mut self, number: usize) -> String {
        match self.below(16) {
            0 | 1 => format!("set-header X-S{number} \"{}\"", self.format()),
            2 => format!("add-header X-Add \"{}\"", self.format()),
            3 => format!(
                "del-header {}",
                self.one(&["X-A", "X-B", "Cookie", "X-Add", "X-B -m str", "^x-[ab]$ -m reg", "x-t1 -m beg"])
            ),
            4 => format!(
                "replace-header X-A {} {}",
                self.one(&["o", "^(.)(.*)$", "([0-9]+)"]),
                self.one(&["<\\0>", "\\2\\1", "n"])
            ),
            5 => format!("set-path \"/p%[path]{}\"", self.one(&["", "/x", ".html"])),
            6 => format!("set-query \"{}\"", self.one(&["q=%[query]", "a=1&b=%[req.hdr(x-a),url_enc]", "%[query]&z"])),
            7 => format!(
                "replace-path {} {}",
                self.one(&["^/([a-z]+)/(.*)$", "o", "(.)$"]),
                self.one(&["/\\2/\\1", "/n\\0", "/x"])
            ),
            8 => format!("set-method {}", self.one(&["GET", "PUT"])),
            9 => format!("set-var(txn.kept) {}", self.expr()),
            10 => format!("set-var-fmt(txn.kept) \"{}\"", self.format()),
            11 => self.one(&["unset-var(txn.kept)", "unset-var(txn.one)"]).to_owned(),
            12 => format!("set-header X-Kept{number} \"%[var(txn.kept)]\""),
            13 => format!(
                "replace-value X-A {} {}",
                self.one(&["o", "^(.)(.*)$", "([0-9]+)"]),
                self.one(&["<\\0>", "\\2\\1", "n"])
            ),
            _ => self.end(number),
        }
    }

    /// An action that ends the rules; a condition beside the usual one keeps it rare.
    fn end(&mut self, number: usize) -> String {
        match self.below(8) {
            0 => "allow".to_owned(),
            1 => format!("deny deny_status {}", self.one(&["400", "403", "404", "429", "500", "503"])),
            2 => {
                format!("redirect location /r%[path]?{number} code {}", self.one(&["301", "302", "303", "307", "308"]))
            }
            3 => format!(
                "redirect prefix http://p.example{}",
                self.one(&["", " drop-query", " append-slash", " code 301"])
            ),
            4 => format!("redirect scheme https{}", self.one(&["", " set-cookie a=b", " clear-cookie c", " code 307"])),
            5 => format!("return status 299 content-type text/plain lf-string \"{}\"", self.format()),
            6 => format!("return status 298 content-type text/plain string n{number} hdr X-R \"{}\"", self.format()),
            _ => format!("add-header X-End {number}"),
        }
    }

    fn response_action(&mut self, number: usize) -> String {
        match self.below(8) {
            0 => format!(
                "set-header X-Rs{number} \"{}\"",
                self.one(&["%[status]", "<%[res.hdr(x-kind),upper]>", "%[var(txn.kept)]", "%[res.hdr_cnt(x-many)]"])
            ),
            1 => format!("add-header X-Many \"{}\"", self.one(&["%[status]", "n", "%[var(txn.one)]"])),
            2 => format!("del-header {}", self.one(&["X-Kind", "X-Many", "x-r -m beg"])),
            3 => format!("replace-header X-Many {} {}", self.one(&["o", "^(.)(.*)$"]), self.one(&["<\\0>", "\\2\\1"])),
            4 => format!("replace-value X-Many {} {}", self.one(&["o", "^(.)(.*)$"]), self.one(&["<\\0>", "\\2\\1"])),
            5 => format!("set-status {}", self.one(&["201", "404 reason \"Not here\"", "503"])),
            6 => "set-var(txn.kept) res.hdr(x-kind)".to_owned(),
            _ => format!("set-header X-Rs{number} \"%[var(txn.one),concat(-,txn.kept)]\""),
        }
    }
}

/// The name of a fetch or converter.
fn word(text: &str) -> String {
    text.split(['(', ',']).next().unwrap_or_default().to_owned()
}

/// Patterns that could be taken for a flag come after the end of flags.
fn ended(patterns: &str) -> String {
    if patterns.starts_with(['-', '\'']) && patterns.trim_start_matches('\'').starts_with('-') {
        format!("-- {patterns}")
    } else {
        patterns.to_owned()
    }
}

/// A pattern as the file has it.
fn quoted(pattern: &str) -> String {
    format!("'{pattern}'")
}
