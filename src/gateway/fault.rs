//! A request that cannot be served, turned into a response in one place.

use bytes::Bytes;
use pingora::{Error, ErrorSource, ErrorType};

use crate::{
    cache::fill::{Failure, FailureKind},
    lang::in_words,
    message::{Response, reason},
    metrics::Outcome,
    rule::Answer,
};

/// A request that cannot be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The status the client gets.
    pub status: u16,
    /// A word for log and counters.
    pub reason: &'static str,
    /// How it is counted.
    pub outcome: Outcome,
}

impl Fault {
    /// No server can take the request.
    pub const NO_SERVER: Self = Self::error(503, "no-server");

    /// What should not have happened.
    pub const INTERNAL: Self = Self::error(500, "internal");

    const fn error(status: u16, reason: &'static str) -> Self {
        Self { status, reason, outcome: Outcome::Error }
    }

    /// The sentence for the client.
    pub const fn sentence(&self) -> &'static str {
        match self.status {
            400..=499 => "the request is not valid HTTP",
            500 => "something went wrong here",
            503 => "no server could be reached",
            504 => "the server did not answer in time",
            _ => "the server's answer was not valid HTTP",
        }
    }

    /// The fault behind an error of the proxy engine; `None` when the client is the one that left.
    pub fn of(error: &Error) -> Option<Self> {
        if *error.esource() == ErrorSource::Downstream {
            return match error.etype() {
                ErrorType::HTTPStatus(status) => {
                    Some(Self { status: *status, reason: "bad-request", outcome: Outcome::Refused })
                }
                _ => None,
            };
        }
        Some(match error.etype() {
            ErrorType::HTTPStatus(503) => Self::NO_SERVER,
            ErrorType::HTTPStatus(status) => Self::error(*status, "engine"),
            ErrorType::ConnectTimedout => Self::error(503, "connect"),
            ErrorType::ConnectRefused
            | ErrorType::ConnectNoRoute
            | ErrorType::ConnectError
            | ErrorType::BindError
            | ErrorType::SocketError => Self::error(503, "connect"),
            ErrorType::ReadTimedout | ErrorType::WriteTimedout => Self::error(504, "timeout"),
            ErrorType::ReadError | ErrorType::WriteError | ErrorType::ConnectionClosed => Self::error(502, "truncated"),
            _ if *error.esource() == ErrorSource::Upstream => Self::error(502, "protocol"),
            _ => Self::INTERNAL,
        })
    }
}

/// Why an engine's exchange with a server failed, for people: what the operating system said, if it did.
pub fn of_connection(error: &Error) -> String {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = error.cause.as_deref().map(|cause| cause as _);
    let mut kind = error.etype();
    while let Some(next) = cause {
        match (next.downcast_ref::<Box<Error>>(), next.downcast_ref::<Error>()) {
            (Some(inner), _) => (kind, cause) = (inner.etype(), inner.cause.as_deref().map(|cause| cause as _)),
            (None, Some(inner)) => (kind, cause) = (inner.etype(), inner.cause.as_deref().map(|cause| cause as _)),
            (None, None) => return in_words(next),
        }
    }
    match kind {
        ErrorType::ConnectRefused => "connection refused".to_owned(),
        ErrorType::ConnectTimedout => "no connection in time".to_owned(),
        ErrorType::ConnectNoRoute => "no route to it".to_owned(),
        ErrorType::ReadTimedout | ErrorType::WriteTimedout => "silent for too long".to_owned(),
        ErrorType::ConnectionClosed | ErrorType::ReadError | ErrorType::WriteError => "the connection broke".to_owned(),
        ErrorType::InvalidHTTPHeader => "what it sent is not HTTP".to_owned(),
        other => other.as_str().to_owned(),
    }
}

/// The answer to a request that cannot be served: a status and one plain sentence.
pub fn page(status: u16, sentence: &str) -> Answer {
    let mut head = Response::new(status);
    head.fields.append(b"Content-Type", b"text/plain; charset=utf-8");
    head.fields.append(b"Cache-Control", b"no-store");
    let body = format!("{status} {}: {sentence}\n", reason(status));
    Answer { head, body: Bytes::from(body) }
}

/// The answer when a server failed.
pub fn of_failure(failure: &Failure) -> Answer {
    match failure.kind {
        FailureKind::Connect => page(503, "no server could be reached"),
        FailureKind::Timeout => page(504, "the server did not answer in time"),
        FailureKind::Protocol | FailureKind::Truncated => page(502, "the server's answer was not valid HTTP"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_of_engine_errors() {
        let up = |kind| Fault::of(&Error::new_up(kind)).map(|fault| fault.status);
        assert_eq!(up(ErrorType::ConnectRefused), Some(503));
        assert_eq!(up(ErrorType::ConnectTimedout), Some(503));
        assert_eq!(up(ErrorType::ReadTimedout), Some(504));
        assert_eq!(up(ErrorType::ConnectionClosed), Some(502));
        assert_eq!(up(ErrorType::InvalidHTTPHeader), Some(502));
        let down = |kind| Fault::of(&Error::new_down(kind)).map(|fault| fault.status);
        assert_eq!(down(ErrorType::ReadError), None);
        assert_eq!(down(ErrorType::HTTPStatus(400)), Some(400));
        assert_eq!(Fault::of(&Error::new_in(ErrorType::InternalError)).map(|fault| fault.status), Some(500));
    }
}
