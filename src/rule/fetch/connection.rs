//! The client's connection (HAProxy manual §7.3.3).

use std::net::SocketAddr;

use super::{Draw, FetchRow, Sample, Source, TEXT, Txn, Type};
use crate::{message::Version, rule::fact::Fact};

const CONNECTION: FetchRow = FetchRow { source: Source::Connection, ..TEXT };
const ADDRESS: FetchRow = FetchRow { output: Type::Ip, ..CONNECTION };
const NUMBER: FetchRow = FetchRow { output: Type::Int, ..CONNECTION };
const FLAG: FetchRow = FetchRow { output: Type::Bool, ..CONNECTION };

pub(super) const ROWS: &[FetchRow] = &[
    FetchRow { names: &["src", "fc_src"], draw: Draw::One(|_, txn| txn.client.src.map(address)), ..ADDRESS },
    FetchRow { names: &["src_port", "fc_src_port"], draw: Draw::One(|_, txn| txn.client.src.map(port)), ..NUMBER },
    FetchRow {
        names: &["src_is_local", "fc_src_is_local"],
        draw: Draw::One(|_, txn| is_local(txn, txn.client.src)),
        ..FLAG
    },
    FetchRow { names: &["dst", "fc_dst"], draw: Draw::One(|_, txn| txn.client.dst.map(address)), ..ADDRESS },
    FetchRow { names: &["dst_port", "fc_dst_port"], draw: Draw::One(|_, txn| txn.client.dst.map(port)), ..NUMBER },
    FetchRow {
        names: &["dst_is_local", "fc_dst_is_local"],
        draw: Draw::One(|_, txn| is_local(txn, txn.client.dst)),
        ..FLAG
    },
    FetchRow {
        names: &["so_id"],
        draw: Draw::One(|_, txn| txn.client.bind.as_ref().map(|bind| Sample::Int(bind.number.into()))),
        ..NUMBER
    },
    FetchRow {
        names: &["so_name"],
        draw: Draw::One(|_, txn| Some(Sample::Str(txn.client.bind.as_ref()?.name.as_ref()?.as_bytes()))),
        ..CONNECTION
    },
    FetchRow {
        names: &["fc_http_major"],
        draw: Draw::One(|_, txn| Some(Sample::Int(if txn.request.version == Version::Http2 { 2 } else { 1 }))),
        ..NUMBER
    },
    // Where rules run or a line is written, the connection has come about.
    FetchRow { names: &["fc_err"], draw: Draw::One(|_, _| Some(Sample::Int(0))), ..NUMBER },
    FetchRow { names: &["fc_err_str"], draw: Draw::One(|_, _| Some(Sample::Str(b"Success"))), ..CONNECTION },
    // No bind takes the PROXY protocol yet.
    FetchRow { names: &["fc_rcvd_proxy"], draw: Draw::One(|_, _| Some(Sample::Bool(false))), ..FLAG },
];

fn address<'s>(of: SocketAddr) -> Sample<'s> {
    Sample::Ip(of.ip())
}

fn port<'s>(of: SocketAddr) -> Sample<'s> {
    Sample::Int(of.port().into())
}

fn is_local<'s>(txn: &'s Txn<'_>, address: Option<SocketAddr>) -> Option<Sample<'s>> {
    txn.env.fact(Fact::IsLocal(address?.ip()))
}
