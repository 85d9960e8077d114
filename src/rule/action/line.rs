//! Edits of whole lines of a head, as HAProxy had them before 2.1: `reqrep`, `reqdel`, `reqdeny`, `rsprep` and their kin
//! (HAProxy 2.0 manual §4.2).

use bytes::BytesMut;
use regex::bytes::Regex;

use super::{
    header::{Side, is_framing},
    target::{TargetPart, is_token},
};
use crate::{
    message::Version,
    rule::{
        template::{Groups, Part},
        txn::Txn,
    },
};

/// A regular expression that meets the first line of a head and then each field line, written `NAME: VALUE`.
#[derive(Clone, Debug)]
pub struct LineFilter {
    /// Whose head.
    pub side: Side,
    /// What a line has to match, anywhere.
    pub regex: Regex,
    /// What becomes of a line that does.
    pub edit: LineEdit,
}

/// What becomes of a line.
#[derive(Clone, Debug)]
pub enum LineEdit {
    /// It stays, and the exchange is refused with the page for this status.
    Deny(u16),
    /// As [`LineEdit::Deny`], and the client waits for that.
    Tarpit(u16),
    /// A field line goes; the first line stays.
    Remove,
    /// It is another one, if that can be one. Nothing at all takes a field line away.
    Replace(Vec<Part>),
}

impl LineFilter {
    /// Edits the head; whether any line matched.
    pub(super) fn apply(&self, txn: &mut Txn<'_>) -> bool {
        let first = self.first_line(txn);
        let matched = self.regex.is_match(&first);
        if let Some(new) = self.replaced(&first).filter(|_| matched) {
            self.set_first_line(&new, txn);
        }
        self.fields(txn) || matched
    }

    fn first_line(&self, txn: &Txn<'_>) -> Vec<u8> {
        let mut line = Vec::new();
        match (self.side, &txn.response) {
            (Side::Response, Some(response)) => {
                line.extend_from_slice(format!("HTTP/1.1 {} {}", response.status, response.reason()).as_bytes());
            }
            _ => {
                line.extend_from_slice(txn.request.method());
                line.push(b' ');
                txn.request.write_target(&mut line);
                let old = txn.request.version == Version::Http10;
                line.extend_from_slice(if old { b" HTTP/1.0" } else { b" HTTP/1.1" });
            }
        }
        line
    }

    /// A first line that makes no sense leaves the head as it was.
    fn set_first_line(&self, line: &[u8], txn: &mut Txn<'_>) {
        let mut words = line.splitn(3, |byte| *byte == b' ');
        let (Some(first), Some(second)) = (words.next(), words.next()) else { return };
        let rest = words.next().unwrap_or_default();
        match self.side {
            Side::Request if is_token(first) && rest.starts_with(b"HTTP/") => {
                txn.request.set_method(first);
                TargetPart::Uri.set(second, txn);
            }
            Side::Response if first.starts_with(b"HTTP/") => {
                let status = std::str::from_utf8(second).ok().and_then(|digits| digits.parse().ok());
                let status = status.filter(|status| (200..=999).contains(status));
                if let (Some(status), Some(response)) = (status, txn.response.as_deref_mut()) {
                    response.status = status;
                    response.set_phrase(rest);
                }
            }
            _ => {}
        }
    }

    /// Fields that tell where a body ends are left alone; whether any other line matched.
    fn fields(&self, txn: &mut Txn<'_>) -> bool {
        let Some(fields) = self.side.fields(txn) else { return false };
        let (mut line, mut kept, mut matched) = (BytesMut::new(), Vec::new(), false);
        for field in fields.iter() {
            line.clear();
            [field.name, b": ", field.value].iter().for_each(|piece| line.extend_from_slice(piece));
            let same = || Some((field.name.to_vec(), field.value.to_vec()));
            kept.extend(if is_framing(field.name) || !self.regex.is_match(&line) {
                same()
            } else {
                matched = true;
                match &self.edit {
                    LineEdit::Deny(_) | LineEdit::Tarpit(_) => same(),
                    LineEdit::Remove => None,
                    LineEdit::Replace(_) => match self.replaced(&line) {
                        Some(new) if new.is_empty() => None,
                        Some(new) => field_of(&new).or_else(same),
                        None => same(),
                    },
                }
            });
        }
        if matched && matches!(self.edit, LineEdit::Remove | LineEdit::Replace(_)) {
            fields.retain(|_| false);
            kept.iter().for_each(|(name, value)| fields.append(name, value));
        }
        matched
    }

    /// The line with what matched replaced, as HAProxy does: what stands around it goes.
    fn replaced(&self, line: &[u8]) -> Option<Vec<u8>> {
        let LineEdit::Replace(parts) = &self.edit else { return None };
        let (_, groups) = Groups::find(&self.regex, line, 0, true)?;
        let pieces = parts.iter().map(|part| match part {
            Part::Text(text) => &text[..],
            Part::Group(number) => groups.text(*number),
        });
        Some(pieces.flatten().copied().collect())
    }
}

/// The field that a line is; `None` when it is none that may be sent.
fn field_of(line: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let (name, value) = line.split_at_checked(memchr::memchr(b':', line)?)?;
    let value = value.get(1..)?.trim_ascii();
    let fit =
        is_token(name) && !is_framing(name) && !value.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t');
    fit.then(|| (name.to_vec(), value.to_vec()))
}
