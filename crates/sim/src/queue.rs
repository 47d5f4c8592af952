//! The event queue: a radix heap over integer time, first in first out among equal times.

/// Events in the order of their times; those of one time in the order in which they were planned. This is the
/// simulator's total order of events.
///
/// A radix heap: an event lies in the bucket of the highest bit in which its time differs from the present. Each event
/// moves to lower buckets at most once per bit, in order, so equal times never overtake each other. It relies on that
/// nothing is planned for the past.
pub(crate) struct Queue<E> {
    now: u64,
    /// Which buckets above the first are not empty.
    occupied: u64,
    /// Events of the present time, in order; those before `next` are gone.
    present: Vec<E>,
    next: usize,
    /// Bucket b holds the times that differ from `now` first in bit b.
    buckets: Vec<Vec<(u64, E)>>,
    length: usize,
}

impl<E: Copy> Queue<E> {
    pub(crate) fn new() -> Self {
        let buckets = (0..64).map(|_| Vec::new()).collect();
        Self { now: 0, occupied: 0, present: Vec::new(), next: 0, buckets, length: 0 }
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
        self.length += 1;
        if time <= self.now {
            self.present.push(event);
        } else {
            let bucket = 63 - (time ^ self.now).leading_zeros();
            self.occupied |= 1 << bucket;
            self.buckets[bucket as usize].push((time, event));
        }
    }

    /// The next event of the present time.
    #[inline]
    pub(crate) fn pop_present(&mut self) -> Option<E> {
        let event = *self.present.get(self.next)?;
        self.next += 1;
        self.length -= 1;
        Some(event)
    }

    /// Goes on to the time of the next event; false when there is none. The present must be used up.
    pub(crate) fn advance(&mut self) -> bool {
        debug_assert_eq!(self.next, self.present.len(), "events of the present are left");
        self.present.clear();
        self.next = 0;
        if self.occupied == 0 {
            return false;
        }
        let bucket = self.occupied.trailing_zeros() as usize;
        self.occupied &= !(1 << bucket);
        let mut events = std::mem::take(&mut self.buckets[bucket]);
        self.now = events.iter().map(|&(time, _)| time).min().expect("an occupied bucket is not empty");
        for &(time, event) in &events {
            if time == self.now {
                self.present.push(event);
            } else {
                let lower = 63 - (time ^ self.now).leading_zeros();
                self.occupied |= 1 << lower;
                self.buckets[lower as usize].push((time, event));
            }
        }
        events.clear();
        // The emptied bucket keeps its memory.
        self.buckets[bucket] = events;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn gives_events_by_time_and_then_in_the_order_of_planning(
            steps in proptest::collection::vec((0_u64..5, 0_u64..2000), 1..400)
        ) {
            let (mut queue, mut model, mut seen) = (Queue::new(), Vec::new(), Vec::new());
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
