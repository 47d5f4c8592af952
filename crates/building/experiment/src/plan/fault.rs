//! Faults that are injected on purpose.

use evb_core::{Bandwidth, NodeId, SourceId, Span};
use serde::{Deserialize, Serialize};

/// A fault that is injected on purpose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaultSpec {
    /// The node it happens to.
    pub node: NodeId,
    /// The source whose fragments it happens to; `None` if it happens to all that the node sends.
    #[serde(default)]
    pub source: Option<SourceId>,
    /// The fault itself.
    pub action: FaultAction,
}

/// The kind of a fault on purpose, with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum FaultAction {
    /// The node stops dead at this time after the start.
    Kill {
        /// Time after the start of the run.
        at: Span,
    },
    /// Every n-th fragment of this readout unit has one bit flipped after its checksum was made.
    Corrupt {
        /// One in this many.
        one_in: u64,
    },
    /// Every n-th fragment of this readout unit is sent twice.
    Duplicate {
        /// One in this many.
        one_in: u64,
    },
    /// Every n-th fragment of this readout unit is not sent.
    Lose {
        /// One in this many.
        one_in: u64,
    },
    /// Every n-th fragment of this readout unit is sent late by `by`.
    Delay {
        /// One in this many.
        one_in: u64,
        /// Delay of the fragment.
        by: Span,
    },
    /// Every n-th fragment of this readout unit is made larger than allowed.
    Oversize {
        /// One in this many.
        one_in: u64,
    },
    /// Events of this builder unit are stored through a disk of this rate, one after another.
    SlowDisk {
        /// The rate.
        rate: Bandwidth,
    },
}
