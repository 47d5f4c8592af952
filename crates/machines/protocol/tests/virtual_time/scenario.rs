//! The scenario of one history: all its parameters.

use crate::{planted::Bug, schedule::Fault as Trouble};
use evb_control::Command;
use evb_core::{EventId, NodeId, Span, Time, stream};
use evb_protocol::{Config, Filter, FirstPhase, Protocol};
use rand_xoshiro::rand_core::Rng;
use std::collections::BTreeSet;

/// Number of triggers of a driven trigger.
pub(crate) const TRIGGERS: u64 = 600;

/// Bytes of every fragment.
pub(crate) const FRAGMENT: u32 = 100;

/// A payload that says of which run, event and source it is; the default is none.
pub(crate) type Tag = Option<(usize, u64, u16)>;

/// Harm to the fragment of one event and source.
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
    /// The first time that it is sent, its event number is changed to one that was not triggered.
    Stray,
}

impl Harm {
    /// True if no good fragment of the source exists.
    pub(crate) const fn spoils(self) -> bool {
        matches!(self, Self::Destroyed | Self::Corrupt)
    }
}

/// Everything that one history depends on.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) config: Config,
    /// The events that are accepted after the first phase.
    pub(crate) filter: Filter,
    /// One fragment in this many is harmed; 0 is none.
    pub(crate) harm_one_in: u64,
    /// The runs: the operator's commands in each, with their times after the command to start.
    pub(crate) runs: Vec<Vec<(Span, Command)>>,
    /// The faults, with their times after the beginning of the first run.
    pub(crate) faults: Vec<(Time, Trouble)>,
    /// Longest delay of a message.
    pub(crate) delay: Span,
    /// Period of driven triggers.
    pub(crate) trigger_period: Span,
    /// A run that still takes triggers is stopped when it has lasted for so long.
    pub(crate) stop_at: Option<Span>,
    /// A mistake at the border of a machine, to see that the checkers find it.
    pub(crate) bug: Option<Bug>,
}

impl Scenario {
    /// The harm to this event's fragment of this source. A pure function, so that a model can use it, too.
    pub(crate) fn harm(&self, event: EventId, source: u16) -> Option<Harm> {
        let draw = stream(self.seed ^ event.0.wrapping_mul(0x9e37_79b9), NodeId(source), 77).next_u64();
        if self.harm_one_in == 0 || !draw.is_multiple_of(self.harm_one_in) {
            return None;
        }
        let kinds = [Harm::Destroyed, Harm::Corrupt, Harm::Lose, Harm::Duplicate, Harm::Late, Harm::Stray];
        Some(kinds[(draw >> 32) as usize % kinds.len()])
    }

    /// The builder of an event, where its number decides.
    pub(crate) fn owner(&self, event: EventId) -> NodeId {
        let builders = self.config.builder_nodes();
        NodeId(builders.first.0 + ((event.0 - 1) % u64::from(builders.count)) as u16)
    }

    /// The sources of the first phase of an event: all without phases. A separate set for each event, if it is a
    /// region.
    pub(crate) fn first_phase(&self, event: EventId) -> BTreeSet<u16> {
        let all = 0..self.config.readout_units;
        match self.config.protocol {
            Protocol::Push | Protocol::Pull => all.collect(),
            Protocol::Phased { first: FirstPhase::Units(first), .. } => (0..first).collect(),
            Protocol::Phased { first, .. } => {
                let region = first.of(event, all.end);
                all.filter(|&source| region.contains(source.into())).collect()
            }
        }
    }

    /// True if a decision follows the first phase.
    pub(crate) const fn has_rest(&self) -> bool {
        matches!(self.config.protocol, Protocol::Phased { rest: true, .. })
    }

    /// The sources of an event that is stored.
    pub(crate) fn asked(&self, event: EventId) -> BTreeSet<u16> {
        let is_partial = matches!(self.config.protocol, Protocol::Phased { rest: false, .. });
        if is_partial { self.first_phase(event) } else { (0..self.config.readout_units).collect() }
    }

    /// True if the source has no good fragment of this event.
    pub(crate) fn spoils(&self, event: EventId, source: u16) -> bool {
        self.harm(event, source).is_some_and(Harm::spoils)
    }
}
