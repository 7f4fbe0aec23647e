//! One training run of a sum of soft trees, and its reports to the observer of a fit.

use crate::error::{Error, Result};
use crate::inference::lowrank_gaussian::LowRank;
use crate::inference::prior::WeightPrior;
use crate::inference::schedule::TrainingSchedule;
use crate::inference::train::{AfterEpoch, EpochEvaluation, OnEpoch, PosteriorRun};
use crate::inference::train::{TrainedPosterior, train as train_posterior};
use crate::likelihood::soft::SoftLikelihood;
use crate::model::CurvePoint;
use crate::observer::{Observer, Progress};
use crate::rng::Key;
use crate::soft::kernel::SoftTreeSpec;
use crate::soft::layout::TreeLayout;
use crate::variational::config::SoftTreeConfig;
use crate::variational::encoded_rows::EncodedRows;
use crate::variational::groups::groups;
use crate::variational::objective::SoftTreeObjective;

/// Fraction of a run with one noise variance for all rows, if the run has a homoscedastic warm-up.
/// The warm-up ends before KL annealing does, and so before an epoch can be selected.
const HOMOSCEDASTIC_WARMUP: f64 = 0.4;

/// A model, its training data and its initial posterior.
pub(crate) struct TrainingRun<'a> {
    pub(crate) config: &'a SoftTreeConfig,
    pub(crate) spec: SoftTreeSpec,
    pub(crate) train: &'a EncodedRows,
    pub(crate) validation: Option<&'a EncodedRows>,
    /// Initial posterior.
    pub(crate) start: LowRank,
    pub(crate) schedule: TrainingSchedule,
    /// Whether the initial posterior is fitted already: the KL term is then not annealed.
    pub(crate) is_warm_start: bool,
    /// Whether the leaves of the scale channel stay fixed.
    pub(crate) freezes_scale: bool,
    /// Draws the offset of an epoch; `None` if the offset of the rows is used in all epochs.
    pub(crate) redraw_offset: Option<&'a dyn Fn(usize) -> Vec<f32>>,
}

impl TrainingRun<'_> {
    /// Number of initial epochs with one noise variance for all rows. A scale that depends on the
    /// inputs from the start would fit as noise what the mean has not learned yet, and so reduce
    /// the gradient of the mean. There is no warm-up for mixtures: their components need different
    /// scales from the start to separate rows by noise.
    pub(crate) fn n_homoscedastic_epochs(&self) -> usize {
        let stack = &self.spec.stack;
        let is_single_blend = stack.first.n_components() == 1 && !stack.has_offset;
        let has_scale = matches!(self.spec.likelihood, SoftLikelihood::Normal { .. });
        if self.config.homoscedastic_warmup && has_scale && is_single_blend && !self.is_warm_start {
            (HOMOSCEDASTIC_WARMUP * self.schedule.n_epochs as f64) as usize
        } else {
            0
        }
    }

    /// Initial posterior, prior and schedule.
    pub(crate) fn posterior_run(&self) -> PosteriorRun {
        let config = self.config;
        PosteriorRun {
            start: self.start.clone(),
            prior: WeightPrior {
                scale: config.prior_scale,
                groups: groups(config, &self.spec.stack, self.spec.likelihood),
            },
            kl_weight: config.kl_weight,
            schedule: self.schedule,
            early_stopping: config.early_stopping,
            is_warm_start: self.is_warm_start,
        }
    }
}

/// A trained posterior.
#[derive(Debug, Clone)]
pub(crate) struct Trained {
    pub(crate) spec: SoftTreeSpec,
    pub(crate) posterior: LowRank,
    /// Mean validation log-likelihood in standard units at the selected epoch; NaN without a
    /// validation set.
    pub(crate) validation_score: f64,
    /// Log-likelihood of each validation row at the selected epoch.
    pub(crate) row_scores: Vec<f64>,
    pub(crate) curve: Vec<CurvePoint>,
}

/// Trains a posterior.
///
/// # Errors
/// When `on_epoch` discards the run, or when the ELBO is not finite.
pub(crate) fn train(
    training_run: &TrainingRun<'_>,
    key: Key,
    on_epoch: OnEpoch<'_>,
) -> Result<Trained> {
    let mut objective = SoftTreeObjective::new(training_run);
    let TrainedPosterior {
        posterior,
        state: spec,
        scores,
        curve,
    } = train_posterior(&mut objective, training_run.posterior_run(), key, on_epoch)?;
    Ok(Trained {
        spec,
        posterior,
        validation_score: scores.as_ref().map_or(f64::NAN, |scores| scores.mean),
        row_scores: scores.map_or_else(Vec::new, |scores| scores.of_rows),
        curve: curve.into_iter().map(curve_point).collect(),
    })
}

fn curve_point(evaluation: EpochEvaluation) -> CurvePoint {
    CurvePoint {
        epoch: evaluation.epoch,
        elbo: evaluation.elbo,
        held_out: evaluation.validation_score,
    }
}

/// Reports `done` of `total` epochs of a stage to the observer of a run.
pub(crate) fn report_epoch(
    observer: &dyn Observer,
    stage: &str,
    done: usize,
    total: usize,
    evaluation: &EpochEvaluation,
) -> AfterEpoch {
    let answer = observer.step(&Progress {
        stage,
        done,
        total,
        elbo: Some(evaluation.elbo).filter(|elbo| elbo.is_finite()),
        held_out: evaluation.validation_score,
    });
    if answer.is_break() {
        AfterEpoch::StopAndDiscard
    } else {
        AfterEpoch::Continue
    }
}

/// The fits that did not diverge.
///
/// # Errors
/// When all fits diverged, or when one failed for another reason.
pub(crate) fn converged<T>(fits: Vec<Result<T>>) -> Result<Vec<T>> {
    let mut converged = Vec::with_capacity(fits.len());
    let mut divergence = None;
    for fit in fits {
        match fit {
            Ok(fit) => converged.push(fit),
            Err(error @ Error::Diverged { .. }) => divergence = Some(error),
            Err(error) => return Err(error),
        }
    }
    match divergence {
        Some(error) if converged.is_empty() => Err(error),
        _ => Ok(converged),
    }
}
