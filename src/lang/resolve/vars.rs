//! Names of variables: `scope.name`.

use std::collections::HashMap;

use super::{Scope, codes};
use crate::{
    lang::{diag::Diagnostic, source::Span, suggest},
    rule::{VarId, VarScope},
};

/// The variables of a configuration, each with its number.
#[derive(Clone, Debug, Default)]
pub struct VarNames(HashMap<String, VarId>);

impl VarNames {
    fn id(&mut self, scope: VarScope, name: &str) -> VarId {
        let index = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        *self.0.entry(name.to_owned()).or_insert(VarId { index, scope })
    }
}

/// Scopes of HAProxy's that are not built.
const UNBUILT: &[&str] = &["proc", "check", "psess", "ptxn", "preq", "pres"];

/// Whether a text that may be either is a variable: it begins with a scope.
pub(super) fn is_variable(text: &[u8]) -> bool {
    let scope = text.split(|byte| *byte == b'.').next().filter(|scope| scope.len() < text.len());
    let built = VarScope::ALL.iter().map(|(word, _)| *word);
    scope.is_some_and(|scope| built.chain(UNBUILT.iter().copied()).any(|word| word.as_bytes() == scope))
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
        scope.report(finding.did_you_mean(nearest).help("scopes are `sess`, `txn`, `req` and `res`"));
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
