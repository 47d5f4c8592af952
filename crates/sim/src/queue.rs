//! The event queue: a wheel of time slots for the near future, a heap for the rest; first in first out among equal times.

use std::{cmp::Reverse, collections::BinaryHeap};

/// Slots of the wheel; a power of two.
const SLOTS: usize = 1024;

/// Events in the order of their times; those of one time in the order in which they were planned. This is the
/// simulator's total order of events.
///
/// Nearly all events of a network lie within a few packet times. Each goes into the slot of its time, unsorted, and is
/// sorted once, with the few others of the slot, when the slot comes up. What lies beyond the wheel waits in a heap and
/// comes into its slot when the wheel reaches that far: before anything can be planned there directly, so the order of
/// planning is kept. Nothing may be planned for the past.
pub(crate) struct Queue<E> {
    now: u64,
    /// A slot is this many bits of picoseconds wide.
    shift: u32,
    /// The slot of the present, counted from the beginning of time.
    slot: u64,
    /// The events of the present slot, sorted; those before `next` are gone.
    present: Vec<(u64, E)>,
    next: usize,
    wheel: Vec<Vec<(u64, E)>>,
    /// Which slots of the wheel are not empty.
    occupied: [u64; SLOTS / 64],
    /// Events beyond the wheel, by time and order of planning.
    far: BinaryHeap<Reverse<(u64, u64, Far<E>)>>,
    planned: u64,
    length: usize,
}

/// An event that takes no part in comparisons: the keys before it always differ.
struct Far<E>(E);

impl<E> PartialEq for Far<E> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl<E> Eq for Far<E> {}
impl<E> PartialOrd for Far<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> Ord for Far<E> {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl<E: Copy> Queue<E> {
    /// An empty queue for events that mostly lie within `reach` picoseconds from each other.
    pub(crate) fn new(reach: u64) -> Self {
        Self {
            now: 0,
            shift: (reach / (SLOTS as u64 / 4)).max(1).ilog2(),
            slot: 0,
            present: Vec::new(),
            next: 0,
            wheel: (0..SLOTS).map(|_| Vec::new()).collect(),
            occupied: [0; SLOTS / 64],
            far: BinaryHeap::new(),
            planned: 0,
            length: 0,
        }
    }

    /// The present: the time of the last event that was taken, or what it was advanced to.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Plans an event. A time in the past counts as now.
    #[inline]
    pub(crate) fn push(&mut self, time: u64, event: E) {
        debug_assert!(time >= self.now, "planned for the past");
        let time = time.max(self.now);
        self.length += 1;
        let slot = time >> self.shift;
        if slot == self.slot {
            let later = self.present[self.next..].partition_point(|&(other, _)| other <= time);
            self.present.insert(self.next + later, (time, event));
        } else if slot - self.slot < SLOTS as u64 {
            self.put(slot, time, event);
        } else {
            self.planned += 1;
            self.far.push(Reverse((time, self.planned, Far(event))));
        }
    }

    #[inline]
    fn put(&mut self, slot: u64, time: u64, event: E) {
        let place = slot as usize % SLOTS;
        self.occupied[place / 64] |= 1 << (place % 64);
        self.wheel[place].push((time, event));
    }

    /// The next event of the present time.
    #[inline]
    pub(crate) fn pop_present(&mut self) -> Option<E> {
        let &(_, event) = self.present.get(self.next).filter(|&&(time, _)| time == self.now)?;
        self.next += 1;
        self.length -= 1;
        Some(event)
    }

    /// Goes on to the time of the next event; false when there is none. The present must be used up.
    pub(crate) fn advance(&mut self) -> bool {
        if self.next == self.present.len() && !self.turn() {
            return false;
        }
        self.now = self.present[self.next].0;
        true
    }

    /// Turns the wheel to the next slot with events.
    fn turn(&mut self) -> bool {
        self.present.clear();
        self.next = 0;
        let near = self.next_occupied();
        let far = self.far.peek().map(|Reverse((time, ..))| time >> self.shift);
        let Some(slot) = near.into_iter().chain(far).min() else { return false };
        self.slot = slot;
        // What the wheel reaches now leaves the heap.
        while let Some(Reverse((time, ..))) = self.far.peek() {
            if (time >> self.shift) - slot >= SLOTS as u64 {
                break;
            }
            if let Some(Reverse((time, _, Far(event)))) = self.far.pop() {
                self.put(time >> self.shift, time, event);
            }
        }
        let place = slot as usize % SLOTS;
        self.occupied[place / 64] &= !(1 << (place % 64));
        std::mem::swap(&mut self.present, &mut self.wheel[place]);
        // Stable, so events of one time stay in the order of planning.
        self.present.sort_by_key(|&(time, _)| time);
        true
    }

    /// The next slot of the wheel that is not empty.
    fn next_occupied(&self) -> Option<u64> {
        let first = self.slot as usize % SLOTS;
        let words = SLOTS / 64;
        for step in 0..=words {
            let word = (first / 64 + step) % words;
            let mut bits = self.occupied[word];
            if step == 0 {
                bits &= u64::MAX << (first % 64);
            } else if step == words {
                bits &= !(u64::MAX << (first % 64));
            }
            if bits != 0 {
                let place = word * 64 + bits.trailing_zeros() as usize;
                return Some(self.slot + ((place + SLOTS - first) % SLOTS) as u64);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn gives_events_by_time_and_then_in_the_order_of_planning(
            reach in 1_u64..10_000_000,
            steps in proptest::collection::vec((0_u64..5, 0_u64..2000), 1..400)
        ) {
            let (mut queue, mut model, mut seen) = (Queue::new(reach), Vec::new(), Vec::new());
            for (index, &(pops, ahead)) in steps.iter().enumerate() {
                let time = queue.now() + ahead * ahead;
                queue.push(time, index);
                model.push((time, index));
                for _ in 0..pops {
                    if let Some(event) = queue.pop_present() {
                        seen.push((queue.now(), event));
                    } else if !queue.advance() {
                        break;
                    }
                }
            }
            loop {
                while let Some(event) = queue.pop_present() {
                    seen.push((queue.now(), event));
                }
                if !queue.advance() {
                    break;
                }
            }
            prop_assert!(queue.is_empty());
            model.sort();
            prop_assert_eq!(seen, model);
        }
    }
}
