//! `userlist` sections: users, their passwords and groups (HAProxy manual §3.4).

use std::sync::Arc;

use super::{Args, Kind, Loader, head::Head, names};
use crate::{
    lang::{
        ast::Word,
        code,
        diag::Diagnostic,
        keyword::{Row, Status, place::USERS},
        suggest,
    },
    rule::users::{Crypt, Password, User, Userlist},
};

/// A list being put together.
#[derive(Default)]
pub(in crate::lang) struct UsersDraft {
    users: Vec<(User, Word)>,
    /// The groups and the users that they name.
    groups: Vec<(Word, Vec<Word>)>,
    /// The groups that users name: the user's place in the list, the group.
    memberships: Vec<(usize, Word)>,
}

type Handler = fn(&mut Loader<'_>, &mut UsersDraft, Args<'_>);

const fn row(name: &'static str, handler: Handler) -> Row<Handler> {
    Row { name, places: USERS, status: Status::Honoured(handler) }
}

/// Words of a `userlist` section.
pub(in crate::lang) const TABLE: &[Row<Handler>] = &[row("group", group), row("user", user)];

/// Reads a `userlist` section.
pub(super) fn section(loader: &mut Loader<'_>, head: &Head<'_>) {
    let mut made = UsersDraft::default();
    for line in &head.section.lines {
        let Some((name, status, _, args)) = loader.handler(&[TABLE], Kind::Userlist, line, 0) else { continue };
        match status {
            Status::Honoured(handler) => handler(loader, &mut made, args),
            Status::Accepted(reason) => loader.accept(name, args.keyword(), reason),
            Status::Refused(hint) => loader.refuse(name, args.keyword(), hint),
        }
    }
    join(loader, &mut made);
    if let Some((_, first)) = loader.names.users.iter().find(|(list, _)| list.name() == head.name) {
        let finding = names::duplicate("userlist", &head.name, head.span, *first);
        loader.report(finding);
    }
    let users = made.users.into_iter().map(|(user, _)| user).collect();
    loader.names.users.push((Arc::new(Userlist::new(head.name.clone(), users)), head.span));
}

/// Puts users into the groups that they or the groups name.
fn join(loader: &mut Loader<'_>, made: &mut UsersDraft) {
    for (at, name) in &made.memberships {
        if !made.groups.iter().any(|(group, _)| group.text == name.text) {
            let known: Vec<_> = made.groups.iter().map(|(group, _)| group.lossy()).collect();
            unknown(loader, "group", name, known.iter().map(|name| &**name));
        }
        if let Some((user, _)) = made.users.get_mut(*at) {
            add(user, &name.text);
        }
    }
    for (group, members) in &made.groups {
        for member in members {
            match made.users.iter_mut().find(|(user, _)| *user.name == *member.text) {
                Some((user, _)) => add(user, &group.text),
                None => {
                    let known: Vec<_> = made.users.iter().map(|(_, name)| name.lossy()).collect();
                    unknown(loader, "user", member, known.iter().map(|name| &**name));
                }
            }
        }
    }
}

fn add(user: &mut User, group: &[u8]) {
    if !user.groups.iter().any(|known| **known == *group) {
        user.groups.push(group.into());
    }
}

fn unknown<'n>(loader: &mut Loader<'_>, what: &str, name: &Word, known: impl Iterator<Item = &'n str>) {
    let message = format!("there is no {what} `{}` in this list", name.lossy());
    let nearest = suggest::nearest(&name.lossy(), known).map(str::to_owned);
    loader.report(Diagnostic::error(code::USERS, name.span, message).did_you_mean(nearest.as_deref()));
}

/// `user NAME [password HASH|insecure-password TEXT] [groups GROUP,…]`.
fn user(loader: &mut Loader<'_>, made: &mut UsersDraft, mut args: Args<'_>) {
    let Some(name) = loader.need(&mut args, "a name") else { return };
    if let Some((_, first)) = made.users.iter().find(|(user, _)| *user.name == *name.text) {
        let finding = names::duplicate("user", &name.lossy(), name.span, first.span);
        return loader.report(finding);
    }
    let mut user = User { name: name.text.as_slice().into(), password: None, groups: Vec::new() };
    while let Some(word) = args.next() {
        let kind = word.lossy();
        if !["password", "insecure-password", "groups"].contains(&&*kind) {
            let message = format!("unknown word `{kind}` behind `user`");
            let nearest = suggest::nearest(&kind, ["password", "insecure-password", "groups"].into_iter());
            return loader.report(Diagnostic::error(code::UNKNOWN_WORD, word.span, message).did_you_mean(nearest));
        }
        let Some(value) = loader.need(&mut args, &format!("a value behind `{kind}`")) else { return };
        match &*kind {
            "groups" => made.memberships.extend(list(value).map(|group| (made.users.len(), group))),
            "insecure-password" => user.password = Some(Password::Plain(value.text.as_slice().into())),
            _ => user.password = hash(loader, value),
        }
    }
    made.users.push((user, name.clone()));
}

fn hash(loader: &mut Loader<'_>, word: &Word) -> Option<Password> {
    match Crypt::read(&word.text) {
        Ok(hash) => Some(Password::Hash(hash)),
        Err(why) => {
            let message = format!("this is no hash of a password: {why}");
            let finding = Diagnostic::error(code::USERS, word.span, message);
            loader.report(finding.help(
                "`openssl passwd -6` makes one; a password that stands in the file itself is an `insecure-password`",
            ));
            None
        }
    }
}

/// `group NAME [users USER,…]`.
fn group(loader: &mut Loader<'_>, made: &mut UsersDraft, mut args: Args<'_>) {
    let Some(name) = loader.need(&mut args, "a name") else { return };
    if let Some((first, _)) = made.groups.iter().find(|(group, _)| group.text == name.text) {
        let finding = names::duplicate("group", &name.lossy(), name.span, first.span);
        return loader.report(finding);
    }
    let members = match args.next() {
        None => Vec::new(),
        Some(word) if word.is("users") => {
            let Some(users) = loader.need(&mut args, "users, with `,` between them") else { return };
            list(users).collect()
        }
        Some(word) => {
            let message = format!("unknown word `{}` behind `group`", word.lossy());
            return loader.report(
                Diagnostic::error(code::UNKNOWN_WORD, word.span, message)
                    .help("the form is `group NAME [users USER,USER]`"),
            );
        }
    };
    loader.nothing_more(&args);
    made.groups.push((name.clone(), members));
}

/// The names of a list, each with its own place.
fn list(word: &Word) -> impl Iterator<Item = Word> {
    let mut at = 0;
    word.text.split(|&byte| byte == b',').filter_map(move |name| {
        let from = at;
        at += name.len() + 1;
        let origins = word.origins.get(from..=from + name.len()).unwrap_or_default().to_vec();
        let part = Word { text: name.to_vec(), span: word.part(from..from + name.len()), origins };
        (!name.is_empty()).then_some(part)
    })
}
