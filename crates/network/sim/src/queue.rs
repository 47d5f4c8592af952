//! The event queue: a wheel of time slots for the near future, a heap for the rest; first in, first out among equal
//! times.
//!
//! Events of a network lie close together, so a wheel that fits its width to them takes half the instructions of a
//! radix heap, counted by callgrind over a 512 x 512 event builder.

use evb_core::{Span, Time};
use std::{cmp::Reverse, collections::BinaryHeap};

/// Fewest and most slots of the wheel; powers of two from 64 on. Few in tests, so that their number changes.
const FEWEST_SLOTS: usize = if cfg!(test) { 64 } else { 1 << 10 };
const MOST_SLOTS: usize = if cfg!(test) { 1 << 10 } else { 1 << 16 };

/// Planned events per slot above which there are to be more slots, and slots per planned event above which fewer.
const MOST_PLANNED: usize = 2;
const MOST_EMPTY: usize = 32;

/// Events planned between two checks of the slots' width; few in tests, to try it often.
const LOOK: u32 = if cfg!(test) { 1 << 4 } else { 1 << 12 };
/// Events of the present slot that may have to move for one that is planned there, on average.
const MOST_MOVED: u32 = 4;
/// Bits by which the width of the slots changes at once.
const STEP: u32 = 2;

/// Events in the order of their times; those of one time in the order in which they were planned. This is the
/// simulator's total order of events.
///
/// Nearly all events of a network lie within a few packet times. Each goes into the slot of its time, unsorted, and is
/// sorted once, with the few others of the slot, when the slot comes up. What lies beyond the wheel waits in a heap and
/// comes into its slot when the wheel reaches that far: before anything can be planned there directly, so the order of
/// planning is kept. Nothing may be planned for the past.
///
/// The slots become narrower if many events fall into the present one, and wider if most fall beyond the wheel. There are
/// more of them if many events are planned: with 1024 slots, those of 4096 hosts lay in the heap, and took three times as
/// long. Width and number depend on the events alone, so they are the same each time; the order of events does not depend
/// on them.
pub(crate) struct Queue<E> {
    now: Time,
    /// A slot is this many bits of picoseconds wide.
    shift: u32,
    /// The slot of the present, counted from the beginning of time.
    slot: u64,
    /// The events of the present slot, sorted; those before `next` are gone.
    present: Vec<(Time, E)>,
    next: usize,
    wheel: Vec<Vec<(Time, E)>>,
    /// The slots of the wheel that are not empty, a bit for each.
    occupied: Vec<u64>,
    /// Events beyond the wheel, by time and order of planning.
    far: BinaryHeap<Reverse<(Time, u64, Far<E>)>>,
    planned: u64,
    length: usize,
    /// Since the last look: events planned, those planned beyond the wheel, and events of the present slot moved.
    pushed: u32,
    pushed_far: u32,
    moved: u32,
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
    /// An empty queue for events that mostly lie within `reach` from each other.
    pub(crate) fn new(reach: Span) -> Self {
        Self {
            now: Time::ZERO,
            shift: (reach.0 / (FEWEST_SLOTS as u64 / 4)).max(1).ilog2(),
            slot: 0,
            present: Vec::new(),
            next: 0,
            wheel: (0..FEWEST_SLOTS).map(|_| Vec::new()).collect(),
            occupied: vec![0; FEWEST_SLOTS / 64],
            far: BinaryHeap::new(),
            planned: 0,
            length: 0,
            pushed: 0,
            pushed_far: 0,
            moved: 0,
        }
    }

    /// The present: the time of the last event that was taken, or a later one to which the queue was advanced.
    #[inline]
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// Number of planned events.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Plans an event. A time in the past counts as now.
    #[inline]
    pub(crate) fn push(&mut self, time: Time, event: E) {
        debug_assert!(time >= self.now, "planned for the past");
        self.length += 1;
        self.pushed += 1;
        if self.pushed >= LOOK {
            self.adapt();
        }
        self.place(time.max(self.now), event);
    }

    #[inline]
    fn place(&mut self, time: Time, event: E) {
        let slot = time.0 >> self.shift;
        if slot == self.slot {
            let place = self.next + self.present[self.next..].partition_point(|&(other, _)| other <= time);
            self.moved += (self.present.len() - place) as u32;
            self.present.insert(place, (time, event));
        } else if slot - self.slot < self.wheel.len() as u64 {
            self.put(slot, time, event);
        } else {
            self.planned += 1;
            self.pushed_far += 1;
            self.far.push(Reverse((time, self.planned, Far(event))));
        }
    }

    /// Changes the width or the number of the slots if another one seems better.
    #[cold]
    fn adapt(&mut self) {
        let shift = if self.moved > LOOK * MOST_MOVED {
            self.shift.saturating_sub(STEP)
        } else if self.pushed_far > LOOK / 4 * 3 {
            (self.shift + STEP).min(40)
        } else {
            self.shift
        };
        self.pushed = 0;
        self.pushed_far = 0;
        self.moved = 0;
        let slots = match self.wheel.len() {
            slots if self.length > MOST_PLANNED * slots => (slots << STEP).min(MOST_SLOTS),
            slots if self.length < slots / MOST_EMPTY => (slots >> STEP).max(FEWEST_SLOTS),
            slots => slots,
        };
        if (shift, slots) != (self.shift, self.wheel.len()) {
            self.change_slots(shift, slots);
        }
    }

    /// Puts all events of the wheel into slots of another width or number, in order.
    fn change_slots(&mut self, shift: u32, slots: usize) {
        let mut events: Vec<_> = self.present.drain(..).skip(self.next).collect();
        while let Some(slot) = self.next_occupied() {
            let place = self.place_of(slot);
            self.occupied[place / 64] &= !(1 << (place % 64));
            events.append(&mut self.wheel[place]);
        }
        self.wheel.resize_with(slots, Vec::new);
        self.occupied.resize(slots / 64, 0);
        events.sort_by_key(|&(time, _)| time);
        self.next = 0;
        self.shift = shift;
        self.slot = self.now.0 >> shift;
        self.reach_far();
        events.into_iter().for_each(|(time, event)| self.place(time, event));
    }

    /// Takes the events that the wheel reaches now from the heap.
    fn reach_far(&mut self) {
        while let Some(Reverse((time, ..))) = self.far.peek() {
            if (time.0 >> self.shift) - self.slot >= self.wheel.len() as u64 {
                return;
            }
            if let Some(Reverse((time, _, Far(event)))) = self.far.pop() {
                self.place(time, event);
            }
        }
    }

    /// The place of a slot in the wheel.
    #[inline]
    fn place_of(&self, slot: u64) -> usize {
        slot as usize & (self.wheel.len() - 1)
    }

    #[inline]
    fn put(&mut self, slot: u64, time: Time, event: E) {
        let place = self.place_of(slot);
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

    /// Advances to the time of the next event; returns false if there is none. The present must be used up.
    pub(crate) fn advance(&mut self) -> bool {
        if self.next == self.present.len() && !self.turn() {
            return false;
        }
        self.now = self.present[self.next].0;
        true
    }

    /// The next event of the present time, which stays.
    #[inline]
    pub(crate) fn peek_present(&self) -> Option<E> {
        self.present.get(self.next).filter(|&&(time, _)| time == self.now).map(|&(_, event)| event)
    }

    /// Advances to the time of the next event if that is before `end`; returns false if it is not, or there is none. The
    /// present must be used up.
    #[inline]
    pub(crate) fn advance_before(&mut self, end: Time) -> bool {
        self.next_time().is_some_and(|next| next < end) && self.advance()
    }

    /// The time of the next event, which may be the present; `None` if nothing is planned.
    pub(crate) fn next_time(&self) -> Option<Time> {
        if let Some(&(time, _)) = self.present.get(self.next) {
            return Some(time);
        }
        let in_slot = |slot: u64| self.wheel[self.place_of(slot)].iter().map(|&(time, _)| time).min();
        let far = self.far.peek().map(|Reverse((time, ..))| *time);
        self.next_occupied().and_then(in_slot).into_iter().chain(far).min()
    }

    /// Advances to a time that is not after the next event.
    pub(crate) fn pass_to(&mut self, time: Time) {
        debug_assert!(
            time >= self.now && self.next_time().is_none_or(|next| time <= next),
            "an event would be left behind"
        );
        self.now = time;
    }

    /// Turns the wheel to the next slot with events.
    fn turn(&mut self) -> bool {
        self.present.clear();
        self.next = 0;
        let near = self.next_occupied();
        let far = self.far.peek().map(|Reverse((time, ..))| time.0 >> self.shift);
        let Some(slot) = near.into_iter().chain(far).min() else { return false };
        self.slot = slot;
        let place = self.place_of(slot);
        self.occupied[place / 64] &= !(1 << (place % 64));
        std::mem::swap(&mut self.present, &mut self.wheel[place]);
        // Stable, so events of one time stay in the order of planning.
        self.present.sort_by_key(|&(time, _)| time);
        self.reach_far();
        true
    }

    /// The next slot of the wheel that is not empty.
    fn next_occupied(&self) -> Option<u64> {
        let (first, slots) = (self.place_of(self.slot), self.wheel.len());
        let words = slots / 64;
        for step in 0..=words {
            let word = (first / 64 + step) & (words - 1);
            let mut bits = self.occupied[word];
            if step == 0 {
                bits &= u64::MAX << (first % 64);
            } else if step == words {
                bits &= !(u64::MAX << (first % 64));
            }
            if bits != 0 {
                let place = word * 64 + bits.trailing_zeros() as usize;
                return Some(self.slot + ((place + slots - first) & (slots - 1)) as u64);
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
        fn events_come_by_time_and_then_in_the_order_of_planning(
            reach in 1_u64..10_000_000,
            steps in proptest::collection::vec((0_u64..5, 0_u64..2000), 1..400)
        ) {
            let (mut queue, mut model, mut seen) = (Queue::new(Span(reach)), Vec::new(), Vec::new());
            for (index, &(pops, ahead)) in steps.iter().enumerate() {
                let time = queue.now() + Span(ahead * ahead);
                queue.push(time, index);
                model.push((time, index));
                let next = queue.next_time().expect("one is planned");
                if ahead % 3 == 0 {
                    queue.pass_to(Time((queue.now().0 + next.0) / 2));
                }
                for _ in 0..pops {
                    if let Some(event) = queue.pop_present() {
                        seen.push((queue.now(), event));
                    } else if !queue.advance() {
                        break;
                    }
                    if let Some(time) = queue.next_time() {
                        prop_assert_eq!(Some(time), model.iter().filter(|one| !seen.contains(one)).map(|one| one.0).min());
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
