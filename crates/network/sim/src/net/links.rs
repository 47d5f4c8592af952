//! The links: the port that sends into each, the buffers where it ends, and which of them are to be arbitrated now.

use super::{
    UNKNOWN,
    lane::{Contents, Lane},
};
use crate::packet::{LaneId, Packet, PacketId};
use evb_core::{Bandwidth, Span, Time};
use evb_fabric::{ChannelRule, EndpointId, LinkEnd, LinkId, Network, NetworkLink, SwitchId};
use smallvec::SmallVec;
use std::ops::{Index, IndexMut};

/// All links with both their ends. A [`LinkId`] is the index of a port, a [`LaneId`] that of a buffer.
pub(super) struct Links {
    ends: Vec<Ends>,
    /// Rates and delays of the links.
    classes: Vec<Class>,
    /// The buffers of the virtual channels beyond the first.
    more_lanes: Vec<Lane>,
    /// Virtual channels, or priorities, of each link.
    channels: u32,
    /// Ports of each host in planes of their own; 1 without planes.
    planes: u32,
    /// The rule by which packets take virtual channels.
    rule: ChannelRule,
    /// The virtual channel of each priority; that with its number if empty.
    channel_of_priority: Vec<u8>,
    /// The number of a lane is that of its link, shifted by this, and that of the channel.
    shift: u32,
    /// Links to be arbitrated at the present time.
    touched: Vec<LinkId>,
}

/// Both ends of a link, together in two cache lines, since a packet needs both at once.
#[repr(C, align(128))]
pub(super) struct Ends {
    pub(super) port: Port,
    /// The buffer of the first virtual channel.
    pub(super) lane: Lane,
}

/// The sending end of a link: one cache line.
#[repr(C, align(64))]
pub(super) struct Port {
    /// Time at which the link is or was free; [`UNKNOWN`] while a stalled worm occupies it.
    pub(super) free_at: Time,
    /// Time for which a wake is planned, or [`UNKNOWN`].
    pub(super) wake_at: Time,
    /// Packets that request the link, in the order in which they came.
    pub(super) waiting: SmallVec<[Waiting; 1]>,
    /// No packet that waits is smaller than this on the wire.
    pub(super) least_wire: u32,
    /// The packet that has or had the link last.
    pub(super) holder: PacketId,
    /// The lane of the packet that had the link last, for taking turns.
    pub(super) turn: LaneId,
    /// The switch or endpoint that the link leads to.
    end: u16,
    /// The place of its rate and delay in [`Links::classes`].
    class: u16,
    /// Priorities that the receiver has asked to pause, as bits.
    pub(super) paused: u8,
    kind: LinkKind,
    pub(super) dimension: u8,
    pub(super) dateline: bool,
    /// True when it carries nothing any more.
    pub(super) failed: bool,
    /// True when it is marked for arbitration at the present time.
    touched: bool,
    /// True when it is slower than configured, or corrupts: see [`Faults`](super::faults::Faults).
    pub(super) harmed: bool,
    /// True from the time at which the first packet of a train requests it until the last one gets it.
    pub(super) running: bool,
}

/// The place of a link in the network.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LinkKind {
    /// From a host to a switch.
    Up,
    BetweenSwitches,
    /// To a host.
    Down,
}

/// A packet that requests a link, with what is needed to choose among several.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) id: PacketId,
    pub(super) lane: LaneId,
    pub(super) wire: u32,
    pub(super) priority: u8,
}

/// Rate and delay that some links have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Class {
    pub(super) delay: Span,
    /// Time for one byte, rounded.
    pub(super) byte_time: Span,
    pub(super) rate: Bandwidth,
}

impl Links {
    /// Free links, each with as many buffers as it has virtual channels.
    pub(super) fn new(network: &Network, channels: u32, contents: impl Fn() -> Contents) -> Self {
        let mut classes = Vec::new();
        let ends = |link| Ends { port: Port::new(link, &mut classes), lane: Lane::new(contents()) };
        let ends = network.links.iter().map(ends).collect();
        let more = network.links.len() * (channels as usize - 1);
        Self {
            ends,
            classes,
            more_lanes: (0..more).map(|_| Lane::new(contents())).collect(),
            channels,
            planes: network.config.plane_count().into(),
            rule: network.config.channel_rule(),
            channel_of_priority: channels_of_priorities(network),
            shift: channels.next_power_of_two().trailing_zeros(),
            touched: Vec::new(),
        }
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = LinkId> + use<> {
        (0..self.ends.len() as u32).map(LinkId)
    }

    /// The lowest and the highest rate.
    pub(super) fn rates(&self) -> (Bandwidth, Bandwidth) {
        let rates = || self.classes.iter().map(|class| class.rate);
        (rates().min().unwrap_or(Bandwidth(1)), rates().max().unwrap_or(Bandwidth(1)))
    }

    #[inline]
    pub(super) fn ends_mut(&mut self, link: LinkId) -> &mut Ends {
        &mut self.ends[link.0 as usize]
    }

    /// Rate and delay.
    #[inline]
    pub(super) fn class(&self, link: LinkId) -> Class {
        self.classes[usize::from(self[link].class)]
    }

    /// The buffer of a virtual channel at the end of a link.
    #[inline]
    pub(super) fn lane(&self, link: LinkId, channel: u8) -> LaneId {
        LaneId((link.0 << self.shift) | u32::from(channel))
    }

    /// The link that a lane is at the end of.
    #[inline]
    pub(super) fn link_of(&self, lane: LaneId) -> LinkId {
        LinkId(lane.0 >> self.shift)
    }

    /// The virtual channel of a lane.
    #[inline]
    pub(super) fn channel_of(&self, lane: LaneId) -> u32 {
        lane.0 & ((1 << self.shift) - 1)
    }

    /// True if the link that a lane is at the end of comes from a host.
    #[inline]
    pub(super) fn is_from_host(&self, lane: LaneId) -> bool {
        self[self.link_of(lane)].kind == LinkKind::Up
    }

    /// Virtual channels, or priorities, of each link.
    pub(super) fn channels(&self) -> u8 {
        self.channels as u8
    }

    /// The buffers at the end of a link.
    pub(super) fn lanes(&self, link: LinkId) -> impl Iterator<Item = &Lane> {
        (0..self.channels as u8).map(move |channel| &self[self.lane(link, channel)])
    }

    /// The switch that a lane is an input of.
    #[inline]
    pub(super) fn switch_of(&self, lane: LaneId) -> SwitchId {
        let LinkEnd::Switch(switch) = self[self.link_of(lane)].to() else {
            unreachable!("a packet is in a buffer at a switch only")
        };
        switch
    }

    #[inline]
    pub(super) fn has_one_channel(&self) -> bool {
        self.channels == 1
    }

    /// The virtual channel that a packet will have on a link.
    #[inline]
    pub(super) fn next_channel(&self, link: LinkId, packet: &Packet) -> u8 {
        if self.has_one_channel() { 0 } else { self.channel_by_rule(link, packet) }
    }

    fn channel_by_rule(&self, link: LinkId, packet: &Packet) -> u8 {
        let port = &self[link];
        self.existing(match self.rule {
            ChannelRule::Dateline | ChannelRule::Topology => {
                let channel = if port.dimension == packet.dimension { packet.channel } else { 0 };
                channel + u8::from(port.dateline)
            }
            ChannelRule::Hop if packet.lane == LaneId::NONE => 0,
            ChannelRule::Hop => {
                let came = self[self.link_of(packet.lane)].kind;
                packet.channel + u8::from(came == LinkKind::BetweenSwitches)
            }
            ChannelRule::Destination => (u32::from(packet.to.0) / self.planes % self.channels) as u8,
            ChannelRule::Priority => {
                self.channel_of_priority.get(usize::from(packet.priority)).copied().unwrap_or(packet.priority)
            }
        })
    }

    /// The virtual channel, or the last one if there are fewer.
    #[inline]
    pub(super) fn existing(&self, channel: u8) -> u8 {
        channel.min(self.channels as u8 - 1)
    }

    /// Marks a link for arbitration when everything of the present time has happened.
    #[inline]
    pub(super) fn touch(&mut self, link: LinkId) {
        if !std::mem::replace(&mut self[link].touched, true) {
            self.touched.push(link);
        }
    }

    /// True when some link is to be arbitrated at the present time.
    #[inline]
    pub(super) fn any_touched(&self) -> bool {
        !self.touched.is_empty()
    }

    /// Takes the links that are marked for arbitration, in ascending order.
    pub(super) fn take_touched(&mut self) -> Vec<LinkId> {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        touched
    }

    /// A link that was marked is arbitrated now.
    #[inline]
    pub(super) fn untouch(&mut self, link: LinkId) {
        self[link].touched = false;
    }

    /// Gives back the memory of a list of links. Links that were marked meanwhile follow in a separate round.
    pub(super) fn recycle(&mut self, mut done: Vec<LinkId>) {
        done.clear();
        done.append(&mut self.touched);
        self.touched = done;
    }

    /// A link may have become free, or the buffer behind it.
    pub(super) fn wake(&mut self, now: Time, link: LinkId) {
        let port = &mut self[link];
        if port.wake_at <= now {
            port.wake_at = UNKNOWN;
        }
        self.touch(link);
    }
}

/// The lane of each service level, where lanes have weights.
fn channels_of_priorities(network: &Network) -> Vec<u8> {
    let Some(lanes) = &network.config.switch.lanes else { return Vec::new() };
    (0..network.config.flow.virtual_channels()).map(|priority| lanes.lane(priority)).collect()
}

impl Index<LinkId> for Links {
    type Output = Port;
    #[inline]
    fn index(&self, link: LinkId) -> &Port {
        &self.ends[link.0 as usize].port
    }
}

impl IndexMut<LinkId> for Links {
    #[inline]
    fn index_mut(&mut self, link: LinkId) -> &mut Port {
        &mut self.ends[link.0 as usize].port
    }
}

impl Index<LaneId> for Links {
    type Output = Lane;
    #[inline]
    fn index(&self, lane: LaneId) -> &Lane {
        let (link, channel) = (self.link_of(lane).0, self.channel_of(lane));
        match channel {
            0 => &self.ends[link as usize].lane,
            _ => &self.more_lanes[(link * (self.channels - 1) + channel - 1) as usize],
        }
    }
}

impl IndexMut<LaneId> for Links {
    #[inline]
    fn index_mut(&mut self, lane: LaneId) -> &mut Lane {
        let (link, channel) = (self.link_of(lane).0, self.channel_of(lane));
        match channel {
            0 => &mut self.ends[link as usize].lane,
            _ => &mut self.more_lanes[(link * (self.channels - 1) + channel - 1) as usize],
        }
    }
}

impl Port {
    /// The port of a link, whose class is looked up among those known, or added to them.
    fn new(link: &NetworkLink, classes: &mut Vec<Class>) -> Self {
        let class = Class { delay: link.delay, byte_time: link.rate.byte_time(), rate: link.rate };
        let known = classes.iter().position(|other| *other == class);
        let place = known.unwrap_or_else(|| {
            classes.push(class);
            classes.len() - 1
        });
        let (end, kind) = match (link.from, link.to) {
            (LinkEnd::Endpoint(_), LinkEnd::Switch(switch)) => (switch.0, LinkKind::Up),
            (LinkEnd::Switch(_), LinkEnd::Switch(switch)) => (switch.0, LinkKind::BetweenSwitches),
            (_, LinkEnd::Endpoint(endpoint)) => (endpoint.0, LinkKind::Down),
        };
        Self {
            free_at: Time::ZERO,
            wake_at: UNKNOWN,
            waiting: SmallVec::new(),
            least_wire: u32::MAX,
            holder: PacketId::NONE,
            turn: LaneId::NONE,
            end,
            class: u16::try_from(place).expect("fewer classes of links than 2^16"),
            paused: 0,
            kind,
            dimension: link.dimension,
            dateline: link.dateline,
            failed: false,
            touched: false,
            harmed: false,
            running: false,
        }
    }

    /// The end of the link.
    #[inline]
    pub(super) fn to(&self) -> LinkEnd {
        match self.kind {
            LinkKind::Down => LinkEnd::Endpoint(EndpointId(self.end)),
            LinkKind::Up | LinkKind::BetweenSwitches => LinkEnd::Switch(SwitchId(self.end)),
        }
    }

    /// The link leads to a host, which takes all that comes.
    #[inline]
    pub(super) fn is_at_endpoint(&self) -> bool {
        self.kind == LinkKind::Down
    }

    /// True when it works, nothing is on it, and no packet waits for it.
    #[inline]
    pub(super) fn is_idle(&self, now: Time) -> bool {
        self.waiting.is_empty() && self.free_at <= now && !self.failed
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn both_ends_of_a_link_share_two_cache_lines() {
        assert_eq!(size_of::<super::Ends>(), 128);
    }
}
