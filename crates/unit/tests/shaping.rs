//! Traffic shaping in virtual time: readout units and builders of any number, with delays of any length and units that
//! die. Every message comes whole, once and in order.

use bytes::Bytes;
use evb_core::{ByteCount, EventId, NodeId, SourceId, Span, Time, checksum};
use evb_protocol::{Config, Fragment, FragmentStatus, Message, Piece, Shaping, Step, wire};
use evb_unit::shaping::{Assembler, Part, Shaper, Slot, Turns, cut};
use proptest::prelude::*;
use std::collections::BTreeMap;

const SLIP: Span = Span::from_millis(1);

fn barrel(units: u16, builders: u16, bucket: u64) -> Config {
    let shaping = Shaping::BarrelShifter { bucket: ByteCount(bucket), step: Step::Credit, lead: ByteCount(bucket), slip: SLIP };
    Config { shaping, ..Config::new(units, builders) }
}

/// A message between the units.
#[derive(Debug)]
enum Wire {
    Credit { unit: usize, builder: usize, calm: bool },
    Bucket { unit: usize, slot: Slot<u32> },
}

/// Units that exchange buckets and credits, in virtual time.
struct Bench {
    now: Time,
    shapers: Vec<Shaper<u32>>,
    turns: Vec<Turns>,
    wire: BTreeMap<(Time, u64), Wire>,
    sequence: u64,
    /// Time of the last arrival, for each pair and direction.
    last: BTreeMap<(bool, usize, usize), Time>,
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
            turns: (0..config.builder_units).map(|builder| Turns::new(config, builder).unwrap()).collect(),
            wire: BTreeMap::new(),
            sequence: 0,
            last: BTreeMap::new(),
            arrived: BTreeMap::new(),
            dead_units: Vec::new(),
            dead_builder: None,
            most_at_once: 0,
        };
        bench.turns.iter_mut().for_each(|turns| turns.start(Time::ZERO));
        bench
    }

    /// Sends all that is ready. `delay` gives the time of each message on its way, by its number.
    fn drain(&mut self, delay: &dyn Fn(u64) -> Span) {
        let (dead_units, dead_builder) = (self.dead_units.clone(), self.dead_builder);
        for builder in (0..self.turns.len()).filter(|&builder| dead_builder != Some(builder)) {
            while let Some((NodeId(node), calm)) = self.turns[builder].poll() {
                self.post(delay, Wire::Credit { unit: usize::from(node) - 1, builder, calm });
            }
        }
        for unit in (0..self.shapers.len()).filter(|unit| !dead_units.contains(unit)) {
            while let Some(slot) = self.shapers[unit].next(self.now) {
                self.post(delay, Wire::Bucket { unit, slot });
            }
        }
        for builder in 0..self.turns.len() {
            let to_it = |wire: &&Wire| matches!(wire, Wire::Bucket { slot, .. } if slot.builder == builder);
            self.most_at_once = self.most_at_once.max(self.wire.values().filter(to_it).count());
        }
    }

    fn post(&mut self, delay: &dyn Fn(u64) -> Span, what: Wire) {
        self.sequence += 1;
        let way = match &what {
            Wire::Credit { unit, builder, .. } => (true, *unit, *builder),
            Wire::Bucket { unit, slot } => (false, *unit, slot.builder),
        };
        // A transport keeps the order of each pair.
        let last = self.last.entry(way).or_insert(Time::ZERO);
        *last = (self.now + delay(self.sequence)).max(*last);
        self.wire.insert((*last, self.sequence), what);
    }

    /// Goes on to the next time at which something happens.
    fn step(&mut self) {
        let deadlines = self.shapers.iter().filter_map(Shaper::deadline);
        let deadlines = deadlines.chain(self.turns.iter().filter_map(Turns::deadline)).filter(|&at| at > self.now);
        let arrival = self.wire.keys().next().map(|&(at, _)| at);
        let Some(next) = deadlines.chain(arrival).min() else { return };
        self.now = next.max(self.now);
        while let Some(first) = self.wire.first_entry().filter(|first| first.key().0 <= self.now) {
            let what = first.remove();
            self.arrive(what);
        }
        self.turns.iter_mut().for_each(|turns| turns.handle_timeout(self.now));
    }

    fn arrive(&mut self, what: Wire) {
        match what {
            Wire::Credit { unit, .. } if self.dead_units.contains(&unit) => {}
            Wire::Credit { unit, builder, calm } => self.shapers[unit].credit(self.now, builder, calm),
            Wire::Bucket { slot, .. } if self.dead_builder == Some(slot.builder) => {}
            Wire::Bucket { unit, slot } => {
                let from = NodeId(1 + unit as u16);
                self.turns[slot.builder].taken(self.now, from, slot.parts.is_empty());
                let whole = slot.parts.iter().filter(|part| part.last).map(|part| part.item);
                self.arrived.entry((unit, slot.builder)).or_default().extend(whole);
            }
        }
    }

    /// A unit goes, and its peers are told so, or not.
    fn kill_unit(&mut self, unit: usize, told: bool) {
        self.dead_units.push(unit);
        if !told {
            return;
        }
        (0..self.turns.len()).for_each(|builder| self.shapers[unit].lose(builder));
        self.turns.iter_mut().for_each(|turns| turns.lose(self.now, NodeId(1 + unit as u16)));
    }

    fn kill_builder(&mut self, builder: usize, told: bool) {
        self.dead_builder = Some(builder);
        if !told {
            return;
        }
        self.shapers.iter_mut().for_each(|shaper| shaper.lose(builder));
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
        (dead_units, dead_builder, told) in (0_usize..4, prop::option::of(0_usize..5), any::<bool>()),
    ) {
        let mut bench = Bench::new(&barrel(units, builders, 132));
        let delay = |number: u64| Span::from_micros(delays[number as usize % delays.len()]);
        let mut sent: BTreeMap<(usize, usize), Vec<u32>> = BTreeMap::new();
        for (number, &size) in (0..).zip(&sizes) {
            let (unit, builder) = (number as usize % usize::from(units), number as usize / 2 % usize::from(builders));
            bench.shapers[unit].push(builder, number, size);
            sent.entry((unit, builder)).or_default().push(number);
        }
        for round in 0..6000 {
            bench.drain(&delay);
            bench.step();
            if round == 20 {
                (0..dead_units.min(usize::from(units) - 1)).for_each(|unit| bench.kill_unit(unit, told));
                let builder = dead_builder.filter(|&builder| builder + 1 < builders.into());
                builder.into_iter().for_each(|builder| bench.kill_builder(builder, told));
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
            status: FragmentStatus::Good,
            payload,
        };
        let item = Message::Fragment(fragment.clone());
        let bytes = wire::length(&item);
        let places: Vec<_> = std::iter::once(0).chain(cuts.into_iter().filter(|&cut| cut < bytes)).chain([bytes]).collect();
        let (mut assembler, mut came) = (Assembler::new(&config), Vec::new());
        for pair in places.windows(2) {
            let part = Part { item: item.clone(), offset: pair[0], bytes: pair[1] - pair[0], last: pair[1] == bytes };
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
    for (units, builders) in [(4, 4), (8, 3), (3, 8)] {
        let mut bench = Bench::new(&barrel(units, builders, 132));
        for unit in 0..units.into() {
            for builder in 0..builders.into() {
                (0..20).for_each(|number| bench.shapers[unit].push(builder, number, 100));
            }
        }
        for _ in 0..4000 {
            bench.drain(&|_| Span::from_micros(10));
            bench.step();
        }
        assert!(bench.most_at_once <= 2, "{units} x {builders}: {}", bench.most_at_once);
        assert_eq!(bench.arrived.len(), usize::from(units * builders));
        assert!(bench.arrived.values().all(|came| came.len() == 20), "{units} x {builders}");
    }
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
    assert_eq!(assembler.add(NodeId(9), piece(3, 0, 10)), None, "no such readout unit");
}
