//! Credentials in `Authorization` (RFC 9110 §11.6.2; HAProxy manual §7.3.6).

use bumpalo::collections::Vec as BumpVec;

use super::{ArgSpec, Args, Draw, FetchRow, Sample, TEXT, Txn, Type};
use crate::rule::{
    args::ArgKind,
    converter::coding::from_base64,
    users::{User, Userlist},
};

pub(super) const ROWS: &[FetchRow] = &[
    FetchRow {
        names: &["http_auth_type"],
        draw: Draw::One(|_, txn| {
            Some(Sample::Str(match credentials(txn)? {
                Credentials::Basic { .. } => b"Basic",
                Credentials::Bearer(_) => b"Bearer",
            }))
        }),
        ..TEXT
    },
    FetchRow {
        names: &["http_auth_user"],
        draw: Draw::One(|_, txn| match credentials(txn)? {
            Credentials::Basic { user, .. } => Some(Sample::Str(user)),
            Credentials::Bearer(_) => None,
        }),
        ..TEXT
    },
    FetchRow {
        names: &["http_auth_pass"],
        draw: Draw::One(|_, txn| match credentials(txn)? {
            Credentials::Basic { password, .. } => Some(Sample::Str(password)),
            Credentials::Bearer(_) => None,
        }),
        ..TEXT
    },
    FetchRow {
        names: &["http_auth"],
        args: &[ArgSpec::need(ArgKind::Users)],
        output: Type::Bool,
        draw: Draw::One(|args, txn| Some(Sample::Bool(user(args, txn).is_some()))),
        ..TEXT
    },
    FetchRow {
        names: &["http_auth_group"],
        args: &[ArgSpec::need(ArgKind::Users)],
        draw: Draw::Many(
            |args, txn| user(args, txn)?.groups.first().map(|group| Sample::Str(group)),
            |args, txn, test| {
                user(args, txn).is_some_and(|user| user.groups.iter().any(|group| test(Sample::Str(group))))
            },
        ),
        ..TEXT
    },
    FetchRow { names: &["http_auth_bearer"], args: &[ArgSpec::may(ArgKind::Field)], draw: Draw::One(bearer), ..TEXT },
];

/// What a client shows.
enum Credentials<'s> {
    /// RFC 7617.
    Basic { user: &'s [u8], password: &'s [u8] },
    /// RFC 6750.
    Bearer(&'s [u8]),
}

/// What the first `Authorization` says; `None` when it is of another scheme or makes no sense.
fn credentials<'s>(txn: &'s Txn<'_>) -> Option<Credentials<'s>> {
    let (scheme, rest) = scheme(txn.request.fields.first("authorization")?)?;
    if scheme.eq_ignore_ascii_case(b"bearer") {
        return Some(Credentials::Bearer(rest));
    }
    if !scheme.eq_ignore_ascii_case(b"basic") {
        return None;
    }
    let mut text = BumpVec::with_capacity_in(rest.len() / 4 * 3, txn.arena);
    from_base64(rest, &mut text)?;
    let text = text.into_bump_slice();
    let colon = memchr::memchr(b':', text)?;
    Some(Credentials::Basic { user: text.get(..colon)?, password: text.get(colon + 1..)? })
}

/// The user of a list that the client shows to be; `None`: it is none of them.
pub fn user_of<'l>(list: &'l Userlist, txn: &Txn<'_>) -> Option<&'l User> {
    match credentials(txn)? {
        Credentials::Basic { user, password } => list.user(user, password),
        Credentials::Bearer(_) => None,
    }
}

fn user<'s>(args: &'s Args, txn: &Txn<'_>) -> Option<&'s User> {
    user_of(args.users(0)?, txn)
}

/// The token. A field that is named as an argument always gives a value, an empty one when it has no token.
fn bearer<'s>(args: &'s Args, txn: &'s Txn<'_>) -> Option<Sample<'s>> {
    let Some(name) = args.field(0) else {
        return match credentials(txn)? {
            Credentials::Bearer(token) => Some(Sample::Str(token)),
            Credentials::Basic { .. } => None,
        };
    };
    let token =
        txn.request.fields.first(name).and_then(scheme).filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer"));
    Some(Sample::Str(token.map_or(b"", |(_, token)| token)))
}

/// The scheme and what follows its blanks.
fn scheme(value: &[u8]) -> Option<(&[u8], &[u8])> {
    let (scheme, rest) = value.split_at_checked(memchr::memchr(b' ', value)?)?;
    Some((scheme, rest.trim_ascii_start()))
}
