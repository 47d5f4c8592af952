//! Places in the segment of a rack, in bytes from its start, and those of a node in bytes from the start of its part.

use evb_velo::mailbox;

/// The first word of the segment, with the version of this layout in its last byte. The nonce is where that of a device is.
pub(crate) const MAGIC: u64 = u64::from_be_bytes(*b"evbrack\x01");
/// Words: the number of nodes, the bits `n` and `t` of the addresses, and the pages of a mailbox.
pub(crate) const NODES_AT: usize = 16;
pub(crate) const BITS_AT: [usize; 2] = [24, 32];
pub(crate) const PAGES_AT: usize = 40;
/// Word: a count that goes on as long as the program of the rack does.
pub(crate) const BEAT_AT: usize = 64;

/// Most nodes of a rack.
pub const RACK_NODES: usize = 16;
/// The first node.
pub(crate) const NODES_FROM: usize = 4096;

/// Word of a node: its state, and the process that has opened it.
pub(crate) const STATE_AT: usize = 0;
/// Word of a node: messages taken from its mailbox, counted as the hardware does.
pub(crate) const HEAD_AT: usize = 64;
/// Word of a node: words posted so far.
pub(crate) const PUT_AT: usize = 128;
/// Word of a node: posted words that the bus has taken.
pub(crate) const TAKEN_AT: usize = 192;
/// Posted words that may wait for the bus.
pub(crate) const POSTED: usize = 4096;
/// Posted words of a node: the word, and 1 behind it if it is the last of its transaction.
pub(crate) const POSTED_AT: usize = 4096;
/// Mailbox of a node.
pub(crate) const MEMORY_AT: usize = POSTED_AT + POSTED * 16;
/// Bytes of a node.
pub(crate) const NODE_BYTES: usize = MEMORY_AT + (mailbox::MOST_SLOTS * mailbox::SLOT_BYTES) as usize;

/// Bytes of the segment. The system finds memory for a page when it is first written.
pub(crate) const RACK_BYTES: usize = NODES_FROM + RACK_NODES * NODE_BYTES;

/// Place of a word of a node.
pub(crate) const fn of(node: usize, at: usize) -> usize {
    assert!(node < RACK_NODES && at < NODE_BYTES, "a node of a rack");
    NODES_FROM + node * NODE_BYTES + at
}

/// Place of a posted word of a node; `count` words were posted before it.
pub(crate) const fn posted(node: usize, count: u64) -> usize {
    of(node, POSTED_AT + (count as usize % POSTED) * 16)
}
