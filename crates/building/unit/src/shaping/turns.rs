//! The receiving side of a barrel shifter by credits.
//!
//! Back-pressure reaches a source in a wormhole network only, so over a transport a builder asks the readout units in
//! the order of the slots. Each transfer waits for its two neighbours and for no clock. The end of a slot is announced
//! some bytes before it, the lead, which hides the time of a credit without a second bucket under way.

use evb_core::{NodeId, NodeRange, Span, Time};
use evb_protocol::{Config, Shaping, ShapingStep};
use std::collections::VecDeque;

/// The turns of the readout units at one builder, each by a credit for one bucket.
///
/// In slot s, readout unit n sends to builder (n + s) mod L, where L is the number of readout units or of builders,
/// whichever is larger. So a builder hears the readout units in descending order. It sends the next credit when a
/// bucket has come whole, or when one has not come for long. Nothing depends on a common clock: a slow unit delays
/// only those that wait for it.
pub struct Turns {
    units: NodeRange,
    /// Most buckets that are awaited at once.
    credits: usize,
    slip: Span,
    /// The place of the next unit in the order of slots.
    next: u16,
    /// Number of slots of a round.
    round: u16,
    /// Index of this builder.
    builder: u16,
    /// Expected buckets, by readout unit: the time at which each credit was given.
    given: Vec<Option<Time>>,
    gone: Vec<bool>,
    /// Empty buckets since the last full one.
    empty: usize,
    out: VecDeque<(NodeId, bool)>,
}

impl Turns {
    /// The turns at the builder with this index; none when a configuration has no credits.
    pub fn new(config: &Config, builder: u16) -> Option<Self> {
        let Shaping::BarrelShifter { step: ShapingStep::Credit, bucket, lead, slip } = config.shaping else {
            return None;
        };
        let units = config.readout_nodes();
        Some(Self {
            units,
            credits: 1 + (lead.0 / bucket.0.max(1)) as usize,
            slip,
            next: 0,
            round: units.count.max(config.builder_units),
            builder,
            given: vec![None; units.count.into()],
            gone: vec![false; units.count.into()],
            empty: 0,
            out: VecDeque::new(),
        })
    }

    /// Sends the first credits.
    pub fn start(&mut self, now: Time) {
        self.give(now);
    }

    /// Takes note that the bucket of a readout unit has come whole.
    pub fn taken(&mut self, now: Time, from: NodeId, is_empty: bool) {
        let Some(index) = self.index(from) else { return };
        self.given[index] = None;
        self.empty = if is_empty { self.empty.saturating_add(1) } else { 0 };
        self.give(now);
    }

    /// Leaves out a readout unit that is gone.
    pub fn lose(&mut self, now: Time, unit: NodeId) {
        let Some(index) = self.index(unit) else { return };
        self.gone[index] = true;
        self.given[index] = None;
        self.give(now);
    }

    /// Handles the passed deadline: an overdue bucket no longer holds up the others.
    pub fn handle_timeout(&mut self, now: Time) {
        self.give(now);
    }

    /// The next credit to send: to whom, and true if all buckets of the last round were empty.
    pub fn poll(&mut self) -> Option<(NodeId, bool)> {
        self.out.pop_front()
    }

    /// The time at which the oldest bucket that is awaited will have been awaited for long.
    pub fn deadline(&self) -> Option<Time> {
        let awaited = self.given.iter().flatten().map(|&at| at + self.slip);
        awaited.min()
    }

    /// Sends credits in the order of the slots, until enough buckets are awaited.
    fn give(&mut self, now: Time) {
        let calm = self.empty >= self.given.len();
        self.forget_overdue(now);
        for _ in 0..self.round {
            if self.awaited() >= self.credits {
                return;
            }
            let unit = (self.builder + self.round - self.next) % self.round;
            self.next = (self.next + 1) % self.round;
            let Some(given) = self.given.get_mut(usize::from(unit)) else { continue };
            if !self.gone[usize::from(unit)] && given.is_none() {
                *given = Some(now);
                self.out.push_back((NodeId(self.units.first.0 + unit), calm));
            }
        }
    }

    /// Waits no longer for buckets that are overdue. Their readout units may still send them.
    fn forget_overdue(&mut self, now: Time) {
        for given in &mut self.given {
            given.take_if(|at| *at + self.slip <= now);
        }
    }

    /// Number of buckets that are awaited.
    fn awaited(&self) -> usize {
        self.given.iter().flatten().count()
    }

    fn index(&self, unit: NodeId) -> Option<usize> {
        self.units.contains(unit).then(|| usize::from(unit.0 - self.units.first.0))
    }
}
