//! `deny`, `return`, `tarpit`, `auth`, `purge`, and what proxies answer with themselves.

use super::{Input, Row, Scope, codes, header::field_name};
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
        Action, Format, Phase,
        action::answer::{self, Composed, MessageFault, PAGES, Pages, Reply, ReplyBody},
    },
};

/// What follows `return` and its kin, for messages.
pub(super) const USAGE: &str = "[status CODE] [content-type TYPE] [string TEXT|lf-string FORMAT|file FILE|lf-file FILE\
     |errorfile FILE|errorfiles SECTION|default-errorfiles] [hdr NAME FORMAT]*";

pub(super) fn deny(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    let status = if input.phase == Phase::Request { 403 } else { 502 };
    refusal(scope, input, status).map(|reply| Action::Deny(reply.into()))
}

pub(super) fn tarpit(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    refusal(scope, input, 500).map(|reply| Action::Tarpit(reply.into()))
}

/// Alone, or with a `deny_status` alone, these answer with the proxy's page.
fn refusal(scope: &mut Scope<'_>, input: &Input<'_>, status: u16) -> Option<Reply> {
    match input.words {
        [] => Some(Reply::Page(status)),
        [name, value] if name.is("deny_status") => self::status(scope, value).map(Reply::Page),
        _ => Parts::read(scope, input)?.reply(scope, input, status),
    }
}

pub(super) fn answer(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    Parts::read(scope, input)?.reply(scope, input, 200).map(|reply| Action::Return(reply.into()))
}

/// `auth [realm REALM]`: the realm is the proxy's name when left out.
pub(super) fn auth(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    let realm = match input.words {
        [] => scope.proxy.name.as_bytes().to_vec(),
        [name, realm] if name.is("realm") => {
            format::no_controls(scope, realm)?;
            realm.text.clone()
        }
        [name, ..] => {
            input.misshapen(scope, name.span, "what follows can only be `realm` and a name for what is protected");
            return None;
        }
    };
    Some(Action::Auth(challenge(&realm)))
}

/// What asks for the name and password of a user (RFC 7617 §2).
pub fn challenge(realm: &[u8]) -> Box<[u8]> {
    // RFC 9110 §5.6.4.
    let mut challenge = b"Basic realm=\"".to_vec();
    for &byte in realm {
        if matches!(byte, b'"' | b'\\') {
            challenge.push(b'\\');
        }
        challenge.push(byte);
    }
    challenge.push(b'"');
    challenge.into()
}

pub(super) fn purge(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    match input.words {
        [soft] if soft.is("soft") => Some(Action::Purge { soft: true }),
        _ => input.nothing(scope, Action::Purge { soft: false }),
    }
}

/// What the words behind `http-error` say: for which status, and what is answered then.
pub fn page(scope: &mut Scope<'_>, keyword: &Word, words: &[Word]) -> Option<(u16, Reply)> {
    const ROW: &Row = &Row { name: "http-error", phases: &[], usage: USAGE, read: |_, _| None };
    let input = &Input { phase: Phase::Request, row: ROW, action: keyword, args: Vec::new(), words };
    let parts = Parts::read(scope, input)?;
    let Some(status) = parts.status else {
        input.misshapen(scope, keyword.span.after(), "`status` and the status that it is for are missing");
        return None;
    };
    if !PAGES.contains(&status) {
        let span = words.first().zip(words.last()).map_or(keyword.span, |(first, last)| first.span.to(last.span));
        scope.error(codes::BAD_VALUE, span, no_page(status));
        return None;
    }
    Some((status, parts.reply(scope, input, status)?))
}

/// The status that an `errorfile` and its kin are for.
pub fn page_status(scope: &mut Scope<'_>, word: &Word) -> Option<u16> {
    let status = word.lossy().parse().ok();
    let known = status.filter(|status| PAGES.contains(status));
    if known.is_none() {
        let message = status.map_or_else(|| format!("`{}` is no status", word.lossy()), no_page);
        let codes: Vec<_> = PAGES.iter().map(u16::to_string).collect();
        let finding = Diagnostic::error(codes::BAD_VALUE, word.span, message);
        scope.report(finding.help(format!("these have pages: {}", codes.join(" "))));
    }
    known
}

fn no_page(status: u16) -> String {
    format!("a proxy has no page for the status {status}")
}

/// The message that a file is; nothing is answered with `/dev/null`, as with an empty file.
pub fn message(scope: &mut Scope<'_>, word: &Word) -> Option<Reply> {
    if word.is("/dev/null") {
        return Some(Reply::Silence);
    }
    let text = scope.read_file(word, 0)?;
    match answer::message(&text) {
        Ok(reply) => Some(reply),
        Err(MessageFault { line, what }) => {
            let message = format!("`{}` is no HTTP response: line {line}: {what}", word.lossy());
            let finding = Diagnostic::error(codes::BAD_MESSAGE, word.span, message);
            scope.report(finding.help("such a file holds status line, fields, an empty line and the body"));
            None
        }
    }
}

/// The page that an `http-errors` section has for a status; the proxies' own when it has none.
fn of_section(scope: &mut Scope<'_>, name: &Word, status: u16) -> Option<Reply> {
    Some(pages_of(scope, name)?.of(status).cloned().unwrap_or(Reply::Page(status)))
}

/// The pages of the `http-errors` section of a name.
pub fn pages_of(scope: &mut Scope<'_>, name: &Word) -> Option<Pages> {
    let known = scope.proxies.pages();
    if let Some((_, pages)) = known.iter().find(|(known, _)| name.is(known)) {
        return Some((*pages).clone());
    }
    let nearest = suggest::nearest(&name.lossy(), known.iter().map(|(known, _)| *known));
    let message = format!("there is no section `http-errors {}`", name.lossy());
    let finding = Diagnostic::error(codes::UNKNOWN_PAGES, name.span, message).did_you_mean(nearest);
    scope.report(finding);
    None
}

/// Words with a value.
const WORDS: &[&str] = &[
    "status",
    "deny_status",
    "content-type",
    "string",
    "lf-string",
    "file",
    "lf-file",
    "hdr",
    "errorfile",
    "errorfiles",
];

/// What the words say.
#[derive(Default)]
struct Parts<'w> {
    status: Option<u16>,
    content_type: Option<&'w Word>,
    body: Option<Body<'w>>,
    fields: Vec<(Box<str>, Format)>,
    /// The first `hdr`.
    first_field: Option<&'w Word>,
}

/// Where the body comes from.
enum Body<'w> {
    /// It is the answer's alone.
    Own(ReplyBody),
    /// It comes with head and all: of a proxy, a file, a section.
    Whole(&'w Word, Whole<'w>),
}

enum Whole<'w> {
    OfProxies,
    File(Reply),
    Section(&'w Word),
}

impl<'w> Parts<'w> {
    fn read(scope: &mut Scope<'_>, input: &Input<'w>) -> Option<Self> {
        let mut parts = Self::default();
        let mut words = input.words.iter();
        while let Some(word) = words.next() {
            let name = word.lossy();
            if name == "default-errorfiles" {
                parts.only_one(scope, input, word)?;
                parts.body = Some(Body::Whole(word, Whole::OfProxies));
                continue;
            }
            if !WORDS.contains(&&*name) {
                let nearest = suggest::nearest(&name, WORDS.iter().copied().chain(["default-errorfiles"]));
                let message = format!("unknown word `{name}` behind `{}`", input.row.name);
                scope.report(Diagnostic::error(codes::ACTION_SHAPE, word.span, message).did_you_mean(nearest));
                return None;
            }
            let Some(value) = words.next() else {
                input.misshapen(scope, word.span.after(), &format!("`{name}` needs a value"));
                return None;
            };
            if name == "hdr" {
                let Some(format) = words.next() else {
                    input.misshapen(scope, value.span.after(), "`hdr` needs a name and a format");
                    return None;
                };
                parts.first_field.get_or_insert(word);
                parts.field(scope, input, value, format)?;
            } else {
                parts.value(scope, input, word, value)?;
            }
        }
        Some(parts)
    }

    fn value(&mut self, scope: &mut Scope<'_>, input: &Input<'w>, word: &'w Word, value: &'w Word) -> Option<()> {
        match &*word.lossy() {
            "status" | "deny_status" => self.status = Some(status(scope, value)?),
            "content-type" => {
                format::no_controls(scope, value)?;
                self.content_type = Some(value);
            }
            kind => {
                self.only_one(scope, input, word)?;
                self.body = Some(match kind {
                    "errorfile" => Body::Whole(word, Whole::File(message(scope, value)?)),
                    "errorfiles" => Body::Whole(word, Whole::Section(value)),
                    _ => Body::Own(body(scope, input, kind, value)?),
                });
            }
        }
        Some(())
    }

    fn only_one(&self, scope: &mut Scope<'_>, input: &Input<'_>, word: &Word) -> Option<()> {
        if self.body.is_some() {
            input.misshapen(scope, word.span, "there is a body already");
            return None;
        }
        Some(())
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

    fn reply(mut self, scope: &mut Scope<'_>, input: &Input<'_>, status: u16) -> Option<Reply> {
        let status = self.status.unwrap_or(status);
        let body = match self.body.take() {
            Some(Body::Whole(word, whole)) => return self.whole(scope, word, whole, status),
            Some(Body::Own(body)) => Some(body),
            None => None,
        };
        // An empty body has no type.
        let filled = body.filter(|body| !matches!(body, ReplyBody::Fixed(bytes) if bytes.is_empty()));
        if filled.is_some() && self.content_type.is_none() {
            input.misshapen(scope, input.action.span, "a body needs a `content-type`");
            return None;
        }
        if filled.is_some() && matches!(status, 204 | 304) {
            input.misshapen(scope, input.action.span, &format!("an answer with the status {status} has no body"));
            return None;
        }
        if let (Some(word), None) = (self.content_type, &filled) {
            scope.warn(codes::FIELD_IGNORED, word.span, "there is no body for this type: it is left out", "");
        }
        Some(Reply::Composed(Composed {
            status,
            content_type: self.content_type.filter(|_| filled.is_some()).map(|word| word.text.as_slice().into()),
            fields: self.fields,
            body: filled.unwrap_or(ReplyBody::Fixed(bytes::Bytes::new())),
        }))
    }

    /// A page that comes with its own head.
    fn whole(self, scope: &mut Scope<'_>, word: &Word, whole: Whole<'_>, status: u16) -> Option<Reply> {
        if let Some(ignored) = self.first_field.or(self.content_type) {
            let message = format!("`{}` brings its own fields: this one is left out", word.lossy());
            scope.warn(codes::FIELD_IGNORED, ignored.span, message, "");
        }
        match whole {
            Whole::OfProxies => Some(Reply::Page(status)),
            Whole::File(reply) => Some(reply),
            Whole::Section(name) => of_section(scope, name, status),
        }
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
