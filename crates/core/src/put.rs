//! Values that come into large tables.

/// Puts a value into an empty place without a look at it. A place of a large table is in no cache, and a write does not wait
/// for memory as a look does. If there was a value, it is never dropped.
#[inline]
pub fn put<T>(place: &mut Option<T>, value: T) {
    debug_assert!(place.is_none(), "there is a value");
    core::mem::forget(place.replace(value));
}
