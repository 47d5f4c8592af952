//! Summary of the measurements of all nodes and launches as one record.

use crate::{
    benchmark::Benchmark,
    driver::NodeResult,
    measurement::Measurement,
    statistics::{launches, times},
};
use evb_record::{Benchmark as BenchmarkRecord, Calibration, CoreToCore, CpuLoad, SIMULATED, Times, median};

/// Largest ratio of two calibrations of a trusted row.
const MOST_DRIFT: f64 = 1.25;
/// Largest relative difference between the rate and the offered rate without a note.
const RATE_MARGIN: f64 = 0.02;
/// Fewest samples of a distribution.
const FEWEST_SAMPLES: u64 = 1000;

/// One measurement in all its launches.
pub(crate) struct Row<'a> {
    pub(crate) measurement: &'a Measurement,
    pub(crate) transport: String,
    /// True for simulated time, which the machine does not affect.
    pub(crate) is_simulated: bool,
    pub(crate) cores: Vec<u16>,
    /// The nodes of each launch.
    pub(crate) launches: Vec<Vec<NodeResult>>,
    /// Core-to-core times before and after each launch.
    pub(crate) calibrations: Vec<(CoreToCore, CoreToCore)>,
}

impl Row<'_> {
    pub(crate) fn record(&self) -> BenchmarkRecord {
        let measurement = self.measurement;
        let cycles = times(self.nodes().map(|node| &node.times));
        let rates: Vec<_> = self.launches.iter().map(|nodes| rate(nodes)).collect();
        let messages_per_s = median(&rates);
        let lost = self.nodes().map(|node| node.lost).sum();
        let corrupted = self.nodes().map(|node| node.corrupted).sum();
        let notes = self.notes(cycles.as_ref(), lost);
        let is_lossy = self.transport == "udp" && measurement.benchmark == Benchmark::Broadcast;
        BenchmarkRecord {
            cores: (0..measurement.nodes).filter_map(|node| crate::launch::core_of(&self.cores, node)).collect(),
            cycle_ns: cycles,
            half_round_trip_ns: measurement.half_round_trip(cycles),
            messages_per_s,
            bytes_per_s: messages_per_s * measurement.size as f64,
            cpu_load: self.cpu_load(),
            launches: self.spread(cycles.is_some(), &rates),
            longest_gap_us: self.nodes().map(|node| node.longest_gap_ns).max().unwrap_or(0) as f64 * 1e-3,
            messages: self.nodes().map(|node| node.all_messages).sum(),
            lost,
            corrupted,
            calibration: self.calibration(),
            trusted: notes.is_empty(),
            notes,
            good: corrupted == 0 && (lost == 0 || is_lossy),
            ..measurement.record(&self.transport, if self.is_simulated { SIMULATED } else { measurement.wait.name() })
        }
    }

    fn nodes(&self) -> impl Iterator<Item = &NodeResult> {
        self.launches.iter().flatten()
    }

    /// The values by which launches are compared: the median for round trips, which are timed one by one; for other
    /// cycles, several of which may end at once, the mean, which is the inverse of their frequency.
    fn spread(&self, has_cycles: bool, rates: &[f64]) -> evb_record::Launches {
        if !has_cycles {
            return launches("messages_per_s", rates);
        }
        let one_by_one = self.measurement.benchmark.is_round_trip() || self.measurement.rate.is_some();
        let of_launch = |nodes: &Vec<NodeResult>| {
            let times = times(nodes.iter().map(|node| &node.times))?;
            Some(if one_by_one { times.p50 } else { times.mean })
        };
        launches("cycle_ns", &self.launches.iter().filter_map(of_launch).collect::<Vec<_>>())
    }

    fn cpu_load(&self) -> CpuLoad {
        let senders = self.measurement.benchmark.senders(self.measurement.nodes).into();
        let mean = |sends: bool| {
            let loads = self.launches.iter().flat_map(|nodes| nodes.iter().enumerate());
            let side: Vec<_> =
                loads.filter(|(node, _)| (*node < senders) == sends).map(|(_, node)| load(node)).collect();
            side.iter().sum::<f64>() / side.len().max(1) as f64
        };
        CpuLoad { senders: mean(true), receivers: mean(false) }
    }

    fn calibration(&self) -> Option<Calibration> {
        let middle = |of: &dyn Fn(&(CoreToCore, CoreToCore)) -> f64| {
            median(&self.calibrations.iter().map(of).collect::<Vec<_>>())
        };
        (!self.calibrations.is_empty()).then(|| Calibration {
            before: CoreToCore {
                line_ns: middle(&|pair| pair.0.line_ns),
                message_ns: middle(&|pair| pair.0.message_ns),
            },
            after: CoreToCore {
                line_ns: middle(&|pair| pair.1.line_ns),
                message_ns: middle(&|pair| pair.1.message_ns),
            },
        })
    }

    /// Reasons not to trust the row, and remedies.
    fn notes(&self, cycles: Option<&Times>, lost: u64) -> Vec<String> {
        let mut notes = if self.is_simulated { Vec::new() } else { self.doubts(cycles) };
        let refused: u64 = self.nodes().map(|node| node.refused).sum();
        if refused > 0 {
            notes
                .push(format!("{refused} messages were due and never sent: the rate is above what goes, lower --rate"));
        }
        if self.launches.iter().any(|nodes| nodes.iter().all(|node| node.messages == 0)) {
            notes.push("no message came in the time that was measured: measure for longer with --time".into());
        }
        if lost > 0 {
            notes.push(format!("{lost} messages were lost"));
        }
        notes.extend(self.rate_note());
        notes
    }

    /// A note on a rate that differs from the offered one.
    fn rate_note(&self) -> Option<String> {
        let offered = self.measurement.messages_hz()?;
        let came = median(&self.launches.iter().map(|nodes| rate(nodes)).collect::<Vec<_>>());
        let why = match came / offered {
            part if part > 1.0 + RATE_MARGIN => {
                "what was late from the warm-up was counted: measure for longer with --time"
            }
            part if part < 1.0 - RATE_MARGIN => "the offered rate was not kept: lower --rate",
            _ => return None,
        };
        Some(format!("{came:.0} messages came per second of {offered:.0} that were offered; {why}"))
    }

    /// Possible effects of the machine on the times.
    fn doubts(&self, cycles: Option<&Times>) -> Vec<String> {
        let mut notes = Vec::new();
        let lines: Vec<_> = self.calibrations.iter().flat_map(|pair| [pair.0.line_ns, pair.1.line_ns]).collect();
        let (least, most) = lines.iter().fold((f64::MAX, 0.0_f64), |(l, m), &x| (l.min(x), m.max(x)));
        if most > MOST_DRIFT * least {
            notes.push(format!(
                "a cache line took {least:.0} to {most:.0} ns between the cores meanwhile: measure again on a quieter machine"
            ));
        }
        if self.cores.is_empty() {
            notes.push("nodes were not pinned to cores".into());
        }
        if let Some(cycles) = cycles.filter(|cycles| cycles.samples < FEWEST_SAMPLES) {
            notes.push(format!("{} samples are few: measure for longer with --time", cycles.samples));
        }
        if self.launches.len() < 2 {
            notes.push("one launch says nothing about the next: use --launches".into());
        }
        notes
    }
}

/// Data messages received by all nodes of a launch, per second.
fn rate(nodes: &[NodeResult]) -> f64 {
    nodes.iter().filter(|node| node.seconds > 0.0).map(|node| node.messages as f64 / node.seconds).sum()
}

fn load(node: &NodeResult) -> f64 {
    if node.seconds > 0.0 { node.cpu_seconds / node.seconds } else { 0.0 }
}
