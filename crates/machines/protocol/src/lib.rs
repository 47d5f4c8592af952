//! The event-building protocol: event manager, readout unit and builder unit as [`Machine`](evb_core::Machine)s, and
//! their wire format.
//!
//! The crate is `no_std` and moves descriptors only: a [`Fragment`] carries its payload as an opaque handle of type
//! `B`, which a simulator leaves empty.
//!
//! # Example
//! A driver without a network: it starts the machines of a small event builder, delivers every message at once, and
//! stores every event.
//!
//! ```
//! use evb_core::{EventId, Machine, NodeId, SourceId, Time, checksum};
//! use evb_protocol::{
//!     BuilderCommand, BuilderEvent, BuilderMachine, Config, ManagerMachine, Fragment, FragmentStatus, ManagerCommand, Message,
//!     ReadoutCommand, ReadoutEvent, ReadoutMachine,
//! };
//! use std::collections::VecDeque;
//!
//! /// Moves the output of a machine into the queue of messages.
//! fn drain(
//!     machine: &mut impl Machine<Message = Message<()>>,
//!     from: NodeId,
//!     queue: &mut VecDeque<(NodeId, NodeId, Message<()>)>,
//! ) {
//!     while let Some(out) = machine.poll_transmit() {
//!         queue.extend(out.to.iter().map(|to| (from, to, out.message.clone())));
//!     }
//! }
//!
//! let now = Time::ZERO;
//! let config = Config { events: Some(3), ..Config::new(1, 1) };
//! let [manager_id, readout_id, builder_id] = [0, 1, 2].map(NodeId);
//! let mut manager = ManagerMachine::<()>::new(config.clone());
//! let mut readout = ReadoutMachine::new(config.clone(), SourceId(0), None);
//! let mut builder = BuilderMachine::new(config, 0);
//! manager.handle_command(now, ManagerCommand::Start);
//! readout.handle_command(now, ReadoutCommand::Start { through: EventId(u64::MAX), last: true });
//! builder.handle_command(now, BuilderCommand::Start);
//!
//! let mut queue = VecDeque::new();
//! loop {
//!     while let Some(ReadoutEvent::Read { event, .. }) = readout.poll_event() {
//!         let fragment = Fragment {
//!             event,
//!             source: SourceId(0),
//!             length: 0,
//!             checksum: checksum(b""),
//!             mark: None,
//!             counter: None,
//!             status: FragmentStatus::Good,
//!             payload: (),
//!         };
//!         readout.handle_command(now, ReadoutCommand::Fragment(fragment));
//!     }
//!     while let Some(event) = builder.poll_event() {
//!         if let BuilderEvent::Built(built) = event {
//!             assert!(built.complete);
//!             builder.handle_command(now, BuilderCommand::Stored(built));
//!         }
//!     }
//!     drain(&mut manager, manager_id, &mut queue);
//!     drain(&mut readout, readout_id, &mut queue);
//!     drain(&mut builder, builder_id, &mut queue);
//!     let Some((from, to, message)) = queue.pop_front() else { break };
//!     match to.0 {
//!         0 => manager.handle_message(now, from, message),
//!         1 => readout.handle_message(now, from, message),
//!         _ => builder.handle_message(now, from, message),
//!     }
//! }
//! assert_eq!(manager.counts().built, 3);
//! ```
#![no_std]

extern crate alloc;

#[macro_use]
mod table;

mod builder_unit;
mod config;
mod event_manager;
mod fault;
mod filter;
mod message;
mod readout_unit;
mod recent;
mod region;
mod shaper;
pub mod wire;

pub use builder_unit::{BuilderCommand, BuilderCounts, BuilderEvent, BuilderMachine, Built, Mismatch};
pub use config::{Assignment, Config, Protocol, RequestOrder, Shaping, ShapingStep, Trigger};
pub use evb_coincidence::{
    ClockOffset, ClockSettings, ClockState, Coincidence, Outcome, OutcomeCounts, Rule, Synchrony,
};
pub use evb_core::FragmentStatus;
pub use event_manager::{ManagerCommand, ManagerCounts, ManagerEvent, ManagerMachine};
pub use fault::{Fault, FaultCounts};
pub use filter::Filter;
pub use message::{Assigned, BlockSize, Completion, Ending, Fragment, Message, Piece, Settled, Sighted, Times};
pub use readout_unit::{Arrival, Identity, ReadoutCommand, ReadoutCounts, ReadoutEvent, ReadoutMachine};
pub use recent::Recent;
pub use region::{FirstPhase, Region};

/// The purpose of a machine's timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// Event manager: an incomplete group of assignments has waited long enough.
    Group,
    /// Readout unit: an unfilled packet has waited long enough.
    Packet,
    /// Readout unit: fragments of a live source that were overtaken do not come any more.
    Overtaken,
    /// Event manager: a source whose place in time is unknown has been waited for long enough.
    Place,
    /// Readout unit: the driver says again whether the front end is silent.
    Silence,
    /// Builder unit: fragments are overdue and are to be asked for.
    Fragments,
}
