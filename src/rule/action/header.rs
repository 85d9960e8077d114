//! Edits of header fields.

use regex::bytes::Regex;

use crate::{
    message::Fields,
    rule::{format::Format, matcher::Matcher, sample::Sample, template::Groups, txn::Txn},
};

/// The message that an action edits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The request.
    Request,
    /// The response.
    Response,
}

impl Side {
    pub(super) fn fields<'a>(self, txn: &'a mut Txn<'_>) -> Option<&'a mut Fields> {
        match self {
            Self::Request => Some(&mut txn.request.fields),
            Self::Response => txn.response.as_deref_mut().map(|response| &mut response.fields),
        }
    }
}

/// `set-header`, `add-header`.
#[derive(Clone, Debug)]
pub struct HeaderEdit {
    /// Whose field.
    pub side: Side,
    /// The field's name.
    pub name: Box<str>,
    /// Its value.
    pub value: Format,
}

impl HeaderEdit {
    /// Leaves one line of the name.
    pub(super) fn set(&self, txn: &mut Txn<'_>) {
        let value = self.value.text_in(txn);
        if let Some(fields) = self.side.fields(txn) {
            fields.set(self.name.as_bytes(), value);
        }
    }

    /// Adds a line at the end.
    pub(super) fn add(&self, txn: &mut Txn<'_>) {
        let value = self.value.text_in(txn);
        if let Some(fields) = self.side.fields(txn) {
            fields.append(self.name.as_bytes(), value);
        }
    }
}

/// `del-header NAME [-m METHOD]`.
#[derive(Clone, Debug)]
pub struct HeaderDelete {
    /// Whose fields.
    pub side: Side,
    /// Which.
    pub names: Names,
}

/// Names of fields.
#[derive(Clone, Debug)]
pub enum Names {
    /// This one, in any case.
    Exactly(Box<str>),
    /// Those that match, but none that tells where a body ends.
    Matching(Box<Matcher>),
}

/// Whether a field tells where a body ends (RFC 9112 §6), which no rule may.
pub fn is_framing(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"content-length") || name.eq_ignore_ascii_case(b"transfer-encoding")
}

impl HeaderDelete {
    pub(super) fn apply(&self, txn: &mut Txn<'_>) {
        let arena = txn.arena;
        let Some(fields) = self.side.fields(txn) else { return };
        match &self.names {
            Names::Exactly(name) => {
                fields.remove(name.as_bytes());
            }
            Names::Matching(matcher) => {
                fields.retain(|field| is_framing(field.name) || !matcher.matches(Sample::Str(field.name), arena))
            }
        }
    }
}

/// `replace-header NAME REGEX FMT`, `replace-value`: each line of the name, or member of its list, that matches gets a
/// new value.
#[derive(Clone, Debug)]
pub struct HeaderReplace {
    /// Whose field.
    pub side: Side,
    /// The field's name.
    pub name: Box<str>,
    /// What its value has to match, anywhere.
    pub regex: Regex,
    /// Its new value; `\1` stands for what a group matched in the old one.
    pub with: Format,
}

impl HeaderReplace {
    /// `replace-header`: whole lines.
    pub(super) fn lines(&self, txn: &mut Txn<'_>) {
        self.rewrite(txn, |value, txn| self.replaced(value, txn));
    }

    /// `replace-value`: the members of lists, each by itself.
    pub(super) fn members(&self, txn: &mut Txn<'_>) {
        self.rewrite(txn, |value, txn| {
            let (mut list, mut edited) = (Vec::with_capacity(value.len() + 16), false);
            for (index, member) in pieces(value).enumerate() {
                if index > 0 {
                    list.push(b',');
                }
                match self.replaced(member.trim_ascii(), txn) {
                    Some(new) => {
                        edited = true;
                        list.extend_from_slice(&new);
                    }
                    None => list.extend_from_slice(member),
                }
            }
            edited.then_some(list)
        });
    }

    fn replaced(&self, value: &[u8], txn: &Txn<'_>) -> Option<Vec<u8>> {
        let (_, groups) = Groups::find(&self.regex, value, 0, self.with.has_groups())?;
        Some(self.with.replacement_in(txn, Some(&groups)).to_vec())
    }

    fn rewrite(&self, txn: &mut Txn<'_>, edit: impl Fn(&[u8], &Txn<'_>) -> Option<Vec<u8>>) {
        let Some(fields) = self.side.fields(txn) else { return };
        if !fields.all(&self.name).any(|value| self.regex.is_match(value)) {
            return;
        }
        // Taken out and put back: the format may read the very fields that are rewritten.
        let mut fields = std::mem::take(fields);
        let old = fields.clone();
        if let Some(place) = self.side.fields(txn) {
            *place = old;
        }
        fields.rewrite(self.name.as_bytes(), |value| edit(value, txn));
        if let Some(place) = self.side.fields(txn) {
            *place = fields;
        }
    }
}

/// The pieces of a list value between its commas, those inside quotes excepted; blanks stay.
fn pieces(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(value);
    std::iter::from_fn(move || {
        let text = rest?;
        let (mut quoted, mut escaped) = (false, false);
        let comma = text.iter().position(|&byte| {
            let ends = byte == b',' && !quoted;
            quoted ^= byte == b'"' && !escaped;
            escaped = byte == b'\\' && quoted && !escaped;
            ends
        });
        rest = comma.and_then(|at| text.get(at + 1..));
        text.get(..comma.unwrap_or(text.len()))
    })
}
