//! A mailbox in the memory of the host: a ring of slots that the completer fills and the receiving thread empties.
//!
//! A slot has 128 B: the header of a packet at byte 0, and byte `k` of its message at byte `8 + k`. The header is
//! written last and is never 0, so a message is complete when its header is there. The receiver sets the header to 0
//! before it frees the slot. Head and tail count messages modulo 2^13, twice the slots of the largest ring, so that a
//! full ring and an empty one differ.

use crate::{AddressMap, Header, LINE_BYTES, PAGE_BITS, Packet, PacketError, lanes};

/// Bytes of a slot, as a power of two: a header and a cache line do not fit 64.
pub const SLOT_BITS: u32 = 7;

/// Bytes of a slot.
pub const SLOT_BYTES: u64 = 1 << SLOT_BITS;

/// Words of a slot.
pub const SLOT_WORDS: usize = (SLOT_BYTES / lanes::WORD_BYTES) as usize;

/// Byte of a slot at which the header begins.
pub const HEADER_AT: u64 = 0;

/// Byte of a slot at which the message begins.
pub const MESSAGE_AT: u64 = lanes::WORD_BYTES;

/// Slots of a page of 4 KiB.
pub const PAGE_SLOTS: u64 = 1 << (PAGE_BITS - SLOT_BITS);

/// Bits of the number of pages, less one.
pub const MASK_BITS: u32 = 7;

/// Slots of the largest ring.
pub const MOST_SLOTS: u64 = PAGE_SLOTS << MASK_BITS;

/// Bits of head and tail.
pub const POINTER_BITS: u32 = 13;

/// Bits of an address in the memory of the host.
pub const HOST_BITS: u32 = 40;

/// The memory of a thread's ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ring {
    page: u64,
    mask: u64,
}

/// The reason why a ring is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RingError {
    /// A number of pages that is not a power of two, or too large.
    #[error("a ring of {pages} pages: use a power of two up to {}", 1 << MASK_BITS)]
    Pages {
        /// Pages of 4 KiB.
        pages: u64,
    },
    /// A base that is not aligned to the size of the ring, or has too many bits.
    #[error("a ring of {bytes:#x} B at {base:#x}: align it to its size, below {:#x}", 1_u64 << HOST_BITS)]
    Base {
        /// Address in the memory of the host.
        base: u64,
        /// Size of the ring in bytes.
        bytes: u64,
    },
}

impl Ring {
    /// A ring of `pages` pages of 4 KiB at an address in the memory of the host.
    ///
    /// # Errors
    /// [`RingError`] unless `pages` is a power of two up to 128, and `base` a multiple of the ring's size below 2^40.
    pub const fn new(base: u64, pages: u64) -> Result<Self, RingError> {
        if !pages.is_power_of_two() || pages > 1 << MASK_BITS {
            return Err(RingError::Pages { pages });
        }
        let bytes = pages << PAGE_BITS;
        if !base.is_multiple_of(bytes) || base >> HOST_BITS != 0 {
            return Err(RingError::Base { base, bytes });
        }
        Ok(Self { page: base >> PAGE_BITS, mask: pages - 1 })
    }

    /// Page number of the ring: its address divided by 4 KiB.
    pub const fn page(self) -> u64 {
        self.page
    }

    /// Pages of the ring, less one.
    pub const fn mask(self) -> u64 {
        self.mask
    }

    /// Slots of the ring: 32 for each page.
    pub const fn slots(self) -> u64 {
        PAGE_SLOTS * (self.mask + 1)
    }

    /// Address of the slot of the message with this number, as head and tail count.
    pub const fn slot(self, number: u64) -> u64 {
        self.page << PAGE_BITS | (number & (self.slots() - 1)) << SLOT_BITS
    }
}

/// A count of messages as head and tail store it.
pub const fn pointer(count: u64) -> u64 {
    count & ((1 << POINTER_BITS) - 1)
}

/// Messages between head and tail.
pub const fn waiting(head: u64, tail: u64) -> u64 {
    pointer(tail.wrapping_sub(head))
}

/// The writes into a slot for a packet of these words, as address and word: the data in order, the header last. The
/// header gives the place of the data and is not checked. No words make no writes.
pub fn writes(slot: u64, packet: &[u64]) -> impl Iterator<Item = (u64, u64)> {
    let (&header, data) = packet.split_first().map_or((&0, &[][..]), |parts| parts);
    let offset = header & (LINE_BYTES - 1);
    let first = slot + MESSAGE_AT + offset / lanes::WORD_BYTES * lanes::WORD_BYTES;
    let data = (first..).step_by(lanes::WORD_BYTES as usize).zip(data.iter().copied());
    data.chain((!packet.is_empty()).then_some((slot + HEADER_AT, header)))
}

/// The packet in a slot; `None` if its header is 0, so that the slot is empty.
///
/// # Errors
/// [`PacketError`] for a header that is invalid in the map.
pub fn read(slot: &[u64; SLOT_WORDS], map: AddressMap) -> Result<Option<Packet>, PacketError> {
    let word = slot[(HEADER_AT / lanes::WORD_BYTES) as usize];
    if word == 0 {
        return Ok(None);
    }
    let header = Header::decode(word, map)?;
    let start = ((MESSAGE_AT + header.offset) / lanes::WORD_BYTES) as usize;
    let words = &slot[start..start + lanes::words(header.offset, header.data) as usize];
    Ok(Some(Packet { header, data: lanes::unpack(header.offset, header.data, words)? }))
}
