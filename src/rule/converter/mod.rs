//! Steps on a sample: one row a converter (HAProxy manual §7.3.1).

mod address;
mod capture;
pub(super) mod coding;
pub mod date;
pub mod digest;
mod forwarded;
pub(super) mod hash;
mod json;
mod language;
pub mod map;
mod number;
mod piece;
pub mod query;
pub mod regsub;
pub(super) mod strftime;
pub(super) mod table;
pub(super) mod text;
mod token;
mod variable;

use std::fmt;

use bumpalo::collections::Vec as BumpVec;

use super::{
    args::{Arg, ArgFault, ArgSpec, Args},
    sample::{Sample, Type},
    txn::Txn,
};

/// One converter.
pub struct ConverterRow {
    /// How it is written; the first name is the one that messages use.
    pub names: &'static [&'static str],
    /// What it takes.
    pub args: &'static [ArgSpec],
    /// The type it works on; samples are cast to it.
    pub input: Type,
    /// What it gives.
    pub output: Type,
    /// What is done with the arguments at load.
    pub prepare: fn(Vec<Arg>) -> Result<Vec<Arg>, ArgFault>,
    /// What it does; `None` when it fails. It is given a sample of the type `input`.
    pub apply: Apply,
}

/// See [`ConverterRow::apply`].
pub type Apply = for<'s, 't> fn(&'s Args, Sample<'s>, &'s Txn<'t>) -> Option<Sample<'s>>;

impl ConverterRow {
    /// The name that messages use.
    pub fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or_default()
    }
}

impl fmt::Debug for ConverterRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Every row.
pub fn rows() -> impl Iterator<Item = &'static ConverterRow> {
    [
        number::ROWS,
        address::ROWS,
        text::ROWS,
        piece::ROWS,
        regsub::ROWS,
        language::ROWS,
        variable::ROWS,
        capture::ROWS,
        hash::ROWS,
        digest::ROWS,
        coding::ROWS,
        json::ROWS,
        query::ROWS,
        token::ROWS,
        date::ROWS,
        forwarded::ROWS,
        map::ROWS,
        table::COUNTERS,
        table::ARRAYS,
        table::ROWS,
    ]
    .into_iter()
    .flatten()
}

/// The converter called `name`.
pub fn find(name: &[u8]) -> Option<&'static ConverterRow> {
    rows().find(|row| row.names.iter().any(|one| one.as_bytes() == name))
}

/// What rows leave out: no arguments, text to text.
const TEXT: ConverterRow = ConverterRow {
    names: &[],
    args: &[],
    input: Type::Str,
    output: Type::Str,
    prepare: Ok,
    apply: |_, sample, _| Some(sample),
};

/// The text of a sample that has been cast to [`Type::Str`].
fn text(sample: Sample<'_>) -> Option<&[u8]> {
    match sample {
        Sample::Str(text) => Some(text),
        _ => None,
    }
}

/// The bytes of a sample that has been cast to [`Type::Bin`].
fn bytes(sample: Sample<'_>) -> Option<&[u8]> {
    match sample {
        Sample::Bin(bytes) => Some(bytes),
        _ => None,
    }
}

/// The pieces in one text.
fn joined<'s>(pieces: &[&[u8]], txn: &'s Txn<'_>) -> Sample<'s> {
    let mut to = BumpVec::with_capacity_in(pieces.iter().map(|piece| piece.len()).sum(), txn.arena);
    for piece in pieces {
        to.extend_from_slice(piece);
    }
    Sample::Str(to.into_bump_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_stands_for_two_converters() {
        let mut seen = std::collections::HashSet::new();
        for name in rows().flat_map(|row| row.names) {
            assert!(seen.insert(name), "{name} twice");
        }
    }
}
