//! Traffic shaping in virtual time: readout units and builders of any number, with delays of any length and units that
//! die. Every message comes whole, once and in order.

use bytes::Bytes;
use evb_core::{ByteCount, EventId, NodeId, SourceId, Span, Time, checksum};
use evb_protocol::{Config, Fragment, FragmentStatus, Message, Piece, Shaping, ShapingStep, wire};
use evb_unit::shaping::{Assembler, Rounds, ShapedPart, Shaper, Slot, Turns, cut};
use proptest::prelude::*;
use std::collections::BTreeMap;

const SLIP: Span = Span::from_millis(1);
/// The clock of a unit is ahead of that of the event manager by so much times its index.
const AHEAD: Span = Span::from_micros(155);

/// Time of a byte on its way in a slot of the clock.
const BYTE: Span = Span::from_micros(2);
const CLOCK: ShapingStep = ShapingStep::Clock { slot: Span::from_micros(300), guard: Span::from_micros(20) };

fn barrel(step: ShapingStep, units: u16, builders: u16, (bucket, lead): (u64, u64)) -> Config {
    let shaping = Shaping::BarrelShifter { bucket: ByteCount(bucket), step, lead: ByteCount(lead), slip: SLIP };
    Config { shaping, ..Config::new(units, builders) }
}

/// A message between the units.
#[derive(Debug)]
enum Wire {
    Credit { unit: usize, builder: usize, calm: bool },
    Bucket { unit: usize, slot: Slot<u32> },
    Taken { builder: usize, round: u64, empty: bool },
    Round { unit: usize, number: u64, calm: bool },
    TimeRequest { unit: usize, asked: Time },
    TimeAnswer { unit: usize, asked: Time, manager: Time },
}

/// The time by the clock of a unit.
fn time_of(unit: usize, now: Time) -> Time {
    now + Span(AHEAD.0 * unit as u64)
}

/// Units that exchange buckets and credits, in virtual time.
struct Bench {
    now: Time,
    shapers: Vec<Shaper<u32>>,
    /// The builders, by credits.
    turns: Vec<Turns>,
    /// The event manager, by barrier.
    rounds: Option<Rounds>,
    wire: BTreeMap<(Time, u64), Wire>,
    sequence: u64,
    builders: usize,
    /// Time of the last arrival, for each kind and pair.
    last: BTreeMap<(u8, usize, usize), Time>,
    /// Whole messages that have come, by unit and builder.
    arrived: BTreeMap<(usize, usize), Vec<u32>>,
    dead_units: Vec<usize>,
    dead_builder: Option<usize>,
    most_at_once: usize,
}

impl Bench {
    fn new(config: &Config) -> Self {
        let mut bench = Self {
            now: Time::ZERO,
            shapers: (0..config.readout_units).map(|unit| Shaper::new(config, unit).unwrap()).collect(),
            turns: (0..config.builder_units).filter_map(|builder| Turns::new(config, builder)).collect(),
            rounds: Rounds::new(config),
            wire: BTreeMap::new(),
            sequence: 0,
            builders: config.builder_units.into(),
            last: BTreeMap::new(),
            arrived: BTreeMap::new(),
            dead_units: Vec::new(),
            dead_builder: None,
            most_at_once: 0,
        };
        bench.shapers.iter_mut().for_each(Shaper::begin);
        bench.turns.iter_mut().for_each(|turns| turns.start(Time::ZERO));
        bench.rounds.iter_mut().for_each(|rounds| rounds.start(Time::ZERO));
        let rules = [bench.rounds.is_some(), !bench.turns.is_empty(), bench.shapers[0].is_by_clock()];
        assert_eq!(rules.iter().filter(|&&rule| rule).count(), 1, "one rule keeps step");
        bench
    }

    /// Sends all that is ready. `delay` returns the time of each message on its way, by its number.
    fn drain(&mut self, delay: &dyn Fn(u64) -> Span) {
        let (dead_units, dead_builder) = (self.dead_units.clone(), self.dead_builder);
        for builder in (0..self.turns.len()).filter(|&builder| dead_builder != Some(builder)) {
            while let Some((NodeId(node), calm)) = self.turns[builder].poll() {
                self.post(delay, Wire::Credit { unit: usize::from(node) - 1, builder, calm });
            }
        }
        while let Some((number, calm)) = self.rounds.as_mut().and_then(Rounds::poll) {
            (0..self.shapers.len()).for_each(|unit| self.post(delay, Wire::Round { unit, number, calm }));
        }
        for unit in (0..self.shapers.len()).filter(|unit| !dead_units.contains(unit)) {
            let now = time_of(unit, self.now);
            if self.shapers[unit].asks_time(now) {
                self.post(delay, Wire::TimeRequest { unit, asked: now });
            }
            while let Some(slot) = self.shapers[unit].next(now) {
                self.post(delay, Wire::Bucket { unit, slot });
            }
        }
        for builder in 0..self.builders {
            let to_it = |wire: &&Wire| matches!(wire, Wire::Bucket { slot, .. } if slot.builder == builder);
            self.most_at_once = self.most_at_once.max(self.wire.values().filter(to_it).count());
        }
    }

    fn post(&mut self, delay: &dyn Fn(u64) -> Span, what: Wire) {
        self.sequence += 1;
        let way = match &what {
            Wire::Credit { unit, builder, .. } => (0, *unit, *builder),
            Wire::Bucket { unit, slot } => (1, *unit, slot.builder),
            Wire::Taken { builder, .. } => (2, 0, *builder),
            Wire::Round { unit, .. } => (3, *unit, 0),
            Wire::TimeRequest { unit, .. } => (4, *unit, 0),
            Wire::TimeAnswer { unit, .. } => (5, *unit, 0),
        };
        let on_wire = match &what {
            Wire::Bucket { slot, .. } if self.turns.is_empty() && self.rounds.is_none() => {
                Span(slot.parts.iter().map(|part| part.bytes).sum::<u64>() * BYTE.0)
            }
            _ => Span::ZERO,
        };
        // A transport keeps the order of each pair.
        let last = self.last.entry(way).or_insert(Time::ZERO);
        *last = (self.now + on_wire + delay(self.sequence)).max(*last);
        self.wire.insert((*last, self.sequence), what);
    }

    /// True if no builder has buckets of two units on their way to it.
    fn has_one_sender_to_each(&self) -> bool {
        let mut senders = BTreeMap::new();
        self.wire.values().all(|wire| match wire {
            Wire::Bucket { unit, slot } => senders.insert(slot.builder, *unit).is_none_or(|other| other == *unit),
            _ => true,
        })
    }

    /// Advances to the next time at which something happens.
    fn step(&mut self, delay: &dyn Fn(u64) -> Span) {
        let of_shaper = |(unit, shaper): (usize, &Shaper<u32>)| {
            let at = shaper.deadline(time_of(unit, self.now)).into_iter().chain(shaper.asks_time_at()).min();
            at.map(|at| Time(at.0.saturating_sub(AHEAD.0 * unit as u64)))
        };
        let deadlines = self.shapers.iter().enumerate().filter_map(of_shaper);
        let deadlines = deadlines.chain(self.turns.iter().filter_map(Turns::deadline));
        let deadlines = deadlines.chain(self.rounds.as_ref().and_then(Rounds::deadline)).filter(|&at| at > self.now);
        let arrival = self.wire.keys().next().map(|&(at, _)| at);
        let Some(next) = deadlines.chain(arrival).min() else { return };
        self.now = next.max(self.now);
        while let Some(first) = self.wire.first_entry().filter(|first| first.key().0 <= self.now) {
            let what = first.remove();
            self.arrive(delay, what);
        }
        self.turns.iter_mut().for_each(|turns| turns.handle_timeout(self.now));
        self.rounds.iter_mut().for_each(|rounds| rounds.handle_timeout(self.now));
    }

    fn arrive(&mut self, delay: &dyn Fn(u64) -> Span, what: Wire) {
        match what {
            Wire::Credit { unit, .. } if self.dead_units.contains(&unit) => {}
            Wire::Credit { unit, builder, calm } => self.shapers[unit].credit(time_of(unit, self.now), builder, calm),
            Wire::Bucket { slot, .. } if self.dead_builder == Some(slot.builder) => {}
            Wire::Bucket { unit, slot } => {
                let from = NodeId(1 + unit as u16);
                let (builder, empty) = (slot.builder, slot.parts.is_empty());
                match self.turns.get_mut(builder) {
                    Some(turns) => turns.taken(self.now, from, empty),
                    None if self.rounds.is_none() => {}
                    None => self.post(delay, Wire::Taken { builder, round: slot.round, empty }),
                }
                let whole = slot.parts.iter().filter(|part| part.last).map(|part| part.item);
                self.arrived.entry((unit, slot.builder)).or_default().extend(whole);
            }
            Wire::Taken { builder, round, empty } => {
                let from = NodeId((1 + self.shapers.len() + builder) as u16);
                self.rounds.as_mut().unwrap().taken(self.now, from, round, empty);
            }
            Wire::Round { unit, number, calm } => self.shapers[unit].begin_round(time_of(unit, self.now), number, calm),
            Wire::TimeRequest { unit, asked } => {
                self.post(delay, Wire::TimeAnswer { unit, asked, manager: self.now });
            }
            Wire::TimeAnswer { unit, asked, manager } => {
                self.shapers[unit].set_time(time_of(unit, self.now), asked, manager)
            }
        }
    }

    /// A unit dies, and that is reported to its peers, or not.
    fn kill_unit(&mut self, unit: usize, reported: bool) {
        self.dead_units.push(unit);
        if !reported {
            return;
        }
        (0..self.turns.len()).for_each(|builder| self.shapers[unit].lose(builder));
        let node = NodeId(1 + unit as u16);
        self.turns.iter_mut().for_each(|turns| turns.lose(self.now, node));
        self.rounds.iter_mut().for_each(|rounds| rounds.lose(self.now, node));
    }

    fn kill_builder(&mut self, builder: usize, reported: bool) {
        self.dead_builder = Some(builder);
        if !reported {
            return;
        }
        self.shapers.iter_mut().for_each(|shaper| shaper.lose(builder));
        let node = NodeId((1 + self.shapers.len() + builder) as u16);
        self.rounds.iter_mut().for_each(|rounds| rounds.lose(self.now, node));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Delays may be longer than the longest wait for a slow unit: then turns are passed over, and nothing is lost.
    #[test]
    fn everything_comes_whole_once_and_in_order(
        (units, builders) in (1_u16..6, 1_u16..6),
        sizes in prop::collection::vec(1_u64..300, 1..60),
        delays in prop::collection::vec(1_u64..2500, 1..40),
        (step, lead) in (prop_oneof![Just(ShapingStep::Credit), Just(ShapingStep::Barrier), Just(CLOCK)], 0_u64..300),
        (dead_units, dead_builder, reported) in (0_usize..4, prop::option::of(0_usize..5), any::<bool>()),
    ) {
        let mut bench = Bench::new(&barrel(step, units, builders, (132, lead)));
        let delay = |number: u64| Span::from_micros(delays[number as usize % delays.len()]);
        let mut sent: BTreeMap<(usize, usize), Vec<u32>> = BTreeMap::new();
        for (number, &size) in (0..).zip(&sizes) {
            let (unit, builder) = (number as usize % usize::from(units), number as usize / 2 % usize::from(builders));
            bench.shapers[unit].push(builder, number, size);
            sent.entry((unit, builder)).or_default().push(number);
        }
        for round in 0..6000 {
            bench.drain(&delay);
            bench.step(&delay);
            if round == 20 {
                (0..dead_units.min(usize::from(units) - 1)).for_each(|unit| bench.kill_unit(unit, reported));
                let builder = dead_builder.filter(|&builder| builder + 1 < builders.into());
                builder.into_iter().for_each(|builder| bench.kill_builder(builder, reported));
            }
        }
        for (&(unit, builder), wanted) in &sent {
            let came = bench.arrived.get(&(unit, builder)).cloned().unwrap_or_default();
            if bench.dead_units.contains(&unit) || bench.dead_builder == Some(builder) {
                prop_assert!(wanted.starts_with(&came));
            } else {
                prop_assert_eq!(&came, wanted, "{} to {}", unit, builder);
            }
        }
    }

    /// Units whose clocks are right never send to a builder at the same time.
    #[test]
    fn by_the_clock_builders_have_one_sender_at_a_time(
        (units, builders) in (2_u16..6, 1_u16..6),
        sizes in prop::collection::vec(1_u64..300, 1..60),
    ) {
        let mut bench = Bench::new(&barrel(CLOCK, units, builders, (132, 0)));
        let delay = |_| Span::from_micros(10);
        for (number, &size) in (0..).zip(&sizes) {
            bench.shapers[number as usize % usize::from(units)].push(number as usize % usize::from(builders), number, size);
        }
        for _ in 0..3000 {
            bench.drain(&delay);
            prop_assert!(bench.has_one_sender_to_each(), "{:?}", bench.wire);
            bench.step(&delay);
        }
        prop_assert_eq!(bench.arrived.values().flatten().count(), sizes.len());
    }

    /// A fragment that is cut anywhere is whole again at its builder.
    #[test]
    fn pieces_make_the_fragment_again(length in 0_usize..200, cuts in prop::collection::btree_set(1_u64..230, 0..6)) {
        let payload: Bytes = (0..length).map(|place| place as u8).collect::<Vec<_>>().into();
        let config = Config::new(2, 2);
        let fragment = Fragment {
            event: EventId(7),
            source: SourceId(1),
            length: length as u32,
            checksum: checksum(&payload),
            mark: None,
            counter: None,
            status: FragmentStatus::Good,
            payload,
        };
        let item = Message::Fragment(fragment.clone());
        let bytes = wire::length(&item);
        let places: Vec<_> = std::iter::once(0).chain(cuts.into_iter().filter(|&cut| cut < bytes)).chain([bytes]).collect();
        let (mut assembler, mut came) = (Assembler::new(&config), Vec::new());
        for pair in places.windows(2) {
            let part = ShapedPart { item: item.clone(), offset: pair[0], bytes: pair[1] - pair[0], last: pair[1] == bytes };
            came.extend(match cut(part) {
                Some(Message::Fragment(whole)) => Some(whole),
                Some(Message::Piece(piece)) => assembler.add(NodeId(2), *piece),
                _ => None,
            });
        }
        prop_assert_eq!(came, [fragment]);
    }
}

/// Without losses and with equal delays, no builder is sent more than it has given credits for, and all units share it.
#[test]
fn a_builder_has_few_buckets_on_their_way() {
    let variants = [
        (ShapingStep::Credit, 0, 1),
        (ShapingStep::Credit, 20, 1),
        (ShapingStep::Credit, 132, 2),
        (ShapingStep::Barrier, 20, 1),
    ];
    for (step, lead, most) in variants {
        for (units, builders) in [(4, 4), (8, 3), (3, 8)] {
            let (variant, delay) = (format!("{step:?} {lead} {units} x {builders}"), |_| Span::from_micros(10));
            let mut bench = Bench::new(&barrel(step, units, builders, (132, lead)));
            for unit in 0..units.into() {
                for builder in 0..builders.into() {
                    (0..20).for_each(|number| bench.shapers[unit].push(builder, number, 100));
                }
            }
            for _ in 0..4000 {
                bench.drain(&delay);
                bench.step(&delay);
            }
            assert!(bench.most_at_once <= most, "{variant}: {}", bench.most_at_once);
            assert_eq!(bench.arrived.len(), usize::from(units * builders), "{variant}");
            assert!(bench.arrived.values().all(|came| came.len() == 20), "{variant}");
            // Idle units take their time, and others pass their turns then.
            let passed = bench.shapers.iter().any(|shaper| shaper.counts().passed > 0);
            assert!(step == ShapingStep::Credit || !passed, "{variant}");
        }
    }
}

/// A round waits for the slowest bucket, but for no longer than a turn may last, and for no dead unit.
#[test]
fn a_round_ends_when_all_have_sent() {
    let config = barrel(ShapingStep::Barrier, 3, 2, (132, 0));
    let mut rounds = Rounds::new(&config).unwrap();
    let (first, second) = (NodeId(4), NodeId(5));
    rounds.start(Time::ZERO);
    assert_eq!((rounds.poll(), rounds.poll()), (Some((1, false)), None));
    rounds.taken(Time(1), first, 1, false);
    rounds.taken(Time(2), second, 7, false);
    rounds.taken(Time(3), NodeId(9), 1, false);
    assert_eq!(rounds.poll(), None, "a wrong number and a stranger end nothing");
    rounds.taken(Time(4), second, 1, false);
    assert_eq!(rounds.poll(), Some((2, false)));
    rounds.taken(Time(5), first, 2, false);
    assert_eq!(rounds.deadline(), Some(Time(4) + SLIP));
    rounds.handle_timeout(Time(4) + SLIP);
    assert_eq!(rounds.poll(), Some((3, false)), "the slow unit is no longer waited for");
    rounds.taken(Time(6) + SLIP, second, 2, false);
    rounds.taken(Time(6) + SLIP, first, 3, false);
    assert_eq!(rounds.poll(), None, "a late bucket is none of this round");
    rounds.lose(Time(7) + SLIP, second);
    assert_eq!(rounds.poll(), Some((4, false)), "a dead builder takes no bucket");
    // The first builder hears units 0, 2, 1 in turn; without unit 2 its round 4 is that of unit 2 or is left out.
    (1..=3).for_each(|unit| rounds.lose(Time(8) + SLIP, NodeId(unit)));
    while rounds.poll().is_some() {}
    assert_eq!(rounds.deadline(), None, "no unit is left");
}

/// A piece whose predecessor is lost makes no fragment.
#[test]
fn a_gap_loses_the_fragment_and_no_other() {
    let payload = Bytes::from_static(b"0123456789");
    let fragment = |event: u64| Fragment {
        event: EventId(event),
        source: SourceId(0),
        length: 10,
        checksum: checksum(&payload),
        mark: None,
        counter: None,
        status: FragmentStatus::Good,
        payload: payload.clone(),
    };
    let piece = |event, from: usize, to: usize| Piece {
        offset: from as u32,
        bytes: (to - from) as u32,
        of: Fragment { payload: payload.slice(from..to), ..fragment(event) },
    };
    let mut assembler = Assembler::new(&Config::new(1, 1));
    assert_eq!(assembler.add(NodeId(1), piece(1, 0, 4)), None);
    assert_eq!(assembler.add(NodeId(1), piece(1, 6, 10)), None, "four and five are missing");
    assert_eq!(assembler.add(NodeId(1), piece(2, 0, 4)), None);
    assert_eq!(assembler.add(NodeId(1), piece(2, 4, 10)), Some(fragment(2)));
    assert_eq!(assembler.add(NodeId(9), piece(3, 0, 10)), None, "not a readout unit");
}
