//! A small virtual-time driver: every node of an event builder, a network that delays, and faults on purpose.
//!
//! It is the least that can drive the machines; nothing in it is fast. One heap of happenings ordered by time and by
//! the order in which they were planned, so that one seed gives one history.

use evb_core::{EventId, Machine, NodeId, SourceId, Span, Stream, Time, stream};
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

/// What is done to the fragment of one event and source, each time that it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harm {
    Lose,
    Corrupt,
    Duplicate,
    /// Arrives after its event was given up.
    Late,
    /// Its event id is changed to one that nobody has triggered.
    Stray,
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
    /// Nodes that die, and when.
    pub(crate) deaths: Vec<(NodeId, Time)>,
    /// Longest delay of a message.
    pub(crate) delay: Span,
    /// Period of driven triggers.
    pub(crate) trigger_period: Span,
    /// The trigger is stopped at this time.
    pub(crate) stop_at: Option<Time>,
}

/// What became of a run.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) manager: ManagerCounts,
    pub(crate) drained: bool,
    /// How each event was reported to have ended, as often as it was.
    pub(crate) ended: BTreeMap<EventId, Vec<Ending>>,
    /// Sources whose good fragment is in the event, by the builder that stored it.
    pub(crate) stored: BTreeMap<EventId, Vec<(NodeId, BTreeSet<u16>)>>,
    pub(crate) faults: FaultCounts,
    pub(crate) orphaned: BTreeSet<NodeId>,
    pub(crate) readouts: Vec<ReadoutCounts>,
    /// Fragments that builders received.
    pub(crate) fragments: u64,
    pub(crate) most_open: u64,
    pub(crate) idle: bool,
    pub(crate) end: Time,
}

enum Node {
    Manager(EventManager<Tag>),
    Readout(ReadoutUnit<Tag>),
    Builder(BuilderUnit<Tag>),
}

enum What {
    Message { from: NodeId, message: Message<Tag> },
    Manager(ManagerCommand),
    Readout(ReadoutCommand<Tag>),
    Builder(BuilderCommand<Tag>),
    Timeout,
    Die,
}

pub(crate) struct Driver {
    scenario: Scenario,
    now: Time,
    random: Stream,
    nodes: Vec<Option<Node>>,
    planned: BinaryHeap<Reverse<(Time, u64)>>,
    happenings: BTreeMap<u64, (NodeId, What)>,
    next: u64,
    /// The last arrival of each ordered pair: messages of a pair never overtake each other.
    last_arrival: BTreeMap<(NodeId, NodeId), Time>,
    timers: BTreeMap<NodeId, Time>,
    outcome: Outcome,
}

/// What happens to this event's fragment of this source: a pure function, so that a model can ask too.
pub(crate) fn harm(scenario: &Scenario, event: EventId, source: u16) -> Option<Harm> {
    let draw = stream(scenario.seed ^ event.0.wrapping_mul(0x9e37_79b9), NodeId(source), 77).next_u64();
    if scenario.harm_one_in == 0 || !draw.is_multiple_of(scenario.harm_one_in) {
        return None;
    }
    let kinds = [Harm::Lose, Harm::Corrupt, Harm::Duplicate, Harm::Late, Harm::Stray];
    Some(kinds[(draw >> 32) as usize % kinds.len()])
}

impl Driver {
    pub(crate) fn new(scenario: Scenario) -> Self {
        let config = &scenario.config;
        let mut nodes = vec![Some(Node::Manager(EventManager::new(config.clone())))];
        for source in 0..config.readout_units {
            nodes.push(Some(Node::Readout(ReadoutUnit::new(config.clone(), SourceId(source), None))));
        }
        nodes.extend((0..config.builder_units).map(|_| Some(Node::Builder(BuilderUnit::new(config.clone())))));
        Self {
            random: stream(scenario.seed, NodeId(0), 1),
            scenario,
            now: Time::ZERO,
            nodes,
            planned: BinaryHeap::new(),
            happenings: BTreeMap::new(),
            next: 0,
            last_arrival: BTreeMap::new(),
            timers: BTreeMap::new(),
            outcome: Outcome::default(),
        }
    }

    /// Runs to the end of all happenings, or to a bound that no good run reaches.
    pub(crate) fn run(mut self) -> Outcome {
        self.plan_start();
        for _ in 0..2_000_000 {
            let Some(Reverse((time, key))) = self.planned.pop() else { break };
            self.now = time;
            if let Some((node, what)) = self.happenings.remove(&key) {
                self.happen(node, what);
            }
        }
        assert!(self.planned.is_empty(), "the run does not end: {:?}", self.scenario);
        self.finish()
    }

    fn plan_start(&mut self) {
        let config = self.scenario.config.clone();
        self.plan(Time::ZERO, Config::EVENT_MANAGER, What::Manager(ManagerCommand::Start));
        for node in config.readout_nodes().iter() {
            let (through, last) = (EventId(u64::MAX), true);
            self.plan(Time::ZERO, node, What::Readout(ReadoutCommand::Start { through, last }));
        }
        for node in config.builder_nodes().iter() {
            self.plan(Time::ZERO, node, What::Builder(BuilderCommand::Start));
        }
        for (node, at) in self.scenario.deaths.clone() {
            self.plan(at, node, What::Die);
        }
        if config.trigger == Trigger::Driven {
            for n in 1..=TRIGGERS {
                let at = Time(n * self.scenario.trigger_period.0);
                self.plan(at, Config::EVENT_MANAGER, What::Manager(ManagerCommand::Trigger(1)));
            }
        }
        if let Some(at) = self.scenario.stop_at {
            self.plan(at, Config::EVENT_MANAGER, What::Manager(ManagerCommand::Stop));
        }
    }

    fn plan(&mut self, at: Time, node: NodeId, what: What) {
        self.planned.push(Reverse((at, self.next)));
        self.happenings.insert(self.next, (node, what));
        self.next += 1;
    }

    fn random_span(&mut self, most: Span) -> Span {
        Span(self.random.next_u64() % (most.0 + 1))
    }

    fn happen(&mut self, id: NodeId, what: What) {
        let now = self.now;
        if matches!(what, What::Die) {
            return self.die(id);
        }
        let Some(node) = &mut self.nodes[id.index()] else { return };
        match (node, what) {
            (Node::Manager(m), What::Message { from, message }) => m.handle_message(now, from, message),
            (Node::Readout(m), What::Message { from, message }) => m.handle_message(now, from, message),
            (Node::Builder(m), What::Message { from, message }) => m.handle_message(now, from, message),
            (Node::Manager(m), What::Manager(command)) => m.handle_command(now, command),
            (Node::Readout(m), What::Readout(command)) => m.handle_command(now, command),
            (Node::Builder(m), What::Builder(command)) => m.handle_command(now, command),
            (node, What::Timeout) => {
                self.timers.remove(&id);
                match node {
                    Node::Manager(m) => m.handle_timeout(now),
                    Node::Readout(m) => m.handle_timeout(now),
                    Node::Builder(m) => m.handle_timeout(now),
                }
            }
            _ => unreachable!("a command for another kind of node"),
        }
        // One time in four several happenings share one drain, as the contract allows.
        let postpone = self.random.next_u64().is_multiple_of(4);
        let soon = self.planned.peek().is_some_and(|Reverse((time, _))| *time == now);
        if !(postpone && soon) {
            self.drain_all();
        }
    }

    fn drain_all(&mut self) {
        for index in 0..self.nodes.len() {
            let Some(node) = self.nodes[index].take() else { continue };
            let id = NodeId(index as u16);
            let node = self.drain(id, node);
            self.nodes[index] = Some(node);
        }
    }

    fn drain(&mut self, id: NodeId, mut node: Node) -> Node {
        loop {
            let transmit = match &mut node {
                Node::Manager(m) => m.poll_transmit(),
                Node::Readout(m) => m.poll_transmit(),
                Node::Builder(m) => m.poll_transmit(),
            };
            let Some(transmit) = transmit else { break };
            for to in transmit.to.iter() {
                self.send(id, to, transmit.message.clone());
            }
        }
        match &mut node {
            Node::Manager(m) => {
                while let Some(event) = m.poll_event() {
                    self.note_manager(event);
                }
            }
            Node::Readout(m) => {
                while let Some(event) = m.poll_event() {
                    self.note_readout(id, event);
                }
            }
            Node::Builder(m) => {
                while let Some(event) = m.poll_event() {
                    self.note_builder(id, event);
                }
            }
        }
        let deadline = match &node {
            Node::Manager(m) => m.poll_timeout(),
            Node::Readout(m) => m.poll_timeout(),
            Node::Builder(m) => m.poll_timeout(),
        };
        if let Some((at, _)) = deadline
            && self.timers.get(&id).is_none_or(|&planned| at < planned)
        {
            self.timers.insert(id, at);
            self.plan(at.max(self.now), id, What::Timeout);
        }
        node
    }

    fn note_manager(&mut self, event: ManagerEvent) {
        match event {
            ManagerEvent::Completed { completion, .. } => {
                self.outcome.ended.entry(completion.event).or_default().push(completion.ending);
            }
            ManagerEvent::Drained => self.outcome.drained = true,
            ManagerEvent::NoBuilders => {}
        }
    }

    fn note_readout(&mut self, id: NodeId, event: ReadoutEvent<Tag>) {
        match event {
            ReadoutEvent::Read { event, .. } => {
                let source = SourceId(id.0 - 1);
                let fragment = Fragment {
                    event,
                    source,
                    length: FRAGMENT,
                    checksum: 0,
                    mark: None,
                    status: FragmentStatus::Good,
                    payload: Some((event.0, source.0)),
                };
                let at = self.now + self.random_span(Span(self.scenario.delay.0 / 4));
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
                self.outcome.stored.entry(built.event).or_default().push((id, good));
                let at = self.now + self.random_span(self.scenario.delay);
                self.plan(at, id, What::Builder(BuilderCommand::Stored(built)));
            }
            BuilderEvent::Decide { event, complete } => {
                let accepted = self.scenario.filter.accepts(event, complete);
                let at = self.now + self.random_span(self.scenario.delay);
                self.plan(at, id, What::Builder(BuilderCommand::Decided { event, accepted }));
            }
            BuilderEvent::Orphaned => _ = self.outcome.orphaned.insert(id),
        }
    }

    fn send(&mut self, from: NodeId, to: NodeId, message: Message<Tag>) {
        let message = match message {
            Message::Packet(fragments) => {
                return fragments.into_iter().for_each(|f| self.send(from, to, Message::Fragment(f)));
            }
            Message::Fragment(fragment) => return self.send_fragment(from, to, fragment),
            other => other,
        };
        self.deliver(from, to, Span::ZERO, message);
    }

    fn send_fragment(&mut self, from: NodeId, to: NodeId, fragment: Fragment<Tag>) {
        // Beyond two phases that both run into their timeout.
        let late = Span(self.scenario.config.fragment_timeout.0 * 3);
        let whole = fragment.clone();
        match harm(&self.scenario, fragment.event, fragment.source.0) {
            None => {}
            Some(Harm::Lose) => return,
            Some(Harm::Corrupt) => {
                let status = FragmentStatus::Corrupted;
                return self.deliver(from, to, Span::ZERO, Message::Fragment(Fragment { status, ..fragment }));
            }
            Some(Harm::Duplicate) => self.deliver(from, to, Span::ZERO, Message::Fragment(fragment)),
            Some(Harm::Late) => {
                let at = self.now + late;
                return self.plan(at, to, What::Message { from, message: Message::Fragment(fragment) });
            }
            Some(Harm::Stray) => {
                let event = EventId(fragment.event.0 + 1_000_000);
                return self.deliver(from, to, Span::ZERO, Message::Fragment(Fragment { event, ..fragment }));
            }
        }
        self.deliver(from, to, Span::ZERO, Message::Fragment(whole));
    }

    fn deliver(&mut self, from: NodeId, to: NodeId, more: Span, message: Message<Tag>) {
        let random = self.random_span(self.scenario.delay);
        let last = self.last_arrival.entry((from, to)).or_default();
        *last = (self.now + random + more).max(*last);
        let at = *last;
        self.plan(at, to, What::Message { from, message });
    }

    /// The node stops; part of what it has under way is lost, and the others learn of it after that.
    fn die(&mut self, dead: NodeId) {
        if self.nodes[dead.index()].take().is_none() {
            return;
        }
        let mut cut: BTreeMap<NodeId, Time> = BTreeMap::new();
        for index in 0..self.nodes.len() as u16 {
            let last = self.last_arrival.get(&(dead, NodeId(index))).copied().unwrap_or(self.now).max(self.now);
            let at = self.now + self.random_span(last.since(self.now));
            cut.insert(NodeId(index), at);
        }
        let times: BTreeMap<u64, Time> = self.planned.iter().map(|Reverse((time, key))| (*key, *time)).collect();
        self.happenings.retain(|key, (to, what)| match what {
            What::Message { from, .. } if *from == dead => times[key] <= cut[to],
            _ => true,
        });
        for (node, at) in cut {
            let (config, lost) = (&self.scenario.config, dead);
            let what = match node {
                Config::EVENT_MANAGER => What::Manager(ManagerCommand::Lost(lost)),
                node if config.readout_nodes().contains(node) => What::Readout(ReadoutCommand::Lost(lost)),
                _ => What::Builder(BuilderCommand::Lost(lost)),
            };
            self.plan(at + Span(1), node, what);
        }
    }

    fn finish(self) -> Outcome {
        let mut outcome = self.outcome;
        outcome.end = self.now;
        outcome.idle = true;
        for node in self.nodes.into_iter().flatten() {
            match node {
                Node::Manager(m) => {
                    outcome.manager = *m.counts();
                    outcome.faults.merge(&m.counts().faults);
                }
                Node::Readout(m) => {
                    outcome.readouts.push(*m.counts());
                    outcome.faults.merge(&m.counts().faults);
                }
                Node::Builder(m) => {
                    outcome.idle &= m.is_idle();
                    outcome.most_open = outcome.most_open.max(m.counts().most_open);
                    outcome.fragments += m.counts().fragments;
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
