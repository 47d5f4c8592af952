//! The VELO message engine as a model: where a store goes, what travels, how it arrives, and what a frame costs.
//!
//! "VELO 2008" is H. Litz et al., "VELO: A Novel Communication Engine for Ultra-low Latency Message Transfers". The engine
//! keeps no state for a thread that sends: the address of a store says all about a message but its bytes. A
//! [`Requester`] makes a [`Packet`] of a store, a [`Completer`] puts it into the mailbox of a thread, and an [`Engine`]
//! joins some of both. The bits of a [`Header`] are those of software and hardware alike.
//!
//! The crate is `no_std`: nothing below can name a clock, a socket, a thread or a file.
#![no_std]

mod address;
mod completer;
mod engine;
mod framing;
mod packet;
mod requester;

pub use address::{AddressError, AddressMap, LINE_BITS, PAGE_BITS, Target};
pub use completer::{Answer, Completer, Entry, Fault, Faults};
pub use engine::{Engine, EngineOptions, StoreError};
pub use framing::{COMMAND_BYTES, LINE_BYTES, messages_for_each_cut, overhead};
pub use packet::{ENDPOINT_BITS, Endpoint, Header, HeaderError, Packet};
pub use requester::Requester;
