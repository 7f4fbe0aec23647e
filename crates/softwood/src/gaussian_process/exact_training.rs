//! Estimation of the hyper-parameters of an exact Gaussian process whose noise has one free scale: the
//! marginal likelihood times the prior is maximised by L-BFGS.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::gaussian_process::exact::log_marginal_likelihood;
use crate::gaussian_process::hyperparameters::EstimationProblem;
use crate::numerics::lbfgs::{Evaluated, Tolerance, minimise};
use crate::stop;

/// Decrease of the log posterior density in one iteration that ends the search.
const MIN_GAIN: f64 = 1e-2;
/// Largest component of the gradient at the end of the search.
const MAX_GRADIENT: f64 = 1e-3;

/// A point of the search.
#[derive(Debug, Clone)]
pub(crate) struct HyperEstimate {
    pub(crate) theta: Vec<f64>,
    /// Log density of the targets and the hyper-parameters.
    pub(crate) value: f64,
}

/// Minus the log density of targets and hyper-parameters at `theta`, with its gradient; `None` where
/// the covariance cannot be factored.
fn evaluate(problem: EstimationProblem<'_>, theta: &[f64]) -> Result<Option<(f64, Vec<f64>)>> {
    let EstimationProblem { space, rows } = problem;
    let Some(found) = space.at(theta) else {
        return Ok(None);
    };
    let noise = rows.noise(found.noise());
    let Some(evidence) = log_marginal_likelihood(&found.kernel, &rows.observations(&noise))? else {
        return Ok(None);
    };
    let (prior, prior_gradient) = space.log_prior(theta);
    let noise_slope = rows.noise_slope(&evidence.noise);
    let slopes = space.gradient(theta, &evidence.kernel, noise_slope);
    let gradient = slopes.iter().zip(&prior_gradient);
    let gradient = gradient.map(|(slope, prior)| -slope - prior).collect();
    Ok(Some((-evidence.value - prior, gradient)))
}

/// Gives the value and the gradient of a function that is minimised, or `None` where it has none.
type EvaluateEstimate<'a> = &'a mut dyn FnMut(&[f64]) -> Result<Option<(f64, Vec<f64>)>>;

/// Maximises from `start` with at most `max_iterations` iterations. `on_iteration` hears of every
/// iteration and may stop the search.
///
/// # Errors
/// When the work is cancelled, the covariance matrix does not fit into memory, or it cannot be
/// factored at the start.
pub(crate) fn maximise(
    problem: EstimationProblem<'_>,
    start: Vec<f64>,
    max_iterations: usize,
    on_iteration: &mut dyn FnMut(usize, &HyperEstimate) -> ControlFlow<()>,
) -> Result<HyperEstimate> {
    let mut evaluate = |theta: &[f64]| evaluate(problem, theta);
    search(start, max_iterations, &mut evaluate, on_iteration)
}

/// Minimises minus a log density.
///
/// # Errors
/// As [`maximise`].
pub(crate) fn search(
    start: Vec<f64>,
    max_iterations: usize,
    evaluate: EvaluateEstimate<'_>,
    on_iteration: &mut dyn FnMut(usize, &HyperEstimate) -> ControlFlow<()>,
) -> Result<HyperEstimate> {
    let mut failure = None;
    let tolerance = Tolerance {
        max_iterations,
        gradient: MAX_GRADIENT,
        value: MIN_GAIN,
    };
    let estimate = |point: &Evaluated| HyperEstimate {
        theta: point.x.clone(),
        value: -point.value,
    };
    let found = minimise(
        start,
        tolerance,
        &mut |theta| {
            evaluate(theta).unwrap_or_else(|error| {
                failure = Some(error);
                None
            })
        },
        &mut |iteration, point| on_iteration(iteration, &estimate(point)),
    );
    stop::check()?;
    match (found, failure) {
        (_, Some(error)) => Err(error),
        (Some(found), None) => Ok(estimate(&found)),
        (None, None) => Err(Error::Diverged {
            step: 0,
            what: "the covariance matrix of the rows is not positive definite".to_owned(),
        }),
    }
}
