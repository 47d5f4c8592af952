//! Completion queues and counters.

use evb_libfabric_abi::{CqEntry, CqError};
use evb_transport::Yielder;
use std::{
    cell::RefCell,
    collections::VecDeque,
    thread,
    time::{Duration, Instant},
};

/// A sleep of a thread whose core a busy program has.
const NAP: Duration = Duration::from_micros(50);

/// Entries of one queue; an endpoint takes no operation while there are more.
pub(crate) const MOST_ENTRIES: usize = 1 << 16;

/// A completion queue.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) entries: VecDeque<(CqEntry, u64)>,
    pub(crate) errors: VecDeque<CqError>,
    /// Bytes of an entry in the format of the queue.
    pub(crate) entry_bytes: usize,
    /// Asked to end a wait.
    pub(crate) signalled: bool,
    /// Reads that found nothing since the last entry.
    pub(crate) idle: u32,
}

impl Queue {
    pub(crate) fn is_full(&self) -> bool {
        self.entries.len() + self.errors.len() >= MOST_ENTRIES
    }
}

/// A counter of completions and errors.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counter {
    pub(crate) value: u64,
    pub(crate) errors: u64,
}

/// Gives the core to other threads for a moment: of a thread whose last looks at a queue or a counter found nothing.
#[cold]
pub(crate) fn give_way() {
    thread_local!(static YIELDER: RefCell<Yielder> = RefCell::default());
    if !YIELDER.with_borrow_mut(|yielder| yielder.try_yield(Instant::now())) {
        thread::sleep(NAP);
    }
}
