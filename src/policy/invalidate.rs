//! What a successful unsafe request makes invalid (RFC 9111 §4.4).

use fluent_uri::{Uri, UriRef};

use crate::message::{Fields, Request, Response};

/// Whether `response` to `request` invalidates the target URI: a method that is unsafe, or that nobody
/// here knows to be safe, and a status that is no error.
pub fn invalidates(request: &Request, response: &Response) -> bool {
    !is_safe(request.method()) && (200..400).contains(&response.status)
}

/// The URLs that `Location` and `Content-Location` of such a response to `url` name, as far as they have the same
/// origin: nobody may invalidate what is another's.
pub fn named_with(url: &str, fields: &Fields) -> Vec<String> {
    let Ok(base) = Uri::parse(url) else { return Vec::new() };
    let lines = fields.all("location").chain(fields.all("content-location"));
    lines
        .filter_map(|reference| UriRef::parse(std::str::from_utf8(reference).ok()?).ok())
        .filter_map(|reference| reference.resolve_against(&base).ok())
        .filter(|named| origin(&named.borrow()) == origin(&base))
        .map(|named| named.strip_fragment().to_string())
        .collect()
}

/// Scheme, host in lower case and port (RFC 9110 §4.3.1).
fn origin(url: &Uri<&str>) -> Option<(bool, String, u16)> {
    let authority = url.authority()?;
    let https = url.scheme().as_str().eq_ignore_ascii_case("https");
    let port = authority.port().filter(|port| !port.as_str().is_empty());
    let port = port.map_or(Some(if https { 443 } else { 80 }), |port| port.as_str().parse().ok())?;
    Some((https, authority.host().to_ascii_lowercase(), port))
}

/// The safe methods of RFC 9110 §9.2.1 and of the method registry.
fn is_safe(method: &[u8]) -> bool {
    matches!(method, b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE" | b"PROPFIND" | b"REPORT" | b"SEARCH" | b"QUERY" | b"PRI")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(method: &str, status: u16) -> bool {
        invalidates(&Request::new(method.as_bytes(), b"/"), &Response::new(status))
    }

    #[test]
    fn unsafe_and_unknown_methods_invalidate_when_they_succeed() {
        for method in ["POST", "PUT", "DELETE", "PATCH", "FOO", "get"] {
            assert!(of(method, 200) && of(method, 204) && of(method, 302), "{method}");
            assert!(!of(method, 404) && !of(method, 500), "{method}");
        }
    }

    #[test]
    fn what_a_response_names_of_the_same_origin_goes_too() {
        let named = |lines: &[(&str, &str)]| named_with("http://t.example/a/b?c", &lines.iter().copied().collect());
        for (reference, url) in [
            ("/x?y#z", "http://t.example/x?y"),
            ("d", "http://t.example/a/d"),
            ("../e", "http://t.example/e"),
            ("?f", "http://t.example/a/b?f"),
            ("//T.example:80/g", "http://T.example:80/g"),
            ("http://t.example/h", "http://t.example/h"),
        ] {
            assert_eq!(named(&[("Location", reference)]), [url]);
            assert_eq!(named(&[("Content-Location", reference)]), [url]);
        }
        for reference in
            ["http://u.example/a", "https://t.example/a", "//t.example:81/a", "http://t.example:x/", "a b", "mailto:a"]
        {
            assert!(named(&[("Location", reference)]).is_empty(), "{reference}");
        }
        assert_eq!(named(&[("Location", "/1"), ("Content-Location", "/2")]).len(), 2);
    }

    #[test]
    fn safe_methods_do_not() {
        for method in ["GET", "HEAD", "OPTIONS", "TRACE"] {
            assert!(!of(method, 200), "{method}");
        }
    }
}
