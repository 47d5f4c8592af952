//! A set of the items that were inserted last.

use alloc::collections::VecDeque;
use core::hash::Hash;
use hashbrown::HashSet;

/// A set of bounded size: a new item replaces the oldest.
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

    /// Inserts an item; returns true if it was not there.
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

    /// Returns true if an item is there.
    pub fn contains(&self, item: &T) -> bool {
        self.items.contains(item)
    }
}
