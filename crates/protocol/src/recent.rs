//! A set that remembers what was put in last.

use alloc::collections::VecDeque;
use core::hash::Hash;
use hashbrown::HashSet;

/// A set of at most so many items: the oldest goes when one more comes.
#[derive(Clone, Debug)]
pub struct Recent<T> {
    most: usize,
    items: HashSet<T>,
    order: VecDeque<T>,
}

impl<T: Copy + Eq + Hash> Recent<T> {
    /// An empty set of at most `most` items.
    pub fn new(most: usize) -> Self {
        Self { most, items: HashSet::new(), order: VecDeque::new() }
    }

    /// Puts an item in; true when it was not there.
    pub fn insert(&mut self, item: T) -> bool {
        let is_new = self.items.insert(item);
        if is_new {
            self.order.push_back(item);
        }
        if self.order.len() > self.most
            && let Some(oldest) = self.order.pop_front()
        {
            self.items.remove(&oldest);
        }
        is_new
    }

    /// Whether an item is there.
    pub fn contains(&self, item: &T) -> bool {
        self.items.contains(item)
    }
}
