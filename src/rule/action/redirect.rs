//! `redirect` (HAProxy manual §4.2).

use bytes::Bytes;

use super::{Answer, answer::framing};
use crate::{
    message::Response,
    rule::{format::Format, txn::Txn},
};

/// A redirection.
#[derive(Clone, Debug)]
pub struct Redirect {
    /// What `to` is.
    pub kind: RedirectKind,
    /// The word behind the kind.
    pub to: Format,
    /// 301, 302, 303, 307 or 308.
    pub code: u16,
    /// `drop-query`.
    pub drop_query: bool,
    /// `append-slash`.
    pub append_slash: bool,
    /// `ignore-empty`: nothing is done when `to` gives nothing.
    pub ignore_empty: bool,
    /// `keep-query`: a `location` gets the request's query, behind its own if it has one.
    pub keep_query: bool,
    /// `set-cookie`, `set-cookie-fmt`, `clear-cookie`: the value of a `Set-Cookie` line.
    pub cookie: Option<Cookie>,
}

/// What a redirection leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedirectKind {
    /// `location`: exactly there.
    Location,
    /// `prefix`: the request's path and query behind it; `/` is no prefix at all.
    Prefix,
    /// `scheme`: the request's host, path and query under it.
    Scheme,
}

/// A cookie that a redirection sets.
#[derive(Clone, Debug)]
pub struct Cookie {
    /// Name and value.
    pub pair: Format,
    /// What follows them.
    pub attributes: &'static str,
}

impl Redirect {
    /// The formats it is made of.
    pub(super) fn formats(&self) -> Vec<&Format> {
        std::iter::once(&self.to).chain(self.cookie.as_ref().map(|cookie| &cookie.pair)).collect()
    }

    /// The response; `None` when the rule is to be skipped.
    pub(super) fn answer(&self, txn: &Txn<'_>) -> Option<Answer> {
        let to = self.to.text_in(txn);
        if to.is_empty() && self.ignore_empty {
            return None;
        }
        let mut head = Response::new(self.code);
        head.fields.append(b"Location", &self.location(to, txn));
        // 302, 303 and 307 are not cacheable unless they say so (RFC 9110 §15.1); HAProxy says so as well.
        if matches!(self.code, 302 | 303 | 307) {
            head.fields.append(b"Cache-Control", b"no-cache");
        }
        if let Some(cookie) = &self.cookie {
            let value = [cookie.pair.text_in(txn), cookie.attributes.as_bytes()].concat();
            head.fields.append(b"Set-Cookie", &value);
        }
        let body = Bytes::new();
        head.framing = framing(&body);
        Some(Answer { head, body })
    }

    fn location(&self, to: &[u8], txn: &Txn<'_>) -> Vec<u8> {
        let mut location = Vec::with_capacity(to.len() + 64);
        match self.kind {
            RedirectKind::Location => {
                location.extend_from_slice(to);
                if let Some(query) = txn.request.query().filter(|query| self.keep_query && !query.is_empty()) {
                    location.push(if to.contains(&b'?') { b'&' } else { b'?' });
                    location.extend_from_slice(query);
                }
            }
            RedirectKind::Prefix => {
                if to != b"/" {
                    location.extend_from_slice(to);
                }
                self.write_target(txn, &mut location);
            }
            RedirectKind::Scheme => {
                location.extend_from_slice(to);
                location.extend_from_slice(b"://");
                location.extend_from_slice(txn.request.host());
                self.write_target(txn, &mut location);
            }
        }
        if self.kind != RedirectKind::Location && self.append_slash && !location.ends_with(b"/") {
            location.push(b'/');
        }
        location
    }

    fn write_target(&self, txn: &Txn<'_>, location: &mut Vec<u8>) {
        let path = txn.request.path();
        location.extend_from_slice(if path.starts_with(b"/") { path } else { b"/" });
        if let Some(query) = txn.request.query().filter(|_| !self.drop_query) {
            location.push(b'?');
            location.extend_from_slice(query);
        }
    }
}
