//! The fit of the process: a sample of the rows, hyper-parameters from few of them, inducing points,
//! and the variance that is usual among the rows.

use std::ops::ControlFlow;
use std::sync::OnceLock;

use crate::data::dataset::Dataset;
use crate::data::dedup::Deduplicated;
use crate::data::encoding::{Encoder, Encoding, Rotation, Scaling};
use crate::data::target::{Target, TargetUnits};
use crate::error::Result;
use crate::extrapolation::Extrapolation;
use crate::extrapolation::process::Process;
use crate::gaussian_process::exact_training::maximise;
use crate::gaussian_process::hyperparameters::{
    EstimationProblem, FixedHyperparameters, GpHyperparameters, HyperPrior, HyperSpace,
};
use crate::gaussian_process::inducing;
use crate::gaussian_process::kernel::{CovarianceKernel, KernelShape};
use crate::gaussian_process::points::{Observations, Points, TargetRows};
use crate::gaussian_process::sparse::{InducingBasis, NaturalParameters};
use crate::numerics::dense_cholesky::DenseCholesky;
use crate::rng::Key;
use crate::stop;

/// Largest number of rows that the process is conditioned on.
const MAX_ROWS: usize = 5000;
/// Largest number of held-out rows, whose variances are usual, and their share of the rows.
const MAX_HELD_OUT: usize = 500;
const HELD_OUT_SHARE: usize = 5;
/// Share of the held-out rows, at least one row, that may lie so far from all others that they do not tell
/// what is usual; a usual value may be this many times the largest value of the rest.
const MAX_OUTLYING: f64 = 0.05;
const OUTLYING_RATIO: f64 = 2.0;
/// A held-out row with less than this share of the variance of the function is never outlying: training
/// rows are near it.
const MIN_OUTLYING: f64 = 0.5;
/// Smallest usual variance, as a share of the variance of the function: less is rounding.
const MIN_BASELINE: f64 = 1e-6;
/// Number of rows that hyper-parameters are estimated from, and iterations of their estimation.
const N_HYPER_ROWS: usize = 200;
const HYPER_ITERATIONS: usize = 30;
/// Largest number of inducing points. Without more rows than these, rows are left out one at a time
/// instead of held out.
const MAX_INDUCING: usize = 100;
/// Largest number of inputs: those with the largest correlation with the target.
const MAX_INPUTS: usize = 100;
/// Largest number of categories of a column with an input of their own.
const MAX_CATEGORIES: usize = 20;
/// Standardised targets are clamped to this magnitude.
const MAX_TARGET: f64 = 1e6;
/// Smallest standard deviation of the noise, in standard units.
const MIN_NOISE_SD: f64 = 1e-3;
/// Starting point of the estimation: length scales in units of the median distance, and the standard
/// deviation of the noise.
const START_LENGTH: f64 = 0.7;
const START_NOISE_SD: f64 = 0.22;
const PRIOR: HyperPrior = HyperPrior {
    length_median: 1.0,
    length_spread: 1.5,
    signal_spread: 1.0,
    noise_median: 0.135,
    noise_spread: 2.0,
};

/// Random streams of the process.
mod streams {
    pub(super) const ROWS: u64 = 0;
    pub(super) const FUNCTIONS: u64 = 1;
}

/// The rows of the process.
struct ProcessRows {
    points: Points,
    targets: Vec<f64>,
    weights: Vec<f64>,
}

impl Extrapolation {
    /// Fits the process to a dataset; `None` for a constant target and for rows without inputs.
    ///
    /// # Errors
    /// When the work is cancelled or memory is short.
    pub(crate) fn fit(data: &Dataset, key: Key) -> Result<Option<Self>> {
        let chosen = Deduplicated::sampled(data, MAX_ROWS + MAX_HELD_OUT, key.child(streams::ROWS));
        stop::check()?;
        let rows: Vec<usize> = chosen.rows.iter().map(|&row| row as usize).collect();
        let sample = data.try_take(&rows)?;
        let (values, weights) = match sample.target() {
            Target::Numeric(values) => (values.clone(), chosen.weights),
            // weights of classes do not tell how close the rows are
            Target::Classes(codes) => {
                let codes = codes.iter().map(|&code| f64::from(code));
                (codes.collect(), vec![1.0; rows.len()])
            }
        };
        let weights = &weights[..];
        let encoding = Encoding {
            scaling: Scaling::Standard,
            rotation: Rotation::None,
            squares: false,
            max_categories: MAX_CATEGORIES,
        };
        let encoder = Encoder::fit(sample.features(), weights, encoding);
        let all = Points::encoded(&encoder, &sample.features().rows(0..sample.n_rows()));
        stop::check()?;
        let units = TargetUnits::fit(&values, Some(weights));
        let targets = values.iter().map(|&value| units.apply(value));
        let targets: Vec<f64> = targets
            .map(|value| value.clamp(-MAX_TARGET, MAX_TARGET))
            .collect();
        let inputs = relevant_inputs(&all, &targets, weights);
        let is_constant = targets.iter().all(|target| target.abs() <= 0.0);
        if inputs.is_empty() || is_constant {
            return Ok(None);
        }
        let rows = ProcessRows {
            points: all.inputs(&inputs),
            targets,
            weights: weights.to_vec(),
        };
        let Some(found) = hyperparameters(&rows)? else {
            return Ok(None);
        };
        let Some(conditioned) = condition(&rows, &found)? else {
            return Ok(None);
        };
        stop::check()?;
        Ok(Some(Self {
            encoder,
            inputs,
            units,
            process: conditioned.process,
            baseline: conditioned.baseline,
            residual_baseline: conditioned.residual_baseline,
            key: key.child(streams::FUNCTIONS),
            shifts_members: true,
            shares: OnceLock::new(),
        }))
    }
}

impl ProcessRows {
    fn n(&self) -> usize {
        self.targets.len()
    }

    /// The first `n` rows.
    fn first(&self, n: usize) -> Self {
        let rows: Vec<usize> = (0..n).collect();
        Self {
            points: self.points.take(&rows),
            targets: self.targets[..n].to_vec(),
            weights: self.weights[..n].to_vec(),
        }
    }
}

/// The inputs that vary, or the [`MAX_INPUTS`] of them with the largest correlation with the target.
fn relevant_inputs(points: &Points, targets: &[f64], weights: &[f64]) -> Vec<usize> {
    let total: f64 = weights.iter().sum();
    let mean = |values: &[f64]| {
        let terms = values.iter().zip(weights);
        terms.map(|(value, weight)| value * weight).sum::<f64>() / total
    };
    let target_mean = mean(targets);
    let mut found: Vec<(usize, f64)> = Vec::new();
    for input in 0..points.n_inputs() {
        let column = points.column(input);
        let centre = mean(column);
        let (mut square, mut product) = (0.0, 0.0);
        for ((value, target), weight) in column.iter().zip(targets).zip(weights) {
            let from_centre = value - centre;
            square += weight * from_centre * from_centre;
            product += weight * from_centre * (target - target_mean);
        }
        if square > 0.0 {
            found.push((input, product.abs() / square.sqrt()));
        }
    }
    found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    found.truncate(MAX_INPUTS);
    let mut inputs: Vec<usize> = found.into_iter().map(|(input, _)| input).collect();
    inputs.sort_unstable();
    inputs
}

/// The most probable hyper-parameters given the first rows; `None` if there are none.
fn hyperparameters(rows: &ProcessRows) -> Result<Option<GpHyperparameters>> {
    let few = rows.first(rows.n().min(N_HYPER_ROWS));
    let space = HyperSpace {
        shape: KernelShape::Matern52,
        n_inputs: few.points.n_inputs(),
        fixed: FixedHyperparameters::default(),
        min_noise_sd: MIN_NOISE_SD,
        prior: PRIOR,
    };
    let problem = EstimationProblem {
        space: &space,
        rows: TargetRows {
            points: &few.points,
            targets: &few.targets,
            weights: &few.weights,
            noise_factors: &vec![1.0; few.n()],
        },
    };
    let start = space.start(&few.points, START_LENGTH, START_NOISE_SD);
    let mut never_stop = |_: usize, _: &_| ControlFlow::Continue(());
    let found = maximise(problem, start, HYPER_ITERATIONS, &mut never_stop);
    stop::check()?;
    // a process without a maximum is not worth the failure of the fit that it serves
    Ok(found.ok().and_then(|found| space.at(&found.theta)))
}

/// The process given the rows.
struct ConditionedProcess {
    process: Process,
    baseline: f64,
    residual_baseline: f64,
}

fn condition(rows: &ProcessRows, found: &GpHyperparameters) -> Result<Option<ConditionedProcess>> {
    let kernel = &found.kernel;
    let n_held_out = if rows.n() > MAX_INDUCING {
        MAX_HELD_OUT.min(rows.n() / HELD_OUT_SHARE)
    } else {
        0
    };
    let training = rows.first(rows.n() - n_held_out);
    let chosen = inducing::choose_among(kernel, &training.points, MAX_INDUCING);
    stop::check()?;
    let inducing = training.points.take(&chosen);
    let Some(basis) = InducingBasis::new(kernel, &inducing) else {
        return Ok(None);
    };
    let noise = vec![found.noise(); training.n()];
    let mut natural = NaturalParameters::prior(inducing.n());
    natural.add(
        &basis.project(Observations {
            points: &training.points,
            targets: &training.targets,
            weights: &training.weights,
            noise: &noise,
        }),
        1.0,
    );
    let Some(q) = natural.posterior() else {
        return Ok(None);
    };
    let Some(process) = Process::new(basis.posterior(q), inducing) else {
        return Ok(None);
    };
    let left_out = if n_held_out > 0 {
        let held_out: Vec<usize> = (training.n()..rows.n()).collect();
        let latent = process.latent(&kernel.scaled(&rows.points.take(&held_out)));
        let targets = &rows.targets[training.n()..];
        let residuals = targets.iter().zip(&latent.mean).map(|(y, mean)| y - mean);
        LeftOut {
            residuals: residuals.collect(),
            variances: latent.variance,
        }
    } else {
        let Some(left_out) = LeftOut::one_at_a_time(kernel, &training, found.noise()) else {
            return Ok(None);
        };
        left_out
    };
    let baseline = usual_maximum(&left_out.variances, MIN_OUTLYING * kernel.variance());
    let residuals = left_out.residuals.iter().zip(&left_out.variances);
    let usual = residuals.filter(|(_, variance)| **variance <= baseline);
    Ok(Some(ConditionedProcess {
        process,
        baseline: baseline.max(MIN_BASELINE * kernel.variance()),
        residual_baseline: usual.map(|(r, _)| r * r).fold(0.0, f64::max),
    }))
}

/// The largest value that is not outlying: single rows far from all others would let everything pass as
/// usual. A value below `near` is never outlying, and neither is one of at most [`OUTLYING_RATIO`] times the
/// largest value without a share of [`MAX_OUTLYING`].
fn usual_maximum(values: &[f64], near: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(|a, b| b.total_cmp(a));
    let n_outlying = (MAX_OUTLYING * values.len() as f64).ceil() as usize;
    let largest = values.first().copied().unwrap_or(0.0);
    let rest = values.get(n_outlying).copied().unwrap_or(largest);
    let largest_near = values.iter().copied().find(|&value| value < near);
    largest.min(largest_near.unwrap_or(0.0).max(OUTLYING_RATIO * rest))
}

/// Residuals and variances of the function at rows that the process was not conditioned on.
struct LeftOut {
    residuals: Vec<f64>,
    variances: Vec<f64>,
}

impl LeftOut {
    /// Rows that are left out one at a time: with the covariance `K` of the noisy targets `y` and the
    /// noise `v` of the row, the residual is `[K^-1 y]_n / [K^-1]_nn` and the variance
    /// `1 / [K^-1]_nn - v`. `None` if `K` cannot be factored.
    fn one_at_a_time(kernel: &CovarianceKernel, rows: &ProcessRows, noise: f64) -> Option<Self> {
        let n = rows.n();
        let mut covariance = vec![0.0; n * n];
        kernel.lower(&kernel.scaled(&rows.points), &mut covariance);
        for (row, weight) in rows.weights.iter().enumerate() {
            covariance[row * n + row] += noise / weight;
        }
        let inverse = DenseCholesky::factor(covariance, n)?.into_inverse();
        let value = |row: usize, column: usize| inverse[row.max(column) * n + row.min(column)];
        let weighted = |row: usize| -> f64 {
            let terms = rows.targets.iter().enumerate();
            terms.map(|(column, y)| value(row, column) * y).sum()
        };
        let variance = |row: usize| (1.0 / value(row, row) - noise / rows.weights[row]).max(0.0);
        Some(Self {
            residuals: (0..n).map(|row| weighted(row) / value(row, row)).collect(),
            variances: (0..n).map(variance).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gaussian_process::exact;
    use softwood_testkit::close;

    #[test]
    fn outlying_values_are_not_usual() {
        let found = |outlying: &[f64], near: f64| {
            let rest = vec![1.0; 100 - outlying.len()];
            usual_maximum(&[&rest, outlying].concat(), near)
        };
        let found = [
            found(&[1.5; 5], 0.0),
            found(&[1e3; 5], 0.0),
            found(&[9.0; 6], 0.0),
            found(&[1e3, 1e3, 5.0], 7.0),
            usual_maximum(&[2.0], 0.0),
            usual_maximum(&[], 0.0),
        ];
        close(&found, &[1.5, 2.0, 9.0, 5.0, 2.0, 0.0], 1e-12);
    }

    #[test]
    fn rows_left_out_have_the_residual_and_variance_of_a_process_without_them() {
        let n = 12;
        let x = (0..n).map(|row| (row * row % 17) as f64 / 4.0).collect();
        let rows = ProcessRows {
            points: Points::from_columns(x, n, 1),
            targets: (0..n).map(|row| (row * 5 % 7) as f64 / 3.0 - 1.0).collect(),
            weights: (0..n).map(|row| 1.0 + (row % 3) as f64).collect(),
        };
        let kernel = CovarianceKernel {
            shape: KernelShape::Matern52,
            log_lengths: vec![0.2],
            log_signal: 0.1,
        };
        let noise = 0.05;
        let found = LeftOut::one_at_a_time(&kernel, &rows, noise).unwrap();
        for left_out in 0..n {
            let others: Vec<usize> = (0..n).filter(|&row| row != left_out).collect();
            let of_others =
                |values: &[f64]| -> Vec<f64> { others.iter().map(|&row| values[row]).collect() };
            let posterior = exact::posterior(
                &kernel,
                &Observations {
                    points: &rows.points.take(&others),
                    targets: &of_others(&rows.targets),
                    weights: &of_others(&rows.weights),
                    noise: &vec![noise; n - 1],
                },
            );
            let latent = posterior
                .unwrap()
                .unwrap()
                .latent(&rows.points.take(&[left_out]));
            let residual = rows.targets[left_out] - latent.mean[0];
            close(&[found.residuals[left_out]], &[residual], 1e-7);
            close(&[found.variances[left_out]], &latent.variance, 1e-7);
        }
    }
}
