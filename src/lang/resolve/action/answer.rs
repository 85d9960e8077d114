//! `deny`, `return`, `purge`.

use super::{Input, Scope, codes, header::field_name};
use crate::{
    lang::{
        ast::Word,
        diag::Diagnostic,
        resolve::{
            acls::written,
            format::{self, Use},
        },
        suggest,
    },
    rule::{
        Action, Phase,
        action::answer::{Reply, ReplyBody},
    },
};

pub(super) fn deny(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    let status = if input.phase == Phase::Request { 403 } else { 502 };
    let parts = Parts::read(scope, input)?;
    if parts.body.is_none() && parts.content_type.is_none() {
        let mut page = Reply::page(parts.status.unwrap_or(status));
        page.fields.extend(parts.fields);
        return Some(Action::Deny(page.into()));
    }
    parts.reply(scope, input, status).map(|reply| Action::Deny(reply.into()))
}

pub(super) fn answer(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    let parts = Parts::read(scope, input)?;
    parts.reply(scope, input, 200).map(|reply| Action::Return(reply.into()))
}

pub(super) fn purge(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    match input.words {
        [soft] if soft.is("soft") => Some(Action::Purge { soft: true }),
        _ => input.nothing(scope, Action::Purge { soft: false }),
    }
}

/// Words with a value.
const WORDS: &[&str] = &["status", "deny_status", "content-type", "string", "lf-string", "file", "lf-file", "hdr"];

/// Words that are not built yet.
const UNBUILT: &[&str] = &["default-errorfiles", "errorfile", "errorfiles"];

/// What the words say.
#[derive(Default)]
struct Parts<'w> {
    status: Option<u16>,
    content_type: Option<&'w Word>,
    body: Option<ReplyBody>,
    fields: Vec<(Box<str>, crate::rule::Format)>,
}

impl<'w> Parts<'w> {
    fn read(scope: &mut Scope<'_>, input: &Input<'w>) -> Option<Self> {
        let mut parts = Self::default();
        let mut words = input.words.iter();
        while let Some(word) = words.next() {
            let name = word.lossy();
            if UNBUILT.contains(&&*name) {
                scope.refuse(codes::UNBUILT_ACTION, word.span, format!("`{name}` is not built yet"));
                return None;
            }
            if !WORDS.contains(&&*name) {
                let nearest = suggest::nearest(&name, WORDS.iter().copied());
                let message = format!("unknown word `{name}` behind `{}`", input.row.name);
                scope.report(Diagnostic::error(codes::ACTION_SHAPE, word.span, message).did_you_mean(nearest));
                return None;
            }
            let Some(value) = words.next() else {
                input.misshapen(scope, word.span.after(), &format!("`{name}` needs a value"));
                return None;
            };
            match &*name {
                "status" | "deny_status" => parts.status = Some(status(scope, value)?),
                "content-type" => {
                    format::no_controls(scope, value)?;
                    parts.content_type = Some(value);
                }
                "hdr" => {
                    let Some(format) = words.next() else {
                        input.misshapen(scope, value.span.after(), "`hdr` needs a name and a format");
                        return None;
                    };
                    parts.field(scope, input, value, format)?;
                }
                kind => {
                    if parts.body.is_some() {
                        input.misshapen(scope, word.span, "there is a body already");
                        return None;
                    }
                    parts.body = Some(body(scope, input, kind, value)?);
                }
            }
        }
        Some(parts)
    }

    fn field(&mut self, scope: &mut Scope<'_>, input: &Input<'_>, name: &Word, value: &Word) -> Option<()> {
        const OURS: [&str; 5] = ["connection", "content-length", "date", "transfer-encoding", "content-type"];
        let field = field_name(scope, name)?;
        let value = format::read(scope, value, input.phase, Use::Line)?;
        if OURS.iter().any(|ours| field.eq_ignore_ascii_case(ours)) {
            let message = format!("`{field}` is written by the gateway itself: this one is left out");
            scope.warn(codes::FIELD_IGNORED, name.span, message, "for the type of the body write `content-type TYPE`");
            return Some(());
        }
        self.fields.push((field, value));
        Some(())
    }

    fn reply(self, scope: &mut Scope<'_>, input: &Input<'_>, status: u16) -> Option<Reply> {
        if self.body.is_some() && self.content_type.is_none() {
            input.misshapen(scope, input.action.span, "a body needs a `content-type`");
            return None;
        }
        Some(Reply {
            status: self.status.unwrap_or(status),
            content_type: self.content_type.filter(|_| self.body.is_some()).map(|word| word.text.as_slice().into()),
            fields: self.fields,
            body: self.body.unwrap_or(ReplyBody::Fixed(bytes::Bytes::new())),
        })
    }
}

fn status(scope: &mut Scope<'_>, word: &Word) -> Option<u16> {
    let status = word.lossy().parse().ok().filter(|status| (200..=599).contains(status));
    if status.is_none() {
        scope.error(codes::BAD_VALUE, word.span, format!("`{}` is not a status from 200 to 599", word.lossy()));
    }
    status
}

fn body(scope: &mut Scope<'_>, input: &Input<'_>, kind: &str, value: &Word) -> Option<ReplyBody> {
    Some(match kind {
        "string" => ReplyBody::Fixed(value.text.clone().into()),
        "lf-string" => ReplyBody::Made(format::read(scope, value, input.phase, Use::Body)?),
        "file" => ReplyBody::Fixed(scope.read_file(value, 0)?.into()),
        _ => {
            let text = scope.read_file(value, 0)?;
            // Findings about the file's text point at its name.
            let word = Word { origins: vec![value.span.start; text.len() + 1], text, ..written("", value.span) };
            ReplyBody::Made(format::read(scope, &word, input.phase, Use::Body)?)
        }
    })
}
