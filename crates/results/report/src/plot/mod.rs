//! Plots of records as SVG. The same records give the same bytes.

mod axis;
mod benchmark;
mod chart;
mod connections;
mod curves;
mod errors;
mod figure;
mod links;
mod mark;
mod matrix;
mod parity;
mod quantity;
mod style;
mod tree;
mod twin;

use crate::{replicates::is_seed, text::per_destination};
use axis::Axis;
pub use benchmark::benchmark_plots;
use chart::{Chart, Entry, Line, Stroke};
use curves::{Curves, main_key, read_all};
pub use errors::paper_errors;
use evb_record::{PointRecord, Record};
pub use figure::figure;
pub use matrix::qualification_plots;
pub use parity::paper_parity;
use plotters::coord::ranged1d::Ranged as _;
use quantity::in_words;
pub(crate) use tree::tree_diagram;
pub use twin::{twin_plots, twin_plots_along};

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
/// A swept seed is no axis: a point is the mean of its replicates, with a bar for its 95 % interval.
///
/// For the last record, if it is a simulation:
///
/// - `links`: the parts of the time in which each link was used and blocked;
/// - `connections`: what the connections of a transport did over time.
pub fn plots(records: &[Record]) -> Vec<Plot> {
    let by_load = Curves::of(records, LOAD).map(|curves| curves.key);
    all(records, main_key(records), latency(records, by_load))
}

/// The same plots, all against one swept key, for which [`is_axis`] is true.
pub fn plots_along(records: &[Record], key: &str) -> Vec<Plot> {
    all(records, Some(key), latency(records, Some(key)))
}

/// True if a swept key with these values can be the horizontal axis: they are numbers of one unit, and not all the same. The
/// seed cannot.
pub fn is_axis(key: &str, values: &[&str]) -> bool {
    !is_seed(key) && read_all(values.iter().copied().map(Some)).is_some()
}

/// The load, against which latency is drawn.
const LOAD: &str = "workload.load";

fn all(records: &[Record], key: Option<&str>, latency: Option<String>) -> Vec<Plot> {
    let charts = [
        ("throughput", key.and_then(|key| throughput(records, key))),
        ("latency", latency),
        ("efficiency", key.and_then(|key| efficiency(records, key))),
        ("links", records.last().and_then(links::draw)),
        ("connections", records.last().and_then(connections::draw)),
    ];
    charts.into_iter().filter_map(|(name, svg)| Some(Plot { name: name.into(), svg: svg? })).collect()
}

/// The meaning of the bars of replicates.
const INTERVAL: &str = "95 % of the mean of replicates";

fn throughput(records: &[Record], key: &str) -> Option<String> {
    let curves = Curves::of(records, key)?;
    let of_destinations =
        |group: &[&Record]| per_destination(group.first()?).map(|(_, least, most)| (least / 1e6, most / 1e6));
    let (lines, meaning) = match curves.is_replicated() {
        true => (curves.lines(megabytes), INTERVAL),
        false => (curves.lines_with_bars(megabytes, of_destinations), "slowest to fastest destination"),
    };
    let y = Axis::from_zero(heights(&lines), 0.0);
    let legend = with_bars(curves.legend(), &lines, meaning);
    against_key(&records.first()?.experiment, &curves, lines, legend, y, "throughput per destination (MB/s)")
}

/// The legend with the meaning of the bars, if there are any.
fn with_bars(mut legend: Vec<Entry>, lines: &[Line], meaning: &str) -> Vec<Entry> {
    if lines.iter().any(|line| !line.bars.is_empty()) {
        legend.push(Entry::Bars(meaning.into()));
    }
    legend
}

fn efficiency(records: &[Record], key: &str) -> Option<String> {
    let curves = Curves::of(records, key)?;
    let lines = curves.lines(|record| record.simulation.as_ref().map(|simulation| simulation.efficiency * 100.0));
    let y = Axis::from_zero(heights(&lines), 100.0);
    let legend = with_bars(curves.legend(), &lines, INTERVAL);
    against_key(&records.first()?.experiment, &curves, lines, legend, y, "efficiency (% of the full performance)")
}

/// A chart against the key of its curves.
fn against_key<R: PointRecord>(
    title: &str,
    curves: &Curves<'_, R>,
    lines: Vec<Line>,
    legend: Vec<Entry>,
    y: Axis,
    y_title: &str,
) -> Option<String> {
    Chart {
        title,
        x: Axis::of_key(&curves.ticks, curves.unit),
        x_title: &in_words(curves.key, curves.unit),
        lines: cut(lines, &y),
        y,
        y_title,
        legend,
    }
    .draw()
}

/// The lines with bars and areas that do not reach below the axis, which may be that of a logarithm.
fn cut(mut lines: Vec<Line>, y: &Axis) -> Vec<Line> {
    let bottom = y.range().start;
    let ranges = lines.iter_mut().flat_map(|line| line.bars.iter_mut().chain(&mut line.area));
    ranges.for_each(|range| range.1 = range.1.max(bottom));
    lines
}

/// The latency against a key; without one against the throughput.
fn latency(records: &[Record], key: Option<&str>) -> Option<String> {
    let curves = match key {
        Some(key) => Curves::of(records, key)?,
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
    let legend = with_bars(legend, &lines, INTERVAL);
    let across = lines.iter().flat_map(|line| line.points.iter().map(|point| point.0));
    let y = Axis::logarithmic(heights(&lines).filter(|height| *height > 0.0));
    Chart {
        title: &records.first()?.experiment,
        x: if key.is_some() { Axis::of_key(&curves.ticks, curves.unit) } else { Axis::from_zero(across, 0.0) },
        x_title: &key.map_or_else(|| "throughput per destination (MB/s)".into(), |key| in_words(key, curves.unit)),
        lines: cut(lines, &y),
        y,
        y_title: "latency (us)",
        legend,
    }
    .draw()
}

fn megabytes(record: &Record) -> Option<f64> {
    per_destination(record).map(|(mean, ..)| mean / 1e6)
}

fn heights(lines: &[Line]) -> impl Iterator<Item = f64> {
    let of_ranges =
        |line: &Line| line.bars.iter().chain(&line.area).flat_map(|range| [range.1, range.2]).collect::<Vec<_>>();
    lines.iter().flat_map(move |line| line.points.iter().map(|point| point.1).chain(of_ranges(line)))
}
