//! Arguments of fetches and converters: what a row asks for, and what it gets.

use std::{net::IpAddr, sync::Arc};

use super::{
    converter::{map::Map, regsub::Substitution},
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
    /// `true`, `false`, `1`, `0`, `on`, `off`, `yes`, `no`.
    Bool,
    /// An address.
    Ip,
    /// A variable, `scope.name`.
    Var,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A file, read at load.
    File,
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
    /// What is in a file.
    File(Arc<[u8]>),
    /// What `map` made of its file.
    Map(Arc<Map>),
    /// What `regsub` made of its arguments.
    Substitution(Arc<Substitution>),
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

    /// The variable at `index`.
    pub fn var(&self, index: usize) -> Option<VarId> {
        match self.at(index) {
            Arg::Var(id) => Some(*id),
            _ => None,
        }
    }

    /// The first variable among the arguments.
    pub fn first_var(&self) -> Option<VarId> {
        self.0.iter().find_map(|arg| match arg {
            Arg::Var(id) => Some(*id),
            _ => None,
        })
    }
}
