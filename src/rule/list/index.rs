//! What the keys of a block are compiled to, one kind for each match method.

use std::net::IpAddr;

use bumpalo::Bump;
use regex::bytes::Regex;

use super::{
    Fault, Hosts, Look, MOST_FAULTS,
    block::{Block, Number},
    exact::Exact,
    number::Ranges,
    search::{Pieces, Regexes},
    tree::{Choice, Hit, Networks, Texts},
};
use crate::rule::{
    matcher::{Method, address, hexadecimal, number::Range, substring::Within, text::folded},
    pattern,
    sample::Sample,
};

/// See the module.
#[derive(Debug)]
pub(super) enum Index {
    Exact(Exact),
    /// `bin`: the keys as bytes, each with the number of its entry.
    Binary(Block, Exact),
    /// `beg`: the longest.
    Prefixes(Texts),
    /// `end`: the first.
    Suffixes(Texts),
    Networks(Networks),
    Ranges(Ranges),
    Pieces(Pieces),
    Regexes(Regexes),
}

/// A sample as the method of a view wants it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Input<'s> {
    Text(&'s [u8]),
    Bytes(&'s [u8]),
    Number(i64),
    Address(IpAddr),
}

impl<'s> Input<'s> {
    /// `None` when the sample cannot be cast.
    pub(super) fn of(sample: Sample<'s>, look: Look, arena: &'s Bump) -> Option<Self> {
        Some(match look.method {
            Method::Int => Self::Number(sample.int()?),
            Method::Len => Self::Number(i64::try_from(sample.text(arena)?.len()).unwrap_or(i64::MAX)),
            Method::Ip => Self::Address(sample.ip()?),
            Method::Bin => Self::Bytes(sample.bytes(arena)?),
            // Automata fold by themselves.
            Method::Sub | Method::Dir | Method::Dom | Method::Reg => Self::Text(sample.text(arena)?),
            _ => Self::Text(folded(sample.text(arena)?, look.fold, arena)),
        })
    }
}

impl Index {
    /// Compiles the keys.
    ///
    /// # Errors
    /// Those that cannot be patterns of this method.
    pub(super) fn new(block: &Block, look: Look, hosts: Hosts<'_>) -> Result<Self, Vec<Fault>> {
        let pieces = |within| {
            let made = Pieces::new(block, within, look.fold);
            made.map(Self::Pieces).map_err(|fault| vec![Fault { at: 0..0, message: fault.message, help: fault.help }])
        };
        match look.method {
            Method::Beg => Ok(Self::Prefixes(Texts::new(block, false, look.fold))),
            Method::End => Ok(Self::Suffixes(Texts::new(block, true, look.fold))),
            Method::Int | Method::Len => ranges(block).map(|ranges| Self::Ranges(Ranges::new(ranges))),
            Method::Ip => networks(block, hosts).map(|networks| Self::Networks(Networks::new(&networks))),
            Method::Sub => pieces(Within::Anywhere),
            Method::Dir => pieces(Within::Directories),
            Method::Dom => pieces(Within::Domains),
            Method::Reg => match Regexes::new(block, look.fold, look.groups) {
                Ok(regexes) => Ok(Self::Regexes(regexes)),
                Err(fault) => Err(bad_regexes(block, look.fold, &fault)),
            },
            Method::Bin => {
                let decoded = bytes(block)?;
                let table = Exact::new(&decoded, false);
                Ok(Self::Binary(decoded, table))
            }
            _ => Ok(Self::Exact(Exact::new(block, look.fold))),
        }
    }

    /// The entry that counts and matches: the longest prefix or network with its length, else the first with 0. Any one
    /// of them when `any`.
    pub(super) fn find(&self, block: &Block, input: Input<'_>, any: bool) -> Option<Hit> {
        let plain = |number: Number| (number, 0);
        match (self, input) {
            (Self::Exact(table), Input::Text(text)) => table.find(block, text).map(plain),
            (Self::Binary(decoded, table), Input::Bytes(bytes)) => {
                table.find_any(decoded, bytes).filter(|number| block.is_live(*number)).map(plain)
            }
            (Self::Prefixes(tree), Input::Text(text)) => {
                tree.find(block, text, Choice::Longest).map(|(at, length)| (at, length + 1))
            }
            (Self::Suffixes(tree), Input::Text(text)) => {
                let choice = if any { Choice::Longest } else { Choice::First };
                tree.find(block, text, choice).map(|(number, _)| plain(number))
            }
            (Self::Networks(tree), Input::Address(address)) => {
                tree.find(block, address).map(|(at, length)| (at, length + 1))
            }
            (Self::Ranges(ranges), Input::Number(value)) => ranges.find(block, value).map(plain),
            (Self::Pieces(automaton), Input::Text(text)) => automaton.find(block, text, any).map(plain),
            (Self::Regexes(regexes), Input::Text(text)) => regexes.find(block, text, any).map(plain),
            _ => None,
        }
    }

    /// An entry's regular expression, where groups are asked for.
    pub(super) fn regex(&self, number: Number) -> Option<&Regex> {
        match self {
            Self::Regexes(regexes) => regexes.regex(number),
            _ => None,
        }
    }
}

fn fault(block: &Block, number: Number, message: String, help: &'static str) -> Fault {
    Fault { at: block.places(number).0, message, help }
}

fn shown(block: &Block, number: Number) -> String {
    String::from_utf8_lossy(block.key(number)).into_owned()
}

fn ranges(block: &Block) -> Result<Vec<(Range, Number)>, Vec<Fault>> {
    let (mut ranges, mut faults) = (Vec::with_capacity(block.len()), Vec::new());
    for number in block.numbers() {
        match Range::parse(block.key(number)) {
            Some(range) => ranges.push((range, number)),
            None if faults.len() < MOST_FAULTS => {
                let message = format!("`{}` is not a number or a range", shown(block, number));
                faults.push(fault(block, number, message, "write `5`, `5:9`, `5:` or `:9`"));
            }
            None => break,
        }
    }
    if faults.is_empty() { Ok(ranges) } else { Err(faults) }
}

fn networks(block: &Block, hosts: Hosts<'_>) -> Result<Vec<(IpAddr, u32, Number)>, Vec<Fault>> {
    let (mut networks, mut faults) = (Vec::with_capacity(block.len()), Vec::new());
    for number in block.numbers() {
        match address::network(block.key(number)) {
            Ok((address, length)) => networks.push((address, length, number)),
            Err(why) => {
                let found = hosts(&shown(block, number));
                if found.is_empty() {
                    faults.push(fault(block, number, why, "write `10.0.0.1`, `10.0.0.0/8` or `2001:db8::/32`"));
                }
                let whole = |address: IpAddr| (address, if address.is_ipv4() { 32 } else { 128 }, number);
                networks.extend(found.into_iter().map(whole));
            }
        }
        if faults.len() >= MOST_FAULTS {
            break;
        }
    }
    if faults.is_empty() { Ok(networks) } else { Err(faults) }
}

fn bytes(block: &Block) -> Result<Block, Vec<Fault>> {
    let (mut decoded, mut faults) = (Vec::with_capacity(block.len()), Vec::new());
    for number in block.numbers() {
        match hexadecimal(block.key(number)) {
            Some(bytes) => decoded.push(bytes),
            None if faults.len() < MOST_FAULTS => {
                let message = format!("`{}` is not made of pairs of hexadecimal digits", shown(block, number));
                faults.push(fault(block, number, message, "write `2f61` for the bytes `/a`"));
            }
            None => break,
        }
    }
    let keys = decoded.iter().map(|bytes| (bytes.as_slice(), &b""[..]));
    if faults.is_empty() { Ok(Block::collect(keys)) } else { Err(faults) }
}

/// Each expression that is wrong alone; what is wrong with all of them together when none is.
fn bad_regexes(block: &Block, fold: bool, together: &pattern::BadPattern) -> Vec<Fault> {
    let alone = block.numbers().filter_map(|number| {
        let bad = pattern::regex(block.key(number), fold).err()?;
        let whole = block.places(number).0;
        let at = whole.start.saturating_add(bad.at).min(whole.end.saturating_sub(1))..whole.end;
        Some(Fault { at, message: bad.message, help: bad.help })
    });
    let mut faults: Vec<_> = alone.take(MOST_FAULTS).collect();
    if faults.is_empty() {
        faults.push(Fault { at: 0..0, message: together.message.clone(), help: together.help });
    }
    faults
}
