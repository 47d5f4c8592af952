//! Traffic that is not event building under a manager: fixed assignment, random, pairs, rotation, streams and gathering,
//! as [`Machine`](evb_core::Machine)s. Payload bytes and their number are the driver's business.
#![no_std]

extern crate alloc;

mod config;
mod gather;
mod machine;
mod sender;

pub use config::{Pattern, Start, TrafficConfig};
pub use machine::{Traffic, TrafficCommand, TrafficEvent, TrafficMessage};
