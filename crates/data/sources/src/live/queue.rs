//! The queue between the threads that read front ends and the unit that takes fragments.
//!
//! The taker takes all that waits at once, so both sides seldom meet: with a place freed at a time, a reader whose queue is full
//! would sleep and be woken for each fragment.

use super::readers::POLL;
use std::{
    collections::VecDeque,
    mem,
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// A bounded queue of many readers and one taker.
pub(super) struct Queue<T> {
    waiting: Mutex<Waiting<T>>,
    /// Items wait. It is set and cleared under the lock, and looked at without.
    any: AtomicBool,
    /// The taker has made room, or has gone.
    room: Condvar,
    most: usize,
}

struct Waiting<T> {
    items: VecDeque<T>,
    is_closed: bool,
}

impl<T> Queue<T> {
    /// A queue in which at most this many items wait. As many may be with the taker.
    pub(super) fn new(most: usize) -> Self {
        let waiting = Waiting { items: VecDeque::with_capacity(most), is_closed: false };
        Self { waiting: Mutex::new(waiting), any: AtomicBool::new(false), room: Condvar::new(), most }
    }

    /// Adds an item. While the queue is full it waits, after a call of `wake` for the taker, and one more each [`POLL`]. Returns
    /// false if the queue is closed.
    pub(super) fn put(&self, item: T, mut wake: impl FnMut()) -> bool {
        let mut waiting = self.lock();
        let is_full = |waiting: &mut Waiting<T>| waiting.items.len() >= self.most && !waiting.is_closed;
        while is_full(&mut waiting) {
            drop(waiting);
            wake();
            let waited = self.room.wait_timeout_while(self.lock(), POLL, is_full);
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if waiting.is_closed {
            return false;
        }
        waiting.items.push_back(item);
        self.any.store(true, Ordering::Release);
        true
    }

    /// Takes all items that wait, in the place of `taken`, which is empty.
    fn take(&self, taken: &mut VecDeque<T>) {
        if !self.any.load(Ordering::Acquire) {
            return;
        }
        let mut waiting = self.lock();
        mem::swap(&mut waiting.items, taken);
        self.any.store(false, Ordering::Release);
        drop(waiting);
        self.room.notify_all();
    }

    /// The next item, of those that were taken before or of those that wait.
    pub(super) fn next(&self, taken: &mut VecDeque<T>) -> Option<T> {
        if taken.is_empty() {
            self.take(taken);
        }
        taken.pop_front()
    }

    /// Returns true if nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    /// Drops what waits, and takes nothing any more.
    pub(super) fn close(&self) {
        let mut waiting = self.lock();
        waiting.is_closed = true;
        waiting.items.clear();
        drop(waiting);
        self.room.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{sync::mpsc::channel, thread};

    /// Two readers put more than the queue holds; each waits for the taker, and the items of each come in order.
    #[test]
    fn readers_wait_for_room_and_keep_their_order() {
        let queue = Queue::new(4);
        let (wake, woken) = channel();
        let came = thread::scope(|scope| {
            for reader in 0..2 {
                let (queue, wake) = (&queue, wake.clone());
                scope.spawn(move || {
                    assert!((0..1000).all(|item| queue.put((reader, item), || wake.send(()).unwrap_or_default())));
                    wake.send(()).unwrap_or_default();
                });
            }
            let (mut came, mut taken) = (Vec::new(), VecDeque::new());
            while came.len() < 2000 {
                woken.recv().expect("a reader says that it waits, or is done");
                queue.take(&mut taken);
                assert!(taken.len() <= 4);
                came.extend(taken.drain(..));
            }
            came
        });
        for reader in 0..2 {
            assert!(came.iter().filter(|item| item.0 == reader).map(|item| item.1).eq(0..1000));
        }
    }

    #[test]
    fn a_closed_queue_takes_nothing_and_lets_readers_go() {
        let queue = Queue::new(1);
        assert!(queue.put(1, || ()));
        let (wake, woken) = channel();
        thread::scope(|scope| {
            let reader = scope.spawn(|| queue.put(2, move || wake.send(()).unwrap_or_default()));
            woken.recv().expect("the reader waits");
            queue.close();
            assert!(!reader.join().expect("the reader ends"));
        });
        let mut taken = VecDeque::new();
        queue.take(&mut taken);
        assert!(taken.is_empty() && !queue.put(3, || ()));
    }
}
