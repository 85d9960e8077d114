//! A request on its way to a server: what HTTP takes off a hop and what `option forwardfor` adds.

use std::{io::Write, net::IpAddr};

use bumpalo::Bump;

use super::{hop, plan::Plan, snapshot::Snapshot};
use crate::{
    config::{Backend, ForwardFor, Frontend},
    message::{Fields, Request},
    rule::Client,
};

/// Longest text of an address: IPv6 with its last two groups as IPv4.
const MAX_ADDRESS: usize = 45;

/// Makes the head of a fill of a client's request: GET, whole, unconditional, nobody's hop.
pub fn for_fill(request: &mut Request) {
    hop::strip(&mut request.fields);
    request.set_method(b"GET");
    request.fields.retain(|field| {
        !["range", "if-range", "if-none-match", "if-modified-since", "expect", "content-length"]
            .iter()
            .any(|name| field.is(name))
    });
}

/// The head of a request that is passed, as a server gets it; the body's framing is the engine's affair.
pub fn for_pass(request: &Request) -> Request {
    let mut head = request.clone();
    hop::strip(&mut head.fields);
    head
}

/// Adds what `option forwardfor` of frontend and backend say together, as HAProxy does: the backend's field
/// name wins, `if-none` counts when no side says otherwise, and either's `except` excepts. Allocates nothing but
/// room in `fields`.
///
/// Once, when the request is decided, and before it is looked up: what a response was selected by is the request
/// that was sent (RFC 9111 §4.1), and a field that is missing from it would share one client's page with another.
pub fn add_forwarded_for(frontend: &Frontend, backend: &Backend, client: &Client, fields: &mut Fields) {
    let (frontend, backend) = (frontend.forwardfor.as_ref(), backend.forwardfor.as_ref());
    let Some(named) = backend.or(frontend) else { return };
    let Some(address) = client.src.map(|src| src.ip()) else { return };
    let mut options = [frontend, backend].into_iter().flatten();
    let if_none = options.clone().all(|option| option.if_none);
    if if_none && fields.has(&named.header) || options.any(|option| excepted(option, address)) {
        return;
    }
    let mut room = [0; MAX_ADDRESS];
    let mut free = &mut room[..];
    let written = write!(free, "{}", address.to_canonical());
    let left = free.len();
    if written.is_ok() {
        fields.append(named.header.as_bytes(), room.get(..MAX_ADDRESS - left).unwrap_or_default());
    }
}

/// Adds the id of a request to the head that a server gets of it, when its frontend says so (`unique-id-header`). Not
/// before: an id is another for each request, and what a response is selected by is not.
pub fn add_unique_id(snapshot: &Snapshot, plan: &mut Plan, client: &Client, request: &mut Request, head: &mut Request) {
    let Some(name) = snapshot.frontend(plan.frontend).and_then(|frontend| frontend.unique_id_header.as_ref()) else {
        return;
    };
    if let Some(id) = plan.unique_id(snapshot, client, request, &Bump::new()) {
        head.fields.append(name.as_bytes(), id);
    }
}

fn excepted(option: &ForwardFor, address: IpAddr) -> bool {
    option.except.iter().any(|&(network, bits)| within(address.to_canonical(), network, bits))
}

/// Whether `address` is in `network/bits`.
fn within(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0);
            u32::from(address) & mask == u32::from(network) & mask
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
            u128::from(address) & mask == u128::from(network) & mask
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_hold_their_addresses() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(within(ip("127.0.0.9"), ip("127.0.0.0"), 8));
        assert!(!within(ip("128.0.0.9"), ip("127.0.0.0"), 8));
        assert!(within(ip("10.0.0.9"), ip("0.0.0.0"), 0));
        assert!(within(ip("::1"), ip("::1"), 128));
    }
}
