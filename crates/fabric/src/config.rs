//! The typed description of a network; the experiment file resolves to it.

use crate::EndpointId;
use evb_core::{Bandwidth, ByteCount, Span};
use serde::{Deserialize, Serialize};

/// A whole network: its shape and how every part of it behaves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkConfig {
    /// The preset that the values come from; empty without one.
    #[serde(default)]
    pub preset: String,
    /// Switches and links.
    pub topology: Topology,
    /// Every link that does not say otherwise.
    pub link: LinkConfig,
    /// Every switch.
    pub switch: SwitchConfig,
    /// What happens to a packet that cannot go on.
    pub flow: Flow,
    /// How a packet finds its way.
    pub routing: Routing,
    /// Every network interface.
    pub nic: NicConfig,
    /// Every host.
    pub host: HostConfig,
    /// How control messages travel.
    pub control: Control,
}

/// Switches and links. Hosts are numbered in the order of the switches that they hang on.
///
/// With `nic.ports` ports per host, the hosts come in blocks: of the hosts of one block, the first ports are on one
/// switch, the second ports on the next switch, and so on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Topology {
    /// One switch with all hosts.
    Crossbar {
        /// Number of ports, one per port of a host.
        ports: u16,
    },
    /// Two layers: every leaf has `links` links to every spine. A composite of crossbars is this, too.
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
    /// A k-ary n-fly: `stages` stages of crossbars with `radix` inputs and outputs; hosts send into the first stage and
    /// receive from the last. Only one way leads from one host to another.
    Butterfly {
        /// Inputs, and outputs, of one crossbar.
        radix: u16,
        /// Number of stages.
        stages: u16,
    },
    /// Switches in rows and columns, linked to their neighbours.
    Grid {
        /// Switches in a row.
        width: u16,
        /// Switches in a column.
        height: u16,
        /// Ports for hosts on each switch.
        terminals: u16,
        /// Parallel links between neighbours.
        links: u16,
    },
    /// A grid whose rows and columns are closed to rings.
    Torus {
        /// Switches in a row.
        width: u16,
        /// Switches in a column.
        height: u16,
        /// Ports for hosts on each switch.
        terminals: u16,
        /// Parallel links between neighbours.
        links: u16,
    },
    /// A root switch and leaves below it, each joined to the root by a trunk.
    Tree {
        /// Number of leaf switches.
        leaves: u16,
        /// Ports for hosts on each leaf.
        ports_per_leaf: u16,
        /// Parallel links from each leaf to the root.
        trunk: u16,
        /// Rate of each of them; that of all links by default.
        uplink: Option<Bandwidth>,
    },
    /// Whatever the user lists.
    Explicit {
        /// Names of the switches.
        switches: Vec<String>,
        /// Links. An end is the name of a switch, or `h0`, `h1`, ... for the ports of hosts, in order.
        links: Vec<ExplicitLink>,
    },
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
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkConfig {
    /// Data rate.
    pub rate: Bandwidth,
    /// Time from the end of sending a byte to its being there: cable and transceivers.
    pub delay: Span,
}

/// A switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SwitchConfig {
    /// Time from a packet's head being first in its input buffer to its asking for an output.
    pub delay: Span,
    /// Who is next at an output.
    pub arbitration: Arbitration,
}

/// Who is next at an output for which several inputs wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arbitration {
    /// The inputs in turn.
    RoundRobin,
    /// Any of them, drawn at random.
    Random,
    /// The one that has waited longest.
    Oldest,
}

/// What happens to a packet that cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Flow {
    /// Wormhole with STOP/GO or byte credits: a stalled packet stands on all the links behind its head, with a few bytes
    /// in the slack buffer of each input it passes.
    Wormhole {
        /// Bytes that an input buffers of one worm.
        slack: ByteCount,
        /// Time from a byte leaving the buffer to the sender knowing it.
        reaction: Span,
    },
    /// Virtual cut-through with credits: a packet goes on only when the next buffer can take all of it, and its head
    /// does not wait for its tail.
    CutThrough {
        /// Bytes of each input buffer, for each virtual channel.
        buffer: ByteCount,
        /// Time from a packet having left the buffer to the sender knowing it.
        reaction: Span,
        /// Virtual channels of each link.
        virtual_channels: u8,
    },
    /// Store and forward: a switch takes a packet whole, then puts it into the queue of its output.
    StoreAndForward {
        /// Bytes of each output queue (`drop`), or of the packets of one input that a switch holds before it asks the
        /// sender to pause.
        queue: ByteCount,
        /// What happens when that is full.
        full: WhenFull,
        /// Time from the queue filling or emptying to the sender obeying.
        reaction: Span,
        /// Priorities, each with its own queues; control messages have the highest.
        priorities: u8,
    },
}

/// What a store-and-forward switch does when a queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenFull {
    /// Packets that do not fit are lost, and counted.
    Drop,
    /// The sender of the link pauses (IEEE 802.3x).
    Pause,
    /// The sender pauses what has the same priority (IEEE 802.1Qbb).
    PriorityPause,
}

/// How a packet finds its way. All but dimension order and `SpanningTree` use every way with the fewest hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Routing {
    /// One way for each pair of ports, always the same.
    Fixed {
        /// How pairs are spread over equal ways.
        spread: Spread,
    },
    /// Any of the equal ways for each packet, drawn at random.
    Random,
    /// One way for each pair, which changes, at random, when its packets were found blocked.
    Dispersive {
        /// A packet that has waited this long at a switch counts as blocked.
        patience: Span,
        /// Packets of a pair that are blocked one after another before the pair takes another way, at least 1.
        after: u16,
    },
    /// Any free link of the equal ways, at every switch.
    Adaptive,
    /// First along the rows, then along the columns; for grid and torus.
    DimensionOrder {
        /// How pairs are spread over parallel links.
        spread: Spread,
    },
    /// In dimension order, over any free one of parallel links; for grid and torus.
    AdaptiveDimensionOrder,
    /// Only along a tree of links, as learning bridges do; parallel links count as one trunk.
    SpanningTree,
    /// Equal ways by a hash over source, destination and message stream.
    Ecmp,
}

/// How pairs of ports are spread over equal ways.
///
/// In a tree all but `Pair` choose anew at each layer: the lowest switch by the number modulo its ways, each layer above by
/// what the ways below have left of it (`number / stride % ways`, see [`Link::stride`](crate::Link::stride)). So `Source` is
/// S-mod-k and `Destination` is D-mod-k (Rodriguez et al., Oblivious Routing Schemes in Extended Generalized Fat Tree
/// Networks, CLUSTER 2009), under which a shift permutation puts one pair at most on each link of a full fat tree (Zahavi,
/// Fat-tree routing and node ordering providing contention free traffic for MPI global collectives, JPDC 72, 2012).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// By the place of the source among all ports of hosts, in the order of the switches that they send to.
    Source,
    /// By the place of the destination among all ports of hosts, in the order of the switches that they receive from: what
    /// the forwarding tables of a subnet manager say.
    Destination,
    /// One way for each pair of switches, a switch taking its ways in turn for the others: what a table of intervals of
    /// destinations does, where the ports of a switch are one interval (STC104 data sheet, interval labelling).
    Switch,
    /// Drawn at random for each pair, once for the whole run.
    Pair,
}

impl Routing {
    /// Whether a packet takes any free link of several.
    #[inline]
    pub fn is_adaptive(self) -> bool {
        matches!(self, Self::Adaptive | Self::AdaptiveDimensionOrder)
    }
}

/// A network interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NicConfig {
    /// Ports to the network; packets take whichever is free.
    pub ports: u8,
    /// Rate of the engine between the memory of the interface and the link, when that is below the rate of the link.
    pub rate: Option<Bandwidth>,
    /// Time that the interface needs for each packet before it sends it.
    pub overhead: Span,
    /// Largest payload of a packet: longer messages are cut.
    pub packet: ByteCount,
    /// Bytes that each packet has on the wire beside its payload.
    pub header: ByteCount,
    /// Fewest bytes of a packet on the wire.
    pub minimum: ByteCount,
    /// Messages that are sent at once, their packets in turn.
    pub messages: u16,
    /// Which of the waiting messages the next packet is of.
    #[serde(default, skip_serializing_if = "Service::is_default")]
    pub service: Service,
    /// Access to the memory of the host; without it the interface is never held up by it.
    pub dma: Option<Dma>,
}

/// Which of the waiting messages the next packet is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// Of the messages that are sent at once, in turn; the others wait in order.
    #[default]
    InTurn,
    /// Each peer has a queue; of those for which something waits, one is drawn at random for each packet.
    RandomPeer,
}

/// Rates at which a network interface reads and writes the memory of its host; both share one bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dma {
    /// Rate of reading, for what is sent.
    pub read: Bandwidth,
    /// Rate of writing, for what is received.
    pub write: Bandwidth,
}

/// What a message costs the processor of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostConfig {
    /// Time to send one message.
    pub send: Span,
    /// Time to receive one message.
    pub receive: Span,
}

/// How control messages (all but fragments) travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Control {
    /// Through the same network as the fragments.
    Shared,
    /// Through a network of their own, without contention.
    Separate {
        /// Time from sender to receiver, beside the length of the message.
        delay: Span,
        /// Rate of its links.
        rate: Bandwidth,
    },
}

/// Something that goes wrong in the network at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkFault {
    /// Name of a link (one direction) or of a switch.
    pub target: String,
    /// Time after the start.
    pub at: Span,
    /// What happens.
    pub action: NetworkFaultAction,
}

/// What goes wrong in a network.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "kebab-case")]
pub enum NetworkFaultAction {
    /// It carries nothing any more. Routes are found again without it after `reroute`.
    Fail {
        /// Time until the routes are found again.
        reroute: Span,
    },
    /// It is slower by this factor (of a switch: all links that begin there).
    Slow {
        /// At least 1.
        factor: f64,
    },
    /// One in this many packets that pass is corrupted, and thrown away where it arrives.
    Corrupt {
        /// One in this many.
        one_in: u64,
    },
}

impl NetworkConfig {
    /// The name of a port of a host: `h3`, or `h3.1` where hosts have several ports.
    pub fn endpoint_name(&self, endpoint: EndpointId) -> String {
        let ports = u16::from(self.nic.ports);
        match ports {
            1 => format!("h{}", endpoint.0),
            _ => format!("h{}.{}", endpoint.0 / ports, endpoint.0 % ports),
        }
    }
}

impl Service {
    /// Whether it is what an interface does that is not told otherwise.
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl NicConfig {
    /// Bytes on the wire of a packet with this payload.
    pub fn wire_size(&self, payload: ByteCount) -> ByteCount {
        ByteCount(payload.0.saturating_add(self.header.0).max(self.minimum.0))
    }
}

impl Flow {
    /// Virtual channels of each link; one where the flow has none.
    #[inline]
    pub fn virtual_channels(&self) -> u8 {
        match *self {
            Self::CutThrough { virtual_channels, .. } => virtual_channels,
            Self::Wormhole { .. } | Self::StoreAndForward { .. } => 1,
        }
    }
}

impl Topology {
    /// The name of the kind, as in the experiment file.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Crossbar { .. } => "crossbar",
            Self::Clos { .. } => "clos",
            Self::FatTree { .. } => "fat-tree",
            Self::Butterfly { .. } => "butterfly",
            Self::Grid { .. } => "grid",
            Self::Torus { .. } => "torus",
            Self::Tree { .. } => "tree",
            Self::Explicit { .. } => "explicit",
        }
    }
}
