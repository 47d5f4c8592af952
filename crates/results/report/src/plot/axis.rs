//! Axes with ticks at round numbers.

use super::quantity::{Unit, short};
use plotters::coord::ranged1d::{KeyPointHint, KeyPointWeight, NoDefaultFormatting, Ranged, ValueFormatter};
use std::ops::Range;

/// A linear or logarithmic axis and its ticks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    range: Range<f64>,
    is_log: bool,
    ticks: Vec<(f64, String)>,
}

/// Smallest distance of ticks as a part of the axis: closer ones would overlap.
const CLOSEST_TICKS: f64 = 0.09;

impl Axis {
    /// A linear axis from zero to a round number that is at least `least` and above all values.
    pub(super) fn from_zero(values: impl Iterator<Item = f64>, least: f64) -> Self {
        let top = values.fold(least, f64::max);
        let (top, least) = if top > 0.0 { (top, least) } else { (1.0, 1.0) };
        let step = round_step(top);
        // Points on the upper edge would lose half of their marks.
        let steps = if top > least { (top * 1.02 / step).ceil() } else { (top / step).ceil() };
        let ticks = (0..=steps as u32).map(|n| f64::from(n) * step);
        Self { range: 0.0..steps * step, is_log: false, ticks: labelled(ticks, Unit::None) }
    }

    /// The axis with few ticks, for a low chart.
    pub(super) fn with_few_ticks(mut self) -> Self {
        const MOST: usize = 6;
        if self.ticks.len() > MOST {
            self.ticks = self.ticks.into_iter().step_by(2).collect();
        }
        self
    }

    /// A logarithmic axis between 1, 2 or 5 times powers of ten around all values, which are above zero.
    pub(super) fn logarithmic(values: impl Iterator<Item = f64>) -> Self {
        let (least, most) = span(values).unwrap_or((1.0, 10.0));
        let (least, most) = (least / 1.02, most * 1.02);
        let all: Vec<_> = one_two_five(least, most).collect();
        let below = all.iter().rposition(|tick| *tick <= least).unwrap_or(0);
        let above = all.iter().position(|tick| *tick >= most).unwrap_or(all.len() - 1);
        let range = all[below]..all[above];
        let ticks = labelled(thinned(&range, &all[below..=above]).into_iter(), Unit::None);
        Self { range, is_log: true, ticks }
    }

    /// A logarithmic axis that ends close to the least and the most of all values, which are above zero.
    pub(super) fn close_around(values: impl Iterator<Item = f64>) -> Self {
        const MARGIN: f64 = 1.15;
        let (least, most) = span(values).unwrap_or((1.0, 10.0));
        let mut axis = Self { range: least / MARGIN..most * MARGIN, is_log: true, ticks: Vec::new() };
        axis.ticks = labelled(axis.round_ticks(least / MARGIN, most * MARGIN).into_iter(), Unit::None);
        axis
    }

    /// The axis of a swept key: logarithmic if its values span more than a factor of ten. The values themselves are the
    /// ticks, as they are written in the file, unless they are too close.
    pub(super) fn of_key(values: &[(f64, &str)], unit: Unit) -> Self {
        let (least, most) = span(values.iter().map(|value| value.0)).unwrap_or((0.0, 1.0));
        let is_log = least > 0.0 && most / least > 10.0;
        let range = if is_log {
            let margin = (most / least).powf(0.04);
            least / margin..most * margin
        } else {
            let margin = if most > least { (most - least) * 0.04 } else { 1.0 };
            least - margin..most + margin
        };
        let mut axis = Self { range, is_log, ticks: Vec::new() };
        axis.ticks = values.iter().map(|(value, text)| (*value, (*text).to_owned())).collect();
        axis.ticks.sort_by(|a, b| a.0.total_cmp(&b.0));
        let too_close = |pair: &[(f64, String)]| axis.part(pair[1].0) - axis.part(pair[0].0) < CLOSEST_TICKS;
        if axis.ticks.windows(2).any(too_close) {
            axis.ticks = labelled(axis.round_ticks(least, most).into_iter(), unit);
        }
        axis
    }

    fn round_ticks(&self, least: f64, most: f64) -> Vec<f64> {
        if self.is_log {
            let all: Vec<_> = one_two_five(least, most).filter(|tick| self.range.contains(tick)).collect();
            return thinned(&self.range, &all);
        }
        let step = round_step(most - least);
        let first = (self.range.start / step).ceil() as i64;
        let last = (self.range.end / step).floor() as i64;
        (first..=last).map(|n| n as f64 * step).collect()
    }

    /// The position of a value: 0 at the start, 1 at the end.
    fn part(&self, value: f64) -> f64 {
        let Range { start, end } = self.range;
        if self.is_log { (value / start).ln() / (end / start).ln() } else { (value - start) / (end - start) }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        limit.0 + (self.part(*value) * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match hint.weight() {
            KeyPointWeight::Bold => self.ticks.iter().map(|tick| tick.0).collect(),
            KeyPointWeight::Any => Vec::new(),
        }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        self.ticks.iter().find(|tick| tick.0 == *value).map(|tick| tick.1.clone()).unwrap_or_default()
    }
}

fn labelled(ticks: impl Iterator<Item = f64>, unit: Unit) -> Vec<(f64, String)> {
    ticks.map(|tick| (tick, short(tick, unit))).collect()
}

fn span(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.map(|value| (value, value)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

/// The step that divides a width into five to ten parts, or four when these are rounder.
fn round_step(width: f64) -> f64 {
    let power = 10_f64.powf(width.log10().floor());
    match width / power {
        part if part <= 1.0 => power / 5.0,
        part if part <= 2.0 => power / 4.0,
        part if part <= 5.0 => power,
        _ => power * 2.0,
    }
}

/// 1, 2 and 5 times powers of ten, from below `least` to above `most`.
fn one_two_five(least: f64, most: f64) -> impl Iterator<Item = f64> {
    let decades = least.log10().floor() as i32..=most.log10().ceil() as i32;
    // Powers from text are exact where powi is off by a bit.
    let power = |decade: i32| format!("1e{decade}").parse::<f64>().expect("a power of ten");
    decades.flat_map(move |decade| [1.0, 2.0, 5.0].map(|digit| digit * power(decade)))
}

/// All ticks for up to two and a half decades; for more only the powers of ten, and not all of those if they are many.
fn thinned(range: &Range<f64>, ticks: &[f64]) -> Vec<f64> {
    let decades = (range.end / range.start).log10();
    if decades <= 2.5 {
        return ticks.to_vec();
    }
    let every = (decades / 8.0).ceil() as i32;
    let exponent = |tick: f64| tick.log10().round() as i32;
    let is_power = |tick: f64| (tick / 10_f64.powi(exponent(tick)) - 1.0).abs() < 1e-6;
    ticks.iter().copied().filter(|tick| is_power(*tick) && exponent(*tick) % every == 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|tick| tick.1.as_str()).collect()
    }

    #[test]
    fn linear_axes_end_on_a_round_number_above_all() {
        for (top, ticks) in
            [(0.0, "0 0.2 0.4 0.6 0.8 1"), (97.0, "0 20 40 60 80 100"), (130.0, "0 25 50 75 100 125 150")]
        {
            let axis = Axis::from_zero([top].into_iter(), 0.0);
            assert_eq!(texts(&axis), ticks.split(' ').collect::<Vec<_>>(), "{top}");
        }
        assert_eq!(Axis::from_zero([20.0].into_iter(), 100.0).range, 0.0..100.0);
    }

    #[test]
    fn logarithmic_axes_enclose_all() {
        let axis = Axis::logarithmic([12.0, 18.0].into_iter());
        assert_eq!((texts(&axis), axis.range.clone()), (vec!["10", "20"], 10.0..20.0));
        let axis = Axis::logarithmic([3.0, 40_000.0].into_iter());
        assert_eq!((texts(&axis), axis.range.clone()), (vec!["10", "100", "1000", "10000"], 2.0..50_000.0));
        assert_eq!(axis.map(&2.0, (0, 100)), 0);
        assert_eq!(axis.map(&50_000.0, (0, 100)), 100);
    }

    #[test]
    fn swept_values_are_the_ticks_unless_they_are_too_close() {
        let axis = Axis::of_key(&[(512.0, "512 B"), (65536.0, "64 KiB")], Unit::Bytes);
        assert_eq!((texts(&axis), axis.is_log), (vec!["512 B", "64 KiB"], true));
        let many: Vec<_> = (1..40).map(|n| (f64::from(n) * 1000.0, "")).collect();
        assert_eq!(texts(&Axis::of_key(&many, Unit::Bytes)), ["1 kB", "2 kB", "5 kB", "10 kB", "20 kB"]);
        let axis = Axis::of_key(&[(1.0, "1"), (1.01, "1.01"), (2.0, "2")], Unit::None);
        assert_eq!((texts(&axis), axis.is_log), (vec!["1", "1.2", "1.4", "1.6", "1.8", "2"], false));
    }
}
