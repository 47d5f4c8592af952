//! What an experiment says about clocks and coincidences.

use crate::{search::SEARCH_BYTES, source::Hit};
use alloc::vec::Vec;
use evb_core::{SourceId, Span};
use serde::{Deserialize, Serialize};

/// The matching of fragments by time: the rule, and the clocks of all sources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coincidence {
    /// What an event is.
    pub rule: Rule,
    /// The clock of each source, by the index of its readout unit.
    pub sources: Vec<ClockSettings>,
    /// Longest time for which events wait for a source that was never heard, or whose place in time is not known.
    pub patience: Span,
}

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Every hit of one source is an event. Hits of the others belong to it that are at most `window` earlier or later.
    Trigger {
        /// The trigger source.
        source: u16,
        /// Half the width of the window.
        window: Span,
    },
    /// Hits of enough sources within `window` are an event. The earliest hit opens the window.
    Several {
        /// Fewest sources with a hit, at least 1.
        sources: u16,
        /// The full width of the window.
        window: Span,
    },
}

impl Coincidence {
    /// The largest memory of a [`Matcher`](crate::Matcher) in bytes, if each source has at most this many hits without an
    /// outcome.
    pub const fn memory_bytes(&self, buffered: u64) -> u64 {
        // Queues grow to powers of two. A hit waits in one of them, and its outcome may wait beside it.
        let hits = self.sources.len() as u64 * buffered.next_power_of_two();
        SEARCH_BYTES + hits * 2 * size_of::<Hit>() as u64
    }
}

impl Rule {
    /// The trigger source, if the rule has one.
    pub const fn trigger(self) -> Option<SourceId> {
        match self {
            Self::Trigger { source, .. } => Some(SourceId(source)),
            Self::Several { .. } => None,
        }
    }

    /// The width of the window in picoseconds, on one side of a trigger or from the first hit.
    pub(crate) const fn window(self) -> i64 {
        let (Self::Trigger { window, .. } | Self::Several { window, .. }) = self;
        picoseconds(window)
    }
}

/// The clock of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockSettings {
    /// Length of a tick in femtoseconds, at least 1. A tick of 8 ns has 8,000,000.
    pub tick_fs: u64,
    /// Bits of a clock value as the front end sends it, 1 to 64. The clock wraps behind its last value.
    pub bits: u8,
    /// The place of the clock in the common time.
    pub offset: ClockOffset,
    /// Time by which a hit may arrive behind later hits of its source.
    pub sort_depth: Span,
    /// Time by which the delivery of a hit may be slower than the fastest: as long after the last hit, a source of which
    /// nothing is under way counts as silent.
    pub latency: Span,
    /// Events wait for the hits of this source. Without it, those hits count that are there when the others are.
    pub needed: bool,
}

impl Default for ClockSettings {
    /// A clock of 64 bits with ticks of 1 ns, whose offset is to be found.
    fn default() -> Self {
        Self {
            tick_fs: 1_000_000,
            bits: 64,
            offset: ClockOffset::Find,
            sort_depth: Span::ZERO,
            latency: Span::ZERO,
            needed: true,
        }
    }
}

/// The place of a clock in the common time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockOffset {
    /// The sum of both is added to the clock. Clocks with known offsets run at one rate: their drift is not followed.
    Known {
        /// Whole seconds.
        seconds: i64,
        /// Picoseconds beside them, of either sign.
        picoseconds: i64,
    },
    /// The offset is found by the intervals between hits, and the drift is followed. The reference has offset 0.
    Find,
}

impl ClockOffset {
    /// The offset in picoseconds; 0 where it is to be found.
    pub(crate) fn picoseconds(self) -> i128 {
        match self {
            Self::Known { seconds, picoseconds } => i128::from(seconds) * 1_000_000_000_000 + i128::from(picoseconds),
            Self::Find => 0,
        }
    }
}

/// A length of time in signed picoseconds.
pub(crate) const fn picoseconds(span: Span) -> i64 {
    if span.0 > i64::MAX as u64 { i64::MAX } else { span.0 as i64 }
}
