//! The network engine: moves packets over links and through switches in virtual time.
//!
//! A packet of any length costs one or two events per link. That is exact, since only a grant changes the flow of
//! bytes: `worm` computes how long a stalled worm occupies its links. The rules are those of
//! `docs/reference/networks/model.md`; a simulator that moves single bytes checks them in `tests/`.
//!
//! The life of a packet, from top to bottom in `forwarding`:
//!
//! 1. [`Net::send`] puts it into the network interface of its sender.
//! 2. [`Net::handle`] calls `request` when its head is ready: in the interface, or in the buffer of a switch, which may
//!    hold it (`holding`).
//! 3. `route` chooses the link that leaves the switch, or several (`route_adaptively`).
//! 4. `wait_for` adds it to the packets that wait for the link, or loses it if a queue is full.
//! 5. [`Net::arbitrate`] grants the links that may have become free (`arbitrate_link`, `choose`, `grant`).
//! 6. `start_whole`, or `start_worm` in wormhole flow, puts it on the link and finds the time at which it has left.
//! 7. `leave`: its tail leaves the buffer before the link; the sender there learns of the room (`leave_buffer`).
//! 8. `arrive`: its head arrives in the next buffer, and is ready after the delay of the switch. It continues with 2.
//! 9. [`Event::Deliver`] reports its arrival at the destination, and [`Net::take`] takes it out of the network.
//! 10. `lose` ends it before: with an [`NetEffect::Lost`], after which [`Net::remove`] takes it out.

mod arbitration;
mod bridges;
mod counts;
mod credit;
mod deadlock;
mod detours;
mod faults;
mod flow_control;
mod flowlets;
mod forwarding;
mod holding;
mod ingress;
mod lane;
mod lane_arbiter;
mod links;
mod matching;
mod partition_border;
mod pauses;
mod probing;
mod queues;
mod routing;
mod source_routed;
mod trains;
mod views;
mod worm;

use crate::{
    event::Event,
    message::MessageId,
    packet::{PacketId, Packets},
    partition_border::PartitionBorder,
    queue::Queue,
    trace::Trace,
};
use arbitration::Arbiter;
use bridges::{Bridges, Copies};
use counts::Counts;
pub(crate) use counts::LinkCounts;
use evb_core::{NodeId, Span, Stream, Time, stream};
use evb_fabric::{Arbitration, ChannelRule, EndpointId, LinkId, Network, NetworkError, NetworkLink, Routing};
use faults::Faults;
use flow_control::FlowControl;
use flowlets::Flowlets;
use ingress::Ingress;
use lane_arbiter::LaneArbiter;
use links::Links;
use matching::Inputs;
use pauses::Watchdogs;
use queues::Queues;
use routing::Router;
use source_routed::SourceRoutedPackets;
use trains::Trains;

/// The purpose of the network's random stream.
const ARBITRATION: u64 = 100;

/// A time that is not known yet.
const UNKNOWN: Time = Time::MAX;

/// A link that does not exist: the head of a worm without a route goes there.
const NOWHERE: LinkId = LinkId(u32::MAX);

/// An effect of the engine on its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NetEffect {
    /// The last byte of a packet leaves the network interface of its sender at this time.
    Sent { endpoint: EndpointId, at: Time },
    /// A packet was lost on its way: dropped, or without a route.
    Lost(PacketId),
    /// New routes were found in a network of several planes.
    Rerouted,
    /// A train was split before its last packets left the network interface: these are still to be cut from the message.
    Uncut { message: MessageId, packets: u32, bytes: u32 },
}

/// The first reason that holds.
pub(crate) fn first_of(reasons: &[(bool, &'static str)]) -> Option<&'static str> {
    reasons.iter().find(|(holds, _)| *holds).map(|&(_, reason)| reason)
}

/// A network with packets on it.
pub(crate) struct Net {
    pub(crate) network: Network,
    /// All planned events of a simulation, also those of its hosts.
    pub(crate) queue: Queue<Event>,
    pub(crate) packets: Packets,
    links: Links,
    flow: FlowControl,
    router: Router,
    /// A port of a host in each group of a dragonfly or a dragonfly+, on each switch of a HyperX.
    group_ports: Vec<EndpointId>,
    arbiter: Arbiter,
    /// That of lanes with weights.
    lane_arbiter: Option<LaneArbiter>,
    inputs: Inputs,
    queues: Queues,
    ingress: Ingress,
    watchdogs: Watchdogs,
    faults: Faults,
    /// Switches may have to hold packets that go out faster than they come in.
    holds: bool,
    /// Hosts know the routes, or bridges learn them.
    has_rules: bool,
    bridges: Option<Bridges>,
    copies: Copies,
    flowlets: Option<Flowlets>,
    source_routed: SourceRoutedPackets,
    /// Packets under way that do not belong to a message.
    without_message: u64,
    counts: Counts,
    trains: Trains,
    /// True if something comes between the packets of a train: the simulation has to start again, packet by packet.
    pub(crate) gives_up: bool,
    /// Trains whose first packet has got the link to their destination.
    pub(crate) arriving: u32,
    /// The draws of router and arbiter.
    random: Stream,
    pub(crate) effects: Vec<NetEffect>,
    /// What leaves this part of the network.
    pub(crate) border: PartitionBorder,
    pub(crate) trace: Trace,
}

impl Net {
    /// An empty network.
    ///
    /// # Errors
    /// If some endpoint cannot reach another one.
    pub(crate) fn new(
        network: Network,
        seed: u64,
        trace: Trace,
        border: PartitionBorder,
    ) -> Result<Self, NetworkError> {
        let switch = &network.config.switch;
        let (flow, channels) = FlowControl::new(network.config.flow, switch.delay);
        let router = Router::new(&network, seed)?;
        let links = Links::new(&network, channels, || flow.empty());
        let lanes = links.lane(LinkId(network.links.len() as u32), 0).0 as usize;
        let holds = flow.may_hold(&links, &network);
        let has_priorities = flow.stores_whole_packets() || network.config.channel_rule() == ChannelRule::Priority;
        let priorities = if has_priorities { channels } else { 1 };
        Ok(Self {
            queue: Queue::new(reach(&network, &links)),
            packets: Packets::new(),
            links,
            has_rules: matches!(network.config.routing, Routing::Learning { .. }),
            bridges: Bridges::of(&network, &router.routes),
            copies: Copies::default(),
            flowlets: Flowlets::of(&network),
            router,
            group_ports: detours::ports_of_groups(&network),
            lane_arbiter: LaneArbiter::of(&network, channels),
            arbiter: Arbiter::new(switch.arbitration, priorities, &network, channels),
            inputs: Inputs::new(if switch.arbitration == Arbitration::Islip { network.links.len() } else { 0 }),
            queues: Queues::new(&network),
            ingress: Ingress::new(&network),
            watchdogs: Watchdogs::new(&network, lanes),
            faults: Faults::new(network.links.len()),
            holds,
            source_routed: SourceRoutedPackets::default(),
            without_message: 0,
            counts: Counts::new(network.links.len()),
            trains: Trains::default(),
            gives_up: false,
            arriving: 0,
            random: stream(seed, NodeId(0), ARBITRATION),
            effects: Vec::new(),
            border,
            trace,
            flow,
            network,
        })
    }

    /// The links in their order, and the counts of each.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&NetworkLink, &LinkCounts)> + Clone {
        self.network.links.iter().zip(self.counts.iter())
    }

    /// Links taken by all packets, from the start.
    pub(crate) fn packet_hops(&self) -> u64 {
        self.counts.packet_hops
    }

    /// Number of changes of route by pairs of endpoints (dispersive routing).
    pub(crate) fn route_changes(&self) -> u64 {
        self.router.changes
    }

    /// The name of the link that most packets wait for, and their number.
    pub(crate) fn most_waiting(&self) -> (String, usize) {
        let waiting = |&link: &LinkId| self.links[link].waiting.len().max(self.counts[link].waiting as usize);
        let most = self.links.ids().max_by_key(waiting);
        most.map(|link| (self.network.link(link).name.clone(), waiting(&link))).unwrap_or_default()
    }

    /// Clears the counts.
    pub(crate) fn begin_to_measure(&mut self) {
        self.counts.begin(self.queue.now());
    }

    /// True if the route of each packet depends on its ends and its variant alone, and packets never wait for each
    /// other in a ring.
    pub(crate) fn is_steady(&self) -> bool {
        self.router.is_steady(&self.network)
    }

    /// The port of a host at which a new packet arrives. `same` is the port with the number of the sending one.
    pub(crate) fn port_of_route(&self, from: EndpointId, same: EndpointId) -> EndpointId {
        self.router.port(&self.network, from, same)
    }

    /// The variant of the route of a new packet.
    pub(crate) fn variant(&self, from: EndpointId, to: EndpointId, stream: u32) -> u32 {
        self.router.variant(from, to, stream)
    }

    /// The links of a circle in which each waits for the next one, in that order, by name, and since when they do.
    pub(crate) fn deadlock(&mut self) -> Option<(Vec<String>, Time)> {
        let (circle, since) = deadlock::find(self)?;
        Some((circle.iter().map(|&link| self.network.link(link).name.clone()).collect(), since))
    }
}

/// Usual distance in time of the events of a packet: the time of the largest packet on the slowest link.
fn reach(network: &Network, links: &Links) -> Span {
    let nic = &network.config.nic;
    let largest = (nic.packet.0 + nic.header.0).max(nic.minimum.0);
    // An unlimited packet size says nothing.
    let (slowest, _) = links.rates();
    slowest.time_for(largest.min(1 << 16)).max(nic.overhead)
}
