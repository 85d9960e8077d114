//! `bench load`: connections that each send a request, take the whole answer, and send the next.

use std::{
    net::{SocketAddr, ToSocketAddrs},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, Uri, header};
use http_body_util::{BodyExt, Empty};
use hyper::{
    body::Incoming,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpStream,
    time::{sleep, timeout},
};

use super::{
    CHECKSUM, Checksum, Random, TARGET,
    keys::{Keys, Zipf},
    tally::{Tally, lines},
};
use crate::cli::{Exit, say};

/// What `bench load` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to ask for, in turn: http URLs of one host and port; with --keys one URL with {} in it
    #[arg(value_name = "URL", required = true)]
    urls: Vec<String>,
    /// Connections, each with one request at a time
    #[arg(short, long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    connections: u32,
    /// Seconds to go on
    #[arg(short, long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    duration: u64,
    /// Stop after so many requests, if they come before the time is up
    #[arg(short = 'n', long, value_name = "N")]
    requests: Option<u64>,
    /// Replace {} by a number below N, low ones oftener
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50_000_000))]
    keys: Option<u32>,
    /// How much oftener: 0 not at all, 0.9 as on the web
    #[arg(long, value_name = "SKEW", default_value_t = 0.9, requires = "keys")]
    zipf: f64,
    /// Another field for each request
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// Another seed gives another order of keys
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Seconds that an answer may take
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    timeout: u64,
    /// Allow hosts other than this machine: load on someone else's server is an attack
    #[arg(long)]
    allow_remote: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What every connection does.
#[derive(Debug)]
struct Job {
    address: SocketAddr,
    keys: Keys,
    fields: HeaderMap,
    turn: AtomicU64,
    requests: u64,
    until: Instant,
    timeout: Duration,
}

/// Runs the load and prints what came of it.
///
/// # Errors
/// An argument makes no sense, the host is another machine, no answer came, only errors came, or bodies were wrong.
pub(super) fn load(args: &Args) -> Result<(), Exit> {
    let job = Arc::new(job(args).map_err(Exit::line)?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Exit::line)?;
    let started = Instant::now();
    let tally = runtime.block_on(async {
        let seeds = (0..u64::from(args.connections)).map(|number| args.seed.wrapping_add(number << 32));
        let tasks: Vec<_> = seeds.map(|seed| tokio::spawn(connection(Arc::clone(&job), Random::new(seed)))).collect();
        let mut sum = Tally::new();
        for task in tasks {
            sum.merge(&task.await.unwrap_or_else(|_| Tally::new()));
        }
        sum
    });
    let report = tally.report(started.elapsed());
    if args.json {
        say(format_args!("{report:#}"))
    } else {
        say(lines(&report))
    }
    match (tally.wrong, tally.answers) {
        (0, 0) => Err(Exit::line("there was no answer at all")),
        (0, _) if tally.all_errors() => Err(Exit::line("every answer was an error")),
        (0, _) => Ok(()),
        (wrong, _) => Err(Exit::line(format_args!("{wrong} bodies were wrong"))),
    }
}

fn job(args: &Args) -> Result<Job, String> {
    let mut targets = Vec::new();
    let mut host = None;
    for url in &args.urls {
        // `{}` is not allowed in a URL, so it is looked at without.
        let uri: Uri = url.replace("{}", "0").parse().map_err(|error| format!("{url}: {error}"))?;
        let authority = uri.authority().filter(|_| uri.scheme_str() == Some("http"));
        let authority = authority.ok_or_else(|| format!("{url}: write http://host:port/path (TLS is not built in)"))?;
        if host.get_or_insert_with(|| authority.clone()) != authority {
            return Err(format!("{url}: all URLs must have one host and port; -H 'Host: …' can differ"));
        }
        let rest = url.get("http://".len() + authority.as_str().len()..).unwrap_or_default();
        targets.push(if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") });
    }
    let host = host.ok_or("no URL")?;
    let mut fields = HeaderMap::new();
    fields.insert(header::HOST, HeaderValue::from_str(host.as_str()).map_err(|error| error.to_string())?);
    for line in &args.headers {
        let (name, value) = line.split_once(':').ok_or_else(|| format!("{line}: write `Name: value`"))?;
        let name = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|error| format!("{line}: {error}"))?;
        fields.insert(name, HeaderValue::from_str(value.trim()).map_err(|error| format!("{line}: {error}"))?);
    }
    let address = address(host.host(), host.port_u16().unwrap_or(80), args.allow_remote)?;
    Ok(Job {
        address,
        keys: keys(targets, args.keys, args.zipf)?,
        fields,
        turn: AtomicU64::new(0),
        requests: args.requests.unwrap_or(u64::MAX),
        until: Instant::now() + Duration::from_secs(args.duration),
        timeout: Duration::from_secs(args.timeout),
    })
}

fn keys(mut targets: Vec<String>, count: Option<u32>, skew: f64) -> Result<Keys, String> {
    let Some(count) = count else { return Ok(Keys::List(targets)) };
    let only = if targets.len() == 1 { targets.pop() } else { None };
    match only.as_deref().and_then(|target| target.split_once("{}")) {
        Some((before, after)) => {
            Ok(Keys::Zipf { before: before.to_owned(), after: after.to_owned(), zipf: Zipf::new(count, skew) })
        }
        None => Err("--keys needs one URL with {} where the number goes".to_owned()),
    }
}

fn address(host: &str, port: u16, allow_remote: bool) -> Result<SocketAddr, String> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let found = (bare, port).to_socket_addrs().map_err(|error| format!("{host}: {error}"))?;
    let found: Vec<_> = found.collect();
    if !allow_remote && found.iter().any(|address| !address.ip().is_loopback()) {
        return Err(format!("{host} is not this machine; --allow-remote, if the server is yours to load"));
    }
    found.first().copied().ok_or_else(|| format!("{host} has no address"))
}

async fn connection(job: Arc<Job>, mut random: Random) -> Tally {
    let mut tally = Tally::new();
    let mut sender: Option<SendRequest<Empty<Bytes>>> = None;
    while Instant::now() < job.until {
        let turn = job.turn.fetch_add(1, Ordering::Relaxed);
        if turn >= job.requests {
            break;
        }
        let target = job.keys.pick(turn, &mut random);
        let mut open = match sender.take().filter(|sender| !sender.is_closed()) {
            Some(open) => open,
            None => match connect(&job).await {
                Some(open) => open,
                None => {
                    tally.refused += 1;
                    sleep(Duration::from_millis(20)).await;
                    continue;
                }
            },
        };
        let began = Instant::now();
        match timeout(job.timeout, exchange(&job, &mut open, &target, &mut tally)).await {
            Ok(Some(())) => {
                tally.latencies.add(began.elapsed());
                sender = Some(open);
            }
            Ok(None) | Err(_) => tally.broken += 1,
        }
    }
    tally
}

async fn connect(job: &Job) -> Option<SendRequest<Empty<Bytes>>> {
    let stream = timeout(job.timeout, TcpStream::connect(job.address)).await.ok()?.ok()?;
    let _ = stream.set_nodelay(true);
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    tokio::spawn(connection);
    Some(sender)
}

/// One request and its whole answer; `None` when it broke off.
async fn exchange(job: &Job, open: &mut SendRequest<Empty<Bytes>>, target: &str, tally: &mut Tally) -> Option<()> {
    let mut request = Request::builder().uri(target).body(Empty::new()).ok()?;
    *request.headers_mut() = job.fields.clone();
    open.ready().await.ok()?;
    let response = open.send_request(request).await.ok()?;
    let expected = expected(&response, target);
    let status = response.status().as_u16();
    let hit = response.headers().get("cache-status").is_some_and(|value| says_hit(value.as_bytes()));
    let mut body = response.into_body();
    let mut sum = Checksum::default();
    while let Some(frame) = body.frame().await {
        if let Some(data) = frame.ok()?.data_ref() {
            sum.add(data);
            tally.bytes += data.len() as u64;
        }
    }
    tally.answers += 1;
    *tally.statuses.entry(status).or_default() += 1;
    tally.hits += u64::from(hit);
    tally.wrong += u64::from(expected.is_some_and(|expected| expected.is_none_or(|text| text != sum.text())));
    Some(())
}

/// What the body must add up to: `None`: the origin does not say; `Some(None)`: it is another target's.
fn expected(response: &Response<Incoming>, target: &str) -> Option<Option<String>> {
    let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    let sum = text(CHECKSUM)?.to_owned();
    Some(text(TARGET).is_none_or(|of| of == target).then_some(sum))
}

/// Whether the cache nearest to us answered (RFC 9211 §2: the last member of the list).
fn says_hit(cache_status: &[u8]) -> bool {
    let nearest = cache_status.rsplit(|&byte| byte == b',').next().unwrap_or_default();
    nearest.split(|&byte| byte == b';').any(|parameter| parameter.trim_ascii() == b"hit")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_without_leave() {
        assert!(address("127.0.0.1", 80, false).is_ok());
        assert!(address("[::1]", 80, false).is_ok());
        assert!(address("192.0.2.1", 80, false).unwrap_err().contains("--allow-remote"));
        assert!(address("192.0.2.1", 80, true).is_ok());
    }

    #[test]
    fn a_hit_is_what_the_nearest_cache_says() {
        assert!(says_hit(b"tidegate; hit; ttl=5"));
        assert!(says_hit(b"other; fwd=miss, tidegate;hit"));
        assert!(!says_hit(b"other; hit, tidegate; fwd=stale"));
    }
}
