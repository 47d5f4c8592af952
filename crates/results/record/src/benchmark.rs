//! Results of benchmarks: the performance of a communication pattern on a transport.

use crate::RecordKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The value of `wait` in simulated time, where the behaviour of a waiting processor makes no difference.
pub const SIMULATED: &str = "simulated";

/// One pattern with one size on one transport.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Benchmark {
    /// The kind of work.
    pub kind: RecordKind,
    /// Name of the suite that it belongs to: `bench`.
    pub experiment: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// Version of evb.
    pub version: String,
    /// The communication pattern, such as `ping-pong`.
    pub pattern: String,
    /// The message layer, such as `tcp`; `simulated` networks have the name of their preset behind it.
    pub transport: String,
    /// The settings of the measurement. They are fields beside the others in JSON.
    #[serde(flatten)]
    pub settings: BenchmarkSettings,
    /// The core that each node was pinned to, as confirmed by the system; empty without pinning.
    #[serde(default)]
    pub cores: Vec<u16>,
    /// Times of one cycle, in nanoseconds; `None` for a pattern without cycles. Under a rate: from the moment at which a
    /// message was due to its arrival.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycle_ns: Option<Times>,
    /// Half of the time of a cycle that is a round trip, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_round_trip_ns: Option<Times>,
    /// Data messages received by all nodes, per second: the median of the launches.
    pub messages_per_s: f64,
    /// Bytes of the data messages received by all nodes, per second.
    pub bytes_per_s: f64,
    /// Processor time divided by elapsed time, for one node of each side.
    pub cpu_load: CpuLoad,
    /// The results of the single launches.
    pub launches: Launches,
    /// Longest time without a message at a receiver, in microseconds.
    pub longest_gap_us: f64,
    /// Data messages received and verified, in all launches.
    pub messages: u64,
    /// Data messages that were sent and did not arrive.
    pub lost: u64,
    /// Data messages with a wrong byte, a wrong length, or out of order.
    pub corrupted: u64,
    /// Core-to-core times before and after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    /// True if the numbers can be trusted; if false, the notes say why.
    pub trusted: bool,
    /// Remarks for the reader.
    pub notes: Vec<String>,
    /// True if every message arrived once, whole and in order.
    pub good: bool,
}

/// The settings of a measurement, beside its pattern and its transport.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchmarkSettings {
    /// Length of a data message in bytes.
    pub size_bytes: u64,
    /// Number of nodes.
    pub nodes: u16,
    /// Time that the receiver of a farm computes for each event, in microseconds.
    pub compute_us: f64,
    /// Largest number of messages of a sender that are in flight.
    pub window: u32,
    /// Rate at which each sender offers messages, or rate of the gathered events, per second; `None` if each sender
    /// sends as fast as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_hz: Option<f64>,
    /// Fewest and most senders that a receiver gathers an event from; `None` for a pattern that does not gather.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gathers: Option<(u16, u16)>,
    /// The receiver of each sender, from 0; empty for a pattern whose senders are not assigned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub destinations: Vec<u16>,
    /// Behaviour of a node without work: `spin`, `yield` or `sleep`; [`SIMULATED`] in simulated time.
    pub wait: String,
}

/// A distribution of times in nanoseconds, over all launches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// The shortest time.
    pub min: f64,
    /// The median: half of all times are shorter.
    pub p50: f64,
    /// The 99th percentile: 99 of 100 times are shorter.
    pub p99: f64,
    /// The 99.9th percentile: 999 of 1000 times are shorter.
    pub p999: f64,
    /// The longest time.
    pub max: f64,
    /// The mean.
    pub mean: f64,
    /// Number of times.
    pub samples: u64,
}

impl Times {
    /// The distribution in another unit.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        let Self { min, p50, p99, p999, max, mean, samples } = self;
        Self {
            min: min * factor,
            p50: p50 * factor,
            p99: p99 * factor,
            p999: p999 * factor,
            max: max * factor,
            mean: mean * factor,
            samples,
        }
    }
}

impl Benchmark {
    /// The load of the processors; `None` in simulated time, where it means nothing.
    #[must_use]
    pub fn processor_load(&self) -> Option<CpuLoad> {
        (self.settings.wait != SIMULATED).then_some(self.cpu_load)
    }
}

/// Processor time divided by elapsed time; 1 is one core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuLoad {
    /// Mean over the nodes that send.
    pub senders: f64,
    /// Mean over the nodes that receive.
    pub receivers: f64,
}

/// The launches of a benchmark. Each starts all processes anew.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Launches {
    /// The quantity in `values`: `cycle_ns` (of round trips and under a rate the median of each launch, else the mean)
    /// or `messages_per_s`.
    pub quantity: String,
    /// One value for each launch.
    pub values: Vec<f64>,
    /// The median of the values.
    pub median: f64,
    /// Lower end of the interval that holds the median of all possible launches.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Probability of the interval, from 0 to 1. It is lower than 0.95 if there are few launches.
    pub confidence: f64,
}

/// Core-to-core times before and after a series: the limit of everything that goes through memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Times before the series.
    pub before: CoreToCore,
    /// Times after the series.
    pub after: CoreToCore,
}

/// Half round trips between two cores through memory, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoreToCore {
    /// One cache line for each direction, one word written and read.
    pub line_ns: f64,
    /// 64 bytes in one cache line and a word in another, for each direction.
    pub message_ns: f64,
}

/// Single times of a benchmark, which its record summarises.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchmarkSamples {
    /// The message layer.
    pub transport: String,
    /// The communication pattern.
    pub pattern: String,
    /// The settings of the measurement.
    pub settings: BenchmarkSettings,
    /// For each launch the nodes that measured times, and these times in nanoseconds, in the order of measurement.
    pub launches: Vec<Vec<(u16, Vec<u64>)>>,
}

/// The parameters of ATLAS DAQ note 77 (section 5.1, figure 6) for one transport, and others like them. Times are in
/// microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    /// Always [`RecordKind::Parameters`].
    pub kind: RecordKind,
    /// The message layer.
    pub transport: String,
    /// `ping-pong`, smallest size: half the round trip.
    pub latency_us: Option<f64>,
    /// `two-way`, smallest size: the whole cycle.
    pub two_way_us: Option<f64>,
    /// `pairs`, smallest size: time per message of one pair.
    pub overhead_us: Option<f64>,
    /// `pairs`, 1024 B: bytes per second of one pair, in MB/s.
    pub bandwidth_mb_per_s: Option<f64>,
    /// Growth of the time of `outfarming` when the number of receivers doubles, over that of `broadcast`, on average.
    pub broadcast_quality: Option<f64>,
    /// `funnel`, four senders of 1024 B: time per cycle.
    pub funnel_us: Option<f64>,
    /// `push-farm` without computing, four senders of 1024 B: time per cycle.
    pub push_farm_us: Option<f64>,
    /// `pull-farm` without computing, four senders of 1024 B: time per cycle.
    pub pull_farm_us: Option<f64>,
    /// `push-farm`: `1 - a / t(0)` in percent, where `a` is the mean of `t(d) - d` over the computing times `d`.
    pub overlap_percent: Option<f64>,
    /// Message size at which half of the highest throughput is reached, in bytes.
    pub half_peak_bytes: Option<f64>,
    /// Highest rate of messages from one sender, in millions per second.
    pub peak_rate_m_per_s: Option<f64>,
    /// Time of an empty message by a straight line through half the round trip of `ping-pong` against the size, as in figure 5
    /// of "The use of Ethernet in the ATLAS second level trigger" (1998).
    pub fixed_overhead_us: Option<f64>,
    /// Inverse slope of this line, in MB/s.
    pub rate_mb_per_s: Option<f64>,
    /// Largest distance of a measured time from this line, in percent of the time.
    pub fit_error_percent: Option<f64>,
    /// The source of each parameter, under its name.
    pub taken_from: BTreeMap<String, Origin>,
}

/// The rows from which a parameter was taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// Their patterns, sizes and numbers of nodes, as text.
    pub rows: String,
    /// True if all these rows can be trusted.
    pub trusted: bool,
}
