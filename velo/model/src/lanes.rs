//! Byte lanes: the places of the bytes of a store in words of 64 bits, on the bus of the host and on the network.
//!
//! Byte `k` of a word is its bits `8k` to `8k + 7`, and data keep the place that they have in their message: word `i`
//! of the data covers the message from byte `8 (offset / 8 + i)` on. So hardware moves words and never shifts bytes.
//!
//! A part that begins late in a word may cost one more word; in return the hardware needs masks and no shifters.

extern crate alloc;

use crate::LINE_BYTES;
use alloc::vec::Vec;

/// Bytes of a word.
pub const WORD_BYTES: u64 = 8;

/// Most data words of one invalid store: 64 B that begin at the last byte of a word. The data of a packet end within
/// their message, and have 8 words at most.
pub const MOST_WORDS: u64 = words(WORD_BYTES - 1, LINE_BYTES);

/// The number of data words does not match offset and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found} data words where offset and length ask for {expected}: send a word for each 8 B that the data touch")]
pub struct CountError {
    /// Number of words found.
    pub found: usize,
    /// Number of words expected.
    pub expected: usize,
}

/// Number of words that `data` bytes at `offset` touch.
pub const fn words(offset: u64, data: u64) -> u64 {
    (offset % WORD_BYTES + data).div_ceil(WORD_BYTES)
}

/// Bytes that begin at `offset` of their message, as words; the bytes beside them are 0.
pub fn pack(offset: u64, bytes: &[u8]) -> Vec<u64> {
    let mut packed = alloc::vec![0; words(offset, bytes.len() as u64) as usize];
    for (at, &byte) in (offset % WORD_BYTES..).zip(bytes) {
        packed[(at / WORD_BYTES) as usize] |= u64::from(byte) << (8 * (at % WORD_BYTES));
    }
    packed
}

/// Masks of at most 64 B of data in their words: ones for data, zeros elsewhere.
///
/// # Panics
/// If there are more than 64 B.
pub fn masks(offset: u64, data: u64) -> Vec<u64> {
    pack(offset, &[0xff; LINE_BYTES as usize][..data as usize])
}

/// The first 64 B of data that begin at `offset`, from index 0 on, filled up with 0. Bytes beside the data in their
/// words are ignored.
///
/// # Errors
/// [`CountError`] if there are not as many words as the data touch.
pub fn unpack(offset: u64, data: u64, packed: &[u64]) -> Result<[u8; LINE_BYTES as usize], CountError> {
    let expected = words(offset, data) as usize;
    if packed.len() != expected {
        return Err(CountError { found: packed.len(), expected });
    }
    let mut bytes = [0; LINE_BYTES as usize];
    for (at, byte) in (offset % WORD_BYTES..).zip(bytes.iter_mut().take(data as usize)) {
        *byte = (packed[(at / WORD_BYTES) as usize] >> (8 * (at % WORD_BYTES))) as u8;
    }
    Ok(bytes)
}
