//! What the rule file itself says, and variables (HAProxy manual §7.3.2).

use super::{ArgSpec, Args, Draw, FetchRow, Method, Sample, Source, TEXT, Txn, Type};
use crate::rule::args::{Arg, ArgKind};

const CONSTANT: FetchRow = FetchRow { source: Source::Constant, draw: Draw::One(given), ..TEXT };

const ACL: ArgSpec = ArgSpec::may(ArgKind::Acl);
const ACLS: &[ArgSpec] = &[ArgSpec::need(ArgKind::Acl), ACL, ACL, ACL, ACL, ACL, ACL, ACL, ACL, ACL, ACL, ACL];

pub(super) const ROWS: &[FetchRow] = &[
    FetchRow {
        names: &["always_true", "req.proto_http", "req_proto_http", "wait_end"],
        output: Type::Bool,
        draw: Draw::One(|_, _| Some(Sample::Bool(true))),
        ..CONSTANT
    },
    FetchRow {
        names: &["always_false"],
        output: Type::Bool,
        draw: Draw::One(|_, _| Some(Sample::Bool(false))),
        ..CONSTANT
    },
    FetchRow {
        names: &["quic_enabled"],
        output: Type::Bool,
        draw: Draw::One(|_, _| Some(Sample::Bool(false))),
        ..CONSTANT
    },
    // There is one process, and it is the first.
    FetchRow {
        names: &["nbproc", "proc"],
        output: Type::Int,
        draw: Draw::One(|_, _| Some(Sample::Int(1))),
        ..CONSTANT
    },
    FetchRow { names: &["env"], args: &[ArgSpec::need(ArgKind::Env)], ..CONSTANT },
    FetchRow {
        names: &["bin"],
        args: &[ArgSpec::need(ArgKind::Hex)],
        output: Type::Bin,
        draw: Draw::One(|args, _| args.text(0).map(Sample::Bin)),
        ..CONSTANT
    },
    FetchRow {
        names: &["acl"],
        args: ACLS,
        output: Type::Bool,
        source: Source::Gateway,
        draw: Draw::One(|args, txn| Some(Sample::Bool(args.acls().all(|(negated, acl)| acl.holds(txn) != negated)))),
        ..TEXT
    },
    FetchRow { names: &["str"], args: &[ArgSpec::need(ArgKind::Text)], ..CONSTANT },
    FetchRow { names: &["int"], args: &[ArgSpec::need(ArgKind::Int)], output: Type::Int, ..CONSTANT },
    FetchRow { names: &["bool"], args: &[ArgSpec::need(ArgKind::Bool)], output: Type::Bool, ..CONSTANT },
    FetchRow { names: &["ipv4", "ipv6"], args: &[ArgSpec::need(ArgKind::Ip)], output: Type::Ip, ..CONSTANT },
    FetchRow {
        names: &["meth"],
        args: &[ArgSpec::need(ArgKind::Text)],
        output: Type::Method,
        implied: Some(Method::Method),
        draw: Draw::One(|args, _| args.text(0).map(Sample::Method)),
        ..CONSTANT
    },
    FetchRow {
        names: &["var"],
        args: &[ArgSpec::need(ArgKind::Var), ArgSpec::may(ArgKind::Text)],
        output: Type::Any,
        source: Source::Variable,
        draw: Draw::One(variable),
        ..TEXT
    },
];

fn given<'s>(args: &'s Args, _: &'s Txn<'_>) -> Option<Sample<'s>> {
    match args.at(0) {
        Arg::Text(text) => Some(Sample::Str(text)),
        Arg::Int(value) => Some(Sample::Int(*value)),
        Arg::Bool(value) => Some(Sample::Bool(*value)),
        Arg::Ip(address) => Some(Sample::Ip(*address)),
        _ => None,
    }
}

fn variable<'s>(args: &'s Args, txn: &'s Txn<'_>) -> Option<Sample<'s>> {
    txn.var(args.var(0)?).or_else(|| args.text(1).map(Sample::Str))
}
