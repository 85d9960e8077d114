//! The admin API's client, for the commands that talk to a running gateway.

use std::{io, path::PathBuf, time::Duration};

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
    time::timeout,
};

use super::{Exit, io_reason};

/// How long a call may take; a purge of millions of objects takes seconds.
const DEADLINE: Duration = Duration::from_secs(60);
/// The longest answer taken.
const MAX_ANSWER: usize = 64 << 20;

/// Where the running gateway's admin API is.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Remote {
    /// The admin API of the running gateway: HOST:PORT or unix:PATH
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9180")]
    admin: String,
    /// The file with the token, when the admin section names one
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl Remote {
    /// Makes one call; gives what a successful answer says in JSON.
    ///
    /// # Errors
    /// The API cannot be reached, or refuses: what it said.
    pub(super) fn call(&self, method: &Method, path: &str, body: Option<&Value>) -> Result<Value, Exit> {
        if let Some(("http" | "https", rest)) = self.admin.split_once("://") {
            let address = rest.split('/').next().unwrap_or_default();
            return Err(Exit::line(format_args!("--admin {}: leave out the scheme: --admin {address}", self.admin)));
        }
        let request = self.request(method, path, body)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Exit::line)?;
        let answered = runtime.block_on(async { timeout(DEADLINE, self.send(request)).await });
        let (status, answer) = answered.map_err(|_| self.trouble(&format!("no answer in {DEADLINE:?}")))??;
        let value: Option<Value> = serde_json::from_slice(&answer).ok();
        match value {
            Some(value) if status.is_success() => Ok(value),
            Some(value) => {
                let why = value.get("error").and_then(Value::as_str).unwrap_or("it refused");
                let hint = if status == StatusCode::UNAUTHORIZED { " (--token-file names its file)" } else { "" };
                Err(Exit::line(format_args!("{why}{hint}")))
            }
            None => Err(self.trouble(&format!("it answered {status}, and not as the admin API does"))),
        }
    }

    fn request(&self, method: &Method, path: &str, body: Option<&Value>) -> Result<Request<Full<Bytes>>, Exit> {
        let host = if self.socket_path().is_some() { "localhost" } else { self.admin.as_str() };
        let mut request = Request::builder().method(method).uri(path).header(header::HOST, host);
        if let Some(file) = &self.token_file {
            let token = std::fs::read_to_string(file)
                .map_err(|error| Exit::line(format_args!("cannot read {}: {}", file.display(), io_reason(&error))))?;
            request = request.header(header::AUTHORIZATION, format!("Bearer {}", token.trim()));
        }
        let body = match body {
            Some(value) => {
                request = request.header(header::CONTENT_TYPE, "application/json");
                Full::new(Bytes::from(value.to_string()))
            }
            None => Full::default(),
        };
        request.body(body).map_err(Exit::line)
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Result<(StatusCode, Bytes), Exit> {
        if let Some(path) = self.socket_path() {
            let stream = UnixStream::connect(path).await.map_err(|error| self.unreachable(&error))?;
            self.exchange(stream, request).await
        } else {
            let stream = TcpStream::connect(&self.admin).await.map_err(|error| self.unreachable(&error))?;
            self.exchange(stream, request).await
        }
    }

    async fn exchange<S>(&self, stream: S, request: Request<Full<Bytes>>) -> Result<(StatusCode, Bytes), Exit>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let broke = |error: hyper::Error| self.trouble(&error.to_string());
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broke)?;
        tokio::spawn(connection);
        let answer = sender.send_request(request).await.map_err(broke)?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), MAX_ANSWER).collect().await;
        let body = body.map_err(|error| self.trouble(&error.to_string()))?;
        Ok((status, body.to_bytes()))
    }

    /// The unix socket's path; `None`: TCP.
    fn socket_path(&self) -> Option<&str> {
        self.admin.strip_prefix("unix:").or_else(|| self.admin.starts_with('/').then_some(self.admin.as_str()))
    }

    fn unreachable(&self, error: &io::Error) -> Exit {
        let why = io_reason(error);
        self.trouble(&format!("{why} (is the gateway running, with an `admin` section? --admin names another address)"))
    }

    fn trouble(&self, why: &str) -> Exit {
        Exit::line(format_args!("the admin API at {}: {why}", self.admin))
    }
}
