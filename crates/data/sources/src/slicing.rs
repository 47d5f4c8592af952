//! Slices of the time: which there are, and which of them hold a time.

use evb_core::{EventId, Span};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The slices of the time: event n is slice n, counted from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slicing {
    /// Time from the start of a slice to that of the next one, in whole nanoseconds.
    pub length: Span,
    /// Time after its end whose hits belong to a slice, too.
    pub overlap: Span,
    /// Start of the first slice in nanoseconds, by the clock of the hits; 0 if the file does not say.
    pub from_ns: Option<u64>,
}

impl Slicing {
    /// Start of the first slice in nanoseconds.
    pub(crate) fn start(&self) -> u64 {
        self.from_ns.unwrap_or(0)
    }

    /// From the start of a slice to that of the next one, in nanoseconds.
    fn length_ns(&self) -> u64 {
        nanoseconds(self.length).max(1)
    }

    /// The time of a slice with its overlap, in nanoseconds.
    pub fn window(&self, slice: EventId) -> Range<u64> {
        let start = self.start().saturating_add(slice.0.saturating_sub(1).saturating_mul(self.length_ns()));
        start..start.saturating_add(self.length_ns()).saturating_add(nanoseconds(self.overlap))
    }
}

/// The slices that hold a time of a live source, which may be before all of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows {
    slicing: Slicing,
    /// Start of the first slice, length of all and of their overlaps, in nanoseconds.
    pub(crate) from: i64,
    pub(crate) length: i64,
    overlap: i64,
}

impl Windows {
    pub(crate) fn new(slicing: &Slicing) -> Self {
        let (from, length) = (signed(slicing.start()), signed(slicing.length_ns()));
        Self { slicing: *slicing, from, length, overlap: signed(nanoseconds(slicing.overlap)) }
    }

    /// The first slice that ends behind this time, its overlap included: all before it are over.
    pub(crate) fn first(self, time: i64) -> u64 {
        let since = time.saturating_sub(self.from).saturating_sub(self.overlap);
        u64::try_from(since.div_euclid(self.length).saturating_add(1)).unwrap_or(0).max(1)
    }

    /// The last slice that has begun at this time; 0 if none has.
    pub(crate) fn last(self, time: i64) -> u64 {
        u64::try_from(time.saturating_sub(self.from).div_euclid(self.length).saturating_add(1)).unwrap_or(0)
    }

    /// The end of a slice, its overlap included.
    pub(crate) fn end(self, slice: u64) -> i64 {
        signed(self.slicing.window(EventId(slice)).end)
    }
}

const fn nanoseconds(span: Span) -> u64 {
    span.0 / 1000
}

fn signed(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slice is the first and the last one of its times as its window says.
    #[test]
    fn the_slices_of_a_time_are_those_whose_windows_hold_it() {
        let slicing = Slicing { length: Span::from_micros(10), overlap: Span::from_micros(25), from_ns: Some(70_000) };
        let windows = Windows::new(&slicing);
        for time in (0..200_000).step_by(500) {
            let holds = |slice: &u64| slicing.window(EventId(*slice)).contains(&time);
            let held: Vec<_> = (1..=20).filter(holds).collect();
            let time = time as i64;
            let found: Vec<_> = (windows.first(time)..=windows.last(time)).collect();
            assert_eq!(found, held, "{time}");
            assert!(windows.end(windows.first(time)) > time);
        }
    }
}
