//! A small virtual-time driver: all nodes of an event builder, run control, a network with delays, and injected faults.
//!
//! It is the least that can drive the machines; nothing in it is fast. One heap holds the happenings, ordered by time
//! and by the order in which they were planned, so that one seed makes one history. Its notes on a run are for checkers
//! that know nothing of the machines.

mod node;
mod orders;
mod run_control;
mod speech;
mod trouble;

use crate::{
    network::Network,
    outcome::{History, Outcome},
    planted::Bug,
    scenario::{Scenario, Tag},
    schedule::{Draw, Fault as Trouble, random},
};
use evb_control::{Command, Control, Notice, Order};
use evb_core::{EventId, Machine, NodeId, Span, Stream, Time};
use evb_protocol::*;
use node::{Mark, Node, Slot, any_machine};
use rand_xoshiro::rand_core::Rng;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
};

/// The place of run control among the nodes.
const CONTROL: NodeId = NodeId(u16::MAX);

/// Something that happens to a node, or to run control.
#[derive(Clone, Debug)]
pub(crate) enum What {
    Message {
        from: NodeId,
        message: Message<Tag>,
    },
    Damaged {
        from: NodeId,
        fragment: Fragment<Tag>,
    },
    Manager(ManagerCommand),
    Readout(ReadoutCommand<Tag>),
    Builder(BuilderCommand<Tag>),
    /// The connection to this process of a peer is closed.
    Lost {
        peer: NodeId,
        process: u32,
    },
    /// The peer has been silent for long.
    Silent(NodeId),
    /// The network of the node has been cut for so long that all have noticed it.
    CutOff,
    Joined(NodeId),
    Timeout,
    /// Run control tells this process of the node.
    Order {
        order: Order,
        process: u32,
    },
    /// The peers of a silent node give it up, if it still is silent.
    Doom,
    Wake,
    /// A node that died in this run comes back.
    Restart {
        run: usize,
    },
    /// A node tells run control of this process of itself or of a peer.
    Notice {
        node: NodeId,
        of: (NodeId, u32),
        notice: Notice,
    },
    Command(Command),
    /// The operator stops this run if it still takes triggers.
    Stop {
        run: usize,
    },
    ControlTimeout,
    Trouble(Trouble),
}

pub(crate) struct Driver {
    scenario: Scenario,
    now: Time,
    random: Stream,
    network: Network,
    control: Control,
    /// The time of the next call that run control wants.
    control_timer: Time,
    slots: Vec<Slot>,
    planned: BinaryHeap<Reverse<(Time, u64)>>,
    /// The planned happenings: the receiver, the connections and run of the origin, and the happening.
    happenings: BTreeMap<u64, (NodeId, Mark, What)>,
    next: u64,
    /// Number of the connections that nodes make next.
    connection: u32,
    sent_once: BTreeSet<(usize, EventId, u16)>,
    /// Runs that were commanded.
    commanded: usize,
    /// The faults have begun.
    troubled: bool,
    runs: Vec<Outcome>,
}

impl Driver {
    pub(crate) fn new(scenario: Scenario) -> Self {
        Self {
            random: random(scenario.seed, 1),
            slots: (0..scenario.config.nodes()).map(|_| Slot::default()).collect(),
            control: run_control::new(&scenario),
            control_timer: Time::MAX,
            scenario,
            now: Time::ZERO,
            network: Network::default(),
            planned: BinaryHeap::new(),
            happenings: BTreeMap::new(),
            next: 0,
            connection: 0,
            sent_once: BTreeSet::new(),
            commanded: 0,
            troubled: false,
            runs: Vec::new(),
        }
    }

    /// Runs to the end of all happenings, or to a bound that no good history reaches.
    pub(crate) fn run(mut self) -> History {
        self.command_next_run();
        for _ in 0..1_000_000 {
            let Some(Reverse((time, key))) = self.planned.pop() else { break };
            self.now = time;
            if let Some((node, mark, what)) = self.happenings.remove(&key) {
                self.happen(node, mark, what);
            }
        }
        assert!(self.planned.is_empty(), "the run does not end: {:?}", self.happenings);
        self.nodes().for_each(|node| self.inspect(node, false));
        for run in &mut self.runs {
            run.harmed = self.network.harmed;
        }
        History { runs: self.runs, state: self.control.state() }
    }

    fn plan(&mut self, at: Time, node: NodeId, what: What) {
        let origin = match &what {
            What::Message { from, .. } | What::Damaged { from, .. } => *from,
            _ => node,
        };
        let mark = self.slots.get(origin.index()).map_or_else(Mark::default, |slot| slot.mark);
        self.planned.push(Reverse((at, self.next)));
        self.happenings.insert(self.next, (node, mark, what));
        self.next += 1;
    }

    fn span(&mut self, most: Span) -> Span {
        Draw(&mut self.random).span(most)
    }

    fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.slots.len() as u16).map(NodeId)
    }

    fn others(&self, node: NodeId) -> impl Iterator<Item = NodeId> + use<> {
        self.nodes().filter(move |&other| other != node)
    }

    fn happen(&mut self, id: NodeId, mark: Mark, what: What) {
        match what {
            what if id == CONTROL => self.hear(what),
            What::Doom => return self.doom(id),
            What::CutOff => return self.cut_off(id),
            What::Restart { run } => return self.restart(id, run),
            What::Wake => return self.wake(id),
            what if self.slots[id.index()].away > self.now => {
                return self.slots[id.index()].inbox.push((mark, what));
            }
            what => self.handle(id, mark, what),
        }
        // One time in four several happenings share one drain, as the contract allows.
        let postpone = self.random.next_u64().is_multiple_of(4);
        let soon = self.planned.peek().is_some_and(|Reverse((time, _))| *time == self.now);
        if !(postpone && soon) {
            self.drain_all();
        }
    }

    /// True for what belongs to connections that are closed, to a run that is over or to a process that is gone.
    fn is_stale(&self, id: NodeId, mark: Mark, what: &What) -> bool {
        let slot = &self.slots[id.index()];
        match what {
            What::Message { .. } | What::Damaged { .. } => {
                let is_kept = self.scenario.bug == Some(Bug::Run);
                mark.connection != slot.mark.connection || (mark.run != slot.mark.run && !is_kept)
            }
            What::Lost { .. } | What::Silent(_) | What::Joined(_) => mark.connection != slot.mark.connection,
            What::Order { process, .. } => !slot.is_there || *process != slot.process,
            _ => mark != slot.mark,
        }
    }

    fn handle(&mut self, id: NodeId, mark: Mark, what: What) {
        if self.is_stale(id, mark, &what) {
            return;
        }
        let (now, slot) = (self.now, &mut self.slots[id.index()]);
        match what {
            What::Message { from, .. } | What::Damaged { from, .. } if slot.lost.contains(&from) => return,
            What::Lost { peer, process } => {
                slot.lost.insert(peer);
                self.notify(id, (peer, process), Notice::LostPeer(peer));
            }
            What::Joined(peer) => _ = slot.lost.remove(&peer),
            What::Order { order, .. } => return self.take_order(id, order),
            What::Silent(peer) => return self.miss(id, peer),
            _ => {}
        }
        let slot = &mut self.slots[id.index()];
        let Some(planted) = &mut slot.node else { return };
        let Some(what) = planted.hear(what) else { return };
        match (&mut planted.machine, what) {
            (node, What::Message { from, message }) => any_machine!(node, m => m.handle_message(now, from, message)),
            (node, What::Timeout) => {
                slot.timer = Time::MAX;
                any_machine!(node, m => m.handle_timeout(now));
            }
            (node, What::Lost { peer, .. }) => node.lose(now, peer),
            (node, What::Joined(peer)) => node.join(now, peer),
            (Node::Builder(m), What::Damaged { from, fragment }) => {
                m.handle_command(now, BuilderCommand::Damaged { from, fragment });
            }
            (Node::Manager(m), What::Manager(command)) => m.handle_command(now, command),
            (Node::Readout(m), What::Readout(command)) => m.handle_command(now, command),
            (Node::Builder(m), What::Builder(command)) => m.handle_command(now, command),
            (_, what) => unreachable!("{id} cannot handle {what:?}"),
        }
    }
}
