//! Errors in the description of a network.

use evb_core::{Bandwidth, ByteCount};

/// The reason why a description is not a network, or why a network cannot carry its traffic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// A value that must be above zero is zero.
    #[error("{what} is zero")]
    Zero {
        /// The key, such as `nic.packet`.
        what: &'static str,
    },
    /// A number is above its limit.
    #[error("{number} {what}, at most {most} are possible")]
    TooMany {
        /// Name of the counted things, in the plural.
        what: &'static str,
        /// The number; `u64::MAX` for that many and more.
        number: u64,
        /// The limit.
        most: u64,
    },
    /// A fat tree needs an even radix.
    #[error("a fat tree with an odd radix of {radix}")]
    OddRadix {
        /// The radix.
        radix: u16,
    },
    /// A fat tree has too few or too many levels.
    #[error("a fat tree with {levels} {}", if *levels == 1 { "level" } else { "levels" })]
    TreeLevels {
        /// Number of levels.
        levels: usize,
    },
    /// The highest level of a fat tree has cables to a level above it.
    #[error("the highest level of a fat tree has `{key}`, which is about the level above")]
    AboveTheTop {
        /// The key.
        key: &'static str,
    },
    /// The ports of the hosts cannot be divided evenly among the switches.
    #[error("{number} {what} cannot be shared by hosts with {ports} ports each")]
    NotDivisible {
        /// Name of the things whose number has to be a multiple of the ports, in the plural.
        what: &'static str,
        /// Their number.
        number: u64,
        /// Ports per host.
        ports: u8,
    },
    /// A group of a dragonfly has fewer links than there are other groups.
    #[error("{links} links of a group cannot join it to {} other groups", groups - 1)]
    TooFewGlobalLinks {
        /// Links of a group to other groups.
        links: u32,
        /// Number of groups.
        groups: u16,
    },
    /// Switches in no dimension, or in too many.
    #[error("switches in {number} dimensions, where 1 to {most} are possible")]
    Dimensions {
        /// Number of dimensions.
        number: usize,
        /// The limit.
        most: usize,
    },
    /// The numbers of parallel links do not belong to the dimensions.
    #[error("{links} numbers of links for {dimensions} dimensions")]
    LinksOfDimensions {
        /// Numbers of links.
        links: usize,
        /// Number of dimensions.
        dimensions: usize,
    },
    /// Packets could wait for each other in a ring.
    #[error("{routes} can wait for each other in a ring: {least} virtual channels by hop rule that out")]
    RoutesCanWait {
        /// Name of the routes.
        routes: &'static str,
        /// Fewest channels without a ring.
        least: u8,
    },
    /// Marks, or shared memory, of a switch without output queues.
    #[error("{key} is for switches that store and forward")]
    NeedsQueues {
        /// The key.
        key: &'static str,
    },
    /// A host with another number of ports than there are planes.
    #[error("nic.ports is {ports}, and each of {planes} planes has one port of a host")]
    PortsOfPlanes {
        /// Ports of a host.
        ports: u8,
        /// Number of planes.
        planes: u8,
    },
    /// A setting that several planes do not go with.
    #[error("planes do not go with {what}")]
    NotInPlanes {
        /// The setting, and why.
        what: &'static str,
    },
    /// A setting of pauses where packets are dropped.
    #[error("{key} is for switches that ask their senders to pause")]
    NeedsPauses {
        /// The key.
        key: &'static str,
    },
    /// Trimmed packets that would wait behind what they are to overtake, or that nothing asks for again.
    #[error("switch.trimming needs {needed}")]
    TrimmingNeeds {
        /// What is missing.
        needed: &'static str,
    },
    /// A connection over several paths under a routing that knows one, or draws one for each packet.
    #[error("transport.paths is for ecmp routing: no other one gives the packets of a connection paths by number")]
    PathsWithoutEcmp,
    /// Switches cannot mark packets for a transport and for dispersive routing.
    #[error("packets are marked by queues that are long, and by dispersive routing")]
    MarksOfTwoKinds,
    /// The bounds of marks are in the wrong order, or the probability is none.
    #[error("marks need low <= high, and a probability `most` from 0 to 1")]
    BadMarking,
    /// Connections over interfaces whose access to memory is simulated.
    #[error("a transport reads memory packet by packet: nic.dma is not simulated with it")]
    TransportWithoutMemory,
    /// Channels that change where a ring closes, in a topology without rings.
    #[error("packets change virtual channels at datelines, and a {topology} topology has none")]
    NoDatelines {
        /// The kind of topology.
        topology: &'static str,
    },
    /// A listed switch has an invalid name.
    #[error("a switch cannot have the name {name:?}")]
    SwitchName {
        /// The name.
        name: String,
    },
    /// Two listed switches have one name.
    #[error("two switches have the name {name:?}")]
    SwitchTwice {
        /// The name.
        name: String,
    },
    /// A listed link has an unknown end.
    #[error("a link ends at {name:?}, which is neither a switch nor a port of a host")]
    UnknownEnd {
        /// The name of the end.
        name: String,
    },
    /// A listed link is impossible.
    #[error("a link from {from} to {to} leads past every switch or back to where it begins")]
    BadLink {
        /// One end.
        from: String,
        /// The other end.
        to: String,
    },
    /// A port of a host has more than one link.
    #[error("the host port {name} is joined more than once")]
    HostPortTwice {
        /// The name of the port.
        name: String,
    },
    /// A port of a host has no link.
    #[error("the host port {name} is not joined to any switch")]
    HostPortMissing {
        /// The name of the port.
        name: String,
    },
    /// Two entries are about the links of one host.
    #[error("the link of host {host} is described twice")]
    HostLinkTwice {
        /// The host.
        host: u32,
    },
    /// The link of a host is described without a value of its own.
    #[error("the link of host {host} has neither a rate nor a delay of its own")]
    UsualHostLink {
        /// The first host of the entry.
        host: u16,
    },
    /// The link of a host is described that there is not.
    #[error("there is no host {host} for a link of its own: the network has {hosts} hosts")]
    NoSuchHost {
        /// The last host of the entry.
        host: u32,
        /// Number of hosts.
        hosts: usize,
    },
    /// No links lead from one part of the network to another.
    #[error("{from} and {to} are not connected")]
    NotConnected {
        /// A switch.
        from: String,
        /// A switch that no links join to it.
        to: String,
    },
    /// The routing finds no route.
    #[error("no route leads from {from} to {to}")]
    NoRoute {
        /// A port of a host.
        from: String,
        /// A port of a host.
        to: String,
    },
    /// A routing that has no meaning in this topology.
    #[error("{routing} routing in a {topology} topology")]
    UnsuitableRouting {
        /// The kind of routing.
        routing: &'static str,
        /// The kind of topology.
        topology: &'static str,
    },
    /// Queues for each output at inputs that do not buffer whole packets, or in a switch that queues packets at outputs.
    #[error("islip arbitration needs inputs that buffer whole packets, with cut-through flow")]
    IslipNeedsInputBuffers,
    /// Learning bridges under a flow that does not store whole packets.
    #[error("learning bridges store whole packets, and this flow does not")]
    BridgesStorePackets,
    /// A list of switches that cut through beside a setting by which all switches do the same.
    #[error("switch.cut_through and {key} exclude each other")]
    CutThroughExcludes {
        /// The setting.
        key: &'static str,
    },
    /// Weights of lanes in a network whose packets do not take lanes by priority.
    #[error("switch.lanes shares links between the virtual channels of priorities, which this flow does not have")]
    LanesNeedPriorities,
    /// The flow has no virtual channel for this lane.
    #[error("switch.lanes has the lane {lane}, and the flow has {lanes} virtual channels")]
    NoSuchLane {
        /// The number of the lane.
        lane: u8,
        /// The number of virtual channels.
        lanes: u8,
    },
    /// A lane with a service level that no table serves.
    #[error("no weight in switch.lanes is for the lane {lane}, so its packets would wait for ever")]
    LaneWithoutWeight {
        /// The number of the lane.
        lane: u8,
    },
    /// A switch is named that there is not.
    #[error("there is no switch {name:?} to cut through")]
    NoSuchSwitch {
        /// The name.
        name: String,
        /// The name of the first switch.
        first: String,
    },
    /// STOP would reach the sender too late, or GO would leave the link idle.
    #[error("a slack of {slack} is below the round trip of link {link}")]
    SlackTooSmall {
        /// The first link for which it is too small.
        link: String,
        /// Bytes of slack.
        slack: ByteCount,
        /// The fewest bytes that are enough.
        smallest: ByteCount,
    },
    /// A byte on this link does not take whole picoseconds, by more than 0.1 %.
    #[error("{rate} on link {link} is too far from a whole number of picoseconds per byte for wormhole flow")]
    UnevenRate {
        /// The first such link.
        link: String,
        /// Its rate.
        rate: Bandwidth,
        /// The nearest rate with whole picoseconds.
        nearest: Bandwidth,
    },
    /// A buffer is smaller than a packet.
    #[error("{what} of {size} cannot take a packet of {packet}")]
    BufferTooSmall {
        /// The key of the buffer.
        what: &'static str,
        /// Its size.
        size: ByteCount,
        /// The largest packet on the wire.
        packet: ByteCount,
    },
}

impl NetworkError {
    /// Advice to the user.
    pub fn hint(&self) -> String {
        match self {
            Self::Zero { what } => format!("give {what} a value above zero"),
            Self::TooMany { most, .. } => format!("make it {most} or fewer"),
            Self::OddRadix { radix } => format!("use an even radix, such as {}", u32::from(*radix) + 1),
            Self::TreeLevels { .. } => "list two to four levels, that of the hosts first; one switch is a crossbar".to_owned(),
            Self::AboveTheTop { key } => format!("remove `{key}` from the last level, or add the level above"),
            Self::NotDivisible { what, ports, .. } => format!("make the number of {what} a multiple of {ports}, or change nic.ports"),
            Self::TooFewGlobalLinks { .. } => "increase topology.global or the switches of a group that have such links, or use fewer groups".to_owned(),
            Self::Dimensions { most, .. } => format!("list 1 to {most} sizes"),
            Self::LinksOfDimensions { dimensions, .. } => format!("list {dimensions} numbers in topology.links, or remove it"),
            Self::RoutesCanWait { routes, least } => {
                let order = if routes.contains("dimensions") { ", or routing.type = \"dimension-order\"" } else { "" };
                format!(
                    "use flow.type = \"cut-through\" with virtual_channels = {least} and channel = \"hop\", or a \
                     store-and-forward flow with full = \"drop\"{order}"
                )
            }
            Self::NeedsQueues { key } => {
                format!("use flow.type = \"store-and-forward\", or {key} = \"none\"")
            }
            Self::PortsOfPlanes { .. } => "leave nic.ports out, and have at least two planes".to_owned(),
            Self::NotInPlanes { .. } => "change it, or remove network.planes".to_owned(),
            Self::NeedsPauses { key } => format!("use flow.full = \"priority-pause\" or \"pause\", or remove {key}"),
            Self::TrimmingNeeds { .. } => {
                "use flow = { type = \"store-and-forward\", full = \"drop\", priorities = 2 } and transport.type = \"ultra-ethernet\"".to_owned()
            }
            Self::PathsWithoutEcmp => "use routing.type = \"ecmp\", or remove transport.paths".to_owned(),
            Self::MarksOfTwoKinds => "use another routing, or switch.marking = \"none\"".to_owned(),
            Self::BadMarking => "for a step use the same low and high; most is a probability, such as 0.01".to_owned(),
            Self::TransportWithoutMemory => "remove nic.dma, or use transport.type = \"none\"".to_owned(),
            Self::NoDatelines { .. } => "use flow.channel = \"hop\" or \"destination\", or remove it".to_owned(),
            Self::SwitchName { .. } => {
                "use a name with no '>' and no '.' that is not empty and not one of h0, h1, ..., which are ports of hosts".to_owned()
            }
            Self::SwitchTwice { .. } => "give each switch a different name".to_owned(),
            Self::UnknownEnd { name } => format!("add {name:?} to the list of switches, or use h0, h1, ... for the ports of hosts"),
            Self::BadLink { .. } => "join a host port and a switch, or two different switches".to_owned(),
            Self::HostPortTwice { .. } => "join each host port to one switch with one link; for more links per host use nic.ports".to_owned(),
            Self::HostPortMissing { name } => format!("add a link for {name}, or number the host ports without a gap: h0, h1, ..."),
            Self::HostLinkTwice { .. } => "let the entries of network.host_link be about different hosts".to_owned(),
            Self::UsualHostLink { .. } => "give it a `rate` or a `delay`, or remove the entry".to_owned(),
            Self::NoSuchHost { .. } => "hosts are counted from 0: lower `first` or `count`, or use a larger network.topology".to_owned(),
            Self::NotConnected { from, to } => format!("add a link between the part with {from} and the part with {to}"),
            Self::NoRoute { .. } => "add links, or use a routing that avoids the missing ones, such as adaptive".to_owned(),
            Self::UnsuitableRouting { routing: "dimension-order", .. } => "use a grid, a torus or a hyperx, or another routing".to_owned(),
            Self::UnsuitableRouting { routing: "valiant" | "ugal", .. } => "use a dragonfly, a dragonfly-plus or a hyperx, or another routing, such as adaptive".to_owned(),
            Self::UnsuitableRouting { routing: "table", .. } => "use topology.type = \"infiniband\", or another routing, such as fixed".to_owned(),
            Self::IslipNeedsInputBuffers => "use flow.type = \"cut-through\", or another arbitration".to_owned(),
            Self::BridgesStorePackets => "use flow.type = \"store-and-forward\", or routing.type = \"spanning-tree\"".to_owned(),
            Self::CutThroughExcludes { key } => format!("remove switch.cut_through, or {key}"),
            Self::LanesNeedPriorities => "use flow.type = \"cut-through\" with channel = \"priority\", or remove switch.lanes".to_owned(),
            Self::NoSuchLane { .. } => "lanes are counted from 0: use a smaller number, or more flow.virtual_channels".to_owned(),
            Self::LaneWithoutWeight { lane } => {
                format!("add {{ lane = {lane}, weight = ... }} to switch.lanes.low, or lead its service levels to other lanes")
            }
            Self::NoSuchSwitch { first, .. } => {
                format!("use names such as {first:?}; a * at the end stands for any ending, as in \"leaf*\"")
            }
            Self::UnsuitableRouting { .. } => "use another routing, such as fixed".to_owned(),
            Self::SlackTooSmall { smallest, .. } => {
                format!("use a slack of {smallest} or more, or shorten link.delay, switch.delay or flow.reaction")
            }
            Self::UnevenRate { nearest, .. } => format!("use {nearest}, or another flow"),
            Self::BufferTooSmall { what, packet, .. } => format!("make {what} {packet} or more, or make nic.packet smaller"),
        }
    }
}
