//! The bell of a mailbox: its owner sleeps until a sender has published something.
//!
//! # Why no wake-up is lost
//! The sender swaps its header in and loads the bell, both sequentially consistent. The owner sets the bell, passes such a
//! fence and looks for the header once more. These have one total order:
//! - the swap is before the fence: the owner sees the header and does not sleep;
//! - the fence is before the swap: the load sees the bell set, or a later value. A later value was written by another
//!   sender, which wakes the owner, or by the owner itself, which is awake.
//!
//! A sender takes the bell back before it wakes the owner, and the system compares the bell once more before it lets the
//! owner sleep. So an owner that has looked, but does not sleep yet, will not. `tests/mailbox` has the model check.

use crate::{
    layout::BELL_AT,
    segment::Segment,
    sync::{Ordering, fence, sleep, wake},
};
use std::time::{Duration, Instant};

/// Wakes the owner if it sleeps. The caller has published a header in a sequentially consistent way.
#[inline]
pub(crate) fn ring(segment: &Segment) {
    let bell = segment.half(BELL_AT);
    if bell.load(Ordering::SeqCst) != 0 && bell.swap(0, Ordering::AcqRel) != 0 {
        wake(bell);
    }
}

/// Sleeps until something is there, for this time at most. Returns true if it is. Only the owner calls this.
pub(crate) fn wait(segment: &Segment, timeout: Duration, is_there: impl Fn() -> bool) -> bool {
    let (bell, end) = (segment.half(BELL_AT), Instant::now() + timeout);
    loop {
        bell.store(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let (is_there, left) = (is_there(), end.saturating_duration_since(Instant::now()));
        if is_there || left.is_zero() {
            bell.store(0, Ordering::Relaxed);
            return is_there;
        }
        sleep(bell, 1, left);
    }
}
