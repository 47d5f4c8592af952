//! The statistics that the papers used.

/// The straight line `y = offset + slope * x` with the least squares through some points: `(offset, slope)`.
pub(crate) fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let squares: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let products: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let slope = products / squares;
    (y - slope * x, slope)
}

/// The first point at which a curve reaches this height, by linear interpolation; `None` if it never does.
pub(crate) fn crossing(points: &[(f64, f64)], height: f64) -> Option<f64> {
    let (from, to) = points.iter().zip(points.iter().skip(1)).find(|(a, b)| (a.1 - height) * (b.1 - height) <= 0.0)?;
    let rise = to.1 - from.1;
    Some(if rise == 0.0 { from.0 } else { from.0 + (height - from.1) / rise * (to.0 - from.0) })
}

/// The mean of some numbers.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_through_points_on_a_line_is_that_line() {
        let points = [1.0, 2.0, 5.0].map(|x| (x, 4.0 + x / 132.0));
        let (offset, slope) = line(&points);
        assert!((offset - 4.0).abs() < 1e-12 && (slope * 132.0 - 1.0).abs() < 1e-12, "{offset} {slope}");
    }

    #[test]
    fn a_crossing_is_between_the_points_around_it() {
        let falling = [(1.0, 480.0), (2.0, 300.0), (3.0, 100.0)];
        assert_eq!(crossing(&falling, 200.0), Some(2.5));
        assert_eq!(crossing(&falling, 480.0), Some(1.0));
        assert_eq!(crossing(&falling, 50.0), None);
    }
}
