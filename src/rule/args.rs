//! Arguments of fetches and converters: what a row asks for, and what it gets.

use std::{net::IpAddr, sync::Arc};

use super::{
    acl::Acl,
    converter::{date::Clock, digest::Algorithm, map::Map, query::Path, regsub::Substitution},
    list::{self, List},
    phase::Stage,
    txn::Txn,
    users::Userlist,
    vars::VarId,
};

/// One argument that a row takes.
#[derive(Clone, Copy, Debug)]
pub struct ArgSpec {
    /// What it is.
    pub kind: ArgKind,
    /// Whether it must be there. Optional ones stand last.
    pub required: bool,
}

impl ArgSpec {
    /// An argument that must be there.
    pub const fn need(kind: ArgKind) -> Self {
        Self { kind, required: true }
    }

    /// An argument that may be left out.
    pub const fn may(kind: ArgKind) -> Self {
        Self { kind, required: false }
    }
}

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgKind {
    /// Any text.
    Text,
    /// A field name (RFC 9110 §5.1).
    Field,
    /// A decimal integer.
    Int,
    /// A decimal integer or a variable.
    IntOrVar,
    /// Any text or a variable.
    TextOrVar,
    /// A secret, the path of a key file, or a variable.
    Key,
    /// `true`, `false`, `1`, `0`, `on`, `off`, `yes`, `no`.
    Bool,
    /// An address.
    Ip,
    /// A variable, `scope.name`.
    Var,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A file of keys and values, read at load.
    Map,
    /// The name of an environment variable, read at load; absent when it is not set.
    Env,
    /// Bytes as hexadecimal digits.
    Hex,
    /// The name of a frontend; the proxy at hand when left out.
    Frontend,
    /// The name of a backend; the proxy at hand when left out.
    Backend,
    /// The name of an ACL, negated behind a `!`.
    Acl,
    /// The name of a table; that of the proxy at hand when left out.
    Table,
    /// The name of a table; absent when left out.
    OtherTable,
    /// A slot that `track-sc0` and its kin fill: 0, 1 or 2.
    Slot,
    /// An element of an array of counters, from 0.
    Index,
    /// The name of a `userlist` section.
    Users,
}

/// One argument as a row's code gets it.
#[derive(Clone, Debug)]
pub enum Arg {
    /// Left out.
    Absent,
    /// Text.
    Text(Box<[u8]>),
    /// A field name.
    Field(Box<str>),
    /// An integer.
    Int(i64),
    /// True or false.
    Bool(bool),
    /// An address.
    Ip(IpAddr),
    /// A variable.
    Var(VarId),
    /// A frontend's place among the frontends, a backend's among the backends.
    Proxy(usize),
    /// A table's place in the configuration's list.
    Table(usize),
    /// An ACL, perhaps negated.
    Acl(bool, Arc<Acl>),
    /// The users of a section.
    Users(Arc<Userlist>),
    /// A file of keys and values.
    List(Arc<List>),
    /// A secret or the path of a key file.
    Key(KeyText),
    /// The digest of `digest`, `hmac` and `sha2`.
    Digest(Algorithm),
    /// The compiled path of `json_query`.
    Path(Arc<Path>),
    /// What `ltime` and `utime` made of their format.
    Clock(Arc<Clock>),
    /// What `map` made of its file.
    Map(Arc<Map>),
    /// What `regsub` made of its arguments.
    Substitution(Arc<Substitution>),
}

/// A secret or the path of a key file.
#[derive(Clone, Debug)]
pub struct KeyText {
    /// As written.
    pub text: Box<[u8]>,
    /// What is in the file; `None` when there is none that could be read.
    pub file: Option<Arc<[u8]>>,
}

/// Why a row cannot work with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgFault {
    /// Which argument, from 0.
    pub arg: usize,
    /// What is wrong with it.
    pub message: String,
    /// What to write instead; may be empty.
    pub help: String,
    /// The entries that are at fault, when the argument is a list.
    pub entries: Vec<list::Fault>,
}

impl ArgFault {
    /// `help` may be empty.
    pub fn new(arg: usize, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { arg, message: message.into(), help: help.into(), entries: Vec::new() }
    }

    /// Entries of a list are at fault.
    pub fn of_entries(arg: usize, entries: Vec<list::Fault>) -> Self {
        Self { entries, ..Self::new(arg, "the file cannot be used", "") }
    }
}

/// The arguments of one use of a fetch or converter, in the order of its row.
#[derive(Clone, Debug, Default)]
pub struct Args(Box<[Arg]>);

impl Args {
    /// These arguments.
    pub fn new(args: Vec<Arg>) -> Self {
        Self(args.into())
    }

    /// The argument at `index`; [`Arg::Absent`] when it was left out.
    pub fn at(&self, index: usize) -> &Arg {
        self.0.get(index).unwrap_or(&Arg::Absent)
    }

    /// The text at `index`.
    pub fn text(&self, index: usize) -> Option<&[u8]> {
        match self.at(index) {
            Arg::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The field name at `index`.
    pub fn field(&self, index: usize) -> Option<&str> {
        match self.at(index) {
            Arg::Field(name) => Some(name),
            _ => None,
        }
    }

    /// The integer at `index`.
    pub fn int(&self, index: usize) -> Option<i64> {
        match self.at(index) {
            Arg::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The integer at `index`, from its variable where it is one.
    pub fn number(&self, index: usize, txn: &Txn<'_>) -> Option<i64> {
        match self.at(index) {
            Arg::Var(id) => txn.var(*id)?.int(),
            _ => self.int(index),
        }
    }

    /// The variable at `index`.
    pub fn var(&self, index: usize) -> Option<VarId> {
        match self.at(index) {
            Arg::Var(id) => Some(*id),
            _ => None,
        }
    }

    /// The place of the proxy at `index`.
    pub fn proxy(&self, index: usize) -> Option<usize> {
        match self.at(index) {
            Arg::Proxy(place) => Some(*place),
            _ => None,
        }
    }

    /// The place of the table at `index`.
    pub fn table(&self, index: usize) -> Option<usize> {
        match self.at(index) {
            Arg::Table(place) => Some(*place),
            _ => None,
        }
    }

    /// The users at `index`.
    pub fn users(&self, index: usize) -> Option<&Userlist> {
        match self.at(index) {
            Arg::Users(users) => Some(users),
            _ => None,
        }
    }

    /// The small number at `index`: a slot or the index of an element.
    pub fn place(&self, index: usize) -> Option<usize> {
        self.int(index).and_then(|value| usize::try_from(value).ok())
    }

    /// The ACLs among the arguments, each with whether it is negated.
    pub fn acls(&self) -> impl Iterator<Item = (bool, &Acl)> {
        self.0.iter().filter_map(|arg| match arg {
            Arg::Acl(negated, acl) => Some((*negated, &**acl)),
            _ => None,
        })
    }

    /// Whether no map among the arguments is changed by rules.
    pub fn is_settled(&self) -> bool {
        self.0.iter().all(|arg| !matches!(arg, Arg::Map(map) if map.changes()))
    }

    /// The latest stage that any of the arguments needs.
    pub fn stage(&self) -> Stage {
        self.acls().map(|(_, acl)| acl.stage()).max().unwrap_or(Stage::Connection)
    }

    /// The variables among the arguments.
    pub fn vars(&self) -> impl Iterator<Item = VarId> {
        self.0.iter().filter_map(|arg| match arg {
            Arg::Var(id) => Some(*id),
            _ => None,
        })
    }
}
