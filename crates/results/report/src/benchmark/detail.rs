//! Every measurement: a table for each pattern, a row for each number of nodes, size and computing time, and a group of
//! numbers for each transport.

use super::case::{Case, MARK_BAD, MARK_UNTRUSTED, distinct, mark};
use crate::{
    table::{ALWAYS, Column, Table, beside},
    text::{hanging, metric, nanos},
};
use evb_record::Benchmark;
use std::ops::Range;

/// One table for each pattern; empty without records.
pub(super) fn tables(records: &[Benchmark], width: usize) -> String {
    let groups = Case::groups(records.iter().map(Case::from));
    let tables: Vec<_> = groups.iter().map(|cases| Group::new(records, cases).draw(width)).collect();
    match tables.is_empty() {
        true => String::new(),
        false => format!("{}\n{}", tables.join("\n"), legend(width)),
    }
}

fn legend(width: usize) -> String {
    let numbers = "p50: half are shorter; mean: time over cycles; cpu %: load of senders/receivers in % of a core.";
    let marks = format!("{MARK_BAD} messages lost or corrupted, {MARK_UNTRUSTED} not to be trusted: see the notes.");
    hanging("", numbers, width) + &hanging("", &marks, width)
}

/// The kind of a pattern's numbers.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Value {
    HalfRoundTrip,
    Cycle,
    /// Times of messages at a given rate.
    Way,
    /// Times of events that are gathered.
    Event,
    Stream,
}

impl Value {
    pub(super) fn of(row: &Benchmark) -> Self {
        match (row.cycle_ns.is_some(), row.half_round_trip_ns.is_some()) {
            _ if row.settings.gathers.is_some() => Self::Event,
            _ if row.settings.rate_hz.is_some() => Self::Way,
            (_, true) => Self::HalfRoundTrip,
            (true, false) => Self::Cycle,
            (false, false) => Self::Stream,
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Self::HalfRoundTrip => "half of the round trip",
            Self::Cycle => "time of a cycle",
            Self::Way => "time from when a message was due to its arrival",
            Self::Event => "time from when an event was due until all its data were there",
            Self::Stream => "messages and bytes that all nodes received per second",
        }
    }

    fn names(self) -> &'static [&'static str] {
        match self {
            Self::HalfRoundTrip => &["p50 ", "cpu %"],
            Self::Cycle => &["mean ", "cpu %"],
            Self::Way | Self::Event => &["msg/s", "p50 ", "cpu %"],
            Self::Stream => &["msg/s", "B/s ", "cpu %"],
        }
    }

    /// The name of the number that counts.
    pub(super) fn main_name(self) -> &'static str {
        match self {
            Self::HalfRoundTrip => "half round trip",
            Self::Cycle => "cycle",
            Self::Way => "way",
            Self::Event => "event",
            Self::Stream => "B/s",
        }
    }

    /// The number that counts, with its mark: the last one before the load of the processors.
    pub(super) fn main(self, row: &Benchmark) -> String {
        let mut cells = self.cells(row);
        cells.swap_remove(self.names().len() - 2)
    }

    /// The numbers of a row. The mark is behind the main one.
    fn cells(self, row: &Benchmark) -> Vec<String> {
        let cpu = row.processor_load();
        let cpu =
            cpu.map_or_else(|| "-".into(), |load| format!("{:.0}/{:.0}", load.senders * 100.0, load.receivers * 100.0));
        let per_second = |value| metric(value).replace(' ', "");
        let time = match self {
            Self::HalfRoundTrip => row.half_round_trip_ns.map(|times| times.p50),
            Self::Cycle => row.cycle_ns.map(|_| row.launches.median),
            Self::Way | Self::Event | Self::Stream => row.cycle_ns.map(|times| times.p50),
        };
        let time = time.map_or_else(|| "-".into(), nanos) + mark(row);
        match self {
            Self::HalfRoundTrip | Self::Cycle => vec![time, cpu],
            Self::Way | Self::Event => vec![per_second(row.messages_per_s), time, cpu],
            Self::Stream => vec![per_second(row.messages_per_s), per_second(row.bytes_per_s) + mark(row), cpu],
        }
    }
}

/// The rows of one table.
struct Group<'a> {
    cases: &'a [Case<'a>],
    value: Value,
    transports: Vec<&'a str>,
    /// For each case the numbers of each transport.
    cells: Vec<Vec<Vec<String>>>,
    widths: Vec<usize>,
}

impl<'a> Group<'a> {
    fn new(records: &'a [Benchmark], cases: &'a [Case<'a>]) -> Self {
        let transports = distinct(records.iter().map(|row| row.transport.as_str()));
        let find = |case: &Case<'_>, transport: &str| {
            records.iter().find(|row| row.transport == transport && Case::from(*row) == *case)
        };
        let first = records.iter().find(|row| Case::from(*row) == cases[0]);
        let value = first.map_or(Value::Stream, Value::of);
        let nothing = || value.names().iter().map(|_| String::from("-")).collect();
        let row =
            |case| transports.iter().map(|to| find(case, to).map_or_else(nothing, |row| value.cells(row))).collect();
        let cells: Vec<Vec<Vec<String>>> = cases.iter().map(row).collect();
        let width = |(column, name): (usize, &&str)| {
            let all = cells.iter().flatten().map(|numbers| numbers[column].chars().count());
            all.chain([name.len()]).max().unwrap_or(0)
        };
        let widths = value.names().iter().enumerate().map(width).collect();
        Self { cases, value, transports, cells, widths }
    }

    /// The heading, and as many transports side by side as fit the width, with a gap between them if there is room.
    fn draw(&self, width: usize) -> String {
        let heading = format!("{}: {}", self.cases[0].heading(), self.value.describe());
        let tables = beside(self.transports.len(), width, |part, gap, width| self.table(part, gap).draw(width));
        format!("{}{tables}\n", hanging("", &heading, width))
    }

    fn table(&self, transports: Range<usize>, gap: bool) -> Table {
        let computes = self.cases.iter().any(|case| case.compute_us > 0.0);
        let labels = if computes { &["nodes", "bytes", "compute"][..] } else { &["nodes", "bytes"] };
        let labels = labels.iter().map(|label| Column::number(format!("\n{label}"), ALWAYS));
        let names: Vec<_> = self.value.names().iter().map(|name| (*name).to_owned()).collect();
        let title = |index: usize| Column::word(format!("{}\n{}", self.transports[index], self.padded(&names)));
        let mut table = Table::new(labels.chain(transports.clone().map(title))).padded(gap.into(), 1);
        for (case, cells) in self.cases.iter().zip(&self.cells) {
            let compute = computes.then(|| case.compute());
            let labels = [case.nodes.to_string(), case.size_bytes.to_string()].into_iter().chain(compute);
            table.row(labels.chain(cells[transports.clone()].iter().map(|numbers| self.padded(numbers))));
        }
        table
    }

    /// Numbers in columns.
    fn padded(&self, numbers: &[String]) -> String {
        let padded = numbers.iter().zip(&self.widths).map(|(number, &width)| format!("{number:>width$}"));
        padded.collect::<Vec<_>>().join(" ")
    }
}
