//! The ratio of the new value to the old one, and its limits with 95 %.
//!
//! Launches are compared: cycles within one launch share its memory and its cores, and say nothing about the next
//! launch. Two intervals are computed from the logarithms of the launches, and the limits are those of their union:
//!
//! - Welch's t interval of the difference of two means ("The generalization of Student's problem when several different
//!   population variances are involved", Biometrika 34, 1947). It is wide if launches scatter, and if some of them
//!   behave differently from the rest.
//! - The interval that inverts the test of Mann and Whitney ("On a test of whether one of two random variables is
//!   stochastically larger than the other", Annals of Mathematical Statistics 18, 1947). If nothing has changed it
//!   excludes that in fewer than 5 % of all comparisons, however the launches are distributed. Three launches beside
//!   three or four are too few for that: the interval is then the range of all ratios, and excludes it in up to 10 %,
//!   alone.

use evb_record::student;

/// Fewest launches on either side that allow a verdict. If launches behave in one of two ways at random, two and two
/// differ in 12 % of all comparisons, three and three in 3 %.
const FEWEST_LAUNCHES: usize = 3;
/// Fewest launches on either side that can prove that nothing changed. A new behaviour of half of the launches stays
/// unseen by four of them with 6 %, by five with 3 %.
const FEWEST_FOR_SAME: usize = 5;
const HINT: &str = "measure with --launches 6 or more";

/// Most launches on each side for which the test of Mann and Whitney is counted exactly; for more it is nearly normal.
const MOST_COUNTED: usize = 20;
/// Two-sided probability that the true ratio is outside the limits.
const RISK: f64 = 0.05;
/// The normal deviate that is exceeded, to either side, with probability [`RISK`].
const NORMAL: f64 = 1.96;

/// The natural logarithm of new over old.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LogRatio {
    /// The lower limit of the true value, with 95 %.
    pub(super) low: f64,
    /// The upper limit.
    pub(super) high: f64,
    /// Difference of the means of the logarithms.
    middle: f64,
    /// Launches of the side with fewer launches.
    fewest: usize,
}

impl LogRatio {
    /// The limits from the launches of both sides, all above zero; or the reason why there are none.
    pub(super) fn of_launches(old: &[f64], new: &[f64]) -> Result<Self, String> {
        let fewest = old.len().min(new.len());
        if fewest < FEWEST_LAUNCHES {
            return Err(format!("{} before and {} now are too few launches: {HINT}", old.len(), new.len()));
        }
        let [old, new] = [old, new].map(|values| values.iter().map(|value| value.ln()).collect::<Vec<_>>());
        let (welch, ranks) = (welch(&old, &new), mann_whitney(&old, &new));
        let (low, high) = (welch.0.min(ranks.0), welch.1.max(ranks.1));
        Ok(Self { low, high, middle: f64::midpoint(welch.0, welch.1), fewest })
    }

    /// The ratio of values that are the same in every launch.
    pub(super) fn exact(old: f64, new: f64) -> Self {
        let ratio = (new / old).ln();
        Self { low: ratio, high: ratio, middle: ratio, fewest: usize::MAX }
    }

    /// Returns true if the limits of the ratio and of its inverse are within this margin of one, and there are enough
    /// launches.
    pub(super) fn is_within(&self, margin: f64) -> bool {
        self.fewest >= FEWEST_FOR_SAME && -margin <= self.low && self.high <= margin
    }

    /// The reason why there are too few launches to prove that nothing changed, if there are.
    pub(super) fn too_few(&self) -> Option<String> {
        let is_few = self.fewest < FEWEST_FOR_SAME;
        is_few.then(|| format!("{} launches are too few to tell that nothing changed: {HINT}", self.fewest))
    }

    /// The smallest difference that could be detected.
    pub(super) fn resolution(&self) -> f64 {
        (self.high - self.middle).max(self.middle - self.low)
    }
}

/// Limits of the difference of two means whose variances may differ.
fn welch(old: &[f64], new: &[f64]) -> (f64, f64) {
    let [old, new] = [old, new].map(|values| {
        let (count, mean) = (values.len() as f64, mean(values));
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        (mean, squares / (count - 1.0) / count, count - 1.0)
    });
    let variance = old.1 + new.1;
    let degrees = variance.powi(2) / (old.1.powi(2) / old.2 + new.1.powi(2) / new.2);
    // Without any variance there are no degrees of freedom, and their number does not matter.
    let half = student(degrees) * variance.sqrt();
    (new.0 - old.0 - half, new.0 - old.0 + half)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Limits of all differences between one value of each side, with as many left out at either end as [`RISK`] allows.
fn mann_whitney(old: &[f64], new: &[f64]) -> (f64, f64) {
    let mut differences: Vec<f64> = new.iter().flat_map(|new| old.iter().map(move |old| new - old)).collect();
    differences.sort_unstable_by(f64::total_cmp);
    let cut = left_out(old.len(), new.len());
    (differences[cut], differences[differences.len() - 1 - cut])
}

/// Number of differences to leave out at either end: the most that may be below zero by chance.
fn left_out(old: usize, new: usize) -> usize {
    if old.max(new) > MOST_COUNTED {
        let (old, new) = (old as f64, new as f64);
        let spread = (old * new * (old + new + 1.0) / 12.0).sqrt();
        return (old * new / 2.0 - NORMAL * spread - 0.5).max(0.0) as usize;
    }
    let ways = ways(old, new);
    let all: f64 = ways.iter().sum();
    let tails = ways.iter().scan(0.0, |tail, ways| {
        *tail += ways;
        Some(2.0 * *tail / all)
    });
    tails.take_while(|&tail| tail <= RISK).count().saturating_sub(1)
}

/// Number of orders of all values with a given number of differences below zero, from none to all of them: the
/// coefficients of the Gaussian binomial.
fn ways(old: usize, new: usize) -> Vec<f64> {
    let most = old * new;
    let mut ways = vec![0.0; most + 1];
    ways[0] = 1.0;
    for step in 1..=old {
        (new + step..=most).rev().for_each(|at| ways[at] -= ways[at - new - step]);
        (step..=most).for_each(|at| ways[at] += ways[at - step]);
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_counted() {
        assert_eq!(ways(2, 2), [1.0, 1.0, 2.0, 1.0, 1.0]);
        assert_eq!(ways(3, 5).iter().sum::<f64>(), 56.0, "3 of 8");
        assert_eq!(ways(20, 20).iter().sum::<f64>(), 137_846_528_820.0, "20 of 40");
    }

    /// Critical values at 5 %, two-sided, as in the tables of the test: this many differences or fewer below zero are rare.
    #[test]
    fn as_many_are_left_out_as_in_the_tables() {
        let critical = [((4, 4), 0), ((5, 5), 2), ((6, 6), 5), ((5, 8), 6), ((10, 10), 23), ((20, 20), 127)];
        for ((old, new), below) in critical {
            assert_eq!(left_out(old, new), below, "{old} and {new}");
            assert_eq!(left_out(new, old), below, "{new} and {old}");
        }
        assert_eq!(left_out(3, 3), 0, "too few for 95 %");
        assert!((left_out(21, 20) as f64 - 135.0).abs() < 2.0, "it goes on where counting ends");
    }

    #[test]
    fn limits_are_those_of_welch_where_launches_are_regular() {
        let (old, new) = ([1.0, 1.1, 0.9, 1.05], [1.5, 1.52, 1.45, 1.55]);
        let (low, high) = welch(&old, &new);
        // The means differ by 0.4925, with a standard error of 0.0476 and 4.37 degrees of freedom, of which 4 count.
        assert!((low - 0.360_4).abs() < 1e-4 && (high - 0.624_6).abs() < 1e-4, "{low} to {high}");
    }

    #[test]
    fn one_launch_that_went_another_way_hides_small_changes() {
        let calm = LogRatio::of_launches(&[55.0, 55.5, 56.0, 55.2, 54.8], &[55.1, 55.4, 54.9, 55.8, 55.3]).unwrap();
        assert!(calm.low < 0.0 && calm.high > 0.0 && calm.resolution() < 0.02, "{calm:?}");
        let other = LogRatio::of_launches(&[55.0, 55.5, 56.0, 55.2, 54.8], &[55.1, 55.4, 240.0, 55.8, 55.3]).unwrap();
        assert!(other.low < 0.0 && other.resolution() > 0.5, "{other:?}");
        assert_eq!(LogRatio::exact(2.0, 4.0).resolution(), 0.0);
    }
}
