//! The sending side: queues by builder, and the choice of the next bytes.

use super::clock::{ClockSlots, Room};
use evb_core::{ByteCount, Span, Time};
use evb_protocol::{Config, Shaping, ShapingStep, wire::HEAD_BYTES};
use evb_record::Slots;
use std::collections::VecDeque;

/// Longest time for which a readout unit without data holds back an empty bucket, while no other one has data either.
const REST: Span = Span::from_micros(200);

/// The order in which the messages of one readout unit go to the builders. `T` is a message, or its handle.
pub struct Shaper<T> {
    /// Messages that wait, by builder.
    queues: Vec<VecDeque<Queued<T>>>,
    /// The builders that take part.
    alive: Vec<bool>,
    /// The builder whose turn it is.
    turn: usize,
    /// Number of slots in which every readout unit meets every builder.
    round_slots: u16,
    /// Time since when it has waited for a credit, in its turn.
    since: Option<Time>,
    packing: Packing,
    counts: Slots,
    /// Memory for the parts of a slot, to be used again.
    spare: Vec<ShapedPart<T>>,
}

/// A message, and its bytes that were not taken yet.
struct Queued<T> {
    item: T,
    bytes: u64,
    taken: u64,
}

/// The rule for the next bytes.
enum Packing {
    /// Packets of at most this many bytes, to the builders in turn for which something waits.
    Packets { most: u64 },
    /// A bucket for every builder in turn, whenever the driver asks for it.
    Buckets { bytes: u64 },
    /// A bucket for every builder in turn, when that builder has given a credit.
    Credits { bytes: u64, lead: u64, slip: Span, credits: Vec<Option<Credit>> },
    /// A bucket for the builder of each round, when the round has begun.
    Rounds { bytes: u64, lead: u64, unit: u16, last: u64, open: VecDeque<Round> },
    /// A bucket for the builder of each slot of the time.
    Clock(Box<ClockSlots>),
}

/// The permission for one bucket.
#[derive(Clone, Copy)]
struct Credit {
    /// The time at which it came.
    at: Time,
    /// There have been only empty buckets lately.
    calm: bool,
}

/// A round that has begun, and its builder.
#[derive(Clone, Copy)]
struct Round {
    number: u64,
    builder: usize,
    credit: Credit,
}

/// Bytes of a message that go in one slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapedPart<T> {
    /// The message.
    pub item: T,
    /// Bytes of the message that went before.
    pub offset: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// Nothing of the message is left.
    pub last: bool,
}

/// One time slot: what goes to a builder now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot<T> {
    /// Index of the builder.
    pub builder: usize,
    /// The parts, in order; none in an empty slot.
    pub parts: Vec<ShapedPart<T>>,
    /// Number of the parts before the report of the end of the slot. The others are on their way while the next one is
    /// asked for.
    pub told_after: usize,
    /// The round of a barrier; else 0.
    pub round: u64,
}

impl<T: Clone> Shaper<T> {
    /// The shaper of the readout unit with this index; none when a configuration sends without slots.
    pub fn new(config: &Config, unit: u16) -> Option<Self> {
        let builders = usize::from(config.builder_units);
        let packing = match config.shaping {
            Shaping::None | Shaping::Grouping { .. } => return None,
            Shaping::RateDivision { packet } => Packing::Packets { most: packet.0 },
            Shaping::BarrelShifter { bucket, step: ShapingStep::Link, .. } => Packing::Buckets { bytes: bucket.0 },
            Shaping::BarrelShifter { bucket, step: ShapingStep::Credit, lead, slip } => {
                let (bytes, lead) = (in_bucket(bucket), lead.0 % bucket.0.max(1));
                Packing::Credits { bytes, lead, slip, credits: vec![None; builders] }
            }
            Shaping::BarrelShifter { bucket, step: ShapingStep::Barrier, lead, .. } => {
                Packing::Rounds { bytes: in_bucket(bucket), lead: lead.0, unit, last: 0, open: VecDeque::new() }
            }
            Shaping::BarrelShifter { bucket, step: ShapingStep::Clock { slot, guard }, .. } => {
                let round = config.readout_units.max(config.builder_units);
                Packing::Clock(Box::new(ClockSlots::new(unit, round, slot, guard, bucket.0)))
            }
        };
        let first = match packing {
            // As in the schedule of `Turns`: units beyond the number of builders begin with the first one.
            Packing::Credits { .. } if usize::from(unit) >= builders => 0,
            _ => usize::from(unit) % builders,
        };
        Some(Self {
            queues: (0..builders).map(|_| VecDeque::new()).collect(),
            alive: vec![true; builders],
            turn: first,
            round_slots: config.readout_units.max(config.builder_units),
            since: None,
            packing,
            counts: Slots::default(),
            spare: Vec::new(),
        })
    }

    /// Takes a message of some bytes for a builder. It is dropped if the builder is gone.
    pub fn push(&mut self, builder: usize, item: T, bytes: u64) {
        if self.alive[builder] {
            self.queues[builder].push_back(Queued { item, bytes, taken: 0 });
        }
    }

    /// Takes a builder's credit for one bucket. A second one before the bucket changes nothing.
    pub fn credit(&mut self, now: Time, builder: usize, calm: bool) {
        if let Packing::Credits { credits, .. } = &mut self.packing
            && self.alive.get(builder) == Some(&true)
        {
            let credit = &mut credits[builder];
            credit.get_or_insert(Credit { at: now, calm }).calm &= calm;
        }
    }

    /// Takes note that a round begins. A unit that is late sends in the rounds that it has missed first, once to each
    /// builder.
    pub fn begin_round(&mut self, now: Time, number: u64, calm: bool) {
        let Packing::Rounds { unit, last, open, .. } = &mut self.packing else { return };
        let builder = super::rounds::builder_of(*unit, number, self.round_slots);
        if number <= *last || self.alive.get(builder) != Some(&true) {
            return;
        }
        *last = number;
        let missed = open.len();
        open.retain(|round| round.builder != builder);
        self.counts.passed += (missed - open.len()) as u64;
        open.push_back(Round { number, builder, credit: Credit { at: now, calm } });
    }

    /// Drops what waits for a builder that is gone, and leaves it out from now on.
    pub fn lose(&mut self, builder: usize) {
        let Some(alive) = self.alive.get_mut(builder) else { return };
        *alive = false;
        self.queues[builder].clear();
        match &mut self.packing {
            Packing::Credits { credits, .. } => credits[builder] = None,
            Packing::Rounds { open, .. } => open.retain(|round| round.builder != builder),
            Packing::Packets { .. } | Packing::Buckets { .. } | Packing::Clock(_) => {}
        }
    }

    /// Takes note that the run begins. Then the event manager answers questions.
    pub fn begin(&mut self) {
        if let Packing::Clock(slots) = &mut self.packing {
            slots.clock.begin();
        }
    }

    /// The time at which the unit is to ask the event manager for its time; none without a clock.
    pub fn asks_time_at(&self) -> Option<Time> {
        if let Packing::Clock(slots) = &self.packing { Some(slots.clock.asks_at()) } else { None }
    }

    /// Returns true if the unit is to ask the event manager for its time now. Then it counts as asked.
    pub fn asks_time(&mut self, now: Time) -> bool {
        if let Packing::Clock(slots) = &mut self.packing { slots.clock.asks(now) } else { false }
    }

    /// Takes the answer of the event manager to the question that was asked at `asked`.
    pub fn set_time(&mut self, now: Time, asked: Time, manager: Time) {
        if let Packing::Clock(slots) = &mut self.packing {
            slots.clock.set_time(now, asked, manager);
        }
    }

    /// Longest time by which the unit's clock can differ from that of the event manager; none without a clock.
    pub fn clock_error(&self) -> Option<Span> {
        if let Packing::Clock(slots) = &self.packing { slots.clock.error() } else { None }
    }

    /// The next slot; none while there is nothing to send, or no credit.
    pub fn next(&mut self, now: Time) -> Option<Slot<T>> {
        if !self.alive.contains(&true) {
            return None;
        }
        while !self.alive[self.turn] {
            self.pass(now);
        }
        let (most, lead, round) = match self.packing {
            Packing::Clock(_) => return self.next_by_clock(now),
            Packing::Packets { most } => {
                self.turn = self.next_waiting()?;
                (most, 0, 0)
            }
            Packing::Buckets { bytes } => (bytes, 0, 0),
            Packing::Credits { bytes, lead, .. } => {
                self.await_credit(now)?;
                (bytes.saturating_sub(lead), lead, 0)
            }
            Packing::Rounds { bytes, lead, .. } => {
                let round = self.await_round(now)?;
                self.turn = round.builder;
                (bytes.saturating_sub(lead), lead.min(bytes), round.number)
            }
        };
        let single = matches!(self.packing, Packing::Packets { .. });
        let (queue, mut parts) = (&mut self.queues[self.turn], std::mem::take(&mut self.spare));
        fill(queue, most, single, &mut parts);
        let told_after = parts.len();
        fill(queue, lead, single, &mut parts);
        self.counts.used += 1;
        self.counts.empty += u64::from(parts.is_empty());
        let slot = Slot { builder: self.turn, parts, told_after, round };
        self.pass(now);
        Some(slot)
    }

    /// Takes back the memory of a slot's parts for the next slot.
    pub fn reuse(&mut self, mut parts: Vec<ShapedPart<T>>) {
        parts.clear();
        self.spare = parts;
    }

    /// The first builder from the present turn on for which something waits.
    fn next_waiting(&self) -> Option<usize> {
        let all = self.queues.len();
        (self.turn..self.turn + all).map(|builder| builder % all).find(|&builder| !self.queues[builder].is_empty())
    }

    /// Takes the credit of the builder whose turn it is. A turn without a credit is passed over when it has lasted too
    /// long: its builder is slow, and others need not wait for it.
    fn await_credit(&mut self, now: Time) -> Option<()> {
        for _ in 0..self.queues.len() {
            let Packing::Credits { slip, credits, .. } = &mut self.packing else { return None };
            match credits[self.turn] {
                Some(credit) if credit.rests(now) && self.queues.iter().all(VecDeque::is_empty) => return None,
                Some(_) => {
                    credits[self.turn] = None;
                    return Some(());
                }
                None if !self.alive[self.turn] => self.pass(now),
                None if now >= *self.since.get_or_insert(now) + *slip => {
                    self.counts.passed += 1;
                    self.pass(now);
                }
                None => return None,
            }
        }
        None
    }

    /// What the present slot of the time has room for.
    fn next_by_clock(&mut self, now: Time) -> Option<Slot<T>> {
        let Packing::Clock(slots) = &mut self.packing else { return None };
        let Room { builder, bytes, is_new } = slots.room(now)?;
        let queue = self.queues.get_mut(builder).filter(|queue| !queue.is_empty())?;
        let mut parts = std::mem::take(&mut self.spare);
        fill(queue, bytes, false, &mut parts);
        slots.send(now, parts.iter().map(|part| part.bytes).sum());
        self.counts.used += u64::from(is_new);
        Some(Slot { builder, told_after: parts.len(), parts, round: 0 })
    }

    /// Takes the oldest round that has begun.
    fn await_round(&mut self, now: Time) -> Option<Round> {
        let Packing::Rounds { open, .. } = &mut self.packing else { return None };
        let rests = open.front()?.credit.rests(now) && self.queues.iter().all(VecDeque::is_empty);
        if rests { None } else { open.pop_front() }
    }

    /// The next builder has its turn.
    fn pass(&mut self, now: Time) {
        self.turn = (self.turn + 1) % self.queues.len();
        self.since = Some(now);
    }

    /// The slots so far.
    pub const fn counts(&self) -> Slots {
        self.counts
    }

    /// True when a slot is one packet, and no bucket.
    pub const fn is_by_packet(&self) -> bool {
        matches!(self.packing, Packing::Packets { .. })
    }

    /// True when slots begin at given times.
    pub const fn is_by_clock(&self) -> bool {
        matches!(self.packing, Packing::Clock(_))
    }

    /// Returns true if the end of each slot is to be reported to its builder.
    pub const fn ends_slots(&self) -> bool {
        matches!(self.packing, Packing::Credits { .. } | Packing::Rounds { .. })
    }

    /// The time at which [`next`](Self::next) may have a slot though nothing else happens.
    pub fn deadline(&self, now: Time) -> Option<Time> {
        match &self.packing {
            Packing::Clock(slots) => {
                let waits = |builder: usize| self.queues.get(builder).is_some_and(|queue| !queue.is_empty());
                slots.next_for(now, waits)
            }
            Packing::Packets { .. } | Packing::Buckets { .. } => None,
            Packing::Rounds { open, .. } => open.front().map(|round| round.credit.at + REST),
            Packing::Credits { slip, credits, .. } => {
                let since = self.since.filter(|_| self.alive.contains(&true))?;
                Some(credits[self.turn].map_or(since + *slip, |credit| credit.at + REST))
            }
        }
    }
}

impl Credit {
    /// True while an empty bucket is held back.
    fn rests(&self, now: Time) -> bool {
        self.calm && now < self.at + REST
    }
}

/// Bytes of messages in a bucket: the end of its slot takes its place in it.
fn in_bucket(bucket: ByteCount) -> u64 {
    bucket.0.saturating_sub(HEAD_BYTES as u64).max(1)
}

/// Takes the front of a queue, up to `most` bytes, of one message only if `single`.
fn fill<T: Clone>(queue: &mut VecDeque<Queued<T>>, most: u64, single: bool, parts: &mut Vec<ShapedPart<T>>) {
    let mut room = most;
    while room > 0
        && let Some(front) = queue.front_mut()
    {
        let bytes = (front.bytes - front.taken).min(room);
        let offset = front.taken;
        front.taken = offset + bytes;
        room -= bytes;
        let last = front.taken == front.bytes;
        parts.push(ShapedPart { item: front.item.clone(), offset, bytes, last });
        if last {
            queue.pop_front();
        }
        if single {
            break;
        }
    }
}
