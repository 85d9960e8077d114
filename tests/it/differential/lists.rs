//! Maps and pattern files decide alike, as they are in files and as rules change them.

use std::{fs, path::Path};

use super::{Haproxy, exchange};
use crate::harness::{Gateway, Origin, peers};

const TEXTS: &str = "# a comment
/a slash a
/a/b  deeper \t
/a again
  /led by blanks
.png picture
in inside
/in/ directory
www.example.org host
^/r([0-9]+)/(.*)$ group \\1 and \\2
/[0-9]+$ number
/empty
";

const ADDRESSES: &str = "10.0.0.0/8 wide
10.1.0.0/16 narrow
192.0.2.1 one
2001:db8::/32 six
0.0.0.0/0 all
";

const NUMBERS: &str = "5 five
4:9 some
100: many
0 0
";

const VALUES: &str = "/a 1
/b -7
/c 0
";

const HOSTS: &str = "/a 192.0.2.9
/b 2001:db8::9
";

/// Expressions on the path, the field X and the field N.
const EXPRESSIONS: &[&str] = &[
    "path,map(@/t.map)",
    "path,map(@/t.map,none)",
    "path,map_str(@/t.map)",
    "path,map_str_int(@/v.map)",
    "path,map_str_int(@/v.map,12)",
    "path,map_str_ip(@/h.map)",
    "path,map_str_ip(@/h.map,192.0.2.77)",
    "path,map_beg(@/t.map)",
    "path,map_beg_int(@/v.map,3)",
    "path,map_end(@/end.map,none)",
    "path,map_end_int(@/v-end.map)",
    "path,map_sub(@/sub.map)",
    "path,map_dir(@/dir.map)",
    "path,map_dom(@/dom.map)",
    "path,map_reg(@/r.map)",
    "path,map_regm(@/rm.map)",
    "path,map_regm(@/rm.map,none)",
    "req.hdr(x),map_dom(@/dom.map)",
    "req.hdr(x),map_ip(@/n.map)",
    "req.hdr(x),map_ip(@/n.map,none)",
    "req.hdr(n),map_int(@/i.map)",
    "req.hdr(n),map_int(@/i.map,none)",
];

const ACLS: &[&str] = &[
    "path -f @/a.lst",
    "path -i -f @/a.lst",
    "path -f @/a.lst -i -f @/b.lst /Inline",
    "path_beg -f @/a.lst",
    "path_beg -i -f @/a.lst",
    "path_end -f @/b-end.lst",
    "path_sub -i -f @/b-sub.lst",
    "path_dir -f @/b-dir.lst",
    "path_dom -f @/b-dom.lst",
    "path_reg -f @/c.lst",
    "path_reg -i -f @/c.lst",
    "path_len -f @/d.lst",
    "path -m bin -f @/e.lst",
    "path -M -f @/t.map",
    "path_beg -M -f @/t.map",
    "req.hdr(x) -m ip -f @/f.lst",
    "req.hdr(x) -m ip -n -f @/f.lst 127.0.0.1",
    "req.hdr(n) -m int -f @/d.lst",
];

/// HAProxy 2.6 remembers what it found by file, and takes what one of `sub end dir dom reg` found for what another one
/// would: each has a file of its own.
const LISTS: &[(&[&str], &str)] = &[
    (&["t.map", "end.map", "sub.map", "dir.map", "dom.map"], TEXTS),
    (&["r.map", "rm.map"], "^/r([0-9]+)/(.*)$ group \\1 and \\2\n/[0-9]+$ number\n/a(x)? odd \\1.\n"),
    (&["n.map"], ADDRESSES),
    (&["i.map"], NUMBERS),
    (&["v.map", "v-end.map"], VALUES),
    (&["h.map"], HOSTS),
    (&["a.lst"], "/a\n  /led\n# /comment\n #/hash\n\n/Case\n/with blank\n"),
    (&["b.lst", "b-end.lst", "b-sub.lst", "b-dir.lst", "b-dom.lst"], "b\n/in/\n.PNG\nled"),
    (&["c.lst"], "^/r[0-9]\n/Case$\nx{2}\n"),
    (&["d.lst"], "2\n5:6\n20:\n"),
    (&["e.lst"], "2f61\n2F62\n"),
    (&["f.lst"], "10.0.0.0/8\n192.0.2.1\n2001:db8::/32\n"),
];

const PATHS: &[&str] = &[
    "/",
    "/a",
    "/A",
    "/a/b",
    "/a/b/c",
    "/ab",
    "/led",
    "/x.png",
    "/x.PNG",
    "/in/x",
    "/x/in",
    "/begin",
    "/r12/x/y",
    "/7",
    "/empty",
    "/b",
    "/c",
    "/Case",
    "/case",
    "/axx",
    "/www.example.org/x",
    "/with blank",
    "/Inline",
    "/inline",
];

const FIELDS: &[&str] = &[
    "",
    "X: 10.1.2.3\r\nN: 5",
    "X: 10.9.9.9\r\nN: 4",
    "X: 10.0.0.1\r\nN: 0",
    "X: 192.0.2.1\r\nN: 100",
    "X: 2001:db8::1\r\nN: 3",
    "X: ::ffff:10.1.1.1\r\nN: -1",
    "X: www.example.org:80\r\nN: x",
    "X: 203.0.113.1\r\nN: 20",
];

/// Lines that change lists by the fields of a request, before the others look into them.
const CHANGES: &str = "
    http-request set-map(@/t.map) %[path] %[req.hdr(set)] if { req.hdr(set) -m found }
    http-request set-map(@/n.map) %[req.hdr(x)] %[req.hdr(set)] if { req.hdr(set) -m found }
    http-request del-map(@/t.map) %[path] if { req.hdr(del) -m found }
    http-request add-acl(@/a.lst) %[path] if { req.hdr(add) -m found }
    http-request del-acl(@/a.lst) %[path] if { req.hdr(del) -m found }
";

fn lines(changes: bool) -> String {
    let mut lines = if changes { CHANGES.to_owned() } else { String::new() };
    for (number, expression) in EXPRESSIONS.iter().enumerate() {
        lines.push_str(&format!("    http-request set-header X-E{number} <%[{expression}]>\n"));
    }
    for (number, acl) in ACLS.iter().enumerate() {
        lines.push_str(&format!("    http-request set-header X-A{number} 1 if {{ {acl} }}\n"));
    }
    lines
}

fn both(haproxy: &Path, folder: &Path, origin: &Origin, changes: bool) -> (Haproxy, Gateway) {
    for (name, text) in LISTS.iter().flat_map(|(names, text)| names.iter().map(move |name| (name, text))) {
        fs::write(folder.join(name), text).unwrap();
    }
    let text = format!(
        "defaults\n    mode http\n    timeout connect 2s\n    timeout client 10s\n    timeout server 10s\n\
         frontend web\n    bind 127.0.0.1:0\n{}    default_backend origin\nbackend origin\n    server o1 {}\n",
        lines(changes).replace('@', folder.to_str().unwrap()),
        origin.address
    );
    let peer = Haproxy::start(haproxy, folder, &format!("global\n    maxconn 100\n{text}"));
    (peer, Gateway::start(&format!("global\n    nbthread 2\n{text}")))
}

#[test]
fn lists_decide_as_in_haproxy() {
    let Some([haproxy]) = peers::need("differential test of lists", ["haproxy"]) else { return };
    let origin = Origin::fixed("", "x");
    let folder = tempfile::tempdir().unwrap();
    let (peer, gateway) = both(&haproxy, folder.path(), &origin, false);
    let mut seen = String::new();
    for path in PATHS {
        for fields in FIELDS {
            let path = path.replace(' ', "%20");
            let [theirs, ours] =
                [peer.address, gateway.address()].map(|to| exchange(to, &origin, "GET", &path, fields));
            assert_eq!(ours, theirs, "{path} {fields:?}");
            seen += &ours.join("\n");
            seen.push('\n');
        }
    }
    for (number, expression) in EXPRESSIONS.iter().enumerate() {
        let lines = || seen.lines().filter(|line| line.starts_with(&format!("x-e{number}: ")));
        let first = lines().next().unwrap();
        assert!(lines().any(|line| line != first), "{expression} always gives {first}");
    }
    for (number, acl) in ACLS.iter().enumerate() {
        let count = seen.lines().filter(|line| *line == format!("x-a{number}: 1")).count();
        assert!(count > 0 && count < PATHS.len() * FIELDS.len(), "{acl} held {count} times");
    }
}

#[test]
fn lists_change_as_in_haproxy() {
    let Some([haproxy]) = peers::need("differential test of changing lists", ["haproxy"]) else { return };
    let origin = Origin::fixed("", "x");
    let folder = tempfile::tempdir().unwrap();
    let (peer, gateway) = both(&haproxy, folder.path(), &origin, true);
    let steps = [
        ("/a", "X: 10.1.2.3\r\nSet: changed"),
        ("/a/b", "X: 10.1.0.0/16\r\nSet: wider"),
        ("/a", "Del: 1"),
        ("/a/b/c", ""),
        ("/new", "Set: value"),
        ("/new", "Add: 1"),
        ("/new/x", ""),
        ("/NEW", ""),
        ("/new", "Set: other"),
        ("/new", "Del: 1"),
        ("/new", ""),
        ("/a", "Add: 1"),
        ("/a", "Set: back"),
        ("/a/b/c", "X: 10.1.2.3"),
        ("/Case", "Del: 1"),
        ("/case", ""),
        ("/none", "Del: 1"),
        ("/a", "X: nonsense\r\nSet: not taken"),
        ("/", "X: nonsense"),
        ("/in/x", "X: 192.0.2.0/24\r\nSet: net"),
        ("/in/x", "X: 192.0.2.9"),
        ("/in/x", "X: 192.0.2.1"),
    ];
    for (path, fields) in steps {
        let [theirs, ours] = [peer.address, gateway.address()].map(|to| exchange(to, &origin, "GET", path, fields));
        assert_eq!(ours, theirs, "{path} {fields:?}");
    }
}
