//! Output of the machines: messages, which travel, and events, which are noted and answered.

use super::{
    Driver, What,
    node::{Node, any_machine},
};
use crate::{
    network::Arrival,
    outcome::{Outcome, Stored},
    scenario::{FRAGMENT, Harm, Tag},
};
use evb_control::Notice;
use evb_core::{EventId, Machine, NodeId, SourceId, Span, Time, Transmit};
use evb_protocol::*;
use rand_xoshiro::rand_core::Rng;
use std::collections::BTreeSet;

impl Driver {
    pub(super) fn drain_all(&mut self) {
        self.nodes().for_each(|node| self.drain_node(node));
    }

    /// Hands over what the machine of a node has to say, unless it is away.
    pub(super) fn drain_node(&mut self, id: NodeId) {
        if self.slots[id.index()].away > self.now {
            return;
        }
        let Some(mut node) = self.slots[id.index()].node.take() else { return };
        while let Some(Transmit { to, message }) = any_machine!(&mut node.machine, m => m.poll_transmit()) {
            let Some(message) = node.say(message) else { continue };
            to.iter().for_each(|to| self.send(id, to, message.clone()));
        }
        match &mut node.machine {
            Node::Manager(m) => {
                let run = self.slots[id.index()].run;
                self.runs[run].triggered.resize(m.counts().triggered as usize, self.now);
                std::iter::from_fn(|| m.poll_event()).for_each(|event| self.note_manager(id, event));
            }
            Node::Readout(m) => std::iter::from_fn(|| m.poll_event()).for_each(|event| self.note_readout(id, event)),
            Node::Builder(m) => std::iter::from_fn(|| m.poll_event()).for_each(|event| self.note_builder(id, event)),
        }
        let deadline = any_machine!(&node.machine, m => m.poll_timeout());
        let slot = &mut self.slots[id.index()];
        slot.node = Some(node);
        if let Some((at, _)) = deadline
            && at < slot.timer
        {
            slot.timer = at;
            self.plan(at.max(self.now), id, What::Timeout);
        }
    }

    /// The run that the machine of a node is for.
    fn run_of(&mut self, id: NodeId) -> &mut Outcome {
        &mut self.runs[self.slots[id.index()].run]
    }

    fn note_manager(&mut self, id: NodeId, event: ManagerEvent) {
        match event {
            ManagerEvent::Completed { completion: Completion { event, ending }, builder, .. } => {
                let now = self.now;
                self.run_of(id).ended.entry(event).or_default().push((ending, builder, now));
            }
            ManagerEvent::Drained => {
                self.run_of(id).drained = true;
                self.tell(id, Notice::Drained);
            }
            ManagerEvent::NoBuilders => self.tell(id, Notice::NoBuilders),
            ManagerEvent::Reassigned(_) => {}
        }
    }

    fn note_readout(&mut self, id: NodeId, event: ReadoutEvent<Tag>) {
        match event {
            ReadoutEvent::Read { event, .. } => {
                let source = SourceId(id.0 - 1);
                let status = match self.scenario.harm(event, source.0) {
                    Some(Harm::Destroyed) => FragmentStatus::Missing,
                    Some(Harm::Corrupt) => FragmentStatus::Corrupted,
                    _ => FragmentStatus::Good,
                };
                let length = if status == FragmentStatus::Missing { 0 } else { FRAGMENT };
                let payload = Some((self.slots[id.index()].run, event.0, source.0));
                let fragment =
                    Fragment { event, source, length, checksum: 0, mark: None, counter: None, status, payload };
                let at = self.held_up(id) + self.span(Span(self.scenario.delay.0 / 4));
                self.plan(at, id, What::Readout(ReadoutCommand::Fragment(fragment)));
            }
            ReadoutEvent::Released(_) | ReadoutEvent::Apart { .. } => {}
            ReadoutEvent::Orphaned => _ = self.run_of(id).orphaned.insert(id),
        }
    }

    fn note_builder(&mut self, id: NodeId, event: BuilderEvent<Tag>) {
        match event {
            BuilderEvent::Built(built) => {
                let good = check_built(&built, self.slots[id.index()].run);
                self.run_of(id).stored.entry(built.event).or_default().push(Stored { builder: id, good });
                let at = self.held_up(id) + self.span(self.scenario.delay);
                self.plan(at, id, What::Builder(BuilderCommand::Stored(built)));
            }
            BuilderEvent::Decide { event, complete } => {
                let accepted = self.scenario.filter.accepts(event, complete);
                let at = self.now + self.span(self.scenario.delay);
                self.plan(at, id, What::Builder(BuilderCommand::Decided { event, accepted }));
            }
            BuilderEvent::Orphaned | BuilderEvent::Fenced => _ = self.run_of(id).orphaned.insert(id),
            BuilderEvent::Confirmed => {}
        }
    }

    /// Time at which the disk or the source of a node answers again.
    fn held_up(&self, id: NodeId) -> Time {
        self.slots[id.index()].held_up.max(self.now)
    }

    fn send(&mut self, from: NodeId, to: NodeId, message: Message<Tag>) {
        match message {
            Message::Packet(fragments) => {
                fragments.into_iter().for_each(|fragment| self.send(from, to, Message::Fragment(fragment)));
            }
            Message::Fragment(fragment) if self.is_first(from, &fragment) => self.send_first(from, to, fragment),
            message => self.deliver(from, to, message),
        }
    }

    fn is_first(&mut self, from: NodeId, fragment: &Fragment<Tag>) -> bool {
        self.sent_once.insert((self.slots[from.index()].run, fragment.event, fragment.source.0))
    }

    /// Sends a fragment for the first time.
    fn send_first(&mut self, from: NodeId, to: NodeId, fragment: Fragment<Tag>) {
        let harm = self.scenario.harm(fragment.event, fragment.source.0);
        let message = Message::Fragment(fragment.clone());
        match harm {
            Some(Harm::Lose) => {}
            Some(Harm::Duplicate) => (0..2).for_each(|_| self.deliver(from, to, message.clone())),
            Some(Harm::Late) => {
                let at = self.now + Span(self.scenario.config.patience.0 * 5);
                self.plan(at, to, What::Message { from, message });
            }
            Some(Harm::Stray) => {
                let event = EventId(fragment.event.0 + 1_000_000);
                self.deliver(from, to, Message::Fragment(Fragment { event, ..fragment }));
            }
            _ => self.deliver(from, to, message),
        }
    }

    fn deliver(&mut self, from: NodeId, to: NodeId, message: Message<Tag>) {
        // The receiver takes no part, or the connection is closed.
        if self.slots[from.index()].lost.contains(&to) || self.slots[to.index()].node.is_none() {
            return;
        }
        let arrivals = self.network.send(self.now, &mut self.random, self.scenario.delay, (from, to), message);
        for (at, arrival) in arrivals {
            let what = match arrival {
                Arrival::Whole(message) => What::Message { from, message },
                Arrival::Damaged(fragment) => {
                    let fragment = Fragment { checksum: self.random.next_u64() as u32, ..fragment };
                    What::Damaged { from, fragment }
                }
            };
            self.plan(at, to, what);
        }
    }
}

/// No fragment of another run, event or source may ever be in an event; returns the sources that are there and good.
fn check_built(built: &Built<Tag>, run: usize) -> BTreeSet<u16> {
    let mut good = BTreeSet::new();
    for (source, fragment) in (0_u16..).zip(&built.fragments) {
        let Some(fragment) = fragment else { continue };
        assert_eq!((fragment.event, fragment.source.0), (built.event, source), "a fragment in a wrong event");
        if fragment.status == FragmentStatus::Missing {
            continue;
        }
        assert_eq!(fragment.payload, Some((run, built.event.0, source)), "a payload in a wrong event or run");
        if fragment.status == FragmentStatus::Good {
            good.insert(source);
        }
    }
    // An event without a fragment has a place for it, so that it is not complete, unless it was not asked for.
    let asked = (0..built.fragments.len()).filter(|&source| built.asked.contains(source)).count();
    assert_eq!(built.complete, good.len() == asked);
    good
}
