//! `bench origin`: what a request's path and query say is what it answers.
//!
//! `/bytes/N` has N bytes that depend on the whole target, `x-checksum` over them and the target in `x-target`.
//! Query: `cc=` Cache-Control, `vary=`, `etag=` (with 304), `status=`, `delay=` milliseconds, `chunked=1`,
//! `truncate=K` breaks off after K bytes, `header=Name:Value` any other field. `/count` says how many requests came,
//! `/count/bytes/…` how many for that path; `DELETE /count` starts over.

use std::{
    collections::HashMap,
    convert::Infallible,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::{CHECKSUM, TARGET, body::Script};
use crate::{
    cli::{Exit, say},
    config::BindAddress,
    gateway::listening,
};

/// The longest body.
const MAX_BYTES: u64 = 1 << 30;
/// Paths counted one by one; more are only in the total.
const MAX_COUNTED: usize = 1_000_000;

/// What `bench origin` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to listen
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8000")]
    listen: SocketAddr,
}

#[derive(Debug, Default)]
struct Counts {
    total: u64,
    paths: HashMap<String, u64>,
}

/// Serves until the process is stopped.
///
/// # Errors
/// It cannot listen.
pub(super) fn origin(args: &Args) -> Result<(), Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Exit::line)?;
    runtime.block_on(async {
        let cannot = |error: io::Error| {
            let why = listening::reason(&error, &BindAddress::Tcp(args.listen));
            Exit::line(format_args!("cannot listen on {}: {why}", args.listen))
        };
        let listener = TcpListener::bind(args.listen).await.map_err(cannot)?;
        say(format_args!("The origin listens on http://{}/", listener.local_addr().map_err(cannot)?));
        serve(&listener).await
    })
}

async fn serve(listener: &TcpListener) -> Result<(), Exit> {
    let counts = Arc::new(Mutex::new(Counts::default()));
    loop {
        let (stream, _) = listener.accept().await.map_err(Exit::line)?;
        let _ = stream.set_nodelay(true);
        let counts = Arc::clone(&counts);
        tokio::spawn(async move {
            let service = service_fn(|request| answer(&counts, request));
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(counts: &Mutex<Counts>, request: Request<Incoming>) -> Result<Response<Script>, Infallible> {
    if let Some(path) = request.uri().path().strip_prefix("/count") {
        return Ok(count(counts, request.method(), path));
    }
    {
        let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.total += 1;
        let path = request.uri().path();
        if let Some(count) = counts.paths.get_mut(path) {
            *count += 1;
        } else if counts.paths.len() < MAX_COUNTED {
            counts.paths.insert(path.to_owned(), 1);
        }
    }
    let mut script = match Orders::read(&request) {
        Ok(orders) => orders,
        Err(why) => return Ok(text(StatusCode::BAD_REQUEST, why)),
    };
    if !script.delay.is_zero() {
        tokio::time::sleep(script.delay).await;
    }
    let matches = |etag: &HeaderValue| request.headers().get(header::IF_NONE_MATCH).is_some_and(|given| given == etag);
    if script.response.headers().get(header::ETAG).is_some_and(matches) {
        *script.response.status_mut() = StatusCode::NOT_MODIFIED;
        *script.response.body_mut() = Script::default();
        script.response.headers_mut().remove(CHECKSUM);
    }
    Ok(script.response)
}

fn count(counts: &Mutex<Counts>, method: &Method, path: &str) -> Response<Script> {
    let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
    if method == Method::DELETE {
        *counts = Counts::default();
    }
    let count = if path.is_empty() { counts.total } else { counts.paths.get(path).copied().unwrap_or_default() };
    text(StatusCode::OK, format!("{count}\n"))
}

fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<Script> {
    let mut response = Response::new(Script::text(text.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// What a request's target orders.
struct Orders {
    response: Response<Script>,
    delay: Duration,
}

impl Orders {
    fn read(request: &Request<Incoming>) -> Result<Self, String> {
        let (uri, head) = (request.uri(), request.method() == Method::HEAD);
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        let bytes = uri.path().strip_prefix("/bytes/").and_then(|rest| rest.split('/').next());
        let bytes = bytes.and_then(|number| number.parse().ok()).filter(|&bytes| bytes <= MAX_BYTES);
        let bytes =
            bytes.ok_or("ask for /bytes/N, N up to 1073741824; more may follow: /bytes/N/name?cc=max-age=60\n")?;
        let mut orders = Self { response: Response::new(Script::of(target, bytes)), delay: Duration::ZERO };
        let sum = orders.response.body().checksum();
        orders.field(CHECKSUM, sum.text().as_bytes())?;
        orders.field(TARGET, target.as_bytes())?;
        for pair in uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            orders.take(key, &percent_decoded(value))?;
        }
        if head {
            orders.response.body_mut().breaks_at = None;
        }
        Ok(orders)
    }

    fn take(&mut self, key: &str, value: &[u8]) -> Result<(), String> {
        let number = || std::str::from_utf8(value).ok().and_then(|text| text.parse::<u64>().ok());
        let number = || number().ok_or_else(|| format!("`{key}` takes a number\n"));
        match key {
            "cc" => self.field("cache-control", value),
            "vary" | "etag" => self.field(key, value),
            "header" => {
                let colon = value.iter().position(|&byte| byte == b':').ok_or("`header` takes Name:Value\n")?;
                let (name, value) = value.split_at(colon);
                self.field(&String::from_utf8_lossy(name), value.get(1..).unwrap_or_default().trim_ascii())
            }
            "status" => {
                let status = u16::try_from(number()?).ok().and_then(|code| StatusCode::from_u16(code).ok());
                *self.response.status_mut() =
                    status.filter(|status| status.as_u16() >= 200).ok_or("`status` takes 200 to 999\n")?;
                Ok(())
            }
            "delay" => {
                self.delay = Duration::from_millis(number()?.min(600_000));
                Ok(())
            }
            "chunked" => {
                self.response.body_mut().chunked = value == b"1";
                Ok(())
            }
            "truncate" => {
                self.response.body_mut().breaks_at = Some(number()?);
                Ok(())
            }
            // Whatever else makes this target differ from another one.
            _ => Ok(()),
        }
    }

    fn field(&mut self, name: &str, value: &[u8]) -> Result<(), String> {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| format!("{error}\n"))?;
        let value = HeaderValue::from_bytes(value).map_err(|error| format!("{error}\n"))?;
        self.response.headers_mut().append(name, value);
        Ok(())
    }
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let hex = tail.get(..2).filter(|_| first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = tail.get(2..).unwrap_or_default();
            }
            None => {
                out.push(if first == b'+' { b' ' } else { first });
                rest = tail;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_values_are_decoded() {
        assert_eq!(percent_decoded("public%2C+max-age=60"), b"public, max-age=60");
        assert_eq!(percent_decoded("100%"), b"100%");
        assert_eq!(percent_decoded("%zz%4"), b"%zz%4");
        assert_eq!(percent_decoded("%22a%22"), b"\"a\"");
    }
}
