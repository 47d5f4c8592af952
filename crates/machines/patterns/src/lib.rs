//! Traffic without an event manager: fixed assignment, random, pairs, rotation, streams, gathering, and the
//! communication benchmarks of ATLAS DAQ note 77, as [`Machine`](evb_core::Machine)s. The driver makes and counts the
//! payload bytes.
#![no_std]

extern crate alloc;

mod answer;
mod config;
mod cycles;
mod each;
mod exchange;
mod farm;
mod gather;
mod machine;
mod message;
mod pinger;
mod role;
mod sender;
mod spread;

pub use config::{Pattern, Start, TrafficConfig};
pub use machine::Traffic;
pub use message::{TrafficCommand, TrafficEvent, TrafficMessage};
