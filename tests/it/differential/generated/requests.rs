//! Requests whose parts are those that the rules ask for.

use crate::{counters::Random, harness::client::request};

pub(super) const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"];
pub(super) const PATHS: &[&str] = &[
    "/",
    "/a",
    "/a/b/c",
    "/img/Logo.PNG",
    "/img/logo.png",
    "/api/v1/users/42",
    "/static/app.3f2a.js",
    "/one.two/three",
    "/index.html",
    "/%7euser/x",
    "/deep/er/than/that.txt",
    "/10",
];
pub(super) const QUERIES: &[&str] =
    &["", "a=1", "a=1&b=Two", "b=x%20y&a=10", "utm=z&a=-3", "flag", "a=10.0.0.7", "a=one&a=b", "b=a&a="];
pub(super) const HOSTS: &[&str] = &["t.example", "www.t.example", "t.example:8080", "api.other.org"];
pub(super) const VALUES: &[&str] = &[
    "one",
    "One",
    "two words",
    "a,b",
    "10",
    "-3",
    "10.0.0.7",
    "2001:db8::7",
    "x=1;y=2",
    "aGVsbG8=",
    "abc123def",
    "a/b.c",
    "100",
    "foo",
    "b, one",
];
pub(super) const COOKIES: &[&str] = &["s=one; t=Two", "t=10", "s=10.0.0.7; x=y", "s=a; s=b", "other=1", "t=x=1; s=Two"];

/// One request.
pub(super) struct Request {
    pub(super) method: &'static str,
    pub(super) bytes: String,
}

pub(super) fn any(random: &mut Random) -> Request {
    let mut one = |of: &[&'static str]| of[random.below(of.len())];
    let method = one(METHODS);
    let (path, query) = (one(PATHS), one(QUERIES));
    let target = match one(&["", "?"]) {
        "" => path.to_owned(),
        _ => format!("{path}?{query}"),
    };
    let mut fields = vec![format!("Host: {}", one(HOSTS))];
    for name in ["X-A", "X-B"] {
        for _ in 0..one(&["", "1", "11"]).len() {
            fields.push(format!("{name}: {}", one(VALUES)));
        }
    }
    if one(&["", "1"]) == "1" {
        fields.push(format!("Cookie: {}", one(COOKIES)));
    }
    if one(&["", "", "1"]) == "1" {
        fields.push("Authorization: Basic dXNlcjpwYXNz".to_owned());
    }
    let body: &[u8] = if matches!(method, "POST" | "PUT") { b"body" } else { b"" };
    let bytes = request(method, &target, &fields.join("\n"), body);
    Request { method, bytes: String::from_utf8(bytes).unwrap() }
}
