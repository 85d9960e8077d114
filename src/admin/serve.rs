//! From socket to answer.

use std::{collections::HashMap, convert::Infallible, io, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, UnixListener},
    sync::mpsc,
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{
    Command, Shared,
    bind::Listener,
    guard::{self, Via},
    room::Place,
    routes::{self, Answer, Found},
};
use crate::config::BindAddress;

/// How long a head may take, from the moment that it may come.
const HEAD_DEADLINE: Duration = Duration::from_secs(5);
/// How long a body may take.
const BODY_DEADLINE: Duration = Duration::from_secs(10);
/// The longest body taken.
const MAX_BODY: usize = 1 << 20;
/// The longest head taken.
const MAX_HEAD: usize = 32 << 10;

/// The server's thread: does as it is told until the sender is gone.
pub(super) async fn commands(shared: Arc<Shared>, mut commands: mpsc::UnboundedReceiver<Command>) {
    let mut served: HashMap<BindAddress, JoinHandle<()>> = HashMap::new();
    while let Some(command) = commands.recv().await {
        match command {
            Command::Serve(address, listener) => {
                served.insert(address, tokio::spawn(accept(Arc::clone(&shared), listener)));
            }
            Command::Close(address) => {
                if let Some(task) = served.remove(&address) {
                    task.abort();
                }
                if let BindAddress::Unix(path) = address {
                    let _ = std::fs::remove_file(path);
                }
            }
        }
    }
}

async fn accept(shared: Arc<Shared>, listener: Listener) {
    let error = match listener {
        Listener::Tcp(listener) => match TcpListener::from_std(listener) {
            Ok(listener) => return accept_tcp(&shared, &listener).await,
            Err(error) => error,
        },
        Listener::Unix(listener) => match UnixListener::from_std(listener) {
            Ok(listener) => return accept_unix(&shared, &listener).await,
            Err(error) => error,
        },
    };
    tracing::error!("the admin API cannot serve a socket: {error}");
}

async fn accept_tcp(shared: &Arc<Shared>, listener: &TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => serve(shared, stream, Via::Tcp).await,
            Err(error) => out_of_something(&error).await,
        }
    }
}

async fn accept_unix(shared: &Arc<Shared>, listener: &UnixListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => serve(shared, stream, Via::Unix).await,
            Err(error) => out_of_something(&error).await,
        }
    }
}

/// `accept` fails when descriptors run out; a pause keeps the thread from spinning.
async fn out_of_something(error: &io::Error) {
    tracing::warn!("the admin API cannot accept a connection: {error}");
    sleep(Duration::from_millis(100)).await;
}

/// Serves a connection in a task of its own, once there is room for it.
async fn serve<S>(shared: &Arc<Shared>, stream: S, via: Via)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let place = shared.room.enter().await;
    let number = place.number();
    let served = Arc::clone(shared);
    let task = tokio::spawn(async move {
        let service = service_fn(|request| async { Ok::<_, Infallible>(answer(&served, &place, request, via).await) });
        // A client that breaks the rules or leaves is its own affair.
        let _ = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_DEADLINE)
            .max_buf_size(MAX_HEAD)
            .serve_connection(TokioIo::new(stream), service)
            .await;
    });
    shared.room.served_by(number, task.abort_handle());
}

async fn answer(shared: &Arc<Shared>, place: &Place, request: Request<Incoming>, via: Via) -> Answer {
    let (head, body) = request.into_parts();
    if let Err(refusal) = guard::clear(&head) {
        let mut answer = routes::error(refusal.status, refusal.why);
        // Where its body ends is not certain either.
        answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        return answer;
    }
    let found = routes::find(&head.method, head.uri.path());
    let open = matches!(found, Found::Route(route) if route.open);
    let token = shared.token.load_full();
    if !open && let Err(refusal) = guard::check(&head, via, token.as_ref().map(|token| token.as_str())) {
        let mut answer = routes::error(refusal.status, refusal.why);
        if refusal.status == StatusCode::UNAUTHORIZED {
            answer.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        return answer;
    }
    let route = match found {
        Found::Route(route) => route,
        Found::Nothing => return routes::error(StatusCode::NOT_FOUND, "there is nothing here"),
        Found::WrongMethod(allowed) => {
            let mut answer = routes::error(StatusCode::METHOD_NOT_ALLOWED, format_args!("allowed here: {allowed}"));
            answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
            return answer;
        }
    };
    let body = match read(body).await {
        Ok(body) => body,
        Err(answer) => return answer,
    };
    if !body.is_empty() && !head.headers.contains_key(header::CONTENT_TYPE) {
        return routes::error(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "a body needs `Content-Type: application/json` beside it",
        );
    }
    if !route.slow {
        return (route.answer)(&shared.ops, &body);
    }
    let ops = Arc::clone(&shared.ops);
    match place.serving(tokio::task::spawn_blocking(move || (route.answer)(&ops, &body))).await {
        Ok(answer) => answer,
        Err(_) => routes::error(StatusCode::INTERNAL_SERVER_ERROR, "this failed; the log says why"),
    }
}

async fn read(body: Incoming) -> Result<Bytes, Answer> {
    match timeout(BODY_DEADLINE, Limited::new(body, MAX_BODY).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err(routes::error(StatusCode::PAYLOAD_TOO_LARGE, format_args!("a body has at most {MAX_BODY} bytes")))
        }
        Ok(Err(_)) => Err(routes::error(StatusCode::BAD_REQUEST, "the body broke off")),
        Err(_) => Err(routes::error(StatusCode::REQUEST_TIMEOUT, "the body took too long")),
    }
}
