//! What is shown while a run goes on, on standard error and only when that is a terminal.

use evb_bench::{Cell, LayerKind};
use evb_experiment::Plan;
use evb_node::{Observer, Progress};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{
    io::IsTerminal,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Draws a bar with events, rate, throughput and the time left.
pub(crate) struct RunProgress<'a> {
    bar: ProgressBar,
    /// Length of the run in seconds, when it ends by time.
    duration: Option<f64>,
    stop: &'a AtomicBool,
    last: Progress,
    quiet: bool,
}

impl<'a> RunProgress<'a> {
    pub(crate) fn new(plan: &Plan, stop: &'a AtomicBool, quiet: bool) -> Self {
        let duration = plan.trigger.duration.map(evb_core::Span::as_secs_f64);
        let length = match (plan.building.events, duration) {
            (Some(events), _) => Some(events),
            (None, Some(seconds)) => Some((seconds * 1000.0) as u64),
            (None, None) => None,
        };
        let target = target(quiet);
        let bar = ProgressBar::with_draw_target(length, target).with_style(style(length.is_some()));
        tick(&bar);
        Self {
            bar,
            duration: duration.filter(|_| plan.building.events.is_none()),
            stop,
            last: Progress::default(),
            quiet,
        }
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Lets a bar move by itself, where it is seen and the system gives a thread for it.
fn tick(bar: &ProgressBar) {
    if !bar.is_hidden() && thread::Builder::new().spawn(|| ()).is_ok_and(|thread| thread.join().is_ok()) {
        bar.enable_steady_tick(Duration::from_millis(250));
    }
}

/// Standard error when that is a terminal, and nowhere else.
fn target(quiet: bool) -> ProgressDrawTarget {
    match std::io::stderr().is_terminal() && !quiet {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    }
}

fn style(bounded: bool) -> ProgressStyle {
    let template = match bounded {
        true => "{bar:30} {percent:>3} %  {msg}  {eta} left",
        false => "{spinner} {msg}  {elapsed}",
    };
    ProgressStyle::with_template(template).expect("the template is valid").progress_chars("=> ")
}

impl Observer for RunProgress<'_> {
    fn progress(&mut self, now: &Progress) {
        let seconds = now.seconds - self.last.seconds;
        if seconds < 0.2 {
            return;
        }
        let rate = (now.ended - self.last.ended) as f64 / seconds;
        let throughput = now.bytes.saturating_sub(self.last.bytes) as f64 / seconds;
        let incomplete = match now.incomplete {
            0 => String::new(),
            count => format!("  {count} incomplete"),
        };
        let state = if now.stopping { "  draining" } else { "" };
        self.bar.set_message(format!(
            "{} events  {}Hz  {}B/s{incomplete}{state}",
            now.ended,
            evb_report::metric(rate),
            evb_report::metric(throughput)
        ));
        self.bar.set_position(self.duration.map_or(now.ended, |_| (now.seconds * 1000.0) as u64));
        self.last = *now;
    }

    fn note(&mut self, text: &str) {
        if !self.quiet {
            self.bar.suspend(|| eprintln!("evb: {text}"));
        }
    }

    fn stop(&self) -> &AtomicBool {
        self.stop
    }
}

/// Draws one bar for each simulation that is going on, and one for the points of a sweep.
pub(crate) struct SimulationProgress {
    all: MultiProgress,
    points: Option<ProgressBar>,
}

impl SimulationProgress {
    pub(crate) fn new(points: usize, quiet: bool) -> Self {
        let all = MultiProgress::with_draw_target(target(quiet));
        let style = ProgressStyle::with_template("{bar:30} {pos} of {len} points  {eta} left");
        let style = style.expect("the template is valid").progress_chars("=> ");
        let bar = || all.add(ProgressBar::new(points as u64).with_style(style));
        let points = (points > 1).then(bar).inspect(ProgressBar::tick);
        Self { all, points }
    }

    /// A simulation begins.
    pub(crate) fn begin(&self, plan: &Plan) -> SimulationLine<'_> {
        let bar = self.all.add(ProgressBar::new(PARTS).with_style(style(true)));
        let values: Vec<_> = plan.sweep.iter().map(|(key, value)| format!("{key}={value}  ")).collect();
        SimulationLine { bar, start: Instant::now(), name: values.concat(), points: self.points.as_ref() }
    }

    /// Does something that writes to the terminal while the bars are away.
    pub(crate) fn suspend(&self, write: impl FnOnce()) {
        self.all.suspend(write);
    }

    pub(crate) fn finish(&self) {
        if let Some(points) = &self.points {
            points.finish_and_clear();
        }
    }
}

/// Steps of the bar of one simulation.
const PARTS: u64 = 1000;

/// The bar of one simulation.
pub(crate) struct SimulationLine<'a> {
    bar: ProgressBar,
    start: Instant,
    name: String,
    points: Option<&'a ProgressBar>,
}

impl SimulationLine<'_> {
    pub(crate) fn show(&self, now: &evb_sim::Progress) {
        let wall = self.start.elapsed().as_secs_f64().max(1e-9);
        self.bar.set_position((now.part * PARTS as f64) as u64);
        self.bar.set_message(format!(
            "{}{:.3} s simulated  {} ended  {}packet-hops/s",
            self.name,
            now.seconds,
            now.ended,
            evb_report::metric(now.packet_hops as f64 / wall)
        ));
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
        if let Some(points) = self.points {
            points.inc(1);
        }
    }
}

/// Draws one bar for the measurements on one message layer.
pub(crate) struct BenchProgress<'a> {
    bar: ProgressBar,
    layer: String,
    stop: &'a AtomicBool,
}

impl<'a> BenchProgress<'a> {
    pub(crate) fn new(layer: &LayerKind, stop: &'a AtomicBool, quiet: bool) -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), target(quiet)).with_style(style(true));
        tick(&bar);
        Self { bar, layer: layer.to_string(), stop }
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl evb_bench::Observer for BenchProgress<'_> {
    fn begin(&mut self, cell: &Cell, index: usize, of: usize) {
        self.bar.set_length(of as u64);
        self.bar.set_position(index as u64);
        self.bar.set_message(format!(
            "{}  {}  {} B  {} nodes",
            self.layer,
            cell.benchmark.name(),
            cell.size,
            cell.nodes
        ));
    }

    fn note(&mut self, text: &str) {
        self.bar.suspend(|| eprintln!("evb: {}: {text}", self.layer));
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
