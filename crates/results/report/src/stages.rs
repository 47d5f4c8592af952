//! The event builders of two stages, for the summary.

use crate::{
    table::{ALWAYS, Column, Table},
    text::metric,
};
use evb_record::Stages;

/// A table with a row for each event builder.
pub(crate) fn table(stages: &Stages, width: usize) -> String {
    let mut table = Table::new(vec![
        Column::word("event builder"),
        Column::word("units"),
        Column::number("events", ALWAYS),
        Column::number("incomplete", ALWAYS),
        Column::number("lost", 3),
        Column::number("event rate", 2),
        Column::number("throughput", 1),
    ])
    .ruled();
    for (name, record) in stages.all() {
        let events = &record.events;
        table.row(vec![
            name,
            format!("{} x {}", record.readout_units, record.builder_units),
            (events.built + events.incomplete + events.rejected).to_string(),
            events.incomplete.to_string(),
            events.lost.to_string(),
            format!("{}Hz", metric(record.event_rate_hz)),
            format!("{}B/s", metric(record.throughput_bytes_per_s)),
        ]);
    }
    table.draw(width)
}
