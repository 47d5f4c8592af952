//! The VELO message engine as a model: addresses, packets, mailboxes, and the cost of a frame.
//!
//! "VELO 2008" is H. Litz et al., "VELO: A Novel Communication Engine for Ultra-low Latency Message Transfers". The engine
//! keeps no state for a sending thread: the address of a store has everything about a message but its bytes. A
//! [`Requester`] makes a [`Packet`] of a store, a [`Completer`] puts it into the mailbox of a thread, whose [`Recombiner`]
//! makes whole messages of packets, and an [`Engine`] joins several of all three.
//!
//! The layouts hold for software and hardware alike: package and test vectors of the hardware come from this crate.
//!
//! | module | part of the hardware |
//! |---|---|
//! | `address` | node, thread, length and offset in the address of a store |
//! | [`bus`] | a store as the device gets it: command and data words, and the window of the storing thread |
//! | [`lanes`] | bytes in words |
//! | `packet` | packets: header and data words |
//! | `requester` | from a store to a packet |
//! | [`mailbox`] | rings and slots in the memory of the host, head and tail |
//! | [`registers`] | addresses and words of the register file |
//! | `completer` | from a packet to a slot |
//! | `recombiner` | nothing: software that makes messages of slots |
//! | `engine` | nothing: some nodes and a network, to test with |
//! | `framing` | cost of a transaction beside its bytes |
//!
//! The crate is `no_std`: it has no clock, socket, thread or file.
#![no_std]

mod address;
pub mod bus;
mod completer;
mod engine;
mod framing;
pub mod lanes;
pub mod mailbox;
mod packet;
mod recombiner;
pub mod registers;
mod requester;

pub use address::{AddressError, AddressMap, LINE_BITS, PAGE_BITS, Target};
pub use completer::{Answer, Completer, Fault, Faults};
pub use engine::{Engine, EngineOptions, StoreError};
pub use framing::{COMMAND_BYTES, LINE_BYTES, messages_for_each_cut, overhead};
pub use packet::{
    DATA_SHIFT, ENDPOINT_BITS, Endpoint, FIXED, FIXED_SHIFT, Header, HeaderError, Packet, PacketError, SOURCE_SHIFT,
    TARGET_SHIFT,
};
pub use recombiner::{Entry, Recombiner};
pub use requester::Requester;
