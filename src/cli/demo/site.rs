//! The demo's origin: a small site with every kind of answer that a cache meets. One row a page.

use std::{
    convert::Infallible,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// One page of the site.
struct Page {
    path: &'static str,
    content_type: &'static str,
    /// Further fields: what makes the page worth showing.
    fields: &'static [(&'static str, &'static str)],
    /// How long the page takes.
    delay: Duration,
    body: fn(&Asked) -> Answer,
}

/// What a page may look at.
struct Asked<'a> {
    fields: &'a HeaderMap,
    /// How many requests for pages came before this one.
    turn: u64,
    /// How many of those were for this page.
    page_turn: u64,
}

/// What a page says.
struct Answer {
    status: StatusCode,
    body: Bytes,
    /// It never changes, so it has a validator.
    fixed: bool,
}

const AT_ONCE: Duration = Duration::ZERO;
const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";
/// When the fixed pages were made.
const LAST_MODIFIED: &str = "Thu, 01 Jan 2026 09:00:00 GMT";
const PICTURE: &[(&str, &str)] = &[("cache-control", "public, max-age=86400"), ("surrogate-key", "pictures")];

static PAGES: [Page; 10] = [
    Page {
        path: "/",
        content_type: HTML,
        fields: &[("cache-control", "public, max-age=30")],
        delay: AT_ONCE,
        body: |asked| {
            made(&include_str!("index.html").replace("{turn}", &asked.turn.to_string()).replace("{now}", &now()))
        },
    },
    Page {
        path: "/style.css",
        content_type: "text/css; charset=utf-8",
        fields: &[("cache-control", "public, max-age=3600")],
        delay: AT_ONCE,
        body: |_| fixed(include_bytes!("style.css")),
    },
    Page {
        path: "/photo.jpg",
        content_type: "image/jpeg",
        fields: PICTURE,
        delay: AT_ONCE,
        body: |_| fixed(include_bytes!("photo.jpg")),
    },
    Page {
        path: "/logo.png",
        content_type: "image/png",
        fields: PICTURE,
        delay: AT_ONCE,
        body: |_| fixed(include_bytes!("logo.png")),
    },
    Page {
        path: "/api/time",
        content_type: JSON,
        fields: &[("cache-control", "no-store")],
        delay: AT_ONCE,
        body: |_| made(&format!("{{\"time\":\"{}\"}}\n", now())),
    },
    Page {
        path: "/api/stock",
        content_type: JSON,
        fields: &[("cache-control", "max-age=5, stale-while-revalidate=30")],
        delay: AT_ONCE,
        body: |asked| made(&format!("{{\"lanterns\":{},\"time\":\"{}\"}}\n", 500 - asked.page_turn % 500, now())),
    },
    Page {
        path: "/api/news",
        content_type: JSON,
        fields: &[("cache-control", "s-maxage=60"), ("vary", "Accept-Language")],
        delay: AT_ONCE,
        body: |asked| made(&format!("{{\"news\":\"{}\",\"time\":\"{}\"}}\n", headline(asked.fields), now())),
    },
    Page {
        path: "/slow",
        content_type: "text/plain; charset=utf-8",
        fields: &[("cache-control", "max-age=30")],
        delay: Duration::from_secs(2),
        body: |_| made(&format!("This took two seconds, at {}.\n", now())),
    },
    Page {
        path: "/login",
        content_type: HTML,
        fields: &[("cache-control", "max-age=60")],
        delay: AT_ONCE,
        body: |asked| {
            made(&format!("<!doctype html><title>Hello</title><p>You are visitor {}.\n", asked.page_turn + 1))
        },
    },
    Page {
        path: "/flaky",
        content_type: "text/plain; charset=utf-8",
        fields: &[("cache-control", "max-age=1, stale-if-error=60")],
        delay: AT_ONCE,
        body: |asked| match asked.page_turn % 3 {
            2 => Answer { status: StatusCode::INTERNAL_SERVER_ERROR, ..made("The origin has failed.\n") },
            _ => made(&format!("The origin answered at {}.\n", now())),
        },
    },
];

/// What the site counts.
#[derive(Default)]
struct Counts {
    all: AtomicU64,
    pages: [AtomicU64; PAGES.len()],
}

/// Starts the site on a thread of its own; gives its address.
///
/// # Errors
/// No thread, no port.
pub(super) fn start() -> io::Result<SocketAddr> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    thread::Builder::new().name("demo-origin".to_owned()).spawn(move || {
        if let Err(error) = runtime.block_on(serve(listener)) {
            tracing::error!("the demo's origin has stopped: {error}");
        }
    })?;
    Ok(address)
}

async fn serve(listener: std::net::TcpListener) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let counts = Arc::new(Counts::default());
    loop {
        let (stream, _) = listener.accept().await?;
        let counts = Arc::clone(&counts);
        tokio::spawn(async move {
            let service = service_fn(|request| answer(&counts, request));
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(counts: &Counts, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path();
    let found = PAGES.iter().zip(&counts.pages).find(|(page, _)| page.path == path);
    let turn = counts.all.fetch_add(1, Ordering::Relaxed);
    let Some((page, count)) = found else {
        return Ok(plain(StatusCode::NOT_FOUND, "There is no such page.\n"));
    };
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Ok(plain(StatusCode::METHOD_NOT_ALLOWED, "This page can only be read.\n"));
    }
    if !page.delay.is_zero() {
        tokio::time::sleep(page.delay).await;
    }
    let page_turn = count.fetch_add(1, Ordering::Relaxed);
    let made = (page.body)(&Asked { fields: request.headers(), turn, page_turn });
    let mut response = Response::new(Full::new(made.body.clone()));
    *response.status_mut() = made.status;
    let fields = response.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(page.content_type));
    if made.status.is_success() {
        fields.extend(
            page.fields.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))),
        );
    }
    if page.path == "/login"
        && let Ok(cookie) = HeaderValue::from_str(&format!("session={page_turn}; HttpOnly; SameSite=Lax"))
    {
        fields.insert(header::SET_COOKIE, cookie);
    }
    if made.fixed
        && let Ok(etag) = HeaderValue::from_str(&format!("\"{}-{:x}\"", env!("CARGO_PKG_VERSION"), made.body.len()))
    {
        let same = request.headers().get(header::IF_NONE_MATCH).is_some_and(|given| given == etag);
        fields.insert(header::ETAG, etag);
        fields.insert(header::LAST_MODIFIED, HeaderValue::from_static(LAST_MODIFIED));
        if same {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            *response.body_mut() = Full::default();
        }
    }
    Ok(response)
}

fn plain(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

fn fixed(body: &'static [u8]) -> Answer {
    Answer { status: StatusCode::OK, body: Bytes::from_static(body), fixed: true }
}

fn made(text: &str) -> Answer {
    Answer { status: StatusCode::OK, body: Bytes::copy_from_slice(text.as_bytes()), fixed: false }
}

fn now() -> String {
    httpdate::fmt_http_date(SystemTime::now())
}

fn headline(fields: &HeaderMap) -> &'static str {
    let language = fields.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match language.get(..2) {
        Some("de") => "Das Tor ist offen",
        Some("fr") => "La porte est ouverte",
        Some("es") => "La puerta está abierta",
        _ => "The gate is open",
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    fn ask(site: SocketAddr, path: &str, fields: &str) -> String {
        let mut stream = std::net::TcpStream::connect(site).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{fields}\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[test]
    fn the_site_has_every_kind_of_answer() {
        let site = start().unwrap();
        for (path, says) in [
            ("/", "The gate"),
            ("/style.css", "content-type: text/css"),
            ("/photo.jpg", "surrogate-key: pictures"),
            ("/logo.png", "PNG"),
            ("/api/time", "cache-control: no-store"),
            ("/api/stock", "stale-while-revalidate=30"),
            ("/api/news", "vary: Accept-Language"),
            ("/login", "set-cookie: session="),
        ] {
            let answer = ask(site, path, "");
            assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains(says), "{path}: {answer}");
        }
        assert!(ask(site, "/nothing", "").starts_with("HTTP/1.1 404 "));
        assert!(ask(site, "/api/news", "Accept-Language: de-CH\r\n").contains("Tor"));
    }

    #[test]
    fn pictures_are_confirmed_by_their_validator() {
        let site = start().unwrap();
        let first = ask(site, "/logo.png", "");
        let etag = first.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
        let again = ask(site, "/logo.png", &format!("If-None-Match: {etag}\r\n"));
        assert!(again.starts_with("HTTP/1.1 304 ") && again.contains("cache-control: "), "{again}");
    }

    #[test]
    fn the_flaky_page_fails_every_third_time() {
        let site = start().unwrap();
        let failed = |_| ask(site, "/flaky", "").starts_with("HTTP/1.1 500 ");
        assert_eq!((0..6).map(failed).collect::<Vec<_>>(), [false, false, true, false, false, true]);
    }
}
