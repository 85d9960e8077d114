//! Answers that are made here: what the proxies of an exchange have for a status goes before what we say ourselves
//! (HAProxy manual §4.2 `errorfile`).

use super::{plan::Plan, snapshot::Snapshot};
use crate::{
    config::{Backend, Frontend, Id},
    rule::{
        Answer,
        action::answer::{Given, page},
    },
};

/// The answer that stands for `ours`, by its status: the backend's page, the frontend's, or `ours` itself. `None`: nothing
/// is to be said, and the connection ends.
pub fn instead_of(
    snapshot: &Snapshot,
    frontend: Id<Frontend>,
    backend: Option<Id<Backend>>,
    ours: Answer,
) -> Option<Answer> {
    let status = ours.head.status;
    let of_backend = backend.and_then(|id| snapshot.backend(id)).and_then(|backend| backend.pages.of(status));
    let of_frontend = || snapshot.frontend(frontend).and_then(|frontend| frontend.pages.of(status));
    match of_backend.or_else(of_frontend).and_then(|page| page.fixed()) {
        Some(Given::Answer(answer)) => Some(*answer),
        Some(Given::Silence) => None,
        Some(Given::Page { .. }) | None => Some(ours),
    }
}

/// The answer that a rule has given; `None` as for [`instead_of`].
pub fn given(snapshot: &Snapshot, plan: &Plan, given: Given) -> Option<Answer> {
    match given {
        Given::Answer(answer) => Some(*answer),
        Given::Silence => None,
        Given::Page { status, challenge } => {
            let mut answer = instead_of(snapshot, plan.frontend, plan.backend, page(status))?;
            if let Some(challenge) = challenge {
                answer.head.fields.set(b"WWW-Authenticate", &challenge);
            }
            Some(answer)
        }
    }
}
