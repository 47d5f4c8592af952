//! What was measured of hardware that is described in `hw`: by benches over its simulation, and by tools that make circuits of it.

use crate::Kind;
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// One number, and what it was measured with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HardwareMeasurement {
    /// Always [`Kind::Hardware`].
    pub kind: Kind,
    /// The bench, or `synthesis`, or `timing`.
    pub bench: String,
    /// What was measured, unique in the bench.
    pub what: String,
    /// Unit of the value, such as `cycles`; empty for a plain number.
    pub unit: String,
    /// The number.
    pub value: f64,
    /// The program that simulated the hardware, or made a circuit of it, with its version.
    pub tool: String,
}
