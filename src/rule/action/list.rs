//! Changes of pattern files and maps: they are seen by whoever looks up next, and gone with the next reload, which reads
//! the files again.

use std::sync::Arc;

use crate::rule::{format::Format, list::List, txn::Txn};

/// `set-map`, `del-map`, `add-acl`, `del-acl`.
#[derive(Clone, Debug)]
pub struct ListEdit {
    /// What is changed.
    pub list: Arc<List>,
    /// The key.
    pub key: Format,
    /// What becomes of it.
    pub change: Change,
}

/// What becomes of a key.
#[derive(Clone, Debug)]
pub enum Change {
    /// It gets this value, and is added where it is not there.
    Set(Format),
    /// It is added unless it is there.
    Add,
    /// It goes.
    Remove,
}

impl ListEdit {
    pub(super) fn apply(&self, txn: &Txn<'_>) {
        let key = self.key.text_in(txn);
        match &self.change {
            Change::Set(value) => self.list.set(key, value.text_in(txn)),
            Change::Add => self.list.add(key),
            Change::Remove => self.list.remove(key),
        }
    }

    pub(super) fn formats(&self) -> Vec<&Format> {
        match &self.change {
            Change::Set(value) => vec![&self.key, value],
            Change::Add | Change::Remove => vec![&self.key],
        }
    }
}
