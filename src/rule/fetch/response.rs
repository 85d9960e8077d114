//! The response's status line (HAProxy manual §7.3.6).

use super::{Draw, FetchRow, Sample, Source, TEXT, Type, request::version};

const RESPONSE: FetchRow = FetchRow { source: Source::Response, ..TEXT };

pub(super) const ROWS: &[FetchRow] = &[
    FetchRow {
        names: &["status"],
        output: Type::Int,
        draw: Draw::One(|_, txn| txn.response.as_deref().map(|response| Sample::Int(response.status.into()))),
        ..RESPONSE
    },
    FetchRow {
        names: &["res.ver", "resp_ver"],
        draw: Draw::One(|_, txn| txn.response.as_deref().map(|response| Sample::Str(version(response.version)))),
        ..RESPONSE
    },
];
