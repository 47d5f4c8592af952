//! The steady window of a series.

use super::{
    batches, bursts,
    series::{DONE, ENDED, OFFERED, Series},
    truncation::warmup,
};
use crate::{Bounds, Finding, FindingKind, Window};
use evb_core::Time;

/// Fewest steps in which a window is searched: half of them must be enough for twenty batches.
const FEWEST_STEPS: usize = 40;
/// Mean number of events per step, so that noise does not hide the warm-up: the five of MSER-5.
const EVENTS_PER_STEP: u64 = 5;
/// Fewest bursts in which a window is searched: half of them must be enough for ten batches.
const FEWEST_BURSTS: usize = 20;
/// Width of an interval, relative to its middle, above which whole bursts are looked for.
const WIDEST: f64 = 0.2;
/// Factor by which a longer run is proposed for a series that did not settle.
const LONGER: f64 = 4.0;

/// The part of a series that rates are taken from.
#[derive(Clone, Debug, PartialEq)]
pub struct Steady {
    /// Begin and end of the window.
    pub window: (Time, Time),
    /// The rate of ended events with its interval, and the part of the offered load that was left behind; `None`
    /// without a steady state.
    pub(crate) settled: Option<Settled>,
    /// The reason why there is no steady state.
    unsettled: Option<Unsettled>,
}

/// The rates in a steady window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Settled {
    pub(crate) rate_hz: Bounds,
    /// Rate of the offered load that was done, per second, with its interval.
    pub(crate) carried_hz: (f64, Bounds),
    /// Rate of arrivals in the window, per second.
    pub(crate) offered_hz: f64,
    /// Interval of the rate of arrivals that were neither done nor had room, per second.
    pub(crate) behind_hz: Bounds,
}

impl Settled {
    /// True if the rate is known well.
    fn is_narrow(&self) -> bool {
        let Bounds { low, high } = self.rate_hz;
        high - low <= WIDEST * f64::midpoint(low, high)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Unsettled {
    TooFew,
    /// Events end in this number of bursts.
    FewBursts(usize),
    WarmingUp,
    Drifting,
}

impl Steady {
    /// Finds the steady window of a series that has ended at `end`. The window ends with the trigger, since draining is
    /// no steady state. It begins at the end of the warm-up, or at `from` if the user has set it; then the end of a
    /// trigger that ended by number is kept. If events end in bursts so that their rate is uncertain, the window has whole
    /// bursts. Without a steady state, the window goes from its begin to `end`.
    pub fn find(series: &Series, from: Option<Time>, end: Time) -> Self {
        let whole = (from.unwrap_or(series.start()), end);
        match settle(series, from, end) {
            Ok((window, settled)) => Self { window, settled: Some(settled), unsettled: None },
            Err(unsettled) => Self { window: whole, settled: None, unsettled: Some(unsettled) },
        }
    }

    /// The window for the record.
    pub fn window(&self) -> Window {
        let (from, to) = self.window;
        Window { from_s: from.0 as f64 * 1e-12, to_s: to.0 as f64 * 1e-12, steady: self.settled.is_some() }
    }

    /// The 95 % confidence interval of the rate of ended events; `None` without a steady state.
    pub fn rate_hz(&self) -> Option<Bounds> {
        self.settled.map(|settled| settled.rate_hz)
    }

    /// A finding if there is no steady state, with the reason and the length of a run that would have one.
    pub fn finding(&self) -> Option<Finding> {
        let longer = time(self.window.1.since(self.window.0).as_secs_f64() * LONGER);
        let longer = format!("a run of about {longer} may have one");
        let (why, hint) = match self.unsettled? {
            Unsettled::TooFew => {
                let needed = 2 * FEWEST_STEPS as u64 * EVENTS_PER_STEP;
                ("too few ended while the trigger was on".to_owned(), format!("a window needs about {needed} of them"))
            }
            Unsettled::FewBursts(count) => (
                format!("events end in bursts, {count} of them while the trigger was on"),
                format!("a window needs {} whole bursts", FEWEST_BURSTS + 1),
            ),
            Unsettled::WarmingUp => ("more than half of the time is warm-up".to_owned(), longer),
            Unsettled::Drifting => ("the rate still drifts".to_owned(), longer),
        };
        let message = format!("{why}; all rates are of the whole time");
        Some(Finding::new(FindingKind::NoSteadyState, "window", message).hint(hint))
    }
}

fn settle(series: &Series, from: Option<Time>, whole: Time) -> Result<((Time, Time), Settled), Unsettled> {
    let end = series.stopped().or(from.and(Some(whole))).unwrap_or_else(|| series.last_start());
    let first =
        from.map_or(0, |from| (0..series.len()).find(|&mark| series.time(mark) >= from).unwrap_or(series.len()));
    let last = (first..series.len()).rev().find(|&mark| series.time(mark) <= end).unwrap_or(first);
    let ended = if last > first { series.counted(last, ENDED) - series.counted(first, ENDED) } else { 0 };
    let marks = steps(last - first, ended).map(|step| (first..=last).rev().step_by(step).collect::<Vec<_>>());
    let mut marks = marks.ok_or(Unsettled::TooFew)?;
    marks.reverse();
    let plain = settle_in(series, &marks, (from.unwrap_or(series.start()), end), from.is_some());
    let is_narrow = plain.is_ok_and(|(_, settled)| settled.is_narrow());
    let counts: Vec<_> = marks.iter().map(|&mark| series.counted(mark, ENDED)).collect();
    // A window that the user has set is kept.
    let ends = if is_narrow || from.is_some() { None } else { bursts::ends(&counts) };
    let Some(ends) = ends else { return plain };
    if ends.len() <= FEWEST_BURSTS {
        return Err(Unsettled::FewBursts(ends.len()));
    }
    let marks: Vec<_> = ends.into_iter().map(|step| marks[step]).collect();
    let whole = (series.time(marks[0]), series.time(marks[marks.len() - 1]));
    settle_in(series, &marks, whole, false)
}

/// The steady part of the steps between these marks, in a window that goes from `begin` to `end` if none of them is warm-up.
fn settle_in(
    series: &Series,
    marks: &[usize],
    (begin, end): (Time, Time),
    is_set: bool,
) -> Result<((Time, Time), Settled), Unsettled> {
    let of = |count: usize| rates(series, marks, count);
    let rates = of(ENDED);
    let left_out = if is_set { 0 } else { warmup(&rates).ok_or(Unsettled::WarmingUp)? };
    let start = if left_out == 0 { begin } else { series.time(marks[left_out]) };
    let mean = batches::mean(&rates[left_out..]).ok_or(Unsettled::Drifting)?;
    let behind: Vec<_> = of(OFFERED).iter().zip(of(DONE)).map(|(offered, done)| offered - done).collect();
    let behind = batches::drift(&behind[left_out..]);
    let [rate, carried] = [ENDED, DONE].map(|count| series.rate((start, end), count));
    if rate <= 0.0 {
        // What is steady is a pause: all ended before it, or behind the last start.
        return Err(Unsettled::TooFew);
    }
    let around = |rate: f64, half: f64| Bounds { low: (rate - half).max(0.0), high: rate + half };
    let settled = Settled {
        rate_hz: around(rate, mean.half_width),
        carried_hz: (carried, around(carried, mean.half_width * carried / rate)),
        offered_hz: series.rate((start, end), OFFERED),
        behind_hz: Bounds { low: behind.mean - behind.half_width, high: behind.mean + behind.half_width },
    };
    Ok(((start, end), settled))
}

/// Number of marks per step, so that a step has enough events; `None` if there are too few events.
fn steps(marks: usize, ended: u64) -> Option<usize> {
    let step = (EVENTS_PER_STEP * marks as u64).div_ceil(ended.max(1)).max(1) as usize;
    (marks / step >= FEWEST_STEPS).then_some(step)
}

/// The rates of a count between neighbouring marks, per second.
fn rates(series: &Series, marks: &[usize], count: usize) -> Vec<f64> {
    let seconds = |pair: &[usize]| series.time(pair[1]).since(series.time(pair[0])).as_secs_f64();
    let counted = |pair: &[usize]| (series.counted(pair[1], count) - series.counted(pair[0], count)) as f64;
    marks.windows(2).map(|pair| counted(pair) / seconds(pair)).collect()
}

/// A time for display, with two digits.
fn time(seconds: f64) -> String {
    let units = [(1.0, "s"), (1e-3, "ms"), (1e-6, "us")];
    let (scale, unit) = units.into_iter().find(|(scale, _)| seconds >= *scale).unwrap_or(units[2]);
    let value = seconds / scale;
    let digit = 10_f64.powi((value.max(1.0).log10().floor() as i32 - 1).max(0));
    format!("{} {unit}", (value / digit).ceil() * digit)
}
