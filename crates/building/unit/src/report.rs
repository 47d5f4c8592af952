//! Reports of the units, which they repeat during a run and give at its end.

use crate::{Distribution, Sizes};
use evb_core::{NodeId, Span};
use evb_protocol::{BuilderCounts, FaultCounts, ManagerCounts, Mismatch, ReadoutCounts};
use evb_record::steady::Series;
use evb_record::{Broadcast, ClockRecord, Events, Filtering, Finding, FindingKind, Histogram, Latency, Slots, Trigger};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The report of one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// The event manager.
    Manager(ManagerReport),
    /// A readout unit.
    Readout(Box<ReadoutReport>),
    /// A builder unit.
    Builder(BuilderReport),
}

impl Report {
    /// The same with what the driver of the node knows.
    #[must_use]
    pub fn with_driver(mut self, driver: DriverReport) -> Self {
        match &mut self {
            Self::Manager(report) => report.driver = driver,
            Self::Readout(report) => report.driver = driver,
            Self::Builder(report) => report.driver = driver,
        }
        self
    }
}

/// What the driver of a node knows in a real run. In a simulation it is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DriverReport {
    /// Broadcasts of the node.
    #[serde(default)]
    pub broadcast: Broadcast,
    /// Links that died although the peer lives, in a run over several links.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dead_links: Vec<DeadLink>,
    /// The core to which the node is bound, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<u16>,
}

/// A link of a node that died although the peer lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLink {
    /// Name of the link.
    pub link: String,
    /// The peer.
    pub peer: NodeId,
    /// The reason, for people.
    pub reason: String,
}

/// What a readout unit holds at present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BufferFill {
    /// Events requested or held; with blocks, blocks.
    pub events: u64,
    /// Payload bytes held.
    pub bytes: u64,
}

/// What a builder unit works on at present. With blocks, an event is a block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenCounts {
    /// Events under construction.
    pub building: u64,
    /// Built events that wait for filter units or for the storage.
    pub storing: u64,
    /// Events under construction that wait for the fragment of each readout unit, by source.
    pub lacking: Vec<u64>,
}

/// Faults by kind.
pub type Faults = BTreeMap<String, u64>;

/// The report of an event manager.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ManagerReport {
    /// Counts of the events by outcome.
    pub events: Events,
    /// Triggers that came. The offered rate is known to the driver.
    pub trigger: Trigger,
    /// The events that each builder has ended.
    pub of_builders: Vec<Events>,
    /// Time from trigger to stored.
    pub latency_us: Latency,
    /// The same as a distribution, in nanoseconds.
    #[serde(default)]
    pub latency_ns: Distribution,
    /// Faults by kind.
    pub faults: Faults,
    /// The clocks of the readout units, where fragments are matched by time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<ClockRecord>,
    /// The counts over time by which a window is found.
    pub series: Series,
    /// What its driver knows.
    #[serde(flatten)]
    pub driver: DriverReport,
}

/// The report of a readout unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReadoutReport {
    /// The last event that the unit knows to be triggered.
    pub through: u64,
    /// Counts of its work.
    pub counts: evb_record::ReadoutRecord,
    /// Faults by kind.
    pub faults: Faults,
    /// How numbers and marks tell the events of its fragments, if its source is live and not the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<SourceIdentity>,
    /// Findings about its source.
    pub findings: Vec<Finding>,
    /// The bytes sent.
    pub series: Series,
    /// What it holds at present.
    #[serde(default)]
    pub held: BufferFill,
    /// The time slots of its traffic shaping.
    #[serde(default)]
    pub slots: Slots,
    /// Longest time by which its clock can differ from that of the event manager, if it sends by the clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_error: Option<Span>,
    /// What its driver knows.
    #[serde(flatten)]
    pub driver: DriverReport,
}

/// How the numbers and marks of a live source tell the events of its fragments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceIdentity {
    /// The first and the last counter that came.
    pub counters: Option<(u64, u64)>,
    /// The number of mismatched fragments in the run up to which its events are proved; `None` if nothing proves them.
    pub tolerated_mismatches: Option<u64>,
}

/// The report of a builder unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BuilderReport {
    /// Counts of its work.
    pub counts: evb_record::BuilderRecord,
    /// Faults by kind.
    pub faults: Faults,
    /// Faults by the number of their source. If very many have faults, only the first are here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<u16, Faults>,
    /// Findings about its events.
    pub findings: Vec<Finding>,
    /// The selection of its events; none without filters.
    pub filter: Option<Box<Filtering>>,
    /// The bytes and the fragments received.
    pub series: Series,
    /// What it works on at present.
    #[serde(default)]
    pub open: OpenCounts,
    /// Sizes of the fragments that it received, and of its built events.
    #[serde(default)]
    pub sizes: Sizes,
    /// The histograms of its events, in the order of the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histograms: Vec<Histogram>,
    /// What its driver knows.
    #[serde(flatten)]
    pub driver: DriverReport,
}

impl ManagerReport {
    /// The counts of events.
    pub(crate) fn of(counts: &ManagerCounts) -> Self {
        let events = Events {
            triggered: counts.triggered,
            built: counts.built,
            incomplete: counts.incomplete,
            rejected: counts.rejected,
            lost: counts.open(),
            reassigned: counts.reassigned,
        };
        let trigger = Trigger {
            offered: counts.triggered + counts.inhibited,
            offered_rate_hz: None,
            inhibited: counts.inhibited,
            switched: 0,
            inhibitions: counts.inhibitions,
            slots: 0.0,
            block: 0.0,
        };
        Self { events, trigger, faults: faults(&counts.faults), ..Self::default() }
    }
}

impl ReadoutReport {
    /// The counts of the machine.
    pub(crate) fn of(counts: &ReadoutCounts) -> Self {
        let of_unit = evb_record::ReadoutRecord {
            came: counts.came,
            apart: counts.apart,
            waiting: 0,
            apart_by_reason: BTreeMap::new(),
            apart_files: Vec::new(),
            apart_unstored: 0,
            source_id: None,
            fragments: counts.fragments,
            bytes: counts.bytes,
            sent: counts.sent,
            sent_bytes: counts.sent_bytes,
            repeated: counts.repeated,
            busy: counts.busy,
            most_events: counts.most_events,
            most_bytes: counts.most_bytes,
            rejected: 0,
            faults: BTreeMap::new(),
            clock: None,
            source: None,
        };
        Self { through: counts.through.0, counts: of_unit, faults: faults(&counts.faults), ..Self::default() }
    }
}

impl BuilderReport {
    /// The counts and findings of the machine.
    pub(crate) fn of(counts: &BuilderCounts, mismatches: &[Mismatch]) -> Self {
        let of_unit = evb_record::BuilderRecord {
            built: counts.built,
            incomplete: counts.incomplete,
            rejected: counts.rejected,
            fragments: counts.fragments,
            bytes: counts.bytes,
            asked: counts.asked,
            repeated: counts.repeated,
            ..evb_record::BuilderRecord::default()
        };
        let findings = mismatches.iter().map(tell).collect();
        Self { counts: of_unit, faults: faults(&counts.faults), findings, ..Self::default() }
    }
}

/// The counts as a table by name.
pub(crate) fn faults(counts: &FaultCounts) -> Faults {
    counts.seen().map(|(fault, count)| (fault.name().to_owned(), count)).collect()
}

/// Largest difference of marks that looks like one clock that is read at slightly different times.
const NEAR: u32 = 8;

/// A mismatch as a finding.
fn tell(mismatch: &Mismatch) -> Finding {
    let Mismatch { event, expected: (one, expected), found: (other, found) } = *mismatch;
    let message = format!("event {event}: ru{other} says {found} where ru{one} says {expected}");
    let finding = Finding::new(FindingKind::Mismatch, format!("ru{other}"), message);
    match expected.value().abs_diff(found.value()) {
        near @ 1..=NEAR => {
            finding.hint(format!("if the marks are values of a clock: `readout.mark_tolerance = {near}`?"))
        }
        _ => finding,
    }
}
