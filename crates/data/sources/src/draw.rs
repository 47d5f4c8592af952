//! Random draws as a pure function of a key and an event. An event may be requested again, in any order, by any
//! process, and gets the same value.

use rand_distr::{Distribution as _, StandardNormal};
use rand_xoshiro::{SplitMix64, rand_core::SeedableRng as _};

/// 2^64 divided by the golden ratio, odd (Steele, Lea and Flood, OOPSLA 2014).
pub(crate) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The key of all draws for `purpose` and `source` in a run with this `seed`.
pub(crate) const fn key(seed: u64, purpose: u64, source: u16) -> u64 {
    mix(mix(mix(seed.wrapping_add(GOLDEN)) ^ purpose).wrapping_add(source as u64))
}

/// 64 random bits for one event.
pub(crate) const fn bits(key: u64, event: u64) -> u64 {
    mix(key.wrapping_add(event.wrapping_mul(GOLDEN)))
}

/// The finaliser of splitmix64: every input bit reaches every output bit.
pub(crate) const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A log-normal distribution, drawn once per event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LogNormal {
    key: u64,
    mu: f64,
    sigma: f64,
}

impl LogNormal {
    /// A distribution by mean and rms of the values: sigma^2 = ln(1 + (rms/mean)^2), mu = ln mean - sigma^2/2 (Johnson,
    /// Kotz and Balakrishnan, *Continuous Univariate Distributions* 1, chapter 14).
    pub(crate) fn new(key: u64, mean: f64, rms: f64) -> Self {
        let variance = (rms / mean).powi(2).ln_1p();
        Self { key, mu: mean.ln() - variance / 2.0, sigma: variance.sqrt() }
    }

    /// The mean; `None` if more than a few of 100 000 values are not between these limits.
    pub(crate) fn mean_between(&self, least: f64, most: f64) -> Option<f64> {
        const REACH: f64 = 4.0;
        let reach = REACH * self.sigma;
        let is_free = self.mu - reach > least.ln() && self.mu + reach < most.ln();
        is_free.then(|| (self.mu + self.sigma * self.sigma / 2.0).exp())
    }

    /// The value for one event.
    pub(crate) fn draw(&self, event: u64) -> f64 {
        let normal: f64 = StandardNormal.sample(&mut SplitMix64::seed_from_u64(bits(self.key, event)));
        (normal * self.sigma + self.mu).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_normal_has_the_mean_and_rms_asked_for() {
        for (mean, rms) in [(2048.0, 1024.0), (1.0, 0.3), (500.0, 0.0), (700.0, 700.0)] {
            let draw = LogNormal::new(key(7, 1, 3), mean, rms);
            let n = 400_000;
            let values: Vec<f64> = (1..=n).map(|event| draw.draw(event)).collect();
            let average = values.iter().sum::<f64>() / n as f64;
            let deviation = (values.iter().map(|v| (v - average).powi(2)).sum::<f64>() / n as f64).sqrt();
            assert!((average / mean - 1.0).abs() < 0.01, "mean {average}, wanted {mean}");
            assert!((deviation - rms).abs() <= 0.03 * rms + 1e-9, "rms {deviation}, wanted {rms}");
        }
    }

    #[test]
    fn the_mean_is_known_unless_the_tails_are_limited() {
        let draw = LogNormal::new(key(7, 1, 3), 1250.0, 1250.0);
        let mean = draw.mean_between(16.0, 1e6).expect("the limits are far away");
        assert!((mean - 1250.0).abs() < 1e-6, "{mean}");
        assert_eq!((draw.mean_between(100.0, 1e6), draw.mean_between(16.0, 1e4)), (None, None));
    }

    #[test]
    fn neighbouring_events_are_independent() {
        let draw = LogNormal::new(key(1, 1, 0), 1.0, 0.5);
        let logs: Vec<f64> = (1..=100_000).map(|event| (draw.draw(event).ln() - draw.mu) / draw.sigma).collect();
        for lag in [1, 2, 3, 64] {
            let pairs = logs.iter().zip(&logs[lag..]);
            let correlation = pairs.map(|(a, b)| a * b).sum::<f64>() / logs.len() as f64;
            assert!(correlation.abs() < 0.02, "lag {lag}: {correlation}");
        }
    }
}
