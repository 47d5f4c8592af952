//! Counts over time in bounded memory.

use evb_core::Time;
use serde::{Deserialize, Serialize};

/// Most moments that are kept. When there are more, every second one is dropped and the spacing doubles. So a time that
/// is not very short has between half as many and this many moments.
pub const MARKS: usize = 256;

/// The first spacing: one microsecond in picoseconds.
const FIRST_SPACING: u64 = 1_000_000;

/// Index of the offered count: triggers or messages that arrived, accepted or turned away.
pub const OFFERED: usize = 0;
/// Index of the started count: events triggered, or messages sent. The window ends when it stops growing.
pub const STARTED: usize = 1;
/// Index of the ended count: events or cycles that ended, or messages that arrived. The rate is taken from it.
pub const ENDED: usize = 2;
/// Index of the done count: the part of the offered load that is done, in the unit of [`OFFERED`].
pub const DONE: usize = 3;
/// Number of counts that a window is found by; others may follow them.
pub const RATES: usize = 4;

/// Counts at equally spaced moments. Every count only grows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Start of the series, in picoseconds as all moments and spans.
    start: u64,
    spacing: u64,
    /// Number of counts at each moment.
    counts: usize,
    /// The counts at the start, one spacing later, and so on, in one list.
    marks: Vec<u64>,
    /// Time of the next mark.
    next: u64,
    /// Time at which the trigger or the senders were stopped, and the counts at that time.
    stopped: Option<(u64, Vec<u64>)>,
    /// Time of the end, and the counts at that time.
    ended: Option<(u64, Vec<u64>)>,
}

impl Series {
    /// A series that begins with these counts.
    pub fn new(start: Time, counts: &[u64]) -> Self {
        Self {
            start: start.0,
            spacing: FIRST_SPACING,
            counts: counts.len(),
            marks: counts.to_vec(),
            next: start.0 + FIRST_SPACING,
            stopped: None,
            ended: None,
        }
    }

    /// Returns true if [`mark`](Self::mark) must be called before anything that happens at `now` is counted.
    #[inline]
    pub fn is_due(&self, now: Time) -> bool {
        now.0 >= self.next
    }

    /// The next moment at which a mark is due.
    pub fn next_mark(&self) -> Time {
        Time(self.next)
    }

    /// Stores the counts from before `now` for all moments up to it.
    pub fn mark(&mut self, now: Time, counts: &[u64]) {
        while self.is_due(now) {
            // Dropping before the marks are stored leaves the same ones as dropping after it.
            if (now.0 - self.start) / self.spacing >= MARKS as u64 {
                self.drop_every_second();
            } else {
                self.marks.extend_from_slice(counts);
            }
            self.next = self.time(self.len()).0;
        }
    }

    /// Stores the counts at the time when the trigger or the senders stop.
    pub fn stop(&mut self, now: Time, counts: &[u64]) {
        self.mark(now, counts);
        self.stopped.get_or_insert_with(|| (now.0, counts.to_vec()));
    }

    /// Stores the counts at the end of the last event; later counts are ignored. In case of several calls the last one
    /// counts.
    pub fn end(&mut self, now: Time, counts: &[u64]) {
        self.mark(now, counts);
        self.ended = Some((now.0, counts.to_vec()));
    }

    /// The end of the series; its start if it has not ended.
    pub fn ended_at(&self) -> Time {
        self.ended.as_ref().map_or(self.start(), |(at, _)| Time(*at))
    }

    /// The start of the series.
    pub fn start(&self) -> Time {
        Time(self.start)
    }

    /// The sum of the series of several nodes, all of which began at the same time. The trigger counts as stopped when the
    /// first node stopped it. An empty list makes an empty series.
    pub fn sum(all: &[Self]) -> Self {
        let Some(first) = all.iter().max_by_key(|one| one.spacing) else { return Self::default() };
        let (start, spacing, counts) = (first.start, first.spacing, first.counts);
        let last = |one: &Self| one.time(one.len().saturating_sub(1));
        let len = 1 + all.iter().map(last).max().unwrap_or_default().since(Time(start)).0 / spacing;
        let marks = (0..len).flat_map(|mark| {
            let place = move |one: &Self| (mark * (spacing / one.spacing)) as usize;
            (0..counts).map(move |count| all.iter().map(|one| one.known(place(one), count)).sum())
        });
        let sum_at = |at: u64| {
            (at, (0..counts).map(|count| all.iter().map(|one| one.at(Time(at), count) as u64).sum()).collect())
        };
        let stopped = all.iter().filter_map(|one| Some(one.stopped.as_ref()?.0)).min();
        let ended = all.iter().filter_map(|one| Some(one.ended.as_ref()?.0)).max();
        Self {
            start,
            spacing,
            counts,
            marks: marks.collect(),
            next: start + len * spacing,
            stopped: stopped.map(sum_at),
            ended: ended.map(sum_at),
        }
    }

    /// The same series with one of its counts divided by a number.
    #[must_use]
    pub fn divided(mut self, count: usize, by: u64) -> Self {
        let places = self.marks.iter_mut().skip(count).step_by(self.counts.max(1));
        places.for_each(|value| *value /= by);
        for (_, counts) in self.stopped.iter_mut().chain(&mut self.ended) {
            counts[count] /= by;
        }
        self
    }

    /// One of the counts at the first mark that is not before a moment, or at the end if that comes first.
    pub fn next_known(&self, moment: Time, count: usize) -> u64 {
        self.known(moment.since(self.start()).0.div_ceil(self.spacing) as usize, count)
    }

    /// One of the counts at a mark, or at the end if the mark is behind it.
    fn known(&self, mark: usize, count: usize) -> u64 {
        match &self.ended {
            _ if mark < self.len() => self.counted(mark, count),
            Some((_, counts)) => counts[count],
            None => self.len().checked_sub(1).map_or(0, |last| self.counted(last, count)),
        }
    }

    /// Number of marks.
    pub(crate) fn len(&self) -> usize {
        self.marks.len().checked_div(self.counts).unwrap_or(0)
    }

    /// Time of a mark.
    pub(crate) fn time(&self, mark: usize) -> Time {
        Time(self.start + self.spacing * mark as u64)
    }

    /// One of the counts at a mark.
    pub(crate) fn counted(&self, mark: usize, count: usize) -> u64 {
        self.marks[mark * self.counts + count]
    }

    /// Time at which the trigger or the senders were stopped; `None` if they ended by number.
    pub(crate) fn stopped(&self) -> Option<Time> {
        self.stopped.as_ref().map(|(at, _)| Time(*at))
    }

    /// The last mark before the last start of an event.
    pub(crate) fn last_start(&self) -> Time {
        let all = self.ended.as_ref().map_or(0, |(_, counts)| counts[STARTED]);
        let before = (0..self.len()).rev().find(|&mark| self.counted(mark, STARTED) < all);
        before.map_or(self.start(), |mark| self.time(mark))
    }

    /// All moments at which one of the counts is known, in no order.
    pub(crate) fn points(&self, count: usize) -> impl Iterator<Item = (Time, u64)> {
        let marks = (0..self.len()).map(move |mark| (self.time(mark), self.counted(mark, count)));
        let singles = self.stopped.iter().chain(&self.ended).map(move |(at, counts)| (Time(*at), counts[count]));
        marks.chain(singles)
    }

    /// One of the counts at a moment, interpolated linearly between the nearest marks.
    pub fn at(&self, moment: Time, count: usize) -> f64 {
        let points = || self.points(count);
        // At one moment the end comes after a mark, and has counted what happened just then.
        let before = points().filter(|(at, _)| *at <= moment).max().or(points().min()).unwrap_or_default();
        let after = points().filter(|(at, _)| *at > moment).min().unwrap_or(before);
        let span = after.0.since(before.0).0 as f64;
        let part = if span > 0.0 { moment.since(before.0).0 as f64 / span } else { 0.0 };
        // A mark behind the last event can have been made before that event was counted.
        before.1 as f64 + part * after.1.saturating_sub(before.1) as f64
    }

    /// The mean rate of one of the counts between two moments, per second; 0 if they are equal.
    pub fn rate(&self, (from, to): (Time, Time), count: usize) -> f64 {
        let seconds = to.since(from).as_secs_f64();
        if seconds > 0.0 { (self.at(to, count) - self.at(from, count)) / seconds } else { 0.0 }
    }

    fn drop_every_second(&mut self) {
        let (counts, kept) = (self.counts, self.len().div_ceil(2));
        for mark in 1..kept {
            self.marks.copy_within(2 * mark * counts..(2 * mark + 1) * counts, mark * counts);
        }
        self.marks.truncate(kept * counts);
        self.spacing *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(us: u64) -> Time {
        Time(us * 1_000_000)
    }

    /// A series of something that happens once every `every_us`.
    fn regular(every_us: u64, until_us: u64) -> Series {
        let mut series = Series::new(Time::ZERO, &[0]);
        for n in 1..=until_us / every_us {
            series.mark(moment(n * every_us), &[n - 1]);
        }
        series.end(moment(until_us), &[until_us / every_us]);
        series
    }

    #[test]
    fn memory_is_bounded_and_the_spacing_doubles() {
        for until in [10, 255, 256, 257, 1000, 1_000_000] {
            let series = regular(1, until);
            assert!(series.len() <= MARKS, "{until}: {}", series.len());
            assert!(until < 256 || series.len() >= MARKS / 2, "{until}: {}", series.len());
            assert!((series.rate((Time::ZERO, moment(until)), 0) - 1e6).abs() < 1e-6, "{until}");
        }
    }

    #[test]
    fn long_silence_is_marked_too() {
        let mut series = Series::new(Time::ZERO, &[0]);
        series.mark(moment(10), &[7]);
        series.mark(moment(100_000), &[7]);
        series.end(moment(100_000), &[8]);
        assert_eq!(series.at(moment(50_000), 0), 7.0);
        assert_eq!(series.at(moment(100_000), 0), 8.0);
        assert!(series.len() <= MARKS);
    }

    #[test]
    fn the_sum_of_series_of_different_lengths_counts_everything() {
        let (short, long) = (regular(1, 300), regular(2, 100_000));
        let sum = Series::sum(&[short.clone(), long.clone()]);
        for us in [0, 150, 300, 5_000, 99_999, 100_000] {
            let (at, apart) = (sum.at(moment(us), 0), short.at(moment(us), 0) + long.at(moment(us), 0));
            assert!((at - apart).abs() < 300.0, "{at} and {apart} after {us} us");
        }
        assert_eq!(sum.at(moment(100_000), 0), 50_300.0);
        assert_eq!(sum.clone().divided(0, 2).at(moment(100_000), 0), 25_150.0);
        assert!(sum.len() <= MARKS);
        assert_eq!(Series::sum(&[]), Series::default());
    }

    #[test]
    fn a_mark_behind_the_end_may_have_counted_less() {
        let mut series = Series::new(Time::ZERO, &[0]);
        series.mark(moment(100), &[10]);
        series.end(moment(95), &[11]);
        for us in 90..=100 {
            let at = series.at(moment(us), 0);
            assert!((10.0..=11.0).contains(&at), "{at} after {us} us");
        }
    }

    #[test]
    fn counts_between_marks_lie_on_a_straight_line() {
        let series = regular(1000, 100_000);
        let at = series.at(moment(50_300), 0);
        assert!((49.0..=51.0).contains(&at), "{at}");
    }
}
