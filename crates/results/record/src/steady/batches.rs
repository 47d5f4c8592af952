//! The mean of steps that depend on each other, with an interval, by the method of batch means (Law, "Simulation Modeling
//! and Analysis", 5th edition, section 9.5.3).

/// Numbers of batches to try, most first. Each has the quantile at 97.5 % of Student's t with one degree of freedom
/// less, and the quantile of the normal distribution above which its batches count as correlated. Ten to thirty batches
/// are enough: Schmeiser, "Batch size effects in the analysis of simulation output", Operations Research 30, 1982. The
/// last resort is tested less strictly, at 1 % instead of 5 %.
const TRIES: [Try; 2] =
    [Try { batches: 20, student: 2.093, normal: 1.645 }, Try { batches: 10, student: 2.262, normal: 2.326 }];

/// Relative deviation below which batches count as equal to their mean, whatever their correlation.
pub(crate) const MARGIN: f64 = 0.01;

struct Try {
    batches: usize,
    student: f64,
    normal: f64,
}

/// A mean, and half of the width of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mean {
    pub(crate) mean: f64,
    pub(crate) half_width: f64,
}

/// Mean and interval of the steps; `None` if even long batches are correlated, so that the steps still drift, or if there are
/// fewer steps than batches.
pub(crate) fn mean(steps: &[f64]) -> Option<Mean> {
    TRIES.iter().filter(|attempt| attempt.batches <= steps.len()).find_map(|attempt| {
        let batches = batches(steps, attempt.batches);
        let result = interval(&batches, attempt.student);
        let is_flat = batches.iter().all(|batch| (batch - result.mean).abs() <= MARGIN * result.mean.abs());
        let is_last = attempt.batches == TRIES[TRIES.len() - 1].batches;
        (!is_correlated(&batches, attempt.normal) || (is_last && is_flat)).then_some(result)
    })
}

/// Mean and interval of steps whose drift is wanted.
pub(crate) fn drift(steps: &[f64]) -> Mean {
    let last = &TRIES[TRIES.len() - 1];
    interval(&batches(steps, last.batches), last.student)
}

/// Means of `count` equal parts of the steps. A remainder is left out at the beginning.
fn batches(steps: &[f64], count: usize) -> Vec<f64> {
    let size = steps.len() / count;
    steps[steps.len() - size * count..].chunks(size).map(|batch| batch.iter().sum::<f64>() / size as f64).collect()
}

fn interval(batches: &[f64], student: f64) -> Mean {
    let count = batches.len() as f64;
    let mean = batches.iter().sum::<f64>() / count;
    let variance = batches.iter().map(|batch| (batch - mean).powi(2)).sum::<f64>() / (count - 1.0);
    Mean { mean, half_width: student * (variance / count).sqrt() }
}

/// Returns true if neighbours resemble each other more than chance allows: von Neumann's ratio as a statistic of the
/// lag-1 correlation, which is near normal from eight batches on (Fishman and Yarberry, "An implementation of the batch
/// means method", INFORMS Journal on Computing 9, 1997).
fn is_correlated(batches: &[f64], normal: f64) -> bool {
    let count = batches.len() as f64;
    let mean = batches.iter().sum::<f64>() / count;
    let squares: f64 = batches.iter().map(|batch| (batch - mean).powi(2)).sum();
    let steps: f64 = batches.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
    let statistic = 1.0 - steps / (2.0 * squares);
    squares > 0.0 && statistic > normal * ((count - 2.0) / (count * count - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_steps_have_no_width() {
        assert_eq!(mean(&[3.0; 100]), Some(Mean { mean: 3.0, half_width: 0.0 }));
    }

    #[test]
    fn a_trend_is_not_a_mean() {
        let steps: Vec<f64> = (0..100).map(|n| 100.0 + f64::from(n)).collect();
        assert_eq!(mean(&steps), None);
        let slight: Vec<f64> = (0..100).map(|n| 10_000.0 + f64::from(n)).collect();
        assert!(mean(&slight).is_some(), "less than the margin");
    }

    #[test]
    fn the_beginning_is_left_out_when_batches_do_not_fit() {
        let steps: Vec<f64> = (0..23).map(|n| if n < 3 { 1000.0 } else { f64::from(n % 2) }).collect();
        assert!(mean(&steps).expect("a mean").mean < 1.0);
    }
}
