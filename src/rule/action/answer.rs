//! Responses that rules make: `deny`, `return`.

use bytes::Bytes;

use super::Answer;
use crate::{
    message::{Framing, Response, reason},
    rule::{format::Format, txn::Txn},
};

/// A response as a rule describes it.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Its status, 200 to 599.
    pub status: u16,
    /// `content-type`; `None`: no such field.
    pub content_type: Option<Box<[u8]>>,
    /// `hdr NAME FMT`: further fields, in order.
    pub fields: Vec<(Box<str>, Format)>,
    /// Its body.
    pub body: ReplyBody,
}

/// A body as a rule describes it.
#[derive(Clone, Debug)]
pub enum ReplyBody {
    /// Always the same.
    Fixed(Bytes),
    /// Made for each request.
    Made(Format),
}

impl Reply {
    /// What `deny` sends when it says nothing else: a page with the status, not to be cached.
    pub fn page(status: u16) -> Self {
        let title = format!("{status} {}", reason(status));
        let body = format!(
            "<!doctype html>\n<html><head><title>{title}</title></head>\n<body><h1>{title}</h1>\n\
             <p>A rule of this site refuses this request.</p></body></html>\n"
        );
        Self {
            status,
            content_type: Some(b"text/html".as_slice().into()),
            fields: vec![("Cache-Control".into(), Format::literal(b"no-cache"))],
            body: ReplyBody::Fixed(body.into()),
        }
    }

    /// The response for this request.
    pub(super) fn answer(&self, txn: &Txn<'_>) -> Answer {
        let body = match &self.body {
            ReplyBody::Fixed(bytes) => bytes.clone(),
            ReplyBody::Made(format) => Bytes::copy_from_slice(format.text_in(txn)),
        };
        let mut head = Response::new(self.status);
        if let Some(kind) = &self.content_type {
            head.fields.append(b"Content-Type", kind);
        }
        for (name, value) in &self.fields {
            head.fields.append(name.as_bytes(), value.text_in(txn));
        }
        head.framing = framing(&body);
        Answer { head, body }
    }

    /// The formats it is made of.
    pub(super) fn formats(&self) -> impl Iterator<Item = &Format> {
        let body = match &self.body {
            ReplyBody::Made(format) => Some(format),
            ReplyBody::Fixed(_) => None,
        };
        self.fields.iter().map(|(_, value)| value).chain(body)
    }
}

/// The framing of a body that is wholly there.
pub(super) fn framing(body: &Bytes) -> Framing {
    Framing::Length(u64::try_from(body.len()).unwrap_or(u64::MAX))
}
