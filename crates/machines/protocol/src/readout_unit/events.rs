//! The events that a readout unit knows, by their consecutive numbers.
//!
//! Events are kept in blocks of eight, and a block goes when its events are over. A ring from the oldest open event on
//! would be simpler, but one event that waits long makes it long, and every place of it is written again and again: 1.4
//! of 2.3 GB with 512 x 512 units.

use alloc::{boxed::Box, collections::VecDeque};
use core::array;

/// Events in a block: few enough that those which are over hardly hold memory beside one that is open for long.
const BLOCK: usize = 8;

/// The states of consecutive events. A count among them would make their memory a little longer than a size that
/// allocators have.
struct EventBlock<T> {
    /// Number of events that are not over.
    left: u8,
    /// Their states; no memory, if they are all over.
    states: Option<Box<[Option<T>; BLOCK]>>,
}

/// The states of consecutive events. An event that is over has none, and most of its memory is free, also when an older
/// event is still open.
pub(super) struct EventTable<T> {
    /// The oldest event that is not over.
    first: u64,
    /// The event behind the last known one.
    end: u64,
    /// The first event of the first block.
    start: u64,
    /// The states from `start` on.
    blocks: VecDeque<EventBlock<T>>,
}

impl<T: Default> EventTable<T> {
    /// Memory of an event, in bytes.
    pub(super) const EVENT_BYTES: usize = size_of::<Option<T>>();

    /// No known event, and all before `first` are over.
    pub(super) const fn from(first: u64) -> Self {
        Self { first, end: first, start: first, blocks: VecDeque::new() }
    }

    /// The oldest event that is not over.
    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    /// The event behind the last known one.
    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    /// Number of events from the first one that is not over to the last known one.
    pub(super) const fn len(&self) -> u64 {
        self.end - self.first
    }

    /// Returns true if an event was known and is over.
    pub(super) fn is_over(&self, event: u64) -> bool {
        let Some(index) = event.checked_sub(self.start) else { return true };
        let block = self.blocks.get(index as usize / BLOCK);
        let is_over = |states: &[Option<T>; BLOCK]| states[index as usize % BLOCK].is_none();
        block.is_some_and(|block| block.states.as_deref().is_none_or(is_over))
    }

    /// The state of an event. It and all before it are known from now on. `None` if it is over.
    pub(super) fn entry(&mut self, event: u64) -> Option<&mut T> {
        let index = event.checked_sub(self.start)? as usize;
        while self.blocks.len() <= index / BLOCK {
            let states = Box::new(array::from_fn(|_| Some(T::default())));
            self.blocks.push_back(EventBlock { left: BLOCK as u8, states: Some(states) });
        }
        self.end = self.end.max(event + 1);
        self.blocks[index / BLOCK].states.as_mut()?[index % BLOCK].as_mut()
    }

    /// Ends an event that is known; returns its state.
    pub(super) fn end_event(&mut self, event: u64) -> Option<T> {
        let index = event.checked_sub(self.start)? as usize;
        let block = self.blocks.get_mut(index / BLOCK)?;
        let state = block.states.as_mut()?[index % BLOCK].take()?;
        block.left -= 1;
        if block.left == 0 {
            block.states = None;
        }
        while self.first < self.end && self.is_over(self.first) {
            self.first += 1;
            if self.first - self.start == BLOCK as u64 {
                self.blocks.pop_front();
                self.start = self.first;
            }
        }
        Some(state)
    }

    /// Takes all events before `first` for over. There must be no known event that is not over.
    pub(super) fn skip_to(&mut self, first: u64) {
        *self = Self::from(first);
    }

    /// All known events that are not over, in their order, from one on that is not before the first.
    pub(super) fn iter_from(&self, event: u64) -> impl Iterator<Item = (u64, &T)> {
        let states = self.blocks.iter().flat_map(|block| {
            let (some, none) = match &block.states {
                Some(states) => (Some(states.iter().map(Option::as_ref)), 0),
                None => (None, BLOCK),
            };
            some.into_iter().flatten().chain(core::iter::repeat_n(None, none))
        });
        let known = (self.start..self.end).zip(states).skip((event - self.start) as usize);
        known.filter_map(|(event, state)| Some((event, state?)))
    }

    /// All states that there are, also those of events that are not known yet.
    pub(super) fn states_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.blocks.iter_mut().filter_map(|block| block.states.as_mut()).flat_map(|states| states.iter_mut().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{collections::BTreeSet, vec::Vec};
    use proptest::prelude::*;

    proptest! {
        /// Against a set of the events that are over.
        #[test]
        fn knows_which_events_are_over(steps in proptest::collection::vec((any::<bool>(), 0_u64..60), 0..300)) {
            let (mut events, mut over, mut end) = (EventTable::<u64>::from(5), BTreeSet::new(), 5);
            for (ends, ahead) in steps {
                let event = events.first() + ahead;
                if let Some(state) = events.entry(event) {
                    prop_assert!(!over.contains(&event));
                    prop_assert!(*state == 0 || *state == event);
                    *state = event;
                } else {
                    prop_assert!(over.contains(&event));
                }
                end = end.max(event + 1);
                if ends {
                    prop_assert_eq!(events.end_event(event).is_some(), over.insert(event));
                }
                prop_assert_eq!(events.end(), end);
                let first = (5..).find(|event| !over.contains(event)).expect("there is one");
                prop_assert_eq!((events.first(), events.len()), (first, end - first));
                let open: Vec<_> = (first..end).filter(|event| !over.contains(event)).collect();
                prop_assert_eq!(events.iter_from(first).map(|(event, _)| event).collect::<Vec<_>>(), open);
                prop_assert!((0..end).all(|event| events.is_over(event) == (event < 5 || over.contains(&event))));
                let left: usize = events.blocks.iter().map(|block| usize::from(block.left)).sum();
                prop_assert_eq!(events.states_mut().count(), left);
            }
        }
    }

    #[test]
    fn ended_events_hold_no_memory_behind_an_old_one() {
        let mut events = EventTable::<u64>::from(1);
        for event in 1..1000 {
            events.entry(event);
            if event > 1 {
                events.end_event(event);
            }
        }
        let with_memory = events.blocks.iter().filter(|block| block.states.is_some()).count();
        assert_eq!((events.first(), with_memory), (1, 2));
        events.end_event(1);
        assert_eq!((events.first(), events.blocks.len()), (1000, 1));
        events.skip_to(2000);
        assert!(events.is_over(1999) && !events.is_over(2000));
    }
}
