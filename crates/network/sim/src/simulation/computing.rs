//! Turns of nodes on the processors of their computers, where the plan describes these.

use super::Simulation;
use crate::{
    cpu::{Cpus, Due, Task, WorkItem},
    event::Event,
    message::{Message, MessageId},
    node::{NodeUnit, Outgoing},
};
use evb_core::{NodeId, Span, Time};
use evb_experiment::Plan;
use evb_sources::SourceSpec;
use evb_unit::{ReadLimits, TURN_MESSAGES, WorkDone};
use std::collections::VecDeque;

/// Shortest time between two samples of the state of all units.
const SAMPLED: Span = Span::from_millis(1);
/// Most samples of a simulation whose end is known.
const MOST_SAMPLES: u64 = 1000;

/// Something that has come for a node.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Input {
    Message(MessageId),
    /// A trigger that came at this time.
    Trigger(Time),
}

/// The computers, and what waits there for its node's turn.
pub(crate) struct Computing {
    pub(crate) cpus: Cpus,
    inboxes: Vec<VecDeque<Input>>,
    /// The exchange of messages in which each node was a peer last: what a node takes in a turn, or what it sends.
    last_exchange: Vec<u64>,
    exchange: u64,
    /// The sizes of fragments differ.
    draws: bool,
}

impl Computing {
    /// The computers of a plan; `None` if the plan has none.
    pub(crate) fn of(plan: &Plan) -> Option<Box<Self>> {
        let draws = plan.sources.iter().any(|source| !matches!(source, SourceSpec::Fixed { .. }));
        let nodes = usize::from(plan.building.nodes());
        let (inboxes, last_exchange) = (vec![VecDeque::new(); nodes], vec![0; nodes]);
        Some(Box::new(Self { cpus: Cpus::of(plan)?, inboxes, last_exchange, exchange: 0, draws }))
    }

    /// A message of the present exchange; true if it is the first one with this peer.
    fn is_new_peer(&mut self, peer: NodeId) -> bool {
        std::mem::replace(&mut self.last_exchange[peer.index()], self.exchange) != self.exchange
    }
}

impl Simulation<'_> {
    /// A node has something to do. It gets its turn when its worker has time for it.
    pub(super) fn call_node(&mut self, id: NodeId) {
        self.call_task(Task::Node(id));
    }

    /// There is something to do for a node, or for what works beside it.
    pub(super) fn call_task(&mut self, task: Task) {
        let now = self.net.queue.now();
        if let Some(computing) = &mut self.computing {
            computing.cpus.call(now, task);
            self.plan_workers();
        }
    }

    /// Something has come for a node.
    pub(super) fn put_into_inbox(&mut self, id: NodeId, input: Input) {
        if let Some(computing) = &mut self.computing {
            computing.inboxes[id.index()].push_back(input);
            self.call_node(id);
        }
    }

    fn plan_workers(&mut self) {
        let Some(computing) = &mut self.computing else { return };
        while let Some((at, worker)) = computing.cpus.pop_planned() {
            self.net.queue.push(at, Event::Worker { worker });
        }
    }

    /// The planned time of a worker has come.
    pub(super) fn work(&mut self, worker: u16) {
        let now = self.net.queue.now();
        let Some(computing) = &mut self.computing else { return };
        if let Due::Turn { task, found } = computing.cpus.due(now, worker) {
            match task {
                Task::Node(node) => self.turn(now, node, found),
                Task::Writer(builder) => self.write_events(now, builder),
                Task::FilterUnit(builder, _) => self.decide(now, task, builder),
            }
        }
        self.plan_workers();
    }

    /// A turn of a node: it takes what has come, works, and sends.
    fn turn(&mut self, now: Time, id: NodeId, found: Span) {
        let Some(computing) = &mut self.computing else { return };
        if self.nodes[id.index()].dead {
            computing.inboxes[id.index()].clear();
            return computing.cpus.end_turn(now, Task::Node(id), found, false);
        }
        let before = self.done_by(id);
        let (mut time, taken) = self.take_inputs(now, id, found);
        let node = &mut self.nodes[id.index()];
        if taken < TURN_MESSAGES && node.deadline().is_some_and(|deadline| deadline <= now) {
            node.timeout_at = Time::MAX;
            node.handle_timeout(now);
        }
        let mut out = std::mem::take(&mut self.out);
        let mut outputs = std::mem::take(&mut self.outputs);
        let has_read = self.nodes[id.index()].drain_within(now, ReadLimits::TURN, &mut out, &mut outputs);
        if let Some(deadline) = self.nodes[id.index()].deadline() {
            self.plan_timeout(id, deadline);
        }
        let has_worked = taken > 0 || has_read || !out.is_empty() || !outputs.is_empty();
        time = time + self.cost_of_work(id, before);
        self.begin_exchange();
        for mut outgoing in out.drain(..) {
            time = time + self.cost_of_sending(id, &outgoing);
            outgoing.delay = outgoing.delay + time;
            self.transmit(id, outgoing);
        }
        outputs.drain(..).for_each(|output| self.hear(now.0, id, output));
        (self.out, self.outputs) = (out, outputs);
        time = time + self.plan_hand_over(now, id, time);
        if let Some(computing) = &mut self.computing {
            computing.cpus.end_turn(now, Task::Node(id), time, has_worked);
        }
        if let Some(host) = self.host(id).filter(|&host| self.nics[host].slots.is_some()) {
            self.ask_time(host);
            self.feed_nic(host);
        }
    }

    pub(super) fn plan_sample(&mut self, now: u64) {
        let trigger = &self.plan.trigger;
        let by_rate = || Some(self.plan.events()? as f64 / trigger.rate?.as_hertz() * 1e12);
        let all = trigger.duration.map(|duration| duration.0).or_else(|| by_rate().map(|time| time as u64));
        let every = SAMPLED.max(Span(all.unwrap_or(0) / MOST_SAMPLES));
        self.net.queue.push(Time(now) + every, Event::Sample);
    }

    /// Samples how full the units are, as run control does in a run, until nothing moves any more.
    pub(super) fn sample(&mut self, now: u64) {
        if self.stopped || self.net.queue.is_empty() || self.is_stuck(now) {
            return;
        }
        // The event manager comes last: its report ends a round.
        for index in (1..self.nodes.len()).chain([0]) {
            if let Some(report) = self.nodes[index].report(Time(now)) {
                self.statistics.report(NodeId(index as u16), report);
            }
        }
        self.plan_sample(now);
    }

    fn begin_exchange(&mut self) {
        if let Some(computing) = &mut self.computing {
            computing.exchange += 1;
        }
    }

    /// Gives a node what has come for it; returns the time until then, from `time` on, and the number of messages.
    fn take_inputs(&mut self, now: Time, id: NodeId, mut time: Span) -> (Span, usize) {
        self.begin_exchange();
        let mut taken = 0;
        while taken < TURN_MESSAGES
            && let Some(input) = self.computing.as_mut().and_then(|computing| computing.inboxes[id.index()].pop_front())
        {
            taken += 1;
            match input {
                Input::Message(message) => {
                    time = time + self.cost_of_receiving(message);
                    self.receive(message);
                }
                Input::Trigger(at) => {
                    if let Some(manager) = self.nodes[id.index()].manager() {
                        manager.trigger(now, at, 1);
                    }
                }
            }
        }
        (time, taken)
    }

    fn cost_of_receiving(&mut self, message: MessageId) -> Span {
        let Message { from, ref to, payload, .. } = *self.messages.get(message);
        let (to, payload) = (to.first, u64::from(payload));
        let Some(computing) = &mut self.computing else { return Span::ZERO };
        let is_new = computing.is_new_peer(from);
        let cpus = &mut computing.cpus;
        let (receive, crossing) = (cpus.plan.receive, cpus.plan.crossing);
        let far = if payload > 0 { cpus.take_payload(from, payload) } else { 0 };
        let far_byte = cpus.plan.cache.map_or(Span::ZERO, |cache| cache.byte);
        let crosses = u64::from(cpus.crosses(from, to));
        let work = &mut cpus.work;
        work.add(WorkItem::ReceiveCall, is_new.into(), receive.call)
            + work.add(WorkItem::ReceiveMessage, 1, receive.message)
            + work.add(WorkItem::ReceiveByte, payload, receive.byte)
            + work.add(WorkItem::CrossingMessage, crosses, crossing.message)
            + work.add(WorkItem::CrossingByte, crosses * payload, crossing.byte)
            + work.add(WorkItem::CacheByte, far, far_byte)
    }

    fn cost_of_sending(&mut self, from: NodeId, outgoing: &Outgoing) -> Span {
        let Some(computing) = &mut self.computing else { return Span::ZERO };
        let mut time = Span::ZERO;
        for to in outgoing.to.iter() {
            let is_new = computing.is_new_peer(to);
            let cpus = &mut computing.cpus;
            let wakes = is_new && cpus.sleeps(Task::Node(to)) && cpus.crosses(from, to);
            let (send, wake, work) = (cpus.plan.send, cpus.plan.wake, &mut cpus.work);
            time = time
                + work.add(WorkItem::SendCall, is_new.into(), send.call)
                + work.add(WorkItem::SendMessage, 1, send.message)
                + work.add(WorkItem::SendByte, outgoing.payload, send.byte)
                + work.add(WorkItem::WakeCall, wakes.into(), wake.call);
        }
        time
    }

    /// What a node has done until now.
    fn done_by(&self, id: NodeId) -> WorkDone {
        match &self.nodes[id.index()].unit {
            NodeUnit::Manager(unit) => {
                let blocks = unit.machine.counts().triggered;
                WorkDone { blocks, fragments: unit.triggered_and_ended().1, bytes: 0 }
            }
            NodeUnit::Readout(unit) => unit.work_done(),
            NodeUnit::Builder(unit) => unit.work_done(),
            NodeUnit::Traffic(..) | NodeUnit::Background(..) | NodeUnit::Remote => WorkDone::default(),
        }
    }

    /// The cost of what a node has done in this turn beside messages.
    fn cost_of_work(&mut self, id: NodeId, before: WorkDone) -> Span {
        let WorkDone { blocks, fragments, bytes } = self.done_by(id).since(before);
        let Some(computing) = &mut self.computing else { return Span::ZERO };
        let draws = computing.draws;
        let Cpus { plan, work, .. } = &mut computing.cpus;
        match &self.nodes[id.index()].unit {
            NodeUnit::Manager(_) => {
                work.add(WorkItem::ManagerBlock, blocks, plan.manager.block)
                    + work.add(WorkItem::ManagerEvent, fragments, plan.manager.event)
            }
            NodeUnit::Readout(_) => {
                let time = work.add(WorkItem::ReadoutBlock, blocks, plan.readout.block)
                    + work.add(WorkItem::ReadoutFragment, fragments, plan.readout.fragment)
                    + work.add(WorkItem::ReadoutByte, bytes, plan.readout.byte)
                    + work.add(WorkItem::ReadoutDraw, if draws { fragments } else { 0 }, plan.draw);
                computing.cpus.add_payload(id, bytes);
                time
            }
            NodeUnit::Builder(_) => {
                work.add(WorkItem::BuilderBlock, blocks, plan.builder.block)
                    + work.add(WorkItem::BuilderFragment, fragments, plan.builder.fragment)
                    + work.add(WorkItem::BuilderByte, bytes, plan.builder.byte)
            }
            NodeUnit::Traffic(..) | NodeUnit::Background(..) | NodeUnit::Remote => Span::ZERO,
        }
    }
}
