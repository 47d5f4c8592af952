//! A whole event builder whose boards have only their clocks in common. Time passes in turns. Messages are delivered at
//! once, or after delays, in the order of their pair of nodes.

use evb_core::{EventCounter, EventId, Machine, Mark, NodeId, SourceId, Span, Stream, Time, stream};
use evb_protocol::*;
use rand_xoshiro::rand_core::Rng;
use std::collections::{BTreeMap, VecDeque};

/// The trigger for which a fragment was recorded; 0 is none.
pub(crate) type Trigger = u64;

pub(crate) const MS: u64 = 1_000_000_000;
pub(crate) const SECOND: u64 = 1000 * MS;
/// Turns without an end after which a run hangs.
const MOST_TURNS: u64 = 200_000;

pub(crate) fn uniform(random: &mut Stream) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Times of triggers at a rate in hertz, in picoseconds. No two are closer than 1 us.
pub(crate) fn triggers(random: &mut Stream, rate: f64, end: u64) -> Vec<u64> {
    let mut at = 0.0;
    let next = || {
        at += 1e6 - (1.0 - uniform(random)).ln() / rate * 1e12;
        Some(at as u64).filter(|at| *at < end)
    };
    std::iter::from_fn(next).collect()
}

/// A board: its clock, and what it loses.
#[derive(Clone, Debug)]
pub(crate) struct Board {
    pub(crate) bits: u8,
    pub(crate) offset_ticks: u64,
    pub(crate) drift: f64,
    pub(crate) loss: f64,
    /// Time from a hit to its arrival, and the most that is added to it by chance.
    pub(crate) delay: u64,
    pub(crate) spread: u64,
    /// The node of the board is lost at this time.
    pub(crate) dies: Option<u64>,
}

impl Board {
    pub(crate) const TICK_FS: u64 = 8_000_000;

    pub(crate) fn drawn(random: &mut Stream) -> Self {
        Self {
            bits: [24, 32, 48, 64][random.next_u64() as usize % 4],
            offset_ticks: random.next_u64() >> 24,
            drift: (uniform(random) - 0.5) * 2e-5,
            loss: 0.05,
            delay: random.next_u64() % (20 * MS),
            spread: 0,
            dies: None,
        }
    }

    pub(crate) fn clock(&self) -> ClockSettings {
        let sort_depth = Span(self.spread + MS / 10);
        ClockSettings { tick_fs: Self::TICK_FS, bits: self.bits, sort_depth, ..ClockSettings::default() }
    }

    fn raw(&self, at: u64, random: &mut Stream) -> u64 {
        let passed = (at as f64 * (1.0 + self.drift) / (Self::TICK_FS / 1000) as f64).round() as u64;
        let value = (1 << 50) + self.offset_ticks + passed + random.next_u64() % 3;
        if self.bits == 64 { value } else { value & ((1 << self.bits) - 1) }
    }

    /// Arrival, clock value and trigger of each fragment.
    pub(crate) fn sends(&self, triggers: &[u64], random: &mut Stream) -> VecDeque<(u64, u64, Trigger)> {
        let mut sent = Vec::new();
        for (at, trigger) in triggers.iter().zip(1..) {
            if uniform(random) >= self.loss {
                let spread = if self.spread > 0 { random.next_u64() % self.spread } else { 0 };
                sent.push((at + self.delay + spread, self.raw(*at, random), trigger));
            }
        }
        sent.sort_unstable();
        sent.into()
    }
}

/// What goes wrong beside the boards. Times are in picoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trouble {
    /// Longest delay of a message.
    pub(crate) delay: u64,
    /// One in so many messages between readout units and builders is lost; 0 for none.
    pub(crate) lose_one_in: u64,
    /// The second builder dies at this time.
    pub(crate) builder_dies: Option<u64>,
    /// The node of a unit does nothing from one time to another.
    pub(crate) away: Option<(usize, u64, u64)>,
}

/// A message on its way.
struct Sent {
    from: NodeId,
    to: NodeId,
    message: Message<Trigger>,
}

/// What a run has shown.
#[derive(Default)]
pub(crate) struct Result {
    /// The triggers of the fragments of each event, and whether it was complete.
    pub(crate) events: BTreeMap<EventId, (Vec<Option<Trigger>>, bool)>,
    pub(crate) sent: Vec<u64>,
    pub(crate) readouts: Vec<ReadoutCounts>,
    pub(crate) clocks: Vec<ClockState>,
    pub(crate) apart: Vec<BTreeMap<Fault, u64>>,
    pub(crate) manager: ManagerCounts,
    pub(crate) messages: u64,
    pub(crate) drained: bool,
    /// Units that were lost.
    pub(crate) lost: Vec<bool>,
}

pub(crate) struct World {
    now: Time,
    boards: Vec<Board>,
    left: Vec<VecDeque<(u64, u64, Trigger)>>,
    manager: ManagerMachine<Trigger>,
    readouts: Vec<ReadoutMachine<Trigger>>,
    builders: Vec<BuilderMachine<Trigger>>,
    is_builder_lost: bool,
    trouble: Trouble,
    random: Stream,
    /// Messages by the time of their arrival, and the last arrival of each pair.
    sent: BTreeMap<(u64, u64), Sent>,
    last_arrivals: BTreeMap<(NodeId, NodeId), u64>,
    count: u64,
    lost: Vec<bool>,
    ended: Vec<bool>,
    result: Result,
}

/// The settings of an event builder for these boards.
pub(crate) fn config(boards: &[Board], rule: Rule, buffer_events: u32) -> Config {
    let sources = boards.len() as u16;
    let clocks = boards.iter().map(Board::clock).collect();
    Config {
        numbered: (0..sources).map(SourceId).collect(),
        trigger: evb_protocol::Trigger::Data,
        builder_slots: 16,
        first_under_way: None,
        buffer_events,
        coincidence: Some(Coincidence { rule, sources: clocks, patience: Span::from_secs(5) }),
        ..Config::new(sources, 2)
    }
}

/// A trigger source 0, and a window of 100 ns to both sides.
pub(crate) const BY_TRIGGER: Rule = Rule::Trigger { source: 0, window: Span(100_000) };

impl World {
    pub(crate) fn new(config: &Config, boards: &[Board], triggers: &[u64], seed: u64) -> Self {
        println!("seed {seed}");
        let unit = |source| ReadoutMachine::new(config.clone(), SourceId(source as u16), Some(EventCounter::new(32)));
        let sends = |(unit, board): (usize, &Board)| board.sends(triggers, &mut stream(seed, NodeId(unit as u16), 3));
        let left: Vec<_> = boards.iter().enumerate().map(sends).collect();
        let mut world = Self {
            now: Time::ZERO,
            boards: boards.to_vec(),
            manager: ManagerMachine::new(config.clone()),
            readouts: (0..boards.len()).map(unit).collect(),
            builders: (0..2).map(|index| BuilderMachine::new(config.clone(), index)).collect(),
            is_builder_lost: false,
            trouble: Trouble::default(),
            random: stream(seed, NodeId(98), 5),
            sent: BTreeMap::new(),
            last_arrivals: BTreeMap::new(),
            count: 0,
            lost: vec![false; boards.len()],
            ended: vec![false; boards.len()],
            result: Result {
                sent: left.iter().map(|left| left.len() as u64).collect(),
                apart: vec![BTreeMap::new(); boards.len()],
                ..Result::default()
            },
            left,
        };
        world.manager.handle_command(Time::ZERO, ManagerCommand::Start);
        world.builders.iter_mut().for_each(|builder| builder.handle_command(Time::ZERO, BuilderCommand::Start));
        for unit in &mut world.readouts {
            unit.handle_command(Time::ZERO, ReadoutCommand::Start { through: EventId(0), last: false });
        }
        world
    }

    /// The same world with troubles.
    pub(crate) fn with(self, trouble: &Trouble) -> Self {
        Self { trouble: trouble.clone(), ..self }
    }

    /// Runs to the end in turns of this many picoseconds.
    pub(crate) fn run(mut self, turn: u64) -> Result {
        for turns in 0.. {
            let about = || self.readouts.iter().map(|unit| *unit.counts()).collect::<Vec<_>>();
            assert!(turns < MOST_TURNS, "it hangs: {:?} {:#?}", self.manager.counts(), about());
            self.now = self.now + Span(turn);
            self.lose_builder();
            self.arrive();
            (0..self.boards.len())
                .filter(|unit| !self.is_away(*unit))
                .collect::<Vec<_>>()
                .into_iter()
                .for_each(|unit| self.turn(unit));
            self.wake();
            self.settle();
            if self.result.drained {
                break;
            }
        }
        self.result.readouts = self.readouts.iter().map(|unit| *unit.counts()).collect();
        self.result.lost = self.lost.clone();
        self.result.manager = *self.manager.counts();
        let state = |unit| self.manager.clock(SourceId(unit as u16)).expect("a clock");
        self.result.clocks = (0..self.boards.len()).map(state).collect();
        self.result
    }

    /// One turn of the node of a board, as a driver does it.
    fn turn(&mut self, unit: usize) {
        let now = self.now;
        if self.lost[unit] || self.ended[unit] {
            return;
        }
        if self.boards[unit].dies.is_some_and(|at| at <= now.0) {
            self.lost[unit] = true;
            let node = NodeId(1 + unit as u16);
            self.manager.handle_command(now, ManagerCommand::Lost(node));
            return self
                .builders
                .iter_mut()
                .for_each(|builder| builder.handle_command(now, BuilderCommand::Lost(node)));
        }
        while self.readouts[unit].has_room() {
            let Some(&(at, raw, trigger)) = self.left[unit].front() else {
                self.ended[unit] = true;
                return self.readouts[unit].handle_command(now, ReadoutCommand::EndOfData { last: Some(0) });
            };
            if at > now.0 {
                return self.readouts[unit].handle_command(now, ReadoutCommand::Quiet);
            }
            self.left[unit].pop_front();
            self.readouts[unit].handle_command(now, arrival(now, raw, trigger));
        }
    }

    fn is_away(&self, unit: usize) -> bool {
        self.trouble.away.is_some_and(|(away, from, to)| away == unit && (from..to).contains(&self.now.0))
    }

    /// Lets the second builder die.
    fn lose_builder(&mut self) {
        let (now, node) = (self.now, self.builder_node(1));
        if !self.is_builder_lost && self.trouble.builder_dies.is_some_and(|at| at <= now.0) {
            self.is_builder_lost = true;
            self.manager.handle_command(now, ManagerCommand::Lost(node));
            self.readouts.iter_mut().for_each(|unit| unit.handle_command(now, ReadoutCommand::Lost(node)));
        }
    }

    fn living_builders(&self) -> usize {
        2 - usize::from(self.is_builder_lost)
    }

    fn builder_node(&self, builder: usize) -> NodeId {
        NodeId((1 + self.readouts.len() + builder) as u16)
    }

    fn wake(&mut self) {
        let now = self.now;
        if self.manager.poll_timeout().is_some_and(|(at, _)| at <= now) {
            self.manager.handle_timeout(now);
        }
        for unit in &mut self.readouts {
            if unit.poll_timeout().is_some_and(|(at, _)| at <= now) {
                unit.handle_timeout(now);
                assert!(unit.poll_timeout().is_none_or(|(at, _)| at > now), "it would be woken for ever");
            }
        }
        for builder in &mut self.builders {
            if builder.poll_timeout().is_some_and(|(at, _)| at <= now) {
                builder.handle_timeout(now);
            }
        }
    }

    /// Delivers the output of the machines until there is none.
    fn settle(&mut self) {
        loop {
            let mut messages = Vec::new();
            while let Some(transmit) = self.manager.poll_transmit() {
                messages.extend(transmit.to.iter().map(|to| (NodeId(0), to, transmit.message.clone())));
            }
            let silent: Vec<_> = (0..self.boards.len()).map(|unit| self.lost[unit] || self.is_away(unit)).collect();
            for (unit, machine) in self.readouts.iter_mut().enumerate().filter(|(unit, _)| !silent[*unit]) {
                while let Some(transmit) = machine.poll_transmit() {
                    let from = NodeId(1 + unit as u16);
                    messages.extend(transmit.to.iter().map(|to| (from, to, transmit.message.clone())));
                }
                while let Some(event) = machine.poll_event() {
                    if let ReadoutEvent::Apart { reason, .. } = event {
                        *self.result.apart[unit].entry(reason).or_default() += 1;
                    }
                }
            }
            for index in 0..self.living_builders() {
                let from = self.builder_node(index);
                while let Some(transmit) = self.builders[index].poll_transmit() {
                    messages.extend(transmit.to.iter().map(|to| (from, to, transmit.message.clone())));
                }
            }
            let built = self.take_events();
            if messages.is_empty() && !built {
                return;
            }
            messages.into_iter().for_each(|(from, to, message)| self.send(from, to, message));
        }
    }

    /// Sends a message: it arrives at once if there are no delays.
    fn send(&mut self, from: NodeId, to: NodeId, message: Message<Trigger>) {
        let Trouble { delay, lose_one_in, .. } = self.trouble;
        if delay == 0 {
            return self.deliver(from, to, message);
        }
        let may_be_lost = message.is_data() || matches!(message, Message::Ask { .. });
        if may_be_lost && lose_one_in > 0 && self.random.next_u64().is_multiple_of(lose_one_in) {
            return;
        }
        let last = self.last_arrivals.entry((from, to)).or_default();
        *last = (*last).max(self.now.0 + self.random.next_u64() % delay);
        self.count += 1;
        self.sent.insert((*last, self.count), Sent { from, to, message });
    }

    /// Delivers the messages whose time has come. A node that is away keeps them until it is back.
    fn arrive(&mut self) {
        while let Some(((at, count), sent)) = self.sent.pop_first() {
            if at > self.now.0 {
                self.sent.insert((at, count), sent);
                return;
            }
            match self.trouble.away.filter(|(unit, ..)| sent.to.index() == 1 + unit && self.is_away(*unit)) {
                Some((_, _, back)) => _ = self.sent.insert((back, count), sent),
                None => self.deliver(sent.from, sent.to, sent.message),
            }
        }
    }

    fn take_events(&mut self) -> bool {
        let mut moved = false;
        for index in 0..self.living_builders() {
            moved |= self.take_built(index);
        }
        while let Some(event) = self.manager.poll_event() {
            self.result.drained |= event == ManagerEvent::Drained;
        }
        moved
    }

    fn take_built(&mut self, index: usize) -> bool {
        let mut moved = false;
        while let Some(event) = self.builders[index].poll_event() {
            if let BuilderEvent::Built(built) = event {
                moved = true;
                let good = |fragment: &Fragment<Trigger>| {
                    (fragment.status == FragmentStatus::Good).then_some(fragment.payload)
                };
                let triggers = built.fragments.iter().map(|fragment| fragment.as_ref().and_then(good)).collect();
                self.result.events.insert(built.event, (triggers, built.complete));
                self.builders[index].handle_command(self.now, BuilderCommand::Stored(built));
            }
        }
        moved
    }

    fn deliver(&mut self, from: NodeId, to: NodeId, message: Message<Trigger>) {
        let (now, units) = (self.now, self.readouts.len());
        self.result.messages += u64::from(matches!(message, Message::Times(_) | Message::Matched { .. }));
        match to.index() {
            0 => self.manager.handle_message(now, from, message),
            unit if unit <= units && self.lost[unit - 1] => {}
            unit if unit <= units => self.readouts[unit - 1].handle_message(now, from, message),
            builder => match builder - units - 1 {
                1 if self.is_builder_lost => {}
                index => self.builders[index].handle_message(now, from, message),
            },
        }
    }
}

pub(crate) fn arrival(now: Time, raw: u64, trigger: Trigger) -> ReadoutCommand<Trigger> {
    ReadoutCommand::Arrived(Arrival {
        number: trigger & 0xffff_ffff,
        restarted: false,
        arrived: now,
        clock: Some(raw),
        length: 8,
        checksum: trigger as u32,
        mark: None::<Mark>,
        status: FragmentStatus::Good,
        payload: trigger,
    })
}

impl Result {
    /// No event holds fragments of two triggers, and every fragment is accounted for.
    pub(crate) fn check(&self, about: &dyn std::fmt::Debug) {
        for (event, (triggers, complete)) in &self.events {
            let mut present = triggers.iter().flatten();
            let first = present.next();
            assert!(present.all(|other| Some(other) == first), "event {event} mixes {triggers:?}: {about:#?}");
            assert!(!complete || triggers.iter().all(Option::is_some), "event {event}: {about:#?}");
        }
        assert_eq!(self.events.len() as u64, self.manager.triggered);
        for (unit, counts) in self.readouts.iter().enumerate() {
            let apart: u64 = self.apart[unit].values().sum();
            assert!(self.lost[unit] || apart == counts.apart, "unit {unit}: {apart} of {counts:?}");
            let outcomes = &self.clocks[unit].counts;
            assert_eq!(self.apart[unit].get(&Fault::Unexpected), None, "unit {unit}: {outcomes:?} {about:#?}");
        }
    }

    /// A unit that has lived to the end has placed all its fragments or set them apart.
    pub(crate) fn check_account(&self, unit: usize) {
        let counts = &self.readouts[unit];
        assert_eq!((counts.came, counts.fragments + counts.apart), (self.sent[unit], self.sent[unit]), "{counts:?}");
    }

    /// Part of the fragments of a unit that are in an event.
    pub(crate) fn placed(&self, unit: usize) -> f64 {
        let placed = self.events.values().filter(|(triggers, _)| triggers[unit].is_some()).count();
        placed as f64 / self.sent[unit] as f64
    }
}
