//! A simulation as a partition of a larger one: its exchange with the other partitions.

use super::Simulation;
use crate::{
    event::Event,
    message::{Body, Message, MessageId},
    packet::Packet,
    partition_border::{ControlCall, MailEffects, PartitionMail, Partitioning},
};
use evb_core::{NodeId, Time};
use evb_experiment::Workload;
use evb_fabric::{Control, LinkEnd};

impl Simulation<'_> {
    /// Handles all that happens before `end`. It stops early when the simulation is over or gives up.
    pub(crate) fn run_before(&mut self, end: Time) {
        while !self.ended && !self.net.gives_up && self.net.queue.advance_before(end) {
            self.settle(&mut |_| true);
        }
    }

    /// The present: the time of what happened last.
    pub(crate) fn now(&self) -> Time {
        self.net.queue.now()
    }

    /// Time of the next event in this partition, or of the first effect of its mail that no partition has taken yet,
    /// and the number of events that this mail ends. To be called once after the mail was handed out.
    pub(crate) fn next_effects(&mut self) -> MailEffects {
        let mail = self.net.border.take_effects();
        MailEffects { first: self.net.queue.next_time().into_iter().chain(mail.first).min(), ..mail }
    }

    /// Gives up if everything is over: the other partitions have continued.
    pub(crate) fn must_not_have_ended(&mut self) {
        self.net.gives_up |= self.ended;
    }

    /// True if everything is over when nothing happens any more: no event manager announces the end.
    pub(crate) const fn ends_in_silence(&self) -> bool {
        matches!(self.plan.workload, Workload::Traffic(_))
    }

    /// True if what happens here cannot be simulated in partitions.
    pub(crate) const fn gives_up(&self) -> bool {
        self.net.gives_up
    }

    /// The mail for another partition; `empty` takes its place.
    pub(crate) fn hand_out(&mut self, partition: usize, empty: PartitionMail) -> PartitionMail {
        self.net.border.hand_out(partition, empty)
    }

    /// The measurement ended at `end` in all partitions, and everything is over.
    pub(crate) fn end_partition(&mut self, end: u64) {
        self.statistics.end_partition(end, self.net.packets_left());
    }

    /// Number of events that are still open when all control messages under way to this partition have arrived, for the
    /// partition with the event manager. It is `u64::MAX` while more events may begin, and where no event manager
    /// announces the end.
    pub(crate) fn stays_open(&mut self) -> u64 {
        let has_all = self.stopped || self.manager().is_some_and(|manager| manager.has_all_triggers());
        if !has_all || self.ends_in_silence() {
            return u64::MAX;
        }
        // What comes through the network may be anywhere.
        if !matches!(self.net.network.config.control, Control::Separate { .. }) {
            return 0;
        }
        let coming: u64 = self.control.waiting().map(|place| self.messages.get(place).body.ends()).sum();
        self.manager().map_or(0, |manager| manager.machine.counts().open().saturating_sub(coming))
    }

    /// Takes mail from another partition.
    pub(crate) fn take_mail(&mut self, partition: usize, mail: &mut PartitionMail) {
        mail.messages.drain(..).for_each(|(place, message)| self.import(partition, place, message));
        mail.done.drain(..).for_each(|place| _ = self.messages.remove(place));
        mail.packets.drain(..).for_each(|packet| self.net.enter(packet));
        mail.credits.drain(..).for_each(|credit| self.net.take_back_credit(credit));
        mail.calls.drain(..).for_each(|ControlCall { sent, at, message }| self.call(sent, at, message));
    }

    /// Sends a message over the control network, to nodes here and in other partitions.
    pub(super) fn call_all(&mut self, sent: Time, at: Time, message: Message) {
        for partition in self.net.border.others() {
            if message.to.count > 1 || self.net.border.beyond_node(message.to.first) == Some(partition) {
                self.net.border.post_call(partition, ControlCall { sent, at, message: message.clone() });
            }
        }
        if message.to.count > 1 || self.net.border.beyond_node(message.to.first).is_none() {
            self.call(sent, at, message);
        }
    }

    fn call(&mut self, sent: Time, at: Time, message: Message) {
        let from = message.from;
        let place = self.messages.insert(message);
        self.control.send(from, sent, at, place);
        self.net.queue.push(at, Event::Control);
    }

    /// Passes a message to the partition of its receiver before a first packet of it leaves.
    #[inline]
    pub(super) fn export_to_receiver(&mut self, place: MessageId) {
        if let Some(partition) = self.net.border.beyond_node(self.messages.get(place).to.first) {
            self.export(partition, place);
        }
    }

    fn export(&mut self, partition: usize, place: MessageId) {
        let message = self.messages.get_mut(place);
        if message.is_exported {
            return;
        }
        let message = message.export();
        if let Body::Bucket(bucket) = &message.body {
            bucket.parts.iter().for_each(|&(place, bytes)| self.export_in_bucket(partition, place, bytes));
        }
        self.net.border.post_message(partition, place, message);
    }

    /// Passes a message, of which a bucket has this number of bytes, to the partition of its receiver.
    fn export_in_bucket(&mut self, partition: usize, place: MessageId, bytes: u32) {
        let message = self.messages.get(place);
        if bytes < message.missing {
            return self.export(partition, place);
        }
        // The bucket has all of it: it is not needed here any more, nor the report that it was taken.
        let message = self.messages.remove(place);
        self.net.border.post_message(partition, place, message);
    }

    fn import(&mut self, partition: usize, place: MessageId, mut message: Message) {
        if let Body::Bucket(bucket) = &mut message.body {
            bucket.parts.iter_mut().for_each(|(place, _)| *place = self.from_remote[partition][place.0 as usize]);
        }
        message.order = place.0;
        let here = self.messages.insert(message);
        if self.from_remote.len() <= partition {
            self.from_remote.resize_with(partition + 1, Vec::new);
        }
        let places = &mut self.from_remote[partition];
        if places.len() <= place.0 as usize {
            places.resize(place.0 as usize + 1, MessageId(u32::MAX));
        }
        places[place.0 as usize] = here;
    }

    /// Replaces the place of a message with its sender by that here.
    #[inline]
    pub(super) fn find_message(&self, packet: &mut Packet) {
        if let Some(partition) = self.net.border.beyond(LinkEnd::Endpoint(packet.from)) {
            packet.message = self.from_remote[partition][packet.message.0 as usize];
        }
    }

    /// Reports to the partition of its sender that a message was taken.
    #[inline]
    pub(super) fn report_taken(&mut self, message: &Message) {
        if message.is_exported
            && let Some(partition) = self.net.border.beyond_node(message.from)
        {
            self.net.border.post_done(partition, MessageId(message.order));
        }
    }

    /// Joins the other partitions, numbered from 1, to this one, the one with the event manager. All must have handled what
    /// happens up to the end.
    pub(crate) fn join(&mut self, others: Vec<Self>, partitioning: &Partitioning) {
        for (partition, mut other) in (1..).zip(others) {
            self.net.take_over(&other.net, |end| partitioning.of_end(end) == partition);
            for (place, node) in other.nodes.drain(..).enumerate() {
                if partitioning.of_node(NodeId(place as u16)) == partition {
                    self.nodes[place] = node;
                }
            }
            for (host, nic) in other.nics.drain(..).enumerate() {
                if partitioning.of_endpoint(self.net.network.endpoint_id(host as u16, 0)) == partition {
                    self.nics[host] = nic;
                }
            }
            let is_of_other = |link: usize| partitioning.of_end(self.net.network.links[link].from) == partition;
            self.statistics.join(other.statistics, is_of_other);
        }
    }
}
