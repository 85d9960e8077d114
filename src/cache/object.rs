//! A stored response: immutable once complete, shared by everyone who reads it.

use std::{
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering::Relaxed},
    },
};

use arc_swap::ArcSwapOption;
use bytes::Bytes;

use super::{budget::Charge, memory::Seat};
use crate::{
    message::{Framing, Request, Response},
    policy::{freshness::Freshness, variant::Vary},
    time::Timestamp,
};

/// A complete body in chunks.
#[derive(Clone, Debug, Default)]
pub struct Body {
    /// Its pieces, in order.
    pub chunks: Vec<Bytes>,
    /// Their length together.
    pub len: u64,
}

impl Body {
    /// What it costs beside its bytes: a handle and an allocation for each chunk.
    pub(super) fn handles(&self) -> u64 {
        const HANDLE: u64 = 64;
        HANDLE.saturating_mul(count(self.chunks.len()))
    }
}

/// What a caching rule and the policy made of a response's head: an object without its body.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The request as it was sent upstream; only what `Vary` names of it is kept.
    pub request: Request,
    /// `scheme://host/path?query` as the client wrote it (before rules), for purges and listings.
    pub url: Vec<u8>,
    /// The head to store: without hop-by-hop fields, `Age`, tags.
    pub head: Response,
    /// Its times.
    pub freshness: Freshness,
    /// Its variants.
    pub vary: Vary,
    /// Surrogate keys.
    pub tags: Vec<Box<str>>,
    /// The fingerprint of the rule that stored it.
    pub rule: u64,
    /// The key to store it under; `None`: the one the fill was asked for.
    pub key: Option<Vec<u8>>,
}

/// A stored response.
#[derive(Debug)]
pub struct Object {
    /// The stored head.
    pub head: Response,
    /// Status line and stored fields as HTTP/1.1 sends them, each with its line end, without the empty line:
    /// `Content-Length` included; `Age`, `Cache-Status` and `Connection` are made for each answer.
    pub wire: Bytes,
    /// The body.
    pub body: Body,
    /// Its times.
    pub freshness: Freshness,
    /// See [`Draft::rule`].
    pub rule: u64,
    /// The head as the rules of one snapshot deliver it, when that depends on nothing else.
    pub delivered: ArcSwapOption<Delivered>,
    key: Arc<[u8]>,
    url: Box<[u8]>,
    vary: Vary,
    /// What tells it from other variants; empty without `Vary`.
    variant: Box<[u8]>,
    tags: Box<[Box<str>]>,
    stamp: u64,
    frequency: AtomicU8,
    pub(super) seat: Seat,
    own_charge: Option<Charge>,
    /// Shared by the objects that share the body: one confirmed by a 304, one made stale by a purge.
    body_charge: Option<Arc<Charge>>,
}

/// A stored head after the response rules of one frontend and backend.
#[derive(Debug)]
pub struct Delivered {
    /// The snapshot whose rules made it.
    pub generation: u64,
    /// The frontend's and the backend's place in it.
    pub route: (usize, usize),
    /// Its status.
    pub status: u16,
    /// As [`Object::wire`].
    pub wire: Box<[u8]>,
    /// What it costs.
    pub(super) _charge: Charge,
}

/// Hits beyond this many are not told apart.
const MAX_FREQUENCY: u8 = 3;

/// What an object costs in the structures around it: its allocation, its place in index, queue and ghost
/// list, in the indices by URL and tag, each with the room that tables keep free.
const PLACE: u64 = 512;
/// The same for each tag, its text apart.
const TAG: u64 = 96;

impl Object {
    /// An object of `draft` under `key`, not charged to any budget yet.
    pub(super) fn new(draft: &Draft, key: Arc<[u8]>, stamp: u64, body: Body) -> Self {
        let mut variant = Vec::new();
        draft.vary.write_key(&draft.request, &mut variant);
        let head = complete_head(&draft.head, body.len);
        Self {
            wire: wire(&head),
            head,
            body,
            freshness: draft.freshness,
            rule: draft.rule,
            delivered: ArcSwapOption::empty(),
            key,
            url: draft.url.clone().into(),
            vary: draft.vary.clone(),
            variant: variant.into(),
            tags: draft.tags.clone().into(),
            stamp,
            frequency: AtomicU8::new(0),
            seat: Seat::default(),
            own_charge: None,
            body_charge: None,
        }
    }

    /// A copy that is stale from `now` on and shares the body, not charged yet.
    pub(super) fn expired(&self, now: Timestamp) -> Self {
        let mut freshness = self.freshness;
        freshness.expire(now);
        Self {
            head: self.head.clone(),
            wire: self.wire.clone(),
            body: self.body.clone(),
            freshness,
            rule: self.rule,
            delivered: ArcSwapOption::empty(),
            key: Arc::clone(&self.key),
            url: self.url.clone(),
            vary: self.vary.clone(),
            variant: self.variant.clone(),
            tags: self.tags.clone(),
            stamp: self.stamp,
            frequency: AtomicU8::new(self.frequency()),
            seat: Seat::default(),
            own_charge: None,
            body_charge: None,
        }
    }

    /// The key it is stored under.
    pub fn key(&self) -> &Arc<[u8]> {
        &self.key
    }

    /// See [`Draft::url`].
    pub fn url(&self) -> &[u8] {
        &self.url
    }

    /// What its response varied by.
    pub fn vary(&self) -> &Vary {
        &self.vary
    }

    /// Its surrogate keys.
    pub fn tags(&self) -> impl Iterator<Item = &str> {
        self.tags.iter().map(|tag| &**tag)
    }

    pub(super) fn variant(&self) -> &[u8] {
        &self.variant
    }

    /// The sequence number its fill began with: a purge with a higher one is about it.
    pub(super) fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Counts a hit; writes only while that changes anything.
    pub(super) fn touch(&self) {
        let frequency = self.frequency();
        if frequency < MAX_FREQUENCY {
            self.frequency.store(frequency + 1, Relaxed);
        }
    }

    pub(super) fn frequency(&self) -> u8 {
        self.frequency.load(Relaxed)
    }

    pub(super) fn set_frequency(&self, frequency: u8) {
        self.frequency.store(frequency, Relaxed);
    }

    /// What it costs beside its body.
    pub(super) fn overhead(&self) -> u64 {
        let tags = self.tags.iter().map(|tag| count(tag.len()).saturating_mul(2) + TAG);
        let own = size_of::<Self>()
            + self.head.fields.heap_bytes()
            + self.wire.len()
            + self.key.len()
            + self.url.len() * 2
            + self.variant.len()
            + self.vary.heap_bytes();
        PLACE + count(own) + tags.sum::<u64>()
    }

    /// What it is charged, a shared body included.
    pub(super) fn cost(&self) -> u64 {
        let own = self.own_charge.as_ref().map_or(0, Charge::bytes);
        own + self.body_charge.as_ref().map_or(0, |charge| charge.bytes())
    }

    /// Puts the charges it lives under into its hands.
    pub(super) fn charged(mut self, own: Charge, body: Option<Arc<Charge>>) -> Self {
        self.own_charge = Some(own);
        self.body_charge = body;
        self
    }

    pub(super) fn body_charge(&self) -> Option<Arc<Charge>> {
        self.body_charge.clone()
    }
}

/// The stored head with the length of its body, in a buffer without slack.
pub(super) fn complete_head(draft: &Response, len: u64) -> Response {
    // 204 has no body to speak of (RFC 9110 §8.6).
    let bodyless = draft.status == 204;
    let mut head = Response::new(draft.status);
    head.version = draft.version;
    head.framing = if bodyless { Framing::None } else { Framing::Length(len) };
    head.fields = draft.fields.iter().filter(|field| !field.is("content-length")).map(|f| (f.name, f.value)).collect();
    if !bodyless {
        head.fields.append(b"Content-Length", len.to_string().as_bytes());
    }
    head.fields.shrink();
    head
}

fn wire(head: &Response) -> Bytes {
    let lines = head.fields.iter().map(|field| field.name.len() + field.value.len() + 4).sum::<usize>();
    let mut out = Vec::with_capacity(lines + 16 + head.reason().len());
    // Writing into a vector cannot fail.
    let _ = write!(out, "HTTP/1.1 {:03} {}\r\n", head.status, head.reason());
    for field in head.fields.iter() {
        out.extend_from_slice(field.name);
        out.extend_from_slice(b": ");
        out.extend_from_slice(field.value);
        out.extend_from_slice(b"\r\n");
    }
    out.shrink_to_fit();
    out.into()
}

pub(super) fn count(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(status: u16) -> Draft {
        let lines = [("Content-Type", "text/plain"), ("Content-Length", "99"), ("ETag", "\"a\"")];
        Draft {
            request: Request::new(b"GET", b"/"),
            url: b"http://a/".to_vec(),
            head: Response { fields: lines.into_iter().collect(), ..Response::new(status) },
            freshness: Freshness::default(),
            vary: Vary::None,
            tags: Vec::new(),
            key: None,
            rule: 7,
        }
    }

    #[test]
    fn the_wire_form_says_the_real_length() {
        let body = Body { chunks: vec![Bytes::from_static(b"hello")], len: 5 };
        let object = Object::new(&draft(200), Arc::from(&b"k"[..]), 1, body);
        let expected = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nETag: \"a\"\r\nContent-Length: 5\r\n";
        assert_eq!(object.wire, expected.as_bytes());
        assert_eq!(object.head.framing, Framing::Length(5));
    }

    #[test]
    fn a_204_has_no_length() {
        let object = Object::new(&draft(204), Arc::from(&b"k"[..]), 1, Body::default());
        assert!(!object.head.fields.has("content-length"));
    }

    #[test]
    fn an_expired_copy_is_stale_at_once() {
        let mut draft = draft(200);
        draft.freshness.lifetime = std::time::Duration::from_secs(60);
        let object = Object::new(&draft, Arc::from(&b"k"[..]), 1, Body::default());
        let now = Timestamp::from_secs(5);
        assert!(object.freshness.is_fresh(now) && !object.expired(now).freshness.is_fresh(now));
    }
}
