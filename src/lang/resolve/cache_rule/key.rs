//! `key`: components as words (`scheme host path hdr(Accept)`), or nuster's dotted form
//! (`method.scheme.host.path.header_X.cookie_Y.param_Z`).

use std::borrow::Cow;

use super::{Dialect, KeyPart, Scope, bracketed, codes, drawn};
use crate::{
    lang::{
        ast::Word,
        diag::Diagnostic,
        resolve::{acls::written, call, expr},
        suggest,
    },
    policy::{
        key::HostRule,
        keyed::Keyed,
        rewrite::{Names, Rewrite},
    },
    rule::{Expr, Phase, action::target::is_token, args::Arg},
};

/// A key's components and how they are written.
#[derive(Default)]
pub(super) struct Key {
    pub(super) parts: Vec<KeyPart>,
    /// For fingerprints: one text a component.
    pub(super) texts: Vec<Vec<u8>>,
    /// What `query(…)` leaves of the query.
    pub(super) rewrites: Vec<Rewrite>,
}

/// A component's name and what it is.
type Plain = (&'static str, fn() -> KeyPart);

/// Components without arguments.
const PLAIN: &[Plain] = &[
    ("method", || KeyPart::Method),
    ("scheme", || KeyPart::Scheme),
    ("host", || KeyPart::Host(HostRule::WithPort)),
    ("port", || KeyPart::Port),
    ("path", || KeyPart::Path),
    ("query", || KeyPart::Query),
    ("delimiter", || KeyPart::Delimiter),
    ("uri", || KeyPart::Uri),
];

/// Other components, and how they are written as an expression.
const SAMPLES: &[(&str, &str)] = &[("sni", "ssl_fc_sni"), ("src", "src")];

/// Components that are not built yet.
const UNBUILT: &[&str] = &["body"];

/// nuster's components with a name behind them.
const NAMED: &[&str] = &["header_", "cookie_", "param_"];

impl Key {
    /// The key of a rule that names none. nuster's has the method in it as well, which would keep HEAD from
    /// being answered by what GET has stored.
    pub(super) fn default_of(dialect: Dialect) -> Self {
        let names: &[&str] = match dialect {
            Dialect::Tidegate => &["scheme", "host", "path", "query"],
            Dialect::Nuster => &["scheme", "host", "uri"],
        };
        let mut key = Self::default();
        for (name, part) in PLAIN.iter().filter(|(name, _)| names.contains(name)) {
            key.add(part(), name.as_bytes());
        }
        key
    }

    /// The key that the words make.
    pub(super) fn read(scope: &mut Scope<'_>, words: &[Word]) -> Option<Self> {
        let mut key = Self::default();
        for word in words {
            if word.text.starts_with(b"%[") {
                let expr = bracketed(scope, word)?;
                key.add_expr(expr);
            } else if word.text.contains(&b'(') {
                key.called(scope, word)?;
            } else {
                key.dotted(scope, word)?;
            }
        }
        Some(key)
    }

    /// Whether a cookie is part of it.
    pub(super) fn has_cookie(&self) -> bool {
        self.parts.iter().any(|part| match part {
            KeyPart::Sample(expr) => {
                let field = expr.args().field(0).unwrap_or_default();
                expr.fetch().name().starts_with("req.cook") || field.eq_ignore_ascii_case("cookie")
            }
            _ => false,
        })
    }

    /// What it holds of a request as it is. What a converter has gone over may be anything.
    pub(super) fn keyed(&self) -> Keyed {
        let mut keyed = Keyed::default();
        for part in &self.parts {
            match part {
                KeyPart::Host(HostRule::WithPort) => keyed.host = true,
                KeyPart::Path => keyed.path = true,
                KeyPart::Query => keyed.query = true,
                KeyPart::Uri => (keyed.path, keyed.query) = (true, true),
                KeyPart::Sample(expr) if expr.steps().is_empty() => {
                    let (field, text) = (expr.args().field(0), expr.args().text(0));
                    let text = text.map(|text| String::from_utf8_lossy(text).into());
                    match expr.fetch().name() {
                        "req.fhdr_all" => keyed.fields.extend(field.map(Box::from)),
                        "req.cook_all" => keyed.cookies.extend(text),
                        "url_param_all" => keyed.params.extend(text),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        keyed
    }

    fn add(&mut self, part: KeyPart, text: &[u8]) {
        self.parts.push(part);
        self.texts.push(text.to_vec());
    }

    fn add_expr(&mut self, expr: Expr) {
        let text = expr.text().to_vec();
        self.add(KeyPart::Sample(whole(expr)), &text);
    }

    /// `hdr(N)`, `cookie(N)`, `str(…)`. The whole of a field or cookie counts, not its last element: what the
    /// key leaves out, one client could slip into another's response.
    fn called(&mut self, scope: &mut Scope<'_>, word: &Word) -> Option<()> {
        let call = match call::one(word) {
            Ok(call) => call,
            Err(finding) => {
                scope.report(finding);
                return None;
            }
        };
        let name = String::from_utf8_lossy(call.name(word)).into_owned();
        let span = word.part(call.whole.clone());
        match (name.as_str(), call.args.as_slice()) {
            ("hdr" | "header", [arg]) => self.field(scope, word, &arg.text, arg.at.clone()),
            ("cookie", [arg]) => self.sample("req.cook_all", Arg::Text(arg.text.as_slice().into()), &word.text),
            ("param", [arg]) => self.sample("url_param_all", Arg::Text(arg.text.as_slice().into()), &word.text),
            ("str", _) => {
                let expr = expr::expr(scope, word, Phase::Caching)?;
                self.add_expr(expr);
                Some(())
            }
            ("query", args) => {
                let names: Vec<_> = args.iter().map(|arg| String::from_utf8_lossy(&arg.text)).collect();
                self.parameters(scope, word, &names)
            }
            ("hdr" | "header" | "cookie" | "param", _) => {
                scope.error(codes::BAD_PARAMETER, span, format!("`{name}` in a key takes one name"));
                None
            }
            _ => {
                self::unknown(scope, &name, word.part(call.name.clone()), true);
                None
            }
        }
    }

    /// `query(a,b*)`: these parameters; `query(!a,!b*)`: all but these. They are in the order of their names.
    fn parameters(&mut self, scope: &mut Scope<'_>, word: &Word, names: &[Cow<'_, str>]) -> Option<()> {
        let without: Vec<&str> = names.iter().filter_map(|name| name.strip_prefix('!')).collect();
        self.rewrites.push(if without.is_empty() {
            Rewrite::KeepQuery(Names::new(names.iter().map(|name| &**name)))
        } else if without.len() == names.len() {
            Rewrite::StripQuery(Names::new(without))
        } else {
            let message = "parameters are either named, or all but some: `query(a,b)`, `query(!a,!b)`";
            scope.error(codes::BAD_PARAMETER, word.span, message);
            return None;
        });
        self.rewrites.push(Rewrite::SortQuery);
        self.add(KeyPart::Query, &word.text);
        Some(())
    }

    /// `host`, or `method.scheme.host.uri`.
    fn dotted(&mut self, scope: &mut Scope<'_>, word: &Word) -> Option<()> {
        let mut at = 0;
        for piece in word.text.split(|&byte| byte == b'.') {
            let range = at..at + piece.len();
            at = range.end + 1;
            self.keyword(scope, word, piece, range)?;
        }
        Some(())
    }

    fn keyword(&mut self, scope: &mut Scope<'_>, word: &Word, piece: &[u8], at: std::ops::Range<usize>) -> Option<()> {
        let name = String::from_utf8_lossy(piece).into_owned();
        let span = word.part(at.clone());
        if let Some((_, part)) = PLAIN.iter().find(|(plain, _)| *plain == name) {
            self.add(part(), piece);
            return Some(());
        }
        if let Some((_, text)) = SAMPLES.iter().find(|(sample, _)| *sample == name) {
            let expr = expr::expr(scope, &written(text, span), Phase::Caching)?;
            self.add_expr(expr);
            return Some(());
        }
        if UNBUILT.contains(&name.as_str()) {
            scope.refuse(codes::UNBUILT_PARAMETER, span, format!("`{name}` in a key is not built yet"));
            return None;
        }
        let named = NAMED.iter().find_map(|prefix| Some((*prefix, name.strip_prefix(prefix)?)));
        match named.filter(|(_, of)| !of.is_empty()) {
            Some(("header_", of)) => self.field(scope, word, of.as_bytes(), at.start + "header_".len()..at.end),
            Some(("cookie_", of)) => self.sample("req.cook_all", Arg::Text(of.as_bytes().into()), piece),
            Some((_, of)) => self.sample("url_param_all", Arg::Text(of.as_bytes().into()), piece),
            None => {
                unknown(scope, &name, span, false);
                None
            }
        }
    }

    fn field(&mut self, scope: &mut Scope<'_>, word: &Word, name: &[u8], at: std::ops::Range<usize>) -> Option<()> {
        let text = String::from_utf8_lossy(name).to_ascii_lowercase();
        if !is_token(name) {
            scope.error(codes::BAD_FIELD_NAME, word.part(at), format!("`{text}` is not the name of a header field"));
            return None;
        }
        let written = format!("hdr({text})");
        self.sample("req.fhdr_all", Arg::Field(text.into()), written.as_bytes())
    }

    fn sample(&mut self, fetch: &str, arg: Arg, text: &[u8]) -> Option<()> {
        self.add_expr(drawn(fetch, arg, text)?);
        Some(())
    }
}

fn unknown(scope: &mut Scope<'_>, name: &str, span: crate::lang::source::Span, called: bool) {
    let plain = PLAIN.iter().map(|(name, _)| *name).chain(SAMPLES.iter().map(|(name, _)| *name)).chain(["body"]);
    let nearest = if called {
        suggest::nearest(name, ["hdr", "cookie", "param", "str", "query"].into_iter())
    } else {
        suggest::nearest(name, plain)
    };
    let finding = Diagnostic::error(codes::UNKNOWN_COMPONENT, span, format!("unknown key component `{name}`"));
    scope.report(finding.did_you_mean(nearest).help("any sample can be one: `%[…]`"));
}

/// A bare fetch of one value among several becomes the fetch of all of them: what the key leaves out, the
/// server might read. With converters or an occurrence, the operator has chosen.
fn whole(expr: Expr) -> Expr {
    let all = match expr.fetch().name() {
        "url_param" | "urlp" => "url_param_all",
        "req.hdr" | "hdr" | "req.fhdr" => "req.fhdr_all",
        "req.cook" | "cook" => "req.cook_all",
        _ => return expr,
    };
    match (expr.steps(), expr.args().at(0), expr.args().at(1)) {
        ([], name, Arg::Absent) => drawn(all, name.clone(), expr.text()).unwrap_or(expr),
        _ => expr,
    }
}
