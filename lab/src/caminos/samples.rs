//! Values of several seeds.

/// The values of one side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) mean: f64,
    pub(super) least: f64,
    pub(super) most: f64,
    /// Standard error of the mean.
    pub(super) error: f64,
}

impl Sample {
    /// Mean, extremes and error of at least two values.
    pub(super) fn of(values: &[f64]) -> Self {
        let number = values.len() as f64;
        let mean = values.iter().sum::<f64>() / number;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Self { mean, least, most, error: (squares / (number - 1.0) / number).sqrt() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_mean_extremes_and_error() {
        let sample = Sample::of(&[2.0, 4.0, 6.0]);
        assert_eq!((sample.mean, sample.least, sample.most), (4.0, 2.0, 6.0));
        // The variance of the values is 4, that of their mean a third of it.
        assert!((sample.error - (4.0_f64 / 3.0).sqrt()).abs() < 1e-12);
    }
}
