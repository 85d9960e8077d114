//! What a frontend keeps of messages for its log, and the ids of its requests (HAProxy manual §4.2, §8.7, §8.8).

use super::{Args, Draft, Loader};
use crate::{
    lang::{ast::Word, code, diag::Diagnostic, resolve},
    rule::capture::{CookieSlot, Slot},
};

/// The most bytes that a slot keeps.
const LONGEST: usize = 64 << 10;

/// `capture request header NAME len N`.
pub(in crate::lang) fn request_header(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    let slot = header(loader, args);
    draft.captures.request.extend(slot);
}

/// `capture response header NAME len N`.
pub(in crate::lang) fn response_header(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    let slot = header(loader, args);
    draft.captures.response.extend(slot);
}

/// `capture cookie NAME len N`: the last one counts.
pub(in crate::lang) fn cookie(loader: &mut Loader<'_>, draft: &mut Draft, mut args: Args<'_>) {
    let Some(name) = loader.need(&mut args, "the beginning of a cookie") else { return };
    if let Some(len) = len(loader, args) {
        draft.captures.cookie = Some(CookieSlot { prefix: name.text.as_slice().into(), len });
    }
}

/// `declare capture request|response len N`.
pub(in crate::lang) fn declare(loader: &mut Loader<'_>, draft: &mut Draft, mut args: Args<'_>) {
    let Some(side) = loader.need(&mut args, "`request` or `response`") else { return };
    let Some(len) = len(loader, args) else { return };
    match side.text.as_slice() {
        b"request" => draft.captures.request.push(Slot { field: None, len }),
        b"response" => draft.captures.response.push(Slot { field: None, len }),
        _ => {
            let message = format!("`{}` is neither `request` nor `response`", side.lossy());
            loader.error(code::BAD_VALUE, side.span, message);
        }
    }
}

fn header(loader: &mut Loader<'_>, mut args: Args<'_>) -> Option<Slot> {
    let name: &Word = loader.need(&mut args, "the name of a field")?;
    let len = len(loader, args)?;
    Some(Slot { field: Some(name.lossy().into()), len })
}

/// `len N` and nothing more.
fn len(loader: &mut Loader<'_>, mut args: Args<'_>) -> Option<usize> {
    let word = loader.need(&mut args, "`len` and a number of bytes")?;
    if !word.is("len") {
        let message = format!("`{}` stands where `len` has to", word.lossy());
        loader.report(Diagnostic::error(code::BAD_VALUE, word.span, message).help("write `len` and a number of bytes"));
        return None;
    }
    let word = loader.need(&mut args, "a number of bytes behind `len`")?;
    loader.nothing_more(&args);
    loader.number(word, 1..=LONGEST)
}

/// `unique-id-format FORMAT`.
pub(in crate::lang) fn unique_id(loader: &mut Loader<'_>, draft: &mut Draft, mut args: Args<'_>) {
    let Some(word) = loader.need(&mut args, "a format") else { return };
    loader.nothing_more(&args);
    let format = resolve::unique_id(&mut loader.scope(draft), word);
    draft.unique_id = format.or(draft.unique_id.take());
}

/// `unique-id-header NAME`.
pub(in crate::lang) fn unique_id_header(loader: &mut Loader<'_>, draft: &mut Draft, mut args: Args<'_>) {
    let Some(word) = loader.need(&mut args, "the name of a field") else { return };
    loader.nothing_more(&args);
    if crate::rule::action::target::is_token(&word.text) && !crate::rule::action::header::is_framing(&word.text) {
        draft.unique_id_header = Some(word.lossy().into_owned());
    } else {
        loader.error(code::BAD_NAME, word.span, format!("`{}` cannot name a field here", word.lossy()));
    }
}
