//! Places in a segment, in bytes from its start.

use evb_velo::mailbox;

/// The first word of a segment, with the version of this layout in its last byte.
pub(crate) const MAGIC: u64 = u64::from_be_bytes(*b"evbvelo\x02");

/// Word: [`MAGIC`].
pub(crate) const MAGIC_AT: usize = 0;
/// Word: a random number, which tells this segment from a later one with the same process and file numbers.
pub(crate) const NONCE_AT: usize = 8;
/// Word: packets claimed so far.
pub(crate) const TAIL_AT: usize = 64;
/// Half word: 1 while the owner sleeps, for whom a sender rings.
pub(crate) const BELL_AT: usize = 128;

/// Senders that one mailbox knows in its life.
pub const SENDERS: usize = 1024;
/// Three words for each sender: process and file number, nonce, and 1 when both are written.
pub(crate) const SENDERS_AT: usize = 4096;
/// Bytes of a sender.
pub(crate) const SENDER_BYTES: usize = 32;

/// Memory regions that an owner lends to others.
pub const GRANTS: usize = 1024;
/// Four words for each region: key, address, length, rights.
pub(crate) const GRANTS_AT: usize = SENDERS_AT + SENDERS * SENDER_BYTES;
/// Bytes of a region's entry.
pub(crate) const GRANT_BYTES: usize = 32;

/// Slots of a mailbox. Both sides go through all of them in turn, so more than fit a first-level cache cost time.
pub const SLOTS: usize = 64;
/// The slots.
pub(crate) const SLOTS_AT: usize = GRANTS_AT + GRANTS * GRANT_BYTES;
/// Bytes of a slot: one cache line.
pub(crate) const SLOT_BYTES: usize = 64;
/// Bytes of a slot's line: the longest message that VELO itself carries.
pub const LINE_BYTES: usize = evb_velo::LINE_BYTES as usize;
/// Bytes of a message that are in its slot.
pub(crate) const FIRST_BYTES: usize = 16;
/// Words of the envelope in a slot.
pub(crate) const ENVELOPE_AT: usize = mailbox::MESSAGE_AT as usize + FIRST_BYTES;
/// Word of a slot: who has claimed it, and in which round of the ring.
pub(crate) const CLAIM_AT: usize = ENVELOPE_AT + 32;

/// The other bytes of the lines, in the order of the slots. They are not beside them: the receiver polls a slot, and processors
/// bring the neighbour of a cache line along, which would take it away from the sender.
pub(crate) const RESTS_AT: usize = SLOTS_AT + SLOTS * SLOT_BYTES;
/// Bytes from the rest of one line to the next.
pub(crate) const REST_BYTES: usize = 64;

/// Notes about messages that receivers fetch.
pub const NOTES: usize = 4096;
/// The notes.
pub(crate) const NOTES_AT: usize = RESTS_AT + SLOTS * REST_BYTES;
/// Bytes of a note.
pub(crate) const NOTE_BYTES: usize = 128;
/// Pieces of memory that one note names.
pub const NOTE_SPANS: usize = 4;

/// Blocks for messages that are longer than a line.
pub(crate) const BLOCKS: usize = 256;
/// One word for each block: 0 if it is free.
pub(crate) const BLOCK_STATES_AT: usize = NOTES_AT + NOTES * NOTE_BYTES;
/// The blocks.
pub(crate) const BLOCKS_AT: usize = BLOCK_STATES_AT + 4096;
/// Bytes of a block.
pub const BLOCK_BYTES: usize = 8192;

/// Bytes of a segment. The system finds memory for a page when it is first written.
pub(crate) const SEGMENT_BYTES: usize = BLOCKS_AT + BLOCKS * BLOCK_BYTES;
