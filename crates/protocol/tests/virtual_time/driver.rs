//! A small virtual-time driver: every node of an event builder, a network that delays, and what goes wrong on purpose.
//!
//! It is the least that can drive the machines; nothing in it is fast. One heap of happenings ordered by time and by
//! the order in which they were planned, so that one seed gives one history. What it notes of a run is for checkers that
//! know nothing of the machines.

use crate::{
    network::{Arrival, Network, is_long},
    planted::{Bug, Planted},
    schedule::{Draw, Fault as Trouble, PEER_TIMEOUT, random},
};
use evb_core::{EventId, Machine, NodeId, SourceId, Span, Stream, Time, Transmit, stream};
use evb_protocol::*;
use rand_xoshiro::rand_core::Rng;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
};

/// How many triggers come when the trigger is driven.
pub(crate) const TRIGGERS: u64 = 600;

/// Bytes of every fragment.
pub(crate) const FRAGMENT: u32 = 100;

/// A payload that says which fragment it is; the default is none.
pub(crate) type Tag = Option<(u64, u16)>;

/// What is wrong with the fragment of one event and source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harm {
    /// The source has none.
    Destroyed,
    /// The source has it corrupted.
    Corrupt,
    /// It is lost the first time that it is sent.
    Lose,
    /// It is sent twice the first time.
    Duplicate,
    /// It takes very long the first time that it is sent.
    Late,
    /// The first time that it is sent, its event number is changed to one that nobody has triggered.
    Stray,
}

impl Harm {
    /// Returns true if no good fragment of the source exists.
    pub(crate) const fn spoils(self) -> bool {
        matches!(self, Self::Destroyed | Self::Corrupt)
    }
}

/// Everything that one history depends on.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) config: Config,
    /// What is accepted after the first phase.
    pub(crate) filter: Filter,
    /// One fragment in this many is harmed; 0 is none.
    pub(crate) harm_one_in: u64,
    /// What goes wrong, and when.
    pub(crate) faults: Vec<(Time, Trouble)>,
    /// Longest delay of a message.
    pub(crate) delay: Span,
    /// Period of driven triggers.
    pub(crate) trigger_period: Span,
    /// The trigger is stopped at this time.
    pub(crate) stop_at: Option<Time>,
    /// A mistake in the machines, to see that the checkers find it.
    pub(crate) bug: Option<Bug>,
}

impl Scenario {
    /// What is wrong with this event's fragment of this source: a pure function, so that a model can ask too.
    pub(crate) fn harm(&self, event: EventId, source: u16) -> Option<Harm> {
        let draw = stream(self.seed ^ event.0.wrapping_mul(0x9e37_79b9), NodeId(source), 77).next_u64();
        if self.harm_one_in == 0 || !draw.is_multiple_of(self.harm_one_in) {
            return None;
        }
        let kinds = [Harm::Destroyed, Harm::Corrupt, Harm::Lose, Harm::Duplicate, Harm::Late, Harm::Stray];
        Some(kinds[(draw >> 32) as usize % kinds.len()])
    }

    /// Returns true if the source has no good fragment of this event.
    pub(crate) fn spoils(&self, event: EventId, source: u16) -> bool {
        self.harm(event, source).is_some_and(Harm::spoils)
    }
}

/// An event as a builder stored it.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) builder: NodeId,
    /// Sources whose good fragment is in it.
    pub(crate) good: BTreeSet<u16>,
}

/// What became of a run.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) manager: ManagerCounts,
    pub(crate) drained: bool,
    /// When each event was triggered, in the order of their numbers.
    pub(crate) triggered: Vec<Time>,
    /// How each event was reported to have ended, by whom and when, as often as it was.
    pub(crate) ended: BTreeMap<EventId, Vec<(Ending, NodeId, Time)>>,
    /// What was stored of each event, in the order of time.
    pub(crate) stored: BTreeMap<EventId, Vec<Stored>>,
    pub(crate) faults: FaultCounts,
    pub(crate) orphaned: BTreeSet<NodeId>,
    pub(crate) readouts: Vec<ReadoutCounts>,
    /// Fragments that builders received.
    pub(crate) fragments: u64,
    /// Fragments that builders asked for, and second copies of them.
    pub(crate) asked: u64,
    pub(crate) repeated: u64,
    pub(crate) most_open: u64,
    /// No builder has an event under construction.
    pub(crate) idle: bool,
    /// No readout unit holds a fragment.
    pub(crate) cleared: bool,
    /// Fragments and questions that were lost, doubled or damaged on their way.
    pub(crate) harmed: u64,
    /// When nodes were given up, and when they had come back.
    pub(crate) gone: Vec<(NodeId, Time, Time)>,
    pub(crate) end: Time,
}

enum Node {
    Manager(EventManager<Tag>),
    Readout(ReadoutUnit<Tag>),
    Builder(BuilderUnit<Tag>),
}

#[derive(Clone, Debug)]
enum What {
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
    Lost(NodeId),
    Joined(NodeId),
    Timeout,
    /// The peers of a silent node give it up, if it still is silent.
    Doom,
    Wake,
    Trouble(Trouble),
    Restart,
}

/// One node and what the driver knows of it.
struct Slot {
    node: Option<Planted<Node>>,
    /// Until then it does nothing.
    away: Time,
    /// What came meanwhile.
    inbox: Vec<What>,
    /// Peers that it has given up: their connections are closed.
    lost: BTreeSet<NodeId>,
    /// Given up by its peers, and not back.
    doomed: bool,
    /// Its disk, or its source, gives nothing before this.
    held_up: Time,
    timer: Time,
}

pub(crate) struct Driver {
    scenario: Scenario,
    now: Time,
    random: Stream,
    network: Network,
    slots: Vec<Slot>,
    planned: BinaryHeap<Reverse<(Time, u64)>>,
    happenings: BTreeMap<u64, (NodeId, What)>,
    next: u64,
    sent_once: BTreeSet<(EventId, u16)>,
    outcome: Outcome,
}

impl Driver {
    pub(crate) fn new(scenario: Scenario) -> Self {
        let slot = |_| Slot {
            node: None,
            away: Time::ZERO,
            inbox: Vec::new(),
            lost: BTreeSet::new(),
            doomed: false,
            held_up: Time::ZERO,
            timer: Time::MAX,
        };
        let mut driver = Self {
            random: random(scenario.seed, 1),
            slots: (0..scenario.config.nodes()).map(slot).collect(),
            scenario,
            now: Time::ZERO,
            network: Network::default(),
            planned: BinaryHeap::new(),
            happenings: BTreeMap::new(),
            next: 0,
            sent_once: BTreeSet::new(),
            outcome: Outcome::default(),
        };
        (0..driver.slots.len() as u16).for_each(|node| driver.start(NodeId(node)));
        driver
    }

    /// Runs to the end of all happenings, or to a bound that no good run reaches.
    pub(crate) fn run(mut self) -> Outcome {
        self.plan_triggers();
        for _ in 0..1_000_000 {
            let Some(Reverse((time, key))) = self.planned.pop() else { break };
            self.now = time;
            if let Some((node, what)) = self.happenings.remove(&key) {
                self.happen(node, what);
            }
        }
        assert!(self.planned.is_empty(), "the run does not end: {:?}", self.happenings);
        self.finish()
    }

    fn plan_triggers(&mut self) {
        if self.scenario.config.trigger == Trigger::Driven {
            for n in 1..=TRIGGERS {
                let at = Time(n * self.scenario.trigger_period.0);
                self.plan(at, Config::EVENT_MANAGER, What::Manager(ManagerCommand::Trigger(1)));
            }
        }
        if let Some(at) = self.scenario.stop_at {
            self.plan(at, Config::EVENT_MANAGER, What::Manager(ManagerCommand::Stop));
        }
        for (at, fault) in self.scenario.faults.clone() {
            self.plan(at, Config::EVENT_MANAGER, What::Trouble(fault));
        }
    }

    /// Makes a node and starts it, at the beginning or after it died.
    fn start(&mut self, id: NodeId) {
        let config = &self.scenario.config;
        let (node, start) = match id {
            Config::EVENT_MANAGER => {
                (Node::Manager(EventManager::new(config.clone())), What::Manager(ManagerCommand::Start))
            }
            id if config.readout_nodes().contains(id) => {
                let unit = ReadoutUnit::new(config.clone(), SourceId(id.0 - 1), None);
                let start = ReadoutCommand::Start { through: EventId(u64::MAX), last: true };
                (Node::Readout(unit), What::Readout(start))
            }
            _ => (Node::Builder(BuilderUnit::new(config.clone())), What::Builder(BuilderCommand::Start)),
        };
        let slot = &mut self.slots[id.index()];
        slot.node = Some(Planted::new(node, self.scenario.bug));
        slot.timer = Time::MAX;
        self.plan(self.now, id, start);
    }

    fn plan(&mut self, at: Time, node: NodeId, what: What) {
        self.planned.push(Reverse((at, self.next)));
        self.happenings.insert(self.next, (node, what));
        self.next += 1;
    }

    fn span(&mut self, most: Span) -> Span {
        Draw(&mut self.random).span(most)
    }

    fn others(&self, node: NodeId) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.slots.len() as u16).map(NodeId).filter(move |&other| other != node)
    }

    fn happen(&mut self, id: NodeId, what: What) {
        match what {
            What::Trouble(fault) => return self.trouble(fault),
            What::Doom => return self.doom(id),
            What::Restart => return self.restart(id),
            What::Wake => return self.wake(id),
            what if self.slots[id.index()].away > self.now => return self.slots[id.index()].inbox.push(what),
            what => self.handle(id, what),
        }
        // One time in four several happenings share one drain, as the contract allows.
        let postpone = self.random.next_u64().is_multiple_of(4);
        let soon = self.planned.peek().is_some_and(|Reverse((time, _))| *time == self.now);
        if !(postpone && soon) {
            self.drain_all();
        }
    }

    fn handle(&mut self, id: NodeId, what: What) {
        let (now, slot) = (self.now, &mut self.slots[id.index()]);
        match &what {
            What::Message { from, .. } | What::Damaged { from, .. } if slot.lost.contains(from) => return,
            What::Lost(node) => _ = slot.lost.insert(*node),
            What::Joined(node) => _ = slot.lost.remove(node),
            _ => {}
        }
        let Some(planted) = &mut slot.node else { return };
        let what = match what {
            What::Message { from, message } => {
                let Some(message) = planted.hear(message) else { return };
                What::Message { from, message }
            }
            what => what,
        };
        match (&mut planted.machine, what) {
            (Node::Manager(m), What::Message { from, message }) => m.handle_message(now, from, message),
            (Node::Readout(m), What::Message { from, message }) => m.handle_message(now, from, message),
            (Node::Builder(m), What::Message { from, message }) => m.handle_message(now, from, message),
            (Node::Builder(m), What::Damaged { from, fragment }) => {
                m.handle_command(now, BuilderCommand::Damaged { from, fragment });
            }
            (Node::Manager(m), What::Manager(command)) => m.handle_command(now, command),
            (Node::Readout(m), What::Readout(command)) => m.handle_command(now, command),
            (Node::Builder(m), What::Builder(command)) => m.handle_command(now, command),
            (Node::Manager(m), What::Lost(node)) => m.handle_command(now, ManagerCommand::Lost(node)),
            (Node::Readout(m), What::Lost(node)) => m.handle_command(now, ReadoutCommand::Lost(node)),
            (Node::Builder(m), What::Lost(node)) => m.handle_command(now, BuilderCommand::Lost(node)),
            (Node::Manager(m), What::Joined(node)) => m.handle_command(now, ManagerCommand::Joined(node)),
            (Node::Readout(m), What::Joined(node)) => m.handle_command(now, ReadoutCommand::Joined(node)),
            (Node::Builder(m), What::Joined(node)) => m.handle_command(now, BuilderCommand::Joined(node)),
            (node, What::Timeout) => {
                slot.timer = Time::MAX;
                match node {
                    Node::Manager(m) => m.handle_timeout(now),
                    Node::Readout(m) => m.handle_timeout(now),
                    Node::Builder(m) => m.handle_timeout(now),
                }
            }
            _ => unreachable!("a command for another kind of node"),
        }
    }

    // ---- what goes wrong

    fn trouble(&mut self, fault: Trouble) {
        match fault {
            Trouble::Crash { node, back_after } => self.crash(node, back_after),
            Trouble::Stop { node, span } => self.stop(node, span),
            Trouble::Disk { builder: node, span } | Trouble::Source { unit: node, span } => {
                self.slots[node.index()].held_up = self.now + span;
            }
            Trouble::Partition { pair, span } => {
                // Of a pair that the network has cut, the event manager or the first is believed.
                let victim = if pair[0] == Config::EVENT_MANAGER { pair[1] } else { pair[0] };
                self.network.begin(self.now, fault);
                if is_long(span) {
                    self.give_up(victim);
                }
            }
            fault => self.network.begin(self.now, fault),
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

    /// A node goes on after it was stopped. Messages come before timers: what came in time is no reason to ask.
    fn wake(&mut self, id: NodeId) {
        let slot = &mut self.slots[id.index()];
        if slot.away > self.now {
            return;
        }
        let mut inbox = std::mem::take(&mut slot.inbox);
        inbox.sort_by_key(|what| matches!(what, What::Timeout));
        let long = self
            .scenario
            .faults
            .iter()
            .any(|(_, fault)| matches!(fault, Trouble::Stop { node, span } if *node == id && is_long(*span)));
        if long && self.scenario.config.builder_nodes().contains(id) {
            self.handle(id, What::Builder(BuilderCommand::Away));
        }
        inbox.into_iter().for_each(|what| self.handle(id, what));
        self.drain_all();
    }

    fn doom(&mut self, id: NodeId) {
        if self.slots[id.index()].away > self.now {
            self.give_up(id);
        }
    }

    /// Peers give a node up that may well be alive: each closes its connection when it hears of it.
    fn give_up(&mut self, id: NodeId) {
        if std::mem::replace(&mut self.slots[id.index()].doomed, true) {
            return;
        }
        self.outcome.gone.push((id, self.now, Time::MAX));
        for other in self.others(id) {
            let at = self.now + self.span(Span(self.scenario.delay.0 * 2));
            self.plan(at, other, What::Lost(id));
            self.plan(at + Span(1), id, What::Lost(other));
        }
    }

    /// The node stops; part of what it has under way is lost, and the others learn of it after that.
    fn crash(&mut self, dead: NodeId, back_after: Option<Span>) {
        let slot = &mut self.slots[dead.index()];
        if slot.node.take().is_none() || slot.doomed {
            return;
        }
        (slot.doomed, slot.away) = (true, Time::ZERO);
        slot.inbox.clear();
        self.outcome.gone.push((dead, self.now, Time::MAX));
        let mut cut: BTreeMap<NodeId, Time> = BTreeMap::new();
        for other in self.others(dead) {
            let last = self.network.last_arrival(dead, other, self.now);
            let at = self.now + self.span(last.since(self.now));
            cut.insert(other, at);
        }
        let times: BTreeMap<u64, Time> = self.planned.iter().map(|Reverse((time, key))| (*key, *time)).collect();
        self.happenings.retain(|key, (to, what)| match what {
            What::Message { from, .. } | What::Damaged { from, .. } if *from == dead => times[key] <= cut[to],
            What::Trouble(_) => true,
            _ => *to != dead,
        });
        let last = cut.values().copied().max().unwrap_or(self.now);
        for (node, at) in cut {
            self.plan(at + Span(1), node, What::Lost(dead));
        }
        if let Some(span) = back_after {
            self.plan(last + span + Span(2), dead, What::Restart);
        }
    }

    /// A node comes back as a new process: all have joined it when it starts.
    fn restart(&mut self, id: NodeId) {
        self.happenings.retain(|_, (to, what)| *to != id || matches!(what, What::Trouble(_)));
        self.network.forget(id);
        for other in self.others(id) {
            let slot = &mut self.slots[other.index()];
            // Whoever sleeps hears of the end of the old process before it hears of the new one.
            if slot.away > self.now {
                slot.inbox.push(What::Joined(id));
            } else {
                self.handle(other, What::Joined(id));
            }
        }
        let slot = &mut self.slots[id.index()];
        (slot.doomed, slot.lost, slot.held_up) = (false, BTreeSet::new(), Time::ZERO);
        for interval in self.outcome.gone.iter_mut().filter(|(node, ..)| *node == id) {
            interval.2 = interval.2.min(self.now + self.scenario.delay);
        }
        let gone: BTreeSet<_> = self.others(id).filter(|other| self.slots[other.index()].doomed).collect();
        self.start(id);
        for other in gone {
            self.plan(self.now, id, What::Lost(other));
        }
        self.drain_all();
    }

    // ---- what machines say

    fn drain_all(&mut self) {
        for index in 0..self.slots.len() {
            if self.slots[index].away > self.now {
                continue;
            }
            let Some(node) = self.slots[index].node.take() else { continue };
            let node = self.drain(NodeId(index as u16), node);
            self.slots[index].node = Some(node);
        }
    }

    fn drain(&mut self, id: NodeId, mut node: Planted<Node>) -> Planted<Node> {
        loop {
            let transmit = match &mut node.machine {
                Node::Manager(m) => m.poll_transmit(),
                Node::Readout(m) => m.poll_transmit(),
                Node::Builder(m) => m.poll_transmit(),
            };
            let Some(Transmit { to, message }) = transmit else { break };
            let Some(message) = node.say(message) else { continue };
            to.iter().for_each(|to| self.send(id, to, message.clone()));
        }
        match &mut node.machine {
            Node::Manager(m) => {
                self.outcome.triggered.resize(m.counts().triggered as usize, self.now);
                std::iter::from_fn(|| m.poll_event()).for_each(|event| self.note_manager(event));
            }
            Node::Readout(m) => std::iter::from_fn(|| m.poll_event()).for_each(|event| self.note_readout(id, event)),
            Node::Builder(m) => std::iter::from_fn(|| m.poll_event()).for_each(|event| self.note_builder(id, event)),
        }
        let deadline = match &node.machine {
            Node::Manager(m) => m.poll_timeout(),
            Node::Readout(m) => m.poll_timeout(),
            Node::Builder(m) => m.poll_timeout(),
        };
        if let Some((at, _)) = deadline
            && at < self.slots[id.index()].timer
        {
            self.slots[id.index()].timer = at;
            self.plan(at.max(self.now), id, What::Timeout);
        }
        node
    }

    fn note_manager(&mut self, event: ManagerEvent) {
        match event {
            ManagerEvent::Completed { completion: Completion { event, ending }, builder, .. } => {
                self.outcome.ended.entry(event).or_default().push((ending, builder, self.now));
            }
            ManagerEvent::Drained => self.outcome.drained = true,
            ManagerEvent::NoBuilders => {}
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
                let payload = Some((event.0, source.0));
                let fragment = Fragment { event, source, length, checksum: 0, mark: None, status, payload };
                let at = self.held_up(id) + self.span(Span(self.scenario.delay.0 / 4));
                self.plan(at, id, What::Readout(ReadoutCommand::Fragment(fragment)));
            }
            ReadoutEvent::Released(_) => {}
            ReadoutEvent::Orphaned => _ = self.outcome.orphaned.insert(id),
        }
    }

    fn note_builder(&mut self, id: NodeId, event: BuilderEvent<Tag>) {
        match event {
            BuilderEvent::Built(built) => {
                let good = check_built(&built);
                self.outcome.stored.entry(built.event).or_default().push(Stored { builder: id, good });
                let at = self.held_up(id) + self.span(self.scenario.delay);
                self.plan(at, id, What::Builder(BuilderCommand::Stored(built)));
            }
            BuilderEvent::Decide { event, complete } => {
                let accepted = self.scenario.filter.accepts(event, complete);
                let at = self.now + self.span(self.scenario.delay);
                self.plan(at, id, What::Builder(BuilderCommand::Decided { event, accepted }));
            }
            BuilderEvent::Orphaned | BuilderEvent::Fenced => _ = self.outcome.orphaned.insert(id),
            BuilderEvent::Stands => {}
        }
    }

    /// When the disk or the source of a node gives something again.
    fn held_up(&self, id: NodeId) -> Time {
        self.slots[id.index()].held_up.max(self.now)
    }

    fn send(&mut self, from: NodeId, to: NodeId, message: Message<Tag>) {
        match message {
            Message::Packet(fragments) => {
                fragments.into_iter().for_each(|fragment| self.send(from, to, Message::Fragment(fragment)));
            }
            Message::Fragment(fragment) if self.sent_once.insert((fragment.event, fragment.source.0)) => {
                self.send_first(from, to, fragment);
            }
            message => self.deliver(from, to, message),
        }
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
        // Nobody is there, or the connection is closed.
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

    fn finish(self) -> Outcome {
        let mut outcome = self.outcome;
        (outcome.end, outcome.harmed) = (self.now, self.network.harmed);
        (outcome.idle, outcome.cleared) = (true, true);
        for slot in self.slots.into_iter().filter(|slot| !slot.doomed) {
            match slot.node.map(|planted| planted.machine) {
                None => {}
                Some(Node::Manager(m)) => {
                    outcome.manager = *m.counts();
                    outcome.faults.merge(&m.counts().faults);
                }
                Some(Node::Readout(m)) => {
                    outcome.cleared &= m.is_idle();
                    outcome.readouts.push(*m.counts());
                    outcome.faults.merge(&m.counts().faults);
                }
                Some(Node::Builder(m)) => {
                    outcome.idle &= m.is_idle();
                    outcome.most_open = outcome.most_open.max(m.counts().most_open);
                    outcome.fragments += m.counts().fragments;
                    outcome.asked += m.counts().asked;
                    outcome.repeated += m.counts().repeated;
                    outcome.faults.merge(&m.counts().faults);
                }
            }
        }
        outcome
    }
}

/// No fragment of another event or source may ever be in an event; returns the sources that are there and good.
fn check_built(built: &Built<Tag>) -> BTreeSet<u16> {
    let mut good = BTreeSet::new();
    for (source, fragment) in (0_u16..).zip(&built.fragments) {
        let Some(fragment) = fragment else { continue };
        assert_eq!((fragment.event, fragment.source.0), (built.event, source), "a fragment in a wrong event");
        if fragment.status == FragmentStatus::Missing {
            continue;
        }
        assert_eq!(fragment.payload, Some((built.event.0, source)), "a payload in a wrong event");
        if fragment.status == FragmentStatus::Good {
            good.insert(source);
        }
    }
    assert_eq!(built.complete, good.len() == built.fragments.len());
    good
}
