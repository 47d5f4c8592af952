//! Random numbers with negligible bias.

use evb_core::Stream;
use rand_xoshiro::rand_core::Rng;

/// A uniform number below `bound`, which is at most 2^16; by multiplication, with a bias below 2^-48.
pub(crate) fn below(random: &mut Stream, bound: u32) -> u16 {
    ((u128::from(random.next_u64()) * u128::from(bound)) >> 64) as u16
}
