//! A request on its way to a server: what HTTP takes off a hop and what `option forwardfor` adds.

use std::net::IpAddr;

use super::{hop, plan::Plan, snapshot::Snapshot};
use crate::{
    config::ForwardFor,
    message::{Fields, Request, Response},
    rule::Client,
};

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
pub fn for_pass(snapshot: &Snapshot, plan: &Plan, client: &Client, request: &Request) -> Request {
    let mut head = request.clone();
    hop::strip(&mut head.fields);
    add_forwarded_for(snapshot, plan, client, &mut head.fields);
    head
}

/// Adds what `option forwardfor` of frontend and backend say together, as HAProxy does: the backend's field
/// name wins, `if-none` counts when no side says otherwise, and either's `except` excepts.
pub fn add_forwarded_for(snapshot: &Snapshot, plan: &Plan, client: &Client, fields: &mut Fields) {
    let frontend = snapshot.frontend(plan.frontend).and_then(|frontend| frontend.forwardfor.as_ref());
    let backend = plan.backend.and_then(|id| snapshot.backend(id)).and_then(|backend| backend.forwardfor.as_ref());
    let Some(named) = backend.or(frontend) else { return };
    let Some(address) = client.src.map(|src| src.ip()) else { return };
    let mut options = [frontend, backend].into_iter().flatten();
    let if_none = options.clone().all(|option| option.if_none);
    if if_none && fields.has(&named.header) || options.any(|option| excepted(option, address)) {
        return;
    }
    fields.append(named.header.as_bytes(), address.to_canonical().to_string().as_bytes());
}

/// Whether the response varies on what `option forwardfor` adds: a store has only the request as it came,
/// and cannot tell for whom the response is (RFC 9111 §4.1).
pub fn varies_on_added(snapshot: &Snapshot, plan: &Plan, response: &Response) -> bool {
    let frontend = snapshot.frontend(plan.frontend).and_then(|frontend| frontend.forwardfor.as_ref());
    let backend = plan.backend.and_then(|id| snapshot.backend(id)).and_then(|backend| backend.forwardfor.as_ref());
    backend.or(frontend).is_some_and(|added| {
        response.fields.members("vary").any(|name| name.eq_ignore_ascii_case(added.header.as_bytes()))
    })
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
