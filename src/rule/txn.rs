//! One exchange as rules see it.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use bumpalo::Bump;

use super::{
    capture::Captures,
    fact::Fact,
    format::Format,
    notes::Notes,
    sample::Sample,
    session::Session,
    table::{Table, Tracked},
    track::Tracks,
    vars::{SetWhen, SharedVars, VarId, VarScope, Vars},
};
use crate::{
    message::{Request, Response},
    time::Timestamp,
};

/// What is known of the client's connection.
#[derive(Clone, Debug, Default)]
pub struct Client {
    /// The client's address; `None` on a unix socket.
    pub src: Option<SocketAddr>,
    /// The address the client connected to; `None` on a unix socket.
    pub dst: Option<SocketAddr>,
    /// The bind it came in by; `None` where no listener was asked.
    pub bind: Option<BindName>,
    /// When the connection was accepted.
    pub accepted: Timestamp,
    /// Milliseconds that the handshake took; 0 in clear.
    pub handshake: u32,
    /// The TLS session; `None` in clear.
    pub tls: Option<Tls>,
    /// What rules keep for the connection; empty until one of them asks.
    pub session: OnceLock<Arc<Session>>,
}

impl Client {
    /// What rules keep for the connection, made when there is none. A copy of the client shares it only if it was
    /// there before, so it is made before requests are decided wherever a rule of the configuration will ask.
    pub fn session(&self) -> &Arc<Session> {
        self.session.get_or_init(Arc::default)
    }

    /// As [`Client::session`]; `None` when nobody has asked yet.
    pub fn known_session(&self) -> Option<&Arc<Session>> {
        self.session.get()
    }
}

/// How a bind is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BindName {
    /// `id`, or its place in its frontend from 1.
    pub number: u32,
    /// `name`; `None` when the line has none.
    pub name: Option<Arc<str>>,
}

/// What is known of a TLS session.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// The server name the client asked for, in lower case; `None` when it sent none (RFC 6066 §3).
    pub sni: Option<Box<str>>,
    /// The protocol agreed on (RFC 7301); `None` when there was no agreement.
    pub alpn: Option<&'static str>,
    /// The version, as OpenSSL calls it: `TLSv1.3`.
    pub protocol: &'static str,
    /// The cipher suite, as OpenSSL calls it.
    pub cipher: &'static str,
    /// The length of the cipher's key in bits.
    pub key_bits: u16,
    /// Whether it goes on from an earlier one.
    pub resumed: bool,
}

/// What rules need of the outside world, so that evaluation itself stays pure.
pub trait Env {
    /// The time of this request; the same for all of its rules.
    fn now(&self) -> Timestamp;

    /// Another number each time, all of them equally likely.
    fn random(&self) -> u64;

    /// What the running gateway knows; `None` when it has no such thing.
    fn fact(&self, fact: Fact) -> Option<Sample<'_>>;

    /// The table at a place of the configuration's list; `None` when there is none.
    fn table(&self, place: usize) -> Option<&Arc<Table>>;

    /// The variables of the process; `None` where there is none.
    fn process_vars(&self) -> Option<&SharedVars> {
        None
    }

    /// What the frontend captures; `None` where there is no frontend.
    fn captures(&self) -> Option<&Captures> {
        None
    }

    /// How the frontend makes unique ids (`unique-id-format`); `None` when it makes none.
    fn unique_id(&self) -> Option<&Format> {
        None
    }
}

/// One exchange under evaluation: everything a fetch may read and an action may change.
pub struct Txn<'t> {
    /// The client's connection.
    pub client: &'t Client,
    /// The request, as edited so far.
    pub request: &'t mut Request,
    /// The response, as edited so far; `None` at request time.
    pub response: Option<&'t mut Response>,
    /// Variables set so far.
    pub vars: &'t mut Vars,
    /// What rules have noted beside variables.
    pub notes: &'t mut Notes,
    /// Clock and tables.
    pub env: &'t dyn Env,
    /// Room for samples that had to be made; emptied after each request.
    pub arena: &'t Bump,
}

impl Txn<'_> {
    /// The time in milliseconds.
    pub fn millis(&self) -> u64 {
        self.env.now().as_millis()
    }

    /// Reads what the exchange or its connection is tracked by in a slot; `None` when that is nothing.
    pub fn tracked<T>(&self, slot: usize, read: impl FnOnce(&Tracked) -> T) -> Option<T> {
        match &self.notes.tracks {
            Some(tracks) => tracks.with(slot, read),
            None => self.client.known_session()?.tracks.with(slot, read),
        }
    }

    /// What the exchange is tracked by, made when there is nothing yet.
    pub fn tracks(&mut self) -> &Arc<Tracks> {
        let session = || self.client.known_session().cloned();
        self.notes.tracks.get_or_insert_with(|| Arc::new(Tracks::new(session())))
    }

    /// The request's unique id, made when it is first asked for; `None` when the frontend makes none.
    pub fn unique_id(&self) -> Option<&[u8]> {
        let make = || self.env.unique_id().map(|format| format.text_in(self).into()).unwrap_or_default();
        let id: &[u8] = self.notes.unique_id.get_or_init(make);
        Some(id).filter(|id| !id.is_empty())
    }

    /// The request's number in the process, given when it is first asked for; 0 where nobody numbers.
    pub fn number(&self) -> u32 {
        *self.notes.number.get_or_init(|| match self.env.fact(Fact::NextNumber) {
            Some(Sample::Int(number)) => u32::try_from(number & 0xffff_ffff).unwrap_or_default(),
            _ => 0,
        })
    }

    /// The variable's value; `None` when it has none.
    pub fn var(&self, id: VarId) -> Option<Sample<'_>> {
        match id.scope {
            VarScope::Proc => self.env.process_vars()?.value(id, self.arena),
            VarScope::Sess => self.client.known_session()?.vars.value(id, self.arena),
            VarScope::Txn | VarScope::Req | VarScope::Res => self.vars.value(id, self.arena),
        }
    }

    /// Sets the variable at once, if the conditions hold. Returns whether they do.
    pub fn set_var(&mut self, id: VarId, when: impl IntoIterator<Item = SetWhen>, sample: Sample<'_>) -> bool {
        let sets = self.may_set(id, when, sample);
        match self.shared_vars(id) {
            _ if !sets => {}
            Some(shared) => shared.set(id, Some(sample)),
            None => self.vars.set(id, sample),
        }
        sets
    }

    /// As [`Txn::set_var`], while samples are borrowed.
    pub fn note_var(&self, id: VarId, when: impl IntoIterator<Item = SetWhen>, sample: Sample<'_>) -> bool {
        let sets = self.may_set(id, when, sample);
        if sets {
            self.note(id, Some(sample));
        }
        sets
    }

    /// Takes the variable's value away, while samples are borrowed.
    pub fn unset_var(&self, id: VarId) {
        self.note(id, None);
    }

    fn note(&self, id: VarId, sample: Option<Sample<'_>>) {
        match self.shared_vars(id) {
            Some(shared) => shared.set(id, sample),
            None => self.vars.note(id, sample),
        }
    }

    fn may_set(&self, id: VarId, when: impl IntoIterator<Item = SetWhen>, new: Sample<'_>) -> bool {
        when.into_iter().all(|when| when.holds(id, new, self.var(id)))
    }

    fn shared_vars(&self, id: VarId) -> Option<&SharedVars> {
        match id.scope {
            VarScope::Proc => self.env.process_vars(),
            VarScope::Sess => Some(&self.client.session().vars),
            VarScope::Txn | VarScope::Req | VarScope::Res => None,
        }
    }
}
