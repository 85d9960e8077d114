//! Answers of our own: what rules say, faults, purges, and what response rules put in the place of a response.

use std::{io, time::Duration};

use bumpalo::Bump;
use bytes::Bytes;

use super::{Delivery, Flow};
use crate::{
    gateway::{
        log::{CLOSED, Ending, RESPONSE_RULE},
        pages,
        plan::Plan,
        reply::Reply,
        respond::{self, Instead, Rules},
        upload::Upload,
    },
    message::{Framing, Response},
    metrics::Outcome,
    ops::PurgeRequest,
    policy::status::Status,
    rule::Answer,
};

/// Tells the client beforehand what its answer will refer to (RFC 8297), if rules say so.
///
/// # Errors
/// The client is gone.
pub async fn hint<R: Reply>(plan: &mut Plan, reply: &mut R) -> io::Result<()> {
    if plan.notes.hints.is_empty() {
        return Ok(());
    }
    let mut head = Response::new(103);
    head.fields = std::mem::take(&mut plan.notes.hints);
    reply.interim(&head).await
}

impl<R: Reply, U: Upload> Delivery<'_, R, U> {
    /// Lets the client wait for its answer (`tarpit`). `answer`: `None` says nothing then.
    pub(super) async fn hold(&mut self, answer: Option<&Answer>, time: Duration) -> io::Result<Flow> {
        const REASON: Option<&str> = Some("tarpit");
        self.ending.outcome = Outcome::Refused;
        tokio::select! {
            () = tokio::time::sleep(time) => {}
            () = self.upload.gone(false) => return Ok(Flow::Left),
        }
        match answer {
            Some(answer) => self.own(answer.head.clone(), answer.body.clone(), Outcome::Refused, REASON, None).await,
            None => Ok(self.silence(Outcome::Refused, REASON)),
        }
    }

    /// Answers with a fault, as the proxies of the exchange say it if they do; `status` as for [`Self::own`].
    pub(super) async fn fault(
        &mut self,
        ours: Answer,
        outcome: Outcome,
        reason: Option<&'static str>,
        status: Option<Status<'static>>,
    ) -> io::Result<Flow> {
        match pages::instead_of(self.snapshot, self.plan.frontend, self.plan.backend, ours) {
            Some(answer) => self.own(answer.head, answer.body, outcome, reason, status).await,
            None => Ok(self.silence(outcome, reason)),
        }
    }

    /// Ends the connection in the place of an answer.
    fn silence(&mut self, outcome: Outcome, reason: Option<&'static str>) -> Flow {
        self.ending = Ending { status: 0, outcome, reason: reason.or(Some(CLOSED)), rule: self.plan.rule() };
        Flow::Broken
    }

    /// Purges the request's URL from every store and says how many objects that was.
    pub(super) async fn purge(&mut self, soft: bool) -> io::Result<Flow> {
        let mut url = Vec::new();
        self.request.write_url(self.client.tls.is_some(), &mut url);
        let request = PurgeRequest::url(&String::from_utf8_lossy(&url));
        let purged = request.map(|request| self.worker.shared.ops().purge(&request.soft(soft))).unwrap_or_default();
        let mut head = Response::new(if purged.matched > 0 { 200 } else { 404 });
        head.fields.append(b"Content-Type", b"application/json");
        let body = format!("{{\"matched\":{},\"purged\":{}}}\n", purged.matched, purged.purged);
        self.own(head, Bytes::from(body), Outcome::Purge, None, None).await
    }

    /// Sends a response of our own; `status` where it stands for one of the cache.
    pub(super) async fn own(
        &mut self,
        mut head: Response,
        body: Bytes,
        outcome: Outcome,
        reason: Option<&'static str>,
        status: Option<Status<'static>>,
    ) -> io::Result<Flow> {
        let rules = Rules::of_answer(self.snapshot, &self.plan);
        // No rule that a response of our own meets puts another in its place.
        respond::apply(&rules, &mut self.plan, self.client, &mut self.request, &mut head, &Bump::new())?;
        if let Some(status) = status {
            respond::say(&status, &mut head);
        }
        self.ending = Ending { status: head.status, outcome, reason, rule: self.plan.rule() };
        self.whole(head, body).await?;
        Ok(Flow::Done)
    }

    /// Sends what a response rule has put in the place of a response; `head` is that of `instead` by now.
    pub(super) async fn instead_of_response(&mut self, head: Response, instead: Instead) -> io::Result<()> {
        let Instead { body, outcome } = instead;
        self.ending = Ending { status: head.status, outcome, reason: Some(RESPONSE_RULE), rule: self.plan.rule() };
        self.whole(head, body).await
    }

    async fn whole(&mut self, mut head: Response, body: Bytes) -> io::Result<()> {
        self.upload.notice_end().await;
        if head.is_bodyless() {
            return self.reply.head(&head, true).await;
        }
        head.fields.set(b"Content-Length", body.len().to_string().as_bytes());
        head.framing = Framing::Length(u64::try_from(body.len()).unwrap_or(u64::MAX));
        if self.request.method() == b"HEAD" {
            return self.reply.head(&head, true).await;
        }
        self.reply.whole(&head, body).await
    }
}
