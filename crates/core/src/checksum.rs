//! CRC-32C, the one checksum of payloads, frames and files.
//!
//! # Safety
//! `short` uses instructions that a processor must have. It is compiled only for a target of which each processor has them.

#![allow(unsafe_code, reason = "instructions that a processor may lack")]

/// CRC-32C (Castagnoli; RFC 3720, appendix B.4) of `bytes`.
#[inline]
pub fn checksum(bytes: &[u8]) -> u32 {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse4.2"))]
    if bytes.len() <= SHORT {
        // SAFETY: the condition above says that each processor of this target has the instructions.
        return unsafe { short(bytes) };
    }
    crc_fast::crc32_iscsi(bytes)
}

/// Length up to which the instruction of the processor beats the vector code of the library, in bytes, by measurement.
#[cfg(all(target_arch = "x86_64", target_feature = "sse4.2"))]
const SHORT: usize = 256;

/// The checksum by the instruction of the processor. It is inlined, so that those of consecutive payloads overlap.
#[cfg(all(target_arch = "x86_64", target_feature = "sse4.2"))]
#[target_feature(enable = "sse4.2")]
#[inline]
fn short(bytes: &[u8]) -> u32 {
    use core::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u32, _mm_crc32_u64};
    let (words, mut rest) = bytes.as_chunks::<8>();
    let long = words.iter().fold(u64::from(u32::MAX), |sum, word| _mm_crc32_u64(sum, u64::from_le_bytes(*word)));
    let mut sum = long as u32;
    if let Some((word, tail)) = rest.split_first_chunk::<4>() {
        sum = _mm_crc32_u32(sum, u32::from_le_bytes(*word));
        rest = tail;
    }
    !rest.iter().fold(sum, |sum, byte| _mm_crc32_u8(sum, *byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_published_examples() {
        assert_eq!(checksum(b"123456789"), 0xe306_9283);
        assert_eq!(checksum(&[0; 32]), 0x8a91_36aa);
        assert_eq!(checksum(&[0xff; 32]), 0x62a8_ab43);
    }

    #[test]
    fn all_lengths_agree_with_the_library() {
        let bytes: [u8; 400] = core::array::from_fn(|at| (at * 37 + 11) as u8);
        for start in 0..9 {
            for end in start..bytes.len() {
                assert_eq!(checksum(&bytes[start..end]), crc_fast::crc32_iscsi(&bytes[start..end]), "{start}..{end}");
            }
        }
    }
}
