//! The part of an offered load that was not done in time, for runs with and without a steady window.
//!
//! A load that is carried leaves little behind when the trigger stops, or always the same: the time from the arrival of an item to
//! its end does not grow. Of a load beyond reach each item waits longer than the one before.

use super::series::{DONE, OFFERED, Series};
use evb_core::Time;

/// Levels at which arrivals are compared with ends.
const LEVELS: usize = 30;

/// An offered load, and the part of it that was left behind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Backlog {
    /// Time for which the load was offered, in seconds.
    pub(crate) offered_s: f64,
    /// Time from then to the end of the series, in seconds.
    pub(crate) drain_s: f64,
    /// Part of the accepted items that were not done when the last one had been offered.
    pub(crate) left: f64,
    /// Growth of the time from arrival to end, per time: 0 if the load was carried, 1 if half of it was. `None` if nothing was
    /// done.
    pub(crate) growth: Option<f64>,
    /// Shortest time from arrival to end, in seconds, as if items ended in the order of their arrival. Infinite if nothing was done.
    pub(crate) shortest_s: f64,
    /// Rate of done items in the last third of the time, relative to the mean rate of accepted ones.
    pub(crate) late_rate: f64,
}

impl Backlog {
    /// The backlog of a series. The first `switched` items do not count, and of the others the part `accepted` was not turned
    /// away. `None` if nothing was offered.
    pub(crate) fn of(series: &Series, switched: u64, accepted: f64) -> Option<Self> {
        let (offered, done) = (Curve::of(series, OFFERED), Curve::of(series, DONE));
        let start = offered.start();
        let first = offered.first() + switched as f64;
        let stop = series.stopped().map_or_else(|| offered.reached(offered.last()), |at| Some(seconds(at)))?;
        let arrivals = offered.at(stop) - first;
        let (offered_s, drain_s) = (stop - start, (done.end() - stop).max(0.0));
        if arrivals <= 0.0 || offered_s <= 0.0 {
            return None;
        }
        let all = arrivals * accepted;
        let done_by = |at: f64| done.at(at) - done.first();
        let third = offered_s / 3.0;
        let late_rate = (done_by(stop) - done_by(stop - third)) / (all / 3.0);
        // Items that were under way at the start are done first. Where some are turned away, their number is not known.
        let earlier = if accepted < 1.0 { 0.0 } else { (offered.first() - done.first()).max(0.0) };
        let left = 1.0 - (done_by(stop) - earlier) / all;
        let times = |level: f64| {
            let arrival = offered.reached(first + level * arrivals)?;
            let end = done.reached(done.first() + earlier + level * all)?;
            Some((arrival, end - arrival))
        };
        let times: Vec<_> = (1..=LEVELS).map_while(|level| times(level as f64 / LEVELS as f64)).collect();
        let shortest_s = times.iter().map(|time| time.1).fold(f64::INFINITY, f64::min);
        Some(Self { offered_s, drain_s, left, growth: growth(&times), shortest_s, late_rate })
    }

    /// The part by which more was offered than carried, relative to what was carried: 1 at twice the load. Times grow by this
    /// part, the items that are left are this part at least, and the drain takes this part of the time at least. Single items
    /// scatter, so the least of them counts.
    pub(crate) fn excess(&self) -> f64 {
        let left = self.left.clamp(0.0, 1.0);
        let by_left = left / (1.0 - left);
        let by_drain = if self.drain_s > 0.0 { self.drain_s / self.offered_s } else { by_left };
        self.growth.unwrap_or(0.0).max(0.0).min(by_left).min(by_drain)
    }

    /// The part of the shortest time by which times grew while the load was offered. The first items meet an empty system, so
    /// times grow by some of it also if all is carried.
    pub(crate) fn growth_of_shortest(&self) -> f64 {
        self.excess() * self.offered_s / self.shortest_s.max(f64::MIN_POSITIVE)
    }
}

/// The slope of times by moments: from the mean of the first third to that of the last, since single items scatter.
fn growth(times: &[(f64, f64)]) -> Option<f64> {
    let third = times.len() / 3;
    if third == 0 {
        return None;
    }
    let mean = |part: &[(f64, f64)]| {
        let count = part.len() as f64;
        (part.iter().map(|one| one.0).sum::<f64>() / count, part.iter().map(|one| one.1).sum::<f64>() / count)
    };
    let ((early, short), (late, long)) = (mean(&times[..third]), mean(&times[times.len() - third..]));
    (late > early).then(|| (long - short) / (late - early))
}

/// One count over time, as points that a straight line connects. Neither moments nor counts decrease.
struct Curve(Vec<(f64, f64)>);

impl Curve {
    fn of(series: &Series, count: usize) -> Self {
        let mut points: Vec<_> = series.points(count).map(|(at, count)| (seconds(at), count as f64)).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
        // A mark behind the last event can have been made before that event was counted.
        let mut most = 0.0_f64;
        for point in &mut points {
            most = most.max(point.1);
            point.1 = most;
        }
        Self(points)
    }

    fn start(&self) -> f64 {
        self.0.first().map_or(0.0, |point| point.0)
    }

    fn end(&self) -> f64 {
        self.reached(self.last()).unwrap_or_default()
    }

    fn first(&self) -> f64 {
        self.0.first().map_or(0.0, |point| point.1)
    }

    fn last(&self) -> f64 {
        self.0.last().map_or(0.0, |point| point.1)
    }

    /// The count at a moment.
    fn at(&self, moment: f64) -> f64 {
        let next = self.0.partition_point(|point| point.0 <= moment);
        match (next.checked_sub(1).map(|before| self.0[before]), self.0.get(next)) {
            (Some(before), Some(after)) => before.1 + (after.1 - before.1) * (moment - before.0) / (after.0 - before.0),
            (Some(before), None) => before.1,
            (None, _) => self.first(),
        }
    }

    /// The moment at which a count was reached; `None` if it never was.
    fn reached(&self, count: f64) -> Option<f64> {
        // Sums of parts of a count can be off by a little.
        let count = count - 1e-6;
        let next = self.0.partition_point(|point| point.1 < count);
        let after = *self.0.get(next)?;
        let Some(before) = next.checked_sub(1).map(|before| self.0[before]) else { return Some(after.0) };
        Some(before.0 + (after.0 - before.0) * (count - before.1) / (after.1 - before.1))
    }
}

fn seconds(at: Time) -> f64 {
    at.0 as f64 * 1e-12
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    const UNIT: u64 = 1_000_000;

    /// Items that come every `every` and wait for a server that takes `service` for each, then take `delay` more, all in
    /// microseconds; the series ends when all are done.
    pub(in super::super) fn queue(items: u64, every: f64, service: f64, delay: f64) -> Series {
        let ends: Vec<f64> = (1..=items)
            .scan(0.0_f64, |free, item| {
                *free = free.max(item as f64 * every) + service;
                Some(*free + delay)
            })
            .collect();
        let mut moments: Vec<_> = (1..=items).map(|item| (item as f64 * every, 0)).collect();
        moments.extend(ends.iter().map(|end| (*end, 1)));
        moments.sort_by(|one, other| one.0.total_cmp(&other.0));
        let stop = (items as f64 * every * UNIT as f64) as u64;
        let (mut series, mut counts) = (Series::new(Time::ZERO, &[0; 4]), [0_u64; 4]);
        for (at, what) in moments {
            let now = Time((at * UNIT as f64) as u64);
            if now.0 > stop {
                series.stop(Time(stop), &counts);
            }
            series.mark(now, &counts);
            let counted: &[usize] = if what == 0 { &[0, 1] } else { &[2, 3] };
            counted.iter().for_each(|count| counts[*count] += 1);
        }
        series.stop(Time(stop), &counts);
        series.end(Time((ends[ends.len() - 1] * UNIT as f64) as u64), &counts);
        series
    }

    proptest! {
        /// The time of an item grows by what is not carried, however short the run is and however long an item takes.
        #[test]
        fn growth_is_what_is_not_carried(items in 20_u64..2000, load in 0.1_f64..10.0, delay in 0.0_f64..1000.0) {
            let series = queue(items, 10.0, 10.0 * load, delay);
            let found = Backlog::of(&series, 0, 1.0).expect("a load");
            let expected = (load - 1.0).max(0.0);
            let growth = found.growth.expect("a growth");
            prop_assert!((growth - expected).abs() < 0.02 + 0.1 * expected, "{growth} of {expected}: {found:?}");
        }
    }

    #[test]
    fn what_is_left_is_under_way_when_the_last_item_comes() {
        let found = Backlog::of(&queue(100, 10.0, 1.0, 99.0), 0, 1.0).expect("a load");
        assert!((found.offered_s - 1e-3).abs() < 1e-5 && (found.drain_s - 1e-4).abs() < 1e-5, "{found:?}");
        assert!((found.left - 0.1).abs() < 0.02, "{found:?}");
        assert_eq!(Backlog::of(&Series::new(Time::ZERO, &[0; 4]), 0, 1.0), None);
    }
}
