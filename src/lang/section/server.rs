//! `server`, `default-server`, `balance`.

use std::net::{IpAddr, SocketAddr};

use super::{
    Args, Draft, Loader,
    address::{self, Address, Wildcard},
    head, params,
};
use crate::{
    config::{Balance, Server, ServerAddress},
    lang::{
        ast::Word,
        code,
        diag::Diagnostic,
        keyword::{self, Status},
        source::Span,
        suggest,
    },
};

/// A server being put together.
#[derive(Clone, Copy, Default)]
pub(in crate::lang) struct ServerDraft {
    weight: Option<(usize, Span)>,
    disabled: bool,
}

/// `server NAME ADDRESS:PORT [PARAMETER …]`.
pub(in crate::lang) fn line(loader: &mut Loader<'_>, draft: &mut Draft, mut args: Args<'_>) {
    let Some(name) = loader.need(&mut args, "a name and an address") else { return };
    head::check_name(loader, name);
    let Some(word) = loader.need(&mut args, "an address such as `127.0.0.1:8080`") else { return };
    let address = address(loader, word);
    let mut made = draft.default_server;
    let keyword = args.keyword();
    parameters(loader, &mut made, args);
    let name_text = name.lossy().into_owned();
    if let Some((_, first)) = draft.servers.iter().find(|(server, _)| server.name == name_text) {
        let finding = super::names::duplicate("server", &name_text, name.span, *first);
        loader.report(finding);
    }
    let Some(address) = address else { return };
    if made.disabled {
        return;
    }
    let (weight, span) = made.weight.unwrap_or((1, keyword));
    equal_weights(loader, draft, weight, span);
    draft.servers.push((Server { name: name_text, address }, name.span));
}

fn address(loader: &mut Loader<'_>, word: &Word) -> Option<ServerAddress> {
    let whole = 0..word.text.len();
    match address::read(loader, word, whole, Wildcard::Refused)? {
        Address::Unix(path) => Some(ServerAddress::Unix(path)),
        Address::Tcp(hosts, ports) => {
            let host = hosts.first().copied()?;
            if ports.len() != 1 || *ports.start() == 0 {
                loader.error(code::BAD_ADDRESS, word.span, "a server needs one port from 1 to 65535");
                return None;
            }
            if is_nowhere(host) {
                loader.error(code::BAD_ADDRESS, word.span, format!("`{host}` is no address of a server"));
                return None;
            }
            Some(ServerAddress::Tcp(SocketAddr::new(host, *ports.start())))
        }
    }
}

const fn is_nowhere(host: IpAddr) -> bool {
    host.is_unspecified() || host.is_multicast()
}

fn parameters(loader: &mut Loader<'_>, made: &mut ServerDraft, args: Args<'_>) {
    params::read(loader, keyword::server::TABLE, "server", args, |loader, honour, word, values| {
        honour(loader, made, word, values);
    });
}

/// Servers take turns; weights that differ would need more.
fn equal_weights(loader: &mut Loader<'_>, draft: &mut Draft, weight: usize, span: Span) {
    let differs = draft.weights.iter().find(|(other, _)| *other != weight).map(|(_, other)| *other);
    if differs.is_some() {
        loader.refuse("server … weight", span, "servers take turns: give all of them the same weight, or none");
    }
    draft.weights.push((weight, span));
}

/// `weight N`, 1 to 256.
pub(in crate::lang) fn weight(loader: &mut Loader<'_>, made: &mut ServerDraft, word: &Word, values: &[Word]) {
    let Some(value) = values.first() else { return };
    if value.is("0") {
        return loader.refuse("server … weight 0", word.span, "write `disabled`, or leave the server out");
    }
    if let Some(weight) = loader.number(value, 1..=256) {
        made.weight = Some((weight, word.span.to(value.span)));
    }
}

/// `disabled`: the server gets no requests.
pub(in crate::lang) fn disabled(_: &mut Loader<'_>, made: &mut ServerDraft, _: &Word, _: &[Word]) {
    made.disabled = true;
}

/// `proto h1` is what servers are spoken to in.
pub(in crate::lang) fn proto(loader: &mut Loader<'_>, _: &mut ServerDraft, word: &Word, values: &[Word]) {
    if !values.first().is_some_and(|proto| proto.is("h1")) {
        loader.refuse("server … proto", word.span, "servers are spoken to in HTTP/1.1");
    }
}

/// `default-server PARAMETER …`: what the servers below begin with.
pub(in crate::lang) fn default_server(loader: &mut Loader<'_>, draft: &mut Draft, args: Args<'_>) {
    let mut made = draft.default_server;
    if args.peek().is_none() {
        loader.need(&mut args.clone(), "a parameter");
    }
    parameters(loader, &mut made, args);
    draft.default_server = made;
}

const METHODS: &[(&str, Status<Balance>)] = &[
    ("roundrobin", Status::Honoured(Balance::RoundRobin)),
    ("static-rr", Status::Honoured(Balance::RoundRobin)),
    ("leastconn", UNBUILT),
    ("first", UNBUILT),
    ("source", UNBUILT),
    ("uri", UNBUILT),
    ("url_param", UNBUILT),
    ("hdr", UNBUILT),
    ("random", UNBUILT),
    ("hash", UNBUILT),
    ("rdp-cookie", UNBUILT),
    ("log-hash", UNBUILT),
    ("sticky", UNBUILT),
];

const UNBUILT: Status<Balance> = Status::Refused("write `balance roundrobin`, or leave the line out");

/// `balance [METHOD …]`.
pub(in crate::lang) fn balance(loader: &mut Loader<'_>, draft: &mut Draft, mut args: Args<'_>) {
    let Some(word) = args.next() else { return };
    let text = word.lossy();
    let name = text.split_once('(').map_or(&*text, |(name, _)| name);
    match METHODS.iter().find(|(known, _)| *known == name) {
        Some((_, Status::Honoured(method))) => {
            loader.nothing_more(&args);
            draft.balance = *method;
        }
        Some((name, Status::Refused(hint))) => loader.refuse(&format!("balance {name}"), word.span, hint),
        Some((name, Status::Accepted(reason))) => loader.accept(&format!("balance {name}"), word.span, reason),
        None => {
            let nearest = suggest::nearest(name, METHODS.iter().map(|(name, _)| *name));
            let message = format!("unknown word `{name}` behind `balance`");
            loader.report(Diagnostic::error(code::UNKNOWN_WORD, word.span, message).did_you_mean(nearest));
        }
    }
}
