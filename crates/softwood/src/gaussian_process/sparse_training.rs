//! Training of a sparse Gaussian process whose noise has one free scale: minibatches, natural gradients for the
//! values at the inducing points, Adam for the hyper-parameters.

use crate::error::{Error, Result};
use crate::gaussian_process::hyperparameters::{EstimationProblem, GpHyperparameters, HyperSpace};
use crate::gaussian_process::points::{Points, TargetRows};
use crate::gaussian_process::posterior::GpPosterior;
use crate::gaussian_process::sparse::{InducingBasis, NaturalParameters};
use crate::inference::adam::Adam;
use crate::rng::{Key, shuffle};
use crate::stop;

/// Rows of a minibatch.
const BATCH: usize = 1024;
/// Rows from which the noise of the start is computed, and the number of its updates.
const NOISE_ROWS: usize = 8192;
const NOISE_STEPS: usize = 3;
/// Length of a natural-gradient step.
const NATURAL_RATE: f64 = 0.2;
/// Learning rate of the hyper-parameters in the first epoch; it falls linearly to a tenth.
const LEARNING_RATE: f64 = 0.02;

/// A training run: the hyper-parameters `θ` and the posterior of the whitened values.
#[derive(Debug)]
pub(crate) struct SparseTraining<'a> {
    space: &'a HyperSpace,
    rows: TargetRows<'a>,
    inducing: Points,
    pub(crate) theta: Vec<f64>,
    natural: NaturalParameters,
    adam: Adam,
    key: Key,
}

impl<'a> SparseTraining<'a> {
    /// Starts from hyper-parameters `theta`.
    ///
    /// # Errors
    /// When the covariance of the inducing points cannot be factored.
    pub(crate) fn new(
        problem: EstimationProblem<'a>,
        inducing: Points,
        theta: Vec<f64>,
        key: Key,
    ) -> Result<Self> {
        let EstimationProblem { space, rows } = problem;
        let natural = full_pass(&at(space, &theta)?, &inducing, rows)?;
        let mut training = Self {
            adam: Adam::new(theta.len()),
            space,
            rows,
            inducing,
            theta,
            natural,
            key,
        };
        if space.fixed.noise_sd.is_none() {
            for _ in 0..NOISE_STEPS {
                training.set_noise()?;
            }
        }
        Ok(training)
    }

    /// Sets the noise to its optimum given the posterior, and the posterior to its optimum given the
    /// noise. A start from a sample may have far too little noise: inducing points explain less than
    /// an exact process does.
    fn set_noise(&mut self) -> Result<()> {
        let found = at(self.space, &self.theta)?;
        let basis = basis(&found, &self.inducing)?;
        let q = self.natural.posterior().ok_or_else(not_factored)?;
        let mut order: Vec<usize> = (0..self.rows.points.n()).collect();
        shuffle(&mut self.key.rng(), &mut order);
        order.truncate(NOISE_ROWS);
        let (mut squares, mut total) = (0.0, 0.0);
        for batch in order.chunks(BATCH) {
            stop::check()?;
            let sample = self.rows.take(batch);
            let rows = sample.rows();
            let noise = rows.noise(found.noise());
            let projected = basis.project(rows.observations(&noise));
            // relative to the factors, which the optimum of a common scale needs
            let of_rows = basis.expected_squares(&q, &projected);
            let terms = of_rows.iter().zip(rows.noise_factors).zip(rows.weights);
            squares += terms
                .map(|((square, factor), weight)| weight * square / factor)
                .sum::<f64>();
            total += rows.weights.iter().sum::<f64>();
        }
        self.theta = self
            .space
            .with_noise(std::mem::take(&mut self.theta), squares / total);
        self.natural = full_pass(&at(self.space, &self.theta)?, &self.inducing, self.rows)?;
        Ok(())
    }

    /// One epoch; returns the evidence lower bound per unit of weight: its likelihood part is the mean
    /// over the minibatches.
    ///
    /// # Errors
    /// When the work is cancelled or a matrix cannot be factored.
    pub(crate) fn epoch(&mut self, epoch: usize, n_epochs: usize) -> Result<f64> {
        let mut order: Vec<usize> = (0..self.rows.points.n()).collect();
        shuffle(&mut self.key.child(epoch as u64).rng(), &mut order);
        let progress = epoch as f64 / n_epochs as f64;
        let rate = LEARNING_RATE * (1.0 - 0.9 * progress);
        let mut sum = 0.0;
        let n_batches = order.len().div_ceil(BATCH);
        for batch in order.chunks(BATCH) {
            stop::check()?;
            sum += self.step(batch, rate)?;
        }
        let q = self.natural.posterior().ok_or_else(not_factored)?;
        let total_weight: f64 = self.rows.weights.iter().sum();
        Ok(sum / n_batches as f64 - q.kl() / total_weight)
    }

    /// A natural-gradient step and a step of the hyper-parameters.
    fn step(&mut self, batch: &[usize], rate: f64) -> Result<f64> {
        let found = at(self.space, &self.theta)?;
        let sample = self.rows.take(batch);
        let rows = sample.rows();
        let noise = rows.noise(found.noise());
        let basis = basis(&found, &self.inducing)?;
        let projected = basis.project(rows.observations(&noise));
        let factor = self.rows.points.n() as f64 / batch.len() as f64;
        let mut optimum = NaturalParameters::prior(self.inducing.n());
        optimum.add(&projected, factor);
        self.natural.approach(&optimum, NATURAL_RATE);
        let q = self.natural.posterior().ok_or_else(not_factored)?;
        let part = basis.expected_likelihood(&q, &projected);
        let noise_slope = rows.noise_slope(&part.noise);
        let (_, prior) = self.space.log_prior(&self.theta);
        let slopes = self.space.gradient(&self.theta, &part.kernel, noise_slope);
        let descent = slopes.iter().zip(&prior);
        let descent: Vec<f32> = descent
            .map(|(slope, prior)| -(factor * slope + prior) as f32)
            .collect();
        let mut moved: Vec<f32> = self.theta.iter().map(|&x| x as f32).collect();
        self.adam.step(&mut moved, &descent, rate as f32);
        let next: Vec<f64> = moved.into_iter().map(f64::from).collect();
        if self.space.at(&next).is_some() {
            self.theta = next;
        }
        Ok(part.value / rows.weights.iter().sum::<f64>())
    }

    /// The expectation of the squared error `(y - f(x))²` of every row under the present posterior.
    ///
    /// # Errors
    /// When the work is cancelled or a matrix cannot be factored.
    pub(crate) fn expected_squares(&self) -> Result<Vec<f64>> {
        let found = at(self.space, &self.theta)?;
        let basis = basis(&found, &self.inducing)?;
        let q = self.natural.posterior().ok_or_else(not_factored)?;
        let order: Vec<usize> = (0..self.rows.points.n()).collect();
        let mut squares = Vec::with_capacity(order.len());
        for batch in order.chunks(BATCH) {
            stop::check()?;
            let sample = self.rows.take(batch);
            let noise = sample.rows().noise(found.noise());
            let projected = basis.project(sample.rows().observations(&noise));
            squares.extend(basis.expected_squares(&q, &projected));
        }
        Ok(squares)
    }

    /// The posterior under the present hyper-parameters, given all rows.
    ///
    /// # Errors
    /// When the work is cancelled or a matrix cannot be factored.
    pub(crate) fn posterior(&self) -> Result<(GpHyperparameters, GpPosterior)> {
        let found = at(self.space, &self.theta)?;
        let natural = full_pass(&found, &self.inducing, self.rows)?;
        let q = natural.posterior().ok_or_else(not_factored)?;
        let posterior = basis(&found, &self.inducing)?.posterior(q);
        Ok((found, posterior))
    }
}

fn at(space: &HyperSpace, theta: &[f64]) -> Result<GpHyperparameters> {
    space.at(theta).ok_or_else(not_factored)
}

fn basis(found: &GpHyperparameters, inducing: &Points) -> Result<InducingBasis> {
    InducingBasis::new(&found.kernel, inducing).ok_or_else(not_factored)
}

fn not_factored() -> Error {
    // a cancelled decomposition is not complete; the caller then reports that the work is cancelled
    Error::Diverged {
        step: 0,
        what: "a covariance matrix is not positive definite".to_owned(),
    }
}

/// The optimal natural parameters given all rows.
fn full_pass(
    found: &GpHyperparameters,
    inducing: &Points,
    all: TargetRows<'_>,
) -> Result<NaturalParameters> {
    let basis = basis(found, inducing)?;
    let mut natural = NaturalParameters::prior(inducing.n());
    let order: Vec<usize> = (0..all.points.n()).collect();
    for batch in order.chunks(BATCH) {
        stop::check()?;
        let sample = all.take(batch);
        let noise = sample.rows().noise(found.noise());
        let projected = basis.project(sample.rows().observations(&noise));
        natural.add(&projected, 1.0);
    }
    Ok(natural)
}
