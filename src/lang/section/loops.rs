//! Servers that are the gateway itself: what is sent to them comes back, and goes out again.

use std::net::SocketAddr;

use super::{Kind, Loader, proxy::Draft};
use crate::{
    config::{BindAddress, Id, ServerAddress},
    lang::{code, diag::Diagnostic, source::Span},
};

/// A step from a proxy that listens to another: the server's place, and the bind's that it is.
struct Step {
    from: usize,
    to: usize,
    server: Span,
    bind: Span,
}

/// Warns of each server by which a request can come back to where it was. One frontend behind another is
/// no loop.
pub(super) fn warn(loader: &mut Loader<'_>, drafts: &[Draft]) {
    let steps = steps(drafts);
    let mut seen: Vec<Span> = Vec::new();
    for step in &steps {
        if seen.contains(&step.server) || !reaches(&steps, drafts.len(), step.to, step.from) {
            continue;
        }
        seen.push(step.server);
        let finding = Diagnostic::warning(code::LOOP, step.server, "this server is the gateway itself: a loop");
        loader.report(finding.label(step.bind, "it listens here").help("write the address of the site's own server"));
    }
}

/// Every step there is. Backends are numbered in the order of the proxies that serve.
fn steps(drafts: &[Draft]) -> Vec<Step> {
    let listening = || drafts.iter().enumerate().filter(|(_, draft)| draft.kind.listens());
    let mut steps = Vec::new();
    for (number, backend) in drafts.iter().filter(|draft| draft.kind.serves()).enumerate() {
        let own = |draft: &Draft| draft.kind == Kind::Listen && draft.span == backend.span;
        for (server, place) in &backend.servers {
            for (to, other) in listening() {
                let Some((_, bind)) = other.binds.iter().find(|(bind, _)| is_same(&server.address, &bind.address))
                else {
                    continue;
                };
                let senders = listening().filter(|(_, draft)| own(draft) || draft.targets.may_reach(Id::new(number)));
                steps.extend(senders.map(|(from, _)| Step { from, to, server: *place, bind: *bind }));
            }
        }
    }
    steps
}

/// Whether requests get from one proxy to another; each is where it is.
fn reaches(steps: &[Step], proxies: usize, from: usize, to: usize) -> bool {
    let mut reached = vec![from];
    let mut next = 0;
    while let Some(&here) = reached.get(next).filter(|_| next < proxies) {
        if here == to {
            return true;
        }
        for step in steps.iter().filter(|step| step.from == here) {
            if !reached.contains(&step.to) {
                reached.push(step.to);
            }
        }
        next += 1;
    }
    false
}

/// Whether connecting to the one reaches the other.
fn is_same(server: &ServerAddress, bind: &BindAddress) -> bool {
    match (server, bind) {
        (ServerAddress::Unix(server), BindAddress::Unix(bind)) => server == bind,
        (ServerAddress::Tcp(server), BindAddress::Tcp(bind)) => server.port() == bind.port() && is_host(server, bind),
        _ => false,
    }
}

fn is_host(server: &SocketAddr, bind: &SocketAddr) -> bool {
    let (server, bind) = (server.ip().to_canonical(), bind.ip().to_canonical());
    server == bind || (bind.is_unspecified() && server.is_loopback())
}
