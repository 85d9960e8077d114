//! `wait-for-body time TIME [at-least BYTES]`.

use super::{Input, Scope, codes};
use crate::{
    lang::{ast::Word, unit, unit::TimeUnit},
    message::BodyWait,
    rule::Action,
};

pub(super) fn for_body(scope: &mut Scope<'_>, input: &Input<'_>) -> Option<Action> {
    let (mut time, mut at_least) = (None, None);
    let mut words = input.words.iter();
    while let Some(word) = words.next() {
        let Some(value) = words.next() else {
            input.misshapen(scope, word.span.after(), "a word is missing");
            return None;
        };
        match word.text.as_slice() {
            b"time" => time = Some(read(scope, value, "time", |text| unit::time(text, TimeUnit::Millis))?),
            b"at-least" => {
                let bytes = read(scope, value, "size", unit::size)?;
                at_least = usize::try_from(bytes).ok().filter(|bytes| *bytes > 0);
            }
            _ => {
                input.misshapen(scope, word.span, &format!("`{}` is neither `time` nor `at-least`", word.lossy()));
                return None;
            }
        }
    }
    let Some(time) = time else {
        input.misshapen(scope, input.words.last().unwrap_or(input.action).span.after(), "`time` is missing");
        return None;
    };
    Some(Action::WaitForBody(BodyWait { time, at_least }))
}

fn read<T>(scope: &mut Scope<'_>, word: &Word, what: &str, read: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
    let value = read(&word.text);
    if value.is_none() {
        scope.error(codes::BAD_VALUE, word.span, format!("`{}` is no {what}", word.lossy()));
    }
    value
}
