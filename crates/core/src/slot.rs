//! Places for values that come later.

/// Puts a value into an empty slot without a look at it. A slot of a large table is in no cache, and a write does not wait
/// for memory as a look does. If there was a value, it is never dropped.
#[inline]
pub fn put<T>(slot: &mut Option<T>, value: T) {
    debug_assert!(slot.is_none(), "the slot has a value");
    core::mem::forget(slot.replace(value));
}
