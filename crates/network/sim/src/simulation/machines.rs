//! Machines: they are drained, get their deadlines and inputs from outside, and die.

use super::{Simulation, computing::Input};
use crate::{event::Event, node::Output};
use evb_core::{NodeId, Span, Time};
use evb_experiment::Workload;
use evb_patterns::{Pattern, TrafficCommand, TrafficEvent};
use evb_protocol::{Config, ManagerEvent};
use evb_record::FindingKind;
use evb_unit::{EventManager, SimulatedPayload};

impl Simulation<'_> {
    pub(super) fn drain(&mut self, id: NodeId) {
        if self.nodes[id.index()].dead {
            return;
        }
        if self.computing.is_some() {
            return self.call_node(id);
        }
        let host = self.host(id);
        if let Some(host) = host {
            self.nics[host].held_back.retain(|&other| other != id);
        }
        while self.drain_once(id, host) {
            let Some(nic) = host.map(|host| &mut self.nics[host]) else { return };
            nic.held_back.push(id);
            if !nic.is_hungry() {
                return;
            }
            nic.held_back.pop();
        }
    }

    /// Drains a machine as far as the interface of its host has room; true when something may be left.
    fn drain_once(&mut self, id: NodeId, host: Option<usize>) -> bool {
        let now = self.net.queue.now();
        let mut out = std::mem::take(&mut self.out);
        let mut outputs = std::mem::take(&mut self.outputs);
        let room = host.map_or(usize::MAX, |host| self.nics[host].room());
        let node = &mut self.nodes[id.index()];
        let holds_back = node.drain(now, room, &mut out, &mut outputs);
        if let Some(deadline) = node.deadline() {
            self.plan_timeout(id, deadline);
        }
        out.drain(..).for_each(|outgoing| self.transmit(id, outgoing));
        outputs.drain(..).for_each(|output| self.hear(now.0, id, output));
        self.out = out;
        self.outputs = outputs;
        holds_back
    }

    /// Plans to look at a node at its deadline, unless it is looked at before.
    #[inline]
    pub(super) fn plan_timeout(&mut self, id: NodeId, deadline: Time) {
        // A deadline that has passed is looked at now.
        let (deadline, node) = (deadline.max(self.net.queue.now()), &mut self.nodes[id.index()]);
        if deadline < node.timeout_at {
            node.timeout_at = deadline;
            self.net.queue.push(deadline, Event::Timeout { node: id.0 });
        }
    }

    /// The interface of a host soon has nothing to send: nodes that hold something back send it now.
    pub(super) fn feed_from_held_back(&mut self, host: usize) {
        if self.nics[host].is_hungry() {
            let nodes = std::mem::take(&mut self.nics[host].held_back);
            nodes.into_iter().for_each(|id| self.drain(id));
        }
    }

    pub(super) fn timeout(&mut self, now: u64, id: NodeId) {
        let node = &mut self.nodes[id.index()];
        if node.dead || node.timeout_at.0 != now {
            return;
        }
        node.timeout_at = Time::MAX;
        if self.computing.is_none() {
            node.handle_timeout(Time(now));
        }
        self.drain(id);
        if let Some(host) = self.host(id).filter(|&host| self.nics[host].slots.is_some()) {
            self.ask_time(host);
            self.feed_nic(host);
        }
        if self.is_stuck(now) {
            self.stop_or_give_up(now);
        }
    }

    /// True if events are open and nothing has moved for so long that nothing will.
    pub(super) fn is_stuck(&mut self, now: u64) -> bool {
        let limit = self.moved_at.saturating_add(self.plan.run.drain_timeout.0);
        // A partition does not know what moves in the others, nor how many events are open.
        let is_partition = self.net.border.is_there() && matches!(self.plan.workload, Workload::EventBuilding);
        !self.stopped && now > limit && (is_partition || self.has_open_events())
    }

    /// True if events are open, as far as this partition knows.
    fn has_open_events(&mut self) -> bool {
        self.manager().is_some_and(|manager| manager.machine.counts().open() > 0)
    }

    pub(super) fn stop_or_give_up(&mut self, now: u64) {
        if self.net.border.is_there() { self.net.gives_up = true } else { self.stop(now) }
    }

    pub(super) fn manager(&mut self) -> Option<&mut EventManager<SimulatedPayload>> {
        self.nodes[Config::EVENT_MANAGER.index()].manager()
    }

    fn note_events(&mut self, now: u64) {
        if let Some((triggered, ended)) = self.manager().map(|manager| manager.triggered_and_ended()) {
            self.statistics.events(now, triggered, ended);
        }
    }

    pub(super) fn hear(&mut self, now: u64, id: NodeId, output: Output) {
        if let Output::Manager(_) = output {
            self.note_events(now);
        }
        let is_gathered = self.statistics.hear(now, output);
        match output {
            Output::Manager(ManagerEvent::Drained | ManagerEvent::NoBuilders) => self.ended = true,
            Output::Traffic(TrafficEvent::Compute { span }) => self.compute(now, id, span),
            Output::Background(event) => self.hear_background(id, event),
            Output::Manager(ManagerEvent::Completed { .. }) => self.moved_at = now,
            Output::Filtering(until) => self.net.queue.push(until, Event::Filtered { node: id.0 }),
            Output::Storing(until) => self.net.queue.push(until, Event::Stored { node: id.0 }),
            _ => {}
        }
        if is_gathered && self.arrivals.saturating && !self.stopped {
            self.offer_event();
        }
    }

    /// The processor of a node's host is busy for it, when it has done all that waits for it now.
    fn compute(&mut self, now: u64, id: NodeId, span: Span) {
        let free_at = self.host(id).map_or(now, |host| self.processors[host].max(now));
        let done_at = free_at + span.0;
        if let Some(host) = self.host(id) {
            self.processors[host] = done_at;
        }
        self.net.queue.push(Time(done_at), Event::Computed { node: id.0 });
    }

    pub(super) fn computed(&mut self, now: u64, id: NodeId) {
        self.nodes[id.index()].command_traffic(Time(now), TrafficCommand::Computed);
        self.drain(id);
    }

    pub(super) fn arrive(&mut self, now: u64, id: NodeId) {
        if let Some(index) = self.plan.background_of(id) {
            return self.arrive_in_background(now, index, id);
        }
        if self.stopped {
            return;
        }
        // An event manager that is cut off has no timeouts, and triggers come without end if no duration ends them.
        let may_be_endless = self.plan.trigger.duration.is_none() && self.has_open_events();
        if may_be_endless && self.is_stuck(now) {
            return self.stop_or_give_up(now);
        }
        if self.is_gathering() {
            self.offer_event();
        } else {
            self.statistics.offer(now);
            let (node, computes) = (&mut self.nodes[id.index()], self.computing.is_some());
            match node.manager() {
                Some(_) if computes => self.put_into_inbox(id, Input::Trigger(Time(now))),
                Some(manager) => manager.trigger(Time(now), Time(now), 1),
                None => node.command_traffic(Time(now), TrafficCommand::Offer { number: 0 }),
            }
            self.drain(id);
        }
        if let Some(at) = self.arrivals.next(id, Time(now)) {
            self.net.queue.push(at, Event::Arrival { node: id.0 });
        }
    }

    /// The disk of a builder has stored an event.
    pub(super) fn stored(&mut self, now: u64, id: NodeId) {
        if !self.nodes[id.index()].dead {
            self.moved_at = now;
            self.nodes[id.index()].stored(Time(now));
            self.drain(id);
            self.call_writer(id);
        }
    }

    /// A filter unit of a builder has decided.
    pub(super) fn filtered(&mut self, now: u64, id: NodeId) {
        if !self.nodes[id.index()].dead {
            self.moved_at = now;
            self.nodes[id.index()].filtered(Time(now));
            self.drain(id);
        }
    }

    /// Gives up open events when nothing has moved for the drain timeout; a slow drain continues. Builders first end
    /// their events with the fragments that are there. If that does not help, everything ends.
    pub(super) fn give_up(&mut self, now: u64) {
        let limit = self.plan.run.drain_timeout;
        let at = self.moved_at.saturating_add(limit.0);
        if at > now {
            return self.net.queue.push(Time(at), Event::GiveUp);
        }
        if self.net.border.is_there() {
            // Something may have moved in other partitions.
            self.net.gives_up = true;
            return;
        }
        if std::mem::replace(&mut self.cut, true) {
            self.ended = true;
            return;
        }
        let message = format!("the run did not drain: nothing moved for {limit}");
        self.statistics.find(FindingKind::NotDrained, "evm", message);
        self.moved_at = now;
        self.net.queue.push(Time(now) + limit, Event::GiveUp);
        for index in 0..self.nodes.len() {
            self.nodes[index].cut(Time(now));
            self.drain(NodeId(index as u16));
        }
    }

    pub(super) fn is_gathering(&self) -> bool {
        matches!(&self.plan.workload, Workload::Traffic(traffic) if matches!(traffic.config.pattern, Pattern::Gather { .. }))
    }

    /// An event for all buffers and processors.
    pub(super) fn offer_event(&mut self) {
        if !self.arrivals.take_event() {
            return;
        }
        let now = self.net.queue.now();
        let number = self.statistics.offer(now.0);
        // All learn of it before any of their messages arrives, which within a host may be at once.
        self.nodes.iter_mut().for_each(|node| node.command_traffic(now, TrafficCommand::Offer { number }));
        (0..self.nodes.len()).for_each(|index| self.drain(NodeId(index as u16)));
    }

    pub(super) fn kill(&mut self, now: u64, id: NodeId) {
        self.nodes[id.index()].dead = true;
        self.statistics.lose_node(&self.plan.building.node_name(id));
        if id == Config::EVENT_MANAGER {
            // Without the event manager no event is numbered or ended any more.
            self.ended = true;
        }
        // The death of a process closes its connections: its peers know at once.
        for index in 0..self.nodes.len() {
            if !self.nodes[index].dead {
                self.nodes[index].lose(Time(now), id);
                self.leave_out(NodeId(index as u16), id);
                self.drain(NodeId(index as u16));
            }
        }
    }

    /// Removes the slots of a node for a lost builder.
    fn leave_out(&mut self, id: NodeId, gone: NodeId) {
        if let Some(slots) = self.host(id).and_then(|host| self.nics[host].slots.as_mut())
            && let Some(builder) = gone.index().checked_sub(slots.first_builder.index())
        {
            slots.shaper.lose(builder);
        }
    }

    /// The trigger stops, or the senders.
    pub(super) fn stop(&mut self, now: u64) {
        self.split_trains(Time(now));
        self.stopped = true;
        if let Some(faults) = &mut self.statistics.faults {
            faults.stop(Time(now));
        }
        match self.plan.workload {
            Workload::EventBuilding => {
                self.note_events(now);
                // A trigger that had ended by number was not stopped now. The partition with the manager knows.
                if self.manager().is_none_or(|manager| !manager.has_all_triggers()) {
                    self.statistics.stop(now);
                }
                self.moved_at = now;
                self.net.queue.push(Time(now) + self.plan.run.drain_timeout, Event::GiveUp);
            }
            // Senders that had ended before have set the end of the measurement themselves.
            Workload::Traffic(_) if self.messages.len() > 0 || !self.arrivals.bounded => {
                self.statistics.stop(now);
                self.statistics.close(now);
                if let Some(connections) = &mut self.connections {
                    connections.end_to_measure(Time(now));
                }
                self.statistics.links = self.net.counts().map(|(_, counts)| *counts).collect();
            }
            Workload::Traffic(_) => {}
        }
        for index in 0..self.nodes.len() {
            let node = &mut self.nodes[index];
            if let Some(manager) = node.manager() {
                manager.stop(Time(now));
            }
            node.command_traffic(Time(now), TrafficCommand::Stop);
            self.drain(NodeId(index as u16));
        }
        self.stop_background(Time(now));
    }
}
