//! How full the units of a run were.

use serde::{Deserialize, Serialize};

/// How full the units were: means over samples of their reports, ten a second during a run, and a thousand a second of a simulation
/// with processors. Which unit waits for which
/// shows in them. With blocks, an event is a block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Occupancy {
    /// Number of samples.
    pub looks: u64,
    /// Part of the time in which the processors of run control's machine worked, for any program, or in a simulation those of all
    /// computers; `None` if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_busy: Option<f64>,
    /// Each readout unit.
    pub readouts: Vec<ReadoutOccupancy>,
    /// Each builder unit.
    pub builders: Vec<BuilderOccupancy>,
}

/// How full a readout unit was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReadoutOccupancy {
    /// Part of its buffer that was filled, by events or by bytes, whichever is more.
    pub filled: f64,
    /// Events under construction in all builders that waited for its fragment.
    pub waited_for: f64,
}

/// How full a builder unit was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BuilderOccupancy {
    /// Events under construction.
    pub building: f64,
    /// Built events that waited for filter units or for the storage.
    pub storing: f64,
}
