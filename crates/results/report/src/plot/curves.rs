//! A sweep as curves: one key runs along a curve, and all other keys distinguish the curves, except for the seed: a point is the
//! mean of its replicates.

use super::{
    chart::{Entry, Line, Stroke},
    quantity::{Unit, is_drawable, parse},
};
use crate::replicates::{estimate, groups, keys_of_groups};
use evb_record::{PointRecord, Record};
use std::collections::BTreeSet;

/// Words at the end of a key that is a size, whatever its values are.
const SIZES: [&str; 6] = ["size", "mean", "packet", "bucket", "bytes", "length"];

/// The key that runs along the curves: one whose name is that of a size, else one whose values are byte counts, else
/// the first whose values are numbers. A key with one value only is not swept.
pub(super) fn main_key<R: PointRecord>(records: &[R]) -> Option<&str> {
    let rank = |key: &str, unit: Unit| match (key.rsplit('.').next().is_some_and(|end| SIZES.contains(&end)), unit) {
        (true, _) => 0,
        (false, Unit::Bytes) => 1,
        (false, _) => 2,
    };
    let numeric = keys_of_groups(records).into_iter().filter_map(|key| Some((key, numbers(records, key)?.0)));
    numeric.min_by_key(|(key, unit)| rank(key, *unit)).map(|(key, _)| key)
}

/// The unit and the values of a key if all records have it as a number of one unit and it has at least two values.
fn numbers<'a, R: PointRecord>(records: &'a [R], key: &str) -> Option<Numbers<'a>> {
    read_all(records.iter().map(|record| record.sweep().get(key).map(String::as_str)))
}

/// A unit, and values in it with their texts.
type Numbers<'a> = (Unit, Vec<(f64, &'a str)>);

/// Some texts as numbers, if all are there and of one unit, and at least two differ.
pub(super) fn read_all<'a>(texts: impl Iterator<Item = Option<&'a str>>) -> Option<Numbers<'a>> {
    let values: Vec<_> = texts.map(|text| text.and_then(|text| Some((parse(text)?, text)))).collect::<Option<_>>()?;
    let unit = values.first()?.0.1;
    let varies = values.iter().any(|value| value.0.0 != values[0].0.0);
    (varies && values.iter().all(|value| value.0.1 == unit))
        .then(|| (unit, values.into_iter().map(|((value, _), text)| (value, text)).collect()))
}

/// A sweep as curves.
pub(super) struct Curves<'a, R = Record> {
    /// The key that runs along the curves.
    pub(super) key: &'a str,
    /// The unit of its values.
    pub(super) unit: Unit,
    /// Its values and their texts, each once.
    pub(super) ticks: Vec<(f64, &'a str)>,
    /// The other keys that are swept.
    others: Vec<&'a str>,
    curves: Vec<Curve<'a, R>>,
}

struct Curve<'a, R> {
    label: String,
    /// The position of each point, and its replicates.
    points: Vec<(f64, Vec<&'a R>)>,
}

impl<'a, R: PointRecord> Curves<'a, R> {
    /// The curves along this key, if it is swept and its values are numbers.
    pub(super) fn of(records: &'a [R], key: &'a str) -> Option<Self> {
        let (unit, values) = numbers(records, key)?;
        let others: Vec<_> =
            keys_of_groups(records).into_iter().filter(|other| *other != key && varies(records, other)).collect();
        let mut curves: Vec<Curve<'a, R>> = Vec::new();
        for group in groups(records) {
            let label = label(group[0], &others);
            let place = curves.iter().position(|curve| curve.label == label).unwrap_or(curves.len());
            if place == curves.len() {
                curves.push(Curve { label, points: Vec::new() });
            }
            let value = group[0].sweep().get(key).and_then(|text| parse(text));
            curves[place].points.extend(value.map(|(value, _)| (value, group)));
        }
        for curve in &mut curves {
            curve.points.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        let mut ticks = values;
        ticks.sort_by(|a, b| a.0.total_cmp(&b.0));
        ticks.dedup_by(|a, b| a.0 == b.0);
        Some(Self { key, unit, ticks, others, curves })
    }

    /// The curves in the order of the key, with another quantity of the records on the horizontal axis.
    pub(super) fn against(mut self, across: impl Fn(&R) -> Option<f64>) -> Self {
        for curve in &mut self.curves {
            let points = std::mem::take(&mut curve.points).into_iter();
            curve.points = points.filter_map(|(_, group)| Some((mean(&group, &across)?, group))).collect();
        }
        self
    }

    /// True if a point has several replicates.
    pub(super) fn is_replicated(&self) -> bool {
        self.curves.iter().flat_map(|curve| &curve.points).any(|(_, group)| group.len() > 1)
    }

    /// One line for each curve, with the intervals of the means of replicates as error bars; points that cannot be drawn are
    /// left out.
    pub(super) fn lines(&self, height: impl Fn(&R) -> Option<f64>) -> Vec<Line> {
        self.lines_with_bars(&height, |group| {
            let estimate = estimate(group, &height)?;
            estimate.half_width.map(|half| (estimate.mean - half, estimate.mean + half))
        })
    }

    /// One line for each curve, with error bars for the points that have them.
    pub(super) fn lines_with_bars(
        &self,
        height: impl Fn(&R) -> Option<f64>,
        ends: impl Fn(&[&R]) -> Option<(f64, f64)>,
    ) -> Vec<Line> {
        let point = |(x, group): &(f64, Vec<&R>)| Some((*x, mean(group, &height)?));
        let drawable = |point: &(f64, f64)| is_drawable(point.0) && is_drawable(point.1);
        let line = |(colour, curve): (usize, &Curve<'a, R>)| {
            let points = curve.points.iter().filter_map(point).filter(drawable).collect();
            let bars = curve.points.iter().filter_map(|(x, group)| ends(group).map(|(low, high)| (*x, low, high)));
            let is_bar = |&(x, low, high): &(f64, f64, f64)| low < high && drawable(&(x, low)) && drawable(&(x, high));
            Line { bars: bars.filter(is_bar).collect(), ..Line::new(colour, Stroke::Solid, points) }
        };
        self.curves.iter().enumerate().map(line).collect()
    }

    /// Returns true if there is only one curve, because no other key is swept.
    pub(super) fn is_single(&self) -> bool {
        self.others.is_empty()
    }

    /// The other keys, and one entry for each curve; empty for a single curve.
    pub(super) fn legend(&self) -> Vec<Entry> {
        if self.is_single() {
            return Vec::new();
        }
        let entry = |(colour, curve): (usize, &Curve<'a, R>)| Entry::Line {
            label: curve.label.clone(),
            colour: Some(colour),
            stroke: Stroke::Solid,
        };
        let heading = Entry::Heading(self.others.join(", "));
        [heading].into_iter().chain(self.curves.iter().enumerate().map(entry)).collect()
    }
}

/// The height of a point; that of a single record is the number itself, whatever it is.
fn mean<R>(group: &[&R], height: impl Fn(&R) -> Option<f64>) -> Option<f64> {
    match group {
        [record] => height(record),
        group => estimate(group, height).map(|estimate| estimate.mean),
    }
}

fn varies<R: PointRecord>(records: &[R], key: &str) -> bool {
    records.iter().map(|record| record.sweep().get(key)).collect::<BTreeSet<_>>().len() > 1
}

fn label<R: PointRecord>(record: &R, keys: &[&str]) -> String {
    let values = keys.iter().map(|key| record.sweep().get(*key).map_or("-", String::as_str));
    values.collect::<Vec<_>>().join(", ")
}
