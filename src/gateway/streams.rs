//! The gateway behind an HTTP/2 connection: every stream is a request of its own, and memory answers
//! through the same replies as everything else.

use std::sync::Arc;

use tokio::time::Instant;

use super::{
    clock, deliver,
    front::View,
    h1::parse::Refusal,
    h2::{Served, Service},
    log::{self, AccessLog, Ending, Traffic},
    plan::Scratch,
    proxy::{self, Engine, Handover, Job},
    reply::Reply,
};
use crate::{message::Request, metrics::Outcome, rule::Client};

/// The gateway as every stream of one connection sees it.
#[derive(Clone)]
pub struct Streams {
    view: View,
}

impl Streams {
    /// The gateway as `view` has it.
    pub const fn new(view: View) -> Self {
        Self { view }
    }
}

/// A request whose end has not been counted; a stream may be dropped anywhere, and counts then, too.
struct Uncounted {
    job: Option<Job>,
    log: AccessLog,
}

impl Uncounted {
    fn ended(&mut self, ending: &Ending) {
        let Some(job) = self.job.take() else { return };
        let traffic = Traffic { duration: job.received.elapsed(), ..Traffic::default() };
        log::settle(&job.snapshot, &job.plan, &job.line, ending, traffic, &self.log);
    }
}

impl Drop for Uncounted {
    fn drop(&mut self) {
        let rule = self.job.as_ref().and_then(|job| job.plan.rule());
        self.ended(&Ending { status: 0, outcome: Outcome::Error, reason: Some("client-gone"), rule });
    }
}

impl Service for Streams {
    type Plan = Handover;
    type Proxy = Engine;

    fn refused(&self, client: &Client, status: u16) {
        self.view.refused(client, &Refusal::new(status, "malformed"), Traffic::default());
    }

    fn decide(&self, client: &Arc<Client>, request: &mut Request) -> Handover {
        let mut view = self.view.clone();
        // A stream that comes in while its frontend goes is served by the configuration it began under.
        view.refresh();
        let received = Instant::now();
        let plan = view.decide(client, request, clock::now(), received, &mut Scratch::default());
        let line = view.line(client, request);
        let (snapshot, client) = (view.snapshot, client.clone());
        proxy::handover(Job { snapshot, plan, client, request: Request::default(), upgrade: false, line, received })
    }

    async fn serve<R: Reply>(
        &self,
        plan: Handover,
        request: Request,
        client: &Arc<Client>,
        reply: &mut R,
    ) -> Served<Handover> {
        let mut uncounted = Uncounted { job: proxy::take(&plan), log: self.view.context.worker.log.clone() };
        let Some(job) = &uncounted.job else { return Served::Broken };
        let (decided, snapshot) = (job.plan.clone(), job.snapshot.clone());
        let served = if snapshot.config.global.front {
            deliver::serve(&self.view.context.worker, &snapshot, client, decided, request, reply).await
        } else {
            deliver::Served::Pass(Box::new((decided, request)))
        };
        match served {
            deliver::Served::Done(ending) => {
                uncounted.ended(&ending);
                Served::Done
            }
            deliver::Served::Broken(ending) => {
                uncounted.ended(&ending);
                Served::Broken
            }
            deliver::Served::Pass(passed) => {
                let (decided, request) = *passed;
                let Some(job) = uncounted.job.take() else { return Served::Broken };
                proxy::put(&plan, Job { plan: decided, request: request.clone(), ..job });
                Served::Pass(Box::new((plan, request)))
            }
        }
    }

    fn proxy(&self) -> &Arc<Engine> {
        &self.view.context.engine
    }
}
