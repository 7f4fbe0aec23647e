//! Training: deduplicate and encode the rows, estimate the hyper-parameters, condition the process.

use crate::data::dataset::Dataset;
use crate::data::encoding::{Encoder, Encoding, Rotation, Scaling};
use crate::data::schema::Schema;
use crate::data::target::{Target, TargetStandard, TargetUnits};
use crate::data::unseen::UnseenSubstitutes;
use crate::error::{Error, Result};
use crate::fit::{Fit, Run};
use crate::gaussian_process::exact;
use crate::gaussian_process::hyperparameters::{
    EstimationProblem, FixedHyperparameters, GpHyperparameters, HyperSpace,
};
use crate::gaussian_process::inducing;
use crate::gaussian_process::points::{Observations, Points, TargetRows};
use crate::gaussian_process::posterior::GpPosterior;
use crate::gaussian_process::sparse_training::SparseTraining;
use crate::model::{CurvePoint, Model, Training};
use crate::models::gp::fitted::{Gp, GpParts, description};
use crate::models::gp::params::GpParams;
use crate::models::gp::search::{Progress, optimise, refine, sample, start};
use crate::models::gp::streams;
use crate::observer::Event;
use crate::params::Checked;
use crate::rng::Key;
use crate::stop;
use crate::store::record::Record;

/// Number of inducing points, if it is not given.
const N_INDUCING: usize = 512;
/// Rows of the sample that gives the hyper-parameters that a sparse process starts from.
const N_SPARSE_START: usize = 1000;
/// Standardised targets are clamped to this magnitude.
const MAX_TARGET: f64 = 1e6;

impl Fit for GpParams {
    type Fitted = Gp;
    const FAMILY: &'static str = "gp";
    const SUPPORTS_CLASSES: bool = false;

    fn restore(record: &Record) -> Result<Gp> {
        Gp::from_record(record)
    }

    fn learn(params: &Checked<Self>, data: &Dataset, run: &Run<'_>) -> Result<Gp> {
        let problem = Problem::new(params, data, run.key)?;
        let mut progress = Progress::new(run);
        let n_rows = problem.points.n();
        let is_exact = params.n_inducing.is_none() && n_rows <= params.max_exact_rows;
        let model = if is_exact {
            problem.fit_exact(&mut progress)
        } else {
            problem.fit_sparse(&mut progress)
        };
        model.map_err(|error| too_large(error, n_rows))
    }
}

/// Adds what to do to the error of a matrix that does not fit into memory.
fn too_large(error: Error, n_rows: usize) -> Error {
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
struct Problem<'a> {
    params: &'a GpParams,
    key: Key,
    schema: Schema,
    encoder: Encoder,
    units: TargetUnits,
    points: Points,
    targets: Vec<f64>,
    weights: Vec<f64>,
    space: HyperSpace,
}

impl<'a> Problem<'a> {
    fn new(params: &'a GpParams, data: &Dataset, key: Key) -> Result<Self> {
        let data = data.try_deduplicated()?;
        let weights = data.weights().expect("deduplicated rows have weights");
        let encoding = Encoding {
            scaling: Scaling::Standard,
            rotation: Rotation::None,
            squares: false,
            max_categories: params.max_categories,
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
            shape: params.kernel,
            n_inputs: points.n_inputs(),
            fixed: FixedHyperparameters {
                length: params.length_scale,
                signal_sd: params.signal_scale,
                noise_sd: params.noise_scale,
            },
            min_noise_sd: params.min_scale.unwrap_or(floor),
        };
        Ok(Self {
            params,
            key,
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

    fn rows(&self) -> TargetRows<'_> {
        TargetRows {
            points: &self.points,
            targets: &self.targets,
            weights: &self.weights,
        }
    }

    /// The estimation of the hyper-parameters from some rows.
    fn estimation<'b>(&'b self, rows: TargetRows<'b>) -> EstimationProblem<'b> {
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
            1 + self.params.n_restarts
        };
        start(self.estimation(rows), n_starts, progress)
    }

    fn fit_exact(&self, progress: &mut Progress<'_>) -> Result<Gp> {
        let mut theta = self.start(self.rows(), progress)?;
        if !progress.is_stopped {
            let snapshot = |theta: &[f64], curve: &[CurvePoint]| -> Result<Box<dyn Model>> {
                let training = self.training(curve.to_vec(), true);
                Ok(Box::new(self.exact_model(theta, training)?))
            };
            let max_iterations = self.params.max_iterations;
            let problem = self.estimation(self.rows());
            theta = optimise(problem, theta, max_iterations, progress, &snapshot)?;
        }
        let training = self.training(std::mem::take(&mut progress.curve), progress.is_stopped);
        self.exact_model(&theta, training)
    }

    fn exact_model(&self, theta: &[f64], training: Training) -> Result<Gp> {
        let found = self.space.at(theta).ok_or_else(not_positive_definite)?;
        let noise = vec![found.noise(); self.points.n()];
        let rows = Observations {
            points: &self.points,
            targets: &self.targets,
            weights: &self.weights,
            noise: &noise,
        };
        let posterior = exact::posterior(&found.kernel, &rows)?;
        stop::check()?;
        let posterior = posterior.ok_or_else(not_positive_definite)?;
        let of_observation = noise.iter().zip(&self.weights);
        let of_observation: Vec<f64> = of_observation
            .map(|(noise, weight)| noise / weight)
            .collect();
        let model = self.model(&found, posterior, self.points.clone(), training);
        Ok(Gp::new(model, &of_observation))
    }

    fn fit_sparse(&self, progress: &mut Progress<'_>) -> Result<Gp> {
        let theta = self.sparse_start(progress)?;
        let found = self.space.at(&theta).ok_or_else(not_positive_definite)?;
        let n_inducing = self.params.n_inducing.unwrap_or(N_INDUCING);
        let key = self.key.child(streams::INDUCING);
        let chosen = inducing::choose(&found.kernel, &self.points, n_inducing, key);
        stop::check()?;
        let inducing = self.points.take(&chosen);
        let batches = self.key.child(streams::BATCHES);
        let mut training = SparseTraining::new(
            self.estimation(self.rows()),
            inducing.clone(),
            theta,
            batches,
        )?;
        let n_epochs = if self.space.n_free() == 0 {
            0
        } else {
            self.params.n_epochs
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
                Ok(Box::new(self.sparse_model(&training, &inducing, report)?))
            };
            let event = Event {
                epoch: Some(epoch),
                elbo: curve.last().map(|point| point.elbo),
                ..Event::new("training", epoch, n_epochs)
            };
            let _ = progress.send(&event.with_snapshot(&snapshot));
        }
        let report = self.training(curve, progress.is_stopped);
        self.sparse_model(&training, &inducing, report)
    }

    /// Hyper-parameters of an exact process on a sample of the rows.
    fn sparse_start(&self, progress: &mut Progress<'_>) -> Result<Vec<f64>> {
        let key = self.key.child(streams::SAMPLE).child(1);
        let chosen = sample(self.points.n(), N_SPARSE_START, key);
        let (points, targets, weights) = self.rows().take(&chosen);
        let rows = TargetRows {
            points: &points,
            targets: &targets,
            weights: &weights,
        };
        let theta = self.start(rows, progress)?;
        if progress.is_stopped || self.space.n_free() == 0 {
            return Ok(theta);
        }
        refine(self.estimation(rows), theta, progress)
    }

    fn sparse_model(
        &self,
        training: &SparseTraining<'_>,
        inducing: &Points,
        report: Training,
    ) -> Result<Gp> {
        let (found, posterior) = training.posterior()?;
        let parts = self.model(&found, posterior, inducing.clone(), report);
        Ok(Gp::new(parts, &[]))
    }

    /// The report of the training.
    fn training(&self, curve: Vec<CurvePoint>, is_stopped: bool) -> Training {
        Training {
            curve,
            target_sd: Some(self.units.scale),
            is_stopped,
            ..Training::default()
        }
    }

    fn model(
        &self,
        found: &GpHyperparameters,
        posterior: GpPosterior,
        points: Points,
        training: Training,
    ) -> GpParts {
        let is_sparse = posterior.precision.is_some();
        GpParts {
            schema: self.schema.clone(),
            units: self.units,
            encoder: self.encoder.clone(),
            params: self.params.clone(),
            training: Training {
                chosen: description(found, points.n(), is_sparse),
                ..training
            },
            noise_sd: found.noise_sd,
            posterior,
            points,
            key: self.key.child(streams::MEMBERS),
            substitutes: UnseenSubstitutes::new(self.key.child(streams::UNSEEN)),
            n_members: self.params.n_members,
        }
    }
}

fn not_positive_definite() -> Error {
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
