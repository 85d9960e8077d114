//! Pattern files and maps that rules change while the gateway runs.

use std::fs;

use crate::harness::{Gateway, Origin, eventually, site};

/// Rules that change `blocked.lst` and `names.map` in `folder` and look into them.
fn rules(origin: &Origin, folder: &std::path::Path, more: &str) -> String {
    let lines = "    acl blocked hdr(X-Client) -f @/blocked.lst
    http-request add-acl(@/blocked.lst) %[req.hdr(X-Block)] if { req.hdr(X-Block) -m found }
    http-request del-acl(@/blocked.lst) %[req.hdr(X-Free)] if { req.hdr(X-Free) -m found }
    http-request set-map(@/names.map) %[path] %[req.hdr(X-Name)] if { req.hdr(X-Name) -m found }
    http-request del-map(@/names.map) %[path] if { req.hdr(X-Forget) -m found }
    http-request deny if blocked
    http-request set-var(txn.path) path
    http-response set-header X-Name <%[var(txn.path),map(@/names.map)]>
    http-response set-header X-Status %[status,map_int(@/states.map)]
    http-response set-map(@/states.map) 200 %[res.hdr(X-Say)] if { res.hdr(X-Say) -m found }
    cache-rule all ttl auto";
    site(origin.address, &format!("{}\n{more}", lines.replace('@', folder.to_str().unwrap())))
}

#[test]
fn changes_are_seen_by_every_worker_and_on_hits_until_a_reload() {
    let origin = Origin::fixed("Cache-Control: max-age=60", "x");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("blocked.lst"), "mallory\n").unwrap();
    fs::write(folder.path().join("names.map"), "/a first\n").unwrap();
    fs::write(folder.path().join("states.map"), "200 fine\n").unwrap();
    let gateway = Gateway::start(&rules(&origin, folder.path(), ""));
    // Eight connections meet both workers with near certainty.
    let mut clients: Vec<_> = (0..8).map(|_| gateway.client()).collect();
    let mut all = |fields: &str, expected: (u16, Option<&str>)| {
        for client in &mut clients {
            let response = client.get_with("/a", fields);
            assert_eq!((response.status, response.field("x-name")), expected, "{fields}");
        }
    };
    all("X-Client: mallory", (403, None));
    all("X-Client: eve", (200, Some("<first>")));
    assert_eq!(gateway.client().get("/a").field("x-status"), Some("fine"));
    gateway.client().get_with("/a", "X-Block: eve\r\nX-Free: mallory\r\nX-Name: second");
    all("X-Client: mallory", (200, Some("<second>")));
    all("X-Client: eve", (403, None));
    gateway.client().get_with("/a", "X-Forget: 1");
    all("", (200, Some("<>")));
    assert_eq!(origin.count(), 1, "all but the first were hits");
    fs::write(folder.path().join("names.map"), "/a of the file\n").unwrap();
    gateway.reload(&rules(&origin, folder.path(), "    http-response set-header X-Mark new"));
    eventually("the new rules are there", || gateway.get("/a").field("x-mark") == Some("new"));
    let mut fresh = gateway.client();
    assert_eq!(fresh.get_with("/a", "X-Client: eve").field("x-name"), Some("<of the file>"));
    assert_eq!(fresh.get_with("/a", "X-Client: mallory").status, 403);
    gateway.assert_law();
}

#[test]
fn response_rules_change_lists_too() {
    let origin = Origin::start(|seen, wire| {
        let say = if seen.path() == "/say" { "X-Say: spoken" } else { "" };
        wire.reply(200, say, b"x")
    });
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("blocked.lst"), "").unwrap();
    fs::write(folder.path().join("names.map"), "").unwrap();
    fs::write(folder.path().join("states.map"), "").unwrap();
    let gateway = Gateway::start(&rules(&origin, folder.path(), ""));
    assert_eq!(gateway.get("/a").field("x-status"), Some(""));
    gateway.get("/say");
    assert_eq!(gateway.get("/a").field("x-status"), Some("spoken"));
}
