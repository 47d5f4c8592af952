//! Which link a packet asks for.

use super::{Discipline, Net, Waiting};
use crate::{
    event::Event,
    packet::{Packet, PacketId},
    queue::Queue,
};
use evb_fabric::{End, LinkId, Network, Routing, Spread, SwitchId};
use rand::RngExt;

/// Whether a network changes the way of a pair when a packet was blocked.
pub(super) fn is_dispersive(network: &Network) -> bool {
    matches!(network.config.routing, Routing::Dispersive { .. })
}

/// The way that a pair of endpoints takes (dispersive routing).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Way {
    /// Which of the equal ways.
    variant: u32,
    /// Packets that were blocked on it, the last ones without one between them that was not.
    blocked: u16,
}

impl Net {
    /// A packet that is first in its buffer asks for a link, or for any of several.
    pub(super) fn route(&mut self, queue: &mut Queue<Event>, now: u64, id: PacketId) {
        let packet = &self.packets[id];
        let End::Switch(switch) = self.links[self.link_of(packet.lane) as usize].port.to() else {
            unreachable!("a packet asks for a link at a switch only")
        };
        let ways = self.routes.candidates(switch, packet.to).len() as u32;
        if ways == 0 {
            return self.lose(queue, now, id);
        }
        let adaptive = ways > 1 && self.network.config.routing.is_adaptive();
        let index = match self.discipline {
            // It lies in the queue of one output.
            Discipline::Store { .. } if adaptive => self.shortest_queue(id, switch, ways),
            _ if adaptive => return self.route_adaptively(queue, now, id, switch, ways),
            _ if ways == 1 => 0,
            _ => self.pick(id, switch),
        };
        let LinkId(link) = self.routes.candidates(switch, self.packets[id].to)[index as usize];
        self.wait_for(queue, now, link, id);
    }

    /// The way that a packet takes among equal ones.
    fn pick(&mut self, id: PacketId, switch: SwitchId) -> u32 {
        let packet = &self.packets[id];
        let candidates = self.routes.candidates(switch, packet.to);
        let ways = candidates.len() as u32;
        let spread = match self.network.config.routing {
            Routing::Random => return self.random.random_range(0..ways),
            Routing::Fixed { spread } | Routing::DimensionOrder { spread } => spread,
            Routing::Dispersive { .. }
            | Routing::SpanningTree
            | Routing::Ecmp
            | Routing::Adaptive
            | Routing::AdaptiveDimensionOrder => Spread::Pair,
        };
        spread.index(&self.network, self.seed, packet.from, packet.to, packet.variant, candidates[0]) % ways
    }

    /// The way with the fewest bytes before it, the search beginning at another one each time.
    fn shortest_queue(&mut self, id: PacketId, switch: SwitchId, ways: u32) -> u32 {
        self.rotation = self.rotation.wrapping_add(1);
        let candidates = self.routes.candidates(switch, self.packets[id].to);
        let before = |index: &u32| {
            let LinkId(link) = candidates[*index as usize];
            let port = self.port(link);
            (port.failed, self.counts[link as usize].queued, port.free_at)
        };
        let first = self.rotation % ways;
        (first..first + ways).map(|index| index % ways).min_by_key(before).unwrap_or(first)
    }

    /// Takes any link that is free at once, the search beginning at another one each time, or else waits for all.
    fn route_adaptively(&mut self, queue: &mut Queue<Event>, now: u64, id: PacketId, switch: SwitchId, ways: u32) {
        let to = self.packets[id].to;
        let link_at = |net: &Self, index: u32| net.routes.candidates(switch, to)[(index % ways) as usize].0;
        self.rotation = self.rotation.wrapping_add(1);
        let first = self.rotation % ways;
        for index in first..first + ways {
            let link = link_at(self, index);
            let port = &self.links[link as usize].port;
            let is_free = port.waiting.is_empty() && port.free_at <= now && !port.failed;
            if is_free && self.room_at(now, link, id) <= now {
                return self.grant(queue, now, link, id);
            }
        }
        for index in 0..ways {
            let link = link_at(self, index);
            self.wait_for(queue, now, link, id);
        }
    }

    /// A packet that waited for several links has one of them: the others need not keep it.
    #[inline]
    pub(super) fn forget_other_requests(&mut self, granted: u32, id: PacketId) {
        if !self.network.config.routing.is_adaptive() {
            return;
        }
        let packet = &self.packets[id];
        if packet.lane == crate::packet::NO_LANE {
            return;
        }
        let End::Switch(switch) = self.links[self.link_of(packet.lane) as usize].port.to() else { return };
        for &LinkId(link) in self.routes.candidates(switch, packet.to) {
            if link != granted {
                self.links[link as usize].port.waiting.retain(|other| other.id != id);
            }
        }
    }

    /// The virtual channel that a packet will have on a link.
    #[inline]
    pub(super) fn next_channel(&self, link: u32, id: PacketId) -> u8 {
        let port = self.port(link);
        let packet = &self.packets[id];
        let channel = if port.dimension == packet.dimension { packet.channel } else { 0 };
        (channel + u8::from(port.dateline)).min(self.channels as u8 - 1)
    }

    /// The variant of the way that a new packet takes.
    pub(crate) fn variant(&self, from: evb_fabric::EndpointId, to: evb_fabric::EndpointId, stream: u32) -> u32 {
        match self.network.config.routing {
            Routing::Dispersive { .. } => self.ways[self.pair(from, to)].variant,
            Routing::Ecmp => stream,
            _ => 0,
        }
    }

    fn pair(&self, from: evb_fabric::EndpointId, to: evb_fabric::EndpointId) -> usize {
        from.0 as usize * self.network.endpoints.len() + to.0 as usize
    }

    /// Dispersive routing: when some packets of a pair, one after another, waited too long, the next ones take another way.
    #[inline]
    pub(super) fn note_patience(&mut self, now: u64, id: PacketId) {
        let Routing::Dispersive { patience, after } = self.network.config.routing else { return };
        let packet = &mut self.packets[id];
        if packet.blocked || packet.lane == crate::packet::NO_LANE || now - packet.since <= patience.0 {
            return;
        }
        packet.blocked = true;
        let (from, to, variant) = (packet.from, packet.to, packet.variant);
        let pair = self.pair(from, to);
        let way = &mut self.ways[pair];
        if way.variant != variant {
            return;
        }
        way.blocked += 1;
        if way.blocked >= after {
            *way = Way { variant: variant.wrapping_add(1), blocked: 0 };
            self.route_changes += 1;
        }
    }

    /// Dispersive routing: a packet has arrived. One that was not blocked shows that its way is good.
    #[inline]
    pub(crate) fn note_arrival(&mut self, packet: &Packet) {
        if self.ways.is_empty() || packet.blocked {
            return;
        }
        let pair = self.pair(packet.from, packet.to);
        let way = &mut self.ways[pair];
        if way.variant == packet.variant {
            way.blocked = 0;
        }
    }

    /// Finds new routes around what has failed, and lets what waits there ask again.
    pub(crate) fn reroute(&mut self, queue: &mut Queue<Event>, now: u64) {
        let links = &self.links;
        let usable = |link: LinkId| !links[link.0 as usize].port.failed;
        let routes = evb_fabric::Routes::find(&self.network, &usable);
        // Who waits for several links would not know them all by the new routes: all ask again.
        let adaptive = self.network.config.routing.is_adaptive();
        let asks_again = |link: &u32| {
            let at_switch = self.network.links[*link as usize].from.switch().is_some();
            self.port(*link).failed || (adaptive && at_switch)
        };
        let given_up: Vec<u32> = (0..self.links.len() as u32).filter(asks_again).collect();
        let mut stranded = Vec::new();
        for link in given_up {
            for Waiting { id, .. } in std::mem::take(&mut self.port_mut(link).waiting) {
                self.forget_other_requests(u32::MAX, id);
                stranded.push(id);
            }
            self.counts[link as usize].queued = 0;
        }
        stranded.sort_unstable();
        stranded.dedup();
        self.routes = routes;
        for id in stranded {
            self.ask_again(queue, now, id);
        }
    }
}
