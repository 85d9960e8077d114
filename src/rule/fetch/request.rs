//! The request's start line (HAProxy manual §7.3.6).

use bumpalo::collections::Vec as BumpVec;

use super::{Args, Draw, FetchRow, Method, Sample, TEXT, Txn, Type};
use crate::message::{Request, Version};

pub(super) const ROWS: &[FetchRow] = &[
    FetchRow {
        names: &["method"],
        output: Type::Method,
        implied: Some(Method::Method),
        draw: Draw::One(|_, txn| Some(Sample::Method(txn.request.method()))),
        ..TEXT
    },
    FetchRow { names: &["path"], draw: Draw::One(|_, txn| path(txn.request).map(Sample::Str)), ..TEXT },
    FetchRow { names: &["query"], draw: Draw::One(|_, txn| txn.request.query().map(Sample::Str)), ..TEXT },
    FetchRow { names: &["pathq"], draw: Draw::One(|_, txn| concat(txn, &[], true)), ..TEXT },
    FetchRow { names: &["url"], draw: Draw::One(url), ..TEXT },
    FetchRow { names: &["base"], draw: Draw::One(|_, txn| concat(txn, &[txn.request.host()], false)), ..TEXT },
    FetchRow { names: &["baseq"], draw: Draw::One(|_, txn| concat(txn, &[txn.request.host()], true)), ..TEXT },
    FetchRow {
        names: &["req.ver", "req_ver"],
        draw: Draw::One(|_, txn| Some(Sample::Str(version(txn.request.version)))),
        ..TEXT
    },
];

/// The version as `req.ver` and `res.ver` write it.
pub(super) fn version(version: Version) -> &'static [u8] {
    match version {
        Version::Http10 => b"1.0",
        Version::Http11 => b"1.1",
        Version::Http2 => b"2.0",
    }
}

/// The path from its first `/`; a target of `*` has none.
fn path(request: &Request) -> Option<&[u8]> {
    let path = request.path();
    path.starts_with(b"/").then_some(path)
}

/// The target as the client wrote it, with what rules have made of path and query since; HTTP/2 has
/// the absolute form (RFC 9113 §8.3.1).
fn url<'s>(_: &'s Args, txn: &'s Txn<'_>) -> Option<Sample<'s>> {
    let request = &*txn.request;
    let received = request.received_target();
    if request.version == Version::Http2 && received.starts_with(b"/") {
        let scheme: &[u8] = if txn.client.tls.is_some() { b"https://" } else { b"http://" };
        return concat(txn, &[scheme, request.host()], true);
    }
    let (authority, target) = received.split_at_checked(authority_end(received))?;
    let same = match request.query() {
        None => target == request.path(),
        Some(query) => target
            .strip_prefix(request.path())
            .and_then(|rest| rest.strip_prefix(b"?"))
            .is_some_and(|rest| rest == query),
    };
    if same { Some(Sample::Str(received)) } else { concat(txn, &[authority], true) }
}

/// Where scheme and authority of a target end: 0 unless it has the absolute form (RFC 9112 §3.2.2).
fn authority_end(target: &[u8]) -> usize {
    if target.starts_with(b"/") {
        return 0;
    }
    let Some(scheme) = memchr::memmem::find(target, b"://") else { return 0 };
    let rest = target.get(scheme + 3..).unwrap_or_default();
    let authority = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    scheme + 3 + authority
}

/// `before`, then the path, then the query when `query` asks for it.
fn concat<'s>(txn: &'s Txn<'_>, before: &[&[u8]], query: bool) -> Option<Sample<'s>> {
    let request = &*txn.request;
    if before.is_empty() && (!query || request.query().is_none()) {
        return path(request).map(Sample::Str);
    }
    let mut text = BumpVec::new_in(txn.arena);
    for piece in before {
        text.extend_from_slice(piece);
    }
    text.extend_from_slice(request.path());
    if let Some(query) = request.query().filter(|_| query) {
        text.push(b'?');
        text.extend_from_slice(query);
    }
    Some(Sample::Str(text.into_bump_slice()))
}
