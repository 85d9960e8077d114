//! `regsub(regex,subst[,flags])`: `sed`'s `s///` with the flags `i` and `g`.

use bumpalo::collections::Vec as BumpVec;
use regex::bytes::Regex;

use super::{Arg, ArgFault, Args, ConverterRow, Sample, TEXT, text};
use crate::rule::{
    args::{ArgKind, ArgSpec},
    pattern,
    template::{Groups, Part, parts},
    txn::Txn,
};

pub(super) const ROWS: &[ConverterRow] = &[ConverterRow {
    names: &["regsub"],
    args: &[ArgSpec::need(ArgKind::Text), ArgSpec::need(ArgKind::Text), ArgSpec::may(ArgKind::Text)],
    prepare,
    apply: substitute,
    ..TEXT
}];

/// A compiled substitution.
#[derive(Clone, Debug)]
pub struct Substitution {
    regex: Regex,
    parts: Vec<Part>,
    /// Whether more than `\0` is asked for.
    groups: bool,
    /// `g`: every match, not the first alone.
    all: bool,
}

fn prepare(args: Vec<Arg>) -> Result<Vec<Arg>, ArgFault> {
    let args = Args::new(args);
    let flags = args.text(2).unwrap_or_default();
    if let Some(flag) = flags.iter().find(|flag| !b"gi".contains(flag)) {
        return Err(ArgFault::new(2, format!("unknown flag `{}`", char::from(*flag)), "flags are `g` and `i`"));
    }
    if args.text(0).is_none_or(<[u8]>::is_empty) {
        return Err(ArgFault::new(0, "the expression is empty", "write what is to be replaced"));
    }
    let regex = pattern::regex(args.text(0).unwrap_or_default(), flags.contains(&b'i'))
        .map_err(|fault| ArgFault::new(0, fault.message, fault.help))?;
    let parts = parts(args.text(1).unwrap_or_default()).map_err(|_| {
        let help = "write `\\\\` for a backslash, `\\1` for a group, `\\xHH` for a byte";
        ArgFault::new(1, "an escape in the replacement is not complete", help)
    })?;
    let groups = parts.iter().any(|part| matches!(part, Part::Group(1..)));
    Ok(vec![Arg::Substitution(Substitution { regex, parts, groups, all: flags.contains(&b'g') }.into())])
}

fn substitute<'s>(args: &'s Args, sample: Sample<'s>, txn: &'s Txn<'_>) -> Option<Sample<'s>> {
    let Arg::Substitution(how) = args.at(0) else { return None };
    let from = text(sample)?;
    let mut found = Groups::find(&how.regex, from, 0, how.groups);
    if found.is_none() {
        return Some(sample);
    }
    let mut to = BumpVec::with_capacity_in(from.len(), txn.arena);
    let mut at = 0;
    while let Some((range, groups)) = found {
        to.extend_from_slice(from.get(at..range.start)?);
        for part in &how.parts {
            match part {
                Part::Text(text) => to.extend_from_slice(text),
                Part::Group(group) => to.extend_from_slice(groups.text(*group)),
            }
        }
        at = range.end;
        if range.is_empty() {
            // An empty match moves on by a byte, and may follow another match directly.
            to.extend(from.get(at).copied());
            at += 1;
        }
        found = if how.all && at <= from.len() { Groups::find(&how.regex, from, at, how.groups) } else { None };
    }
    to.extend_from_slice(from.get(at..).unwrap_or_default());
    Some(Sample::Str(to.into_bump_slice()))
}
