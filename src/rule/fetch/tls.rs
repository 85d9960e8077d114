//! The client's TLS session (HAProxy manual §7.3.4).

use super::{Draw, FetchRow, Sample, Source, TEXT, Txn, Type};
use crate::rule::Tls;

const SESSION: FetchRow = FetchRow { source: Source::Connection, ..TEXT };
const FLAG: FetchRow = FetchRow { output: Type::Bool, ..SESSION };
const NUMBER: FetchRow = FetchRow { output: Type::Int, ..SESSION };

pub(super) const ROWS: &[FetchRow] = &[
    FetchRow { names: &["ssl_fc"], draw: Draw::One(|_, txn| Some(Sample::Bool(txn.client.tls.is_some()))), ..FLAG },
    FetchRow {
        names: &["ssl_fc_has_sni"],
        draw: Draw::One(|_, txn| Some(Sample::Bool(session(txn).is_some_and(|session| session.sni.is_some())))),
        ..FLAG
    },
    FetchRow {
        names: &["ssl_fc_sni"],
        draw: Draw::One(|_, txn| Some(Sample::Str(session(txn)?.sni.as_ref()?.as_bytes()))),
        ..SESSION
    },
    FetchRow {
        names: &["ssl_fc_alpn"],
        draw: Draw::One(|_, txn| session(txn)?.alpn.map(|protocol| Sample::Str(protocol.as_bytes()))),
        ..SESSION
    },
    FetchRow {
        names: &["ssl_fc_protocol"],
        draw: Draw::One(|_, txn| Some(Sample::Str(session(txn)?.protocol.as_bytes()))),
        ..SESSION
    },
    FetchRow {
        names: &["ssl_fc_cipher"],
        draw: Draw::One(|_, txn| Some(Sample::Str(session(txn)?.cipher.as_bytes()))),
        ..SESSION
    },
    // The ciphers of today use the whole of their key.
    FetchRow {
        names: &["ssl_fc_use_keysize", "ssl_fc_alg_keysize"],
        draw: Draw::One(|_, txn| Some(Sample::Int(session(txn)?.key_bits.into()))),
        ..NUMBER
    },
    FetchRow {
        names: &["ssl_fc_is_resumed"],
        draw: Draw::One(|_, txn| Some(Sample::Bool(session(txn).is_some_and(|session| session.resumed)))),
        ..FLAG
    },
    // Certificates of clients are not asked for, and early data is not accepted.
    FetchRow {
        names: &["ssl_fc_has_crt", "ssl_c_used", "ssl_fc_has_early"],
        draw: Draw::One(|_, txn| session(txn).map(|_| Sample::Bool(false))),
        ..FLAG
    },
    FetchRow {
        names: &["ssl_c_verify", "ssl_c_err", "ssl_c_ca_err", "ssl_fc_err"],
        draw: Draw::One(|_, txn| session(txn).map(|_| Sample::Int(0))),
        ..NUMBER
    },
];

fn session<'s>(txn: &'s Txn<'_>) -> Option<&'s Tls> {
    txn.client.tls.as_ref()
}
