//! The arithmetic of the VELO message engine: where a store goes, what its frame costs, how often a message is cut.
//!
//! "VELO 2008" is H. Litz et al., "VELO: A Novel Communication Engine for Ultra-low Latency Message Transfers". The engine
//! keeps no state for a thread: the address of a store says all about a message but its bytes.
//!
//! The crate is `no_std`: nothing below can name a clock, a socket, a thread or a file.
#![no_std]

mod address;
mod framing;

pub use address::{AddressError, AddressMap, LINE_BITS, PAGE_BITS, Target};
pub use framing::{COMMAND_BYTES, LINE_BYTES, messages_for_each_cut, overhead};
