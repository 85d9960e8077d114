//! Actions on tables of counters: `track-sc0`, `sc-inc-gpc0`, `sc-set-gpt0` and their kin (HAProxy manual §4.2).

use std::sync::Arc;

use crate::rule::{
    Expr, Txn,
    sample::{Sample, Type},
    table::Datum,
    track::Event,
};

/// `track-sc0 EXPR [table T]`.
#[derive(Clone, Debug)]
pub struct Track {
    /// 0 to 2.
    pub slot: usize,
    /// What the key is made of.
    pub key: Expr,
    /// The table's place in the configuration's list.
    pub table: usize,
    /// What is tracked, and so how long.
    pub tracks: Tracking,
}

/// What a track is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracking {
    /// The connection.
    Connection,
    /// The exchange, before its request is counted.
    Exchange,
    /// The exchange, whose request is counted already.
    Http,
}

/// `sc-inc-gpc0` and its kin: a change of a counter of what is tracked.
#[derive(Clone, Debug)]
pub struct CounterEdit {
    /// 0 to 2.
    pub slot: usize,
    /// What is done; nothing to what the table does not store.
    pub change: Change,
}

/// A change of a counter.
#[derive(Clone, Debug)]
pub enum Change {
    /// Counts in each of these.
    Add([Datum; 2], usize, Number),
    /// Sets it.
    Set(Datum, usize, Number),
}

/// A number that is written or drawn.
#[derive(Clone, Debug)]
pub enum Number {
    /// This one.
    Of(u64),
    /// What an expression gives; nothing is done when it gives no number.
    Drawn(Box<Expr>),
}

impl Track {
    pub(super) fn apply(&self, txn: &mut Txn<'_>) {
        let Some(table) = txn.env.table(self.table) else { return };
        let Some(key) = self.key.eval(txn).and_then(|sample| table.spec().key.key(sample, txn.arena)) else { return };
        let (table, now) = (Arc::clone(table), txn.millis());
        let status = txn.response.as_ref().map(|response| response.status);
        match self.tracks {
            Tracking::Connection => txn.client.session().tracks.fill(self.slot, || table.track(&key, now)),
            Tracking::Exchange => txn.tracks().fill(self.slot, || table.track(&key, now)),
            Tracking::Http => txn.tracks().fill(self.slot, || {
                let tracked = table.track(&key, now)?;
                // What was counted before it was tracked counts for it, too.
                Event::Request.count(&tracked, now);
                if let Some(event) = status.and_then(Event::of_status) {
                    event.count(&tracked, now);
                }
                Some(tracked)
            }),
        }
    }
}

impl CounterEdit {
    /// What it reads.
    pub(super) fn expr(&self) -> Option<&Expr> {
        match &self.change {
            Change::Add(.., Number::Drawn(expr)) | Change::Set(.., Number::Drawn(expr)) => Some(expr),
            _ => None,
        }
    }

    pub(super) fn apply(&self, txn: &Txn<'_>) {
        let (Change::Add(.., number) | Change::Set(.., number)) = &self.change;
        let Some(number) = number.value(txn) else { return };
        txn.tracked(self.slot, |tracked| {
            let entry = tracked.entry(txn.millis());
            match self.change {
                Change::Add(data, index, _) => data.into_iter().for_each(|datum| {
                    entry.add(datum, index, number);
                }),
                Change::Set(datum, index, _) => {
                    entry.set(datum, index, number);
                }
            }
        });
    }
}

impl Number {
    fn value(&self, txn: &Txn<'_>) -> Option<u64> {
        match self {
            Self::Of(number) => Some(*number),
            Self::Drawn(expr) => match expr.eval(txn)?.cast(Type::Int, txn.arena)? {
                // Counters have 32 bits; a negative number goes round.
                Sample::Int(number) => Some(number.cast_unsigned()),
                _ => None,
            },
        }
    }
}
