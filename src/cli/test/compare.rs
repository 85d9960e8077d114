//! What a rule test expects, beside what the rules did.

use std::fmt::{Debug, Display};

use serde::{Deserialize, Deserializer, de::Error};

use crate::{
    gateway::explain::{Decision, Explanation, Head, KeyPart},
    lang::unit,
};

/// What should become of a request. What is left out is not looked at.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Expected {
    /// The frontend's name.
    frontend: Option<String>,
    /// The backend's name; `-`: none was chosen.
    backend: Option<String>,
    /// `answer`, `purge`, `lookup`, `pass` or `close`.
    decision: Option<String>,
    /// Why it passes the cache, or why its response is not stored.
    reason: Option<String>,
    /// The status that the client gets.
    status: Option<u16>,
    /// The body of an answer that rules make.
    body: Option<String>,
    /// The target that a server gets: `/path?query`.
    target: Option<String>,
    /// Fields that a server gets.
    sent: Vec<String>,
    /// Names of fields that a server does not get.
    not_sent: Vec<String>,
    /// Fields that the client gets.
    delivered: Vec<String>,
    /// Names of fields that the client does not get.
    not_delivered: Vec<String>,
    /// The caching rule that counts; without a response, the first that may. `-`: none.
    rule: Option<String>,
    /// The components of the key: `path=/a`, `query` for one that is absent.
    key: Option<Vec<String>>,
    /// Whether the response is stored.
    stored: Option<bool>,
    /// How long it is fresh from now on.
    #[serde(deserialize_with = "seconds")]
    ttl: Option<u64>,
    /// How long past that it may be served while it is refreshed.
    #[serde(deserialize_with = "seconds")]
    grace: Option<u64>,
    /// The request fields it depends on.
    vary: Option<Vec<String>>,
    /// Its surrogate keys.
    tags: Option<Vec<String>>,
}

/// How a name is written that is not there.
const NONE: Option<&str> = Some("-");

/// A time as rule files write it (seconds unless a unit says otherwise), or a number of seconds.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Time {
        Number(u64),
        Text(String),
    }
    match Time::deserialize(deserializer)? {
        Time::Number(seconds) => Ok(Some(seconds)),
        Time::Text(text) => match unit::time(text.as_bytes(), unit::TimeUnit::Seconds) {
            Some(time) => Ok(Some(time.as_secs())),
            None => Err(D::Error::custom(format!("`{text}` is no time: write `90`, `90s`, `10m`, `1h`"))),
        },
    }
}

impl Expected {
    /// What is otherwise, one text each.
    pub(super) fn faults(&self, got: &Explanation) -> Vec<String> {
        let mut faults = Faults(Vec::new());
        let (kind, passed, answer, sent) = match &got.decision {
            Decision::Answer { head, body, .. } => ("answer", None, Some((head, body)), None),
            Decision::Purge { .. } => ("purge", None, None, None),
            Decision::Close => ("close", None, None, None),
            Decision::Lookup { sent, .. } => ("lookup", None, None, Some(sent)),
            Decision::Pass { reason, sent } => ("pass", Some(*reason), None, Some(sent)),
        };
        let response = got.response.as_ref();
        let delivered = answer.map(|(head, _)| head).or(response.map(|response| &response.head));
        let kept = response.and_then(|response| response.kept.as_ref());
        faults.compare("frontend", self.frontend.as_deref(), Some(&*got.frontend));
        faults.compare("backend", self.backend.as_deref(), got.backend.as_deref().or(NONE));
        faults.compare("decision", self.decision.as_deref(), Some(kind));
        faults.compare("reason", self.reason.as_deref(), passed.or(response.and_then(|response| response.reason)));
        let status = delivered.and_then(|head| head.line.parse().ok());
        faults.compare("status", self.status, status);
        faults.compare("body", self.body.as_deref(), answer.map(|(_, body)| body.as_str()));
        let target = sent.and_then(|head| head.line.split_once(' ')).map(|(_, target)| target);
        faults.compare("target", self.target.as_deref(), target);
        faults.fields("sent", sent, &self.sent, &self.not_sent);
        faults.fields("delivered", delivered, &self.delivered, &self.not_delivered);
        faults.compare("rule", self.rule.as_deref(), rule(got).or(NONE));
        faults.compare("key", self.key.clone(), key(got));
        faults.compare("stored", self.stored, response.map(|response| response.stored));
        faults.compare("ttl", self.ttl, kept.map(|kept| kept.ttl));
        faults.compare("grace", self.grace, kept.map(|kept| kept.grace));
        faults.compare("vary", self.vary.clone(), kept.map(|kept| kept.vary.clone()));
        faults.compare("tags", self.tags.clone(), kept.map(|kept| kept.tags.clone()));
        faults.0
    }
}

/// The caching rule that counts.
fn rule(got: &Explanation) -> Option<&str> {
    match (&got.response, &got.decision) {
        (Some(response), _) => response.rule.as_deref(),
        (None, Decision::Lookup { rules, .. }) => rules.first().map(String::as_str),
        _ => None,
    }
}

fn key(got: &Explanation) -> Option<Vec<String>> {
    let Decision::Lookup { key, .. } = &got.decision else { return None };
    let text = |KeyPart { part, value }: &KeyPart| match value {
        Some(value) => format!("{part}={value}"),
        None => part.clone(),
    };
    Some(key.iter().map(text).collect())
}

struct Faults(Vec<String>);

impl Faults {
    /// What is expected and what there is; nothing when nothing is expected.
    fn compare<T: PartialEq + Debug>(&mut self, what: impl Display, expected: Option<T>, got: Option<T>) {
        let Some(expected) = expected else { return };
        match got {
            Some(got) if got == expected => {}
            Some(got) => self.0.push(format!("{what}:\n  expected {expected:?}\n  but got  {got:?}")),
            None => self.0.push(format!("{what}:\n  expected {expected:?}\n  but there is none")),
        }
    }

    fn fields(&mut self, what: &str, head: Option<&Head>, wanted: &[String], unwanted: &[String]) {
        let fields = head.map(|head| head.fields.as_slice()).unwrap_or_default();
        let missing = wanted.iter().filter(|&line| !fields.iter().any(|field| same(field, line)));
        let there: String = fields.iter().map(|field| format!("\n    {field}")).collect();
        self.0.extend(missing.map(|line| format!("{what}:\n  expected {line:?}\n  among{there}")));
        for name in unwanted {
            let found = fields.iter().filter(|field| names(field).eq_ignore_ascii_case(name));
            self.0.extend(found.map(|field| format!("{what}:\n  expected no {name:?}\n  but got  {field:?}")));
        }
    }
}

/// Whether two field lines are the same, the case of the name aside (RFC 9110 §5.1).
fn same(one: &str, other: &str) -> bool {
    let value = |line: &str| line.split_once(':').map(|(_, value)| value.trim().to_owned());
    names(one).eq_ignore_ascii_case(names(other)) && value(one) == value(other)
}

fn names(line: &str) -> &str {
    line.split(':').next().unwrap_or_default().trim()
}
