//! The fields of simulations: the network and its counts.

use crate::{Background, Connections, Dip, Timeline, is_zero};
use serde::{Deserialize, Serialize};

/// Fields of simulations only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Simulation {
    /// Elapsed real time of the simulation, in seconds. It is the only number that differs between two equal
    /// simulations.
    pub wall_seconds: f64,
    /// Packets sent, from the start.
    pub packets: u64,
    /// Links taken by all packets, from the start.
    pub packet_hops: u64,
    /// Part of the full performance of all destinations that was reached. It is the time that packets with payload and
    /// their overheads need on the wire, as far as they do not overlap, divided by the time of the window. Padding does
    /// not count; at most 1.
    pub efficiency: f64,
    /// The same without packets of messages that were lost, of events that did not become complete, and of second copies;
    /// `None` in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput_efficiency: Option<f64>,
    /// The warm-up of the experiment file, in seconds, 0 without one.
    pub warmup_seconds: f64,
    /// Background traffic, in the order of the experiment file. The packets, the network and its links count it, too; all other
    /// fields are of the workload alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<Background>,
    /// The processors; `None` if the experiment describes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuRecord>,
    /// The network and its counts.
    pub network: Network,
}

/// The processors of the computers that carry the nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuRecord {
    /// Cores of all computers.
    pub cores: u64,
    /// Threads that carry nodes.
    pub workers: Vec<WorkerRecord>,
    /// The work of all of them, by item.
    pub work: Vec<WorkRecord>,
    /// Per cent by which simulated event rates differ from real ones where the costs were fitted, of nine in ten at most;
    /// `None` if they were not fitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit_error_percent: Option<f64>,
}

/// A thread that carries nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerRecord {
    /// Names of its nodes; `bu0.writer` and `bu0.filter1` for what works beside a builder.
    pub nodes: Vec<String>,
    /// Part of the time for which it worked, from 0 to 1. Polls that find nothing are no work.
    pub load: f64,
}

/// Work of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkRecord {
    /// The key of its cost in `network.cpu`.
    pub item: String,
    /// Pieces or bytes.
    pub count: u64,
    /// Time of all of them, in seconds.
    pub spent_seconds: f64,
}

/// A simulated network and its counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// The preset of the network.
    pub preset: String,
    /// The topology.
    pub topology: String,
    /// The routing of packets.
    pub routing: String,
    /// The flow control: the fate of packets that cannot move.
    pub flow: String,
    /// Number of places for hosts.
    pub hosts: u64,
    /// Packets dropped because a queue was full, or because no route was left.
    pub lost_packets: u64,
    /// Packets discarded by their receivers because a fault had corrupted them.
    pub corrupted_packets: u64,
    /// Copies of packets that came to hosts that they were not for (learning bridges).
    #[serde(default)]
    pub flooded_packets: u64,
    /// Packets in the network when the simulation ended.
    pub packets_left: u64,
    /// Number of times a pair of hosts changed its route because a packet was blocked (dispersive routing).
    pub route_changes: u64,
    /// Links in a circle of waiting, each of which waits for the next; empty without a deadlock.
    pub deadlock: Vec<String>,
    /// The work of the mappers; `None` where routes are known without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapping: Option<Mapping>,
    /// The faults of the experiment file that took effect, in their order in time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<NetworkFault>,
    /// The rate over time; `None` without a fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// The connections that carried the messages; `None` without a transport.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<Connections>,
    /// Counts of each link.
    pub links: Vec<LinkRecord>,
}

/// The work of the mappers of a source-routed network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mapping {
    /// Messages that mappers sent.
    pub messages: u64,
    /// How often a mapper began to lead, as far as it knew.
    pub elections: u64,
    /// How often a mapper began to explore the network.
    pub surveys: u64,
    /// The maps that hosts got, in the order of their making.
    pub maps: Vec<KnownMap>,
}

/// A map that hosts got.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KnownMap {
    /// The port of a host whose mapper made it.
    pub leader: String,
    /// Time at which it was made, in seconds after the start.
    pub made_s: f64,
    /// Time at which the last port of a host got it, in seconds after the start.
    pub known_s: f64,
    /// Ports of hosts that got it.
    pub known_to: u64,
    /// Switches on it.
    pub switches: u64,
    /// Ports of hosts on it.
    pub hosts: u64,
    /// Cables between switches on it.
    pub cables: u64,
}

/// Counts of one direction of a link during the measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkRecord {
    /// Name of the link: its start and its end.
    pub name: String,
    /// Packets over the link.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// Those of background traffic.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub background_bytes: u64,
    /// Part of the time in which bytes moved.
    pub used: f64,
    /// Part of the time in which a packet stood on the link and could not move.
    pub blocked: f64,
    /// Mean time that a packet waited for the link, in microseconds.
    pub mean_wait_us: f64,
    /// Most packets that waited for the link at once.
    pub most_waiting: u64,
    /// Most bytes in the link's queue (store and forward), or in one buffer at its end (cut-through).
    pub most_bytes: u64,
    /// Packets dropped because the link's queue was full.
    pub dropped: u64,
    /// Packets that were marked because the link's queue was long.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub marked: u64,
    /// Packets that were cut to their headers because the link's queue was full.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub trimmed: u64,
    /// Number of times the link's receiver asked for a pause.
    pub pauses: u64,
    /// Most bytes in the headroom of the link's receiver: what came after it had asked for a pause.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub most_headroom_bytes: u64,
    /// Packets dropped because the link's receiver had asked for a pause and had no headroom for them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ingress_dropped: u64,
    /// Part of the time in which the link's sender obeyed a pause, of any priority.
    #[serde(default, skip_serializing_if = "is_none_of_it")]
    pub paused: f64,
    /// How far pauses spread: most pauses in a row of which each follows from the next one, from that of the link's receiver on.
    /// With 1 the receiver itself was the cause.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pause_chain: u64,
    /// Number of times that the link's watchdog acted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub storms: u64,
    /// Packets dropped by a watchdog: those for the link, and those that came over the link while the watchdog of its other
    /// direction dropped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub watchdog_dropped: u64,
}

fn is_none_of_it(part: &f64) -> bool {
    *part == 0.0
}

/// A fault of a link or switch that took effect, and what came of it until the next fault or the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkFault {
    /// The link or switch.
    pub target: String,
    /// `fail`, `slow`, `corrupt` or `pause`.
    pub action: String,
    /// Time of the fault, in seconds after the start.
    pub at_s: f64,
    /// Time of its end, in seconds after the start; `None` if it stayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_s: Option<f64>,
    /// Time from which routes without the failed element were used, in seconds after the start; `None` if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerouted_s: Option<f64>,
    /// Packets that waited for the failed element and took another route.
    #[serde(default)]
    pub rerouted_packets: u64,
    /// Packets lost, or discarded because they were corrupted.
    #[serde(default)]
    pub lost_packets: u64,
    /// Nodes that can send nothing, or receive nothing, because of the fault.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut_off: Vec<String>,
    /// The rate before and after the fault; `None` if too few events or messages ended before it to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dip: Option<Dip>,
}
