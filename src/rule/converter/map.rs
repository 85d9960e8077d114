//! `map_MATCH_OUT(file[,default])`: look a sample up in a file of keys and values. The file is read and compiled at load;
//! rules may change it while it is in use.

use std::{net::IpAddr, sync::Arc};

use bumpalo::collections::Vec as BumpVec;

use super::{Arg, ArgFault, Args, ConverterRow, Sample, Txn, Type, text};
use crate::rule::{
    args::{ArgKind, ArgSpec},
    list::{Found, Look, View},
    matcher::{Method, number::integer},
    template::Groups,
};

/// A row for each kind of match and each kind of value.
macro_rules! rows {
    ($($names:expr, $method:ident, $input:ident, $gives:ident;)*) => {
        &[$(ConverterRow {
            names: $names,
            args: &[ArgSpec::need(ArgKind::Map), ArgSpec::may(ArgKind::Text)],
            input: Type::$input,
            output: Gives::$gives.kind(),
            prepare: |args| prepare(args, Method::$method, Gives::$gives),
            apply: look_up,
        }),*]
    };
}

pub(super) const ROWS: &[ConverterRow] = rows! {
    &["map", "map_str", "map_str_str"], Str, Str, Str;
    &["map_str_int"], Str, Str, Int;
    &["map_str_ip"], Str, Str, Ip;
    &["map_key", "map_str_key"], Str, Str, Key;
    &["map_beg", "map_beg_str"], Beg, Str, Str;
    &["map_beg_int"], Beg, Str, Int;
    &["map_beg_ip"], Beg, Str, Ip;
    &["map_beg_key"], Beg, Str, Key;
    &["map_end", "map_end_str"], End, Str, Str;
    &["map_end_int"], End, Str, Int;
    &["map_end_ip"], End, Str, Ip;
    &["map_end_key"], End, Str, Key;
    &["map_sub", "map_sub_str"], Sub, Str, Str;
    &["map_sub_int"], Sub, Str, Int;
    &["map_sub_ip"], Sub, Str, Ip;
    &["map_sub_key"], Sub, Str, Key;
    &["map_dir", "map_dir_str"], Dir, Str, Str;
    &["map_dir_int"], Dir, Str, Int;
    &["map_dir_ip"], Dir, Str, Ip;
    &["map_dir_key"], Dir, Str, Key;
    &["map_dom", "map_dom_str"], Dom, Str, Str;
    &["map_dom_int"], Dom, Str, Int;
    &["map_dom_ip"], Dom, Str, Ip;
    &["map_dom_key"], Dom, Str, Key;
    &["map_reg", "map_reg_str"], Reg, Str, Str;
    &["map_reg_int"], Reg, Str, Int;
    &["map_reg_ip"], Reg, Str, Ip;
    &["map_reg_key"], Reg, Str, Key;
    &["map_regm"], Reg, Str, Groups;
    &["map_int", "map_int_str"], Int, Int, Str;
    &["map_int_int"], Int, Int, Int;
    &["map_int_ip"], Int, Int, Ip;
    &["map_int_key"], Int, Int, Key;
    &["map_ip", "map_ip_str"], Ip, Ip, Str;
    &["map_ip_int"], Ip, Ip, Int;
    &["map_ip_ip"], Ip, Ip, Ip;
    &["map_ip_key"], Ip, Ip, Key;
};

/// What a map gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gives {
    Str,
    Int,
    Ip,
    /// The key.
    Key,
    /// The value, with `\1` for what a group of the key matched.
    Groups,
}

impl Gives {
    const fn kind(self) -> Type {
        match self {
            Self::Int => Type::Int,
            Self::Ip => Type::Ip,
            Self::Str | Self::Key | Self::Groups => Type::Str,
        }
    }

    /// A value as what it gives; `None` when it cannot be that, which only a changed one may.
    fn value<'s>(self, value: &[u8], txn: &'s Txn<'_>) -> Option<Sample<'s>> {
        Some(match self.kind() {
            Type::Int => Sample::Int(if value.is_empty() { 0 } else { integer(value)? }),
            Type::Ip => Sample::Ip(std::str::from_utf8(value).ok()?.parse::<IpAddr>().ok()?),
            _ => Sample::Str(txn.arena.alloc_slice_copy(value)),
        })
    }
}

/// A map as it is looked up.
#[derive(Clone, Debug)]
pub struct Map {
    view: Arc<View>,
    gives: Gives,
    default: Option<Box<[u8]>>,
}

impl Map {
    /// Whether rules change it.
    pub fn changes(&self) -> bool {
        self.view.changes()
    }
}

fn prepare(args: Vec<Arg>, method: Method, gives: Gives) -> Result<Vec<Arg>, ArgFault> {
    let args = Args::new(args);
    let Arg::List(list) = args.at(0) else { return Ok(vec![]) };
    let look = Look { method, fold: false, groups: gives == Gives::Groups };
    let view = list.view(look, &|_| Vec::new()).map_err(|faults| ArgFault::of_entries(0, faults))?;
    let (wrong, _) = list.values(gives.kind());
    if !wrong.is_empty() {
        return Err(ArgFault::of_entries(0, wrong));
    }
    let default = args.text(1);
    let fits = |text: &[u8]| match gives.kind() {
        Type::Int => integer(text).is_some(),
        Type::Ip => std::str::from_utf8(text).is_ok_and(|text| text.parse::<IpAddr>().is_ok()),
        _ => true,
    };
    if default.is_some_and(|text| !fits(text)) {
        return Err(ArgFault::new(1, format!("the default is not of type {}", gives.kind().name()), ""));
    }
    Ok(vec![Arg::Map(Map { view, gives, default: default.map(Into::into) }.into())])
}

fn look_up<'s>(args: &'s Args, sample: Sample<'s>, txn: &'s Txn<'_>) -> Option<Sample<'s>> {
    let Arg::Map(map) = args.at(0) else { return None };
    let found = map.view.look_up(sample, txn.arena, |found| match map.gives {
        Gives::Key => Some(Sample::Str(txn.arena.alloc_slice_copy(found.key()))),
        Gives::Groups => replaced(&found, text(sample)?, txn),
        gives => found.value(|value| gives.value(value, txn)),
    });
    let default = || match (map.gives.kind(), map.default.as_deref()?) {
        (Type::Str, text) => Some(Sample::Str(text)),
        (_, text) => map.gives.value(text, txn),
    };
    found.flatten().or_else(default)
}

/// The value with the groups of the key's match in place of `\0` to `\9`; any other escaped byte is itself.
fn replaced<'s>(found: &Found<'_>, text: &[u8], txn: &'s Txn<'_>) -> Option<Sample<'s>> {
    let (_, groups) = Groups::find(found.regex()?, text, 0, true)?;
    let mut out = BumpVec::new_in(txn.arena);
    found.value(|value| {
        let mut bytes = value.iter();
        while let Some(&byte) = bytes.next() {
            match bytes.as_slice().first() {
                Some(digit @ b'0'..=b'9') if byte == b'\\' => {
                    out.extend_from_slice(groups.text(digit - b'0'));
                    bytes.next();
                }
                Some(&escaped) if byte == b'\\' => {
                    out.push(escaped);
                    bytes.next();
                }
                _ => out.push(byte),
            }
        }
    });
    Some(Sample::Str(out.into_bump_slice()))
}
