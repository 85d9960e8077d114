//! A store with a scripted origin; the tests proper are in the files under it.

mod eviction;
mod fills;
mod purges;
mod windows;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::{
    Lookup, Object, Seen, Store,
    fill::{Arrival, Failure, FailureKind, FillOptions, Head, Joined, Judgement, Piece, Reader, Source},
    object::Draft,
    store::Limits,
    tags,
};
use crate::{
    message::{Framing, Request, Response},
    metrics::StoreMetrics,
    policy::{freshness::Freshness, variant::Vary},
    time::Timestamp,
};

/// What a server does next.
enum Step {
    Head(Head),
    Piece(Piece),
    Fail(FailureKind),
    Panic,
}

/// The far end of a source. Dropping it is silence, not an end.
struct Origin(UnboundedSender<Step>);

impl Origin {
    fn head(&self, lines: &[(&str, &str)], framing: Framing) -> &Self {
        let response = Response { framing, fields: lines.iter().copied().collect(), ..Response::new(200) };
        self.then(Step::Head(Head::Final(response)))
    }

    fn interim(&self) -> &Self {
        self.then(Step::Head(Head::Interim(Response::new(103))))
    }

    fn data(&self, data: impl Into<Bytes>) -> &Self {
        self.then(Step::Piece(Piece::Data(data.into())))
    }

    fn end(&self) -> &Self {
        self.then(Step::Piece(Piece::End(None)))
    }

    fn trailers(&self) -> &Self {
        self.then(Step::Piece(Piece::End(Some([("X-Sum", "1")].into_iter().collect()))))
    }

    fn fail(&self) -> &Self {
        self.then(Step::Fail(FailureKind::Truncated))
    }

    /// A whole response of a known length.
    fn whole(&self, lines: &[(&str, &str)], body: &str) {
        self.head(lines, Framing::Length(body.len() as u64)).data(body.to_owned()).end();
    }

    fn then(&self, step: Step) -> &Self {
        // A fill that has gone does not mind.
        let _ = self.0.send(step);
        self
    }

    fn is_read(&self) -> bool {
        !self.0.is_closed()
    }
}

/// Judges by fields of the script: `Private: reason`, `Vary`, `Surrogate-Key`, `Error`.
struct Scripted {
    steps: UnboundedReceiver<Step>,
    request: Request,
    url: String,
    /// What a 304 would confirm.
    stored: Option<Arc<Object>>,
    url_known: bool,
}

impl Scripted {
    async fn step(&mut self) -> Result<Step, Failure> {
        match self.steps.recv().await {
            Some(Step::Fail(kind)) => Err(Failure::new(kind, "scripted")),
            Some(Step::Panic) => panic!("scripted"),
            Some(step) => Ok(step),
            None => std::future::pending().await,
        }
    }
}

impl Source for Scripted {
    async fn head(&mut self) -> Result<Head, Failure> {
        match self.step().await? {
            Step::Head(head) => Ok(head),
            _ => panic!("a body before its head"),
        }
    }

    fn judge(&mut self, response: Response) -> Judgement {
        if response.fields.has("private") {
            return Judgement::Private(Box::new(response), "private");
        }
        if response.fields.has("error") {
            return Judgement::ServerError(Box::new(response));
        }
        let mut keys = Vec::new();
        response.fields.all("surrogate-key").for_each(|value| tags::split(value, &mut keys));
        let draft = Draft {
            request: self.request.clone(),
            url: self.url.clone().into(),
            vary: Vary::of(&response.fields),
            freshness: Freshness { lifetime: Duration::from_secs(60), ..Freshness::default() },
            head: response,
            tags: keys,
            key: None,
            rule: 1,
        };
        match self.stored.take() {
            Some(old) => Judgement::Freshen(Box::new(draft), old),
            None => Judgement::Store(Box::new(draft)),
        }
    }

    fn url(&self) -> Option<&[u8]> {
        self.url_known.then_some(self.url.as_bytes())
    }

    async fn body(&mut self) -> Result<Piece, Failure> {
        match self.step().await? {
            Step::Piece(piece) => Ok(piece),
            _ => panic!("a head in a body"),
        }
    }
}

const FINISH: FillOptions = FillOptions {
    wait: Some(Duration::from_secs(30)),
    alone: false,
    finish_percent: 0,
    finish_bytes: 0,
    abandon: false,
    max_object_size: u64::MAX,
};

/// A store, and requests to it.
struct Cache {
    store: Arc<Store>,
    metrics: Arc<StoreMetrics>,
    options: FillOptions,
    url_known: bool,
}

impl Cache {
    fn of(memory: u64) -> Self {
        let metrics = Arc::new(StoreMetrics::default());
        let limits = Limits { memory, max_object_size: u64::MAX, max_variants: 4 };
        Self { store: Store::new("test", limits, Arc::clone(&metrics)), metrics, options: FINISH, url_known: false }
    }

    fn new() -> Self {
        Self::of(64 << 20)
    }

    /// Asks for `path` as a client with these fields; `None` for the origin of a request that joined.
    fn ask(&self, path: &str, lines: &[(&str, &str)]) -> (Reader, Option<Origin>) {
        self.ask_about(path, lines, None)
    }

    fn ask_about(&self, path: &str, lines: &[(&str, &str)], stored: Option<Arc<Object>>) -> (Reader, Option<Origin>) {
        let request = request(path, lines);
        let mut origin = None;
        let fetched = self.store.fetch(path.as_bytes(), &request, self.options, Seen::Whatever, || {
            let (sender, steps) = unbounded_channel();
            origin = Some(Origin(sender));
            Scripted { steps, request: request.clone(), url: url(path), stored, url_known: self.url_known }
        });
        let (reader, joined) = fetched.expect("a fetch whatever is stored");
        assert_eq!(joined == Joined::Leader, origin.is_some());
        (reader, origin)
    }

    fn lead(&self, path: &str) -> (Reader, Origin) {
        let (reader, origin) = self.ask(path, &[]);
        (reader, origin.expect("a fill of its own"))
    }

    fn found(&self, path: &str, lines: &[(&str, &str)]) -> Option<Arc<Object>> {
        match self.store.lookup(path.as_bytes(), &request(path, lines), &mut Vec::new()) {
            Lookup::Found(object) => Some(object),
            Lookup::VaryMiss | Lookup::Miss => None,
        }
    }

    /// Stores a whole response.
    async fn put(&self, path: &str, asked: &[(&str, &str)], lines: &[(&str, &str)], body: &str) {
        let (mut reader, origin) = self.ask(path, asked);
        origin.expect("a fill of its own").whole(lines, body);
        assert_eq!(head(&mut reader).await.0, 200);
        assert_eq!(rest(&mut reader).await.as_deref(), Ok(body));
    }
}

fn url(path: &str) -> String {
    format!("http://a.example{path}")
}

fn request(path: &str, lines: &[(&str, &str)]) -> Request {
    let mut request = Request::new(b"GET", path.as_bytes());
    for (name, value) in lines {
        request.fields.append(name.as_bytes(), value.as_bytes());
    }
    request
}

/// The head a reader gets: status, and whether it is being stored.
async fn head(reader: &mut Reader) -> (u16, bool) {
    match reader.head().await {
        Ok(Arrival::Head { head, stored, .. }) => (head.status, stored),
        other => panic!("no head: {other:?}"),
    }
}

async fn refusal(reader: &mut Reader) -> &'static str {
    match reader.head().await {
        Ok(Arrival::NotForYou(reason)) => reason,
        other => panic!("not refused: {other:?}"),
    }
}

/// The rest of a body, or the kind of failure.
async fn rest(reader: &mut Reader) -> Result<String, FailureKind> {
    let mut out = Vec::new();
    loop {
        match reader.body().await {
            Ok(Piece::Data(data)) => out.extend_from_slice(&data),
            Ok(Piece::End(_)) => return Ok(String::from_utf8(out).expect("text")),
            Err(failure) => return Err(failure.kind),
        }
    }
}

async fn piece(reader: &mut Reader) -> Bytes {
    match reader.body().await {
        Ok(Piece::Data(data)) => data,
        other => panic!("no data: {other:?}"),
    }
}

/// Lets every task do what it can.
async fn settle() {
    for _ in 0..32 {
        tokio::task::yield_now().await;
    }
}
