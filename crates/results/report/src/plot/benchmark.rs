//! Plots of benchmarks: the cost of a size on each transport, and the distribution of cycle times.

use super::{
    Plot,
    axis::Axis,
    chart::{Chart, Entry, Line, Stroke},
    heights,
    quantity::{Unit, is_drawable},
};
use crate::benchmark::{Case, distinct};
use evb_core::ByteCount;
use evb_record::{Benchmark, BenchmarkSamples, Parameters};

/// Title of the horizontal axis of most plots.
const SIZE: &str = "message size (bytes)";
/// Number of points of a computed curve.
const POINTS: usize = 400;

/// The plots that make sense for these benchmarks, one curve for each transport. For each pattern with several sizes,
/// on the fewest nodes and with the least computing:
///
/// - `throughput-PATTERN`: bytes that all nodes received per second against the size;
/// - `latency-PATTERN`: median and 99th percentile of its cycles, or of half of them for a round trip, against the
///   size;
/// - `cpu-PATTERN`: processor load of senders and receivers against the size.
///
/// For each pattern with samples, `cycle-times-PATTERN`: the cumulative distribution of its cycle times, for the
/// smallest size. For `ping-pong`, if the parameters have a line through its times, `elapsed`: the times and the line.
pub fn benchmark_plots(records: &[Benchmark], parameters: &[Parameters], samples: &[BenchmarkSamples]) -> Vec<Plot> {
    let groups = Case::groups(records.iter().map(Case::from));
    let mut plots = Vec::new();
    for (index, cases) in groups.iter().enumerate() {
        let sweep = Sweep::new(records, cases[0]);
        let before = groups[..index].iter().filter(|earlier| earlier[0].pattern == cases[0].pattern).count();
        let suffix = if before > 0 { format!("-{}", before + 1) } else { String::new() };
        let charts = [
            ("throughput", sweep.throughput()),
            ("latency", sweep.latency()),
            ("cpu", sweep.cpu()),
            ("cycle-times", sweep.distribution(samples)),
        ];
        let name = |what: &str| format!("{what}-{}{suffix}", cases[0].pattern);
        plots.extend(charts.into_iter().filter_map(|(what, svg)| Some(Plot { name: name(what), svg: svg? })));
    }
    plots.extend(elapsed(records, parameters).map(|svg| Plot { name: "elapsed".into(), svg }));
    plots
}

/// The rows of one pattern that differ in size and transport only.
struct Sweep<'a> {
    first: Case<'a>,
    transports: Vec<&'a str>,
    rows: Vec<&'a Benchmark>,
}

impl<'a> Sweep<'a> {
    fn new(records: &'a [Benchmark], first: Case<'a>) -> Self {
        let belongs = |row: &&Benchmark| Case { size_bytes: first.size_bytes, ..Case::from(*row) } == first;
        let mut rows: Vec<_> = records.iter().filter(belongs).collect();
        rows.sort_by_key(|row| row.settings.size_bytes);
        // Of all transports, so that each has one colour in all plots.
        Self { first, transports: distinct(records.iter().map(|row| row.transport.as_str())), rows }
    }

    fn throughput(&self) -> Option<String> {
        let mut lines = self.lines(Stroke::Solid, |row| Some(row.bytes_per_s * 1e-6));
        let is_rate = |row: &&Benchmark| row.launches.quantity == "messages_per_s";
        let bars = self.add_bars(&mut lines, |row| is_rate(&row).then_some(row.settings.size_bytes as f64 * 1e-6));
        let y = Axis::logarithmic(heights(&lines));
        self.against_size("throughput", lines, y, "received by all nodes (MB/s)", bars)
    }

    fn latency(&self) -> Option<String> {
        let times = |row: &Benchmark| row.half_round_trip_ns.or(row.cycle_ns);
        let mut lines = self.lines(Stroke::Solid, |row| Some(times(row)?.p50 * 1e-3));
        let mut legend = styles("median", "99th percentile");
        // Of other cycles the launches tell means, and the line is of medians.
        legend.extend(self.add_bars(&mut lines, |row| row.half_round_trip_ns.map(|_| 0.5e-3)));
        lines.extend(self.lines(Stroke::Dashed, |row| Some(times(row)?.p99 * 1e-3)));
        let y = Axis::logarithmic(heights(&lines));
        let half = self.rows.iter().any(|row| row.half_round_trip_ns.is_some());
        let title = if half { "half of the round trip (us)" } else { "time of a cycle (us)" };
        self.against_size("latency", lines, y, title, legend)
    }

    fn cpu(&self) -> Option<String> {
        let mut lines = self.lines(Stroke::Solid, |row| Some(row.processor_load()?.senders * 100.0));
        lines.extend(self.lines(Stroke::Dashed, |row| Some(row.processor_load()?.receivers * 100.0)));
        let y = Axis::from_zero(heights(&lines), 100.0);
        self.against_size("processor load", lines, y, "of one core (%)", styles("senders", "receivers"))
    }

    fn lines(&self, stroke: Stroke, value: impl Fn(&Benchmark) -> Option<f64>) -> Vec<Line> {
        let line = |(colour, transport): (usize, &&str)| {
            let rows = self.rows.iter().filter(|row| row.transport == *transport);
            let points = rows.filter_map(|row| Some((row.settings.size_bytes as f64, value(row)?)));
            Line::new(colour, stroke, points.filter(can_be_drawn).collect())
        };
        self.transports.iter().enumerate().map(line).collect()
    }

    /// Adds the interval of the median of all launches to the points of the lines, scaled by a factor; rows without a
    /// factor get none. Returns the entry of the legend, if there is any.
    fn add_bars(&self, lines: &mut [Line], factor: impl Fn(&Benchmark) -> Option<f64>) -> Vec<Entry> {
        let mut confidence: f64 = 1.0;
        for row in &self.rows {
            let Some(factor) = factor(row) else { continue };
            let [low, high] = [row.launches.low, row.launches.high].map(|end| end * factor);
            let place = self.transports.iter().position(|name| *name == row.transport);
            let line = place.and_then(|place| lines.get_mut(place));
            let is_bar = low < high && [low, high].iter().all(|end| can_be_drawn(&(0.0, *end)));
            if let Some(line) = line.filter(|_| is_bar) {
                line.bars.push((row.settings.size_bytes as f64, low, high));
                confidence = confidence.min(row.launches.confidence);
            }
        }
        let is_any = lines.iter().any(|line| !line.bars.is_empty());
        is_any.then(|| Entry::Bars(format!("launches: {:.0} % interval", confidence * 100.0))).into_iter().collect()
    }

    fn against_size(&self, what: &str, lines: Vec<Line>, y: Axis, y_title: &str, styles: Vec<Entry>) -> Option<String> {
        let legend = styles.into_iter().chain(transports(&self.transports, &lines, Stroke::Solid)).collect();
        let title = self.title(what);
        Chart { title: &title, x: sizes(&self.rows), x_title: SIZE, y, y_title, lines, legend }.draw()
    }

    fn title(&self, what: &str) -> String {
        format!("{}: {what}, {} nodes", self.first.heading(), self.first.nodes)
    }

    /// The cumulative distribution of the cycle times.
    fn distribution(&self, samples: &[BenchmarkSamples]) -> Option<String> {
        let Case { pattern, nodes, size_bytes, compute_us, .. } = self.first;
        let belongs = |of: &&BenchmarkSamples| {
            (of.pattern.as_str(), of.settings.nodes, of.settings.size_bytes, of.settings.compute_us)
                == (pattern, nodes, size_bytes, compute_us)
        };
        let line = |(colour, transport): (usize, &&str)| {
            let rows = samples.iter().filter(belongs).filter(|of| of.transport == **transport);
            Line::new(colour, Stroke::Plain, cumulative(rows))
        };
        let lines: Vec<_> = self.transports.iter().enumerate().map(line).collect();
        let across = lines.iter().flat_map(|line| line.points.iter().map(|point| point.0));
        let title = format!("{}, {size_bytes} B", self.title("distribution of times"));
        let x_title = if self.first.rate_hz.is_some() { "from due to arrival (us)" } else { "time of a cycle (us)" };
        Chart {
            title: &title,
            x: Axis::logarithmic(across),
            x_title,
            y: Axis::from_zero([].into_iter(), 100.0),
            y_title: "took no longer (%)",
            legend: transports(&self.transports, &lines, Stroke::Plain),
            lines,
        }
        .draw()
    }
}

/// The axis of sizes, with a tick for each size if there is room.
fn sizes(rows: &[&Benchmark]) -> Axis {
    let sizes: Vec<_> = distinct(rows.iter().map(|row| row.settings.size_bytes as f64));
    let named: Vec<_> = sizes.iter().map(|&size| (size, ByteCount(size as u64).to_string())).collect();
    Axis::of_key(&named.iter().map(|(size, name)| (*size, name.as_str())).collect::<Vec<_>>(), Unit::Bytes)
}

/// Legend entries for full and dashed lines.
fn styles(solid: &str, dashed: &str) -> Vec<Entry> {
    let entry = |label: &str, stroke| Entry::Line { label: label.into(), colour: None, stroke };
    vec![entry(solid, Stroke::Solid), entry(dashed, Stroke::Dashed)]
}

/// Legend entries for the transports that have a line.
fn transports(names: &[&str], lines: &[Line], stroke: Stroke) -> Vec<Entry> {
    let is_seen = |colour: usize| lines.iter().any(|line| line.colour == colour && !line.points.is_empty());
    let seen = names.iter().enumerate().filter(|(colour, _)| is_seen(*colour));
    seen.map(|(colour, name)| Entry::Line { label: (*name).to_owned(), colour: Some(colour), stroke }).collect()
}

/// Times in microseconds and the percentage that is not above them, at even steps of the percentage.
fn cumulative<'a>(rows: impl Iterator<Item = &'a BenchmarkSamples>) -> Vec<(f64, f64)> {
    let mut times: Vec<u64> =
        rows.flat_map(|row| row.launches.iter().flatten()).flat_map(|(_, times)| times.iter().copied()).collect();
    times.sort_unstable();
    let Some(last) = times.len().checked_sub(1) else { return Vec::new() };
    let point = |step: usize| {
        let place = last * step / POINTS;
        // Nothing takes no time: below a nanosecond the clock could not tell.
        (times[place].max(1) as f64 * 1e-3, 100.0 * (place + 1) as f64 / times.len() as f64)
    };
    (0..=POINTS).map(point).collect()
}

/// Half of the round trip against the size: marks for measurements, and the line through them.
fn elapsed(records: &[Benchmark], parameters: &[Parameters]) -> Option<String> {
    let names = distinct(records.iter().map(|row| row.transport.as_str()));
    let is_measured = |row: &&Benchmark| row.pattern == "ping-pong" && row.settings.rate_hz.is_none();
    let rows: Vec<_> = records.iter().filter(is_measured).collect();
    let (mut lines, mut fits) = (Vec::new(), Vec::new());
    for (colour, name) in names.iter().enumerate() {
        let of_transport = rows.iter().filter(|row| row.transport == *name);
        let time = |row: &&Benchmark| Some((row.settings.size_bytes as f64, row.half_round_trip_ns?.p50 * 1e-3));
        let points: Vec<_> = of_transport.filter_map(time).filter(can_be_drawn).collect();
        let fit = parameters.iter().find(|parameters| parameters.transport == *name);
        let fit = fit.and_then(|fit| Some((fit.fixed_overhead_us?, fit.rate_mb_per_s?)));
        fits.extend(fit.map(|fit| Line::new(colour, Stroke::Plain, along(fit, &points))));
        lines.push(Line::new(colour, Stroke::Points, points));
    }
    if fits.is_empty() {
        return None;
    }
    let entry = |label: &str, stroke| Entry::Line { label: label.into(), colour: None, stroke };
    let mut legend = vec![entry("measured", Stroke::Points), entry("overhead + size / rate", Stroke::Plain)];
    legend.extend(transports(&names, &lines, Stroke::Plain));
    lines.extend(fits);
    let title = "ping-pong: elapsed time of a message";
    let y = Axis::logarithmic(heights(&lines));
    Chart { title, x: sizes(&rows), x_title: SIZE, y, y_title: "half of the round trip (us)", lines, legend }.draw()
}

/// Returns true if a point has a place on a logarithmic axis.
fn can_be_drawn(point: &(f64, f64)) -> bool {
    is_drawable(point.1) && point.1 > 0.0
}

/// The line of an overhead in microseconds and a rate in MB/s, over the sizes of these points.
fn along((overhead, rate): (f64, f64), points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let ends = points.iter().map(|point| (point.0, point.0)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let Some((least, most)) = ends.filter(|(least, most)| least < most) else { return Vec::new() };
    let size = |step: usize| least * (most / least).powf(step as f64 / POINTS as f64);
    let line = (0..=POINTS).map(size).map(|size| (size, overhead + size / rate));
    line.filter(can_be_drawn).collect()
}
