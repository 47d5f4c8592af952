//! The common step of a barrel shifter by barrier.
//!
//! Rounds are counted at the builders, because a sender cannot know when a transport has delivered. The event manager,
//! which knows who is dead, begins the next round. Rounds have numbers, so a late report ends no other round.

use evb_core::{NodeId, NodeRange, Span, Time};
use evb_protocol::{Config, Shaping, ShapingStep};
use std::collections::VecDeque;

/// Index of the builder to which a readout unit sends in a round; none has it if it is not below the number of
/// builders.
pub(super) const fn builder_of(unit: u16, round: u64, slots: u16) -> usize {
    ((unit as u64 + round) % slots as u64) as usize
}

/// The rounds of a barrel shifter: a round ends when the bucket of every readout unit has come.
///
/// The event manager keeps them. In a round, readout unit n sends to builder (n + round) mod L, where L is the number
/// of readout units or of builders, whichever is larger. Each builder reports its bucket, and the last report begins
/// the next round. Pairs with a dead unit are not waited for, others at most as long as units wait for a slow one.
pub struct Rounds {
    units: NodeRange,
    builders: NodeRange,
    slip: Span,
    slots: u16,
    /// Number of the present round, from 1; 0 before the start.
    number: u64,
    /// Time at which it began.
    since: Time,
    gone_units: Vec<bool>,
    gone_builders: Vec<bool>,
    /// Builders that await the bucket of the present round.
    awaited: Vec<bool>,
    /// A bucket of the present round had data, or did not come.
    busy: bool,
    /// Rounds since the last one with data.
    calm_rounds: u16,
    out: VecDeque<(u64, bool)>,
}

impl Rounds {
    /// The rounds of a configuration; none when it keeps step otherwise.
    pub fn new(config: &Config) -> Option<Self> {
        let Shaping::BarrelShifter { step: ShapingStep::Barrier, slip, .. } = config.shaping else { return None };
        let (units, builders) = (config.readout_nodes(), config.builder_nodes());
        Some(Self {
            units,
            builders,
            slip,
            slots: units.count.max(builders.count),
            number: 0,
            since: Time::ZERO,
            gone_units: vec![false; units.count.into()],
            gone_builders: vec![false; builders.count.into()],
            awaited: vec![false; builders.count.into()],
            busy: false,
            calm_rounds: 0,
            out: VecDeque::new(),
        })
    }

    /// Begins the first round.
    pub fn start(&mut self, now: Time) {
        self.begin(now);
    }

    /// Takes a builder's report that its bucket of a round has come.
    pub fn taken(&mut self, now: Time, from: NodeId, round: u64, empty: bool) {
        if round != self.number || !self.builders.contains(from) {
            return;
        }
        self.busy |= !empty;
        self.awaited[usize::from(from.0 - self.builders.first.0)] = false;
        self.advance(now);
    }

    /// Leaves out a node that is gone.
    pub fn lose(&mut self, now: Time, node: NodeId) {
        if self.units.contains(node) {
            self.gone_units[usize::from(node.0 - self.units.first.0)] = true;
        } else if self.builders.contains(node) {
            self.gone_builders[usize::from(node.0 - self.builders.first.0)] = true;
        }
        for builder in 0..self.builders.count {
            self.awaited[usize::from(builder)] &= self.has_pair(builder);
        }
        self.advance(now);
    }

    /// Handles the passed deadline: an overdue bucket no longer holds up the others.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.deadline().is_some_and(|deadline| deadline <= now) {
            self.busy = true;
            self.awaited = vec![false; self.awaited.len()];
            self.advance(now);
        }
    }

    /// The next round to announce: its number, and true if there have been only empty buckets for long.
    pub fn poll(&mut self) -> Option<(u64, bool)> {
        self.out.pop_front()
    }

    /// The time at which the present round will have lasted too long.
    pub fn deadline(&self) -> Option<Time> {
        self.awaited.contains(&true).then(|| self.since + self.slip)
    }

    /// Begins the next round when nothing is awaited any more.
    fn advance(&mut self, now: Time) {
        if self.number > 0 && !self.awaited.contains(&true) {
            self.calm_rounds = if self.busy { 0 } else { self.calm_rounds.saturating_add(1) };
            self.begin(now);
        }
    }

    /// Begins the next round in which a unit sends, if any unit is left.
    fn begin(&mut self, now: Time) {
        for _ in 0..self.slots {
            self.number += 1;
            self.awaited = (0..self.builders.count).map(|builder| self.has_pair(builder)).collect();
            if self.awaited.contains(&true) {
                self.since = now;
                self.busy = false;
                self.out.push_back((self.number, self.calm_rounds >= self.slots));
                return;
            }
        }
    }

    /// True if a readout unit sends to this builder in the present round, and both are alive.
    fn has_pair(&self, builder: u16) -> bool {
        let slots = u64::from(self.slots);
        let unit = (u64::from(builder) + slots - self.number % slots) % slots;
        !self.gone_builders[usize::from(builder)] && self.gone_units.get(unit as usize) == Some(&false)
    }
}
