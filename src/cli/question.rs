//! A request as people write it down, for `explain` and rule tests.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use http::Uri;

use crate::{
    gateway::explain::Question,
    message::{Framing, Response},
};

/// A request, and perhaps what the server answers.
#[derive(Clone, Debug, Default, clap::Args, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Asked {
    /// The request's method
    #[arg(value_name = "METHOD")]
    #[serde(default = "get")]
    pub(super) method: String,
    /// Its URL: http://HOST[:PORT]/PATH or https://…
    #[arg(value_name = "URL")]
    pub(super) url: String,
    /// A field of the request, `Name: value`; may be repeated
    #[arg(short = 'H', long = "header", value_name = "FIELD")]
    pub(super) headers: Vec<String>,
    /// The request's body
    #[arg(short = 'd', long, value_name = "TEXT")]
    pub(super) data: Option<String>,
    /// The client's address [default: 127.0.0.1]
    #[arg(long, value_name = "IP")]
    pub(super) src: Option<IpAddr>,
    /// The server name of the TLS handshake [default: the URL's host]
    #[arg(long, value_name = "NAME")]
    pub(super) sni: Option<String>,
    /// The frontend that it comes in by [default: the first whose bind fits the URL's port]
    #[arg(long, value_name = "NAME")]
    pub(super) frontend: Option<String>,
}

fn get() -> String {
    "GET".to_owned()
}

/// What the server answers.
#[derive(Clone, Debug, Default, clap::Args, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Answered {
    /// What the server answers: its status
    #[arg(long, value_name = "CODE")]
    pub(super) status: Option<u16>,
    /// What the server answers: a field, `Name: value`; may be repeated; without --status that of a 200
    #[arg(id = "response_headers", short = 'R', long = "response-header", value_name = "FIELD")]
    pub(super) headers: Vec<String>,
}

impl Asked {
    /// What the engine is asked.
    ///
    /// # Errors
    /// What makes no sense, in one line.
    pub(super) fn question(&self, answered: Option<&Answered>) -> Result<Question, String> {
        let url: Uri = self.url.parse().map_err(|error| format!("the URL `{}`: {error}", self.url))?;
        let (https, authority) = match (url.scheme_str(), url.authority()) {
            (Some("http"), Some(authority)) => (false, authority),
            (Some("https"), Some(authority)) => (true, authority),
            _ => return Err(format!("the URL `{}` has to begin with http://HOST or https://HOST", self.url)),
        };
        let target = url.path_and_query().map_or("/", |target| target.as_str());
        Ok(Question {
            head: self.head(target, authority.as_str())?,
            body: self.data.clone().unwrap_or_default().into(),
            https,
            port: authority.port_u16().unwrap_or(if https { 443 } else { 80 }),
            src: SocketAddr::new(self.src.unwrap_or(Ipv4Addr::LOCALHOST.into()), 50_000),
            sni: self.sni.clone().or_else(|| Some(authority.host().to_owned())).filter(|_| https),
            frontend: self.frontend.clone(),
            response: answered.map(Answered::response).transpose()?,
        })
    }

    /// The head as a client would send it. A field `Host` stands in for the URL's.
    fn head(&self, target: &str, authority: &str) -> Result<Vec<u8>, String> {
        let mut head = format!("{} {target} HTTP/1.1\r\n", self.method);
        let fields = self.headers.iter().map(|line| field(line)).collect::<Result<Vec<_>, _>>()?;
        if !fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head.push_str(&format!("Host: {authority}\r\n"));
        }
        if let Some(data) = &self.data {
            head.push_str(&format!("Content-Length: {}\r\n", data.len()));
        }
        for (name, value) in fields {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        Ok(head.into_bytes())
    }
}

impl Answered {
    /// Whether nothing is said about it.
    pub(super) fn is_open(&self) -> bool {
        self.status.is_none() && self.headers.is_empty()
    }

    fn response(&self) -> Result<Response, String> {
        let status = self.status.unwrap_or(200);
        if !(200..600).contains(&status) {
            return Err(format!("the status {status} is not one of a final response (200 to 599)"));
        }
        let mut response = Response::new(status);
        response.framing = Framing::Length(0);
        for line in &self.headers {
            let (name, value) = field(line)?;
            response.fields.append(name.as_bytes(), value.as_bytes());
        }
        Ok(response)
    }
}

fn field(line: &str) -> Result<(&str, &str), String> {
    let (name, value) =
        line.split_once(':').ok_or_else(|| format!("the field `{line}` has no colon: write `Name: value`"))?;
    let (name, value) = (name.trim(), value.trim());
    let sound = |text: &str| !text.contains(['\r', '\n', '\0']);
    (!name.is_empty() && sound(name) && sound(value))
        .then_some((name, value))
        .ok_or_else(|| format!("the field `{line}` is none: write `Name: value`"))
}
