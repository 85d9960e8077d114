//! Addresses and networks (RFC 4632, RFC 4291 §2.3): one table for each prefix length.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Networks with the number of the pattern they came from; the longest prefix wins.
#[derive(Clone, Debug, Default)]
pub struct Networks {
    v4: Family,
    v6: Family,
}

/// The networks of one family: prefix lengths from long to short, each with its sorted prefixes.
#[derive(Clone, Debug, Default)]
struct Family(Vec<(u32, Vec<(u128, usize)>)>);

impl Networks {
    /// Reads addresses and networks (`10.0.0.0/8`, `10.0.0.0/255.0.0.0`, `10.1` for 10.0.0.1, `2001:db8::/32`).
    ///
    /// # Errors
    /// The index of the first pattern that is none, and what is wrong with it.
    pub fn parse(patterns: &[Vec<u8>]) -> Result<Self, (usize, String)> {
        let mut networks = Self::default();
        for (index, pattern) in patterns.iter().enumerate() {
            let (address, length) = network(pattern).map_err(|why| (index, why))?;
            match address {
                IpAddr::V4(address) => networks.v4.add(u32::from(address).into(), length, 32, index),
                IpAddr::V6(address) => networks.v6.add(address.into(), length, 128, index),
            }
        }
        for family in [&mut networks.v4, &mut networks.v6] {
            family.0.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
            for (_, prefixes) in &mut family.0 {
                prefixes.sort_unstable();
            }
        }
        Ok(networks)
    }

    /// The number of the pattern with the longest prefix that holds the address. An IPv4 address is in
    /// `::ffff:0:0/96` as well; an IPv6 address that carries an IPv4 one (mapped, compatible, 6to4) is looked up as both.
    pub fn find(&self, address: IpAddr) -> Option<usize> {
        match address {
            IpAddr::V4(address) => {
                let found = self.v4.find(u32::from(address).into(), 32);
                found.or_else(|| self.v6.find(address.to_ipv6_mapped().into(), 128))
            }
            IpAddr::V6(address) => {
                let found = self.v6.find(address.into(), 128);
                found.or_else(|| self.v4.find(u32::from(embedded(address)?).into(), 32))
            }
        }
    }
}

impl Family {
    fn add(&mut self, address: u128, length: u32, width: u32, index: usize) {
        let prefix = masked(address, length, width);
        match self.0.iter_mut().find(|(of, _)| *of == length) {
            Some((_, prefixes)) => prefixes.push((prefix, index)),
            None => self.0.push((length, vec![(prefix, index)])),
        }
    }

    fn find(&self, address: u128, width: u32) -> Option<usize> {
        self.0.iter().find_map(|(length, prefixes)| {
            let prefix = masked(address, *length, width);
            let at = prefixes.partition_point(|(one, _)| *one < prefix);
            prefixes.get(at).filter(|(one, _)| *one == prefix).map(|(_, index)| *index)
        })
    }
}

/// The first `length` of `width` bits, the others zero.
pub(in crate::rule) fn masked(address: u128, length: u32, width: u32) -> u128 {
    let free = width.saturating_sub(length);
    if free >= 128 { 0 } else { address >> free << free }
}

/// The IPv4 address inside an IPv6 address: mapped, compatible (RFC 4291 §2.5.5) or 6to4 (RFC 3056 §2).
pub(in crate::rule) fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [first, second, third, ..] = address.segments();
    if first == 0x2002 {
        let [high, low] = second.to_be_bytes();
        let [higher, lower] = third.to_be_bytes();
        return Some(Ipv4Addr::new(high, low, higher, lower));
    }
    address.to_ipv4()
}

/// `address[/length|/mask]`.
pub(in crate::rule) fn network(pattern: &[u8]) -> Result<(IpAddr, u32), String> {
    let text = std::str::from_utf8(pattern).map_err(|_| "not an address".to_owned())?;
    let (address, mask) = match text.split_once('/') {
        Some((address, mask)) => (address, Some(mask)),
        None => (text, None),
    };
    let address = address.parse::<IpAddr>().ok().or_else(|| short(address).map(IpAddr::V4));
    let address = address.ok_or_else(|| format!("`{text}` is not an address or network"))?;
    let width = if address.is_ipv4() { 32 } else { 128 };
    let Some(mask) = mask else { return Ok((address, width)) };
    let dotted = || mask.parse::<Ipv4Addr>().ok().filter(|_| address.is_ipv4()).map(u32::from);
    let length = match mask.parse::<u32>() {
        Ok(length) if length <= width => length,
        Ok(_) => return Err(format!("a prefix length is 0 to {width}")),
        Err(_) => match dotted() {
            Some(bits) if bits.leading_ones() + bits.trailing_zeros() >= 32 => bits.leading_ones(),
            _ => return Err(format!("`{mask}` is not a prefix length or mask")),
        },
    };
    Ok((address, length))
}

/// An IPv4 address with fewer than four parts: the last part fills what is left (`10.1` is 10.0.0.1).
fn short(text: &str) -> Option<Ipv4Addr> {
    let number =
        |part: &str| part.parse::<u32>().ok().filter(|_| part.starts_with(|first: char| first.is_ascii_digit()));
    let mut parts = text.split('.').map(number);
    let mut address: u32 = 0;
    let mut shift = 32;
    let mut part = parts.next()??;
    for next in parts {
        shift -= 8;
        if part > 255 || shift == 0 {
            return None;
        }
        address |= part << shift;
        part = next?;
    }
    if shift < 32 && part >= 1 << shift {
        return None;
    }
    Some(Ipv4Addr::from(address | part))
}
