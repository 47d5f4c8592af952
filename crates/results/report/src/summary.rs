//! Summary of a real run.

use crate::{
    bundles, faults, histograms, rates,
    simulation::simulation_summary,
    stages,
    table::{ALWAYS, Column, Table},
    text::{aligned, hanging, metric},
    verdict::verdict,
};
use evb_record::{Broadcast, ClockPlace, ReadoutRecord, Record, Stream};
use std::{collections::BTreeMap, fmt::Write as _, path::Path};

/// The summary of a run: a table of the builders, or of the event builders of two stages, totals, faults and the verdict.
/// Traffic without builders has the summary of its simulation.
pub fn run_summary(record: &Record, width: usize) -> String {
    if record.builders.is_empty() && record.stages.is_none() {
        return simulation_summary(record, width);
    }
    let Record { experiment, readout_units, builder_units, protocol, transport, seed, version, .. } = record;
    let control = record.control_transport.as_ref().map_or_else(String::new, |name| format!(", control over {name}"));
    let what =
        format!("{readout_units} x {builder_units}, {protocol}, {transport}{control}, seed {seed}, evb {version}");
    let mut text = hanging("", &format!("{experiment}: {what}"), width);
    for (key, value) in &record.sweep {
        let _infallible = writeln!(text, "  {key} = {value}");
    }
    let table = match &record.stages {
        Some(stages) => stages::table(stages, width),
        None => builder_table(record, width),
    };
    let _infallible = writeln!(text, "{table}\n");
    text.push_str(&totals(record, width));
    text.push_str(&verdict(record));
    text
}

/// Index of the column of rejected events in both tables, if there are any: after the incomplete ones.
const REJECTED: usize = 3;

fn builder_table(record: &Record, width: usize) -> String {
    let rejects = record.events.rejected > 0;
    let mut columns = vec![
        Column::word("builder"),
        Column::number("events", ALWAYS),
        Column::number("incomplete", ALWAYS),
        Column::number("fragments", 1),
        Column::number("throughput", 5),
        Column::number("stored", 3),
        Column::number("file bytes", 2),
    ];
    if rejects {
        columns.insert(REJECTED, Column::number("rejected", ALWAYS));
    }
    let mut table = Table::new(columns).ruled();
    for (index, builder) in record.builders.iter().enumerate() {
        let events = builder.built + builder.incomplete + builder.rejected;
        let mut row = vec![
            format!("bu{index}"),
            events.to_string(),
            builder.incomplete.to_string(),
            builder.fragments.to_string(),
            record
                .per_destination_bytes_per_s
                .get(index)
                .map_or_else(String::new, |rate| format!("{}B/s", metric(*rate))),
            builder.stored.to_string(),
            format!("{}B", metric(builder.stored_bytes as f64)),
        ];
        if rejects {
            row.insert(REJECTED, builder.rejected.to_string());
        }
        table.row(row);
    }
    table.draw(width)
}

fn totals(record: &Record, width: usize) -> String {
    let (events, latency) = (&record.events, &record.latency_us);
    let mut rows = vec![
        ("triggered", events.triggered.to_string()),
        ("built", events.built.to_string()),
        ("incomplete", events.incomplete.to_string()),
        ("lost", events.lost.to_string()),
        ("time", format!("{:.3} s", record.seconds)),
        ("fragment rate", format!("{}Hz", metric(record.fragment_rate_hz))),
        ("latency", format!("{:.0} us median, {:.0} us p99, {:.0} us max", latency.p50, latency.p99, latency.max)),
    ];
    let time = rows.iter().position(|(name, _)| *name == "time").map_or(rows.len(), |time| time + 1);
    rows.splice(time..time, rates::rows(record));
    let latency = rows.len() - 1;
    rows.splice(latency..latency, rates::throughput(record));
    if events.rejected > 0 {
        rows.insert(REJECTED, ("rejected", events.rejected.to_string()));
    }
    if events.reassigned > 0 {
        rows.push(("reassigned", events.reassigned.to_string()));
    }
    if record.trigger.inhibited > 0 {
        let (inhibited, times) = (record.trigger.inhibited, record.trigger.inhibitions);
        rows.push(("inhibited", format!("{inhibited} triggers turned away, in {times} busy periods")));
    }
    let refused: u64 = record.readouts.iter().map(|readout| readout.rejected).sum();
    if refused > 0 {
        rows.push(("refused", format!("{refused} frames of front ends")));
    }
    rows.extend(filtering(record));
    rows.extend(faults::rows(record));
    rows.extend(bundles::rows(record));
    rows.extend(record.broadcast.iter().filter(|broadcast| broadcast.asked).map(broadcasts));
    if !record.placement.is_empty() {
        rows.push(("placement", placement(&record.placement)));
    }
    rows.extend(clocks(record));
    rows.extend(histograms::rows(record));
    rows.extend(set_apart(record));
    if let Some(first) = record.builders.iter().flat_map(|builder| &builder.files).next() {
        let files: u64 = record.builders.iter().map(|builder| builder.file_count.max(builder.files.len() as u64)).sum();
        let more = if files > 1 { format!(" and {} more", files - 1) } else { String::new() };
        rows.push(("files", format!("{first}{more}")));
    }
    aligned(&rows, width)
}

/// The clocks of the readout units, where fragments are matched by time: their drift, or what is wrong.
fn clocks(record: &Record) -> Option<(&'static str, String)> {
    let of_unit = |(index, readout): (usize, &ReadoutRecord)| {
        let clock = readout.clock?;
        let state = match (clock.place, clock.drift_ppm) {
            (ClockPlace::Known, Some(drift)) => format!("{drift:+.2} ppm"),
            (ClockPlace::Known, None) => "given".to_owned(),
            (ClockPlace::Sought, _) => "not found".to_owned(),
            (ClockPlace::Regular, _) => "not found, regular".to_owned(),
            (ClockPlace::Unheard, _) => "not heard".to_owned(),
        };
        let lost = if clock.lost > 0 { format!(", lost {} times", clock.lost) } else { String::new() };
        Some(format!("ru{index} {state}{lost}"))
    };
    let units: Vec<_> = record.readouts.iter().enumerate().filter_map(of_unit).collect();
    (!units.is_empty()).then(|| ("clocks", units.join("; ")))
}

/// The live fragments that belong to no event: how many of each readout unit, why, and where they are.
fn set_apart(record: &Record) -> Option<(&'static str, String)> {
    let of_unit = |(index, readout): (usize, &ReadoutRecord)| {
        let reason = |(reason, count): (&String, &u64)| format!("{count} {}", reason.replace('_', " "));
        let reasons = readout.apart_by_reason.iter().map(reason).collect::<Vec<_>>().join(", ");
        let files = readout.apart_files.iter().filter_map(|file| Path::new(file).file_name()?.to_str());
        let files = files.collect::<Vec<_>>().join(", ");
        let place = match (files.is_empty(), readout.apart_unstored) {
            (true, _) => "not stored".to_owned(),
            (false, 0) => files,
            (false, unstored) => format!("{files}, {unstored} not stored"),
        };
        (!reasons.is_empty()).then(|| format!("ru{index} {reasons} ({place})"))
    };
    let units: Vec<_> = record.readouts.iter().enumerate().filter_map(of_unit).collect();
    (!units.is_empty()).then(|| ("set apart", units.join("; ")))
}

/// The nodes of each core, where nodes are bound.
fn placement(cores: &BTreeMap<String, u16>) -> String {
    let mut nodes = BTreeMap::<u16, Vec<&str>>::new();
    cores.iter().for_each(|(node, core)| nodes.entry(*core).or_default().push(node));
    nodes.iter().map(|(core, nodes)| format!("core {core}: {}", nodes.join(" "))).collect::<Vec<_>>().join(", ")
}

/// Broadcasts, where the experiment asked for a way.
fn broadcasts(broadcast: &Broadcast) -> (&'static str, String) {
    let Broadcast { how, messages, receivers, copies, repeated, .. } = broadcast;
    let again = if *repeated > 0 { format!(", {repeated} of them again") } else { String::new() };
    ("broadcasts", format!("{messages} by {how}: {copies} sent for {receivers} receivers{again}"))
}

/// The stored events of each stream, if events were selected.
fn filtering(record: &Record) -> Vec<(&'static str, String)> {
    let Some(filter) = &record.filter else { return Vec::new() };
    let mut rows = Vec::new();
    if !filter.streams.is_empty() {
        let stream = |stream: &Stream| {
            let copies = if stream.copies { "copies in " } else { "" };
            format!("{} {copies}{} ({}B)", stream.events, stream.name, metric(stream.bytes as f64))
        };
        rows.push(("streams", filter.streams.iter().map(stream).collect::<Vec<_>>().join(", ")));
    }
    if !filter.given.is_empty() {
        let given = filter
            .given
            .iter()
            .map(|(way, given)| format!("{} events ({}B) by {way}", given.events, metric(given.bytes as f64)));
        rows.push(("filter units", given.collect::<Vec<_>>().join(", ")));
    }
    if filter.quarantined > 0 {
        let reasons = filter.reasons.iter().map(|(reason, count)| format!("{count} {}", reason.replace('_', " ")));
        rows.push(("quarantined", reasons.collect::<Vec<_>>().join(", ")));
    }
    rows
}
