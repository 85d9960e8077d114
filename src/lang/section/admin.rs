//! The `admin` section.

use super::{Args, Kind, Loader, bind, head::Head};
use crate::{
    config::{Admin, BindAddress},
    lang::{
        code,
        diag::Diagnostic,
        in_words,
        keyword::{Row, Status, place::ADMIN},
        source::Span,
    },
};

/// The admin listener being put together.
#[derive(Default)]
pub(in crate::lang) struct AdminDraft {
    binds: Vec<(BindAddress, Span)>,
    /// `bind` is there, read or not.
    has_bind: bool,
    token: Option<String>,
    /// `token-file` is there, read or not.
    has_token: bool,
}

type Handler = fn(&mut Loader<'_>, &mut AdminDraft, Args<'_>);

const fn row(name: &'static str, status: Status<Handler>) -> Row<Handler> {
    Row { name, places: ADMIN, status }
}

/// Words of an `admin` section.
pub(in crate::lang) const TABLE: &[Row<Handler>] =
    &[row("bind", Status::Honoured(bind_line)), row("token-file", Status::Honoured(token_file))];

/// Reads the `admin` sections; together they are one.
pub(super) fn sections<'s>(loader: &mut Loader<'_>, heads: impl Iterator<Item = &'s Head<'s>>) {
    let mut made = AdminDraft::default();
    let mut last = None;
    for head in heads {
        last = Some(head.span);
        for line in &head.section.lines {
            let Some((name, status, _, args)) = loader.handler(&[TABLE], Kind::Admin, line, 0) else { continue };
            match status {
                Status::Honoured(handler) => handler(loader, &mut made, args),
                Status::Accepted(reason) => loader.accept(name, args.keyword(), reason),
                Status::Refused(hint) => loader.refuse(name, args.keyword(), hint),
            }
        }
    }
    let Some(span) = last else { return };
    if !made.has_bind {
        loader.report(
            Diagnostic::error(code::NO_BIND, span, "the `admin` section listens nowhere")
                .help("add a line such as `bind 127.0.0.1:9180`"),
        );
    }
    for (address, span) in &made.binds {
        if !made.has_token && !is_private(address) {
            loader.report(
                Diagnostic::error(code::OPEN_ADMIN, *span, format!("anyone who reaches {address} could purge"))
                    .help("add `token-file FILE`, or bind to 127.0.0.1, [::1] or a unix socket"),
            );
        }
    }
    let binds = made.binds.into_iter().map(|(address, span)| (address, loader.sources.place(span))).collect();
    loader.config.admin = Some(Admin { binds, token: made.token });
}

/// Whether only this machine reaches an address.
const fn is_private(address: &BindAddress) -> bool {
    match address {
        BindAddress::Tcp(address) => address.ip().to_canonical().is_loopback(),
        BindAddress::Unix(_) => true,
    }
}

/// `bind ADDRESS`.
fn bind_line(loader: &mut Loader<'_>, made: &mut AdminDraft, mut args: Args<'_>) {
    made.has_bind = true;
    let Some(word) = loader.need(&mut args, "an address such as `127.0.0.1:9180`") else { return };
    if !args.rest().is_empty() {
        loader.nothing_more(&args);
    }
    made.binds.extend(bind::addresses(loader, word));
}

/// `token-file FILE`: what `Authorization: Bearer` must carry, without the file's last line end.
fn token_file(loader: &mut Loader<'_>, made: &mut AdminDraft, mut args: Args<'_>) {
    let Some(word) = loader.need(&mut args, "the path of a file") else { return };
    loader.nothing_more(&args);
    made.has_token = true;
    let path = word.lossy();
    let bytes = match loader.outside.read(&path) {
        Ok(bytes) => bytes,
        Err(error) => {
            return loader.error(code::UNREADABLE, word.span, format!("`{path}` cannot be read: {}", in_words(&error)));
        }
    };
    let token = String::from_utf8(bytes).unwrap_or_default();
    let token = token.trim_end_matches(['\r', '\n']);
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return loader.report(
            Diagnostic::error(code::UNREADABLE, word.span, format!("`{path}` holds no token"))
                .help("write one line of visible ASCII characters into it, such as `openssl rand -hex 32` prints"),
        );
    }
    made.token = Some(token.to_owned());
}
