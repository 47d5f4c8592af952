//! The result schema: every number that evb prints comes from a record, and every record is one JSON object.
//!
//! The field names are a contract with the readers of records. A dot in the documentation means a nested object.

mod account;
mod background;
mod benchmark;
mod broadcast;
mod bundles;
mod comparison;
mod connections;
mod estimate;
mod filtering;
mod finding;
mod hardware;
mod histogram;
mod occupancy;
mod outcome;
mod paper;
mod paper_report;
mod planning;
mod point_record;
mod qualification;
mod shaping;
mod simulation;
mod source;
mod stages;
pub mod steady;
mod timeline;
mod twin;

pub use background::Background;
pub use benchmark::{
    Benchmark, BenchmarkSamples, BenchmarkSettings, Calibration, CoreToCore, CpuLoad, Launches, Origin, Parameters,
    SIMULATED, Times,
};
pub use broadcast::Broadcast;
pub use bundles::Bundles;
pub use comparison::{Change, Comparison, Difference, Interval, RunComparison};
pub use connections::{ConnectionRates, Connections, ConnectionsOverTime};
pub use estimate::{Estimate, median, spread, student};
pub use filtering::{Filtering, Given, Stream};
pub use finding::{Effect, Finding, FindingKind};
pub use hardware::HardwareMeasurement;
pub use histogram::{Histogram, OddChannels};
pub use occupancy::{BuilderOccupancy, Occupancy, ReadoutOccupancy};
pub use outcome::Outcome;
pub use paper::{Basis, Class, PaperItem, Relation, Sensitivity, Verdict};
pub use paper_report::{Curve, Figure, PaperColumn, PaperFinding, PaperReport, PaperTable};
pub use planning::{
    ASSUMED, Advice, Assumption, BillLine, FrontEntry, GAINED, Judgement, PlanAnswer, PlanCandidate, PlanChange,
    PlanFigures, PlanLevel, PlanVerdict, Planning, PlanningGoal,
};
pub use point_record::PointRecord;
pub use qualification::{LinkSpeed, LinkVerdict, PairOfNodes, Qualification};
use serde::{Deserialize, Serialize};
pub use shaping::{Shaping, Slots};
pub use simulation::{
    CpuRecord, KnownMap, LinkRecord, Mapping, Network, NetworkFault, Simulation, WorkRecord, WorkerRecord,
};
pub use source::{ClockPlace, ClockRecord, FrontEndRecord, SourceRecord, SourceState, WaitingSource, waiting_sources};
pub use stages::Stages;
use std::collections::BTreeMap;
pub use timeline::{Dip, EventTimes, STEPS, Timeline};
pub use twin::{Agreement, Twin, TwinFigure, TwinLoad};

/// The kind of work in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    /// Events were built for real.
    Run,
    /// Events were built, or traffic flowed, in virtual time.
    Simulation,
    /// A published value was reproduced.
    Paper,
    /// A parameter of the experiments of a paper was varied.
    Sensitivity,
    /// A communication pattern was measured.
    Benchmark,
    /// Parameters were derived from benchmarks.
    Parameters,
    /// A benchmark was compared with an earlier one.
    Comparison,
    /// A run or simulation was compared with an earlier one.
    RunComparison,
    /// Hardware was measured.
    Hardware,
    /// A fabric was tested, link by link.
    Qualification,
    /// The network of an event builder was searched.
    Planning,
    /// Runs were held against a simulation of the machine that carried them out.
    Twin,
}

/// The result of one run, real or simulated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The kind of work.
    pub kind: RecordKind,
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
    /// Transport between the nodes, by its name in the experiment file; `simulated` in virtual time.
    pub transport: String,
    /// Transport of control messages; `None` if they travel with the fragments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_transport: Option<String>,
    /// Number of readout units.
    pub readout_units: u16,
    /// Number of builder units.
    pub builder_units: u16,
    /// Number of events by outcome.
    pub events: Events,
    /// Triggers that arrived, and triggers that were turned away.
    pub trigger: Trigger,
    /// Time from the start to the end of the last event, in seconds.
    pub seconds: f64,
    /// Time for which triggers were turned away before this run, in seconds, if it has followed another without a stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch_seconds: Option<f64>,
    /// The time window of all rates.
    #[serde(default)]
    pub window: Window,
    /// Events built, incomplete or rejected, per second of the window.
    pub event_rate_hz: f64,
    /// The 95 % confidence interval of the event rate; `None` without a steady window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_rate_interval_hz: Option<Bounds>,
    /// Fragments received by all builders, per second.
    pub fragment_rate_hz: f64,
    /// Payload delivered to all builders, in bytes per second.
    pub throughput_bytes_per_s: f64,
    /// The part of the throughput that was of use, in bytes per second: payload of complete and of rejected events, or of
    /// messages that arrived whole, each counted once. `None` in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput_bytes_per_s: Option<f64>,
    /// Payload delivered to each builder, in bytes per second.
    pub per_destination_bytes_per_s: Vec<f64>,
    /// Payload sent by each readout unit, in bytes per second.
    pub per_source_bytes_per_s: Vec<f64>,
    /// Time from trigger to stored, in microseconds; rejected events have none.
    pub latency_us: Latency,
    /// Faults by kind; kinds that did not occur are left out.
    pub faults: BTreeMap<String, u64>,
    /// Counts of each builder.
    pub builders: Vec<BuilderRecord>,
    /// Counts of each readout unit.
    pub readouts: Vec<ReadoutRecord>,
    /// The sources and blocks; `None` if each readout unit has one source and sends single events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundles: Option<Bundles>,
    /// The shaping of the traffic; `None` where fragments go at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaping: Option<Shaping>,
    /// Broadcasts of the nodes; `None` in simulations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broadcast: Option<Broadcast>,
    /// The core of each node that is bound to one, by the name of the node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub placement: BTreeMap<String, u16>,
    /// How full the units were; `None` in simulations, in runs that were too short to sample, and in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occupancy: Option<Occupancy>,
    /// The histograms of `[[monitor]]`, of all builders together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histograms: Vec<Histogram>,
    /// The selection of events; `None` in records without filters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Filtering>,
    /// The event builders of two stages. All other fields then describe both stages together: the triggers of the
    /// first stage, and the events of all slices of the second. Readout units are listed for each slice in turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stages: Option<Box<Stages>>,
    /// Nodes that died or became unreachable, such as `ru1`, in the order of detection. With two stages, the name
    /// begins with the event builder: `g3.bu0` is a builder of group 3, `s1.ru0` a readout unit of slice 1.
    pub lost_nodes: Vec<String>,
    /// The findings, most important first: the reasons for the verdict.
    pub findings: Vec<Finding>,
    /// True if the run did what the experiment file asked for: no finding fails, and none leaves the result undecided. Set by
    /// [`Record::judged`].
    pub good: bool,
    /// The verdict, set by [`Record::judged`]; `None` in records of earlier versions. [`Record::outcome`] returns that of any
    /// record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Outcome>,
    /// Fields of simulations only. They are beside the other fields in JSON.
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub simulation: Option<Simulation>,
}

/// Number of events by outcome: `triggered = built + incomplete + rejected + lost`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Events {
    /// Events that were triggered.
    pub triggered: u64,
    /// Events with every fragment there and good.
    pub built: u64,
    /// Events with a fragment missing or bad.
    pub incomplete: u64,
    /// Events rejected by a filter or after their first phase; 0 in records from before phased building.
    #[serde(default)]
    pub rejected: u64,
    /// Events that were triggered and never ended.
    pub lost: u64,
    /// Events that were assigned again because their builder died.
    pub reassigned: u64,
}

/// The time window of rates: steady, without warm-up and draining.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Begin of the window, in seconds after the start.
    pub from_s: f64,
    /// End of the window, in seconds after the start.
    pub to_s: f64,
    /// True if a steady state was found; if false, the window is the whole time, including the draining.
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

/// Triggers that arrived, and triggers that were turned away. For other traffic: messages that were offered and
/// refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trigger {
    /// Triggers that arrived, accepted or turned away.
    #[serde(default)]
    pub offered: u64,
    /// The trigger rate of the experiment file, per second; `None` if triggers come as fast as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_rate_hz: Option<f64>,
    /// Triggers that arrived while the trigger was inhibited.
    pub inhibited: u64,
    /// Those of them that arrived before the first event, while nodes went over from another run that this one has followed
    /// without a stop. They are not faults of this run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub switched: u64,
    /// Number of times the trigger became inhibited.
    pub inhibitions: u64,
    /// Events that each builder could have under construction at the end, which changes with `builder.slots = "auto"`: less
    /// than 1 if only some builders at a time had one. With blocks, blocks. 0 for traffic.
    #[serde(default)]
    pub slots: f64,
    /// Mean number of events in a block, which changes with `trigger.block = "auto"`: 1 for single events. 0 for traffic, and
    /// before the first event.
    #[serde(default)]
    pub block: f64,
}

/// A distribution of times, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The mean, to a part in a thousand; `None` where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// The median: half of all times are shorter.
    pub p50: f64,
    /// The 99th percentile: 99 of 100 times are shorter.
    pub p99: f64,
    /// The 99.9th percentile: 999 of 1000 times are shorter.
    #[serde(default)]
    pub p999: f64,
    /// The longest time.
    pub max: f64,
}

/// Counts of one builder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BuilderRecord {
    /// Events with every fragment there and good.
    pub built: u64,
    /// Events with a fragment missing or bad.
    pub incomplete: u64,
    /// Events rejected by a filter or after their first phase; 0 in records from before phased building.
    #[serde(default)]
    pub rejected: u64,
    /// Fragments received.
    pub fragments: u64,
    /// Payload bytes received.
    pub bytes: u64,
    /// Those of complete events, and of first phases by which events were decided; 0 in records from before this count.
    #[serde(default)]
    pub useful_bytes: u64,
    /// Fragments asked for because they had not arrived; each question counts.
    #[serde(default)]
    pub asked: u64,
    /// Second copies of fragments that were asked for. They were dropped.
    #[serde(default)]
    pub repeated: u64,
    /// Events written to files.
    pub stored: u64,
    /// Bytes written to files.
    pub stored_bytes: u64,
    /// Number of files written; 0 in records from before this count.
    #[serde(default)]
    pub file_count: u64,
    /// Names of the files written; only the first ones if there are very many.
    pub files: Vec<String>,
}

/// Counts of one readout unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReadoutRecord {
    /// Fragments of the source, with those that waited at the start of the run. For live ones `came = fragments + apart +
    /// waiting`. 0 for generated fragments.
    #[serde(default)]
    pub came: u64,
    /// Fragments that belong to no event.
    #[serde(default)]
    pub apart: u64,
    /// Live fragments that wait for their event at the end of the run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waiting: u64,
    /// Live fragments that belong to no event, by reason: the name of a fault.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub apart_by_reason: BTreeMap<String, u64>,
    /// The files with these fragments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apart_files: Vec<String>,
    /// Fragments of them that are not in the files: the files have reached `storage.apart`, or could not be written.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub apart_unstored: u64,
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
    /// Number of times the buffer became busy.
    pub busy: u64,
    /// Most events held at once.
    pub most_events: u64,
    /// Most payload bytes held at once.
    pub most_bytes: u64,
    /// Frames and connections of front ends that were refused.
    pub rejected: u64,
    /// Faults of its fragments by kind, as the unit and the builders counted them. Empty where fragments came in bundles.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub faults: BTreeMap<String, u64>,
    /// The clock of the source, where fragments are matched by time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockRecord>,
    /// The live source of the unit; none for generated and recorded fragments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceRecord>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}
