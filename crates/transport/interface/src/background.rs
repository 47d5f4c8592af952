//! What is left to do for peers when an endpoint has ended.
//!
//! An answer over a closed connection destroys what is under way on it. So an endpoint that ends drives its protocol
//! until everything has arrived, first itself and then in a thread, where a slow receiver holds up no other work.

use std::{thread, time::Duration};

/// Time between two looks at first, and after many of them: it is twice as long each time.
const NAP: Duration = Duration::from_millis(1);
const LONGEST_NAP: Duration = Duration::from_millis(20);

/// Calls `is_done` in the background until it returns true, and drops it then. Without a thread it is dropped now.
pub fn finish_in_background(mut is_done: impl FnMut() -> bool + Send + 'static) {
    let work = move || {
        let mut nap = NAP;
        while !is_done() {
            thread::sleep(nap);
            nap = (2 * nap).min(LONGEST_NAP);
        }
    };
    let _started = thread::Builder::new().name("evb-leaves".into()).spawn(work);
}
