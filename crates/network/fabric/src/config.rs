//! The typed description of a network; the experiment file resolves to it.

use crate::{EndpointId, LaneWeights};
use evb_connection::Transport;
use evb_core::{Bandwidth, ByteCount, Span};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A whole network: its topology and the behaviour of its parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkConfig {
    /// The preset of the values; empty without one.
    #[serde(default)]
    pub preset: String,
    /// The switches and links.
    pub topology: Topology,
    /// The default for every link.
    pub link: LinkConfig,
    /// Hosts whose cables differ from `link`; no host twice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_links: Vec<HostLinks>,
    /// The behaviour of every switch.
    pub switch: SwitchConfig,
    /// The flow control: the fate of a packet that cannot move.
    pub flow: Flow,
    /// The routing of packets.
    pub routing: Routing,
    /// The behaviour of every network interface.
    pub nic: NicConfig,
    /// The behaviour of every host.
    pub host: HostConfig,
    /// The network of control messages.
    pub control: Control,
    /// The connections that carry messages.
    #[serde(default, skip_serializing_if = "is_default")]
    pub transport: Transport,
}

/// Switches and links. Hosts are numbered in the order of their switches.
///
/// With `nic.ports` ports per host, the hosts come in blocks: in one block, the first ports are on one switch, the
/// second ports on the next switch, and so on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Topology {
    /// One switch with all hosts.
    Crossbar {
        /// Number of ports, one per port of a host.
        ports: u16,
    },
    /// Two layers: every leaf has `links` links to every spine. A composite of crossbars is a Clos network, too.
    Clos {
        /// Number of leaf switches.
        leaves: u16,
        /// Ports for hosts on each leaf.
        ports_per_leaf: u16,
        /// Number of spine switches.
        spines: u16,
        /// Parallel links between each leaf and each spine.
        links: u16,
        /// Rate of the links between leaf and spine; that of all links by default.
        uplink: Option<Bandwidth>,
    },
    /// Three layers of switches with `radix` ports each: `radix` pods of `radix / 2` edge and as many aggregation
    /// switches, and `radix^2 / 4` core switches, for `radix^3 / 4` host ports.
    FatTree {
        /// Ports per switch, even.
        radix: u16,
    },
    /// A fat tree by its levels, from the hosts upwards: an extended generalised fat tree (XGFT: Öhring, Ibel, Das and Kumar,
    /// On Generalized Fat Trees, IPPS 1995), with parallel cables a parallel-port one (PGFT: Zahavi, JPDC 72, 2012; [`Spread`]
    /// has the title). It has as many ports of hosts as the product of `down` over all levels.
    FatTreeLevels {
        /// Two to four levels of switches; the first one has the hosts.
        levels: Vec<TreeLevel>,
    },
    /// A k-ary n-fly: `stages` stages of crossbars with `radix` inputs and outputs; hosts send into the first stage and
    /// receive from the last. Only one route leads from one host to another.
    Butterfly {
        /// Inputs, and outputs, of one crossbar.
        radix: u16,
        /// Number of stages.
        stages: u16,
    },
    /// Switches in rows, columns and layers, linked to their neighbours.
    Grid {
        /// Switches in a row.
        width: u16,
        /// Switches in a column.
        height: u16,
        /// Layers of rows and columns; 1 in a plane.
        #[serde(default = "one_layer", skip_serializing_if = "is_one_layer")]
        depth: u16,
        /// Ports for hosts on each switch.
        terminals: u16,
        /// Parallel links between neighbours.
        links: u16,
    },
    /// A grid whose lines of switches are closed to rings in each dimension.
    Torus {
        /// Switches in a row.
        width: u16,
        /// Switches in a column.
        height: u16,
        /// Layers of rows and columns; 1 in a plane.
        #[serde(default = "one_layer", skip_serializing_if = "is_one_layer")]
        depth: u16,
        /// Ports for hosts on each switch.
        terminals: u16,
        /// Parallel links between neighbours.
        links: u16,
    },
    /// Groups of switches: each switch is joined to all others of its group, and each group to all others (Kim, Dally, Scott and
    /// Abts, Technology-Driven, Highly-Scalable Dragonfly Topology, ISCA 2008).
    Dragonfly {
        /// Number of groups.
        groups: u16,
        /// Switches in a group.
        routers: u16,
        /// Ports for hosts on each switch.
        terminals: u16,
        /// Links of each switch to other groups. All groups are joined by the same number of links, as many as there are.
        global: u16,
        /// Rate of the links between groups; that of all links by default.
        global_rate: Option<Bandwidth>,
        /// Delay of the links between groups; that of all links by default.
        global_delay: Option<Span>,
    },
    /// Groups of leaves and spines: every leaf is joined to all spines of its group, and each group to all others, by links
    /// between spines (Shpiner, Haramaty, Eliad, Zdornov, Gafni and Zahavi, Dragonfly+: Low Cost Topology for Scaling
    /// Datacenters, HiPINEB 2017).
    DragonflyPlus {
        /// Number of groups.
        groups: u16,
        /// Leaves in a group.
        leaves: u16,
        /// Spines in a group.
        spines: u16,
        /// Ports for hosts on each leaf.
        terminals: u16,
        /// Links of each spine to other groups. All groups are joined by the same number of links, as many as there are.
        global: u16,
        /// Rate of the links between groups; that of all links by default.
        global_rate: Option<Bandwidth>,
        /// Delay of the links between groups; that of all links by default.
        global_delay: Option<Span>,
    },
    /// Switches in up to three dimensions, each joined to all others that differ from it in one coordinate (Ahn, Binkert, Davis,
    /// McLaren and Schreiber, HyperX: Topology, Routing, and Packaging of Efficient Large-Scale Networks, SC 2009). With equal
    /// sizes it is a flattened butterfly (Kim, Dally and Abts, ISCA 2007).
    #[serde(rename = "hyperx")]
    HyperX {
        /// Switches along each dimension.
        sizes: Vec<u16>,
        /// Ports for hosts on each switch.
        terminals: u16,
        /// Parallel links between two neighbours, for each dimension.
        links: Vec<u16>,
    },
    /// A root switch and leaves below it, each joined to the root by a trunk.
    Tree {
        /// Number of leaf switches.
        leaves: u16,
        /// Ports for hosts on each leaf.
        ports_per_leaf: u16,
        /// Parallel links from each leaf to the root.
        trunk: u16,
        /// Rate of each of these links; that of all links by default.
        uplink: Option<Bandwidth>,
    },
    /// A network that the user lists.
    Explicit {
        /// Names of the switches.
        switches: Vec<String>,
        /// Links. An end is the name of a switch, or `h0`, `h1`, ... for the ports of hosts, in order.
        links: Vec<ExplicitLink>,
    },
    /// A fabric as its subnet manager knows it, read by [`SubnetFiles`](crate::SubnetFiles).
    Infiniband {
        /// The switches, with their forwarding tables.
        switches: Vec<SubnetSwitch>,
        /// The cable of each port of a host, in order.
        hosts: Vec<SubnetHostCable>,
        /// The cables between switches.
        cables: Vec<SubnetCable>,
    },
}

/// The switches of one level of a fat tree, all alike, and the cables to the level above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeLevel {
    /// Switches of the level below that each switch is joined to; ports of hosts at the first level.
    pub down: u16,
    /// Switches of the level above that each switch is joined to; 0 at the highest level.
    pub up: u16,
    /// Parallel cables to each of these; 1 at the highest level.
    pub links: u16,
    /// Rate of these cables; that of all links by default.
    pub rate: Option<Bandwidth>,
    /// Delay of these cables; that of all links by default.
    pub delay: Option<Span>,
}

/// The layers of a grid in a plane.
fn one_layer() -> u16 {
    1
}

/// Returns true if a grid is in a plane.
fn is_one_layer(depth: &u16) -> bool {
    *depth == 1
}

/// One or several parallel cables, each a link in both directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExplicitLink {
    /// The two ends.
    pub ends: [String; 2],
    /// Number of parallel links.
    pub count: u16,
    /// Rate of each; that of all links by default.
    pub rate: Option<Bandwidth>,
    /// Delay of each; that of all links by default.
    pub delay: Option<Span>,
    /// Marks in the queues of each; those of all switches by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marking: Option<Marking>,
}

/// A switch of a fabric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubnetSwitch {
    /// Its name.
    pub name: String,
    /// The forwarding table: for each port of a host the place of a port among those of the switch that have a cable, or
    /// [`NO_OUTPUT`](Self::NO_OUTPUT). It is empty if the tables are not known.
    pub table: Vec<u8>,
}

/// The cable from a port of a host to a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubnetHostCable {
    /// The index of the switch.
    pub switch: u16,
    /// The number of its port.
    pub port: u8,
    /// Data rate of each direction, unless the host has one of its own ([`HostLinks`]).
    pub rate: Bandwidth,
}

/// A cable between two switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubnetCable {
    /// The indices of the switches.
    pub switches: [u16; 2],
    /// The numbers of their ports.
    pub ports: [u8; 2],
    /// Data rate of each direction.
    pub rate: Bandwidth,
}

impl SubnetSwitch {
    /// No packet for the host comes to the switch.
    pub const NO_OUTPUT: u8 = u8::MAX;
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkConfig {
    /// Data rate.
    pub rate: Bandwidth,
    /// Time from the end of sending a byte to its arrival: cable and transceivers.
    pub delay: Span,
}

/// The cables of some hosts, where they differ from the other links: from every port of a host to its switch, and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostLinks {
    /// The first host.
    pub first: u16,
    /// Number of hosts, at least 1.
    pub count: u16,
    /// Rate of each cable; that of all links by default.
    pub rate: Option<Bandwidth>,
    /// Delay of each cable; that of all links by default.
    pub delay: Option<Span>,
}

/// A switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SwitchConfig {
    /// Time from the arrival of a packet's head at the front of its input buffer to its request for an output.
    pub delay: Span,
    /// The order of packets at an output.
    pub arbitration: Arbitration,
    /// Marks on packets that find a long queue; none without it (store and forward).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marking: Option<Marking>,
    /// The memory that all queues of the switch share; each has its own without it (store and forward).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<SharedMemory>,
    /// A packet of a connection that does not fit into a queue is cut to its header, which goes on with the highest priority
    /// (Handley et al., Re-architecting datacenter networks and stacks for low latency and high performance, SIGCOMM 2017;
    /// Ultra Ethernet Specification 1.0). Otherwise it is dropped.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub trimming: bool,
    /// Names of the switches that cut through, a `*` at the end for any ending; the others store whole packets. Without it all
    /// do as the flow says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_through: Option<Vec<String>>,
    /// The arbitration of each link between virtual channels, before that between inputs. Without it higher priorities go first
    /// where channels are those of priorities, and otherwise all channels count as inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lanes: Option<LaneWeights>,
}

/// Explicit congestion notification: the probability of a mark on a packet that comes into a queue (RFC 3168), which grows
/// from 0 at `low` to `most` at `high` bytes, and is 1 above (RED: Floyd and Jacobson, IEEE/ACM Transactions on
/// Networking 1, 1993, without averaging). With `low` and `high` equal it is a step (DCTCP).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Marking {
    /// Bytes of the queue up to which no packet is marked.
    pub low: ByteCount,
    /// Bytes of the queue above which all are.
    pub high: ByteCount,
    /// Probability of a mark at `high` bytes.
    pub most: f64,
}

/// Memory that the queues of a switch share by a dynamic threshold: a queue takes a packet if it stays within `alpha` times
/// the free memory (Choudhury and Hahne, Dynamic queue length thresholds for shared-memory packet switches, IEEE/ACM
/// Transactions on Networking 6, 1998), or within `least`.
///
/// Where full queues drop, these are the queues of outputs. Where senders pause, memory is counted for each input, and for each
/// priority in pauses by priority: what is beyond the threshold goes into the headroom, and the input asks for a pause (XOFF).
/// That ends (XON) when the headroom is empty, and the rest `xon_offset` below the threshold, or within `least` (the switch of
/// the simulator of HPCC: Li et al., SIGCOMM 2019; pool, profile and headroom of SONiC).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SharedMemory {
    /// Bytes that all queues of a switch share, or with pauses all its inputs; the headroom is beside them.
    pub size: ByteCount,
    /// The part of the free memory that one queue, or input, may take, a factor.
    pub alpha: f64,
    /// Bytes that each queue, or input, has for itself, beside the shared ones.
    pub least: ByteCount,
    /// Bytes below the threshold at which a pause ends; [`XON_OFFSET`](Self::XON_OFFSET) without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xon_offset: Option<ByteCount>,
}

/// The order of packets at an output for which several inputs wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arbitration {
    /// The inputs in turn.
    RoundRobin,
    /// One of the waiting inputs, drawn at random.
    Random,
    /// The input that has waited longest.
    Oldest,
    /// The input that got any output of the switch the longest time ago.
    LeastRecent,
    /// Each input has a queue for each output, and sends one packet at a time. Free outputs grant one input each, in turn, and
    /// each input accepts one of them, in turn, until nothing can be matched any more (McKeown, The iSLIP Scheduling Algorithm
    /// for Input-Queued Switches, IEEE/ACM Transactions on Networking 7, 1999).
    Islip,
}

/// The flow control: the fate of a packet that cannot move.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Flow {
    /// Wormhole with STOP/GO or byte credits: a stalled packet occupies all the links behind its head, with a few bytes
    /// in the slack buffer of each input.
    Wormhole {
        /// Bytes of one worm that an input can buffer.
        slack: ByteCount,
        /// Time from a byte leaving the buffer to the sender knowing it.
        reaction: Span,
    },
    /// Virtual cut-through with credits: a packet moves on only when the next buffer has room for all of it, and its
    /// head does not wait for its tail.
    CutThrough {
        /// Bytes of each input buffer, for each virtual channel.
        buffer: ByteCount,
        /// Time from a packet having left the buffer to the sender knowing it.
        reaction: Span,
        /// Virtual channels of each link.
        virtual_channels: u8,
        /// The virtual channel that a packet takes on a link.
        #[serde(default, skip_serializing_if = "is_default")]
        channel: ChannelRule,
    },
    /// Store and forward: a switch receives a whole packet, then puts it into the queue of its output.
    StoreAndForward {
        /// Bytes of each output queue (`drop`), or of the packets from one input that a switch holds before it asks the
        /// sender to pause.
        queue: ByteCount,
        /// The behaviour of a full queue.
        full: WhenFull,
        /// Time from the queue filling or emptying to the sender obeying.
        reaction: Span,
        /// Priorities, each with its own queues; control messages have the highest.
        priorities: u8,
        /// Bytes that an input, of each priority in pauses by priority, has room for after it has asked its sender to pause;
        /// [`NetworkConfig::headroom_for`] its cable without it. What finds no room is lost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        headroom: Option<ByteCount>,
        /// The watchdog of each output of a switch, against receivers that pause without end; none without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        watchdog: Option<Watchdog>,
    },
}

/// A watchdog against pause storms, as the PFC watchdog of SONiC (sonic-mgmt, docs/pfcwd): it looks after each output of a
/// switch, and each priority in pauses by priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watchdog {
    /// Length of a pause after which it acts.
    pub detection: Span,
    /// Time without a pause after which all is as before.
    pub restoration: Span,
    /// What it does meanwhile.
    pub action: WatchdogAction,
}

/// What a watchdog does with an output that is paused for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WatchdogAction {
    /// What waits for the output is lost, and what comes for it, or from its receiver.
    Drop,
    /// The output does not obey pauses.
    Forward,
}

/// The rule by which a packet takes a virtual channel of a link. Numbers beyond the last channel mean the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChannelRule {
    /// [`Dateline`](Self::Dateline) in a torus, [`Hop`](Self::Hop) in a dragonfly, a dragonfly+, a HyperX or a listed network,
    /// and [`Destination`](Self::Destination) in the others, which have no rings to break.
    #[default]
    Topology,
    /// The first channel in each dimension, and the next one from the link on that closes a ring.
    Dateline,
    /// The first channel on the first link between switches, and the next one on each further link. With a channel for
    /// each of these links no packets wait for each other in a ring, whatever the topology (Günther, IEEE Transactions on
    /// Communications 29, 1981).
    Hop,
    /// The channel with the number of the destination's port, modulo the number of channels, on the whole route.
    Destination,
    /// The channel with the number of the priority.
    Priority,
}

/// The behaviour of a store-and-forward switch whose queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenFull {
    /// Packets that do not fit are lost, and counted.
    Drop,
    /// The sender of the link pauses (IEEE 802.3x).
    Pause,
    /// The sender pauses traffic of the same priority (IEEE 802.1Qbb).
    PriorityPause,
}

/// The routing of packets. All routings but dimension order, `SpanningTree` and
/// `Learning` use every route with the fewest hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Routing {
    /// One route for each pair of ports, always the same.
    Fixed {
        /// The distribution of pairs over equal routes.
        spread: Spread,
    },
    /// A route drawn at random from the equal ones for each packet.
    Random,
    /// One route for each pair, which changes at random when its packets were blocked.
    Dispersive {
        /// Waiting time at a switch from which a packet counts as blocked.
        patience: Span,
        /// Consecutive blocked packets of a pair after which the pair takes another route, at least 1.
        after: u16,
        /// The ports of a host to which the routes from one port lead.
        #[serde(default, skip_serializing_if = "is_default")]
        rails: Rails,
        /// Routes that the pair probes then: it takes the first one that is free, and keeps its route if none is. With 0
        /// it takes any other route.
        #[serde(default, skip_serializing_if = "is_default")]
        probes: u16,
    },
    /// Any free link of the equal routes, at every switch.
    Adaptive,
    /// Over another group, drawn for each packet between two groups of a dragonfly or a dragonfly+; in a HyperX over another
    /// switch (Valiant, A Scheme for Fast Parallel Communication, SIAM Journal on Computing 11, 1982).
    Valiant,
    /// The minimal route, or that over another group, or switch, if the queue of its first link times its hops is shorter
    /// (UGAL-L: Singh, Load-Balanced Routing in Interconnection Networks, Stanford 2005).
    Ugal,
    /// Along the rows first, then along the columns, then through the layers; for grid, torus and HyperX, where each of
    /// these ways is one hop.
    DimensionOrder {
        /// The distribution of pairs over parallel links.
        spread: Spread,
        /// The direction where both ways round a ring are equal.
        #[serde(default, skip_serializing_if = "is_default")]
        ties: Ties,
    },
    /// Dimension order over any free one of parallel links; for grid, torus and HyperX.
    AdaptiveDimensionOrder,
    /// Along a tree of links only, as with learning bridges; parallel links count as one trunk.
    SpanningTree,
    /// Learning bridges (IEEE 802.1D): along a tree of links; to a host that a switch has not heard, over all branches.
    Learning {
        /// Time after which a switch forgets a host that sends nothing.
        age: Span,
    },
    /// Equal routes chosen by a hash over source, destination and message stream.
    Ecmp,
    /// Every switch keeps the packets of a flow, from one port of a host to another, on one of the equal links until none has come
    /// for a gap, and then chooses again (flowlets: Sinha, Kandula and Katabi, Harnessing TCP's Burstiness with Flowlet Switching,
    /// HotNets 2004).
    Flowlets {
        /// Silence of a flow at a switch after which its next packet may take another link, above 0.
        gap: Span,
        /// The link that a flow takes after the gap.
        choice: FlowletChoice,
    },
    /// By the forwarding tables of the switches; for a fabric that is known with them.
    Table,
}

/// The choice of a switch between equal links for a flow that was silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowletChoice {
    /// The link with the fewest bytes before it, and in the buffers behind it as far as its sender knows.
    ShortestQueue,
    /// Any link, drawn at random (LetFlow: Vanini, Pan, Alizadeh, Taheri and Edsall, Let It Flow: Resilient Asymmetric Load Balancing
    /// with Flowlet Switching, NSDI 2017).
    Random,
}

/// The direction of dimension order where both ways round a ring are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ties {
    /// Upwards from switches in even places and downwards from the others, so that both directions carry the same.
    #[default]
    Alternate,
    /// Upwards.
    Upward,
}

/// Returns true if a value is the default of its type.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The distribution of pairs of ports over equal routes.
///
/// In a tree all rules but `Pair` choose anew at each layer: the lowest switch by the number modulo its routes, each
/// layer above by the rest that the routes below have left (`number / stride % ways`, see
/// [`NetworkLink::stride`](crate::NetworkLink::stride)). So `Source` is S-mod-k and `Destination` is D-mod-k (Rodriguez
/// et al., Oblivious Routing Schemes in Extended Generalized Fat Tree Networks, CLUSTER 2009), under which a shift
/// permutation puts one pair at most on each link of a full fat tree (Zahavi, Fat-tree routing and node ordering
/// providing contention free traffic for MPI global collectives, JPDC 72, 2012).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// By the position of the source among all ports of hosts, in the order of the switches that they send to.
    Source,
    /// By the position of the destination among all ports of hosts, in the order of the switches that they receive
    /// from, as in the forwarding tables of a subnet manager.
    Destination,
    /// One route for each pair of switches; a switch uses its routes in turn for the other switches. A table of
    /// intervals of destinations does this if the ports of a switch are one interval (STC104 data sheet, interval
    /// labelling).
    Switch,
    /// Drawn at random for each pair, once for the whole run.
    Pair,
}

impl FlowletChoice {
    /// The usual [`gap`](Routing::Flowlets::gap): that of CONGA (Alizadeh et al., SIGCOMM 2014, section 3.6), for the queues of TCP.
    pub const USUAL_GAP: Span = Span::from_micros(500);
}

impl Routing {
    /// Returns true if a packet takes any free link of several.
    #[inline]
    pub fn is_adaptive(self) -> bool {
        matches!(self, Self::Adaptive | Self::AdaptiveDimensionOrder)
    }
}

/// A network interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NicConfig {
    /// Ports to the network; packets take any free one.
    pub ports: u8,
    /// Rate of the engine between the memory of the interface and the link, if it is below the rate of the link.
    pub rate: Option<Bandwidth>,
    /// Time that the interface needs for each packet before it sends it.
    pub overhead: Span,
    /// Largest payload of a packet: longer messages are cut.
    pub packet: ByteCount,
    /// Bytes of each packet on the wire beside its payload.
    pub header: ByteCount,
    /// Fewest bytes of a packet on the wire.
    pub minimum: ByteCount,
    /// Messages that are sent at once, their packets in turn.
    pub messages: u16,
    /// Fragments that wait in the interface beside the messages that are sent. Further ones wait in the readout unit, in
    /// the order in which they were requested.
    #[serde(default = "usual_queue", skip_serializing_if = "is_usual_queue")]
    pub queue: u16,
    /// The message of the next packet among the waiting messages.
    #[serde(default, skip_serializing_if = "is_default")]
    pub service: Service,
    /// True if the interface itself handles the messages by which a barrel shifter keeps step, and lets them overtake all
    /// others, as its firmware can. Otherwise the processor of the host does.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub keeps_step: bool,
    /// Access to the memory of the host; without it the interface never waits for memory.
    pub dma: Option<Dma>,
    /// Random time beside `overhead`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
}

/// A random time beside a fixed one: what interrupts, caches and schedulers add. Each host has a separate stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jitter {
    /// The mean time.
    pub mean: Span,
    /// The distribution of the times.
    pub spread: JitterSpread,
    /// How often a time is drawn.
    pub per: JitterPer,
}

/// The distribution of random times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JitterSpread {
    /// Exponential: the rms is the mean.
    Exponential,
    /// Log-normal, with the tail that its rms gives.
    LogNormal {
        /// Root mean square deviation from the mean.
        rms: Span,
    },
}

/// How often a random time is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JitterPer {
    /// Once for each message, before its last packet.
    Message,
    /// For each packet.
    Packet,
}

/// The connection of the ports of hosts with several ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rails {
    /// A packet arrives at the port with the number of the port that sent it.
    #[default]
    Separate,
    /// A packet arrives at any port of the host: the port is a part of the route.
    Joined,
}

/// The message of the next packet among the waiting messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// The messages that are sent at once take turns; the others wait in order.
    #[default]
    InTurn,
    /// Each peer has a queue. The peers take turns, and several are served at once, packet by packet.
    PeersInTurn,
}

/// Rates at which a network interface reads and writes the memory of its host; both share one bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dma {
    /// Rate of reading, for outgoing data.
    pub read: Bandwidth,
    /// Rate of writing, for incoming data.
    pub write: Bandwidth,
}

/// The cost of a message for the processor of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostConfig {
    /// Time to send one message.
    pub send: Span,
    /// Time to receive one message.
    pub receive: Span,
    /// Random time beside each of the two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
}

/// The network of control messages (all messages but fragments).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Control {
    /// Through the same network as the fragments.
    Shared,
    /// Through a separate network without contention.
    Separate {
        /// Time from sender to receiver, beside the length of the message.
        delay: Span,
        /// Rate of its links.
        rate: Bandwidth,
    },
}

/// A fault of the network at a given time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkFault {
    /// Name of a link (one direction), of a cable (both) or of a switch.
    pub target: String,
    /// Time after the start.
    pub at: Span,
    /// Time after the start at which all is as before; `None` if it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Span>,
    /// The kind of fault.
    pub action: NetworkFaultAction,
}

/// A kind of network fault.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "kebab-case")]
pub enum NetworkFaultAction {
    /// The target carries nothing any more. New routes without it are used after `reroute`.
    Fail {
        /// Time until the new routes are used.
        reroute: Span,
    },
    /// The target is slower by this factor (for a switch: all links that begin there).
    Slow {
        /// The factor, at least 1.
        factor: f64,
    },
    /// One in this many packets is corrupted, and discarded by its receiver.
    Corrupt {
        /// One in this many.
        one_in: u64,
    },
    /// The host at the end of the link asks its switch to pause all the time, as a broken interface does: a pause storm.
    Pause,
}

/// The mappers of the hosts of a source-routed network: they find out the routes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MapperConfig {
    /// Time from the end of one look of the leader at the network to the next one.
    pub interval: Span,
    /// Time without a word of the leader after which a host takes it for gone.
    pub patience: Span,
    /// Time after which a probe is sent again, or has failed.
    pub timeout: Span,
    /// How often a probe is sent, at most.
    pub tries: u32,
    /// Probes of a mapper that are under way at once.
    pub window: u32,
    /// Bytes of a probe on the wire; a message with the map has those of the map, too.
    pub probe: ByteCount,
    /// Time of the host for each message of a mapper that it sends or receives.
    pub overhead: Span,
}

impl NetworkConfig {
    /// A network in which only links of this rate take time. Interfaces send packets of up to `packet` bytes without
    /// headers, one message at a time. Routes are fixed, spread by source.
    pub fn plain(topology: Topology, rate: Bandwidth, flow: Flow, packet: ByteCount) -> Self {
        Self {
            preset: String::new(),
            topology,
            link: LinkConfig { rate, delay: Span::ZERO },
            host_links: Vec::new(),
            switch: SwitchConfig {
                delay: Span::ZERO,
                arbitration: Arbitration::RoundRobin,
                marking: None,
                memory: None,
                trimming: false,
                cut_through: None,
                lanes: None,
            },
            flow,
            routing: Routing::Fixed { spread: Spread::Source },
            nic: NicConfig {
                ports: 1,
                rate: None,
                overhead: Span::ZERO,
                packet,
                header: ByteCount(0),
                minimum: ByteCount(0),
                messages: 1,
                queue: NicConfig::QUEUE,
                service: Service::InTurn,
                keeps_step: false,
                dma: None,
                jitter: None,
            },
            host: HostConfig { send: Span::ZERO, receive: Span::ZERO, jitter: None },
            control: Control::Shared,
            transport: Transport::None,
        }
    }

    /// The cable of a host, unless a listed link says otherwise.
    pub fn host_link(&self, host: u16) -> LinkConfig {
        let own = self.host_links.iter().find(|links| links.hosts().contains(&u32::from(host)));
        LinkConfig {
            rate: own.and_then(|own| own.rate).unwrap_or(self.link.rate),
            delay: own.and_then(|own| own.delay).unwrap_or(self.link.delay),
        }
    }

    /// The rate of the cable of a port of a host, if its host has one of its own.
    pub(crate) fn own_rate(&self, endpoint: EndpointId) -> Option<Bandwidth> {
        let host = u32::from(endpoint.0 / u16::from(self.nic.ports));
        self.host_links.iter().find(|links| links.hosts().contains(&host))?.rate
    }

    /// The name of a port of a host: `h3`, or `h3.1` where hosts have several ports.
    pub fn endpoint_name(&self, endpoint: EndpointId) -> String {
        let ports = u16::from(self.nic.ports);
        match ports {
            1 => format!("h{}", endpoint.0),
            _ => format!("h{}.{}", endpoint.0 / ports, endpoint.0 % ports),
        }
    }
}

const fn usual_queue() -> u16 {
    NicConfig::QUEUE
}

const fn is_usual_queue(queue: &u16) -> bool {
    *queue == NicConfig::QUEUE
}

impl HostLinks {
    /// The numbers of the hosts.
    pub fn hosts(&self) -> Range<u32> {
        u32::from(self.first)..u32::from(self.first) + u32::from(self.count)
    }
}

impl SharedMemory {
    /// The usual [`xon_offset`](Self::xon_offset): SONiC, Arista-7060X6-64PE, pg_profile_lookup.ini.
    pub const XON_OFFSET: ByteCount = ByteCount(3556);
}

impl NicConfig {
    /// The usual value of [`queue`](Self::queue).
    pub const QUEUE: u16 = 16;

    /// Bytes on the wire of a packet with this payload.
    pub fn wire_size(&self, payload: ByteCount) -> ByteCount {
        ByteCount(payload.0.saturating_add(self.header.0).max(self.minimum.0))
    }
}

impl Flow {
    /// Virtual channels of each link; one if the flow has none.
    #[inline]
    pub fn virtual_channels(&self) -> u8 {
        match *self {
            Self::CutThrough { virtual_channels, .. } => virtual_channels,
            Self::Wormhole { .. } | Self::StoreAndForward { .. } => 1,
        }
    }

    /// True if senders pause instead of losing packets.
    pub fn pauses(&self) -> bool {
        matches!(self, Self::StoreAndForward { full: WhenFull::Pause | WhenFull::PriorityPause, .. })
    }

    /// True if a switch may lose a packet: in queues that drop, in a headroom that the file sets, or by a watchdog.
    pub fn may_lose(&self) -> bool {
        match self {
            Self::StoreAndForward { full, headroom, watchdog, .. } => {
                *full == WhenFull::Drop || headroom.is_some() || watchdog.is_some()
            }
            Self::Wormhole { .. } | Self::CutThrough { .. } => false,
        }
    }

    /// The watchdog of each output of a switch.
    pub fn watchdog(&self) -> Option<Watchdog> {
        match *self {
            Self::StoreAndForward { watchdog, .. } => watchdog,
            Self::Wormhole { .. } | Self::CutThrough { .. } => None,
        }
    }
}

impl NetworkConfig {
    /// The rule for virtual channels; never [`ChannelRule::Topology`].
    pub fn channel_rule(&self) -> ChannelRule {
        match (&self.flow, &self.topology) {
            (Flow::CutThrough { channel, .. }, _) if *channel != ChannelRule::Topology => *channel,
            (_, Topology::Torus { .. }) => ChannelRule::Dateline,
            (
                _,
                Topology::Dragonfly { .. }
                | Topology::DragonflyPlus { .. }
                | Topology::HyperX { .. }
                | Topology::Explicit { .. },
            ) => ChannelRule::Hop,
            _ => ChannelRule::Destination,
        }
    }
}

impl Topology {
    /// The name of the kind, as in the experiment file.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Crossbar { .. } => "crossbar",
            Self::Clos { .. } => "clos",
            Self::FatTree { .. } | Self::FatTreeLevels { .. } => "fat-tree",
            Self::Butterfly { .. } => "butterfly",
            Self::Grid { .. } => "grid",
            Self::Torus { .. } => "torus",
            Self::Dragonfly { .. } => "dragonfly",
            Self::DragonflyPlus { .. } => "dragonfly-plus",
            Self::HyperX { .. } => "hyperx",
            Self::Tree { .. } => "tree",
            Self::Explicit { .. } => "explicit",
            Self::Infiniband { .. } => "infiniband",
        }
    }

    /// True if the switches are in levels, each linked to those below and above it.
    pub fn is_tree(&self) -> bool {
        matches!(self, Self::Clos { .. } | Self::FatTree { .. } | Self::FatTreeLevels { .. } | Self::Tree { .. })
    }
}
