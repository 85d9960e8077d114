//! The gateway behind an HTTP/2 connection: every stream is a request of its own, and memory answers
//! through the same replies as everything else.

use std::sync::Arc;

use tokio::time::Instant;

use super::{
    clock,
    decide::{Decided, Pause},
    deliver,
    fault::Fault,
    front::View,
    h1::parse::Refusal,
    h2::{Served, Service},
    job::{Handover, Job},
    log::Traffic,
    plan::{Arrival, Scratch},
    proxy::Engine,
    reply::Reply,
    upload::Upload,
};
use crate::{message::Request, rule::Client};

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

impl Service for Streams {
    type Plan = Handover;
    type Proxy = Engine;

    fn refused(&self, client: &Client, status: u16) {
        self.view.refused(client, &Refusal::new(status, "malformed"), Traffic::default());
    }

    fn decide(&self, client: &Arc<Client>, request: &mut Request) -> Decided<Handover> {
        let mut view = self.view.clone();
        // A stream that comes in while its frontend goes is served by the configuration it began under.
        view.refresh();
        let received = Instant::now();
        let arrival = Arrival::from((clock::now(), received.into_std()));
        let decided = view.decide(client, request, arrival, &mut Scratch::default());
        let line = view.line(request);
        let (snapshot, client) = (view.snapshot, client.clone());
        let (request, log) = (Request::default(), Some(view.context.worker.log));
        decided.map(|plan| Handover::new(Job { snapshot, plan, client, request, upgrade: false, line, received, log }))
    }

    fn resume(&self, handover: Handover, pause: Pause, request: &mut Request) -> Decided<Handover> {
        let Some(mut job) = handover.take() else { return Decided::Made(handover) };
        let decided = job.plan.clone().resume(pause, &job.snapshot, &job.client, request, &mut Scratch::default());
        let line = job.line.is_some().then(|| Box::new(request.clone()));
        decided.map(|plan| {
            (job.plan, job.line) = (plan, line);
            handover.put(job);
            handover
        })
    }

    fn give_up(&self, handover: Handover, refusal: &Refusal) -> Handover {
        if let Some(mut job) = handover.take() {
            job.plan = job.plan.clone().refuse(&job.snapshot, refusal);
            handover.put(job);
        }
        handover
    }

    fn buffer(&self) -> usize {
        self.view.snapshot.config.global.buffer
    }

    async fn serve<R: Reply, U: Upload>(
        &self,
        plan: Handover,
        request: Request,
        client: &Arc<Client>,
        reply: &mut R,
        upload: &mut U,
    ) -> Served<Handover> {
        // A stream may be dropped anywhere: its job counts it then.
        let Some(mut job) = plan.take() else { return Served::Broken };
        let (decided, snapshot) = (job.plan.clone(), job.snapshot.clone());
        let served = if snapshot.config.global.front {
            deliver::serve(&self.view.context.worker, &snapshot, client, decided, request, reply, upload).await
        } else {
            deliver::Served::Pass(Box::new((decided, request)))
        };
        match served {
            deliver::Served::Done(plan, ending) => {
                job.plan = *plan;
                job.ended_here(&ending);
                Served::Done
            }
            deliver::Served::Broken(plan, ending) => {
                job.plan = *plan;
                job.ended_here(&ending);
                Served::Broken
            }
            deliver::Served::Pass(passed) => {
                let (decided, request) = *passed;
                (job.plan, job.request) = (decided, request.clone());
                plan.put(job);
                Served::Pass(Box::new((plan, request)))
            }
        }
    }

    fn failed(&self, plan: Handover) {
        if let Some(job) = plan.take() {
            let duration = job.received.elapsed();
            job.failed(&Fault::INTERNAL, Traffic { duration, ..Traffic::default() });
        }
    }

    fn proxy(&self) -> &Arc<Engine> {
        &self.view.context.engine
    }
}
