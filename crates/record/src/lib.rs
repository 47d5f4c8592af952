//! The one result schema: every number that evb prints comes from a record, and every record is one JSON object.
//!
//! The names are a contract with those who read records; a dot in the documentation means a nested object.
#![no_std]

extern crate alloc;

mod benchmark;
mod comparison;
mod finding;
mod hardware;
mod paper;

use alloc::{collections::BTreeMap, string::String, vec::Vec};
pub use benchmark::{
    Benchmark, BenchmarkSamples, Calibration, CoreToCore, CpuLoad, Launches, Origin, Parameters, SIMULATED, Times,
};
pub use comparison::{Change, Comparison, Interval};
pub use finding::{Effect, Finding, FindingKind};
pub use hardware::HardwareMeasurement;
pub use paper::{Curve, Figure, PaperColumn, PaperItem, PaperReport, PaperTable, Relation, Verdict};
use serde::{Deserialize, Serialize};

/// What kind of work a record tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Events were built for real.
    Run,
    /// Events were built, or traffic flowed, in virtual time.
    Simulation,
    /// A published value was reproduced.
    Paper,
    /// A communication pattern was measured.
    Benchmark,
    /// Parameters were derived from benchmarks.
    Parameters,
    /// A benchmark was compared with an earlier one.
    Comparison,
    /// Hardware was measured.
    Hardware,
}

/// The result of one run, real or simulated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// What kind of work this was.
    pub kind: Kind,
    /// Name of the experiment.
    pub experiment: String,
    /// The swept keys and their values; empty without a sweep.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sweep: BTreeMap<String, String>,
    /// Seed of every random stream.
    pub seed: u64,
    /// Version of evb.
    pub version: String,
    /// Protocol: `push`, `pull` or `phased`; for other traffic the name of its pattern.
    pub protocol: String,
    /// How the nodes talked: the name of the transport; `simulated` in virtual time.
    pub transport: String,
    /// Number of readout units.
    pub readout_units: u16,
    /// Number of builder units.
    pub builder_units: u16,
    /// What became of the events.
    pub events: Events,
    /// Triggers that came, and those that were turned away.
    pub trigger: Trigger,
    /// Time from the start to the end of the last event, in seconds.
    pub seconds: f64,
    /// The time that all rates are of.
    #[serde(default)]
    pub window: Window,
    /// Events built, incomplete or rejected, per second of the window.
    pub event_rate_hz: f64,
    /// The interval that holds the true event rate with 95 %; none without a steady window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_rate_interval_hz: Option<Bounds>,
    /// Fragments received by all builders, per second.
    pub fragment_rate_hz: f64,
    /// Payload delivered to all builders, in bytes per second.
    pub throughput_bytes_per_s: f64,
    /// Payload delivered to each builder, in bytes per second.
    pub per_destination_bytes_per_s: Vec<f64>,
    /// Payload sent by each readout unit, in bytes per second.
    pub per_source_bytes_per_s: Vec<f64>,
    /// Time from trigger to stored, in microseconds; rejected events have none.
    pub latency_us: Latency,
    /// Faults by kind; kinds that did not occur are left out.
    pub faults: BTreeMap<String, u64>,
    /// What each builder did.
    pub builders: Vec<Builder>,
    /// What each readout unit did.
    pub readouts: Vec<Readout>,
    /// Nodes that died or could not be reached any more, such as `ru1`, in the order in which this was noticed.
    pub lost_nodes: Vec<String>,
    /// What people should know, most important first: why the verdict is what it is.
    pub findings: Vec<Finding>,
    /// Whether what the experiment file asked for happened: no finding fails. [`Record::judged`] decides it.
    pub good: bool,
    /// What only a simulation has; its fields stand beside those above.
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub simulation: Option<Simulation>,
}

/// What only a simulation has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Simulation {
    /// Real time that the simulation took, in seconds. The only number that differs when it is run again.
    pub wall_seconds: f64,
    /// Packets sent, from the start.
    pub packets: u64,
    /// Links taken by all packets, from the start.
    pub packet_hops: u64,
    /// Part of the full performance of all destinations that was reached: the time that packets with payload need on the
    /// wire and their overheads, as far as these do not run beside each other, over the time of the window. What fills
    /// packets up does not count; at most 1.
    pub efficiency: f64,
    /// The warm-up that the experiment file sets, in seconds, else 0.
    pub warmup_seconds: f64,
    /// The network and what happened in it.
    pub network: Network,
}

/// A simulated network and what happened in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// The preset that it was made from.
    pub preset: String,
    /// Its topology.
    pub topology: String,
    /// How packets found their way.
    pub routing: String,
    /// What happened to packets that could not go on.
    pub flow: String,
    /// Hosts that it has room for.
    pub hosts: u64,
    /// Packets dropped because a queue was full, or because no way was left.
    pub lost_packets: u64,
    /// Packets thrown away by their receivers because a fault had corrupted them.
    pub corrupted_packets: u64,
    /// Packets in the network when the simulation ended.
    pub packets_left: u64,
    /// How often a pair of hosts took another way because a packet was blocked (dispersive routing).
    pub route_changes: u64,
    /// Links each of which waits for the next, the last for the first; empty without a deadlock.
    pub deadlock: Vec<String>,
    /// What each link did.
    pub links: Vec<Link>,
}

/// What one direction of a link did while the measurement went on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Name of the link: where it comes from and where it goes to.
    pub name: String,
    /// Packets that took it.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// Part of the time in which bytes moved.
    pub used: f64,
    /// Part of the time in which a packet stood on it and could not move.
    pub blocked: f64,
    /// Mean time that a packet waited for it, in microseconds.
    pub mean_wait_us: f64,
    /// Most packets that waited for it at once.
    pub most_waiting: u64,
    /// Most bytes in its queue (store and forward), or in one buffer at its end (cut-through).
    pub most_bytes: u64,
    /// Packets dropped because its queue was full.
    pub dropped: u64,
    /// How often its receiver asked it to pause.
    pub pauses: u64,
}

/// What became of the events: `triggered = built + incomplete + rejected + lost`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Events {
    /// Events that were triggered.
    pub triggered: u64,
    /// Events with every fragment there and good.
    pub built: u64,
    /// Events with a fragment missing or bad.
    pub incomplete: u64,
    /// Events rejected after their first phase; records of before phased building have none.
    #[serde(default)]
    pub rejected: u64,
    /// Events that were triggered and never ended.
    pub lost: u64,
    /// Events that were assigned again because their builder died.
    pub reassigned: u64,
}

/// The time that rates are of: without warm-up and draining, where they were steady.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Its begin, in seconds after the start.
    pub from_s: f64,
    /// Its end, in seconds after the start.
    pub to_s: f64,
    /// Whether a steady state was found; else it is the whole time, with what drained at its end.
    pub steady: bool,
}

/// The two ends of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// Triggers that came, and those that were turned away. For other traffic: messages that were offered and refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trigger {
    /// Triggers that came, taken or turned away.
    #[serde(default)]
    pub offered: u64,
    /// The rate of triggers that the experiment file asks for, per second; none where they come as fast as it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_rate_hz: Option<f64>,
    /// Triggers that came while the trigger was inhibited.
    pub inhibited: u64,
    /// How often the trigger became inhibited.
    pub inhibitions: u64,
}

/// A distribution of times, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Half of all are shorter.
    pub p50: f64,
    /// 99 of 100 are shorter.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

/// What one builder did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Builder {
    /// Events with every fragment there and good.
    pub built: u64,
    /// Events with a fragment missing or bad.
    pub incomplete: u64,
    /// Events rejected after their first phase; records of before phased building have none.
    #[serde(default)]
    pub rejected: u64,
    /// Fragments received.
    pub fragments: u64,
    /// Payload bytes received.
    pub bytes: u64,
    /// Fragments that it asked for because they had not come, each as often as it was asked for.
    #[serde(default)]
    pub asked: u64,
    /// Second copies of fragments that it had asked for. They were dropped.
    #[serde(default)]
    pub repeated: u64,
    /// Events written to files.
    pub stored: u64,
    /// Bytes written to files.
    pub stored_bytes: u64,
    /// Files written; 0 in records of before they were counted.
    #[serde(default)]
    pub file_count: u64,
    /// The files that were written: the first of them, when there are very many.
    pub files: Vec<String>,
}

/// What one readout unit did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Readout {
    /// Fragments that the source had: `came = fragments + apart` but for those that wait when the run ends. 0 for
    /// generated ones.
    #[serde(default)]
    pub came: u64,
    /// Fragments that belong to no event.
    #[serde(default)]
    pub apart: u64,
    /// The source id that recorded fragments carry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_id: Option<u32>,
    /// Fragments taken from the source for an event.
    pub fragments: u64,
    /// Payload bytes taken from the source.
    pub bytes: u64,
    /// Fragments sent.
    pub sent: u64,
    /// Payload bytes sent.
    pub sent_bytes: u64,
    /// Fragments that were sent again because they were lost on the way.
    #[serde(default)]
    pub repeated: u64,
    /// How often the buffer became busy.
    pub busy: u64,
    /// Most events held at once.
    pub most_events: u64,
    /// Most payload bytes held at once.
    pub most_bytes: u64,
    /// Frames and connections of front ends that were refused.
    pub rejected: u64,
}
