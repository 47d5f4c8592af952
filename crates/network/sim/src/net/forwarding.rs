//! The life of a packet, step by step in the order of its travel.

use super::{Net, NetEffect, routing};
use crate::{
    event::{Event, NetEvent},
    packet::{LaneId, Load, Packet, PacketId, TrainId},
    partition_border::CreditNotice,
};
use evb_core::{Span, Time};
use evb_fabric::{LinkEnd, LinkId};
use std::ops::Range;

impl Net {
    /// Passes a packet to the network interface of its sender, which requests its link at `at`.
    pub(crate) fn send(&mut self, at: Time, mut packet: Packet) -> PacketId {
        packet.pace = self.interface_pace(packet.wire);
        packet.route = self.router.view(packet.from);
        let id = self.packets.insert(packet);
        self.plan(at, NetEvent::Request(id));
        self.trace.send(at, id, &self.packets[id]);
        id
    }

    /// Time that the interface of a sender needs for a packet, or (wormhole) for one byte of it.
    pub(super) fn interface_pace(&self, wire: u32) -> Span {
        match (self.network.config.nic.rate, self.flow.wormhole()) {
            (None, _) => Span::ZERO,
            (Some(rate), Some(_)) => rate.byte_time(),
            (Some(rate), None) => rate.time_for(wire.into()),
        }
    }

    /// Plans an event of the network.
    #[inline]
    pub(super) fn plan(&mut self, at: Time, event: NetEvent) {
        self.queue.push(at, Event::Net(event));
    }

    /// Handles an event that the network has planned.
    #[inline]
    pub(crate) fn handle(&mut self, event: NetEvent) {
        match event {
            NetEvent::Request(id) => self.request(id),
            NetEvent::Wake { link } => self.links.wake(self.queue.now(), link),
            NetEvent::Pause { lane } => self.pause(lane, true),
            NetEvent::Unpause { lane } => self.pause(lane, false),
            NetEvent::Watch { lane } => self.look_for_storm(lane),
            NetEvent::Drained { drain } => self.drained(drain),
            NetEvent::Reroute => self.reroute(),
            NetEvent::End(id) => self.end(id),
        }
    }

    /// A packet's head is ready to request its next link: the one of its sender, or one that leaves the switch it is in.
    fn request(&mut self, id: PacketId) {
        if let Some(later) = self.held_until(id) {
            return self.plan(later, NetEvent::Request(id));
        }
        let packet = &mut self.packets[id];
        packet.since = self.queue.now();
        if packet.train != TrainId::NONE {
            return self.request_for_train(id);
        }
        if packet.lane == LaneId::NONE {
            let up = self.network.endpoint(packet.from).up;
            return self.wait_for(up, id);
        }
        if self.store(id) { self.route(id) } else { self.end(id) }
    }

    /// Chooses the link, or the links, that the packet in front of a buffer requests.
    pub(super) fn route(&mut self, id: PacketId) {
        if self.has_rules {
            return self.route_by_rules(id);
        }
        if self.router.takes_detours() {
            return self.route_over_groups(id);
        }
        let packet = &self.packets[id];
        let switch = self.links.switch_of(packet.lane);
        let link = match self.router.outputs(switch, packet.to) {
            [] => return self.lose(id),
            &[link] => link,
            _ if self.flowlets.is_some() => return self.route_by_flowlet(id),
            outputs if !self.router.is_adaptive() => self.router.pick(&self.network, &mut self.random, packet, outputs),
            // It waits in the queue of one output.
            outputs if self.queues_by_output() => {
                let queue_of = |&link: &LinkId| {
                    let port = &self.links[link];
                    (port.failed, self.counts[link].queued, port.free_at)
                };
                routing::from_any(outputs, &mut self.random).min_by_key(queue_of).expect("there are several links")
            }
            _ => return self.route_adaptively(id),
        };
        self.wait_for(link, id);
    }

    /// Takes any link that is free, starting at a random one; if none is, waits for all of them.
    fn route_adaptively(&mut self, id: PacketId) {
        let packet = &self.packets[id];
        let (now, switch, to) = (self.queue.now(), self.links.switch_of(packet.lane), packet.to);
        let count = self.router.outputs(switch, to).len();
        let first = routing::draw_first(count, &mut self.random);
        for index in (first..count).chain(0..first) {
            let link = self.router.outputs(switch, to)[index];
            if self.links[link].is_idle(now) && self.room_at(link, id) <= now {
                return self.grant(link, id);
            }
        }
        for index in 0..count {
            self.wait_for(self.router.outputs(switch, to)[index], id);
        }
    }

    /// Adds a packet to those that wait for a link.
    pub(super) fn wait_for(&mut self, link: LinkId, id: PacketId) {
        self.gives_up |= self.links[link].running;
        if self.has_rules && self.is_dead_end(link, id) || !self.take_in(link, id) {
            return self.lose(id);
        }
        let waiting = self.enlist(link, id);
        let most = &mut self.counts[link].most_waiting;
        *most = waiting.max(*most);
    }

    /// True if links are to be arbitrated at the present time.
    #[inline]
    pub(crate) fn is_dirty(&self) -> bool {
        self.links.any_touched()
    }

    /// Grants links to packets, in ascending order of the links. This is the last thing that happens at a time.
    pub(crate) fn arbitrate(&mut self) {
        let touched = self.links.take_touched();
        if self.arbiter.matches_inputs() {
            self.match_inputs(&touched);
        } else {
            for &link in &touched {
                self.links.untouch(link);
                self.arbitrate_link(link);
            }
        }
        self.links.recycle(touched);
    }

    fn arbitrate_link(&mut self, link: LinkId) {
        let port = &self.links[link];
        if port.waiting.is_empty() || port.failed {
            if port.running {
                self.follow(link);
            }
            return;
        }
        if port.free_at > self.queue.now() {
            return self.plan_wake(link, port.free_at);
        }
        match self.choose(link) {
            Ok(place) => self.grant_waiting(link, place),
            Err(later) => self.plan_wake(link, later),
        }
    }

    /// Grants a link to a packet that waits for it.
    #[inline(always)]
    pub(super) fn grant_waiting(&mut self, link: LinkId, place: usize) {
        let id = self.take_waiting(link, place);
        self.grant(link, id);
        self.wake_waiting(link, self.links[link].free_at);
    }

    /// Grants a link to a packet.
    fn grant(&mut self, link: LinkId, id: PacketId) {
        self.forget_requests(id, Some(link));
        let now = self.queue.now();
        let packet = &mut self.packets[id];
        let queued = self.queues.release(link, packet);
        self.counts.grant(now, link, packet, queued);
        let probes = self.router.note_patience(now, packet);
        packet.channel = self.flow.channel(&self.links, link, packet);
        if let Some(lanes) = &mut self.lane_arbiter {
            lanes.note(link, packet.channel, packet);
        }
        let lane = self.links.lane(link, packet.channel);
        let port = &mut self.links[link];
        packet.dimension = port.dimension;
        port.holder = id;
        port.turn = packet.lane;
        packet.corrupted |= self.faults.corrupts(link, port, self.counts[link].packets);
        self.trace.grant(now, id, packet, &self.network, link);
        self.arbiter.note(packet.lane);
        if probes > 0 {
            let (pair, variant) = ((packet.from, packet.to), packet.variant);
            self.probe(pair, variant, probes);
        }
        match self.flow.wormhole() {
            Some(wormhole) => self.start_worm(wormhole, link, lane, id),
            None => self.start_whole(link, lane, id),
        }
    }

    /// Starts a packet, which nothing holds up before the next switch, on a link to a lane.
    fn start_whole(&mut self, link: LinkId, lane: LaneId, id: PacketId) {
        let (now, class) = (self.queue.now(), self.links.class(link));
        let port = &mut self.links[link];
        let packet = &mut self.packets[id];
        let (before, wire) = (packet.lane, packet.wire);
        let needed = self.faults.slowed(link, port, class.rate.time_for(wire.into()));
        // A switch holds what comes in slowly, an interface does not.
        packet.pace = if before == LaneId::NONE { packet.pace.max(needed) } else { needed };
        let (left_at, train) = (now + packet.pace, packet.train);
        self.counts.leave(link, packet.pace, now, left_at);
        port.free_at = left_at;
        let end = port.to();
        self.give_memory_back(link, id, left_at);
        if train == TrainId::NONE {
            self.leave(before, id, now..left_at);
        } else {
            self.start_run(train, link, lane);
        }
        match end {
            LinkEnd::Endpoint(_) if train != TrainId::NONE => {}
            LinkEnd::Endpoint(_) => self.queue.push(left_at + class.delay, Event::Deliver(id)),
            LinkEnd::Switch(_) if self.flow.stores_whole_packets() => {
                let head = now + class.byte_time + class.delay;
                self.arrive_at_queues(lane, id, head, left_at + class.delay)
            }
            LinkEnd::Switch(_) => {
                let held = self.take_credit(lane, wire);
                self.counts.note_bytes(link, held);
                let arrival = now + class.byte_time + class.delay;
                if let Some(partition) = self.border.beyond(end) {
                    let packet = self.packets.remove(id);
                    return self.border.post_packet(partition, packet, lane, arrival);
                }
                self.arrive(lane, id, arrival);
            }
        }
        if train != TrainId::NONE {
            self.follow_from_start(train);
        }
    }

    /// A packet leaves the buffer or interface before a link in this time.
    pub(super) fn leave(&mut self, before: LaneId, id: PacketId, leaving: Range<Time>) {
        let at = leaving.end;
        let &Packet { from, wire, load, .. } = &self.packets[id];
        if before == LaneId::NONE {
            // Source-routed packets take their turns beside the packets of messages.
            if load != Load::SourceRouted {
                self.effects.push(NetEffect::Sent { endpoint: from, at });
            }
        } else if let Some(partition) = self.partition_before(before) {
            let at = self.leave_for_sender(before, id, leaving);
            self.border.post_credit(partition, CreditNotice { lane: before, bytes: wire, at });
        } else {
            self.leave_buffer(before, id, leaving);
        }
    }

    /// Takes a packet that has arrived at its destination out of the network.
    #[inline]
    pub(crate) fn take(&mut self, id: PacketId) -> Packet {
        self.trace.deliver(self.queue.now(), id, &self.packets[id]);
        let packet = self.remove(id);
        self.router.note_arrival(&packet);
        packet
    }

    /// Loses a packet where it is.
    pub(super) fn lose(&mut self, id: PacketId) {
        let (now, lane) = (self.queue.now(), self.packets[id].lane);
        if let Some(wormhole) = self.flow.wormhole().filter(|_| lane != LaneId::NONE) {
            self.swallow_worm(wormhole, id);
        }
        self.leave(lane, id, now..now);
        self.end(id);
    }

    /// A packet that is nowhere any more is lost, when its tail has come.
    fn end(&mut self, id: PacketId) {
        if let Some(later) = self.comes_until(id) {
            return self.plan(later, NetEvent::End(id));
        }
        self.trace.lose(self.queue.now(), id, &self.packets[id]);
        self.effects.push(NetEffect::Lost(id));
    }

    /// Removes a packet that has arrived or is lost.
    pub(crate) fn remove(&mut self, id: PacketId) -> Packet {
        let packet = self.packets.remove(id);
        self.without_message -= u64::from(matches!(packet.load, Load::SourceRouted | Load::Stray));
        packet
    }
}
