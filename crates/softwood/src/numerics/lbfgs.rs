//! Minimisation by L-BFGS with a line search for the weak Wolfe conditions (Nocedal and Wright,
//! "Numerical Optimization", ch. 7; Lewis and Overton 2013).

use std::ops::ControlFlow;

use crate::numerics::dot::dot;
use crate::stop::is_cancelled;

/// Pairs of steps and gradient differences that approximate the Hessian.
const MEMORY: usize = 10;
/// Largest number of evaluations of one line search.
const MAX_SEARCH: usize = 20;
/// Sufficient decrease and curvature of the Wolfe conditions.
const WOLFE: (f64, f64) = (1e-4, 0.9);
/// Largest change of a coordinate in the first step, whose direction has no natural length.
const FIRST_STEP: f64 = 0.5;

/// A point with its value and gradient.
#[derive(Debug, Clone)]
pub(crate) struct Evaluated {
    pub(crate) x: Vec<f64>,
    pub(crate) value: f64,
    pub(crate) gradient: Vec<f64>,
}

/// Gives the value and the gradient at a point; `None` where there are none.
type Evaluate<'a> = &'a mut dyn FnMut(&[f64]) -> Option<(f64, Vec<f64>)>;

/// When the minimisation ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tolerance {
    pub(crate) max_iterations: usize,
    /// Largest component of the gradient.
    pub(crate) gradient: f64,
    /// Decrease of the value in one iteration.
    pub(crate) value: f64,
}

/// Minimises from `start`. `evaluate` gives value and gradient, or `None` where there are none; the
/// line search then goes back. `on_iteration` hears of each new best point and may stop the
/// minimisation. Returns the best point; `None` if there is no value at `start`.
pub(crate) fn minimise(
    start: Vec<f64>,
    tolerance: Tolerance,
    evaluate: Evaluate<'_>,
    on_iteration: &mut dyn FnMut(usize, &Evaluated) -> ControlFlow<()>,
) -> Option<Evaluated> {
    let (value, gradient) = evaluate(&start)?;
    let mut best = Evaluated {
        x: start,
        value,
        gradient,
    };
    let mut pairs: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
    for iteration in 1..=tolerance.max_iterations {
        let steepest = best
            .gradient
            .iter()
            .fold(0.0, |max: f64, g| max.max(g.abs()));
        if steepest <= tolerance.gradient || is_cancelled() {
            break;
        }
        let mut direction = direction(&best.gradient, &pairs);
        if dot(&direction, &best.gradient) >= 0.0 {
            pairs.clear();
            direction = best.gradient.iter().map(|g| -g).collect();
        }
        let first_step = if pairs.is_empty() {
            (FIRST_STEP / steepest).min(1.0)
        } else {
            1.0
        };
        let Some(next) = line_search(&best, &direction, first_step, evaluate) else {
            if pairs.is_empty() {
                break;
            }
            // the approximation of the Hessian may be at fault
            pairs.clear();
            continue;
        };
        let difference =
            |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a - b).collect() };
        let step = difference(&next.x, &best.x);
        let change = difference(&next.gradient, &best.gradient);
        if dot(&step, &change) > 1e-12 * dot(&change, &change) {
            if pairs.len() == MEMORY {
                pairs.remove(0);
            }
            pairs.push((step, change));
        }
        let decrease = best.value - next.value;
        best = next;
        if on_iteration(iteration, &best).is_break() || decrease <= tolerance.value {
            break;
        }
    }
    Some(best)
}

/// `-H g` for the approximate inverse Hessian `H`, by the two-loop recursion.
fn direction(gradient: &[f64], pairs: &[(Vec<f64>, Vec<f64>)]) -> Vec<f64> {
    let mut q: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut factors = Vec::with_capacity(pairs.len());
    for (step, change) in pairs.iter().rev() {
        let factor = dot(step, &q) / dot(step, change);
        add(&mut q, -factor, change);
        factors.push(factor);
    }
    if let Some((step, change)) = pairs.last() {
        let scale = dot(step, change) / dot(change, change);
        for q in &mut q {
            *q *= scale;
        }
    }
    for ((step, change), factor) in pairs.iter().zip(factors.iter().rev()) {
        let correction = factor - dot(change, &q) / dot(step, change);
        add(&mut q, correction, step);
    }
    q
}

fn add(to: &mut [f64], factor: f64, x: &[f64]) {
    for (to, x) in to.iter_mut().zip(x) {
        *to += factor * x;
    }
}

/// A point along `direction` with the weak Wolfe conditions, by bisection and expansion; the lowest
/// point with sufficient decrease if there is none; `None` without a decrease.
fn line_search(
    from: &Evaluated,
    direction: &[f64],
    first_step: f64,
    evaluate: Evaluate<'_>,
) -> Option<Evaluated> {
    let slope = dot(&from.gradient, direction);
    let (mut low, mut high) = (0.0, f64::INFINITY);
    let mut step = first_step;
    let mut lowest: Option<Evaluated> = None;
    for _ in 0..MAX_SEARCH {
        let mut x = from.x.clone();
        add(&mut x, step, direction);
        let found = evaluate(&x).filter(|(value, _)| value.is_finite());
        match found {
            Some((value, gradient)) if value <= from.value + WOLFE.0 * step * slope => {
                let is_flat = dot(&gradient, direction) >= WOLFE.1 * slope;
                if lowest.as_ref().is_none_or(|lowest| value < lowest.value) {
                    lowest = Some(Evaluated { x, value, gradient });
                }
                if is_flat {
                    return lowest;
                }
                low = step;
            }
            _ => high = step,
        }
        step = if high.is_finite() {
            0.5 * (low + high)
        } else {
            2.0 * low
        };
        // bisection between steps that differ by rounding alone finds nothing
        if high - low <= 1e-10 * high || is_cancelled() {
            break;
        }
    }
    lowest
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::close;

    const TOLERANCE: Tolerance = Tolerance {
        max_iterations: 200,
        gradient: 1e-8,
        value: 0.0,
    };

    #[test]
    fn the_minimum_of_rosenbrocks_function_is_found() {
        let mut n_calls = 0;
        let mut rosenbrock = |x: &[f64]| {
            n_calls += 1;
            let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
            let gradient = vec![-2.0 * a - 400.0 * b * x[0], 200.0 * b];
            Some((a * a + 100.0 * b * b, gradient))
        };
        let found = minimise(vec![-1.2, 1.0], TOLERANCE, &mut rosenbrock, &mut |_, _| {
            ControlFlow::Continue(())
        });
        close(&found.unwrap().x, &[1.0, 1.0], 1e-6);
        assert!(n_calls < 100, "{n_calls} evaluations");
    }

    #[test]
    fn points_without_a_value_are_avoided_and_the_observer_may_stop() {
        let mut barrier =
            |x: &[f64]| (x[0] > 0.0).then(|| (x[0] - x[0].ln(), vec![1.0 - 1.0 / x[0]]));
        let mut go_on = |_: usize, _: &Evaluated| ControlFlow::Continue(());
        let found = minimise(vec![30.0], TOLERANCE, &mut barrier, &mut go_on);
        close(&found.unwrap().x, &[1.0], 1e-6);
        assert!(minimise(vec![-1.0], TOLERANCE, &mut barrier, &mut go_on).is_none());
        let mut n_iterations = 0;
        let stopped = minimise(vec![30.0], TOLERANCE, &mut barrier, &mut |iteration, _| {
            n_iterations = iteration;
            ControlFlow::Break(())
        });
        assert!(n_iterations == 1 && stopped.unwrap().value < 30.0);
    }
}
