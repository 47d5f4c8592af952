//! Records as CSV for spreadsheets and scripts, quoted by RFC 4180. Lines end in a line feed, as all texts of evb do.

mod benchmark;
mod twin;

use crate::sweep::swept_keys;
pub use benchmark::{MOST_SAMPLES, benchmark_csv, samples_csv};
use evb_record::{LinkRecord, PointRecord, Record, Simulation};
use std::collections::BTreeSet;
pub use twin::twin_csv;

/// One line for each record: the swept keys, then every number and text of the record under its name, with dots for
/// nested ones. Lists are left out, except for the mean of `per_destination_bytes_per_s`. Absent values are empty. A
/// field with the name of a swept key is left out, because that key is there already, and so is `wall_seconds`, by which equal
/// simulations would have different tables.
pub fn csv(records: &[Record]) -> String {
    let swept = swept_keys(records);
    let kinds: BTreeSet<_> = records.iter().flat_map(|record| record.faults.keys()).collect();
    let faults: Vec<_> = kinds.iter().map(|kind| format!("faults.{kind}")).collect();
    let kept: Vec<_> = FIELDS.iter().filter(|(name, _)| !swept.contains(name)).collect();
    let simulated = records.iter().any(|record| record.simulation.is_some());
    let simulation: Vec<_> = SIMULATION_FIELDS.iter().filter(|(name, _)| simulated && !swept.contains(name)).collect();
    let mut text = String::new();
    let names = swept.iter().copied().chain(kept.iter().map(|field| field.0));
    line(&mut text, names.chain(faults.iter().map(String::as_str)).chain(simulation.iter().map(|field| field.0)));
    for record in records {
        let mut cells = swept_cells(record, &swept);
        cells.extend(kept.iter().map(|(_, value)| value(record)));
        cells.extend(kinds.iter().map(|kind| record.faults.get(*kind).map_or_else(String::new, u64::to_string)));
        let of = |value: fn(&Simulation) -> String| record.simulation.as_ref().map_or_else(String::new, value);
        cells.extend(simulation.iter().map(|(_, value)| of(*value)));
        line(&mut text, cells.iter().map(String::as_str));
    }
    text
}

/// One line for each link of each record: the index of the record, counted from 0, the swept keys, then the fields of
/// the link.
pub fn links_csv(records: &[Record]) -> String {
    let swept = swept_keys(records);
    let mut text = String::new();
    line(&mut text, ["record"].into_iter().chain(swept.iter().copied()).chain(LINK_FIELDS.iter().map(|field| field.0)));
    for (index, record) in records.iter().enumerate() {
        for link in record.simulation.iter().flat_map(|simulation| &simulation.network.links) {
            let mut cells = vec![index.to_string()];
            cells.extend(swept_cells(record, &swept));
            cells.extend(LINK_FIELDS.iter().map(|(_, value)| value(link)));
            line(&mut text, cells.iter().map(String::as_str));
        }
    }
    text
}

type Field<T> = (&'static str, fn(&T) -> String);

const FIELDS: &[Field<Record>] = &[
    ("kind", |r| format!("{:?}", r.kind).to_lowercase()),
    ("experiment", |r| r.experiment.clone()),
    ("seed", |r| r.seed.to_string()),
    ("version", |r| r.version.clone()),
    ("protocol", |r| r.protocol.clone()),
    ("transport", |r| r.transport.clone()),
    ("readout_units", |r| r.readout_units.to_string()),
    ("builder_units", |r| r.builder_units.to_string()),
    ("events.triggered", |r| r.events.triggered.to_string()),
    ("events.built", |r| r.events.built.to_string()),
    ("events.incomplete", |r| r.events.incomplete.to_string()),
    ("events.rejected", |r| r.events.rejected.to_string()),
    ("events.lost", |r| r.events.lost.to_string()),
    ("events.reassigned", |r| r.events.reassigned.to_string()),
    ("trigger.offered", |r| r.trigger.offered.to_string()),
    ("trigger.offered_rate_hz", |r| r.trigger.offered_rate_hz.map_or_else(String::new, number)),
    ("trigger.inhibited", |r| r.trigger.inhibited.to_string()),
    ("trigger.inhibitions", |r| r.trigger.inhibitions.to_string()),
    ("trigger.slots", |r| r.trigger.slots.to_string()),
    ("trigger.block", |r| number(r.trigger.block)),
    ("seconds", |r| number(r.seconds)),
    ("window.from_s", |r| number(r.window.from_s)),
    ("window.to_s", |r| number(r.window.to_s)),
    ("window.steady", |r| r.window.steady.to_string()),
    ("event_rate_hz", |r| number(r.event_rate_hz)),
    ("event_rate_interval_hz.low", |r| {
        r.event_rate_interval_hz.map_or_else(String::new, |interval| number(interval.low))
    }),
    ("event_rate_interval_hz.high", |r| {
        r.event_rate_interval_hz.map_or_else(String::new, |interval| number(interval.high))
    }),
    ("fragment_rate_hz", |r| number(r.fragment_rate_hz)),
    ("throughput_bytes_per_s", |r| number(r.throughput_bytes_per_s)),
    ("goodput_bytes_per_s", |r| r.goodput_bytes_per_s.map_or_else(String::new, number)),
    ("per_destination_bytes_per_s.mean", |r| {
        crate::text::per_destination(r).map_or_else(String::new, |(mean, ..)| number(mean))
    }),
    ("latency_us.p50", |r| number(r.latency_us.p50)),
    ("latency_us.p99", |r| number(r.latency_us.p99)),
    ("latency_us.p999", |r| number(r.latency_us.p999)),
    ("latency_us.max", |r| number(r.latency_us.max)),
    ("good", |r| r.good.to_string()),
    ("verdict", |r| r.outcome().key().to_owned()),
];

const SIMULATION_FIELDS: &[Field<Simulation>] = &[
    ("packets", |s| s.packets.to_string()),
    ("packet_hops", |s| s.packet_hops.to_string()),
    ("efficiency", |s| number(s.efficiency)),
    ("goodput_efficiency", |s| s.goodput_efficiency.map_or_else(String::new, number)),
    ("warmup_seconds", |s| number(s.warmup_seconds)),
    ("network.preset", |s| s.network.preset.clone()),
    ("network.topology", |s| s.network.topology.clone()),
    ("network.routing", |s| s.network.routing.clone()),
    ("network.flow", |s| s.network.flow.clone()),
    ("network.hosts", |s| s.network.hosts.to_string()),
    ("network.lost_packets", |s| s.network.lost_packets.to_string()),
    ("network.corrupted_packets", |s| s.network.corrupted_packets.to_string()),
    ("network.flooded_packets", |s| s.network.flooded_packets.to_string()),
    ("network.packets_left", |s| s.network.packets_left.to_string()),
    ("network.route_changes", |s| s.network.route_changes.to_string()),
];

const LINK_FIELDS: &[Field<LinkRecord>] = &[
    ("name", |l| l.name.clone()),
    ("packets", |l| l.packets.to_string()),
    ("bytes", |l| l.bytes.to_string()),
    ("used", |l| number(l.used)),
    ("blocked", |l| number(l.blocked)),
    ("mean_wait_us", |l| number(l.mean_wait_us)),
    ("most_waiting", |l| l.most_waiting.to_string()),
    ("most_bytes", |l| l.most_bytes.to_string()),
    ("dropped", |l| l.dropped.to_string()),
    ("pauses", |l| l.pauses.to_string()),
];

/// The shortest text that reads back as the same number; empty if the value is not finite.
pub(crate) fn number(value: f64) -> String {
    if value.is_finite() { value.to_string() } else { String::new() }
}

fn swept_cells<R: PointRecord>(record: &R, keys: &[&str]) -> Vec<String> {
    keys.iter().map(|key| record.sweep().get(*key).cloned().unwrap_or_default()).collect()
}

pub(crate) fn line<'a>(text: &mut String, cells: impl Iterator<Item = &'a str>) {
    for (n, cell) in cells.enumerate() {
        if n > 0 {
            text.push(',');
        }
        if cell.contains([',', '"', '\n', '\r']) {
            text.extend(["\"", &cell.replace('"', "\"\""), "\""]);
        } else {
            text.push_str(cell);
        }
    }
    text.push('\n');
}
