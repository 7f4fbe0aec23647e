//! The search for hyper-parameters: starting points on a sample of the rows, then all rows.

use std::ops::ControlFlow;

use crate::error::Result;
use crate::fit::Run;
use crate::gaussian_process::exact_training::{HyperEstimate, maximise};
use crate::gaussian_process::hyperparameters::{EstimationProblem, HyperSpace};
use crate::gaussian_process::points::TargetRows;
use crate::model::{CurvePoint, Model};
use crate::models::gp::streams;
use crate::observer::{Event, Stop, TakeSnapshot};
use crate::rng::{Key, shuffle, uniform};
use crate::stop;

/// Largest number of rows on which starting points are compared.
const N_START_ROWS: usize = 500;
/// Iterations from each starting point.
const START_ITERATIONS: usize = 15;
/// Iterations on the sample of a sparse process.
const SAMPLE_ITERATIONS: usize = 30;
/// Length scales, relative to the median distance, and noise of the first starting points.
const STARTS: [(f64, f64); 3] = [(1.0, 0.3), (0.3, 0.1), (3.0, 0.3)];

/// Makes a model of hyper-parameters and the curve that led to them.
type ModelOfEstimate<'a> = &'a dyn Fn(&[f64], &[CurvePoint]) -> Result<Box<dyn Model>>;

/// The events of a search and the decision of the observer.
pub(super) struct Progress<'a> {
    run: &'a Run<'a>,
    /// Whether the observer has stopped the fit and keeps the model.
    pub(super) is_stopped: bool,
    pub(super) curve: Vec<CurvePoint>,
}

impl<'a> Progress<'a> {
    pub(super) fn new(run: &'a Run<'a>) -> Self {
        Self {
            run,
            is_stopped: false,
            curve: Vec::new(),
        }
    }

    /// Sends an event; the work goes on unless the observer stops it.
    pub(super) fn send(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        if self.is_stopped {
            return ControlFlow::Break(());
        }
        match self.run.observer.on_event(event) {
            ControlFlow::Continue(()) => ControlFlow::Continue(()),
            // a fit that is discarded is cancelled at the next check
            ControlFlow::Break(Stop::Keep | Stop::Discard) => {
                self.is_stopped = true;
                ControlFlow::Break(())
            }
        }
    }
}

/// A random sample of at most `n` of `n_rows` rows, in ascending order.
pub(super) fn sample(n_rows: usize, n: usize, key: Key) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..n_rows).collect();
    if n < n_rows {
        shuffle(&mut key.rng(), &mut rows);
        rows.truncate(n);
        rows.sort_unstable();
    }
    rows
}

/// The best of several starting points, after some iterations on a sample of the rows.
///
/// # Errors
/// When the work is cancelled or the covariance matrix cannot be factored.
pub(super) fn start(
    problem: EstimationProblem<'_>,
    n_starts: usize,
    progress: &mut Progress<'_>,
) -> Result<Vec<f64>> {
    let EstimationProblem { space, rows } = problem;
    let key = progress.run.key;
    let chosen = sample(rows.points.n(), N_START_ROWS, key.child(streams::SAMPLE));
    let sample = rows.take(&chosen);
    let rows = sample.rows();
    let problem = EstimationProblem { space, rows };
    let total = n_starts * START_ITERATIONS;
    let mut best: Option<HyperEstimate> = None;
    for trial in 0..n_starts {
        let theta = starting_point(space, rows, trial, key.child(streams::STARTS));
        let done = trial * START_ITERATIONS;
        let event = Event {
            trial: Some(trial),
            ..Event::new("starting points", done, total)
        };
        if progress.send(&event).is_break() {
            return Ok(best.map_or(theta, |best| best.theta));
        }
        let mut hear = |iteration: usize, _: &HyperEstimate| {
            progress.send(&Event {
                done: done + iteration,
                ..event
            })
        };
        let found = maximise(problem, theta, START_ITERATIONS, &mut hear)?;
        if best.as_ref().is_none_or(|best| found.value > best.value) {
            best = Some(found);
        }
        if progress.is_stopped {
            break;
        }
    }
    Ok(best.map_or_else(Vec::new, |best| best.theta))
}

/// Starting point `trial`: one of [`STARTS`], or a random one.
fn starting_point(space: &HyperSpace, rows: TargetRows<'_>, trial: usize, key: Key) -> Vec<f64> {
    if let Some(&(length_factor, noise_sd)) = STARTS.get(trial) {
        return space.start(rows.points, length_factor, noise_sd);
    }
    let mut rng = key.child(trial as u64).rng();
    let mut between = |low: f64, high: f64| low + (high - low) * uniform(&mut rng);
    let mut theta = space.start(rows.points, 1.0, 10_f64.powf(between(-2.0, 0.0)));
    for coordinate in theta.iter_mut().take(space.n_lengths()) {
        *coordinate += between(-1.5, 1.5);
    }
    theta
}

/// Hyper-parameters of an exact process on all rows, from a starting point. `snapshot` makes a model
/// of hyper-parameters.
///
/// # Errors
/// When the work is cancelled, the covariance matrix does not fit into memory, or it cannot be
/// factored.
pub(super) fn optimise(
    problem: EstimationProblem<'_>,
    theta: Vec<f64>,
    max_iterations: usize,
    progress: &mut Progress<'_>,
    snapshot: ModelOfEstimate<'_>,
) -> Result<Vec<f64>> {
    let total_weight: f64 = problem.rows.weights.iter().sum();
    let event =
        |done: usize, curve: &[CurvePoint], take: TakeSnapshot<'_>, progress: &mut Progress<'_>| {
            let event = Event {
                epoch: Some(done),
                elbo: curve.last().map(|point| point.elbo),
                ..Event::new("optimising", done, max_iterations)
            };
            progress.send(&event.with_snapshot(take))
        };
    let at_start = || snapshot(&theta, &[]);
    if event(0, &[], &at_start, progress).is_break() {
        stop::check()?;
        return Ok(theta);
    }
    let mut curve: Vec<CurvePoint> = Vec::new();
    let mut hear = |iteration: usize, found: &HyperEstimate| {
        curve.push(CurvePoint::new(iteration, found.value / total_weight));
        let take = || snapshot(&found.theta, &curve);
        event(iteration, &curve, &take, progress)
    };
    let found = maximise(problem, theta.clone(), max_iterations, &mut hear)?;
    progress.curve = curve;
    Ok(found.theta)
}

/// Hyper-parameters of an exact process on a sample, from which a sparse process starts.
///
/// # Errors
/// As [`optimise`].
pub(super) fn refine(
    problem: EstimationProblem<'_>,
    theta: Vec<f64>,
    progress: &mut Progress<'_>,
) -> Result<Vec<f64>> {
    let mut hear = |iteration: usize, _: &HyperEstimate| {
        progress.send(&Event::new("sample", iteration, SAMPLE_ITERATIONS))
    };
    let found = maximise(problem, theta, SAMPLE_ITERATIONS, &mut hear)?;
    Ok(found.theta)
}
