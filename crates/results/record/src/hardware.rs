//! Measurements of the hardware in `hw`, by test benches over its simulation and by synthesis tools.

use crate::RecordKind;
use serde::{Deserialize, Serialize};

/// One number, and the tool that measured it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HardwareMeasurement {
    /// Always [`RecordKind::Hardware`].
    pub kind: RecordKind,
    /// The bench, or `synthesis`, or `timing`.
    pub bench: String,
    /// Name of the quantity, unique in the bench.
    pub what: String,
    /// Unit of the value, such as `cycles`; empty for a plain number.
    pub unit: String,
    /// The number.
    pub value: f64,
    /// The program that simulated or synthesised the hardware, with its version.
    pub tool: String,
}
