//! Edits of the request line.

use bumpalo::{Bump, collections::Vec as BumpVec};
use regex::bytes::Regex;

use crate::rule::{
    args::Args,
    fetch::request,
    format::{Format, percent_encoded},
    template::Groups,
    txn::Txn,
};

/// `replace-path`, `replace-pathq`, `replace-uri`: the part of the target that matches becomes what the format gives.
#[derive(Clone, Debug)]
pub struct TargetReplace {
    /// Which part.
    pub part: TargetPart,
    /// What it has to match, anywhere.
    pub regex: Regex,
    /// What it becomes; `\1` stands for what a group matched.
    pub with: Format,
}

/// A part of the request's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetPart {
    /// The path, without the query.
    Path,
    /// Path and query.
    PathQuery,
    /// All of it, scheme and authority included where the client sent them.
    Uri,
}

impl TargetReplace {
    pub(super) fn apply(&self, txn: &mut Txn<'_>) {
        let arena = txn.arena;
        let part: &[u8] = match self.part {
            TargetPart::Path => txn.request.path(),
            TargetPart::PathQuery => path_and_query(txn),
            TargetPart::Uri => {
                let args = Args::default();
                let uri = request::url(&args, txn).and_then(|url| url.text(txn.arena));
                arena.alloc_slice_copy(uri.unwrap_or_default())
            }
        };
        let Some((_, groups)) = Groups::find(&self.regex, part, 0, self.with.has_groups()) else { return };
        let with = self.with.replacement_in(txn, Some(&groups));
        drop(groups);
        self.part.set(with, txn);
    }
}

impl TargetPart {
    pub(super) fn set(self, text: &[u8], txn: &mut Txn<'_>) {
        match self {
            Self::Path => set_path(text, txn),
            Self::PathQuery => set_path_and_query(text, txn),
            Self::Uri => set_uri(text, txn),
        }
    }
}

fn path_and_query<'t>(txn: &Txn<'t>) -> &'t [u8] {
    let mut text = BumpVec::new_in(txn.arena);
    text.extend_from_slice(txn.request.path());
    if let Some(query) = txn.request.query() {
        text.push(b'?');
        text.extend_from_slice(query);
    }
    text.into_bump_slice()
}

/// `set-pathq`: path and query at once.
fn set_path_and_query(text: &[u8], txn: &mut Txn<'_>) {
    let (path, query) = match memchr::memchr(b'?', text) {
        Some(at) => (text.get(..at).unwrap_or_default(), text.get(at + 1..)),
        None => (text, None),
    };
    txn.request.set_query(query.map(|query| sendable(query, txn.arena)));
    set_path(path, txn);
}

/// `set-uri`: path and query at once, and the host where there is one. Servers get the origin form in any case
/// (RFC 9112 §3.2.1). A host that is none leaves Host as it is.
fn set_uri(text: &[u8], txn: &mut Txn<'_>) {
    let Some(at) = scheme_end(text) else { return set_path_and_query(text, txn) };
    let rest = text.get(at..).unwrap_or_default();
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#')).unwrap_or(rest.len());
    let (host, target) = rest.split_at_checked(end).unwrap_or((rest, b""));
    if is_authority(host) {
        txn.request.fields.set(b"Host", &host.to_ascii_lowercase());
    }
    set_path_and_query(target, txn);
}

/// Where the authority begins, for a text that has one.
fn scheme_end(text: &[u8]) -> Option<usize> {
    let at = memchr::memmem::find(text, b"://")?;
    let scheme = text.get(..at)?;
    let is_scheme = scheme.first()?.is_ascii_alphabetic()
        && scheme.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte));
    is_scheme.then_some(at + 3)
}

/// A host with or without a port (RFC 3986 §3.2), without credentials.
fn is_authority(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._~:[]%!$&'()*+,;=".contains(byte))
}

/// `set-path`: what stands behind a `?` in it comes before the present query.
pub(super) fn set_path(text: &[u8], txn: &mut Txn<'_>) {
    let arena = txn.arena;
    let (path, added) = match memchr::memchr(b'?', text) {
        Some(at) => (text.get(..at).unwrap_or_default(), text.get(at + 1..)),
        None => (text, None),
    };
    if let Some(added) = added {
        let mut query = BumpVec::from_iter_in(added.iter().copied(), arena);
        if let Some(present) = txn.request.query() {
            query.push(b'?');
            query.extend_from_slice(present);
        }
        txn.request.set_query(Some(sendable(query.into_bump_slice(), arena)));
    }
    let path = sendable(path, arena);
    if path.starts_with(b"/") || path == b"*" {
        txn.request.set_path(path);
    } else {
        let mut rooted = BumpVec::from_iter_in([b'/'], arena);
        rooted.extend_from_slice(path);
        txn.request.set_path(&rooted);
    }
}

/// `set-query`: a leading `?` is dropped; nothing takes the query away but leaves its `?`, as in HAProxy.
pub(super) fn set_query(text: &[u8], txn: &mut Txn<'_>) {
    let text = text.strip_prefix(b"?").unwrap_or(text);
    let query = (!text.is_empty() || txn.request.query().is_some()).then_some(text);
    txn.request.set_query(query.map(|query| sendable(query, txn.arena)));
}

/// `set-method`: what is no token (RFC 9110 §9.1) leaves the method as it is.
pub(super) fn set_method(format: &Format, txn: &mut Txn<'_>) {
    let method = format.text_in(txn);
    if is_token(method) {
        txn.request.set_method(method);
    }
}

/// A token (RFC 9110 §5.6.2).
pub fn is_token(text: &[u8]) -> bool {
    let is = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !text.is_empty() && text.iter().all(is)
}

/// The text with what no target may hold as `%HH`, so that key and server see one target (RFC 9112 §3.2).
fn sendable<'t>(text: &'t [u8], arena: &'t Bump) -> &'t [u8] {
    let breaks = |byte: u8| !crate::message::is_target_byte(byte);
    if !text.iter().any(|&byte| breaks(byte)) {
        return text;
    }
    let mut safe = BumpVec::with_capacity_in(text.len() + 16, arena);
    for &byte in text {
        if breaks(byte) {
            safe.extend_from_slice(&percent_encoded(byte));
        } else {
            safe.push(byte);
        }
    }
    safe.into_bump_slice()
}
