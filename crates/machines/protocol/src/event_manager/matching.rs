//! The matching of fragments by time: the times of all sources go to the matcher, and its outcomes go back.

use crate::{Config, Message, Settled, Times};
use alloc::vec::Vec;
use evb_coincidence::{ClockState, Matcher, Outcome, Sink};
use evb_core::{EventId, NodeId, Time, Transmit};

/// Most outcomes in one message to a readout unit.
const MOST_OUTCOMES: usize = 512;

/// Outcomes that were not sent, by source.
struct Outcomes(Vec<Vec<Settled>>);

impl Sink for Outcomes {
    fn outcome(&mut self, source: usize, serial: u64, outcome: Outcome) {
        self.0[source].push(Settled { serial, outcome });
    }
}

/// The matching of all sources.
pub(super) struct Matching {
    matcher: Matcher,
    outcomes: Outcomes,
    /// The last settled event that each readout unit knows of.
    through: Vec<EventId>,
    /// Number of sources with a clock.
    clocks: usize,
    is_dirty: bool,
}

impl Matching {
    /// The matching of an event builder, if it matches by time.
    pub(super) fn new(config: &Config) -> Option<Self> {
        let settings = config.coincidence.as_ref()?;
        let units = usize::from(config.readout_units).max(settings.sources.len());
        Some(Self {
            matcher: Matcher::new(settings),
            outcomes: Outcomes((0..units).map(|_| Vec::new()).collect()),
            through: (0..units).map(|_| EventId(0)).collect(),
            clocks: settings.sources.len(),
            is_dirty: true,
        })
    }

    /// Takes the times of a source.
    pub(super) fn take(&mut self, unit: usize, times: &Times) {
        self.matcher.push(unit, times.first, &times.ticks);
        self.matcher.set_full(unit, times.full);
        if let Some(frontier) = times.frontier {
            self.matcher.frontier(unit, frontier);
        }
        if times.last {
            self.matcher.end(unit);
        }
        self.is_dirty = true;
    }

    /// Takes note that a readout unit is gone.
    pub(super) fn lose(&mut self, unit: usize) {
        self.matcher.end(unit);
        self.is_dirty = true;
    }

    /// The time at which more can be settled although nothing has come.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.matcher.deadline()
    }

    /// Settles what can be settled, and sends the outcomes. Of events through which all is settled, a unit has no
    /// fragments but those that it knows of.
    pub(super) fn advance<B>(&mut self, now: Time, first: NodeId, mut send: impl FnMut(Transmit<Message<B>>)) {
        let is_due = self.deadline().is_some_and(|at| at <= now);
        if !core::mem::take(&mut self.is_dirty) && !is_due {
            return;
        }
        self.matcher.advance(now, &mut self.outcomes);
        let settled = self.matcher.through();
        for (unit, (outcomes, through)) in self.outcomes.0.iter_mut().zip(&mut self.through).enumerate() {
            let to = NodeId(first.0 + unit as u16).into();
            let mut rest = &outcomes[..];
            while !rest.is_empty() || *through < settled {
                let (part, behind) = rest.split_at(rest.len().min(MOST_OUTCOMES));
                rest = behind;
                *through = if rest.is_empty() { settled } else { *through };
                send(Transmit { to, message: Message::Matched { through: *through, outcomes: part.into() } });
            }
            outcomes.clear();
        }
    }

    /// The state of the clock of a readout unit.
    pub(super) fn clock(&self, unit: usize) -> Option<ClockState> {
        (unit < self.clocks).then(|| self.matcher.clock(unit))
    }
}
