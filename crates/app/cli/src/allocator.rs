//! The allocator of all memory of nodes and simulations.

#![allow(unsafe_code, reason = "an option of the allocator, which is written in C")]

use libmimalloc_sys::{mi_option_eager_commit_delay, mi_option_set_default, mi_option_t};
use mimalloc::MiMalloc;
use std::ffi::c_long;

/// A fragment takes several small pieces of memory, some of which other threads free.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Free memory goes back to the system after this time, in milliseconds. Payloads of different lengths come and go, so
/// memory that is free for 10 ms, mimalloc's own choice, is often needed again: 64 x 64 units in threads built a tenth to a
/// third more fragments when it was kept. Version 3 of mimalloc has chosen 1 s, too.
const PURGE_AFTER_MS: c_long = 1000;
/// `mi_option_purge_delay` in the header of mimalloc, which the crate does not name.
const PURGE_DELAY: mi_option_t = mi_option_eager_commit_delay + 1;

/// Sets the options of the allocator. Variables of the environment, such as `MIMALLOC_PURGE_DELAY`, take precedence.
pub(crate) fn set_up() {
    // SAFETY: the function only stores a number, and is called before there is a second thread.
    unsafe { mi_option_set_default(PURGE_DELAY, PURGE_AFTER_MS) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libmimalloc_sys::mi_option_get;

    #[test]
    fn free_memory_is_kept_for_a_while() {
        // SAFETY: the function only reads a number.
        let delay = || unsafe { mi_option_get(PURGE_DELAY) };
        assert_eq!(delay(), 10, "mimalloc's own choice: another version may have another number for the option");
        set_up();
        assert_eq!(delay(), PURGE_AFTER_MS);
    }
}
