//! A figure of a paper: reproduced curves as lines, published points as hollow marks of the same shape.

use super::{
    axis::Axis,
    chart::{Chart, Entry, Line, Stroke},
    quantity::is_drawable,
};
use evb_record::{Curve, Figure};

/// The figure as SVG; `None` if no reproduced curve has two points.
pub fn figure(figure: &Figure) -> Option<String> {
    let ours = figure.curves.iter().enumerate().map(|(colour, curve)| (colour, curve, Stroke::Solid));
    let published = figure.published.iter().enumerate().map(|(place, curve)| {
        // What was published of one of our curves has its colour.
        let same = figure.curves.iter().position(|ours| ours.label == curve.label);
        (same.unwrap_or(figure.curves.len() + place), curve, Stroke::Points)
    });
    let all: Vec<_> = ours.chain(published).collect();
    let lines: Vec<_> =
        all.iter().map(|(colour, curve, stroke)| Line::new(*colour, *stroke, drawable(curve))).collect();
    let legend = all.iter().map(|(colour, curve, stroke)| Entry::Line {
        label: if *stroke == Stroke::Points { format!("{} (published)", curve.label) } else { curve.label.clone() },
        colour: Some(*colour),
        stroke: *stroke,
    });
    let across = lines.iter().flat_map(|line| line.points.iter().map(|point| point.0));
    let heights = lines.iter().flat_map(|line| line.points.iter().map(|point| point.1));
    Chart {
        title: &figure.what,
        x: if figure.x_log { Axis::logarithmic(across) } else { Axis::from_zero(across, 0.0) },
        x_title: &figure.x,
        y: if figure.y_log { Axis::logarithmic(heights) } else { Axis::from_zero(heights, 0.0) },
        y_title: &figure.y,
        legend: legend.collect(),
        lines,
    }
    .draw()
}

fn drawable(curve: &Curve) -> Vec<(f64, f64)> {
    curve.points.iter().copied().filter(|point| is_drawable(point.0) && is_drawable(point.1)).collect()
}
