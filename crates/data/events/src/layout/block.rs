//! The header of a block of a compressed file.
//!
//! It is a skippable frame of Zstandard, so that any program for Zstandard reads the file: what it reads is the event file
//! without compression.

use super::{u32_at, u64_at};
use crate::checksum;

/// Bytes of a header.
pub(crate) const BLOCK_HEADER_BYTES: usize = 40;
/// Most bytes in a block, before compression and after it.
pub(crate) const MAX_BLOCK_BYTES: usize = 2 << 20;

/// A skippable frame with 32 bytes (RFC 8878, section 3.1.2).
const SKIPPABLE: [u8; 8] = [0x5e, 0x2a, 0x4d, 0x18, 32, 0, 0, 0];
const MAGIC: [u8; 4] = *b"evbz";
/// What every header begins with.
pub(crate) const BLOCK_MAGIC: [u8; 12] = {
    let mut magic = [0; 12];
    let (skippable, own) = magic.split_at_mut(8);
    skippable.copy_from_slice(&SKIPPABLE);
    own.copy_from_slice(&MAGIC);
    magic
};

/// Where a block belongs, and what it consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockHeader {
    /// Offset of its first byte in the event file.
    pub(crate) offset: u64,
    /// Bytes of the event file.
    pub(crate) length: u32,
    /// Bytes of the frame of Zstandard behind this header.
    pub(crate) compressed: u32,
    /// CRC-32C of that frame.
    pub(crate) checksum: u32,
}

impl BlockHeader {
    pub(crate) fn encode(&self) -> [u8; BLOCK_HEADER_BYTES] {
        let mut bytes = [0; BLOCK_HEADER_BYTES];
        bytes[..12].copy_from_slice(&BLOCK_MAGIC);
        bytes[16..24].copy_from_slice(&self.offset.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.length.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.compressed.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.checksum.to_le_bytes());
        let own = checksum(&bytes[16..]);
        bytes[12..16].copy_from_slice(&own.to_le_bytes());
        bytes
    }

    /// The header in these bytes; `None` if they are none, or changed.
    pub(crate) fn decode(bytes: &[u8; BLOCK_HEADER_BYTES]) -> Option<Self> {
        let header = Self {
            offset: u64_at(bytes, 16),
            length: u32_at(bytes, 24),
            compressed: u32_at(bytes, 28),
            checksum: u32_at(bytes, 32),
        };
        let is_known = bytes.starts_with(&BLOCK_MAGIC) && checksum(&bytes[16..]) == u32_at(bytes, 12);
        let sizes = [header.length, header.compressed];
        let fits = sizes.iter().all(|size| (1..=MAX_BLOCK_BYTES).contains(&(*size as usize)));
        (is_known && fits && header.offset.checked_add(MAX_BLOCK_BYTES as u64).is_some()).then_some(header)
    }

    /// Offset behind its last byte in the event file.
    pub(crate) const fn end(&self) -> u64 {
        self.offset + self.length as u64
    }
}
