//! `option NAME` of proxies.

use super::{
    ProxyHandler, Row,
    Status::{self, Accepted, Honoured, Refused},
    place::{ALL, BACK},
    row,
};
use crate::lang::section::{forward, log, proxy};

type Proxy = Status<ProxyHandler>;

const CHECKS: Proxy = Refused("health checks are not built yet: every server counts as up; leave the line out");
const CONNECTIONS: Proxy = Accepted("connections to clients and to servers are kept and shared where HTTP allows it");
const ENGINE: Proxy = Accepted("it tunes HAProxy's engine, not this one");
const STICKY: Proxy = Accepted("no client is kept with one server");

pub(in crate::lang) const TABLE: &[Row<ProxyHandler>] = &[
    row("option abortonclose", BACK, Accepted("a request whose client has left waits for nothing")),
    row("option accept-invalid-http-request", ALL, Refused("messages that break HTTP are refused; repair the sender")),
    row("option accept-invalid-http-response", ALL, Refused("messages that break HTTP are refused; repair the sender")),
    row(
        "option accept-unsafe-violations-in-http-request",
        ALL,
        Refused("messages that break HTTP are refused; repair the sender"),
    ),
    row(
        "option accept-unsafe-violations-in-http-response",
        ALL,
        Refused("messages that break HTTP are refused; repair the sender"),
    ),
    row("option allbackups", BACK, Accepted("backup servers are not built yet")),
    row("option checkcache", ALL, Refused("not built; a caching rule never stores a `Set-Cookie` unless it says so")),
    row("option clitcpka", ALL, ENGINE),
    row("option contstats", ALL, ENGINE),
    row("option disable-h2-upgrade", ALL, ENGINE),
    row("option dontlog-normal", ALL, Honoured(log::errors_only)),
    row("option dontlognull", ALL, Accepted("a connection without a request has no line in any case")),
    row("option external-check", BACK, CHECKS),
    row("option forceclose", ALL, CONNECTIONS),
    row("option forwarded", ALL, Refused("not built; `http-request set-header` can make the field")),
    row("option forwardfor", ALL, Honoured(forward::forwardfor)),
    row("option h1-case-adjust-bogus-client", ALL, Refused("field names go out as they came")),
    row("option h1-case-adjust-bogus-server", ALL, Refused("field names go out as they came")),
    row("option http-buffer-request", ALL, Honoured(proxy::buffer_request)),
    row("option http-drop-request-trailers", ALL, Refused("trailers are passed on")),
    row("option http-drop-response-trailers", ALL, Refused("trailers are passed on")),
    row("option http-ignore-probes", ALL, Accepted("a connection without a request is not an error")),
    row("option http-keep-alive", ALL, CONNECTIONS),
    row("option http-no-delay", ALL, ENGINE),
    row("option http-pretend-keepalive", ALL, CONNECTIONS),
    row(
        "option http-restrict-req-hdr-names",
        ALL,
        Refused("not built yet; `http-request del-header` or `deny` can do it"),
    ),
    row("option http-server-close", ALL, CONNECTIONS),
    row("option http-tunnel", ALL, CONNECTIONS),
    row("option http-use-proxy-header", ALL, CONNECTIONS),
    row("option http_proxy", ALL, Refused("Tidegate does not guess servers; name them with `server`")),
    row("option httpchk", BACK, CHECKS),
    row("option httpclose", ALL, CONNECTIONS),
    row("option httplog", ALL, Honoured(log::httplog)),
    row("option httpslog", ALL, Honoured(log::httpslog)),
    row("option idle-close-on-response", ALL, CONNECTIONS),
    row("option independent-streams", ALL, ENGINE),
    row("option ldap-check", BACK, CHECKS),
    row("option log-health-checks", ALL, Accepted("health checks are not built yet")),
    row("option log-separate-errors", ALL, Honoured(log::separate_errors)),
    row("option logasap", ALL, Accepted("a line is written when the response is complete")),
    row("option mysql-check", BACK, CHECKS),
    row("option nolinger", ALL, ENGINE),
    row("option originalto", ALL, Refused("not built; `http-request set-header` can make the field")),
    row("option persist", BACK, STICKY),
    row("option pgsql-check", BACK, CHECKS),
    row("option prefer-last-server", BACK, STICKY),
    row("option redis-check", BACK, CHECKS),
    row("option redispatch", BACK, Refused("retries are not built yet; leave the line out")),
    row("option smtpchk", BACK, CHECKS),
    row("option socket-stats", ALL, ENGINE),
    row("option splice-auto", ALL, ENGINE),
    row("option splice-request", ALL, ENGINE),
    row("option splice-response", ALL, ENGINE),
    row("option spop-check", BACK, CHECKS),
    row("option srvtcpka", ALL, ENGINE),
    row("option ssl-hello-chk", BACK, CHECKS),
    row("option tcp-check", BACK, CHECKS),
    row("option tcp-smart-accept", ALL, ENGINE),
    row("option tcp-smart-connect", ALL, ENGINE),
    row("option tcpka", ALL, ENGINE),
    row("option tcplog", ALL, Honoured(log::tcplog)),
    row("option transparent", ALL, Refused("Tidegate does not guess servers; name them with `server`")),
    row("option use-small-buffers", ALL, ENGINE),
];
