//! Random numbers and sets out of a [`Stream`], with negligible bias.

use crate::Stream;
use alloc::vec::Vec;
use rand_xoshiro::rand_core::Rng;

/// A uniform number below `bound`, which is at most 2^16; by multiplication, with a bias below 2^-48.
pub fn below(random: &mut Stream, bound: u32) -> u16 {
    ((u128::from(random.next_u64()) * u128::from(bound)) >> 64) as u16
}

/// Draws `many` different numbers below `of`, in the order of the draws (Floyd's method).
///
/// # Panics
/// If `many` is above `of`.
pub fn distinct(random: &mut Stream, many: u16, of: u16) -> Vec<u16> {
    let mut drawn = Vec::with_capacity(many.into());
    for top in of - many..of {
        let candidate = below(random, u32::from(top) + 1);
        let is_new = !drawn.contains(&candidate);
        drawn.push(if is_new { candidate } else { top });
    }
    drawn
}

/// Draws from `least` to `most` different numbers below `of`: first how many, then which.
///
/// # Panics
/// If `least` is above `most`, or `most` above `of`.
pub fn some_of(random: &mut Stream, (least, most): (u16, u16), of: u16) -> Vec<u16> {
    let many = least + below(random, u32::from(most - least) + 1);
    distinct(random, many, of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NodeId, stream};

    #[test]
    fn sets_are_of_all_sizes_without_a_number_twice_and_favour_none() {
        let mut random = stream(1, NodeId(0), 0);
        let (mut sizes, mut drawn) = ([0; 4], [0; 5]);
        for _ in 0..6000 {
            let mut set = some_of(&mut random, (1, 3), 5);
            sizes[set.len()] += 1;
            set.iter().for_each(|&number| drawn[usize::from(number)] += 1);
            set.sort_unstable();
            assert!(set.windows(2).all(|pair| pair[0] < pair[1]), "{set:?}");
        }
        // Five standard deviations.
        assert!(sizes[0] == 0 && sizes[1..].iter().all(|&count: &i32| count.abs_diff(2000) < 183), "{sizes:?}");
        assert!(drawn.iter().all(|&count: &i32| count.abs_diff(2400) < 190), "{drawn:?}");
        assert_eq!(some_of(&mut random, (5, 5), 5).len(), 5);
    }
}
