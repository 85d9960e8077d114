//! The checked program of a rule file and its evaluation.
//!
//! Text has become types before it gets here: names are indices, patterns are sets, every
//! expression is typed and knows which half of the exchange it reads. Evaluation borrows the
//! message heads and allocates only where a rule edits.
//!
//! [`fetch`] draws a [`Sample`], [`converter`]s change it, a [`matcher`] tests it; an [`Expr`] is the
//! first two, an [`Acl`] all three, a [`Cond`] combines ACLs, a [`Rule`] puts an [`Action`] under a
//! condition. Each family is a table of rows: a new word is a new row.

pub mod acl;
pub mod action;
pub mod alias;
pub mod args;
pub mod capture;
pub mod converter;
pub mod expr;
pub mod fact;
pub mod fetch;
pub mod fingerprint;
pub mod format;
pub mod list;
pub mod matcher;
pub mod notes;
pub mod pattern;
pub mod phase;
pub mod progress;
pub mod sample;
pub mod session;
pub mod table;
pub mod template;
pub mod trace;
pub mod track;
pub mod txn;
pub mod users;
pub mod vars;

pub use acl::{Acl, Cond, Tri};
pub use action::{Action, Answer, Rule, RuleSet, Verdict};
pub use expr::Expr;
pub use fact::Fact;
pub use fingerprint::Fingerprint;
pub use format::Format;
pub use matcher::Matcher;
pub use notes::{Notes, RulePlace};
pub use phase::{Phase, Source, Stage};
pub use sample::{Sample, Type};
pub use session::Session;
pub use table::Table;
pub use trace::Trace;
pub use txn::{BindName, Client, Env, Tls, Txn};
pub use vars::{VarId, VarScope, Vars};
