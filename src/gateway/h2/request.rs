//! From HTTP/2's header block to the request that rules see (RFC 9113 §8.3).
//!
//! The h2 crate has refused, with a stream error, what no request may have: upper case and
//! connection-specific names, `te` other than `trailers`, pseudo-fields out of place or repeated, a
//! Content-Length that the data does not meet (§8.1.1, §8.2). What is left is checked here.

use h2::ext::Protocol;
use http::{HeaderMap, Method, header, request::Parts};

use crate::{
    gateway::host,
    message::{Framing, Request, Version},
};

/// Most field lines of a request.
pub(super) const MAX_FIELDS: usize = 256;

/// The request in `parts`; `ended`: its stream is closed already, so that no body follows.
///
/// # Errors
/// The status of the answer: 400 malformed, 417 an expectation that is not `100-continue`, 431 too many
/// fields, 501 CONNECT in either form.
pub(super) fn convert(parts: &Parts, ended: bool, https: bool) -> Result<Request, u16> {
    if parts.method == Method::CONNECT || parts.extensions.get::<Protocol>().is_some() {
        return Err(501);
    }
    if parts.headers.len() > MAX_FIELDS {
        return Err(431);
    }
    if parts.uri.scheme_str().is_some_and(|scheme| !matches!(scheme, "http" | "https")) {
        return Err(400);
    }
    if !parts.headers.get_all(header::EXPECT).iter().all(|line| line.as_bytes().eq_ignore_ascii_case(b"100-continue")) {
        return Err(417);
    }
    let mut request = Request::default();
    let target = target(parts)?.as_bytes();
    request.fields.reserve(parts.headers.len() + 1, 512 + 2 * target.len());
    request.start(parts.method.as_str().as_bytes(), target, target);
    request.version = Version::Http2;
    request.framing = framing(&parts.headers, ended)?;
    request.fields.append(b"host", &authority(parts, https)?);
    fields(&parts.headers, &mut request)?;
    Ok(request)
}

/// `:path`, which begins with a slash, or is `*` for OPTIONS.
fn target(parts: &Parts) -> Result<&str, u16> {
    let target = parts.uri.path_and_query().map(http::uri::PathAndQuery::as_str).ok_or(400_u16)?;
    let formed = target.starts_with('/') || (target == "*" && parts.method == Method::OPTIONS);
    let clean = target.bytes().all(crate::message::is_target_byte);
    if formed && clean { Ok(target) } else { Err(400) }
}

/// The one host that `:authority` and Host name, in normal form (RFC 9113 §8.3.1).
fn authority(parts: &Parts, https: bool) -> Result<Vec<u8>, u16> {
    let normal = |raw: &[u8]| {
        let mut out = Vec::with_capacity(raw.len());
        host::normalise(raw, https, &mut out).map(|()| out).map_err(|_| 400_u16)
    };
    let mut found = parts.uri.authority().map(|authority| normal(authority.as_str().as_bytes())).transpose()?;
    let mut lines = parts.headers.get_all(header::HOST).iter();
    if let Some(line) = lines.next() {
        let host = normal(line.as_bytes())?;
        if found.as_ref().is_some_and(|authority| *authority != host) {
            return Err(400);
        }
        found = Some(host);
    }
    if lines.next().is_some() { Err(400) } else { found.ok_or(400) }
}

/// Copies the fields; the crumbs of a cookie become one line again (RFC 9113 §8.2.3).
fn fields(headers: &HeaderMap, request: &mut Request) -> Result<(), u16> {
    for (name, value) in headers {
        let value = value.as_bytes();
        if value.trim_ascii().len() != value.len() {
            return Err(400);
        }
        // What is expected is settled between the client and us.
        if name != header::HOST && name != header::COOKIE && name != header::EXPECT {
            request.fields.append(name.as_str().as_bytes(), value);
        }
    }
    let mut crumbs = headers.get_all(header::COOKIE).iter();
    if let Some(first) = crumbs.next() {
        let mut cookie = first.as_bytes().to_vec();
        for crumb in crumbs {
            cookie.extend_from_slice(b"; ");
            cookie.extend_from_slice(crumb.as_bytes());
        }
        request.fields.append(b"cookie", &cookie);
    }
    Ok(())
}

/// How long the body is, as far as its head says (RFC 9110 §8.6).
fn framing(headers: &HeaderMap, ended: bool) -> Result<Framing, u16> {
    let mut length = None;
    for line in headers.get_all(header::CONTENT_LENGTH) {
        let digits =
            line.to_str().ok().filter(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()));
        let value = digits.and_then(|digits| digits.parse::<u64>().ok()).ok_or(400_u16)?;
        if *length.get_or_insert(value) != value {
            return Err(400);
        }
    }
    match length {
        Some(1..) if ended => Err(400),
        Some(0) => Ok(Framing::None),
        _ if ended => Ok(Framing::None),
        Some(length) => Ok(Framing::Length(length)),
        None => Ok(Framing::Stream),
    }
}
