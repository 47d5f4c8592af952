//! The end of the warm-up.

/// Part of the steps that is searched for a minimum. Beyond it too few steps are left: a minimum there is chance.
const LOOKED_AT: f64 = 0.75;

/// Number of steps in the warm-up, by the marginal standard error rule: leaving them out minimises the standard error
/// of the mean of the others (White, "An effective truncation heuristic for bias reduction in simulation output",
/// Simulation 69, 1997; with steps that are sums of several observations it is the MSER-5 of White, Cobb and Spratt, "A
/// comparison of five steady-state truncation heuristics for simulation", Winter Simulation Conference 2000). `None` if
/// more than half of the steps would be left out: then there is no steady state, as the authors recommend.
pub(crate) fn warmup(steps: &[f64]) -> Option<usize> {
    let looked_at = (steps.len() as f64 * LOOKED_AT) as usize;
    let (mut sum, mut squares, mut best) = (0.0, 0.0, (f64::INFINITY, 0));
    // Differences to the last step keep the sums of squares exact where the steps hardly differ.
    let reference = steps.last().copied().unwrap_or(0.0);
    for (left_out, step) in steps.iter().enumerate().rev() {
        let (difference, count) = (step - reference, (steps.len() - left_out) as f64);
        sum += difference;
        squares += difference * difference;
        let error = (squares - sum * sum / count).max(0.0) / (count * count);
        // Of several equal ones, the shortest warm-up.
        if left_out <= looked_at && error <= best.0 {
            best = (error, left_out);
        }
    }
    (best.1 <= steps.len() / 2).then_some(best.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_has_no_warmup() {
        assert_eq!(warmup(&[5.0; 100]), Some(0));
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        let steps: Vec<f64> = (0..100).map(|n| if n < 30 { 0.0 } else { 10.0 + f64::from(n % 3) }).collect();
        assert_eq!(warmup(&steps), Some(30));
    }

    #[test]
    fn a_ramp_never_settles() {
        let steps: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!(warmup(&steps), None);
    }

    #[test]
    fn a_late_step_is_not_a_steady_state() {
        let steps: Vec<f64> = (0..100).map(|n| if n < 60 { 0.0 } else { 10.0 + f64::from(n % 3) }).collect();
        assert_eq!(warmup(&steps), None);
    }
}
