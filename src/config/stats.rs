//! The page of statistics of a proxy (HAProxy manual §4.2 `stats`).

use std::{sync::Arc, time::Duration};

use crate::{
    message::Request,
    rule::{RuleSet, users::Userlist},
};

/// A page of statistics.
#[derive(Clone, Debug)]
pub struct StatsPage {
    /// `stats uri`: what the targets that ask for it begin with.
    pub uri: Box<[u8]>,
    /// `stats http-request`: who may see it.
    pub rules: RuleSet,
    /// `stats auth`: the users who may see it, and how the others are asked; `None`: nobody is asked.
    pub users: Option<(Arc<Userlist>, Box<[u8]>)>,
    /// `stats refresh`: after how long a browser asks again; `None`: never.
    pub refresh: Option<Duration>,
    /// `stats scope`: the proxies it shows; empty: all of them.
    pub scope: Vec<String>,
    /// `stats show-node`: the name of the machine, or another one.
    pub node: Option<String>,
    /// `stats show-desc`.
    pub description: Option<String>,
    /// Whether it says which version this is (not with `stats hide-version`).
    pub shows_version: bool,
    /// `stats show-legends`: the addresses of binds and servers are shown.
    pub shows_addresses: bool,
}

impl StatsPage {
    /// Whether `request` asks for it.
    pub fn is_asked(&self, request: &Request) -> bool {
        let method = request.method();
        if !(matches!(method, b"GET" | b"HEAD" | b"POST") && self.uri.starts_with(b"/")) {
            return false;
        }
        let (path, query) = (request.path(), request.query());
        match self.uri.strip_prefix(path) {
            // The page's own query begins the request's.
            Some([b'?', wanted @ ..]) => query.is_some_and(|query| query.starts_with(wanted)),
            Some(rest) => rest.is_empty(),
            None => path.starts_with(&self.uri),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uri_is_the_beginning_of_those_that_ask() {
        let page = |uri: &str| StatsPage {
            uri: uri.as_bytes().into(),
            rules: RuleSet::default(),
            users: None,
            refresh: None,
            scope: Vec::new(),
            node: None,
            description: None,
            shows_version: true,
            shows_addresses: false,
        };
        for (uri, target, asks) in [
            ("/s", "/s", true),
            ("/s", "/s?x", true),
            ("/s", "/s;csv", true),
            ("/s", "/stats", true),
            ("/s", "/", false),
            ("/haproxy?stats", "/haproxy?stats", true),
            ("/haproxy?stats", "/haproxy?stats;csv", true),
            ("/haproxy?stats", "/haproxy", false),
            ("/haproxy?stats", "/haproxy?stat", false),
            ("/haproxy?stats", "/haprox", false),
            ("/a/b", "/a", false),
        ] {
            assert_eq!(page(uri).is_asked(&Request::new(b"GET", target.as_bytes())), asks, "{uri} {target}");
        }
        assert!(!page("/s").is_asked(&Request::new(b"PUT", b"/s")));
    }
}
