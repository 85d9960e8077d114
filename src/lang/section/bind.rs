//! `bind`: where a frontend listens, and TLS on it.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use super::{
    Args, Draft, Loader,
    address::{self, Address, Wildcard},
    params,
};
use crate::{
    config::{Bind, BindAddress, BindTls},
    lang::{ast::Word, code, diag::Diagnostic, keyword, source::Span, suggest},
    rule::BindName,
};

/// Ports of one range; more is a slip of the pen.
const MOST_PORTS: usize = 1024;

/// A bind being put together.
#[derive(Default)]
pub(in crate::lang) struct BindDraft {
    ssl: Option<Span>,
    /// The first word that means something only with `ssl`.
    tls_word: Option<Span>,
    certificates: Vec<PathBuf>,
    defaults: Vec<PathBuf>,
    alpn: Vec<String>,
    strict_sni: bool,
    name: Option<Arc<str>>,
    number: Option<u32>,
}

/// `bind ADDRESS[,…] [PARAMETER …]`.
pub(in crate::lang) fn line(loader: &mut Loader<'_>, draft: &mut Draft, mut args: Args<'_>) {
    let Some(word) = loader.need(&mut args, "an address such as `:80`") else { return };
    let mut made = BindDraft::default();
    params::read(loader, keyword::bind::TABLE, "bind", args, |loader, honour, word, values| {
        honour(loader, &mut made, word, values);
    });
    add(loader, draft, word, made);
}

/// `listen NAME ADDRESS`, HAProxy's form before 1.6.
pub(super) fn in_head(loader: &mut Loader<'_>, draft: &mut Draft, word: &Word) {
    let message = format!("the address behind the name is read as a line `bind {}`", word.lossy());
    loader.report(Diagnostic::note(code::TRANSLATED, word.span, message));
    add(loader, draft, word, BindDraft::default());
}

fn add(loader: &mut Loader<'_>, draft: &mut Draft, word: &Word, made: BindDraft) {
    let (name, number) = (made.name.clone(), made.number);
    let tls = tls(loader, made);
    let place = loader.sources.place(word.span);
    let addresses = addresses(loader, word);
    if number.is_some() && addresses.len() > 1 {
        loader.error(code::DUPLICATE, word.span, "an `id` is for one address, and these are several");
    }
    let number = number.filter(|_| addresses.len() < 2);
    for (address, span) in addresses {
        let name = BindName { number: number.unwrap_or_default(), name: name.clone() };
        draft.binds.push((Bind { address, name, tls: tls.clone(), place: place.clone() }, span));
    }
}

/// The addresses of a list with commas; several for a range of ports.
pub(super) fn addresses(loader: &mut Loader<'_>, word: &Word) -> Vec<(BindAddress, Span)> {
    let mut found = Vec::new();
    for piece in address::pieces(word) {
        let span = word.part(piece.clone());
        match address::read(loader, word, piece, Wildcard::Allowed) {
            Some(Address::Unix(path)) => found.push((BindAddress::Unix(path), span)),
            Some(Address::Tcp(_, ports)) if ports.len() > MOST_PORTS => {
                loader.error(code::BAD_ADDRESS, span, format!("more than {MOST_PORTS} ports in one range"));
            }
            Some(Address::Tcp(hosts, ports)) => {
                let host = hosts.first().copied();
                found.extend(ports.filter_map(|port| Some((BindAddress::Tcp(SocketAddr::new(host?, port)), span))));
            }
            None => {}
        }
    }
    found
}

fn tls(loader: &mut Loader<'_>, made: BindDraft) -> Option<BindTls> {
    let Some(ssl) = made.ssl else {
        if let Some(span) = made.tls_word {
            loader.report(
                Diagnostic::warning(code::TLS, span, "this has no effect without `ssl`").help("add the word `ssl`"),
            );
        }
        return None;
    };
    let certificates: Vec<_> = made.defaults.into_iter().chain(made.certificates).collect();
    if certificates.is_empty() {
        loader.report(
            Diagnostic::error(code::TLS, ssl, "`ssl` needs a certificate")
                .help("add `crt FILE`: a PEM file with the certificate, its chain and the private key"),
        );
        return None;
    }
    Some(BindTls { certificates, alpn: made.alpn, strict_sni: made.strict_sni })
}

/// `name`, which rules read as `so_name`.
pub(in crate::lang) fn name(_: &mut Loader<'_>, made: &mut BindDraft, _: &Word, values: &[Word]) {
    made.name = values.first().map(|name| name.lossy().into());
}

/// `id`, which rules read as `so_id`.
pub(in crate::lang) fn id(loader: &mut Loader<'_>, made: &mut BindDraft, _: &Word, values: &[Word]) {
    let Some(word) = values.first() else { return };
    match number(word) {
        Some(number) => made.number = Some(number),
        None => loader.error(code::BAD_VALUE, word.span, "an `id` is a number from 1"),
    }
}

/// A number from 1.
pub(super) fn number(word: &Word) -> Option<u32> {
    word.lossy().parse().ok().filter(|number| *number > 0)
}

pub(in crate::lang) fn ssl(_: &mut Loader<'_>, made: &mut BindDraft, word: &Word, _: &[Word]) {
    made.ssl = Some(word.span);
}

pub(in crate::lang) fn crt(loader: &mut Loader<'_>, made: &mut BindDraft, word: &Word, values: &[Word]) {
    made.tls_word.get_or_insert(word.span);
    made.certificates.extend(values.iter().map(|path| certificate(loader, path)));
}

pub(in crate::lang) fn default_crt(loader: &mut Loader<'_>, made: &mut BindDraft, word: &Word, values: &[Word]) {
    made.tls_word.get_or_insert(word.span);
    made.defaults.extend(values.iter().map(|path| certificate(loader, path)));
}

fn certificate(loader: &mut Loader<'_>, word: &Word) -> PathBuf {
    let path = PathBuf::from(word.lossy().into_owned());
    // `join` leaves an absolute path as it is.
    let path = loader.crt_base.as_ref().map_or(path.clone(), |base| base.join(path));
    for fault in loader.outside.certificate_faults(&path) {
        loader.error(code::CERTIFICATE, word.span, format!("the certificate cannot be used: {fault}"));
    }
    path
}

pub(in crate::lang) fn strict_sni(_: &mut Loader<'_>, made: &mut BindDraft, word: &Word, _: &[Word]) {
    made.tls_word.get_or_insert(word.span);
    made.strict_sni = true;
}

pub(in crate::lang) fn alpn(loader: &mut Loader<'_>, made: &mut BindDraft, word: &Word, values: &[Word]) {
    made.tls_word.get_or_insert(word.span);
    made.alpn.clear();
    let Some(list) = values.first() else { return };
    for piece in address::pieces(list) {
        match list.text.get(piece.clone()) {
            Some(name @ (b"h2" | b"http/1.1" | b"http/1.0")) => {
                made.alpn.push(String::from_utf8_lossy(name).into_owned());
            }
            name => {
                let name = String::from_utf8_lossy(name.unwrap_or_default()).into_owned();
                let nearest = suggest::nearest(&name, ["h2", "http/1.1"].into_iter());
                let message = format!("`{name}` is no protocol that is spoken here");
                loader.report(
                    Diagnostic::error(code::TLS, list.part(piece), message)
                        .did_you_mean(nearest)
                        .help("write `alpn h2,http/1.1`, or one of them"),
                );
            }
        }
    }
}

pub(in crate::lang) fn no_alpn(_: &mut Loader<'_>, made: &mut BindDraft, _: &Word, _: &[Word]) {
    made.alpn.clear();
}

/// `proto h1` is what a bind in clear text speaks.
pub(in crate::lang) fn proto(loader: &mut Loader<'_>, _: &mut BindDraft, word: &Word, values: &[Word]) {
    if !values.first().is_some_and(|proto| proto.is("h1")) {
        let span = values.last().map_or(word.span, |last| word.span.to(last.span));
        loader.refuse("bind … proto", span, "HTTP/2 is spoken over TLS: write `ssl crt FILE alpn h2,http/1.1`");
    }
}

/// `verify none` is what happens.
pub(in crate::lang) fn verify(loader: &mut Loader<'_>, _: &mut BindDraft, word: &Word, values: &[Word]) {
    if !values.first().is_some_and(|verify| verify.is("none")) {
        loader.refuse("bind … verify", word.span, "certificates of clients are not asked for yet");
    }
}

/// TLS 1.2 is the oldest version in any case.
pub(in crate::lang) fn ssl_min_ver(loader: &mut Loader<'_>, _: &mut BindDraft, word: &Word, values: &[Word]) {
    let Some(version) = values.first() else { return };
    match version.text.as_slice() {
        b"TLSv1.2" => {}
        b"SSLv3" | b"TLSv1.0" | b"TLSv1.1" => {
            loader.accept("bind … ssl-min-ver", word.span, "TLS 1.2 is the oldest version that is spoken");
        }
        b"TLSv1.3" => loader.refuse("bind … ssl-min-ver TLSv1.3", word.span, "TLS 1.2 is always offered too"),
        _ => unknown_version(loader, version),
    }
}

/// TLS 1.3 is the newest version in any case.
pub(in crate::lang) fn ssl_max_ver(loader: &mut Loader<'_>, _: &mut BindDraft, word: &Word, values: &[Word]) {
    let Some(version) = values.first() else { return };
    match version.text.as_slice() {
        b"TLSv1.3" => {}
        b"SSLv3" | b"TLSv1.0" | b"TLSv1.1" | b"TLSv1.2" => {
            loader.refuse("bind … ssl-max-ver", word.span, "TLS 1.3 is always offered");
        }
        _ => unknown_version(loader, version),
    }
}

fn unknown_version(loader: &mut Loader<'_>, version: &Word) {
    let known = ["SSLv3", "TLSv1.0", "TLSv1.1", "TLSv1.2", "TLSv1.3"];
    let nearest = suggest::nearest(&version.lossy(), known.into_iter());
    let message = format!("`{}` is no version of TLS", version.lossy());
    loader.report(Diagnostic::error(code::TLS, version.span, message).did_you_mean(nearest));
}
