//! Training runs of one fit: the first run of a tree, trees that are added, structure moves.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::inference::prior::WeightPrior;
use crate::inference::schedule::TrainingSchedule;
use crate::inference::train::{EpochReport, PosteriorRun, TrainedPosterior, train};
use crate::model::CurvePoint;
use crate::models::vart::groups::groups;
use crate::models::vart::init::VartPosterior;
use crate::models::vart::moves::moved;
use crate::models::vart::node_outputs::NodeOutputs;
use crate::models::vart::objective::{Temperatures, VartObjective, VartSettings};
use crate::models::vart::params::{KlEstimate, VartParams};
use crate::models::vart::streams::fit as streams;
use crate::rng::Key;
use crate::stop::{self, Stop};
use crate::variational::candidate::Candidate;
use crate::variational::config::SoftTreeConfig;
use crate::variational::encoded_rows::EncodedSplit;
use crate::variational::selection::SelectionRun;
use crate::variational::train::curve_point;

/// Length of a run after a structure move or an added tree, as a fraction of a full run.
const MOVE_RUN: f64 = 0.25;
/// Learning rate of such a run, as a fraction of that of a full run.
const MOVE_RATE: f64 = 0.5;
/// Initial temperature of such a run, as a multiple of the final one.
const MOVE_TEMPERATURE: f64 = 3.0;

/// A trained posterior over structure and weights.
#[derive(Debug, Clone)]
pub(super) struct VartTrained {
    /// The posterior; a further run may begin with it.
    pub(super) posterior: VartPosterior,
    /// Mean validation log-likelihood in standard units; NaN without a validation set.
    pub(super) validation_score: f64,
    pub(super) row_scores: Vec<f64>,
    pub(super) curve: Vec<CurvePoint>,
    pub(super) is_stopped: bool,
    pub(super) is_complete: bool,
}

impl SelectionRun for VartTrained {
    fn validation_score(&self) -> f64 {
        self.validation_score
    }

    fn row_scores(&self) -> &[f64] {
        &self.row_scores
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped
    }
}

impl VartTrained {
    fn new(start: &VartPosterior, trained: TrainedPosterior<Vec<f32>>) -> Self {
        let TrainedPosterior {
            posterior,
            state,
            scores,
            curve,
            is_stopped,
            is_complete,
        } = trained;
        Self {
            posterior: VartPosterior {
                spec: start.spec.clone(),
                posterior,
                logits: state,
            },
            validation_score: scores.as_ref().map_or(f64::NAN, |scores| scores.mean),
            row_scores: scores.map_or_else(Vec::new, |scores| scores.of_rows),
            curve: curve.into_iter().map(curve_point).collect(),
            is_stopped,
            is_complete,
        }
    }

    /// Evidence lower bound at the end of the run.
    fn elbo(&self) -> f64 {
        self.curve
            .last()
            .map_or(f64::NEG_INFINITY, |point| point.elbo)
    }

    /// Whether this run is better than another: on the validation rows, or in the ELBO without any.
    fn is_better_than(&self, other: &Self) -> bool {
        if self.validation_score.is_nan() || other.validation_score.is_nan() {
            self.elbo() > other.elbo()
        } else {
            self.validation_score > other.validation_score
        }
    }
}

impl VartTrained {
    /// Replaces this run by the next one if that is better and did not diverge; returns whether the
    /// work goes on.
    ///
    /// # Errors
    /// When the next run failed for another reason.
    fn is_replaced(&mut self, next: Result<Self>) -> Result<bool> {
        let next = match next {
            Err(Error::Diverged { .. }) => return Ok(false),
            next => next?,
        };
        let (is_stopped, is_complete) = (next.is_stopped, self.is_complete);
        let is_better = next.is_better_than(self);
        if is_better {
            // the curve goes on after the epochs of the earlier runs
            let n_epochs = self.curve.last().map_or(0, |point| point.epoch);
            let mut curve = std::mem::take(&mut self.curve);
            curve.extend(next.curve.into_iter().map(|point| CurvePoint {
                epoch: n_epochs + point.epoch,
                ..point
            }));
            *self = Self {
                curve,
                is_complete,
                ..next
            };
        }
        self.is_stopped |= is_stopped;
        Ok(is_better && !is_stopped)
    }
}

/// An epoch of a run, with a copy of its best posterior if there is one.
pub(super) struct VartEpoch<'a> {
    pub(super) report: &'a EpochReport<'a, Vec<f32>>,
    pub(super) copy_best: Option<&'a dyn Fn() -> VartTrained>,
}

/// Callback after every epoch.
pub(super) type OnVartEpoch<'a> = &'a mut dyn FnMut(&VartEpoch<'_>) -> ControlFlow<Stop>;

/// Parameters and rows of a training run.
#[derive(Debug, Clone, Copy)]
pub(super) struct VartRun<'a> {
    pub(super) params: &'a VartParams,
    pub(super) config: &'a SoftTreeConfig,
    pub(super) split: &'a EncodedSplit,
    pub(super) schedule: TrainingSchedule,
    /// Whether the posterior is fitted already.
    pub(super) is_warm_start: bool,
}

impl VartRun<'_> {
    fn temperatures(&self) -> Temperatures {
        let last = self.params.temperature;
        let first = self.params.initial_temperature;
        Temperatures {
            first: if self.is_warm_start {
                first.min(MOVE_TEMPERATURE * last)
            } else {
                first
            },
            last,
        }
    }

    /// Trains a tree that begins as a candidate of model selection.
    ///
    /// # Errors
    /// As [`VartRun::train`].
    pub(super) fn train_candidate(
        &self,
        candidate: &Candidate,
        key: Key,
        on_epoch: OnVartEpoch<'_>,
    ) -> Result<VartTrained> {
        stop::check()?;
        let start_key = key.child(streams::START);
        let (params, config, split) = (self.params, self.config, self.split);
        let start = VartPosterior::new(params, config, split, candidate.shape, start_key);
        stop::check()?;
        self.train(&start, key, on_epoch)
    }

    /// One training run.
    ///
    /// # Errors
    /// When `on_epoch` discards the run, the work is cancelled, or the ELBO is not finite.
    pub(super) fn train(
        &self,
        start: &VartPosterior,
        key: Key,
        on_epoch: OnVartEpoch<'_>,
    ) -> Result<VartTrained> {
        let (params, schedule) = (self.params, self.schedule);
        let settings = VartSettings {
            spec: start.spec.clone(),
            logits: start.logits.clone(),
            prior: params.split_prior(),
            temperatures: self.temperatures(),
            n_epochs: schedule.n_epochs,
            batch_size: schedule.batch_size,
            n_draws: schedule.n_draws,
            split_rate: params.split_rate as f32,
            has_relaxed_kl: params.kl_estimate == KlEstimate::SingleDraw,
        };
        let (train_rows, validation) = (&self.split.train, self.split.validation.as_ref());
        let indicators = key.child(streams::INDICATORS);
        let mut objective = VartObjective::new(settings, train_rows, validation, indicators);
        let run = PosteriorRun {
            start: start.posterior.clone(),
            prior: WeightPrior {
                scale: params.prior_scale,
                groups: groups(&start.spec, params.prior, params.prior_scale),
            },
            kl_weight: params.kl_factor(train_rows.total_weight),
            schedule,
            early_stopping: params.early_stopping,
            is_warm_start: self.is_warm_start,
            patience: None,
        };
        let trained = train(&mut objective, run, key, &mut |report| {
            let copy = report
                .copy_best
                .map(|copy| || VartTrained::new(start, copy()));
            on_epoch(&VartEpoch {
                report,
                copy_best: copy.as_ref().map(|copy| copy as &dyn Fn() -> VartTrained),
            })
        })?;
        Ok(VartTrained::new(start, trained))
    }

    /// Number of epochs of a run after a structure move or an added tree.
    pub(super) fn n_continued_epochs(&self) -> usize {
        self.continued().schedule.n_epochs
    }

    /// A shorter run of this one that continues from a fitted posterior.
    fn continued(&self) -> Self {
        let mut schedule = self.schedule.part(MOVE_RUN);
        schedule.learning_rate *= MOVE_RATE;
        Self {
            schedule,
            is_warm_start: true,
            ..*self
        }
    }

    /// Adds trees and moves the structure while this is an improvement.
    ///
    /// # Errors
    /// As [`VartRun::train`].
    pub(super) fn improve(
        &self,
        mut trained: VartTrained,
        key: Key,
        on_epoch: OnVartEpoch<'_>,
    ) -> Result<VartTrained> {
        let short = self.continued();
        for tree in 1..self.params.n_estimators {
            let key = key.child(streams::ADDED_TREES).child(tree as u64);
            let all: Vec<usize> = (0..self.split.train.n_rows()).collect();
            let outputs = NodeOutputs::new(&trained.posterior, &self.split.train, &all);
            let posterior = trained.posterior.clone();
            let start = posterior.with_added_tree(
                self.params,
                self.config,
                self.split,
                &outputs.residuals,
                key.child(streams::START),
            );
            if !trained.is_replaced(short.train(&start, key, on_epoch))? {
                break;
            }
        }
        if self.params.n_estimators > 1 {
            return Ok(trained);
        }
        for round in 0..self.params.n_moves {
            let key = key.child(streams::MOVES).child(round as u64);
            let (train_rows, params) = (&self.split.train, self.params);
            let max_depth = params.max_depth;
            let moved = moved(
                &trained.posterior,
                train_rows,
                max_depth,
                params.prior_scale,
            );
            let Some(start) = moved else {
                break;
            };
            if !trained.is_replaced(short.train(&start, key, on_epoch))? {
                break;
            }
        }
        Ok(trained)
    }
}
