//! Trains of packets at both ends of the network: cut from one message, and counted when they arrive.

use super::{Simulation, receiving::filled};
use crate::{
    Packets,
    message::{Message, MessageId},
    net::first_of,
    packet::PacketId,
    parallel,
};
use evb_core::Time;
use evb_experiment::Workload;
use evb_fabric::{Control, JitterPer};

impl Simulation<'_> {
    /// Why packets of one message do not go as a train; `None` if they follow each other without anything between them that
    /// their sender could not know before, and if nothing depends on the order in which packets of different senders happen
    /// at one time.
    fn why_no_trains(&self) -> Option<&'static str> {
        let is_building = matches!(self.plan.workload, Workload::EventBuilding);
        let is_apart = is_building && matches!(self.net.network.config.control, Control::Separate { .. });
        let is_urgent = self.control_priority(is_building) > 0 && !is_apart;
        let by_packet = self.nics.iter().filter_map(|nic| nic.slots.as_ref()).any(|slots| slots.shaper.is_by_packet());
        let jitter = self.net.network.config.nic.jitter;
        let is_uneven = jitter.is_some_and(|jitter| jitter.per == JitterPer::Packet);
        let network = &self.plan.network;
        let reasons = [
            (!self.plan.background.is_empty(), "there is background traffic"),
            (self.connections.is_some(), "network.transport has connections"),
            (!network.faults.is_empty(), "there are network faults"),
            (self.mapping.is_some(), "there are mappers"),
            (is_uneven, "network.nic.jitter is of each packet"),
            (network.slot_errors.jitter.is_some(), "shaping has a jitter"),
            (is_urgent, "control messages share the network and go first"),
            (by_packet, "shaping is by packets"),
        ];
        first_of(&reasons).or_else(|| self.net.why_no_trains())
    }

    /// Decides if packets go in trains, and notes why they do not where they could save much.
    pub(super) fn decide_on_trains(&mut self, packets: Packets) {
        let why_not = match packets {
            Packets::InTrains => self.why_no_trains(),
            Packets::OneByOne => Some("a train did not get through as a whole"),
        };
        self.couples = why_not.is_none();
        self.why_one_by_one = why_not.filter(|_| parallel::packets_of_message(self.plan) >= parallel::TRAIN);
    }

    /// A packet goes with others like it behind it.
    #[cold]
    pub(super) fn couple(&mut self, packet: PacketId, others: u32) {
        self.statistics.sent_packets += u64::from(others);
        self.net.couple(packet, 1 + others);
    }

    /// Packets of a train that was split are cut when it is their turn.
    pub(super) fn uncut(&mut self, message: MessageId, packets: u32, bytes: u32) {
        self.statistics.sent_packets -= u64::from(packets);
        self.messages.get_mut(message).unsent += bytes;
    }

    /// The last packet of a train has arrived at its destination.
    pub(super) fn deliver_train(&mut self, now: u64, id: PacketId) {
        let (packet, length, uncounted) = self.net.take_train(id);
        let message = self.messages.get_mut(packet.message);
        message.missing -= length * packet.payload;
        let (filled, ends) = (filled(message, packet.payload), (message.from, message.to.first));
        self.statistics.packets(now, &packet, uncounted, &self.net.network, filled, ends);
    }

    /// Splits all trains, as they are before anything happens at `end`, and counts what has arrived until then.
    pub(super) fn split_trains(&mut self, end: Time) {
        if !self.couples {
            return;
        }
        self.net.split_all(end);
        self.take_effects();
        self.count_trains();
        self.count_arrivals(end);
    }

    /// Marks the counts over time if they are due. It must be called before anything is counted at a new time.
    #[inline]
    pub(super) fn count_trains_if_due(&mut self) {
        if self.net.arriving > 0 && self.statistics.is_due(self.net.queue.now().0) {
            self.count_trains();
        }
    }

    /// Marks the counts over time that are due, with the packets of trains that had arrived by then.
    #[cold]
    fn count_trains(&mut self) {
        let now = self.net.queue.now().0;
        while self.statistics.is_due(now) {
            let due = self.statistics.due_at(now);
            self.count_arrivals(Time(due));
            self.statistics.pass(due);
        }
    }

    /// Counts the packets of trains that have arrived before `end`.
    fn count_arrivals(&mut self, end: Time) {
        let (messages, statistics) = (&self.messages, &mut self.statistics);
        self.net.count_arrivals(end, |packet, count, network| {
            let message: &Message = messages.get(packet.message);
            let ends = (message.from, message.to.first);
            statistics.add_packets(packet, count, network, filled(message, packet.payload), ends);
        });
    }
}
