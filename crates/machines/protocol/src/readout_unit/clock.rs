//! The clock of a front end beside the clock of the host.
//!
//! A narrow clock wraps, and a silent one says nothing. The time of the host tells in both cases how far the clock must
//! have come.

use evb_coincidence::ClockSettings;
use evb_core::{Span, Time};

/// Largest difference of the rates of the two clocks: 50 parts in a million.
const DRIFT: i64 = 20_000;

/// A clock that is unwrapped, and compared with the time of arrivals.
pub(super) struct FrontEndClock {
    settings: ClockSettings,
    /// The latest value, unwrapped.
    latest: Option<u64>,
    /// The first value, and the shortest delivery: time of the host minus time of the clock since the first value, in
    /// picoseconds, with the time at which it was seen.
    first: u64,
    shortest: Option<(i64, Time)>,
}

impl FrontEndClock {
    pub(super) const fn new(settings: ClockSettings) -> Self {
        Self { settings, latest: None, first: 0, shortest: None }
    }

    /// Unwraps the value of a fragment. The clock has made the smallest step forward, or one within the sort depth backward.
    /// If nothing waited at some time since the last fragment, the clock is as far as then at least. How far it has come
    /// by the arrival cannot be said: the node may have been away since.
    pub(super) fn unwrap(&mut self, raw: u64, arrived: Time, silent_at: Option<Time>) -> u64 {
        let ticks = match self.latest {
            None => {
                (self.latest, self.first) = (Some(raw), raw);
                raw
            }
            Some(latest) => self.unwrap_from(latest, raw, silent_at),
        };
        if self.latest.is_some_and(|latest| ticks.wrapping_sub(latest) as i64 > 0) {
            self.latest = Some(ticks);
        }
        self.note_delivery(ticks, arrived);
        ticks
    }

    fn unwrap_from(&self, latest: u64, raw: u64, silent_at: Option<Time>) -> u64 {
        let bits = u32::from(self.settings.bits);
        if !(1..64).contains(&bits) {
            return raw;
        }
        let range = 1_u64 << bits;
        let sorted = latest.wrapping_sub(self.ticks(self.settings.sort_depth.0).min(range / 2));
        // A delivery that takes unusually long must not look like a wrap.
        let silent = silent_at.and_then(|at| self.frontier(at)).map(|frontier| frontier.wrapping_sub(range / 4));
        let is_ahead = |silent: &u64| silent.wrapping_sub(sorted) as i64 > 0;
        let from = silent.filter(is_ahead).unwrap_or(sorted);
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

    /// The longest time by which a fragment may come late.
    pub(super) fn late(&self) -> Span {
        self.settings.sort_depth.max(self.settings.latency)
    }

    /// The value before which no fragment comes, if nothing waits at this time: that of a fragment that was delivered as
    /// fast as any, minus the time by which one may be slower.
    pub(super) fn frontier(&self, now: Time) -> Option<u64> {
        let local = (now.0 as i64).checked_sub(self.shortest_at(now)?)?.checked_sub(self.late().0 as i64)?;
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
    fn a_narrow_clock_makes_the_smallest_step() {
        let mut clock = clock();
        assert_eq!(clock.unwrap(65_000, Time(0), None), 65_000);
        assert_eq!(clock.unwrap(464, Time(MS), None), 66_000, "it has wrapped");
        assert_eq!(clock.unwrap(65_500, Time(MS), None), 65_500, "within the sort depth");
    }

    #[test]
    fn a_silent_clock_is_as_far_as_the_host_has_seen() {
        let narrow = |ticks: u64| ticks & 0xffff;
        let mut clock = clock();
        clock.unwrap(1000, Time(0), None);
        let silent = Some(Time(999 * MS));
        assert_eq!(clock.unwrap(narrow(1_001_000), Time(1000 * MS), silent), 1_001_000, "after a second");
        // The node was away for a second after the silence, and the fragment waited for it.
        let silent = Some(Time(1999 * MS));
        assert_eq!(clock.unwrap(narrow(2_002_000), Time(3000 * MS), silent), 2_002_000);
        // This one was ten milliseconds on its way.
        let silent = Some(Time(3999 * MS));
        assert_eq!(clock.unwrap(narrow(3_990_000), Time(4000 * MS), silent), 3_990_000);
    }

    #[test]
    fn a_clock_may_come_late_before_its_first_value() {
        let mut clock = clock();
        clock.unwrap(3, Time(0), None);
        assert_eq!(clock.unwrap(65_535, Time(0), None), u64::MAX, "four ticks before");
    }

    #[test]
    fn the_frontier_of_a_silent_clock_follows_the_host() {
        let mut clock = clock();
        assert_eq!(clock.frontier(Time(MS)), None, "never heard");
        clock.unwrap(1000, Time(7 * MS), None);
        clock.unwrap(3000, Time(8 * MS), None);
        // The second came one millisecond faster.
        assert_eq!(clock.frontier(Time(10 * MS)), Some(4000 - 1));
    }
}
