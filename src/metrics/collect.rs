//! The series as Prometheus sees them: names, help, labels.

use std::{fmt::Write, sync::Arc};

use prometheus::{
    core::{Collector, Desc},
    proto::{Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType},
};

use super::{
    All, BackendMetrics, CLASSES, FrontendMetrics, Outcome, ProcessMetrics, RequestMetrics, Series, StoreMetrics, cell,
    cell::BOUNDS, locked,
};

/// The one collector behind `/metrics`.
pub(super) struct Collected {
    all: Arc<All>,
    /// The registry wants one to know a collector by; series come and go, so it stands for all of them.
    desc: Option<Desc>,
}

impl Collected {
    pub(super) fn new(all: Arc<All>) -> Self {
        let help = "Every series of the process.".to_owned();
        Self { all, desc: Desc::new("tidegate".to_owned(), help, Vec::new(), std::collections::HashMap::new()).ok() }
    }
}

impl Collector for Collected {
    fn desc(&self) -> Vec<&Desc> {
        self.desc.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let mut families = Vec::new();
        frontends(&self.all.frontends, &mut families);
        requests(&self.all.requests, &mut families);
        backends(&self.all.backends, &mut families);
        stores(&self.all.stores, &mut families);
        process(&self.all.process, &mut families);
        families.retain(|family| !family.get_metric().is_empty());
        families
    }
}

fn frontends(all: &Series<String, FrontendMetrics>, out: &mut Vec<MetricFamily>) {
    let all = locked(all);
    let each = || all.iter().map(|(name, frontend)| (vec![("frontend", name.as_str())], &**frontend));
    let counters: [Row<FrontendMetrics>; 5] = [
        ("tidegate_requests_total", "Requests received, malformed ones included.", |of| of.requests.get()),
        ("tidegate_connections_total", "Client connections accepted.", |of| of.connections.get()),
        ("tidegate_connections_denied_total", "Client connections closed by rules below HTTP.", |of| of.denied.get()),
        ("tidegate_received_bytes_total", "Bytes received from clients.", |of| of.bytes_in.get()),
        ("tidegate_sent_bytes_total", "Bytes sent to clients.", |of| of.bytes_out.get()),
    ];
    for (name, help, read) in counters {
        out.push(family(name, help, MetricType::COUNTER, each().map(|(labels, of)| counter(&labels, read(of)))));
    }
    let responses = each().flat_map(|(labels, of)| {
        let class = |(class, count)| counter(&[labels.as_slice(), &[("class", class)]].concat(), count);
        CLASSES.into_iter().zip(of.responses()).map(class).collect::<Vec<_>>()
    });
    let help = "Responses by the class of their status; `other`: no response was sent.";
    out.push(family("tidegate_responses_total", help, MetricType::COUNTER, responses));
    let active = each().map(|(labels, of)| gauge(&labels, of.active.get()));
    out.push(family("tidegate_connections_active", "Client connections open now.", MetricType::GAUGE, active));
    let help = "Time from a request's head to the end of its reply.";
    let durations = each().map(|(labels, of)| histogram(&labels, &of.duration));
    out.push(family("tidegate_request_duration_seconds", help, MetricType::HISTOGRAM, durations));
}

fn requests(all: &Series<(String, String), RequestMetrics>, out: &mut Vec<MetricFamily>) {
    let all = locked(all);
    let (mut outcomes, mut reasons) = (Vec::new(), Vec::new());
    for ((frontend, rule), of) in all.iter() {
        let labels = |name, value| vec![("frontend", frontend.as_str()), ("rule", rule.as_str()), (name, value)];
        for outcome in Outcome::ALL {
            outcomes.push(counter(&labels("outcome", outcome.as_str()), of.get(outcome)));
        }
        for (reason, count) in of.reasons.each() {
            reasons.push(counter(&labels("reason", reason), count));
        }
    }
    let help = "Requests by caching rule and by how they ended; `-`: no rule was for them.";
    out.push(family("tidegate_request_outcomes_total", help, MetricType::COUNTER, outcomes));
    let help = "Requests that no fresh stored response answered, by caching rule and reason.";
    out.push(family("tidegate_misses_total", help, MetricType::COUNTER, reasons));
}

fn backends(all: &Series<String, BackendMetrics>, out: &mut Vec<MetricFamily>) {
    let all = locked(all);
    let each = || all.iter().map(|(name, backend)| (vec![("backend", name.as_str())], &**backend));
    let begun = each().map(|(labels, of)| counter(&labels, of.requests.get()));
    let help = "Exchanges begun with servers.";
    out.push(family("tidegate_upstream_requests_total", help, MetricType::COUNTER, begun));
    let errors = each().flat_map(|(labels, of)| labelled(labels, "kind", &of.errors));
    let help = "Exchanges with servers that failed, by kind.";
    out.push(family("tidegate_upstream_errors_total", help, MetricType::COUNTER, errors));
    let durations = each().map(|(labels, of)| histogram(&labels, &of.fill_duration));
    let help = "Time from a request's first byte to its response's last.";
    out.push(family("tidegate_fill_duration_seconds", help, MetricType::HISTOGRAM, durations));
}

fn stores(all: &Series<String, StoreMetrics>, out: &mut Vec<MetricFamily>) {
    let all = locked(all);
    let each = || all.iter().map(|(name, store)| (vec![("store", name.as_str())], &**store));
    let gauges: [Row<StoreMetrics, i64>; 4] = [
        ("tidegate_store_bytes", "Bytes charged to the store, overhead included.", |of| of.used.get()),
        ("tidegate_store_budget_bytes", "The store's budget.", |of| of.budget.get()),
        ("tidegate_store_objects", "Objects stored.", |of| of.objects.get()),
        ("tidegate_fills_active", "Fills under way.", |of| of.fills.get()),
    ];
    for (name, help, read) in gauges {
        out.push(family(name, help, MetricType::GAUGE, each().map(|(labels, of)| gauge(&labels, read(of)))));
    }
    let counters: [Row<StoreMetrics>; 2] = [
        ("tidegate_inserts_total", "Objects stored since the start.", |of| of.inserts.get()),
        ("tidegate_purged_objects_total", "Objects removed or made stale by purges.", |of| of.purged.get()),
    ];
    for (name, help, read) in counters {
        out.push(family(name, help, MetricType::COUNTER, each().map(|(labels, of)| counter(&labels, read(of)))));
    }
    let evictions = each().flat_map(|(labels, of)| labelled(labels, "reason", &of.evictions));
    out.push(family("tidegate_evictions_total", "Objects evicted, by reason.", MetricType::COUNTER, evictions));
    let refusals = each().flat_map(|(labels, of)| labelled(labels, "reason", &of.refusals));
    let help = "Responses that could not be kept although they may be stored, by reason.";
    out.push(family("tidegate_store_refusals_total", help, MetricType::COUNTER, refusals));
}

fn process(of: &ProcessMetrics, out: &mut Vec<MetricFamily>) {
    let dropped = counter(&[], of.log_lines_dropped.get());
    let help = "Log lines dropped because their reader was slow.";
    out.push(family("tidegate_log_lines_dropped_total", help, MetricType::COUNTER, [dropped]));
    let reloads = [("ok", &of.reloads_ok), ("failed", &of.reloads_failed)]
        .map(|(result, counted)| counter(&[("result", result)], counted.get()));
    out.push(family("tidegate_reloads_total", "Reloads of the configuration.", MetricType::COUNTER, reloads));
    let build = gauge(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    out.push(family("tidegate_build_info", "The running version.", MetricType::GAUGE, [build]));
}

/// A series' name, its help, and where it is read.
type Row<S, V = u64> = (&'static str, &'static str, fn(&S) -> V);
type Labels<'a> = [(&'a str, &'a str)];

fn family(name: &str, help: &str, of: MetricType, metrics: impl IntoIterator<Item = Metric>) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(name.to_owned());
    family.set_help(help.to_owned());
    family.set_field_type(of);
    family.set_metric(metrics.into_iter().collect());
    family
}

fn labelled<'a>(
    labels: Vec<(&'a str, &'a str)>,
    label: &'a str,
    of: &'a cell::Labelled,
) -> impl Iterator<Item = Metric> {
    of.each().map(move |(word, count)| {
        let mut labels = labels.clone();
        labels.push((label, word));
        counter(&labels, count)
    })
}

fn metric(labels: &Labels<'_>) -> Metric {
    let pair = |(name, value): &(&str, &str)| {
        let mut pair = LabelPair::default();
        pair.set_name((*name).to_owned());
        pair.set_value((*value).to_owned());
        pair
    };
    Metric::from_label(labels.iter().map(pair).collect())
}

fn counter(labels: &Labels<'_>, value: u64) -> Metric {
    let mut counter = Counter::default();
    counter.set_value(float(value));
    let mut metric = metric(labels);
    metric.set_counter(counter);
    metric
}

#[expect(clippy::cast_precision_loss, reason = "the exposition format has floats only")]
fn gauge(labels: &Labels<'_>, value: i64) -> Metric {
    let mut gauge = Gauge::default();
    gauge.set_value(value as f64);
    let mut metric = metric(labels);
    metric.set_gauge(gauge);
    metric
}

fn histogram(labels: &Labels<'_>, of: &cell::Histogram) -> Metric {
    let counts = of.counts();
    let mut total = 0;
    let mut buckets = Vec::with_capacity(BOUNDS.len());
    for (bound, count) in BOUNDS.iter().zip(counts) {
        total += count;
        let mut bucket = Bucket::default();
        bucket.set_cumulative_count(total);
        bucket.set_upper_bound(seconds(*bound));
        buckets.push(bucket);
    }
    let mut histogram = Histogram::default();
    histogram.set_sample_count(counts.iter().sum());
    histogram.set_sample_sum(of.sum().as_secs_f64());
    histogram.set_bucket(buckets);
    let mut metric = metric(labels);
    metric.set_histogram(histogram);
    metric
}

/// Microseconds as seconds, by way of their decimal form so that 500 is `0.0005` and nothing near it.
fn seconds(micros: u64) -> f64 {
    let mut text = String::new();
    let _ = write!(text, "{micros}e-6");
    text.parse().unwrap_or(f64::INFINITY)
}

#[expect(clippy::cast_precision_loss, reason = "the exposition format has floats only")]
fn float(value: u64) -> f64 {
    value as f64
}
