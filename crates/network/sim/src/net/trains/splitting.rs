//! The end of a train when the measurement begins or ends: packets that have not got a link continue alone.

use super::Train;
use crate::{
    event::NetEvent,
    net::{NOWHERE, Net, NetEffect},
    packet::{LaneId, Packet, PacketId, TrainId},
};
use evb_core::Time;
use std::ops::Range;

impl Net {
    /// Splits all trains, as they are before anything happens at `end`: from then on packets continue alone, but for those
    /// that have the last link that their train has got.
    pub(crate) fn split_all(&mut self, end: Time) {
        let ids: Vec<_> = self.trains.iter().map(|(id, _)| id).collect();
        for id in ids {
            let runs = &self.trains.get(id).runs;
            if runs.last().is_none_or(|run| run.active) {
                self.split(id, runs.len().saturating_sub(1), end);
            }
        }
    }

    /// Splits a train before one of its links: packets that have not got that link before `end` continue alone. The place
    /// behind the last link that it has got denotes the link that its first packet requests.
    fn split(&mut self, id: TrainId, place: usize, end: Time) {
        let kept = self.passed_before(id, place, end);
        let mut passed = kept;
        for index in (0..=place).rev() {
            let free_at = match self.trains.get(id).runs.get(index) {
                Some(run) if !run.active => break,
                Some(_) => Some(self.stop_run(id, index, passed)),
                None => None,
            };
            if index == 0 {
                self.return_uncut(id, passed, free_at, end);
                break;
            }
            let behind = self.passed_before(id, index - 1, end);
            self.separate(id, index, passed.max(u32::from(free_at.is_none()))..behind, free_at);
            passed = behind;
        }
        self.shorten(id, place, kept, end);
    }

    /// Number of packets that have got a link before `end`.
    fn passed_before(&self, id: TrainId, place: usize, end: Time) -> u32 {
        let train = self.trains.get(id);
        match train.runs.get(place) {
            Some(run) if run.active => train.before(end, run.start),
            Some(_) => train.length,
            None => 0,
        }
    }

    /// A link is free after the packets that have got it; returns the time.
    fn stop_run(&mut self, id: TrainId, place: usize, passed: u32) -> Time {
        let free_at = self.free_link(id, place, passed);
        let train = self.trains.get(id);
        let before = train.runs[place].before;
        if before != LaneId::NONE {
            self.withhold(before, train.length - passed, train.wire);
        }
        free_at
    }

    /// Packets between two links become separate packets. Those before them will have left the lane at `free_at`; if
    /// none does, the first packet of the train is before them.
    fn separate(&mut self, id: TrainId, place: usize, packets: Range<u32>, free_at: Option<Time>) {
        let train = self.trains.get(id);
        let (run, head) = (&train.runs[place - 1], train.id);
        let (lane, first) = (run.lane, run.start + self.time_to_arrive(run));
        let (pace, spacing) = (run.pace, train.spacing);
        let (channel, dimension) = (self.links.channel_of(lane) as u8, self.links[run.link].dimension);
        let like = Packet { lane, pace, channel, dimension, ..self.alone(train) };
        let is_stored = self.flow.stores_whole_packets();
        let mut ends: Option<(PacketId, PacketId)> = None;
        for number in packets {
            let arrival = first + spacing * number.into();
            let id = self.packets.insert(Packet { since: arrival, ..like.clone() });
            if is_stored {
                self.arrive_at_queues(lane, id, arrival, arrival);
            } else if let Some((_, last)) = &mut ends {
                self.packets[std::mem::replace(last, id)].next = id;
            } else {
                ends = Some((id, id));
            }
        }
        if let Some(ends) = ends {
            self.stop_behind(lane, ends);
        }
        if let Some(free_at) = free_at {
            let run = &self.trains.get(id).runs[place];
            self.leave(lane, head, Time(free_at.0 - run.pace.0)..free_at);
        }
    }

    /// A packet like those of a train.
    fn alone(&self, train: &Train) -> Packet {
        let like = self.packets[train.id].clone();
        Packet { train: TrainId::NONE, next: PacketId::NONE, lane: LaneId::NONE, channel: 0, dimension: 0, ..like }
    }

    /// The sender has still to cut and send the packets from a number on. The one before has left the interface at
    /// `free_at`; if none has, the first one will request its link.
    fn return_uncut(&mut self, id: TrainId, passed: u32, free_at: Option<Time>, end: Time) {
        let train = self.trains.get(id);
        let &Packet { from: endpoint, message, payload, .. } = &self.packets[train.id];
        let mut left = train.length - passed.max(1);
        if let Some(at) = free_at.filter(|&at| at >= end) {
            self.effects.push(NetEffect::Sent { endpoint, at });
        } else if free_at.is_some() {
            // The next one was cut already, and requests its link when the interface has done its work for it.
            let (asks_at, packet) = (train.time(&train.runs[0], passed), self.alone(train));
            let pace = self.interface_pace(packet.wire);
            let id = self.packets.insert(Packet { pace, ..packet });
            self.plan(asks_at, NetEvent::Request(id));
            left -= 1;
        }
        self.effects.push(NetEffect::Uncut { message, packets: left, bytes: left * payload });
    }

    /// Shortens a train to the packets that have got the link at a place.
    fn shorten(&mut self, id: TrainId, place: usize, kept: u32, end: Time) {
        let runs = self.trains.get(id).runs.len();
        for index in place + 1..runs {
            let train = self.trains.get(id);
            let (before, lost, wire) = (train.runs[index].before, train.length - kept, train.wire);
            self.withhold(before, lost, wire);
        }
        if kept == 0 {
            return self.dissolve(id);
        }
        self.trains.get_mut(id).length = kept;
        self.deliver_train(id, place);
        for index in place + 1..runs {
            if self.passed_before(id, index, end) < kept {
                self.plan_to_follow(id, index);
            } else {
                self.end_run(id, index);
            }
        }
        let train = self.trains.get(id);
        if kept == 1 && train.last_run(&self.links).is_none() {
            self.dissolve(id);
        }
    }

    /// Dissolves a train, whose first packet continues alone.
    fn dissolve(&mut self, id: TrainId) {
        let Train { id, asked, .. } = self.trains.remove(id);
        self.packets[id].train = TrainId::NONE;
        if asked != NOWHERE {
            self.links[asked].running = false;
        }
    }
}
