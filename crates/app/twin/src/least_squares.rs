//! Least squares where only simulations know what the variables do.

/// Change of a variable that shows what it does, in the first round and in the last: large ones pass over what is rough.
const STEPS: [f64; 2] = [0.7, 0.08];
/// Most rounds.
const ROUNDS: usize = 40;
/// The part by which a round makes the sum of squares less, at least: else the step becomes smaller.
const GAIN: f64 = 0.01;
/// What is tried as damping in each round.
const DAMPINGS: [f64; 4] = [0.001, 0.1, 10.0, 1000.0];
/// Most rounds of a linear solution; each changes all variables once.
const LINEAR_ROUNDS: usize = 100_000;
/// The relative change of a round at which a linear solution has been found.
const FOUND: f64 = 1e-10;

/// Where the sum of squares is least.
#[derive(Clone, Debug)]
pub(crate) struct Minimum {
    pub(crate) variables: Vec<f64>,
    /// The residuals near it, as linear functions of the changes of the variables: one equation each.
    pub(crate) equations: Vec<Equation>,
}

/// A linear equation: the sum of the products of the variables with these factors.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Equation {
    pub(crate) factors: Vec<f64>,
    pub(crate) sum: f64,
}

/// The variables near `start` for which the residuals have the least sum of squares. `residuals` finds those of several sets of
/// variables at once.
///
/// Each round changes each variable in both directions. The best of these changes is one answer. The others take the residuals
/// as linear, with steps to their least squares that are damped in case they are not (D. W. Marquardt, An algorithm for
/// least-squares estimation of nonlinear parameters, Journal of the Society for Industrial and Applied Mathematics 11, 1963).
///
/// # Errors
/// Those of `residuals`.
pub(crate) fn minimum<E>(
    start: Vec<f64>,
    residuals: impl Fn(&[Vec<f64>]) -> Result<Vec<Vec<f64>>, E>,
) -> Result<Minimum, E> {
    let (mut variables, mut equations, [mut step, last]) = (start, Vec::new(), STEPS);
    for _ in 0..ROUNDS {
        let mut tries = around(&variables, step);
        let mut found = residuals(&tries)?;
        equations = linearized(&found, step);
        let linear: Vec<_> =
            DAMPINGS.iter().map(|&damping| changed(&variables, &solve(&damped(&equations, damping)))).collect();
        found.extend(residuals(&linear)?);
        tries.extend(linear);
        let sums: Vec<_> = found.iter().map(|all| all.iter().map(|one| one * one).sum::<f64>()).collect();
        let best = (0..sums.len()).min_by(|&one, &other| sums[one].total_cmp(&sums[other])).unwrap_or(0);
        variables = tries.swap_remove(best);
        if sums[best] > sums[0] * (1.0 - GAIN) {
            step /= 2.0;
        }
        if step < last {
            break;
        }
    }
    Ok(Minimum { variables, equations })
}

/// The variables, and these with each of them changed by a step up, and by one down.
fn around(variables: &[f64], step: f64) -> Vec<Vec<f64>> {
    let with = |at: usize, step: f64| {
        let mut near = variables.to_vec();
        near[at] += step;
        near
    };
    let both = (0..variables.len()).flat_map(|at| [with(at, step), with(at, -step)]);
    std::iter::once(variables.to_vec()).chain(both).collect()
}

/// The residuals of [`around`] as linear functions of changes of the variables, which are to make them zero.
fn linearized(found: &[Vec<f64>], step: f64) -> Vec<Equation> {
    let Some((here, near)) = found.split_first() else { return Vec::new() };
    let equation = |(row, here): (usize, &f64)| Equation {
        factors: near.chunks_exact(2).map(|both| (both[0][row] - both[1][row]) / (2.0 * step)).collect(),
        sum: -here,
    };
    here.iter().enumerate().map(equation).collect()
}

fn changed(variables: &[f64], changes: &[f64]) -> Vec<f64> {
    variables.iter().zip(changes).map(|(one, change)| one + change).collect()
}

/// The equations, and one for each variable that keeps it small.
fn damped(equations: &[Equation], damping: f64) -> Vec<Equation> {
    let variables = equations.first().map_or(0, |equation| equation.factors.len());
    let small = |at: usize| {
        let mut factors = vec![0.0; variables];
        factors[at] = damping.sqrt();
        Equation { factors, sum: 0.0 }
    };
    equations.iter().cloned().chain((0..variables).map(small)).collect()
}

/// The variables for which the squares of what the equations miss have the least sum.
///
/// Each variable in turn takes its best value while the others stay (coordinate descent). That converges, since the function
/// is convex and smooth (P. Tseng, Convergence of a block coordinate descent method, Journal of Optimization Theory and
/// Applications 109, 2001).
pub(crate) fn solve(equations: &[Equation]) -> Vec<f64> {
    let variables = equations.first().map_or(0, |equation| equation.factors.len());
    let mut found = vec![0.0; variables];
    let mut missing: Vec<f64> = equations.iter().map(|equation| equation.sum).collect();
    let rows: Vec<&[f64]> = equations.iter().map(|equation| &*equation.factors).collect();
    let squares: Vec<f64> = (0..variables).map(|at| rows.iter().map(|row| row[at] * row[at]).sum()).collect();
    for _ in 0..LINEAR_ROUNDS {
        let mut change = 0.0_f64;
        for at in (0..variables).filter(|&at| squares[at] > 0.0) {
            let slope: f64 = rows.iter().zip(&missing).map(|(row, missing)| row[at] * missing).sum();
            let step = slope / squares[at];
            missing.iter_mut().zip(&rows).for_each(|(missing, row)| *missing -= step * row[at]);
            found[at] += step;
            change = change.max(step.abs() / found[at].abs().max(step.abs() * 1e-3).max(f64::MIN_POSITIVE));
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
    use std::convert::Infallible;

    fn solved(equations: &[(&[f64], f64)]) -> Vec<f64> {
        let all = equations.iter().map(|&(factors, sum)| Equation { factors: factors.to_vec(), sum });
        solve(&all.collect::<Vec<_>>())
    }

    #[test]
    fn a_linear_system_with_an_answer_is_solved() {
        let found = solved(&[(&[2.0, 1.0], 1.0), (&[1.0, 3.0], 1.0)]);
        assert!((found[0] - 0.4).abs() < 1e-6 && (found[1] - 0.2).abs() < 1e-6, "{found:?}");
        let found = solved(&[(&[1.0, 1.0], 0.9), (&[1.0, 2.0], 0.8)]);
        assert!((found[0] - 1.0).abs() < 1e-6 && (found[1] + 0.1).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn a_variable_that_nothing_depends_on_stays() {
        assert_eq!(solved(&[(&[4.0, 0.0], 1.0)]), [0.25, 0.0]);
    }

    /// A valley that is curved (H. H. Rosenbrock, The Computer Journal 3, 1960), whose lowest point is at (1, 1).
    #[test]
    fn the_end_of_a_curved_valley_is_found() {
        let valley = |all: &[Vec<f64>]| {
            let of = |at: &Vec<f64>| vec![1.0 - at[0], 3.0 * (at[1] - at[0] * at[0])];
            Ok::<_, Infallible>(all.iter().map(of).collect())
        };
        let Ok(found) = minimum(vec![-0.5, 0.5], valley);
        assert!(found.variables.iter().all(|one| (one - 1.0).abs() < 0.05), "{found:?}");
    }
}
