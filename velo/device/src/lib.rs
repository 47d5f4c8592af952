//! VELO as a device that any program can open: mailboxes in shared memory, and large messages beside them.
//!
//! A [`Device`] owns one segment, a file without a name that other processes map. It has a mailbox with the headers of
//! [`evb_velo`], written last and never 0, and the cache lines of messages. Everything else belongs to the lane around VELO:
//! the envelope, the place of the line beside it, blocks for messages that are longer than a line, and notes about messages
//! that the receiver fetches from the memory of the sender.
//!
//! | module | part |
//! |---|---|
//! | `layout` | places in a segment |
//! | `segment` | words and bytes of a mapped segment |
//! | `address` | how a process finds the segment of another |
//! | `directory` | names of devices |
//! | `mailbox` | slots: claimed and published by senders, taken by the owner |
//! | `bell` | sleep of the owner, from which senders wake it |
//! | `outbox` | blocks and notes of messages that do not fit a slot |
//! | `fetch` | memory of other processes |
//! | `device` | all of them together |
//! | `sync` | what mailbox and bell synchronise with |
//! | `rack` | hardware beside the devices: a rack of nodes, each of which a process opens as a card |

#![cfg(target_os = "linux")]

mod address;
mod bell;
mod device;
mod directory;
mod fetch;
mod layout;
mod mailbox;
mod outbox;
mod rack;
mod segment;
mod sync;

pub use address::Address;
pub use device::{Device, DeviceError, Peer};
pub use fetch::{Span, copy_in, copy_out, fetch, store};
pub use layout::{BLOCK_BYTES, GRANTS, LINE_BYTES, NOTE_SPANS, NOTES, SENDERS, SLOTS};
pub use mailbox::{Body, Envelope, Incoming};
pub use outbox::Note;
pub use rack::{CARD_BYTES, Card, CardState, Posted, RACK_NODES, Rack, RackShape};
pub use segment::Grant;
