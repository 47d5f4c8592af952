//! Traffic shaping: the order and packing of fragments, and the time slots in which they went.

use serde::{Deserialize, Serialize};

/// The order and packing of the fragments that readout units sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shaping {
    /// The type in the experiment file.
    #[serde(rename = "type")]
    pub kind: String,
    /// The rule by which readout units kept step; `None` without the slots of a barrel shifter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Bytes of a bucket or packet.
    pub bytes: u64,
    /// Bytes on their way when the next bucket was asked for.
    pub lead_bytes: u64,
    /// Time slots of all readout units together.
    pub slots: Slots,
    /// Longest time in microseconds by which the clock of a readout unit could differ from that of the event manager: as
    /// measured, and `shaping.skew` of a simulation beside it. `None` if units do not keep step by clocks, and have no skew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skew_us: Option<f64>,
}

/// Time slots in which readout units sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slots {
    /// Slots that were used, empty or not.
    pub used: u64,
    /// Used slots in which nothing was sent.
    pub empty: u64,
    /// Turns that were passed over, because a unit was too slow.
    pub passed: u64,
}
