//! The event-building protocol: event manager, readout unit and builder unit as [`Machine`](evb_core::Machine)s, and
//! their wire format.
//!
//! The crate is `no_std` and moves descriptors only: a [`Fragment`] carries its payload as an opaque handle of type
//! `B`, which a simulator leaves empty.
#![no_std]

extern crate alloc;

mod builder_unit;
mod config;
mod event_manager;
mod fault;
mod filter;
mod message;
mod readout_unit;
mod recent;
mod shaper;
pub mod wire;

pub use builder_unit::{BuilderCommand, BuilderCounts, BuilderEvent, BuilderUnit, Built, Mismatch};
pub use config::{Assignment, Config, Protocol, Shaping, Trigger};
pub use event_manager::{EventManager, ManagerCommand, ManagerCounts, ManagerEvent};
pub use fault::{Fault, FaultCounts};
pub use filter::Filter;
pub use message::{Assigned, Completion, Ending, Fragment, FragmentStatus, Message, Sighted};
pub use readout_unit::{Arrival, ReadoutCommand, ReadoutCounts, ReadoutEvent, ReadoutUnit};
pub use recent::Recent;

/// The purpose of a machine's timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// Event manager: an incomplete group of assignments has waited long enough.
    Group,
    /// Readout unit: an unfilled packet has waited long enough.
    Packet,
    /// Builder unit: fragments are overdue and are to be asked for.
    Fragments,
}
