//! Plots of records as SVG. The same records give the same bytes.

mod axis;
mod benchmark;
mod chart;
mod curves;
mod errors;
mod figure;
mod links;
mod mark;
mod matrix;
mod parity;
mod quantity;
mod style;

use crate::text::per_destination;
use axis::Axis;
pub use benchmark::benchmark_plots;
use chart::{Chart, Entry, Line, Stroke};
use curves::{Curves, main_key};
pub use errors::paper_errors;
use evb_record::Record;
pub use figure::figure;
pub use matrix::qualification_plots;
pub use parity::paper_parity;
use quantity::{Unit, in_words};

/// A plot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plot {
    /// Name of the content, suitable for the stem of a file name.
    pub name: String,
    /// The picture.
    pub svg: String,
}

/// The plots that make sense for these records. For a sweep over a number or a quantity with a unit:
///
/// - `throughput`: mean payload per destination against the swept size, or else the first swept number;
/// - `latency`: median and 99th percentile against `workload.load` where that is swept, else against the throughput;
/// - `efficiency`: of simulations, against the same key as the throughput.
///
/// For the last record, if it is a simulation, `links`: the parts of the time in which each link was used and blocked.
pub fn plots(records: &[Record]) -> Vec<Plot> {
    let charts = [
        ("throughput", throughput(records)),
        ("latency", latency(records)),
        ("efficiency", efficiency(records)),
        ("links", records.last().and_then(links::draw)),
    ];
    charts.into_iter().filter_map(|(name, svg)| Some(Plot { name: name.into(), svg: svg? })).collect()
}

fn throughput(records: &[Record]) -> Option<String> {
    let curves = Curves::of(records, main_key(records)?)?;
    let ends = |record: &Record| per_destination(record).map(|(_, least, most)| (least / 1e6, most / 1e6));
    let lines = curves.lines_with_bars(megabytes, ends);
    let y = Axis::from_zero(heights(&lines), 0.0);
    let mut legend = curves.legend();
    if lines.iter().any(|line| !line.bars.is_empty()) {
        legend.push(Entry::Bars("slowest to fastest destination".into()));
    }
    against_key(records, &curves, lines, legend, y, "throughput per destination (MB/s)")
}

fn efficiency(records: &[Record]) -> Option<String> {
    let curves = Curves::of(records, main_key(records)?)?;
    let lines = curves.lines(|record| record.simulation.as_ref().map(|simulation| simulation.efficiency * 100.0));
    let y = Axis::from_zero(heights(&lines), 100.0);
    against_key(records, &curves, lines, curves.legend(), y, "efficiency (% of the full performance)")
}

fn against_key(
    records: &[Record],
    curves: &Curves<'_>,
    lines: Vec<Line>,
    legend: Vec<Entry>,
    y: Axis,
    y_title: &str,
) -> Option<String> {
    Chart {
        title: &records.first()?.experiment,
        x: Axis::of_key(&curves.ticks, curves.unit),
        x_title: &in_words(curves.key, curves.unit),
        y,
        y_title,
        lines,
        legend,
    }
    .draw()
}

fn latency(records: &[Record]) -> Option<String> {
    const LOAD: &str = "workload.load";
    let by_load = Curves::of(records, LOAD);
    let against_load = by_load.is_some();
    let curves = match by_load {
        Some(curves) => curves,
        None => Curves::of(records, main_key(records)?)?.against(megabytes),
    };
    let mut lines = curves.lines(|record| Some(record.latency_us.p50).filter(|time| *time > 0.0));
    let high = curves.lines(|record| Some(record.latency_us.p99).filter(|time| *time > 0.0));
    lines.extend(high.into_iter().map(|line| Line { stroke: Stroke::Dashed, ..line }));
    let only = curves.is_single().then_some(0);
    let mut legend = vec![
        Entry::Line { label: "median".into(), colour: only, stroke: Stroke::Solid },
        Entry::Line { label: "99th percentile".into(), colour: only, stroke: Stroke::Dashed },
    ];
    legend.extend(curves.legend());
    let across = lines.iter().flat_map(|line| line.points.iter().map(|point| point.0));
    Chart {
        title: &records.first()?.experiment,
        x: if against_load { Axis::of_key(&curves.ticks, curves.unit) } else { Axis::from_zero(across, 0.0) },
        x_title: &if against_load { in_words(LOAD, Unit::None) } else { "throughput per destination (MB/s)".into() },
        y: Axis::logarithmic(heights(&lines)),
        y_title: "latency (us)",
        lines,
        legend,
    }
    .draw()
}

fn megabytes(record: &Record) -> Option<f64> {
    per_destination(record).map(|(mean, ..)| mean / 1e6)
}

fn heights(lines: &[Line]) -> impl Iterator<Item = f64> {
    let of_bars = |line: &Line| line.bars.iter().flat_map(|bar| [bar.1, bar.2]).collect::<Vec<_>>();
    lines.iter().flat_map(move |line| line.points.iter().map(|point| point.1).chain(of_bars(line)))
}
