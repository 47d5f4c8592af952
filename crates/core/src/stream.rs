//! Seeded random streams: one per node and purpose, so that no node's draws disturb another's.

use crate::NodeId;
use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{Rng, SeedableRng},
};

/// A seeded stream of random numbers.
pub type Stream = Xoshiro256PlusPlus;

/// The stream of `node` for one `purpose` (any constant that the caller keeps) in a run with this `seed`.
pub fn stream(seed: u64, node: NodeId, purpose: u64) -> Stream {
    let mut mixer = Xoshiro256PlusPlus::seed_from_u64(seed);
    let base = mixer.next_u64();
    // Odd multipliers from splitmix64 and xxh64 keep neighbouring nodes and purposes far apart.
    let key = base
        ^ u64::from(node.0).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ purpose.wrapping_add(1).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    Stream::seed_from_u64(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_seed_node_and_purpose_and_repeat() {
        let first = |seed, node, purpose| stream(seed, NodeId(node), purpose).next_u64();
        let base = first(1, 0, 0);
        assert_eq!(base, first(1, 0, 0));
        assert!([first(2, 0, 0), first(1, 1, 0), first(1, 0, 1)].iter().all(|&other| other != base));
    }
}
