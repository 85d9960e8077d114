//! Prefixes as a tree that lies flat: sorted, each with the longest other one that holds it. Whatever holds a value is
//! the greatest prefix not above it, or holds that one.

use std::{cmp::Ordering, net::IpAddr};

use super::block::{Block, NONE, Number};
use crate::rule::matcher::address::{embedded, masked};

/// Which of several entries that match is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// The longest.
    Longest,
    /// The one that stands first.
    First,
}

/// The links from each of the sorted prefixes to the one that holds it.
fn links(count: usize, holds: impl Fn(usize, usize) -> bool) -> Box<[u32]> {
    let mut open: Vec<usize> = Vec::new();
    let mut links = Vec::with_capacity(count);
    for at in 0..count {
        while open.last().is_some_and(|outer| !holds(*outer, at)) {
            open.pop();
        }
        links.push(open.last().and_then(|outer| u32::try_from(*outer).ok()).unwrap_or(NONE));
        open.push(at);
    }
    links.into()
}

/// An entry and the length of its prefix.
pub(super) type Hit = (Number, usize);

/// The first or the longest of those that `hit` accepts, from the place before `after` outwards.
fn climb(links: &[u32], after: usize, choice: Choice, hit: impl Fn(usize) -> Option<Hit>) -> Option<Hit> {
    let mut at = after.checked_sub(1)?;
    let mut best: Option<Hit> = None;
    loop {
        match hit(at) {
            Some(found) if choice == Choice::Longest => return Some(found),
            Some(found) if best.is_none_or(|best| found.0 < best.0) => best = Some(found),
            _ => {}
        }
        match links.get(at) {
            Some(&outer) if outer != NONE => at = outer as usize,
            _ => return best,
        }
    }
}

/// Texts as prefixes, or backwards as suffixes.
#[derive(Debug)]
pub(super) struct Texts {
    sorted: Box<[Number]>,
    links: Box<[u32]>,
    backwards: bool,
    folded: Option<Box<[u8]>>,
}

impl Texts {
    pub(super) fn new(block: &Block, backwards: bool, fold: bool) -> Self {
        let folded = fold.then(|| block.folded());
        let key = |number: Number| block.key_in(number, folded.as_deref());
        let mut sorted: Vec<Number> = block.numbers().collect();
        // Of equal ones the first stands last, where a search ends.
        sorted.sort_unstable_by(|one, other| compare(key(*one), key(*other), backwards).then(other.cmp(one)));
        let of = |at: usize| sorted.get(at).map(|number| key(*number)).unwrap_or_default();
        let links = links(sorted.len(), |outer, inner| begins(of(inner), of(outer), backwards));
        Self { sorted: sorted.into(), links, backwards, folded }
    }

    /// An entry that counts and begins (or ends) `text`, and its length.
    pub(super) fn find(&self, block: &Block, text: &[u8], choice: Choice) -> Option<Hit> {
        let key = |number: Number| block.key_in(number, self.folded.as_deref());
        let after =
            self.sorted.partition_point(|number| compare(key(*number), text, self.backwards) != Ordering::Greater);
        climb(&self.links, after, choice, |at| {
            let number = *self.sorted.get(at)?;
            let prefix = key(number);
            (begins(text, prefix, self.backwards) && block.is_live(number)).then_some((number, prefix.len()))
        })
    }
}

fn compare(one: &[u8], other: &[u8], backwards: bool) -> Ordering {
    if backwards { one.iter().rev().cmp(other.iter().rev()) } else { one.cmp(other) }
}

fn begins(text: &[u8], prefix: &[u8], backwards: bool) -> bool {
    if backwards { text.ends_with(prefix) } else { text.starts_with(prefix) }
}

/// Networks of both families.
#[derive(Debug)]
pub(super) struct Networks {
    v4: Family,
    v6: Family,
}

/// Networks of one family.
#[derive(Debug)]
struct Family {
    width: u32,
    sorted: Box<[Network]>,
    links: Box<[u32]>,
}

#[derive(Clone, Copy, Debug)]
struct Network {
    prefix: u128,
    length: u32,
    number: Number,
}

impl Networks {
    /// The networks, each with the number of its entry.
    pub(super) fn new(networks: &[(IpAddr, u32, Number)]) -> Self {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for &(address, length, number) in networks {
            match address {
                IpAddr::V4(address) => {
                    v4.push(Network { prefix: masked(u32::from(address).into(), length, 32), length, number });
                }
                IpAddr::V6(address) => v6.push(Network { prefix: masked(address.into(), length, 128), length, number }),
            }
        }
        Self { v4: Family::new(v4, 32), v6: Family::new(v6, 128) }
    }

    /// The entry that counts with the longest prefix that holds the address, and its length. An IPv4 address is in
    /// `::ffff:0:0/96` as well; an IPv6 address that carries an IPv4 one (mapped, compatible, 6to4) is looked up as both.
    pub(super) fn find(&self, block: &Block, address: IpAddr) -> Option<Hit> {
        match address {
            IpAddr::V4(address) => {
                let found = self.v4.find(block, u32::from(address).into());
                found.or_else(|| self.v6.find(block, address.to_ipv6_mapped().into()))
            }
            IpAddr::V6(address) => {
                let found = self.v6.find(block, address.into());
                found.or_else(|| self.v4.find(block, u32::from(embedded(address)?).into()))
            }
        }
    }
}

impl Family {
    fn new(mut networks: Vec<Network>, width: u32) -> Self {
        networks.sort_unstable_by(|one, other| {
            (one.prefix, one.length, other.number).cmp(&(other.prefix, other.length, one.number))
        });
        let holds = |outer: usize, inner: usize| match (networks.get(outer), networks.get(inner)) {
            (Some(outer), Some(inner)) => outer.length <= inner.length && outer.holds(inner.prefix, width),
            _ => false,
        };
        let links = links(networks.len(), holds);
        Self { width, sorted: networks.into(), links }
    }

    fn find(&self, block: &Block, address: u128) -> Option<Hit> {
        let after = self.sorted.partition_point(|network| network.prefix <= address);
        climb(&self.links, after, Choice::Longest, |at| {
            let network = self.sorted.get(at)?;
            let hit = (network.number, network.length as usize);
            (network.holds(address, self.width) && block.is_live(network.number)).then_some(hit)
        })
    }
}

impl Network {
    fn holds(&self, address: u128, width: u32) -> bool {
        masked(address, self.length, width) == self.prefix
    }
}
