//! The client's connection and its TLS session (HAProxy manual §7.3.3, §7.3.4).

use std::net::SocketAddr;

use super::{Draw, FetchRow, Sample, Source, TEXT, Type};

const CONNECTION: FetchRow = FetchRow { source: Source::Connection, ..TEXT };

pub(super) const ROWS: &[FetchRow] = &[
    FetchRow { names: &["src"], output: Type::Ip, draw: Draw::One(|_, txn| txn.client.src.map(address)), ..CONNECTION },
    FetchRow {
        names: &["src_port"],
        output: Type::Int,
        draw: Draw::One(|_, txn| txn.client.src.map(port)),
        ..CONNECTION
    },
    FetchRow { names: &["dst"], output: Type::Ip, draw: Draw::One(|_, txn| txn.client.dst.map(address)), ..CONNECTION },
    FetchRow {
        names: &["dst_port"],
        output: Type::Int,
        draw: Draw::One(|_, txn| txn.client.dst.map(port)),
        ..CONNECTION
    },
    FetchRow {
        names: &["ssl_fc"],
        output: Type::Bool,
        draw: Draw::One(|_, txn| Some(Sample::Bool(txn.client.tls.is_some()))),
        ..CONNECTION
    },
    FetchRow {
        names: &["ssl_fc_has_sni"],
        output: Type::Bool,
        draw: Draw::One(|_, txn| {
            Some(Sample::Bool(txn.client.tls.as_ref().is_some_and(|session| session.sni.is_some())))
        }),
        ..CONNECTION
    },
    FetchRow {
        names: &["ssl_fc_sni"],
        draw: Draw::One(|_, txn| Some(Sample::Str(txn.client.tls.as_ref()?.sni.as_ref()?.as_bytes()))),
        ..CONNECTION
    },
];

fn address<'s>(of: SocketAddr) -> Sample<'s> {
    Sample::Ip(of.ip())
}

fn port<'s>(of: SocketAddr) -> Sample<'s> {
    Sample::Int(of.port().into())
}
