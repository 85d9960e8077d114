//! Lists of words behind an address, each with its values.

use super::{Args, Loader};
use crate::lang::{
    ast::Word,
    code,
    diag::Diagnostic,
    keyword::{Param, Status},
    suggest,
};

/// Reads what is left of a line as words of `table`; `line` names the line in messages. Honoured words
/// and their values go to `honour`.
pub(super) fn read<H: Copy + 'static>(
    loader: &mut Loader<'_>,
    table: &'static [Param<H>],
    line: &str,
    mut args: Args<'_>,
    mut honour: impl FnMut(&mut Loader<'_>, H, &Word, &[Word]),
) {
    let find = |word: &Word| table.iter().find(|param| word.is(param.name));
    while let Some(word) = args.next() {
        let Some(param) = find(word) else {
            let nearest = suggest::nearest(&word.lossy(), table.iter().map(|param| param.name));
            let message = format!("unknown word `{}` in a `{line}` line", word.lossy());
            loader.report(Diagnostic::error(code::UNKNOWN_WORD, word.span, message).did_you_mean(nearest));
            // What follows may be its values.
            while args.peek().is_some_and(|next| find(next).is_none()) {
                args.next();
            }
            continue;
        };
        let Some(values) = args.rest().get(..usize::from(param.args)) else {
            loader.error(code::MISSING_WORD, word.span.after(), format!("`{}` needs a value", param.name));
            return;
        };
        for _ in values {
            args.next();
        }
        let name = || format!("{line} … {}", param.name);
        match param.status {
            Status::Honoured(handler) => honour(loader, handler, word, values),
            Status::Accepted(reason) => loader.accept(&name(), word.span, reason),
            Status::Refused(hint) => loader.refuse(&name(), word.span, hint),
        }
    }
}
