//! Addresses and authorities: `ipmask`, `host_only`, `port_only` (HAProxy manual §7.3.1).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Arg, ArgFault, ConverterRow, Sample, TEXT, Type, text, text::lowered};
use crate::rule::args::{ArgKind, ArgSpec};

pub(super) const ROWS: &[ConverterRow] = &[
    ConverterRow {
        names: &["ipmask"],
        args: &[ArgSpec::need(ArgKind::Text), ArgSpec::may(ArgKind::Text)],
        input: Type::Ip,
        output: Type::Ip,
        prepare: masks,
        apply: |args, sample, _| {
            let Sample::Ip(address) = sample else { return None };
            Some(Sample::Ip(match (address.to_canonical(), args.at(0), args.at(1)) {
                (IpAddr::V4(address), Arg::Ip(IpAddr::V4(mask)), _) => (address & *mask).into(),
                (IpAddr::V6(address), _, Arg::Ip(IpAddr::V6(mask))) => (address & *mask).into(),
                _ => return None,
            }))
        },
    },
    ConverterRow {
        names: &["host_only"],
        apply: |_, sample, txn| {
            let text = text(sample)?;
            let host = text.get(..colon(text).unwrap_or(text.len()))?;
            Some(Sample::Str(lowered(host, txn.arena)))
        },
        ..TEXT
    },
    ConverterRow {
        names: &["port_only"],
        output: Type::Int,
        apply: |_, sample, _| {
            let text = text(sample)?;
            let port = colon(text).and_then(|at| text.get(at + 1..)).unwrap_or_default();
            // What is no digit counts by its distance from `0`, as in HAProxy.
            let digit = |value: u32, byte: &u8| {
                value.wrapping_mul(10).wrapping_add(u32::from(*byte)).wrapping_sub(u32::from(b'0'))
            };
            Some(Sample::Int(port.iter().fold(0, digit).into()))
        },
        ..TEXT
    },
];

/// Where the port's colon stands; a `]` behind the last colon means that there is no port.
fn colon(text: &[u8]) -> Option<usize> {
    let at = text.iter().rposition(|byte| matches!(byte, b':' | b']'))?;
    (text.get(at) == Some(&b':')).then_some(at)
}

fn masks(args: Vec<Arg>) -> Result<Vec<Arg>, ArgFault> {
    args.into_iter()
        .enumerate()
        .map(|(index, arg)| match arg {
            Arg::Text(text) => {
                let text = String::from_utf8_lossy(&text);
                let mask = if index == 0 { mask4(&text).map(IpAddr::V4) } else { mask6(&text).map(IpAddr::V6) };
                mask.map(Arg::Ip).ok_or_else(|| bad_mask(index, &text))
            }
            other => Ok(other),
        })
        .collect()
}

fn bad_mask(index: usize, text: &str) -> ArgFault {
    let (version, most, example) = if index == 0 { (4, 32, "255.255.255.0") } else { (6, 128, "ffff:ffff::") };
    let help = format!("write a prefix length from 0 to {most}, or a mask such as `{example}`");
    ArgFault::new(index, format!("`{text}` is no mask of IPv{version}"), help)
}

fn mask4(text: &str) -> Option<Ipv4Addr> {
    match text.parse::<u32>() {
        Ok(length) => (length <= 32).then(|| u32::MAX.checked_shl(32 - length).unwrap_or(0).into()),
        Err(_) => text.parse().ok(),
    }
}

fn mask6(text: &str) -> Option<Ipv6Addr> {
    match text.parse::<u32>() {
        Ok(length) => (length <= 128).then(|| u128::MAX.checked_shl(128 - length).unwrap_or(0).into()),
        Err(_) => text.parse().ok(),
    }
}
