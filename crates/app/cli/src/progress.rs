//! Progress on standard error while a command works.

mod line;
mod screen;

use crate::signals::Signals;
use evb::{
    Command, Observer, Plan, Progress,
    bench::{LayerChoice, Measurement},
};
use evb_sources::FeedProgress;
pub(crate) use line::{Line, ProgressArgs, clear, say, suspend};
use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

/// Shortest time over which the rate of a run is shown, in seconds.
const SHORTEST: f64 = 0.2;

/// Shows events, rate, throughput and the time left.
pub(crate) struct RunProgress<'a> {
    line: Line,
    /// The run ends by time, and not by events.
    is_timed: bool,
    signals: &'a Signals,
    /// Number of signals that were passed on as commands.
    passed_on: u32,
    last: Progress,
    quiet: bool,
}

impl<'a> RunProgress<'a> {
    pub(crate) fn new(plan: &Plan, signals: &'a Signals, how: ProgressArgs) -> Self {
        let duration = plan.trigger.duration.map(|duration| millis(duration.as_secs_f64()));
        let length = plan.events().or(duration);
        let is_timed = plan.events().is_none() && duration.is_some();
        Self {
            line: Line::new(length, how),
            is_timed,
            signals,
            passed_on: signals.count(),
            last: Progress::default(),
            quiet: how.quiet,
        }
    }
}

fn millis(seconds: f64) -> u64 {
    (seconds * 1000.0) as u64
}

impl Observer for RunProgress<'_> {
    fn progress(&mut self, now: &Progress) {
        let seconds = now.seconds - self.last.seconds;
        if seconds < SHORTEST {
            return;
        }
        let rate = (now.ended - self.last.ended) as f64 / seconds;
        let throughput = now.bytes.saturating_sub(self.last.bytes) as f64 / seconds;
        let incomplete = match now.incomplete {
            0 => String::new(),
            count => format!("  {count} incomplete"),
        };
        let state = if now.stopping { "  draining" } else { "" };
        let [rate, throughput] = [rate, throughput].map(evb_report::metric);
        let message = format!("{} events  {rate}Hz  {throughput}B/s{incomplete}{state}", now.ended);
        self.line.show(if self.is_timed { millis(now.seconds) } else { now.ended }, &message);
        self.last = *now;
    }

    fn note(&mut self, text: &str) {
        if !self.quiet {
            say(text);
        }
    }

    fn command(&mut self) -> Option<Command> {
        (self.signals.count() > self.passed_on).then(|| {
            self.passed_on += 1;
            Command::Stop
        })
    }
}

/// Shows the time of a measurement that tells nothing until its end.
pub(crate) struct TimeProgress {
    line: Line,
    start: Instant,
}

impl TimeProgress {
    pub(crate) fn new(plan: &Plan, how: ProgressArgs) -> Self {
        let time = plan
            .trigger
            .duration
            .map(|duration| millis((duration + plan.run.warmup.unwrap_or_default()).as_secs_f64()));
        Self { line: Line::new(time, how), start: Instant::now() }
    }

    pub(crate) fn show(&self) {
        let seconds = self.start.elapsed().as_secs_f64();
        self.line.show(millis(seconds), &format!("{seconds:.1} s"));
    }
}

/// Shows each running simulation, and the number of finished points of a sweep.
pub(crate) struct SimulationProgress {
    points: Option<(Line, Mutex<u64>)>,
    how: ProgressArgs,
}

impl SimulationProgress {
    pub(crate) fn new(points: usize, how: ProgressArgs) -> Self {
        let points = (points > 1).then(|| (Line::new(Some(points as u64), how), Mutex::new(0)));
        Self { points, how }
    }

    /// Begins to show a simulation. If there are many, only a terminal shows each.
    pub(crate) fn begin(&self, plan: &Plan) -> SimulationLine<'_> {
        let values: Vec<_> = plan.sweep.iter().map(|(key, value)| format!("{key}={value}  ")).collect();
        let line = Line::new(Some(PARTS), if self.points.is_some() { self.how.drawn_only() } else { self.how });
        SimulationLine { line, start: Instant::now(), name: values.concat(), all: self }
    }

    /// Counts a simulation that has ended.
    fn count(&self) {
        if let Some((line, done)) = &self.points {
            let mut done = done.lock().expect("no thread panics while it holds the lock");
            *done += 1;
            line.show(*done, &format!("{done} points"));
        }
    }
}

/// Steps of the bar of one simulation.
const PARTS: u64 = 1000;

/// The progress line of one simulation.
pub(crate) struct SimulationLine<'a> {
    line: Line,
    start: Instant,
    name: String,
    all: &'a SimulationProgress,
}

impl SimulationLine<'_> {
    pub(crate) fn show(&self, now: &evb::SimulationProgress) {
        let wall = self.start.elapsed().as_secs_f64().max(1e-9);
        let hops = evb_report::metric(now.packet_hops as f64 / wall);
        let why = now.why_one_by_one.map(|why| format!(", one by one because {why}")).unwrap_or_default();
        let message =
            format!("{}{:.3} s simulated  {} ended  {hops}packet-hops/s{why}", self.name, now.seconds, now.ended);
        self.line.show((now.part * PARTS as f64) as u64, &message);
    }
}

impl Drop for SimulationLine<'_> {
    fn drop(&mut self) {
        self.all.count();
    }
}

/// Shows the measurements on one message layer.
pub(crate) struct BenchProgress<'a> {
    line: Line,
    layer: String,
    stop: &'a AtomicBool,
    quiet: bool,
}

impl<'a> BenchProgress<'a> {
    pub(crate) fn new(layer: &LayerChoice, stop: &'a AtomicBool, how: ProgressArgs) -> Self {
        Self { line: Line::new(Some(0), how), layer: layer.to_string(), stop, quiet: how.quiet }
    }
}

impl evb::bench::Observer for BenchProgress<'_> {
    fn begin(&mut self, measurement: &Measurement, index: usize, of: usize) {
        self.line.set_length(of as u64);
        let Measurement { benchmark, size, nodes, .. } = measurement;
        let message = format!("{}  {}  {size} B  {nodes} nodes", self.layer, benchmark.name());
        self.line.show(index as u64, &message);
    }

    fn note(&mut self, text: &str) {
        if !self.quiet {
            say(&format!("{}: {text}", self.layer));
        }
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Shows the steps of a test of a message layer.
pub(crate) struct StepProgress {
    line: Line,
    layer: String,
    quiet: bool,
}

impl StepProgress {
    pub(crate) fn new(layer: &LayerChoice, how: ProgressArgs) -> Self {
        Self { line: Line::new(Some(0), how), layer: layer.to_string(), quiet: how.quiet }
    }

    pub(crate) fn show(&self, what: &str, index: usize, of: usize) {
        self.line.set_length(of as u64);
        self.line.show(index as u64, &format!("{}  {what}", self.layer));
    }

    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            say(&format!("{}: {text}", self.layer));
        }
    }
}

/// Shows the progress of a feed.
pub(crate) struct FeedLine(Line);

impl FeedLine {
    pub(crate) fn new(events: Option<u64>, how: ProgressArgs) -> Self {
        Self(Line::new(events, how))
    }

    pub(crate) fn show(&self, sent: &FeedProgress, message: &str) {
        self.0.show(sent.events, message);
    }
}
