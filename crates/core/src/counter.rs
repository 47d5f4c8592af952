//! Event counters of front ends.

use serde::{Deserialize, Serialize};

/// What is known about the first counter of a front end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FirstCounter {
    /// Nothing: counters of different sources are compared by value, which assumes that all count alike.
    #[default]
    Unknown,
    /// The first trigger has this number.
    Known(u64),
    /// The first fragment that comes is that of the first trigger, whatever its number is.
    Any,
}

/// The event counter of a front end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventCounter {
    /// Width in bits, 1 to 64.
    pub bits: u8,
    /// The number of its first trigger.
    pub first: FirstCounter,
}

impl EventCounter {
    /// A counter of which only the width is known.
    pub const fn new(bits: u8) -> Self {
        Self { bits, first: FirstCounter::Unknown }
    }
}
