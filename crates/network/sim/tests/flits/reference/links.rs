//! Requests for links, and their arbitration.

use super::{Happening, Hop, World, byte_time, time_for};
use evb_fabric::{Arbitration, ChannelRule, Flow, LinkEnd, LinkId, Routing, SwitchId, WhenFull};
use evb_sim::testing::Probe;
use std::collections::VecDeque;

/// Worms that an input has places for.
const PLACES: u64 = 2;

/// The sending side of a link.
#[derive(Default)]
pub(super) struct Wire {
    pub(super) busy: bool,
    pub(super) paused: bool,
    /// The packets that have asked, in that order.
    pub(super) waiting: Vec<usize>,
    /// The packet that is or was sent, and until when (where that is known).
    sending: Option<(usize, u64)>,
    /// The input, and its channel, that was served last.
    served: Option<(usize, usize)>,
}

/// An input of a switch that has a queue for each output.
#[derive(Clone, Default)]
pub(super) struct Input {
    free_at: u64,
    /// The link that it accepted last.
    turn: Option<usize>,
}

/// The receiving side of a link, for one channel.
#[derive(Default)]
pub(super) struct Buffer {
    /// The packets that were given the link and whose tails have not been sent on, in that order.
    pub(super) packets: VecDeque<usize>,
    /// Places (wormhole) or bytes (cut-through) that are taken, as far as the sender knows.
    pub(super) taken: u64,
    /// Bytes of packets in the switch that came over the link (store and forward).
    pub(super) held: u64,
    /// Those of them in the headroom of a shared memory, which are not in `held`.
    pub(super) headroom: u64,
    /// True if the sender was asked to pause.
    pub(super) full: bool,
}

impl World<'_> {
    /// The packet wants its next link.
    pub(super) fn ask(&mut self, packet: usize) {
        let (link, wire) = (self.next_link(packet).0, u64::from(self.packets[packet].probe.wire));
        if let Some((queue, WhenFull::Drop, _)) = self.store()
            && !self.packets[packet].route.is_empty()
            && (self.queued(link) + wire > queue || !self.has_memory(link, wire))
        {
            self.expected.lost += 1;
            return;
        }
        if let (Some(_), Some(before)) = (self.store(), self.packets[packet].route.last())
            && !self.enter_store(packet, before.link)
        {
            self.expected.lost += 1;
            self.expected.lost_in_pause += 1;
            return;
        }
        self.packets[packet].asked = self.now;
        self.wires[link].waiting.push(packet);
    }

    /// Bytes of the packets that wait for the link and of the one that is being sent.
    fn queued(&self, link: usize) -> u64 {
        let wire = &self.wires[link];
        let sending = wire.sending.filter(|&(_, end)| end > self.now).map(|(packet, _)| packet);
        wire.waiting.iter().chain(&sending).map(|&packet| u64::from(self.packets[packet].probe.wire)).sum()
    }

    /// True if the memory of the switch before the link has room for these bytes in its queue, by the dynamic threshold.
    fn has_memory(&self, link: usize, wire: u64) -> bool {
        let Some(memory) = self.network.config.switch.memory else { return true };
        let beyond = |held: u64| held.saturating_sub(memory.least.0);
        let switch = self.network.links[link].from.switch().expect("a host sends into its own memory");
        let queues = self.network.switch(switch).outputs.iter().map(|output| self.queued(output.0 as usize));
        let free = memory.size.0 - queues.map(beyond).sum::<u64>();
        let after = beyond(self.queued(link) + wire);
        let more = after - beyond(self.queued(link));
        more == 0 || more <= free && after as f64 <= memory.alpha * free as f64
    }

    /// Grants links, in the order of their numbers; returns true if one was granted.
    pub(super) fn give_links_away(&mut self) -> bool {
        if self.matches() {
            return self.match_inputs();
        }
        let mut given = false;
        for link in 0..self.wires.len() {
            if let Some(packet) = self.choose(link) {
                self.give(link, packet);
                given = true;
            }
        }
        given
    }

    /// True if inputs have a queue for each output.
    pub(super) fn matches(&self) -> bool {
        self.network.config.switch.arbitration == Arbitration::Islip
    }

    /// Rounds of iSLIP: every free output grants, and every input accepts one grant. Returns true if one was accepted.
    fn match_inputs(&mut self) -> bool {
        let mut round = 0;
        loop {
            let granted = |link| self.choose(link).map(|packet| (link, packet, self.packets[packet].route.last()));
            let grants = (0..self.wires.len()).filter_map(granted);
            let grants: Vec<_> = grants.map(|(link, packet, hop)| (link, packet, hop.map(|hop| hop.link))).collect();
            let mut accepted = Vec::new();
            for &(link, packet, input) in &grants {
                let turn = input.and_then(|input| self.inputs[input].turn);
                let rivals = grants.iter().filter(|rival| rival.2 == input).map(|rival| rival.0);
                let best = rivals.min_by_key(|&rival| (Some(rival) <= turn, rival));
                if input.is_none() || best == Some(link) {
                    accepted.push((link, packet, input));
                }
            }
            if accepted.is_empty() {
                return round > 0;
            }
            for (link, packet, input) in accepted {
                let served = self.wires[link].served;
                self.give(link, packet);
                match input {
                    Some(input) if round == 0 => self.inputs[input].turn = Some(link),
                    _ => self.wires[link].served = served,
                }
            }
            round += 1;
        }
    }

    /// True if the packet is the first of its input for the link, and the input sends no other one.
    fn is_first(&self, link: usize, packet: usize) -> bool {
        let mut waiting = self.wires[link].waiting.iter().copied();
        let first = waiting.find(|&other| self.input(other) == self.input(packet));
        let free = self.packets[packet].route.last().is_none_or(|hop| self.inputs[hop.link].free_at <= self.now);
        first == Some(packet) && free
    }

    /// The waiting packet that has the link next, if it is free.
    fn choose(&self, link: usize) -> Option<usize> {
        let wire = &self.wires[link];
        if wire.busy || wire.paused {
            return None;
        }
        let can_go = |&packet: &usize| self.has_room(link, packet) && (!self.matches() || self.is_first(link, packet));
        let able: Vec<_> = wire.waiting.iter().copied().filter(can_go).collect();
        match self.network.config.switch.arbitration {
            Arbitration::Oldest => {
                able.into_iter().min_by_key(|&packet| (self.packets[packet].asked, self.input(packet)))
            }
            Arbitration::RoundRobin | Arbitration::Islip => able.into_iter().min_by_key(|&packet| {
                let input = self.input(packet);
                (Some(input) <= self.wires[link].served, input, self.packets[packet].asked)
            }),
            Arbitration::LeastRecent => able.into_iter().min_by_key(|&packet| {
                let input = self.input(packet);
                (self.recent.get(&input), input, self.packets[packet].asked)
            }),
            Arbitration::Random => panic!("random arbitration cannot be compared"),
        }
    }

    fn give(&mut self, link: usize, packet: usize) {
        let (next, channel) = self.next_link(packet);
        assert_eq!(next, link, "a packet waits for its own link");
        let input = self.input(packet);
        let wire = &mut self.wires[link];
        wire.waiting.retain(|&other| other != packet);
        wire.busy = true;
        wire.served = Some(input);
        if !self.packets[packet].route.is_empty() {
            self.grants += 1;
            self.recent.insert(input, self.grants);
        }
        self.expected.hops += 1;
        self.expected.waits += u64::from(self.now > self.packets[packet].asked);
        let amount = self.amount(packet);
        let buffer = &mut self.buffers[link][channel];
        buffer.packets.push_back(packet);
        buffer.taken += amount;
        let hop = Hop { link, channel, head_there: false, head_at: 0, sending: false, sent: 0, there: 0, known: 0 };
        self.packets[packet].route.push(hop);
        self.start(packet);
    }

    /// The packet's first byte goes out at once.
    fn start(&mut self, packet: usize) {
        let hop = self.packets[packet].route.len() - 1;
        if self.slack().is_some() {
            return self.try_byte(packet, hop);
        }
        self.start_whole(packet, hop);
    }

    /// A packet that will not stop on this link.
    fn start_whole(&mut self, packet: usize, hop: usize) {
        let next = self.packets[packet].route[hop].link;
        let link = &self.network.links[next];
        let wire = u64::from(self.packets[packet].probe.wire);
        let own = time_for(wire, link.rate.0);
        let interface = self.network.config.nic.rate.map_or(0, |rate| time_for(wire, rate.0));
        let all = if hop == 0 { own.max(interface) } else { own };
        self.packets[packet].tail_at = self.now + all + link.delay.0;
        if let (Some(before), None) = (hop.checked_sub(1), self.store()) {
            // It is read as fast as it came over its link, or goes.
            let Hop { link, channel, .. } = self.packets[packet].route[before];
            let read = all.min(time_for(wire, self.network.links[link].rate.0));
            self.inputs[link].free_at = self.now + read;
            self.plan(read, Happening::HasBeenRead { link, channel, packet });
        }
        self.wires[next].sending = Some((packet, self.now + all));
        self.plan(all, Happening::TailSent { packet, hop });
        match (link.to, self.store()) {
            (LinkEnd::Endpoint(_), _) => self.plan(all + link.delay.0, Happening::TailThere { packet, hop }),
            (LinkEnd::Switch(_), Some(_)) => {
                let ready = self.ready_at(packet, self.now + byte_time(link.rate.0) + link.delay.0);
                self.plan(ready - self.now, Happening::Ask { packet })
            }
            (LinkEnd::Switch(_), None) => {
                self.plan(byte_time(link.rate.0) + link.delay.0, Happening::HeadThere { packet, hop })
            }
        }
    }

    /// True when the buffer behind the link has room for the packet, as far as the sender knows. Hosts always have.
    fn has_room(&self, link: usize, packet: usize) -> bool {
        if let LinkEnd::Endpoint(_) = self.network.links[link].to {
            return true;
        }
        let (_, channel) = self.next_link(packet);
        let all = match self.network.config.flow {
            Flow::Wormhole { .. } => PLACES,
            Flow::CutThrough { buffer, .. } => buffer.0,
            Flow::StoreAndForward { .. } => return true,
        };
        self.buffers[link][channel].taken + self.amount(packet) <= all
    }

    /// The room that the packet takes in a buffer.
    pub(super) fn amount(&self, packet: usize) -> u64 {
        if self.slack().is_some() { 1 } else { self.packets[packet].probe.wire.into() }
    }

    /// The place of the packet: a link, and its channel. A sender has only one place.
    fn input(&self, packet: usize) -> (usize, usize) {
        self.packets[packet].route.last().map_or((0, 0), |hop| (hop.link, hop.channel))
    }

    /// Time from which the switch can send the packet, whose head came at `head_at`. If it stores packets, all of it must be there;
    /// otherwise the last byte must be there before it is sent at the pace of the fastest link that the packet may take.
    pub(super) fn ready_at(&self, packet: usize, head_at: u64) -> u64 {
        let switch = self.network.config.switch.delay.0;
        if self.slack().is_some() {
            return head_at + switch;
        }
        if !self.network.switch(self.switch_of(packet)).cuts_through {
            return self.packets[packet].tail_at + switch;
        }
        let rate = self.ways(packet).iter().map(|&way| self.network.link(way).rate.0).max().expect("there is a way");
        let last_byte_after = time_for(self.packets[packet].probe.wire.into(), rate).saturating_sub(byte_time(rate));
        (head_at + switch).max((self.packets[packet].tail_at + switch).saturating_sub(last_byte_after))
    }

    /// The links that the packet may take from its switch.
    fn ways(&self, packet: usize) -> &[LinkId] {
        self.routes.candidates(self.switch_of(packet), self.packets[packet].probe.to)
    }

    /// The switch that the packet is in, or comes into.
    fn switch_of(&self, packet: usize) -> SwitchId {
        let before = &self.network.links[self.packets[packet].route.last().expect("it is in a switch").link];
        before.to.switch().expect("a packet at a host goes nowhere")
    }

    /// The link that the packet takes next, and in which channel.
    fn next_link(&self, packet: usize) -> (usize, usize) {
        let Probe { from, to, .. } = self.packets[packet].probe;
        let Some(hop) = self.packets[packet].route.last() else {
            return (self.network.endpoint(from).up.0 as usize, self.channel_of_destination(packet).unwrap_or(0));
        };
        let before = &self.network.links[hop.link];
        let ways = self.ways(packet);
        let (Routing::Fixed { spread } | Routing::DimensionOrder { spread, .. }) = self.network.config.routing else {
            panic!("only fixed ways can be compared")
        };
        let LinkId(next) = ways[spread.index(self.network, self.seed, from, to, 0, ways[0]) as usize % ways.len()];
        let after = &self.network.links[next as usize];
        let channel = match self.network.config.channel_rule() {
            ChannelRule::Hop => self.packets[packet].route.len() - 1,
            ChannelRule::Dateline if before.dimension == after.dimension => hop.channel + usize::from(after.dateline),
            ChannelRule::Dateline => usize::from(after.dateline),
            _ => self.channel_of_destination(packet).expect("only these rules can be compared"),
        };
        (next as usize, channel.min(self.channels() - 1))
    }

    /// The channel that the packet has everywhere, if its destination decides.
    fn channel_of_destination(&self, packet: usize) -> Option<usize> {
        let of_destination = self.network.config.channel_rule() == ChannelRule::Destination;
        of_destination.then(|| usize::from(self.packets[packet].probe.to.0) % self.channels())
    }

    fn channels(&self) -> usize {
        self.network.config.flow.virtual_channels().into()
    }

    /// The time of a byte of this worm on any link: all links are alike, and the interface may be slower.
    pub(super) fn pace(&self, link: usize) -> u64 {
        let interface = self.network.config.nic.rate.map_or(0, |rate| byte_time(rate.0));
        byte_time(self.network.links[link].rate.0).max(interface)
    }
}
