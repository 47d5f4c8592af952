//! The sending side: queues by builder, and the choice of the next bytes.

use evb_core::{Span, Time};
use evb_protocol::{Config, Shaping, Step, wire::HEAD_BYTES};
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
    /// Time since when it has waited for a credit, in its turn.
    since: Option<Time>,
    packing: Packing,
}

/// A message, and its bytes that were not taken yet.
struct Queued<T> {
    item: T,
    bytes: u64,
    taken: u64,
}

/// The rule for the next bytes.
enum Packing {
    /// Packets of at most so many bytes to those builders in turn for which something waits.
    Packets { most: u64 },
    /// A bucket for every builder in turn, whenever the driver asks for it.
    Buckets { bytes: u64 },
    /// A bucket for every builder in turn, when that builder has given a credit.
    Credits { bytes: u64, slip: Span, credits: Vec<Option<Credit>> },
}

/// A builder's permission for one bucket.
#[derive(Clone, Copy)]
struct Credit {
    /// The time at which it came.
    at: Time,
    /// The builder has had only empty buckets lately.
    calm: bool,
}

/// Bytes of a message that go in one slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part<T> {
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
    pub parts: Vec<Part<T>>,
}

impl<T: Clone> Shaper<T> {
    /// The shaper of the readout unit with this index; none when a configuration sends without slots.
    pub fn new(config: &Config, unit: u16) -> Option<Self> {
        let builders = usize::from(config.builder_units);
        let packing = match config.shaping {
            Shaping::None | Shaping::Grouping { .. } => return None,
            Shaping::RateDivision { packet } => Packing::Packets { most: packet.0 },
            Shaping::BarrelShifter { bucket, step: Step::Link, .. } => Packing::Buckets { bytes: bucket.0 },
            Shaping::BarrelShifter { bucket, step: Step::Credit, slip, .. } => {
                // The end of a slot takes its place in the bucket.
                let bytes = bucket.0.saturating_sub(HEAD_BYTES as u64).max(1);
                Packing::Credits { bytes, slip, credits: vec![None; builders] }
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
            since: None,
            packing,
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

    /// Drops what waits for a builder that is gone, and leaves it out from now on.
    pub fn lose(&mut self, builder: usize) {
        let Some(alive) = self.alive.get_mut(builder) else { return };
        *alive = false;
        self.queues[builder].clear();
        if let Packing::Credits { credits, .. } = &mut self.packing {
            credits[builder] = None;
        }
    }

    /// The next slot; none while there is nothing to send, or no credit.
    pub fn next(&mut self, now: Time) -> Option<Slot<T>> {
        if !self.alive.contains(&true) {
            return None;
        }
        while !self.alive[self.turn] {
            self.pass(now);
        }
        let most = match self.packing {
            Packing::Packets { most } => {
                self.turn = self.next_waiting()?;
                most
            }
            Packing::Buckets { bytes } => bytes,
            Packing::Credits { bytes, .. } => {
                self.await_credit(now)?;
                bytes
            }
        };
        let single = matches!(self.packing, Packing::Packets { .. });
        let slot = Slot { builder: self.turn, parts: fill(&mut self.queues[self.turn], most, single) };
        self.pass(now);
        Some(slot)
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
                Some(credit) if credit.calm && now < credit.at + REST && self.queues.iter().all(VecDeque::is_empty) => {
                    return None;
                }
                Some(_) => {
                    credits[self.turn] = None;
                    return Some(());
                }
                None if !self.alive[self.turn] => self.pass(now),
                None if now >= *self.since.get_or_insert(now) + *slip => self.pass(now),
                None => return None,
            }
        }
        None
    }

    /// The next builder has its turn.
    fn pass(&mut self, now: Time) {
        self.turn = (self.turn + 1) % self.queues.len();
        self.since = Some(now);
    }

    /// True when a slot is one packet, and no bucket.
    pub const fn is_by_packet(&self) -> bool {
        matches!(self.packing, Packing::Packets { .. })
    }

    /// True when the end of each slot is to be told to its builder.
    pub const fn ends_slots(&self) -> bool {
        matches!(self.packing, Packing::Credits { .. })
    }

    /// The time at which [`next`](Self::next) may have a slot though nothing else happens.
    pub fn deadline(&self) -> Option<Time> {
        let Packing::Credits { slip, credits, .. } = &self.packing else { return None };
        let waits = self.alive.contains(&true);
        let since = self.since?;
        waits.then(|| credits[self.turn].map_or(since + *slip, |credit| credit.at + REST))
    }
}

/// Takes the front of a queue, up to so many bytes, of one message only if `single`.
fn fill<T: Clone>(queue: &mut VecDeque<Queued<T>>, most: u64, single: bool) -> Vec<Part<T>> {
    let (mut parts, mut room) = (Vec::new(), most);
    while room > 0
        && let Some(front) = queue.front_mut()
    {
        let bytes = (front.bytes - front.taken).min(room);
        let offset = front.taken;
        (front.taken, room) = (offset + bytes, room - bytes);
        let last = front.taken == front.bytes;
        parts.push(Part { item: front.item.clone(), offset, bytes, last });
        if last {
            queue.pop_front();
        }
        if single {
            break;
        }
    }
    parts
}
