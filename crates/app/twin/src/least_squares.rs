//! Least squares with variables that are not negative.

/// Most rounds; each changes all variables once.
const MOST_ROUNDS: usize = 100_000;
/// The relative change of a round at which the variables have been found.
const FOUND: f64 = 1e-10;

/// An equation for the variables: the sum of their products with these factors.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Equation {
    pub(crate) factors: Vec<f64>,
    pub(crate) sum: f64,
}

/// The variables, none of them negative, for which the squares of what the equations miss have the least sum.
///
/// Each variable in turn takes its best value while the others stay (coordinate descent). That converges, since the function
/// is convex and smooth and the bounds are separate (P. Tseng, Convergence of a block coordinate descent method, Journal of
/// Optimization Theory and Applications 109, 2001).
pub(crate) fn solve(equations: &[Equation], variables: usize) -> Vec<f64> {
    let mut found = vec![0.0; variables];
    let mut missing: Vec<f64> = equations.iter().map(|equation| equation.sum).collect();
    let rows: Vec<&[f64]> = equations.iter().map(|equation| &*equation.factors).collect();
    let squares: Vec<f64> = (0..variables).map(|at| rows.iter().map(|row| row[at] * row[at]).sum()).collect();
    for _ in 0..MOST_ROUNDS {
        let mut change = 0.0_f64;
        for at in (0..variables).filter(|&at| squares[at] > 0.0) {
            let slope: f64 = rows.iter().zip(&missing).map(|(row, missing)| row[at] * missing).sum();
            let better = (found[at] + slope / squares[at]).max(0.0);
            let step = better - found[at];
            if step != 0.0 {
                missing.iter_mut().zip(&rows).for_each(|(missing, row)| *missing -= step * row[at]);
                found[at] = better;
                change = change.max(step.abs() / better.max(f64::MIN_POSITIVE).max(step.abs() * 1e-3));
            }
        }
        if change < FOUND {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn solved(equations: &[(&[f64], f64)]) -> Vec<f64> {
        let all = equations.iter().map(|&(factors, sum)| Equation { factors: factors.to_vec(), sum });
        solve(&all.collect::<Vec<_>>(), equations[0].0.len())
    }

    #[test]
    fn a_system_with_an_answer_is_solved() {
        let found = solved(&[(&[2.0, 1.0], 1.0), (&[1.0, 3.0], 1.0)]);
        assert!((found[0] - 0.4).abs() < 1e-6 && (found[1] - 0.2).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn a_variable_is_not_negative() {
        // Without the bound the second one would be -0.1.
        let found = solved(&[(&[1.0, 1.0], 0.9), (&[1.0, 2.0], 0.8)]);
        assert!(found[1] == 0.0 && (found[0] - 0.85).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn a_variable_that_nothing_depends_on_is_zero() {
        assert_eq!(solved(&[(&[4.0, 0.0], 1.0)]), [0.25, 0.0]);
    }
}
