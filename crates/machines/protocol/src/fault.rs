//! Faults: everything that can be wrong with a fragment or an event, counted by kind.

use core::fmt;
use serde::Serialize;

/// One kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// A fragment that does not come: its readout unit has said so, or is dead.
    Missing,
    /// A fragment that had not arrived when the time limit of its event was over.
    Cut,
    /// A fragment that arrived after its event had ended without it.
    Late,
    /// A second fragment of the same event and source.
    Duplicate,
    /// A fragment that claims the event of another fragment of its source, with a different content.
    Disputed,
    /// A fragment whose checksum or inner structure is wrong.
    Corrupted,
    /// A copy of a fragment whose payload changed on the way. The fragment was asked for again, and another copy
    /// arrived intact.
    Damaged,
    /// A fragment above the largest size that is accepted.
    Oversized,
    /// A source skipped event numbers, or gave a fragment a number that fits neither those before nor those after it.
    OutOfSequence,
    /// A source started counting again, or its counter leapt.
    Resynchronised,
    /// A fragment of a source that could not tell which events its fragments belong to: by its counter, or by its clock.
    OutOfStep,
    /// A fragment from before the first event that all sources had.
    Early,
    /// A fragment whose event was not known when the run ended.
    Unplaced,
    /// A fragment at whose time too few other sources had one.
    Alone,
    /// A fragment that could belong to several events, or whose event could have another one of its source.
    Ambiguous,
    /// A fragment at whose time there was no trigger.
    OutOfWindow,
    /// A fragment whose mark is not that of the other fragments of its event.
    Mismatch,
    /// A wrap of a front end's event counter. This is normal and is only counted.
    Wrapped,
    /// A fragment that was not requested: of that event or from that source.
    Unexpected,
}

impl Fault {
    /// All kinds, in the order in which they are shown.
    pub const ALL: [Self; 19] = [
        Self::Missing,
        Self::Cut,
        Self::Late,
        Self::Duplicate,
        Self::Disputed,
        Self::Corrupted,
        Self::Damaged,
        Self::Oversized,
        Self::OutOfSequence,
        Self::Resynchronised,
        Self::OutOfStep,
        Self::Early,
        Self::Unplaced,
        Self::Alone,
        Self::Ambiguous,
        Self::OutOfWindow,
        Self::Mismatch,
        Self::Wrapped,
        Self::Unexpected,
    ];

    /// The name in records and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Cut => "cut",
            Self::Late => "late",
            Self::Duplicate => "duplicate",
            Self::Disputed => "disputed",
            Self::Corrupted => "corrupted",
            Self::Damaged => "damaged",
            Self::Oversized => "oversized",
            Self::OutOfSequence => "out_of_sequence",
            Self::Resynchronised => "resynchronised",
            Self::OutOfStep => "out_of_step",
            Self::Early => "early",
            Self::Unplaced => "unplaced",
            Self::Alone => "alone",
            Self::Ambiguous => "ambiguous",
            Self::OutOfWindow => "out_of_window",
            Self::Mismatch => "mismatch",
            Self::Wrapped => "wrapped",
            Self::Unexpected => "unexpected",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Number of faults of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts([u64; Fault::ALL.len()]);

impl FaultCounts {
    /// Counts one fault.
    pub fn count(&mut self, fault: Fault) {
        self.add(fault, 1);
    }

    /// Counts `n` faults of one kind.
    pub fn add(&mut self, fault: Fault, n: u64) {
        self.0[fault as usize] += n;
    }

    /// Number of faults of this kind.
    pub const fn get(&self, fault: Fault) -> u64 {
        self.0[fault as usize]
    }

    /// Adds the counts of another machine.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    /// What was counted after `before`, an earlier state of the same counts.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut since = *self;
        for (mine, earlier) in since.0.iter_mut().zip(before.0) {
            *mine -= earlier;
        }
        since
    }

    /// The kinds that were seen at least once.
    pub fn seen(&self) -> impl Iterator<Item = (Fault, u64)> + '_ {
        Fault::ALL.into_iter().map(|fault| (fault, self.get(fault))).filter(|&(_, count)| count > 0)
    }
}
