//! Work on several items at a time.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

/// Items at a time.
const LANES: usize = 2;

/// Runs `work` for all items, some at a time. Returns the results in the order of the items, or the first error.
pub(crate) fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R, String> + Sync,
) -> Result<Vec<R>, String> {
    let next = AtomicUsize::new(0);
    let take = || {
        let index = next.fetch_add(1, Ordering::Relaxed);
        items.get(index).map(|item| (index, work(item)))
    };
    let mut results = thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES).map(|_| scope.spawn(|| std::iter::from_fn(take).collect::<Vec<_>>())).collect();
        let results = lanes.into_iter().flat_map(|lane| lane.join().expect("a lane does not panic"));
        results.collect::<Vec<_>>()
    });
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}
