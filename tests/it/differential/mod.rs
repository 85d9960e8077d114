//! The same lines loaded by HAProxy and by the gateway decide alike.

mod answers;
mod bodies;
mod converters;
mod counters;
mod exchange;
mod fetches;
mod files;
mod generated;
mod lists;
mod log;
mod stats;

use std::{
    fs::{self, File},
    net::{SocketAddr, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
};

use crate::harness::{Client, Gateway, Origin, Place, client::request, eventually, peers};

/// Lines of a frontend that both understand; `@MAP@` is a map file.
const LINES: &str = r#"
    acl beg path_beg /beg/ /also/
    acl end path_end -i .PNG .jpg
    acl sub path_sub mid
    acl dir path_dir inner
    acl dom hdr_dom(host) -i example.org
    acl reg path_reg ^/r[0-9]+/(a|b)$
    acl regi path_reg -i ^/REGI
    acl len path_len 5
    acl lens path_len 20:30
    acl exact path /exact
    acl exact path -i /ALSO-EXACT
    acl tenant hdr(X-Tenant) -m str one two
    acl tenant hdr(X-Tenant) -i THREE
    acl session cook(session) -m found
    acl mine req.cook(session) -m beg me
    acl num hdr(X-Num) -m int 10:20
    acl big req.hdr(X-Num) -m int gt 100
    acl net hdr(X-Addr) -m ip 10.0.0.0/8 192.168.1.1 2001:db8::/32
    acl param url_param(a) -m str b
    acl query query -m sub flag
    acl minus hdr(X-Tenant) -- -i
    http-request set-header X-T-Beg 1 if beg
    http-request set-header X-T-End 1 if end
    http-request set-header X-T-Sub 1 if sub
    http-request set-header X-T-Dir 1 if dir
    http-request set-header X-T-Dom 1 if dom
    http-request set-header X-T-Reg 1 if reg || regi
    http-request set-header X-T-Len 1 if len or lens
    http-request set-header X-T-Exact 1 if exact
    http-request set-header X-T-Tenant 1 if tenant
    http-request set-header X-T-Session 1 if session
    http-request set-header X-T-Mine 1 if mine
    http-request set-header X-T-Num 1 if num
    http-request set-header X-T-Big 1 if big
    http-request set-header X-T-Net 1 if net
    http-request set-header X-T-Param 1 if param
    http-request set-header X-T-Query 1 if query
    http-request set-header X-T-Minus 1 if minus
    http-request set-header X-T-Mixed 1 if beg !end tenant || { method POST } !{ hdr(X-Num) -m found } or exact
    http-request set-header X-T-Unless 1 unless tenant || beg
    http-request set-header X-T-Get 1 if METH_GET !TRUE || METH_POST LOCALHOST
    http-request set-header X-S-Method "%[method]"
    http-request set-header X-S-Path "%[path]"
    http-request set-header X-S-Url "%[url]"
    http-request set-header X-S-Query "<%[query]>"
    http-request set-header X-S-Param "<%[url_param(a)]>"
    http-request set-header X-S-Cookie "<%[req.cook(session)]>"
    http-request set-header X-S-Multi1 "<%[req.hdr(X-Multi,1)]>"
    http-request set-header X-S-Multi2 "<%[req.hdr(X-Multi,2)]>"
    http-request set-header X-S-MultiLast "<%[req.hdr(X-Multi,-1)]>"
    http-request set-header X-S-Src "%[src]"
    http-request set-header X-C-Lower "%[path,lower]"
    http-request set-header X-C-Upper "%[path,upper]"
    http-request set-header X-C-Field "<%[path,field(2,/)]>"
    http-request set-header X-C-FieldLast "<%[path,field(-1,/)]>"
    http-request set-header X-C-Word "<%[path,word(1,/)]>"
    http-request set-header X-C-WordLast "<%[path,word(-1,/.)]>"
    http-request set-header X-C-Regsub "<%[path,regsub([0-9]+,N,g)]>"
    http-request set-header X-C-RegsubOnce "<%[path,regsub(/,-)]>"
    http-request set-header X-C-Decoded "<%[query,url_dec]>"
    http-request set-header X-C-Map "<%[path,map(@MAP@,none)]>"
    http-request set-header X-C-Chain "<%[path,word(1,/),upper,regsub(E,3,g)]>"
    http-request set-header X-Q-Single 'a  b "c" \d'
    http-request set-header X-Q-Double "a\"b \\ c"
    http-request set-header X-Q-Escaped a\ b\"c\#d
    http-request set-header X-Q-Percent 100%%
    http-request set-var(txn.first) path,word(1,/)
    http-request set-var(req.joined) str(x),upper
    http-request set-header X-V-First "%[var(txn.first)]"
    http-request set-header X-V-Absent "<%[var(txn.nothing)]>"
    http-request set-header X-V-Found 1 if { var(txn.first) -m found }
    http-request set-header X-V-Is 1 if { var(txn.first) -m beg also }
    http-request add-header X-List one
    http-request add-header X-List two if beg
    http-request del-header X-Secret
    http-request replace-header X-Replace ^(.*)old(.*)$ \1new\2
    http-request deny if { path_beg /deny }
    http-request deny deny_status 429 if { path_beg /many }
    http-request redirect location http://else.example%[path] code 301 if { path_beg /loc }
    http-request redirect location /fixed if { path_beg /fix }
    http-request redirect prefix http://p.example code 307 if { path_beg /pre }
    http-request redirect scheme https code 308 if { path_beg /sch }
    http-request redirect location /set code 303 set-cookie a=b if { path_beg /coo }
    http-request return status 200 content-type text/plain string "hello # there" if { path_beg /ret }
    http-request return status 503 if { path_beg /gone }
    http-request replace-path /v[0-9]+/(.*) /\1 if { path_beg /v }
    http-request set-path /new%[path] if { path_beg /setp }
    http-request set-query z=1&%[query] if { path_beg /setq }
    http-response set-header X-R-Status "%[status]"
    http-response set-header X-R-Type "<%[res.hdr(Content-Type),upper]>"
    http-response add-header X-R-Added 1 if { status 200 }
    http-response del-header X-R-Secret
    http-after-response set-header X-R-After 1
"#;

const PATHS: [&str; 34] = [
    "/",
    "/beg/x.PNG",
    "/also/mid/x.jpg",
    "/begin/inner/a",
    "/a/inner",
    "/r12/a",
    "/r1/ab",
    "/regi/x",
    "/four",
    "/a/path/of/25/characters",
    "/exact",
    "/also-exact",
    "/EXACT",
    "/q?a=b&c=d",
    "/q?c=d&a=b%20c+d&flag",
    "/q?a=",
    "/q?",
    "/q?a",
    "/Mixed/Case.Png",
    "/one/two//three/",
    "/mapped",
    "/deny/x",
    "/many",
    "/loc/a?b=c",
    "/fix",
    "/pre/a?b=c",
    "/sch/a?b=c",
    "/coo",
    "/ret",
    "/gone",
    "/v12/page?x=1",
    "/setp/a?b",
    "/setq/a?b=1",
    "/setq/a",
];

const FIELDS: [&str; 13] = [
    "",
    "X-Tenant: one",
    "X-Tenant: three\nHost: www.example.org",
    "X-Tenant: zero, two",
    "X-Tenant: -i",
    "X-Num: 15\nX-Addr: 10.1.2.3",
    "X-Num: 101\nX-Addr: 192.168.1.2",
    "X-Num: abc\nX-Addr: 2001:db8::1",
    "Cookie: session=me; other=1",
    "Cookie: other=1\nX-Secret: 1\nX-Secret: 2",
    "X-Multi: a, b\nX-Multi: c",
    "X-Replace: an old thing\nX-Replace: nothing",
    "X-List: zero\nHost: notexample.org",
];

/// HAProxy with these lines; stopped when dropped.
struct Haproxy {
    child: Child,
    address: SocketAddr,
    _place: Place,
}

impl Haproxy {
    fn start(program: &Path, dir: &Path, rules: &str) -> Self {
        Self::start_in(program, dir, rules, dir)
    }

    /// Started in the folder `current`, which paths in the rules count from; its zone is UTC.
    fn start_in(program: &Path, dir: &Path, rules: &str, current: &Path) -> Self {
        let place = Place::hold();
        let address = place.address;
        let file = dir.join("haproxy.cfg");
        std::fs::write(&file, rules.replacen("bind 127.0.0.1:0", &format!("bind {address}"), 1)).unwrap();
        let mut command = Command::new(program);
        command.current_dir(current).env("TZ", "UTC");
        let said = dir.join("haproxy.log");
        command.arg("-db").arg("-f").arg(&file).stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.stderr(File::create(&said).unwrap()).spawn().unwrap();
        eventually("haproxy listens", || {
            if let Some(status) = child.try_wait().unwrap() {
                panic!("haproxy: {status}: {}\n{rules}", fs::read_to_string(&said).unwrap_or_default());
            }
            TcpStream::connect(address).is_ok()
        });
        Self { child, address, _place: place }
    }
}

impl Drop for Haproxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a client and the origin see of one exchange, as far as rules decide it.
fn exchange(address: SocketAddr, origin: &Origin, method: &str, path: &str, fields: &str) -> Vec<String> {
    let before = origin.count();
    let body: &[u8] = if method == "POST" { b"body" } else { b"" };
    let response = Client::connect(address).send(request(method, path, fields, body)).read(method);
    let mut seen = vec![format!("status {}", response.status)];
    let shown = |(name, value): &(String, String)| format!("{}: {value}", name.to_ascii_lowercase());
    let kept = |line: &String| ["x-r-", "location", "set-cookie"].iter().any(|name| line.starts_with(name));
    let mut answer: Vec<String> = response.fields.iter().map(shown).filter(kept).collect();
    answer.sort();
    seen.extend(answer);
    for request in origin.seen().split_off(before) {
        seen.push(request.line());
        let mut sent: Vec<String> = request
            .fields
            .iter()
            .map(shown)
            .filter(|line| line.starts_with("x-") || line.starts_with("host"))
            .collect();
        sent.sort();
        seen.extend(sent);
    }
    seen
}

#[test]
fn the_same_lines_decide_as_in_haproxy() {
    let Some([haproxy]) = peers::need("differential test", ["haproxy"]) else { return };
    let origin = Origin::fixed("Content-Type: text/html\nX-R-Secret: 1", "x");
    let dir = tempfile::tempdir().unwrap();
    let map = dir.path().join("paths.map");
    std::fs::write(&map, "# a map\n/mapped found it\n/exact exactly\n").unwrap();
    let lines = LINES.replace("@MAP@", map.to_str().unwrap());
    let shared = |text: &str| {
        format!(
            "{text}defaults\n    mode http\n    timeout connect 2s\n    timeout client 10s\n    timeout server 10s\n\
             frontend web\n    bind 127.0.0.1:0\n{lines}    default_backend origin\n\
             backend origin\n    server o1 {}\n",
            origin.address
        )
    };
    let peer = Haproxy::start(&haproxy, dir.path(), &shared("global\n    maxconn 100\n"));
    let gateway = Gateway::start(&shared("global\n    nbthread 1\n"));
    let mut differing = Vec::new();
    for path in PATHS {
        for (number, fields) in FIELDS.iter().enumerate() {
            for method in ["GET", "POST"].into_iter().take(if number < 3 { 2 } else { 1 }) {
                let theirs = exchange(peer.address, &origin, method, path, fields);
                let ours = exchange(gateway.address(), &origin, method, path, fields);
                if theirs != ours {
                    let only = |a: &[String], b: &[String]| {
                        a.iter().filter(|line| !b.contains(line)).cloned().collect::<Vec<_>>()
                    };
                    let (there, here) = (only(&theirs, &ours), only(&ours, &theirs));
                    differing
                        .push(format!("{method} {path} [{}]: theirs {there:?}, ours {here:?}", fields.escape_debug()));
                }
            }
        }
    }
    let count = differing.len();
    differing.truncate(40);
    assert!(count == 0, "{count} exchanges differ:\n{}", differing.join("\n"));
}

/// What a name that rules make of the request leads to, with a default backend and without.
#[test]
fn a_backend_is_found_by_name_as_in_haproxy() {
    let Some([haproxy]) = peers::need("differential test of backends by name", ["haproxy"]) else { return };
    let (main, api, after) = (Origin::fixed("", "main"), Origin::fixed("", "api"), Origin::fixed("", "after"));
    let dir = tempfile::tempdir().unwrap();
    for default in ["    default_backend main\n", ""] {
        let lines = format!(
            "defaults\n    mode http\n    timeout connect 2s\n    timeout client 10s\n    timeout server 10s\n\
             frontend web\n    bind 127.0.0.1:0\n    use_backend %[req.hdr(x-backend)] if {{ req.hdr(x-backend) -m found }}\n    \
             use_backend after if {{ path /after }}\n{default}\
             backend main\n    server s {}\nbackend api\n    server s {}\nbackend after\n    server s {}\n",
            main.address, api.address, after.address
        );
        let peer = Haproxy::start(&haproxy, dir.path(), &format!("global\n    maxconn 100\n{lines}"));
        let gateway = Gateway::start(&format!("global\n    nbthread 1\n{lines}"));
        for path in ["/", "/after"] {
            for fields in
                ["", "X-Backend: api", "X-Backend: nobody", "X-Backend: API", "X-Backend: api, main", "X-Backend:"]
            {
                let answer = |address: SocketAddr| {
                    let response = Client::connect(address).get_with(path, fields);
                    let body = if response.status == 200 { response.text() } else { String::new() };
                    (response.status, body)
                };
                assert_eq!(answer(gateway.address()), answer(peer.address), "{path} [{fields}], `{default}`");
            }
        }
    }
}
