//! Benchmarks as CSV: one line for each measurement, or for each single time.

use super::{Field, line, number};
use evb_record::{Benchmark, BenchmarkSamples, BenchmarkSettings, Calibration, Times};
use std::io::{self, Write};

/// Most lines of single times: about a hundred megabytes.
pub const MOST_SAMPLES: usize = 2_000_000;

/// One line for each record: every number and text under its name in the record, with dots for nested ones. Lists are
/// left out, except for the notes, in one cell. Absent values are empty.
pub fn benchmark_csv(records: &[Benchmark]) -> String {
    let mut text = String::new();
    line(&mut text, FIELDS.iter().map(|field| field.0));
    for record in records {
        let cells: Vec<_> = FIELDS.iter().map(|(_, value)| value(record)).collect();
        line(&mut text, cells.iter().map(String::as_str));
    }
    text
}

/// One line for each time in nanoseconds: its row, launch and node, and its index among the times of that node, all
/// counted from 0. If there are more than `most`, every second one is left out, or more of them, evenly.
///
/// # Errors
/// Those of the output.
pub fn samples_csv(all: &[BenchmarkSamples], most: usize, output: &mut impl Write) -> io::Result<()> {
    writeln!(output, "transport,pattern,size,nodes,compute,launch,node,index,ns")?;
    let nodes = || all.iter().flat_map(|row| row.launches.iter().flatten());
    let total: usize = nodes().map(|(_, times)| times.len()).sum();
    let stride = total.div_ceil(most.max(1)).max(1);
    for row in all {
        let BenchmarkSamples { transport, pattern, settings, launches } = row;
        let BenchmarkSettings { size_bytes, nodes, compute_us, .. } = settings;
        for (launch, nodes_of_launch) in launches.iter().enumerate() {
            for (node, times) in nodes_of_launch {
                let mut row = String::new();
                line(&mut row, [transport.as_str(), pattern].into_iter());
                let row = format!("{},{size_bytes},{nodes},{compute_us},{launch},{node}", row.trim_end());
                for (index, ns) in times.iter().enumerate().step_by(stride) {
                    writeln!(output, "{row},{index},{ns}")?;
                }
            }
        }
    }
    Ok(())
}

const FIELDS: &[Field<Benchmark>] = &[
    ("kind", |r| format!("{:?}", r.kind).to_lowercase()),
    ("experiment", |r| r.experiment.clone()),
    ("seed", |r| r.seed.to_string()),
    ("version", |r| r.version.clone()),
    ("pattern", |r| r.pattern.clone()),
    ("transport", |r| r.transport.clone()),
    ("size_bytes", |r| r.settings.size_bytes.to_string()),
    ("nodes", |r| r.settings.nodes.to_string()),
    ("compute_us", |r| number(r.settings.compute_us)),
    ("window", |r| r.settings.window.to_string()),
    ("rate_hz", |r| r.settings.rate_hz.map_or_else(String::new, number)),
    ("wait", |r| r.settings.wait.clone()),
    ("cycle_ns.min", |r| time(r.cycle_ns, |t| t.min)),
    ("cycle_ns.p50", |r| time(r.cycle_ns, |t| t.p50)),
    ("cycle_ns.p99", |r| time(r.cycle_ns, |t| t.p99)),
    ("cycle_ns.p999", |r| time(r.cycle_ns, |t| t.p999)),
    ("cycle_ns.max", |r| time(r.cycle_ns, |t| t.max)),
    ("cycle_ns.mean", |r| time(r.cycle_ns, |t| t.mean)),
    ("cycle_ns.samples", |r| time(r.cycle_ns, |t| t.samples as f64)),
    ("half_round_trip_ns.min", |r| time(r.half_round_trip_ns, |t| t.min)),
    ("half_round_trip_ns.p50", |r| time(r.half_round_trip_ns, |t| t.p50)),
    ("half_round_trip_ns.p99", |r| time(r.half_round_trip_ns, |t| t.p99)),
    ("half_round_trip_ns.p999", |r| time(r.half_round_trip_ns, |t| t.p999)),
    ("half_round_trip_ns.max", |r| time(r.half_round_trip_ns, |t| t.max)),
    ("half_round_trip_ns.mean", |r| time(r.half_round_trip_ns, |t| t.mean)),
    ("half_round_trip_ns.samples", |r| time(r.half_round_trip_ns, |t| t.samples as f64)),
    ("messages_per_s", |r| number(r.messages_per_s)),
    ("bytes_per_s", |r| number(r.bytes_per_s)),
    ("cpu_load.senders", |r| number(r.cpu_load.senders)),
    ("cpu_load.receivers", |r| number(r.cpu_load.receivers)),
    ("launches.quantity", |r| r.launches.quantity.clone()),
    ("launches.median", |r| number(r.launches.median)),
    ("launches.low", |r| number(r.launches.low)),
    ("launches.high", |r| number(r.launches.high)),
    ("launches.confidence", |r| number(r.launches.confidence)),
    ("longest_gap_us", |r| number(r.longest_gap_us)),
    ("messages", |r| r.messages.to_string()),
    ("lost", |r| r.lost.to_string()),
    ("corrupted", |r| r.corrupted.to_string()),
    ("calibration.before.line_ns", |r| cores(r, |c| c.before.line_ns)),
    ("calibration.before.message_ns", |r| cores(r, |c| c.before.message_ns)),
    ("calibration.after.line_ns", |r| cores(r, |c| c.after.line_ns)),
    ("calibration.after.message_ns", |r| cores(r, |c| c.after.message_ns)),
    ("trusted", |r| r.trusted.to_string()),
    ("good", |r| r.good.to_string()),
    ("notes", |r| r.notes.join("; ")),
];

fn time(times: Option<Times>, value: fn(&Times) -> f64) -> String {
    times.map_or_else(String::new, |times| number(value(&times)))
}

fn cores(record: &Benchmark, value: fn(&Calibration) -> f64) -> String {
    record.calibration.map_or_else(String::new, |calibration| number(value(&calibration)))
}
