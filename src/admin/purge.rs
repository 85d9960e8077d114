//! What `POST /v1/purge` carries: one purge or a list of them, in JSON.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::ops::PurgeRequest;

/// A word that names what to purge, and what is made of its value.
struct Target {
    key: &'static str,
    make: fn(&Value) -> Result<PurgeRequest, String>,
}

const TARGETS: [Target; 4] = [
    Target { key: "url", make: |value| PurgeRequest::url(text("url", value)?).map_err(|bad| bad.to_string()) },
    Target { key: "prefix", make: |value| PurgeRequest::prefix(text("prefix", value)?).map_err(|bad| bad.to_string()) },
    Target { key: "tag", make: |value| PurgeRequest::tag(text("tag", value)?).map_err(|bad| bad.to_string()) },
    Target {
        key: "all",
        make: |value| match value {
            Value::Bool(true) => Ok(PurgeRequest::all()),
            _ => Err("`all` takes true".to_owned()),
        },
    },
];

/// Words that are known to come and do nothing yet.
const PLANNED: [&str; 8] = ["host", "path", "regex", "on", "tags", "rule", "where", "dry_run"];

/// What is said with every refusal.
const ALLOWED: &str = r#"allowed: one object or a list of {"url": "http://host/path"}, {"prefix": "http://host/dir/"}, {"tag": "word"} or {"all": true}, each with "mode": "hard" or "soft" if you like"#;

/// Reads a body. Nothing is purged unless all of it is right.
///
/// # Errors
/// What is wrong, with the way out, in one line.
pub(super) fn parse(body: &[u8]) -> Result<Vec<PurgeRequest>, String> {
    let Once(value) = serde_json::from_slice(body).map_err(|error| {
        let what = if error.is_data() { "the body is refused" } else { "the body is not JSON" };
        format!("{what}: {error}; {ALLOWED}")
    })?;
    let parsed = match &value {
        Value::Object(one) => object(one).map(|request| vec![request]),
        Value::Array(list) if !list.is_empty() => list.iter().map(item).collect(),
        _ => Err("there is nothing to purge in this".to_owned()),
    };
    parsed.map_err(|error| format!("{error}; {ALLOWED}"))
}

fn item(value: &Value) -> Result<PurgeRequest, String> {
    match value {
        Value::Object(one) => object(one),
        _ => Err(format!("{value} is not an object")),
    }
}

fn object(object: &Map<String, Value>) -> Result<PurgeRequest, String> {
    let mut found = None;
    let mut soft = false;
    for (key, value) in object {
        if let Some(target) = TARGETS.iter().find(|target| target.key == key) {
            if let Some(first) = found.replace(target) {
                return Err(format!("`{}` and `{key}` stand in one object: give each its own", first.key));
            }
        } else if key == "mode" {
            soft = match value.as_str() {
                Some("hard") => false,
                Some("soft") => true,
                _ => return Err(format!("`mode` is \"hard\" or \"soft\", not {value}")),
            };
        } else if PLANNED.contains(&key.as_str()) {
            return Err(format!("`{key}` is not built yet"));
        } else {
            return Err(format!("`{key}` is not known"));
        }
    }
    let target = found.ok_or("an object says nothing to purge")?;
    let value = object.get(target.key).unwrap_or(&Value::Null);
    Ok((target.make)(value)?.soft(soft))
}

fn text<'a>(key: &str, value: &'a Value) -> Result<&'a str, String> {
    value.as_str().ok_or_else(|| format!("`{key}` takes a text"))
}

/// A value in whose objects no key stands twice: which of the two is meant, nobody could tell.
struct Once(Value);

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(OnceVisitor).map(Self)
    }
}

struct OnceVisitor;

impl<'de> Visitor<'de> for OnceVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((key, Once(value))) = pairs.next_entry::<String, Once>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format_args!("`{key}` stands twice in one object")));
            }
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Once(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_purge_or_a_list() {
        let url = PurgeRequest::url("http://h/a").unwrap();
        assert_eq!(parse(br#"{"url":"http://H/a"}"#), Ok(vec![url.clone()]));
        assert_eq!(parse(br#"{"url":"http://h:80/a","mode":"hard"}"#), Ok(vec![url.clone()]));
        let list = br#"[{"url":"http://h/a"},{"tag":"t","mode":"soft"},{"mode":"soft","all":true}]"#;
        let want = vec![url, PurgeRequest::tag("t").unwrap().soft(true), PurgeRequest::all().soft(true)];
        assert_eq!(parse(list), Ok(want));
    }

    #[test]
    fn what_is_not_understood_purges_nothing() {
        for (body, says) in [
            (r#"{"url":"http://h/","tag":"t"}"#, "stand in one object"),
            (r#"{"url":"/a"}"#, "lacks a scheme or a host"),
            (r#"{"url":7}"#, "`url` takes a text"),
            (r#"{"all":false}"#, "`all` takes true"),
            (r#"{"host":"h"}"#, "`host` is not built yet"),
            (r#"{"url":"http://h/","dry_run":true}"#, "`dry_run` is not built yet"),
            (r#"{"urls":["http://h/"]}"#, "`urls` is not known"),
            (r#"{"all":true,"mode":"gentle"}"#, "`mode` is"),
            (r#"[{"all":true},{}]"#, "says nothing to purge"),
            (r#"{"url":"http://h/a","url":"http://h/b"}"#, "`url` stands twice"),
            (r#"[{"all":true,"mode":"soft","mode":"hard"}]"#, "`mode` stands twice"),
            (r#"[{"all":true},"x"]"#, "is not an object"),
            ("[]", "nothing to purge"),
            ("null", "nothing to purge"),
            ("url=http://h/", "not JSON"),
            ("", "not JSON"),
        ] {
            let error = parse(body.as_bytes()).unwrap_err();
            assert!(error.contains(says) && error.ends_with(ALLOWED), "{body}: {error}");
        }
    }
}
