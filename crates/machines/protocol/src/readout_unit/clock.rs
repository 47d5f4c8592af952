//! The clock of a front end beside the clock of the host.
//!
//! A narrow clock wraps, and a silent one says nothing. The time of the host tells in both cases how far the clock must
//! have come.

use evb_coincidence::ClockSettings;
use evb_core::Time;

/// Largest difference of the rates of the two clocks: 50 parts in a million.
const DRIFT: i64 = 20_000;

/// A clock that is unwrapped, and compared with the time of arrivals.
pub(super) struct FrontEndClock {
    settings: ClockSettings,
    /// The latest value, unwrapped, and the time at which its fragment came.
    latest: Option<(u64, Time)>,
    /// The first value, and the shortest delivery: time of the host minus time of the clock since the first value, in
    /// picoseconds, with the time at which it was seen.
    first: u64,
    shortest: Option<(i64, Time)>,
}

impl FrontEndClock {
    pub(super) const fn new(settings: ClockSettings) -> Self {
        Self { settings, latest: None, first: 0, shortest: None }
    }

    pub(super) const fn settings(&self) -> &ClockSettings {
        &self.settings
    }

    /// Unwraps the value of a fragment. If nothing waited since the last one (`was_silent`), the time of its arrival tells
    /// how often the clock has wrapped. Else the clock has made the smallest step forward, or one within the sort depth
    /// backward.
    pub(super) fn unwrap(&mut self, raw: u64, arrived: Time, was_silent: bool) -> u64 {
        let Some((latest, at)) = self.latest else {
            (self.latest, self.first) = (Some((raw, arrived)), raw);
            self.note_delivery(raw, arrived);
            return raw;
        };
        let elapsed = if was_silent { self.ticks(arrived.since(at).0) } else { 0 };
        let ticks = self.unwrap_from(latest, raw, elapsed);
        if ticks.wrapping_sub(latest) as i64 > 0 {
            self.latest = Some((ticks, arrived));
        }
        self.note_delivery(ticks, arrived);
        ticks
    }

    fn unwrap_from(&self, latest: u64, raw: u64, elapsed: u64) -> u64 {
        let bits = u32::from(self.settings.bits);
        if !(1..64).contains(&bits) {
            return raw;
        }
        let range = 1_u64 << bits;
        let backward = self.ticks(self.settings.sort_depth.0).min(range / 2);
        // The nearest value to the one that is expected, or the next one behind what may come late.
        let lowest = if elapsed > range / 2 { elapsed - range / 2 } else { 0_u64.wrapping_sub(backward) };
        let from = latest.wrapping_add(lowest);
        from.wrapping_add(raw.wrapping_sub(from) & (range - 1))
    }

    /// Ticks in a length of time in picoseconds.
    fn ticks(&self, picoseconds: u64) -> u64 {
        let ticks = u128::from(picoseconds) * 1000 / u128::from(self.settings.tick_fs.max(1));
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }

    /// Picoseconds of a value since the first one.
    fn local(&self, ticks: u64) -> i64 {
        let exact = i128::from(ticks.wrapping_sub(self.first) as i64) * i128::from(self.settings.tick_fs) / 1000;
        exact.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    fn note_delivery(&mut self, ticks: u64, arrived: Time) {
        let delivery = (arrived.0 as i64).saturating_sub(self.local(ticks));
        if self.shortest_at(arrived).is_none_or(|shortest| delivery <= shortest) {
            self.shortest = Some((delivery, arrived));
        }
    }

    /// The shortest delivery at a time of the host. What was seen long ago may have changed by the drift of the clocks.
    fn shortest_at(&self, now: Time) -> Option<i64> {
        let (shortest, seen) = self.shortest?;
        Some(shortest.saturating_add(now.since(seen).0 as i64 / DRIFT))
    }

    /// The value before which no fragment comes, if nothing waits at this time: that of a fragment that was delivered as
    /// fast as any, minus the sort depth. The sort depth covers the differences of delivery, too.
    pub(super) fn frontier(&self, now: Time) -> Option<u64> {
        let local =
            (now.0 as i64).checked_sub(self.shortest_at(now)?)?.checked_sub(self.settings.sort_depth.0 as i64)?;
        let ticks = i128::from(local) * 1000 / i128::from(self.settings.tick_fs.max(1));
        Some(self.first.wrapping_add(i64::try_from(ticks).ok()? as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evb_core::Span;

    const MS: u64 = 1_000_000_000;

    /// A clock of 16 bits with ticks of 1 us: it wraps every 65.536 ms.
    fn clock() -> FrontEndClock {
        let settings =
            ClockSettings { tick_fs: 1_000_000_000, bits: 16, sort_depth: Span(MS), ..ClockSettings::default() };
        FrontEndClock::new(settings)
    }

    #[test]
    fn a_narrow_clock_makes_the_smallest_step_or_the_one_that_the_host_has_seen() {
        let mut clock = clock();
        assert_eq!(clock.unwrap(65_000, Time(0), false), 65_000);
        assert_eq!(clock.unwrap(464, Time(MS), false), 66_000, "it has wrapped");
        assert_eq!(clock.unwrap(65_500, Time(MS), false), 65_500, "within the sort depth");
        let later = Time(1001 * MS);
        assert_eq!(clock.unwrap((1_066_000_u64 % 65_536) as u16 as u64, later, true), 1_066_000, "after a second");
    }

    #[test]
    fn a_clock_may_come_late_before_its_first_value() {
        let mut clock = clock();
        clock.unwrap(3, Time(0), false);
        assert_eq!(clock.unwrap(65_535, Time(0), false), u64::MAX, "four ticks before");
    }

    #[test]
    fn the_frontier_of_a_silent_clock_follows_the_host() {
        let mut clock = clock();
        assert_eq!(clock.frontier(Time(MS)), None, "never heard");
        clock.unwrap(1000, Time(7 * MS), false);
        clock.unwrap(3000, Time(8 * MS), false);
        // The second came one millisecond faster.
        assert_eq!(clock.frontier(Time(10 * MS)), Some(4000 - 1));
    }
}
