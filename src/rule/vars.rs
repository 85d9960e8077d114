//! Variables: `set-var(txn.x)`, `var(txn.x)` (HAProxy manual §2.8). Names are indices after load.

use std::{
    net::IpAddr,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock},
};

use bumpalo::Bump;

use super::sample::Sample;

/// How long a variable lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VarScope {
    /// `proc`: the process, reloads included.
    Proc,
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
    pub const ALL: [(&'static str, Self); 5] =
        [("proc", Self::Proc), ("sess", Self::Sess), ("txn", Self::Txn), ("req", Self::Req), ("res", Self::Res)];
}

/// A variable: its number and its scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VarId {
    /// Its number: one name has the same in every configuration.
    pub index: u32,
    /// How long it lives.
    pub scope: VarScope,
}

/// When a variable is set (`set-var(name,cond…)`): every one that is written must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetWhen {
    /// `ifexists`: it has a value, or is one of the process: those are there from the beginning, as in HAProxy.
    Exists,
    /// `ifnotexists`.
    NotExists,
    /// `ifempty`: the new value is an empty text.
    Empty,
    /// `ifnotempty`.
    NotEmpty,
    /// `ifset`: it has a value.
    Set,
    /// `ifnotset`.
    NotSet,
    /// `ifgt`: its value is greater than the new one; holds where they are not both integers.
    Greater,
    /// `iflt`: its value is less than the new one; holds where they are not both integers.
    Less,
}

impl SetWhen {
    /// Every condition by its word.
    pub const WORDS: &'static [&'static str] =
        &["ifexists", "ifnotexists", "ifempty", "ifnotempty", "ifset", "ifnotset", "ifgt", "iflt"];

    /// The condition that a word is.
    pub fn named(word: &[u8]) -> Option<Self> {
        Some(match word {
            b"ifexists" => Self::Exists,
            b"ifnotexists" => Self::NotExists,
            b"ifempty" => Self::Empty,
            b"ifnotempty" => Self::NotEmpty,
            b"ifset" => Self::Set,
            b"ifnotset" => Self::NotSet,
            b"ifgt" => Self::Greater,
            b"iflt" => Self::Less,
            _ => return None,
        })
    }

    /// Whether it holds for the new value and the old one of a variable.
    pub fn holds(self, id: VarId, new: Sample<'_>, old: Option<Sample<'_>>) -> bool {
        let exists = old.is_some() || id.scope == VarScope::Proc;
        let empty = matches!(new, Sample::Str(b"") | Sample::Bin(b""));
        match self {
            Self::Exists => exists,
            Self::NotExists => !exists,
            Self::Empty => empty,
            Self::NotEmpty => !empty,
            Self::Set => old.is_some(),
            Self::NotSet => old.is_none(),
            Self::Greater => !matches!((old, new), (Some(Sample::Int(old)), Sample::Int(new)) if old <= new),
            Self::Less => !matches!((old, new), (Some(Sample::Int(old)), Sample::Int(new)) if old >= new),
        }
    }
}

/// Variables that several exchanges share: those of a connection, those of the process. A value is read as a copy.
#[derive(Debug, Default)]
pub struct SharedVars(RwLock<Vars>);

impl SharedVars {
    /// As [`Vars::value`].
    pub fn value<'s>(&self, id: VarId, arena: &'s Bump) -> Option<Sample<'s>> {
        let vars = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Some(vars.value(id, arena)?.copied_in(arena))
    }

    /// Sets the variable; `None` unsets it.
    pub fn set(&self, id: VarId, sample: Option<Sample<'_>>) {
        let mut vars = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match sample {
            Some(sample) => vars.set(id, sample),
            None => vars.unset(id),
        }
        vars.compact();
    }
}

/// Variables of one exchange (scopes `txn`, `req`, `res`), or what [`SharedVars`] guards.
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

    /// Gives the room back that old values hold, when it is most of it.
    fn compact(&mut self) {
        let piece = |value: &Value| match value {
            Value::Str(piece) | Value::Bin(piece) | Value::Method(piece) => piece.end - piece.start,
            _ => 0,
        };
        let used: usize = self.slots.iter().map(|(_, value)| piece(value)).sum();
        if self.text.len() < 256 || self.text.len() / 2 < used {
            return;
        }
        self.spare.clear();
        for (_, value) in &mut self.slots {
            if let Value::Str(piece) | Value::Bin(piece) | Value::Method(piece) = value {
                let text = self.text.get(piece.start..piece.end).unwrap_or_default();
                *piece = keep(&mut self.spare, text);
            }
        }
        std::mem::swap(&mut self.text, &mut self.spare);
    }

    /// The exchange is over: forgets everything and keeps the room.
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
        let (txn, req) = (id(1, VarScope::Txn), id(2, VarScope::Req));
        vars.set(txn, Sample::Str(b"t"));
        vars.set(req, Sample::Int(1));
        vars.end_request();
        assert_eq!(vars.value(req, &arena), None);
        assert_eq!(vars.value(txn, &arena), Some(Sample::Str(b"t")));
        vars.clear();
        assert_eq!(vars.value(txn, &arena), None);
    }

    #[test]
    fn what_is_shared_holds_no_old_values() {
        let arena = Bump::new();
        let shared = SharedVars::default();
        let x = id(0, VarScope::Proc);
        for number in 0..1000 {
            shared.set(x, Some(Sample::Str(format!("value {number}").as_bytes())));
        }
        assert_eq!(shared.value(x, &arena), Some(Sample::Str(b"value 999")));
        assert!(shared.0.read().unwrap().text.len() < 512);
        shared.set(x, None);
        assert_eq!(shared.value(x, &arena), None);
    }

    #[test]
    fn conditions_of_setting() {
        let (text, empty, three, five) = (Sample::Str(b"a"), Sample::Str(b""), Sample::Int(3), Sample::Int(5));
        let all = |new, old, scope| -> Vec<&str> {
            let holds = |word: &&&str| SetWhen::named(word.as_bytes()).unwrap().holds(id(0, scope), new, old);
            SetWhen::WORDS.iter().filter(holds).copied().collect()
        };
        assert_eq!(all(text, None, VarScope::Txn), ["ifnotexists", "ifnotempty", "ifnotset", "ifgt", "iflt"]);
        assert_eq!(all(empty, None, VarScope::Proc), ["ifexists", "ifempty", "ifnotset", "ifgt", "iflt"]);
        assert_eq!(all(three, Some(five), VarScope::Txn), ["ifexists", "ifnotempty", "ifset", "ifgt"]);
        assert_eq!(all(five, Some(three), VarScope::Txn), ["ifexists", "ifnotempty", "ifset", "iflt"]);
        assert_eq!(all(five, Some(five), VarScope::Txn), ["ifexists", "ifnotempty", "ifset"]);
        assert_eq!(all(five, Some(text), VarScope::Txn), ["ifexists", "ifnotempty", "ifset", "ifgt", "iflt"]);
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
        let (txn, other) = (id(0, VarScope::Txn), id(1, VarScope::Res));
        vars.set(txn, Sample::Str(b"old"));
        let old = vars.value(txn, &arena);
        vars.note(txn, Some(Sample::Str(b"new")));
        vars.note(other, Some(Sample::Str(b"kept")));
        assert_eq!(old, Some(Sample::Str(b"old")));
        assert_eq!(vars.value(txn, &arena), Some(Sample::Str(b"new")));
        assert_eq!(vars.clone().value(txn, &arena), Some(Sample::Str(b"new")));
        vars.set(txn, Sample::Int(1));
        assert_eq!(vars.value(txn, &arena), Some(Sample::Int(1)));
        vars.note(txn, None);
        assert_eq!(vars.value(txn, &arena), None);
        vars.end_request();
        assert_eq!(vars.value(txn, &arena), None);
        assert_eq!(vars.value(other, &arena), Some(Sample::Str(b"kept")));
    }
}
