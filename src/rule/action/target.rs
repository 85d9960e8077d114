//! Edits of the request line.

use bumpalo::{Bump, collections::Vec as BumpVec};
use regex::bytes::Regex;

use crate::rule::{
    format::{Format, percent_encoded},
    template::Groups,
    txn::Txn,
};

/// `replace-path REGEX FMT`: a path that matches becomes what the format gives.
#[derive(Clone, Debug)]
pub struct PathReplace {
    /// What the path has to match, anywhere; the query is no part of it.
    pub regex: Regex,
    /// The new path; `\1` stands for what a group matched.
    pub with: Format,
}

impl PathReplace {
    pub(super) fn apply(&self, txn: &mut Txn<'_>) {
        let found = Groups::find(&self.regex, txn.request.path(), 0, self.with.has_groups());
        let Some((_, groups)) = found else { return };
        let path = self.with.replacement_in(txn, Some(&groups));
        drop(groups);
        set_path(path, txn);
    }
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
