//! The memory that the nodes of a plan may take for events, from the limits that the code itself keeps.

use crate::{filter, worker_pool::queue_length};
use bytes::Bytes;
use evb_events::{MAX_EVENTS_PER_FILE, WRITER_BUFFER_BYTES};
use evb_experiment::{Keep, Plan};
use evb_filter::Memory;
use evb_protocol::{Config, Fragment, ManagerMachine, ReadoutMachine};
use evb_sources::SourceSpec;
use evb_transport::MemoryOfNode;
use evb_transport_registry::TransportChoice;

/// Bytes per event in the index that a writer keeps of its file: number and place.
const INDEX_BYTES: u64 = 16;

/// Largest memory of one node, in bytes, without its program, its stacks and the reserve of the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeMemory {
    /// Fragments, lists of events, and data on its way into a file.
    pub events: u64,
    /// Messages on their way, except references to fragments that a readout unit holds.
    pub transport: u64,
}

impl NodeMemory {
    /// The sum of both.
    pub const fn total(self) -> u64 {
        self.events.saturating_add(self.transport)
    }
}

/// Largest memory of each kind of node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBound {
    /// The event manager.
    pub event_manager: NodeMemory,
    /// One readout unit.
    pub readout_unit: NodeMemory,
    /// One builder unit.
    pub builder_unit: NodeMemory,
    readout_units: u64,
    builder_units: u64,
}

impl MemoryBound {
    /// The bound of a plan that builds events. This machine is not asked for anything.
    pub fn of(plan: &Plan) -> Self {
        let (config, transport) = (&plan.building, transport(plan));
        let node = |events| NodeMemory { events, transport };
        Self {
            event_manager: node(listed(config, ManagerMachine::<Bytes>::EVENT_BYTES) + matcher(config)),
            readout_unit: node(
                config.most_buffered().0
                    + listed(config, ReadoutMachine::<Bytes>::EVENT_BYTES)
                    + unmatched(config)
                    + set_apart(plan)
                    + live(plan),
            ),
            builder_unit: node(
                under_construction(plan)
                    .saturating_add(writer(plan))
                    .saturating_add(filter_units(plan))
                    .saturating_add(histograms(plan)),
            ),
            readout_units: config.readout_units.into(),
            builder_units: config.builder_units.into(),
        }
    }

    /// The sum of all nodes: the memory of a machine that carries them all.
    pub const fn total(&self) -> u64 {
        let readouts = self.readout_unit.total().saturating_mul(self.readout_units);
        let builders = self.builder_unit.total().saturating_mul(self.builder_units);
        self.event_manager.total().saturating_add(readouts).saturating_add(builders)
    }
}

/// A list of the events between the oldest open one and the newest.
fn listed(config: &Config, bytes: usize) -> u64 {
    // Lists grow to powers of two.
    ((Config::SPAN_FACTOR + 1) * config.buffer_events as usize).next_power_of_two() as u64 * bytes as u64
}

/// The matching of fragments by time.
fn matcher(config: &Config) -> u64 {
    config.coincidence.as_ref().map_or(0, |coincidence| coincidence.memory_bytes(config.buffer_events.into()))
}

/// The fragments that wait for the answer of the matching.
fn unmatched(config: &Config) -> u64 {
    let most = u64::from(config.buffer_events).next_power_of_two();
    if config.coincidence.is_some() { most * ReadoutMachine::<Bytes>::ARRIVAL_BYTES as u64 } else { 0 }
}

/// Events of all slots, under construction or waiting to be stored.
fn under_construction(plan: &Plan) -> u64 {
    let config = &plan.building;
    // The oldest event of all needs no slot.
    let fragments = (u64::from(config.builder_slots) + 1) * u64::from(config.readout_units);
    // Threads have the fragments by reference, and the readout units count them.
    let payload = if plan.transport.info().is_one_process() { 0 } else { config.max_fragment.0 };
    let of_units = fragments.saturating_mul(payload + size_of::<Option<Fragment<Bytes>>>() as u64);
    // Bundles are split when their event is stored.
    let split = match plan.bundling.is_plain() {
        true => 0,
        false => {
            u64::from(plan.bundling.sources(config.readout_units))
                * u64::from(plan.bundling.largest_block())
                * u64::from(config.builder_slots)
        }
    };
    of_units.saturating_add(split.saturating_mul(size_of::<Option<Fragment<Bytes>>>() as u64))
}

/// The histograms that are filled, and those in the last report.
fn histograms(plan: &Plan) -> u64 {
    plan.histograms.iter().map(|histogram| 2 * u64::from(histogram.bins) * size_of::<u64>() as u64).sum()
}

/// The memory in which filter units read events.
fn filter_units(plan: &Plan) -> u64 {
    plan.filter.units.as_ref().map_or(0, |units| match filter::memory(plan, units) {
        Memory::Area(bytes) => bytes.saturating_mul(units.units.into()),
        Memory::Pipe => 0,
    })
}

/// The buffer of a writer, and its list of the events of a file.
fn writer(plan: &Plan) -> u64 {
    match plan.storage.keep {
        Keep::None => 0,
        Keep::All | Keep::OneIn(_) => WRITER_BUFFER_BYTES as u64 + MAX_EVENTS_PER_FILE as u64 * INDEX_BYTES,
    }
}

/// The fragments of a live source that belong to no event, on their way to their file, and the buffer of its writer.
fn set_apart(plan: &Plan) -> u64 {
    let is_stored = plan.storage.apart.0 > 0 && plan.sources.iter().any(|spec| spec.live().is_some());
    if is_stored { plan.building.most_buffered().0 + writer(plan) } else { 0 }
}

/// The largest live source: what it has read and its unit has not taken, and the blocks that it keeps to read into them again.
fn live(plan: &Plan) -> u64 {
    let max_fragment = u32::try_from(plan.max_fragment().0).unwrap_or(u32::MAX);
    let lives = plan.sources.iter().filter_map(SourceSpec::live);
    lives.map(|live| live.most_memory(max_fragment)).max().unwrap_or(0)
}

/// Largest memory of a node's transports for all its peers.
fn transport(plan: &Plan) -> u64 {
    let of_one = |transport: &TransportChoice| {
        let MemoryOfNode { own, for_each_peer } = (transport.info().memory)(queue_length(plan));
        own as u64 + for_each_peer as u64 * u64::from(plan.building.nodes() - 1)
    };
    [Some(&plan.transport), plan.control.as_ref()].into_iter().flatten().map(of_one).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use evb_experiment::Experiment;

    const FILE: &str = r#"
[trigger]
type = "free-running"
events = 100
[readout]
units = 3
source = { type = "fixed", size = "1 KiB" }
max_fragment = "64 KiB"
buffer_bytes = "8 MiB"
[builder]
units = 2
slots = 100
"#;

    fn bound(set: &[&str]) -> MemoryBound {
        let set: Vec<_> = set.iter().map(|&set| set.to_owned()).collect();
        let experiment = Experiment::parse(FILE, "test.toml", &set).unwrap_or_else(|error| panic!("{error:?}"));
        MemoryBound::of(&experiment.plans()[0])
    }

    #[test]
    fn what_a_key_bounds_is_in_the_bound() {
        let processes = bound(&["transport.type=shm"]);
        assert!(processes.readout_unit.events > (8 << 20) + 2 * (64 << 10));
        assert!(processes.builder_unit.events > 100 * 3 * (64 << 10));
        assert_eq!(processes.event_manager.transport, (32 << 20) + 5 * (256 << 10));
        let more = bound(&["transport.type=shm", "builder.slots=101"]);
        assert!(more.builder_unit.events - processes.builder_unit.events > 3 * (64 << 10));
        let larger = bound(&["transport.type=shm", "readout.buffer_bytes=\"9 MiB\""]);
        assert_eq!(larger.total() - processes.total(), 3 << 20, "one more for each readout unit");
    }

    /// A live source holds what its unit has not taken, and keeps blocks for each connection.
    #[test]
    fn live_sources_are_in_the_bound() {
        let of = |source: &str| {
            let text = format!(
                "[trigger]\ntype = \"data\"\n[readout]\nunits = 1\nsource = {{ {source} }}\n[builder]\nunits = 1\n"
            );
            let experiment = Experiment::parse(&text, "test.toml", &[]).unwrap_or_else(|error| panic!("{error:?}"));
            let plan = &experiment.plans()[0];
            let live = plan.sources[0].live().expect("a live source").most_memory(plan.max_fragment().0 as u32);
            (MemoryBound::of(plan).readout_unit.events, live)
        };
        let (client, of_client) = of("type = \"tcp-client\", connect = \"a:1\"");
        let (listening, of_listening) = of("type = \"tcp\", listen = \"a:1\"");
        assert!(of_client > 96 << 20 && of_listening > 16 * (32 << 20), "{of_client} {of_listening}");
        assert_eq!(listening - client, of_listening - of_client);
    }

    #[test]
    fn filter_units_have_memory_for_their_events() {
        let of = |set: &[&str]| bound(&[&["filter.program=[\"x\"]"][..], set].concat()).builder_unit.events;
        let each = of(&["filter.units=3"]) - of(&["filter.units=2"]);
        assert!((3 * 16 * (64 << 10)..4 * 16 * (64 << 10)).contains(&each), "{each}");
        let larger = of(&["readout.max_fragment=\"8 MiB\"", "readout.buffer_bytes=\"80 MiB\""]);
        assert!(larger < (60 << 20), "a few of the largest events: {larger}");
    }

    #[test]
    fn threads_hold_each_fragment_once_and_nothing_kept_needs_no_writer() {
        let threads = bound(&[]);
        assert!(threads.builder_unit.total() < 20 << 20, "{threads:?}");
        assert!(bound(&["storage.keep=none"]).builder_unit.events < 1 << 20);
    }
}
