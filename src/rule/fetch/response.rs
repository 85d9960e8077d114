//! The response's status line (HAProxy manual §7.3.6).

use super::{
    Args, Draw, FetchRow, Sample, Source, TEXT, Txn, Type,
    request::{major, version},
};

const RESPONSE: FetchRow = FetchRow { source: Source::Response, ..TEXT };
const LASTING: FetchRow = FetchRow { lasting: true, ..RESPONSE };

pub(super) const ROWS: &[FetchRow] = &[
    FetchRow { names: &["status"], output: Type::Int, draw: Draw::One(status), ..LASTING },
    // What the client gets, as far as it is known.
    FetchRow { names: &["txn.status"], output: Type::Int, draw: Draw::One(status), ..LASTING },
    FetchRow {
        names: &["server_status"],
        output: Type::Int,
        source: Source::Delivery,
        draw: Draw::One(|_, txn| txn.notes.server_status.map(|status| Sample::Int(status.into()))),
        ..RESPONSE
    },
    FetchRow {
        names: &["capture.res.ver"],
        draw: Draw::One(|_, txn| {
            let version = txn.response.as_deref().map(|response| response.version);
            version.or(txn.notes.response_version).map(|version| Sample::Str(major(version)))
        }),
        ..LASTING
    },
    FetchRow {
        names: &["res.ver", "resp_ver"],
        draw: Draw::One(|_, txn| txn.response.as_deref().map(|response| Sample::Str(version(response.version)))),
        ..RESPONSE
    },
];

fn status<'s>(_: &'s Args, txn: &'s Txn<'_>) -> Option<Sample<'s>> {
    let ended = txn.notes.progress.end.map(|end| end.status).filter(|status| *status > 0);
    let status = txn.response.as_deref().map(|response| response.status);
    status.or(ended).map(|status| Sample::Int(status.into()))
}
