//! What all connections do over time. Sums follow each change of a sender, so nothing ever looks at all connections.

use evb_connection::{Regulated, Sender};
use evb_core::Time;
use evb_record::{ConnectionsOverTime, STEPS, steady::Series};

/// Places of the counts in the series.
const ARRIVED: usize = 0;
const SENT_AGAIN: usize = 1;
const TIMEOUTS: usize = 2;
const MARKED: usize = 3;
const NOTICES: usize = 4;
/// Time in which something was outstanding, in picoseconds.
const BUSY: usize = 5;
/// The same time of each connection, summed.
const OUTSTANDING: usize = 6;
/// Mean window or rate of the connections with something outstanding, times microseconds.
const ALLOWED: usize = 7;
const COUNTS: usize = 8;

const PICOSECONDS: f64 = 1e-6;

/// The counts of all connections over the measured time, in bounded memory.
#[derive(Clone)]
pub(super) struct OverTime {
    regulated: Option<Regulated>,
    series: Series,
    counts: [u64; COUNTS],
    /// Connections with something outstanding now.
    outstanding: u64,
    /// The sum of their windows or rates.
    allowed: u64,
    /// The times are counted until then.
    until: Time,
}

/// What is known of a sender.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Known {
    sent_again: u64,
    timeouts: u64,
    marked_bytes: u64,
    notices: u64,
    /// The window in bytes or the rate in bytes per second, 0 if neither is regulated; `None` if nothing is outstanding.
    allowed: Option<u64>,
}

impl Known {
    fn of(sender: &Sender, regulated: Option<Regulated>) -> Self {
        let allowed = || match regulated {
            None => 0,
            Some(Regulated::Window) => sender.congestion_window(),
            Some(Regulated::Rate) => sender.rate().map_or(0, |rate| rate.as_bytes_per_second() as u64),
        };
        let counts = sender.counts();
        Self {
            sent_again: counts.again,
            timeouts: counts.timeouts,
            marked_bytes: counts.marked_bytes,
            notices: counts.notices,
            allowed: sender.has_outstanding().then(allowed),
        }
    }
}

impl OverTime {
    pub(super) fn new(regulated: Option<Regulated>) -> Self {
        let counts = [0; COUNTS];
        let series = Series::new(Time::ZERO, &counts);
        Self { regulated, series, counts, outstanding: 0, allowed: 0, until: Time::ZERO }
    }

    /// The measurement begins. What is outstanding stays.
    pub(super) fn begin_to_measure(&mut self, now: Time) {
        let &mut Self { outstanding, allowed, .. } = self;
        let begun = Self::new(self.regulated);
        *self = Self { series: Series::new(now, &begun.counts), outstanding, allowed, until: now, ..begun };
    }

    /// Bytes have arrived that had not before.
    pub(super) fn arrive(&mut self, now: Time, bytes: u32) {
        self.pass(now);
        self.counts[ARRIVED] += u64::from(bytes);
    }

    /// A sender may have changed since it was `known`.
    pub(super) fn note(&mut self, now: Time, sender: &Sender, known: &mut Known) {
        let new = Known::of(sender, self.regulated);
        let old = std::mem::replace(known, new);
        if old != new {
            self.count(now, old, new);
        }
    }

    fn count(&mut self, now: Time, old: Known, new: Known) {
        self.pass(now);
        self.counts[SENT_AGAIN] += new.sent_again - old.sent_again;
        self.counts[TIMEOUTS] += new.timeouts - old.timeouts;
        self.counts[MARKED] += new.marked_bytes - old.marked_bytes;
        self.counts[NOTICES] += new.notices - old.notices;
        if old.allowed != new.allowed {
            self.count_time(now);
            self.outstanding = self.outstanding + u64::from(new.allowed.is_some()) - u64::from(old.allowed.is_some());
            self.allowed = self.allowed + new.allowed.unwrap_or(0) - old.allowed.unwrap_or(0);
        }
    }

    /// Marks the time up to now.
    #[inline]
    fn pass(&mut self, now: Time) {
        while self.series.is_due(now) {
            let at = self.series.next_mark();
            self.count_time(at);
            self.series.mark(at, &self.counts);
        }
    }

    fn count_time(&mut self, until: Time) {
        let time = until.since(std::mem::replace(&mut self.until, until)).0;
        if self.outstanding > 0 {
            let mean = self.allowed as f64 / self.outstanding as f64;
            self.counts[BUSY] += time;
            self.counts[OUTSTANDING] += self.outstanding * time;
            self.counts[ALLOWED] += (mean * time as f64 * PICOSECONDS).round() as u64;
        }
    }

    /// The measurement ends, and the simulation goes on.
    pub(super) fn end_to_measure(&mut self, now: Time) {
        self.pass(now);
        self.count_time(now);
        self.series.end(now, &self.counts);
    }

    /// The record of a measurement between two times; `None` if it took no time.
    pub(super) fn record(&self, (from, to): (Time, Time)) -> Option<ConnectionsOverTime> {
        let mut whole = self.clone();
        if self.series.ended_at() != to {
            // Marks of the silence that may follow would take those of the measurement away.
            whole.end_to_measure(to.max(self.until));
            whole.series.end(to, &whole.counts_until(to));
        }
        (to > from).then(|| Steps::of(&whole.series, (from, to)).record(self.regulated))
    }

    /// The counts at the end of a measurement, which is known after it. What happened at this end lies before the next mark.
    fn counts_until(&self, end: Time) -> [u64; COUNTS] {
        std::array::from_fn(|count| match count {
            BUSY | OUTSTANDING | ALLOWED => self.series.at(end, count) as u64,
            _ => self.series.next_known(end, count),
        })
    }
}

/// The steps of a measurement.
struct Steps<'a> {
    series: &'a Series,
    borders: Vec<Time>,
}

impl<'a> Steps<'a> {
    fn of(series: &'a Series, (from, to): (Time, Time)) -> Self {
        let time = u128::from(to.since(from).0);
        let border = |step: u64| Time(from.0 + (time * u128::from(step) / u128::from(STEPS)) as u64);
        Self { series, borders: (0..=STEPS).map(border).collect() }
    }

    /// By how much a count grew in each step.
    fn growth(&self, count: usize) -> Vec<f64> {
        let at: Vec<_> = self.borders.iter().map(|&border| self.series.at(border, count)).collect();
        at.windows(2).map(|ends| ends[1] - ends[0]).collect()
    }

    /// The same in whole numbers, whose sum is exact.
    fn whole_growth(&self, count: usize) -> Vec<u64> {
        let at: Vec<_> = self.borders.iter().map(|&border| self.series.at(border, count).round() as u64).collect();
        at.windows(2).map(|ends| ends[1] - ends[0]).collect()
    }

    /// The same; nothing if the count never grew.
    fn whole_growth_if_any(&self, count: usize) -> Vec<u64> {
        let growth = self.whole_growth(count);
        if growth.iter().any(|&grown| grown > 0) { growth } else { Vec::new() }
    }

    /// The growth of a count, per second.
    fn rates(&self, count: usize) -> Vec<f64> {
        self.borders.windows(2).map(|ends| self.series.rate((ends[0], ends[1]), count)).collect()
    }

    /// The mean window or rate of connections with something outstanding.
    fn allowed(&self) -> Vec<Option<f64>> {
        let mean = |(allowed, busy): (f64, f64)| (busy >= 1.0).then(|| (allowed / (busy * PICOSECONDS)).round());
        self.growth(ALLOWED).into_iter().zip(self.growth(BUSY)).map(mean).collect()
    }

    fn record(&self, regulated: Option<Regulated>) -> ConnectionsOverTime {
        let allowed = |what: Regulated| if regulated == Some(what) { self.allowed() } else { Vec::new() };
        ConnectionsOverTime {
            step_s: self.borders[STEPS as usize].since(self.borders[0]).as_secs_f64() / STEPS as f64,
            goodput_bytes_per_s: self.rates(ARRIVED),
            sent_again: self.whole_growth(SENT_AGAIN),
            timeouts: self.whole_growth(TIMEOUTS),
            outstanding: self.rates(OUTSTANDING).into_iter().map(|time_ps| time_ps * 1e-12).collect(),
            window_bytes: allowed(Regulated::Window),
            rate_bytes_per_s: allowed(Regulated::Rate),
            marked_bytes: self.whole_growth_if_any(MARKED),
            notices: self.whole_growth_if_any(NOTICES),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000_000;
    const MS: u64 = 1000 * US;

    fn waiting(allowed: u64) -> Known {
        Known { allowed: Some(allowed), ..Known::default() }
    }

    /// A segment each 10 us, without those from 400 to 600 ms, in a second after a warm-up of 50 ms.
    fn with_gap() -> ConnectionsOverTime {
        let mut all = OverTime::new(None);
        for at in (1..=105_000).map(|index| index * 10 * US) {
            if at == 50 * MS + 10 * US {
                all.begin_to_measure(Time(50 * MS));
            }
            if !(450 * MS..650 * MS).contains(&at) {
                all.arrive(Time(at), 1500);
            }
        }
        all.record((Time(50 * MS), Time(1050 * MS))).expect("it took time")
    }

    #[test]
    fn all_bytes_are_in_the_steps_and_none_in_a_gap() {
        let record = with_gap();
        let goodput = &record.goodput_bytes_per_s;
        let sum: f64 = goodput.iter().map(|rate| rate * record.step_s).sum();
        assert!((sum - 80_000.0 * 1500.0).abs() < 1.0, "{sum}");
        assert_eq!((goodput.len(), record.step_s), (64, 1.0 / 64.0));
        // 400 to 600 ms: a mark of 8 ms may lie across each end.
        assert!(goodput[27..38].iter().all(|&rate| rate == 0.0), "{goodput:?}");
        assert!(goodput[..25].iter().chain(&goodput[39..]).all(|rate| (rate - 150e6).abs() < 1e6), "{goodput:?}");
        assert!(record.window_bytes.is_empty() && record.marked_bytes.is_empty(), "{record:?}");
    }

    #[test]
    fn counts_are_whole_numbers_with_the_exact_sum() {
        let (mut all, mut known) = (OverTime::new(None), Known::default());
        for index in 1..=1000 {
            let new = Known { sent_again: known.sent_again + index % 7, timeouts: index / 100, ..known };
            all.count(Time(index * 77 * US), known, new);
            known = new;
        }
        let record = all.record((Time::ZERO, Time(77 * MS))).expect("it took time");
        assert_eq!(record.sent_again.iter().sum::<u64>(), known.sent_again);
        assert_eq!(record.timeouts.iter().sum::<u64>(), 10);
        assert!(all.record((Time(MS), Time(MS))).is_none());
    }

    /// One connection waits with 30 kB, from 16 ms on another one with 10 kB, and from 48 ms on none.
    #[test]
    fn windows_are_the_mean_of_connections_with_something_outstanding() {
        let mut all = OverTime::new(Some(Regulated::Window));
        all.count(Time::ZERO, Known::default(), waiting(30_000));
        all.count(Time(16 * MS), Known::default(), waiting(10_000));
        all.count(Time(48 * MS), waiting(10_000), Known::default());
        all.count(Time(48 * MS), waiting(30_000), Known::default());
        let record = all.record((Time::ZERO, Time(64 * MS))).expect("it took time");
        for (step, outstanding, window) in [(3, 1.0, Some(30e3)), (32, 2.0, Some(20e3)), (60, 0.0, None)] {
            assert!((record.outstanding[step] - outstanding).abs() < 1e-6, "{step}: {record:?}");
            assert_eq!(record.window_bytes[step], window, "{step}: {record:?}");
        }
        assert!(record.rate_bytes_per_s.is_empty());
    }

    /// A measurement that ends by time ends there; one that ends with its last event has all until then.
    #[test]
    fn a_measurement_has_what_happened_until_its_end() {
        for (is_told, expected) in [(true, 90_000.0), (false, 91_000.0)] {
            let mut all = OverTime::new(None);
            for index in 1..=2000 {
                all.arrive(Time(index * 100 * US), 100);
                if index == 900 && is_told {
                    all.end_to_measure(Time(90 * MS));
                }
            }
            let record = all.record((Time::ZERO, Time(90 * MS))).expect("it took time");
            let bytes: f64 = record.goodput_bytes_per_s.iter().map(|rate| rate * record.step_s).sum();
            assert!((90_000.0 - 1e-3..=expected).contains(&bytes), "{bytes}");
        }
    }

    #[test]
    fn what_is_outstanding_stays_when_the_measurement_begins() {
        let mut all = OverTime::new(Some(Regulated::Rate));
        all.count(Time(MS), Known::default(), waiting(1_000_000));
        all.begin_to_measure(Time(10 * MS));
        let record = all.record((Time(10 * MS), Time(20 * MS))).expect("it took time");
        let is_rate = |rate: &Option<f64>| rate.is_some_and(|rate| (rate - 1e6).abs() < 1.0);
        assert!(record.rate_bytes_per_s.iter().all(is_rate), "{record:?}");
        assert!(record.outstanding.iter().all(|mean| (mean - 1.0).abs() < 1e-6), "{record:?}");
    }
}
