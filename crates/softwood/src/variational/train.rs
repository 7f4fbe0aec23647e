//! One training run of a sum of soft trees, and its reports to the observer of a fit.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::fit::Run;
use crate::inference::lowrank_gaussian::LowRank;
use crate::inference::prior::WeightPrior;
use crate::inference::schedule::TrainingSchedule;
use crate::inference::train::{EpochEvaluation, EpochReport, OnEpoch, PosteriorRun};
use crate::inference::train::{TrainedPosterior, train as train_posterior};
use crate::likelihood::soft::SoftLikelihood;
use crate::model::{CurvePoint, Model};
use crate::observer::{Event, TakeSnapshot};
use crate::rng::Key;
use crate::soft::kernel::SoftTreeSpec;
use crate::soft::layout::{Layout, TreeLayout};
use crate::stop::Stop;
use crate::variational::config::SoftTreeConfig;
use crate::variational::encoded_rows::EncodedRows;
use crate::variational::groups::groups;
use crate::variational::objective::SoftTreeObjective;

/// Fraction of a run with one noise variance for all rows, if the run has a homoscedastic warm-up.
/// The warm-up ends before KL annealing does, and so before an epoch can be selected.
const HOMOSCEDASTIC_WARMUP: f64 = 0.4;

/// Number of inputs from which a run ends after [`WIDE_PATIENCE`] evaluations without a better
/// validation score. Runs on many inputs are slow, and overfit after their best epoch.
const MIN_WIDE: usize = 128;
/// Patience of a run on many inputs.
const WIDE_PATIENCE: usize = 4;

/// A model, its training data and its initial posterior.
pub(crate) struct TrainingRun<'a, L = Layout> {
    pub(crate) config: &'a SoftTreeConfig,
    pub(crate) spec: SoftTreeSpec<L>,
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

impl<L: TreeLayout> TrainingRun<'_, L> {
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
            patience: (self.spec.stack.width() > MIN_WIDE).then_some(WIDE_PATIENCE),
        }
    }
}

/// A trained posterior.
#[derive(Debug, Clone)]
pub(crate) struct Trained<L = Layout> {
    pub(crate) spec: SoftTreeSpec<L>,
    pub(crate) posterior: LowRank,
    /// Mean validation log-likelihood in standard units at the selected epoch; NaN without a
    /// validation set.
    pub(crate) validation_score: f64,
    /// Log-likelihood of each validation row at the selected epoch.
    pub(crate) row_scores: Vec<f64>,
    pub(crate) curve: Vec<CurvePoint>,
    /// Whether the callback stopped the run.
    pub(crate) is_stopped: bool,
    /// Whether the run had all its epochs.
    pub(crate) is_complete: bool,
}

/// A training run of soft trees after an epoch.
pub(crate) type SoftTreeEpoch<'a, L = Layout> = EpochReport<'a, SoftTreeSpec<L>>;

/// Callback after every epoch of a training run of soft trees.
pub(crate) type OnSoftTreeEpoch<'a, L = Layout> = OnEpoch<'a, SoftTreeSpec<L>>;

impl<L> From<TrainedPosterior<SoftTreeSpec<L>>> for Trained<L> {
    fn from(trained: TrainedPosterior<SoftTreeSpec<L>>) -> Self {
        let TrainedPosterior {
            posterior,
            state: spec,
            scores,
            curve,
            is_stopped,
            is_complete,
        } = trained;
        Self {
            spec,
            posterior,
            validation_score: scores.as_ref().map_or(f64::NAN, |scores| scores.mean),
            row_scores: scores.map_or_else(Vec::new, |scores| scores.of_rows),
            curve: curve.into_iter().map(curve_point).collect(),
            is_stopped,
            is_complete,
        }
    }
}

/// Trains a posterior.
///
/// # Errors
/// When `on_epoch` discards the run, or when the ELBO is not finite.
pub(crate) fn train<L: TreeLayout + Clone>(
    training_run: &TrainingRun<'_, L>,
    key: Key,
    on_epoch: OnSoftTreeEpoch<'_, L>,
) -> Result<Trained<L>> {
    let mut objective = SoftTreeObjective::new(training_run);
    let run = training_run.posterior_run();
    Ok(train_posterior(&mut objective, run, key, on_epoch)?.into())
}

pub(crate) fn curve_point(evaluation: EpochEvaluation) -> CurvePoint {
    CurvePoint {
        epoch: evaluation.epoch,
        elbo: evaluation.elbo,
        held_out: evaluation.validation_score,
    }
}

/// The place of a training run in a fit, for the events of its epochs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunPlace<'a> {
    /// Name of the stage.
    pub(crate) stage: &'a str,
    /// Index of the run among the runs of the stage.
    pub(crate) at: usize,
    /// Number of runs of the stage.
    pub(crate) n_runs: usize,
    /// Number of epochs of a run.
    pub(crate) n_epochs: usize,
    /// Index of the trial, in model selection.
    pub(crate) trial: Option<usize>,
    /// Index of the fit of an ensemble.
    pub(crate) member: Option<usize>,
    /// Number of trees with the one that is trained.
    pub(crate) tree: Option<usize>,
}

impl<'a> RunPlace<'a> {
    /// The only run of a stage.
    pub(crate) fn new(stage: &'a str, n_epochs: usize) -> Self {
        Self {
            stage,
            at: 0,
            n_runs: 1,
            n_epochs,
            trial: None,
            member: None,
            tree: None,
        }
    }

    /// Reports an epoch to the observer of a fit. `assemble` makes a model of a trained posterior.
    pub(crate) fn report<L>(
        &self,
        run: &Run<'_>,
        report: &SoftTreeEpoch<'_, L>,
        assemble: Option<&dyn Fn(Trained<L>) -> Box<dyn Model>>,
    ) -> ControlFlow<Stop> {
        let Some((copy, assemble)) = report.copy_best.zip(assemble) else {
            return self.report_epoch(run, report, None);
        };
        let snapshot: TakeSnapshot<'_> = &|| Ok(assemble(Trained::from(copy())));
        self.report_epoch(run, report, Some(snapshot))
    }

    /// Reports an epoch of any training run to the observer of a fit, with a snapshot if there is
    /// one.
    pub(crate) fn report_epoch<S>(
        &self,
        run: &Run<'_>,
        report: &EpochReport<'_, S>,
        snapshot: Option<TakeSnapshot<'_>>,
    ) -> ControlFlow<Stop> {
        let evaluation = &report.evaluation;
        let done = self.at * self.n_epochs + report.epoch;
        let event = Event {
            trial: self.trial,
            member: self.member,
            tree: self.tree,
            epoch: Some(report.epoch),
            elbo: Some(evaluation.elbo).filter(|elbo| elbo.is_finite()),
            held_out: evaluation.validation_score,
            ..Event::new(self.stage, done, self.n_runs * self.n_epochs)
        };
        match snapshot {
            Some(snapshot) => run.observer.on_event(&event.with_snapshot(snapshot)),
            None => run.observer.on_event(&event),
        }
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

/// A fit of an ensemble, with what decides whether a stopped ensemble keeps it.
pub(crate) struct FitResult<T> {
    pub(crate) fit: T,
    /// Mean log-likelihood of the validation rows; NaN without a validation set.
    pub(crate) validation_score: f64,
    /// Whether training reached its end.
    pub(crate) is_complete: bool,
}

/// The complete fits; if training was stopped before one was complete, the best one.
pub(crate) fn kept<T>(fits: Vec<FitResult<T>>) -> Vec<T> {
    if fits.iter().any(|fit| fit.is_complete) {
        let complete = fits.into_iter().filter(|fit| fit.is_complete);
        return complete.map(|fit| fit.fit).collect();
    }
    let best = fits.into_iter().reduce(|best, fit| {
        if fit.validation_score > best.validation_score {
            fit
        } else {
            best
        }
    });
    best.map(|fit| fit.fit).into_iter().collect()
}
