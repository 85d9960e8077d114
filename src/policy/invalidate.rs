//! What a successful unsafe request makes invalid (RFC 9111 §4.4).

use crate::message::{Request, Response};

/// Whether `response` to `request` invalidates the target URI: a method that is unsafe, or that nobody
/// here knows to be safe, and a status that is no error.
pub fn invalidates(request: &Request, response: &Response) -> bool {
    !is_safe(request.method()) && (200..400).contains(&response.status)
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
    fn safe_methods_do_not() {
        for method in ["GET", "HEAD", "OPTIONS", "TRACE"] {
            assert!(!of(method, 200), "{method}");
        }
    }
}
