//! The rows of a fit, encoded, and the fits of a process with constant noise: estimate the
//! hyper-parameters, condition the process.

use serde_json::Value;

use crate::data::dataset::Dataset;
use crate::data::encoding::{Encoder, Encoding, Rotation, Scaling};
use crate::data::schema::Schema;
use crate::data::target::{Target, TargetStandard, TargetUnits};
use crate::data::unseen::UnseenSubstitutes;
use crate::error::{Error, Result};
use crate::fit::Fit;
use crate::gaussian_process::exact;
use crate::gaussian_process::hyperparameters::{
    EstimationProblem, FixedHyperparameters, GpHyperparameters, HyperSpace, MODEL_PRIOR,
};
use crate::gaussian_process::inducing;
use crate::gaussian_process::points::{Points, TargetRows};
use crate::gaussian_process::posterior::GpPosterior;
use crate::gaussian_process::sparse_training::SparseTraining;
use crate::model::{CurvePoint, Model, Training};
use crate::models::gp::config::GpConfig;
use crate::models::gp::fitted::{Gp, GpParts, description};
use crate::models::gp::noise_tree::GpNoise;
use crate::models::gp::search::{Progress, optimise, refine, sample, start};
use crate::models::gp::streams;
use crate::observer::Event;
use crate::predictive::noise_calibration::NoiseCalibration;
use crate::reserve;
use crate::rng::Key;
use crate::stop;

/// Number of inducing points, if it is not given.
const N_INDUCING: usize = 512;
/// Rows of the sample that gives the hyper-parameters that a sparse process starts from.
const N_SPARSE_START: usize = 1000;
/// Number of matrices of inducing points x inducing points that training has at a time.
const SPARSE_MATRICES: usize = 8;
/// Standardised targets are clamped to this magnitude.
const MAX_TARGET: f64 = 1e6;

/// Adds what to do to the error of a matrix that does not fit into memory.
pub(super) fn too_large(error: Error, n_rows: usize) -> Error {
    match error {
        Error::Memory { bytes, .. } => Error::Parameters(vec![format!(
            "`max_exact_rows`: an exact process on {n_rows} rows needs matrices of {:.1} GB each, more than is available; \
             set `n_inducing` for a sparse process, or use `vst` or `sglb`",
            bytes as f64 / 1e9
        )]),
        error => error,
    }
}

/// The encoded rows of a fit and what does not change during it.
pub(super) struct Problem {
    pub(super) family: &'static str,
    pub(super) config: GpConfig,
    params: Value,
    pub(super) key: Key,
    schema: Schema,
    encoder: Encoder,
    units: TargetUnits,
    pub(super) points: Points,
    targets: Vec<f64>,
    pub(super) weights: Vec<f64>,
    /// A noise factor of 1 for each row.
    unit_factors: Vec<f64>,
    pub(super) space: HyperSpace,
}

impl Problem {
    /// The problem of deduplicated rows; `params` are the parameters as the model keeps them.
    pub(super) fn new<P: Fit>(
        config: GpConfig,
        params: &P,
        data: &Dataset,
        key: Key,
    ) -> Result<Self> {
        let weights = data.weights().expect("deduplicated rows have weights");
        let encoding = Encoding {
            scaling: Scaling::Standard,
            rotation: Rotation::None,
            squares: false,
            max_categories: config.max_categories,
        };
        let encoder = Encoder::fit(data.features(), weights, encoding);
        stop::check()?;
        let points = Points::encoded(&encoder, &data.features().rows(0..data.n_rows()));
        stop::check()?;
        let Target::Numeric(values) = data.target() else {
            unreachable!("a fit checks that the target is numeric")
        };
        let TargetStandard { units, floor } = TargetStandard::of(values, Some(weights));
        let standardised = values.iter().map(|&value| units.apply(value));
        let space = HyperSpace {
            shape: config.kernel,
            n_inputs: points.n_inputs(),
            fixed: FixedHyperparameters {
                length: config.length_scale,
                signal_sd: config.signal_scale,
                noise_sd: config.noise_scale,
            },
            min_noise_sd: config.min_scale.unwrap_or(floor),
            prior: MODEL_PRIOR,
        };
        Ok(Self {
            family: P::FAMILY,
            config,
            params: serde_json::to_value(params).unwrap_or_default(),
            key,
            unit_factors: vec![1.0; points.n()],
            schema: data.schema().clone(),
            targets: standardised
                .map(|value| value.clamp(-MAX_TARGET, MAX_TARGET))
                .collect(),
            weights: weights.to_vec(),
            encoder,
            units,
            points,
            space,
        })
    }

    /// All rows, with the same noise.
    pub(super) fn rows(&self) -> TargetRows<'_> {
        self.noisy_rows(&self.unit_factors)
    }

    /// All rows, with these factors of the noise variance.
    pub(super) fn noisy_rows<'b>(&'b self, noise_factors: &'b [f64]) -> TargetRows<'b> {
        TargetRows {
            points: &self.points,
            targets: &self.targets,
            weights: &self.weights,
            noise_factors,
        }
    }

    /// The estimation of the hyper-parameters from some rows.
    pub(super) fn estimation<'b>(&'b self, rows: TargetRows<'b>) -> EstimationProblem<'b> {
        EstimationProblem {
            space: &self.space,
            rows,
        }
    }

    /// The hyper-parameters from which training on all rows starts.
    fn start(&self, rows: TargetRows<'_>, progress: &mut Progress<'_>) -> Result<Vec<f64>> {
        let n_starts = if self.space.n_free() == 0 {
            1
        } else {
            1 + self.config.n_restarts
        };
        start(self.estimation(rows), n_starts, progress)
    }

    /// The hyper-parameters of an exact process with constant noise.
    pub(super) fn exact_theta(&self, progress: &mut Progress<'_>) -> Result<Vec<f64>> {
        let theta = self.start(self.rows(), progress)?;
        if progress.is_stopped {
            return Ok(theta);
        }
        let snapshot = |theta: &[f64], curve: &[CurvePoint]| -> Result<Box<dyn Model>> {
            let training = self.training(curve.to_vec(), true);
            Ok(Box::new(self.exact_model(theta, training)?))
        };
        let max_iterations = self.config.max_iterations;
        let problem = self.estimation(self.rows());
        optimise(problem, theta, max_iterations, progress, &snapshot)
    }

    pub(super) fn fit_exact(&self, progress: &mut Progress<'_>) -> Result<Gp> {
        let theta = self.exact_theta(progress)?;
        let training = self.training(std::mem::take(&mut progress.curve), progress.is_stopped);
        self.exact_model(&theta, training)
    }

    /// An exact process with constant noise.
    pub(super) fn exact_model(&self, theta: &[f64], training: Training) -> Result<Gp> {
        let found = self.space.at(theta).ok_or_else(not_positive_definite)?;
        let noise = GpNoise::Constant(found.noise_sd);
        self.conditioned(&self.space, theta, self.rows(), noise, training)
    }

    /// An exact process with these hyper-parameters, given the rows.
    pub(super) fn conditioned(
        &self,
        space: &HyperSpace,
        theta: &[f64],
        rows: TargetRows<'_>,
        noise: GpNoise,
        training: Training,
    ) -> Result<Gp> {
        let found = space.at(theta).ok_or_else(not_positive_definite)?;
        let of_rows = rows.noise(found.noise());
        let posterior = exact::posterior(&found.kernel, &rows.observations(&of_rows))?;
        stop::check()?;
        let posterior = posterior.ok_or_else(not_positive_definite)?;
        let of_observation = of_rows.iter().zip(&self.weights);
        let of_observation: Vec<f64> = of_observation
            .map(|(noise, weight)| noise / weight)
            .collect();
        let parts = self.parts(&found, posterior, self.points.clone(), noise, training);
        Ok(Gp::new(parts, &of_observation))
    }

    /// The points of a sparse process and hyper-parameters to start from.
    pub(super) fn sparse_start(&self, progress: &mut Progress<'_>) -> Result<(Points, Vec<f64>)> {
        let theta = self.sample_theta(progress)?;
        let found = self.space.at(&theta).ok_or_else(not_positive_definite)?;
        let n_inducing = self.config.n_inducing.unwrap_or(N_INDUCING);
        let n_inducing = n_inducing.min(self.points.n());
        let n_candidates = inducing::n_candidates(n_inducing, self.points.n());
        reserve::check(n_inducing, n_candidates + SPARSE_MATRICES * n_inducing)?;
        let key = self.key.child(streams::INDUCING);
        let chosen = inducing::choose(&found.kernel, &self.points, n_inducing, key);
        stop::check()?;
        Ok((self.points.take(&chosen), theta))
    }

    pub(super) fn fit_sparse(&self, progress: &mut Progress<'_>) -> Result<Gp> {
        let (inducing, theta) = self.sparse_start(progress)?;
        let (training, curve) = self.train_sparse(&inducing, theta, progress)?;
        let report = self.training(curve, progress.is_stopped);
        self.sparse_model(&training, &inducing, report)
    }

    /// Trains a sparse process with constant noise.
    pub(super) fn train_sparse(
        &self,
        inducing: &Points,
        theta: Vec<f64>,
        progress: &mut Progress<'_>,
    ) -> Result<(SparseTraining<'_>, Vec<CurvePoint>)> {
        let batches = self.key.child(streams::BATCHES);
        let problem = self.estimation(self.rows());
        let mut training = SparseTraining::new(problem, inducing.clone(), theta, batches)?;
        let n_epochs = if self.space.n_free() == 0 {
            0
        } else {
            self.config.n_epochs
        };
        let mut curve: Vec<CurvePoint> = Vec::new();
        for epoch in 0..=n_epochs {
            if progress.is_stopped {
                break;
            }
            if epoch > 0 {
                let elbo = training.epoch(epoch - 1, n_epochs)?;
                curve.push(CurvePoint::new(epoch, elbo));
            }
            let snapshot = || -> Result<Box<dyn Model>> {
                let report = self.training(curve.clone(), true);
                Ok(Box::new(self.sparse_model(&training, inducing, report)?))
            };
            let event = Event {
                epoch: Some(epoch),
                elbo: curve.last().map(|point| point.elbo),
                ..Event::new("training", epoch, n_epochs)
            };
            let _ = progress.send(&event.with_snapshot(&snapshot));
        }
        Ok((training, curve))
    }

    /// Hyper-parameters of an exact process on a sample of the rows.
    fn sample_theta(&self, progress: &mut Progress<'_>) -> Result<Vec<f64>> {
        let key = self.key.child(streams::SAMPLE).child(1);
        let chosen = sample(self.points.n(), N_SPARSE_START, key);
        let sample = self.rows().take(&chosen);
        let theta = self.start(sample.rows(), progress)?;
        if progress.is_stopped || self.space.n_free() == 0 {
            return Ok(theta);
        }
        refine(self.estimation(sample.rows()), theta, progress)
    }

    /// A sparse process with constant noise.
    pub(super) fn sparse_model(
        &self,
        training: &SparseTraining<'_>,
        inducing: &Points,
        report: Training,
    ) -> Result<Gp> {
        let (found, posterior) = training.posterior()?;
        let noise = GpNoise::Constant(found.noise_sd);
        let parts = self.parts(&found, posterior, inducing.clone(), noise, report);
        Ok(Gp::new(parts, &[]))
    }

    /// The report of the training.
    pub(super) fn training(&self, curve: Vec<CurvePoint>, is_stopped: bool) -> Training {
        Training {
            curve,
            target_sd: Some(self.units.scale),
            is_stopped,
            ..Training::default()
        }
    }

    pub(super) fn parts(
        &self,
        found: &GpHyperparameters,
        posterior: GpPosterior,
        points: Points,
        noise: GpNoise,
        training: Training,
    ) -> GpParts {
        let is_sparse = posterior.precision.is_some();
        GpParts {
            family: self.family,
            schema: self.schema.clone(),
            units: self.units,
            encoder: self.encoder.clone(),
            params: self.params.clone(),
            training: Training {
                chosen: description(&found.kernel, &noise, points.n(), is_sparse),
                ..training
            },
            noise,
            calibration: NoiseCalibration::IDENTITY,
            posterior,
            points,
            key: self.key.child(streams::MEMBERS),
            substitutes: UnseenSubstitutes::new(self.key.child(streams::UNSEEN)),
            n_members: self.config.n_members,
        }
    }
}

pub(super) fn not_positive_definite() -> Error {
    Error::Diverged {
        step: 0,
        what: "the covariance matrix of the rows is not positive definite".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_too_large_is_refused_with_alternatives() {
        let memory = Error::Memory {
            what: "values".to_owned(),
            bytes: 20_000_000_000,
        };
        let message = too_large(memory, 50_000).to_string();
        for part in ["50000 rows", "20.0 GB", "`n_inducing`", "`vst`", "`sglb`"] {
            assert!(message.contains(part), "{message}");
        }
    }
}
