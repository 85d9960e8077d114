//! Rules below HTTP, which a connection meets before any request of it: `tcp-request connection` when it is accepted,
//! `tcp-request session` when its TLS session stands.

use std::sync::Arc;

use bumpalo::Bump;
use tokio::net::TcpStream;

use super::{clock, snapshot::Snapshot, world::World};
use crate::{
    config::{Frontend, Id, SetVar},
    message::Request,
    rule::{Client, Notes, RuleSet, Sample, Session, Trace, Txn, Vars, Verdict, track::Event},
};

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It goes on.
    Welcome,
    /// It is closed.
    Closed {
        /// Without telling the client (`silent-drop`).
        silent: bool,
    },
}

/// Which rules a connection meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// `tcp-request connection`.
    Connection,
    /// `tcp-request session`.
    Session,
}

/// Runs the rules of a frontend on a connection, in order.
pub fn admit(
    snapshot: &Snapshot,
    frontend: Id<Frontend>,
    door: Door,
    client: &Client,
    trace: Option<Arc<Trace>>,
) -> Admission {
    let Some(configured) = snapshot.frontend(frontend) else { return Admission::Welcome };
    let rules = match door {
        Door::Connection => &configured.connection,
        Door::Session => &configured.session,
    };
    match run(snapshot, frontend, rules, client, trace) {
        Verdict::Close { silent } => Admission::Closed { silent },
        _ => Admission::Welcome,
    }
}

fn run(
    snapshot: &Snapshot,
    frontend: Id<Frontend>,
    rules: &RuleSet,
    client: &Client,
    trace: Option<Arc<Trace>>,
) -> Verdict {
    if rules.is_empty() {
        return Verdict::Continue;
    }
    let env = World { now: clock::now(), snapshot, frontend, backend: None, hit: None, server: None };
    let (mut request, mut vars) = (Request::default(), Vars::default());
    let mut notes = Notes { trace, ..Notes::default() };
    rules.run(&mut Txn {
        client,
        request: &mut request,
        response: None,
        vars: &mut vars,
        notes: &mut notes,
        env: &env,
        arena: &Bump::new(),
    })
}

/// Sets what `set-var` and `set-var-fmt` of `global` say, in order, when a configuration is taken up.
pub fn set_process_variables(snapshot: &Snapshot) {
    let env = World { now: clock::now(), snapshot, frontend: Id::new(0), backend: None, hit: None, server: None };
    let (client, mut request, mut vars, mut notes) =
        (Client::default(), Request::default(), Vars::default(), Notes::default());
    let arena = Bump::new();
    let txn = &mut Txn {
        client: &client,
        request: &mut request,
        response: None,
        vars: &mut vars,
        notes: &mut notes,
        env: &env,
        arena: &arena,
    };
    for (id, value) in &snapshot.config.global.set_vars {
        let sample = match value {
            SetVar::To(expr) => expr.eval(txn).map(|sample| sample.copied_in(&arena)),
            SetVar::Written(format) => Some(Sample::Str(format.text_in(txn))),
        };
        if let Some(sample) = sample {
            txn.set_var(*id, [], sample);
        }
    }
}

/// Counts a connection that was let in for whatever it is tracked by.
pub fn let_in(client: &Client) {
    if let Some(session) = client.known_session() {
        session.tracks.count(Event::Session, clock::now().as_millis());
    }
}

/// Ends what a connection is tracked by when it is dropped, whoever else still holds its state.
#[derive(Debug)]
pub struct Stay(Option<Arc<Session>>);

impl Stay {
    /// The stay of this client.
    pub fn new(client: &Client) -> Self {
        Self(client.known_session().cloned())
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        if let Some(session) = &self.0 {
            session.tracks.end(clock::now().as_millis());
        }
    }
}

/// Closes a connection so that its client does not hear of it: what the close sends goes no further than the first
/// router. On this machine itself it is heard all the same.
pub fn drop_silently(stream: &TcpStream) {
    let socket = socket2::SockRef::from(stream);
    // Whatever fails here, the connection is closed in the ordinary way then.
    let _ = socket.set_ttl_v4(1);
    let _ = socket.set_unicast_hops_v6(1);
}
