//! Orders of run control, as nodes carry them out.

use super::{Driver, Mark, Node, What, node::Slot};
use crate::{planted::Planted, scenario::TRIGGERS};
use evb_control::{Notice, Order};
use evb_core::{NodeId, Time};
use evb_protocol::{BuilderCommand, Config, ManagerCommand};
use std::collections::BTreeSet;

impl Driver {
    pub(super) fn take_order(&mut self, id: NodeId, order: Order) {
        let is_builder = self.scenario.config.builder_nodes().contains(id);
        match order {
            Order::Open => self.tell(id, Notice::Ready),
            Order::Connect => self.connect(id),
            Order::Prepare => self.prepare(id),
            Order::Start => self.start(id),
            Order::Pause => {
                let (now, run) = (self.now, self.slots[id.index()].run);
                self.runs[run].pauses.push(now);
                self.obey(id, What::Manager(ManagerCommand::Pause));
            }
            Order::Resume => self.obey(id, What::Manager(ManagerCommand::Resume)),
            Order::Stop => self.obey(id, What::Manager(ManagerCommand::Stop)),
            Order::Cut if is_builder => self.obey(id, What::Builder(BuilderCommand::Cut)),
            Order::Cut => {}
            Order::Lost(peer) => {
                if let Some(planted) = &mut self.slots[id.index()].node {
                    planted.machine.lose(self.now, peer);
                }
            }
            Order::Finish => self.finish(id),
            Order::Reset => {
                self.inspect(id, true);
                self.slots[id.index()].mark = Mark::default();
                self.tell(id, Notice::Reset);
            }
            Order::Die => self.crash(id, None),
            Order::Exit => self.end_process(id),
            // No schedule has front ends.
            Order::Arm => self.tell(id, Notice::Ready),
            // No schedule splits a run; the tests of the command do.
            Order::Settle | Order::Next => {}
        }
    }

    fn obey(&mut self, id: NodeId, what: What) {
        self.handle(id, self.slots[id.index()].mark, what);
    }

    fn connect(&mut self, id: NodeId) {
        let slot = &mut self.slots[id.index()];
        slot.mark = Mark { connection: self.connection, ..Mark::default() };
        slot.lost = BTreeSet::new();
        slot.doomed = false;
        slot.cut_off = false;
        self.network.forget(id);
        self.tell(id, Notice::Ready);
    }

    /// Makes the machine for the next run. All that is under way for the one before means nothing to it.
    fn prepare(&mut self, id: NodeId) {
        self.inspect(id, true);
        let mark = &mut self.slots[id.index()].mark;
        mark.run = mark.run.next();
        self.make_machine(id);
        self.tell(id, Notice::Ready);
    }

    /// Makes the machine of a node for the latest run, and starts it.
    pub(super) fn make_machine(&mut self, id: NodeId) -> What {
        let (node, start) = Node::new(id, &self.scenario.config);
        let slot = &mut self.slots[id.index()];
        slot.node = Some(Planted::new(node, self.scenario.bug));
        slot.run = self.runs.len() - 1;
        slot.timer = Time::MAX;
        slot.finished = false;
        start
    }

    fn start(&mut self, id: NodeId) {
        let (_, start) = Node::new(id, &self.scenario.config);
        self.obey(id, start);
        if id == Config::EVENT_MANAGER && self.scenario.config.trigger.is_driven() {
            for n in 1..=TRIGGERS {
                let at = Time(self.now.0 + n * self.scenario.trigger_period.0);
                self.plan(at, id, What::Manager(ManagerCommand::Trigger { count: 1, at }));
            }
        }
    }

    /// The machines of a run that was cut short are dropped, and those of nodes that are cut off. Others go on, to see that they come to rest.
    fn finish(&mut self, id: NodeId) {
        let Slot { node, finished, run, cut_off, .. } = &mut self.slots[id.index()];
        if node.is_none() || std::mem::replace(finished, true) {
            return;
        }
        if self.runs[*run].cut || *cut_off {
            let is_early = self.runs[*run].cut;
            self.inspect(id, is_early);
        }
        self.tell(id, Notice::Finished);
    }

    /// Takes the machine of a node, and notes what it has counted. `is_early` when it might have gone on.
    pub(super) fn inspect(&mut self, id: NodeId, is_early: bool) {
        self.drain_node(id);
        let slot = &mut self.slots[id.index()];
        let Some(planted) = slot.node.take().filter(|_| !slot.doomed) else { return };
        let outcome = &mut self.runs[slot.run];
        outcome.superseded |= is_early;
        match planted.machine {
            Node::Manager(m) => {
                outcome.manager = *m.counts();
                outcome.faults.merge(&m.counts().faults);
            }
            Node::Readout(m) => {
                outcome.holding.extend((!m.is_idle()).then_some(id));
                outcome.readouts.push(*m.counts());
                outcome.faults.merge(&m.counts().faults);
            }
            Node::Builder(m) => {
                outcome.building.extend((!m.is_idle()).then_some(id));
                outcome.most_open = outcome.most_open.max(m.counts().most_open);
                outcome.fragments += m.counts().fragments;
                outcome.asked += m.counts().asked;
                outcome.repeated += m.counts().repeated;
                outcome.faults.merge(&m.counts().faults);
            }
        }
    }
}
