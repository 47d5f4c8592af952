//! What one source takes from its link: its frames, in a bounded queue, and what was refused, counted by kind.

use super::{LiveItem, Refused, RejectKind, queue::Queue};
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// Most bytes in the queue, whatever the largest fragment is. As many may be taken from it and not be in use yet.
const QUEUE_BYTES: usize = 32 << 20;
/// Fewest and most fragments in the queue.
const QUEUE_ITEMS: [usize; 2] = [8, 2048];

/// The way from the readers of a link to one of its sources.
pub(super) struct Outlet {
    /// The source id of its frames, where the frames of a link have one.
    pub(super) id: u64,
    pub(super) queue: Queue<LiveItem>,
    waker: Arc<dyn Fn() + Send + Sync>,
    /// Its unit has asked for more, and there was nothing.
    pub(super) is_starved: AtomicBool,
    /// Time in milliseconds for which it had no room while other sources of the link had nothing.
    pub(super) held_up_ms: AtomicU64,
    any_rejected: AtomicBool,
    rejected: [AtomicU64; RejectKind::ALL.len()],
    /// The first occurrence of each kind.
    refused: [OnceLock<Refused>; RejectKind::ALL.len()],
}

impl Outlet {
    /// The outlet of the source with this id, for fragments of up to `max_fragment` bytes.
    pub(super) fn new(id: u64, max_fragment: u32, waker: Arc<dyn Fn() + Send + Sync>) -> Self {
        Self {
            id,
            queue: Queue::new(queue_items(max_fragment)),
            waker,
            is_starved: AtomicBool::new(false),
            held_up_ms: AtomicU64::new(0),
            any_rejected: AtomicBool::new(false),
            rejected: [const { AtomicU64::new(0) }; RejectKind::ALL.len()],
            refused: [const { OnceLock::new() }; RejectKind::ALL.len()],
        }
    }

    /// Most bytes of fragments in the queue, and taken from it at once.
    pub(super) fn most_memory(max_fragment: u32) -> u64 {
        2 * queue_items(max_fragment) as u64 * u64::from(max_fragment)
    }

    pub(super) fn wake(&self) {
        (self.waker)();
    }

    pub(super) fn refuse(&self, kind: RejectKind, count: u64, refused: impl FnOnce() -> Refused) {
        self.refused[kind as usize].get_or_init(refused);
        self.rejected[kind as usize].fetch_add(count, Ordering::Relaxed);
        self.any_rejected.store(true, Ordering::Release);
        self.wake();
    }

    pub(super) fn next_rejection(&self) -> Option<LiveItem> {
        if !self.any_rejected.load(Ordering::Relaxed) || !self.any_rejected.swap(false, Ordering::AcqRel) {
            return None;
        }
        let take = |kind: RejectKind| (kind, self.rejected[kind as usize].swap(0, Ordering::Relaxed));
        let (kind, count) = RejectKind::ALL.into_iter().map(take).find(|&(_, count)| count > 0)?;
        let first = *self.refused[kind as usize].get()?;
        // There may be more kinds: they are looked for at the next call.
        self.any_rejected.store(true, Ordering::Release);
        Some(LiveItem::Rejected { kind, count, first })
    }
}

/// Most fragments in the queue.
fn queue_items(max_fragment: u32) -> usize {
    let [fewest, most] = QUEUE_ITEMS;
    (QUEUE_BYTES / max_fragment.max(1) as usize).clamp(fewest, most)
}
