//! Troubles of nodes: they stop, die, come back or are given up.

use super::{
    Driver, What,
    node::{Mark, Slot},
};
use crate::{
    network::is_long,
    schedule::{Fault as Trouble, PEER_TIMEOUT, REPORT_WINDOW},
};
use evb_control::Notice;
use evb_core::{NodeId, Span, Time};
use evb_protocol::{BuilderCommand, Config};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

impl Driver {
    pub(super) fn trouble(&mut self, fault: Trouble) {
        let noticed = Span(PEER_TIMEOUT.0 + REPORT_WINDOW.0);
        match fault {
            Trouble::Crash { node, back_after } => self.crash(node, back_after),
            Trouble::Stop { node, span } => self.stop(node, span),
            Trouble::Disk { builder: node, span } | Trouble::Source { unit: node, span } => {
                self.slots[node.index()].held_up = self.now + span;
            }
            Trouble::Partition { pair: [one, other], span } => {
                self.network.begin(self.now, fault);
                if is_long(span) {
                    self.disconnect(one, other);
                    [one, other].into_iter().for_each(|node| self.plan(self.now + noticed, node, What::CutOff));
                }
            }
            Trouble::Isolation { node, span } => {
                self.network.begin(self.now, fault);
                if is_long(span) {
                    self.others(node).for_each(|other| self.disconnect(node, other));
                    self.plan(self.now + noticed, node, What::CutOff);
                }
            }
            fault => self.network.begin(self.now, fault),
        }
    }

    /// Two nodes do not hear each other any more, and notice it one after the other.
    fn disconnect(&mut self, one: NodeId, other: NodeId) {
        for (node, peer) in [(one, other), (other, one)] {
            let at = self.now + PEER_TIMEOUT + self.span(REPORT_WINDOW);
            self.plan(at, node, What::Silent(peer));
        }
    }

    /// A node has not heard of a peer for long, and closes its connection.
    pub(super) fn miss(&mut self, id: NodeId, peer: NodeId) {
        let Slot { mark, lost, .. } = &self.slots[id.index()];
        if self.slots[peer.index()].is_there && !lost.contains(&peer) {
            let (mark, process) = (*mark, self.slots[peer.index()].process);
            if id == Config::EVENT_MANAGER {
                // It gives up the peer at once.
                self.note_gone(peer);
            }
            self.handle(id, mark, What::Lost { peer, process });
        }
    }

    /// The network of a node is cut for good. Its machine ends with the run.
    pub(super) fn cut_off(&mut self, id: NodeId) {
        self.slots[id.index()].cut_off = true;
        if self.slots[id.index()].finished {
            self.inspect(id, false);
        }
    }

    /// Run control has given up a node that its peers have lost.
    pub(super) fn exclude(&mut self, id: NodeId) {
        self.runs.last_mut().into_iter().for_each(|run| run.excluded.push(id));
        if !std::mem::replace(&mut self.slots[id.index()].doomed, true) {
            self.note_gone(id);
        }
    }

    fn stop(&mut self, node: NodeId, span: Span) {
        self.slots[node.index()].away = self.now + span;
        self.plan(self.now + span, node, What::Wake);
        if is_long(span) {
            let at = self.now + PEER_TIMEOUT + self.span(Span(PEER_TIMEOUT.0 / 4));
            self.plan(at, node, What::Doom);
        }
    }

    /// A node continues after it was stopped. Messages come before timers: a fragment that came in time is not asked
    /// for.
    pub(super) fn wake(&mut self, id: NodeId) {
        let slot = &mut self.slots[id.index()];
        if slot.away > self.now {
            return;
        }
        let mut inbox = std::mem::take(&mut slot.inbox);
        inbox.sort_by_key(|(_, what)| matches!(what, What::Timeout));
        let mark = slot.mark;
        let long = self.sleeps_long(id);
        if long && self.scenario.config.builder_nodes().contains(id) {
            self.handle(id, mark, What::Builder(BuilderCommand::Away));
        }
        inbox.into_iter().for_each(|(mark, what)| self.handle(id, mark, what));
        self.drain_all();
    }

    fn sleeps_long(&self, id: NodeId) -> bool {
        let mut faults = self.scenario.faults.iter();
        faults.any(|(_, fault)| matches!(fault, Trouble::Stop { node, span } if *node == id && is_long(*span)))
    }

    pub(super) fn doom(&mut self, id: NodeId) {
        if self.slots[id.index()].away > self.now {
            self.give_up(id);
        }
    }

    /// Peers give a node up that may well be alive: each closes its connection when it hears of it.
    fn give_up(&mut self, id: NodeId) {
        let slot = &mut self.slots[id.index()];
        if slot.mark == Mark::default() || std::mem::replace(&mut slot.doomed, true) {
            return;
        }
        let process = slot.process;
        self.note_gone(id);
        let delay = self.scenario.delay.0;
        for other in self.others(id) {
            let at = self.now + self.span(Span(delay * 2));
            self.plan(at, other, What::Lost { peer: id, process });
            // Run control may hear it before the others, and does not believe it.
            let (at, process) = (self.now + self.span(Span(delay * 4)), self.slots[other.index()].process);
            self.plan(at, id, What::Lost { peer: other, process });
        }
    }

    /// The node stops; part of what it has under way is lost, and the others learn of it after that.
    pub(super) fn crash(&mut self, dead: NodeId, back_after: Option<Span>) {
        let slot = &self.slots[dead.index()];
        if !slot.is_there {
            return;
        }
        let (was_given_up, process, run) = (slot.doomed, slot.process, self.runs.len().saturating_sub(1));
        self.tell(dead, Notice::Gone);
        let mut cut: BTreeMap<NodeId, Time> = BTreeMap::new();
        for other in self.others(dead) {
            let last = self.network.last_arrival(dead, other, self.now);
            let at = self.now + self.span(last.since(self.now));
            cut.insert(other, at);
        }
        let times: BTreeMap<u64, Time> = self.planned.iter().map(|Reverse((time, key))| (*key, *time)).collect();
        self.happenings.retain(|key, (to, _, what)| match what {
            What::Message { from, .. } | What::Damaged { from, .. } if *from == dead => times[key] <= cut[to],
            _ => true,
        });
        self.end_process(dead);
        if was_given_up {
            return;
        }
        self.note_gone(dead);
        let last = cut.values().copied().max().unwrap_or(self.now);
        for (node, at) in cut {
            self.plan(at + Span(1), node, What::Lost { peer: dead, process });
        }
        if let Some(span) = back_after {
            self.plan(last + span + Span(2), dead, What::Restart { run });
        }
    }

    pub(super) fn note_gone(&mut self, node: NodeId) {
        let now = self.now;
        self.runs.last_mut().into_iter().for_each(|run| run.gone.push((node, now, Time::MAX)));
    }

    /// Ends the process of a node, with all that was on its way to it. The next one has another number.
    pub(super) fn end_process(&mut self, id: NodeId) {
        self.happenings.retain(|_, (to, ..)| *to != id);
        let slot = &mut self.slots[id.index()];
        slot.node = None;
        slot.mark = Mark::default();
        slot.doomed = true;
        slot.is_there = false;
        slot.away = Time::ZERO;
        slot.held_up = Time::ZERO;
        slot.inbox.clear();
        slot.process += 1;
    }

    /// Brings a node back as a new process: all have joined it when it starts. After the end of the run it waits for
    /// another one.
    pub(super) fn restart(&mut self, id: NodeId, run: usize) {
        self.slots[id.index()].is_there = true;
        if self.runs.len() != run + 1 || !self.control.state().is_active() {
            return self.tell(id, Notice::Joined);
        }
        self.network.forget(id);
        for other in self.others(id) {
            let slot = &mut self.slots[other.index()];
            // A sleeping node hears of the end of the old process before it hears of the new one.
            let mark = slot.mark;
            if slot.away > self.now {
                slot.inbox.push((mark, What::Joined(id)));
            } else {
                self.handle(other, mark, What::Joined(id));
            }
        }
        let back = self.now + self.scenario.delay;
        for interval in self.runs[run].gone.iter_mut().filter(|(node, ..)| *node == id) {
            interval.2 = interval.2.min(back);
        }
        let gone: Vec<_> = self.others(id).filter(|other| self.slots[other.index()].doomed).collect();
        let mark = self.slots[Config::EVENT_MANAGER.index()].mark;
        let slot = &mut self.slots[id.index()];
        slot.mark = mark;
        slot.doomed = false;
        slot.lost = BTreeSet::new();
        let start = self.make_machine(id);
        self.plan(self.now, id, start);
        for peer in gone {
            let process = self.slots[peer.index()].process;
            self.plan(self.now, id, What::Lost { peer, process });
        }
        self.tell(id, Notice::Rejoined);
        self.drain_all();
    }
}
