//! The mean and the median of independent values, with their intervals.

/// Quantiles of Student's distribution that are exceeded, to either side, with a probability of 5 %, for 1 to 30 degrees of
/// freedom.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// The quantile of Student's distribution by which a mean differs from the true value with 95 % at most. Rounding the degrees
/// of freedom down, and limiting them to 30, makes the limits wider.
#[must_use]
pub fn student(degrees: f64) -> f64 {
    STUDENT[(degrees as usize).clamp(1, STUDENT.len()) - 1]
}

/// The middle of some values, or the mean of the two in the middle; 0 without values.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        length if length % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// Half of the difference of the most and the least value, as a part of the median; 0 if that is zero.
#[must_use]
pub fn spread(values: &[f64]) -> f64 {
    let [low, high] = [f64::min, f64::max].map(|end| values.iter().copied().reduce(end).unwrap_or(0.0));
    let median = median(values);
    if median > 0.0 { (high - low) / 2.0 / median } else { 0.0 }
}

/// The mean of independent values, such as those of replicates with different seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half of the width of its 95 % confidence interval, by Student's t; `None` for a single value.
    pub half_width: Option<f64>,
    /// Number of values.
    pub count: usize,
}

impl Estimate {
    /// The mean of some values, and its interval; `None` without a value, and if one is not finite.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() || !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let half_width = (values.len() > 1).then(|| {
            let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
            student(count - 1.0) * (variance / count).sqrt()
        });
        Some(Self { mean, half_width, count: values.len() })
    }

    /// Half of the interval as a part of the mean; `None` where it is unknown.
    #[must_use]
    pub fn relative(self) -> Option<f64> {
        self.half_width.map(|half| half / self.mean.abs()).filter(|part| part.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checked by hand: mean 11, standard deviation 1, t of 2 degrees of freedom 4.303.
    #[test]
    fn the_interval_is_that_of_student() {
        let Estimate { mean, half_width, count } = Estimate::of(&[10.0, 11.0, 12.0]).unwrap();
        assert_eq!((mean, count), (11.0, 3));
        assert!((half_width.unwrap() - 4.303 / 3_f64.sqrt()).abs() < 1e-12, "{half_width:?}");
        assert_eq!(Estimate::of(&[2.0, 2.0]).unwrap().relative(), Some(0.0));
    }

    #[test]
    fn what_is_unknown_is_not_zero() {
        assert_eq!(Estimate::of(&[5.0]), Some(Estimate { mean: 5.0, half_width: None, count: 1 }));
        assert_eq!(Estimate::of(&[5.0]).unwrap().relative(), None);
        assert_eq!(Estimate::of(&[0.0, 0.0]).unwrap().relative(), None, "a part of nothing");
        assert_eq!((Estimate::of(&[]), Estimate::of(&[1.0, f64::NAN])), (None, None));
    }

    #[test]
    fn more_values_than_the_table_has_make_the_limits_wider_than_they_are() {
        assert_eq!((student(1.9), student(30.0), student(1000.0)), (12.706, 2.042, 2.042));
    }
}
