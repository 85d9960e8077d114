//! Variables: `set-var(txn.x)`, `var(txn.x)` (HAProxy manual §2.8). Names are indices after load.

use std::net::IpAddr;

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
    pub fn value(&self, id: VarId) -> Option<Sample<'_>> {
        let (_, value) = self.slots.iter().find(|(slot, _)| *slot == id)?;
        Some(match *value {
            Value::Bool(value) => Sample::Bool(value),
            Value::Int(value) => Sample::Int(value),
            Value::Ip(value) => Sample::Ip(value),
            Value::Str(piece) => Sample::Str(self.piece(piece)),
            Value::Bin(piece) => Sample::Bin(self.piece(piece)),
            Value::Method(piece) => Sample::Method(self.piece(piece)),
        })
    }

    /// Sets the variable.
    pub fn set(&mut self, id: VarId, sample: Sample<'_>) {
        let value = match sample {
            Sample::Bool(value) => Value::Bool(value),
            Sample::Int(value) => Value::Int(value),
            Sample::Ip(value) => Value::Ip(value),
            Sample::Str(text) => Value::Str(keep(&mut self.text, text)),
            Sample::Bin(text) => Value::Bin(keep(&mut self.text, text)),
            Sample::Method(text) => Value::Method(keep(&mut self.text, text)),
        };
        match self.slots.iter_mut().find(|(slot, _)| *slot == id) {
            Some((_, slot)) => *slot = value,
            None => self.slots.push((id, value)),
        }
    }

    /// Forgets the variable.
    pub fn unset(&mut self, id: VarId) {
        self.slots.retain(|(slot, _)| *slot != id);
    }

    /// The request has gone to its server or been answered: forgets `req` variables.
    pub fn end_request(&mut self) {
        self.slots.retain(|(id, _)| id.scope != VarScope::Req);
    }

    /// The exchange is over: forgets everything but `sess` variables.
    pub fn end_exchange(&mut self) {
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
        self.slots.clear();
        self.text.clear();
    }

    fn piece(&self, piece: Piece) -> &[u8] {
        self.text.get(piece.start..piece.end).unwrap_or_default()
    }
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
        let mut vars = Vars::default();
        let (sess, txn, req) = (id(0, VarScope::Sess), id(1, VarScope::Txn), id(2, VarScope::Req));
        vars.set(txn, Sample::Str(b"t"));
        vars.set(sess, Sample::Str(b"first"));
        vars.set(sess, Sample::Str(b"s"));
        vars.set(req, Sample::Int(1));
        vars.end_request();
        assert_eq!(vars.value(req), None);
        assert_eq!(vars.value(txn), Some(Sample::Str(b"t")));
        vars.end_exchange();
        assert_eq!(vars.value(txn), None);
        assert_eq!(vars.value(sess), Some(Sample::Str(b"s")));
        assert_eq!(vars.text, b"s");
    }

    #[test]
    fn a_variable_has_the_type_of_its_last_value() {
        let mut vars = Vars::default();
        let x = id(0, VarScope::Txn);
        vars.set(x, Sample::Str(b"5"));
        vars.set(x, Sample::Bool(true));
        assert_eq!(vars.value(x), Some(Sample::Bool(true)));
        vars.unset(x);
        assert_eq!(vars.value(x), None);
    }
}
