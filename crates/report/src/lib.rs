//! Tables drawn from records. This crate reads records and nothing else, so every table can be drawn again later.

use comfy_table::{CellAlignment, Table, presets};
use evb_record::Record;
use std::fmt::Write as _;

/// A number with a metric prefix and three significant digits: `12.3 k`.
pub fn metric(value: f64) -> String {
    let prefixes = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let (scale, prefix) = prefixes.into_iter().find(|(scale, _)| value >= *scale).unwrap_or((1.0, ""));
    let scaled = value / scale;
    let decimals = if scaled >= 100.0 || value < 1.0 && value == 0.0 {
        0
    } else if scaled >= 10.0 {
        1
    } else {
        2
    };
    format!("{scaled:.decimals$} {prefix}")
}

/// The end of a run for people: a table per builder, totals, faults and the verdict.
pub fn run_summary(record: &Record) -> String {
    let mut text = String::new();
    let units = format!("{} x {}", record.readout_units, record.builder_units);
    let _infallible = writeln!(
        text,
        "{}: {units}, {}, {}, seed {}, evb {}",
        record.experiment, record.protocol, record.transport, record.seed, record.version
    );
    for (key, value) in &record.sweep {
        let _infallible = writeln!(text, "  {key} = {value}");
    }
    let _infallible = writeln!(text, "{}\n", builder_table(record));
    text.push_str(&totals(record));
    text.push_str(&verdict(record));
    text
}

fn builder_table(record: &Record) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["builder", "events", "incomplete", "fragments", "rate", "throughput", "stored", "file bytes"]);
    let per_second = |count: u64| if record.seconds > 0.0 { count as f64 / record.seconds } else { 0.0 };
    for (index, builder) in record.builders.iter().enumerate() {
        table.add_row([
            format!("bu{index}"),
            (builder.built + builder.incomplete).to_string(),
            builder.incomplete.to_string(),
            builder.fragments.to_string(),
            format!("{}Hz", metric(per_second(builder.built + builder.incomplete))),
            format!("{}B/s", metric(per_second(builder.bytes))),
            builder.stored.to_string(),
            format!("{}B", metric(builder.stored_bytes as f64)),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn totals(record: &Record) -> String {
    let (events, latency) = (&record.events, &record.latency_us);
    let mut rows = vec![
        ("triggered", events.triggered.to_string()),
        ("built", events.built.to_string()),
        ("incomplete", events.incomplete.to_string()),
        ("lost", events.lost.to_string()),
        ("time", format!("{:.3} s", record.seconds)),
        ("event rate", format!("{}Hz", metric(record.event_rate_hz))),
        ("fragment rate", format!("{}Hz", metric(record.fragment_rate_hz))),
        ("throughput", format!("{}B/s", metric(record.throughput_bytes_per_s))),
        ("latency", format!("{:.0} us median, {:.0} us p99, {:.0} us max", latency.p50, latency.p99, latency.max)),
    ];
    if events.reassigned > 0 {
        rows.push(("reassigned", events.reassigned.to_string()));
    }
    if record.trigger.inhibited > 0 {
        let (inhibited, times) = (record.trigger.inhibited, record.trigger.inhibitions);
        rows.push(("inhibited", format!("{inhibited} triggers turned away, in {times} busy periods")));
    }
    let rejected: u64 = record.readouts.iter().map(|readout| readout.rejected).sum();
    if rejected > 0 {
        rows.push(("rejected", format!("{rejected} frames of front ends")));
    }
    if !record.faults.is_empty() {
        let faults: Vec<_> =
            record.faults.iter().map(|(kind, count)| format!("{count} {}", kind.replace('_', " "))).collect();
        rows.push(("faults", faults.join(", ")));
    }
    let files: Vec<_> = record.builders.iter().flat_map(|builder| &builder.files).collect();
    if let Some(first) = files.first() {
        let more = if files.len() > 1 { format!(" and {} more", files.len() - 1) } else { String::new() };
        rows.push(("files", format!("{first}{more}")));
    }
    rows.iter().map(|(name, value)| format!("{name:<14}{value}\n")).collect()
}

fn verdict(record: &Record) -> String {
    let mut text = String::from("\n");
    let mut say = |line: &str| text.extend([line, "\n"]);
    for note in &record.notes {
        say(note);
    }
    if !record.lost_nodes.is_empty() {
        say(&format!("lost nodes: {}", record.lost_nodes.join(", ")));
    }
    let events = &record.events;
    match (record.good, events.incomplete, events.lost) {
        (true, ..) => say(&format!("good: all {} events built complete", events.built)),
        (false, 0, 0) => say("not good: all events are built, but see above"),
        (false, incomplete, lost) => {
            say(&format!("not good: of {} events {incomplete} are incomplete and {lost} are lost", events.triggered))
        }
    }
    text
}
