//! Names of variables: `scope.name`.

use std::collections::HashMap;

use super::{Scope, codes};
use crate::{
    lang::{ast::Word, diag::Diagnostic, source::Span, suggest},
    rule::{VarId, VarScope},
};

/// The variables of a configuration, each with its number.
#[derive(Clone, Debug, Default)]
pub struct VarNames(HashMap<String, VarId>);

impl VarNames {
    fn id(&mut self, scope: VarScope, name: &str) -> VarId {
        if let Some(id) = self.0.get(name) {
            return *id;
        }
        // The same in every configuration, so that what outlives one is found again in the next.
        let mut index =
            name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        while self.0.values().any(|id| id.index == index) {
            index = index.wrapping_add(1);
        }
        let id = VarId { index, scope };
        self.0.insert(name.to_owned(), id);
        id
    }
}

/// Scopes of HAProxy's that are not built.
const UNBUILT: &[&str] = &["check", "psess", "ptxn", "preq", "pres"];

/// Whether a text that may be either is a variable: it begins with a scope.
pub(super) fn is_variable(text: &[u8]) -> bool {
    let scope = text.split(|byte| *byte == b'.').next().filter(|scope| scope.len() < text.len());
    let built = VarScope::ALL.iter().map(|(word, _)| *word);
    scope.is_some_and(|scope| built.chain(UNBUILT.iter().copied()).any(|word| word.as_bytes() == scope))
}

/// The variable of the process that a word names.
pub fn process_variable(scope: &mut Scope<'_>, word: &Word) -> Option<VarId> {
    let id = variable(scope, &word.text, word.span)?;
    if id.scope == VarScope::Proc {
        return Some(id);
    }
    let message = format!("`{}` is no variable of the process", word.lossy());
    let finding = Diagnostic::error(codes::BAD_VARIABLE_NAME, word.span, message);
    scope.report(finding.help("nothing but `proc.NAME` is there before the first connection"));
    None
}

/// The variable called `text`, which stands at `span`.
pub(super) fn variable(scope: &mut Scope<'_>, text: &[u8], span: Span) -> Option<VarId> {
    let text = String::from_utf8_lossy(text);
    let Some((of, name)) = text.split_once('.') else {
        let message = format!("`{text}` is not the name of a variable");
        let finding = Diagnostic::error(codes::BAD_VARIABLE_NAME, span, message);
        scope.report(finding.help(format!("write its scope first, for example `txn.{text}`")));
        return None;
    };
    if UNBUILT.contains(&of) {
        scope.refuse(codes::BAD_VARIABLE_NAME, span, format!("variables of the scope `{of}` are not built yet"));
        return None;
    }
    let Some((_, lives)) = VarScope::ALL.iter().find(|(word, _)| *word == of) else {
        let nearest = suggest::nearest(of, VarScope::ALL.iter().map(|(word, _)| *word));
        let finding = Diagnostic::error(codes::BAD_VARIABLE_NAME, span, format!("unknown scope `{of}`"));
        scope.report(finding.did_you_mean(nearest).help("scopes are `proc`, `sess`, `txn`, `req` and `res`"));
        return None;
    };
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    if name.is_empty() || !name.bytes().all(allowed) {
        let finding = Diagnostic::error(codes::BAD_VARIABLE_NAME, span, format!("`{name}` cannot name a variable"));
        scope.report(finding.help("use letters, digits, `_` and `.`"));
        return None;
    }
    Some(scope.vars.id(*lives, &text))
}
