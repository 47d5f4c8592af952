//! Free bytes of a buffer, as the sender of its link knows them.
//!
//! STOP/GO and byte credits are one flow control: the sender knows, one reaction time late, how many bytes have left
//! the buffer. So there is a formula for the time at which a worm leaves a link, with an error of a few bytes at the
//! border between two worms.

use super::UNKNOWN;
use evb_core::{Span, Time};
use std::collections::VecDeque;

/// Free bytes of a buffer as its sender knows them.
pub(super) struct Credit {
    /// Bytes known to be free.
    pub(super) free: u32,
    /// The oldest bytes that the sender will learn to be free: how many, or 0, and when.
    bytes: u32,
    time: Time,
    /// The others, in order. Mostly there are none.
    later: Option<Box<LaterCredit>>,
}

/// Bytes that come back later, boxed since mostly there are none.
#[derive(Default)]
struct LaterCredit {
    /// Portions like the oldest one that follow it, and their distance in time.
    more: u32,
    spacing: Span,
    others: VecDeque<Portions>,
}

/// Portions of equal size that come back at equal distances in time.
struct Portions {
    time: Time,
    bytes: u32,
    count: u32,
    spacing: Span,
}

impl Portions {
    fn one(time: Time, bytes: u32) -> Self {
        Self { time, bytes, count: 1, spacing: Span::ZERO }
    }

    /// Time of the last one.
    fn last(&self) -> Time {
        self.time + self.spacing * u64::from(self.count - 1)
    }
}

impl Credit {
    pub(super) fn new(free: u32) -> Self {
        Self { free, bytes: 0, time: Time::ZERO, later: None }
    }

    /// Bytes will be known to be free at `time`. Returns false if that is before the last of several equal portions, where
    /// it cannot be noted.
    #[inline]
    pub(super) fn give_back(&mut self, time: Time, bytes: u32) -> bool {
        if self.bytes == 0 {
            self.time = time;
            self.bytes = bytes;
            return true;
        }
        let later = self.later.get_or_insert_default();
        let last = later.others.back().map_or_else(|| self.time + later.spacing * later.more.into(), Portions::last);
        if last <= time {
            later.others.push_back(Portions::one(time, bytes));
            return true;
        }
        self.give_back_before(time, bytes)
    }

    /// As [`give_back`](Self::give_back), before others: between links of different rates, a packet may leave before the one
    /// that was in front of it.
    #[cold]
    fn give_back_before(&mut self, time: Time, bytes: u32) -> bool {
        let Some(later) = &mut self.later else { return false };
        if later.more > 0 || later.others.iter().any(|other| other.count > 1) {
            return false;
        }
        let mut one = Portions::one(time, bytes);
        if one.time < self.time {
            std::mem::swap(&mut self.time, &mut one.time);
            std::mem::swap(&mut self.bytes, &mut one.bytes);
        }
        let place = later.others.partition_point(|other| other.time <= one.time);
        later.others.insert(place, one);
        true
    }

    /// Portions of these many bytes will be known to be free, the first at `time`.
    pub(super) fn give_back_evenly(&mut self, time: Time, bytes: u32, count: u32, spacing: Span) {
        let later = self.later.get_or_insert_default();
        if self.bytes == 0 {
            self.time = time;
            self.bytes = bytes;
            later.more = count - 1;
            later.spacing = spacing;
        } else {
            later.others.push_back(Portions { time, bytes, count, spacing });
        }
    }

    /// The last portions of this size that were to come back do not. Those that have come back already are taken
    /// back.
    pub(super) fn withhold(&mut self, count: u32, bytes: u32) {
        let Some(later) = &mut self.later else { return };
        let left = match later.others.back() {
            Some(last) => last.count,
            None if self.bytes > 0 => later.more + 1,
            None => 0,
        };
        match later.others.back_mut() {
            Some(last) if last.count > count => last.count -= count,
            Some(_) => drop(later.others.pop_back()),
            None if later.more >= count => later.more -= count,
            None => (self.bytes, later.more) = (0, 0),
        }
        self.free -= count.saturating_sub(left) * bytes;
    }

    /// Takes in what has come back by now.
    #[inline]
    pub(super) fn settle(&mut self, now: Time) {
        while self.bytes > 0 && self.time <= now {
            self.free += self.bytes;
            match &mut self.later {
                None => self.bytes = 0,
                Some(later) => (self.time, self.bytes) = later.after(self.time, self.bytes, now, &mut self.free),
            }
        }
    }

    /// Bytes that are known to be free at `now`.
    pub(super) fn free_at(&self, now: Time) -> u32 {
        let mut free = self.free;
        for (time, bytes, count, spacing) in self.portions().take_while(|&(time, ..)| time <= now) {
            let come = now.since(time).0.checked_div(spacing.0).map_or(count, |gone| count.min(gone as u32 + 1));
            free += bytes * come;
        }
        free
    }

    /// The portions that come back later: the time of the first of them, their bytes, their number and their spacing.
    fn portions(&self) -> impl Iterator<Item = (Time, u32, u32, Span)> {
        let (more, spacing) = self.later.as_ref().map_or((0, Span::ZERO), |later| (later.more, later.spacing));
        let oldest = (self.bytes > 0).then_some((self.time, self.bytes, more + 1, spacing));
        let others = self.later.iter().flat_map(|later| &later.others);
        let others = others.map(|portions| (portions.time, portions.bytes, portions.count, portions.spacing));
        oldest.into_iter().chain(others)
    }

    /// Takes `count` portions, one after the other from `first` on, each when all has come back that is free by then;
    /// returns the fewest bytes that were free after one of them.
    pub(super) fn take_evenly(&mut self, first: Time, spacing: Span, count: u32, bytes: u32) -> u32 {
        let (mut least, mut taken) = (u32::MAX, 0);
        while taken < count {
            let now = first + spacing * taken.into();
            self.settle(now);
            self.free -= bytes;
            least = least.min(self.free);
            taken += 1;
            taken += self.balance(now, spacing, bytes, count - taken);
        }
        least
    }

    /// Skips the portions that come back one at a time, each just before one like it is taken; returns their number, at
    /// most `most`. The last portion was taken at `now`.
    fn balance(&mut self, now: Time, spacing: Span, bytes: u32, most: u32) -> u32 {
        let Some(later) = &mut self.later else { return 0 };
        let is_even = self.bytes == bytes && later.spacing == spacing && later.more > 0;
        if !is_even || self.time <= now || self.time > now + spacing {
            return 0;
        }
        let skipped = later.more.min(most);
        later.more -= skipped;
        self.time = self.time + spacing * skipped.into();
        skipped
    }

    /// Time at which `need` bytes will be known to be free, or [`UNKNOWN`]; at once is 0.
    #[inline]
    pub(super) fn room_at(&self, need: u32) -> Time {
        if self.free >= need {
            Time::ZERO
        } else if self.bytes == 0 {
            UNKNOWN
        } else if self.free + self.bytes >= need {
            self.time
        } else {
            self.room_later(need)
        }
    }

    /// Time at which more than the oldest portion will have come back.
    fn room_later(&self, need: u32) -> Time {
        let mut missing = need - self.free;
        for (time, bytes, count, spacing) in self.portions() {
            let needed = missing.div_ceil(bytes);
            if needed <= count {
                return time + spacing * u64::from(needed - 1);
            }
            missing -= bytes * count;
        }
        UNKNOWN
    }
}

impl LaterCredit {
    /// The next portion after one that came back at `time`: when, and how many bytes. Equal ones that have come back by
    /// now are added to `free`.
    fn after(&mut self, time: Time, bytes: u32, now: Time, free: &mut u32) -> (Time, u32) {
        if self.more > 0 {
            let gone = (now.since(time).0 / self.spacing.0).min((self.more - 1).into()) as u32;
            *free += gone * bytes;
            self.more -= gone + 1;
            return (time + self.spacing * u64::from(gone + 1), bytes);
        }
        let Some(next) = self.others.pop_front() else { return (Time::ZERO, 0) };
        self.more = next.count - 1;
        self.spacing = next.spacing;
        (next.time, next.bytes)
    }
}
