//! The generated payload: a pattern that depends on seed, event, source and position.
//!
//! The 64-bit words, little-endian, count up from a mixed key in steps that depend on the key, too. That is one
//! addition and one store per word, so the compiler vectorises it, and both directions run near the speed of memory.

use crate::draw::{GOLDEN, bits, mix};
use evb_core::EventId;

const WORD: usize = 8;

/// Writes every byte of the payload of one fragment.
pub fn fill(bytes: &mut [u8], seed: u64, event: EventId, source: u16) {
    let (mut expected, step) = progression(seed, event, source);
    let (words, tail) = bytes.as_chunks_mut::<WORD>();
    for word in words {
        *word = expected.to_le_bytes();
        expected = expected.wrapping_add(step);
    }
    tail.copy_from_slice(&expected.to_le_bytes()[..tail.len()]);
}

/// Reads every byte of a payload; returns true if it equals the pattern of [`fill`].
pub fn check(bytes: &[u8], seed: u64, event: EventId, source: u16) -> bool {
    let (mut expected, step) = progression(seed, event, source);
    let mut difference = 0;
    let (words, tail) = bytes.as_chunks::<WORD>();
    for word in words {
        difference |= u64::from_le_bytes(*word) ^ expected;
        expected = expected.wrapping_add(step);
    }
    difference == 0 && *tail == expected.to_le_bytes()[..tail.len()]
}

/// The first word of a fragment, and the step from word to word: odd, so that no word repeats. If all fragments had one
/// step, a byte that is equal in two of them would be equal in every word.
const fn progression(seed: u64, event: EventId, source: u16) -> (u64, u64) {
    let first = bits(mix(seed.wrapping_add(GOLDEN.wrapping_mul(source as u64 + 1))), event.0);
    (first, first.rotate_left(29) | 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: EventId = EventId(5);

    #[test]
    fn what_was_filled_is_checked_and_every_flip_is_seen() {
        for size in [0, 1, 7, 8, 63, 64, 65, 200, 2048] {
            let mut bytes = vec![0; size];
            fill(&mut bytes, 1, EVENT, 3);
            assert!(check(&bytes, 1, EVENT, 3), "{size}");
            for at in 0..size {
                bytes[at] ^= 1 << (at % 8);
                assert!(!check(&bytes, 1, EVENT, 3), "flip at {at} of {size}");
                bytes[at] ^= 1 << (at % 8);
            }
        }
    }

    #[test]
    fn other_events_sources_and_seeds_have_other_bytes_everywhere() {
        let filled = |seed, event, source| {
            let mut bytes = vec![0; 1024];
            fill(&mut bytes, seed, EventId(event), source);
            bytes
        };
        let base = filled(1, 5, 3);
        let neighbours = (6..1000).map(|event| filled(1, event, 3));
        for other in neighbours.chain([filled(1, 5, 4), filled(2, 5, 3), filled(1, 5 + (1 << 32), 3)]) {
            let equal = base.iter().zip(&other).filter(|(a, b)| a == b).count();
            assert!(equal < 30, "{equal} of 1024 bytes are equal");
        }
    }

    #[test]
    fn no_position_repeats_another() {
        let mut bytes = vec![0; 1 << 16];
        fill(&mut bytes, 1, EVENT, 3);
        let blocks: std::collections::HashSet<_> = bytes.chunks(8).collect();
        assert_eq!(blocks.len(), bytes.len() / 8);
    }
}
