//! Where samples come from: one row a fetch (HAProxy manual §7.3).
//!
//! A row says how a fetch is written, what it gives and how it is drawn; nothing else in the program
//! names a fetch.

pub mod auth;
mod body;
mod capture;
mod connection;
mod constant;
mod cookie;
pub(super) mod counter;
mod exchange;
mod gateway;
mod header;
mod names;
mod param;
pub(super) mod request;
mod response;
mod tls;

use std::fmt;

use super::{
    args::{ArgSpec, Args},
    fact::Fact,
    matcher::Method,
    phase::Source,
    sample::{Sample, Type},
    txn::Txn,
};

/// One fetch.
pub struct FetchRow {
    /// How it is written; the first name is the one that messages use.
    pub names: &'static [&'static str],
    /// Names that mean this fetch in expressions of response rules only (`hdr` is `res.hdr` there).
    pub response_names: &'static [&'static str],
    /// What it takes.
    pub args: &'static [ArgSpec],
    /// What it gives. Where that is text, the suffix forms (`path_beg`) exist.
    pub output: Type,
    /// Where the value comes from.
    pub source: Source,
    /// Whether it is still known when the exchange is over although it is of a message.
    pub lasting: bool,
    /// What an ACL matches it with when it says nothing; `None`: what goes with the type.
    pub implied: Option<Method>,
    /// How it is drawn.
    pub draw: Draw,
}

impl FetchRow {
    /// Whether there is nothing to draw it from once the exchange is over.
    pub const fn is_gone_at_the_end(&self) -> bool {
        matches!(self.source, Source::Request | Source::Body | Source::Response) && !self.lasting
    }
}

/// Draws the value that expressions outside ACLs use; `None` when there is none.
pub type Take = for<'s, 't> fn(&'s Args, &'s Txn<'t>) -> Option<Sample<'s>>;

/// Offers every value in order until the test is true; returns whether it was.
pub type Each = for<'s, 't> fn(&'s Args, &'s Txn<'t>, &mut dyn FnMut(Sample<'s>) -> bool) -> bool;

/// How a fetch is drawn.
#[derive(Clone, Copy)]
pub enum Draw {
    /// It has one value.
    One(Take),
    /// It may have several; ACLs try them all.
    Many(Take, Each),
    /// It is something that the running gateway knows.
    Fact(Fact),
}

impl FetchRow {
    /// The name that messages use.
    pub fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or_default()
    }

    /// The value for this exchange.
    pub fn take<'s>(&self, args: &'s Args, txn: &'s Txn<'_>) -> Option<Sample<'s>> {
        match self.draw {
            Draw::One(take) | Draw::Many(take, _) => take(args, txn),
            Draw::Fact(fact) => txn.env.fact(fact),
        }
    }

    /// Whether `test` is true for any of the values.
    pub fn any<'s>(&self, args: &'s Args, txn: &'s Txn<'_>, test: &mut dyn FnMut(Sample<'s>) -> bool) -> bool {
        match self.draw {
            Draw::Many(_, each) => each(args, txn, test),
            Draw::One(_) | Draw::Fact(_) => self.take(args, txn).is_some_and(test),
        }
    }
}

impl fmt::Debug for FetchRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Every row.
pub fn rows() -> impl Iterator<Item = &'static FetchRow> {
    [
        constant::ROWS,
        gateway::ROWS,
        connection::ROWS,
        tls::ROWS,
        request::ROWS,
        header::ROWS,
        names::ROWS,
        cookie::ROWS,
        param::ROWS,
        body::ROWS,
        auth::ROWS,
        response::ROWS,
        counter::COUNTERS,
        counter::ARRAYS,
        counter::ROWS,
        capture::ROWS,
        exchange::ROWS,
    ]
    .into_iter()
    .flatten()
}

/// The fetch called `name`. `in_response`: in an expression of a response rule, outside ACLs.
pub fn find(name: &[u8], in_response: bool) -> Option<&'static FetchRow> {
    let called = |names: &[&str]| names.iter().any(|one| one.as_bytes() == name);
    let response = rows().find(|row| in_response && called(row.response_names));
    response.or_else(|| rows().find(|row| called(row.names)))
}

/// What rows leave out: no arguments, text, always missing.
const TEXT: FetchRow = FetchRow {
    names: &[],
    response_names: &[],
    args: &[],
    output: Type::Str,
    source: Source::Request,
    lasting: false,
    implied: None,
    draw: Draw::One(|_, _| None),
};

/// The message a fetch reads.
trait Side {
    /// Its field lines; `None` while the message has not arrived.
    fn fields<'s>(txn: &'s Txn<'_>) -> Option<&'s crate::message::Fields>;
}

/// The request.
struct OfRequest;

/// The response.
struct OfResponse;

impl Side for OfRequest {
    fn fields<'s>(txn: &'s Txn<'_>) -> Option<&'s crate::message::Fields> {
        Some(&txn.request.fields)
    }
}

impl Side for OfResponse {
    fn fields<'s>(txn: &'s Txn<'_>) -> Option<&'s crate::message::Fields> {
        txn.response.as_deref().map(|response| &response.fields)
    }
}

/// The item at `occurrence`: from 1 at the first, from -1 at the last; 0 is the last as well.
fn pick<I: Iterator + Clone>(items: I, occurrence: i64) -> Option<I::Item> {
    let mut items = items;
    match occurrence {
        0 | -1 => items.last(),
        from_first @ 1.. => items.nth(usize::try_from(from_first).ok()? - 1),
        from_last => {
            let back = usize::try_from(from_last.unsigned_abs()).ok()?;
            let index = items.clone().count().checked_sub(back)?;
            items.nth(index)
        }
    }
}

/// `pieces` with `between` between them; `None` when there is no piece. One piece is borrowed.
fn joined<'s>(
    mut pieces: impl Iterator<Item = &'s [u8]>,
    between: &[u8],
    arena: &'s bumpalo::Bump,
) -> Option<Sample<'s>> {
    let first = pieces.next()?;
    let Some(second) = pieces.next() else { return Some(Sample::Str(first)) };
    let mut text = bumpalo::collections::Vec::new_in(arena);
    text.extend_from_slice(first);
    for piece in std::iter::once(second).chain(pieces) {
        text.extend_from_slice(between);
        text.extend_from_slice(piece);
    }
    Some(Sample::Str(text.into_bump_slice()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occurrences_count_from_both_ends() {
        let items = || [1, 2, 3].into_iter();
        let picked: Vec<_> = [0, 1, 3, 4, -1, -3, -4, i64::MIN].map(|at| pick(items(), at)).into();
        assert_eq!(picked, [Some(3), Some(1), Some(3), None, Some(3), Some(1), None, None]);
    }

    #[test]
    fn no_name_stands_for_two_fetches() {
        let mut seen = std::collections::HashSet::new();
        for name in rows().flat_map(|row| row.names) {
            assert!(seen.insert(name), "{name} twice");
        }
    }

    #[test]
    fn required_arguments_stand_before_optional_ones() {
        for row in rows() {
            assert!(row.args.is_sorted_by_key(|arg| !arg.required), "{}", row.name());
        }
    }
}
