//! The end of replicates when their mean is known well enough.

use evb_experiment::Plan;
use evb_record::{Estimate, Record};
use std::collections::BTreeMap;

/// The key of the seed, in which replicates differ.
const SEED: &str = "run.seed";
/// Fewest replicates: with two, chance makes an interval narrow too often.
const FEWEST: usize = 3;

/// Leaves out the replicates of each combination of swept keys behind the first ones whose mean event rate is known to a part of
/// itself, by half of its 95 % interval.
///
/// Only the replicates before one, in the order of the points, decide whether it is needed. So the answer does not depend on which
/// simulation ends first. A rule that looks again after each replicate ends a little too early, and its intervals hold the true
/// value in somewhat fewer than 95 % of all cases (Law, "Simulation Modeling and Analysis", 5th edition, section 9.4.1).
pub struct Until {
    part: f64,
    /// The points of each combination, in order.
    groups: Vec<Vec<usize>>,
    /// The group of each point, and its place there.
    places: Vec<(usize, usize)>,
    /// The event rate of each point that has ended.
    rates: Vec<Option<f64>>,
}

impl Until {
    /// For the points of a sweep, until half of the interval is below this part of the mean.
    pub fn new(plans: &[Plan], part: f64) -> Self {
        let mut known: BTreeMap<Vec<&(String, String)>, usize> = BTreeMap::new();
        let (mut groups, mut places): (Vec<Vec<usize>>, Vec<_>) = (Vec::new(), Vec::new());
        for (index, plan) in plans.iter().enumerate() {
            let others = plan.sweep.iter().filter(|(key, _)| key != SEED).collect();
            let group = *known.entry(others).or_insert(groups.len());
            groups.resize(groups.len().max(group + 1), Vec::new());
            places.push((group, groups[group].len()));
            groups[group].push(index);
        }
        Self { part, groups, places, rates: vec![None; plans.len()] }
    }

    /// Notes the record of a point.
    pub fn note(&mut self, index: usize, record: &Record) {
        self.rates[index] = Some(record.event_rate_hz);
    }

    /// True if a point is needed, as far as is known.
    pub fn wants(&self, index: usize) -> bool {
        let (group, place) = self.places[index];
        let before = self.groups[group][..place].iter().map_while(|&index| self.rates[index]);
        let rates: Vec<_> = before.collect();
        let is_enough = |count: usize| {
            let estimate = Estimate::of(&rates[..count]).and_then(Estimate::relative);
            estimate.is_some_and(|part| part < self.part)
        };
        !(FEWEST..=rates.len()).any(is_enough)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, SourceSpec};

    /// Two combinations of five seeds each; the seed runs fastest.
    fn plans() -> Vec<Plan> {
        let plan = |n: usize| {
            let source = SourceSpec::Fixed { size: "2 kB".parse().unwrap() };
            let sweep = [("a", n / 5), (SEED, n % 5)].map(|(key, value)| (key.to_owned(), value.to_string()));
            Plan { sweep: sweep.to_vec(), ..Plan::new(Config::new(2, 2), source) }
        };
        (0..10).map(plan).collect()
    }

    fn wanted(rates: &[f64; 10], order: impl Iterator<Item = usize>) -> Vec<usize> {
        let mut until = Until::new(&plans(), 0.02);
        for index in order {
            until.rates[index] = Some(rates[index]);
        }
        (0..10).filter(|index| until.wants(*index)).collect()
    }

    #[test]
    fn replicates_end_when_their_mean_is_known() {
        // Half of the interval is 2.5 % with three of the first combination, and 1.3 % with four. The second never ends.
        let rates = [100.0, 101.0, 99.0, 100.0, 100.0, 50.0, 90.0, 70.0, 60.0, 80.0];
        let needed = vec![0, 1, 2, 3, 5, 6, 7, 8, 9];
        assert_eq!(wanted(&rates, 0..10), needed);
        assert_eq!(wanted(&rates, (0..10).rev()), needed, "the order of their ends does not matter");
        assert_eq!(wanted(&rates, 0..2), (0..10).collect::<Vec<_>>(), "two are never enough");
        assert_eq!(wanted(&[100.0; 10], 0..10), [0, 1, 2, 5, 6, 7]);
    }
}
