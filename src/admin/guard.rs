//! Who may ask: a token when there is one, and no web page in an operator's browser.

use std::net::IpAddr;

use http::{HeaderMap, Method, StatusCode, Version, header, request};
use subtle::ConstantTimeEq;

/// How a connection came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Via {
    Tcp,
    /// A unix socket: out of reach for browsers, guarded by the file's mode.
    Unix,
}

/// A request that is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) why: &'static str,
}

/// Whether a request can be read in one way only: one Host (RFC 9112 §3.2), and a body that has its length. The
/// server's parser drops a `Content-Length` beside `Transfer-Encoding` (RFC 9112 §6.3) without a trace, so that
/// the latter is refused altogether: nobody who calls this has to send a body in chunks.
pub(super) fn clear(head: &request::Parts) -> Result<(), Refusal> {
    let hosts = head.headers.get_all(header::HOST).iter().count();
    if hosts > 1 || (hosts == 0 && head.version == Version::HTTP_11) {
        return refuse(StatusCode::BAD_REQUEST, "a request names one Host");
    }
    if head.headers.contains_key(header::TRANSFER_ENCODING) {
        return refuse(StatusCode::BAD_REQUEST, "a body comes with Content-Length here, not with Transfer-Encoding");
    }
    Ok(())
}

/// Whether a request may be served. Checks in this order: the name it came under (a page that has rebound its
/// own name to 127.0.0.1 sends that name), the token, and for requests that change something that no other site's
/// page sent it and that its body is JSON (which a page cannot send without being asked first).
pub(super) fn check(head: &request::Parts, via: Via, token: Option<&str>) -> Result<(), Refusal> {
    if token.is_none() && via == Via::Tcp && !host_is_local(head) {
        return refuse(
            StatusCode::FORBIDDEN,
            "without a token, Host must be localhost or an IP address (so that no web page can reach this by its own name)",
        );
    }
    if let Some(token) = token
        && !bears(&head.headers, token)
    {
        return refuse(
            StatusCode::UNAUTHORIZED,
            "this needs `Authorization: Bearer` with the token of the admin section",
        );
    }
    if matches!(head.method, Method::GET | Method::HEAD) {
        return Ok(());
    }
    if from_a_page(&head.headers) {
        return refuse(StatusCode::FORBIDDEN, "web pages may not change anything here");
    }
    if head.headers.get(header::CONTENT_TYPE).is_some_and(|value| !is_json(value.as_bytes())) {
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be `Content-Type: application/json`");
    }
    Ok(())
}

fn refuse(status: StatusCode, why: &'static str) -> Result<(), Refusal> {
    Err(Refusal { status, why })
}

fn host_is_local(head: &request::Parts) -> bool {
    let named = head.uri.authority().map(|authority| authority.as_str().as_bytes());
    let mut hosts = named.into_iter().chain(head.headers.get_all(header::HOST).iter().map(|host| host.as_bytes()));
    hosts.all(|host| std::str::from_utf8(host).is_ok_and(names_this_machine))
}

fn names_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
}

/// Compares in a time that does not depend on where a wrong token differs.
fn bears(headers: &HeaderMap, token: &str) -> bool {
    let Some(value) = headers.get(header::AUTHORIZATION) else { return false };
    let Some((scheme, given)) = value.as_bytes().split_at_checked("Bearer ".len()) else { return false };
    scheme.eq_ignore_ascii_case(b"Bearer ") && bool::from(given.trim_ascii().ct_eq(token.as_bytes()))
}

/// Browsers name the page's origin with every POST; none of our own pages posts anything yet.
fn from_a_page(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
    headers.contains_key(header::ORIGIN) || site.is_some_and(|site| !matches!(site, b"none" | b"same-origin"))
}

fn is_json(content_type: &[u8]) -> bool {
    let essence = content_type.split(|&byte| byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(b"application/json")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(method: &str, lines: &[(&str, &str)], via: Via, token: Option<&str>) -> u16 {
        let mut request = http::Request::builder().method(method).uri("/v1/purge");
        for (name, value) in lines {
            request = request.header(*name, *value);
        }
        let head = request.body(()).unwrap().into_parts().0;
        check(&head, via, token).map_or_else(|refusal| refusal.status.as_u16(), |()| 200)
    }

    #[test]
    fn a_web_page_changes_nothing() {
        let json = ("content-type", "application/json; charset=utf-8");
        let post = |lines: &[(&str, &str)]| status("POST", lines, Via::Tcp, None);
        assert_eq!(post(&[json]), 200);
        assert_eq!(post(&[json, ("origin", "https://example.com")]), 403);
        assert_eq!(post(&[json, ("origin", "null")]), 403);
        assert_eq!(post(&[json, ("sec-fetch-site", "cross-site")]), 403);
        assert_eq!(post(&[json, ("sec-fetch-site", "same-site")]), 403);
        assert_eq!(post(&[json, ("sec-fetch-site", "none")]), 200);
        assert_eq!(post(&[("content-type", "text/plain")]), 415);
        assert_eq!(post(&[("content-type", "application/x-www-form-urlencoded")]), 415);
    }

    #[test]
    fn a_rebound_name_is_refused_unless_a_token_is_asked_for() {
        for (host, want) in [
            ("127.0.0.1:9180", 200),
            ("[::1]:9180", 200),
            ("[::1]", 200),
            ("LOCALHOST", 200),
            ("localhost:9180", 200),
            ("10.1.2.3:9180", 200),
            ("evil.example:9180", 403),
            ("localhost.evil.example", 403),
            ("127.0.0.1.evil.example", 403),
            ("", 403),
        ] {
            assert_eq!(status("GET", &[("host", host)], Via::Tcp, None), want, "{host}");
        }
        let foreign = [("host", "admin.internal"), ("authorization", "Bearer t")];
        assert_eq!(status("GET", &foreign, Via::Tcp, Some("t")), 200);
        assert_eq!(status("GET", &foreign, Via::Unix, None), 200);
    }

    #[test]
    fn the_token_is_compared_whole() {
        for (given, want) in [
            ("Bearer secret", 200),
            ("bearer secret", 200),
            ("Bearer secre", 401),
            ("Bearer secrets", 401),
            ("Basic secret", 401),
            ("secret", 401),
            ("Bearer ", 401),
        ] {
            assert_eq!(status("GET", &[("authorization", given)], Via::Tcp, Some("secret")), want, "{given}");
        }
        assert_eq!(status("GET", &[], Via::Unix, Some("secret")), 401);
    }
}
