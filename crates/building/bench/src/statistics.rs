//! Quantiles of samples, and the combination of several launches.

use crate::samples::SampleSummary;
use evb_record::{Launches, Times, median};
use std::collections::BTreeMap;

/// The confidence of intervals, if there are enough launches.
const CONFIDENCE: f64 = 0.95;

/// The distribution of all samples of several nodes and launches; `None` if there are no samples.
#[must_use]
pub fn times<'a>(all: impl IntoIterator<Item = &'a SampleSummary>) -> Option<Times> {
    let (mut counts, mut shortest, mut longest) = (BTreeMap::<u64, u64>::new(), u64::MAX, 0);
    for sampled in all.into_iter().filter(|sampled| !sampled.counts.is_empty()) {
        sampled.counts.iter().for_each(|&(value, count)| *counts.entry(value).or_default() += count);
        (shortest, longest) = (shortest.min(sampled.shortest), longest.max(sampled.longest));
    }
    let samples: u64 = counts.values().sum();
    if samples == 0 {
        return None;
    }
    let quantile = |part: f64| {
        let wanted = (part * samples as f64).ceil() as u64;
        let mut seen = 0;
        let found = counts.iter().find(|&(_, count)| {
            seen += count;
            seen >= wanted
        });
        // A step of the histogram may end beyond the longest time in it.
        found.map_or(longest, |(&value, _)| value.clamp(shortest, longest)) as f64
    };
    let sum: f64 = counts.iter().map(|(&value, &count)| value as f64 * count as f64).sum();
    Some(Times {
        min: shortest as f64,
        p50: quantile(0.5),
        p99: quantile(0.99),
        p999: quantile(0.999),
        max: longest as f64,
        mean: sum / samples as f64,
        samples,
    })
}

/// The combination of launches: their median, and the interval between two of them that holds the median of all
/// possible launches with 95 %, or with the most that the number of launches allows. No distribution is assumed: the
/// number of launches below the true median is distributed like the number of heads in as many throws of a coin.
pub(crate) fn launches(quantity: &str, values: &[f64]) -> Launches {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (cut, confidence) = interval(sorted.len());
    Launches {
        quantity: quantity.into(),
        values: values.to_vec(),
        median: median(values),
        low: sorted.get(cut).copied().unwrap_or(0.0),
        high: sorted.iter().rev().nth(cut).copied().unwrap_or(0.0),
        confidence,
    }
}

/// Number of values to leave out on either side, and the confidence of the interval between the others.
fn interval(count: usize) -> (usize, f64) {
    if count == 0 {
        return (0, 0.0);
    }
    // Probability of exactly `below` values below the median.
    let mut exactly = 0.5_f64.powi(count as i32);
    let (mut tail, mut best) = (exactly, (0, 1.0 - 2.0 * exactly));
    for below in 1..count.div_ceil(2) {
        exactly *= (count - below + 1) as f64 / below as f64;
        tail += exactly;
        if 1.0 - 2.0 * tail < CONFIDENCE {
            break;
        }
        best = (below, 1.0 - 2.0 * tail);
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_the_sign_test() {
        assert_eq!(interval(1), (0, 0.0));
        assert_eq!(interval(5), (0, 0.9375));
        assert_eq!(interval(6), (0, 0.96875));
        let (cut, confidence) = interval(10);
        assert_eq!(cut, 1, "the second and the ninth of ten");
        assert!((confidence - (1.0 - 22.0 / 1024.0)).abs() < 1e-12);
    }

    #[test]
    fn quantiles_of_several_nodes() {
        let part = |values: std::ops::Range<u64>| SampleSummary {
            counts: values.clone().map(|value| (value, 1)).collect(),
            raw: Vec::new(),
            shortest: values.start,
            longest: values.end - 1,
        };
        let all = times(&[part(1..501), part(501..1001), SampleSummary::default()]).unwrap();
        assert_eq!((all.min, all.p50, all.p99, all.p999, all.max), (1.0, 500.0, 990.0, 999.0, 1000.0));
        assert_eq!((all.mean, all.samples), (500.5, 1000));
        assert!(times(&[SampleSummary::default()]).is_none());
    }

    #[test]
    fn launches_keep_their_order() {
        let all = launches("messages_per_s", &[3.0, 1.0, 2.0]);
        assert_eq!((all.median, all.low, all.high, all.confidence), (2.0, 1.0, 3.0, 0.75));
        assert_eq!(all.values, [3.0, 1.0, 2.0]);
    }
}
