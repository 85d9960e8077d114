//! The ACLs of a proxy: those it declares and those that are always there (HAProxy manual §7.4).

use std::{collections::HashMap, sync::Arc};

use super::{Scope, acl, codes, expr};
use crate::{
    lang::{ast::Word, diag::Diagnostic, source::Span, suggest},
    rule::{Acl, acl::AclTest},
};

/// The ACLs of one proxy.
#[derive(Clone, Debug, Default)]
pub struct Acls {
    declared: HashMap<String, Declared>,
    predefined: HashMap<&'static str, Arc<Acl>>,
}

#[derive(Clone, Debug)]
struct Declared {
    /// `None`: a line of it could not be read, which has been reported.
    acl: Option<Arc<Acl>>,
    /// The name in its first line.
    span: Span,
    used: bool,
}

/// Name, criterion and patterns.
const PREDEFINED: &[(&str, &str)] = &[
    ("TRUE", "always_true"),
    ("FALSE", "always_false"),
    ("HTTP", "req.proto_http"),
    ("HTTP_1.0", "req.ver 1.0"),
    ("HTTP_1.1", "req.ver 1.1"),
    ("HTTP_2.0", "req.ver 2.0"),
    ("HTTP_3.0", "req.ver 3.0"),
    ("HTTP_CONTENT", "req.hdr_val(content-length) gt 0"),
    ("HTTP_URL_ABS", "url_reg ^[^/:]*://"),
    ("HTTP_URL_SLASH", "url_beg /"),
    ("HTTP_URL_STAR", "url *"),
    ("LOCALHOST", "src 127.0.0.1/8 ::1"),
    ("METH_CONNECT", "method CONNECT"),
    ("METH_DELETE", "method DELETE"),
    ("METH_GET", "method GET HEAD"),
    ("METH_HEAD", "method HEAD"),
    ("METH_OPTIONS", "method OPTIONS"),
    ("METH_POST", "method POST"),
    ("METH_PUT", "method PUT"),
    ("METH_TRACE", "method TRACE"),
    ("REQ_CONTENT", "req.len gt 0"),
    ("WAIT_END", "wait_end"),
];

impl Acls {
    /// The declared ACLs that no condition has used, by place.
    pub fn unused(&self) -> impl Iterator<Item = (&str, Span)> {
        let mut unused: Vec<_> = self
            .declared
            .iter()
            .filter(|(_, declared)| !declared.used && declared.acl.is_some())
            .map(|(name, declared)| (name.as_str(), declared.span))
            .collect();
        unused.sort_unstable_by_key(|(_, span)| (span.file, span.start));
        unused.into_iter()
    }

    /// Takes a line of `name` in; `None` when it could not be read.
    pub(super) fn declare(&mut self, name: &Word, test: Option<(AclTest, Vec<u8>)>) {
        let key = name.lossy().into_owned();
        let Some((test, text)) = test else {
            let broken = Declared { acl: None, span: name.span, used: false };
            self.declared.entry(key).and_modify(|declared| declared.acl = None).or_insert(broken);
            return;
        };
        match self.declared.get_mut(&key) {
            Some(Declared { acl: Some(acl), .. }) => Arc::make_mut(acl).or(test, &text),
            Some(_) => {}
            None => {
                let acl = Some(Arc::new(Acl::new(&key, test, &text)));
                self.declared.insert(key, Declared { acl, span: name.span, used: false });
            }
        }
    }

    /// Where an ACL is declared.
    pub(super) fn place(&self, name: &str) -> Option<Span> {
        self.declared.get(name).map(|declared| declared.span)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.declared.keys().map(String::as_str).chain(PREDEFINED.iter().map(|(name, _)| *name))
    }
}

/// The ACL called `name`, written at `span`.
pub(super) fn named(scope: &mut Scope<'_>, name: &str, span: Span) -> Option<Arc<Acl>> {
    if let Some(declared) = scope.acls.declared.get_mut(name) {
        declared.used = true;
        return declared.acl.clone();
    }
    if let Some(acl) = scope.acls.predefined.get(name) {
        return Some(Arc::clone(acl));
    }
    let Some((name, text)) = PREDEFINED.iter().find(|(known, _)| *known == name) else {
        let finding = Diagnostic::error(codes::UNKNOWN_ACL, span, format!("no ACL is called `{name}`"));
        let finding = match name {
            "and" | "AND" | "&&" => {
                finding.help("there is no word for AND: terms that stand side by side must all hold")
            }
            _ if name.len() > 1 && (name.starts_with('{') || name.ends_with('}')) => {
                finding.help("braces need spaces around them: `{ path_beg /api/ }`")
            }
            _ if expr::is_criterion(name) => {
                finding.help(format!("a test stands between braces: write `{{ {name} … }}`"))
            }
            _ => finding.did_you_mean(suggest::nearest(name, scope.acls.names())),
        };
        scope.report(finding);
        return None;
    };
    let words: Vec<_> = text.split(' ').map(|text| written(text, span)).collect();
    let acl = Arc::new(Acl::new(name, acl::test(scope, &words)?, text.as_bytes()));
    scope.acls.predefined.insert(name, Arc::clone(&acl));
    Some(acl)
}

/// A word that stands in no file: everything about it points at `span`.
pub(in crate::lang) fn written(text: &str, span: Span) -> Word {
    Word { text: text.into(), span, origins: vec![span.start; text.len() + 1] }
}
