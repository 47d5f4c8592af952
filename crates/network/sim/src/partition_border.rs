//! The border of a partition of a network: what belongs to which partition, and what passes from partition to partition.

use crate::{
    message::{Message, MessageId},
    order::Order,
    packet::{LaneId, Packet},
};
use evb_core::{NodeId, Span, Time};
use evb_experiment::{Plan, Workload};
use evb_fabric::{Arbitration, Control, EndpointId, Flow, LinkEnd, Network, NetworkConfig, NetworkLink, SwitchId};
use evb_patterns::Pattern;
use evb_protocol::{Shaping, ShapingStep};
use std::sync::Arc;

/// The partitions of a network, each with some switches and the hosts on them.
#[derive(Debug)]
pub(crate) struct Partitioning {
    /// Number of partitions, at least 2.
    pub(crate) partitions: usize,
    /// Shortest time in which something that happens in one partition has an effect in another one.
    pub(crate) lookahead: Span,
    /// Time from the arrival of a packet's head in a switch until it can leave.
    switch_delay: Span,
    of_switch: Vec<u8>,
    of_endpoint: Vec<u8>,
    of_node: Vec<u8>,
}

/// What passes from one partition to another, by kind: short mail moves no more cache lines from core to core than needed.
/// The order of those of one kind is kept.
#[derive(Default)]
pub(crate) struct PartitionMail {
    /// Messages of which a first packet is sent. They keep their places with their senders until they are done.
    pub(crate) messages: Vec<(MessageId, Message)>,
    /// Messages that were taken by their receivers: their places with their senders are free.
    pub(crate) done: Vec<MessageId>,
    /// Packets whose heads come into the buffers of switches: into the lane and at the time that each of them has.
    pub(crate) packets: Vec<Packet>,
    pub(crate) credits: Vec<CreditNotice>,
    pub(crate) calls: Vec<ControlCall>,
}

impl PartitionMail {
    /// True if there is none.
    fn is_empty(&self) -> bool {
        let Self { messages, done, packets, credits, calls } = self;
        messages.is_empty() && done.is_empty() && packets.is_empty() && credits.is_empty() && calls.is_empty()
    }
}

/// Bytes of a buffer that will be free at a time, as the sender of its link knows then.
pub(crate) struct CreditNotice {
    pub(crate) lane: LaneId,
    pub(crate) bytes: u32,
    pub(crate) at: Time,
}

/// A message on the control network, and when it was sent and comes.
pub(crate) struct ControlCall {
    pub(crate) sent: Time,
    pub(crate) at: Time,
    pub(crate) message: Message,
}

/// The effects of mail.
#[derive(Clone, Copy, Default)]
pub(crate) struct MailEffects {
    /// Time of the first one.
    pub(crate) first: Option<Time>,
    /// Number of events that it ends.
    pub(crate) ends: u64,
}

/// The border of the partition that a simulation is of; a simulation of a whole network has none.
#[derive(Default)]
pub(crate) struct PartitionBorder {
    partitioning: Option<Arc<Partitioning>>,
    partition: usize,
    /// The mail to each partition.
    out: Vec<PartitionMail>,
    /// The effects of the mail that was not handed out, and of that of the window before.
    effects: MailEffects,
    before: MailEffects,
}

impl Partitioning {
    /// Divides the network of a plan into at most `most` partitions with about as many hosts each; `None` if it has no two
    /// partitions that affect each other only after some time.
    pub(crate) fn of(plan: &Plan, network: &Network, most: usize) -> Option<Self> {
        let manager = plan.host(NodeId(0)).map(|host| network.endpoint_id(host, 0));
        let groups = Groups::of(network);
        let mut of_group = vec![None; network.switches.len()];
        let mut of_switch = vec![0; network.switches.len()];
        // The event manager is in the first partition. Groups with hosts take turns, then those without.
        let with_hosts = manager.into_iter().chain((0..network.endpoints.len() as u16).map(EndpointId));
        let with_hosts = with_hosts.map(|endpoint| groups.of_endpoint(network, endpoint));
        let mut turn = 0..;
        for group in with_hosts {
            of_group[group].get_or_insert_with(|| turn.next().unwrap_or(0));
        }
        let partitions = turn.start.min(most).min(usize::from(u8::MAX));
        if partitions < 2 {
            return None;
        }
        let mut turn = 0..;
        for (switch, partition) in of_switch.iter_mut().enumerate() {
            let place = *of_group[groups.find(switch)].get_or_insert_with(|| turn.next().unwrap_or(0));
            *partition = (place % partitions) as u8;
        }
        let of_endpoint: Vec<_> = (0..network.endpoints.len() as u16)
            .map(|endpoint| of_switch[groups.of_endpoint(network, EndpointId(endpoint))])
            .collect();
        let of_node = |node| plan.host(node).map_or(0, |host| of_endpoint[usize::from(network.endpoint_id(host, 0).0)]);
        let of_node = (0..plan.all_nodes()).map(NodeId).map(of_node).collect();
        let lookahead = lookahead(network, &of_switch, least_wire(plan))?;
        let switch_delay = network.config.switch.delay;
        Some(Self { partitions, lookahead, switch_delay, of_switch, of_endpoint, of_node })
    }

    pub(crate) fn of_node(&self, node: NodeId) -> usize {
        self.of_node[node.index()].into()
    }

    pub(crate) fn of_endpoint(&self, endpoint: EndpointId) -> usize {
        self.of_endpoint[usize::from(endpoint.0)].into()
    }

    pub(crate) fn of_end(&self, end: LinkEnd) -> usize {
        match end {
            LinkEnd::Switch(switch) => self.of_switch[usize::from(switch.0)].into(),
            LinkEnd::Endpoint(endpoint) => self.of_endpoint(endpoint),
        }
    }
}

/// True if the partitions of a plan affect each other only by packets, credits and control messages, and if nothing in one
/// depends on the order in which things happen at one time in another.
pub(crate) fn may_be_partitioned(plan: &Plan) -> bool {
    let config = &plan.network.config;
    let is_of_nodes = match &plan.workload {
        // Without a host and a separate network, an event manager learns everything at once.
        Workload::EventBuilding => plan.host(NodeId(0)).is_some() || matches!(config.control, Control::Separate { .. }),
        // Traffic that ends by number ends when no node has anything left, and events are offered to all nodes at once.
        Workload::Traffic(traffic) => {
            traffic.messages.is_none() && !matches!(traffic.config.pattern, Pattern::Gather { .. })
        }
    };
    let is_whole = plan.network.faults.is_empty() && plan.network.mapper.is_none() && plan.faults.is_empty();
    let has_credits = matches!(config.flow, Flow::CutThrough { .. });
    let draws = config.switch.arbitration == Arbitration::Random;
    let has_ends = config.transport.connects();
    is_of_nodes && is_whole && !has_ends && has_credits && !draws && Order::of(plan).is_none()
}

/// Shortest time after which a packet, a credit or a control message that leaves a partition has an effect; `None` if
/// that may be at once.
fn lookahead(network: &Network, of_switch: &[u8], least: u64) -> Option<Span> {
    let config = &network.config;
    let Flow::CutThrough { reaction, .. } = config.flow else { return None };
    // A packet has left its buffer when it has passed the next link.
    let passing = network.links.iter().map(|link| link.rate.time_for(least)).min()?;
    let crosses = |from: LinkEnd, to: LinkEnd| match (from, to) {
        (LinkEnd::Switch(from), LinkEnd::Switch(to)) => of_switch[usize::from(from.0)] != of_switch[usize::from(to.0)],
        _ => false,
    };
    let links = network.links.iter().filter(|link| crosses(link.from, link.to));
    let of_link =
        |link: &NetworkLink| (link.rate.byte_time() + link.delay + config.switch.delay).min(reaction + passing);
    let of_control = match config.control {
        Control::Separate { delay, .. } => Some(delay),
        _ => None,
    };
    links.map(of_link).chain(of_control).min().filter(|&shortest| shortest > Span::ZERO)
}

/// Fewest bytes on the wire of any packet of a plan.
fn least_wire(plan: &Plan) -> u64 {
    let NetworkConfig { nic, control, .. } = &plan.network.config;
    let is_control_apart = matches!(control, Control::Separate { .. });
    let least = match (&plan.workload, plan.building.shaping) {
        // All buckets have one size, and nothing else goes over the network.
        (Workload::EventBuilding, Shaping::BarrelShifter { bucket, step: ShapingStep::Link, .. })
            if is_control_apart && plan.background.is_empty() =>
        {
            let last = bucket.0 % nic.packet.0;
            if last == 0 { nic.packet.0 } else { last }
        }
        _ => 1,
    };
    (least + nic.header.0).max(nic.minimum.0)
}

/// Switches that are in one partition because they have a host in common.
struct Groups(Vec<usize>);

impl Groups {
    fn of(network: &Network) -> Self {
        let mut groups = Self((0..network.switches.len()).collect());
        let ports = usize::from(network.config.nic.ports);
        for host in network.endpoints.chunks(ports) {
            let links = host.iter().flat_map(|endpoint| [endpoint.up, endpoint.down]);
            let ends = links.flat_map(|link| [network.link(link).from, network.link(link).to]);
            let switches: Vec<_> = ends.filter_map(switch_of).collect();
            switches.windows(2).for_each(|pair| groups.unite(pair[0], pair[1]));
        }
        groups
    }

    fn find(&self, mut switch: usize) -> usize {
        while self.0[switch] != switch {
            switch = self.0[switch];
        }
        switch
    }

    fn unite(&mut self, one: usize, other: usize) {
        let (one, other) = (self.find(one), self.find(other));
        self.0[one.max(other)] = one.min(other);
    }

    fn of_endpoint(&self, network: &Network, endpoint: EndpointId) -> usize {
        let up = network.link(network.endpoint(endpoint).up).to;
        self.find(switch_of(up).expect("a host is on a switch"))
    }
}

fn switch_of(end: LinkEnd) -> Option<usize> {
    match end {
        LinkEnd::Switch(SwitchId(switch)) => Some(switch.into()),
        LinkEnd::Endpoint(_) => None,
    }
}

impl PartitionBorder {
    pub(crate) fn new(partitioning: Arc<Partitioning>, partition: usize) -> Self {
        let out = (0..partitioning.partitions).map(|_| PartitionMail::default()).collect();
        Self {
            partitioning: Some(partitioning),
            partition,
            out,
            effects: MailEffects::default(),
            before: MailEffects::default(),
        }
    }

    /// Number of partitions of the simulation.
    pub(crate) fn partitions(&self) -> usize {
        self.out.len().max(1)
    }

    /// True in a simulation of a partition.
    #[inline]
    pub(crate) const fn is_there(&self) -> bool {
        self.partitioning.is_some()
    }

    /// The other partition that an end of a link is in; `None` if it is in this partition.
    #[inline]
    pub(crate) fn beyond(&self, end: LinkEnd) -> Option<usize> {
        let partition = self.partitioning.as_ref()?.of_end(end);
        (partition != self.partition).then_some(partition)
    }

    /// The other partition that a node is in; `None` if it is in this partition.
    #[inline]
    pub(crate) fn beyond_node(&self, node: NodeId) -> Option<usize> {
        let partition = self.partitioning.as_ref()?.of_node(node);
        (partition != self.partition).then_some(partition)
    }

    /// All other partitions.
    pub(crate) fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let partition = self.partition;
        (0..self.out.len()).filter(move |&other| other != partition)
    }

    /// Posts a message, of which a first packet is sent, to another partition.
    pub(crate) fn post_message(&mut self, partition: usize, place: MessageId, message: Message) {
        self.out[partition].messages.push((place, message));
    }

    /// Reports to another partition that one of its messages was taken.
    pub(crate) fn post_done(&mut self, partition: usize, place: MessageId) {
        self.out[partition].done.push(place);
    }

    /// Posts a packet to another partition, where its head enters a lane at `arrival`.
    pub(crate) fn post_packet(&mut self, partition: usize, packet: Packet, lane: LaneId, arrival: Time) {
        self.will_matter(
            arrival + self.partitioning.as_ref().map_or(Span::ZERO, |partitioning| partitioning.switch_delay),
        );
        self.out[partition].packets.push(Packet { lane, since: arrival, ..packet });
    }

    /// Posts a credit to another partition.
    pub(crate) fn post_credit(&mut self, partition: usize, credit: CreditNotice) {
        self.will_matter(credit.at);
        self.out[partition].credits.push(credit);
    }

    /// Posts a message on the control network to another partition.
    pub(crate) fn post_call(&mut self, partition: usize, call: ControlCall) {
        self.will_matter(call.at);
        self.effects.ends += call.message.body.ends();
        self.out[partition].calls.push(call);
    }

    /// Mail matters from this time on. A message only prepares for its packets.
    fn will_matter(&mut self, at: Time) {
        self.effects.first = Some(self.effects.first.map_or(at, |first| first.min(at)));
    }

    /// The mail for another partition; `empty` takes its place.
    pub(crate) fn hand_out(&mut self, partition: usize, empty: PartitionMail) -> PartitionMail {
        debug_assert!(empty.is_empty(), "all of it was taken");
        std::mem::replace(&mut self.out[partition], empty)
    }

    /// The effects of all mail since the call before the last one: no partition has taken it yet.
    pub(crate) fn take_effects(&mut self) -> MailEffects {
        let before = std::mem::replace(&mut self.before, std::mem::take(&mut self.effects));
        let first = before.first.into_iter().chain(self.before.first).min();
        MailEffects { first, ends: before.ends + self.before.ends }
    }
}
