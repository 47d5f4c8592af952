//! Background traffic: it begins and ends, and its senders are offered messages.

use super::Simulation;
use crate::{connections::ConnectionId, event::Event};
use evb_core::{NodeId, Time};
use evb_experiment::Workload;
use evb_patterns::{TrafficCommand, TrafficEvent};

impl Simulation<'_> {
    /// Plans the beginning and the end of all background traffic.
    pub(super) fn plan_background(&mut self) {
        for (index, background) in (0..).zip(&self.plan.background) {
            self.net.queue.push(Time(background.from.0), Event::Begin { background: index });
            if let Some(until) = background.until {
                self.net.queue.push(Time(until.0), Event::End { background: index });
            }
        }
    }

    /// Background traffic begins.
    pub(super) fn begin_background(&mut self, index: u16) {
        if self.stopped {
            return;
        }
        let traffic = &self.plan.background[usize::from(index)].traffic;
        let saturating = self.background[usize::from(index)].is_saturating();
        self.command_senders(index, TrafficCommand::Start { saturating, messages: traffic.messages });
        for node in traffic.config.senders.iter() {
            if self.net.border.beyond_node(node).is_none() {
                self.plan_arrival(usize::from(index), node);
            }
        }
    }

    /// The senders of background traffic stop.
    pub(super) fn end_background(&mut self, index: u16) {
        self.command_senders(index, TrafficCommand::Stop);
    }

    /// All background traffic ends with the workload.
    pub(super) fn stop_background(&mut self, now: Time) {
        self.statistics.background.stop(now);
        (0..self.plan.background.len()).for_each(|index| self.end_background(index as u16));
    }

    fn command_senders(&mut self, index: u16, command: TrafficCommand) {
        let now = self.net.queue.now();
        for node in self.plan.background[usize::from(index)].traffic.config.senders.iter() {
            self.nodes[node.index()].command_background(now, command);
            self.drain(node);
        }
    }

    fn plan_arrival(&mut self, index: usize, node: NodeId) {
        if let Some(at) = self.background[index].next(node) {
            self.net.queue.push(at.max(self.net.queue.now()), Event::Arrival { node: node.0 });
        }
    }

    /// A sender of background traffic is offered a message.
    pub(super) fn arrive_in_background(&mut self, now: u64, index: usize, node: NodeId) {
        let is_over = self.plan.background[index].until.is_some_and(|until| now >= until.0);
        if self.stopped || is_over || self.stops_with_workload(now) {
            return;
        }
        self.nodes[node.index()].command_background(Time(now), TrafficCommand::Offer { number: 0 });
        self.drain(node);
        self.plan_arrival(index, node);
    }

    /// A message of background traffic has left its host.
    pub(super) fn note_sent_in_background(&mut self, now: u64, sender: NodeId) {
        if !self.stops_with_workload(now) {
            self.nodes[sender.index()].command_background(Time(now), TrafficCommand::Sent);
            self.drain(sender);
        }
    }

    /// Takes an event of a sender.
    pub(super) fn hear_background(&mut self, sender: NodeId, event: TrafficEvent) {
        if let (TrafficEvent::Refused, Some(index)) = (event, self.plan.background_of(sender)) {
            self.statistics.background.refuse(index);
        }
    }

    /// A connection that may be able to send waits for its turn. One of lower priority waits for all others.
    pub(super) fn add_to_ready(&mut self, host: usize, port: usize, id: ConnectionId) {
        let is_lower = self.connection(id).priority < self.plan.data_priority();
        let port = &mut self.nics[host].ports[port];
        if is_lower { &mut port.lower } else { &mut port.ready }.push_back(id);
    }

    /// Stops everything if the workload is stuck, since background traffic would go on without end; returns true if so.
    fn stops_with_workload(&mut self, now: u64) -> bool {
        let limit = self.moved_at.saturating_add(self.plan.run.drain_timeout.0);
        // Nothing is triggered by itself, so that nothing will happen any more.
        let is_still = matches!(self.plan.workload, Workload::EventBuilding) && self.arrivals.saturating;
        let is_stuck = now > limit && !self.stopped && (is_still || self.is_stuck(now));
        if is_stuck {
            self.stop_or_give_up(now);
        }
        is_stuck
    }
}
