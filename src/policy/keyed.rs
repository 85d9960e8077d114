//! What a key holds of a request, and what a server gets beside that: an input that shapes a response but stands in
//! neither key nor `Vary` lets one client write what others read.

use super::rewrite::{Names, Rewrite};
use crate::message::Request;

/// The inputs that a caching rule's key holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keyed {
    /// Host.
    pub host: bool,
    /// Path.
    pub path: bool,
    /// All of the query.
    pub query: bool,
    /// Parameters of the query.
    pub params: Vec<Box<str>>,
    /// Header fields, in lower case.
    pub fields: Vec<Box<str>>,
    /// Cookies.
    pub cookies: Vec<Box<str>>,
}

impl Keyed {
    /// Takes from `request` what stands neither in the key nor in `vary`, names of fields in lower case: then no
    /// such input reaches a server. Host and path stay whatever the key is, as there is no request without.
    pub fn keep_only(&self, vary: &[Box<str>], request: &mut Request) {
        if !self.query && request.query().is_some() {
            match self.params.as_slice() {
                [] => request.set_query(None),
                params => Rewrite::KeepQuery(Names::new(params.iter().map(|name| &**name))).apply(request),
            }
        }
        if !self.has_field(vary, "cookie") {
            Rewrite::StripCookies(Names::new(self.cookies.iter().map(|name| &**name))).apply(request);
        }
        request.fields.retain(|field| {
            field.is("host") || field.is("cookie") || self.has_field(vary, &String::from_utf8_lossy(field.name))
        });
    }

    /// What of any request stands in no such key, in words. A field that responses vary by is told apart all the same.
    pub fn open(&self) -> Vec<&'static str> {
        let every_cookie = self.has_field(&[], "cookie");
        let inputs = [
            (self.host, "Host"),
            (self.path, "the path"),
            (self.query, if self.params.is_empty() { "the query" } else { "other parameters" }),
            (every_cookie, if self.cookies.is_empty() { "cookies" } else { "other cookies" }),
            (false, if self.fields.is_empty() { "header fields" } else { "other header fields" }),
        ];
        inputs.into_iter().filter(|(held, _)| !held).map(|(_, what)| what).collect()
    }

    /// What of `request` stands neither in the key nor in `vary`, as the rule language calls it: `hdr(x-a)`,
    /// `cookie(b)`, `query`. A field that only the connection needs is none.
    pub fn missing(&self, vary: &[Box<str>], request: &Request) -> Vec<String> {
        let mut missing = Vec::new();
        for (name, held) in [("host", self.host), ("path", self.path)] {
            if !held {
                missing.push(name.to_owned());
            }
        }
        let mut kept = request.clone();
        self.keep_only(vary, &mut kept);
        if kept.query() != request.query() {
            missing.push("query".to_owned());
        }
        for field in request.fields.iter().filter(|field| !kept.fields.iter().any(|own| own == *field)) {
            if field.is("cookie") {
                let names =
                    field.value.split(|byte| *byte == b';').filter_map(|pair| pair.split(|byte| *byte == b'=').next());
                let names = names.map(|name| String::from_utf8_lossy(name.trim_ascii()).into_owned());
                missing.extend(
                    names
                        .filter(|name| !self.cookies.iter().any(|own| **own == **name))
                        .map(|name| format!("cookie({name})")),
                );
            } else {
                missing.push(format!("hdr({})", String::from_utf8_lossy(field.name).to_ascii_lowercase()));
            }
        }
        missing.dedup();
        missing
    }

    fn has_field(&self, vary: &[Box<str>], name: &str) -> bool {
        self.fields.iter().chain(vary).any(|own| own.eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxed(names: &[&str]) -> Vec<Box<str>> {
        names.iter().map(|name| Box::from(*name)).collect()
    }

    fn request() -> Request {
        let mut request = Request::new(b"GET", b"/a?b=1&c=2");
        for (name, value) in
            [("Host", "t.example"), ("X-Forwarded-Host", "evil"), ("Accept", "*/*"), ("Cookie", "s=1; t=2")]
        {
            request.fields.append(name.as_bytes(), value.as_bytes());
        }
        request
    }

    fn sent(keyed: &Keyed, vary: &[&str]) -> String {
        let mut request = request();
        keyed.keep_only(&boxed(vary), &mut request);
        let mut text = Vec::new();
        request.write_target(&mut text);
        for field in request.fields.iter() {
            text.extend_from_slice(&[b"|", field.name, b":", field.value].concat());
        }
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn only_what_is_keyed_or_varied_by_stays() {
        let plain = Keyed { host: true, path: true, query: true, ..Keyed::default() };
        assert_eq!(sent(&plain, &[]), "/a?b=1&c=2|Host:t.example");
        assert_eq!(sent(&plain, &["accept"]), "/a?b=1&c=2|Host:t.example|Accept:*/*");
        assert_eq!(sent(&plain, &["cookie"]), "/a?b=1&c=2|Host:t.example|Cookie:s=1; t=2");
        let narrow = Keyed { params: boxed(&["c"]), cookies: boxed(&["t"]), ..Keyed::default() };
        assert_eq!(sent(&narrow, &[]), "/a?c=2|Host:t.example|Cookie:t=2");
        assert_eq!(
            sent(&Keyed { fields: boxed(&["x-forwarded-host"]), ..Keyed::default() }, &[]),
            "/a|Host:t.example|X-Forwarded-Host:evil"
        );
    }

    #[test]
    fn what_is_missing_has_its_name() {
        let plain = Keyed { host: true, path: true, query: true, cookies: boxed(&["t"]), ..Keyed::default() };
        assert_eq!(plain.missing(&boxed(&["accept"]), &request()), ["hdr(x-forwarded-host)", "cookie(s)"]);
        let missing = Keyed::default().missing(&[], &request());
        assert_eq!(
            missing,
            ["host", "path", "query", "hdr(x-forwarded-host)", "hdr(accept)", "cookie(s)", "cookie(t)"]
        );
        assert_eq!(plain.open(), ["other cookies", "header fields"]);
        assert_eq!(Keyed::default().open(), ["Host", "the path", "the query", "cookies", "header fields"]);
        let all = Keyed { fields: boxed(&["cookie", "accept", "x-forwarded-host"]), ..plain };
        assert_eq!(all.missing(&[], &request()), Vec::<String>::new());
    }
}
