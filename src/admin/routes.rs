//! What the API answers: one row a call.

use std::{fmt::Display, sync::Arc};

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header};
use http_body_util::Full;
use serde_json::json;

use super::purge;
use crate::ops::{Ops, PurgeReply};

/// What goes out.
pub(super) type Answer = Response<Full<Bytes>>;

/// One call of the API.
pub(super) struct Route {
    pub(super) method: Method,
    pub(super) path: &'static str,
    /// For everyone who can connect: probes.
    pub(super) open: bool,
    /// May take a while or read files: runs on a thread of its own, away from the probes.
    pub(super) slow: bool,
    pub(super) answer: fn(&Arc<Ops>, &[u8]) -> Answer,
}

static ROUTES: [Route; 6] = [
    Route { method: Method::POST, path: "/v1/purge", open: false, slow: true, answer: purge },
    Route { method: Method::POST, path: "/v1/reload", open: false, slow: true, answer: reload },
    Route { method: Method::GET, path: "/v1/stats", open: false, slow: false, answer: stats },
    Route { method: Method::GET, path: "/metrics", open: false, slow: false, answer: metrics },
    Route {
        method: Method::GET,
        path: "/healthz",
        open: true,
        slow: false,
        answer: |_, _| text(StatusCode::OK, "ok\n"),
    },
    Route { method: Method::GET, path: "/readyz", open: true, slow: false, answer: ready },
];

/// What a method and path lead to.
pub(super) enum Found {
    Route(&'static Route),
    /// The path is there with other methods: what `Allow` says.
    WrongMethod(&'static str),
    Nothing,
}

/// Finds a call; HEAD goes where GET goes.
pub(super) fn find(method: &Method, path: &str) -> Found {
    match ROUTES.iter().find(|route| route.path == path) {
        None => Found::Nothing,
        Some(route) if route.method == method => Found::Route(route),
        Some(route) if route.method == Method::GET && method == Method::HEAD => Found::Route(route),
        Some(route) => Found::WrongMethod(if route.method == Method::GET { "GET, HEAD" } else { "POST" }),
    }
}

/// An answer in JSON that says what went wrong.
pub(super) fn error(status: StatusCode, why: impl Display) -> Answer {
    json(status, &json!({ "error": why.to_string() }))
}

fn purge(ops: &Arc<Ops>, body: &[u8]) -> Answer {
    let requests = match purge::parse(body) {
        Ok(requests) => requests,
        Err(why) => return error(StatusCode::BAD_REQUEST, why),
    };
    let mut sum = PurgeReply::default();
    for request in &requests {
        let done = ops.purge(request);
        sum.matched = sum.matched.saturating_add(done.matched);
        sum.purged = sum.purged.saturating_add(done.purged);
    }
    json(StatusCode::OK, &json!({ "matched": sum.matched, "purged": sum.purged, "state": "done" }))
}

fn reload(ops: &Arc<Ops>, _: &[u8]) -> Answer {
    match ops.reload() {
        Ok(said) => json(StatusCode::OK, &json!({ "state": "done", "message": said })),
        Err(why) => error(StatusCode::UNPROCESSABLE_ENTITY, why),
    }
}

fn stats(ops: &Arc<Ops>, _: &[u8]) -> Answer {
    json(StatusCode::OK, &json!(ops.stats()))
}

fn metrics(ops: &Arc<Ops>, _: &[u8]) -> Answer {
    let mut answer = text(StatusCode::OK, ops.metrics().render());
    let prometheus = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    answer.headers_mut().insert(header::CONTENT_TYPE, prometheus);
    answer
}

fn ready(ops: &Arc<Ops>, _: &[u8]) -> Answer {
    if ops.is_ready() { text(StatusCode::OK, "ready\n") } else { text(StatusCode::SERVICE_UNAVAILABLE, "not ready\n") }
}

fn json(status: StatusCode, value: &serde_json::Value) -> Answer {
    answer(status, "application/json", format!("{value}\n"))
}

fn text(status: StatusCode, text: impl Into<Bytes>) -> Answer {
    answer(status, "text/plain; charset=utf-8", text)
}

fn answer(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let fields = answer.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    fields.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}
