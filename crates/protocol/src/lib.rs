//! The event-building protocol: event manager, readout unit and builder unit as [`Machine`](evb_core::Machine)s, and
//! their wire format.
//!
//! The crate is `no_std` and moves descriptors only: a [`Fragment`] carries its payload as an opaque handle of type
//! `B`, which a simulator leaves empty.
#![no_std]

extern crate alloc;

mod config;
mod fault;
mod message;

pub use config::{Assignment, Config, Protocol, Shaping, Trigger};
pub use fault::{Fault, FaultCounts};
pub use message::{Assigned, Completion, Fragment, FragmentStatus, Message};
