//! Metrics for Prometheus. Counters begin at zero with each run.

use super::Web;
use crate::status::Status;
use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use evb::Live;
use prometheus_client::{
    encoding::text::encode,
    metrics::{family::Family, gauge::Gauge},
    registry::{Metric, Registry, Unit},
};
use std::sync::{Arc, atomic::AtomicU64};

/// A gauge of whole or broken numbers.
type Number = Gauge<f64, AtomicU64>;
/// Labels of a metric.
type Labels = Vec<(&'static str, String)>;

/// The states of run control, of which one is 1 and the others 0.
const STATES: [&str; 9] =
    ["initial", "configuring", "configured", "running", "degraded", "paused", "draining", "stopped", "failed"];

pub(super) async fn metrics(State(web): State<Arc<Web>>) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], text(&web.desk.status(), web.desk.live().as_deref())).into_response()
}

/// All metrics as text.
fn text(status: &Status, live: Option<&Live>) -> String {
    let mut table = Table(Registry::with_prefix("evb"));
    table.of_service(status);
    table.of_run(status);
    if let Some(live) = live.filter(|_| status.now_rates.is_some()) {
        table.of_units(live);
    }
    let mut text = String::new();
    let _never_fails = encode(&mut text, &table.0);
    text
}

/// The metrics of one answer.
struct Table(Registry);

impl Table {
    fn put(&mut self, name: &str, help: &str, unit: Option<Unit>, metric: impl Metric) {
        match unit {
            Some(unit) => self.0.register_with_unit(name, help, unit, metric),
            None => self.0.register(name, help, metric),
        }
    }

    fn number(&mut self, name: &str, help: &str, unit: Option<Unit>, value: f64) {
        let gauge = Number::default();
        gauge.set(value);
        self.put(name, help, unit, gauge);
    }

    fn family(&mut self, name: &str, help: &str, unit: Option<Unit>, values: impl IntoIterator<Item = (Labels, f64)>) {
        let family = Family::<Labels, Number>::default();
        for (labels, value) in values {
            family.get_or_create(&labels).set(value);
        }
        self.put(name, help, unit, family);
    }

    fn of_service(&mut self, status: &Status) {
        let states =
            STATES.map(|state| (vec![("state", state.to_owned())], f64::from(u8::from(state == status.state))));
        self.family("state", "State of run control: 1 for the present one", None, states);
        let nodes = status
            .nodes
            .iter()
            .map(|node| (vec![("node", node.name.clone())], f64::from(u8::from(node.state == "up"))));
        self.family("node_up", "Whether a node takes part: 0 when it is absent or lost", None, nodes);
        if let Some(disk) = &status.disk {
            self.number("disk_free", "Space left for event files", Some(Unit::Bytes), disk.free_bytes as f64);
        }
    }

    fn of_run(&mut self, status: &Status) {
        let (Some(run), Some(record)) = (&status.run, &status.record) else { return };
        self.number("run_number", "Number of the present or last run", None, run.number as f64);
        self.number("run", "Time since the start of the run", Some(Unit::Seconds), run.seconds);
        let events = &record.events;
        let outcomes = [
            ("triggered", events.triggered),
            ("built", events.built),
            ("incomplete", events.incomplete),
            ("rejected", events.rejected),
            ("open", events.lost),
        ];
        let outcomes = outcomes.map(|(outcome, count)| (vec![("outcome", outcome.to_owned())], count as f64));
        self.family(
            "events",
            "Events of the run by outcome; open ones are triggered and have not ended",
            None,
            outcomes,
        );
        self.number("triggers_inhibited", "Triggers turned away", None, record.trigger.inhibited as f64);
        let latency = &record.latency_us;
        let quantiles = [("0.5", latency.p50), ("0.99", latency.p99), ("0.999", latency.p999), ("1", latency.max)];
        let quantiles = quantiles.map(|(at, us)| (vec![("quantile", at.to_owned())], us * 1e-6));
        self.family(
            "latency",
            "Time from trigger to stored, since the start of the run",
            Some(Unit::Seconds),
            quantiles,
        );
        let faults = record.faults.iter().map(|(kind, &count)| (vec![("kind", kind.clone())], count as f64));
        self.family("faults", "Faults of fragments and messages by kind", None, faults);
        let unit = |index: usize, value: u64| (vec![("unit", format!("bu{index}"))], value as f64);
        let received = record.builders.iter().enumerate().map(|(index, builder)| unit(index, builder.bytes));
        self.family("received", "Payload received by a builder unit", Some(Unit::Bytes), received);
        let stored = record.builders.iter().enumerate().map(|(index, builder)| unit(index, builder.stored_bytes));
        self.family("stored", "Bytes written to event files by a builder unit", Some(Unit::Bytes), stored);
        let sent = record.readouts.iter().enumerate();
        let sent = sent.map(|(index, readout)| (vec![("unit", format!("ru{index}"))], readout.sent_bytes as f64));
        self.family("sent", "Payload sent by a readout unit", Some(Unit::Bytes), sent);
    }

    fn of_units(&mut self, live: &Live) {
        let readouts = || live.readouts.iter().enumerate();
        let label = |index| vec![("unit", format!("ru{index}"))];
        let events = readouts().map(|(index, held)| (label(index), held.events as f64));
        self.family("held_events", "Events in the buffer of a readout unit", None, events);
        let bytes = readouts().map(|(index, held)| (label(index), held.bytes as f64));
        self.family("held", "Payload in the buffer of a readout unit", Some(Unit::Bytes), bytes);
        let builders = || live.builders.iter().enumerate();
        let label = |index| vec![("unit", format!("bu{index}"))];
        let open = builders().map(|(index, open)| (label(index), open.building as f64));
        self.family("building_events", "Events under construction in a builder unit", None, open);
        let storing = builders().map(|(index, open)| (label(index), open.storing as f64));
        self.family("storing_events", "Built events that wait for filters or the storage", None, storing);
    }
}
