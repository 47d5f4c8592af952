//! A straight line through times against sizes: a fixed overhead and a rate.

/// A straight line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fit {
    /// The time at size zero.
    pub(crate) overhead: f64,
    /// Time for each unit of size.
    pub(crate) slope: f64,
    /// Largest distance of a point from the line, as a part of its time.
    pub(crate) error: f64,
}

/// Fewest sizes that show whether times lie on a line.
const FEWEST_SIZES: usize = 3;

/// The line with the least sum of the squares of the relative distances `(line(x) - y) / y`. Small sizes count as much
/// as large ones, since times scatter by a part of themselves and not by a fixed time. `None` for fewer than three
/// sizes, times that are not above zero, or a line that does not rise or has a negative overhead.
pub(crate) fn fit(points: &[(f64, f64)]) -> Option<Fit> {
    let mut sizes: Vec<_> = points.iter().map(|point| point.0).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    if sizes.len() < FEWEST_SIZES || points.iter().any(|point| !(point.1.is_finite() && point.1 > 0.0)) {
        return None;
    }
    let weighted = |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|&(x, y)| of(x, y) / (y * y)).sum::<f64>();
    let weight = weighted(&|_, _| 1.0);
    let (x, y) = (weighted(&|x, _| x) / weight, weighted(&|_, y| y) / weight);
    let slope = weighted(&|px, py| (px - x) * (py - y)) / weighted(&|px, _| (px - x) * (px - x));
    let overhead = y - slope * x;
    let distance = |&(px, py): &(f64, f64)| ((overhead + slope * px) / py - 1.0).abs();
    let error = points.iter().map(distance).fold(0.0, f64::max);
    (slope.is_finite() && slope > 0.0 && overhead >= 0.0).then_some(Fit { overhead, slope, error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_on_a_line_give_that_line() {
        let points = [8.0, 64.0, 1024.0, 65536.0].map(|size| (size, 2000.0 + 0.25 * size));
        let line = fit(&points).unwrap();
        assert!((line.overhead - 2000.0).abs() < 1e-6 && (line.slope - 0.25).abs() < 1e-9, "{line:?}");
        assert!(line.error < 1e-9);
    }

    #[test]
    fn small_sizes_count_as_much_as_large_ones() {
        // One percent more at the largest size would move the overhead far below zero if all nanoseconds counted the same.
        let points = [(8.0, 1008.0), (64.0, 1064.0), (1e6, 1.001e6), (2e6, 2.001e6 * 1.01)];
        let line = fit(&points).unwrap();
        assert!((line.overhead - 1000.0).abs() < 20.0, "{line:?}");
        assert!(line.error < 0.02);
    }

    #[test]
    fn times_without_an_overhead_and_a_rate_have_no_line() {
        assert_eq!(fit(&[(8.0, 1.0), (16.0, 2.0)]), None);
        assert_eq!(fit(&[(8.0, 3.0), (16.0, 2.0), (32.0, 1.0)]), None);
        assert_eq!(fit(&[(8.0, 1.0), (16.0, 4.0), (32.0, 16.0)]), None, "it begins below zero");
        assert_eq!(fit(&[(8.0, 0.0), (16.0, 2.0), (32.0, 3.0)]), None);
        assert_eq!(fit(&[(8.0, 1.0), (8.0, 2.0), (8.0, 1.0)]), None, "one size");
    }
}
