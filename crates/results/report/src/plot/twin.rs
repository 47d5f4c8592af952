//! Runs beside their simulation, along a sweep: simulated figures as lines in the band of the fit, real ones as hollow marks.

use super::{
    Plot, against_key,
    axis::Axis,
    chart::{Entry, Line, Stroke},
    curves::{Curves, main_key},
    heights, with_bars,
};
use evb_record::{Agreement, Twin};

/// A figure that is drawn.
struct Drawn {
    /// Name of its plot.
    name: &'static str,
    /// How its name begins.
    figure: &'static str,
    /// Title of its axis.
    title: &'static str,
    /// The unit of the axis in that of the figure.
    unit: f64,
}

const DRAWN: [Drawn; 2] = [
    Drawn { name: "event-rate", figure: "event rate", title: "event rate (kHz)", unit: 1e3 },
    Drawn { name: "latency", figure: "latency median", title: "median latency (us)", unit: 1.0 },
];
/// From this quotient of the largest and the least value on the axis is logarithmic.
const LOGARITHMIC: f64 = 10.0;

/// Plots of a sweep of runs beside their simulation, against the key that [`plots`](super::plots) would take:
///
/// - `event-rate`: the rate, with the band of the fit around the simulated one;
/// - `latency`: the median latency.
///
/// A real value is the median of the runs of its point, with a bar from the least to the most. Runs that were not comparable are
/// left out.
pub fn twin_plots(twins: &[Twin]) -> Vec<Plot> {
    main_key(twins).map_or_else(Vec::new, |key| twin_plots_along(twins, key))
}

/// The same plots against one swept key, for which [`is_axis`](super::is_axis) is true.
pub fn twin_plots_along(twins: &[Twin], key: &str) -> Vec<Plot> {
    let plot = |drawn: &Drawn| Some(Plot { name: drawn.name.into(), svg: draw(twins, key, drawn)? });
    DRAWN.iter().filter_map(plot).collect()
}

fn draw(twins: &[Twin], key: &str, drawn: &Drawn) -> Option<String> {
    let curves = Curves::of(twins, key)?;
    let figure = |twin: &Twin| twin.figures.iter().find(|figure| figure.figure.starts_with(drawn.figure)).cloned();
    let comparable = |twin: &Twin| figure(twin).filter(|_| twin.agreement != Agreement::NotComparable);
    let simulated = curves.lines_with_bars(
        |twin| figure(twin).map(|figure| figure.simulated / drawn.unit),
        |group| {
            let ranges = || group.iter().filter_map(|twin| figure(twin)?.simulated_range);
            Some((
                ranges().map(|range| range.low / drawn.unit).reduce(f64::min)?,
                ranges().map(|range| range.high / drawn.unit).reduce(f64::max)?,
            ))
        },
    );
    let real = curves.lines_with_bars(
        |twin| comparable(twin).map(|figure| figure.median() / drawn.unit),
        |group| {
            let figures = || group.iter().filter_map(|twin| comparable(twin));
            let values = || figures().flat_map(|figure| figure.real).map(|value| value / drawn.unit);
            Some((values().reduce(f64::min)?, values().reduce(f64::max)?))
        },
    );
    let simulated = simulated.into_iter().map(|line| Line { area: line.bars, bars: Vec::new(), ..line });
    let colour = |line: &Line| real_colour(&curves).unwrap_or(line.colour);
    let real = real.into_iter().map(|line| Line { colour: colour(&line), stroke: Stroke::Points, ..line });
    let lines: Vec<_> = simulated.chain(real).collect();
    let (legend, y) = (legend(&curves, &lines), axis(&lines));
    against_key(&twins.first()?.experiment, &curves, lines, legend, y, drawn.title)
}

/// The colour of real values beside a single curve; beside several they have those of their curves.
fn real_colour(curves: &Curves<'_, Twin>) -> Option<usize> {
    curves.is_single().then_some(1)
}

fn legend(curves: &Curves<'_, Twin>, lines: &[Line]) -> Vec<Entry> {
    let colour = curves.is_single().then_some(0);
    let mut legend = vec![Entry::Line { label: "simulated".into(), colour, stroke: Stroke::Solid }];
    if lines.iter().any(|line| !line.area.is_empty()) {
        legend.push(Entry::Area { label: "band of the fit".into(), colour });
    }
    legend.push(Entry::Line {
        label: "real, median of the runs".into(),
        colour: real_colour(curves),
        stroke: Stroke::Points,
    });
    legend.extend(curves.legend());
    with_bars(legend, lines, "least to most of the runs")
}

/// Logarithmic where a linear axis would hide the lower values.
fn axis(lines: &[Line]) -> Axis {
    let least = heights(lines).fold(f64::INFINITY, f64::min);
    let most = heights(lines).fold(0.0, f64::max);
    match least > 0.0 && most / least > LOGARITHMIC {
        true => Axis::logarithmic(heights(lines)),
        false => Axis::from_zero(heights(lines), 0.0),
    }
}
