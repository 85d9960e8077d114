//! `stats …` of proxies: a page of statistics (HAProxy manual §4.2).

use std::{sync::Arc, time::Duration};

use super::{Args, Draft, Loader, rules};
use crate::{
    config::StatsPage,
    lang::{ast::Word, code, diag::Diagnostic, resolve, source::Span, unit::TimeUnit},
    rule::{
        Phase, Rule, RuleSet,
        users::{Password, User, Userlist},
    },
};

/// Where the page is when no line says so.
const URI: &[u8] = b"/haproxy?stats";
/// What is protected, when no line names it.
const REALM: &[u8] = b"HAProxy Statistics";

/// A page being put together.
#[derive(Default)]
pub(super) struct StatsDraft {
    /// Whether any line was there: the first one makes the page.
    is_on: bool,
    uri: Option<Vec<u8>>,
    rules: Vec<Rule>,
    users: Vec<User>,
    realm: Option<Vec<u8>>,
    refresh: Option<Duration>,
    scope: Vec<String>,
    node: Option<String>,
    description: Option<String>,
    hides_version: bool,
    shows_addresses: bool,
    /// The first `stats auth`.
    auth: Option<Span>,
}

impl StatsDraft {
    /// The page; `None` when no line speaks of one. `name` is the proxy's.
    pub(super) fn made(&self, name: &str) -> Option<StatsPage> {
        if !self.is_on {
            return None;
        }
        let realm = resolve::challenge(self.realm.as_deref().unwrap_or(REALM));
        let users = || Arc::new(Userlist::new(format!("stats of {name}"), self.users.clone()));
        let scope = self.scope.iter().map(|one| if one == "." { name.to_owned() } else { one.clone() });
        Some(StatsPage {
            uri: self.uri.as_deref().unwrap_or(URI).into(),
            rules: RuleSet { rules: self.rules.clone() },
            // As in HAProxy, rules of one's own take the place of users.
            users: (!self.users.is_empty() && self.rules.is_empty()).then(|| (users(), realm)),
            refresh: self.refresh.filter(|time| !time.is_zero()),
            scope: scope.collect(),
            node: self.node.clone(),
            description: self.description.clone(),
            shows_version: !self.hides_version,
            shows_addresses: self.shows_addresses,
        })
    }
}

/// The page being put together, now that a line speaks of it.
fn page(draft: &mut Draft) -> &mut StatsDraft {
    draft.stats.is_on = true;
    &mut draft.stats
}

/// `stats enable`.
pub(in crate::lang) fn enable(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    loader.nothing_more(&args);
    page(draft);
}

/// `stats hide-version`.
pub(in crate::lang) fn hide_version(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    loader.nothing_more(&args);
    page(draft).hides_version = true;
}

/// `stats show-version`, as is the case without `hide-version`.
pub(in crate::lang) fn show_version(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    loader.nothing_more(&args);
    page(draft).hides_version = false;
}

/// `stats show-legends`.
pub(in crate::lang) fn show_legends(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    loader.nothing_more(&args);
    page(draft).shows_addresses = true;
}

/// `stats uri PREFIX`.
pub(in crate::lang) fn uri(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    if let Some(uri) = only_word(loader, args, "what the page's targets begin with, such as `/stats`") {
        page(draft).uri = Some(uri.text.clone());
    }
}

/// `stats realm REALM`.
pub(in crate::lang) fn realm(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    let Some(realm) = only_word(loader, args, "a name for what is protected") else { return };
    if realm.text.iter().any(u8::is_ascii_control) {
        return loader.error(code::BAD_VALUE, realm.span, "a realm has no control characters");
    }
    page(draft).realm = Some(realm.text.clone());
}

/// `stats auth USER:PASSWORD`.
pub(in crate::lang) fn auth(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    let keyword = args.keyword();
    let Some(word) = only_word(loader, args, "`USER:PASSWORD`") else { return };
    let mut parts = word.text.splitn(2, |&byte| byte == b':');
    let (Some(name), Some(password)) = (parts.next(), parts.next()) else {
        return loader.error(code::BAD_VALUE, word.span, "write `USER:PASSWORD`");
    };
    let user = User { name: name.into(), password: Some(Password::Plain(password.into())), groups: Vec::new() };
    let page = page(draft);
    page.auth.get_or_insert(keyword);
    page.users.push(user);
    both(loader, draft);
}

/// `stats http-request allow|deny|auth [realm REALM] [if|unless CONDITION]`.
pub(in crate::lang) fn http_request(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    page(draft);
    let Some(action) = loader.need(&mut args.clone(), "an action") else { return };
    if !["allow", "deny", "auth"].iter().any(|known| action.is(known)) {
        let message = format!("`{}` cannot stand in `stats http-request`", action.lossy());
        loader.report(
            Diagnostic::error(code::UNKNOWN_WORD, action.span, message).help("write `allow`, `deny` or `auth`"),
        );
        return;
    }
    if let Some(rule) = rules::rule(loader, draft, Phase::Request, &args) {
        draft.stats.rules.push(rule);
        both(loader, draft);
    }
}

/// Says once that rules take the place of users.
fn both(loader: &mut Loader<'_>, draft: &Draft) {
    let Some(auth) = draft.stats.auth.filter(|_| !draft.stats.rules.is_empty()) else { return };
    let message = "`stats auth` has no effect beside `stats http-request`";
    if !loader.diagnostics.iter().any(|found| found.message == message) {
        let finding = Diagnostic::warning(code::OVERRIDDEN, auth, message.to_owned());
        loader.report(finding.help("write a `userlist` and `stats http-request auth unless { http_auth(USERLIST) }`"));
    }
}

/// `stats refresh TIME`: seconds without a unit.
pub(in crate::lang) fn refresh(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    if let Some(time) = loader.only_time(args, TimeUnit::Seconds) {
        page(draft).refresh = Some(time);
    }
}

/// `stats scope PROXY`; `.` is this one.
pub(in crate::lang) fn scope(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    if let Some(name) = only_word(loader, args, "the name of a proxy, or `.`") {
        page(draft).scope.push(name.lossy().into_owned());
    }
}

/// `stats show-node [NAME]`.
pub(in crate::lang) fn show_node(loader: &mut Loader<'_>, draft: &mut Draft, mut args: Args<'_>) {
    let name = args.next().map(|word| word.lossy().into_owned());
    loader.nothing_more(&args);
    page(draft).node = Some(name.unwrap_or_default());
}

/// `stats show-desc [TEXT]`.
pub(in crate::lang) fn show_description(_: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    let words: Vec<_> = args.rest().iter().map(Word::lossy).collect();
    page(draft).description = Some(words.join(" "));
}

fn only_word<'l>(loader: &mut Loader<'_>, mut args: Args<'l>, what: &str) -> Option<&'l Word> {
    let word = loader.need(&mut args, what)?;
    loader.nothing_more(&args);
    Some(word)
}
