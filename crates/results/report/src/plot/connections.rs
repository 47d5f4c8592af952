//! The connections of a simulation over time: what arrived, what they were allowed, and what was lost, below each other.

use super::{
    axis::Axis,
    chart::{Chart, Line, Stroke, stacked},
    quantity::{Unit, short},
};
use evb_record::{ConnectionsOverTime, Record};

/// A figure over time.
struct Panel {
    title: &'static str,
    /// One for each step; `None` where there is none.
    values: Vec<Option<f64>>,
}

/// A panel for each figure that says something; `None` without connections.
pub(super) fn draw(record: &Record) -> Option<String> {
    let all = record.simulation.as_ref()?.network.connections.as_ref()?.over_time.as_ref()?;
    let (title, panels) = (title(record), panels(all));
    let x_title = format!("time, in steps of {}", short(all.step_s, Unit::Seconds));
    let chart = |(place, panel): (usize, &Panel)| Chart {
        title: if place == 0 { &title } else { "" },
        x: times(all.step_s, panel.values.len()),
        x_title: if place + 1 == panels.len() { &x_title } else { "" },
        y: Axis::from_zero(panel.values.iter().copied().flatten(), 0.0).with_few_ticks(),
        y_title: panel.title,
        lines: lines(&panel.values, all.step_s),
        legend: Vec::new(),
    };
    stacked(&panels.iter().enumerate().map(chart).collect::<Vec<_>>())
}

/// The experiment, with what a sweep has set.
fn title(record: &Record) -> String {
    let set = record.sweep.iter().map(|(key, value)| format!("{key} = {value}"));
    [record.experiment.clone()].into_iter().chain(set).collect::<Vec<_>>().join(", ")
}

/// What arrives, how many connections wait and what they are allowed; losses and congestion only where there are some.
fn panels(all: &ConnectionsOverTime) -> Vec<Panel> {
    let known = |title, values: &[f64], unit: f64| Panel {
        title,
        values: values.iter().map(|value| Some(value / unit)).collect(),
    };
    let allowed = |title, values: &[Option<f64>], unit: f64| Panel {
        title,
        values: values.iter().map(|value| Some(value.as_ref()? / unit)).collect(),
    };
    let counted = |title, values: &[u64], unit: f64| {
        let any = values.iter().any(|&value| value > 0);
        let values = if any { values } else { &[] };
        Panel { title, values: values.iter().map(|&value| Some(value as f64 / unit)).collect() }
    };
    let panels = [
        known("goodput (MB/s)", &all.goodput_bytes_per_s, 1e6),
        known("outstanding", &all.outstanding, 1.0),
        allowed("window (kB)", &all.window_bytes, 1e3),
        allowed("rate (MB/s)", &all.rate_bytes_per_s, 1e6),
        counted("sent again", &all.sent_again, 1.0),
        counted("timeouts", &all.timeouts, 1.0),
        counted("marked (MB)", &all.marked_bytes, 1e6),
        counted("notices", &all.notices, 1.0),
    ];
    panels.into_iter().filter(|panel| !panel.values.is_empty()).collect()
}

/// The axis of the time, with round ticks.
fn times(step_s: f64, steps: usize) -> Axis {
    let borders: Vec<_> = (0..=steps).map(|step| (step as f64 * step_s, "")).collect();
    Axis::of_key(&borders, Unit::Seconds)
}

/// A stair of one step for each value, with the area below it. Where there is no value it is interrupted.
fn lines(values: &[Option<f64>], step_s: f64) -> Vec<Line> {
    let stairs = values.iter().enumerate().map(|(step, value)| {
        let ends = [step, step + 1].map(|border| border as f64 * step_s);
        value.map(|value| ends.map(|at| (at, value)))
    });
    let stairs: Vec<_> = stairs.collect();
    let pieces = stairs.split(Option::is_none).map(|piece| piece.iter().copied().flatten().flatten().collect());
    let line = |points: Vec<(f64, f64)>| Line {
        area: points.iter().map(|&(at, value)| (at, 0.0, value)).collect(),
        ..Line::new(0, Stroke::Plain, points)
    };
    pieces.filter(|points: &Vec<_>| !points.is_empty()).map(line).collect()
}
