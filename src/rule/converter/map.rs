//! `map_MATCH_OUT(file[,default])`: look a sample up in a file of keys and values. The file is read and
//! compiled at load.

use std::{collections::HashMap, net::IpAddr};

use regex::bytes::{Regex, RegexSet};

use super::{Arg, ArgFault, Args, ConverterRow, Sample, Txn, Type};
use crate::rule::{
    args::{ArgKind, ArgSpec},
    matcher::{
        Matcher, Method,
        address::Networks,
        file,
        number::{Range, integer},
    },
    pattern,
};

/// A row for each kind of match and each kind of value.
macro_rules! rows {
    ($($names:expr, $method:ident, $input:ident, $output:ident;)*) => {
        &[$(ConverterRow {
            names: $names,
            args: &[ArgSpec::need(ArgKind::File), ArgSpec::may(ArgKind::Text)],
            input: Type::$input,
            output: Type::$output,
            prepare: |args| prepare(args, Method::$method, Type::$output),
            apply: look_up,
        }),*]
    };
}

pub(super) const ROWS: &[ConverterRow] = rows! {
    &["map", "map_str", "map_str_str"], Str, Str, Str;
    &["map_str_int"], Str, Str, Int;
    &["map_str_ip"], Str, Str, Ip;
    &["map_beg", "map_beg_str"], Beg, Str, Str;
    &["map_beg_int"], Beg, Str, Int;
    &["map_beg_ip"], Beg, Str, Ip;
    &["map_end", "map_end_str"], End, Str, Str;
    &["map_end_int"], End, Str, Int;
    &["map_end_ip"], End, Str, Ip;
    &["map_sub", "map_sub_str"], Sub, Str, Str;
    &["map_sub_int"], Sub, Str, Int;
    &["map_sub_ip"], Sub, Str, Ip;
    &["map_dir", "map_dir_str"], Dir, Str, Str;
    &["map_dir_int"], Dir, Str, Int;
    &["map_dir_ip"], Dir, Str, Ip;
    &["map_dom", "map_dom_str"], Dom, Str, Str;
    &["map_dom_int"], Dom, Str, Int;
    &["map_dom_ip"], Dom, Str, Ip;
    &["map_reg", "map_reg_str"], Reg, Str, Str;
    &["map_reg_int"], Reg, Str, Int;
    &["map_reg_ip"], Reg, Str, Ip;
    &["map_int", "map_int_str"], Int, Int, Str;
    &["map_int_int"], Int, Int, Int;
    &["map_int_ip"], Int, Int, Ip;
    &["map_ip", "map_ip_str"], Ip, Ip, Str;
    &["map_ip_int"], Ip, Ip, Int;
    &["map_ip_ip"], Ip, Ip, Ip;
};

/// A compiled map.
#[derive(Clone, Debug)]
pub struct Map {
    keys: Keys,
    values: Vec<Value>,
    default: Option<Value>,
}

/// Keys with the index of their value.
#[derive(Clone, Debug)]
enum Keys {
    /// The same text.
    Exact(HashMap<Box<[u8]>, usize>),
    /// The longest prefix; lengths from long to short.
    Prefix(HashMap<Box<[u8]>, usize>, Vec<usize>),
    /// The longest network prefix.
    Networks(Networks),
    /// The first range.
    Ranges(Vec<Range>),
    /// The first pattern that matches.
    Patterns(RegexSet, Vec<Regex>),
    /// The first key that matches.
    InTurn(Vec<Matcher>),
}

#[derive(Clone, Debug)]
enum Value {
    Str(Box<[u8]>),
    Int(i64),
    Ip(IpAddr),
}

impl Value {
    fn of(text: &[u8], kind: Type) -> Option<Self> {
        match kind {
            Type::Int => integer(text).map(Self::Int),
            Type::Ip => std::str::from_utf8(text).ok()?.parse().ok().map(Self::Ip),
            _ => Some(Self::Str(text.into())),
        }
    }

    fn sample(&self) -> Sample<'_> {
        match self {
            Self::Str(text) => Sample::Str(text),
            Self::Int(value) => Sample::Int(*value),
            Self::Ip(address) => Sample::Ip(*address),
        }
    }
}

fn prepare(args: Vec<Arg>, method: Method, kind: Type) -> Result<Vec<Arg>, ArgFault> {
    let args = Args::new(args);
    let Arg::File(bytes) = args.at(0) else { return Ok(vec![]) };
    let fault = |line: usize, message: String| ArgFault::new(0, format!("line {line}: {message}"), "");
    let (mut lines, mut keys, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for (line, text) in file::lines(bytes) {
        let (key, value) = file::entry(text);
        let wrong = || fault(line, format!("`{}` is not of type {}", String::from_utf8_lossy(value), kind.name()));
        values.push(Value::of(value, kind).ok_or_else(wrong)?);
        keys.push(key.to_vec());
        lines.push(line);
    }
    let keys = compile(method, &keys)
        .map_err(|(index, message)| fault(lines.get(index).copied().unwrap_or_default(), message))?;
    let default = match args.text(1) {
        None => None,
        Some(text) => {
            let wrong = || ArgFault::new(1, format!("the default is not of type {}", kind.name()), "");
            Some(Value::of(text, kind).ok_or_else(wrong)?)
        }
    };
    Ok(vec![Arg::Map(Map { keys, values, default }.into())])
}

/// The keys for `method`; else the index of the key at fault and what is wrong with it.
fn compile(method: Method, keys: &[Vec<u8>]) -> Result<Keys, (usize, String)> {
    Ok(match method {
        Method::Str => Keys::Exact(first_of_each(keys)),
        Method::Beg => {
            let mut lengths: Vec<_> = keys.iter().map(Vec::len).collect();
            lengths.sort_unstable_by(|one, other| other.cmp(one));
            lengths.dedup();
            Keys::Prefix(first_of_each(keys), lengths)
        }
        Method::Ip => Keys::Networks(Networks::parse(keys)?),
        Method::Int => Keys::Ranges(
            keys.iter()
                .enumerate()
                .map(|(index, key)| Range::parse(key).ok_or_else(|| (index, "not a number or range".to_owned())))
                .collect::<Result<_, _>>()?,
        ),
        Method::Reg => {
            let set = pattern::set(keys, false).map_err(|fault| (fault.index, fault.message))?;
            Keys::Patterns(set, keys.iter().filter_map(|key| pattern::regex(key, false).ok()).collect())
        }
        _ => Keys::InTurn(
            keys.iter()
                .enumerate()
                .map(|(index, key)| {
                    Matcher::text(method, std::slice::from_ref(key), false).map_err(|fault| (index, fault.message))
                })
                .collect::<Result<_, _>>()?,
        ),
    })
}

fn first_of_each(keys: &[Vec<u8>]) -> HashMap<Box<[u8]>, usize> {
    let mut table = HashMap::with_capacity(keys.len());
    for (index, key) in keys.iter().enumerate() {
        table.entry(key.as_slice().into()).or_insert(index);
    }
    table
}

fn look_up<'s>(args: &'s Args, sample: Sample<'s>, txn: &'s Txn<'_>) -> Option<Sample<'s>> {
    let Arg::Map(map) = args.at(0) else { return None };
    let found = map.keys.find(sample, txn).and_then(|index| map.values.get(index));
    found.or(map.default.as_ref()).map(Value::sample)
}

impl Keys {
    fn find(&self, sample: Sample<'_>, txn: &Txn<'_>) -> Option<usize> {
        match (self, sample) {
            (Self::Exact(table), Sample::Str(text)) => table.get(text).copied(),
            (Self::Prefix(table, lengths), Sample::Str(text)) => {
                lengths.iter().find_map(|length| table.get(text.get(..*length)?).copied())
            }
            (Self::Networks(networks), Sample::Ip(address)) => networks.find(address),
            (Self::Ranges(ranges), Sample::Int(value)) => ranges.iter().position(|range| range.contains(value)),
            (Self::Patterns(set, patterns), Sample::Str(text)) => {
                if !set.is_match(text) {
                    return None;
                }
                patterns.iter().position(|pattern| pattern.is_match(text))
            }
            (Self::InTurn(keys), _) => keys.iter().position(|key| key.matches(sample, txn.arena)),
            _ => None,
        }
    }
}
