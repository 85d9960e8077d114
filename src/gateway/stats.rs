//! The page of statistics (`stats uri`): what is counted, as a page for people or, behind `;csv`, as HAProxy's table
//! for programs (manual of the management, §9.1), which has only the columns filled that are counted here.

use std::{collections::BTreeMap, fmt::Write, time::Instant};

use bytes::Bytes;

use super::{
    clock,
    snapshot::{FrontendState, Snapshot},
};
use crate::{
    config::{Backend, BindAddress, Frontend, Id, ServerAddress, StatsPage},
    message::{Framing, Request, Response},
    metrics::{CLASSES, Outcome},
    rule::Answer,
};

/// HAProxy's columns, in its order.
const COLUMNS: &str = "pxname,svname,qcur,qmax,scur,smax,slim,stot,bin,bout,dreq,dresp,ereq,econ,eresp,wretr,wredis,status,weight,act,bck,chkfail,chkdown,lastchg,downtime,qlimit,pid,iid,sid,throttle,lbtot,tracked,type,rate,rate_lim,rate_max,check_status,check_code,check_duration,hrsp_1xx,hrsp_2xx,hrsp_3xx,hrsp_4xx,hrsp_5xx,hrsp_other,hanafail,req_rate,req_rate_max,req_tot,cli_abrt,srv_abrt,comp_in,comp_out,comp_byp,comp_rsp,lastsess,last_chk,last_agt,qtime,ctime,rtime,ttime,agent_status,agent_code,agent_duration,check_desc,agent_desc,check_rise,check_fall,check_health,agent_rise,agent_fall,agent_health,addr,cookie,mode,algo,conn_rate,conn_rate_max,conn_tot,intercepted,dcon,dses,wrew,connect,reuse,cache_lookups,cache_hits,srv_icur,src_ilim,qtime_max,ctime_max,rtime_max,ttime_max,eint,idle_conn_cur,safe_conn_cur,used_conn_cur,need_conn_est,uweight,agg_server_status,agg_server_check_status,agg_check_status";

/// What the page shows of a row: its heading, and the columns below it.
const SHOWN: &[(&str, &[(&str, &str)])] = &[
    ("Sessions", &[("now", "scur"), ("limit", "slim"), ("total", "stot"), ("per second", "rate")]),
    ("Requests", &[("total", "req_tot"), ("per second", "req_rate"), ("answered by rules", "intercepted")]),
    ("Bytes", &[("in", "bin"), ("out", "bout")]),
    ("Refused", &[("connections", "dcon"), ("requests", "dreq")]),
    ("Errors", &[("connecting", "econ"), ("responses", "eresp")]),
    ("Responses", &[("2xx", "hrsp_2xx"), ("3xx", "hrsp_3xx"), ("4xx", "hrsp_4xx"), ("5xx", "hrsp_5xx")]),
    ("Cache", &[("lookups", "cache_lookups"), ("hits", "cache_hits")]),
    ("State", &[("", "status"), ("weight", "weight"), ("address", "addr")]),
];

const STYLE: &str = "body{font:14px sans-serif;margin:1.5em}table{border-collapse:collapse;margin:0 0 1.5em}\
    th,td{border:1px solid #ccc;padding:.2em .5em;text-align:right}th{background:#eee;font-weight:normal}\
    td:first-child{text-align:left}.server td:first-child{padding-left:1.5em}caption{text-align:left;font-weight:bold}";

/// A line of the table, by column.
type Row = BTreeMap<&'static str, String>;

/// The page that `request` asks for.
pub fn answer(snapshot: &Snapshot, page: &StatsPage, request: &Request) -> Answer {
    let mut target = Vec::new();
    request.write_target(&mut target);
    let options = target.get(page.uri.len()..).unwrap_or_default();
    let asks = |option: &[u8]| options.split(|&byte| byte == b';').skip(1).any(|one| one == option);
    if request.method() == b"POST" {
        return see_other(page);
    }
    let proxies = proxies(snapshot, page);
    let csv = asks(b"csv");
    let (kind, body) =
        if csv { ("text/plain", table(&proxies)) } else { ("text/html", html(snapshot, page, &proxies)) };
    let mut head = Response::new(200);
    head.fields.append(b"Content-Type", kind.as_bytes());
    head.fields.append(b"Cache-Control", b"no-cache");
    if let Some(refresh) = page.refresh.filter(|_| !asks(b"norefresh")) {
        head.fields.append(b"Refresh", refresh.as_secs().to_string().as_bytes());
    }
    whole(head, body)
}

/// Nothing is changed here: the browser is led back, as HAProxy does without `stats admin`.
fn see_other(page: &StatsPage) -> Answer {
    let mut head = Response::new(303);
    head.fields.append(b"Content-Type", b"text/plain");
    head.fields.append(b"Cache-Control", b"no-cache");
    head.fields.append(b"Location", &[&page.uri, &b";st=DENY"[..]].concat());
    whole(head, String::new())
}

fn whole(mut head: Response, body: String) -> Answer {
    let body = Bytes::from(body);
    head.framing = Framing::Length(body.len() as u64);
    Answer { head, body }
}

/// The rows of every proxy that is shown, under its name and what it is.
fn proxies(snapshot: &Snapshot, page: &StatsPage) -> Vec<(String, Vec<Row>)> {
    let config = &snapshot.config;
    let shown = |name: &str| page.scope.is_empty() || page.scope.iter().any(|one| one == name);
    let mut proxies: Vec<(String, Vec<Row>)> = Vec::new();
    for (at, frontend) in config.frontends.iter().enumerate().filter(|(_, frontend)| shown(&frontend.name)) {
        let Some(state) = snapshot.frontend_state(Id::new(at)) else { continue };
        proxies.push((frontend.name.clone(), vec![of_frontend(frontend, state, page.shows_addresses)]));
    }
    let mut seen: Vec<&str> = Vec::new();
    for (at, backend) in config.backends.iter().enumerate().filter(|(_, backend)| shown(&backend.name)) {
        // A `listen` may be there twice; it counts once.
        if seen.contains(&backend.name.as_str()) {
            continue;
        }
        seen.push(&backend.name);
        let rows = of_backend(snapshot, Id::new(at), backend, page.shows_addresses);
        match proxies.iter_mut().find(|(name, _)| *name == backend.name) {
            Some((_, of_listen)) => of_listen.extend(rows),
            None => proxies.push((backend.name.clone(), rows)),
        }
    }
    proxies
}

fn of_frontend(frontend: &Frontend, state: &FrontendState, addresses: bool) -> Row {
    let (metrics, now) = (&state.metrics, clock::now().as_millis());
    let ended = |outcomes: &[Outcome]| -> u64 {
        state.every_request().map(|requests| outcomes.iter().map(|of| requests.get(*of)).sum::<u64>()).sum()
    };
    let hits = ended(&[Outcome::Hit, Outcome::Stale, Outcome::Revalidated, Outcome::Collapsed]);
    let mut row = Row::from([
        ("pxname", frontend.name.clone()),
        ("svname", "FRONTEND".to_owned()),
        ("scur", metrics.active.get().to_string()),
        ("slim", frontend.maxconn.map(|most| most.to_string()).unwrap_or_default()),
        ("stot", metrics.connections.get().to_string()),
        ("bin", metrics.bytes_in.get().to_string()),
        ("bout", metrics.bytes_out.get().to_string()),
        ("dreq", ended(&[Outcome::Refused]).to_string()),
        ("status", "OPEN".to_owned()),
        ("pid", "1".to_owned()),
        ("iid", frontend.number.to_string()),
        ("sid", "0".to_owned()),
        ("type", "0".to_owned()),
        ("rate", metrics.connection_rate.get(now).to_string()),
        ("rate_lim", frontend.rate_limit.unwrap_or(0).to_string()),
        ("req_rate", metrics.request_rate.get(now).to_string()),
        ("req_tot", metrics.requests.get().to_string()),
        ("mode", "http".to_owned()),
        ("conn_rate", metrics.connection_rate.get(now).to_string()),
        ("conn_tot", metrics.connections.get().to_string()),
        ("intercepted", ended(&[Outcome::Answered]).to_string()),
        ("dcon", metrics.denied.get().to_string()),
        ("cache_lookups", (hits + ended(&[Outcome::Miss])).to_string()),
        ("cache_hits", hits.to_string()),
    ]);
    for (class, count) in CLASSES.into_iter().zip(metrics.responses()) {
        let column = COLUMNS.split(',').find(|column| column.strip_prefix("hrsp_") == Some(class));
        row.extend(column.map(|column| (column, count.to_string())));
    }
    if addresses {
        let binds: Vec<_> = frontend.binds.iter().map(|bind| bind_text(&bind.address)).collect();
        row.insert("addr", binds.join(" "));
    }
    row
}

fn of_backend(snapshot: &Snapshot, id: Id<Backend>, backend: &Backend, addresses: bool) -> Vec<Row> {
    let number = backend.number.to_string();
    let server = |(at, server): (usize, &crate::config::Server)| {
        let mut row = Row::from([
            ("pxname", backend.name.clone()),
            ("svname", server.name.clone()),
            ("status", "no check".to_owned()),
            ("weight", "1".to_owned()),
            ("act", "1".to_owned()),
            ("bck", "0".to_owned()),
            ("pid", "1".to_owned()),
            ("iid", number.clone()),
            ("sid", (at + 1).to_string()),
            ("type", "2".to_owned()),
            ("mode", "http".to_owned()),
        ]);
        if addresses {
            row.insert("addr", server_text(&server.address));
        }
        row
    };
    let mut rows: Vec<_> = backend.servers.iter().enumerate().map(server).collect();
    let Some(state) = snapshot.backend_state(id) else { return rows };
    let (metrics, now) = (&state.metrics, clock::now().as_millis());
    let unreached = metrics.errors_of("connect");
    let servers = backend.servers.len();
    rows.push(Row::from([
        ("pxname", backend.name.clone()),
        ("svname", "BACKEND".to_owned()),
        ("qcur", "0".to_owned()),
        ("scur", metrics.active().to_string()),
        ("stot", metrics.entered.get().to_string()),
        ("econ", unreached.to_string()),
        ("eresp", metrics.errors().saturating_sub(unreached).to_string()),
        ("status", if servers > 0 { "UP" } else { "DOWN" }.to_owned()),
        ("weight", servers.to_string()),
        ("act", servers.to_string()),
        ("bck", "0".to_owned()),
        ("pid", "1".to_owned()),
        ("iid", number),
        ("sid", "0".to_owned()),
        ("lbtot", metrics.requests.get().to_string()),
        ("type", "1".to_owned()),
        ("rate", metrics.rate.get(now).to_string()),
        ("mode", "http".to_owned()),
    ]));
    rows
}

fn bind_text(address: &BindAddress) -> String {
    match address {
        BindAddress::Tcp(address) => address.to_string(),
        BindAddress::Unix(path) => path.display().to_string(),
    }
}

fn server_text(address: &ServerAddress) -> String {
    match address {
        ServerAddress::Tcp(address) => address.to_string(),
        ServerAddress::Unix(path) => path.display().to_string(),
    }
}

/// HAProxy's table; a comma and a quote in a value are quoted (RFC 4180).
fn table(proxies: &[(String, Vec<Row>)]) -> String {
    let mut out = format!("# {COLUMNS},\n");
    for row in proxies.iter().flat_map(|(_, rows)| rows) {
        for column in COLUMNS.split(',') {
            let value = row.get(column).map(String::as_str).unwrap_or_default();
            if value.contains([',', '"', '\n']) {
                let _ = write!(out, "\"{}\",", value.replace('"', "\"\""));
            } else {
                let _ = write!(out, "{value},");
            }
        }
        out.push('\n');
    }
    out
}

fn html(snapshot: &Snapshot, page: &StatsPage, proxies: &[(String, Vec<Row>)]) -> String {
    let version = if page.shows_version { concat!(" ", env!("CARGO_PKG_VERSION")) } else { "" };
    let node = page.node.as_deref().map(|node| if node.is_empty() { snapshot.process.hostname() } else { node });
    let on = node.map(|node| format!(" on {}", escaped(node))).unwrap_or_default();
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Tidegate{on}</title>\
         <style>{STYLE}</style></head><body>\n<h1>Tidegate{version}{on}</h1>\n"
    );
    if let Some(description) = page.description.as_deref().filter(|text| !text.is_empty()) {
        let _ = writeln!(out, "<p>{}</p>", escaped(description));
    }
    let up = Instant::now().saturating_duration_since(snapshot.process.started()).as_secs();
    let uri = escaped(&String::from_utf8_lossy(&page.uri));
    let _ = writeln!(out, "<p>Up for {up} s · <a href=\"{uri};csv\">CSV</a></p>");
    for (name, rows) in proxies {
        let used = |column: &str| rows.iter().any(|row| row.get(column).is_some_and(|value| !value.is_empty()));
        let groups = SHOWN
            .iter()
            .map(|(heading, columns)| (heading, columns.iter().filter(|(_, column)| used(column)).collect::<Vec<_>>()));
        let groups: Vec<_> = groups.filter(|(_, columns)| !columns.is_empty()).collect();
        let _ = write!(out, "<table><caption>{}</caption>\n<tr><th rowspan=\"2\"></th>", escaped(name));
        for (heading, columns) in &groups {
            let _ = write!(out, "<th colspan=\"{}\">{heading}</th>", columns.len());
        }
        out.push_str("</tr>\n<tr>");
        for (heading, _) in groups.iter().flat_map(|(_, columns)| columns) {
            let _ = write!(out, "<th>{heading}</th>");
        }
        out.push_str("</tr>\n");
        for row in rows {
            let value = |column: &str| escaped(row.get(column).map(String::as_str).unwrap_or_default());
            let class = if row.get("type").is_some_and(|kind| kind == "2") { " class=\"server\"" } else { "" };
            let _ = write!(out, "<tr{class}><td>{}</td>", value("svname"));
            for (_, column) in groups.iter().flat_map(|(_, columns)| columns) {
                let _ = write!(out, "<td>{}</td>", value(column));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</table>\n");
    }
    out.push_str("</body></html>\n");
    out
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}
