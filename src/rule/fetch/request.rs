//! The request's start line (HAProxy manual §7.3.6).

use std::net::{IpAddr, Ipv4Addr};

use bumpalo::collections::Vec as BumpVec;

use super::{ArgSpec, Args, Draw, FetchRow, Method, Sample, TEXT, Txn, Type, header::decimal, joined};
use crate::{
    message::{Request, Version},
    rule::{args::ArgKind, converter::hash::avalanche},
};

/// HAProxy remembers a method that it knows by number, which `set-method` does not change.
fn method(request: &Request) -> &[u8] {
    const KNOWN: [&[u8]; 8] = [b"OPTIONS", b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"TRACE", b"CONNECT"];
    let received = request.received_method();
    if KNOWN.contains(&received) { received } else { request.method() }
}

pub(super) const ROWS: &[FetchRow] = &[
    FetchRow {
        names: &["method"],
        output: Type::Method,
        lasting: true,
        implied: Some(Method::Method),
        draw: Draw::One(|_, txn| Some(Sample::Method(method(txn.request)))),
        ..TEXT
    },
    FetchRow { names: &["path", "nuster.path"], draw: Draw::One(|_, txn| path(txn.request).map(Sample::Str)), ..TEXT },
    FetchRow {
        names: &["query"],
        args: &[ArgSpec::may(ArgKind::Word(&["with_qm"]))],
        draw: Draw::One(|args, txn| match args.text(0) {
            None => txn.request.query().map(Sample::Str),
            Some(_) => joined([&b"?"[..], txn.request.query()?].into_iter(), b"", txn.arena),
        }),
        ..TEXT
    },
    FetchRow { names: &["pathq", "nuster.uri"], draw: Draw::One(|_, txn| concat(txn, &[], true)), ..TEXT },
    FetchRow { names: &["url"], draw: Draw::One(url), ..TEXT },
    FetchRow {
        names: &["url_ip"],
        output: Type::Ip,
        draw: Draw::One(|args, txn| Some(Sample::Ip(url_address(args, txn)?.0.into()))),
        ..TEXT
    },
    FetchRow {
        names: &["url_port"],
        output: Type::Int,
        draw: Draw::One(|args, txn| Some(Sample::Int(url_address(args, txn)?.1.into()))),
        ..TEXT
    },
    FetchRow { names: &["base"], draw: Draw::One(|_, txn| of_host(txn, false)), ..TEXT },
    FetchRow { names: &["baseq"], draw: Draw::One(|_, txn| of_host(txn, true)), ..TEXT },
    FetchRow {
        names: &["base32"],
        output: Type::Int,
        draw: Draw::One(|_, txn| Some(Sample::Int(hash(txn, false).into()))),
        ..TEXT
    },
    FetchRow {
        names: &["url32"],
        output: Type::Int,
        draw: Draw::One(|_, txn| Some(Sample::Int(hash(txn, true).into()))),
        ..TEXT
    },
    FetchRow { names: &["base32+src"], output: Type::Bin, draw: Draw::One(|_, txn| with_source(txn, false)), ..TEXT },
    FetchRow { names: &["url32+src"], output: Type::Bin, draw: Draw::One(|_, txn| with_source(txn, true)), ..TEXT },
    FetchRow {
        names: &["req.ver", "req_ver"],
        draw: Draw::One(|_, txn| Some(Sample::Str(version(txn.request.version)))),
        ..TEXT
    },
    FetchRow {
        names: &["http_first_req"],
        output: Type::Bool,
        lasting: true,
        draw: Draw::One(|_, txn| Some(Sample::Bool(txn.request.is_first))),
        ..TEXT
    },
    FetchRow {
        names: &["capture.req.method"],
        lasting: true,
        draw: Draw::One(|_, txn| Some(Sample::Str(txn.request.received_method()))),
        ..TEXT
    },
    FetchRow {
        names: &["capture.req.uri"],
        lasting: true,
        draw: Draw::One(|_, txn| {
            let received = txn.request.received_target();
            let target = received.get(authority_end(received)..)?;
            target.starts_with(b"/").then_some(Sample::Str(target))
        }),
        ..TEXT
    },
    FetchRow {
        names: &["capture.req.ver"],
        lasting: true,
        draw: Draw::One(|_, txn| Some(Sample::Str(major(txn.request.version)))),
        ..TEXT
    },
    FetchRow { names: &["nuster.host"], draw: Draw::One(|_, txn| host(txn).map(Sample::Str)), ..TEXT },
    FetchRow { names: &["nuster.query"], draw: Draw::One(|_, txn| txn.request.query().map(Sample::Str)), ..TEXT },
];

/// The version as `req.ver` and `res.ver` write it.
pub(super) fn version(version: Version) -> &'static [u8] {
    match version {
        Version::Http10 => b"1.0",
        Version::Http11 => b"1.1",
        Version::Http2 => b"2.0",
    }
}

/// The version as captures write it: there are two.
pub(super) fn major(version: Version) -> &'static [u8] {
    if version == Version::Http10 { b"HTTP/1.0" } else { b"HTTP/1.1" }
}

fn host<'s>(txn: &'s Txn<'_>) -> Option<&'s [u8]> {
    txn.request.fields.first("host")
}

/// The path from its first `/`; a target of `*` has none.
fn path(request: &Request) -> Option<&[u8]> {
    let path = request.path();
    path.starts_with(b"/").then_some(path)
}

/// The target as the client wrote it, with what rules have made of path and query since; HTTP/2 has
/// the absolute form (RFC 9113 §8.3.1).
pub(in crate::rule) fn url<'s>(_: &'s Args, txn: &'s Txn<'_>) -> Option<Sample<'s>> {
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

/// Host and path, with the query when `query` asks for it; the host alone where there is no path.
fn of_host<'s>(txn: &'s Txn<'_>, query: bool) -> Option<Sample<'s>> {
    match (host(txn), path(txn.request)) {
        (Some(host), Some(_)) => concat(txn, &[host], query),
        (None, Some(_)) => concat(txn, &[], query),
        (host, None) => host.map(Sample::Str),
    }
}

/// The address and the port of a target in absolute form whose host is an IPv4 address.
fn url_address(args: &Args, txn: &Txn<'_>) -> Option<(Ipv4Addr, u16)> {
    let Sample::Str(url) = url(args, txn)? else { return None };
    let authority = url.get(..authority_end(url))?;
    let (scheme, authority) = authority.split_at_checked(memchr::memmem::find(authority, b"://")?)?;
    let authority = std::str::from_utf8(authority.get(3..)?).ok()?;
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, u16::try_from(decimal(port.as_bytes())?).ok()?),
        None => (authority, if scheme.eq_ignore_ascii_case(b"https") { 443 } else { 80 }),
    };
    Some((host.parse().ok()?, port))
}

/// The hash of host, path and (for `query`) query that HAProxy's `base32` and `url32` are.
fn hash(txn: &Txn<'_>, query: bool) -> u32 {
    let mut hash = host(txn).into_iter().flatten().fold(0, sdbm);
    if let Some(path) = path(txn.request) {
        hash = path.iter().fold(hash, sdbm);
        if let Some(query) = txn.request.query().filter(|_| query) {
            hash = std::iter::once(&b'?').chain(query).fold(hash, sdbm);
        }
    }
    avalanche(hash)
}

/// One step of the hash of the sdbm database library. Here HAProxy's bytes are signed, in its converter `sdbm` not.
fn sdbm(hash: u32, byte: &u8) -> u32 {
    i32::from(byte.cast_signed()).cast_unsigned().wrapping_add(hash.wrapping_mul(65_599))
}

/// The hash and the client's address behind it, in network order; `None` without an address.
fn with_source<'s>(txn: &'s Txn<'_>, query: bool) -> Option<Sample<'s>> {
    let mut bytes = BumpVec::with_capacity_in(20, txn.arena);
    bytes.extend_from_slice(&hash(txn, query).to_be_bytes());
    match txn.client.src?.ip() {
        IpAddr::V4(address) => bytes.extend_from_slice(&address.octets()),
        IpAddr::V6(address) => bytes.extend_from_slice(&address.octets()),
    }
    Some(Sample::Bin(bytes.into_bump_slice()))
}
