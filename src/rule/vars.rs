//! Variables: `set-var(txn.x)`, `var(txn.x)` (HAProxy manual §2.8). Names are indices after load.

use std::{
    net::IpAddr,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use bumpalo::Bump;

use super::sample::Sample;

/// How long a variable lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VarScope {
    /// `sess`: the client's connection.
    Sess,
    /// `txn`: request and response.
    Txn,
    /// `req`: until the request goes to a server.
    Req,
    /// `res`: from the response's head on.
    Res,
}

impl VarScope {
    /// Every scope with its word.
    pub const ALL: [(&'static str, Self); 4] =
        [("sess", Self::Sess), ("txn", Self::Txn), ("req", Self::Req), ("res", Self::Res)];
}

/// A variable: its number in the configuration and its scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VarId {
    /// Its number.
    pub index: u32,
    /// How long it lives.
    pub scope: VarScope,
}

/// Variables of one exchange (scopes `txn`, `req`, `res`) and of its connection (`sess`).
/// Kept by the connection; its room is reused from request to request.
#[derive(Clone, Debug, Default)]
pub struct Vars {
    slots: Vec<(VarId, Value)>,
    text: Vec<u8>,
    spare: Vec<u8>,
    noted: Notebook,
}

/// What converters set while samples borrow the variables: it counts at once, and is taken over before anything
/// else is set. Costs nothing where no converter sets a variable.
#[derive(Debug, Default)]
struct Notebook(OnceLock<Mutex<Noted>>);

#[derive(Clone, Debug, Default)]
struct Noted {
    /// In the order of their setting; `None`: unset.
    slots: Vec<(VarId, Option<Value>)>,
    text: Vec<u8>,
}

impl Notebook {
    fn open(&self) -> Option<MutexGuard<'_, Noted>> {
        self.0.get().map(|noted| noted.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Clone for Notebook {
    fn clone(&self) -> Self {
        let copy = OnceLock::new();
        if let Some(noted) = self.open() {
            let _ = copy.set(Mutex::new(noted.clone()));
        }
        Self(copy)
    }
}

/// A sample that owns nothing: text is a piece of [`Vars::text`].
#[derive(Clone, Copy, Debug)]
enum Value {
    Bool(bool),
    Int(i64),
    Ip(IpAddr),
    Str(Piece),
    Bin(Piece),
    Method(Piece),
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    start: usize,
    end: usize,
}

impl Vars {
    /// The variable's value; `None` when it has not been set. Its type is that of the last value.
    pub fn value<'s>(&'s self, id: VarId, arena: &'s Bump) -> Option<Sample<'s>> {
        if let Some(noted) = self.noted.open()
            && let Some((_, value)) = noted.slots.iter().rev().find(|(slot, _)| *slot == id)
        {
            return Some((*value)?.sample(|piece| arena.alloc_slice_copy(cut(&noted.text, piece))));
        }
        let (_, value) = self.slots.iter().find(|(slot, _)| *slot == id)?;
        Some(value.sample(|piece| cut(&self.text, piece)))
    }

    /// Sets the variable.
    pub fn set(&mut self, id: VarId, sample: Sample<'_>) {
        self.settle();
        let value = Value::of(sample, &mut self.text);
        self.put(id, value);
    }

    /// Forgets the variable.
    pub fn unset(&mut self, id: VarId) {
        self.settle();
        self.slots.retain(|(slot, _)| *slot != id);
    }

    /// Sets or forgets the variable while others are borrowed.
    pub fn note(&self, id: VarId, sample: Option<Sample<'_>>) {
        let noted = self.noted.0.get_or_init(Mutex::default);
        let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
        let value = sample.map(|sample| Value::of(sample, &mut noted.text));
        noted.slots.push((id, value));
    }

    fn put(&mut self, id: VarId, value: Value) {
        match self.slots.iter_mut().find(|(slot, _)| *slot == id) {
            Some((_, slot)) => *slot = value,
            None => self.slots.push((id, value)),
        }
    }

    /// Takes over what has been noted.
    fn settle(&mut self) {
        let Some(mut noted) = self.noted.0.get_mut().map(Mutex::get_mut).map(|noted| match noted {
            Ok(noted) => std::mem::take(noted),
            Err(poisoned) => std::mem::take(poisoned.into_inner()),
        }) else {
            return;
        };
        for (id, value) in noted.slots.drain(..) {
            match value {
                Some(value) => {
                    let value = Value::of(value.sample(|piece| cut(&noted.text, piece)), &mut self.text);
                    self.put(id, value);
                }
                None => self.slots.retain(|(slot, _)| *slot != id),
            }
        }
    }

    /// The request has gone to its server or been answered: forgets `req` variables.
    pub fn end_request(&mut self) {
        self.settle();
        self.slots.retain(|(id, _)| id.scope != VarScope::Req);
    }

    /// The exchange is over: forgets everything but `sess` variables.
    pub fn end_exchange(&mut self) {
        self.settle();
        self.slots.retain(|(id, _)| id.scope == VarScope::Sess);
        self.spare.clear();
        for (_, value) in &mut self.slots {
            if let Value::Str(piece) | Value::Bin(piece) | Value::Method(piece) = value {
                let text = self.text.get(piece.start..piece.end).unwrap_or_default();
                *piece = keep(&mut self.spare, text);
            }
        }
        std::mem::swap(&mut self.text, &mut self.spare);
    }

    /// The connection is over: forgets everything and keeps the room.
    pub fn clear(&mut self) {
        self.settle();
        self.slots.clear();
        self.text.clear();
    }
}

impl Value {
    fn of(sample: Sample<'_>, text: &mut Vec<u8>) -> Self {
        match sample {
            Sample::Bool(value) => Self::Bool(value),
            Sample::Int(value) => Self::Int(value),
            Sample::Ip(value) => Self::Ip(value),
            Sample::Str(bytes) => Self::Str(keep(text, bytes)),
            Sample::Bin(bytes) => Self::Bin(keep(text, bytes)),
            Sample::Method(bytes) => Self::Method(keep(text, bytes)),
        }
    }

    fn sample<'s>(self, text: impl FnOnce(Piece) -> &'s [u8]) -> Sample<'s> {
        match self {
            Self::Bool(value) => Sample::Bool(value),
            Self::Int(value) => Sample::Int(value),
            Self::Ip(value) => Sample::Ip(value),
            Self::Str(piece) => Sample::Str(text(piece)),
            Self::Bin(piece) => Sample::Bin(text(piece)),
            Self::Method(piece) => Sample::Method(text(piece)),
        }
    }
}

fn cut(text: &[u8], piece: Piece) -> &[u8] {
    text.get(piece.start..piece.end).unwrap_or_default()
}

fn keep(room: &mut Vec<u8>, text: &[u8]) -> Piece {
    let start = room.len();
    room.extend_from_slice(text);
    Piece { start, end: room.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(index: u32, scope: VarScope) -> VarId {
        VarId { index, scope }
    }

    #[test]
    fn scopes_end_when_their_part_of_the_exchange_ends() {
        let arena = Bump::new();
        let mut vars = Vars::default();
        let (sess, txn, req) = (id(0, VarScope::Sess), id(1, VarScope::Txn), id(2, VarScope::Req));
        vars.set(txn, Sample::Str(b"t"));
        vars.set(sess, Sample::Str(b"first"));
        vars.set(sess, Sample::Str(b"s"));
        vars.set(req, Sample::Int(1));
        vars.end_request();
        assert_eq!(vars.value(req, &arena), None);
        assert_eq!(vars.value(txn, &arena), Some(Sample::Str(b"t")));
        vars.end_exchange();
        assert_eq!(vars.value(txn, &arena), None);
        assert_eq!(vars.value(sess, &arena), Some(Sample::Str(b"s")));
        assert_eq!(vars.text, b"s");
    }

    #[test]
    fn a_variable_has_the_type_of_its_last_value() {
        let arena = Bump::new();
        let mut vars = Vars::default();
        let x = id(0, VarScope::Txn);
        vars.set(x, Sample::Str(b"5"));
        vars.set(x, Sample::Bool(true));
        assert_eq!(vars.value(x, &arena), Some(Sample::Bool(true)));
        vars.unset(x);
        assert_eq!(vars.value(x, &arena), None);
    }

    #[test]
    fn what_is_noted_counts_at_once_and_stays() {
        let arena = Bump::new();
        let mut vars = Vars::default();
        let (txn, sess) = (id(0, VarScope::Txn), id(1, VarScope::Sess));
        vars.set(txn, Sample::Str(b"old"));
        let old = vars.value(txn, &arena);
        vars.note(txn, Some(Sample::Str(b"new")));
        vars.note(sess, Some(Sample::Str(b"kept")));
        assert_eq!(old, Some(Sample::Str(b"old")));
        assert_eq!(vars.value(txn, &arena), Some(Sample::Str(b"new")));
        assert_eq!(vars.clone().value(txn, &arena), Some(Sample::Str(b"new")));
        vars.set(txn, Sample::Int(1));
        assert_eq!(vars.value(txn, &arena), Some(Sample::Int(1)));
        vars.note(txn, None);
        assert_eq!(vars.value(txn, &arena), None);
        vars.end_exchange();
        assert_eq!(vars.value(txn, &arena), None);
        assert_eq!(vars.value(sess, &arena), Some(Sample::Str(b"kept")));
    }
}
