//! A train under way: its first packet gets a link, the others follow, and the last one ends the run.

use super::{Run, Train};
use crate::{
    event::Event,
    net::{NOWHERE, Net, first_of},
    packet::{LaneId, Packet, PacketId, TrainId},
};
use evb_core::{Span, Time};
use evb_fabric::{Flow, LinkId, Network, NicConfig, Service};

impl Net {
    /// Why packets of one message do not go as a train; `None` if each would do the same at a later time, unless something
    /// comes between them.
    pub(crate) fn why_no_trains(&self) -> Option<&'static str> {
        let config = &self.network.config;
        let NicConfig { ports, messages, service, keeps_step, dma, .. } = &config.nic;
        let is_wormhole = matches!(config.flow, Flow::Wormhole { .. });
        // Packets of other inputs change how much of a shared memory an input may take.
        let shares = matches!(config.flow, Flow::StoreAndForward { .. }) && self.ingress.is_shared();
        let reasons = [
            (*ports != 1, "network.nic.ports is not 1"),
            (*messages != 1, "network.nic.messages is not 1"),
            (*service != Service::InTurn, "network.nic.service is not \"in-turn\""),
            (*keeps_step, "network.nic.keeps_step is true"),
            (dma.is_some(), "there is network.nic.dma"),
            (self.network.is_mixed(), "links have different rates"),
            (is_wormhole, "network.flow.type is \"wormhole\""),
            (config.flow.may_lose(), "queues may drop packets"),
            (shares, "inputs share a memory"),
            // The turns of lanes follow from each packet.
            (self.lane_arbiter.is_some(), "network.lanes have turns"),
            (self.arbiter.looks_at_all_outputs(), "network.switch.arbitration looks at all outputs"),
            (self.trace.is_on(), "there is a trace"),
            (!self.is_steady(), "routes change from packet to packet, or close a ring"),
        ];
        first_of(&reasons)
    }

    /// Makes a train of a packet that has just been handed to the network interface and others like it behind it.
    #[cold]
    #[inline(never)]
    pub(crate) fn couple(&mut self, id: PacketId, length: u32) {
        let train = self.trains.insert(Train::new(id, length, self.packets[id].wire));
        self.packets[id].train = train;
    }

    /// Requests the next link for the first packet of a train. If not all its packets are sure to get it, the trains are
    /// given up.
    #[cold]
    pub(in crate::net) fn request_for_train(&mut self, id: PacketId) {
        let &Packet { lane, from, train, .. } = &self.packets[id];
        let link = if lane == LaneId::NONE {
            self.network.endpoint(from).up
        } else {
            let fits = self.store(id);
            debug_assert!(fits, "a train comes where nothing pauses");
            let packet = &self.packets[id];
            let outputs = self.router.outputs(self.links.switch_of(lane), packet.to);
            self.router.pick(&self.network, &mut self.random, packet, outputs)
        };
        if !self.can_run(link, id) {
            return self.gives_up = true;
        }
        self.trains.get_mut(train).asked = link;
        self.wait_for(link, id);
        self.links[link].running = true;
    }

    /// True if the first packet of a train gets the link that it requests now, and the others get it when they request it.
    fn can_run(&mut self, link: LinkId, id: PacketId) -> bool {
        let now = self.queue.now();
        let (packet, class) = (&self.packets[id], self.links.class(link));
        let (port, train) = (&self.links[link], self.trains.get(packet.train));
        if !port.is_idle(now) || port.running || port.harmed || class.byte_time == Span::ZERO {
            return false;
        }
        if let Some(run) = train.runs.last() {
            let pace = class.rate.time_for(packet.wire.into());
            // Gaps between the packets become smaller when the first one had to wait.
            let is_even = pace == train.spacing || now == run.start + self.time_to_ask(run, id);
            if pace > train.spacing || !is_even || !self.is_calm(run.lane, packet.wire) {
                return false;
            }
        }
        self.room_at(link, id) <= now
    }

    /// Time from a packet getting a link to its asking for the next one, if nothing is before it in the buffer.
    fn time_to_ask(&self, run: &Run, id: PacketId) -> Span {
        self.time_to_arrive(run) + self.flow.switch_delay() + self.hold(id)
    }

    /// Time from a packet getting a link to its arrival at the switch behind it: with its head, or whole.
    pub(super) fn time_to_arrive(&self, run: &Run) -> Span {
        let class = self.links.class(run.link);
        class.delay + if self.flow.stores_whole_packets() { run.pace } else { class.byte_time }
    }

    /// The first packet of a train has got a link, towards a lane.
    pub(in crate::net) fn start_run(&mut self, id: TrainId, link: LinkId, lane: LaneId) {
        let train = self.trains.get_mut(id);
        let &Packet { lane: before, pace, .. } = &self.packets[train.id];
        let start = self.queue.now();
        train.asked = NOWHERE;
        self.arriving += u32::from(self.links[link].is_at_endpoint());
        train.runs.push(Run { link, before, lane, start, pace, passed: 1, sure: 1, active: true });
        if before == LaneId::NONE {
            train.spacing = pace + self.network.config.nic.overhead;
        } else {
            // The last one leaves by itself.
            let leaving = train.sequence(start + pace, train.length - 1);
            self.leave_evenly(before, leaving);
        }
    }

    /// The first packet of a train has got a link, and room behind it.
    pub(in crate::net) fn follow_from_start(&mut self, id: TrainId) {
        let run = self.trains.get(id).runs.len() - 1;
        self.find_room(id, run);
        self.plan_to_follow(id, run);
    }

    /// Looks at a train of which packets follow each other onto a link.
    #[cold]
    pub(in crate::net) fn follow(&mut self, link: LinkId) {
        let (now, id) = (self.queue.now(), self.packets[self.links[link].holder].train);
        let train = self.trains.get(id);
        let place = train.run_on(link);
        let run = &train.runs[place];
        let sure = run.sure;
        if sure < train.length && train.time(run, sure) <= now {
            self.pass(id, place, sure);
            if self.find_room(id, place) == sure {
                return self.gives_up = true;
            }
        }
        if self.trains.get(id).ends_at(now, place) {
            self.end_run(id, place);
        } else {
            self.plan_to_follow(id, place);
        }
    }

    /// Plans to look at a train again when its last packet gets a link, or the first one that may find no room.
    pub(super) fn plan_to_follow(&mut self, id: TrainId, place: usize) {
        let train = self.trains.get(id);
        let run = &train.runs[place];
        let at = train.time(run, run.sure.min(train.length - 1));
        self.plan_wake(run.link, at);
    }

    /// Finds the number of packets of a train that are sure to find room behind a link; those counted so far are there.
    fn find_room(&mut self, id: TrainId, place: usize) -> u32 {
        let &Run { link, lane, .. } = &self.trains.get(id).runs[place];
        let room = if self.links[link].is_at_endpoint() { None } else { self.free_and_held(lane) };
        let train = self.trains.get(id);
        let run = &train.runs[place];
        let sure = match (room, self.flow.reaction()) {
            (Some((free, held)), Some(reaction)) => {
                let most = train.runs.get(place + 1).map(|next| {
                    // From here on as many packets leave as come.
                    let first_known = next.start + next.pace + reaction;
                    let own = run.passed - train.before(self.queue.now() + Span(1), first_known);
                    let most = first_known.since(run.start).0.div_ceil(train.spacing.0).min(train.length.into());
                    u64::from(held - own * train.wire) + most * u64::from(train.wire)
                });
                let is_enough = most.is_some_and(|most| most <= u64::from(free) + u64::from(held));
                if is_enough { train.length } else { (run.passed + free / train.wire).min(train.length) }
            }
            _ => train.length,
        };
        self.trains.get_mut(id).runs[place].sure = sure;
        sure
    }

    /// Counts the packets of a train up to a number that have got a link.
    pub(super) fn pass(&mut self, id: TrainId, place: usize, passed: u32) {
        let train = self.trains.get_mut(id);
        let (wire, run) = (train.wire, &mut train.runs[place]);
        let count = passed - std::mem::replace(&mut run.passed, passed);
        if count == 0 {
            return;
        }
        let run = &train.runs[place];
        let (link, lane) = (run.link, run.lane);
        self.counts.grant_all(link, count, wire, run.pace);
        let most = if self.flow.stores_whole_packets() {
            wire.into()
        } else if self.links[link].is_at_endpoint() {
            0
        } else {
            let taking = train.sequence(train.time(run, passed - count), count);
            self.take_evenly(lane, taking)
        };
        self.counts.note_bytes(link, most);
    }

    /// The last packet of a train has got a link.
    pub(super) fn end_run(&mut self, id: TrainId, place: usize) {
        let length = self.trains.get(id).length;
        let free_at = self.free_link(id, place, length);
        let train = self.trains.get(id);
        let (run, packet) = (&train.runs[place], train.id);
        self.leave(run.before, packet, train.time(run, length - 1)..free_at);
        self.deliver_train(id, place);
    }

    /// The last packets of a train, as far as they have got a link, leave it; returns the time when they have.
    pub(super) fn free_link(&mut self, id: TrainId, place: usize, passed: u32) -> Time {
        self.pass(id, place, passed);
        let train = self.trains.get_mut(id);
        train.runs[place].active = false;
        let run = &train.runs[place];
        let free_at = train.time(run, passed - 1) + run.pace;
        let port = &mut self.links[run.link];
        port.free_at = free_at;
        port.running = false;
        free_at
    }

    /// Plans the arrival of a train of which the last packet has got a link, if that leads to the destination.
    pub(super) fn deliver_train(&mut self, id: TrainId, place: usize) {
        let train = self.trains.get(id);
        let run = &train.runs[place];
        if self.links[run.link].is_at_endpoint() {
            let at = self.links[run.link].free_at + self.links.class(run.link).delay;
            self.queue.push(at.max(self.queue.now()), Event::Deliver(train.id));
        }
    }

    /// Takes a train out whose last packet has arrived; returns the first packet, the number of packets, and how many of
    /// these arrivals were not counted yet.
    pub(crate) fn take_train(&mut self, id: PacketId) -> (Packet, u32, u32) {
        let packet = self.packets.remove(id);
        self.arriving -= 1;
        let Train { length, counted, .. } = self.trains.remove(packet.train);
        (packet, length, length - counted)
    }

    /// Gives `count` each train of which packets arrive before `end` that were not counted: its first packet, and their
    /// number.
    pub(crate) fn count_arrivals(&mut self, end: Time, mut count: impl FnMut(&Packet, u32, &Network)) {
        let ids: Vec<_> = self.trains.iter().map(|(id, _)| id).collect();
        for id in ids {
            let train = self.trains.get(id);
            let Some(run) = train.last_run(&self.links) else { continue };
            let first = run.start + run.pace + self.links.class(run.link).delay;
            let (arrived, packet) = (train.before(end, first), &self.packets[train.id]);
            count(packet, arrived - train.counted, &self.network);
            self.trains.get_mut(id).counted = arrived;
        }
    }

    /// Packets under way now, when the arrivals until now have been counted.
    pub(crate) fn packets_left(&self) -> u64 {
        let others = self.trains.iter().map(|(_, train)| u64::from(train.length - train.counted));
        let heads = self.trains.len() as u64 + self.without_message;
        (self.packets.len() as u64 + others.sum::<u64>()).saturating_sub(heads)
    }
}
