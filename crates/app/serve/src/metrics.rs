//! The metrics of the service: one list, for Prometheus and for Influx.

use crate::status::Status;
use evb::Live;
use evb_record::{ReadoutRecord, SourceRecord, SourceState};
use prometheus_client::{
    encoding::text::encode,
    metrics::{counter::ConstCounter, counter::Counter, family::Family, gauge::Gauge},
    registry::{Metric as Registered, Registry, Unit},
};
use std::{
    fmt::Write as _,
    sync::atomic::{AtomicU64, Ordering},
};

mod histograms;

/// A gauge of whole or broken numbers.
type Number = Gauge<f64, AtomicU64>;
/// Labels of a value.
type Labels = Vec<(&'static str, String)>;

/// The states of run control, of which one is 1 and the others 0.
const STATES: [&str; 10] = [
    "initial",
    "configuring",
    "configured",
    "running",
    "degraded",
    "paused",
    "splitting",
    "draining",
    "stopped",
    "failed",
];

/// A metric with its values.
pub(crate) struct Metric {
    name: &'static str,
    help: &'static str,
    unit: Option<Unit>,
    /// It begins at zero with each run, and only grows in it.
    counts: bool,
    values: Vec<(Labels, f64)>,
}

impl Metric {
    fn gauge(name: &'static str, help: &'static str, values: Vec<(Labels, f64)>) -> Self {
        Self { name, help, unit: None, counts: false, values }
    }

    fn counter(name: &'static str, help: &'static str, values: Vec<(Labels, f64)>) -> Self {
        Self { counts: true, ..Self::gauge(name, help, values) }
    }

    fn number(name: &'static str, help: &'static str, value: f64) -> Self {
        Self::gauge(name, help, vec![(Vec::new(), value)])
    }

    fn bytes(self) -> Self {
        Self { unit: Some(Unit::Bytes), ..self }
    }

    fn seconds(self) -> Self {
        Self { unit: Some(Unit::Seconds), ..self }
    }
}

/// All metrics.
pub(crate) fn metrics(status: &Status, live: Option<&Live>) -> Vec<Metric> {
    let mut all = of_service(status);
    all.extend(of_run(status));
    if let Some(live) = live.filter(|_| status.now_rates.is_some()) {
        all.extend(of_units(live));
    }
    all.extend(status.record.iter().flat_map(|record| of_sources(&record.readouts)));
    all.extend(histograms::metrics(&status.histograms));
    all
}

fn of_service(status: &Status) -> Vec<Metric> {
    let is = |yes: bool| f64::from(u8::from(yes));
    let states = STATES.map(|state| (vec![("state", state.to_owned())], is(state == status.state)));
    let nodes = status.nodes.iter().map(|node| (vec![("node", node.name.clone())], is(node.state == "up")));
    let mut all = vec![
        Metric::gauge("state", "State of run control: 1 for the present one", states.to_vec()),
        Metric::gauge("node_up", "Whether a node takes part: 0 when it is absent or lost", nodes.collect()),
    ];
    if let Some(disk) = &status.disk {
        all.push(Metric::number("disk_free", "Space left for event files", disk.free_bytes as f64).bytes());
    }
    all
}

fn of_run(status: &Status) -> Vec<Metric> {
    let (Some(run), Some(record)) = (&status.run, &status.record) else { return Vec::new() };
    let events = &record.events;
    let outcomes = [
        ("triggered", events.triggered),
        ("built", events.built),
        ("incomplete", events.incomplete),
        ("rejected", events.rejected),
    ];
    let outcomes = outcomes.map(|(outcome, count)| (vec![("outcome", outcome.to_owned())], count as f64));
    let latency = &record.latency_us;
    let quantiles = [("0.5", latency.p50), ("0.99", latency.p99), ("0.999", latency.p999), ("1", latency.max)];
    let quantiles = quantiles.map(|(at, us)| (vec![("quantile", at.to_owned())], us * 1e-6));
    let faults = record.faults.iter().map(|(kind, &count)| (vec![("kind", kind.clone())], count as f64));
    let of_builders = |value: fn(&evb_record::BuilderRecord) -> u64| by_unit("bu", record.builders.iter().map(value));
    let sent = by_unit("ru", record.readouts.iter().map(|readout| readout.sent_bytes));
    vec![
        Metric::number("run_number", "Number of the present or last run", run.number as f64),
        Metric::number("run_time", "Time since the start of the run", run.seconds).seconds(),
        Metric::counter("events", "Events of the run by outcome", outcomes.to_vec()),
        Metric::number("open_events", "Events that are triggered and have not ended", events.lost as f64),
        Metric::counter(
            "triggers_inhibited",
            "Triggers turned away",
            vec![(Vec::new(), record.trigger.inhibited as f64)],
        ),
        Metric::gauge("latency", "Time from trigger to stored, since the start of the run", quantiles.to_vec())
            .seconds(),
        Metric::counter("faults", "Faults of fragments and messages by kind", faults.collect()),
        Metric::counter("received", "Payload received by a builder unit", of_builders(|unit| unit.bytes)).bytes(),
        Metric::counter("stored", "Bytes written to event files", of_builders(|unit| unit.stored_bytes)).bytes(),
        Metric::counter("sent", "Payload sent by a readout unit", sent).bytes(),
    ]
}

fn of_units(live: &Live) -> Vec<Metric> {
    let held_events = by_unit("ru", live.readouts.iter().map(|held| held.events));
    let held_bytes = by_unit("ru", live.readouts.iter().map(|held| held.bytes));
    let building = by_unit("bu", live.builders.iter().map(|open| open.building));
    let storing = by_unit("bu", live.builders.iter().map(|open| open.storing));
    vec![
        Metric::gauge("held_events", "Events in the buffer of a readout unit", held_events),
        Metric::gauge("held", "Payload in the buffer of a readout unit", held_bytes).bytes(),
        Metric::gauge("building_events", "Events under construction in a builder unit", building),
        Metric::gauge("storing_events", "Built events that wait for filters or the storage", storing),
    ]
}

/// The metrics of live sources.
fn of_sources(readouts: &[ReadoutRecord]) -> Vec<Metric> {
    let live: Vec<_> = readouts
        .iter()
        .enumerate()
        .filter_map(|(unit, readout)| Some((unit, readout, readout.source.as_ref()?)))
        .collect();
    if live.is_empty() {
        return Vec::new();
    }
    let named = |unit: usize, more: Option<(&'static str, String)>| {
        [("source", format!("ru{unit}"))].into_iter().chain(more).collect::<Labels>()
    };
    let states = live.iter().flat_map(|(unit, _, source)| {
        SourceState::ALL.map(|state| {
            (named(*unit, Some(("state", state.key().to_owned()))), f64::from(u8::from(state == source.state)))
        })
    });
    let faults = live.iter().flat_map(|(unit, readout, _)| {
        readout.faults.iter().map(|(kind, count)| (named(*unit, Some(("kind", kind.clone()))), *count as f64))
    });
    let of_each = |value: &dyn Fn(&ReadoutRecord, &SourceRecord) -> Option<f64>| {
        let value = |(unit, readout, source): &(usize, &ReadoutRecord, &SourceRecord)| {
            Some((named(*unit, None), value(readout, source)?))
        };
        live.iter().filter_map(value).collect::<Vec<_>>()
    };
    vec![
        Metric::gauge("source_state", "State of a live source: 1 for the present one", states.collect()),
        Metric::counter(
            "source_fragments",
            "Fragments that a live source has delivered",
            of_each(&|readout, _| Some(readout.came as f64)),
        ),
        Metric::gauge(
            "source_rate",
            "Fragments per second of a live source",
            of_each(&|_, source| Some(source.rate_hz)),
        ),
        Metric::gauge(
            "source_last_counter",
            "Event counter of the last fragment of a live source",
            of_each(&|_, source| source.last_counter.map(|counter| counter as f64)),
        ),
        Metric::gauge(
            "source_last_time",
            "Time of the last fragment of a live source, from the start of the run",
            of_each(&|_, source| source.last_s),
        )
        .seconds(),
        Metric::counter("source_faults", "Faults of the fragments of a live source by kind", faults.collect()),
    ]
}

fn by_unit(prefix: &str, values: impl Iterator<Item = u64>) -> Vec<(Labels, f64)> {
    let named = |(index, value): (usize, u64)| (vec![("unit", format!("{prefix}{index}"))], value as f64);
    values.enumerate().map(named).collect()
}

/// The metrics as Prometheus reads them.
pub(crate) fn prometheus(metrics: &[Metric]) -> String {
    let mut registry = Registry::with_prefix("evb");
    for metric in metrics {
        match (metric.counts, metric.values.as_slice()) {
            (true, [(labels, count)]) if labels.is_empty() => {
                register(&mut registry, metric, ConstCounter::new(*count as u64))
            }
            (true, values) => {
                let family = Family::<Labels, Counter>::default();
                for (labels, count) in values {
                    family.get_or_create(labels).inner().store(*count as u64, Ordering::Relaxed);
                }
                register(&mut registry, metric, family);
            }
            (false, [(labels, value)]) if labels.is_empty() => {
                let gauge = Number::default();
                gauge.set(*value);
                register(&mut registry, metric, gauge);
            }
            (false, values) => {
                let family = Family::<Labels, Number>::default();
                values.iter().for_each(|(labels, value)| _ = family.get_or_create(labels).set(*value));
                register(&mut registry, metric, family);
            }
        }
    }
    let mut text = String::new();
    let _never_fails = encode(&mut text, &registry);
    text
}

fn register(registry: &mut Registry, metric: &Metric, registered: impl Registered) {
    match metric.unit.clone() {
        Some(unit) => registry.register_with_unit(metric.name, metric.help, unit, registered),
        None => registry.register(metric.name, metric.help, registered),
    }
}

/// The metrics in the line protocol of Influx: `measurement,tag=value value=number time`, the time in nanoseconds.
pub(crate) fn influx(metrics: &[Metric], now: f64) -> String {
    let mut text = String::new();
    for metric in metrics {
        let unit = metric.unit.as_ref().map(|unit| format!("_{}", unit.as_str())).unwrap_or_default();
        for (labels, value) in &metric.values {
            let tags: String = labels.iter().map(|(name, value)| format!(",{name}={}", escaped(value))).collect();
            let _never_fails = writeln!(text, "evb_{}{unit}{tags} value={value} {}", metric.name, (now * 1e9) as u64);
        }
    }
    text
}

/// A value of a tag: commas, equal signs and spaces have a meaning.
fn escaped(text: &str) -> String {
    text.chars().flat_map(|letter| [Some('\\').filter(|_| ",= ".contains(letter)), Some(letter)]).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_have_the_same_numbers() {
        let label = |name: &str| vec![("unit", name.to_owned())];
        let metrics = [
            Metric::number("run_time", "Time", 1.5).seconds(),
            Metric::counter("sent", "Payload", vec![(label("ru0"), 7.0), (label("a b,c"), 8.0)]).bytes(),
            Metric::counter("triggers_inhibited", "Triggers", vec![(Vec::new(), 3.0)]),
        ];
        let text = prometheus(&metrics);
        for line in [
            "# TYPE evb_run_time_seconds gauge",
            "evb_run_time_seconds 1.5",
            "evb_sent_bytes_total{unit=\"ru0\"} 7",
            "evb_triggers_inhibited_total 3",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}: {text}");
        }
        let lines = influx(&metrics, 2.0);
        assert_eq!(lines.lines().next(), Some("evb_run_time_seconds value=1.5 2000000000"));
        assert!(lines.contains("evb_sent_bytes,unit=a\\ b\\,c value=8 2000000000\n"), "{lines}");
    }
}
