//! Memory that a run needs at once, found before it begins.
//!
//! The first use of a page costs far more than its later ones, most of all in a virtual machine whose host has to find it:
//! 1.4 ms for each MiB was measured, and 0.05 ms once the host had it. The first events of a run would wait for that, those
//! behind them would gather, and would need more memory still: 20 to 90 ms at half of the rate that is possible.

use std::hint::black_box;

/// Bytes for the nodes of one thread. The first events of 2 x 2 units take less over each transport.
const BYTES: usize = 16 << 20;
/// Bytes that the allocator takes from what it has, and not each time from the system.
const PIECE_BYTES: usize = 1 << 20;

/// Uses memory and frees it, so that this thread's allocator has it at hand.
pub(crate) fn warm() {
    // Zeros may be had without a use of the memory.
    let pieces = (0..BYTES / PIECE_BYTES).map(|_| black_box(vec![1_u8; PIECE_BYTES]));
    drop(pieces.collect::<Vec<_>>());
}
